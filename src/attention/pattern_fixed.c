/* pattern_fixed.c: Sparse Transformer, fixed (Child et al. 2019, section 4.3):
 *   A  the keys of the query's own block of LENGTH
 *   B  the last COLUMNS keys of every block, which sum it up
 * merged in every head, or A and B by turns in heads or layers.  By heads, the second head with B
 * has the COLUMNS before, and so on: "distinct subblocks", as the paper found best. */
#include "attention/attend.h"

#include "base/error.h"

static int ranges(const heed_term *term, const heed__pattern_query *q, heed_key_range *out)
{
    const int64_t l = term->number[0], c = term->number[1], i = heed__pattern_place(q);
    const int part = heed__pattern_part(term->number[2], q);
    const int64_t turn = term->number[2] == HEED__BY_HEADS ? q->head / 2 % (l / c) : 0;
    int n = 0;
    if (part != 1)
        out[n++] = heed__pattern_range(q, i / l * l, i / l * l + l, 1, 1);
    if (part != 0)
        out[n++] = heed__pattern_range(q, l - c * (turn + 1), q->keys, l, c);
    /* Of the first block nothing is summed up yet. */
    if (part == 1 && i < l)
        out[n++] = heed__pattern_range(q, 0, l, 1, 1);
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
    return term->number[2] == HEED__BY_HEADS;
}

static heed_status check(const heed_term *term, heed_error *err)
{
    return term->number[1] <= term->number[0]
               ? HEED_OK
               : heed__fail(
                     err, HEED_ARGUMENT,
                     "fixed:%lld:%lld: a block of %lld has no %lld columns: use at most %lld",
                     (long long)term->number[0], (long long)term->number[1],
                     (long long)term->number[0], (long long)term->number[1],
                     (long long)term->number[0]);
}

const heed__slot_row heed__pattern_fixed = {
    .info = {.slot = HEED_SLOT_PATTERN,
             .name = "fixed",
             .form = "fixed:L:C[:merged|heads|layers]",
             .example = "fixed:6:1",
             .formula =
                 "query i sees its own block of L keys, and the last C keys of every block; or "
                 "one of the two in a head or layer",
             .paper = "Child et al. 2019",
             .cost = "L + n C/L pairs a query",
             .can = HEED__CAN_USUAL | HEED_CAN_WIDTHS | HEED_CAN_FUSED | HEED_CAN_UNION,
             .needs = 2,
             .takes = 3,
             .number = {{1, 1 << 24, 0, NULL},
                        {1, 1 << 24, 0, NULL},
                        {1, 3, HEED__MERGED, heed__part_words}}},
    .pattern =
        &(const heed__pattern){
            .ranges = ranges, .most = 3, .steps = true, .reach = reach, .by_head = by_head},
    .check = check,
};
