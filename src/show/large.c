/* large.c: the map that is shown large: the requested one, or the heads that align the texts.
 *
 * Alignment of a map: the mean over rows of the largest value (each row attends to one column)
 * times the mean over columns of the largest (every column is attended to: a head that always
 * attends to the full stop scores low).  Some heads attend one row too late, to the word just read
 * instead of the one being written; labels that are equal on both sides (names, numbers,
 * punctuation, the end) show it: their own row should attend to them, not the next.  Starting from
 * the best head, others are averaged in as long as the average aligns better. */
#include "base/memory.h"
#include "show/draw.h"
#include "show/picture.h"

#include <math.h>
#include <string.h>

/* From -1, every equal label is attended to one row too late, to 1, every one in its own row. */
static double punctuality(const heed_attention_picture *p, const heed_attention_map *m)
{
    const heed_labels *rows = heed__row_labels(p, m->kind);
    const heed_labels *columns = heed__column_labels(p, m->kind);
    double sum = 0;
    int64_t same = 0;
    for (int64_t i = 0; i < m->queries; i++)
        for (int64_t j = 0; j < m->keys; j++)
            if (strcmp(rows->text[i], columns->text[j]) == 0) {
                /* The row after the last is the first, whose input is the beginning of the
                 * sentence. */
                sum += fmax(heed__picture_cell(m, i, j), 0) -
                       fmax(heed__picture_cell(m, (i + 1) % m->queries, j), 0);
                same++;
            }
    return same ? sum / (double)same : 0;
}

static double alignment(const heed_attention_picture *p, const heed_attention_map *m)
{
    double rows = 0, columns = 0;
    for (int64_t i = 0; i < m->queries; i++) {
        int64_t j = heed__strongest(m, i);
        rows += j < 0 ? 0 : heed__picture_cell(m, i, j);
    }
    for (int64_t j = 0; j < m->keys; j++) {
        double most = 0;
        for (int64_t i = 0; i < m->queries; i++)
            most = heed__picture_cell(m, i, j) > most ? heed__picture_cell(m, i, j) : most;
        columns += most;
    }
    return rows / (double)m->queries * columns / (double)m->keys * (1 + punctuality(p, m));
}

/* to = the mean of `count` heads, which is from, and one more. */
static void average_in(heed_real *to, const heed_real *from, const heed_attention_map *more,
                       int64_t count)
{
    for (int64_t i = 0; i < more->queries * more->keys; i++)
        to[i] = (from[i] * (heed_real)count + more->weight[i]) / (heed_real)(count + 1);
}

struct candidate {
    double score; /* negative once it is in the average */
    int64_t map;
};

static int64_t best_left(const struct candidate *c, int64_t n)
{
    int64_t best = -1;
    for (int64_t i = 0; i < n; i++)
        if (c[i].score >= 0 && (best < 0 || c[i].score > c[best].score))
            best = i;
    return best;
}

static heed_status describe(const heed_attention_picture *p, const int64_t *chosen, int64_t count,
                            heed_arena *arena, heed__large *out, heed_error *err)
{
    heed__string title, note;
    heed__draw_begin(&title, arena);
    heed__draw_begin(&note, arena);
    const char *kind = heed__kind_name(out->map.kind);
    const bool aligns = out->map.kind == HEED_CROSS;
    if (count == 1) {
        const heed_attention_map *m = &p->maps[chosen[0]];
        heed__string_format(&title, "%s, layer %d, head %d", kind, m->layer + 1, m->head + 1);
        heed__string_add(&note, out->index >= 0 ? ""
                                : aligns        ? "the head that aligns best"
                                                : "the clearest head");
        out->index = chosen[0];
    } else {
        heed__string_format(&title, "%s, average of %lld heads", kind, (long long)count);
        heed__string_add(&note, aligns ? "those that align best together: layer.head"
                                       : "those that are clearest together: layer.head");
        for (int64_t i = 0; i < count; i++)
            heed__string_format(&note, " %d.%d", p->maps[chosen[i]].layer + 1,
                                p->maps[chosen[i]].head + 1);
    }
    if (heed__draw_end(&title, &out->title, err))
        return HEED_MEMORY;
    return heed__draw_end(&note, &out->note, err);
}

static heed_status align(const heed_attention_picture *p, heed_arena *arena, heed__large *out,
                         heed_error *err)
{
    heed_attention_kind kind = p->maps[0].kind;
    for (int64_t i = 0; i < p->count; i++)
        if (p->maps[i].kind == HEED_CROSS)
            kind = HEED_CROSS;
    size_t cells = (size_t)(heed__row_labels(p, kind)->count * heed__column_labels(p, kind)->count);
    heed_real *mean = heed_arena_allocate(arena, sizeof *mean * cells);
    heed_real *trial = heed_arena_allocate(arena, sizeof *trial * cells);
    struct candidate *c = heed_arena_allocate(arena, sizeof *c * (size_t)p->count);
    int64_t *chosen = heed_arena_allocate(arena, sizeof *chosen * (size_t)p->count);
    if (!mean || !trial || !c || !chosen)
        return heed__fail(err, HEED_MEMORY, "attention picture: out of memory");
    memset(mean, 0, sizeof *mean * cells);
    int64_t n = 0, count = 0;
    for (int64_t i = 0; i < p->count; i++)
        if (p->maps[i].kind == kind)
            c[n++] = (struct candidate){alignment(p, &p->maps[i]), i};
    double score = -1;
    for (int64_t best; (best = best_left(c, n)) >= 0;) {
        const heed_attention_map *m = &p->maps[c[best].map];
        average_in(trial, mean, m, count);
        out->map = *m;
        out->map.weight = trial;
        double better = alignment(p, &out->map);
        c[best].score = -1;
        if (better <= score)
            continue;
        score = better;
        int64_t at = count++; /* reported in order of layers and heads */
        for (; at > 0 && chosen[at - 1] > c[best].map; at--)
            chosen[at] = chosen[at - 1];
        chosen[at] = c[best].map;
        memcpy(mean, trial, sizeof *mean * cells);
    }
    out->map.weight = mean;
    out->index = -1;
    return describe(p, chosen, count, arena, out, err);
}

heed_status heed__large_map(const heed_attention_picture *p, int64_t large, heed_arena *arena,
                            heed__large *out, heed_error *err)
{
    heed_status status = heed__picture_check(p, err);
    if (status)
        return status;
    if (large >= p->count || large < -1)
        return heed__fail(err, HEED_ARGUMENT, "attention picture: map %lld of %lld is to be large",
                          (long long)large, (long long)p->count);
    if (large < 0)
        return align(p, arena, out, err);
    out->map = p->maps[large];
    out->index = large;
    return describe(p, &large, 1, arena, out, err);
}
