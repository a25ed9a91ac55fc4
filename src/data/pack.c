/* pack.c: packing sentences one after the other.  Sources end with EOS; targets are packed twice,
 * as decoder input (the starting token first) and as labels (EOS last). */
#include "base/error.h"
#include "data/batches.h"
#include "text/special_ids.h"

#include <string.h>

/* Every sentence gets a token `before` or `after` its own; -1 for none. */
static int32_t *lay(heed_arena *arena, const heed_segments *s, const heed_tokens *tokens,
                    int32_t before, int32_t after)
{
    int32_t *ids = heed_arena_allocate(arena, (size_t)s->rows * sizeof *ids);
    if (!ids)
        return NULL;
    for (int64_t b = 0; b < s->count; b++) {
        int32_t *to = ids + s->offset[b];
        if (before >= 0)
            *to++ = before;
        if (tokens[b].count)
            memcpy(to, tokens[b].id, (size_t)tokens[b].count * sizeof *to);
        if (after >= 0)
            to[tokens[b].count] = after;
    }
    return ids;
}

/* The segments of sentences with `more` tokens each. */
static heed_status measure(heed_arena *arena, const heed_tokens *tokens, int64_t count,
                           int64_t more, int64_t *length, const heed_segments **segments,
                           heed_error *err)
{
    int64_t rows = 0;
    for (int64_t b = 0; b < count; b++) {
        if (tokens[b].count < 0 || tokens[b].count >= INT32_MAX - rows)
            return heed__fail(err, HEED_ARGUMENT,
                              "cannot pack %lld sentences: sentence %lld with %lld tokens makes "
                              "more than %d",
                              (long long)count, (long long)b, (long long)tokens[b].count,
                              INT32_MAX);
        length[b] = tokens[b].count + more;
        rows += length[b];
    }
    *segments = heed_segments_new(arena, count, length);
    return *segments ? HEED_OK
                     : heed__fail(err, HEED_MEMORY, "out of memory for a batch of %lld tokens",
                                  (long long)rows);
}

heed_status heed__batch_pack(heed_arena *arena, const heed_pair_ids *ids,
                             const heed_tokens *sources, const heed_tokens *targets,
                             const int64_t *pair, int64_t count, bool whole, heed_batch *batch,
                             heed_error *err)
{
    *batch = (heed_batch){0};
    const heed_special_ids from = ids ? heed__ids_or_own(&ids->source) : HEED_OWN_IDS;
    const heed_special_ids to = ids ? heed__ids_or_own(&ids->target) : HEED_OWN_IDS;
    if (count < 0 || count > INT32_MAX)
        return heed__fail(err, HEED_ARGUMENT, "cannot pack %lld sentences", (long long)count);
    heed_batch made = {.examples = count};
    int64_t *length = heed_arena_allocate(arena, (size_t)count * sizeof *length);
    int64_t *index = heed_arena_allocate(arena, (size_t)count * sizeof *index);
    if (!length || !index)
        goto memory;
    for (int64_t b = 0; b < count; b++)
        index[b] = pair ? pair[b] : b;
    made.example = index;
    heed_status status =
        measure(arena, sources, count, from.eos >= 0, length, &made.source.rows, err);
    if (!status && targets)
        status = measure(arena, targets, count, 1, length, &made.target.rows, err);
    if (status)
        return status;
    if (whole)
        made.source.ids = lay(arena, made.source.rows, sources, -1, from.eos);
    if (whole && targets) {
        made.target.ids = lay(arena, made.target.rows, targets, to.start, -1);
        made.wanted = lay(arena, made.target.rows, targets, -1, to.eos);
        made.wanted_count = made.target.rows->rows;
    }
    if (whole && (!made.source.ids || (targets && (!made.target.ids || !made.wanted))))
        goto memory;
    *batch = made;
    return HEED_OK;
memory:
    return heed__fail(err, HEED_MEMORY, "out of memory for a batch of %lld sentences",
                      (long long)count);
}

heed_status heed_batch_pack(heed_arena *arena, const heed_pair_ids *ids, const heed_tokens *sources,
                            const heed_tokens *targets, int64_t count, heed_batch *batch,
                            heed_error *err)
{
    if (!arena)
        return heed__missing(err, "arena");
    return heed__batch_pack(arena, ids, sources, targets, NULL, count, true, batch, err);
}
