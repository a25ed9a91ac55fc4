/* pattern_local.c: local attention, Luong et al. 2015, section 3.2.
 *
 *   local-m  p - D .. p + D around the query's own place p
 *   local-p  the same around p = S sigmoid(v_p . tanh(W_p q)), equation 9, and its weights are
 *            multiplied with exp(-(j - p)^2 / 2 s^2), s = D/2, equation 10
 *
 * S is the length of the query's own segment of keys.  p is a real number in the Gaussian, through
 * which alone its gradient flows, and rounded only to cut the window.  The weights are not made to
 * sum to 1 again: a query that predicts badly sees little. */
#include "attention/attend.h"

#include "nn/params.h"

static int ranges(const heed_term *term, const heed__pattern_query *q, heed_key_range *out)
{
    const int64_t d = term->number[0], p = heed__pattern_place(q);
    out[0] = heed__pattern_range(q, p - d, p + d + 1, 1, 1);
    return 1;
}

static int64_t reach(const heed_term *term, int64_t *pinned)
{
    *pinned = 0;
    return term->number[0];
}

#define WINDOW 10 /* D in the paper */
const heed__slot_row heed__pattern_local_m = {
    .info = {.slot = HEED_SLOT_PATTERN,
             .name = "local-m",
             .form = "local-m[:D]",
             .example = "local-m:3",
             .formula = "query i sees keys p-D to p+D, p = i",
             .paper = "Luong et al. 2015",
             .cost = "2D+1 pairs a query",
             .can = HEED__CAN_USUAL | HEED_CAN_WIDTHS | HEED_CAN_FUSED | HEED_CAN_UNION,
             .takes = 1,
             .number = {{1, 1000000, WINDOW, NULL}}},
    .pattern = &(const heed__pattern){.ranges = ranges, .most = 1, .reach = reach},
};

/* ---- local-p ---- */

const heed__slot_row heed__pattern_local_p = {
    .info = {.slot = HEED_SLOT_PATTERN,
             .name = "local-p",
             .form = "local-p[:D]",
             .formula =
                 "p = S sigmoid(v.tanh(W q)), keys p-D to p+D, weights times exp(-(j-p)^2 / 2 "
                 "(D/2)^2)",
             .paper = "Luong et al. 2015",
             .cost = "2D+1 pairs and a W a query",
             .can = HEED__CAN_ALWAYS | HEED_CAN_HEADS | HEED_CAN_WIDTHS,
             .takes = 1,
             .number = {{1, 1000000, WINDOW, NULL}}},
};

void heed__local_p_build(heed_attend_layer *l, heed_scope s)
{
    const heed_attend_options *o = &l->options;
    if (heed__slot_kind(&o->pattern) != HEED_PATTERN_LOCAL_P)
        return;
    s = heed_scope_enter(s, "place");
    heed_linear_build(&l->place, heed_scope_enter(s, "in"), o->query_d, o->query_d, HEED_TANH,
                      false);
    heed_linear_build(&l->place_out, heed_scope_enter(s, "out"), o->query_d, o->heads, HEED_SIGMOID,
                      false);
}

/* (N,1): how many keys each query's segment has. */
static heed_tensor *lengths(heed_tape *t, const heed_pairs *p)
{
    heed_tensor *s = heed_input(t, HEED_SHAPE(p->queries->rows, 1), NULL);
    for (int64_t b = 0; s && b < p->queries->count; b++)
        for (int64_t n = p->queries->offset[b]; n < p->queries->offset[b + 1]; n++)
            heed_tensor_data(s)[n] = (heed_real)(p->keys->offset[b + 1] - p->keys->offset[b]);
    return s;
}

heed_tensor *heed__local_p_centre(heed_tape *t, const heed_attend_layer *l, heed_tensor *q,
                                  const heed_pairs *p)
{
    heed_tensor *centre = heed_linear_apply(t, &l->place_out, heed_linear_apply(t, &l->place, q));
    return heed_mul(t, centre, lengths(t, p)); /* (N,H) */
}
