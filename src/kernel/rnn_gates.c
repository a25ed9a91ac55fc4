/* rnn_gates.c: gates of the LSTM (Hochreiter and Schmidhuber 1997, with Gers' forget gate) and the
 * GRU (Cho et al. 2014; Bahdanau et al. 2015; cuDNN's form), and the SSRU's cell (Kim et al. 2019),
 * for one row of d units.
 *
 * sigma' = s (1 - s), tanh' = 1 - t^2: the derivatives need only what forward saved. */
#include "kernel/rnn_gates.h"

#include "kernel/isa.h"
#include "kernel/vecmath.h"

#define DECLARE(result, name, arguments) result K(name) arguments;
HEED_KERNELS_RECURRENT(DECLARE)

/* i = sigma(.), f = sigma(.), g = tanh(.), o = sigma(.); c = f c_prev + i g; h = o tanh(c) */
void K(lstm_cell)(real *h, real *c, real *gates, const real *x, const real *c_prev, int64_t d)
{
    real *gi = gates, *gf = gates + d, *gg = gates + 2 * d, *go = gates + 3 * d,
         *gc = gates + 4 * d;
    for (int64_t k = 0; k < d; k += VW) {
        vreal i = vsigmoid(vload_at(gi, k, d) + vload_at(x, k, d));
        vreal f = vsigmoid(vload_at(gf, k, d) + vload_at(x + d, k, d));
        vreal g = vtanh(vload_at(gg, k, d) + vload_at(x + 2 * d, k, d));
        vreal o = vsigmoid(vload_at(go, k, d) + vload_at(x + 3 * d, k, d));
        vreal cell = f * vload_at(c_prev, k, d) + i * g;
        vreal squashed = vtanh(cell);
        vstore_at(gi, i, k, d);
        vstore_at(gf, f, k, d);
        vstore_at(gg, g, k, d);
        vstore_at(go, o, k, d);
        vstore_at(gc, squashed, k, d);
        vstore_at(c, cell, k, d);
        vstore_at(h, o * squashed, k, d);
    }
}

/* h = o tanh(c), so do = dh tanh(c) and dc += dh o (1 - tanh(c)^2);
 * c = f c_prev + i g, so di = dc g, df = dc c_prev, dg = dc i, dc_prev = dc f.
 * grad receives the derivatives of the inputs of sigma and tanh. */
void K(lstm_cell_grad)(real *grad, const real *dh, const real *dc, const real *gates,
                       const real *c_prev, int64_t d)
{
    for (int64_t k = 0; k < d; k += VW) {
        vreal i = vload_at(gates, k, d), f = vload_at(gates + d, k, d);
        vreal g = vload_at(gates + 2 * d, k, d), o = vload_at(gates + 3 * d, k, d);
        vreal squashed = vload_at(gates + 4 * d, k, d);
        vreal up = dh ? vload_at(dh, k, d) : vset(0);
        vreal cell = up * o * (1 - squashed * squashed);
        if (dc)
            cell += vload_at(dc, k, d);
        vstore_at(grad, cell * g * i * (1 - i), k, d);
        vstore_at(grad + d, cell * vload_at(c_prev, k, d) * f * (1 - f), k, d);
        vstore_at(grad + 2 * d, cell * i * (1 - g * g), k, d);
        vstore_at(grad + 3 * d, up * squashed * o * (1 - o), k, d);
        vstore_at(grad + 4 * d, cell * f, k, d);
    }
}

VINLINE vreal bias_at(const real *bias, int64_t block, int64_t k, int64_t d)
{
    return bias ? vload_at(bias + block * d, k, d) : vset(0);
}

/* r = sigma(x_r + h U_r + b_r), z = sigma(x_z + h U_z + b_z) */
void K(gru_reset)(real *gates, const real *x, const real *h_prev, const real *bias, bool after,
                  int64_t d)
{
    real *gr = gates, *gz = gates + d, *gn = gates + 2 * d, *gq = gates + 3 * d;
    for (int64_t k = 0; k < d; k += VW) {
        vreal r = vsigmoid(vload_at(gr, k, d) + vload_at(x, k, d) + bias_at(bias, 0, k, d));
        vreal z = vsigmoid(vload_at(gz, k, d) + vload_at(x + d, k, d) + bias_at(bias, 1, k, d));
        vreal q = after ? vload_at(gn, k, d) + bias_at(bias, 2, k, d) : r * vload_at(h_prev, k, d);
        vstore_at(gr, r, k, d);
        vstore_at(gz, z, k, d);
        vstore_at(gq, q, k, d);
    }
}

/* n = tanh(x_n + (r h) U_n + b_n), or after: tanh(x_n + r q);  h = n + keep (h_prev - n), where
 * keep is z or 1 - z */
void K(gru_new)(real *h, real *gates, const real *x, const real *h_prev, const real *bias,
                bool after, bool takes, int64_t d)
{
    const real *gr = gates, *gz = gates + d, *gq = gates + 3 * d;
    real *gn = gates + 2 * d;
    for (int64_t k = 0; k < d; k += VW) {
        vreal z = vload_at(gz, k, d), before = vload_at(h_prev, k, d);
        vreal product = after ? vload_at(gr, k, d) * vload_at(gq, k, d)
                              : vload_at(gn, k, d) + bias_at(bias, 2, k, d);
        vreal n = vtanh(vload_at(x + 2 * d, k, d) + product);
        vreal keep = takes ? 1 - z : z;
        vstore_at(gn, n, k, d);
        vstore_at(h, n + keep * (before - n), k, d);
    }
}

/* h = n + keep (h_prev - n), so dkeep = dh (h_prev - n), dn = dh (1 - keep), dh_prev = dh keep;
 * n = tanh(x_n + r q) if after, so dq = dn r, dr = dn q */
void K(gru_new_grad)(real *grad, const real *dh, const real *gates, const real *h_prev, bool after,
                     bool takes, int64_t d)
{
    for (int64_t k = 0; k < d; k += VW) {
        vreal z = vload_at(gates + d, k, d), n = vload_at(gates + 2 * d, k, d);
        vreal up = vload_at(dh, k, d);
        vreal keep = takes ? 1 - z : z;
        vreal dkeep = up * (vload_at(h_prev, k, d) - n) * z * (1 - z);
        vreal dn = up * (1 - keep) * (1 - n * n);
        vstore_at(grad + d, takes ? -dkeep : dkeep, k, d);
        vstore_at(grad + 3 * d, dn, k, d);
        vstore_at(grad + 4 * d, up * keep, k, d);
        if (after) {
            vreal r = vload_at(gates, k, d), q = vload_at(gates + 3 * d, k, d);
            vstore_at(grad, dn * q * r * (1 - r), k, d);
            vstore_at(grad + 2 * d, dn * r, k, d);
        }
    }
}

/* q = r h_prev, so dr = dq h_prev and dh_prev += dq r */
void K(gru_reset_grad)(real *grad, const real *gates, const real *h_prev, int64_t d)
{
    for (int64_t k = 0; k < d; k += VW) {
        vreal r = vload_at(gates, k, d), dq = vload_at(grad + 2 * d, k, d);
        vstore_at(grad, dq * vload_at(h_prev, k, d) * r * (1 - r), k, d);
        vstore_at(grad + 4 * d, vload_at(grad + 4 * d, k, d) + dq * r, k, d);
    }
}

/* s = sigma(f + bias), c = s c_prev + (1 - s) x, h = relu(c) */
void K(ssru_cell)(real *h, real *c, const real *x, const real *f, const real *bias,
                  const real *c_prev, int64_t d)
{
    for (int64_t k = 0; k < d; k += VW) {
        const vreal s = vsigmoid(vload_at(f, k, d) + bias_at(bias, 0, k, d));
        const vreal before = c_prev ? vload_at(c_prev, k, d) : vset(0);
        const vreal cell = s * before + (1 - s) * vload_at(x, k, d);
        vstore_at(c, cell, k, d);
        if (h)
            vstore_at(h, vmax(vset(0), cell), k, d);
    }
}

/* c = s c_prev + (1 - s) x, so dc = carry + [c > 0] dh, dx = dc (1 - s), ds = dc (c_prev - x),
 * df = ds s (1 - s), dc_prev = dc s */
void K(ssru_cell_grad)(real *dx, real *df, real *carry, const real *dh, const real *x,
                       const real *f, const real *c, const real *c_prev, int64_t d)
{
    for (int64_t k = 0; k < d; k += VW) {
        const vreal s = vsigmoid(vload_at(f, k, d)), in = vload_at(x, k, d);
        const vreal before = c_prev ? vload_at(c_prev, k, d) : vset(0);
        const vreal up = vselect(vload_at(c, k, d) > 0, vload_at(dh, k, d), vset(0));
        const vreal dc = vload_at(carry, k, d) + up;
        if (dx)
            vstore_at(dx, vload_at(dx, k, d) + dc * (1 - s), k, d);
        if (df)
            vstore_at(df, vload_at(df, k, d) + dc * (before - in) * s * (1 - s), k, d);
        vstore_at(carry, dc * s, k, d);
    }
}
