/* evaluate_examples.h: `heed evaluate --tsv`, `--conll`, `--images` and `--idx`: a model's answers
 * beside the right ones. */
#ifndef HEED_CLI_EVALUATE_EXAMPLES_H
#define HEED_CLI_EVALUATE_EXAMPLES_H

#include <heed/options.h>

struct example_files {
    const char *model, *tsv, *conll, *images; /* one of these files, or idx: two */
    heed_option_list idx;
    const char *tag_column;
    const char *output; /* where the confusion matrix is drawn; NULL: nowhere */
    bool json;
    int64_t threads;
};
/* Of texts, and of pictures; an exit code. */
int evaluate_examples(const struct example_files *f);
int evaluate_pictures(const struct example_files *f);

#endif
