/* panels.c: packing weights into the layouts of panels.h.  Compiled once: packing is done once per
 * model. */
#include "kernel/panels.h"

#include <math.h>
#include <string.h>

int64_t heed__panel_reals(int64_t k, int64_t n)
{
    return heed__panels(n) * k * HEED_PANEL;
}

int64_t heed__panel_bytes(int64_t k, int64_t n)
{
    return heed__panels(n) * heed__panel_groups(k) * 4 * HEED_PANEL;
}

void heed__panel_pack(heed_real *panels, const heed_real *w, int64_t row, int64_t col, int64_t k,
                      int64_t n)
{
    for (int64_t left = 0; left < n; left += HEED_PANEL) {
        const int64_t width = n - left < HEED_PANEL ? n - left : HEED_PANEL;
        for (int64_t i = 0; i < k; i++, panels += HEED_PANEL) {
            const heed_real *from = w + i * row + left * col;
            for (int64_t j = 0; j < width; j++)
                panels[j] = from[j * col];
            for (int64_t j = width; j < HEED_PANEL; j++)
                panels[j] = 0;
        }
    }
}

/* The largest |x| of up to HEED_PANEL columns; NaN is ignored. */
static void column_sizes(double *size, const heed_real *w, int64_t row, int64_t col, int64_t k,
                         int64_t width)
{
    for (int64_t j = 0; j < HEED_PANEL; j++)
        size[j] = 0;
    for (int64_t i = 0; i < k; i++)
        for (int64_t j = 0; j < width; j++) {
            double x = fabs((double)w[i * row + j * col]);
            size[j] = x > size[j] ? x : size[j];
        }
}

/* To the nearest integer of -127..127; NaN becomes 0. */
static int8_t rounded(double x)
{
    if (!(fabs(x) <= 127))
        x = x > 0 ? 127 : x < 0 ? -127 : 0;
    return (int8_t)lrint(x);
}

static int64_t byte_place(int64_t i, int64_t j)
{
    return (i / 4 * HEED_PANEL + j) * 4 + i % 4;
}

/* The largest sum of weights of one sign among those of a column that are added in 16 bits
 * (panels.h). */
static int32_t most_that_meet(const int8_t *panel, int64_t j, int64_t k)
{
    int32_t most = 0;
    for (int64_t step = 0; step < k; step += HEED_PANEL_STEP)
        for (int64_t half = 0; half < 4; half += 2) {
            int32_t above = 0, below = 0;
            for (int64_t i = step + half; i < step + HEED_PANEL_STEP; i += 4)
                for (int64_t u = i; u < i + 2; u++) {
                    const int32_t byte = panel[byte_place(u, j)];
                    *(byte > 0 ? &above : &below) += byte;
                }
            most = above > most ? above : most;
            most = -below > most ? -below : most;
        }
    return most;
}

/* Column j of a panel of zeros; its elements are from[i * row].  As long as some 16-bit sum is too
 * large, the step is enlarged by that excess: a few rounds are enough. */
static void pack_column(int8_t *panel, float *scale, int32_t *sum, const heed_real *from,
                        int64_t row, int64_t k, int64_t j, double largest)
{
    double step = largest > 1e-300 ? largest / 127 : 0; /* whose inverse is finite */
    for (int32_t most = HEED_PANEL_MOST + 1; most > HEED_PANEL_MOST;) {
        const double inverse = step > 0 ? 1 / step : 0;
        *sum = 0;
        for (int64_t i = 0; i < k; i++)
            *sum += panel[byte_place(i, j)] = rounded((double)from[i * row] * inverse);
        *scale = (float)step;
        most = most_that_meet(panel, j, k);
        step *= (double)most / HEED_PANEL_MOST;
    }
}

void heed__panel_pack_int8(int8_t *panels, float *scale, int32_t *sum, const heed_real *w,
                           int64_t row, int64_t col, int64_t k, int64_t n)
{
    const int64_t size = heed__panel_groups(k) * 4 * HEED_PANEL;
    for (int64_t left = 0; left < n; left += HEED_PANEL, panels += size) {
        const int64_t width = n - left < HEED_PANEL ? n - left : HEED_PANEL;
        const heed_real *from = w + left * col;
        double largest[HEED_PANEL];
        column_sizes(largest, from, row, col, k, width);
        memset(panels, 0, (size_t)size);
        for (int64_t j = 0; j < HEED_PANEL; j++) {
            scale[left + j] = 0;
            sum[left + j] = 0;
            if (j < width)
                pack_column(panels, scale + left + j, sum + left + j, from + j * col, row, k, j,
                            largest[j]);
        }
    }
}

int64_t heed__panel_keep_int8(int8_t *panels, float *scale, int32_t *sum, const int8_t *w,
                              int64_t row, int64_t col, int64_t k, int64_t n, float of_all,
                              int32_t most)
{
    const int64_t size = heed__panel_groups(k) * 4 * HEED_PANEL;
    memset(panels, 0, (size_t)heed__panel_bytes(k, n));
    for (int64_t j = 0; j < heed__panels(n) * HEED_PANEL; j++) {
        int8_t *panel = panels + j / HEED_PANEL * size;
        scale[j] = j < n ? of_all : 0;
        sum[j] = 0;
        for (int64_t i = 0; j < n && i < k; i++)
            sum[j] += panel[byte_place(i, j % HEED_PANEL)] = w[i * row + j * col];
    }
    return heed__panel_exceeding(panels, k, n, most);
}

int64_t heed__panel_exceeding(const int8_t *panels, int64_t k, int64_t n, int32_t most)
{
    const int64_t size = heed__panel_groups(k) * 4 * HEED_PANEL;
    int64_t columns = 0;
    for (int64_t j = 0; j < n; j++)
        columns += most_that_meet(panels + j / HEED_PANEL * size, j % HEED_PANEL, k) > most;
    return columns;
}

/* Lane j of each of `steps` steps of a panel, from column to column. */
#define SELECT(type, to, from, steps)                                                              \
    for (int64_t j = 0; j < columns; j++) {                                                        \
        type *into = (type *)(to) + j / HEED_PANEL * (steps)*HEED_PANEL + j % HEED_PANEL;          \
        const int64_t c = j < count ? column[j] : 0;                                               \
        const type *out_of =                                                                       \
            (const type *)(from) + c / HEED_PANEL * (steps)*HEED_PANEL + c % HEED_PANEL;           \
        for (int64_t s = 0; s < (steps)*HEED_PANEL; s += HEED_PANEL)                               \
            into[s] = j < count ? out_of[s] : 0;                                                   \
    }

void heed__panel_select(heed__panel_weights *selected, void *memory, const heed__panel_weights *w,
                        const int32_t *column, int64_t count)
{
    const int64_t columns = heed__panels(count) * HEED_PANEL;
    *selected = (heed__panel_weights){
        .k = w->k, .n = count, .bits = w->bits, .multiplier = w->multiplier, .wide = w->wide};
    if (!w->bits) {
        SELECT(heed_real, memory, w->real, w->k)
        selected->real = memory;
        return;
    }
    /* Four rows of a column are one lane of 32 bits. */
    SELECT(int32_t, memory, w->bytes, heed__panel_groups(w->k))
    float *scale = (float *)((char *)memory + heed__panel_bytes(w->k, count));
    int32_t *sum = (int32_t *)(scale + columns);
    for (int64_t j = 0; j < columns; j++) {
        scale[j] = j < count ? w->scale[column[j]] : 0;
        sum[j] = j < count ? w->sum[column[j]] : 0;
    }
    selected->bytes = memory;
    selected->scale = scale;
    selected->sum = sum;
}
