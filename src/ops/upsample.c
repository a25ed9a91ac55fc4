/* upsample: each pixel of a picture becomes by.y x by.x of its kind (nearest neighbour):
 *   y[v,u] = x[v / by.y, u / by.x].  x (B·Y·X,C) -> (B·Y·by.y·X·by.x,C) */
#include <heed/ops.h>

#include "base/parallel.h"
#include "tensor/op.h"

#include <string.h>

#define MOST 65536 /* a side */

struct attributes {
    heed_image_size image, by;
};

struct job {
    const heed_kernels *k;
    struct attributes a;
    const heed_tensor *x;
    real *y, *dx;
    const real *dy;
};

static heed_status shape(heed_opcall *c)
{
    const struct attributes *a = c->attributes;
    const heed_tensor *x = c->in[0];
    if (a->image.y < 1 || a->image.x < 1 || a->by.y < 1 || a->by.x < 1 || a->image.y > MOST ||
        a->image.x > MOST || a->by.y > MOST || a->by.x > MOST)
        return heed__op_fail(c, HEED_ARGUMENT,
                             "image is %lld x %lld, by is %lld x %lld, expected 1 to %d",
                             (long long)a->image.y, (long long)a->image.x, (long long)a->by.y,
                             (long long)a->by.x, MOST);
    if (x->rows % (a->image.y * a->image.x))
        return heed__op_shape_fail(c, "x", x, "(B*%lld*%lld,C)", (long long)a->image.y,
                                   (long long)a->image.x);
    const int64_t area = a->by.y * a->by.x;
    if (x->rows > INT64_MAX / area)
        return heed__op_fail(c, HEED_ARGUMENT, "%lld rows times %lld are too many",
                             (long long)x->rows, (long long)area);
    return heed__out(c, HEED_SHAPE(x->rows * area, x->cols));
}

static struct job job_of(const heed_opcall *c)
{
    return (struct job){.k = heed__kernels(),
                        .a = *(const struct attributes *)c->attributes,
                        .x = c->in[0],
                        .y = c->out[0]->data};
}

/* Rows of x: one pixel after the other, to all places that it goes to. */
static void pixels(void *context, int64_t begin, int64_t end, int thread)
{
    const struct job *j = context;
    (void)thread;
    const int64_t d = j->x->cols, width = j->a.image.x;
    for (int64_t r = begin; r < end; r++) {
        /* Lines of all pictures are numbered through. */
        const int64_t line = r / width, x = r % width;
        for (int64_t v = 0; v < j->a.by.y; v++)
            for (int64_t u = 0; u < j->a.by.x; u++) {
                const int64_t to = (line * j->a.by.y + v) * width * j->a.by.x + x * j->a.by.x + u;
                if (j->dx)
                    j->k->accumulate(j->dx + r * j->x->ld, j->dy + to * d, 1, d);
                else
                    memcpy(j->y + to * d, heed__row(j->x, r), (size_t)d * sizeof(real));
            }
    }
}

static void forward(heed_opcall *c)
{
    struct job j = job_of(c);
    heed__parallel(heed__threads(c), j.x->rows, 1, j.a.by.y * j.a.by.x * j.x->cols, pixels, &j);
}

/* y = x at several places, so dx = the sum of dy there */
static void backward(heed_opcall *c)
{
    struct job j = job_of(c);
    j.dy = heed__out_grad(c, 0);
    j.dx = heed__grad(c, 0);
    heed__parallel(heed__threads(c), j.x->rows, 1, j.a.by.y * j.a.by.x * j.x->cols, pixels, &j);
}

/* What a case gives besides tensors. */
struct arguments {
    heed_image_size image, by;
};

static void run(heed_tape *t, const heed_opcase *c, heed_tensor **in, heed_tensor **out)
{
    const struct arguments *a = c->arguments;
    out[0] = heed_upsample(t, in[0], a->image, a->by);
}

static const heed_opcase cases[] = {
    {.what = "doubled", .in = {HEED_DIMS2(2 * 2 * 3, 5)}, HEED_WITH(.image = {2, 3}, .by = {2, 2})},
    {.what = "one axis", .in = {HEED_DIMS2(3 * 2, 1)}, HEED_WITH(.image = {3, 2}, .by = {1, 3})},
};
HEED_OP(upsample, "y[v,u] = x[v / by.y, u / by.x]", shape, forward, backward, cases, run);

heed_tensor *heed_upsample(heed_tape *t, heed_tensor *x, heed_image_size image, heed_image_size by)
{
    return heed__first(heed__apply(t, &heed__op_upsample, &x, 1, 0, &(struct attributes){image, by},
                                   sizeof(struct attributes)));
}
