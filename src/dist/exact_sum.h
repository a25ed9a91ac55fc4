/* exact_sum.h (internal): sums of flat buffers over the micro-batches of an update, in their order,
 * whoever computes them: each sum is ((m0 + m1) + m2) + ..., so R ranks with A micro-batches each
 * give the bits of one with R A.
 *
 * Micro-batch m is computed by rank m % R in its round m / R.  A buffer is cut into buckets, and a
 * bucket into a part for each rank.  In a round, the owner of a part gets what all ranks have of
 * it, and adds that to its sum in rank order; after the last round the parts are shared. */
#ifndef HEED_DIST_EXACT_SUM_H
#define HEED_DIST_EXACT_SUM_H

#include "dist/ranks.h"

typedef struct heed__exact_sum heed__exact_sum;
/* For buffers of at most `most` elements. */
heed__exact_sum *heed__exact_sum_new(heed_ranks *r, int64_t most, int64_t rounds,
                                     const heed_allocator *allocator, heed_error *err);
void heed__exact_sum_free(heed__exact_sum *s);
/* Buckets of a buffer of n elements, and the one that an element is in. */
int64_t heed__exact_sum_buckets(const heed__exact_sum *s, int64_t n);
int64_t heed__exact_sum_bucket_of(const heed__exact_sum *s, int64_t element);
/* The elements of a bucket that this rank owns. */
void heed__exact_sum_own(const heed__exact_sum *s, int64_t n, int64_t bucket, int64_t *begin,
                         int64_t *end);
/* Takes one round of a bucket of values (n).  Then they are zero, and after the last round the
 * sums; where they are not shared, only in the part that this rank owns, and zero elsewhere. */
heed_status heed__exact_sum_add(heed__exact_sum *s, heed_real *values, int64_t n, int64_t bucket,
                                int64_t round, bool share, heed_error *err);
/* Gives all ranks the parts of a bucket that the others own; values: of that bucket. */
heed_status heed__exact_sum_share(heed__exact_sum *s, heed__channel channel, heed_real *values,
                                  int64_t n, int64_t bucket, heed_error *err);
/* Elements of a whole bucket, and of all parts that a rank may own. */
int64_t heed__exact_sum_bucket_size(const heed__exact_sum *s);
int64_t heed__exact_sum_own_size(const heed__exact_sum *s, int64_t n);
/* Where the part of a bucket that this rank owns stands among its parts. */
int64_t heed__exact_sum_own_offset(const heed__exact_sum *s, int64_t bucket);

#endif
