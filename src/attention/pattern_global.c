/* pattern_global.c: every key; or, with a number, the first G positions alone, which see everything
 * and are seen by everything (Beltagy, Peters, Cohan 2020: global attention). */
#include "attention/attend.h"

static int ranges(const heed_term *term, const heed__pattern_query *q, heed_key_range *out)
{
    const int64_t g = term->number[0];
    const bool all = g == 0 || q->i < g || q->keys <= g;
    out[0] = heed__pattern_range(q, 0, all ? q->keys : g, 1, 1);
    return 1;
}

static int64_t reach(const heed_term *term, int64_t *pinned)
{
    *pinned = term->number[0];
    return term->number[0] ? 0 : INT32_MAX;
}

const heed__slot_row heed__pattern_global = {
    .info = {.slot = HEED_SLOT_PATTERN,
             .name = "global",
             .form = "global[:G]",
             .example = "global:3",
             .formula =
                 "query i sees every key of its sentence; with G, the first G, and these see "
                 "every key",
             .paper = "Bahdanau et al. 2015, Beltagy et al. 2020",
             .cost = "S pairs a query, or G",
             .can = HEED__CAN_USUAL | HEED_CAN_WIDTHS | HEED_CAN_FUSED | HEED_CAN_UNION,
             .takes = 1,
             .number = {{1, INT32_MAX, 0, NULL}}},
    .pattern = &(const heed__pattern){.ranges = ranges, .most = 1, .reach = reach},
};
