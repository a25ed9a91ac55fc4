/* cells.c: see cells.h.  Memory comes in chunks of several cells. */
#include "engine/cells.h"
#include "base/memory.h"

#include <string.h>

#define CHUNK 32

void heed__cells_init(heed__cells *c, int64_t size, heed_allocator allocator)
{
    *c = (heed__cells){.allocator = allocator, .size = size};
}

static void release_chunks(const heed__cells *c, const heed__cell_slot *slot, int64_t begin,
                           int64_t end)
{
    for (int64_t i = begin; i < end; i += CHUNK)
        heed__release(&c->allocator, slot[i].at, CHUNK, (size_t)c->size * sizeof(heed_real));
}

void heed__cells_deinit(heed__cells *c)
{
    release_chunks(c, c->slot, 0, c->capacity);
    heed__release(&c->allocator, c->slot, (size_t)c->capacity, sizeof *c->slot);
    heed__cells_init(c, c->size, c->allocator);
}

static bool grow(heed__cells *c, int64_t capacity)
{
    heed__cell_slot *slot = heed__allocate_zeroed(&c->allocator, (size_t)capacity, sizeof *slot);
    if (!slot)
        return false;
    for (int64_t i = c->capacity; i < capacity; i++) {
        if (i % CHUNK == 0)
            slot[i].at = heed__allocate(&c->allocator, CHUNK, (size_t)c->size * sizeof *slot[i].at);
        else
            slot[i].at = slot[i - 1].at + c->size;
        if (!slot[i].at) {
            release_chunks(c, slot, c->capacity, i);
            heed__release(&c->allocator, slot, (size_t)capacity, sizeof *slot);
            return false;
        }
    }
    if (c->capacity)
        memcpy(slot, c->slot, (size_t)c->capacity * sizeof *slot);
    heed__release(&c->allocator, c->slot, (size_t)c->capacity, sizeof *slot);
    c->slot = slot;
    for (int64_t i = capacity; i > c->capacity; i--)
        slot[c->free_count++].free = (int32_t)(i - 1);
    c->capacity = capacity;
    return true;
}

bool heed__cells_reserve(heed__cells *c, int64_t count)
{
    if (count <= c->free_count)
        return true;
    int64_t capacity = c->capacity + (count - c->free_count + CHUNK - 1) / CHUNK * CHUNK;
    return capacity <= INT32_MAX && grow(c, capacity);
}

int32_t heed__cells_take(heed__cells *c)
{
    int32_t id = c->slot[--c->free_count].free;
    c->slot[id].uses = 1;
    return id;
}

void heed__cells_retain(heed__cells *c, const int32_t *id, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        c->slot[id[i]].uses++;
}

void heed__cells_release(heed__cells *c, const int32_t *id, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        if (--c->slot[id[i]].uses == 0)
            c->slot[c->free_count++].free = id[i];
}
