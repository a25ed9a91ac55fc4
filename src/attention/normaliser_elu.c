/* normaliser_elu.c: attention without weights (Katharopoulos et al. 2020): exp(q.k) is replaced by
 * phi(q).phi(k), phi = elu + 1, and the sums over the keys are done once for all queries. */
#include "attention/attend.h"

static heed__linear_form form(const heed_term *term)
{
    (void)term;
    return (heed__linear_form){.features = HEED_FEATURES_ELU};
}

const heed__slot_row heed__normaliser_elu = {
    .info = {.slot = HEED_SLOT_NORMALISER,
             .name = "elu",
             .form = "elu",
             .formula = "phi(q) sum phi(k)^T v / (phi(q) sum phi(k) + 1e-6), phi = elu + 1",
             .paper = "Katharopoulos et al. 2020",
             .cost = "Dk Dv a query",
             .can = HEED__CAN_LINEAR},
    .linear = form,
};
