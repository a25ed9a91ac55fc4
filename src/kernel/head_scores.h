/* head_scores.h: what the kernels of an attention head share besides products: rows of scores
 * become weights, and do again in backward, with the same bits. */
#ifndef HEED_KERNEL_HEAD_SCORES_H
#define HEED_KERNEL_HEAD_SCORES_H

#include "kernel/attention_head.h"
#include "kernel/vecmath.h"

VINLINE int64_t round_up(int64_t n, int64_t to)
{
    return (n + to - 1) / to * to;
}

VINLINE int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* lo and hi are at whole registers; stats, if not NULL, receives the maximum and 1/sum. */
VINLINE void softmax_part(real *x, int64_t lo, int64_t hi, real *stats)
{
    vreal top = vset(-INFINITY), sum = {0};
    for (int64_t j = lo; j < hi; j += VW)
        top = vmax(top, vload(x + j));
    const real most = vlargest(top);
    const vreal shift = vset(most == -INFINITY ? 0 : most);
    for (int64_t j = lo; j < hi; j += VW) {
        const vreal v = vexp(vload(x + j) - shift);
        sum += v;
        vstore(x + j, v);
    }
    const real total = vsum(sum);
    const vreal inverse = vset(total == 0 ? 0 : 1 / total);
    for (int64_t j = lo; j < hi; j += VW)
        vstore(x + j, vload(x + j) * inverse);
    if (stats) {
        stats[0] = shift[0];
        stats[1] = inverse[0];
    }
}

VINLINE void softmax_part_again(real *x, int64_t lo, int64_t hi, const real *stats)
{
    const vreal shift = vset(stats[0]), inverse = vset(stats[1]);
    for (int64_t j = lo; j < hi; j += VW)
        vstore(x + j, vexp(vload(x + j) - shift) * inverse);
}

VINLINE void clear_rows(heed__matrix x, int64_t rows, int64_t cols, real beta)
{
    for (int64_t i = 0; x.at && beta == 0 && i < rows; i++)
        memset(x.at + i * x.ld, 0, (size_t)cols * sizeof(real));
}

#endif
