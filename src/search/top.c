/* top.c: the best k of (rows x V) continuations, in one pass over the logits.
 *
 * Nearly all of V is worse than the k-th best so far.  So the largest of many logits, where it is
 * known, is compared with that one, then a block of them as a whole, which the compiler turns into
 * vector code; only a block with a hit is looked at one by one.  The heap changes about k ln(V/k)
 * times, and no log-probability is written anywhere but there. */
#include "search/top.h"
#include "base/error.h"

#include <float.h>
#include <math.h>

#define BLOCK 64
/* How far above zero a log-probability may be, by rounding. */
#define SLACK 1e-3

bool heed__candidate_before(const heed__candidate *a, const heed__candidate *b)
{
    if (a->log_p != b->log_p)
        return a->log_p > b->log_p;
    if (a->row != b->row)
        return a->row < b->row;
    return a->logit != b->logit ? a->logit > b->logit : a->token < b->token;
}

/* ---- one row of a step ---- */

heed__outlook heed__outlook_of(const heed_scores *s, int64_t row)
{
    const heed_tokens all = {NULL, s->columns}, *of = s->choice ? &s->choice[row] : &all;
    const int64_t peaks = (s->columns + HEED_PEAK_COLUMNS - 1) / HEED_PEAK_COLUMNS;
    return (heed__outlook){s->logit + row * s->columns, s->log_z[row], of->count, of->id,
                           s->peak ? s->peak + row * peaks : NULL};
}

int32_t heed__token_at(const heed__outlook *v, int64_t column)
{
    return v->token ? v->token[column] : (int32_t)column;
}

int64_t heed__column_of(const heed__outlook *v, int32_t token)
{
    if (!v->token)
        return token >= 0 && token < v->count ? token : -1;
    int64_t low = 0, high = v->count;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (v->token[middle] < token)
            low = middle + 1;
        else
            high = middle;
    }
    return low < v->count && v->token[low] == token ? low : -1;
}

bool heed__log_p_clip(heed_real found, heed_real *log_p)
{
    *log_p = found < 0 ? found : 0;
    return found <= (heed_real)SLACK;
}

bool heed__log_p_at(const heed__outlook *v, int64_t column, heed_real *log_p)
{
    return heed__log_p_clip(v->logit[column] - v->log_z, log_p);
}

heed_status heed__not_log_p(int32_t token, double found, int64_t position, heed_error *err)
{
    return heed__fail(err, HEED_NUMERIC,
                      "the model gives token %d a log-probability of %g (after %lld tokens of a "
                      "sentence): are the weights finite?",
                      (int)token, found, (long long)position);
}

heed_status heed__bad_column(const heed__outlook *v, int64_t column, int64_t position,
                             heed_error *err)
{
    return heed__not_log_p(heed__token_at(v, column), (double)(v->logit[column] - v->log_z),
                           position, err);
}

bool heed__forbids(const heed__filter *f, int32_t token)
{
    if (f->banned[token])
        return true;
    for (int64_t i = 0; i < f->count; i++)
        if (f->also[i] == token)
            return true;
    return false;
}

/* ---- the heap ---- */

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
    if (top->count == top->capacity) {
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

/* What a logit must not be below to be looked at: what would tie with the worst, less the rounding
 * of the sums on both ways.  Anything that is no log-probability is looked at as well. */
static heed_real floor_of(const heed__top *top, const heed__outlook *v, double base)
{
    if (top->count < top->capacity)
        return -(heed_real)INFINITY;
    const double epsilon = sizeof(heed_real) == sizeof(float) ? FLT_EPSILON : DBL_EPSILON;
    double gap = top->item[0].log_p - base, log_z = (double)v->log_z;
    gap = gap < SLACK ? gap : SLACK;
    return (heed_real)(log_z + gap - 4 * epsilon * (fabs(log_z) + fabs(gap) + fabs(base)));
}

bool heed__top_scan(heed__top *top, const heed__outlook *v, const heed__filter *f, double base,
                    int32_t row, int64_t *bad)
{
    heed_real floor = floor_of(top, v, base);
    for (int64_t begin = 0; begin < v->count; begin += BLOCK) {
        int64_t end = begin + BLOCK < v->count ? begin + BLOCK : v->count;
        int hit = 0;
        if (v->peak && begin % HEED_PEAK_COLUMNS == 0 &&
            v->peak[begin / HEED_PEAK_COLUMNS] < floor) {
            begin += HEED_PEAK_COLUMNS - BLOCK;
            continue;
        }
        for (int64_t i = begin; i < end; i++)
            hit |= !(v->logit[i] < floor); /* NaN is a hit too */
        for (int64_t i = begin; hit && i < end; i++) {
            if (v->logit[i] < floor)
                continue;
            heed_real x;
            if (!heed__log_p_at(v, i, &x)) {
                *bad = i;
                return false;
            }
            int32_t token = heed__token_at(v, i);
            if (isinf(x) || heed__forbids(f, token))
                continue;
            offer(top, &(heed__candidate){base + (double)x, row, token, x, -1, v->logit[i]});
            floor = floor_of(top, v, base);
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
