/* cells.h: where keys and values lie while sentences are decoded.
 *
 * There are three pools: a cell holds the keys and values of one token of a hypothesis, or of a
 * source, in every decoder layer, or the state that attention without weights keeps of a row.  A
 * hypothesis is a list of cells of tokens, and one state.  Hypotheses that share a beginning share
 * its cells: reordering copies lists of numbers, never keys; a state that is shared is copied when
 * one of the rows goes on.  A cell is free again when nobody names it.  Freed memory is used again,
 * so that a long run stops allocating. */
#ifndef HEED_ENGINE_CELLS_H
#define HEED_ENGINE_CELLS_H

#include <heed/base.h>

typedef struct heed__cell_slot {
    heed_real *at;
    int32_t uses; /* lists that name this cell */
    int32_t free; /* slot[i].free for i < free_count: a stack of cells that nobody uses */
} heed__cell_slot;

typedef struct heed__cells {
    heed_allocator allocator;
    int64_t size;          /* of a cell, in numbers */
    heed__cell_slot *slot; /* (capacity), a multiple of the cells in a chunk */
    int64_t capacity, free_count;
} heed__cells;

void heed__cells_init(heed__cells *c, int64_t size, heed_allocator allocator);
void heed__cells_deinit(heed__cells *c);
/* `count` cells will be free; false when memory is short. */
bool heed__cells_reserve(heed__cells *c, int64_t count);
/* One that is free, used once now; there must be one. */
int32_t heed__cells_take(heed__cells *c);
/* One more list names these cells, or one less. */
void heed__cells_retain(heed__cells *c, const int32_t *id, int64_t count);
void heed__cells_release(heed__cells *c, const int32_t *id, int64_t count);

static inline heed_real *heed__cell_at(const heed__cells *c, int32_t id)
{
    return c->slot[id].at;
}

#endif
