/* product.c: heed__gemm, C = f(beta C + op(A) op(B) + bias), divided among threads.
 *
 * C is divided by rows or by columns and each thread computes its own block, so the result does not
 * depend on timing.  Which kernel is used depends on the whole product, never on the block. */
#include "base/parallel.h"
#include "kernel/blas.h"
#include "kernel/kernels.h"

#include <string.h>

/* gemm_few is used for A B and A^T B with at most this many rows, this length of the sum, or this
 * many multiply-adds ... */
#define SOME_ROWS 32
#define SHORT_SUM 16
#define SMALL_PRODUCT (96 * 96 * 96)
/* ... but not if the sum is this long: gemm_few adds in one chain and loses digits that the others,
 * which add in blocks, keep. */
#define LONG_SUM 4096
/* gemm_few_nt, a little slower because its sums are across lanes, is used for A B^T with at most
 * this many rows or columns or multiply-adds. */
#define FEW_ROWS 16
#define FEW_COLS 8
#define SMALL_NT (24 * 24 * 24)
/* BLIS does not pack below 512 rows, and drops from 90 to 60 GFLOP/s with many columns. */
#define LIBRARY_ROWS 512
/* Edges of the blocks: whole tiles and whole cache lines. */
#define GRAIN_ROWS 24
#define GRAIN_COLS 16
/* With a callback a block is computed in pieces of about this many elements, which the shared cache
 * still holds, but of no fewer rows than pays off packing B again. */
#define PIECE_ELEMENTS (1 << 20)
#define PIECE_ROWS 1024

typedef enum method { NOTHING, FEW, FEW_NT, PACKED, LIBRARY } method;

typedef struct job {
    heed__product p;
    method by;
    bool cut_rows;
    heed__after_block *after;
    void *context;
} job;

/* Depends on the sizes alone, in any order: a product and its gradients agree, so memory for one is
 * enough for the others. */
int64_t heed__gemm_panels(int64_t m, int64_t n, int64_t k)
{
    int64_t side = m < n ? m : n;
    side = k < side ? k : side;
    bool large = side >= FEW_COLS && (double)m * (double)n * (double)k > SMALL_NT;
    return large && heed__kernels()->gemm_packed_pays() ? HEED_PANEL_COUNT : 0;
}

static method choose(const heed__product *p)
{
    if (p->k <= 0)
        return NOTHING;
    double size = (double)p->m * (double)p->n * (double)p->k;
    method large = p->panels && heed__gemm_panels(p->m, p->n, p->k) ? PACKED : LIBRARY;
    bool fits = large == PACKED || heed__blas_fits(p);
    if (!p->trans_b && (p->m <= SOME_ROWS || p->k <= SHORT_SUM || size <= SMALL_PRODUCT) &&
        p->k <= LONG_SUM)
        return FEW;
    if (!p->trans_b && !fits)
        return FEW;
    if (p->trans_b && !p->trans_a &&
        (p->m <= FEW_ROWS || p->n <= FEW_COLS || size <= SMALL_NT || !fits))
        return FEW_NT;
    return large;
}

/* A matrix of one column is also one row: the form in which vectors are read sequentially. */
static heed__product straighten(heed__product p)
{
    if (p.n == 1 && p.ldc == 1 && p.trans_a) { /* A^T b = (b^T A)^T */
        heed__product q = p;
        q.a = p.b;
        q.lda = p.ldb;
        q.trans_a = !p.trans_b;
        q.b = p.a;
        q.ldb = p.lda;
        q.trans_b = false;
        q.m = 1;
        q.n = p.m;
        q.ldc = p.m;
        return q;
    }
    if (p.n == 1 && p.ldb == 1 && !p.trans_b) { /* b is (K,1): also the row b^T (1,K) */
        p.trans_b = true;
        p.ldb = p.k;
    } else if (p.k == 1 && p.ldb == 1 && p.trans_b) { /* b is (N,1): also the row b^T (1,N) */
        p.trans_b = false;
        p.ldb = p.n;
    }
    return p;
}

static void clear(const heed__product *p)
{
    for (int64_t i = 0; p->beta == 0 && i < p->m; i++)
        memset(p->c + i * p->ldc, 0, (size_t)p->n * sizeof *p->c);
}

/* bias and f, where the kernel has not applied them. */
static void finish(const heed__product *p)
{
    const heed_kernels *ks = heed__kernels();
    for (int64_t i = 0; (p->bias || p->relu) && i < p->m; i++) {
        heed_real *y = p->c + i * p->ldc;
        if (p->relu)
            ks->bias_relu(y, p->bias, p->n);
        else
            ks->accumulate(y, p->bias, 1, p->n);
    }
}

static void block(const job *j, int64_t top, int64_t bottom, int64_t left, int64_t right,
                  int thread)
{
    heed__product p = j->p;
    p.c += top * p.ldc + left;
    p.m = bottom - top;
    p.n = right - left;
    p.bias = p.bias ? p.bias + left : NULL;
    if (j->by != NOTHING) { /* else A and B are empty and may be NULL */
        p.a += p.trans_a ? top : top * p.lda;
        p.b += p.trans_b ? left * p.ldb : left;
    }
    switch (j->by) {
    case NOTHING:
        clear(&p);
        break;
    case FEW:
        heed__kernels()->gemm_few(p.c, p.ldc, p.a, p.trans_a ? 1 : p.lda, p.trans_a ? p.lda : 1,
                                  p.b, p.ldb, p.m, p.n, p.k, p.beta);
        break;
    case FEW_NT:
        heed__kernels()->gemm_few_nt(p.c, p.ldc, p.a, p.lda, p.b, p.ldb, p.m, p.n, p.k, p.beta);
        break;
    case PACKED:
        p.panels += thread * HEED_PANEL_COUNT;
        heed__kernels()->gemm_packed(&p);
        return;
    case LIBRARY:
        heed__blas_gemm(&p);
        break;
    }
    finish(&p);
}

static void range(void *context, int64_t begin, int64_t end, int thread)
{
    const job *j = context;
    int64_t top = j->cut_rows ? begin : 0, bottom = j->cut_rows ? end : j->p.m;
    int64_t left = j->cut_rows ? 0 : begin, right = j->cut_rows ? j->p.n : end;
    int64_t step = bottom - top;
    if (j->after || ((j->p.bias || j->p.relu) && j->by != PACKED)) {
        int64_t rows = PIECE_ELEMENTS / (right - left);
        rows = rows < PIECE_ROWS ? PIECE_ROWS : rows;
        int64_t pieces = (step + rows - 1) / rows;
        step = (step + pieces - 1) / pieces;
        step = (step + GRAIN_ROWS - 1) / GRAIN_ROWS * GRAIN_ROWS;
    }
    for (; top < bottom; top += step) {
        int64_t stop = bottom - top < step ? bottom : top + step;
        block(j, top, stop, left, right, thread);
        if (j->after)
            j->after(j->context, top, stop, left, right);
    }
}

void heed__gemm(const heed__product *p, int threads, heed__after_block *after, void *context)
{
    if (p->m <= 0 || p->n <= 0)
        return;
    bool plain = !after && !p->bias && !p->relu;
    job j = {.p = plain ? straighten(*p) : *p, .after = after, .context = context};
    j.by = choose(&j.p);
    int64_t depth = j.p.k < 1 ? 1 : j.p.k;
    int64_t rows = j.by == LIBRARY ? (int64_t)threads * LIBRARY_ROWS : FEW_ROWS + 1;
    j.cut_rows = j.p.m >= j.p.n && (j.p.m >= rows || j.p.n < (int64_t)threads * GRAIN_COLS);
    if (j.cut_rows)
        heed__parallel(threads, j.p.m, GRAIN_ROWS, j.p.n * depth, range, &j);
    else
        heed__parallel(threads, j.p.n, GRAIN_COLS, j.p.m * depth, range, &j);
}
