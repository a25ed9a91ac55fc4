/* stack.h: the stacks that models are made of: an input layer, sublayers one after the other, a
 * norm; and the head behind them.
 *
 *     heed_stack_init(&s, arena, D);
 *     heed_input_build(&s.input, scope, &(heed_input_options){.d = D, .vocabulary = V});
 *     for (int i = 0; i < layers; i++) {
 *         o.layer = i;
 *         heed_stack_append(&s, heed_scope_enter(scope, "%d.self", i), self, &o);
 *         heed_stack_append(&s, heed_scope_enter(scope, "%d.ffn", i), ffn, &o);
 *     }
 *     ...
 *     heed_flow flow = {.x = heed_input_apply(t, &s.input, &side), .rows = side.rows};
 *     h = heed_stack_apply(t, &s, &flow);
 *
 * Training and the packed engine walk the same list of sublayers. */
#ifndef HEED_STACK_H
#define HEED_STACK_H

#include <heed/attention.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- one side of a batch ---- */

typedef enum heed_side { HEED_SOURCE = 1, HEED_TARGET = 2, HEED_BOTH = 3 } heed_side;
/* B sequences, packed; sequence b is rows offset[b] .. offset[b+1].  Rows are token ids, or
 * features where a model reads pixels, patches, mel frames or series. */
typedef struct heed_batch_side {
    const heed_segments *rows; /* NULL: the side is absent */
    const int32_t *ids;        /* (N) tokens */
    const int32_t *types;      /* (N) BERT's A and B; NULL: all 0 */
    const heed_real *features; /* (N,width) instead of ids */
    int64_t width;
} heed_batch_side;

/* ---- attention recorder ---- */

/* The probabilities of one attention of a forward pass, all heads, all sequences (ops.h:
 * heed_attention_options says how they lie). */
typedef struct heed_attention_record {
    heed_attention_kind kind;
    int layer, heads;
    const heed_segments *queries, *keys;
    heed_tensor *probabilities;
    struct heed_attention_record *next;
} heed_attention_record;
/* A list in the order of the forward pass; records live until the tape is reset. */
typedef struct heed_attention_recorder {
    heed_attention_record *first, *last;
    int count;
} heed_attention_recorder;
/* Appends a copy of r; NULL without a recorder, and when memory is short.  For sublayers: give
 * &record->probabilities to the attention. */
heed_attention_record *heed_attention_recorder_add(heed_attention_recorder *recorder, heed_tape *t,
                                                   heed_attention_record r);

/* ---- input ---- */

/* dropout(norm(scale * E[ids] + P + E_types[types])), or dropout(norm(features W + b + P)). */
typedef struct heed_input_options {
    int64_t d;
    int64_t vocabulary; /* rows of E; 0: rows are features */
    int64_t types;      /* rows of E_types; 0: none */
    int64_t width;      /* columns of features */
    heed_positions positions;
    int64_t longest; /* positions that there are */
    double scale;    /* sqrt(D) in the paper; 0 means 1 */
    bool normed;     /* a norm on the sum, as BERT has */
    heed_norm_kind norm;
    double eps;
    double dropout;
    bool zero_start; /* the first row of a sequence has its position alone, whatever its token is */
} heed_input_options;
typedef struct heed_input_layer {
    heed_embedding_layer embedding; /* table NULL: features */
    heed_linear_layer features;     /* (width,D) */
    heed_tensor *types;             /* (types,D) or NULL */
    heed_norm_layer norm;           /* gain NULL: none */
    double dropout;
    bool zero_start;
} heed_input_layer;
/* Declares "table", "positions" (learned), "types", "norm.*"; features: "weight" and "bias". */
void heed_input_build(heed_input_layer *l, heed_scope s, const heed_input_options *options);
/* (N,D).  Refuses a side that has not what the layer reads. */
heed_tensor *heed_input_apply(heed_tape *t, const heed_input_layer *l, const heed_batch_side *side);

/* ---- sublayers ---- */

/* What runs through a stack. */
typedef struct heed_flow {
    heed_tensor *x;                    /* (N,D) */
    heed_tensor *memory;               /* (M,D) of another stack, or NULL */
    heed_tensor *carried;              /* beside x from sublayer to sublayer, or NULL */
    const heed_segments *rows;         /* of x; a sublayer that pools replaces them */
    const heed_segments *memory_rows;  /* of memory */
    const heed_segments *carried_rows; /* of carried */
    heed_tensor *penalty;              /* (1), to be added to the loss; NULL: none */
    heed_attention_recorder *recorder; /* NULL: nothing is recorded */
} heed_flow;

/* What stands around a sublayer f: f(x) alone, or x + f(x) with a norm before f, after the sum or
 * nowhere; dropout on f's output. */
typedef enum heed_norm_place {
    HEED_NORM_AFTER,  /* norm(x + f(x)), as in the paper */
    HEED_NORM_BEFORE, /* x + f(norm(x)) */
    HEED_NORM_NONE,   /* x + f(x) */
} heed_norm_place;
typedef struct heed_around_options {
    heed_norm_place place;
    heed_norm_kind norm;
    double eps;
    bool residual; /* false: without x */
    double dropout;
} heed_around_options;
typedef struct heed_around {
    heed_around_options options;
    heed_norm_layer norm;
} heed_around;

typedef struct heed_sublayer_options {
    int layer;            /* number of the layer it belongs to, from 0: attention is shown by it */
    heed_mha_options mha; /* d is the stack's, cross the class's */
    heed_ffn_options ffn; /* d is the stack's */
    heed_around_options around;
    int64_t seeds; /* of pma: rows that stand for a sequence behind it; 0 means 1 */
} heed_sublayer_options;

/* Which member of heed_sublayer.as holds the parameters. */
typedef enum heed_sublayer_form {
    HEED_SUBLAYER_MHA,
    HEED_SUBLAYER_FFN,
    HEED_SUBLAYER_SSRU,
    HEED_SUBLAYER_OWN,
} heed_sublayer_form;
typedef struct heed_sublayer_class heed_sublayer_class;
typedef struct heed_sublayer {
    const heed_sublayer_class *kind;
    int layer;
    heed_around around;
    union {
        heed_mha_layer mha;
        heed_ffn_layer ffn;
        heed_ssru_layer ssru;
        void *own;
    } as;
} heed_sublayer;

/* Weights that a row of x and a row of the memory are multiplied with. */
typedef struct heed_sublayer_cost {
    int64_t row_weights, memory_weights;
} heed_sublayer_cost;

/* A kind of sublayer: a row of a table, found by its name. */
struct heed_sublayer_class {
    const char *name; /* "self" */
    const char *formula;
    heed_sublayer_form form;
    /* Declares the parameters and fills s->as; `own` comes from the arena. */
    void (*build)(heed_sublayer *s, heed_scope scope, const heed_sublayer_options *options,
                  heed_arena *arena);
    /* f(x) of what stands around it.  May read and write the flow, but leaves flow->x alone. */
    heed_tensor *(*apply)(heed_tape *t, const heed_sublayer *s, heed_tensor *x, heed_flow *flow);
    heed_sublayer_cost (*cost)(const heed_sublayer *s);
    /* heed_attention_ability: CAUSAL, no row depends on a later one; CROSS, reads the memory;
     * CACHE, rows one at a time give what all at once give. */
    unsigned (*can)(const heed_sublayer *s);
};
int heed_sublayer_class_count(void);
const heed_sublayer_class *heed_sublayer_class_at(int i);
/* By name; NULL if there is none. */
const heed_sublayer_class *heed_sublayer_class_find(const char *name);

/* What self-attention with these options is: "self", or the class that its memory (isab, luna,
 * poolingformer) or its pattern (longformer) names. */
const heed_sublayer_class *heed_sublayer_class_of(const heed_mha_options *mha);

/* ---- stacks ---- */

typedef struct heed_stack {
    int64_t d;
    heed_input_layer input;
    heed_sublayer *sublayer; /* (count), in the order of the forward pass */
    int count, capacity;
    heed_norm_layer norm; /* of what comes out; gain NULL: none */
    heed_arena *arena;    /* borrowed; holds the list */
} heed_stack;
/* Empty, with nothing declared. */
void heed_stack_init(heed_stack *s, heed_arena *arena, int64_t d);
/* One more sublayer, its parameters under scope.  Errors stay in the parameter set. */
void heed_stack_append(heed_stack *s, heed_scope scope, const heed_sublayer_class *kind,
                       const heed_sublayer_options *options);
/* Runs flow->x through all sublayers and the final norm; flow says what became of the rest. */
heed_tensor *heed_stack_apply(heed_tape *t, const heed_stack *s, heed_flow *flow);
/* All sublayers together. */
heed_sublayer_cost heed_stack_cost(const heed_stack *s);
/* What all sublayers can. */
unsigned heed_stack_can(const heed_stack *s);

/* ---- head ---- */

/* Hidden states (N,D) -> logits (N,V) over a vocabulary or labels: h W^T + b; before it, if there
 * is a transform, norm(activation(h W_t + b_t)).  V = 0: no W; the transform gives a pooled vector.
 */
typedef struct heed_head_options {
    int64_t d, classes; /* D, V */
    heed_tensor *table; /* (V,D) to tie; NULL: its own */
    bool bias;
    bool transform;
    heed_activation activation; /* of the transform */
    bool normed;                /* and a norm behind it */
    heed_norm_kind norm;
    double eps;
} heed_head_options;
typedef struct heed_head_layer {
    heed_linear_layer transform; /* (D,D); weight NULL: none */
    heed_norm_layer norm;
    heed_tensor *table; /* (V,D) */
    heed_tensor *bias;  /* (V) or NULL */
} heed_head_layer;
/* Declares "transform.*", "norm.*", "weight" (if it is not tied) and "bias". */
void heed_head_build(heed_head_layer *l, heed_scope s, const heed_head_options *options);
/* What the table is multiplied with, (N,D): h itself without a transform. */
heed_tensor *heed_head_transform(heed_tape *t, const heed_head_layer *l, heed_tensor *h);
heed_tensor *heed_head_logits(heed_tape *t, const heed_head_layer *l, heed_tensor *h);
/* Weights that a row is multiplied with. */
int64_t heed_head_cost(const heed_head_layer *l);

#ifdef __cplusplus
}
#endif
#endif
