/* normaliser_rfa.c: random feature attention (Peng et al. 2021): queries and keys of length 1, phi
 * the sines and cosines of M random directions, whose products are on average a Gaussian of q - k.
 * How wide it is, is learned, for each element.  With gates the sums fade: what is near counts
 * more.
 */
#include "attention/attend.h"

#define GATE_BIAS 3 /* at first a key is half forgotten after 14 others */

static heed__linear_form form(const heed_term *term)
{
    return (heed__linear_form){.features = HEED_FEATURES_WAVES,
                               .count = term->number[0],
                               .unit = true,
                               .gated = term->number[1] != 0,
                               .gate_bias = GATE_BIAS};
}

static const char *const words[] = {"gated", NULL};
const heed__slot_row heed__normaliser_rfa = {
    .info = {.slot = HEED_SLOT_NORMALISER,
             .name = "rfa",
             .form = "rfa[:M[:gated]]",
             .formula =
                 "the same, phi = [sin(W x), cos(W x)] / sqrt(M), x of length 1 times learned "
                 "widths; gated: S_j = g_j S_{j-1} + (1 - g_j) phi(k_j)^T v_j",
             .paper = "Peng et al. 2021",
             .cost = "2 M (Dk + Dv) a query",
             .can = HEED__CAN_LINEAR,
             .takes = 2,
             .number = {{1, 65536, 128, NULL}, {1, 1, 0, words}}},
    .linear = form,
};
