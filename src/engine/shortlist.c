/* shortlist.c: see shortlist.h.  Each sentence has its own list and its own packed columns, so that
 * what it gives does not depend on its neighbours. */
#include "engine/shortlist.h"
#include "base/error.h"
#include "base/file.h"
#include "base/memory.h"
#include "files/lex.h"
#include "text/special_ids.h"

#include <string.h>

/* ---- the file ---- */

static const int32_t *find(const heed_safetensors *f, const char *name, int64_t *count,
                           const char *path, heed_error *err)
{
    const heed_stored *s = heed_safetensors_find(f, name);
    if (!s || s->dtype != HEED_I32 || s->rank != 1 || (uintptr_t)s->data % sizeof(int32_t)) {
        heed__fail(err, HEED_FORMAT, "cannot load '%.255s': '%s' is not a list of whole numbers",
                   path, name);
        return NULL;
    }
    *count = s->dim[0];
    return s->data;
}

static bool within(const int32_t *x, int64_t count, int64_t limit)
{
    for (int64_t i = 0; i < count; i++)
        if (x[i] < 0 || x[i] >= limit)
            return false;
    return true;
}

static bool fits(const heed__shortlist *s, int64_t offsets, int64_t tokens)
{
    if (offsets != s->sources + 1 || s->offset[0] != 0 || s->offset[s->sources] != tokens)
        return false;
    for (int64_t i = 0; i < s->sources; i++)
        if (s->offset[i] > s->offset[i + 1])
            return false;
    return within(s->token, tokens, s->targets) && within(s->always, s->always_count, s->targets);
}

heed_status heed__shortlist_open(heed__shortlist *s, const char *path, int64_t sources,
                                 int64_t targets, const heed_allocator *allocator, heed_error *err)
{
    int64_t offsets, tokens;
    heed_error own = {0};
    *s = (heed__shortlist){.sources = sources, .targets = targets};
    s->file = heed_safetensors_open(path, allocator, &own);
    if (s->file && (s->offset = find(s->file, "offset", &offsets, path, &own)) &&
        (s->token = find(s->file, "token", &tokens, path, &own)) &&
        (s->always = find(s->file, "always", &s->always_count, path, &own)) &&
        !fits(s, offsets, tokens))
        heed__fail(&own, HEED_FORMAT, "cannot load '%.255s': it belongs to another model", path);
    if (!own.status)
        return HEED_OK;
    heed__shortlist_close(s);
    return heed__fail(err, own.status, "%s", own.text);
}

/* All of it copied: the file need not be aligned. */
static heed_status copy_lex(heed__shortlist *s, const heed__lex *l)
{
    int32_t *offset = heed_arena_allocate(s->arena, (size_t)(l->sources + 1) * sizeof *offset);
    int32_t *token = heed_arena_allocate(s->arena, (size_t)l->entries * sizeof *token);
    int32_t *always = heed_arena_allocate(s->arena, (size_t)l->first * sizeof *always);
    if (!offset || !token || !always)
        return HEED_MEMORY;
    for (int64_t i = 0; i <= l->sources; i++)
        offset[i] = (int32_t)heed__lex_offset(l, i);
    for (int64_t k = 0; k < l->entries; k++)
        token[k] = heed__lex_id(l, k);
    for (int64_t i = 0; i < l->first; i++)
        always[i] = (int32_t)i;
    s->offset = offset;
    s->token = token;
    s->always = always;
    s->always_count = l->first;
    return HEED_OK;
}

heed_status heed__shortlist_open_lex(heed__shortlist *s, const char *path, int64_t sources,
                                     int64_t targets, bool shared, const heed_allocator *allocator,
                                     heed_error *err)
{
    const void *bytes;
    size_t size;
    heed__lex lex;
    heed_status status = heed__file_map_unpacked(path, &bytes, &size, err);
    if (status)
        return status;
    *s = (heed__shortlist){
        .sources = sources, .targets = targets, .bergamot = true, .shared = shared};
    status = heed__lex_open(&lex, path, bytes, size, sources, targets, err);
    if (!status && (lex.first > targets || lex.entries > INT32_MAX))
        status = heed__fail(err, HEED_FORMAT,
                            "cannot open '%.255s': %lld pieces are on every list, the vocabulary "
                            "has %lld",
                            path, (long long)lex.first, (long long)targets);
    s->arena = status ? NULL : heed_arena_new(allocator, err);
    if (!status && (!s->arena || copy_lex(s, &lex)))
        status = heed__fail(err, HEED_MEMORY, "out of memory for '%.255s'", path);
    heed__file_unmap(bytes, size);
    if (status)
        heed__shortlist_close(s);
    return status;
}

void heed__shortlist_close(heed__shortlist *s)
{
    heed_safetensors_close(s->file);
    heed_arena_free(s->arena);
    *s = (heed__shortlist){0};
}

/* ---- a sentence's own ---- */

/* Bytes of `room` packed columns: weights, scales, sums. */
static size_t packed_bytes(const heed__panel_weights *w, int64_t room)
{
    const size_t columns = (size_t)(heed__panels(room) * HEED_PANEL);
    if (!w->bits)
        return (size_t)heed__panel_reals(w->k, room) * sizeof(heed_real);
    return (size_t)heed__panel_bytes(w->k, room) + columns * (sizeof(float) + sizeof(int32_t));
}

void heed__choice_free(heed__choice *c, const heed__panel_weights *output,
                       const heed_allocator *allocator)
{
    heed__release(allocator, c->id, (size_t)c->room, sizeof *c->id);
    heed__release(allocator, c->packed, 1, packed_bytes(output, c->room));
    heed__release(allocator, c->bias, (size_t)c->room, sizeof *c->bias);
    *c = (heed__choice){0};
}

static heed_status reserve(heed__choice *c, int64_t count, const heed__panel_weights *output,
                           const heed_allocator *allocator, heed_error *err)
{
    if (count <= c->room)
        return HEED_OK;
    heed__choice_free(c, output, allocator);
    const int64_t room = count + count / 4;
    c->id = heed__allocate(allocator, (size_t)room, sizeof *c->id);
    c->packed = heed__allocate(allocator, 1, packed_bytes(output, room));
    c->bias = heed__allocate(allocator, (size_t)room, sizeof *c->bias);
    c->room = room;
    if (c->id && c->packed && c->bias)
        return HEED_OK;
    heed__choice_free(c, output, allocator);
    return heed__fail(err, HEED_MEMORY, "out of memory for a shortlist of %lld pieces",
                      (long long)count);
}

/* Marks ids and returns how many were not marked before. */
static int64_t mark(uint64_t *marks, const int32_t *id, int64_t count)
{
    int64_t fresh = 0;
    for (int64_t i = 0; i < count; i++) {
        uint64_t *word = &marks[id[i] / 64], bit = (uint64_t)1 << id[i] % 64;
        fresh += !(*word & bit);
        *word |= bit;
    }
    return fresh;
}

/* What Bergamot has on a list beside the translations of the source's pieces. */
static int64_t mark_as_bergamot(const heed__shortlist *s, uint64_t *marks, int64_t count,
                                int32_t eos, const heed_tokens *source)
{
    if (eos >= 0 && eos < s->sources)
        count += mark(marks, s->token + s->offset[eos], s->offset[eos + 1] - s->offset[eos]);
    if (s->shared)
        count += mark(marks, source->id, source->count);
    for (int32_t next = (int32_t)s->always_count; count % 8 && next < s->targets; next++)
        count += mark(marks, &next, 1);
    return count;
}

/* The marked ids, ascending, and the marks taken away. */
static void collect(uint64_t *marks, int64_t words, int32_t *id)
{
    for (int64_t w = 0; w < words; w++)
        for (; marks[w]; marks[w] &= marks[w] - 1)
            *id++ = (int32_t)(64 * w + __builtin_ctzll(marks[w]));
}

heed_status heed__shortlist_choose(const heed__shortlist *s, const heed_pair_ids *ids,
                                   const heed_tokens *source, const heed_tokens *wanted,
                                   const heed__panel_weights *output, uint64_t *marks,
                                   heed__choice *c, const heed_allocator *allocator,
                                   heed_error *err)
{
    const int64_t words = (s->targets + 63) / 64;
    int64_t count = mark(marks, s->always, s->always_count);
    if (wanted)
        count += mark(marks, wanted->id, wanted->count);
    for (int64_t i = 0; i < source->count; i++) {
        const int32_t piece = source->id[i], begin = s->offset[piece];
        count += mark(marks, s->token + begin, s->offset[piece + 1] - begin);
        const int32_t which = heed__placeholder_of(&ids->source, piece);
        const int32_t same = ids->target.placeholder + which; /* its translation */
        if (which >= 0 && which < ids->target.placeholders && same < s->targets)
            count += mark(marks, &same, 1);
    }
    if (s->bergamot)
        count = mark_as_bergamot(s, marks, count, ids->source.eos, source);
    heed_status status = reserve(c, count, output, allocator, err);
    if (status) {
        memset(marks, 0, (size_t)words * sizeof *marks);
        return status;
    }
    collect(marks, words, c->id);
    c->count = count;
    heed__panel_select(&c->columns, c->packed, output, c->id, count);
    for (int64_t i = 0; output->bias && i < count; i++)
        c->bias[i] = output->bias[c->id[i]];
    c->columns.bias = output->bias ? c->bias : NULL;
    return HEED_OK;
}
