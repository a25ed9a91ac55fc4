/* nn.h: parameters by name, and the layers built from them.
 *
 *     heed_params *p = heed_params_new(NULL, &err);
 *     heed_linear_layer l;
 *     heed_scope s = heed_params_scope(p);
 *     heed_linear_build(&l, heed_scope_enter(s, "out"), D, V, HEED_IDENTITY, true);
 *     heed_params_finish(p, seed, &err);        // allocates the flat buffers, draws the weights
 *     y = heed_linear_apply(t, &l, x);
 *
 * `build` declares parameters under a scope, once; finish allocates the flat buffers and draws the
 * weights; `apply` uses them.  A layer is a struct of the caller that borrows from the set. */
#ifndef HEED_NN_H
#define HEED_NN_H

#include <heed/ops.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- parameter sets ---- */

/* Values, gradients and state are one flat buffer each, so an optimiser is a single pass. */
typedef struct heed_params heed_params;
heed_params *heed_params_new(const heed_allocator *allocator, heed_error *err);
void heed_params_free(heed_params *p);
/* The first failure of building; heed_params_finish reports it too. */
const heed_error *heed_params_error(const heed_params *p);

/* Initial values.  Xavier, Kaiming and orthogonal take fan-in and fan-out from an (in,out)
 * shape. */
typedef enum heed_init_kind {
    HEED_INIT_ZERO,
    HEED_INIT_CONSTANT,       /* scale */
    HEED_INIT_UNIFORM,        /* U(-scale, scale) */
    HEED_INIT_NORMAL,         /* N(0, scale^2) */
    HEED_INIT_XAVIER_UNIFORM, /* U(-a, a), a = scale sqrt(6/(in+out)) */
    HEED_INIT_XAVIER_NORMAL,  /* N(0, scale^2 2/(in+out)) */
    HEED_INIT_KAIMING,        /* N(0, scale^2 2/in) */
    HEED_INIT_ORTHOGONAL,     /* scale * Q */
    HEED_INIT_DIRECTIONS, /* (count,d): rows as N(0, scale^2), in blocks of d that are orthogonal
                               * to each other: for random features (ops.h: heed_features) */
} heed_init_kind;
typedef struct heed_init {
    heed_init_kind kind;
    double scale;
} heed_init;

/* A node in the tree of names.  Passed by value; lives as long as the set. */
typedef struct heed_scope {
    heed_params *params;
    const char *path; /* "encoder.0.self" or "" */
} heed_scope;
heed_scope heed_params_scope(heed_params *p);
/* format makes the next part: heed_scope_enter(s, "layer.%d", i). */
heed_scope heed_scope_enter(heed_scope scope, const char *format, ...) HEED_PRINTF(2, 3);
/* Declares "path.name".  The tensor has data after heed_params_finish.  NULL after an error. */
heed_tensor *heed_param(heed_scope scope, const char *name, heed_shape shape, heed_init init);
/* What a parameter is in products, which decides how it is packed and quantised for decoding. */
typedef enum heed_param_role {
    HEED_ROLE_PLAIN,  /* a bias, a gain, positions: what heed_param declares */
    HEED_ROLE_MATRIX, /* (K,N): rows are multiplied with it */
    HEED_ROLE_TABLE,  /* (N,K): rows are looked up in it or multiplied with its transpose */
} heed_param_role;
heed_tensor *heed_param_with_role(heed_scope scope, const char *name, heed_shape shape,
                                  heed_init init, heed_param_role role);
/* Saved but not trained: running statistics. */
heed_tensor *heed_state(heed_scope scope, const char *name, heed_shape shape, double start);
/* How state moves: a pass of a tape that trains reads it as the update found it and adds what it
 * has seen; at the end of the update, when all passes have added theirs,
 *     state = keep state + (1 - keep) sum / weight,   sum and weight those of all passes together.
 * So the passes of an update may run one after the other or on several machines.  sum is laid out
 * like the state.  Does nothing to a tensor that is not state, or on a tape that does not train. */
void heed_state_add(const heed_tape *t, heed_tensor *state, const double *sum, double weight,
                    double keep);
heed_status heed_params_finish(heed_params *p, uint64_t seed, heed_error *err);

/* The flat buffers; entries start at multiples of 64 bytes, the padding between them is zero. */
int64_t heed_params_size(const heed_params *p); /* elements of the flat buffer, padding included */
heed_real *heed_params_values(const heed_params *p);
heed_real *heed_params_grads(const heed_params *p);
int64_t heed_params_state_size(const heed_params *p);
heed_real *heed_params_state_values(const heed_params *p);
/* Also forgets what passes have added for the state. */
void heed_params_zero_grads(heed_params *p);
/* Moves the state by what passes have added since the last time; heed_optimizer_step does it. */
void heed_params_fold_state(heed_params *p);

typedef struct heed_param_info {
    const char *name;
    heed_tensor *tensor;
    int64_t offset; /* into the flat buffer (of values, or of state) */
    bool is_state;
    bool frozen;
    heed_param_role role;
} heed_param_info;
int heed_params_count(const heed_params *p); /* parameters and state, in order of declaration */
heed_param_info heed_params_entry(const heed_params *p, int i);
/* By full name; NULL if there is none. */
heed_tensor *heed_params_find(const heed_params *p, const char *name);
/* Parameters without padding or state. */
int64_t heed_params_trainable(const heed_params *p);

/* Frozen parameters are not trained; gradients still flow through them to earlier layers.  scope is
 * a path ("encoder" covers "encoder.0.self.q.weight") or "" for all.  ARGUMENT if nothing has that
 * name. */
heed_status heed_params_freeze(heed_params *p, const char *scope, heed_error *err);
heed_status heed_params_thaw(heed_params *p, const char *scope, heed_error *err);
/* What an optimiser applies to the parameters under scope; where groups overlap the last one set
 * wins. */
typedef struct heed_group {
    double rate_factor;  /* 1 */
    double weight_decay; /* AdamW: replaces the optimiser's own */
} heed_group;
heed_status heed_params_set_group(heed_params *p, const char *scope, heed_group group,
                                  heed_error *err);

/* ---- layers ---- */

typedef struct heed_linear_layer {
    heed_tensor *weight, *bias; /* (K,F), (F) or NULL */
    heed_activation activation;
} heed_linear_layer;
/* Weight Xavier uniform, bias zero. */
void heed_linear_build(heed_linear_layer *l, heed_scope s, int64_t in, int64_t out,
                       heed_activation activation, bool bias);
heed_tensor *heed_linear_apply(heed_tape *t, const heed_linear_layer *l, heed_tensor *x);

/* Sinusoidal positions of the paper: sin and cos interleaved, or in two halves as in other toolkits
 * (same frequencies 1/10000^(2i/D)), or Marian's halves, whose slowest frequency is 1/10000.
 * Rotary ones are no part of an embedding: self-attention turns its queries and keys (ops.h:
 * heed_rotary), elements i and i + d/2 of a head, or neighbours. */
typedef enum heed_positions {
    HEED_POSITIONS_NONE,
    HEED_POSITIONS_SINUSOID,
    HEED_POSITIONS_SINUSOID_HALVES,
    HEED_POSITIONS_LEARNED,
    HEED_POSITIONS_ROTARY,
    HEED_POSITIONS_ROTARY_NEIGHBOURS,
    HEED_POSITIONS_SINUSOID_MARIAN,
} heed_positions;
static inline bool heed_positions_are_sinusoids(heed_positions kind)
{
    return kind == HEED_POSITIONS_SINUSOID || kind == HEED_POSITIONS_SINUSOID_HALVES ||
           kind == HEED_POSITIONS_SINUSOID_MARIAN;
}
static inline bool heed_positions_are_rotary(heed_positions kind)
{
    return kind == HEED_POSITIONS_ROTARY || kind == HEED_POSITIONS_ROTARY_NEIGHBOURS;
}
/* Fills out (count,D). */
void heed_sinusoid(heed_real *out, int64_t count, int64_t d, heed_positions layout);

/* Token embedding + positions, as in the paper: dropout(scale * E[x] + P).  Positions count from 0
 * in each segment.  Sinusoids are computed, not saved; learned positions are a parameter.  A
 * position beyond `longest` fails; without positions there is no limit.  scale is sqrt(D) in the
 * paper; 0 means 1.  To tie the output projection, give `table` to heed_project_cross_entropy, or
 * to heed_matmul with HEED_NT for the logits.  Stacks have more than this: stack.h. */
typedef struct heed_embedding_layer {
    heed_tensor *table;     /* (V,D), N(0, 1/D); vocabulary 0: NULL, and P alone */
    heed_tensor *positions; /* (longest,D) or NULL */
    heed_positions kind;    /* what they are */
    double scale, dropout;
} heed_embedding_layer;
void heed_embedding_build(heed_embedding_layer *l, heed_scope s, int64_t vocabulary, int64_t d,
                          heed_positions positions, int64_t longest, double scale, double dropout);
heed_tensor *heed_embedding_apply(heed_tape *t, const heed_embedding_layer *l, const int32_t *ids,
                                  const heed_segments *s);

typedef enum heed_norm_kind { HEED_NORM_LAYER, HEED_NORM_RMS, HEED_NORM_BATCH } heed_norm_kind;
typedef struct heed_norm_layer {
    heed_norm_kind kind;
    heed_tensor *gain, *bias;
    heed_tensor *running_mean, *running_variance; /* batch norm only */
    double eps;
} heed_norm_layer;
/* Gain 1, bias 0; RMS norm has no bias.  Batch norm's running statistics move by 0.1 a batch. */
void heed_norm_build(heed_norm_layer *l, heed_scope s, heed_norm_kind kind, int64_t d, double eps);
heed_tensor *heed_norm_apply(heed_tape *t, const heed_norm_layer *l, heed_tensor *x);
/* norm(x + dropout(y)): the fused operator where the kind has one. */
heed_tensor *heed_norm_residual(heed_tape *t, const heed_norm_layer *l, heed_tensor *x,
                                heed_tensor *y, double dropout);

/* The position-wise network: dropout(activation(x W1 + b1)) W2 + b2.  Gated (Shazeer 2020): the
 * first product gives [gate | up], and activation(gate) * up is the hidden layer. */
typedef struct heed_ffn_options {
    int64_t d, f;               /* D, F */
    heed_activation activation; /* of the hidden layer, or of its gate */
    bool gated;
    bool bias; /* on both products; the paper has them */
    double dropout;
} heed_ffn_options;
typedef struct heed_ffn_layer {
    heed_ffn_options options;
    heed_linear_layer in, out; /* (D,F), or (D,2F) if gated; (F,D) */
} heed_ffn_layer;
void heed_ffn_build(heed_ffn_layer *l, heed_scope s, const heed_ffn_options *options);
heed_tensor *heed_ffn_apply(heed_tape *t, const heed_ffn_layer *l, heed_tensor *x);

/* The simpler simple recurrent unit (Kim et al. 2019), in place of a decoder's self-attention:
 * heed_ssru of x W and x W_f + b_f.  x (N,D) -> (N,D), in each segment. */
typedef struct heed_ssru_layer {
    heed_linear_layer in, forget; /* (D,D), without and with a bias */
} heed_ssru_layer;
void heed_ssru_build(heed_ssru_layer *l, heed_scope s, int64_t d);
heed_tensor *heed_ssru_apply(heed_tape *t, const heed_ssru_layer *l, heed_tensor *x,
                             const heed_segments *segments);

/* Recurrent stacks over packed segments.  The output is (N, D) or, in both directions, (N, 2D);
 * dropout between layers. */
typedef enum heed_cell { HEED_CELL_LSTM, HEED_CELL_GRU } heed_cell;
typedef struct heed_rnn_options {
    heed_cell cell;
    int gru_kind;
    int layers;
    bool bidirectional;
    int64_t in, d;
    double dropout;
} heed_rnn_options;
typedef struct heed_rnn_cell {
    heed_linear_layer input; /* (in, 4D or 3D) */
    heed_tensor *recurrent;  /* (D, 4D or 3D) */
    heed_tensor *bias;       /* GRU, reset after the product: (3D); else NULL */
} heed_rnn_cell;
#define HEED_RNN_MAX_LAYERS 16
typedef struct heed_rnn_layer {
    heed_rnn_options options;
    heed_rnn_cell cell[HEED_RNN_MAX_LAYERS][2];
} heed_rnn_layer;
/* A state for each layer and direction, (B,D) with sentence b in row b: for a start, zeros if h is
 * NULL; at the end, the state after each sentence's own last token (backward: its first). */
typedef struct heed_rnn_state {
    heed_lstm_state at[HEED_RNN_MAX_LAYERS][2]; /* c is NULL for GRU */
} heed_rnn_state;
/* Input weights Xavier uniform, recurrent ones orthogonal, biases zero but for the LSTM's forget
 * gate, which starts at 1. */
void heed_rnn_build(heed_rnn_layer *l, heed_scope s, const heed_rnn_options *options);
/* start and end may be NULL. */
heed_tensor *heed_rnn_apply(heed_tape *t, const heed_rnn_layer *l, heed_tensor *x,
                            const heed_segments *s, const heed_rnn_state *start,
                            heed_rnn_state *end);
/* One step of the forward direction, for inputs that depend on earlier outputs: gates (B,4D or 3D)
 * is the input of the first layer's gates, heed_linear_apply of cell[0][0].input plus anything
 * else.  The first B rows of each state continue; returns the last layer's h, (B,D). */
heed_tensor *heed_rnn_step(heed_tape *t, const heed_rnn_layer *l, heed_tensor *gates,
                           heed_rnn_state *state);

#ifdef __cplusplus
}
#endif
#endif
