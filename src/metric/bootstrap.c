/* bootstrap.c: paired bootstrap resampling (Koehn, "Statistical significance tests for machine
 * translation evaluation", EMNLP 2004), in the form of sacreBLEU: p is the share of resamples whose
 * difference deviates from its mean by at least the observed difference.  Unlike there, equality
 * counts, so that a system compared with itself gives p = 1. */
#include "base/error.h"
#include "base/memory.h"
#include "metric/statistics.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Everything of one call; statistics are (n,width), scores (resamples). */
struct bootstrap {
    const heed__metric *m;
    heed_allocator allocator;
    int64_t n, resamples;
    int64_t *statistics[2];
    double *score[2];
    int32_t *times; /* (n) how often each sentence was drawn */
    int64_t *sum;   /* (width) */
};

static heed_status acquire(struct bootstrap *b, heed_error *err)
{
    const heed_allocator *a = &b->allocator;
    int64_t size;
    bool fits = heed__multiply(b->n, b->m->width, &size);
    for (int s = 0; fits && s < 2; s++) {
        b->statistics[s] = heed__allocate_zeroed(a, (size_t)size, sizeof *b->statistics[s]);
        b->score[s] = heed__allocate(a, (size_t)b->resamples, sizeof *b->score[s]);
        fits = b->statistics[s] && b->score[s];
    }
    b->times = heed__allocate(a, (size_t)b->n, sizeof *b->times);
    b->sum = heed__allocate(a, (size_t)b->m->width, sizeof *b->sum);
    return fits && b->times && b->sum
               ? HEED_OK
               : heed__fail(err, HEED_MEMORY, "%s: out of memory for %lld resamples of %lld pairs",
                            b->m->name, (long long)b->resamples, (long long)b->n);
}

static void release(struct bootstrap *b)
{
    const heed_allocator *a = &b->allocator;
    for (int s = 0; s < 2; s++) {
        heed__release(a, b->statistics[s], (size_t)(b->n * b->m->width), sizeof *b->statistics[s]);
        heed__release(a, b->score[s], (size_t)b->resamples, sizeof *b->score[s]);
    }
    heed__release(a, b->times, (size_t)b->n, sizeof *b->times);
    heed__release(a, b->sum, (size_t)b->m->width, sizeof *b->sum);
}

/* The score of a system on the test set that has sentence i times[i] times. */
static double score_drawn(struct bootstrap *b, int system)
{
    int64_t width = b->m->width;
    memset(b->sum, 0, (size_t)width * sizeof *b->sum);
    for (int64_t i = 0; i < b->n; i++)
        for (int64_t k = 0; k < width; k++)
            b->sum[k] += b->times[i] * b->statistics[system][i * width + k];
    return b->m->score(b->m, b->sum);
}

static int by_size(const void *x, const void *y)
{
    double a = *(const double *)x, b = *(const double *)y;
    return (a > b) - (a < b);
}

/* Sorts the scores; the interval omits 2.5 % at each end. */
static void spread(double *score, int64_t n, double *mean, double *width)
{
    double sum = 0;
    qsort(score, (size_t)n, sizeof *score, by_size);
    for (int64_t i = 0; i < n; i++)
        sum += score[i];
    *mean = sum / (double)n;
    *width = 0.5 * (score[n - n / 40 - 1] - score[n / 40]);
}

static void resample(struct bootstrap *b, uint64_t seed, heed_bootstrap *result)
{
    for (int64_t i = 0; i < b->n; i++)
        b->times[i] = 1;
    for (int s = 0; s < 2; s++)
        result->score[s] = score_drawn(b, s);
    double mean = 0;
    for (int64_t r = 0; r < b->resamples; r++) {
        heed_rng rng = heed_rng_stream(&(heed_rng_key){.seed = seed, .step = (uint64_t)r});
        memset(b->times, 0, (size_t)b->n * sizeof *b->times);
        for (int64_t i = 0; i < b->n; i++)
            b->times[heed_rng_below(&rng, (uint64_t)i, b->n)]++;
        for (int s = 0; s < 2; s++)
            b->score[s][r] = score_drawn(b, s);
        mean += fabs(b->score[0][r] - b->score[1][r]) / (double)b->resamples;
    }
    double real = fabs(result->score[0] - result->score[1]);
    int64_t as_large = 0;
    for (int64_t r = 0; r < b->resamples; r++)
        as_large += fabs(b->score[0][r] - b->score[1][r]) - mean >= real;
    result->p = (double)(as_large + 1) / (double)(b->resamples + 1);
    for (int s = 0; s < 2; s++)
        spread(b->score[s], b->resamples, &result->mean[s], &result->width[s]);
}

heed_status heed__metric_bootstrap(const heed__metric *m, const char *const *a,
                                   const char *const *b, const char *const *reference, int64_t n,
                                   int64_t resamples, uint64_t seed, heed_bootstrap *result,
                                   heed_error *err)
{
    *result = (heed_bootstrap){0};
    if (n < 1 || n > INT32_MAX || resamples < 1)
        return heed__fail(err, HEED_ARGUMENT,
                          "%s: %lld resamples of %lld pairs, expected at least 1 of each", m->name,
                          (long long)resamples, (long long)n);
    struct bootstrap s = {.m = m,
                          .allocator = heed__allocator_or_default(m->allocator),
                          .n = n,
                          .resamples = resamples};
    heed_status status;
    if (!(status = acquire(&s, err)) &&
        !(status = heed__metric_collect(m, a, reference, n, false, s.statistics[0], err)) &&
        !(status = heed__metric_collect(m, b, reference, n, false, s.statistics[1], err)))
        resample(&s, seed, result);
    release(&s);
    return status;
}
