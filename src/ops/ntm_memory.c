/* ntm_memory.c: reading and writing a memory by weights over its locations (Graves, Wayne,
 * Danihelka 2014, equations 2 to 4):
 *   read   r = sum_i w_i M_i
 *   write  M_i' = M_i prod_h (1 - w_hi e_h) + sum_h w_hi a_h: all heads erase, then all add
 * memory (B,M,N), one element of all locations in a row; w (B,H*N), e, a (B,H*M): H heads side by
 * side in a row -> r (B,H*M), memory (B,M,N). */
#include <heed/ops.h>

#include "base/parallel.h"
#include "tensor/op.h"

/* Sizes of a call. */
struct sizes {
    int64_t b, m, n, heads, ld;
};

static struct sizes sizes_of(const heed_tensor *memory, const heed_tensor *w)
{
    int64_t n = memory->cols;
    return (struct sizes){memory->shape.dim[0], memory->shape.dim[1], n, w->cols / n, memory->ld};
}

static int64_t memory_row(const struct sizes *s, int64_t b, int64_t m)
{
    return (b * s->m + m) * s->ld;
}

static heed_status check(heed_opcall *c, const heed_tensor *memory, const heed_tensor *w)
{
    if (memory->shape.rank != 3 || memory->shape.dim[1] < 1 || memory->cols < 1)
        return heed__op_shape_fail(c, "memory", memory, "(B,M,N)");
    if (w->rows != memory->shape.dim[0] || w->cols < 1 || w->cols % memory->cols)
        return heed__op_shape_fail(c, "w", w, "(%lld,H*%lld)", (long long)memory->shape.dim[0],
                                   (long long)memory->cols);
    return HEED_OK;
}

/* ---- read ---- */

enum { READ_W, READ_MEMORY };

static heed_status read_shape(heed_opcall *c)
{
    heed_status status = check(c, c->in[READ_MEMORY], c->in[READ_W]);
    if (status)
        return status;
    struct sizes s = sizes_of(c->in[READ_MEMORY], c->in[READ_W]);
    return heed__out(c, HEED_SHAPE(s.b, s.heads * s.m));
}

struct reading {
    heed_opcall *c;
    const real *dr;
    real *dw, *dmemory; /* NULL where no gradient is wanted */
};

static void read_rows(void *context, int64_t begin, int64_t end, int thread)
{
    const struct reading *k = context;
    const heed_tensor *memory = k->c->in[READ_MEMORY], *w = k->c->in[READ_W];
    struct sizes s = sizes_of(memory, w);
    (void)thread;
    for (int64_t b = begin; b < end; b++)
        for (int64_t h = 0; h < s.heads; h++)
            for (int64_t m = 0; m < s.m; m++)
                heed__row(k->c->out[0], b)[h * s.m + m] = heed__kernels()->row_dot(
                    heed__row(w, b) + h * s.n, memory->data + memory_row(&s, b, m), s.n);
}

static int64_t read_work(const heed_opcall *c)
{
    return c->in[READ_W]->cols * c->in[READ_MEMORY]->shape.dim[1];
}

static void read_forward(heed_opcall *c)
{
    heed__parallel(heed__threads(c), c->in[READ_W]->rows, 1, read_work(c), read_rows,
                   &(struct reading){.c = c});
}

/* r = sum_i w_i M_i, so dw_i = dr .  M_i; dM_i = w_i dr */
static void read_grads(void *context, int64_t begin, int64_t end, int thread)
{
    const struct reading *k = context;
    const heed_tensor *memory = k->c->in[READ_MEMORY], *w = k->c->in[READ_W];
    struct sizes s = sizes_of(memory, w);
    (void)thread;
    for (int64_t b = begin; b < end; b++)
        for (int64_t h = 0; h < s.heads; h++)
            for (int64_t m = 0; m < s.m; m++) {
                real dr = k->dr[(b * s.heads + h) * s.m + m];
                int64_t row = memory_row(&s, b, m), at = b * w->ld + h * s.n;
                if (k->dw)
                    heed__kernels()->accumulate(k->dw + at, memory->data + row, dr, s.n);
                if (k->dmemory)
                    heed__kernels()->accumulate(k->dmemory + row, w->data + at, dr, s.n);
            }
}

static void read_backward(heed_opcall *c)
{
    struct reading k = {.c = c,
                        .dr = heed__out_grad(c, 0),
                        .dw = heed__wants(c, READ_W) ? heed__grad(c, READ_W) : NULL,
                        .dmemory = heed__wants(c, READ_MEMORY) ? heed__grad(c, READ_MEMORY) : NULL};
    heed__parallel(heed__threads(c), c->in[READ_W]->rows, 1, 2 * read_work(c), read_grads, &k);
}

static void read_run(heed_tape *t, const heed_opcase *c, heed_tensor **in, heed_tensor **out)
{
    (void)c;
    out[0] = heed_ntm_read(t, in[READ_W], in[READ_MEMORY]);
}

static const heed_opcase read_cases[] = {
    {"one head", {HEED_DIMS2(2, 9), HEED_DIMS3(2, 3, 9)}, .domain = HEED_ANY},
    {"two heads", {HEED_DIMS2(3, 10), HEED_DIMS3(3, 2, 5)}, .domain = HEED_ANY},
    {"one location", {HEED_DIMS2(1, 1), HEED_DIMS3(1, 1, 1)}, .domain = HEED_ANY},
};
HEED_OP(ntm_read, "r = sum_i w_i M_i", read_shape, read_forward, read_backward, read_cases,
        read_run);

heed_tensor *heed_ntm_read(heed_tape *t, heed_tensor *w, heed_tensor *memory)
{
    heed_tensor *in[] = {w, memory};
    return heed__first(heed__apply(t, &heed__op_ntm_read, in, 2, 0, NULL, 0));
}

/* ---- write ---- */

enum { MEMORY, W, ERASE, ADD };
enum { WORK = 3 }; /* operations per location, element and head */

static heed_status write_shape(heed_opcall *c)
{
    static const char *const names[] = {[ERASE] = "erase", [ADD] = "add"};
    heed_status status = check(c, c->in[MEMORY], c->in[W]);
    if (status)
        return status;
    struct sizes s = sizes_of(c->in[MEMORY], c->in[W]);
    for (int i = ERASE; i <= ADD; i++)
        if (c->in[i]->rows != s.b || c->in[i]->cols != s.heads * s.m)
            return heed__op_shape_fail(c, names[i], c->in[i], "(%lld,%lld)", (long long)s.b,
                                       (long long)(s.heads * s.m));
    if (s.heads > HEED_MEMORY_MAX_HEADS)
        return heed__op_shape_fail(c, "w", c->in[W], "at most %d heads", HEED_MEMORY_MAX_HEADS);
    return heed__out(c, HEED_SHAPE(s.b, s.m, s.n));
}

static void write_rows(void *context, int64_t begin, int64_t end, int thread)
{
    const heed_opcall *c = context;
    struct sizes s = sizes_of(c->in[MEMORY], c->in[W]);
    (void)thread;
    for (int64_t b = begin; b < end; b++)
        heed__kernels()->memory_write(heed__row(c->out[0], b * s.m),
                                      c->in[MEMORY]->data + memory_row(&s, b, 0), s.ld,
                                      heed__row(c->in[W], b), heed__row(c->in[ERASE], b),
                                      heed__row(c->in[ADD], b), s.heads, s.m, s.n);
}

static int64_t write_work(const heed_opcall *c)
{
    return c->in[W]->cols * c->in[MEMORY]->shape.dim[1] * WORK;
}

static void write_forward(heed_opcall *c)
{
    heed__parallel(heed__threads(c), c->in[W]->rows, 1, write_work(c), write_rows, c);
}

struct writing {
    heed_opcall *c;
    const real *dy;
    real *grad[4]; /* by input; NULL where none is needed */
};

/* Row `row` of input i's gradient. */
static real *grad_row(const struct writing *k, int i, int64_t row)
{
    return k->grad[i] ? k->grad[i] + row * k->c->in[i]->ld : NULL;
}

/* Derivatives: kernel/ntm_rows.h. */
static void write_grads(void *context, int64_t begin, int64_t end, int thread)
{
    const struct writing *k = context;
    heed_tensor *const *in = k->c->in;
    struct sizes s = sizes_of(in[MEMORY], in[W]);
    (void)thread;
    for (int64_t b = begin; b < end; b++)
        heed__kernels()->memory_write_grad(
            grad_row(k, MEMORY, b * s.m), grad_row(k, W, b), grad_row(k, ERASE, b),
            grad_row(k, ADD, b), k->dy + b * s.m * s.n, heed__row(in[MEMORY], b * s.m), s.ld,
            heed__row(in[W], b), heed__row(in[ERASE], b), heed__row(in[ADD], b), s.heads, s.m, s.n);
}

static void write_backward(heed_opcall *c)
{
    struct writing k = {.c = c, .dy = heed__out_grad(c, 0)};
    for (int i = 0; i < 4; i++)
        k.grad[i] = heed__wants(c, i) ? heed__grad(c, i) : NULL;
    heed__parallel(heed__threads(c), c->in[W]->rows, 1, 2 * write_work(c), write_grads, &k);
}

static void write_run(heed_tape *t, const heed_opcase *c, heed_tensor **in, heed_tensor **out)
{
    (void)c;
    out[0] = heed_ntm_write(t, in[MEMORY], in[W], in[ERASE], in[ADD]);
}

static const heed_opcase write_cases[] = {
    {"one head",
     {HEED_DIMS3(2, 3, 9), HEED_DIMS2(2, 9), HEED_DIMS2(2, 3), HEED_DIMS2(2, 3)},
     .domain = HEED_ANY},
    {"three heads",
     {HEED_DIMS3(2, 2, 5), HEED_DIMS2(2, 15), HEED_DIMS2(2, 6), HEED_DIMS2(2, 6)},
     .domain = HEED_ANY},
    {"one location",
     {HEED_DIMS3(1, 1, 1), HEED_DIMS2(1, 1), HEED_DIMS2(1, 1), HEED_DIMS2(1, 1)},
     .domain = HEED_ANY},
};
HEED_OP(ntm_write, "M_i' = M_i prod_h (1 - w_hi e_h) + sum_h w_hi a_h", write_shape, write_forward,
        write_backward, write_cases, write_run);

heed_tensor *heed_ntm_write(heed_tape *t, heed_tensor *memory, heed_tensor *w, heed_tensor *erase,
                            heed_tensor *add)
{
    heed_tensor *in[] = {memory, w, erase, add};
    return heed__first(heed__apply(t, &heed__op_ntm_write, in, 4, 0, NULL, 0));
}
