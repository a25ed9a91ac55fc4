/* bias_distance.c: numbers added to the scores by the distance of query and key.
 *
 *   alibi  -m_h |i - j|, m_h fixed: 2^(-8/H), 2^(-16/H), ...     Press, Smith, Lewis 2022
 *   table  b_h[i - j], learned, distances above R counted as R    Shaw et al. 2018, Raffel et al.
 *                                                                 2020
 *
 * Where H is no power of two, ALiBi's slopes are those of the power below, then every second one of
 * the power above, as its authors have them. */
#include "attention/attend.h"

#include "base/min_max.h"
#include "nn/params.h"
#include <math.h>

const heed__slot_row heed__bias_alibi = {
    .info = {.slot = HEED_SLOT_BIAS,
             .name = "alibi",
             .form = "alibi",
             .formula = "-m |i - j|, m = 2^(-8 h / H) in head h of H",
             .paper = "Press et al. 2022",
             .cost = "one addition a pair",
             .can = (HEED__CAN_USUAL & ~HEED_CAN_CROSS) | HEED_CAN_FUSED},
};

#define DISTANCES 128
const heed__slot_row heed__bias_table = {
    .info = {.slot = HEED_SLOT_BIAS,
             .name = "table",
             .form = "table[:R]",
             .formula = "a learned number for each head and distance i - j, cut to -R .. R",
             .paper = "Shaw et al. 2018, Raffel et al. 2020",
             .cost = "one addition a pair",
             .can = (HEED__CAN_USUAL & ~HEED_CAN_CROSS) | HEED_CAN_FUSED,
             .takes = 1,
             .number = {{1, 1000000, DISTANCES, NULL}}},
};

double heed__alibi_slope(int head, int heads)
{
    int power = 1;
    while (2 * power <= heads)
        power *= 2;
    if (head < power)
        return exp2(-8.0 * (head + 1) / power);
    return exp2(-8.0 * (2 * (head - power) + 1) / (2 * power));
}

/* Causal: one column for each distance 0 .. R; else R on both sides of 0. */
static int64_t columns(bool causal, int64_t r)
{
    return causal ? r + 1 : 2 * r + 1;
}

void heed__bias_build(heed_attend_layer *l, heed_scope s)
{
    const heed_attend_options *o = &l->options;
    if (heed__slot_kind(&o->position_bias) == HEED_BIAS_TABLE)
        l->distance =
            heed_param(s, "distance",
                       HEED_SHAPE(o->heads, columns(o->causal, o->position_bias.term[0].number[0])),
                       (heed_init){HEED_INIT_ZERO, 0});
}

heed_tensor *heed__bias_by_distance(heed_tape *t, const heed_attend_layer *l, bool causal,
                                    int64_t longest)
{
    const heed_attend_options *o = &l->options;
    if (l->span)
        return heed__span_bias(t, l, causal);
    if (heed__slot_kind(&o->position_bias) != HEED_BIAS_ALIBI)
        return l->distance;
    const int64_t r = longest > 1 ? longest - 1 : 0, cols = columns(causal, r);
    heed_tensor *bias = heed_input(t, HEED_SHAPE(o->heads, cols), NULL);
    for (int h = 0; bias && h < o->heads; h++) {
        const double m = heed__alibi_slope(h, o->heads);
        for (int64_t c = 0; c < cols; c++)
            heed_tensor_data(bias)[h * cols + c] =
                (heed_real)(-m * fabs((double)(causal ? c : c - r)));
    }
    return bias;
}
