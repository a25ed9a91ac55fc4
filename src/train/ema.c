/* ema.c: an exponential moving average of a set's weights.
 *
 *     a += (1 - d) (w - a),  d = min(decay, (1 + n) / (10 + n)),  n updates before this one
 *
 * It starts as a copy of the weights; the growing d lets it forget that start quickly.  State
 * (running statistics) is not averaged.  Cost: one pass, and one more flat buffer. */
#include <heed/train.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/parallel.h"
#include "kernel/kernels.h"

#define BLOCK 4096

struct heed_ema {
    heed_allocator allocator;
    const heed_params *params;
    heed_real *values; /* flat like the set */
    int64_t size;
    double decay;
    int64_t updates;
    heed_real rate; /* of the current update */
};

heed_ema *heed_ema_new(const heed_params *p, double decay, const heed_allocator *allocator,
                       heed_error *err)
{
    if (!p || !heed_params_values(p)) {
        heed__fail(err, HEED_STATE, "ema: the parameter set is not finished");
        return NULL;
    }
    if (!(decay >= 0 && decay < 1)) {
        heed__fail(err, HEED_ARGUMENT, "ema: decay is %g, expected in [0,1)", decay);
        return NULL;
    }
    heed_allocator a = heed__allocator_or_default(allocator);
    int64_t size = heed_params_size(p);
    heed_ema *e = heed__allocate(&a, 1, sizeof *e);
    heed_real *values = heed__allocate(&a, (size_t)size, sizeof *values);
    if (!e || !values) {
        heed__fail(err, HEED_MEMORY, "ema: out of memory for %lld numbers", (long long)size);
        heed__release(&a, values, (size_t)size, sizeof *values);
        heed__release(&a, e, 1, sizeof *e);
        return NULL;
    }
    *e = (heed_ema){.allocator = a, .params = p, .values = values, .size = size, .decay = decay};
    memcpy(values, heed_params_values(p), (size_t)size * sizeof *values);
    return e;
}

void heed_ema_free(heed_ema *e)
{
    if (!e)
        return;
    heed_allocator a = e->allocator;
    heed__release(&a, e->values, (size_t)e->size, sizeof *e->values);
    heed__release(&a, e, 1, sizeof *e);
}

static void update(void *context, int64_t begin, int64_t end, int thread)
{
    const heed_ema *e = context;
    (void)thread;
    heed__kernels()->average(e->values + begin, heed_params_values(e->params) + begin, end - begin,
                             e->rate);
}

void heed_ema_update(heed_ema *e, int threads)
{
    if (!e)
        return;
    double n = (double)e->updates, early = (1 + n) / (10 + n);
    e->rate = (heed_real)(1 - (e->decay < early ? e->decay : early));
    heed__parallel(threads, e->size, BLOCK, 2, update, e);
    e->updates++;
}

void heed_ema_swap(heed_ema *e)
{
    if (!e)
        return;
    heed_real *w = heed_params_values(e->params);
    for (int64_t i = 0; i < e->size; i++) {
        heed_real kept = w[i];
        w[i] = e->values[i];
        e->values[i] = kept;
    }
}

heed_real *heed_ema_values(const heed_ema *e)
{
    if (!e)
        return NULL;
    return e->values;
}

int64_t heed_ema_updates(const heed_ema *e)
{
    if (!e)
        return 0;
    return e->updates;
}

void heed_ema_set_updates(heed_ema *e, int64_t updates)
{
    if (!e)
        return;
    e->updates = updates > 0 ? updates : 0;
}
