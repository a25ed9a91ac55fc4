/* Convolutions: conv2d, conv2d_transposed and conv1d, with zeros beyond the edges:
 *   y[o] = b + sum over taps k of x[o * stride - padding + k * dilation] W[k]
 * x is (N,C): pictures of Y·X rows one after the other, or the rows of segments; the kernel's taps
 * stand in the weights row by row, W (KY·KX·C,F).  Transposed, x stands on the coarse side and
 * each of its pixels adds to all that its taps reach.  2 N' K C F operations, twice that backward,
 * N' the rows of the coarse side, nothing is copied but the weights; fewer products where
 * conv_winograd.h can. */
#include "ops/conv_grid.h"

#include "base/parallel.h"

enum { X, WEIGHT, BIAS };
#define GRAIN 16
/* Sizes are counted in products of three of them. */
#define MOST ((int64_t)1 << 20)

typedef enum kind { DOWN, UP, ALONG } kind;

struct attributes {
    kind kind;
    heed_conv2d_options image;     /* DOWN, UP */
    heed_conv1d_options along;     /* ALONG */
    const heed_segments *segments; /* ALONG */
    const heed_segments **out;     /* ALONG: where the segments of y go, or NULL */
};

/* ---- shapes ---- */

static int64_t or_one(int64_t x)
{
    return x ? x : 1;
}

static heed_conv2d_options with_defaults(heed_conv2d_options o)
{
    o.stride = (heed_image_size){or_one(o.stride.y), or_one(o.stride.x)};
    o.dilation = (heed_image_size){or_one(o.dilation.y), or_one(o.dilation.x)};
    return o;
}

/* The number of places of a kernel; 0 where it does not fit. */
static int64_t places(int64_t size, int64_t padding, int64_t kernel, int64_t stride,
                      int64_t dilation)
{
    const int64_t free = size + padding - dilation * (kernel - 1) - 1;
    return size > 0 && free >= 0 ? free / stride + 1 : 0;
}

heed_image_size heed_conv2d_size(const heed_conv2d_options *options)
{
    if (!options)
        return (heed_image_size){0};
    const heed_conv2d_options o = with_defaults(*options);
    return (heed_image_size){
        places(o.image.y, 2 * o.padding.y, o.kernel.y, o.stride.y, o.dilation.y),
        places(o.image.x, 2 * o.padding.x, o.kernel.x, o.stride.x, o.dilation.x)};
}

heed_image_size heed_conv2d_transposed_size(const heed_conv2d_options *options)
{
    if (!options)
        return (heed_image_size){0};
    const heed_conv2d_options o = with_defaults(*options);
    return (heed_image_size){(o.image.y - 1) * o.stride.y - 2 * o.padding.y +
                                 o.dilation.y * (o.kernel.y - 1) + 1 + o.extra.y,
                             (o.image.x - 1) * o.stride.x - 2 * o.padding.x +
                                 o.dilation.x * (o.kernel.x - 1) + 1 + o.extra.x};
}

static bool inside(heed_image_size s, int64_t least)
{
    return s.y >= least && s.x >= least && s.y <= MOST && s.x <= MOST;
}

static heed_status image_grid(heed_opcall *c, heed__conv_grid *g)
{
    const struct attributes *a = c->attributes;
    const heed_conv2d_options o = with_defaults(a->image);
    const heed_tensor *x = c->in[X];
    const struct {
        const char *name;
        heed_image_size size;
        int64_t least;
    } sizes[] = {{"image", o.image, 1},       {"kernel", o.kernel, 1},   {"stride", o.stride, 1},
                 {"dilation", o.dilation, 1}, {"padding", o.padding, 0}, {"extra", o.extra, 0}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        if (!inside(sizes[i].size, sizes[i].least))
            return heed__op_fail(c, HEED_ARGUMENT, "%s is %lld x %lld, expected %lld to %lld",
                                 sizes[i].name, (long long)sizes[i].size.y,
                                 (long long)sizes[i].size.x, (long long)sizes[i].least,
                                 (long long)MOST);
    if (x->rows % (o.image.y * o.image.x))
        return heed__op_shape_fail(c, "x", x, "(B*%lld*%lld,C)", (long long)o.image.y,
                                   (long long)o.image.x);
    const bool up = a->kind == UP;
    const heed_image_size out = up ? heed_conv2d_transposed_size(&o) : heed_conv2d_size(&o);
    if (!inside(out, 1))
        return heed__op_fail(
            c, HEED_ARGUMENT,
            "a kernel of %lld x %lld gives pictures of %lld x %lld from %lld x %lld",
            (long long)o.kernel.y, (long long)o.kernel.x, (long long)out.y, (long long)out.x,
            (long long)o.image.y, (long long)o.image.x);
    if (up && (o.extra.y >= o.stride.y || o.extra.x >= o.stride.x))
        return heed__op_fail(c, HEED_ARGUMENT,
                             "extra is %lld x %lld, expected less than the stride %lld x %lld",
                             (long long)o.extra.y, (long long)o.extra.x, (long long)o.stride.y,
                             (long long)o.stride.x);
    *g = (heed__conv_grid){.fine = up ? out : o.image,
                           .coarse = up ? o.image : out,
                           .kernel = o.kernel,
                           .stride = o.stride,
                           .padding = o.padding,
                           .dilation = o.dilation,
                           .images = x->rows / (o.image.y * o.image.x)};
    return HEED_OK;
}

static heed_status segment_grid(heed_opcall *c, heed__conv_grid *g)
{
    const struct attributes *a = c->attributes;
    const heed_conv1d_options *o = &a->along;
    const heed_segments *s = a->segments;
    const heed_tensor *x = c->in[X];
    const int64_t stride = or_one(o->stride), dilation = or_one(o->dilation);
    if (!s)
        return heed__op_fail(c, HEED_ARGUMENT, "segments are NULL");
    if (x->rows != s->rows)
        return heed__op_shape_fail(c, "x", x, "(%lld,C), the rows of %lld segments",
                                   (long long)s->rows, (long long)s->count);
    if (!inside((heed_image_size){o->kernel, stride}, 1) ||
        !inside((heed_image_size){dilation, 1}, 1) || o->padding < 0 || o->padding > MOST ||
        (o->causal && o->padding))
        return heed__op_fail(c, HEED_ARGUMENT,
                             "kernel %lld, stride %lld, dilation %lld, padding %lld, expected 1 to "
                             "%lld each and no padding if causal",
                             (long long)o->kernel, (long long)stride, (long long)dilation,
                             (long long)o->padding, (long long)MOST);
    const int64_t reach = dilation * (o->kernel - 1);
    const int64_t padding = o->causal ? reach : o->padding;
    const heed_segments *coarse = s;
    int64_t *lengths = heed__keep(c, (size_t)(s->count + 1) * sizeof *lengths);
    if (!lengths)
        return HEED_MEMORY;
    bool same = true;
    for (int64_t b = 0; b < s->count; b++) {
        const int64_t length = s->offset[b + 1] - s->offset[b];
        lengths[b] = places(length, o->causal ? reach : 2 * padding, o->kernel, stride, dilation);
        same = same && lengths[b] == length;
    }
    if (!same && !(coarse = heed_segments_new(heed_tape_arena(c->tape), s->count, lengths)))
        return heed__op_fail(c, HEED_MEMORY, "out of memory for %lld segments",
                             (long long)s->count);
    if (a->out)
        *a->out = coarse;
    *g = (heed__conv_grid){.kernel = {1, o->kernel},
                           .stride = {1, stride},
                           .padding = {0, padding},
                           .dilation = {1, dilation},
                           .fine_rows = s,
                           .coarse_rows = coarse,
                           .images = s->count};
    return HEED_OK;
}

static heed_status shape(heed_opcall *c)
{
    const struct attributes *a = c->attributes;
    const heed_tensor *x = c->in[X], *w = c->in[WEIGHT], *b = c->in[BIAS];
    heed__conv_grid g;
    heed_status status = a->kind == ALONG ? segment_grid(c, &g) : image_grid(c, &g);
    if (status)
        return status;
    const int64_t taps = heed__conv_taps(&g);
    if (w->shape.rank != 2 || w->rows != taps * x->cols)
        return heed__op_shape_fail(c, "weight", w, "(%lld*%lld,F)", (long long)taps,
                                   (long long)x->cols);
    if (b && (b->rows != 1 || b->cols != w->cols))
        return heed__op_shape_fail(c, "bias", b, "(%lld)", (long long)w->cols);
    status = heed__save(c, sizeof g);
    if (!status)
        status = heed__conv_want_scratch(c, &g, x->cols, w->cols);
    if (status)
        return status;
    *(heed__conv_grid *)c->saved = g;
    const heed_image_size out = a->kind == UP ? g.fine : g.coarse;
    const int64_t rows = g.coarse_rows ? g.coarse_rows->rows : g.images * out.y * out.x;
    return heed__out(c, HEED_SHAPE(rows, w->cols));
}

/* ---- computing ---- */

static bool upwards(const heed_opcall *c)
{
    return ((const struct attributes *)c->attributes)->kind == UP;
}

static heed__conv_side side(const heed_tensor *x, const real *data)
{
    return (heed__conv_side){data, x->ld, x->cols};
}

static void forward(heed_opcall *c)
{
    const heed_tensor *x = c->in[X], *w = c->in[WEIGHT], *b = c->in[BIAS], *y = c->out[0];
    const heed__conv_gather job = {.to = y->data,
                                   .ld_to = y->ld,
                                   .cols_to = y->cols,
                                   .from = side(x, x->data),
                                   .weight = w->data,
                                   .tap = x->cols * w->ld,
                                   .row = w->ld,
                                   .col = 1,
                                   .bias = b ? b->data : NULL,
                                   .up = upwards(c)};
    heed__conv_run(c, c->saved, &job);
}

struct bias_sum {
    real *db, *dy;
    int64_t rows, ld;
};

static void bias_columns(void *context, int64_t begin, int64_t end, int thread)
{
    const struct bias_sum *s = context;
    (void)thread;
    heed__kernels()->column_sums(s->db + begin, s->dy + begin, s->ld, NULL, 0, s->rows,
                                 end - begin);
}

/* y[o] = b + sum of x[i] W[k] over all (i,o,k) that meet, so over the same ones
 * dx[i] += dy[o] W[k]^T,  dW[k] += x[i]^T dy[o],  db += dy[o] */
static void backward(heed_opcall *c)
{
    const heed_tensor *x = c->in[X], *w = c->in[WEIGHT], *y = c->out[0];
    real *dy = heed__out_grad(c, 0);
    if (heed__wants(c, BIAS)) {
        struct bias_sum s = {heed__grad(c, BIAS), dy, y->rows, y->ld};
        heed__parallel(heed__threads(c), y->cols, GRAIN, y->rows, bias_columns, &s);
    }
    if (heed__wants(c, X)) {
        real beta;
        real *dx = heed__grad_beta(c, X, &beta);
        const heed__conv_gather job = {.to = dx,
                                       .ld_to = x->ld,
                                       .cols_to = x->cols,
                                       .from = side(y, dy),
                                       .weight = w->data,
                                       .tap = x->cols * w->ld,
                                       .row = 1,
                                       .col = w->ld,
                                       .add = beta != 0,
                                       .up = !upwards(c)};
        heed__conv_run(c, c->saved, &job);
    }
    if (heed__wants(c, WEIGHT))
        heed__conv_weight_grad(c, c->saved, heed__grad(c, WEIGHT), w->ld, side(x, x->data),
                               side(y, dy), upwards(c));
}

/* ---- cases ---- */

struct arguments {
    heed_conv2d_options image;
    heed_conv1d_options along;
};

#define ALL(n, c, taps, f)                                                                         \
    {                                                                                              \
        HEED_DIMS2(n, c), HEED_DIMS2((taps) * (c), f), HEED_DIMS1(f)                               \
    }
static const heed_opcase conv2d_cases[] = {
    {.what = "3x3, padded",
     .in = ALL(2 * 4 * 5, 3, 9, 5),
     HEED_WITH(.image = {.image = {4, 5}, .kernel = {3, 3}, .padding = {1, 1}})},
    {.what = "stride 2, no bias",
     .in = {HEED_DIMS2(2 * 5 * 6, 2), HEED_DIMS2(9 * 2, 3)},
     HEED_WITH(.image = {.image = {5, 6}, .kernel = {3, 3}, .stride = {2, 2}, .padding = {1, 1}})},
    {.what = "strides, paddings, dilations that differ",
     .in = ALL(2 * 7 * 6, 2, 6, 3),
     HEED_WITH(.image = {.image = {7, 6},
                         .kernel = {2, 3},
                         .stride = {3, 2},
                         .padding = {2, 1},
                         .dilation = {2, 1}})},
    {.what = "1x1, stride 2: pixels without a tap",
     .in = ALL(5 * 5, 3, 1, 2),
     HEED_WITH(.image = {.image = {5, 5}, .kernel = {1, 1}, .stride = {2, 2}})},
    {.what = "patches",
     .in = ALL(2 * 4 * 4, 1, 4, 19),
     HEED_WITH(.image = {.image = {4, 4}, .kernel = {2, 2}, .stride = {2, 2}})},
    {.what = "a kernel as large as the picture",
     .in = ALL(3 * 2 * 3, 2, 6, 1),
     HEED_WITH(.image = {.image = {2, 3}, .kernel = {2, 3}})},
    {.what = "many channels: fewer products",
     .in = ALL(2 * 3, 24, 9, 24),
     HEED_WITH(.image = {.image = {2, 3}, .kernel = {3, 3}, .padding = {1, 1}})},
    {.what = "one pixel, all padding",
     .in = ALL(2, 7, 9, 3),
     HEED_WITH(.image = {.image = {1, 1}, .kernel = {3, 3}, .padding = {1, 1}})},
};
static const heed_opcase transposed_cases[] = {
    {.what = "4x4, stride 2: doubled",
     .in = ALL(2 * 3 * 2, 3, 16, 2),
     HEED_WITH(.image = {.image = {3, 2}, .kernel = {4, 4}, .stride = {2, 2}, .padding = {1, 1}})},
    {.what = "3x3, stride 2, extra",
     .in = ALL(2 * 3 * 3, 2, 9, 5),
     HEED_WITH(.image = {.image = {3, 3},
                         .kernel = {3, 3},
                         .stride = {2, 2},
                         .padding = {1, 1},
                         .extra = {1, 1}})},
    {.what = "a kernel smaller than the stride, no bias",
     .in = {HEED_DIMS2(2 * 2 * 2, 2), HEED_DIMS2(4 * 2, 3)},
     HEED_WITH(.image = {.image = {2, 2}, .kernel = {2, 2}, .stride = {3, 3}})},
    {.what = "dilated",
     .in = ALL(3 * 4, 2, 4, 3),
     HEED_WITH(
             .image = {.image = {3, 4}, .kernel = {2, 2}, .padding = {1, 0}, .dilation = {2, 3}})},
};
static const heed_opcase conv1d_cases[] = {
    {.what = "causal, dilated",
     .in = ALL(9, 3, 2, 5),
     HEED_WITH(.along = {.kernel = 2, .dilation = 2, .causal = true}),
     .lengths = {4, 0, 1, 4, -1}},
    {.what = "strided, padded, one segment too short",
     .in = ALL(10, 2, 4, 3),
     HEED_WITH(.along = {.kernel = 4, .stride = 2, .padding = 1}),
     .lengths = {5, 1, 4, -1}},
    {.what = "causal, strided, no bias",
     .in = {HEED_DIMS2(8, 2), HEED_DIMS2(3 * 2, 4)},
     HEED_WITH(.along = {.kernel = 3, .stride = 3, .causal = true}),
     .lengths = {7, 1, -1}},
    {.what = "same length",
     .in = ALL(7, 1, 3, 1),
     HEED_WITH(.along = {.kernel = 3, .padding = 1}),
     .lengths = {7, -1}},
};

static void run_down(heed_tape *t, const heed_opcase *c, heed_tensor **in, heed_tensor **out)
{
    const struct arguments *a = c->arguments;
    out[0] = heed_conv2d(t, in[X], in[WEIGHT], c->in[BIAS].rank ? in[BIAS] : NULL, &a->image);
}

static void run_up(heed_tape *t, const heed_opcase *c, heed_tensor **in, heed_tensor **out)
{
    const struct arguments *a = c->arguments;
    out[0] =
        heed_conv2d_transposed(t, in[X], in[WEIGHT], c->in[BIAS].rank ? in[BIAS] : NULL, &a->image);
}

static void run_along(heed_tape *t, const heed_opcase *c, heed_tensor **in, heed_tensor **out)
{
    const struct arguments *a = c->arguments;
    out[0] = heed_conv1d(t, in[X], in[WEIGHT], c->in[BIAS].rank ? in[BIAS] : NULL,
                         heed__case_segments(t, c->lengths), &a->along, NULL);
}

HEED_OP(conv2d,
        "y[o] = b + sum over k of x[o stride - padding + k dilation] W[k], in two dimensions",
        shape, forward, backward, conv2d_cases, run_down);
HEED_OP(conv2d_transposed, "y[o stride - padding + k dilation] += x[o] W[k], in two dimensions",
        shape, forward, backward, transposed_cases, run_up);
HEED_OP(conv1d, "y[o] = b + sum over k of x[o stride - padding + k dilation] W[k] inside a segment",
        shape, forward, backward, conv1d_cases, run_along);

static heed_tensor *convolve(heed_tape *t, const heed_op *op, heed_tensor *x, heed_tensor *weight,
                             heed_tensor *bias, const struct attributes *a)
{
    heed_tensor *in[] = {x, weight, bias};
    return heed__first(heed__apply(t, op, in, 3, 1u << BIAS, a, sizeof *a));
}

heed_tensor *heed_conv2d(heed_tape *t, heed_tensor *x, heed_tensor *weight, heed_tensor *bias,
                         const heed_conv2d_options *options)
{
    if (!t)
        return NULL;
    return convolve(t, &heed__op_conv2d, x, weight, bias,
                    &(struct attributes){.kind = DOWN, .image = *options});
}

heed_tensor *heed_conv2d_transposed(heed_tape *t, heed_tensor *x, heed_tensor *weight,
                                    heed_tensor *bias, const heed_conv2d_options *options)
{
    if (!t)
        return NULL;
    return convolve(t, &heed__op_conv2d_transposed, x, weight, bias,
                    &(struct attributes){.kind = UP, .image = *options});
}

heed_tensor *heed_conv1d(heed_tape *t, heed_tensor *x, heed_tensor *weight, heed_tensor *bias,
                         const heed_segments *segments, const heed_conv1d_options *options,
                         const heed_segments **out)
{
    if (!t)
        return NULL;
    return convolve(
        t, &heed__op_conv1d, x, weight, bias,
        &(struct attributes){.kind = ALONG, .along = *options, .segments = segments, .out = out});
}
