/* pattern_band.c: the W keys nearest to the query's own place, that one included: causal the last
 * W, else W/2 before it and the rest from it on. */
#include "attention/attend.h"

static int ranges(const heed_term *term, const heed__pattern_query *q, heed_key_range *out)
{
    const int64_t w = term->number[0], i = heed__pattern_place(q);
    const int64_t begin = q->causal ? i - w + 1 : i - w / 2;
    out[0] = heed__pattern_range(q, begin, begin + w, 1, 1);
    return 1;
}

static int64_t reach(const heed_term *term, int64_t *pinned)
{
    *pinned = 0;
    return term->number[0] - 1;
}

const heed__slot_row heed__pattern_band = {
    .info = {.slot = HEED_SLOT_PATTERN,
             .name = "band",
             .form = "band:W",
             .example = "band:9",
             .formula = "query i sees the W keys around i, causal the last W, i included",
             .paper = "Parmar et al. 2018, Beltagy et al. 2020",
             .cost = "W pairs a query",
             .can = HEED__CAN_USUAL | HEED_CAN_WIDTHS | HEED_CAN_FUSED | HEED_CAN_UNION,
             .needs = 1,
             .takes = 1,
             .number = {{1, INT32_MAX, 0, NULL}}},
    .pattern = &(const heed__pattern){.ranges = ranges, .most = 1, .reach = reach},
};
