/* pattern_strided.c: Sparse Transformer, strided (Child et al. 2019, section 4.3):
 *   A  the L keys before the query and the query itself; both sides where it is not causal
 *   B  the keys j with (i - j) mod L = 0
 * merged in every head, or A and B by turns in heads or layers (their equations 8, 7 and 6). */
#include "attention/attend.h"

static int ranges(const heed_term *term, const heed__pattern_query *q, heed_key_range *out)
{
    const int64_t l = term->number[0], i = heed__pattern_place(q);
    const int part = heed__pattern_part(term->number[1], q);
    int n = 0;
    if (part != 1)
        out[n++] = heed__pattern_range(q, i - l, i + l + 1, 1, 1);
    if (part != 0)
        out[n++] = heed__pattern_range(q, i % l, q->keys, l, 1);
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

const heed__slot_row heed__pattern_strided = {
    .info = {.slot = HEED_SLOT_PATTERN,
             .name = "strided",
             .form = "strided:L[:merged|heads|layers]",
             .example = "strided:6",
             .formula =
                 "query i sees i-L to i (not causal: to i+L), and every key j with (i-j) mod L "
                 "= 0; or one of the two in a head or layer",
             .paper = "Child et al. 2019",
             .cost = "L + n/L pairs a query",
             .can = HEED__CAN_USUAL | HEED_CAN_WIDTHS | HEED_CAN_FUSED | HEED_CAN_UNION,
             .needs = 1,
             .takes = 2,
             .number = {{1, 1 << 24, 0, NULL}, {1, 3, HEED__MERGED, heed__part_words}}},
    .pattern =
        &(const heed__pattern){
            .ranges = ranges, .most = 2, .steps = true, .reach = reach, .by_head = by_head},
};
