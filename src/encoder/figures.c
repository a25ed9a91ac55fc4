/* figures.c: how good labels, tags and scores are: accuracy, confusion, precision, recall and F1 of
 * each label; spans as conlleval counts them (Tjong Kim Sang and Buchholz 2000); Spearman's rank
 * correlation. */
#include "base/error.h"
#include "base/memory.h"

#include <heed/encoder.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

static heed_status no_memory(heed_error *err)
{
    return heed__fail(err, HEED_MEMORY, "out of memory for figures");
}

static double ratio(int64_t part, int64_t whole)
{
    return whole ? (double)part / (double)whole : NAN;
}

/* The harmonic mean of right/said and right/wanted; 0 where something is wanted or said and none of
 * it is right. */
static double f1_of(int64_t right, int64_t said, int64_t wanted)
{
    return ratio(2 * right, said + wanted);
}

/* ---- labels ---- */

heed_status heed_label_figures_of(const int32_t *wanted, const int32_t *said, int64_t n,
                                  int64_t labels, heed_arena *arena, heed_label_figures *out,
                                  heed_error *err)
{
    if (!arena || !out || !wanted || !said)
        return heed__missing(err, "figures");
    const size_t size = (size_t)labels;
    int64_t *confusion = heed_arena_allocate(arena, size * size * sizeof *confusion);
    int64_t *is_wanted = heed_arena_allocate(arena, size * sizeof *is_wanted);
    int64_t *is_said = heed_arena_allocate(arena, size * sizeof *is_said);
    double *figure = heed_arena_allocate(arena, 3 * size * sizeof *figure);
    if (!confusion || !is_wanted || !is_said || !figure)
        return no_memory(err);
    memset(confusion, 0, size * size * sizeof *confusion);
    memset(is_wanted, 0, size * sizeof *is_wanted);
    memset(is_said, 0, size * sizeof *is_said);
    *out = (heed_label_figures){.n = n, .labels = labels, .confusion = confusion};
    for (int64_t i = 0; i < n; i++) {
        const bool known = wanted[i] >= 0 && wanted[i] < labels;
        if (said[i] < 0 || said[i] >= labels)
            return heed__fail(err, HEED_ARGUMENT, "label %d is said, expected 0 to %lld",
                              (int)said[i], (long long)labels - 1);
        is_said[said[i]]++;
        if (!known)
            continue;
        is_wanted[wanted[i]]++;
        confusion[wanted[i] * labels + said[i]]++;
        out->right += wanted[i] == said[i];
    }
    int64_t counted = 0;
    for (int64_t k = 0; k < labels; k++) {
        const int64_t right = confusion[k * labels + k];
        figure[k] = ratio(right, is_said[k]);
        figure[labels + k] = ratio(right, is_wanted[k]);
        figure[2 * labels + k] = f1_of(right, is_said[k], is_wanted[k]);
        if (is_said[k] + is_wanted[k]) {
            out->macro_f1 += figure[2 * labels + k];
            counted++;
        }
    }
    out->precision = figure;
    out->recall = figure + labels;
    out->f1 = figure + 2 * labels;
    out->accuracy = ratio(out->right, n);
    out->macro_f1 = counted ? out->macro_f1 / (double)counted : NAN;
    return HEED_OK;
}

/* ---- spans ---- */

/* The mark of a tag and its kind: B-NP is 'B' and "NP"; O is 'O' and "". */
struct tag {
    char mark;
    const char *kind;
};

static struct tag tag_of(const char *text)
{
    if (strcmp(text, "O") == 0)
        return (struct tag){'O', ""};
    if (text[0] && strchr("BIES", text[0]) && text[1] == '-' && text[2])
        return (struct tag){text[0], text + 2};
    return (struct tag){0, text};
}

bool heed_tags_are_spans(const char *const *tags, int64_t count)
{
    bool begins = false;
    for (int64_t i = 0; tags && i < count; i++) {
        const char mark = tag_of(tags[i]).mark;
        if (!mark)
            return false;
        begins |= mark == 'B' || mark == 'I';
    }
    return begins;
}

/* conlleval's rules: where a span ends between two tags, and where one begins. */
static bool ends(struct tag before, struct tag here)
{
    if (before.mark == 'O' || !before.mark)
        return !before.mark;
    return before.mark == 'E' || before.mark == 'S' || here.mark == 'B' || here.mark == 'S' ||
           here.mark == 'O' || strcmp(before.kind, here.kind) != 0;
}

static bool begins(struct tag before, struct tag here)
{
    if (here.mark == 'O' || !here.mark)
        return !here.mark;
    return here.mark == 'B' || here.mark == 'S' || before.mark == 'E' || before.mark == 'S' ||
           before.mark == 'O' || strcmp(before.kind, here.kind) != 0;
}

struct counting {
    heed_span_kind *kind;
    int64_t kinds;
    const int32_t *kind_of; /* (tags) */
    const struct tag *tag;
};

/* A tag that is not known is a span of its own, of a kind that nobody says. */
static struct tag tag_at(const struct counting *c, const int32_t *tags, int64_t i, int64_t n)
{
    if (i < 0 || i >= n)
        return (struct tag){'O', ""};
    return tags[i] < 0 ? (struct tag){0, "?"} : c->tag[tags[i]];
}

static heed_span_kind *kind_at(const struct counting *c, const int32_t *tags, int64_t i)
{
    return tags[i] < 0 ? NULL : &c->kind[c->kind_of[tags[i]]];
}

static void count(heed_span_kind *all, heed_span_kind *kind, size_t field)
{
    ++*(int64_t *)((char *)all + field);
    if (kind)
        ++*(int64_t *)((char *)kind + field);
}

static void count_sentence(const struct counting *c, heed_span_kind *all, const int32_t *wanted,
                           const int32_t *said, int64_t n)
{
    bool same = false; /* both are in a span that began in the same place, of the same kind */
    for (int64_t i = 0; i <= n; i++) {
        const struct tag w0 = tag_at(c, wanted, i - 1, n), w1 = tag_at(c, wanted, i, n);
        const struct tag s0 = tag_at(c, said, i - 1, n), s1 = tag_at(c, said, i, n);
        const bool wanted_ends = i > 0 && ends(w0, w1), said_ends = i > 0 && ends(s0, s1);
        if (same && wanted_ends && said_ends)
            count(all, kind_at(c, wanted, i - 1), offsetof(heed_span_kind, right));
        same &= !wanted_ends && !said_ends;
        if (i == n)
            return;
        const bool wanted_begins = begins(w0, w1), said_begins = begins(s0, s1);
        if (wanted_begins)
            count(all, kind_at(c, wanted, i), offsetof(heed_span_kind, wanted));
        if (said_begins)
            count(all, kind_at(c, said, i), offsetof(heed_span_kind, said));
        if (wanted_begins && said_begins)
            same = w1.mark && s1.mark && strcmp(w1.kind, s1.kind) == 0;
    }
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const heed_span_kind *)a)->name, ((const heed_span_kind *)b)->name);
}

/* The kinds of the tags, in the order of their bytes. */
static heed_status find_kinds(struct counting *c, const char *const *tags, int64_t n,
                              heed_arena *arena, heed_error *err)
{
    int32_t *kind_of = heed_arena_allocate(arena, (size_t)n * sizeof *kind_of);
    struct tag *tag = heed_arena_allocate(arena, (size_t)n * sizeof *tag);
    c->kind = heed_arena_allocate(arena, (size_t)n * sizeof *c->kind);
    if (!kind_of || !tag || !c->kind)
        return no_memory(err);
    for (int64_t i = 0; i < n; i++) {
        tag[i] = tag_of(tags[i]);
        int64_t k = 0;
        while (k < c->kinds && strcmp(c->kind[k].name, tag[i].kind) != 0)
            k++;
        if (k == c->kinds && tag[i].mark != 'O')
            c->kind[c->kinds++] = (heed_span_kind){.name = tag[i].kind};
    }
    if (c->kinds)
        qsort(c->kind, (size_t)c->kinds, sizeof *c->kind, by_name);
    for (int64_t i = 0; i < n; i++) {
        kind_of[i] = 0;
        for (int32_t k = 0; k < c->kinds; k++)
            if (strcmp(c->kind[k].name, tag[i].kind) == 0)
                kind_of[i] = k;
    }
    c->kind_of = kind_of;
    c->tag = tag;
    return HEED_OK;
}

static void finish(heed_span_kind *k)
{
    k->precision = ratio(k->right, k->said);
    k->recall = ratio(k->right, k->wanted);
    k->f1 = f1_of(k->right, k->said, k->wanted);
}

heed_status heed_span_figures_of(const char *const *tags, int64_t tag_count, const int32_t *wanted,
                                 const int32_t *said, const int64_t *length, int64_t sentences,
                                 heed_arena *arena, heed_span_figures *out, heed_error *err)
{
    if (!arena || !out || !tags || !wanted || !said || !length)
        return heed__missing(err, "figures");
    struct counting c = {0};
    *out = (heed_span_figures){0};
    heed_status status = find_kinds(&c, tags, tag_count, arena, err);
    for (int64_t b = 0, at = 0; !status && b < sentences; at += length[b++])
        count_sentence(&c, &out->all, wanted + at, said + at, length[b]);
    finish(&out->all);
    for (int64_t k = 0; k < c.kinds; k++)
        finish(&c.kind[k]);
    out->kind = c.kind;
    out->kinds = c.kinds;
    return status;
}

/* ---- ranks ---- */

struct ranked {
    double value;
    int64_t at;
};

static int by_value(const void *a, const void *b)
{
    const double x = ((const struct ranked *)a)->value, y = ((const struct ranked *)b)->value;
    return x < y ? -1 : x > y;
}

static void rank(const double *x, int64_t n, struct ranked *order, double *out)
{
    for (int64_t i = 0; i < n; i++)
        order[i] = (struct ranked){x[i], i};
    qsort(order, (size_t)n, sizeof *order, by_value);
    for (int64_t i = 0, k; i < n; i = k) {
        for (k = i + 1; k < n && order[k].value == order[i].value; k++)
            continue;
        for (int64_t j = i; j < k; j++)
            out[order[j].at] = (double)(i + k + 1) / 2;
    }
}

heed_status heed_spearman(const double *a, const double *b, int64_t n, double *rho, heed_error *err)
{
    if (!a || !b || !rho)
        return heed__missing(err, "numbers");
    *rho = NAN;
    if (n < 2)
        return HEED_OK;
    const heed_allocator memory = heed__allocator_or_default(NULL);
    struct ranked *order = heed__allocate(&memory, (size_t)n, sizeof *order);
    double *x = heed__allocate(&memory, (size_t)n, 2 * sizeof *x);
    double xx = 0, yy = 0, xy = 0;
    const double mean = (double)(n + 1) / 2;
    if (order && x) {
        rank(a, n, order, x);
        rank(b, n, order, x + n);
        for (int64_t i = 0; i < n; i++) {
            xx += (x[i] - mean) * (x[i] - mean);
            yy += (x[n + i] - mean) * (x[n + i] - mean);
            xy += (x[i] - mean) * (x[n + i] - mean);
        }
        if (xx > 0 && yy > 0)
            *rho = xy / sqrt(xx * yy);
    }
    const bool done = order && x;
    heed__release(&memory, order, (size_t)n, sizeof *order);
    heed__release(&memory, x, (size_t)n, 2 * sizeof *x);
    return done ? HEED_OK : no_memory(err);
}
