/* attention.h: attention as a layer: any score over any window, and the multi-head attention of the
 * Transformer, which is one use of it.
 *
 *     heed_mha_build(&l, scope, &(heed_mha_options){.d = 512, .heads = 8, .cross = true});
 *     y = heed_mha_apply(t, &l, x, memory, x_segments, memory_segments, NULL);
 *
 *     heed_attend_build(&a, scope, &(heed_attend_options){.score = HEED_SCORE_ADDITIVE,
 *                                                         .query_d = 512, .key_d = 1024});
 *     heed_memory m = heed_attend_memory(t, &a, states, states, segments);    // once
 *     c = heed_attend(t, &a, s, &m, one_query_each, NULL);                    // at every step
 */
#ifndef HEED_ATTENTION_H
#define HEED_ATTENTION_H

#include <heed/nn.h>
#include <heed/options.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- six slots ---- */

/* Attention is queries (which of them look), memory (which keys and values exist), pattern (which
 * pairs of a query and a key may meet), score (how well they match), bias (what is known before)
 * and normaliser (how scores become weights).  What can stand in each slot is a row of a table:
 * `heed list attention`. */
typedef enum heed_attention_slot {
    HEED_SLOT_QUERIES,
    HEED_SLOT_MEMORY,
    HEED_SLOT_PATTERN,
    HEED_SLOT_SCORE,
    HEED_SLOT_BIAS,
    HEED_SLOT_NORMALISER,
} heed_attention_slot;
/* What a row can do, as bits. */
typedef enum heed_attention_ability {
    HEED_CAN_CAUSAL = 1,   /* a query sees nothing behind its own place */
    HEED_CAN_CROSS = 2,    /* keys of another sequence than the queries */
    HEED_CAN_CACHE = 4,    /* one query at a time gives what all at once give */
    HEED_CAN_WEIGHTS = 8,  /* the weights can be looked at and differentiated */
    HEED_CAN_HEADS = 16,   /* several heads side by side */
    HEED_CAN_WIDTHS = 32,  /* queries and keys of different widths */
    HEED_CAN_LOGS = 64,    /* log-weights: weights that sum to 1 */
    HEED_CAN_FUSED = 128,  /* one fast operator, heed_attention, for score, softmax and mixture */
    HEED_CAN_STACKS = 256, /* self-attention of stacks of layers, not recurrent steps alone */
    HEED_CAN_UNION = 512,  /* a pattern among others: band:64+global:2 */
} heed_attention_ability;
/* A number of a row, as W of band:W. */
typedef struct heed_row_number {
    int64_t least, most, otherwise; /* otherwise: if it is left out */
    const char *const *words;       /* said as one of these, from 1 on; NULL: as a number */
} heed_row_number;
#define HEED_TERM_NUMBERS 3
typedef struct heed_attention_info {
    heed_attention_slot slot;
    const char *name; /* as options say it */
    const char *form; /* with its numbers, in brackets those that may be left out: "global[:G]" */
    const char *example; /* of a pattern by position: a form that 36 positions show; else NULL */
    const char *formula; /* one line */
    const char *paper;
    const char *cost; /* for each pair, or for each query */
    unsigned can;     /* heed_attention_ability */
    int needs, takes; /* numbers */
    heed_row_number number[HEED_TERM_NUMBERS];
} heed_attention_info;
int heed_attention_count(void);
heed_attention_info heed_attention_describe(int i);
/* "score", and "causal": a word for a slot and for one ability. */
const char *heed_attention_slot_name(heed_attention_slot slot);
const char *heed_attention_ability_name(heed_attention_ability ability);

/* The rows of the slots, in their order.  q is a query, k a key, both of one head. */
typedef enum heed_queries_kind {
    HEED_QUERIES_ALL,
    HEED_QUERIES_CLUSTERED,          /* one for each of C clusters, and all get what it gets */
    HEED_QUERIES_IMPROVED_CLUSTERED, /* and K keys of the cluster for each query itself */
    HEED_QUERIES_PROBSPARSE,         /* C ln L of them, others get the mean of the values */
} heed_queries_kind;
typedef enum heed_memory_kind {
    HEED_MEMORY_STATES,
    HEED_MEMORY_PERSISTENT,    /* and P learned keys and values that every query sees */
    HEED_MEMORY_MCA,           /* a strided convolution makes one key and value of C */
    HEED_MEMORY_LINFORMER,     /* K learned mixtures of all positions */
    HEED_MEMORY_ISAB,          /* M learned points that look first: a sublayer of its own */
    HEED_MEMORY_LUNA,          /* L rows that go through the stack: a sublayer of its own */
    HEED_MEMORY_POOLINGFORMER, /* a band, and a band of means behind it: a sublayer of its own */
} heed_memory_kind;
typedef enum heed_pattern_kind {
    HEED_PATTERN_GLOBAL,      /* all keys; with G: the first G see all and are seen by all */
    HEED_PATTERN_BAND,        /* the W keys nearest to the query's own place, that one included */
    HEED_PATTERN_LOCAL_M,     /* p = the query's own place; keys p-D to p+D */
    HEED_PATTERN_LOCAL_P,     /* p = S sigmoid(v.tanh(W q)), weights times a Gaussian around p */
    HEED_PATTERN_DILATED,     /* W keys, STEP apart */
    HEED_PATTERN_RANDOM,      /* R keys, drawn once and for all */
    HEED_PATTERN_BLOCK,       /* the keys of the query's own block of B */
    HEED_PATTERN_STRIDED,     /* the last L keys, and every L-th */
    HEED_PATTERN_FIXED,       /* the query's own block of L keys, and the last C of each block */
    HEED_PATTERN_STAR,        /* both neighbours in a ring, and position 0, which sees all */
    HEED_PATTERN_ETC,         /* a band of W and G global positions in one softmax */
    HEED_PATTERN_BIGBIRD,     /* blocks: the neighbours, the first, the last, R drawn */
    HEED_PATTERN_BPT,         /* K neighbours, then K spans of 2, of 4, ... by their last token */
    HEED_PATTERN_BLOCK_IMAGE, /* rows of X pixels: patches of B by B and those around them */
    HEED_PATTERN_AXIAL,       /* rows of X pixels: the query's row and its column */
    HEED_PATTERN_LONGFORMER,  /* a band, and G positions with projections of their own: a sublayer
                                 of its own */
    HEED_PATTERN_TOP_K,       /* the K keys with the largest q.k, or most of them */
    HEED_PATTERN_LSH,         /* k = q/|q|: neighbours in the order of hashes, in ROUNDS of them */
    HEED_PATTERN_ROUTING,     /* C clusters of equal size, whose centroids move */
} heed_pattern_kind;
typedef enum heed_score_kind {
    HEED_SCORE_SCALED_DOT, /* q.k / sqrt(Dk) */
    HEED_SCORE_DOT,        /* q.k */
    HEED_SCORE_GENERAL,    /* q W k */
    HEED_SCORE_ADDITIVE,   /* v.tanh(W q + U k) */
    HEED_SCORE_COSINE,     /* beta cos(q, k) */
    HEED_SCORE_LOCATION,   /* q W, a number for each place, whatever the keys are */
} heed_score_kind;
typedef enum heed_bias_kind {
    HEED_BIAS_NONE,
    HEED_BIAS_ALIBI, /* -m |i - j|, m fixed for each head */
    HEED_BIAS_TABLE, /* a learned number for each head and distance, cut at R */
    HEED_BIAS_SPAN,  /* log m: each head learns how far it looks, at most S */
} heed_bias_kind;
typedef enum heed_normaliser_kind {
    HEED_NORMALISE_SOFT, /* softmax */
    HEED_NORMALISE_HARD, /* one key, drawn while the tape trains, else the likeliest */
    HEED_NORMALISE_ELU,  /* no weights: phi(q) sum phi(k)^T v / phi(q) sum phi(k), phi = elu + 1 */
    HEED_NORMALISE_PERFORMER, /* the same, phi: M positive random features (FAVOR+) */
    HEED_NORMALISE_RFA,       /* the same, phi: sines and cosines of M directions; with gates */
    HEED_NORMALISE_DELTA,     /* no weights: the delta rule on phi = elu + 1, or DPFP */
} heed_normaliser_kind;
/* The words of the scores, in their order, for options. */
#define HEED_SCORE_WORDS "scaled-dot", "dot", "general", "additive", "cosine", "location"

/* What stands in a slot: terms, each a row of its table with its numbers, as "band:64+global:2"
 * says.  A number that is 0 is left out.  No terms: the slot's first row. */
#define HEED_SLOT_TERMS 6
typedef struct heed_term {
    int kind; /* the row, counted in its slot */
    int64_t number[HEED_TERM_NUMBERS];
} heed_term;
typedef struct heed_slot_spec {
    int count;
    heed_term term[HEED_SLOT_TERMS];
} heed_slot_spec;
/* Initialiser of one term: HEED_ONE(HEED_PATTERN_BAND, {64}). */
#define HEED_ONE(...)                                                                              \
    {                                                                                              \
        .count = 1, .term = { {.kind = __VA_ARGS__} }                                              \
    }
/* Refuses names and numbers that there are not, and says which there are. */
heed_status heed_slot_parse(heed_attention_slot slot, const char *text, heed_slot_spec *spec,
                            heed_error *err);
/* The text that reads back the same, written to text, which is returned. */
const char *heed_slot_format(heed_attention_slot slot, const heed_slot_spec *spec,
                             char text[HEED_OPTION_SPEC_TEXT]);
/* The same for tables of options: options.h, HEED_OPTION_SPEC. */
const heed_option_spec *heed_queries_option(void);
const heed_option_spec *heed_memory_option(void);
const heed_option_spec *heed_pattern_option(void);
const heed_option_spec *heed_bias_option(void);
const heed_option_spec *heed_normaliser_option(void);

typedef struct heed_attend_options {
    int score; /* heed_score_kind */
    heed_slot_spec queries, memory, pattern, position_bias, normaliser;
    int heads;              /* H; 0 means 1 */
    int kv_heads;           /* of keys and values, a divisor of H; 0 means H */
    int64_t query_d, key_d; /* columns of queries and keys, all heads together */
    int64_t value_d;        /* of values; needed for a memory that brings its own */
    bool projected;         /* W q and U k of the additive score are there already */
    int64_t d;              /* A, columns inside the additive score; 0 means key_d */
    double beta;            /* of cosine; 0: learned, from 5 on */
    int64_t longest;        /* location: keys that a segment may have */
    double deviation;       /* of local-p's Gaussian; 0 means D/2, INFINITY none */
    bool causal;            /* query i sees keys 0..i of its segment */
    double dropout;         /* on the weights */
    int layer;              /* some patterns differ from layer to layer */
    double span_penalty;    /* of adaptive spans: heed_attend_penalty */
    bool single; /* mostly one query a segment, as in recurrent steps: then score, softmax
                               and mixture one by one are faster than one operator for all */
} heed_attend_options;
typedef struct heed_attend_layer {
    heed_attend_options options;
    heed_linear_layer q, k; /* additive: W (query_d,A), U (key_d,A) */
    heed_tensor *weight;    /* general (query_d,Dk), location (query_d,longest), head below head;
                               additive v (A) */
    heed_tensor *beta;      /* cosine: softplus of it, (1) */
    heed_linear_layer place, place_out;   /* local-p */
    heed_tensor *shared_k, *shared_v;     /* persistent: (P,KvHeads*Dk), (P,KvHeads*Dv) */
    heed_tensor *distance;                /* table: (H,L), ops.h: distance_bias */
    heed_tensor *span;                    /* adaptive span: (H), the share of S */
    heed_tensor *compress_k, *compress_v; /* mca: (KvHeads*C*Dk,Dk) of each head below the other,
                                             (KvHeads*C*Dv,Dv); linformer: (K,longest) */
    heed_tensor *directions;              /* performer, rfa: (M,Dk), state */
    heed_tensor *widths;    /* rfa: (KvHeads*Dk) what unit vectors are multiplied with */
    heed_tensor *gate_bias; /* rfa with gates: (KvHeads) */
    heed_tensor *centroids; /* routing: (H*C,Dk), state that moves */
} heed_attend_layer;
/* Refuses what does not go together, and names what would. */
void heed_attend_build(heed_attend_layer *l, heed_scope s, const heed_attend_options *options);

/* What queries look at: made once from states (M,key_d), then used by any number of queries.
 * values (M,H*Dv), or NULL if only weights are wanted. */
typedef struct heed_memory {
    heed_tensor *keys, *values;
    const heed_segments *segments;
    heed_tensor *gate; /* (M,KvHeads) of normalisers with gates: rfa with gates, delta */
} heed_memory;
heed_memory heed_attend_memory(heed_tape *t, const heed_attend_layer *l, heed_tensor *states,
                               heed_tensor *values, const heed_segments *segments);
/* All optional.  Tensors received are flat (ops.h: heed_pairs) where nothing else is said. */
typedef struct heed_attend_extra {
    const int32_t *place;  /* (N): the queries' places, for local-m; NULL: in their segments */
    bool all_past;         /* causal: the queries stand behind all of the keys */
    heed_tensor *bias;     /* added to the scores (ops.h: heed_attention_options); fused scores */
    heed_tensor **weights; /* receives what the values were weighed with, before dropout */
    heed_tensor **log_weights;
    heed_tensor **chosen_log_p;    /* hard: (N,H), for heed_reinforce */
    const int32_t **chosen;        /* hard: (N,H) places of keys */
    heed_attention_counts *counts; /* receives what fused scores computed; else it is left alone */
} heed_attend_extra;
/* q (N,query_d): the values of each query's segment, weighed: (N,H*Dv); without values, the
 * weights. */
heed_tensor *heed_attend(heed_tape *t, const heed_attend_layer *l, heed_tensor *q,
                         const heed_memory *memory, const heed_segments *queries,
                         const heed_attend_extra *extra);

/* What is to be added to a loss that is a sum over this many rows: span_penalty times the mean of
 * the learned spans, for each row.  NULL: nothing. */
heed_tensor *heed_attend_penalty(heed_tape *t, const heed_attend_layer *l, int64_t rows);

/* The gradient of a choice, REINFORCE (Williams 1992): rewards[n] is what followed choice n at
 * once, a segment is a series of choices, and a choice is judged by all that follows it in its
 * segment, R_n, compared with b: loss = - weight sum_n (R_n - b * choices left) log p_n.  Add it to
 * the loss of the same rewards.  b, a moving mean of the rewards, is saved with the model; it moves
 * while the tape trains, behind the loss. */
typedef struct heed_reinforce_layer {
    heed_tensor *baseline; /* (2): weighted sum of rewards, sum of weights */
    double momentum;
} heed_reinforce_layer;
void heed_reinforce_build(heed_reinforce_layer *l, heed_scope s, double momentum);
/* log_p (N,H), rewards (N). */
heed_tensor *heed_reinforce(heed_tape *t, const heed_reinforce_layer *l, heed_tensor *log_p,
                            const heed_real *rewards, const heed_segments *s, double weight);

/* ---- multi-head attention ---- */

/* concat(head_i) W^O, head_i = softmax(Q W_i^Q (K W_i^K)^T / sqrt(Dk)) V W_i^V. */
typedef struct heed_mha_options {
    int64_t d;        /* D, of queries and of the output */
    int64_t memory_d; /* of keys and values; 0 means d */
    int heads;        /* H */
    int64_t d_k, d_v; /* per head; 0 means D/H */
    int kv_heads;     /* of keys and values, a divisor of H; 0 means H */
    bool cross;       /* keys and values come from another sequence than the queries */
    bool causal;      /* query i sees keys 0..i of its segment */
    bool bias;        /* on the four products; the paper has none */
    int score;        /* heed_score_kind, between the projected queries and keys of a head */
    int layer;        /* some patterns differ from layer to layer */
    heed_slot_spec queries, memory, pattern, position_bias, normaliser;
    double beta;              /* of cosine; 0: learned */
    int64_t longest;          /* location: keys that a segment may have */
    double dropout;           /* on the weights */
    double span_penalty;      /* of adaptive spans */
    heed_positions positions; /* rotary: queries and keys are turned by them; others stand in the
                                 input.  Without cross */
    double rotary_base;       /* 0 means 10000 */
} heed_mha_options;
/* Self-attention makes q, k and v in one product (qkv), cross-attention k and v in one (kv).  With
 * lsh, whose keys are the queries, there is no K. */
typedef struct heed_mha_layer {
    heed_mha_options options;
    heed_linear_layer qkv; /* self: (D, H*Dk + KvHeads*(Dk+Dv)), and KvHeads more of gates */
    heed_linear_layer q;   /* cross: (D, H*Dk) */
    heed_linear_layer kv;  /* cross: (memory_d, KvHeads*(Dk+Dv)) */
    heed_linear_layer out; /* (H*Dv, D) */
    heed_attend_layer attend;
} heed_mha_layer;
void heed_mha_build(heed_mha_layer *l, heed_scope s, const heed_mha_options *options);
/* x (N,D), memory (M,memory_d).  Without cross, memory must be x, and the segments are passed
 * twice.  extra may be NULL. */
heed_tensor *heed_mha_apply(heed_tape *t, const heed_mha_layer *l, heed_tensor *x,
                            heed_tensor *memory, const heed_segments *queries,
                            const heed_segments *keys, const heed_attend_extra *extra);

/* The probabilities of one head over one sentence (optional; NULL if not needed): row i says where
 * query i looked; rows add up to 1, or to less where a Gaussian has been over them. */
typedef enum heed_attention_kind {
    HEED_ENCODER_SELF,
    HEED_DECODER_SELF,
    HEED_CROSS,
} heed_attention_kind;
typedef struct heed_attention_map {
    heed_attention_kind kind;
    int layer, head;         /* from 0 */
    int64_t sentence;        /* of its batch */
    int64_t queries, keys;   /* rows, columns */
    const heed_real *weight; /* row-major */
} heed_attention_map;

#ifdef __cplusplus
}
#endif
#endif
