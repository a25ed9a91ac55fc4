/* full_decoder.c: decoding for any model that has hidden states: every step feeds the whole of each
 * row again, and its last hidden state is what the head reads.
 *
 * There is no cache, so token n costs n times the first.  It serves what cannot be cached, and is
 * what cached decoders are compared with.  From start to start it holds the source side of the
 * batch, from step to step the tokens of each row. */
#include "model/kept.h"

#include "base/error.h"
#include "base/memory.h"
#include <string.h>

struct everything {
    heed_arena *source_arena, *token_arena[2]; /* the second: now, and in the step before */
    heed_batch_side source;
    int32_t *token; /* (rows,length), of the step before */
};

static void close_all(heed_decoder *d)
{
    struct everything *e = d->parts;
    if (!e)
        return;
    heed_arena_free(e->source_arena);
    heed_arena_free(e->token_arena[0]);
    heed_arena_free(e->token_arena[1]);
    heed__release(&d->allocator, e, 1, sizeof *e);
}

static heed_status open_all(heed_decoder *d, heed_error *err)
{
    struct everything *e = d->parts = heed__allocate_zeroed(&d->allocator, 1, sizeof *e);
    if (e)
        e->source_arena = heed_arena_new(&d->allocator, NULL);
    for (int i = 0; e && i < 2; i++)
        e->token_arena[i] = heed_arena_new(&d->allocator, NULL);
    if (!e || !e->source_arena || !e->token_arena[0] || !e->token_arena[1])
        return heed__fail(err, HEED_MEMORY, "no memory for a decoder");
    return HEED_OK;
}

/* ---- the source, a copy for each row ---- */

/* Rows of `from`, (rows,bytes): those of sequence pick[i] behind those of pick[i-1].  True for
 * none. */
static bool pick_rows(heed_arena *arena, const void *from, const heed_segments *s,
                      const heed_segments *picked, const int32_t *pick, size_t bytes,
                      const void **to)
{
    *to = NULL;
    if (!from)
        return true;
    char *out = heed_arena_allocate(arena, (size_t)picked->rows * bytes);
    for (int64_t i = 0; out && i < picked->count; i++)
        memcpy(out + (size_t)picked->offset[i] * bytes,
               (const char *)from + (size_t)s->offset[pick[i]] * bytes,
               (size_t)(picked->offset[i + 1] - picked->offset[i]) * bytes);
    *to = out;
    return out;
}

/* Sequence i is sequence pick[i] of `from`, if that is there.  False when memory is short. */
static bool pick_sequences(heed_arena *arena, const heed_batch_side *from, const int32_t *pick,
                           int64_t count, heed_batch_side *to)
{
    const heed_segments *s = from->rows;
    if (!s)
        return true;
    int64_t *lengths = heed_arena_allocate(arena, (size_t)count * sizeof *lengths);
    for (int64_t i = 0; lengths && i < count; i++)
        lengths[i] = s->offset[pick[i] + 1] - s->offset[pick[i]];
    const heed_segments *rows = lengths ? heed_segments_new(arena, count, lengths) : NULL;
    const void *ids, *types, *features;
    if (!rows || !pick_rows(arena, from->ids, s, rows, pick, sizeof *from->ids, &ids) ||
        !pick_rows(arena, from->types, s, rows, pick, sizeof *from->types, &types) ||
        !pick_rows(arena, from->features, s, rows, pick,
                   (size_t)from->width * sizeof *from->features, &features))
        return false;
    *to = (heed_batch_side){rows, ids, types, features, from->width};
    return true;
}

static void start(heed_decoder *d, const heed_batch *batch)
{
    struct everything *e = d->parts;
    heed_arena_reset(e->source_arena);
    e->source = (heed_batch_side){0};
    if (!(d->model->class->sides & HEED_SOURCE))
        return;
    const int64_t n = batch->source.rows->count;
    int32_t *all = heed_arena_allocate(heed_tape_arena(d->tape), (size_t)n * sizeof *all);
    for (int64_t i = 0; all && i < n; i++)
        all[i] = (int32_t)i;
    if (!all || !pick_sequences(e->source_arena, &batch->source, all, n, &e->source))
        heed_tape_fail(d->tape, HEED_MEMORY, "no memory to decode %lld source tokens",
                       (long long)batch->source.rows->rows);
}

/* ---- step ---- */

/* Each row as its parent left it, and its new token behind.  False when memory is short. */
static bool append_tokens(const heed_decoder *d, struct everything *e, const int32_t *token)
{
    const int64_t old = d->length, length = old + 1;
    heed_arena *now = e->token_arena[length % 2];
    heed_arena_reset(now);
    int32_t *to = heed_arena_allocate(now, (size_t)(d->rows * length) * sizeof *to);
    for (int64_t r = 0; to && r < d->rows; r++) {
        if (old)
            memcpy(to + r * length, e->token + d->row[r].parent * old, (size_t)old * sizeof *to);
        to[r * length + old] = token[r];
    }
    e->token = to;
    return to;
}

static heed_tensor *step(heed_decoder *d, const int32_t *token)
{
    struct everything *e = d->parts;
    heed_arena *arena = heed_tape_arena(d->tape);
    heed_batch batch = {.examples = d->rows};
    int32_t *sentence = heed_arena_allocate(arena, (size_t)d->rows * sizeof *sentence);
    int32_t *last = heed_arena_allocate(arena, (size_t)d->rows * sizeof *last);
    for (int64_t r = 0; sentence && last && r < d->rows; r++) {
        sentence[r] = d->row[r].sentence;
        last[r] = (int32_t)(r * (d->length + 1) + d->length);
    }
    batch.target.rows = heed__equal_segments(d->tape, d->rows, d->length + 1);
    if (!sentence || !last || !batch.target.rows || !append_tokens(d, e, token) ||
        !pick_sequences(arena, &e->source, sentence, d->rows, &batch.source))
        return heed_tape_fail(d->tape, HEED_MEMORY, "no memory to decode token %lld of %lld rows",
                              (long long)d->length + 1, (long long)d->rows);
    batch.target.ids = e->token;
    heed__forward f = {0};
    heed_tensor *h = d->model->class->hidden(d->model, d->tape, &batch, &f);
    return heed_gather_rows(d->tape, h, last, d->rows); /* (rows,D) */
}

const heed__decoder_class heed__full_decoder = {open_all, close_all, start, step};
