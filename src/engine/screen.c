/* screen.c: see screen.h. */
#include "engine/screen.h"
#include "base/memory.h"

#include <float.h>
#include <math.h>
#include <pthread.h>

/* It pays off above this many rows. */
#define PAYING_ROWS 256

struct heed__screen {
    heed_allocator allocator;
    const heed__panel_weights *output;
    pthread_mutex_t lock; /* of what follows */
    bool tried;
    int64_t rows;      /* that the sessions asked for until then */
    heed_arena *arena; /* of the screening matrix; NULL: it is not there */
    heed__screening screening;
};

bool heed__screen_pays(const heed__panel_weights *output)
{
    return !output->bits && !output->bias && !output->from_memory;
}

heed__screen *heed__screen_new(const heed__panel_weights *output, heed_arena *arena,
                               const heed_allocator *allocator)
{
    heed__screen *s = heed_arena_allocate(arena, sizeof *s);
    if (!s)
        return NULL;
    *s = (heed__screen){.allocator = heed__allocator_or_default(allocator), .output = output};
    pthread_mutex_init(&s->lock, NULL);
    return s;
}

void heed__screen_free(heed__screen *s)
{
    if (!s)
        return;
    pthread_mutex_destroy(&s->lock);
    heed_arena_free(s->arena);
}

/* ---- the matrix ---- */

/* Squares of lengths below this keep all products far from what a float can hold. */
#define ABSURD 1e30

/* Rounded to a number that is not smaller, nor so small that products of it are subnormal. */
static heed_real not_below(double x)
{
    return (heed_real)(x * (1 + 4 * (double)FLT_EPSILON) + 1e-15);
}

/* One panel: int8 values, and how long its columns are; false if one of them is absurd. */
static bool round_panel(heed__screen *s, int64_t panel, int8_t *bytes, float *scale, int32_t *sum,
                        heed_real *norm, heed_real *error)
{
    const int64_t k = s->output->k, left = panel * HEED_PANEL;
    const heed_real *w = s->output->real + panel * k * HEED_PANEL;
    int8_t *to = bytes + panel * heed__panel_bytes(k, HEED_PANEL);
    heed__panel_pack_int8(to, scale + left, sum + left, w, HEED_PANEL, 1, k, HEED_PANEL);
    for (int64_t j = 0; j < HEED_PANEL; j++) {
        double squares = 0, wrong = 0;
        for (int64_t i = 0; i < k; i++) {
            double x = (double)w[i * HEED_PANEL + j];
            double rest = x - (double)scale[left + j] * to[(i / 4 * HEED_PANEL + j) * 4 + i % 4];
            squares += x * x;
            wrong += rest * rest;
        }
        if (!(squares < ABSURD))
            return false;
        norm[left + j] = not_below(sqrt(squares));
        error[left + j] = not_below(sqrt(wrong));
    }
    return true;
}

/* In the arena; what is small comes first, because a chunk of it is as large as all before. */
static bool make(heed__screen *s, heed_arena *arena)
{
    const int64_t k = s->output->k, n = s->output->n, panels = heed__panels(n);
    const size_t columns = (size_t)(panels * HEED_PANEL);
    float *scale = heed_arena_allocate(arena, columns * sizeof *scale);
    int32_t *sum = heed_arena_allocate(arena, columns * sizeof *sum);
    heed_real *norm = heed_arena_allocate(arena, columns * sizeof *norm);
    heed_real *error = heed_arena_allocate(arena, columns * sizeof *error);
    int8_t *bytes = heed_arena_allocate(arena, (size_t)heed__panel_bytes(k, n));
    if (!bytes || !scale || !sum || !norm || !error)
        return false;
    for (int64_t p = 0; p < panels; p++)
        if (!round_panel(s, p, bytes, scale, sum, norm, error))
            return false;
    s->screening = (heed__screening){
        .w = {.k = k, .n = n, .bits = 8, .bytes = bytes, .scale = scale, .sum = sum},
        .norm = norm,
        .error = error};
    return true;
}

const heed__screening *heed__screen_matrix(heed__screen *s, int64_t rows)
{
    pthread_mutex_lock(&s->lock);
    if (!s->tried && (s->rows += rows) >= PAYING_ROWS) {
        s->tried = true;
        s->arena = heed_arena_new(&s->allocator, NULL);
        if (s->arena && !make(s, s->arena)) {
            heed_arena_free(s->arena);
            s->arena = NULL;
        }
    }
    const bool there = s->arena;
    pthread_mutex_unlock(&s->lock);
    return there ? &s->screening : NULL;
}

/* ---- a row ---- */

bool heed__screening_bound(const heed__screening *r, const heed_real *x, const uint8_t *bytes,
                           float low, float step, heed__screen_bound *bound)
{
    const int64_t k = r->w.k;
    double squares = 0, wrong = 0;
    for (int64_t i = 0; i < k; i++) {
        double rest = (double)x[i] - ((double)low + (double)step * bytes[i]);
        squares += (double)x[i] * (double)x[i];
        wrong += rest * rest;
    }
    /* Both products also round as they add up K numbers, none of which is above this: */
    const double most = sqrt(squares) + sqrt((double)k) * (fabs((double)low) + 127 * (double)step);
    const double rounding = (double)(k + 8) * (double)FLT_EPSILON * most;
    *bound = (heed__screen_bound){.norm = r->norm,
                                  .error = r->error,
                                  .a = not_below(sqrt(wrong) + rounding),
                                  .b = not_below(sqrt(squares) + sqrt(wrong) + rounding)};
    return squares < ABSURD;
}
