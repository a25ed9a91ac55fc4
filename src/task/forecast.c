/* forecast.c: what a run would need, measured: a first update to warm up, then as many as fit in
 * two seconds.  Tokens are counted against bytes, because batches come sorted by length and their
 * number of pairs says little about an epoch. */
#include "train/trainer.h"

#define LEAST_UPDATES 2
#define LEAST_SECONDS 2.0

static size_t held(const heed_trainer *t)
{
    size_t flat = (size_t)heed_params_size(t->params) * sizeof(heed_real);
    size_t buffers = 2 + (size_t)heed_optimizer_moments(t->optimizer) + (t->ema ? 1 : 0);
    return flat * buffers + (size_t)heed_params_state_size(t->params) * sizeof(heed_real) +
           heed_tape_memory(t->tape);
}

heed_status heed_trainer_forecast(heed_trainer *t, heed_train_forecast *f, heed_error *err)
{
    heed_corpus_report corpus = heed_corpus_describe(t->corpus);
    heed__update u, sum = {0};
    double seconds = 0;
    int64_t updates = 0;
    heed_status status = heed__trainer_update(t, &u, err);
    double begin = heed_clock_seconds();
    while (!status && (updates < LEAST_UPDATES || seconds < LEAST_SECONDS)) {
        if ((status = heed__trainer_update(t, &u, err)))
            break;
        sum.source_tokens += u.source_tokens;
        sum.target_tokens += u.target_tokens;
        sum.target_bytes += u.target_bytes;
        updates++;
        seconds = heed_clock_seconds() - begin;
    }
    if (status)
        return status;
    double epoch = (double)corpus.target_bytes * (double)sum.target_tokens /
                   (double)(sum.target_bytes ? sum.target_bytes : 1);
    double per_update = (double)sum.target_tokens / (double)updates;
    *f = (heed_train_forecast){.pairs = corpus.pairs,
                               .left_out = heed__trainer_left_out(t),
                               .valid_pairs = heed_corpus_describe(t->valid).pairs,
                               .source_vocabulary = heed_vocab_size(t->source),
                               .target_vocabulary = heed_vocab_size(t->target),
                               .parameters = heed_params_trainable(t->params),
                               .memory = held(t),
                               .tokens_per_second =
                                   (double)(sum.source_tokens + sum.target_tokens) / seconds,
                               .seconds_per_update = seconds / (double)updates,
                               .seconds_per_epoch = seconds * epoch / (double)sum.target_tokens,
                               .updates_per_epoch = (int64_t)(epoch / per_update + 0.5)};
    return HEED_OK;
}
