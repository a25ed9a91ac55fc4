/* transpose.c: transpose_last, (M,N) -> (N,M), of rank 3 each matrix: (G,M,N) -> (G,N,M).  Tile by
 * tile, so that the strided side stays in cache.  Refuses other ranks. */
#include <heed/ops.h>

#include "base/min_max.h"
#include "base/parallel.h"
#include "tensor/op.h"

#define TILE 16

struct job {
    real *to;
    const real *from;
    int64_t ld_to, ld_from, rows, cols; /* of one matrix of `from` */
    bool add;
};

static heed_status shape(heed_opcall *c)
{
    heed_shape s = c->in[0]->shape;
    if (s.rank != 2 && s.rank != 3)
        return heed__op_shape_fail(c, "x", c->in[0], "(M,N) or (G,M,N)");
    int64_t m = s.dim[s.rank - 2];
    s.dim[s.rank - 2] = s.dim[s.rank - 1];
    s.dim[s.rank - 1] = m;
    return heed__out(c, s);
}

static void tile(const struct job *j, real *to, const real *from, int64_t rows, int64_t cols)
{
    for (int64_t i = 0; i < cols; i++)
        for (int64_t r = 0; r < rows; r++) {
            real x = from[r * j->ld_from + i];
            to[i * j->ld_to + r] = j->add ? to[i * j->ld_to + r] + x : x;
        }
}

/* A unit is a strip of TILE columns of one matrix: TILE rows of the target, of one thread only. */
static void strips(void *context, int64_t begin, int64_t end, int thread)
{
    const struct job *j = context;
    (void)thread;
    int64_t per_matrix = (j->cols + TILE - 1) / TILE;
    for (int64_t u = begin; u < end; u++) {
        int64_t g = u / per_matrix, col = u % per_matrix * TILE;
        real *to = j->to + (g * j->cols + col) * j->ld_to;
        const real *from = j->from + g * j->rows * j->ld_from + col;
        for (int64_t r = 0; r < j->rows; r += TILE)
            tile(j, to + r, from + r * j->ld_from, heed__min(TILE, j->rows - r),
                 heed__min(TILE, j->cols - col));
    }
}

static void transpose(const heed_opcall *c, struct job *j, int64_t matrices)
{
    int64_t units = matrices * ((j->cols + TILE - 1) / TILE);
    heed__parallel(heed__threads(c), units, 1, j->rows * TILE, strips, j);
}

static void forward(heed_opcall *c)
{
    const heed_tensor *x = c->in[0], *y = c->out[0];
    struct job j = {y->data, x->data, y->cols, x->ld, y->cols, x->cols, false};
    transpose(c, &j, x->shape.rank == 3 ? x->shape.dim[0] : 1);
}

/* y = x^T, so dx = dy^T */
static void backward(heed_opcall *c)
{
    const heed_tensor *x = c->in[0], *y = c->out[0];
    struct job j = {heed__grad(c, 0), heed__out_grad(c, 0), x->ld, y->cols, x->cols, y->cols, true};
    transpose(c, &j, x->shape.rank == 3 ? x->shape.dim[0] : 1);
}

static void run(heed_tape *t, const heed_opcase *c, heed_tensor **in, heed_tensor **out)
{
    (void)c;
    out[0] = heed_transpose_last(t, in[0]);
}

static const heed_opcase cases[] = {
    {"more than a tile", {HEED_DIMS2(19, 3)}, .domain = HEED_ANY},
    {"a row", {HEED_DIMS2(1, 18)}, .domain = HEED_ANY},
    {"rank 3", {HEED_DIMS3(2, 3, 5)}, .domain = HEED_ANY},
};
HEED_OP(transpose_last, "y[j,i] = x[i,j]", shape, forward, backward, cases, run);

heed_tensor *heed_transpose_last(heed_tape *t, heed_tensor *x)
{
    return heed__first(heed__apply(t, &heed__op_transpose_last, &x, 1, 0, NULL, 0));
}
