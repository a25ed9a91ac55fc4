/* Embedding lookup with scale, positions and dropout:
 *   y_n = m * (scale * table[ids_n] + positions[position_ids_n])
 * table (V,D), positions (P,D) or absent, ids (N) -> (N,D).  A negative id is no row of the table:
 * it gives its position, or zeros, and no gradient to the table; an id beyond it is refused.  The
 * gradients are scattered with the columns divided among the threads and the rows in order: no sum
 * crosses threads. */
#include "base/parallel.h"
#include "tensor/op.h"

#include <heed/ops.h>
#include <string.h>

#define WORK 4   /* elementary operations per element */
#define GRAIN 16 /* columns: no two threads write one cache line */

enum { TABLE, POSITIONS };

struct attributes {
    const int32_t *ids, *position_ids;
    int64_t n;
    double scale, rate; /* rate 0 if the tape is not in training */
};

static heed_status check_ids(heed_opcall *c)
{
    const struct attributes *a = c->attributes;
    const heed_tensor *table = c->in[TABLE], *positions = c->in[POSITIONS];
    if (a->n < 0 || (a->n > 0 && !a->ids))
        return heed__op_fail(c, HEED_ARGUMENT, "n is %lld and ids %s", (long long)a->n,
                             a->ids ? "is there" : "is NULL");
    if (positions && a->n > 0 && !a->position_ids)
        return heed__op_fail(c, HEED_ARGUMENT, "positions without position_ids");
    for (int64_t i = 0; i < a->n; i++) {
        if (a->ids[i] >= table->rows)
            return heed__op_fail(c, HEED_ARGUMENT, "id %lld is %ld, expected less than %lld",
                                 (long long)i, (long)a->ids[i], (long long)table->rows);
        if (positions && (a->position_ids[i] < 0 || a->position_ids[i] >= positions->rows))
            return heed__op_fail(
                c, HEED_ARGUMENT, "position id %lld is %ld, expected 0 to less than %lld",
                (long long)i, (long)a->position_ids[i], (long long)positions->rows);
    }
    return HEED_OK;
}

static heed_status shape(heed_opcall *c)
{
    const struct attributes *a = c->attributes;
    const heed_tensor *table = c->in[TABLE], *positions = c->in[POSITIONS];
    if (table->shape.rank != 2)
        return heed__op_shape_fail(c, "table", table, "(V,D)");
    if (positions && (positions->shape.rank != 2 || positions->cols != table->cols))
        return heed__op_shape_fail(c, "positions", positions, "(P,%lld)", (long long)table->cols);
    if (!(a->rate >= 0 && a->rate < 1))
        return heed__op_fail(c, HEED_ARGUMENT, "dropout is %g, expected 0 <= rate < 1", a->rate);
    heed_status status = check_ids(c);
    if (!status)
        status = heed__out(c, HEED_SHAPE(a->n, table->cols));
    return status ? status : heed__want_scratch(c, (size_t)table->cols * sizeof(real));
}

/* The mask of columns [begin,end) of row i, in this thread's scratch; NULL without dropout. */
static const real *mask_of(const heed_opcall *c, const heed_rng *rng, int64_t i, int64_t begin,
                           int64_t end, int thread)
{
    const struct attributes *a = c->attributes;
    if (a->rate == 0)
        return NULL;
    real *mask = heed__scratch(c, thread);
    heed__kernels()->dropout_mask(mask, rng, (uint64_t)(i * c->out[0]->cols + begin), end - begin,
                                  a->rate);
    return mask;
}

static void forward_rows(void *context, int64_t begin, int64_t end, int thread)
{
    const heed_opcall *c = context;
    const struct attributes *a = c->attributes;
    const heed_tensor *table = c->in[TABLE], *positions = c->in[POSITIONS];
    const int64_t d = table->cols;
    const heed_rng rng = heed__rng(c);
    const heed_kernels *k = heed__kernels();
    for (int64_t i = begin; i < end; i++) {
        real *y = heed__row(c->out[0], i);
        const real *mask = mask_of(c, &rng, i, 0, d, thread);
        if (a->ids[i] < 0)
            memset(y, 0, (size_t)d * sizeof(real));
        else
            k->masked_add(y, NULL, heed__row(table, a->ids[i]), mask, (real)a->scale, d);
        if (positions)
            k->masked_add(y, y, heed__row(positions, a->position_ids[i]), mask, 1, d);
    }
}

static void forward(heed_opcall *c)
{
    const struct attributes *a = c->attributes;
    heed__parallel(heed__threads(c), a->n, 1, c->out[0]->cols * WORK, forward_rows, c);
}

struct scatter {
    const heed_opcall *c;
    const real *dy;
    real *to;
    int64_t ld;
    const int32_t *index;
    real scale;
};

static void scatter_columns(void *context, int64_t begin, int64_t end, int thread)
{
    const struct scatter *s = context;
    const struct attributes *a = s->c->attributes;
    const heed_rng rng = heed__rng(s->c);
    const int64_t d = s->c->out[0]->cols;
    for (int64_t i = 0; i < a->n; i++) {
        if (s->index[i] < 0)
            continue;
        real *to = s->to + s->index[i] * s->ld + begin;
        heed__kernels()->masked_add(to, to, s->dy + i * d + begin,
                                    mask_of(s->c, &rng, i, begin, end, thread), s->scale,
                                    end - begin);
    }
}

/* y_n = m (scale table[ids_n] + positions[position_ids_n]), so dtable[ids_n] += scale m dy_n and
 * dpositions[position_ids_n] += m dy_n */
static void backward(heed_opcall *c)
{
    const struct attributes *a = c->attributes;
    for (int i = TABLE; i <= POSITIONS; i++) {
        if (!heed__wants(c, i))
            continue;
        struct scatter s = {.c = c, .dy = heed__out_grad(c, 0), .to = heed__grad(c, i)};
        s.ld = c->in[i]->ld;
        s.index = i == TABLE ? a->ids : a->position_ids;
        s.scale = i == TABLE ? (real)a->scale : 1;
        heed__parallel(heed__threads(c), c->out[0]->cols, GRAIN, a->n * WORK, scatter_columns, &s);
    }
}

/* What a case gives besides tensors. */
struct arguments {
    int64_t n;
    double scale, dropout;
};

static void run(heed_tape *t, const heed_opcase *c, heed_tensor **in, heed_tensor **out)
{
    const struct arguments *a = c->arguments;
    static const int32_t ids[] = {2, 0, -1, 2, 1}, position_ids[] = {0, 1, 2, 1, 0};
    heed_embedding_options o = {.scale = a->scale,
                                .dropout = a->dropout,
                                .positions = in[POSITIONS],
                                .position_ids = position_ids};
    out[0] = heed_embedding(t, in[TABLE], ids, a->n, &o);
}

static const heed_opcase cases[] = {
    {.what = "one id, one column", .in = {HEED_DIMS2(3, 1)}, HEED_WITH(.n = 1)},
    {.what = "a negative and a repeated id",
     .in = {HEED_DIMS2(4, 5)},
     HEED_WITH(.n = 5, .scale = 2.5)},
    {.what = "positions",
     .in = {HEED_DIMS2(3, 7), HEED_DIMS2(3, 7)},
     HEED_WITH(.n = 5, .scale = 2.5)},
    {.what = "positions and dropout",
     .in = {HEED_DIMS2(3, 37), HEED_DIMS2(3, 37)},
     HEED_WITH(.n = 5, .scale = 0.5, .dropout = 0.2)},
};

HEED_OP(embedding, "y_n = dropout(scale table[ids_n] + positions[position_ids_n])", shape, forward,
        backward, cases, run);

heed_tensor *heed_embedding(heed_tape *t, heed_tensor *table, const int32_t *ids, int64_t n,
                            const heed_embedding_options *options)
{
    static const heed_embedding_options none = {0};
    const heed_embedding_options *o = options ? options : &none;
    struct attributes a = {.ids = ids, .position_ids = o->position_ids, .n = n};
    a.scale = o->scale == 0 ? 1 : o->scale;
    a.rate = o->dropout;
    if (t && a.rate > 0 && a.rate < 1 && !heed_tape_training(t))
        a.rate = 0;
    heed_tensor *in[] = {table, o->positions};
    return heed__first(heed__apply(t, &heed__op_embedding, in, 2, 1u << POSITIONS, &a, sizeof a));
}
