/* pattern_bigbird.c: BigBird (Zaheer et al. 2020) in blocks of B: a query sees its own block and
 * both neighbours, the first and the last, whose queries see all, and R more, drawn for each block,
 * head and layer among those that it does not see yet.  Causal: its own block, the one before, the
 * first and R earlier ones; there is no last block while a sequence grows. */
#include "attention/attend.h"

#include "base/min_max.h"

static heed_key_range blocks(const heed_term *term, const heed__pattern_query *q, int64_t begin,
                             int64_t end)
{
    return heed__pattern_range(q, begin * term->number[0], end * term->number[0], 1, 1);
}

static int ranges(const heed_term *term, const heed__pattern_query *q, heed_key_range *out)
{
    const int64_t b = term->number[0], count = (q->keys + b - 1) / b;
    const int64_t own = heed__pattern_place(q) / b, last = q->causal ? own + 1 : count - 1;
    int64_t drawn[HEED__MOST_DRAWN];
    int n = 0;
    if (!q->causal && (own == 0 || own == last)) {
        out[0] = blocks(term, q, 0, count);
        return 1;
    }
    out[n++] = blocks(term, q, 0, 1);
    out[n++] = blocks(term, q, own - 1, q->causal ? own + 1 : own + 2);
    if (!q->causal)
        out[n++] = blocks(term, q, last, count);
    /* Blocks 1 .. last-1 but own-1 .. own+1. */
    const int64_t skip = heed__max(1, own - 1), behind = heed__min(own + 2, last);
    const int64_t others = heed__max(0, skip - 1) + heed__max(0, last - behind);
    const int more = heed__pattern_draw(q, own, term->number[1], others, drawn);
    for (int k = 0; k < more; k++) {
        const int64_t block = drawn[k] < skip - 1 ? drawn[k] + 1 : drawn[k] - (skip - 1) + behind;
        out[n++] = blocks(term, q, block, block + 1);
    }
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
    (void)term;
    return true;
}

const heed__slot_row heed__pattern_bigbird = {
    .info = {.slot = HEED_SLOT_PATTERN,
             .name = "bigbird",
             .form = "bigbird:B:R",
             .example = "bigbird:3:2",
             .formula =
                 "blocks of B: query i sees its own, both neighbours, the first, the last, and R "
                 "drawn ones; the first and the last see all",
             .paper = "Zaheer et al. 2020",
             .cost = "(5 + R) B pairs a query",
             .can = HEED__CAN_USUAL | HEED_CAN_WIDTHS | HEED_CAN_FUSED | HEED_CAN_UNION,
             .needs = 2,
             .takes = 2,
             .number = {{1, 1 << 24, 0, NULL}, {1, HEED__MOST_DRAWN, 0, NULL}}},
    .pattern =
        &(const heed__pattern){
            .ranges = ranges, .most = HEED__MOST_DRAWN + 3, .reach = reach, .by_head = by_head},
};
