/* clip.c: the norm of a set's gradients, and limits on it (Pascanu et al. 2013) or on each value.
 * One pass each over the flat buffer; the padding between entries is zero and changes nothing. */
#include <heed/train.h>
#include <math.h>

#include "base/parallel.h"
#include "kernel/kernels.h"
#include "train/trainer.h"

/* Cut at whole blocks, so that every thread's vectors are full and aligned. */
#define BLOCK 4096

struct norm {
    const heed_real *grads;
    int64_t size;
    double *sum; /* one for each block */
};

static void add_squares(void *context, int64_t begin, int64_t end, int thread)
{
    const struct norm *c = context;
    (void)thread;
    for (int64_t i = begin; i < end; i++) {
        const int64_t from = i * HEED_NORM_BLOCK, rest = c->size - from;
        c->sum[i] = heed__kernels()->sum_squares(c->grads + from,
                                                 rest < HEED_NORM_BLOCK ? rest : HEED_NORM_BLOCK);
    }
}

void heed__grad_squares(const heed_real *grads, int64_t size, double *sum, int threads)
{
    struct norm c = {grads, size, sum};
    heed__parallel(threads, (size + HEED_NORM_BLOCK - 1) / HEED_NORM_BLOCK, 1, HEED_NORM_BLOCK,
                   add_squares, &c);
}

double heed_grad_norm(const heed_params *p, int threads)
{
    enum { AT_ONCE = 512 };
    double block[AT_ONCE], sum = 0;
    const int64_t size = heed_params_size(p);
    for (int64_t i = 0; p && i < size; i += AT_ONCE * HEED_NORM_BLOCK) {
        const int64_t rest = size - i;
        const int64_t n = rest < AT_ONCE * HEED_NORM_BLOCK ? rest : AT_ONCE * HEED_NORM_BLOCK;
        heed__grad_squares(heed_params_grads(p) + i, n, block, threads);
        for (int64_t k = 0; k < (n + HEED_NORM_BLOCK - 1) / HEED_NORM_BLOCK; k++)
            sum += block[k]; /* in the order of the blocks, whoever has made them */
    }
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

void heed__clip_to(heed_params *p, double norm, double limit, int threads)
{
    if (!isfinite(norm) || norm <= limit)
        return;
    struct change c = {heed_params_grads(p), (heed_real)(limit / norm)};
    heed__parallel(threads, heed_params_size(p), BLOCK, 1, rescale, &c);
}

double heed_clip_norm(heed_params *p, double limit, int threads)
{
    if (!p)
        return 0;
    double norm = heed_grad_norm(p, threads);
    heed__clip_to(p, norm, limit, threads);
    return norm;
}

void heed_clip_value(heed_params *p, double limit, int threads)
{
    if (!p)
        return;
    struct change c = {heed_params_grads(p), (heed_real)limit};
    heed__parallel(threads, heed_params_size(p), BLOCK, 1, clamp, &c);
}
