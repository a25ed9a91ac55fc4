/* statistics.h (internal): a metric is statistics of one sentence pair, which are summed, and a
 * score of the sum. */
#ifndef HEED_METRIC_STATISTICS_H
#define HEED_METRIC_STATISTICS_H

#include "metric/pair.h"
#include <heed/metric.h>

typedef struct heed__metric {
    const char *name;    /* for error texts */
    const void *options; /* the metric's own */
    void *work;          /* the metric's own, or NULL */
    const heed_allocator *allocator;
    int64_t width;  /* statistics of a pair */
    int references; /* of a sentence */
    /* Adds the pair's statistics; its lines are decoded.  p->first: it has its sentence's first
     * reference. */
    void (*sentence)(const struct heed__metric *m, heed__pair *p, int64_t *statistics);
    /* Makes of the statistics with the references before and with one more those with all. */
    void (*join)(const struct heed__metric *m, int64_t *statistics, const int64_t *more);
    double (*score)(const struct heed__metric *m, const int64_t *statistics);
} heed__metric;

/* Adds the statistics of pair i to row i of statistics, or, with one row for all, to that. */
heed_status heed__metric_collect(const heed__metric *m, const char *const *hypothesis,
                                 const char *const *reference, int64_t n, bool one_row,
                                 int64_t *statistics, heed_error *err);
heed_status heed__metric_bootstrap(const heed__metric *m, const char *const *a,
                                   const char *const *b, const char *const *reference, int64_t n,
                                   int64_t resamples, uint64_t seed, heed_bootstrap *result,
                                   heed_error *err);

#endif
