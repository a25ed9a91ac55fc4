/* ter.c: TER (Snover et al., AMTA 2006): edits and shifts of whole phrases that turn a hypothesis
 * into its reference, per reference word.  The search for shifts is greedy with many limits and
 * preferences; they are Tercom's, as in sacreBLEU, since the score depends on them. */
#include "base/error.h"
#include "metric/edit.h"
#include "metric/statistics.h"
#include "metric/tokenize.h"

#include <stdio.h>
#include <string.h>

#define MAX_SHIFT_SIZE 10
#define MAX_SHIFT_DISTANCE 50
#define MAX_CANDIDATES 1000
enum { EDITS, REFERENCE_LENGTH, WIDTH };

struct shift {
    int64_t gain; /* in edits */
    int64_t start, length, target;
};

/* One sentence pair. */
struct search {
    heed__edit edit;
    heed__codes hypothesis, shifted;
    int64_t candidates; /* tried so far */
};

/* The words with [start, start+length) moved before `target`; a target inside or right after moves
 * them that far to the right.  Returns how many words at the front are unchanged. */
static int64_t move(int32_t *to, const int32_t *from, int64_t n, const struct shift *s)
{
    int64_t begin = s->target < s->start ? s->target : s->start;
    int64_t end = s->start + s->length; /* of the changed range */
    if (s->target > end)
        end = s->target;
    else if (s->target >= s->start)
        end = s->length + s->target;
    end = end < n ? end : n;
    memcpy(to, from, (size_t)n * sizeof *to);
    int32_t *out = to + begin;
    if (s->target < s->start) {
        memcpy(out, from + s->start, (size_t)s->length * sizeof *to);
        memcpy(out + s->length, from + begin, (size_t)(s->start - begin) * sizeof *to);
    } else {
        int64_t passed = end - s->start - s->length;
        memcpy(out, from + s->start + s->length, (size_t)passed * sizeof *to);
        memcpy(out + passed, from + s->start, (size_t)s->length * sizeof *to);
    }
    return begin;
}

/* The larger gain, then the longer phrase, the earlier start, the earlier target. */
static bool better(const struct shift *a, const struct shift *b)
{
    if (a->gain != b->gain)
        return a->gain > b->gain;
    if (a->length != b->length)
        return a->length > b->length;
    if (a->start != b->start)
        return a->start < b->start;
    return a->target < b->target;
}

static bool any(const heed__codes *flags, int64_t begin, int64_t length)
{
    for (int64_t i = begin; i < begin + length; i++)
        if (flags->at[i])
            return true;
    return false;
}

/* Tries to move words [start, start+length) of the hypothesis to where the equal reference words
 * from `goal` on are aligned: before the first of them, and after each. */
static void try_targets(struct search *s, int32_t before, int64_t start, int64_t goal,
                        int64_t length, struct shift *best)
{
    const int32_t *align = s->edit.align.at;
    int64_t n = s->hypothesis.count, last = -1;
    for (int64_t at = goal - 1; at < goal + length; at++) {
        struct shift now = {.start = start, .length = length};
        now.target = at < 0 ? 0 : align[at] + 1;
        if (now.target == last)
            continue;
        last = now.target;
        int64_t same = move(s->shifted.at, s->hypothesis.at, n, &now);
        now.gain = before - heed__edit_distance(&s->edit, s->shifted.at, same);
        s->candidates++;
        if (!best->length || better(&now, best))
            *best = now;
    }
}

/* The best shift of a phrase that is wrong where it is and missing where it goes; length 0 if there
 * is none. */
static struct shift find_shift(struct search *s, int32_t before)
{
    const heed__edit *e = &s->edit;
    const int32_t *h = s->hypothesis.at, *r = e->reference;
    int64_t n = s->hypothesis.count;
    struct shift best = {0};
    for (int64_t start = 0; start < n; start++) {
        int64_t from = start > MAX_SHIFT_DISTANCE ? start - MAX_SHIFT_DISTANCE : 0;
        int64_t to = start + MAX_SHIFT_DISTANCE + 1;
        for (int64_t goal = from; goal < to && goal < e->reference_length; goal++)
            for (int64_t length = 1; length <= MAX_SHIFT_SIZE && start + length <= n &&
                                     goal + length <= e->reference_length &&
                                     h[start + length - 1] == r[goal + length - 1];
                 length++) {
                int32_t aligned = e->align.at[goal];
                if (!any(&e->hypothesis_wrong, start, length) ||
                    !any(&e->reference_wrong, goal, length) ||
                    (start <= aligned && aligned < start + length))
                    continue;
                try_targets(s, before, start, goal, length, &best);
                if (s->candidates >= MAX_CANDIDATES)
                    return best;
            }
    }
    return best;
}

/* Edits between the pair's words, with shifts as long as they help. */
static int64_t count_edits(struct search *s)
{
    int64_t shifts = 0, n = s->hypothesis.count;
    s->candidates = 0;
    for (;; shifts++) {
        int32_t distance = heed__edit_align(&s->edit, s->hypothesis.at);
        struct shift best = find_shift(s, distance);
        if (s->candidates >= MAX_CANDIDATES || best.gain <= 0)
            return shifts + distance;
        move(s->shifted.at, s->hypothesis.at, n, &best);
        memcpy(s->hypothesis.at, s->shifted.at, (size_t)n * sizeof *s->shifted.at);
    }
}

static void sentence(const heed__metric *m, heed__pair *p, int64_t *statistics)
{
    struct search *s = m->work;
    for (int side = 0; side < HEED__SIDES; side++) {
        heed__line_strip_end(&p->line[side]);
        heed__tokenize_ter(&p->line[side], m->options);
    }
    heed__pair_words(p, heed__is_space);
    const heed__codes *h = &p->unit[HEED__HYPOTHESIS], *r = &p->unit[HEED__REFERENCE];
    statistics[REFERENCE_LENGTH] += r->count;
    if (!h->count || !r->count) {
        statistics[EDITS] += h->count + r->count;
        return;
    }
    if (!heed__codes_reserve(&s->hypothesis, h->count) ||
        !heed__codes_reserve(&s->shifted, h->count) ||
        !heed__edit_begin(&s->edit, h->count, r->at, r->count)) {
        p->failed = true;
        return;
    }
    memcpy(s->hypothesis.at, h->at, (size_t)h->count * sizeof *h->at);
    s->hypothesis.count = h->count;
    statistics[EDITS] += count_edits(s);
}

/* The fewest edits; lengths are summed, their mean is made in the score. */
static void join(const heed__metric *m, int64_t *statistics, const int64_t *more)
{
    (void)m;
    if (more[EDITS] < statistics[EDITS])
        statistics[EDITS] = more[EDITS];
    statistics[REFERENCE_LENGTH] += more[REFERENCE_LENGTH];
}

static double score(const heed__metric *m, const int64_t *statistics)
{
    if (!statistics[REFERENCE_LENGTH])
        return statistics[EDITS] ? 100 : 0;
    return 100 * (double)statistics[EDITS] * m->references / (double)statistics[REFERENCE_LENGTH];
}

static heed__metric metric_of(const heed_ter_options *o, struct search *s)
{
    heed__edit_init(&s->edit, o->allocator);
    heed__codes_init(&s->hypothesis, o->allocator);
    heed__codes_init(&s->shifted, o->allocator);
    return (heed__metric){.name = "ter",
                          .options = o,
                          .work = s,
                          .allocator = o->allocator,
                          .width = WIDTH,
                          .references = o->references ? o->references : 1,
                          .sentence = sentence,
                          .join = join,
                          .score = score};
}

static void release(struct search *s)
{
    heed__edit_deinit(&s->edit);
    heed__codes_deinit(&s->hypothesis);
    heed__codes_deinit(&s->shifted);
}

heed_status heed_ter(const heed_ter_options *o, const char *const *hypothesis,
                     const char *const *reference, int64_t n, double *result, heed_error *err)
{
    if (!o)
        return heed__missing(err, "ter options");
    struct search s;
    heed__metric m = metric_of(o, &s);
    int64_t statistics[WIDTH] = {0};
    heed_status status = heed__metric_collect(&m, hypothesis, reference, n, true, statistics, err);
    *result = status ? 0 : score(&m, statistics);
    release(&s);
    return status;
}

heed_status heed_ter_bootstrap(const heed_ter_options *o, const char *const *a,
                               const char *const *b, const char *const *reference, int64_t n,
                               int64_t resamples, uint64_t seed, heed_bootstrap *result,
                               heed_error *err)
{
    if (!o)
        return heed__missing(err, "ter options");
    struct search s;
    heed__metric m = metric_of(o, &s);
    heed_status status =
        heed__metric_bootstrap(&m, a, b, reference, n, resamples, seed, result, err);
    release(&s);
    return status;
}

const char *heed_ter_signature(const heed_ter_options *o, char *text, size_t size)
{
    if (!o)
        return NULL;
    snprintf(text, size, "nrefs:%d|case:%s|tok:tercom|norm:%s|punct:%s|asian:%s|version:heed-%s",
             o->references ? o->references : 1, o->case_sensitive ? "mixed" : "lc",
             o->normalized ? "yes" : "no", o->no_punctuation ? "no" : "yes",
             o->asian_support ? "yes" : "no", heed_version());
    return text;
}
