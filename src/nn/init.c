/* init.c: initial values of parameters.
 *
 * Xavier (Glorot and Bengio 2010), Kaiming (He et al. 2015) with fan-in = rows and fan-out = cols
 * of an (in,out) matrix; orthogonal (Saxe et al. 2014) is the Q of the QR decomposition of a
 * Gaussian matrix with R's diagonal positive, which is uniform over the orthogonal matrices.
 * Element i comes from element i of the stream, so a value does not depend on earlier draws. */
#include "nn/init.h"

#include "base/memory.h"
#include <math.h>

bool heed__init_fits(heed_init init, heed_shape shape)
{
    switch (init.kind) {
    case HEED_INIT_XAVIER_UNIFORM:
    case HEED_INIT_XAVIER_NORMAL:
    case HEED_INIT_KAIMING:
    case HEED_INIT_ORTHOGONAL:
    case HEED_INIT_DIRECTIONS:
        return shape.rank >= 2;
    default:
        return true;
    }
}

static double dot(const double *a, const double *b, int64_t n)
{
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t i = 0; i < n; i++)
        sum += a[i] * b[i];
    return sum;
}

/* v -= (v.q) q for each of the `before` orthonormal vectors q of length n. */
static void project_out(double *v, const double *q, int64_t before, int64_t n)
{
    for (int64_t j = 0; j < before; j++) {
        double along = dot(v, q + j * n, n);
        for (int64_t i = 0; i < n; i++)
            v[i] -= along * q[j * n + i];
    }
}

/* QR by modified Gram-Schmidt on `count` vectors of length n >= count, stored as rows.  A vector
 * that becomes much shorter is projected a second time, which makes Q orthogonal to rounding
 * ("twice is enough", Kahan and Parlett). */
static void orthonormalise(double *q, int64_t count, int64_t n)
{
    for (int64_t k = 0; k < count; k++) {
        double *v = q + k * n;
        double whole = sqrt(dot(v, v, n));
        project_out(v, q, k, n);
        double left = sqrt(dot(v, v, n));
        if (left < 0.5 * whole) {
            project_out(v, q, k, n);
            left = sqrt(dot(v, v, n));
        }
        for (int64_t i = 0; i < n; i++)
            v[i] /= left;
    }
}

static heed_status draw_orthogonal(heed_real *values, int64_t rows, int64_t cols, double scale,
                                   const heed_rng *rng, const heed_allocator *allocator)
{
    /* The vectors are the columns of a tall matrix, the rows of a wide one. */
    bool tall = rows > cols;
    int64_t count = tall ? cols : rows, n = tall ? rows : cols;
    double *q = heed__allocate(allocator, (size_t)(count * n), sizeof *q);
    if (!q)
        return HEED_MEMORY;
    for (int64_t i = 0; i < count * n; i++)
        q[i] = heed_rng_normal(rng, (uint64_t)i);
    orthonormalise(q, count, n);
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < cols; c++)
            values[r * cols + c] = (heed_real)(scale * (tall ? q[c * n + r] : q[r * n + c]));
    heed__release(allocator, q, (size_t)(count * n), sizeof *q);
    return HEED_OK;
}

/* Blocks of at most `cols` rows that are orthogonal to each other; then each row gets the length of
 * another normal vector, so that by itself it is one (Choromanski et al. 2021, section 2.4). */
static heed_status draw_directions(heed_real *values, int64_t rows, int64_t cols, double scale,
                                   const heed_rng *rng, const heed_allocator *allocator)
{
    double *q = heed__allocate(allocator, (size_t)(rows * cols), sizeof *q);
    if (!q)
        return HEED_MEMORY;
    for (int64_t i = 0; i < rows * cols; i++)
        q[i] = heed_rng_normal(rng, (uint64_t)i);
    for (int64_t r = 0; r < rows; r += cols)
        orthonormalise(q + r * cols, rows - r < cols ? rows - r : cols, cols);
    for (int64_t r = 0; r < rows; r++) {
        double square = 0;
        for (int64_t c = 0; c < cols; c++) {
            const double x = heed_rng_normal(rng, (uint64_t)((rows + r) * cols + c));
            square += x * x;
        }
        for (int64_t c = 0; c < cols; c++)
            values[r * cols + c] = (heed_real)(scale * sqrt(square) * q[r * cols + c]);
    }
    heed__release(allocator, q, (size_t)(rows * cols), sizeof *q);
    return HEED_OK;
}

static void draw_uniform(heed_real *values, int64_t n, double bound, const heed_rng *rng)
{
    for (int64_t i = 0; i < n; i++)
        values[i] = (heed_real)(bound * (2 * heed_rng_uniform(rng, (uint64_t)i) - 1));
}

static void draw_normal(heed_real *values, int64_t n, double deviation, const heed_rng *rng)
{
    for (int64_t i = 0; i < n; i++)
        values[i] = (heed_real)(deviation * heed_rng_normal(rng, (uint64_t)i));
}

heed_status heed__init_draw(heed_real *values, int64_t rows, int64_t cols, heed_init init,
                            const heed_rng *rng, const heed_allocator *allocator)
{
    int64_t n = rows * cols;
    double in = (double)rows, out = (double)cols, scale = init.scale;
    switch (init.kind) {
    case HEED_INIT_ZERO:
    case HEED_INIT_CONSTANT:
        for (int64_t i = 0; i < n; i++)
            values[i] = init.kind == HEED_INIT_ZERO ? 0 : (heed_real)scale;
        break;
    case HEED_INIT_UNIFORM:
        draw_uniform(values, n, scale, rng);
        break;
    case HEED_INIT_NORMAL:
        draw_normal(values, n, scale, rng);
        break;
    case HEED_INIT_XAVIER_UNIFORM:
        draw_uniform(values, n, scale * sqrt(6 / (in + out)), rng);
        break;
    case HEED_INIT_XAVIER_NORMAL:
        draw_normal(values, n, scale * sqrt(2 / (in + out)), rng);
        break;
    case HEED_INIT_KAIMING:
        draw_normal(values, n, scale * sqrt(2 / in), rng);
        break;
    case HEED_INIT_ORTHOGONAL:
        return draw_orthogonal(values, rows, cols, scale, rng, allocator);
    case HEED_INIT_DIRECTIONS:
        return draw_directions(values, rows, cols, scale, rng, allocator);
    }
    return HEED_OK;
}
