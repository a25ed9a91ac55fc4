/* pattern_axial.c: axial attention over pictures, rows of X pixels one after the other (Ho et al.
 * 2019):
 *   A  the query's row
 *   B  the query's column
 * by turns in layers, as in the paper, which after two layers have seen the picture; or in heads,
 * or merged.  Causal is the order of the rows: after two layers a pixel knows of those above it
 * what stands to their left, no more; the paper shifts an inner stack for that. */
#include "attention/attend.h"

static int ranges(const heed_term *term, const heed__pattern_query *q, heed_key_range *out)
{
    const int64_t x = term->number[0], i = heed__pattern_place(q);
    const int part = heed__pattern_part(term->number[1], q);
    int n = 0;
    if (part != 1)
        out[n++] = heed__pattern_range(q, i / x * x, i / x * x + x, 1, 1);
    if (part != 0)
        out[n++] = heed__pattern_range(q, i % x, q->keys, x, 1);
    return n;
}

static int64_t reach(const heed_term *term, int64_t *pinned)
{
    (void)term;
    *pinned = 0;
    return INT32_MAX;
}

static bool by_head(const heed_term *term)
{
    return term->number[1] == HEED__BY_HEADS;
}

const heed__slot_row heed__pattern_axial = {
    .info = {.slot = HEED_SLOT_PATTERN,
             .name = "axial",
             .form = "axial:X[:merged|heads|layers]",
             .example = "axial:6",
             .formula = "rows of X pixels: query i sees its row in one layer and its column in the "
                        "next; or by heads, or both",
             .paper = "Ho et al. 2019",
             .cost = "X or n/X pairs a query",
             .can = HEED__CAN_USUAL | HEED_CAN_WIDTHS | HEED_CAN_FUSED | HEED_CAN_UNION,
             .needs = 1,
             .takes = 2,
             .number = {{1, 1 << 24, 0, NULL}, {1, 3, HEED__BY_LAYERS, heed__part_words}}},
    .pattern =
        &(const heed__pattern){
            .ranges = ranges, .most = 2, .steps = true, .reach = reach, .by_head = by_head},
};
