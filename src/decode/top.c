/* top.c: the best k of (rows x V) continuations, in one pass.
 *
 * Nearly all of V is worse than the k-th best so far.  So a block of log-probabilities is first
 * compared with that one as a whole, which the compiler turns into vector code; only a block with a
 * hit is looked at one by one.  The heap changes about k ln(V/k) times. */
#include "base/error.h"
#include "decode/search.h"

#include <math.h>

#define BLOCK 64

bool heed__candidate_before(const heed__candidate *a, const heed__candidate *b)
{
    if (a->log_p != b->log_p)
        return a->log_p > b->log_p;
    return a->row != b->row ? a->row < b->row : a->token < b->token;
}

bool heed__is_log_p(heed_real x)
{
    return x <= (heed_real)1e-3;
}

heed_status heed__not_log_p(heed_error *err, int32_t token, heed_real found, int64_t place)
{
    return heed__fail(err, HEED_NUMERIC,
                      "the model gives token %d a log-probability of %g (after %lld tokens of a "
                      "sentence): are the weights finite?",
                      (int)token, (double)found, (long long)place);
}

/* Lets the candidate at the top of the heap's first `count` items sink to its place. */
static void sink(heed__candidate *item, int64_t count, heed__candidate c)
{
    int64_t hole = 0;
    for (int64_t child = 1; child < count; child = 2 * hole + 1) {
        if (child + 1 < count && heed__candidate_before(&item[child], &item[child + 1]))
            child++;
        if (heed__candidate_before(&item[child], &c))
            break;
        item[hole] = item[child];
        hole = child;
    }
    item[hole] = c;
}

static void offer(heed__top *top, const heed__candidate *c)
{
    if (top->count == top->room) {
        if (heed__candidate_before(c, &top->item[0]))
            sink(top->item, top->count, *c);
        return;
    }
    int64_t hole = top->count++;
    while (hole > 0 && heed__candidate_before(&top->item[(hole - 1) / 2], c)) {
        top->item[hole] = top->item[(hole - 1) / 2];
        hole = (hole - 1) / 2;
    }
    top->item[hole] = *c;
}

/* What a log-probability must not be below to get in after `base`.  Rounding to the narrower type
 * loses nothing: no number of that type lies between. */
static heed_real floor_after(const heed__top *top, double base)
{
    return top->count < top->room ? -(heed_real)INFINITY : (heed_real)(top->item[0].log_p - base);
}

bool heed__top_scan(heed__top *top, const heed_real *log_p, int64_t vocabulary, double base,
                    int32_t row, int32_t *bad)
{
    heed_real floor = floor_after(top, base);
    for (int64_t begin = 0; begin < vocabulary; begin += BLOCK) {
        int64_t end = begin + BLOCK < vocabulary ? begin + BLOCK : vocabulary;
        int hit = 0;
        for (int64_t i = begin; i < end; i++)
            hit |= !(log_p[i] < floor); /* NaN is a hit too */
        for (int64_t i = begin; hit && i < end; i++) {
            if (log_p[i] < floor)
                continue;
            if (!heed__is_log_p(log_p[i])) {
                *bad = (int32_t)i;
                return false;
            }
            if (i == HEED_BOS || i == HEED_EOS || isinf(log_p[i]))
                continue;
            heed_real x = log_p[i] < 0 ? log_p[i] : 0;
            offer(top, &(heed__candidate){base + (double)x, row, (int32_t)i, x});
            floor = floor_after(top, base);
        }
    }
    return true;
}

void heed__top_sort(heed__top *top)
{
    for (int64_t n = top->count - 1; n > 0; n--) {
        heed__candidate worst = top->item[0];
        sink(top->item, n, top->item[n]);
        top->item[n] = worst;
    }
}
