/* kept.h: what a decoder keeps from step to step, in memory of its own: the tape is reset in each
 * call. */
#ifndef HEED_MODEL_KEPT_H
#define HEED_MODEL_KEPT_H

#include "model/model_class.h"

/* Memory that grows; growing forgets what was there. */
typedef struct heed__kept {
    heed_real *at;
    int64_t capacity;
} heed__kept;
/* False when memory is short. */
bool heed__kept_reserve(const heed_decoder *d, heed__kept *k, int64_t count);
void heed__kept_free(const heed_decoder *d, heed__kept *k);
/* Kept numbers as a tensor of this step. */
heed_tensor *heed__kept_tensor(heed_tape *t, heed_real *at, int64_t rows, int64_t cols);

/* How long the sources are that a start brought. */
typedef struct heed__sources {
    int64_t *lengths; /* (sentences) */
    int64_t capacity, count, rows;
} heed__sources;
bool heed__sources_keep(const heed_decoder *d, heed__sources *s, const heed_segments *source);
void heed__sources_free(const heed_decoder *d, heed__sources *s);
/* Segments of this step, NULL when memory is short: the sources; n of one length; and the rows of
 * each sentence, which are the queries that meet its source. */
const heed_segments *heed__sources_segments(const heed_decoder *d, const heed__sources *s);
const heed_segments *heed__equal_segments(heed_tape *t, int64_t n, int64_t each);
const heed_segments *heed__rows_of_sources(const heed_decoder *d);

#endif
