/* kept.c: see kept.h. */
#include "model/kept.h"

#include "base/memory.h"
#include "tensor/tensor_fields.h"
#include <string.h>

bool heed__kept_reserve(const heed_decoder *d, heed__kept *k, int64_t count)
{
    if (count <= k->capacity)
        return true;
    const int64_t capacity =
        count > k->capacity + k->capacity / 2 ? count : k->capacity + k->capacity / 2;
    heed__kept_free(d, k);
    k->at = heed__allocate(&d->allocator, (size_t)capacity, sizeof *k->at);
    k->capacity = k->at ? capacity : 0;
    return k->at;
}

void heed__kept_free(const heed_decoder *d, heed__kept *k)
{
    heed__release(&d->allocator, k->at, (size_t)k->capacity, sizeof *k->at);
    *k = (heed__kept){NULL, 0};
}

heed_tensor *heed__kept_tensor(heed_tape *t, heed_real *at, int64_t rows, int64_t cols)
{
    heed_tensor *x = heed_arena_allocate(heed_tape_arena(t), sizeof *x);
    if (!x)
        return heed_tape_fail(t, HEED_MEMORY, "no memory to decode a token");
    heed__tensor_init(x, HEED_SHAPE(rows, cols), at);
    return x;
}

bool heed__sources_keep(const heed_decoder *d, heed__sources *s, const heed_segments *source)
{
    if (source->count > s->capacity) {
        heed__sources_free(d, s);
        s->lengths = heed__allocate(&d->allocator, (size_t)source->count, sizeof *s->lengths);
        if (!s->lengths)
            return false;
        s->capacity = source->count;
    }
    for (int64_t b = 0; b < source->count; b++)
        s->lengths[b] = source->offset[b + 1] - source->offset[b];
    s->count = source->count;
    s->rows = source->rows;
    return true;
}

void heed__sources_free(const heed_decoder *d, heed__sources *s)
{
    heed__release(&d->allocator, s->lengths, (size_t)s->capacity, sizeof *s->lengths);
    *s = (heed__sources){0};
}

const heed_segments *heed__sources_segments(const heed_decoder *d, const heed__sources *s)
{
    return heed_segments_new(heed_tape_arena(d->tape), s->count, s->lengths);
}

const heed_segments *heed__equal_segments(heed_tape *t, int64_t n, int64_t each)
{
    heed_arena *arena = heed_tape_arena(t);
    int64_t *lengths = heed_arena_allocate(arena, (size_t)n * sizeof *lengths);
    for (int64_t i = 0; lengths && i < n; i++)
        lengths[i] = each;
    return lengths ? heed_segments_new(arena, n, lengths) : NULL;
}

const heed_segments *heed__rows_of_sources(const heed_decoder *d)
{
    heed_arena *arena = heed_tape_arena(d->tape);
    const size_t bytes = (size_t)d->sentences * sizeof(int64_t);
    int64_t *count = heed_arena_allocate(arena, bytes);
    if (!count)
        return NULL;
    memset(count, 0, bytes);
    for (int64_t r = 0; r < d->rows; r++)
        count[d->row[r].sentence]++;
    return heed_segments_new(arena, d->sentences, count);
}
