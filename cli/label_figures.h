/* label_figures.h: answers of a classifier or tagger beside the right ones: accuracy, F1, the
 * confusion matrix. */
#ifndef HEED_CLI_LABEL_FIGURES_H
#define HEED_CLI_LABEL_FIGURES_H

#include <heed/encoder.h>

struct label_answers {
    const char *const *label;
    int64_t labels;
    const char *output; /* where the confusion matrix is drawn; NULL: nowhere */
    bool json;
    heed_arena *arena;
};
/* Prints the figures of n answers, and draws. */
heed_status conclude_labels(const struct label_answers *e, const int32_t *wanted,
                            const int32_t *said, int64_t n, heed_error *err);
heed_status draw_confusion(const struct label_answers *e, const heed_label_figures *g,
                           heed_error *err);
/* A field of JSON, null where the value is none; "  87.20", or a dash. */
void print_number(const char *name, double value);
void print_percent(double value);

#endif
