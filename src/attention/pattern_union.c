/* pattern_union.c: the keys that a query sees, from all terms of a pattern: one function for
 * training, decoding, oracles, pictures and counts; and the windows of attention by parts. */
#include "attention/attend.h"

#include "base/min_max.h"
#include <math.h>
#include <string.h>

static const heed__pattern *pattern_of(const heed_term *term)
{
    return heed__row_of(HEED_SLOT_PATTERN, term->kind)->pattern;
}

bool heed__pattern_is_fixed(const heed_slot_spec *pattern)
{
    for (int i = 0; i < pattern->count; i++)
        if (!pattern_of(&pattern->term[i]))
            return false;
    return true;
}

bool heed__pattern_is_whole(const heed_slot_spec *pattern)
{
    const heed_term *first = &pattern->term[0];
    return pattern->count == 0 ||
           (pattern->count == 1 && first->kind == HEED_PATTERN_GLOBAL && first->number[0] == 0);
}

/* Ranges in ascending order, those that meet made one. */
static int merge(heed_key_range *r, int n)
{
    for (int i = 1; i < n; i++) {
        const heed_key_range one = r[i];
        int at = i;
        for (; at > 0 && r[at - 1].begin > one.begin; at--)
            r[at] = r[at - 1];
        r[at] = one;
    }
    int kept = 0;
    for (int i = 0; i < n; i++)
        if (r[i].begin >= r[i].end)
            continue;
        else if (kept && r[i].begin <= r[kept - 1].end)
            r[kept - 1].end = r[i].end > r[kept - 1].end ? r[i].end : r[kept - 1].end;
        else
            r[kept++] = r[i];
    return kept;
}

int heed__pattern_ranges(const heed_slot_spec *pattern, const heed__pattern_query *q,
                         heed_key_range *out)
{
    static const heed_term whole = {HEED_PATTERN_GLOBAL, {0}};
    const int terms = pattern->count ? pattern->count : 1;
    int n = 0;
    for (int i = 0; i < terms; i++) {
        const heed_term *term = pattern->count ? &pattern->term[i] : &whole;
        n += pattern_of(term)->ranges(term, q, out + n);
    }
    for (int i = 0; q->causal && i < n; i++)
        if (out[i].end > q->i + 1)
            out[i].end = (int32_t)(q->i + 1);
    return merge(out, n);
}

int64_t heed__pattern_reach(const heed_slot_spec *pattern, int64_t *pinned)
{
    int64_t most = pattern->count ? 0 : INT32_MAX;
    *pinned = 0;
    for (int i = 0; i < pattern->count; i++) {
        int64_t first = 0;
        most = heed__max(most, pattern_of(&pattern->term[i])->reach(&pattern->term[i], &first));
        *pinned = heed__max(*pinned, first);
    }
    return most;
}

static int ranges_of_layer(const void *context, int head, int64_t i, int64_t queries, int64_t keys,
                           heed_key_range *out)
{
    const heed_attend_options *o = context;
    return heed__pattern_ranges(&o->pattern,
                                &(heed__pattern_query){head, i, queries, keys, o->causal}, out);
}

heed_key_pattern heed__key_pattern(const heed_attend_options *o)
{
    return (heed_key_pattern){ranges_of_layer, o, HEED__PATTERN_RANGES, true};
}

/* ---- windows of attention by parts ---- */

/* The window of a query around the place p that it has predicted. */
static void cut_around(double p, double d, int64_t keys, int32_t *begin, int32_t *end)
{
    const double high = fmin((double)keys, floor(p + d) + 1);
    *begin = (int32_t)fmin(fmax(0, ceil(p - d)), high);
    *end = (int32_t)high;
}

/* The window of query n in each head; its places between the ranges of a union get -inf in the
 * mask, which is made when the first of them is met. */
typedef struct window_job {
    heed_tape *tape;
    const heed_attend_options *o;
    const heed_pairs *pairs;
    int64_t flat; /* numbers in a flat tensor */
    int32_t *begin, *end;
    heed_tensor *mask;
} window_job;

static bool mask_between(window_job *j, const heed_key_range *r, int ranges, int64_t row)
{
    if (!j->mask && !(j->mask = heed_input(j->tape, HEED_SHAPE(j->flat), NULL)))
        return false;
    for (int k = 1; k < ranges; k++)
        for (int64_t key = r[k - 1].end; key < r[k].begin; key++)
            heed_tensor_data(j->mask)[row + key] = (heed_real)-INFINITY;
    return true;
}

static bool cut_segment(window_job *j, int64_t b, const int32_t *place, const heed_tensor *centre,
                        int64_t flat)
{
    const heed_pairs *p = j->pairs;
    const int64_t first = p->queries->offset[b], queries = p->queries->offset[b + 1] - first;
    const int64_t keys = p->keys->offset[b + 1] - p->keys->offset[b];
    for (int64_t h = 0; h < p->heads; h++)
        for (int64_t i = 0; i < queries; i++) {
            const int64_t at = (first + i) * p->heads + h;
            heed_key_range r[HEED__PATTERN_RANGES];
            if (centre) {
                cut_around((double)heed_tensor_data(centre)[at],
                           (double)j->o->pattern.term[0].number[0], keys, &j->begin[at],
                           &j->end[at]);
                continue;
            }
            const heed__pattern_query q = {(int)h, place ? place[first + i] : i, queries, keys,
                                           j->o->causal};
            const int n = heed__pattern_ranges(&j->o->pattern, &q, r);
            j->begin[at] = n ? r[0].begin : 0;
            j->end[at] = n ? r[n - 1].end : 0;
            if (n > 1 && !mask_between(j, r, n, flat + (h * queries + i) * keys))
                return false;
        }
    return true;
}

bool heed__pattern_windows(heed_tape *t, const heed_attend_layer *l, heed_tensor *q,
                           const int32_t *place, heed_pairs *p, heed_tensor **gate,
                           heed_tensor **mask)
{
    const heed_attend_options *o = &l->options;
    window_job j = {.tape = t, .o = o, .pairs = p};
    heed_tensor *centre = NULL; /* (N,H) */
    *gate = *mask = NULL;
    if (heed__pattern_is_whole(&o->pattern) && !o->causal)
        return true;
    if (!heed__pattern_is_fixed(&o->pattern) && !(centre = heed__local_p_centre(t, l, q, p)))
        return false;
    const size_t bytes = (size_t)(p->queries->rows * p->heads) * sizeof(int32_t);
    j.begin = heed_arena_allocate(heed_tape_arena(t), bytes);
    j.end = heed_arena_allocate(heed_tape_arena(t), bytes);
    if (!j.begin || !j.end) {
        heed_tape_fail(t, HEED_MEMORY, "attention: no memory for %lld windows",
                       (long long)(p->queries->rows * p->heads));
        return false;
    }
    for (int64_t b = 0; b < p->queries->count; b++)
        j.flat += p->heads * (p->queries->offset[b + 1] - p->queries->offset[b]) *
                  (p->keys->offset[b + 1] - p->keys->offset[b]);
    int64_t flat = 0;
    for (int64_t b = 0; b < p->queries->count; b++) {
        if (!cut_segment(&j, b, place, centre, flat))
            return false;
        flat += p->heads * (p->queries->offset[b + 1] - p->queries->offset[b]) *
                (p->keys->offset[b + 1] - p->keys->offset[b]);
    }
    p->begin = j.begin;
    p->end = j.end;
    *mask = j.mask;
    if (centre && isfinite(o->deviation))
        *gate = heed_pairs_gaussian(t, centre, o->deviation, p);
    return true;
}
