/* elementwise.h: functions, arithmetic and their derivatives over n contiguous elements. */
#ifndef HEED_KERNEL_ELEMENTWISE_H
#define HEED_KERNEL_ELEMENTWISE_H

#include <heed/base.h>

/* Identity and the activations come first, in the order of heed_activation.  X(name, whether the
 * derivative reads x rather than y) */
#define HEED__UNARY_LIST(X)                                                                        \
    X(IDENTITY, false)                                                                             \
    X(RELU, false)                                                                                 \
    X(GELU, true)                                                                                  \
    X(GELU_TANH, true)                                                                             \
    X(SILU, true)                                                                                  \
    X(TANH, false)                                                                                 \
    X(SIGMOID, false)                                                                              \
    X(SOFTPLUS, true)                                                                              \
    X(ABS, true)                                                                                   \
    X(EXP, false)                                                                                  \
    X(LOG, true)                                                                                   \
    X(SQRT, false)                                                                                 \
    X(SQUARE, true)                                                                                \
    X(ERF, true)

typedef enum heed__unary_kind {
#define HEED__UNARY_ENUM(name, needs_x) HEED__UNARY_##name,
    HEED__UNARY_LIST(HEED__UNARY_ENUM)
#undef HEED__UNARY_ENUM
} heed__unary_kind;

static inline bool heed__unary_needs_x(int kind)
{
#define HEED__UNARY_BIT(name, needs_x) | (unsigned)(needs_x) << HEED__UNARY_##name
    return (0u HEED__UNARY_LIST(HEED__UNARY_BIT)) >> kind & 1u;
#undef HEED__UNARY_BIT
}

typedef enum heed__arith_kind { HEED__ADD, HEED__SUB, HEED__MUL, HEED__DIV } heed__arith_kind;

/* An output may be one of the inputs.
 *
 *   unary         y = f(x)
 *   unary_grad    dx += dy f'; reads x where heed__unary_needs_x, else y = f(x): the other may be
 *                 NULL
 *   affine        y = scale x + shift
 *   clamp         y = min(max(x, low), high); clamp_grad: dx += dy where x is inside
 *   arith         y = a op b; arith_one: y = a op b for a single b
 *   accumulate    y += scale x; increase: y += scale
 *   multiply_add  y += a b
 *   divide_add    y += a / b
 *   divide_grad   db -= dy y / b, for y = a / b */
#define HEED_KERNELS_ELEMENTWISE(X)                                                                \
    X(void, unary, (int kind, heed_real *y, const heed_real *x, int64_t n))                        \
    X(void, unary_grad,                                                                            \
      (int kind, heed_real *dx, const heed_real *dy, const heed_real *x, const heed_real *y,       \
       int64_t n))                                                                                 \
    X(void, affine,                                                                                \
      (heed_real * y, const heed_real *x, heed_real scale, heed_real shift, int64_t n))            \
    X(void, clamp, (heed_real * y, const heed_real *x, heed_real low, heed_real high, int64_t n))  \
    X(void, clamp_grad,                                                                            \
      (heed_real * dx, const heed_real *dy, const heed_real *x, heed_real low, heed_real high,     \
       int64_t n))                                                                                 \
    X(void, arith, (int kind, heed_real *y, const heed_real *a, const heed_real *b, int64_t n))    \
    X(void, arith_one, (int kind, heed_real *y, const heed_real *a, heed_real b, int64_t n))       \
    X(void, accumulate, (heed_real * y, const heed_real *x, heed_real scale, int64_t n))           \
    X(void, increase, (heed_real * y, heed_real scale, int64_t n))                                 \
    X(void, multiply_add, (heed_real * y, const heed_real *a, const heed_real *b, int64_t n))      \
    X(void, divide_add, (heed_real * y, const heed_real *a, const heed_real *b, int64_t n))        \
    X(void, divide_grad,                                                                           \
      (heed_real * db, const heed_real *dy, const heed_real *y, const heed_real *b, int64_t n))

#endif
