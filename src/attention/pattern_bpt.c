/* pattern_bpt.c: BP-Transformer (Ye et al. 2019): a binary tree over the sequence.  A token sees K
 * tokens on each side, beyond them K spans of 2, beyond those K spans of 4, and so on, from fine to
 * coarse, each level up to where the next one's spans begin: O(K log(n/K)) keys.  A span sees what
 * it spans.
 *
 * In the paper spans are nodes beside the tokens; here the last token of a span stands for it, and
 * sees all of the largest span that it ends (of a sequence that has ended, also those that the end
 * cuts).  So any two tokens are at most two steps apart, nothing is added to a sequence, and a
 * causal model can be decoded token by token. */
#include "attention/attend.h"

#include "base/min_max.h"

static int64_t up(int64_t x, int64_t multiple)
{
    return (x + multiple - 1) / multiple * multiple;
}

/* The spans of 2^level before `to`, from the first that their turn comes to: by last tokens. */
static int look_back(const heed__pattern_query *q, int64_t k, int64_t i, heed_key_range *out)
{
    int n = 0;
    for (int64_t size = 1, to = i, from; to > 0; to = from, size *= 2) {
        from = to > k * size ? (to - k * size) / (2 * size) * (2 * size) : 0;
        out[n++] = heed__pattern_range(q, from + size - 1, to, size, 1);
    }
    return n;
}

static int look_ahead(const heed__pattern_query *q, int64_t k, int64_t i, heed_key_range *out)
{
    int n = 0;
    for (int64_t size = 1, from = i + 1; from < q->keys; size *= 2) {
        const int64_t to = up(from + k * size, 2 * size);
        out[n++] = heed__pattern_range(q, from + size - 1, to, size, 1);
        if (to >= q->keys) /* the end cuts a span: the last token stands for it */
            out[n++] = heed__pattern_range(q, q->keys - 1, q->keys, 1, 1);
        from = to;
    }
    return n;
}

static int ranges(const heed_term *term, const heed__pattern_query *q, heed_key_range *out)
{
    const int64_t i = heed__pattern_place(q);
    const bool ended = !q->causal && i == q->keys - 1;
    int64_t span = 1;
    while (!ended && (i + 1) % (2 * span) == 0)
        span *= 2;
    out[0] = heed__pattern_range(q, ended ? 0 : i + 1 - span, i + 1, 1, 1);
    int n = 1 + look_back(q, term->number[0], i, out + 1);
    return q->causal ? n : n + look_ahead(q, term->number[0], i, out + n);
}

static int64_t reach(const heed_term *term, int64_t *pinned)
{
    (void)term;
    *pinned = 0;
    return INT32_MAX;
}

const heed__slot_row heed__pattern_bpt = {
    .info = {.slot = HEED_SLOT_PATTERN,
             .name = "bpt",
             .form = "bpt:K",
             .example = "bpt:2",
             .formula =
                 "query i sees K keys on each side, then K spans of 2, of 4, ... by their last "
                 "tokens, which see what they span",
             .paper = "Ye et al. 2019",
             .cost = "about 2 K log2(n/K) pairs a query",
             .can = HEED__CAN_USUAL | HEED_CAN_WIDTHS | HEED_CAN_FUSED | HEED_CAN_UNION,
             .needs = 1,
             .takes = 1,
             .number = {{1, 1 << 16, 0, NULL}}},
    .pattern = &(const heed__pattern){.ranges = ranges, .most = 66, .steps = true, .reach = reach},
};
