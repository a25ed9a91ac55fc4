/* normaliser_delta.c: fast weights by the delta rule (Schlag, Irie, Schmidhuber 2021): what a key
 * has stood for is replaced, not added to.  phi is elu + 1, or with NU the products of rectified
 * elements NU places apart (DPFP); either is divided by its sum. */
#include "attention/attend.h"

static heed__linear_form form(const heed_term *term)
{
    return (heed__linear_form){.features = term->number[0] ? HEED_FEATURES_DPFP : HEED_FEATURES_ELU,
                               .count = term->number[0],
                               .unit_sum = true,
                               .gated = true,
                               .delta = true};
}

const heed__slot_row heed__normaliser_delta = {
    .info = {.slot = HEED_SLOT_NORMALISER,
             .name = "delta",
             .form = "delta[:NU]",
             .formula =
                 "W_j = W_{j-1} + phi(k_j)^T b_j (v_j - phi(k_j) W_{j-1}), o = phi(q) W; phi = "
                 "elu + 1, or with NU DPFP; causal",
             .paper = "Schlag et al. 2021",
             .cost = "Dk Dv a query, or 2 NU Dk Dv",
             .can = HEED__CAN_LINEAR,
             .takes = 1,
             .number = {{1, 64, 0, NULL}}},
    .linear = form,
};
