/* rows_embed.c: what a stack begins with (model/input.c): a token's row of the table, looked up
 * among the packed columns, scaled, or features times a matrix; with position and type.
 * Sinusoids are computed as far as sentences reach: all that a model could take would cost more
 * than opening it. / */
#include "base/error.h"
#include "base/memory.h"
#include "engine/session_rows.h"
#include "kernel/kernels.h"
#include "nn/params.h"

#include <string.h>

/* Positions that are computed at a time. */
#define SOME 64

static heed__row_positions *positions_of(heed__rows *r, const heed__packed_stack *s)
{
    return &r->positions[s == r->w->decoder];
}

heed_status heed__rows_positions(heed__rows *r, const heed__packed_stack *s, int64_t count,
                                 heed_error *err)
{
    heed__row_positions *p = positions_of(r, s);
    const heed_positions kind = s->input.positions;
    if (count <= p->known || kind == HEED_POSITIONS_NONE || kind == HEED_POSITIONS_LEARNED)
        return HEED_OK;
    const size_t row = (size_t)s->d * sizeof *p->at;
    const int64_t known = (count + SOME - 1) / SOME * SOME;
    heed_real *grown = heed__allocate(&r->allocator, (size_t)known, row);
    if (!grown)
        return heed__fail(err, HEED_MEMORY, "out of memory for %lld positions", (long long)known);
    if (p->known)
        memcpy(grown, p->at, (size_t)p->known * row);
    heed__sinusoid_rows(grown + p->known * s->d, p->known, known - p->known, s->d, kind);
    heed__release(&r->allocator, p->at, (size_t)p->known, row);
    *p = (heed__row_positions){grown, known};
    return HEED_OK;
}

/* Adds P[position] and E_types[type]. */
static void add_rest(heed__rows *r, const heed__packed_stack *s, heed_real *x, int32_t type,
                     int64_t position)
{
    const heed_kernels *k = heed__kernels();
    const heed_real *learned = s->input.learned, *types = s->input.types;
    const heed_real *table = learned ? learned : positions_of(r, s)->at;
    if (table)
        k->arith(HEED__ADD, x, x, table + position * s->d, s->d);
    if (types)
        k->arith(HEED__ADD, x, x, types + type * s->d, s->d);
}

void heed__rows_embed(heed__rows *r, const heed__packed_stack *s, int64_t i, int32_t token,
                      int32_t type, int64_t position)
{
    heed_real *x = r->pass.x + i * s->d;
    heed__kernels()->panel_column(x, &s->input.table, token, s->input.scale);
    add_rest(r, s, x, type, position);
}

void heed__rows_embed_features(heed__rows *r, const heed__packed_stack *s, int64_t i,
                               const heed__sequence *q)
{
    heed_real *x = r->pass.x + i * s->d;
    heed__pass_linear(&r->pass, &s->input.features, x, q->feature, q->count);
    for (int64_t n = 0; n < q->count; n++)
        add_rest(r, s, x + n * s->d, q->type ? q->type[n] : 0, n);
}

void heed__rows_embed_norm(heed__rows *r, const heed__packed_stack *s, int64_t rows)
{
    if (s->input.norm.gain)
        heed__pass_norm(&r->pass, &s->input.norm, r->pass.x, r->pass.x, NULL, rows);
}
