/* head_rows.c: heads as rows of their own, for what each head does with other rows. */
#include "attention/attend.h"

heed_tensor *heed__head_rows(heed_tape *t, heed_tensor *x, int heads)
{
    return x ? heed_reshape(t, x,
                            HEED_SHAPE(heed_tensor_rows(x) * heads, heed_tensor_cols(x) / heads))
             : NULL;
}

heed_tensor *heed__heads_apart(heed_tape *t, heed_tensor *x, const heed_segments *rows, int heads,
                               const heed_segments **each)
{
    heed_arena *arena = heed_tape_arena(t);
    const int64_t count = rows->count * heads;
    int64_t *length = heed_arena_allocate(arena, (size_t)(count + 1) * sizeof *length);
    int32_t *index = heed_arena_allocate(arena, (size_t)(rows->rows * heads + 1) * sizeof *index);
    int64_t n = 0;
    for (int64_t b = 0; length && index && b < rows->count; b++)
        for (int h = 0; h < heads; h++) {
            length[b * heads + h] = rows->offset[b + 1] - rows->offset[b];
            for (int64_t i = rows->offset[b]; i < rows->offset[b + 1]; i++)
                index[n++] = (int32_t)(i * heads + h);
        }
    *each = length && index ? heed_segments_new(arena, count, length) : NULL;
    if (!*each)
        return heed_tape_fail(t, HEED_MEMORY, "attention: no memory for %lld rows of %d heads",
                              (long long)rows->rows, heads);
    return heads == 1 ? x : heed_gather_rows(t, heed__head_rows(t, x, heads), index, n);
}
