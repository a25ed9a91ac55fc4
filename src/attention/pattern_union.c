/* pattern_union.c: the keys that a query sees, from all terms of a pattern: one function for
 * training, decoding, oracles, pictures and counts; and the windows of attention by parts. */
#include "attention/attend.h"

#include "base/min_max.h"
#include <math.h>
#include <string.h>

const char *const heed__part_words[] = {"merged", "heads", "layers", NULL};

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

bool heed__pattern_by_head(const heed_slot_spec *pattern)
{
    bool differ = false;
    for (int i = 0; i < pattern->count; i++) {
        const heed__pattern *row = pattern_of(&pattern->term[i]);
        differ |= row && row->by_head && row->by_head(&pattern->term[i]);
    }
    return differ;
}

/* ---- the union ---- */

/* Where the first run of r ends. */
static int64_t run_end(const heed_key_range *r)
{
    return r->step == 1 ? r->end : heed__min((int64_t)r->begin + r->width, r->end);
}

/* How many runs of r end before `limit`. */
static int64_t runs_before(const heed_key_range *r, int64_t limit)
{
    const int64_t space = limit - 1 - r->width - r->begin;
    const int64_t all = ((int64_t)r->end - 1 - r->begin) / r->step + 1;
    return space < 0 ? 0 : heed__min(all, space / r->step + 1);
}

static void drop_runs(heed_key_range *r, int64_t n)
{
    r->begin = r->step == 1 ? r->end : (int32_t)heed__min(r->begin + n * r->step, r->end);
}

/* Those with keys below `limit`; a range without gaps has step 1. */
static int tidy(heed_key_range *r, int n, int64_t limit)
{
    int kept = 0;
    for (int i = 0; i < n; i++) {
        heed_key_range one = r[i];
        one.step = (int32_t)heed__max(one.step, 1);
        one.width = (int32_t)heed__max(one.width, 1);
        one.end = (int32_t)heed__min(one.end, limit);
        if (one.width >= one.step || one.end - one.begin <= one.step) {
            one.end = one.width >= one.step ? one.end : (int32_t)run_end(&one);
            one.step = one.width = 1;
        }
        if (one.begin < one.end)
            r[kept++] = one;
    }
    return kept;
}

/* Ranges in any order, which are used up, as one list: the run that begins first is taken, with as
 * many after it as end before another range begins. */
static int unite(heed_key_range *r, int n, heed_key_range *out)
{
    int made = 0;
    while (n) {
        int k = 0;
        int64_t second = INT64_MAX;
        for (int i = 1; i < n; i++)
            if (r[i].begin < r[k].begin) {
                second = r[k].begin;
                k = i;
            } else {
                second = heed__min(second, r[i].begin);
            }
        heed_key_range *first = &r[k], *last = made ? &out[made - 1] : NULL;
        if (last && last->step == 1 && first->begin <= last->end) {
            last->end = (int32_t)heed__max(last->end, run_end(first));
            drop_runs(first, heed__max(1, runs_before(first, (int64_t)last->end + 1)));
        } else {
            const int64_t runs = first->step == 1 ? 1 : runs_before(first, second);
            out[made] = *first;
            if (runs < 2)
                out[made] = (heed_key_range){first->begin, (int32_t)run_end(first), 1, 1};
            else
                out[made].end = (int32_t)heed__min(
                    first->end, first->begin + (runs - 1) * first->step + first->width);
            made++;
            drop_runs(first, heed__max(1, runs));
        }
        if (first->begin >= first->end)
            *first = r[--n];
    }
    return made;
}

#define ITEMS (HEED_SLOT_TERMS * (HEED__MOST_DRAWN + 4)) /* no row has more */

int heed__pattern_ranges(const heed_slot_spec *pattern, const heed__pattern_query *q,
                         heed_key_range *out)
{
    static const heed_term whole = {HEED_PATTERN_GLOBAL, {0}};
    const int64_t limit = q->causal ? heed__min(q->i + 1, q->keys) : q->keys;
    heed_key_range item[ITEMS];
    int n = pattern->count ? 0 : pattern_of(&whole)->ranges(&whole, q, item);
    for (int i = 0; i < pattern->count; i++)
        n += pattern_of(&pattern->term[i])->ranges(&pattern->term[i], q, item + n);
    return unite(item, tidy(item, n, limit), out);
}

/* Each range may be cut in two by another; steps that cross go run by run. */
int64_t heed__pattern_most(const heed_slot_spec *pattern, int64_t keys)
{
    int64_t most = 2;
    int steps = 0;
    for (int i = 0; i < pattern->count; i++) {
        const heed__pattern *row = pattern_of(&pattern->term[i]);
        most += row ? 2 * row->most : 0;
        steps += row && row->steps;
    }
    return most + (steps > 1 ? keys / 2 : 0);
}

int64_t heed__range_keys(const heed_key_range *r, int count)
{
    int64_t keys = 0;
    for (int i = 0; i < count; i++) {
        const int64_t runs = (r[i].end - 1 - r[i].begin) / r[i].step;
        keys += runs * r[i].width + heed__min(r[i].width, r[i].end - r[i].begin - runs * r[i].step);
    }
    return keys;
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
    return heed__pattern_ranges(
        &o->pattern, &(heed__pattern_query){o->layer, head, i, queries, keys, o->causal}, out);
}

heed_key_pattern heed__key_pattern(const heed_attend_options *o, int64_t keys)
{
    return (heed_key_pattern){.ranges = ranges_of_layer,
                              .context = o,
                              .most = (int)heed__pattern_most(&o->pattern, keys),
                              .same_heads = !heed__pattern_by_head(&o->pattern)};
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
    heed_key_range *ranges;
    int32_t *begin, *end;
    heed_tensor *mask;
} window_job;

static bool mask_between(window_job *j, int ranges, int64_t begin, int64_t end, int64_t row)
{
    const heed_key_range *r = j->ranges;
    if (!j->mask && !(j->mask = heed_input(j->tape, HEED_SHAPE(j->flat), NULL)))
        return false;
    heed_real *mask = heed_tensor_data(j->mask) + row;
    for (int64_t key = begin; key < end; key++)
        mask[key] = (heed_real)-INFINITY;
    for (int k = 0; k < ranges; k++)
        for (int64_t run = r[k].begin; run < r[k].end; run += r[k].step)
            for (int64_t key = run; key < run + r[k].width && key < r[k].end; key++)
                mask[key] = 0;
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
            heed_key_range *r = j->ranges;
            if (centre) {
                cut_around((double)heed_tensor_data(centre)[at],
                           (double)j->o->pattern.term[0].number[0], keys, &j->begin[at],
                           &j->end[at]);
                continue;
            }
            const heed__pattern_query q = {j->o->layer, (int)h, place ? place[first + i] : i,
                                           queries,     keys,   j->o->causal};
            const int n = heed__pattern_ranges(&j->o->pattern, &q, r);
            j->begin[at] = n ? r[0].begin : 0;
            j->end[at] = n ? r[n - 1].end : 0;
            if (n && heed__range_keys(r, n) < j->end[at] - j->begin[at] &&
                !mask_between(j, n, j->begin[at], j->end[at], flat + (h * queries + i) * keys))
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
    j.ranges = heed_arena_allocate(heed_tape_arena(t),
                                   (size_t)heed__pattern_most(&o->pattern, p->keys->longest) *
                                       sizeof *j.ranges);
    if (!j.begin || !j.end || !j.ranges) {
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
