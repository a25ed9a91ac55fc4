/* parallel.c: static ranges over OpenMP threads.  Without OpenMP (the thread-sanitizer build) the
 * ranges run one after the other, so the arithmetic is the same. */
#include "base/parallel.h"

#ifdef __linux__
#include <sched.h>
#endif

/* Below this much total work one thread does it all: opening a region costs 2 us if the other
 * threads are awake and many times that if they sleep or have no processor, and 2^16 multiply-adds
 * take 4 us.  Not higher: what several threads computed lies in the caches of all of them, and one
 * thread alone adds two such matrices of 2^16 elements six times slower than from its own cache. */
#define MINIMUM_WORK (1 << 16)

int heed__parallel_width(int threads, int64_t n, int64_t grain, int64_t work)
{
    if (threads < 2 || n < 2)
        return 1;
    int64_t units = (n + grain - 1) / grain;
    int64_t width = threads < HEED_MAX_THREADS ? threads : HEED_MAX_THREADS;
    if (width > units)
        width = units;
    double total = (double)n * (double)work;
    /* All threads or one: anything between gains little, and the order of sums would depend on the
     * size. */
    if (total < MINIMUM_WORK || width < 1)
        return 1;
    return (int)width;
}

void heed__parallel(int threads, int64_t n, int64_t grain, int64_t work, heed__range *body,
                    void *context)
{
    if (n <= 0)
        return;
    int width = heed__parallel_width(threads, n, grain, work);
    if (width == 1) {
        body(context, 0, n, 0);
        return;
    }
    int64_t units = (n + grain - 1) / grain;
#pragma omp parallel for num_threads(width) schedule(static, 1)
    for (int i = 0; i < width; i++) {
        int64_t begin = units * i / width * grain;
        int64_t end = units * (i + 1) / width * grain;
        body(context, begin, end < n ? end : n, i);
    }
}

int heed__processors(void)
{
#ifdef __linux__
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0) {
        int n = CPU_COUNT(&set);
        return n < 1 ? 1 : n > HEED_MAX_THREADS ? HEED_MAX_THREADS : n;
    }
#endif
    return 1;
}
