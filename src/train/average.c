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
    const heed_loop_options *o = &t->loop;
    heed__train_state *s = &t->state;
    heed__ranked_save c = {s->update, -DBL_MAX}; /* the first to go, should the kind be changed */
    bool best = o->average_kind == HEED_AVERAGE_BEST;
    if (o->average < 2 || (best && !validated) || heed__candidates_hold(s, s->update))
        return;
    if (best) {
        const heed_measure m = heed__deciding(t, s->measure, s->measures);
        if (!isfinite(m.value))
            return;
        c.score = m.larger_is_better ? m.value : -m.value;
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

/* The means of all sets, one after the other: weights, then state. */
struct means {
    heed_real *mean[HEED_MAX_SETS];
    int n; /* saves in them */
};

static size_t mean_size(const heed_params *p)
{
    return (size_t)heed_params_size(p) + (size_t)heed_params_state_size(p);
}

static heed_status begin_means(const heed_trainer *t, struct means *m, heed_error *err)
{
    heed_status status = HEED_OK;
    *m = (struct means){.n = 0};
    for (int k = 0; !status && k < t->sets; k++) {
        const size_t size = mean_size(t->set[k].params);
        m->mean[k] = heed__allocate_zeroed(&t->allocator, size, sizeof *m->mean[k]);
        if (!m->mean[k])
            status =
                heed__fail(err, HEED_MEMORY, "out of memory for the average of %lld parameters",
                           (long long)size);
    }
    return status;
}

static void end_means(const heed_trainer *t, const struct means *m)
{
    for (int k = 0; k < t->sets; k++)
        heed__release(&t->allocator, m->mean[k], m->mean[k] ? mean_size(t->set[k].params) : 0,
                      sizeof *m->mean[k]);
}

/* What cannot be read is left out, with a warning. */
static void add_save(heed_trainer *t, struct means *m, int64_t update)
{
    heed_error own = {0};
    for (int k = 0; !own.status && k < t->sets; k++) {
        heed__pathname path;
        heed__checkpoint_weights(t, update, k, path);
        heed_params_load(t->set[k].params, path, &own);
    }
    if (own.status) {
        heed__trainer_say(t, HEED_LOG_WARNING, "left out of the average: %s", own.text);
        return;
    }
    m->n++;
    for (int k = 0; k < t->sets; k++) {
        const heed_params *p = t->set[k].params;
        const int64_t size = heed_params_size(p);
        add_to_mean(m->mean[k], heed_params_values(p), size, m->n);
        add_to_mean(m->mean[k] + size, heed_params_state_values(p), heed_params_state_size(p),
                    m->n);
    }
}

heed_status heed__candidates_average(heed_trainer *t, int *count, heed_error *err)
{
    const heed__train_state *s = &t->state;
    struct means m;
    heed_status status = begin_means(t, &m, err);
    for (int i = 0; !status && i < s->n_candidates; i++)
        add_save(t, &m, s->candidates[i].update);
    for (int k = 0; !status && m.n && k < t->sets; k++) {
        heed_params *p = t->set[k].params;
        const size_t size = (size_t)heed_params_size(p), state = mean_size(p) - size;
        memcpy(heed_params_values(p), m.mean[k], size * sizeof *m.mean[k]);
        if (state)
            memcpy(heed_params_state_values(p), m.mean[k] + size, state * sizeof *m.mean[k]);
    }
    *count = m.n;
    end_means(t, &m);
    return status;
}
