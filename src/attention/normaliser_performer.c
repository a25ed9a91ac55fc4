/* normaliser_performer.c: FAVOR+ (Choromanski et al. 2021): phi of M random directions whose
 * products are on average exp(q.k / sqrt(Dk)), softmax's own kernel, and never below 0.
 *
 * Directions are orthogonal in blocks of Dk and as long as normal vectors.  The model keeps those
 * that were drawn for its seed; with R, training has others after every R updates, which keeps a
 * model from being fitted to one draw, and all else has the kept ones. */
#include "attention/attend.h"

static heed__linear_form form(const heed_term *term)
{
    return (heed__linear_form){
        .features = HEED_FEATURES_POSITIVE, .count = term->number[0], .redraw = term->number[1]};
}

const heed__slot_row heed__normaliser_performer = {
    .info = {.slot = HEED_SLOT_NORMALISER,
             .name = "performer",
             .form = "performer[:M[:R]]",
             .formula = "the same, phi_i = exp(w_i.x - |x|^2/2) / sqrt(M), x = q / Dk^1/4, w "
                        "orthogonal; redrawn after R updates",
             .paper = "Choromanski et al. 2021",
             .cost = "M (Dk + Dv) a query",
             .can = HEED__CAN_LINEAR,
             .takes = 2,
             .number = {{1, 65536, 256, NULL}, {1, 1000000000, 0, NULL}}},
    .linear = form,
};
