/* elementwise.c: see elementwise.h.  One loop, MAP, for all; the switch over the function is
 * outside it. */
#include "kernel/elementwise.h"
#include "kernel/isa.h"
#include "kernel/kernels.h"
#include "kernel/vecmath.h"

#define DECLARE(result, name, arguments) result K(name) arguments;
HEED_KERNELS_ELEMENTWISE(DECLARE)

/* out = expression for i in [0,n), where AT(p) is the register at p[i]; the tail goes through the
 * same expression. */
#define AT(p) (whole ? vload((p) + i) : vload_first((p) + i, n - i))
#define MAP(out, expression)                                                                       \
    do {                                                                                           \
        int64_t i = 0;                                                                             \
        for (; i + VW <= n; i += VW) {                                                             \
            enum { whole = 1 };                                                                    \
            vstore((out) + i, expression);                                                         \
        }                                                                                          \
        if (i < n) {                                                                               \
            enum { whole = 0 };                                                                    \
            vstore_first((out) + i, expression, n - i);                                            \
        }                                                                                          \
    } while (0)

#define SQRT_HALF ((real)0.70710678118654752440)
#define SQRT_2_OVER_PI ((real)0.79788456080286535588)
#define ONE_OVER_SQRT_2PI ((real)0.39894228040143267794)
#define TWO_OVER_SQRT_PI ((real)1.12837916709551257390)
#define GELU_CUBIC ((real)0.044715)

/* ---- the functions ---- */

VINLINE vreal relu(vreal x)
{
    return vmax(vset(0), x); /* NaN stays */
}

/* x Phi(x) */
VINLINE vreal gelu(vreal x)
{
    return (real)0.5 * x * ((real)1 + verf(x * SQRT_HALF));
}

/* x/2 (1 + tanh u) = x sigmoid(2u), u = sqrt(2/pi) (x + 0.044715 x^3) */
VINLINE vreal gelu_tanh(vreal x)
{
    return x * vsigmoid((real)2 * SQRT_2_OVER_PI * (x + GELU_CUBIC * x * x * x));
}

VINLINE vreal silu(vreal x)
{
    return x * vsigmoid(x);
}

/* log(1 + e^x) without overflow */
VINLINE vreal softplus(vreal x)
{
    return relu(x) + vlog1p(vexp(-vabs(x)));
}

void K(unary)(int kind, real *y, const real *x, int64_t n)
{
    switch ((heed__unary_kind)kind) {
    case HEED__UNARY_IDENTITY:
        MAP(y, AT(x));
        break;
    case HEED__UNARY_RELU:
        MAP(y, relu(AT(x)));
        break;
    case HEED__UNARY_GELU:
        MAP(y, gelu(AT(x)));
        break;
    case HEED__UNARY_GELU_TANH:
        MAP(y, gelu_tanh(AT(x)));
        break;
    case HEED__UNARY_SILU:
        MAP(y, silu(AT(x)));
        break;
    case HEED__UNARY_TANH:
        MAP(y, vtanh(AT(x)));
        break;
    case HEED__UNARY_SIGMOID:
        MAP(y, vsigmoid(AT(x)));
        break;
    case HEED__UNARY_SOFTPLUS:
        MAP(y, softplus(AT(x)));
        break;
    case HEED__UNARY_ABS:
        MAP(y, vabs(AT(x)));
        break;
    case HEED__UNARY_EXP:
        MAP(y, vexp(AT(x)));
        break;
    case HEED__UNARY_LOG:
        MAP(y, vlog(AT(x)));
        break;
    case HEED__UNARY_SQRT:
        MAP(y, vsqrt(AT(x)));
        break;
    case HEED__UNARY_SQUARE:
        MAP(y, AT(x) * AT(x));
        break;
    case HEED__UNARY_ERF:
        MAP(y, verf(AT(x)));
        break;
    }
}

/* ---- their derivatives ---- */

/* y = |x|, y' = sign x, 0 at 0 */
VINLINE vreal sign(vreal x)
{
    return vselect(x == (real)0, vset(0), vcopysign(vset(1), x));
}

/* y = x Phi(x), y' = Phi(x) + x phi(x) */
VINLINE vreal gelu_grad(vreal x)
{
    vreal phi = ONE_OVER_SQRT_2PI * vexp((real)-0.5 * x * x);
    return (real)0.5 * ((real)1 + verf(x * SQRT_HALF)) + x * phi;
}

/* y = x s, s = sigmoid(2u), u = sqrt(2/pi) (x + 0.044715 x^3), so y' = s + x s (1-s) 2u' with
 * u' = sqrt(2/pi) (1 + 3 * 0.044715 x^2).  For |x| > 40 it is 0 or 1, and x^3 must not overflow. */
VINLINE vreal gelu_tanh_grad(vreal x)
{
    x = vmax(vset(-40), vmin(vset(40), x));
    vreal square = x * x;
    vreal s = vsigmoid((real)2 * SQRT_2_OVER_PI * (x + GELU_CUBIC * square * x));
    vreal inner = (real)2 * SQRT_2_OVER_PI * ((real)1 + (real)3 * GELU_CUBIC * square);
    return s + x * s * ((real)1 - s) * inner;
}

/* y = x s, s = sigmoid(x), so y' = s (1 + x (1-s)) */
VINLINE vreal silu_grad(vreal x)
{
    vreal s = vsigmoid(x);
    return s * ((real)1 + x * ((real)1 - s));
}

VINLINE vreal positive(vreal dy, vreal y)
{
    return (vreal)((vint)dy & (y > (real)0));
}

void K(unary_grad)(int kind, real *dx, const real *dy, const real *x, const real *y, int64_t n)
{
    switch ((heed__unary_kind)kind) {
    case HEED__UNARY_IDENTITY:
        MAP(dx, AT(dx) + AT(dy));
        break;
    case HEED__UNARY_RELU:
        MAP(dx, AT(dx) + positive(AT(dy), AT(y)));
        break;
    case HEED__UNARY_GELU:
        MAP(dx, AT(dx) + AT(dy) * gelu_grad(AT(x)));
        break;
    case HEED__UNARY_GELU_TANH:
        MAP(dx, AT(dx) + AT(dy) * gelu_tanh_grad(AT(x)));
        break;
    case HEED__UNARY_SILU:
        MAP(dx, AT(dx) + AT(dy) * silu_grad(AT(x)));
        break;
    case HEED__UNARY_TANH:
        MAP(dx, AT(dx) + AT(dy) * ((real)1 - AT(y) * AT(y)));
        break;
    case HEED__UNARY_SIGMOID:
        MAP(dx, AT(dx) + AT(dy) * (AT(y) * ((real)1 - AT(y))));
        break;
    case HEED__UNARY_SOFTPLUS:
        MAP(dx, AT(dx) + AT(dy) * vsigmoid(AT(x)));
        break;
    case HEED__UNARY_ABS:
        MAP(dx, AT(dx) + AT(dy) * sign(AT(x)));
        break;
    case HEED__UNARY_EXP:
        MAP(dx, AT(dx) + AT(dy) * AT(y));
        break;
    case HEED__UNARY_LOG:
        MAP(dx, AT(dx) + AT(dy) / AT(x));
        break;
    case HEED__UNARY_SQRT:
        MAP(dx, AT(dx) + (real)0.5 * AT(dy) / AT(y));
        break;
    case HEED__UNARY_SQUARE:
        MAP(dx, AT(dx) + (real)2 * AT(dy) * AT(x));
        break;
    case HEED__UNARY_ERF:
        MAP(dx, AT(dx) + AT(dy) * TWO_OVER_SQRT_PI * vexp(-AT(x) * AT(x)));
        break;
    }
}

/* ---- arithmetic ---- */

void K(affine)(real *y, const real *x, real scale, real shift, int64_t n)
{
    MAP(y, scale * AT(x) + shift);
}

void K(clamp)(real *y, const real *x, real low, real high, int64_t n)
{
    MAP(y, vmax(vset(low), vmin(vset(high), AT(x))));
}

VINLINE vreal inside(vreal dy, vreal x, real low, real high)
{
    return (vreal)((vint)dy & (x >= low) & (x <= high));
}

void K(clamp_grad)(real *dx, const real *dy, const real *x, real low, real high, int64_t n)
{
    MAP(dx, AT(dx) + inside(AT(dy), AT(x), low, high));
}

void K(arith)(int kind, real *y, const real *a, const real *b, int64_t n)
{
    switch ((heed__arith_kind)kind) {
    case HEED__ADD:
        MAP(y, AT(a) + AT(b));
        break;
    case HEED__SUB:
        MAP(y, AT(a) - AT(b));
        break;
    case HEED__MUL:
        MAP(y, AT(a) * AT(b));
        break;
    case HEED__DIV:
        MAP(y, AT(a) / AT(b));
        break;
    }
}

void K(arith_one)(int kind, real *y, const real *a, real b, int64_t n)
{
    switch ((heed__arith_kind)kind) {
    case HEED__ADD:
        MAP(y, AT(a) + b);
        break;
    case HEED__SUB:
        MAP(y, AT(a) - b);
        break;
    case HEED__MUL:
        MAP(y, AT(a) * b);
        break;
    case HEED__DIV:
        MAP(y, AT(a) / b);
        break;
    }
}

void K(accumulate)(real *y, const real *x, real scale, int64_t n)
{
    MAP(y, AT(y) + scale * AT(x));
}

void K(increase)(real *y, real scale, int64_t n)
{
    MAP(y, AT(y) + scale);
}

void K(multiply_add)(real *y, const real *a, const real *b, int64_t n)
{
    MAP(y, AT(y) + AT(a) * AT(b));
}

void K(divide_add)(real *y, const real *a, const real *b, int64_t n)
{
    MAP(y, AT(y) + AT(a) / AT(b));
}

void K(divide_grad)(real *db, const real *dy, const real *y, const real *b, int64_t n)
{
    MAP(db, AT(db) - AT(dy) * AT(y) / AT(b));
}
