/* ntm_location.c: location addressing of a head (Graves, Wayne, Danihelka 2014, equations 7 to 9):
 *   interpolate  w^g = g w^c + (1 - g) w_prev
 *   shift        w~_i = sum_j w^g_j s(i - j), indices modulo N: a circular convolution
 *   sharpen      w_i = w~_i^gamma / sum_j w~_j^gamma
 * content, previous (B,H*N), g, gamma (B,H), s (B,H*S) -> w (B,H*N): H heads side by side in a row.
 * Column c of a head's s is the offset c - S/2: with S = 3 the offsets -1, 0, +1.
 *
 * The power is computed by logarithms, softmax(gamma log(w~ + eps)), so that a sharp head neither
 * underflows to 0/0 nor has an infinite derivative.  Saves w^g, w~ + eps and its logarithm. */
#include <heed/ops.h>

#include "base/parallel.h"
#include "tensor/op.h"

#include <string.h>

enum { CONTENT, PREVIOUS, G, S, GAMMA };
#define EPS ((real)1e-16)
enum { WORK = 60 }; /* operations per location: a logarithm, an exponential, the shifts */

static heed_status shape(heed_opcall *c)
{
    const heed_tensor *w = c->in[CONTENT], *g = c->in[G], *s = c->in[S], *gamma = c->in[GAMMA];
    int64_t b = w->rows, heads = g->cols;
    if (w->cols < 1)
        return heed__op_shape_fail(c, "content", w, "(B,H*N)");
    if (c->in[PREVIOUS]->rows != b || c->in[PREVIOUS]->cols != w->cols)
        return heed__op_shape_fail(c, "previous", c->in[PREVIOUS], "(%lld,%lld) like content",
                                   (long long)b, (long long)w->cols);
    if (g->rows != b || heads < 1 || w->cols % heads)
        return heed__op_shape_fail(c, "g", g, "(%lld,H), H a divisor of %lld", (long long)b,
                                   (long long)w->cols);
    if (s->rows != b || s->cols % heads || s->cols / heads % 2 == 0)
        return heed__op_shape_fail(c, "s", s, "(%lld,%lld*S), S odd", (long long)b,
                                   (long long)heads);
    if (gamma->rows != b || gamma->cols != heads)
        return heed__op_shape_fail(c, "gamma", gamma, "(%lld,%lld)", (long long)b,
                                   (long long)heads);
    heed_status status = heed__save(c, (size_t)(3 * b * w->cols) * sizeof(real));
    if (status || (status = heed__out(c, HEED_SHAPE(b, w->cols))))
        return status;
    return heed__want_scratch(c, (size_t)(2 * w->cols / heads) * sizeof(real));
}

/* One head of one sequence. */
struct head {
    int64_t n, offsets;
    const real *content, *previous, *s;
    real g, gamma;
    real *w;
    real *mixed, *shifted, *logs; /* saved: w^g, w~ + eps, its logarithm */
};

static struct head head_of(const heed_opcall *c, int64_t b, int64_t h)
{
    int64_t heads = c->in[G]->cols, n = c->in[CONTENT]->cols / heads;
    int64_t offsets = c->in[S]->cols / heads;
    real *saved = (real *)c->saved + 3 * n * (b * heads + h);
    return (struct head){.n = n,
                         .offsets = offsets,
                         .content = heed__row(c->in[CONTENT], b) + h * n,
                         .previous = heed__row(c->in[PREVIOUS], b) + h * n,
                         .s = heed__row(c->in[S], b) + h * offsets,
                         .g = heed__row(c->in[G], b)[h],
                         .gamma = heed__row(c->in[GAMMA], b)[h],
                         .w = heed__row(c->out[0], b) + h * n,
                         .mixed = saved,
                         .shifted = saved + n,
                         .logs = saved + 2 * n};
}

/* The offset of column c of s, in [0,n). */
static int64_t offset_of(const struct head *p, int64_t column)
{
    int64_t by = (column - p->offsets / 2) % p->n;
    return by < 0 ? by + p->n : by;
}

/* y_i += scale x_{i - by}, 0 <= by < n: two ranges. */
static void add_rotated(real *y, const real *x, real scale, int64_t by, int64_t n)
{
    const heed_kernels *kernels = heed__kernels();
    kernels->accumulate(y + by, x, scale, n - by);
    kernels->accumulate(y, x + n - by, scale, by);
}

static void forward_rows(void *context, int64_t begin, int64_t end, int thread)
{
    const heed_opcall *c = context;
    const heed_kernels *kernels = heed__kernels();
    real *z = heed__scratch(c, thread);
    for (int64_t b = begin; b < end; b++)
        for (int64_t h = 0; h < c->in[G]->cols; h++) {
            struct head p = head_of(c, b, h);
            kernels->affine(p.mixed, p.content, p.g, 0, p.n);
            kernels->accumulate(p.mixed, p.previous, 1 - p.g, p.n);
            kernels->affine(p.shifted, p.mixed, 0, EPS, p.n);
            for (int64_t o = 0; o < p.offsets; o++)
                add_rotated(p.shifted, p.mixed, p.s[o], offset_of(&p, o), p.n);
            kernels->unary(HEED__UNARY_LOG, p.logs, p.shifted, p.n);
            kernels->affine(z, p.logs, p.gamma, 0, p.n);
            kernels->softmax_rows(p.w, z, p.n, 1, p.n);
        }
}

static void forward(heed_opcall *c)
{
    heed__parallel(heed__threads(c), c->in[G]->rows, 1, c->in[CONTENT]->cols * WORK, forward_rows,
                   c);
}

struct grads {
    heed_opcall *c;
    const real *dw;
    real *content, *previous, *g, *s, *gamma; /* NULL where no gradient is needed */
};

/* Forward, from the last line to the first, and its derivatives:
 *   w = softmax(z)                    dz = w (dw - sum dw w)
 *   z = gamma log w~                  dgamma = sum dz log w~, dw~ = gamma dz / w~
 *   w~_i = sum_o s(o) w^g_{i-o}       ds(o) = sum_i dw~_i w^g_{i-o}, dw^g_j = sum_o s(o) dw~_{j+o}
 *   w^g = g w^c + (1 - g) w_prev      dg = sum dw^g (w^c - w_prev), dw^c = g dw^g,
 *                                     dw_prev = (1 - g) dw^g */
static void head_grads(const struct grads *s, int64_t b, int64_t h, real *scratch)
{
    const heed_kernels *kernels = heed__kernels();
    heed_opcall *c = s->c;
    struct head p = head_of(c, b, h);
    real *dz = scratch, *dmixed = scratch + p.n;
    kernels->softmax_backward(dz, p.n, s->dw + b * c->out[0]->cols + h * p.n, p.w, 1, p.n, true);
    if (s->gamma)
        s->gamma[b * c->in[GAMMA]->ld + h] += kernels->row_dot(dz, p.logs, p.n);
    kernels->affine(dz, dz, p.gamma, 0, p.n);
    kernels->arith(HEED__DIV, dz, dz, p.shifted, p.n);
    memset(dmixed, 0, (size_t)p.n * sizeof *dmixed);
    for (int64_t o = 0; o < p.offsets; o++) {
        int64_t by = offset_of(&p, o);
        if (s->s)
            s->s[b * c->in[S]->ld + h * p.offsets + o] +=
                kernels->row_dot(dz + by, p.mixed, p.n - by) +
                kernels->row_dot(dz, p.mixed + p.n - by, by);
        add_rotated(dmixed, dz, p.s[o], by ? p.n - by : 0, p.n);
    }
    if (s->g)
        s->g[b * c->in[G]->ld + h] +=
            kernels->row_dot(dmixed, p.content, p.n) - kernels->row_dot(dmixed, p.previous, p.n);
    if (s->content)
        kernels->accumulate(s->content + b * c->in[CONTENT]->ld + h * p.n, dmixed, p.g, p.n);
    if (s->previous)
        kernels->accumulate(s->previous + b * c->in[PREVIOUS]->ld + h * p.n, dmixed, 1 - p.g, p.n);
}

static void backward_rows(void *context, int64_t begin, int64_t end, int thread)
{
    const struct grads *s = context;
    for (int64_t b = begin; b < end; b++)
        for (int64_t h = 0; h < s->c->in[G]->cols; h++)
            head_grads(s, b, h, heed__scratch(s->c, thread));
}

static void backward(heed_opcall *c)
{
    real *grad[5];
    for (int i = 0; i < 5; i++)
        grad[i] = heed__wants(c, i) ? heed__grad(c, i) : NULL;
    struct grads s = {.c = c,
                      .dw = heed__out_grad(c, 0),
                      .content = grad[CONTENT],
                      .previous = grad[PREVIOUS],
                      .g = grad[G],
                      .s = grad[S],
                      .gamma = grad[GAMMA]};
    heed__parallel(heed__threads(c), c->in[G]->rows, 1, c->in[CONTENT]->cols * WORK, backward_rows,
                   &s);
}

static void run(heed_tape *t, const heed_opcase *c, heed_tensor **in, heed_tensor **out)
{
    (void)c;
    out[0] = heed_ntm_location(t, in[CONTENT], in[PREVIOUS], in[G], in[S], in[GAMMA]);
}

/* Positive inputs, so that the shifted weights stay positive even if g > 1.  With one tensor as
 * content and previous g would have no gradient: their shapes differ. */
static const heed_opcase cases[] = {
    {"one head",
     {HEED_DIMS2(2, 9), HEED_DIMS3(2, 1, 9), HEED_DIMS2(2, 1), HEED_DIMS2(2, 3), HEED_DIMS2(2, 1)},
     .domain = HEED_POSITIVE},
    {"two heads, five offsets",
     {HEED_DIMS2(2, 14), HEED_DIMS3(2, 1, 14), HEED_DIMS2(2, 2), HEED_DIMS2(2, 10),
      HEED_DIMS2(2, 2)},
     .domain = HEED_POSITIVE},
    {"more offsets than locations",
     {HEED_DIMS2(1, 2), HEED_DIMS1(2), HEED_DIMS2(1, 1), HEED_DIMS2(1, 5), HEED_DIMS2(1, 1)},
     .domain = HEED_POSITIVE},
};
HEED_OP(ntm_location, "w_i ~ (sum_j (g w^c_j + (1-g) w_prev_j) s(i-j))^gamma", shape, forward,
        backward, cases, run);

heed_tensor *heed_ntm_location(heed_tape *t, heed_tensor *content, heed_tensor *previous,
                               heed_tensor *g, heed_tensor *s, heed_tensor *gamma)
{
    heed_tensor *in[] = {content, previous, g, s, gamma};
    return heed__first(heed__apply(t, &heed__op_ntm_location, in, 5, 0, NULL, 0));
}
