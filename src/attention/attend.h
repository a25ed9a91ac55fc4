/* attend.h (internal): what a row of a slot is, for attend.c, which puts the slots together, and
 * the files that have the rows. */
#ifndef HEED_ATTENTION_ATTEND_H
#define HEED_ATTENTION_ATTEND_H

#include <heed/attention.h>

/* ---- rows ---- */

typedef struct heed__score {
    /* NULL where there is nothing to do. */
    void (*build)(heed_attend_layer *l, heed_scope s);
    heed_tensor *(*keys)(heed_tape *t, const heed_attend_layer *l, heed_tensor *states);
    heed_tensor *(*query)(heed_tape *t, const heed_attend_layer *l, heed_tensor *q,
                          const heed_pairs *p);
    /* Flat scores of what `query` and `keys` made; NULL: their products, times 1/sqrt(Dk) if
     * `scaled`. */
    heed_tensor *(*scores)(heed_tape *t, const heed_attend_layer *l, heed_tensor *q, heed_tensor *k,
                           const heed_pairs *p);
    bool scaled;
} heed__score;

/* A query of a pattern: number i of a segment's `queries`, which has `keys`.  While decoding, a
 * causal query does not know how many there will be: what it sees may not depend on them. */
typedef struct heed__pattern_query {
    int layer, head;
    int64_t i, queries, keys;
    bool causal; /* keys behind i are not seen, whatever the ranges say */
} heed__pattern_query;
typedef struct heed__pattern {
    /* The keys that q sees (ops.h: heed_key_range), in any order, cut to 0 .. keys and made one
     * list by who asks: how many ranges were written, at most `most`. */
    int (*ranges)(const heed_term *term, const heed__pattern_query *q, heed_key_range *out);
    int most;
    bool steps; /* some of them have gaps, and those of two terms may cross */
    /* How far before a causal query its keys reach, *pinned first positions left out, which later
     * queries see as well. */
    int64_t (*reach)(const heed_term *term, int64_t *pinned);
    bool (*by_head)(const heed_term *term); /* heads see different keys; NULL: never */
} heed__pattern;

/* One head of one segment of the batch at hand, for patterns by content. */
typedef struct heed__content_head {
    const heed_attend_layer *layer;
    const heed_term *term;
    const void *common; /* what prepare() made */
    int head;
    int64_t t, s, d; /* queries, keys, and the columns of both */
    bool causal;
    const heed_real *q, *k;
    int64_t q_ld, k_ld; /* from row to row */
} heed__content_head;
/* A pattern by content chooses for each batch: choose() writes what it has chosen, for each head of
 * each segment apart, and mark() says from that alone what a query sees.  What has no choice to
 * make is NULL. */
typedef struct heed__content {
    /* Keys are the queries, made as long as 1, and the layer's are not read; a query sees itself
     * only if it sees nothing else. */
    bool shares_keys;
    void (*build)(heed_attend_layer *l, const heed_term *term, heed_scope s);
    /* What all heads and segments have in common, in the tape's arena; NULL: memory is short. */
    void *(*prepare)(heed_tape *t, const heed_attend_layer *l, const heed_term *term);
    /* Bytes that choose() writes, and that it needs besides. */
    size_t (*size)(const heed_term *term, int64_t t, int64_t s);
    size_t (*scratch)(const heed_term *term, int64_t t, int64_t s, int64_t d);
    void (*choose)(const heed__content_head *h, void *chosen, void *scratch);
    /* Sets the bits of the keys that query i sees; later ones than a causal query may see are cut
     * by who asks. */
    void (*mark)(const heed__content_head *h, const void *chosen, int64_t i, uint64_t *bits);
    /* After all heads of a segment of a tape that trains: state that moves. */
    void (*learn)(heed_tape *t, const heed__content_head *heads, int count, void *const *chosen);
} heed__content;

/* What a normaliser that forms no weights does with queries, keys and values: sums, which it
 * divides, or the delta rule. */
typedef struct heed__linear_form {
    heed_feature_kind features;
    int64_t count;  /* random directions, or nu of DPFP */
    int64_t redraw; /* updates after which training has other directions; 0: always the stored */
    bool unit_sum;
    bool unit;  /* queries and keys get length 1 and are multiplied with learned numbers */
    bool gated; /* a number for each key: how much is forgotten, or how much is written */
    bool delta;
    double gate_bias; /* added to it, learned from there; 0: none */
} heed__linear_form;

/* What a memory that compresses says besides its keys and values. */
typedef struct heed__compressed {
    int64_t by;             /* positions that a key stands for; 0: a pattern means nothing */
    const int32_t *visible; /* ops.h: heed_attention_options; NULL: all */
} heed__compressed;
/* Queries that do not all look for themselves: the mixture (N,H*Dv) of q, as the score has made
 * it; `one` says what heed_attention is to be asked with.  NULL after an error of the tape. */
typedef struct heed__queries_form {
    heed_tensor *(*answer)(heed_tape *t, const heed_attend_layer *l, heed_tensor *q,
                           const heed_memory *m, const heed_segments *queries, bool causal,
                           const heed_attention_options *one);
    bool drops; /* its weights can be dropped out */
} heed__queries_form;

typedef struct heed__memory_form {
    void (*build)(heed_attend_layer *l, heed_scope s);
    /* Replaces what is in m; false after an error of the tape.  NULL: it stays. */
    bool (*compress)(heed_tape *t, const heed_attend_layer *l, heed_memory *m,
                     const heed_segments *queries, bool causal, heed__compressed *out);
} heed__memory_form;

/* A row of a table: its facts, and what its slot asks of it. */
typedef struct heed__slot_row {
    heed_attention_info info;
    const heed__score *score;     /* of scores */
    const heed__pattern *pattern; /* of patterns; NULL where keys depend on more than positions: */
    const heed__content *content; /* of patterns by content */
    heed__linear_form (*linear)(const heed_term *term); /* of normalisers that form no weights */
    /* Refuses numbers that do not go together; NULL: all do. */
    heed_status (*check)(const heed_term *term, heed_error *err);
    const heed__memory_form *memory;   /* of memories; NULL: the states */
    const heed__queries_form *queries; /* of queries; NULL: all */
    /* A class of sublayers that its name chooses (src/model/sublayers.h), and that has nothing of
     * what stands above; NULL: none. */
    const char *sublayer;
    bool any_score; /* it takes every score, not only products of its own */
} heed__slot_row;

/* Every row, slot by slot, in the order of its heed_..._kind.  A new mechanism is a file that has
 * its row, a line here and its kind in attention.h. */
#define HEED_ATTENTION_ROWS(X)                                                                     \
    X(queries_all)                                                                                 \
    X(queries_clustered)                                                                           \
    X(queries_improved_clustered)                                                                  \
    X(queries_probsparse)                                                                          \
    X(memory_states)                                                                               \
    X(memory_persistent)                                                                           \
    X(memory_mca)                                                                                  \
    X(memory_linformer)                                                                            \
    X(memory_isab)                                                                                 \
    X(memory_luna)                                                                                 \
    X(memory_poolingformer)                                                                        \
    X(pattern_global)                                                                              \
    X(pattern_band)                                                                                \
    X(pattern_local_m)                                                                             \
    X(pattern_local_p)                                                                             \
    X(pattern_dilated)                                                                             \
    X(pattern_random)                                                                              \
    X(pattern_block)                                                                               \
    X(pattern_strided)                                                                             \
    X(pattern_fixed)                                                                               \
    X(pattern_star)                                                                                \
    X(pattern_etc)                                                                                 \
    X(pattern_bigbird)                                                                             \
    X(pattern_bpt)                                                                                 \
    X(pattern_block_image)                                                                         \
    X(pattern_axial)                                                                               \
    X(pattern_longformer)                                                                          \
    X(pattern_top_k)                                                                               \
    X(pattern_lsh)                                                                                 \
    X(pattern_routing)                                                                             \
    X(score_scaled_dot)                                                                            \
    X(score_dot)                                                                                   \
    X(score_general)                                                                               \
    X(score_additive)                                                                              \
    X(score_cosine)                                                                                \
    X(score_location)                                                                              \
    X(bias_none)                                                                                   \
    X(bias_alibi)                                                                                  \
    X(bias_table)                                                                                  \
    X(bias_span)                                                                                   \
    X(normaliser_soft)                                                                             \
    X(normaliser_hard)                                                                             \
    X(normaliser_elu)                                                                              \
    X(normaliser_performer)                                                                        \
    X(normaliser_rfa)                                                                              \
    X(normaliser_delta)
#define HEED__DECLARE_ROW(name) extern const heed__slot_row heed__##name;
HEED_ATTENTION_ROWS(HEED__DECLARE_ROW)

/* What most rows can. */
#define HEED__CAN_ALWAYS (HEED_CAN_CROSS | HEED_CAN_CACHE | HEED_CAN_WEIGHTS)
#define HEED__CAN_USUAL                                                                            \
    (HEED__CAN_ALWAYS | HEED_CAN_CAUSAL | HEED_CAN_HEADS | HEED_CAN_LOGS | HEED_CAN_STACKS)
#define HEED__COSINE_EPS 1e-6 /* the shortest length that a cosine divides by */

/* ---- the table: registry.c ---- */

/* Row `kind` of a slot; NULL if there is none. */
const heed__slot_row *heed__row_of(heed_attention_slot slot, int kind);
/* "general, additive or location": the rows of a slot that can do all of this. */
#define HEED__ROWS_TEXT 256
const char *heed__rows_that_can(heed_attention_slot slot, unsigned can, char text[HEED__ROWS_TEXT]);
/* What does not go together. */
heed_status heed__attend_check(const heed_attend_options *o, heed_error *err);
/* What all slots can. */
unsigned heed__attend_can(const heed_attend_options *o);
const heed__score *heed__score_of(const heed_attend_layer *l);

/* ---- specs: slot_spec.c ---- */

/* The first term's row. */
int heed__slot_kind(const heed_slot_spec *spec);
/* Refuses what the slot's table does not have. */
heed_status heed__slot_check(heed_attention_slot slot, const heed_slot_spec *spec, heed_error *err);
/* At least one term, every number given. */
heed_slot_spec heed__slot_complete(heed_attention_slot slot, const heed_slot_spec *spec);

/* ---- patterns: pattern_*.c ---- */

/* Whether every query sees all keys. */
bool heed__pattern_is_whole(const heed_slot_spec *pattern);
/* False for a pattern whose keys depend on more than positions. */
bool heed__pattern_is_fixed(const heed_slot_spec *pattern);
/* Whether heads see different keys. */
bool heed__pattern_by_head(const heed_slot_spec *pattern);
/* The union of the terms' ranges, causal included: in ascending order, none begins before the end
 * of the one before, and steps have gaps.  How many, and how many at most of `keys`. */
int heed__pattern_ranges(const heed_slot_spec *pattern, const heed__pattern_query *q,
                         heed_key_range *out);
int64_t heed__pattern_most(const heed_slot_spec *pattern, int64_t keys);
/* The keys that ranges are. */
int64_t heed__range_keys(const heed_key_range *r, int count);
/* Of causal queries: keys further back than this, and not among the *pinned first, are not seen
 * again; INT32_MAX if all may be. */
int64_t heed__pattern_reach(const heed_slot_spec *pattern, int64_t *pinned);
/* The same for operators (ops.h), of up to `keys`; o is borrowed. */
heed_key_pattern heed__key_pattern(const heed_attend_options *o, int64_t keys);

/* Where a query stands among the keys: behind the last one there is nothing. */
static inline int64_t heed__pattern_place(const heed__pattern_query *q)
{
    return q->i < q->keys ? q->i : q->keys > 0 ? q->keys - 1 : 0;
}
/* A range of keys, of which begin and end may lie outside of what there is.  Steps begin inside. */
static inline heed_key_range heed__pattern_range(const heed__pattern_query *q, int64_t begin,
                                                 int64_t end, int64_t step, int64_t width)
{
    return (heed_key_range){(int32_t)(begin < 0         ? 0
                                      : begin < q->keys ? begin
                                                        : q->keys),
                            (int32_t)(end < q->keys ? end : q->keys),
                            (int32_t)(step < INT32_MAX ? step : INT32_MAX), (int32_t)width};
}
/* What has two parts, A and B, may have them merged, in heads by turns or in layers by turns: a
 * number of its own, in these words:
 * merged, heads, layers.  Which part q has: 0, 1, or -1 for both. */
extern const char *const heed__part_words[];
enum { HEED__MERGED = 1, HEED__BY_HEADS, HEED__BY_LAYERS };
static inline int heed__pattern_part(int64_t how, const heed__pattern_query *q)
{
    return how == HEED__BY_HEADS ? q->head % 2 : how == HEED__BY_LAYERS ? q->layer % 2 : -1;
}
/* `count` different ones of 0 .. n, the same for the same (layer, head, at): pattern_random.c. */
#define HEED__MOST_DRAWN 64
int heed__pattern_draw(const heed__pattern_query *q, int64_t at, int64_t count, int64_t n,
                       int64_t out[HEED__MOST_DRAWN]);

/* ---- patterns by content: pattern_content.c ---- */

/* The term whose row chooses by content, of which there is at most one; NULL: none. */
const heed_term *heed__content_term(const heed_slot_spec *pattern);
const heed__content *heed__content_of(const heed_slot_spec *pattern);
/* What does not go with it. */
heed_status heed__content_check(const heed_attend_options *o, heed_error *err);
void heed__content_build(heed_attend_layer *l, heed_scope s);
/* The pattern's lists for this batch; q and the memory's keys are what is multiplied.  False after
 * an error of the tape. */
bool heed__content_choose(heed_tape *t, const heed_attend_layer *l, heed_tensor *q,
                          const heed_memory *m, const heed_segments *queries, bool causal,
                          heed_key_pattern *out);
static inline void heed__mark(uint64_t *bits, int64_t key)
{
    bits[key / 64] |= (uint64_t)1 << key % 64;
}
/* to (n,M) = x (n,d) y (M,d)^T for n of up to HEED__FEW_ROWS rows: the same numbers wherever a row
 * stands. */
#define HEED__FEW_ROWS 16
void heed__few_products(heed_real *to, int64_t to_ld, const heed_real *x, int64_t x_ld,
                        const heed_real *y, int64_t y_ld, int64_t n, int64_t m, int64_t d);

/* pattern_lsh.c: R of a round, and the buckets of t rows of x, products (HEED__FEW_ROWS, BUCKETS)
 * being scratch. */
void heed__lsh_directions(heed_real *to, int layer, int head, int64_t round, int64_t buckets,
                          int64_t d);
void heed__lsh_buckets(int32_t *bucket, const heed_real *x, int64_t ld, int64_t t,
                       const heed_real *direction, int64_t buckets, int64_t d, heed_real *products);

/* What local-p needs; then each query's predicted place p (N,H), in keys, and what its weights are
 * multiplied with. */
void heed__local_p_build(heed_attend_layer *l, heed_scope s);
heed_tensor *heed__local_p_centre(heed_tape *t, const heed_attend_layer *l, heed_tensor *q,
                                  const heed_pairs *p);

/* The window of each query, in *p; *gate is what its weights are multiplied with, *mask (flat) what
 * is added to its scores, both or either NULL.  False after an error of the tape. */
bool heed__pattern_windows(heed_tape *t, const heed_attend_layer *l, heed_tensor *q,
                           const int32_t *place, heed_pairs *p, heed_tensor **gate,
                           heed_tensor **mask);

/* ---- biases: bias_distance.c ---- */

void heed__bias_build(heed_attend_layer *l, heed_scope s);
/* ops.h: distance_bias, for segments of up to `longest`; NULL: none. */
heed_tensor *heed__bias_by_distance(heed_tape *t, const heed_attend_layer *l, bool causal,
                                    int64_t longest);
/* m of ALiBi: -m |i - j| is added in this head of `heads`. */
double heed__alibi_slope(int head, int heads);

/* ---- no weights: weightless.c ---- */

/* What rows of this kind can. */
#define HEED__CAN_LINEAR (HEED_CAN_CAUSAL | HEED_CAN_CACHE | HEED_CAN_HEADS | HEED_CAN_STACKS)

/* False: the normaliser forms weights. */
bool heed__linear_form_of(const heed_attend_options *o, heed__linear_form *form);
/* What does not go with it. */
heed_status heed__linear_check(const heed_attend_options *o, heed_error *err);
void heed__linear_build(heed_attend_layer *l, heed_scope s);
heed_tensor *heed__attend_linear(heed_tape *t, const heed_attend_layer *l,
                                 const heed__linear_form *form, heed_tensor *q,
                                 const heed_memory *m, const heed_segments *queries, bool causal);

/* ---- adaptive span: bias_span.c ---- */

void heed__span_build(heed_attend_layer *l, heed_scope s);
/* z of a head with this parameter. */
double heed__span_of(const heed_attend_options *o, double share);
/* The largest distance that any head sees, and the band that has them all; share (H). */
int64_t heed__span_reach(const heed_attend_options *o, const heed_real *share);
heed_slot_spec heed__span_pattern(const heed_attend_options *o, int64_t reach);
heed_span_options heed__span_options(const heed_attend_options *o, bool causal);
heed_tensor *heed__span_bias(heed_tape *t, const heed_attend_layer *l, bool causal);

/* ---- memories: memory_*.c ---- */

/* NULL: the states. */
const heed__memory_form *heed__memory_form_of(const heed_attend_options *o);

/* ---- queries: queries_*.c, head_rows.c ---- */

/* NULL: all look for themselves. */
const heed__queries_form *heed__queries_form_of(const heed_attend_options *o);
/* The cluster of each of n queries (n,d) of a head; false when memory is short. */
bool heed__cluster_queries(const heed_real *x, int64_t ld, int64_t n, int64_t d, int64_t clusters,
                           int layer, int head, heed_arena *arena, int32_t *cluster);
/* (N,heads*D) as (N*heads,D): row n heads + h is row n of head h. */
heed_tensor *heed__head_rows(heed_tape *t, heed_tensor *x, int heads);
/* The same, head by head of each sequence, and their segments, (B*heads). */
heed_tensor *heed__heads_apart(heed_tape *t, heed_tensor *x, const heed_segments *rows, int heads,
                               const heed_segments **each);

/* ---- sublayers of their own ---- */

/* The row of the slots that names a class of sublayers; NULL: none does. */
const heed__slot_row *heed__sublayer_row(const heed_attend_options *o);

#endif
