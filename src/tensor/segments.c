/* segments.c: the offsets of a packed batch and its time-major view, computed once per batch.
 *
 * Packed: sentence after sentence.  Time-major: step after step, sentences sorted by length, so
 * that the ones still running at step t are the first rows of it. */
#include "base/memory.h"
#include "tensor/tensor_fields.h"

#include <string.h>

/* Slots by length, longest first, ties in the given order: a counting sort. */
static void sort_by_length(int32_t *order, int64_t *starts, const int64_t *lengths, int64_t count,
                           int64_t longest)
{
    memset(starts, 0, (size_t)(longest + 2) * sizeof *starts);
    for (int64_t b = 0; b < count; b++)
        starts[longest - lengths[b] + 1]++;
    for (int64_t l = 0; l < longest; l++)
        starts[l + 1] += starts[l];
    for (int64_t b = 0; b < count; b++)
        order[starts[longest - lengths[b]]++] = (int32_t)b;
}

const heed_segments *heed_segments_new(heed_arena *arena, int64_t count, const int64_t *lengths)
{
    if (!arena || count < 0 || count > INT32_MAX || (count && !lengths))
        return NULL;
    int64_t rows = 0, longest = 0;
    for (int64_t b = 0; b < count; b++) {
        if (lengths[b] < 0 || lengths[b] > INT32_MAX || rows > INT32_MAX - lengths[b])
            return NULL;
        rows += lengths[b];
        longest = lengths[b] > longest ? lengths[b] : longest;
    }
    heed_segments *s = heed_arena_allocate(arena, sizeof *s);
    int64_t *offset = heed_arena_allocate(arena, (size_t)(count + 1) * sizeof *offset);
    int64_t *step_offset = heed_arena_allocate(arena, (size_t)(longest + 2) * sizeof *step_offset);
    int32_t *order = heed_arena_allocate(arena, (size_t)count * sizeof *order);
    int32_t *slot = heed_arena_allocate(arena, (size_t)count * sizeof *slot);
    int32_t *to_time = heed_arena_allocate(arena, (size_t)rows * sizeof *to_time);
    int32_t *to_packed = heed_arena_allocate(arena, (size_t)rows * sizeof *to_packed);
    if (!s || !offset || !step_offset || !order || !slot || !to_time || !to_packed)
        return NULL;

    offset[0] = 0;
    for (int64_t b = 0; b < count; b++)
        offset[b + 1] = offset[b] + lengths[b];
    sort_by_length(order, step_offset, lengths, count, longest);
    for (int64_t p = 0; p < count; p++)
        slot[order[p]] = (int32_t)p;

    int64_t row = 0;
    for (int64_t t = 0; t < longest; t++) {
        step_offset[t] = row;
        for (int64_t p = 0; p < count && lengths[order[p]] > t; p++, row++) {
            int64_t packed = offset[order[p]] + t;
            to_time[row] = (int32_t)packed;
            to_packed[packed] = (int32_t)row;
        }
    }
    step_offset[longest] = row;
    *s =
        (heed_segments){count, rows, longest, offset, step_offset, order, slot, to_time, to_packed};
    return s;
}
