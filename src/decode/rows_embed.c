/* rows_embed.c: sections 3.4 and 3.5: a token's row of the table, looked up among the packed
 * columns, scaled, with its position.  Sinusoids are worked out as far as sentences reach: all that
 * a model could take would cost more than opening it. */
#include "base/error.h"
#include "base/memory.h"
#include "decode/rows.h"
#include "kernel/kernels.h"
#include "nn/params.h"

#include <string.h>

/* Places that are worked out at a time. */
#define PLACES 64

heed_status heed__rows_positions(heed__rows *r, int64_t count, heed_error *err)
{
    const int kind = r->w->config.transformer.positions;
    if (count <= r->known || kind == HEED_POSITIONS_NONE || kind == HEED_POSITIONS_LEARNED)
        return HEED_OK;
    const size_t row = (size_t)r->w->d * sizeof *r->positions;
    const int64_t known = (count + PLACES - 1) / PLACES * PLACES;
    heed_real *grown = heed__allocate(&r->allocator, (size_t)known, row);
    if (!grown)
        return heed__fail(err, HEED_MEMORY, "out of memory for %lld positions", (long long)known);
    if (r->known)
        memcpy(grown, r->positions, (size_t)r->known * row);
    heed__sinusoid_rows(grown + r->known * r->w->d, r->known, known - r->known, r->w->d,
                        (heed_positions)kind);
    heed__release(&r->allocator, r->positions, (size_t)r->known, row);
    r->positions = grown;
    r->known = known;
    return HEED_OK;
}

void heed__rows_embed(heed__rows *r, const heed__embedding_weights *e, int64_t i, int32_t token,
                      int64_t place)
{
    const heed_kernels *k = heed__kernels();
    const int64_t d = r->w->d;
    const heed_real *table = e->learned ? e->learned : r->positions;
    heed_real *x = r->pass.x + i * d;
    k->panel_column(x, &e->table, token, r->w->embedding_scale);
    if (table)
        k->arith(HEED__ADD, x, x, table + place * d, d);
}
