/* pattern_random.c: R keys for each query (BigBird's random attention, token by token), drawn once
 * and for all from the layer, the head and the query; and what draws them. */
#include "attention/attend.h"

#include "base/min_max.h"

#define SEED                                                                                       \
    0x72616e646f6d /* "random": the same in every model, so that nothing has to be stored */

/* Floyd's way: of 0 .. j, or, if that is there already, j. */
int heed__pattern_draw(const heed__pattern_query *q, int64_t at, int64_t count, int64_t n,
                       int64_t out[HEED__MOST_DRAWN])
{
    const heed_rng rng = heed_rng_stream(
        &(heed_rng_key){.seed = SEED, .step = (uint64_t)q->layer, .node = (uint64_t)q->head});
    int drawn = 0;
    count = heed__min(count, heed__min(n, HEED__MOST_DRAWN));
    for (int64_t j = n - count; j < n; j++) {
        int64_t one = heed_rng_below(&rng, (uint64_t)(at * HEED__MOST_DRAWN + drawn), j + 1);
        for (int k = 0; k < drawn; k++)
            one = out[k] == one ? j : one;
        out[drawn++] = one;
    }
    return drawn;
}

static int ranges(const heed_term *term, const heed__pattern_query *q, heed_key_range *out)
{
    int64_t key[HEED__MOST_DRAWN];
    const int n = heed__pattern_draw(q, q->i, term->number[0],
                                     q->causal ? heed__min(q->i + 1, q->keys) : q->keys, key);
    for (int k = 0; k < n; k++)
        out[k] = heed__pattern_range(q, key[k], key[k] + 1, 1, 1);
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

const heed__slot_row heed__pattern_random = {
    .info = {.slot = HEED_SLOT_PATTERN,
             .name = "random",
             .form = "random:R",
             .example = "random:3",
             .formula = "query i sees R keys drawn once and for all, in each head and layer others",
             .paper = "Zaheer et al. 2020",
             .cost = "R pairs a query",
             .can = HEED__CAN_USUAL | HEED_CAN_WIDTHS | HEED_CAN_FUSED | HEED_CAN_UNION,
             .needs = 1,
             .takes = 1,
             .number = {{1, HEED__MOST_DRAWN, 0, NULL}}},
    .pattern =
        &(const heed__pattern){
            .ranges = ranges, .most = HEED__MOST_DRAWN, .reach = reach, .by_head = by_head},
};
