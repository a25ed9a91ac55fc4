/* segment_move.c: segment_shift and segment_reverse: moving rows inside their segment.  x (N,D) ->
 * (N,D).  Both compute the source row of each row and gather.
 *
 * shift by k: y[i] = x[i-k] of the same segment; outside the segment fill (D) or zeros. */
#include <heed/ops.h>

#include "ops/gather_rows.h"

struct attributes {
    const heed_segments *segments;
    int64_t by;
    bool reverse;
};

static heed_status shape(heed_opcall *c)
{
    const struct attributes *at = c->attributes;
    const heed_segments *s = at->segments;
    const heed_tensor *x = c->in[0], *fill = c->n_in > 1 ? c->in[1] : NULL;
    if (!s)
        return heed__op_fail(c, HEED_ARGUMENT, "segments are NULL");
    if (x->rows != s->rows)
        return heed__op_shape_fail(c, "x", x, "(%lld,D), the rows of %lld segments",
                                   (long long)s->rows, (long long)s->count);
    if (fill && (fill->rows != 1 || fill->cols != x->cols))
        return heed__op_shape_fail(c, "fill", fill, "(%lld)", (long long)x->cols);
    heed_status status = heed__save(c, (size_t)x->rows * sizeof(int32_t));
    if (status)
        return status;
    int32_t *source = c->saved; /* (N) source row, or -1 */
    for (int64_t b = 0; b < s->count; b++) {
        int64_t first = s->offset[b], end = s->offset[b + 1];
        for (int64_t i = first; i < end; i++) {
            /* No i - by: it might overflow. */
            bool inside = at->by >= 0 ? at->by <= i - first : at->by > i - end;
            int64_t from = at->reverse ? first + (end - 1 - i) : inside ? i - at->by : -1;
            source[i] = (int32_t)from;
        }
    }
    return heed__out(c, x->shape);
}

static void forward(heed_opcall *c)
{
    const heed_tensor *x = c->in[0], *fill = c->n_in > 1 ? c->in[1] : NULL;
    const int32_t *source = c->saved;
    real *y = c->out[0]->data;
    heed__take_rows(c, y, x->cols, x->data, x->ld, source, x->rows, x->cols, false);
    for (int64_t r = 0; fill && r < x->rows; r++)
        if (source[r] < 0)
            heed__kernels()->affine(y + r * x->cols, fill->data, 1, 0, x->cols);
}

/* y[i] = x[source[i]], or fill where there is no source, so dx[source[i]] += dy[i] or
 * dfill += dy[i] */
static void backward(heed_opcall *c)
{
    const heed_tensor *x = c->in[0];
    const int32_t *source = c->saved;
    const real *dy = heed__out_grad(c, 0);
    if (heed__wants(c, 0))
        heed__put_rows(c, heed__grad(c, 0), x->ld, dy, x->cols, source, x->rows, x->cols);
    if (c->n_in > 1 && heed__wants(c, 1)) {
        real *df = heed__grad(c, 1);
        for (int64_t r = 0; r < x->rows; r++)
            if (source[r] < 0)
                heed__kernels()->accumulate(df, dy + r * x->cols, 1, x->cols);
    }
}

/* What a case gives besides tensors. */
struct arguments {
    int64_t by;
};

static void run_shift(heed_tape *t, const heed_opcase *c, heed_tensor **in, heed_tensor **out)
{
    const struct arguments *a = c->arguments;
    out[0] = heed_segment_shift(t, in[0], heed__case_segments(t, c->lengths), a->by,
                                c->in[1].rank ? in[1] : NULL);
}

static void run_reverse(heed_tape *t, const heed_opcase *c, heed_tensor **in, heed_tensor **out)
{
    out[0] = heed_segment_reverse(t, in[0], heed__case_segments(t, c->lengths));
}

static const heed_opcase shift_cases[] = {
    {"down by one, zeros", {HEED_DIMS2(8, 5)}, HEED_WITH(.by = 1), .lengths = {3, 0, 4, 1, -1}},
    {"down by two, filled",
     {HEED_DIMS2(8, 9), HEED_DIMS1(9)},
     HEED_WITH(.by = 2),
     .lengths = {3, 0, 4, 1, -1}},
    {"up by one, filled",
     {HEED_DIMS2(5, 1), HEED_DIMS2(1, 1)},
     HEED_WITH(.by = -1),
     .lengths = {2, 3, -1}},
};
static const heed_opcase reverse_cases[] = {
    {"with an empty one", {HEED_DIMS2(8, 5)}, .lengths = {3, 0, 4, 1, -1}},
    {"one column", {HEED_DIMS2(2, 1)}, .lengths = {2, -1}},
};
HEED_OP(segment_shift, "y[i] = x[i - by] inside each segment, else fill", shape, forward, backward,
        shift_cases, run_shift);
HEED_OP(segment_reverse, "y[i] = x[last - i] inside each segment", shape, forward, backward,
        reverse_cases, run_reverse);

heed_tensor *heed_segment_shift(heed_tape *t, heed_tensor *x, const heed_segments *s, int64_t by,
                                heed_tensor *fill)
{
    return heed__first(heed__apply(t, &heed__op_segment_shift, (heed_tensor *[]){x, fill}, 2,
                                   1u << 1, &(struct attributes){s, by, false},
                                   sizeof(struct attributes)));
}

heed_tensor *heed_segment_reverse(heed_tape *t, heed_tensor *x, const heed_segments *s)
{
    return heed__first(heed__apply(t, &heed__op_segment_reverse, &x, 1, 0,
                                   &(struct attributes){s, 0, true}, sizeof(struct attributes)));
}
