/* dispatch.c: which kernels run on this processor.  Decided once, at the first call: the best
 * tested set that the processor has, or the one that HEED_ISA names. */
#include "kernel/kernels.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define DECLARE(isa) extern const heed_kernels heed__kernels_##isa;
HEED_ISA_LIST(DECLARE)
#undef DECLARE

static bool runs_baseline(void)
{
    return true;
}

static bool runs_avx2(void)
{
#if defined(__x86_64__)
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#else
    return false;
#endif
}

static bool runs_avx512(void)
{
#if defined(__x86_64__)
    return runs_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
           __builtin_cpu_supports("avx512vnni");
#else
    return false;
#endif
}

static const struct {
    const heed_kernels *kernels;
    bool (*runs)(void);
} sets[] = {
#define ROW(isa) {&heed__kernels_##isa, runs_##isa},
    HEED_ISA_LIST(ROW)
#undef ROW
};
#define N_SETS ((int)(sizeof sets / sizeof *sets))

static pthread_once_t once = PTHREAD_ONCE_INIT;
static const heed_kernels *picked; /* written once */

static void pick(void)
{
    for (int i = 0; i < N_SETS; i++)
        if (sets[i].runs())
            picked = sets[i].kernels;
    const char *wanted = getenv("HEED_ISA");
    const heed_kernels *forced = wanted ? heed__kernels_named(wanted) : NULL;
    if (forced)
        picked = forced;
}

const heed_kernels *heed__kernels(void)
{
    pthread_once(&once, pick);
    return picked;
}

const heed_kernels *heed__kernels_named(const char *isa)
{
    for (int i = 0; i < N_SETS; i++)
        if (strcmp(sets[i].kernels->isa, isa) == 0 && sets[i].runs())
            return sets[i].kernels;
    return NULL;
}

const heed_kernels *heed__kernels_at(int i)
{
    for (int j = 0; j < N_SETS; j++)
        if (sets[j].runs() && i-- == 0)
            return sets[j].kernels;
    return NULL;
}
