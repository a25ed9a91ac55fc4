/* bias_rows.c: see bias_rows.h.  Bound by memory: each element is read once and written at most
 * once, eight rows at a time so that the sums are not loaded for every row. */
#include "kernel/bias_rows.h"

#include "kernel/isa.h"
#include "kernel/vec.h"

#define DECLARE(result, name, arguments) result K(name) arguments;
HEED_KERNELS_LINEAR(DECLARE)

void K(bias_relu)(real *y, const real *bias, int64_t n)
{
    for (int64_t j = 0; j < n; j += VW)
        vstore_at(y, vmax(vset(0), vload_at(y, j, n) + (bias ? vload_at(bias, j, n) : vset(0))), j,
                  n);
}

#define ROWS 8

/* rows, summed and masked are constants where it is inlined. */
VINLINE void sum_block(int rows, bool summed, bool masked, real *restrict sum, real *restrict dy,
                       int64_t ld, const real *restrict y, int64_t ldy, int64_t n)
{
    for (int64_t j = 0; j < n; j += VW) {
        vreal s = summed ? vload_at(sum, j, n) : vset(0);
#pragma GCC unroll 8
        for (int i = 0; i < rows; i++) {
            vreal g = vload_at(dy + i * ld, j, n);
            if (masked) {
                g = vselect(vload_at(y + i * ldy, j, n) > vset(0), g, vset(0));
                vstore_at(dy + i * ld, g, j, n);
            }
            s += g;
        }
        if (summed)
            vstore_at(sum, s, j, n);
    }
}

void K(column_sums)(real *sum, real *dy, int64_t ld, const real *y, int64_t ldy, int64_t rows,
                    int64_t n)
{
    for (int64_t i = 0; i < rows;) {
        bool whole = rows - i >= ROWS;
        real *g = dy + i * ld;
        const real *v = y ? y + i * ldy : NULL;
        if (whole && sum && y)
            sum_block(ROWS, true, true, sum, g, ld, v, ldy, n);
        else if (whole && sum)
            sum_block(ROWS, true, false, sum, g, ld, v, ldy, n);
        else if (sum && y)
            sum_block(1, true, true, sum, g, ld, v, ldy, n);
        else if (sum)
            sum_block(1, true, false, sum, g, ld, v, ldy, n);
        else if (y)
            sum_block(1, false, true, sum, g, ld, v, ldy, n);
        i += whole && sum ? ROWS : 1;
    }
}
