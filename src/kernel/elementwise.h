/* elementwise.h: y = f(x) and its derivative, sums of arrays, broadcast arithmetic, for one row or
 * a contiguous run of n numbers.
 *
 *   unary       y = f(x); y may be x
 *   unary_grad  dx += dy f'(x); HEED__UNARY_NEEDS_X says whether it reads x, else it reads y = f(x)
 *               (the other may be NULL).  dx may be dy only if nothing else is wanted: dx += dx f'
 *   arith       y = a op b
 *   arith_one   y = a op s
 *   accumulate  y += s x
 *   accumulate_product  y += s a b (s is 1 or -1 or any number)
 * The rest are the reductions of one row. */
#ifndef HEED_KERNEL_ELEMENTWISE_H
#define HEED_KERNEL_ELEMENTWISE_H

#include <heed/base.h>

/* Identity and the activations stand first, in the order of heed_activation.  X(name, whether the
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
        HEED__UNARY_COUNT
} heed__unary_kind;

static inline bool heed__unary_needs_x(int kind)
{
#define HEED__UNARY_BIT(name, needs_x) | ((unsigned)(needs_x) << HEED__UNARY_##name)
    return (0u HEED__UNARY_LIST(HEED__UNARY_BIT)) >> kind & 1u;
#undef HEED__UNARY_BIT
}

typedef enum heed__arith_kind {
    HEED__ADD,
    HEED__SUB,
    HEED__MUL,
    HEED__DIV,
} heed__arith_kind;

#define HEED_KERNELS_ELEMENTWISE(X)                                                                \
    X(void, unary, (int kind, heed_real *y, const heed_real *x, int64_t n))                        \
    X(void, unary_grad,                                                                            \
      (int kind, heed_real *dx, const heed_real *dy, const heed_real *x, const heed_real *y,       \
       int64_t n))

#endif
