/* pattern_block.c: the sequence is cut into blocks of B, and a query sees the keys of one: its own;
 * or, in head h, the one h blocks on (Qiu et al. 2020, "Blockwise Self-Attention": a permutation of
 * blocks for each head), causal h blocks back. */
#include "attention/attend.h"

#include "base/min_max.h"

static int ranges(const heed_term *term, const heed__pattern_query *q, heed_key_range *out)
{
    const int64_t b = term->number[0], own = heed__pattern_place(q) / b;
    int64_t block = own;
    if (term->number[1] && q->causal)
        block = own >= q->head ? own - q->head : own;
    else if (term->number[1])
        block = (own + q->head) % heed__max(1, (q->keys + b - 1) / b);
    out[0] = heed__pattern_range(q, block * b, (block + 1) * b, 1, 1);
    return 1;
}

static int64_t reach(const heed_term *term, int64_t *pinned)
{
    *pinned = 0;
    return term->number[1] ? INT32_MAX : term->number[0] - 1;
}

static bool by_head(const heed_term *term)
{
    return term->number[1] != 0;
}

static const char *const words[] = {"heads", NULL};
const heed__slot_row heed__pattern_block = {
    .info = {.slot = HEED_SLOT_PATTERN,
             .name = "block",
             .form = "block:B[:heads]",
             .example = "block:6",
             .formula =
                 "query i sees the keys of its own block of B; with heads, in head h those h "
                 "blocks on, causal h back",
             .paper = "Qiu et al. 2020",
             .cost = "B pairs a query",
             .can = HEED__CAN_USUAL | HEED_CAN_WIDTHS | HEED_CAN_FUSED | HEED_CAN_UNION,
             .needs = 1,
             .takes = 2,
             .number = {{1, 1 << 24, 0, NULL}, {1, 1, 0, words}}},
    .pattern =
        &(const heed__pattern){.ranges = ranges, .most = 1, .reach = reach, .by_head = by_head},
};
