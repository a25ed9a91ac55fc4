/* rows_embed.c: what a stack begins with (model/input.c): a token's row of the table, looked up
 * among the packed columns, scaled, or features times a matrix; with position and type. */
#include "engine/session_rows.h"
#include "kernel/kernels.h"
#include "nn/params.h"

#include <string.h>

static heed__known_positions *positions_of(heed__rows *r, const heed__packed_stack *s)
{
    return &r->positions[s == r->w->decoder];
}

static void sinusoid_rows(heed_real *to, int64_t first, int64_t count, int64_t d,
                          const void *context)
{
    const heed__packed_stack *s = context;
    heed__sinusoid_rows(to, first, count, d, s->input.positions);
}

heed_status heed__rows_positions(heed__rows *r, const heed__packed_stack *s, int64_t count,
                                 heed_error *err)
{
    const heed_positions kind = s->input.positions;
    heed_status status = heed__pass_positions(&r->pass, count, err);
    if (status || !heed_positions_are_sinusoids(kind))
        return status;
    return heed__positions_reserve(positions_of(r, s), count, s->d, sinusoid_rows, s, &r->allocator,
                                   err);
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
    if (s->input.zero_start && position == 0)
        memset(x, 0, (size_t)s->d * sizeof *x);
    else
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
