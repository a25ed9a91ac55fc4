/* reference.c: a product by the bare library, in the two ways it can use threads.  The thread
 * setting is global in these libraries and is put back to 1, which is what heed asks of them. */
#include "reference.h"

#include "base/parallel.h"
#include "kernel/blas.h"

#include <dlfcn.h>
#include <string.h>

static void set_threads(int threads)
{
    void (*openblas)(int);
    void (*blis)(int64_t);
    void *found = dlsym(RTLD_DEFAULT, "bli_thread_set_num_threads");
    memcpy(&blis, &found, sizeof blis);
    if (found) {
        blis(threads);
        return;
    }
    found = dlsym(RTLD_DEFAULT, "openblas_set_num_threads");
    memcpy(&openblas, &found, sizeof openblas);
    if (found)
        openblas(threads);
}

void bench_cblas_own(const heed__product *p, int threads)
{
    heed__blas_name(); /* heed's own setting comes first */
    if (threads > 1)
        set_threads(threads);
    heed__blas_gemm(p);
    if (threads > 1)
        set_threads(1);
}

static void part(void *context, int64_t begin, int64_t end, int thread)
{
    (void)thread;
    heed__product p = *(const heed__product *)context;
    if (p.m >= p.n) {
        p.c += begin * p.ldc;
        p.a += p.trans_a ? begin : begin * p.lda;
        p.m = end - begin;
    } else {
        p.c += begin;
        p.b += p.trans_b ? begin * p.ldb : begin;
        p.n = end - begin;
    }
    heed__blas_gemm(&p);
}

void bench_cblas_parts(const heed__product *p, int threads)
{
    int64_t longer = p->m >= p->n ? p->m : p->n;
    heed__parallel(threads, longer, 16, p->m * p->n * p->k / longer, part, (void *)p);
}
