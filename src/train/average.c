/* average.c: which saves the average at the end is made of, and the average itself.
 *
 * `last`: the last K saves of the schedule.  `best`: the K that validated best.  Their weights are
 * kept when the saves themselves are removed. */
#include "train/trainer.h"
#include <heed/io.h>

#include <float.h>
#include <math.h>
#include <string.h>

bool heed__candidates_hold(const heed__train_state *s, int64_t update)
{
    for (int i = 0; i < s->n_candidates; i++)
        if (s->candidates[i].update == update)
            return true;
    return false;
}

static void drop(heed__train_state *s, int i)
{
    memmove(&s->candidates[i], &s->candidates[i + 1],
            sizeof *s->candidates * (size_t)(s->n_candidates - i - 1));
    s->n_candidates--;
}

static int worst(const heed__train_state *s)
{
    int w = 0;
    for (int i = 1; i < s->n_candidates; i++)
        if (s->candidates[i].score < s->candidates[w].score)
            w = i;
    return w;
}

void heed__candidates_add(heed_trainer *t, bool validated)
{
    const heed_train_options *o = &t->recipe.train;
    heed__train_state *s = &t->state;
    heed__ranked_save c = {s->update, -DBL_MAX}; /* the first to go, should the kind be changed */
    bool best = o->average_kind == HEED_AVERAGE_BEST;
    if (o->average < 2 || (best && !validated) || heed__candidates_hold(s, s->update))
        return;
    if (best) {
        double score = o->valid_metric == HEED_VALID_BLEU   ? s->bleu
                       : o->valid_metric == HEED_VALID_CHRF ? s->chrf
                                                            : -s->valid_loss;
        if (!isfinite(score))
            return;
        c.score = score;
    }
    /* A recipe resumed with a smaller K may have several to drop. */
    while (s->n_candidates >= o->average) {
        int out = best ? worst(s) : 0;
        if (best && s->n_candidates == o->average && s->candidates[out].score > c.score)
            return;
        drop(s, out);
    }
    s->candidates[s->n_candidates++] = c;
}

/* mean += (x - mean) / n, where x is the n-th. */
static void add_to_mean(heed_real *mean, const heed_real *x, int64_t size, int n)
{
    for (int64_t i = 0; i < size; i++)
        mean[i] += (x[i] - mean[i]) / (heed_real)n;
}

heed_status heed__candidates_average(heed_trainer *t, int *count, heed_error *err)
{
    const heed__train_state *s = &t->state;
    size_t size = (size_t)heed_params_size(t->params);
    size_t state = (size_t)heed_params_state_size(t->params);
    heed_real *mean = heed__allocate_zeroed(&t->allocator, size + state, sizeof *mean);
    heed_status status = HEED_OK;
    *count = 0;
    if (!mean)
        return heed__fail(err, HEED_MEMORY, "out of memory for the average of %lld parameters",
                          (long long)size);
    for (int i = 0; !status && i < s->n_candidates; i++) {
        heed__pathname path;
        heed_error own = {0};
        status = heed__checkpoint_weights(t, s->candidates[i].update, path, err);
        if (!status && heed_params_load(t->params, path, &own)) {
            heed__trainer_say(t, HEED_LOG_WARNING, "left out of the average: %s", own.text);
        } else if (!status) {
            ++*count;
            add_to_mean(mean, heed_params_values(t->params), (int64_t)size, *count);
            add_to_mean(mean + size, heed_params_state_values(t->params), (int64_t)state, *count);
        }
    }
    if (!status && *count) {
        memcpy(heed_params_values(t->params), mean, size * sizeof *mean);
        if (state)
            memcpy(heed_params_state_values(t->params), mean + size, state * sizeof *mean);
    }
    heed__release(&t->allocator, mean, size + state, sizeof *mean);
    return status;
}
