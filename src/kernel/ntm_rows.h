/* ntm_rows.h: loops over an NTM memory that heads address, read and write, for one sequence.
 *
 * A memory is m rows of n elements, ld apart: element j of every location in row j.  Heads one
 * after the other: weights (heads,n), erase and add vectors (heads,m). */
#ifndef HEED_KERNEL_NTM_ROWS_H
#define HEED_KERNEL_NTM_ROWS_H

#include <heed/base.h>

#define HEED_MEMORY_MAX_HEADS 64

/* memory_squares     y_i = sum_j M_ji^2
 * memory_match       y_i = sum_j k_j M_ji
 * memory_match_grad  dM_ji += dd_i k_j + along_i M_ji
 * memory_write       y_ji = M_ji prod_h (1 - e_hj w_hi) + sum_h a_hj w_hi; rows of y have no gaps
 * memory_write_grad  with K_hji what the other heads leave of location i:
 *                    dM_ji += dy_ji prod_h (1 - e_hj w_hi)
 *                    dw_hi += dy_ji (a_hj - e_hj M_ji K_hji)
 *                    de_hj -= sum_i dy_ji M_ji K_hji w_hi
 *                    da_hj += sum_i dy_ji w_hi
 *                    each may be NULL */
#define HEED_KERNELS_MEMORY(X)                                                                     \
    X(void, memory_squares,                                                                        \
      (heed_real * y, const heed_real *memory, int64_t ld, int64_t m, int64_t n))                  \
    X(void, memory_match,                                                                          \
      (heed_real * y, const heed_real *memory, int64_t ld, const heed_real *k, int64_t m,          \
       int64_t n))                                                                                 \
    X(void, memory_match_grad,                                                                     \
      (heed_real * dmemory, const heed_real *memory, int64_t ld, const heed_real *dd,              \
       const heed_real *along, const heed_real *k, int64_t m, int64_t n))                          \
    X(void, memory_write,                                                                          \
      (heed_real * y, const heed_real *memory, int64_t ld, const heed_real *w,                     \
       const heed_real *erase, const heed_real *add, int64_t heads, int64_t m, int64_t n))         \
    X(void, memory_write_grad,                                                                     \
      (heed_real * dmemory, heed_real * dw, heed_real * derase, heed_real * dadd,                  \
       const heed_real *dy, const heed_real *memory, int64_t ld, const heed_real *w,               \
       const heed_real *erase, const heed_real *add, int64_t heads, int64_t m, int64_t n))

#endif
