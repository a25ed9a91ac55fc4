/* gather_rows.h: moving rows by an index, in both directions; used by gather, scatter, shift and
 * reverse. */
#ifndef HEED_OPS_GATHER_ROWS_H
#define HEED_OPS_GATHER_ROWS_H

#include "base/parallel.h"
#include "tensor/op.h"

/* y row r (ldy apart) = or += x row index[r] (ldx apart), n rows of cols elements; a negative index
 * means a row of zeros. */
void heed__take_rows(const heed_opcall *c, real *y, int64_t ldy, const real *x, int64_t ldx,
                     const int32_t *index, int64_t n, int64_t cols, bool add);
/* y row index[r] += x row r; a negative index skips the row.  Several rows may go to one: each
 * thread has its own columns and goes from top to bottom, so the order of sums is fixed. */
void heed__put_rows(const heed_opcall *c, real *y, int64_t ldy, const real *x, int64_t ldx,
                    const int32_t *index, int64_t n, int64_t cols);

#endif
