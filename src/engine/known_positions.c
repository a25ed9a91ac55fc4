/* known_positions.c: see known_positions.h. */
#include "engine/known_positions.h"

#include "base/error.h"
#include "base/memory.h"
#include <string.h>

/* Positions that are computed at a time. */
#define SOME 64

heed_status heed__positions_reserve(heed__known_positions *p, int64_t count, int64_t columns,
                                    heed__position_rows *rows, const void *context,
                                    const heed_allocator *allocator, heed_error *err)
{
    if (count <= p->known)
        return HEED_OK;
    const size_t row = (size_t)columns * sizeof *p->at;
    const int64_t known = (count + SOME - 1) / SOME * SOME;
    heed_real *grown = heed__allocate(allocator, (size_t)known, row);
    if (!grown)
        return heed__fail(err, HEED_MEMORY, "out of memory for %lld positions", (long long)known);
    if (p->known)
        memcpy(grown, p->at, (size_t)p->known * row);
    rows(grown + p->known * columns, p->known, known - p->known, columns, context);
    heed__positions_release(p, columns, allocator);
    *p = (heed__known_positions){grown, known};
    return HEED_OK;
}

void heed__positions_release(heed__known_positions *p, int64_t columns,
                             const heed_allocator *allocator)
{
    heed__release(allocator, p->at, (size_t)p->known, (size_t)columns * sizeof *p->at);
    *p = (heed__known_positions){0};
}
