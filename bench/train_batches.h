/* train_batches.h: what `heed bench train` trains on. */
#ifndef HEED_BENCH_TRAIN_BATCHES_H
#define HEED_BENCH_TRAIN_BATCHES_H

#include "measure.h"

typedef struct bench_batches {
    heed_batch *batch;
    int64_t count;
    int64_t pairs, source_tokens, target_tokens; /* of all of them, EOS included */
} bench_batches;

/* From s->ids, or made up; lives in the arena. */
heed_status bench_batches_make(const bench_train_settings *s, heed_arena *arena, bench_batches *b,
                               heed_error *err);

#endif
