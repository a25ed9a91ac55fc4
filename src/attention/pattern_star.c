/* pattern_star.c: Star-Transformer (Guo et al. 2019): position 0 is the relay, which sees all and
 * is seen by all; the others are a ring, in which each sees both neighbours and itself.  The ring
 * is closed, as in the paper; a causal one is open, and its satellites look back.
 *
 * Of the paper's own system this is the graph: its relay begins as the mean of the tokens and its
 * satellites also read their own embeddings; here position 0 is a token like [CLS]. */
#include "attention/attend.h"

static int ranges(const heed_term *term, const heed__pattern_query *q, heed_key_range *out)
{
    const int64_t i = heed__pattern_place(q), last = q->keys - 1;
    (void)term;
    if (i == 0) {
        out[0] = heed__pattern_range(q, 0, q->keys, 1, 1);
        return 1;
    }
    out[0] = heed__pattern_range(q, 0, 1, 1, 1);
    out[1] = heed__pattern_range(q, i - 1, i + 2, 1, 1);
    if (q->causal || (i > 1 && i < last))
        return 2;
    out[2] =
        i == 1 ? heed__pattern_range(q, last, last + 1, 1, 1) : heed__pattern_range(q, 1, 2, 1, 1);
    return 3;
}

static int64_t reach(const heed_term *term, int64_t *pinned)
{
    (void)term;
    *pinned = 1;
    return 1;
}

const heed__slot_row heed__pattern_star = {
    .info = {.slot = HEED_SLOT_PATTERN,
             .name = "star",
             .form = "star",
             .example = "star",
             .formula = "query i sees i-1, i, i+1 of a closed ring and position 0, which sees all",
             .paper = "Guo et al. 2019",
             .cost = "4 pairs a query",
             .can = HEED__CAN_USUAL | HEED_CAN_WIDTHS | HEED_CAN_FUSED | HEED_CAN_UNION},
    .pattern = &(const heed__pattern){.ranges = ranges, .most = 3, .reach = reach},
};
