/* pattern_dilated.c: a band with gaps (Longformer: dilated sliding windows): W keys, STEP apart,
 * causal the last W of them, else W/2 before the query and the rest from it on. */
#include "attention/attend.h"

#include "base/min_max.h"

/* Heads from HEADS on look at their neighbours, as a band does; 0: all heads have gaps. */
static int64_t step_in(const heed_term *term, int head)
{
    return term->number[2] && head >= term->number[2] ? 1 : term->number[1];
}

static int ranges(const heed_term *term, const heed__pattern_query *q, heed_key_range *out)
{
    const int64_t w = term->number[0], i = heed__pattern_place(q), step = step_in(term, q->head);
    const int64_t before = heed__min(q->causal ? w - 1 : w / 2, i / step);
    const int64_t begin = i - before * step;
    out[0] = heed__pattern_range(
        q, begin, begin + (w - (q->causal ? w - 1 : w / 2) + before) * step, step, 1);
    return 1;
}

static int64_t reach(const heed_term *term, int64_t *pinned)
{
    *pinned = 0;
    return heed__min(INT32_MAX, (term->number[0] - 1) * term->number[1]);
}

static bool by_head(const heed_term *term)
{
    return term->number[2] != 0;
}

const heed__slot_row heed__pattern_dilated = {
    .info = {.slot = HEED_SLOT_PATTERN,
             .name = "dilated",
             .form = "dilated:W:STEP[:HEADS]",
             .example = "dilated:7:3",
             .formula =
                 "query i sees W keys around i that stand STEP apart, causal the last W; with "
                 "HEADS, the first of them, the others a band",
             .paper = "Beltagy et al. 2020",
             .cost = "W pairs a query",
             .can = HEED__CAN_USUAL | HEED_CAN_WIDTHS | HEED_CAN_FUSED | HEED_CAN_UNION,
             .needs = 2,
             .takes = 3,
             .number = {{1, 1 << 24, 0, NULL}, {1, 1 << 24, 0, NULL}, {1, 1024, 0, NULL}}},
    .pattern =
        &(const heed__pattern){
            .ranges = ranges, .most = 1, .steps = true, .reach = reach, .by_head = by_head},
};
