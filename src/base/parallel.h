/* parallel.h: the one way to use threads inside an operator.
 *
 * [0,n) is cut into `threads` contiguous ranges whose edges are multiples of `grain` rows; range i
 * goes to thread i, always, so the same number of threads gives the same sums in the same order.
 * Below a measured amount of work no thread is started: a parallel region costs about 2 us. */
#ifndef HEED_BASE_PARALLEL_H
#define HEED_BASE_PARALLEL_H

#include <stdint.h>

#define HEED_MAX_THREADS 64

typedef void heed__range(void *context, int64_t begin, int64_t end, int thread);

/* `work` is a rough count of elementary operations (multiply-adds, elements moved) per item. */
void heed__parallel(int threads, int64_t n, int64_t grain, int64_t work, heed__range *body,
                    void *context);
/* How many ranges heed__parallel will make; that many slots are enough for per-thread sums. */
int heed__parallel_width(int threads, int64_t n, int64_t grain, int64_t work);
/* Processors this process may use. */
int heed__processors(void);

#endif
