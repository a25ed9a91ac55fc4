/* exact_sum.c: see the header.  A part begins at a multiple of PART elements, the block of
 * heed_grad_norm, so that sums over blocks can be made by their owners. */
#include "dist/exact_sum.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/min_max.h"

#include <string.h>

#define PART 4096
/* Elements of a bucket, about: large enough for the network, small enough to be on its way while
 * the backward pass goes on. */
#define BUCKET (1 << 20)

struct heed__exact_sum {
    heed_allocator allocator;
    heed_ranks *ranks;
    int64_t size, rank, rounds;
    int64_t piece;   /* elements of a whole part */
    int64_t buckets; /* at most */
    heed_real *sum;  /* (buckets * piece) of the parts that this rank owns; NULL: one round */
    heed_real *got;  /* (size * piece) a part as each rank has it; NULL: one rank */
    size_t *part;    /* (size + 1) of each channel */
};

static size_t sums(const heed__exact_sum *s)
{
    return (size_t)(s->buckets * s->piece);
}

static size_t parts(const heed__exact_sum *s)
{
    return (size_t)(HEED__CHANNELS * (s->size + 1));
}

heed__exact_sum *heed__exact_sum_new(heed_ranks *r, int64_t most, int64_t rounds,
                                     const heed_allocator *allocator, heed_error *err)
{
    const heed_allocator a = heed__allocator_or_default(allocator);
    heed__exact_sum *s = heed__allocate_zeroed(&a, 1, sizeof *s);
    if (!s) {
        heed__fail(err, HEED_MEMORY, "out of memory for sums of gradients");
        return NULL;
    }
    *s = (heed__exact_sum){.allocator = a,
                           .ranks = r,
                           .size = heed_ranks_size(r),
                           .rank = heed_ranks_rank(r),
                           .rounds = rounds};
    const int64_t share = (most + s->size * PART - 1) / (s->size * PART);
    s->piece = heed__max(heed__min(BUCKET / PART / s->size, share), 1) * PART;
    s->buckets = heed__exact_sum_buckets(s, most);
    s->part = heed__allocate_zeroed(&a, parts(s), sizeof *s->part);
    if (rounds > 1)
        s->sum = heed__allocate(&a, sums(s), sizeof *s->sum);
    if (s->size > 1)
        s->got = heed__allocate(&a, (size_t)(s->size * s->piece), sizeof *s->got);
    if (s->part && (s->sum || rounds < 2) && (s->got || s->size < 2))
        return s;
    heed__fail(err, HEED_MEMORY, "out of memory for the sums of %lld gradients", (long long)most);
    heed__exact_sum_free(s);
    return NULL;
}

void heed__exact_sum_free(heed__exact_sum *s)
{
    if (!s)
        return;
    const heed_allocator a = s->allocator;
    heed__release(&a, s->part, parts(s), sizeof *s->part);
    heed__release(&a, s->sum, sums(s), sizeof *s->sum);
    heed__release(&a, s->got, (size_t)(s->size * s->piece), sizeof *s->got);
    heed__release(&a, s, 1, sizeof *s);
}

int64_t heed__exact_sum_buckets(const heed__exact_sum *s, int64_t n)
{
    const int64_t bucket = s->size * s->piece;
    return heed__max((n + bucket - 1) / bucket, 1);
}

int64_t heed__exact_sum_bucket_of(const heed__exact_sum *s, int64_t element)
{
    return element / (s->size * s->piece);
}

static int64_t cut(const heed__exact_sum *s, int64_t n, int64_t bucket, int64_t rank)
{
    return heed__min((bucket * s->size + rank) * s->piece, n);
}

void heed__exact_sum_own(const heed__exact_sum *s, int64_t n, int64_t bucket, int64_t *begin,
                         int64_t *end)
{
    *begin = cut(s, n, bucket, s->rank);
    *end = cut(s, n, bucket, s->rank + 1);
}

/* Where the parts of a bucket begin, in bytes from its beginning. */
static const size_t *parts_of(heed__exact_sum *s, heed__channel channel, int64_t n, int64_t bucket)
{
    size_t *part = s->part + (int64_t)channel * (s->size + 1);
    for (int64_t i = 0; i <= s->size; i++)
        part[i] = (size_t)(cut(s, n, bucket, i) - cut(s, n, bucket, 0)) * sizeof(heed_real);
    return part;
}

static void add(heed_real *restrict to, const heed_real *restrict from, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        to[i] += from[i];
}

heed_status heed__exact_sum_share(heed__exact_sum *s, heed__channel channel, heed_real *values,
                                  int64_t n, int64_t bucket, heed_error *err)
{
    if (s->size == 1)
        return HEED_OK;
    return heed__ranks_collect(s->ranks, channel, values, parts_of(s, channel, n, bucket), err);
}

int64_t heed__exact_sum_bucket_size(const heed__exact_sum *s)
{
    return s->size * s->piece;
}

int64_t heed__exact_sum_own_size(const heed__exact_sum *s, int64_t n)
{
    return heed__exact_sum_buckets(s, n) * s->piece;
}

int64_t heed__exact_sum_own_offset(const heed__exact_sum *s, int64_t bucket)
{
    return bucket * s->piece;
}

heed_status heed__exact_sum_add(heed__exact_sum *s, heed_real *values, int64_t n, int64_t bucket,
                                int64_t round, bool share, heed_error *err)
{
    const heed__channel channel = HEED__CHANNEL_GRADIENTS;
    const bool last = round == s->rounds - 1;
    const int64_t begin = cut(s, n, bucket, 0), end = cut(s, n, bucket, s->size);
    const int64_t own = cut(s, n, bucket, s->rank), count = cut(s, n, bucket, s->rank + 1) - own;
    const size_t bytes = (size_t)count * sizeof(heed_real);
    heed_real *sum = s->sum ? s->sum + bucket * s->piece : NULL;
    if (s->size > 1) {
        heed_status status = heed__ranks_scatter(s->ranks, channel, values + begin,
                                                 parts_of(s, channel, n, bucket), s->got, err);
        if (status)
            return status;
    }
    /* The first part starts the sum of the first round; with one rank it is where it was. */
    const heed_real *first = s->size > 1 ? s->got : values + own;
    if (!sum) {
        if (first != values + own)
            memcpy(values + own, first, bytes);
        sum = values + own;
    } else if (round == 0) {
        memcpy(sum, first, bytes);
    } else {
        add(sum, first, count);
    }
    for (int64_t i = 1; i < s->size; i++)
        add(sum, s->got + i * count, count);
    if (!last)
        memset(values + own, 0, bytes);
    else if (sum != values + own)
        memcpy(values + own, sum, bytes);
    if (!last || !share) {
        memset(values + begin, 0, (size_t)(own - begin) * sizeof(heed_real));
        memset(values + own + count, 0, (size_t)(end - own - count) * sizeof(heed_real));
    }
    return last && share ? heed__exact_sum_share(s, channel, values + begin, n, bucket, err)
                         : HEED_OK;
}
