/* clip.c: the norm of a set's gradients, and limits on it (Pascanu et al. 2013) or on each value.
 * One pass each over the flat buffer; the padding between entries is zero and changes nothing. */
#include <heed/train.h>
#include <math.h>

#include "base/parallel.h"
#include "kernel/kernels.h"

/* Cut at whole blocks, so that every thread's vectors are full and aligned. */
#define BLOCK 4096

struct norm {
    const heed_real *grads;
    double sum[HEED_MAX_THREADS]; /* one for each thread */
};

static void add_squares(void *context, int64_t begin, int64_t end, int thread)
{
    struct norm *c = context;
    double sum = 0;
    for (int64_t i = begin; i < end; i += BLOCK)
        sum += heed__kernels()->sum_squares(c->grads + i, end - i < BLOCK ? end - i : BLOCK);
    c->sum[thread] = sum;
}

double heed_grad_norm(const heed_params *p, int threads)
{
    if (!p)
        return 0;
    struct norm c = {.grads = heed_params_grads(p)};
    heed__parallel(threads, heed_params_size(p), BLOCK, 1, add_squares, &c);
    double sum = 0;
    for (int i = 0; i < HEED_MAX_THREADS; i++) /* in thread order; the unused ones are zero */
        sum += c.sum[i];
    return sqrt(sum);
}

struct change {
    heed_real *grads;
    heed_real by;
};

static void rescale(void *context, int64_t begin, int64_t end, int thread)
{
    const struct change *c = context;
    (void)thread;
    heed_real *g = c->grads + begin;
    heed__kernels()->arith_one(HEED__MUL, g, g, c->by, end - begin);
}

static void clamp(void *context, int64_t begin, int64_t end, int thread)
{
    const struct change *c = context;
    (void)thread;
    heed_real *g = c->grads + begin;
    heed__kernels()->clamp(g, g, -c->by, c->by, end - begin); /* NaN stays */
}

double heed_clip_norm(heed_params *p, double limit, int threads)
{
    if (!p)
        return 0;
    double norm = heed_grad_norm(p, threads);
    if (isfinite(norm) && norm > limit) {
        struct change c = {heed_params_grads(p), (heed_real)(limit / norm)};
        heed__parallel(threads, heed_params_size(p), BLOCK, 1, rescale, &c);
    }
    return norm;
}

void heed_clip_value(heed_params *p, double limit, int threads)
{
    if (!p)
        return;
    struct change c = {heed_params_grads(p), (heed_real)limit};
    heed__parallel(threads, heed_params_size(p), BLOCK, 1, clamp, &c);
}
