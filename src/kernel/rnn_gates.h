/* rnn_gates.h: the pointwise part of an LSTM, GRU or SSRU step, for one row of d units.
 *
 * `gates` is a row of blocks of d elements: on entry the recurrent products, on exit what backward
 * needs.  `grad` is the row of gradients that backward computes, also in blocks of d.  `after`: the
 * reset gate is applied after the product; `takes`: z weights the new state.  bias (3d) or NULL. */
#ifndef HEED_KERNEL_RNN_GATES_H
#define HEED_KERNEL_RNN_GATES_H

#include <heed/base.h>

/* lstm_cell       gates [hU: i f g o | -] -> [i f g o | tanh c]; h and c
 * lstm_cell_grad  grad = [di df dg do | dc_prev]; dh or dc may be NULL for zeros
 * gru_reset       gates [hU: r z (n) | -] -> [r z . | q], q = r h_prev, or with the reset after
 *                 the product q = h U_n + bias
 * gru_new         gates [. . (r h)U_n | q] -> [. . n | q]; h
 * gru_new_grad    grad = [dr dz dq | dn | dh_prev's direct part]; dr and dq only if after
 * gru_reset_grad  for the reset before the product: dr from grad's dq, and dh_prev += r dq
 * ssru_cell       h and c from x and f; bias is added to f; c_prev NULL for zeros, and may be c; h
 *                 may be NULL
 * ssru_cell_grad  adds to dx and df, each of which may be NULL; carry: dc of the step behind, on
 *                 exit of the one before */
#define HEED_KERNELS_RECURRENT(X)                                                                  \
    X(void, lstm_cell,                                                                             \
      (heed_real * h, heed_real * c, heed_real * gates, const heed_real *x,                        \
       const heed_real *c_prev, int64_t d))                                                        \
    X(void, lstm_cell_grad,                                                                        \
      (heed_real * grad, const heed_real *dh, const heed_real *dc, const heed_real *gates,         \
       const heed_real *c_prev, int64_t d))                                                        \
    X(void, gru_reset,                                                                             \
      (heed_real * gates, const heed_real *x, const heed_real *h_prev, const heed_real *bias,      \
       bool after, int64_t d))                                                                     \
    X(void, gru_new,                                                                               \
      (heed_real * h, heed_real * gates, const heed_real *x, const heed_real *h_prev,              \
       const heed_real *bias, bool after, bool takes, int64_t d))                                  \
    X(void, gru_new_grad,                                                                          \
      (heed_real * grad, const heed_real *dh, const heed_real *gates, const heed_real *h_prev,     \
       bool after, bool takes, int64_t d))                                                         \
    X(void, gru_reset_grad,                                                                        \
      (heed_real * grad, const heed_real *gates, const heed_real *h_prev, int64_t d))              \
    X(void, ssru_cell,                                                                             \
      (heed_real * h, heed_real * c, const heed_real *x, const heed_real *f,                       \
       const heed_real *bias, const heed_real *c_prev, int64_t d))                                 \
    X(void, ssru_cell_grad,                                                                        \
      (heed_real * dx, heed_real * df, heed_real * carry, const heed_real *dh, const heed_real *x, \
       const heed_real *f, const heed_real *c, const heed_real *c_prev, int64_t d))

#endif
