/* sample_bpe.c: BPE, with dropout (Provilkov et al., "BPE-Dropout", ACL 2020) or without: pairs of
 * neighbours are merged in the order of the scores, best first, and each merge is dropped with
 * probability strength.
 *
 * Two pieces can be merged if their text is a piece, whose score it is (SentencePiece), or if the
 * vocabulary has a merge of exactly these two (byte-level BPE, which begins with bytes).
 *
 * As in SentencePiece's sampler a dropped merge is not tried again, unless a merge beside it makes
 * a new pair; the paper draws again in every round of a word. */
#include "base/error.h"
#include "vocab/sample_subwords.h"

#include <math.h>

/* A part of the text in a linked list; 0 bytes: it was merged into the one before. */
struct part {
    size_t begin, size;
    int64_t before, behind; /* -1 at the ends */
    int32_t id;             /* byte-level: its piece */
    bool frozen;            /* a placeholder: never merged */
};

struct merge {
    float score;
    int32_t id;
    int64_t left, right;
    size_t size; /* of both; if it differs, one of them has changed meanwhile */
};

struct work {
    heed__sampler *c;
    struct part *part;
    struct merge *heap; /* best first */
    int64_t merges;
    bool bytes; /* byte-level */
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
    const heed_vocab *v = w->c->v;
    size_t size = l->size + r->size;
    if (w->bytes) {
        const struct heed__merge *m = heed__merges_find(&v->merges, l->id, r->id);
        if (m) /* ranks are exact in a float up to 2^24 */
            push(w, (struct merge){-(float)m->rank, m->id, left, right, size});
        return;
    }
    int32_t id = size > v->longest ? -1 : heed__sampler_find(w->c, l->begin, l->begin + size);
    if (id >= 0 && v->pieces.item[id].score > -INFINITY)
        push(w, (struct merge){v->pieces.item[id].score, id, left, right, size});
}

static void apply(struct work *w, const struct merge *m)
{
    struct part *l = &w->part[m->left], *r = &w->part[m->right];
    l->size = m->size;
    l->id = m->id;
    r->size = 0;
    l->behind = r->behind;
    if (r->behind >= 0)
        w->part[r->behind].before = m->left;
    consider(w, l->before, m->left);
    consider(w, m->left, l->behind);
}

/* Memory for texts of this length, used again by the next word of the same text.  At most one part
 * per byte; every pair once, and two new ones for each merge. */
static heed_status reserve(heed__sampler *c, struct work *w, heed_error *err)
{
    if (c->length > c->work_length) {
        const size_t each = sizeof *w->part + 3 * sizeof *w->heap;
        c->work =
            c->length > SIZE_MAX / each ? NULL : heed_arena_allocate(c->arena, c->length * each);
        c->work_length = c->work ? c->length : 0;
        if (!c->work)
            return heed__fail(err, HEED_MEMORY, "out of memory for cutting %zu bytes", c->length);
    }
    w->part = c->work;
    w->heap = (struct merge *)(w->part + c->length);
    return HEED_OK;
}

static size_t first_part(const struct work *w, size_t at, int32_t *id, bool *frozen)
{
    *id = -1;
    if (!w->bytes)
        return heed__sampler_step(w->c, at, frozen);
    *frozen = false;
    *id = w->c->v->byte_id[(unsigned char)w->c->text[at]];
    return 1;
}

heed_status heed__sample_bpe(heed__sampler *c, heed_error *err)
{
    struct work w = {.c = c, .bytes = c->v->kind == HEED_BYTES};
    if (reserve(c, &w, err))
        return HEED_MEMORY;
    int64_t parts = 0;
    for (size_t at = 0; at < c->length; at += w.part[parts++].size) {
        bool frozen;
        int32_t id;
        size_t size = first_part(&w, at, &id, &frozen);
        w.part[parts] = (struct part){at, size, parts - 1, parts + 1, id, frozen};
    }
    if (parts > 0)
        w.part[parts - 1].behind = -1;
    for (int64_t i = 1; i < parts; i++)
        consider(&w, i - 1, i);
    while (w.merges > 0) {
        struct merge m = pop(&w);
        const struct part *l = &w.part[m.left], *r = &w.part[m.right];
        bool stands = l->size > 0 && r->size > 0 && l->size + r->size == m.size;
        if (stands && (c->strength == 0 || heed__sampler_draw(c) >= c->strength))
            apply(&w, &m);
    }
    for (int64_t i = 0; i >= 0 && i < parts; i = w.part[i].behind) {
        const struct part *p = &w.part[i];
        if (w.bytes)
            c->id[c->count++] = p->id < 0 ? c->v->special.unk : p->id;
        else
            heed__sampler_add(c, p->begin, p->begin + p->size);
    }
    return HEED_OK;
}
