/* ntm_content.c: content addressing of a head (Graves, Wayne, Danihelka 2014, equations 5 and 6):
 * w_i = softmax_i(beta cos(k, M_i)), cos(k, M_i) = k.M_i / (|k| |M_i| + eps).  memory (B,M,N), k
 * (B,H*M), beta (B,H) -> w (B,H*N): H heads side by side in a row.
 *
 * A row of the memory holds one element of all N locations, so that every loop runs along the
 * locations: no sum across a register.  Saves |M_i|, |k| and the cosines. */
#include <heed/ops.h>

#include "base/parallel.h"
#include "tensor/op.h"

#include <math.h>

enum { MEMORY, KEY, BETA };
#define EPS ((real)1e-8)
enum { WORK = 12 }; /* operations per location and element, backward */

static heed_status shape(heed_opcall *c)
{
    const heed_tensor *memory = c->in[MEMORY], *k = c->in[KEY], *beta = c->in[BETA];
    if (memory->shape.rank != 3 || memory->shape.dim[1] < 1 || memory->cols < 1)
        return heed__op_shape_fail(c, "memory", memory, "(B,M,N)");
    int64_t b = memory->shape.dim[0], m = memory->shape.dim[1], n = memory->cols;
    if (k->rows != b || k->cols < m || k->cols % m)
        return heed__op_shape_fail(c, "k", k, "(%lld,H*%lld)", (long long)b, (long long)m);
    int64_t heads = k->cols / m;
    if (beta->rows != b || beta->cols != heads)
        return heed__op_shape_fail(c, "beta", beta, "(%lld,%lld)", (long long)b, (long long)heads);
    heed_status status = heed__save(c, (size_t)(b * (n + heads * (n + 1))) * sizeof(real));
    if (status || (status = heed__out(c, HEED_SHAPE(b, heads * n))))
        return status;
    return heed__want_scratch(c, (size_t)(3 * n) * sizeof(real));
}

/* What one sequence of the batch saves: the norms of its locations and, for each head, that of the
 * key and the cosines. */
struct kept {
    real *lengths; /* (N) */
    real *key;     /* (H) */
    real *cosines; /* (H,N) */
};

static struct kept kept_of(const heed_opcall *c, int64_t b)
{
    int64_t n = c->in[MEMORY]->cols, heads = c->in[BETA]->cols;
    real *at = (real *)c->saved + b * (n + heads * (n + 1));
    return (struct kept){at, at + n, at + n + heads};
}

/* Row m of sequence b's memory, or of its gradient. */
static int64_t memory_row(const heed_tensor *memory, int64_t b, int64_t m)
{
    return (b * memory->shape.dim[1] + m) * memory->ld;
}

static void match(const heed_opcall *c, int64_t b, int64_t h, real *z)
{
    const heed_kernels *kernels = heed__kernels();
    const heed_tensor *memory = c->in[MEMORY];
    int64_t m = memory->shape.dim[1], n = memory->cols;
    const real *k = heed__row(c->in[KEY], b) + h * m;
    real beta = heed__row(c->in[BETA], b)[h];
    struct kept kept = kept_of(c, b);
    real *cosines = kept.cosines + h * n;
    real length = (real)sqrt((double)kernels->row_dot(k, k, m));
    kept.key[h] = length;
    kernels->memory_match(cosines, memory->data + memory_row(memory, b, 0), memory->ld, k, m, n);
    kernels->affine(z, kept.lengths, length, EPS, n);
    kernels->arith(HEED__DIV, cosines, cosines, z, n);
    kernels->affine(z, cosines, beta, 0, n);
    kernels->softmax_rows(heed__row(c->out[0], b) + h * n, z, n, 1, n);
}

static void forward_rows(void *context, int64_t begin, int64_t end, int thread)
{
    const heed_opcall *c = context;
    const heed_kernels *kernels = heed__kernels();
    const heed_tensor *memory = c->in[MEMORY];
    int64_t m = memory->shape.dim[1], n = memory->cols;
    for (int64_t b = begin; b < end; b++) {
        real *lengths = kept_of(c, b).lengths;
        kernels->memory_squares(lengths, memory->data + memory_row(memory, b, 0), memory->ld, m, n);
        kernels->unary(HEED__UNARY_SQRT, lengths, lengths, n);
        for (int64_t h = 0; h < c->in[BETA]->cols; h++)
            match(c, b, h, heed__scratch(c, thread));
    }
}

static void forward(heed_opcall *c)
{
    const heed_tensor *memory = c->in[MEMORY];
    heed__parallel(heed__threads(c), memory->shape.dim[0], 1,
                   memory->shape.dim[1] * memory->cols * (1 + c->in[BETA]->cols), forward_rows, c);
}

struct grads {
    heed_opcall *c;
    const real *dw;
    real *memory, *k, *beta; /* NULL where no gradient is needed */
};

/* Forward, from the last line to the first, and its derivatives:
 *   w = softmax(z)               dz = w (dw - sum dw w)
 *   z = beta cos                 dbeta = sum_i dz_i cos_i
 *   cos_i = d_i / q_i            dd = beta dz / q
 *   d_i = k.M_i,                 dk = sum_i dd_i M_i - k / |k| sum_i dd_i cos_i |M_i|
 *   q_i = |k| |M_i| + eps        dM_i = dd_i k - M_i / |M_i| dd_i cos_i |k|
 * A key or a location of norm 0 has no direction: its second term is omitted. */
static void head_grads(const struct grads *s, int64_t b, int64_t h, real *scratch)
{
    const heed_kernels *kernels = heed__kernels();
    const heed_tensor *memory = s->c->in[MEMORY];
    int64_t m = memory->shape.dim[1], n = memory->cols, heads = s->c->in[BETA]->cols;
    const real *k = heed__row(s->c->in[KEY], b) + h * m;
    struct kept kept = kept_of(s->c, b);
    const real *cosines = kept.cosines + h * n;
    real beta = heed__row(s->c->in[BETA], b)[h], length = kept.key[h];
    real *dd = scratch, *q = scratch + n, *along = scratch + 2 * n;
    kernels->softmax_backward(dd, n, s->dw + (b * heads + h) * n,
                              heed__row(s->c->out[0], b) + h * n, 1, n, true);
    if (s->beta)
        s->beta[b * s->c->in[BETA]->ld + h] += kernels->row_dot(dd, cosines, n);
    kernels->affine(q, kept.lengths, length, EPS, n);
    kernels->affine(dd, dd, beta, 0, n);
    kernels->arith(HEED__DIV, dd, dd, q, n);
    kernels->arith(HEED__MUL, along, dd, cosines, n); /* dd cos */
    if (s->k) {
        real *dk = s->k + b * s->c->in[KEY]->ld + h * m;
        real back = length > 0 ? -kernels->row_dot(along, kept.lengths, n) / length : 0;
        for (int64_t j = 0; j < m; j++)
            dk[j] += kernels->row_dot(dd, memory->data + memory_row(memory, b, j), n) + back * k[j];
    }
    if (!s->memory)
        return;
    for (int64_t i = 0; i < n; i++)
        along[i] *= kept.lengths[i] > 0 ? -length / kept.lengths[i] : 0;
    int64_t first = memory_row(memory, b, 0);
    kernels->memory_match_grad(s->memory + first, memory->data + first, memory->ld, dd, along, k, m,
                               n);
}

static void backward_rows(void *context, int64_t begin, int64_t end, int thread)
{
    const struct grads *s = context;
    for (int64_t b = begin; b < end; b++)
        for (int64_t h = 0; h < s->c->in[BETA]->cols; h++)
            head_grads(s, b, h, heed__scratch(s->c, thread));
}

static void backward(heed_opcall *c)
{
    const heed_tensor *memory = c->in[MEMORY];
    struct grads s = {.c = c,
                      .dw = heed__out_grad(c, 0),
                      .memory = heed__wants(c, MEMORY) ? heed__grad(c, MEMORY) : NULL,
                      .k = heed__wants(c, KEY) ? heed__grad(c, KEY) : NULL,
                      .beta = heed__wants(c, BETA) ? heed__grad(c, BETA) : NULL};
    heed__parallel(heed__threads(c), memory->shape.dim[0], 1,
                   memory->shape.dim[1] * memory->cols * c->in[BETA]->cols * WORK, backward_rows,
                   &s);
}

static void run(heed_tape *t, const heed_opcase *c, heed_tensor **in, heed_tensor **out)
{
    (void)c;
    out[0] = heed_ntm_content(t, in[MEMORY], in[KEY], in[BETA]);
}

/* Not vectors of one element: their cosine is always 1 or -1. */
static const heed_opcase cases[] = {
    {"one head", {HEED_DIMS3(2, 3, 9), HEED_DIMS2(2, 3), HEED_DIMS2(2, 1)}, .domain = HEED_ANY},
    {"two heads", {HEED_DIMS3(3, 2, 5), HEED_DIMS2(3, 4), HEED_DIMS2(3, 2)}, .domain = HEED_ANY},
    {"one sequence, two locations",
     {HEED_DIMS3(1, 3, 2), HEED_DIMS2(1, 3), HEED_DIMS2(1, 1)},
     .domain = HEED_ANY},
};
HEED_OP(ntm_content, "w_i = softmax_i(beta k.M_i / (|k| |M_i| + eps))", shape, forward, backward,
        cases, run);

heed_tensor *heed_ntm_content(heed_tape *t, heed_tensor *memory, heed_tensor *k, heed_tensor *beta)
{
    heed_tensor *in[] = {memory, k, beta};
    return heed__first(heed__apply(t, &heed__op_ntm_content, in, 3, 0, NULL, 0));
}
