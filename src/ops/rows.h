/* rows.h: moving rows by an index, both ways; what gather, scatter, shift and reverse are made of.
 */
#ifndef HEED_OPS_ROWS_H
#define HEED_OPS_ROWS_H

#include "base/parallel.h"
#include "tensor/op.h"

/* y row r (ldy apart) = or += x row index[r] (ldx apart), n rows of cols numbers; a negative index
 * stands for a row of zeros. */
void heed__take_rows(const heed_opcall *c, real *y, int64_t ldy, const real *x, int64_t ldx,
                     const int32_t *index, int64_t n, int64_t cols, bool add);
/* y row index[r] += x row r; a negative index drops the row.  Rows may meet: each thread has its
 * own columns and goes from top to bottom, so the sums have one order. */
void heed__put_rows(const heed_opcall *c, real *y, int64_t ldy, const real *x, int64_t ldx,
                    const int32_t *index, int64_t n, int64_t cols);

#endif
