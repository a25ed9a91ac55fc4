/* ntm_rows.c: a memory of n locations under its heads: matching, writing, and their derivatives.
 * Registers run along the locations. */
#include "kernel/ntm_rows.h"

#include "kernel/isa.h"
#include "kernel/vec.h"

#define DECLARE(result, name, arguments) result K(name) arguments;
HEED_KERNELS_MEMORY(DECLARE)

void K(memory_squares)(real *y, const real *memory, int64_t ld, int64_t m, int64_t n)
{
    for (int64_t i = 0; i < n; i += VW) {
        vreal sum = vset(0);
        for (int64_t j = 0; j < m; j++) {
            vreal x = vload_at(memory + j * ld, i, n);
            sum += x * x;
        }
        vstore_at(y, sum, i, n);
    }
}

void K(memory_match)(real *y, const real *memory, int64_t ld, const real *k, int64_t m, int64_t n)
{
    for (int64_t i = 0; i < n; i += VW) {
        vreal sum = vset(0);
        for (int64_t j = 0; j < m; j++)
            sum += vload_at(memory + j * ld, i, n) * k[j];
        vstore_at(y, sum, i, n);
    }
}

void K(memory_match_grad)(real *dmemory, const real *memory, int64_t ld, const real *dd,
                          const real *along, const real *k, int64_t m, int64_t n)
{
    for (int64_t j = 0; j < m; j++)
        for (int64_t i = 0; i < n; i += VW) {
            vreal x = vload_at(memory + j * ld, i, n), grad = vload_at(dmemory + j * ld, i, n);
            grad += vload_at(dd, i, n) * k[j] + vload_at(along, i, n) * x;
            vstore_at(dmemory + j * ld, grad, i, n);
        }
}

void K(memory_write)(real *y, const real *memory, int64_t ld, const real *w, const real *erase,
                     const real *add, int64_t heads, int64_t m, int64_t n)
{
    for (int64_t j = 0; j < m; j++)
        for (int64_t i = 0; i < n; i += VW) {
            vreal x = vload_at(memory + j * ld, i, n), added = vset(0);
            for (int64_t h = 0; h < heads; h++) {
                vreal weight = vload_at(w + h * n, i, n);
                x *= 1 - weight * erase[h * m + j];
                added += weight * add[h * m + j];
            }
            vstore_at(y + j * n, x + added, i, n);
        }
}

/* K_h is the product of (1 - e w) over the heads before h, stored in a first loop, and over the
 * heads after h, computed in a second one: no division by what may be 0. */
VINLINE void write_grad(real *dmemory, real *dw, real *derase, real *dadd, const real *dy,
                        const real *memory, int64_t ld, const real *w, const real *erase,
                        const real *add, int64_t heads, int64_t m, int64_t n)
{
    vreal kept[HEED_MEMORY_MAX_HEADS], de[HEED_MEMORY_MAX_HEADS], da[HEED_MEMORY_MAX_HEADS];
    for (int64_t j = 0; j < m; j++) {
        for (int64_t h = 0; h < heads; h++)
            de[h] = da[h] = vset(0);
        for (int64_t i = 0; i < n; i += VW) {
            vreal grad = vload_at(dy + j * n, i, n), left = vset(1), right = vset(1);
            for (int64_t h = 0; h < heads; h++) {
                kept[h] = left;
                left *= 1 - vload_at(w + h * n, i, n) * erase[h * m + j];
            }
            vreal lost = grad * vload_at(memory + j * ld, i, n);
            if (dmemory)
                vstore_at(dmemory + j * ld, vload_at(dmemory + j * ld, i, n) + grad * left, i, n);
            for (int64_t h = heads - 1; h >= 0; h--) {
                vreal weight = vload_at(w + h * n, i, n), part = lost * kept[h] * right;
                right *= 1 - weight * erase[h * m + j];
                de[h] += part * weight;
                da[h] += grad * weight;
                if (dw)
                    vstore_at(dw + h * n,
                              vload_at(dw + h * n, i, n) + grad * add[h * m + j] -
                                  part * erase[h * m + j],
                              i, n);
            }
        }
        for (int64_t h = 0; h < heads; h++) {
            if (derase)
                derase[h * m + j] -= vsum(de[h]);
            if (dadd)
                dadd[h * m + j] += vsum(da[h]);
        }
    }
}

void K(memory_write_grad)(real *dmemory, real *dw, real *derase, real *dadd, const real *dy,
                          const real *memory, int64_t ld, const real *w, const real *erase,
                          const real *add, int64_t heads, int64_t m, int64_t n)
{
    if (heads == 1) /* one head needs no arrays: everything stays in registers */
        write_grad(dmemory, dw, derase, dadd, dy, memory, ld, w, erase, add, 1, m, n);
    else
        write_grad(dmemory, dw, derase, dadd, dy, memory, ld, w, erase, add, heads, m, n);
}
