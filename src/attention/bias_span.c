/* bias_span.c: adaptive span (Sukhbaatar et al. 2019): each head learns how far back it looks.
 *
 *   a_ij = m(i - j) exp(s_ij) / sum_j m(i - j) exp(s_ij),  m(x) = clamp((R + z - x) / R, 0, 1)
 *
 * which is log m added to the scores by distance.  z = S u with u the layer's parameter, 0 at
 * first; the mean of z over the heads, times a small number, is added to the loss.  Keys that no
 * head sees any more are not computed, and given back while decoding.  Unlike the paper's, a query
 * sees its own position, so that no row is empty. */
#include "attention/attend.h"

#include "base/min_max.h"
#include "nn/params.h"
#include <math.h>

#define RAMP 32 /* R */

const heed__slot_row heed__bias_span = {
    .info = {.slot = HEED_SLOT_BIAS,
             .name = "span",
             .form = "span:S",
             .formula = "--adaptive-span S: log m(i - j), m falls from 1 to 0 between z and z + "
                        "32, z <= S learned for "
                        "each head",
             .paper = "Sukhbaatar et al. 2019",
             .cost = "z + 32 pairs a query of the largest z",
             .can = (HEED__CAN_USUAL & ~HEED_CAN_CROSS) | HEED_CAN_FUSED,
             .needs = 1,
             .takes = 1,
             .number = {{1, 1000000, 0, NULL}}},
};

static bool has_span(const heed_attend_options *o)
{
    return heed__slot_kind(&o->position_bias) == HEED_BIAS_SPAN;
}

/* S */
static int64_t most_of(const heed_attend_options *o)
{
    return o->position_bias.term[0].number[0];
}

void heed__span_build(heed_attend_layer *l, heed_scope s)
{
    if (has_span(&l->options))
        l->span =
            heed_param(s, "span", HEED_SHAPE(l->options.heads), (heed_init){HEED_INIT_ZERO, 0});
}

double heed__span_of(const heed_attend_options *o, double share)
{
    return (double)most_of(o) * fmin(1, fmax(0, share));
}

int64_t heed__span_reach(const heed_attend_options *o, const heed_real *share)
{
    double z = 0;
    for (int h = 0; h < o->heads; h++)
        z = fmax(z, heed__span_of(o, (double)share[h]));
    return (int64_t)ceil(z) + RAMP - 1;
}

heed_slot_spec heed__span_pattern(const heed_attend_options *o, int64_t reach)
{
    heed_slot_spec band = HEED_ONE(HEED_PATTERN_BAND, {o->causal ? reach + 1 : 2 * reach + 1});
    return band;
}

heed_span_options heed__span_options(const heed_attend_options *o, bool causal)
{
    return (heed_span_options){.most = most_of(o), .ramp = RAMP, .causal = causal};
}

heed_tensor *heed__span_bias(heed_tape *t, const heed_attend_layer *l, bool causal)
{
    const heed_span_options span = heed__span_options(&l->options, causal);
    return heed_span_bias(t, l->span, &span);
}

heed_tensor *heed_attend_penalty(heed_tape *t, const heed_attend_layer *l, int64_t rows)
{
    if (!t || !l->span || l->options.span_penalty == 0)
        return NULL;
    const double each = (double)most_of(&l->options) / l->options.heads;
    return heed_scale(t, heed_sum(t, heed_clamp(t, l->span, 0, 1), HEED_ALL),
                      l->options.span_penalty * each * (double)rows, 0);
}
