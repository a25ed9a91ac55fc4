/* packed_weights.h (internal): the stacks of a model, packed for decoding.  Immutable once made,
 * shared by all sessions.
 *
 * Matrices are panels (kernel/panels.h): fp32, packed when a model is opened, or int8, used
 * straight from a file that `heed convert` wrote.  In such a file a matrix M is three tensors:
 *   M.panels  I8 (panels, groups of four rows, 16 columns, 4)
 *   M.scale   F32 (16 panels)      M.sum  I32 (16 panels)
 * and M.multiplier F32 (1) where another program has quantised it (0: it has none for the rows),
 * and its metadata say "heed.layout": "panels-16x16" (columns of a panel, rows of a step, bounded
 * as panels.h says) and "heed.bits": "8".  An embedding table is the matrix of its transpose: a
 * token is a column, so one matrix serves look-ups and the output. */
#ifndef HEED_ENGINE_PACKED_WEIGHTS_H
#define HEED_ENGINE_PACKED_WEIGHTS_H

#include "attention/attend.h"
#include "engine/screen.h"
#include "kernel/features.h"
#include "kernel/panels.h"
#include "model/model_class.h"

#include <heed/io.h>

#define HEED_LAYOUT_KEY "heed.layout"
#define HEED_LAYOUT "panels-16x16"
#define HEED_BITS_KEY "heed.bits"
#define HEED_BITS "8"

/* y = (x - mean) rstd gain + bias over a row; fixed: y = x gain + bias, batch norm with its running
 * statistics folded in. */
typedef struct heed__row_norm {
    int64_t d;
    const heed_real *gain, *bias; /* (D); gain NULL: there is no norm; bias may be NULL */
    double eps;
    bool centred, fixed;
} heed__row_norm;

/* Attention without weights: a state for each key head instead of cells. */
typedef struct heed__packed_linear {
    const heed__features *features; /* (KvHeads); NULL: attention has weights */
    heed_real eps;
    bool floor, delta;
    bool unit;            /* queries and keys get length 1 */
    int64_t gate;         /* the first column of gates in what `in` gives; 0: none */
    heed_real *gate_bias; /* (KvHeads) or NULL */
    int64_t state;        /* reals of a key head's state */
} heed__packed_linear;

typedef struct heed__packed_attention {
    heed_attention_kind kind;
    int layer;
    heed__panel_weights in; /* self: q, k, v; cross: q */
    heed__panel_weights kv; /* cross only */
    heed__panel_weights out;
    heed__attend_form form;
    bool causal;
    bool cosine;            /* queries and keys get length 1 */
    int rotary;             /* which angles turn queries and keys; -1: none */
    heed_slot_spec pattern; /* which keys a query sees */
    bool by_head;           /* in each head others */
    bool plain;             /* all of them (causal: so far), by nothing but their products */
    heed__packed_linear linear;
    const heed_real *shared; /* (shared_rows,cached) keys and values that every query sees */
    int64_t shared_rows;
    int64_t cached; /* reals of a token's keys and values, or of a state */
    int64_t at;     /* where they lie in its cell */
} heed__packed_attention;

/* Angles of rotary positions, as some heads have them. */
typedef struct heed__packed_rotary {
    int64_t d; /* columns of a head */
    double base;
    bool neighbours;
} heed__packed_rotary;

typedef struct heed__packed_ffn {
    heed__panel_weights in, out;
    bool gated; /* in gives [gate | up], and activation(gate) * up goes to out */
    int activation;
} heed__packed_ffn;

/* The SSRU (src/ops/ssru.c). */
typedef struct heed__packed_ssru {
    heed__panel_weights in, forget; /* the bias of forget is added by the cell */
    const heed_real *bias;          /* (D) */
    int64_t at;                     /* where its state lies in a row's cell */
} heed__packed_ssru;

typedef enum heed__packed_kind {
    HEED__PACKED_SELF,
    HEED__PACKED_CROSS,
    HEED__PACKED_FFN,
    HEED__PACKED_SSRU,
} heed__packed_kind;
typedef struct heed__packed_sublayer {
    heed__packed_kind kind;
    heed_norm_place place;
    bool residual;
    heed__row_norm norm;
    union {
        heed__packed_attention attention;
        heed__packed_ffn ffn;
        heed__packed_ssru ssru;
    } as;
} heed__packed_sublayer;

typedef struct heed__packed_input {
    heed__panel_weights table;    /* n 0: rows are features, */
    heed__panel_weights features; /* (width,D) */
    heed_positions positions;
    const heed_real *learned; /* (longest,D) learned positions, or NULL */
    heed_real scale;
    const heed_real *types; /* (type_count,D) or NULL */
    int64_t type_count;
    heed__row_norm norm;
    bool zero_start; /* position 0 has no token */
} heed__packed_input;

typedef struct heed__packed_stack {
    int64_t d;
    heed__packed_input input;
    heed__packed_sublayer *sublayer; /* (count) */
    int count;
    heed__row_norm norm;
    int64_t own_cell, memory_cell; /* reals that a token's keys and values take in all sublayers */
    int64_t state_cell;            /* reals of a row's states, of linear attention and SSRUs */
    /* Own tokens of whom keys are needed: of a query, those up to `reach` before it, and the first
     * `pinned` of all. */
    int64_t reach, pinned;
} heed__packed_stack;

typedef struct heed__weights {
    heed_model_config config;
    heed__packed_stack *encoder, *decoder; /* either may be NULL */
    heed__panel_weights transform;         /* of the head, (D,D); k 0: none */
    heed__row_norm head_norm;
    heed__panel_weights output; /* n 0: none */
    int64_t d, widest,
        mixed;      /* columns of rows: of hidden states, of a first product in a sublayer,
                               * of what its second one reads */
    int64_t reads;  /* the most columns that a product reads */
    int64_t heads;  /* of the attention that has most */
    int64_t shared; /* rows that every query sees, at most */
    int64_t state;  /* reals of the largest state */
    int64_t room;   /* reals that a key or a query of a state needs */
    heed__packed_rotary *rotary; /* (rotaries) that there are */
    int rotaries;
    heed_arena *arena;      /* holds all of this */
    heed_safetensors *file; /* int8 panels are used in its mapping; else NULL */
    int bits;               /* 0, or 8 if any matrix is int8 */
    heed__screen *screen;   /* of the output, or NULL */
    int32_t *always;        /* (always_count) panels of the output, ascending, with tokens */
    int64_t always_count;   /* that screening must not leave out */
} heed__weights;

/* Whether all sublayers of a model's stacks can be packed, and those of its decoder decode token by
 * token. */
bool heed__weights_fit(const heed_model *m);
/* Of a model in memory: packed, a copy, as fp32 (bits 0) or int8 (8). */
heed__weights *heed__weights_of(const heed_model *m, int bits, const heed_allocator *allocator,
                                heed_error *err);
/* The same as fp32 but for matrices that are given as int8 (weight_source.h). */
struct heed__given_int8;
heed__weights *heed__weights_given(const heed_model *m, const struct heed__given_int8 *given,
                                   const heed_allocator *allocator, heed_error *err);
/* Of a file with plain or packed tensors of a model that need not have values. */
heed__weights *heed__weights_open(const heed_model *m, const char *path,
                                  const heed_allocator *allocator, heed_error *err);
void heed__weights_free(heed__weights *w);
/* Tokens that a hypothesis may have to have, or to do without: their logits are always made, and
 * have no say in how good the best of the others is.  False when memory is short. */
bool heed__weights_set_always(heed__weights *w, const int32_t *token, int64_t count);
/* The values of such a file into a model's parameters; those of int8 are what they stand for. */
heed_status heed__weights_read(heed_model *m, const char *path, heed_error *err);

#endif
