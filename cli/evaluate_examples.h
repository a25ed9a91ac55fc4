/* evaluate_examples.h: `heed evaluate --tsv` and `--conll`: an encoder's answers beside the right
 * ones. */
#ifndef HEED_CLI_EVALUATE_EXAMPLES_H
#define HEED_CLI_EVALUATE_EXAMPLES_H

#include <stdbool.h>
#include <stdint.h>

struct example_files {
    const char *model, *tsv, *conll; /* one of the two files */
    const char *tag_column;
    const char *output; /* where the confusion matrix is drawn; NULL: nowhere */
    bool json;
    int64_t threads;
};
/* An exit code. */
int evaluate_examples(const struct example_files *f);

#endif
