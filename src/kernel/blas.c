/* blas.c: the one file that knows CBLAS.
 *
 * The few names that are not CBLAS (threads, version) are looked up at run time, so that any of the
 * libraries can be linked or exchanged by the system's alternatives.  cblas.h is not included: the
 * libraries differ in the names of its enumerations, not in the calls. */
#include "kernel/blas.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>

enum { ROW_MAJOR = 101, NO_TRANS = 111, TRANS = 112 };

#ifdef HEED_DOUBLE
#define GEMM cblas_dgemm
#else
#define GEMM cblas_sgemm
#endif
extern void GEMM(int order, int trans_a, int trans_b, int m, int n, int k, heed_real alpha,
                 const heed_real *a, int lda, const heed_real *b, int ldb, heed_real beta,
                 heed_real *c, int ldc);

static pthread_once_t once = PTHREAD_ONCE_INIT;
static char name[160]; /* written once */

/* A function of the loaded libraries, or false.  Copied through memory: ISO C has no cast from an
 * object pointer to a function pointer. */
static bool look_up(const char *symbol, void *function)
{
    void *found = dlsym(RTLD_DEFAULT, symbol);
    *(void **)function = found;
    return found != NULL;
}

static void start(void)
{
    void (*set_openblas)(int);
    void (*set_blis)(int64_t);
    const char *(*text)(void);
    const char *(*arch_name)(int);
    int (*arch)(void);
    int64_t (*openmp)(void);
    if (look_up("bli_thread_set_num_threads", &set_blis)) {
        set_blis(1);
        bool known = look_up("bli_arch_query_id", &arch) && look_up("bli_arch_string", &arch_name);
        const char *core = known ? arch_name(arch()) : "";
        const char *version = look_up("bli_info_get_version_str", &text) ? text() : "";
        bool threaded = look_up("bli_info_get_enable_openmp", &openmp) && openmp() != 0;
        snprintf(name, sizeof name, "BLIS %s %s%s", version, core, threaded ? " openmp" : "");
    } else if (look_up("openblas_set_num_threads", &set_openblas)) {
        set_openblas(1);
        snprintf(name, sizeof name, "%s",
                 look_up("openblas_get_config", &text) ? text() : "OpenBLAS");
    } else {
        Dl_info from;
        void *gemm = dlsym(RTLD_DEFAULT, "cblas_sgemm");
        bool known = gemm && dladdr(gemm, &from) != 0 && from.dli_fname;
        snprintf(name, sizeof name, "CBLAS %s", known ? from.dli_fname : "of unknown origin");
    }
}

const char *heed__blas_name(void)
{
    pthread_once(&once, start);
    return name;
}

bool heed__blas_fits(const heed__product *p)
{
    const int64_t size[] = {p->m, p->n, p->k, p->lda, p->ldb, p->ldc};
    for (size_t i = 0; i < sizeof size / sizeof *size; i++)
        if (size[i] > INT32_MAX)
            return false;
    return true;
}

/* CBLAS refuses a leading dimension below the width even where there is one row only. */
static int leading(int64_t ld, int64_t width)
{
    return (int)(ld < width ? width : ld);
}

void heed__blas_gemm(const heed__product *p)
{
    pthread_once(&once, start);
    GEMM(ROW_MAJOR, p->trans_a ? TRANS : NO_TRANS, p->trans_b ? TRANS : NO_TRANS, (int)p->m,
         (int)p->n, (int)p->k, 1, p->a, leading(p->lda, p->trans_a ? p->m : p->k), p->b,
         leading(p->ldb, p->trans_b ? p->k : p->n), p->beta, p->c, leading(p->ldc, p->n));
}
