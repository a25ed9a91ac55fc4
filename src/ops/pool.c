/* Pooling of pictures: max_pool2d and mean_pool2d, (B·Y·X,C) -> (B·Y'·X',C), over windows of
 * kernel.y x kernel.x pixels, those beyond the edges left out: of the maximum, and of what the mean
 * is divided by.
 *
 * max: the gradient goes to the first maximum, found again in backward; NaN is the largest. */
#include <heed/ops.h>

#include "base/min_max.h"
#include "base/parallel.h"
#include "tensor/op.h"

#define MOST 65536 /* a side */

struct attributes {
    bool max;
    heed_pool2d_options o;
};

struct job {
    const heed_kernels *k;
    bool max;
    heed_pool2d_options o;
    heed_image_size out;
    const heed_tensor *x;
    real *y, *dx;
    const real *dy;
    char *scratch; /* for each thread pointers to the pixels of a window, and to their gradients */
    size_t scratch_bytes;
};

static heed_pool2d_options with_defaults(heed_pool2d_options o)
{
    o.stride.y = o.stride.y ? o.stride.y : o.kernel.y;
    o.stride.x = o.stride.x ? o.stride.x : o.kernel.x;
    return o;
}

heed_image_size heed_pool2d_size(const heed_pool2d_options *options)
{
    if (!options)
        return (heed_image_size){0};
    const heed_pool2d_options o = with_defaults(*options);
    const heed_conv2d_options c = {
        .image = o.image, .kernel = o.kernel, .stride = o.stride, .padding = o.padding};
    return heed_conv2d_size(&c);
}

static bool sides(heed_image_size s, int64_t least)
{
    return s.y >= least && s.x >= least && s.y <= MOST && s.x <= MOST;
}

static heed_status shape(heed_opcall *c)
{
    const struct attributes *a = c->attributes;
    const heed_pool2d_options o = with_defaults(a->o);
    const heed_tensor *x = c->in[0];
    if (!sides(o.image, 1) || !sides(o.kernel, 1) || !sides(o.stride, 1) || !sides(o.padding, 0))
        return heed__op_fail(c, HEED_ARGUMENT,
                             "image %lld x %lld, kernel %lld x %lld, stride %lld x %lld, padding "
                             "%lld x %lld, expected 1 to %d, padding from 0",
                             (long long)o.image.y, (long long)o.image.x, (long long)o.kernel.y,
                             (long long)o.kernel.x, (long long)o.stride.y, (long long)o.stride.x,
                             (long long)o.padding.y, (long long)o.padding.x, MOST);
    if (o.padding.y >= o.kernel.y || o.padding.x >= o.kernel.x)
        return heed__op_fail(c, HEED_ARGUMENT,
                             "padding is %lld x %lld, expected less than the kernel %lld x %lld",
                             (long long)o.padding.y, (long long)o.padding.x, (long long)o.kernel.y,
                             (long long)o.kernel.x);
    const int64_t pixels = o.image.y * o.image.x;
    if (x->rows % pixels)
        return heed__op_shape_fail(c, "x", x, "(B*%lld*%lld,C)", (long long)o.image.y,
                                   (long long)o.image.x);
    const heed_image_size out = heed_pool2d_size(&o);
    if (out.y < 1 || out.x < 1)
        return heed__op_fail(c, HEED_ARGUMENT,
                             "a kernel of %lld x %lld does not fit a picture of %lld x %lld",
                             (long long)o.kernel.y, (long long)o.kernel.x, (long long)o.image.y,
                             (long long)o.image.x);
    heed_status status =
        heed__want_scratch(c, 2 * (size_t)(o.kernel.y * o.kernel.x) * sizeof(real *));
    return status ? status : heed__out(c, HEED_SHAPE(x->rows / pixels * out.y * out.x, x->cols));
}

static struct job job_of(const heed_opcall *c)
{
    const struct attributes *a = c->attributes;
    const heed_pool2d_options o = with_defaults(a->o);
    return (struct job){.k = heed__kernels(),
                        .max = a->max,
                        .o = o,
                        .out = heed_pool2d_size(&o),
                        .x = c->in[0],
                        .y = c->out[0]->data,
                        .scratch = heed__scratch(c, 0),
                        .scratch_bytes = 2 * (size_t)(o.kernel.y * o.kernel.x) * sizeof(real *)};
}

static int64_t taps(const struct job *j)
{
    return j->o.kernel.y * j->o.kernel.x;
}

/* The rows of x in the window of output row `row`: their numbers. */
static int64_t window(const struct job *j, int64_t row, int64_t *first, heed_image_size *size)
{
    const heed_pool2d_options *o = &j->o;
    const int64_t each = j->out.y * j->out.x, b = row / each, at = row % each;
    const int64_t top = at / j->out.x * o->stride.y - o->padding.y,
                  left = at % j->out.x * o->stride.x - o->padding.x;
    const int64_t y = heed__max(top, 0), x = heed__max(left, 0);
    size->y = heed__min(top + o->kernel.y, o->image.y) - y;
    size->x = heed__min(left + o->kernel.x, o->image.x) - x;
    *first = (b * o->image.y + y) * o->image.x + x;
    return size->y * size->x;
}

static const real **pointers(const struct job *j, int thread)
{
    return (const real **)(j->scratch + (size_t)thread * j->scratch_bytes);
}

static void compute(void *context, int64_t begin, int64_t end, int thread)
{
    const struct job *j = context;
    const real **from = pointers(j, thread);
    const int64_t d = j->x->cols;
    for (int64_t r = begin; r < end; r++) {
        int64_t first, n = 0;
        heed_image_size size;
        const int64_t count = window(j, r, &first, &size);
        real *y = j->y + r * d;
        for (int64_t v = 0; v < size.y; v++)
            for (int64_t u = 0; u < size.x; u++)
                from[n++] = heed__row(j->x, first + v * j->o.image.x + u);
        if (j->max) {
            j->k->pool_max(y, from, n, d);
            continue;
        }
        j->k->affine(y, from[0], (real)(1 / (double)count), 0, d);
        for (int64_t i = 1; i < n; i++)
            j->k->accumulate(y, from[i], (real)(1 / (double)count), d);
    }
}

static void forward(heed_opcall *c)
{
    struct job j = job_of(c);
    heed__parallel(heed__threads(c), c->out[0]->rows, 1, taps(&j) * j.x->cols, compute, &j);
}

/* max: y = x at the first maximum, so dx there += dy;  mean: y = sum x / n, so each dx += dy / n.
 * Windows may overlap: a thread has whole pictures. */
static void grad(void *context, int64_t begin, int64_t end, int thread)
{
    const struct job *j = context;
    const real **from = pointers(j, thread);
    real **to = (real **)(from + taps(j));
    const int64_t d = j->x->cols, ld = j->x->ld, each = j->out.y * j->out.x;
    for (int64_t r = begin * each; r < end * each; r++) {
        int64_t first, n = 0;
        heed_image_size size;
        const int64_t count = window(j, r, &first, &size);
        for (int64_t v = 0; v < size.y; v++)
            for (int64_t u = 0; u < size.x; u++, n++) {
                const int64_t row = first + v * j->o.image.x + u;
                from[n] = j->x->data + row * ld;
                to[n] = j->dx + row * ld;
            }
        if (j->max)
            j->k->pool_max_grad(to, from, j->y + r * d, j->dy + r * d, n, d);
        else
            for (int64_t i = 0; i < n; i++)
                j->k->accumulate(to[i], j->dy + r * d, (real)(1 / (double)count), d);
    }
}

static void backward(heed_opcall *c)
{
    struct job j = job_of(c);
    const int64_t each = j.out.y * j.out.x, images = c->out[0]->rows / each;
    j.dy = heed__out_grad(c, 0);
    j.dx = heed__grad(c, 0);
    heed__parallel(heed__threads(c), images, 1, each * taps(&j) * j.x->cols, grad, &j);
}

/* What a case gives besides tensors. */
struct arguments {
    heed_pool2d_options o;
};

static const heed_opcase cases[] = {
    {.what = "2x2",
     .in = {HEED_DIMS2(2 * 4 * 6, 5)},
     .domain = HEED_SPREAD,
     HEED_WITH(.o = {.image = {4, 6}, .kernel = {2, 2}})},
    {.what = "3x3, stride 2, padded: windows overlap",
     .in = {HEED_DIMS2(2 * 5 * 4, 3)},
     .domain = HEED_SPREAD,
     HEED_WITH(.o = {.image = {5, 4}, .kernel = {3, 3}, .stride = {2, 2}, .padding = {1, 1}})},
    {.what = "the whole picture",
     .in = {HEED_DIMS2(3 * 2 * 3, 1)},
     .domain = HEED_SPREAD,
     HEED_WITH(.o = {.image = {2, 3}, .kernel = {2, 3}})},
    {.what = "rows and columns left over",
     .in = {HEED_DIMS2(5 * 7, 9)},
     .domain = HEED_SPREAD,
     HEED_WITH(.o = {.image = {5, 7}, .kernel = {2, 3}})},
};

#define POOL(name_, max_, formula_)                                                                \
    static void run_##name_(heed_tape *t, const heed_opcase *c, heed_tensor **in,                  \
                            heed_tensor **out)                                                     \
    {                                                                                              \
        out[0] = heed_##name_(t, in[0], &((const struct arguments *)c->arguments)->o);             \
    }                                                                                              \
    HEED_OP(name_, formula_, shape, forward, backward, cases, run_##name_);                        \
    heed_tensor *heed_##name_(heed_tape *t, heed_tensor *x, const heed_pool2d_options *options)    \
    {                                                                                              \
        if (!t || !options)                                                                        \
            return NULL;                                                                           \
        return heed__first(heed__apply(t, &heed__op_##name_, &x, 1, 0,                             \
                                       &(struct attributes){max_, *options},                       \
                                       sizeof(struct attributes)));                                \
    }
POOL(max_pool2d, true, "y = max of x over the pixels of a window")
POOL(mean_pool2d, false, "y = mean of x over the pixels of a window")
