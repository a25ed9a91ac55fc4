/* attend.h (internal): what a row of the table of scores is, for attend.c, which puts the slots
 * together, and score.c, which has the rows. */
#ifndef HEED_ATTENTION_ATTEND_H
#define HEED_ATTENTION_ATTEND_H

#include <heed/attention.h>

typedef struct heed__score {
    /* NULL where there is nothing to do. */
    void (*build)(heed_attend_layer *l, heed_scope s);
    heed_tensor *(*keys)(heed_tape *t, const heed_attend_layer *l, heed_tensor *states);
    heed_tensor *(*query)(heed_tape *t, const heed_attend_layer *l, heed_tensor *q,
                          const heed_pairs *p);
    /* Flat scores of what `query` and `keys` made; NULL: their products, times 1/sqrt(Dk) if
     * `scaled`. */
    heed_tensor *(*scores)(heed_tape *t, const heed_attend_layer *l, heed_tensor *q, heed_tensor *k,
                           const heed_pairs *p);
    bool scaled;
} heed__score;
#define HEED__COSINE_EPS 1e-6 /* the shortest length that a cosine divides by */
/* score.c */
const heed__score *heed__score_of(const heed_attend_layer *l);

/* pattern.c: what local-p needs; then the window of each query, in *p; *gate is what its weights
 * are multiplied with, or NULL. */
void heed__pattern_build(heed_attend_layer *l, heed_scope s);
bool heed__pattern_windows(heed_tape *t, const heed_attend_layer *l, heed_tensor *q, bool causal,
                           const int32_t *place, heed_pairs *p, heed_tensor **gate);

/* registry.c: the row of a slot, and what does not go together. */
const heed_attention_info *heed__attention_row(heed_attention_slot slot, int kind);
heed_status heed__attend_check(const heed_attend_options *o, heed_error *err);

#endif
