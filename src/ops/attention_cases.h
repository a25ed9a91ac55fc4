/* attention_cases.h: the gradient cases of attention, for attention.c. */
#ifndef HEED_OPS_ATTENTION_CASES_H
#define HEED_OPS_ATTENTION_CASES_H

#include "ops/attention_jobs.h"

/* What a case has besides q, k and v, whose inputs follow in this order. */
struct arguments {
    int kv_heads;
    int band, first; /* keys from `band` before the query to it, and the first few; 0: all */
    int step, width; /* of the band's keys */
    bool visible, distance, shared, bias, listed;
};

/* i: heads, causal, weights out; r: dropout, scale; a fourth input is the bias. */
static const heed_opcase cases[] = {
    {.what = "self, two heads, an empty segment, a single token",
     .in = {HEED_DIMS2(8, 6), HEED_DIMS2(8, 6), HEED_DIMS2(8, 6)},
     .i = {2},
     .lengths = {4, 0, 1, 3, -1},
     .more_lengths = {4, 0, 1, 3, -1}},
    {.what = "cross, queries without keys and keys without queries",
     .in = {HEED_DIMS2(6, 6), HEED_DIMS2(9, 6), HEED_DIMS2(9, 15)},
     .i = {3},
     .r = {0, 0.3},
     .lengths = {2, 3, 0, 1, -1},
     .more_lengths = {5, 0, 3, 1, -1}},
    {.what = "one tensor cut in two ways",
     .in = {HEED_DIMS2(5, 4), HEED_DIMS2(5, 4), HEED_DIMS2(5, 4)},
     .i = {2},
     .lengths = {2, 3, -1},
     .more_lengths = {3, 2, -1}},
    {.what = "one column a head",
     .in = {HEED_DIMS2(3, 1), HEED_DIMS2(3, 1), HEED_DIMS2(3, 1)},
     .i = {1},
     .lengths = {3, -1},
     .more_lengths = {3, -1}},
    {.what = "causal",
     .in = {HEED_DIMS2(10, 6), HEED_DIMS2(10, 6), HEED_DIMS2(10, 10)},
     .i = {2, 1},
     .lengths = {7, 0, 3, -1},
     .more_lengths = {7, 0, 3, -1}},
    {.what = "causal with more keys than queries, and fewer",
     .in = {HEED_DIMS2(7, 4), HEED_DIMS2(8, 4), HEED_DIMS2(8, 4)},
     .i = {1, 1},
     .lengths = {2, 5, -1},
     .more_lengths = {5, 3, -1}},
    {.what = "causal over two blocks of queries",
     .in = {HEED_DIMS2(53, 2), HEED_DIMS2(53, 2), HEED_DIMS2(53, 2)},
     .i = {1, 1},
     .lengths = {53, -1},
     .more_lengths = {53, -1}},
    {.what = "bias for each head",
     .in = {HEED_DIMS2(6, 4), HEED_DIMS2(7, 4), HEED_DIMS2(7, 6), HEED_DIMS3(2, 4, 5)},
     .i = {2},
     .lengths = {4, 0, 2, -1},
     .more_lengths = {2, 0, 5, -1}},
    {.what = "one bias for all heads, larger than needed, causal",
     .in = {HEED_DIMS2(6, 6), HEED_DIMS2(6, 6), HEED_DIMS2(6, 3), HEED_DIMS3(1, 5, 6)},
     .i = {3, 1},
     .lengths = {4, 2, -1},
     .more_lengths = {4, 2, -1}},
    {.what = "weights out",
     .in = {HEED_DIMS2(5, 4), HEED_DIMS2(6, 4), HEED_DIMS2(6, 2)},
     .i = {2, 0, 1},
     .lengths = {3, 0, 2, -1},
     .more_lengths = {4, 0, 2, -1}},
    {.what = "dropout",
     .in = {HEED_DIMS2(7, 4), HEED_DIMS2(9, 4), HEED_DIMS2(9, 4)},
     .i = {2},
     .r = {0.25},
     .lengths = {3, 4, -1},
     .more_lengths = {5, 4, -1}},
    {.what = "everything: causal, bias, weights out, dropout",
     .in = {HEED_DIMS2(9, 4), HEED_DIMS2(9, 4), HEED_DIMS2(9, 4), HEED_DIMS3(2, 5, 5)},
     .i = {2, 1, 1},
     .r = {0.25, 0.7},
     .lengths = {5, 4, -1},
     .more_lengths = {5, 4, -1}},
    {.what = "two heads on each head of keys, causal",
     .in = {HEED_DIMS2(7, 8), HEED_DIMS2(7, 4), HEED_DIMS2(7, 6)},
     HEED_WITH(.kv_heads = 2),
     .i = {4, 1},
     .r = {0.25},
     .lengths = {5, 2, -1},
     .more_lengths = {5, 2, -1}},
    {.what = "keys in runs, over two blocks of queries",
     .in = {HEED_DIMS2(60, 4), HEED_DIMS2(60, 4), HEED_DIMS2(60, 4)},
     HEED_WITH(.band = 3, .first = 2),
     .i = {2},
     .lengths = {53, 0, 1, 6, -1},
     .more_lengths = {53, 0, 1, 6, -1}},
    {.what = "every second key, causal, shared heads, dropout, weights out",
     .in = {HEED_DIMS2(9, 8), HEED_DIMS2(9, 4), HEED_DIMS2(9, 4)},
     HEED_WITH(.band = 5, .step = 2, .kv_heads = 2),
     .i = {4, 1, 1},
     .r = {0.25},
     .lengths = {6, 3, -1},
     .more_lengths = {6, 3, -1}},
    {.what = "every twentieth key: single columns of far tiles",
     .in = {HEED_DIMS2(4, 2), HEED_DIMS2(50, 2), HEED_DIMS2(50, 2)},
     HEED_WITH(.band = 60, .step = 20),
     .i = {1},
     .lengths = {4, -1},
     .more_lengths = {50, -1}},
    {.what = "two of every five keys, causal: runs inside tiles",
     .in = {HEED_DIMS2(30, 2), HEED_DIMS2(30, 2), HEED_DIMS2(30, 2)},
     HEED_WITH(.band = 30, .step = 5, .width = 2),
     .i = {1, 1},
     .lengths = {27, 3, -1},
     .more_lengths = {27, 3, -1}},
    {.what = "nineteen of every forty keys: runs over tiles",
     .in = {HEED_DIMS2(4, 2), HEED_DIMS2(99, 2), HEED_DIMS2(99, 2)},
     HEED_WITH(.band = 99, .step = 40, .width = 19),
     .i = {1},
     .lengths = {4, -1},
     .more_lengths = {99, -1}},
    {.what = "so many keys visible to each query",
     .in = {HEED_DIMS2(6, 4), HEED_DIMS2(9, 4), HEED_DIMS2(9, 2)},
     HEED_WITH(.visible = true),
     .i = {2},
     .lengths = {4, 2, -1},
     .more_lengths = {5, 4, -1}},
    {.what = "bias by distance, causal, cut",
     .in = {HEED_DIMS2(9, 4), HEED_DIMS2(9, 4), HEED_DIMS2(9, 4), HEED_DIMS2(2, 4)},
     HEED_WITH(.distance = true),
     .i = {2, 1},
     .lengths = {6, 3, -1},
     .more_lengths = {6, 3, -1}},
    {.what = "bias by distance, both sides, one for all heads, in runs",
     .in = {HEED_DIMS2(8, 4), HEED_DIMS2(8, 4), HEED_DIMS2(8, 4), HEED_DIMS2(1, 5)},
     HEED_WITH(.distance = true, .band = 3),
     .i = {2},
     .lengths = {5, 3, -1},
     .more_lengths = {5, 3, -1}},
    {.what = "shared rows, a segment without keys",
     .in = {HEED_DIMS2(7, 4), HEED_DIMS2(6, 4), HEED_DIMS2(6, 6), HEED_DIMS2(3, 4),
            HEED_DIMS2(3, 6)},
     HEED_WITH(.shared = true),
     .i = {2},
     .lengths = {4, 1, 2, -1},
     .more_lengths = {4, 0, 2, -1}},
    {.what = "everything: runs, visible, distance, shared rows and heads, dropout, weights out",
     .in = {HEED_DIMS2(9, 8), HEED_DIMS2(9, 4), HEED_DIMS2(9, 4), HEED_DIMS2(4, 7),
            HEED_DIMS2(2, 4), HEED_DIMS2(2, 4)},
     HEED_WITH(.kv_heads = 2, .band = 4, .first = 1, .visible = true, .distance = true,
               .shared = true),
     .i = {4, 1, 1},
     .r = {0.25, 0.7},
     .lengths = {5, 4, -1},
     .more_lengths = {5, 4, -1}},
    {.what = "listed keys, a segment without keys",
     .in = {HEED_DIMS2(7, 4), HEED_DIMS2(12, 4), HEED_DIMS2(12, 6)},
     HEED_WITH(.listed = true),
     .i = {2},
     .lengths = {4, 1, 2, -1},
     .more_lengths = {9, 0, 3, -1}},
    {.what = "everything with listed keys",
     .in = {HEED_DIMS2(15, 8), HEED_DIMS2(15, 4), HEED_DIMS2(15, 4), HEED_DIMS2(4, 7),
            HEED_DIMS2(2, 4), HEED_DIMS2(2, 4)},
     HEED_WITH(.kv_heads = 2, .listed = true, .visible = true, .distance = true, .shared = true),
     .i = {4, 1, 1},
     .r = {0.25, 0.7},
     .lengths = {11, 4, -1},
     .more_lengths = {11, 4, -1}},
    {.what = "listed keys, a bias for each pair",
     .in = {HEED_DIMS2(7, 4), HEED_DIMS2(7, 4), HEED_DIMS2(7, 6), HEED_DIMS3(1, 5, 5)},
     HEED_WITH(.listed = true, .bias = true),
     .i = {1},
     .lengths = {5, 2, -1},
     .more_lengths = {5, 2, -1}},
};

/* Scattered, others for each query, head and segment; some beyond the last. */
static int64_t case_list(const void *context, int64_t segment, int head, int64_t i, void *room,
                         int32_t *out)
{
    int64_t n = 0;
    (void)context, (void)room;
    for (int32_t key = 0; key < 5; key++)
        if ((2 * i + 3 * key + head + segment) % 4 > 1)
            out[n++] = key;
    return n;
}

static int case_ranges(const void *context, int head, int64_t i, int64_t queries, int64_t keys,
                       heed_key_range *out)
{
    const struct arguments *a = context;
    const int32_t end = (int32_t)(i + 2 + head < keys ? i + 2 + head : keys);
    const int32_t begin = (int32_t)(i >= a->band ? i - a->band + 1 : 0);
    (void)queries;
    out[0] = (heed_key_range){0, a->first, 1, 1};
    out[1] = (heed_key_range){begin, a->step > 1 ? (int32_t)keys : end, a->step, a->width};
    return 2;
}

static void run_case(heed_tape *t, const heed_opcase *c, heed_tensor **in, heed_tensor **out)
{
    static const struct arguments none = {0};
    const struct arguments *a = c->arguments ? c->arguments : &none;
    const heed_key_pattern pattern = {.ranges = a->listed ? NULL : case_ranges,
                                      .context = a,
                                      .most = 2,
                                      .list = a->listed ? case_list : NULL};
    const bool bias = a->bias || (!c->arguments && c->in[BIAS].rank);
    heed_tensor **next = in + BIAS;
    heed_attention_options options = {.heads = (int)c->i[0],
                                      .kv_heads = a->kv_heads,
                                      .causal = c->i[1] != 0,
                                      .probabilities = c->i[2] ? &out[1] : NULL,
                                      .dropout = c->r[0],
                                      .scale = c->r[1],
                                      .pattern = a->band || a->listed ? &pattern : NULL};
    if (bias)
        options.bias = *next++;
    if (a->distance)
        options.distance_bias = *next++;
    if (a->shared) {
        options.shared_k = *next++;
        options.shared_v = *next++;
    }
    const heed_segments *queries = heed__case_segments(t, c->lengths);
    if (a->visible && queries) {
        int32_t *visible =
            heed_arena_allocate(heed_tape_arena(t), (size_t)queries->rows * sizeof *visible);
        for (int64_t n = 0; visible && n < queries->rows; n++)
            visible[n] = (int32_t)(n % 4 + 1);
        options.visible = visible;
    }
    out[0] = heed_attention(t, in[Q], in[K], in[V], queries,
                            heed__case_segments(t, c->more_lengths), &options);
}

#endif
