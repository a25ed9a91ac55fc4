/* forecast.c: what a run would need, measured: a first update to warm up, then as many as fit in
 * two seconds.  Shares of a pass are counted, not updates: batches come sorted by length, and their
 * number says little about an epoch. */
#include "train/trainer.h"

#define LEAST_UPDATES 2
#define LEAST_SECONDS 2.0

static size_t held(const heed_trainer *t)
{
    size_t bytes = heed_tape_memory(t->tape);
    for (int k = 0; k < t->sets; k++) {
        const heed__trained_set *s = &t->set[k];
        const size_t flat = (size_t)heed_params_size(s->params) * sizeof(heed_real);
        const size_t buffers = 2 + (s->ema ? 1 : 0);
        const int64_t moment = heed__parts(t)
                                   ? heed__exact_sum_own_size(t->sum, heed_params_size(s->params))
                                   : heed_params_size(s->params);
        bytes += (size_t)heed_optimizer_moments(s->optimizer) * (size_t)moment * sizeof(heed_real);
        bytes += flat * buffers + (size_t)heed_params_state_size(s->params) * sizeof(heed_real);
    }
    return bytes;
}

heed_status heed_trainer_forecast(heed_trainer *t, heed_train_forecast *f, heed_error *err)
{
    heed__update u, sum = {.terms = 0};
    double seconds = 0;
    int64_t updates = 0;
    if (!t || !f)
        return heed__fail(err, HEED_ARGUMENT, "there is no trainer, or no room for a forecast");
    heed_status status = heed__trainer_update(t, &u, err);
    double begin = heed_clock_seconds();
    bool more = true;
    while (!status && more) {
        if ((status = heed__trainer_update(t, &u, err)))
            break;
        sum.items += u.items;
        sum.share += u.share;
        updates++;
        seconds = heed_clock_seconds() - begin;
        more = updates < LEAST_UPDATES || seconds < LEAST_SECONDS;
        status = heed__ranks_broadcast(t->ranks, &more, sizeof more, err);
    }
    if (status)
        return status;
    const double epoch = sum.share > 0 ? (double)updates / sum.share : 0; /* in updates */
    *f = (heed_train_forecast){.memory = held(t),
                               .items_per_second = sum.items / seconds,
                               .seconds_per_update = seconds / (double)updates,
                               .seconds_per_epoch = seconds / (double)updates * epoch,
                               .updates_per_epoch = (int64_t)(epoch + 0.5)};
    for (int k = 0; k < t->sets; k++)
        f->parameters += heed_params_trainable(t->set[k].params);
    return HEED_OK;
}
