/* weights.h (internal): a Transformer's weights, packed for decoding.  Immutable once made, shared
 * by all sessions.
 *
 * Matrices are panels (kernel/panels.h): of numbers, packed when a model is opened, or of bytes,
 * used straight from a file that `heed convert` wrote.  In such a file a matrix M is three tensors:
 *   M.panels  I8 (panels, groups of four rows, 16 columns, 4)
 *   M.scale   F32 (16 panels)      M.sum  I32 (16 panels)
 * and its metadata say "heed.layout": "panels-16x16" (columns of a panel, rows of a step, bounded
 * as panels.h says) and "heed.bits": "8".  An embedding table is the matrix of its transpose: a
 * token is a column, so one matrix serves look-ups and the output. */
#ifndef HEED_DECODE_WEIGHTS_H
#define HEED_DECODE_WEIGHTS_H

#include "decode/screen.h"
#include "kernel/panels.h"
#include "model/transformer.h"

#include <heed/io.h>

#define HEED_LAYOUT_KEY "heed.layout"
#define HEED_LAYOUT "panels-16x16"
#define HEED_BITS_KEY "heed.bits"
#define HEED_BITS "8"

/* y = (x - mean) rstd gain + bias over a row; fixed: y = x gain + bias, batch norm with its running
 * statistics folded in. */
typedef struct heed__row_norm {
    const heed_real *gain, *bias; /* (D); bias may be NULL */
    double eps;
    bool centred, fixed;
} heed__row_norm;

typedef struct heed__attention_weights {
    heed__panel_weights in; /* self: q, k, v; cross: q */
    heed__panel_weights kv; /* cross only */
    heed__panel_weights out;
    heed__row_norm norm;
    heed_real scale; /* of the scores */
} heed__attention_weights;

typedef struct heed__layer_weights {
    heed__attention_weights self, cross; /* cross: decoder only */
    heed__panel_weights ffn_in, ffn_out;
    heed__row_norm ffn_norm;
} heed__layer_weights;

typedef struct heed__embedding_weights {
    heed__panel_weights table;
    const heed_real *learned; /* (longest,D) learned positions, or NULL */
} heed__embedding_weights;

typedef struct heed__weights {
    heed_model_config config;
    int64_t d, heads, d_k, d_v;
    int64_t widest; /* columns of the widest product but the output's */
    bool cosine;    /* of queries and keys, instead of their products */
    heed_real embedding_scale;
    heed__embedding_weights source, target;
    heed__panel_weights output;
    int encoder_layers, decoder_layers;
    heed__layer_weights *encoder, *decoder;
    heed__row_norm encoder_norm, decoder_norm; /* pre-norm only */
    heed_arena *arena;                         /* holds all of this */
    heed_safetensors *file;                    /* bytes are used in its mapping; else NULL */
    int bits;                                  /* 0 or 8 */
    heed__screen *screen;                      /* of the output, or NULL */
} heed__weights;

/* Whether a model is one that can be packed: a Transformer with scaled dot, dot or
 * cosine scores. */
bool heed__weights_fit(const heed_model_config *config);
/* Of a model in memory: packed, a copy, as numbers (bits 0) or bytes (8). */
heed__weights *heed__weights_of(const heed_model *m, int bits, const heed_allocator *allocator,
                                heed_error *err);
/* Of a file with plain or packed tensors. */
heed__weights *heed__weights_open(const heed_model_config *config, const char *path,
                                  const heed_allocator *allocator, heed_error *err);
void heed__weights_free(heed__weights *w);
/* The numbers of such a file into a model's parameters; those of bytes are what they stand for. */
heed_status heed__weights_read(heed_model *m, const char *path, heed_error *err);

/* A matrix as bytes, which live in the arena; false when memory is short. */
bool heed__make_bytes(heed__panel_weights *p, const heed_tensor *x, bool table, heed_arena *arena);
/* How a parameter stands in products: not at all, as it is (K,N), or as its transpose (N,K). */
typedef enum heed__matrix_kind { HEED__NO_MATRIX, HEED__MATRIX, HEED__TABLE } heed__matrix_kind;
heed__matrix_kind heed__matrix_kind_of(const heed_model *m, const heed_tensor *x);

#endif
