/* pattern_content.c: patterns by content: what a query sees is chosen for the batch at hand, head
 * by head of each segment, from its queries and keys.
 *
 * The choice is a constant: gradients flow through the pairs that are kept and no others.  What
 * was chosen stays, compact, until the tape is reset; a query's list is made from it where it is
 * needed, in forward and in backward: as bits, a bit a key, which also unites it with the ranges
 * of terms by position.  A query that would see nothing sees itself. */
#include "attention/attend.h"

#include "base/error.h"
#include "base/min_max.h"
#include "base/parallel.h"
#include "kernel/kernels.h"
#include "tensor/tape.h"
#include <string.h>

/* What the lists of one call are made from, in the tape's arena. */
struct lists {
    const heed_attend_layer *layer;
    const heed_term *term;
    const heed__content *row;
    heed_slot_spec by_position; /* the other terms */
    const heed_segments *queries, *keys;
    heed__content_head *head; /* (segments,heads) */
    void **chosen;            /* beside it */
    char *scratch;
    size_t scratch_bytes; /* of a thread */
    bool causal;
};

/* ---- which row ---- */

const heed_term *heed__content_term(const heed_slot_spec *pattern)
{
    for (int i = 0; i < pattern->count && i < HEED_SLOT_TERMS; i++) {
        const heed__slot_row *row = heed__row_of(HEED_SLOT_PATTERN, pattern->term[i].kind);
        if (row && row->content)
            return &pattern->term[i];
    }
    return NULL;
}

const heed__content *heed__content_of(const heed_slot_spec *pattern)
{
    const heed_term *term = heed__content_term(pattern);
    return term ? heed__row_of(HEED_SLOT_PATTERN, term->kind)->content : NULL;
}

static heed_slot_spec others(const heed_slot_spec *pattern)
{
    heed_slot_spec rest = {0};
    for (int i = 0; i < pattern->count; i++)
        if (!heed__row_of(HEED_SLOT_PATTERN, pattern->term[i].kind)->content)
            rest.term[rest.count++] = pattern->term[i];
    return rest;
}

heed_status heed__content_check(const heed_attend_options *o, heed_error *err)
{
    const heed_term *term = heed__content_term(&o->pattern);
    const int heads = o->heads ? o->heads : 1;
    if (!term)
        return HEED_OK;
    const heed__slot_row *row = heed__row_of(HEED_SLOT_PATTERN, term->kind);
    const heed__memory_form *form = heed__memory_form_of(o);
    if (others(&o->pattern).count != o->pattern.count - 1)
        return heed__fail(err, HEED_ARGUMENT,
                          "attention: one of a pattern's terms may choose by content, found %s and "
                          "another",
                          row->info.name);
    if (form && form->compress)
        return heed__fail(
            err, HEED_ARGUMENT,
            "attention: %s chooses among the keys of single positions: use the memory %s or %s",
            row->info.name, heed__row_of(HEED_SLOT_MEMORY, HEED_MEMORY_STATES)->info.name,
            heed__row_of(HEED_SLOT_MEMORY, HEED_MEMORY_PERSISTENT)->info.name);
    if (row->content->shares_keys &&
        ((o->score != HEED_SCORE_SCALED_DOT && o->score != HEED_SCORE_DOT) ||
         o->query_d != o->key_d || (o->kv_heads && o->kv_heads != heads)))
        return heed__fail(err, HEED_ARGUMENT,
                          "attention: the keys of %s are its queries: use the score scaled-dot or "
                          "dot, and as many heads of keys as of queries",
                          row->info.name);
    /* All of these rows need as many keys as their first number says. */
    if (o->longest > 0 && o->longest < term->number[0])
        return heed__fail(err, HEED_ARGUMENT,
                          "attention: %s:%lld needs %lld keys, and a sequence of this model has at "
                          "most %lld",
                          row->info.name, (long long)term->number[0], (long long)term->number[0],
                          (long long)o->longest);
    return HEED_OK;
}

void heed__content_build(heed_attend_layer *l, heed_scope s)
{
    const heed__content *row = heed__content_of(&l->options.pattern);
    if (row && row->build)
        row->build(l, heed__content_term(&l->options.pattern), s);
}

void heed__few_products(heed_real *to, int64_t to_ld, const heed_real *x, int64_t x_ld,
                        const heed_real *y, int64_t y_ld, int64_t n, int64_t m, int64_t d)
{
    heed__kernels()->gemm_few_nt(to, to_ld, x, x_ld, y, y_ld, n, m, d, 0);
}

/* ---- a query's list ---- */

static size_t bits_bytes(const heed_segments *keys)
{
    return ((size_t)keys->longest / 512 + 1) * 64;
}

static void mark_ranges(uint64_t *bits, const heed_key_range *r, int n)
{
    for (int k = 0; k < n; k++)
        for (int64_t run = r[k].begin; run < r[k].end; run += r[k].step)
            for (int64_t key = run; key < run + r[k].width && key < r[k].end; key++)
                heed__mark(bits, key);
}

static int64_t list(const void *context, int64_t segment, int head, int64_t i, void *room,
                    int32_t *out)
{
    const struct lists *l = context;
    const int64_t at = segment * l->layer->options.heads + head;
    const heed__content_head *h = &l->head[at];
    const int64_t limit = l->causal ? heed__min(h->s, i + 1) : h->s;
    uint64_t *bits = room;
    int64_t n = 0;
    l->row->mark(h, l->chosen[at], i, bits);
    if (l->by_position.count) {
        heed_key_range *r = (heed_key_range *)(void *)((char *)room + bits_bytes(l->keys));
        const heed__pattern_query q = {l->layer->options.layer, head, i, h->t, h->s, l->causal};
        mark_ranges(bits, r, heed__pattern_ranges(&l->by_position, &q, r));
    }
    if (l->row->shares_keys)
        bits[i / 64] &= ~((uint64_t)1 << i % 64);
    for (int64_t word = 0; word < (h->s + 63) / 64; word++) {
        for (uint64_t left = bits[word]; left; left &= left - 1) {
            const int64_t key = word * 64 + __builtin_ctzll(left);
            if (key < limit)
                out[n++] = (int32_t)key;
        }
        bits[word] = 0;
    }
    if (n == 0 && i < h->s)
        out[n++] = (int32_t)i;
    return n;
}

/* ---- choosing ---- */

static void choose_heads(void *context, int64_t begin, int64_t end, int thread)
{
    const struct lists *l = context;
    for (int64_t at = begin; at < end; at++)
        l->row->choose(&l->head[at], l->chosen[at], l->scratch + (size_t)thread * l->scratch_bytes);
}

static size_t whole_lines(size_t bytes)
{
    return (bytes + 63) / 64 * 64;
}

static heed__content_head head_of(const struct lists *l, const heed_tensor *q, const heed_tensor *k,
                                  int64_t b, int head)
{
    const heed_attend_options *o = &l->layer->options;
    const int64_t row = l->queries->offset[b], key = l->keys->offset[b];
    const int64_t d = q->cols / o->heads, kv = head / (o->heads / o->kv_heads);
    return (heed__content_head){.layer = l->layer,
                                .term = l->term,
                                .head = head,
                                .t = l->queries->offset[b + 1] - row,
                                .s = l->keys->offset[b + 1] - key,
                                .d = d,
                                .causal = l->causal,
                                .q = q->data + row * q->ld + head * d,
                                .k = k->data + key * k->ld + kv * d,
                                .q_ld = q->ld,
                                .k_ld = k->ld};
}

/* Where all heads are, and what choosing needs; false: memory is short. */
static bool lay_out(heed_tape *t, struct lists *l, const heed_tensor *q, const heed_tensor *k)
{
    const int heads = l->layer->options.heads;
    const int64_t count = l->queries->count * heads;
    heed_arena *arena = heed_tape_arena(t);
    size_t bytes = 0, at = 0;
    l->head = heed_arena_allocate(arena, (size_t)(count + 1) * sizeof *l->head);
    l->chosen = heed_arena_allocate(arena, (size_t)(count + 1) * sizeof *l->chosen);
    if (!l->head || !l->chosen)
        return false;
    for (int64_t x = 0; x < count; x++) {
        l->head[x] = head_of(l, q, k, x / heads, (int)(x % heads));
        bytes += whole_lines(l->row->size(l->term, l->head[x].t, l->head[x].s));
    }
    char *all = heed_arena_allocate(arena, bytes + 64);
    for (int64_t x = 0; all && x < count; x++) {
        l->chosen[x] = all + at;
        at += whole_lines(l->row->size(l->term, l->head[x].t, l->head[x].s));
    }
    l->scratch_bytes = whole_lines(
        l->row->scratch(l->term, l->queries->longest, l->keys->longest, q->cols / heads));
    l->scratch = heed_arena_allocate(arena, l->scratch_bytes * (size_t)t->threads + 64);
    return all && l->scratch;
}

static bool refused(heed_tape *t, const struct lists *l, const heed_tensor *q, const heed_tensor *k)
{
    const heed_attend_options *o = &l->layer->options;
    if (l->queries->count == l->keys->count && q->rows == l->queries->rows &&
        k->rows == l->keys->rows && q->cols == o->query_d && k->cols == o->key_d)
        return false;
    heed_tape_fail(t, HEED_SHAPE_ERROR,
                   "attention: queries (%lld,%lld) of %lld segments and keys (%lld,%lld) of %lld, "
                   "expected (%lld,%lld) and (%lld,%lld) of as many",
                   (long long)q->rows, (long long)q->cols, (long long)l->queries->count,
                   (long long)k->rows, (long long)k->cols, (long long)l->keys->count,
                   (long long)l->queries->rows, (long long)o->query_d, (long long)l->keys->rows,
                   (long long)o->key_d);
    return true;
}

bool heed__content_choose(heed_tape *t, const heed_attend_layer *layer, heed_tensor *q,
                          const heed_memory *m, const heed_segments *queries, bool causal,
                          heed_key_pattern *out)
{
    const heed_attend_options *o = &layer->options;
    struct lists *l = heed_arena_allocate(heed_tape_arena(t), sizeof *l);
    if (!q || !m->keys || heed_tape_error(t)->status)
        return false;
    if (l) {
        *l = (struct lists){.layer = layer,
                            .term = heed__content_term(&o->pattern),
                            .row = heed__content_of(&o->pattern),
                            .by_position = others(&o->pattern),
                            .queries = queries,
                            .keys = m->segments,
                            .causal = causal};
        if (refused(t, l, q, m->keys))
            return false;
    }
    void *common = l && l->row->prepare ? l->row->prepare(t, layer, l->term) : NULL;
    if (!l || (l->row->prepare && !common) || !lay_out(t, l, q, m->keys)) {
        heed_tape_fail(t, HEED_MEMORY, "attention: no memory for what %lld queries see",
                       (long long)queries->rows);
        return false;
    }
    const int64_t count = queries->count * o->heads;
    const int64_t pairs = queries->rows * m->segments->rows / heed__max(queries->count, 1);
    for (int64_t x = 0; x < count; x++)
        l->head[x].common = common;
    heed__parallel(t->threads, count, 1, pairs / heed__max(queries->count, 1) + 1, choose_heads, l);
    for (int64_t b = 0; l->row->learn && heed_tape_training(t) && b < queries->count; b++)
        l->row->learn(t, l->head + b * o->heads, o->heads, l->chosen + b * o->heads);
    const int64_t most =
        l->by_position.count ? heed__pattern_most(&l->by_position, m->segments->longest) : 0;
    *out =
        (heed_key_pattern){.context = l,
                           .list = list,
                           .room = bits_bytes(m->segments) + (size_t)most * sizeof(heed_key_range)};
    return true;
}
