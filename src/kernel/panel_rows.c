/* panel_rows.c: quantising rows before a product, and columns of packed weights back to fp32. */
#include "kernel/panels.h"

#include "kernel/isa.h"
#include "kernel/vec.h"

#define DECLARE(result, name, arguments) result K(name) arguments;
HEED_KERNELS_PANELS(DECLARE)

/* ---- quantising rows ---- */

#define MOST 127
/* Added to a value of 0..127 it rounds to the nearest, ties to even, and leaves the integer in the
 * lowest bits: NaN becomes some byte of that range, without a conversion that C leaves undefined.
 */
#ifdef HEED_DOUBLE
#define ROUNDER ((real)4503599627370496.0)
#else
#define ROUNDER ((real)8388608.0)
#endif
/* Registers that are quantised together. */
#define TOGETHER 4

typedef struct bounds {
    real low, high;
} bounds;

/* k > 0.  Lanes beyond the end of the row hold its first element. */
static bounds row_bounds(const real *x, int64_t k)
{
    const vreal first = vset(x[0]);
    vreal low[TOGETHER], high[TOGETHER];
    for (int u = 0; u < TOGETHER; u++)
        low[u] = high[u] = first;
    int64_t i = 0;
    for (; i + TOGETHER * VW <= k; i += TOGETHER * VW)
        for (int u = 0; u < TOGETHER; u++) {
            vreal v = vload(x + i + u * VW);
            low[u] = vmin(low[u], v);
            high[u] = vmax(high[u], v);
        }
    for (; i < k; i += VW) {
        vreal v = vload_at(x, i, k);
        v = k - i < VW ? vselect(vfirst(k - i), v, first) : v;
        low[0] = vmin(low[0], v);
        high[0] = vmax(high[0], v);
    }
    vreal least = vmin(vmin(low[0], low[1]), vmin(low[2], low[3]));
    return (bounds){-vlargest(-least),
                    vlargest(vmax(vmax(high[0], high[1]), vmax(high[2], high[3])))};
}

VINLINE vint quantised(vreal x, vreal low, vreal inverse)
{
    return (vint)((x - low) * inverse + ROUNDER) & MOST;
}

VINLINE void store_lanes(uint8_t *to, vint v, int64_t n)
{
    vint_lane lane[VBYTES / sizeof(real)];
    memcpy(lane, &v, sizeof lane);
    for (int64_t i = 0; i < n; i++)
        to[i] = (uint8_t)lane[i];
}

VINLINE void store_bytes(uint8_t *to, const vint v[TOGETHER])
{
#if defined(__AVX2__) && !defined(HEED_DOUBLE) && VBYTES == 32
    /* Packing works in each half of a register: groups of four come out as 0 2 4 6 1 3 5 7. */
    const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    __m256i x = _mm256_packs_epi32((__m256i)v[0], (__m256i)v[1]);
    __m256i y = _mm256_packs_epi32((__m256i)v[2], (__m256i)v[3]);
    __m256i bytes = _mm256_permutevar8x32_epi32(_mm256_packus_epi16(x, y), order);
    _mm256_storeu_si256((__m256i *)to, bytes);
#elif defined(__SSE2__) && !defined(HEED_DOUBLE) && VBYTES == 16
    __m128i x = _mm_packs_epi32((__m128i)v[0], (__m128i)v[1]);
    __m128i y = _mm_packs_epi32((__m128i)v[2], (__m128i)v[3]);
    _mm_storeu_si128((__m128i *)to, _mm_packus_epi16(x, y));
#else
    for (int u = 0; u < TOGETHER; u++)
        store_lanes(to + u * VW, v[u], VW);
#endif
}

static void row_bytes(uint8_t *to, const real *x, int64_t k, real smallest, real factor)
{
    const vreal low = vset(smallest), inverse = vset(factor);
    int64_t i = 0;
    for (; i + TOGETHER * VW <= k; i += TOGETHER * VW) {
        vint v[TOGETHER];
        for (int u = 0; u < TOGETHER; u++)
            v[u] = quantised(vload(x + i + u * VW), low, inverse);
        store_bytes(to + i, v);
    }
    for (; i < k; i += VW)
        store_lanes(to + i, quantised(vload_at(x, i, k), low, inverse), k - i < VW ? k - i : VW);
}

void K(panel_quantise)(const heed__panel_rows *rows, const real *a, int64_t lda, int64_t m,
                       int64_t k)
{
    const int64_t size = 4 * heed__panel_groups(k);
    for (int64_t i = 0; i < m; i++) {
        const real *x = a + i * lda;
        uint8_t *to = rows->bytes + i * size;
        bounds b = k > 0 ? row_bounds(x, k) : (bounds){0, 0};
        real range = b.high - b.low;
        rows->low[i] = (float)b.low;
        rows->step[i] = (float)(range / MOST);
        row_bytes(to, x, k, b.low, range > 0 ? MOST / range : 0);
        memset(to + k, 0, (size_t)(size - k));
    }
}

/* ---- with a multiplier ---- */

/* Added to a small value of either sign it rounds to the nearest, ties to even, and leaves the
 * integer in the lowest bits. */
#ifdef HEED_DOUBLE
#define FIXED_ROUNDER ((real)6755399441055744.0)
#else
#define FIXED_ROUNDER ((real)12582912.0)
#endif

/* What is not finite becomes some byte, and `finite` NaN. */
VINLINE vint fixed(vreal x, vreal multiplier, vreal *finite)
{
    const vreal y = vmax(vset(-MOST), vmin(vset(MOST), x * multiplier));
    *finite += x * 0;
    return ((vint)(y + FIXED_ROUNDER) + MOST) & 255;
}

void K(panel_quantise_fixed)(const heed__panel_rows *rows, const real *a, int64_t lda, int64_t m,
                             int64_t k, float multiplier)
{
    const int64_t size = 4 * heed__panel_groups(k);
    const vreal by = vset((real)multiplier);
    for (int64_t i = 0; i < m; i++) {
        const real *x = a + i * lda;
        uint8_t *to = rows->bytes + i * size;
        vreal finite = vset(0);
        int64_t at = 0;
        for (; at + TOGETHER * VW <= k; at += TOGETHER * VW) {
            vint v[TOGETHER];
            for (int u = 0; u < TOGETHER; u++)
                v[u] = fixed(vload(x + at + u * VW), by, &finite);
            store_bytes(to + at, v);
        }
        for (; at < k; at += VW)
            store_lanes(to + at, fixed(vload_at(x, at, k), by, &finite), k - at < VW ? k - at : VW);
        rows->step[i] = 1 / multiplier + (float)vsum(finite);
        rows->low[i] = -MOST / multiplier;
        memset(to + k, 0, (size_t)(size - k));
    }
}

/* ---- columns to fp32 ---- */

void K(panel_column)(real *out, const heed__panel_weights *w, int64_t j, real factor)
{
    const int64_t panel = j / HEED_PANEL, column = j % HEED_PANEL;
    if (w->bits == 0) {
        const real *from = w->real + panel * w->k * HEED_PANEL + column;
        for (int64_t i = 0; i < w->k; i++)
            out[i] = factor * from[i * HEED_PANEL];
        return;
    }
    const int8_t *from = w->bytes + (panel * heed__panel_groups(w->k) * HEED_PANEL + column) * 4;
    const real scale = factor * (real)w->scale[j];
    for (int64_t i = 0; i < w->k; i++)
        out[i] = scale * (real)from[i / 4 * 4 * HEED_PANEL + i % 4];
}
