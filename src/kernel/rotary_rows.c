/* rotary_rows.c: see rotary_rows.h. */
#include "kernel/rotary_rows.h"

#include "kernel/isa.h"
#include "kernel/vec.h"

#define DECLARE(result, name, arguments) result K(name) arguments;
HEED_KERNELS_ROTARY(DECLARE)

/* Of one head: y = turned x, or y += x turned back. */
VINLINE void turn_halves(real *y, const real *x, const real *angles, int64_t d, bool back)
{
    const int64_t half = d / 2;
    for (int64_t i = 0; i < half; i += VW) {
        const vreal c = vload_at(angles, i, half), s = vload_at(angles + half, i, half);
        const vreal a = vload_at(x, i, half), b = vload_at(x + half, i, half);
        vreal first = back ? c * a + s * b : c * a - s * b;
        vreal second = back ? c * b - s * a : c * b + s * a;
        if (back) {
            first += vload_at(y, i, half);
            second += vload_at(y + half, i, half);
        }
        vstore_at(y, first, i, half);
        vstore_at(y + half, second, i, half);
    }
}

VINLINE void turn_neighbours(real *y, const real *x, const real *angles, int64_t d, bool back)
{
    for (int64_t i = 0; i < d / 2; i++) {
        const real c = angles[i], s = angles[d / 2 + i], a = x[2 * i], b = x[2 * i + 1];
        const real first = back ? c * a + s * b : c * a - s * b;
        const real second = back ? c * b - s * a : c * b + s * a;
        y[2 * i] = back ? y[2 * i] + first : first;
        y[2 * i + 1] = back ? y[2 * i + 1] + second : second;
    }
}

void K(turn_heads)(real *y, const real *x, const real *angles, int64_t heads, int64_t d,
                   bool neighbours)
{
    for (int64_t h = 0; h < heads; h++, x += d, y += d)
        if (neighbours)
            turn_neighbours(y, x, angles, d, false);
        else
            turn_halves(y, x, angles, d, false);
}

void K(turn_heads_back)(real *y, const real *x, const real *angles, int64_t heads, int64_t d,
                        bool neighbours)
{
    for (int64_t h = 0; h < heads; h++, x += d, y += d)
        if (neighbours)
            turn_neighbours(y, x, angles, d, true);
        else
            turn_halves(y, x, angles, d, true);
}
