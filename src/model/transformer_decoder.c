/* transformer_decoder.c: the Transformer's decoder one token at a time, with caches.
 *
 * A layer's keys and values of a token never change, so they are kept side by side as its product
 * made them: those of the source once per batch, shared by all rows of a sentence; those of the
 * target row after row, in two buffers.  A step copies each row from where its parent's lies in one
 * to its place in the other and appends the new token's: one pass, whatever was reordered. */
#include "model/transformer.h"

#include "attention/mha.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/parallel.h"
#include "tensor/tape.h"
#include <string.h>

/* Memory that grows; growing forgets what was there. */
struct buffer {
    heed_real *at;
    int64_t room;
};

struct caches {
    int64_t width;        /* H*(Dk+Dv): one token's keys and values in one layer */
    struct buffer source; /* (layers,M,width) */
    int64_t *lengths;     /* (sentences) of the sources */
    int64_t sentences, lengths_room, source_rows;
    struct buffer target[2]; /* (layers,rows,length,width): before this step and after it */
};

static bool reserve(const heed_decoder *d, struct buffer *b, int64_t count)
{
    if (count <= b->room)
        return true;
    const int64_t room = count > b->room + b->room / 2 ? count : b->room + b->room / 2;
    heed__release(&d->allocator, b->at, (size_t)b->room, sizeof *b->at);
    b->at = heed__allocate(&d->allocator, (size_t)room, sizeof *b->at);
    b->room = b->at ? room : 0;
    return b->at;
}

heed_status heed__transformer_open(heed_decoder *d, heed_error *err)
{
    const heed__transformer *m = d->model->parts;
    struct caches *c = heed__allocate_zeroed(&d->allocator, 1, sizeof *c);
    if (!c)
        return heed__fail(err, HEED_MEMORY, "no memory for a decoder");
    const heed_mha_options *o = &m->decoder[0].self.options;
    c->width = o->heads * (o->d_k + o->d_v);
    d->parts = c;
    return HEED_OK;
}

void heed__transformer_close(heed_decoder *d)
{
    struct caches *c = d->parts;
    if (!c)
        return;
    struct buffer *all[] = {&c->source, &c->target[0], &c->target[1]};
    for (int i = 0; i < 3; i++)
        heed__release(&d->allocator, all[i]->at, (size_t)all[i]->room, sizeof(heed_real));
    heed__release(&d->allocator, c->lengths, (size_t)c->lengths_room, sizeof *c->lengths);
    heed__release(&d->allocator, c, 1, sizeof *c);
}

/* ---- start ---- */

static bool keep_lengths(const heed_decoder *d, const heed_segments *source)
{
    struct caches *c = d->parts;
    if (source->count > c->lengths_room) {
        heed__release(&d->allocator, c->lengths, (size_t)c->lengths_room, sizeof *c->lengths);
        c->lengths_room = 0;
        c->lengths = heed__allocate(&d->allocator, (size_t)source->count, sizeof *c->lengths);
        if (!c->lengths)
            return false;
        c->lengths_room = source->count;
    }
    for (int64_t b = 0; b < source->count; b++)
        c->lengths[b] = source->offset[b + 1] - source->offset[b];
    c->source_rows = source->rows;
    return true;
}

void heed__transformer_start(heed_decoder *d, const heed_batch *batch)
{
    const heed__transformer *m = d->model->parts;
    struct caches *c = d->parts;
    const int64_t count = batch->source->rows * c->width;
    heed_tensor *memory = heed__transformer_encode(m, d->tape, batch, NULL);
    if (!keep_lengths(d, batch->source) || !reserve(d, &c->source, m->decoder_layers * count)) {
        heed_tape_fail(d->tape, HEED_MEMORY, "no memory to decode %lld source tokens",
                       (long long)batch->source->rows);
        return;
    }
    for (int i = 0; i < m->decoder_layers; i++) {
        const heed_tensor *kv = heed_linear_apply(d->tape, &m->decoder[i].cross.kv, memory);
        if (kv)
            memcpy(c->source.at + i * count, kv->data, (size_t)count * sizeof(heed_real));
    }
}

/* ---- step ---- */

struct step {
    const heed__transformer *m;
    const heed_decoder *d;
    struct caches *c;
    const heed_segments *one;            /* a query for each row */
    const heed_segments *target;         /* and its keys */
    const heed_segments *rows_of_source; /* the queries of each sentence */
    const heed_segments *source;
};

/* Kept numbers as a tensor of this step. */
static heed_tensor *wrap(heed_tape *t, heed_real *at, int64_t rows, int64_t cols)
{
    heed_tensor *x = heed_arena_allocate(heed_tape_arena(t), sizeof *x);
    if (!x)
        return heed_tape_fail(t, HEED_MEMORY, "no memory to decode a token");
    heed__tensor_init(x, HEED_SHAPE(rows, cols), at);
    return x;
}

struct move {
    const heed_decoder *d;
    const heed_real *from; /* (rows before,length,width) */
    heed_real *to;         /* (rows,length+1,width) */
    const heed_tensor *kv; /* (rows,width) */
    int64_t width;
};

static void move_rows(void *context, int64_t begin, int64_t end, int thread)
{
    const struct move *m = context;
    const int64_t old = m->d->length * m->width;
    (void)thread;
    for (int64_t r = begin; r < end; r++) {
        heed_real *to = m->to + r * (old + m->width);
        if (old)
            memcpy(to, m->from + m->d->row[r].parent * old, (size_t)old * sizeof *to);
        memcpy(to + old, heed__row(m->kv, r), (size_t)m->width * sizeof *to);
    }
}

static heed_tensor *self_attention(void *context, heed_tape *t, int i, heed_tensor *x)
{
    const struct step *s = context;
    const heed_decoder *d = s->d;
    const struct caches *c = s->c;
    const heed_mha_layer *l = &s->m->decoder[i].self;
    heed_tensor *kv, *q = heed__mha_project(t, l, x, &kv);
    if (!kv)
        return NULL;
    const int64_t rows = d->rows * (d->length + 1);
    struct move m = {.d = d,
                     .from = c->target[0].at + i * d->rows_before * d->length * c->width,
                     .to = c->target[1].at + i * rows * c->width,
                     .kv = kv,
                     .width = c->width};
    heed__parallel(heed_tape_threads(t), d->rows, 1, (d->length + 1) * c->width, move_rows, &m);
    return heed__mha_attend(t, l, q, wrap(t, m.to, rows, c->width), s->one, s->target,
                            &(heed_attend_extra){.all_past = true});
}

static heed_tensor *cross_attention(void *context, heed_tape *t, int i, heed_tensor *x)
{
    const struct step *s = context;
    const struct caches *c = s->c;
    const heed_mha_layer *l = &s->m->decoder[i].cross;
    heed_tensor *q = heed_linear_apply(t, &l->q, x);
    heed_tensor *kv =
        wrap(t, c->source.at + i * c->source_rows * c->width, c->source_rows, c->width);
    return heed__mha_attend(t, l, q, kv, s->rows_of_source, s->source, NULL);
}

/* n segments as long as lengths says, or all of one length. */
static const heed_segments *segments(heed_tape *t, int64_t n, const int64_t *lengths, int64_t each)
{
    heed_arena *arena = heed_tape_arena(t);
    int64_t *same = lengths ? NULL : heed_arena_allocate(arena, (size_t)n * sizeof *same);
    for (int64_t i = 0; same && i < n; i++)
        same[i] = each;
    return lengths || same ? heed_segments_new(arena, n, lengths ? lengths : same) : NULL;
}

static const heed_segments *count_rows(const heed_decoder *d)
{
    int64_t *count =
        heed_arena_allocate(heed_tape_arena(d->tape), (size_t)d->sentences * sizeof *count);
    if (!count)
        return NULL;
    memset(count, 0, (size_t)d->sentences * sizeof *count);
    for (int64_t r = 0; r < d->rows; r++)
        count[d->row[r].sentence]++;
    return segments(d->tape, d->sentences, count, 0);
}

/* Every row's token stands at the same place. */
static heed_tensor *embed(const heed_decoder *d, const heed_embedding_layer *l,
                          const int32_t *token)
{
    heed_embedding_options o = {.scale = l->scale, .positions = l->positions};
    int32_t *place = heed_arena_allocate(heed_tape_arena(d->tape), (size_t)d->rows * sizeof *place);
    if (!place)
        return heed_tape_fail(d->tape, HEED_MEMORY, "no memory to decode %lld rows",
                              (long long)d->rows);
    for (int64_t r = 0; r < d->rows; r++)
        place[r] = (int32_t)d->length;
    o.position_ids = place;
    return heed_embedding(d->tape, l->table, token, d->rows, &o);
}

heed_tensor *heed__transformer_step(heed_decoder *d, const int32_t *token)
{
    const heed__transformer *m = d->model->parts;
    struct caches *c = d->parts;
    struct step s = {.m = m,
                     .d = d,
                     .c = c,
                     .one = segments(d->tape, d->rows, NULL, 1),
                     .target = segments(d->tape, d->rows, NULL, d->length + 1),
                     .rows_of_source = count_rows(d),
                     .source = segments(d->tape, d->sentences, c->lengths, 0)};
    const int64_t count = m->decoder_layers * d->rows * (d->length + 1) * c->width;
    if (!s.one || !s.target || !s.rows_of_source || !s.source || !reserve(d, &c->target[1], count))
        return heed_tape_fail(d->tape, HEED_MEMORY, "no memory to decode token %lld of %lld rows",
                              (long long)d->length + 1, (long long)d->rows);
    heed_tensor *h = heed__transformer_decode(m, d->tape, embed(d, &m->target, token),
                                              &(heed__attend){self_attention, cross_attention, &s});
    if (h) {
        struct buffer before = c->target[0];
        c->target[0] = c->target[1];
        c->target[1] = before;
    }
    return h;
}
