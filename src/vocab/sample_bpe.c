/* sample_bpe.c: BPE with dropout (Provilkov et al., "BPE-Dropout", ACL 2020): pairs of neighbours
 * are merged in the order of the scores, best first, and each merge is dropped with probability
 * strength.
 *
 * As in SentencePiece's sampler a dropped merge is not tried again, unless a merge beside it makes
 * a new pair; the paper draws again in every round of a word. */
#include "base/error.h"
#include "vocab/sample_subwords.h"

/* A part of the text in a linked list; 0 bytes: it was merged into the one before. */
struct part {
    size_t begin, size;
    int64_t before, behind; /* -1 at the ends */
    bool frozen;            /* a placeholder: never merged */
};

struct merge {
    float score;
    int64_t left, right;
    size_t size; /* of both; if it differs, one of them has changed meanwhile */
};

struct work {
    heed__sampler *c;
    struct part *part;
    struct merge *heap; /* best first */
    int64_t merges;
};

static bool is_before(const struct merge *a, const struct merge *b)
{
    return a->score > b->score || (a->score == b->score && a->left < b->left);
}

static void push(struct work *w, struct merge m)
{
    int64_t i = w->merges++;
    for (int64_t up; i > 0 && is_before(&m, &w->heap[up = (i - 1) / 2]); i = up)
        w->heap[i] = w->heap[up];
    w->heap[i] = m;
}

static struct merge pop(struct work *w)
{
    struct merge best = w->heap[0], last = w->heap[--w->merges];
    int64_t i = 0;
    for (int64_t down; (down = 2 * i + 1) < w->merges; i = down) {
        if (down + 1 < w->merges && is_before(&w->heap[down + 1], &w->heap[down]))
            down++;
        if (!is_before(&w->heap[down], &last))
            break;
        w->heap[i] = w->heap[down];
    }
    w->heap[i] = last;
    return best;
}

static void consider(struct work *w, int64_t left, int64_t right)
{
    if (left < 0 || right < 0 || w->part[left].frozen || w->part[right].frozen)
        return;
    const struct part *l = &w->part[left], *r = &w->part[right];
    size_t size = l->size + r->size;
    int32_t id = size > w->c->v->longest ? -1 : heed__sampler_find(w->c, l->begin, l->begin + size);
    if (id >= 0)
        push(w, (struct merge){w->c->v->pieces.item[id].score, left, right, size});
}

static void apply(struct work *w, const struct merge *m)
{
    struct part *l = &w->part[m->left], *r = &w->part[m->right];
    l->size = m->size;
    r->size = 0;
    l->behind = r->behind;
    if (r->behind >= 0)
        w->part[r->behind].before = m->left;
    consider(w, l->before, m->left);
    consider(w, m->left, l->behind);
}

heed_status heed__sample_bpe(heed__sampler *c, heed_error *err)
{
    /* At most one part per byte; every pair once, and two new ones for each merge. */
    struct work w = {.c = c};
    w.part = heed_arena_allocate(c->arena, c->length * sizeof *w.part);
    w.heap = heed_arena_allocate(c->arena, 3 * c->length * sizeof *w.heap);
    if (!w.part || !w.heap)
        return heed__fail(err, HEED_MEMORY, "out of memory for sampling %zu bytes", c->length);
    int64_t parts = 0;
    for (size_t at = 0; at < c->length; at += w.part[parts++].size) {
        bool frozen;
        size_t size = heed__sampler_step(c, at, &frozen);
        w.part[parts] = (struct part){at, size, parts - 1, parts + 1, frozen};
    }
    if (parts > 0)
        w.part[parts - 1].behind = -1;
    for (int64_t i = 1; i < parts; i++)
        consider(&w, i - 1, i);
    while (w.merges > 0) {
        struct merge m = pop(&w);
        const struct part *l = &w.part[m.left], *r = &w.part[m.right];
        bool stands = l->size > 0 && r->size > 0 && l->size + r->size == m.size;
        if (stands && heed__sampler_draw(c) >= c->strength)
            apply(&w, &m);
    }
    for (int64_t i = 0; i >= 0 && i < parts; i = w.part[i].behind)
        heed__sampler_add(c, w.part[i].begin, w.part[i].begin + w.part[i].size);
    return HEED_OK;
}
