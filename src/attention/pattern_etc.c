/* pattern_etc.c: ETC (Ainslie et al. 2020): G global positions and a long input with a band of W.
 * Long to long and long to global are one softmax, global to global and global to long another: so
 * one list of keys a query.  The globals are the first G positions; relative labels are the bias
 * slot's (`--position-bias table`). */
#include "attention/attend.h"

#include "base/min_max.h"

static int ranges(const heed_term *term, const heed__pattern_query *q, heed_key_range *out)
{
    const int64_t w = term->number[0], g = term->number[1], i = heed__pattern_place(q);
    const int64_t begin = q->causal ? i - w + 1 : i - w / 2;
    out[0] = heed__pattern_range(q, 0, i < g ? q->keys : g, 1, 1);
    out[1] = heed__pattern_range(q, begin, begin + w, 1, 1);
    return 2;
}

static int64_t reach(const heed_term *term, int64_t *pinned)
{
    *pinned = term->number[1];
    return term->number[0] - 1;
}

const heed__slot_row heed__pattern_etc = {
    .info = {.slot = HEED_SLOT_PATTERN,
             .name = "etc",
             .form = "etc:W:G",
             .example = "etc:7:3",
             .formula =
                 "positions 0 .. G-1 see all; query i sees them and the W keys around i in one "
                 "softmax",
             .paper = "Ainslie et al. 2020",
             .cost = "W + G pairs a query",
             .can = HEED__CAN_USUAL | HEED_CAN_WIDTHS | HEED_CAN_FUSED | HEED_CAN_UNION,
             .needs = 2,
             .takes = 2,
             .number = {{1, 1 << 24, 0, NULL}, {1, 1 << 24, 0, NULL}}},
    .pattern = &(const heed__pattern){.ranges = ranges, .most = 2, .reach = reach},
};
