/* model.h: architectures behind one interface: a loss to train with, and start / step / reorder to
 * decode with.
 *
 *     heed_model *m = heed_model_new(&config, seed, NULL, &err);
 *     heed_backward(t, heed_model_loss(m, t, &batch, 1.0 / tokens, &nll));
 */
#ifndef HEED_MODEL_H
#define HEED_MODEL_H

#include <heed/options.h>
#include <heed/stack.h>
#include <heed/text.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- configuration ---- */

typedef enum heed_arch {
    HEED_ARCH_TRANSFORMER, /* encoder and decoder */
    HEED_ARCH_RNN,         /* recurrent translators */
    HEED_ARCH_DECODER,     /* a decoder alone: a language model */
    HEED_ARCH_ENCODER,     /* an encoder alone: masked language models, taggers, classifiers */
} heed_arch;
#define HEED_ARCH_WORDS "transformer", "rnn", "decoder", "encoder"
/* Which matrices are one: source embedding, target embedding, output projection. */
typedef enum heed_tying { HEED_TIE_NONE, HEED_TIE_TARGET, HEED_TIE_ALL } heed_tying;

/* The slots of attention, attention.h. */
typedef struct heed_attention_config {
    int score; /* heed_score_kind */
    /* Of self-attention in stacks, of attention to the source in recurrent translators. */
    heed_slot_spec queries, memory, pattern, position_bias, normaliser;
    double beta;           /* of the cosine; 0: learned */
    double dropout;        /* on weights */
    int64_t adaptive_span; /* S: each head learns how far it looks, at most so far; 0: no limit */
    double span_penalty;   /* what a position of the mean span costs a token */
} heed_attention_config;

/* What a decoder has instead of self-attention. */
typedef enum heed_decoder_unit { HEED_DECODER_UNIT_SELF, HEED_DECODER_UNIT_SSRU } heed_decoder_unit;
#define HEED_DECODER_UNIT_WORDS "self", "ssru"

/* "Attention Is All You Need", every part settable.  Names of the paper in the comments.  Decoders
 * and encoders alone are made of the same. */
typedef struct heed_transformer_config {
    int64_t ff;        /* d_ff */
    int64_t heads;     /* h */
    int64_t kv_heads;  /* of keys and values; 0: heads */
    int64_t d_k, d_v;  /* 0: d / heads */
    double ff_dropout; /* inside the feed-forward network */
    int activation;    /* heed_activation */
    bool ff_gated;     /* activation(x W_gate) * (x W_up) */
    bool ff_bias;      /* in the feed-forward network's products */
    bool pre_norm;     /* x + Sublayer(Norm(x)), with final norms */
    int norm;          /* heed_norm_kind */
    double norm_eps;   /* inside the norms' roots */
    bool residual;     /* off only to show what it is for */
    bool scale_scores; /* by 1/sqrt(d_k); off only to show what it is for */
    int positions;     /* heed_positions */
    double rope_base;  /* of rotary ones; 0: 10000 */
    bool attention_bias;
    bool embedding_scale; /* embeddings times sqrt(d) */
    bool embedding_norm;  /* a norm on the sum of token, position and type */
    int64_t types;        /* of tokens, as BERT's A and B; 0: none */
    bool head_transform;  /* a dense layer, the activation and a norm before the output */
    bool output_bias;
    int decoder_unit; /* heed_decoder_unit */
    bool zero_start;  /* the decoder reads zeros first, not a token's embedding */
} heed_transformer_config;

/* Sutskever, Bahdanau, Luong: recurrent translators. */
typedef enum heed_rnn_cell_kind {
    HEED_RNN_LSTM,
    HEED_RNN_GRU,       /* reset before the product, as in the papers */
    HEED_RNN_GRU_AFTER, /* and after it: one product a step, and so faster */
} heed_rnn_cell_kind;
typedef enum heed_rnn_attend {
    HEED_ATTEND_NEVER,  /* Sutskever */
    HEED_ATTEND_BEFORE, /* Bahdanau: c_t from s_{t-1}, then the step; maxout readout */
    HEED_ATTEND_AFTER,  /* Luong: the step, then c_t and h~_t */
} heed_rnn_attend;
#define HEED_RNN_CELL_WORDS "lstm", "gru", "gru-after"
#define HEED_ATTEND_WORDS "never", "before", "after"
typedef struct heed_rnn_config {
    int cell;           /* heed_rnn_cell_kind */
    int attend;         /* heed_rnn_attend */
    int64_t embedding;  /* columns; 0: d */
    bool bidirectional; /* the encoder reads both ways */
    bool reverse;       /* the source is read backwards */
    bool input_feeding; /* h~_{t-1} goes into step t */
} heed_rnn_config;

typedef struct heed_model_config {
    int arch;                               /* heed_arch */
    int64_t encoder_layers, decoder_layers; /* N */
    int64_t d;                              /* d_model; of recurrent states */
    double dropout;                         /* P_drop: layers' outputs, embeddings */
    int tying;                              /* heed_tying */
    heed_attention_config attention;
    heed_transformer_config transformer;
    heed_rnn_config rnn;
    int64_t longest; /* tokens a sentence may have, EOS included */
    double label_smoothing;
    /* What the data decide; an architecture with one side has the other's vocabulary 0. */
    int64_t source_vocabulary, target_vocabulary; /* sizes */
    heed_pair_ids ids; /* special tokens; all zero: those of heed's own vocabularies */
    int64_t features;  /* columns of what an encoder reads instead of tokens; 0: tokens */
    int64_t labels;    /* that an encoder chooses among; 0: its vocabulary */
} heed_model_config;
/* What the options are if none is given. */
heed_status heed_model_defaults(heed_model_config *config, heed_error *err);

/* Sizes by name, for heed_option_set.bundles: tiny, small, deep, student, base, big; sutskever,
 * bahdanau, luong. */
const heed_option_bundle *heed_model_presets(void);

/* The option fields of a model configuration inside the struct `owner`, member `at`: what makes
 * --heads, its help and its line in config.json. */
#define HEED_MODEL_OPTIONS(owner, at)                                                              \
    HEED_OPTION_CHOICE(owner, at.arch, "arch", "transformer", HEED_WORDS(HEED_ARCH_WORDS),         \
                       "architecture"),                                                            \
        HEED_OPTION_INT(owner, at.encoder_layers, "encoder-layers", "6", 1, 256, "N",              \
                        "layers of the encoder"),                                                  \
        HEED_OPTION_INT(owner, at.decoder_layers, "decoder-layers", "6", 1, 256, "N",              \
                        "layers of the decoder"),                                                  \
        HEED_OPTION_INT(owner, at.d, "d", "512", 1, 65536, "N",                                    \
                        "width of the model, d_model in the paper"),                               \
        HEED_OPTION_INT(owner, at.transformer.ff, "ff", "2048", 0, 1048576, "N",                   \
                        "width inside the feed-forward network; 0: there is none"),                \
        HEED_OPTION_INT(owner, at.transformer.heads, "heads", "8", 1, 1024, "N",                   \
                        "attention heads"),                                                        \
        HEED_OPTION_INT(owner, at.transformer.kv_heads, "kv-heads", "0", 0, 1024, "N",             \
                        "heads of keys and values, a divisor of --heads; 0: heads"),               \
        HEED_OPTION_INT(owner, at.transformer.d_k, "d-k", "0", 0, 65536, "N",                      \
                        "width of a head's queries and keys; 0: d / heads"),                       \
        HEED_OPTION_INT(owner, at.transformer.d_v, "d-v", "0", 0, 65536, "N",                      \
                        "width of a head's values; 0: d / heads"),                                 \
        HEED_OPTION_REAL(owner, at.dropout, "dropout", "0.1", 0, 0.95, "P",                        \
                         "on sublayer outputs and embeddings"),                                    \
        HEED_OPTION_CHOICE(owner, at.attention.score, "attention-score", "scaled-dot",             \
                           HEED_WORDS(HEED_SCORE_WORDS),                                           \
                           "how well a query and a key match; 'heed list attention'"),             \
        HEED_OPTION_SPEC(                                                                          \
            owner, heed_slot_spec, at.attention.pattern, "attention-pattern", "global", "SPEC",    \
            heed_pattern_option,                                                                   \
            "which keys a query sees: global, band:W, longformer:W:G, bigbird:B:R ... "            \
            "('heed list attention'), or several: band:64+global:2"),                              \
        HEED_OPTION_SPEC(owner, heed_slot_spec, at.attention.normaliser, "attention-normaliser",   \
                         "soft", "SPEC", heed_normaliser_option,                                   \
                         "soft, a mixture of all that is seen; hard, one of it; no weights: elu, " \
                         "performer:M, rfa:M, rfa:M:gated, delta, delta:NU"),                      \
        HEED_OPTION_SPEC(                                                                          \
            owner, heed_slot_spec, at.attention.queries, "attention-queries", "all", "SPEC",       \
            heed_queries_option,                                                                   \
            "all; one for each of C clusters: clustered:C, improved-clustered:C; the C ln L that " \
            "look at few keys: probsparse:C"),                                                     \
        HEED_OPTION_SPEC(                                                                          \
            owner, heed_slot_spec, at.attention.memory, "attention-memory", "states", "SPEC",      \
            heed_memory_option,                                                                    \
            "states; persistent:N, and N learned keys and values; compressed: mca:C, "             \
            "linformer:K, linformer:K:shared, isab:M, luna:L, poolingformer:W:POOL"),              \
        HEED_OPTION_SPEC(owner, heed_slot_spec, at.attention.position_bias, "position-bias",       \
                         "none", "SPEC", heed_bias_option,                                         \
                         "added to scores by distance: none, alibi, or table, learned; table:R "   \
                         "tells distances up to R apart"),                                         \
        HEED_OPTION_INT(owner, at.attention.adaptive_span, "adaptive-span", "0", 0, 1000000, "S",  \
                        "each head of self-attention learns how far it looks, at most S; 0: no "   \
                        "limit"),                                                                  \
        HEED_OPTION_REAL(owner, at.attention.span_penalty, "span-penalty", "2e-6", 0, 1, "X",      \
                         "added to a token's loss for each position of the mean adaptive span"),   \
        HEED_OPTION_REAL(owner, at.attention.beta, "attention-beta", "0", 0, 1000, "B",            \
                         "sharpening of the cosine score; 0: learned"),                            \
        HEED_OPTION_REAL(owner, at.attention.dropout, "attention-dropout", "0", 0, 0.95, "P",      \
                         "on attention weights"),                                                  \
        HEED_OPTION_REAL(owner, at.transformer.ff_dropout, "ff-dropout", "0", 0, 0.95, "P",        \
                         "inside the feed-forward network"),                                       \
        HEED_OPTION_CHOICE(                                                                        \
            owner, at.transformer.activation, "activation", "relu",                                \
            HEED_WORDS("identity", "relu", "gelu", "gelu-tanh", "silu", "tanh", "sigmoid"),        \
            "of the feed-forward network"),                                                        \
        HEED_OPTION_BOOL(owner, at.transformer.ff_gated, "ff-gated", NULL,                         \
                         "a second product gates the first: activation(x W) * (x V)"),             \
        HEED_OPTION_BOOL(owner, at.transformer.ff_bias, "ff-bias", "true",                         \
                         "biases in the feed-forward network's products"),                         \
        HEED_OPTION_BOOL(owner, at.transformer.pre_norm, "pre-norm", NULL,                         \
                         "normalise before each sublayer instead of after"),                       \
        HEED_OPTION_CHOICE(owner, at.transformer.norm, "norm", "layer",                            \
                           HEED_WORDS("layer", "rms", "batch"), "kind of normalisation"),          \
        HEED_OPTION_REAL(owner, at.transformer.norm_eps, "norm-eps", "1e-6", 1e-12, 0.1, "X",      \
                         "added to the variance that a norm divides by the root of"),              \
        HEED_OPTION_BOOL(owner, at.transformer.residual, "residual", "true",                       \
                         "add each sublayer's input to its output"),                               \
        HEED_OPTION_BOOL(owner, at.transformer.scale_scores, "scale-scores", "true",               \
                         "divide scores by the root of d_k"),                                      \
        HEED_OPTION_CHOICE(owner, at.transformer.positions, "positions", "sinusoid",               \
                           HEED_WORDS("none", "sinusoid", "sinusoid-halves", "learned", "rotary",  \
                                      "rotary-neighbours", "sinusoid-marian"),                     \
                           "how the model knows the order of tokens"),                             \
        HEED_OPTION_REAL(owner, at.transformer.rope_base, "rope-base", "10000", 0, 1e12, "X",      \
                         "rotary positions: pair i of d/2 turns by X^(-2i/d) a token; 0: 10000"),  \
        HEED_OPTION_BOOL(owner, at.transformer.attention_bias, "attention-bias", NULL,             \
                         "biases in attention's four products; the paper has none"),               \
        HEED_OPTION_BOOL(owner, at.transformer.embedding_scale, "embedding-scale", "true",         \
                         "multiply embeddings with the root of d"),                                \
        HEED_OPTION_BOOL(owner, at.transformer.embedding_norm, "embedding-norm", NULL,             \
                         "normalise the sum of token, position and type"),                         \
        HEED_OPTION_INT(owner, at.transformer.types, "types", "0", 0, 1024, "N",                   \
                        "types of tokens, each with an embedding of its own; 0: none"),            \
        HEED_OPTION_BOOL(owner, at.transformer.head_transform, "head-transform", NULL,             \
                         "a dense layer, the activation and a norm before the output"),            \
        HEED_OPTION_BOOL(owner, at.transformer.output_bias, "output-bias", NULL,                   \
                         "a bias for each token or label of the output"),                          \
        HEED_OPTION_CHOICE(owner, at.transformer.decoder_unit, "decoder-unit", "self",             \
                           HEED_WORDS(HEED_DECODER_UNIT_WORDS),                                    \
                           "self-attention in the decoder, or ssru, a recurrent unit"),            \
        HEED_OPTION_BOOL(owner, at.transformer.zero_start, "zero-start", NULL,                     \
                         "the decoder begins with an embedding of zeros, as Marian's"),            \
        HEED_OPTION_CHOICE(                                                                        \
            owner, at.tying, "tying", "all", HEED_WORDS("none", "target", "all"),                  \
            "which of source embedding, target embedding and output projection are one matrix"),   \
        HEED_OPTION_CHOICE(owner, at.rnn.cell, "cell", "lstm", HEED_WORDS(HEED_RNN_CELL_WORDS),    \
                           "rnn: of which its layers are made"),                                   \
        HEED_OPTION_CHOICE(owner, at.rnn.attend, "attend", "after", HEED_WORDS(HEED_ATTEND_WORDS), \
                           "rnn: when a step looks at the source"),                                \
        HEED_OPTION_INT(owner, at.rnn.embedding, "embedding", "0", 0, 65536, "N",                  \
                        "rnn: columns of embeddings; 0: d"),                                       \
        HEED_OPTION_BOOL(owner, at.rnn.bidirectional, "bidirectional", NULL,                       \
                         "rnn: the encoder reads both ways"),                                      \
        HEED_OPTION_BOOL(owner, at.rnn.reverse, "reverse", NULL,                                   \
                         "rnn: read the source from its last word to its first"),                  \
        HEED_OPTION_BOOL(owner, at.rnn.input_feeding, "input-feeding", NULL,                       \
                         "rnn: what attention made goes into the next step"),                      \
        HEED_OPTION_INT(owner, at.longest, "longest", "1024", 2, 1000000, "N",                     \
                        "tokens that a sentence may have"),                                        \
        HEED_OPTION_REAL(owner, at.label_smoothing, "label-smoothing", "0.1", 0, 0.99, "E",        \
                         "share of the target spread over the vocabulary")

/* ---- batches ---- */

/* B examples.  A translation: source x1 .. xm EOS, target BOS y1 .. yn, wanted y1 .. yn EOS. */
typedef struct heed_batch {
    int64_t epoch;                  /* from 0 */
    int64_t examples;               /* B; 0 at the end of a stream that ends */
    heed_batch_side source, target; /* target.ids is what the decoder reads */
    const int32_t *wanted;          /* (wanted_count) the right answers, */
    const int32_t *wanted_row;      /* and the rows they stand at; NULL: answer i at row i */
    int64_t wanted_count;           /* what the loss is divided by */
    const int64_t *example;         /* (B) index into the data */
} heed_batch;

/* ---- models ---- */

typedef struct heed_model heed_model;
/* Refuses combinations that do not fit, and says which would.  Weights are drawn from the seed. */
heed_model *heed_model_new(const heed_model_config *config, uint64_t seed,
                           const heed_allocator *allocator, heed_error *err);
/* The same without memory for its numbers: names and shapes of the parameters, to look at. */
heed_model *heed_model_outline(const heed_model_config *config, const heed_allocator *allocator,
                               heed_error *err);
void heed_model_free(heed_model *m);
const heed_model_config *heed_model_configuration(const heed_model *m);
heed_params *heed_model_params(const heed_model *m);
/* "transformer, 3+3 layers, d 256, ...": its architecture and sizes in one line; text is returned.
 */
#define HEED_MODEL_SUMMARY 256
const char *heed_model_summary(const heed_model *m, char text[HEED_MODEL_SUMMARY]);
/* Weights that one source and one target token are multiplied with; a training step costs 6
 * operations for each. */
typedef struct heed_model_cost {
    int64_t source_weights, target_weights;
} heed_model_cost;
heed_model_cost heed_model_costs(const heed_model *m);

/* weight * (smoothed cross-entropy, summed over the wanted answers); *nll, if not NULL, receives
 * the unsmoothed sum without weight. */
heed_tensor *heed_model_loss(const heed_model *m, heed_tape *t, const heed_batch *batch,
                             double weight, double *nll);
/* The hidden states before the head, (N,D), of all rows of the target, or of the only side. */
heed_tensor *heed_model_hidden(const heed_model *m, heed_tape *t, const heed_batch *batch);
/* What the two below compute has no gradient, and lives until the tape is reset.
 * Log-probability of every wanted answer, (wanted_count).  NULL after an error of the tape. */
const heed_real *heed_model_score(const heed_model *m, heed_tape *t, const heed_batch *batch);
/* Of all that could be answered, (wanted_count,V) at wanted_row, or (N,V) at all rows. */
heed_tensor *heed_model_logits(const heed_model *m, heed_tape *t, const heed_batch *batch);
/* Every attention of one forward pass over a batch, sentence by sentence: maps of sentence b have
 * .sentence == b.  Lives until the tape is reset; returns how many there are, 0 after an error. */
int64_t heed_model_attention(const heed_model *m, heed_tape *t, const heed_batch *batch,
                             const heed_attention_map **maps);

/* ---- decoding: start / step / reorder ---- */

/* The state of a set of hypotheses.  A row is a hypothesis; the rows of a sentence stand together,
 * in the order of the sentences.  One thread at a time; the model is shared. */
typedef struct heed_decoder heed_decoder;
heed_decoder *heed_decoder_new(const heed_model *m, int threads, const heed_allocator *allocator,
                               heed_error *err);
void heed_decoder_free(heed_decoder *d);
/* Encodes the sources of a batch: from now on one row a sentence, each at BOS. */
heed_status heed_decoder_start(heed_decoder *d, const heed_batch *batch, heed_error *err);
/* Appends token[r] to each row (BOS first) and gives the log-probabilities of what may follow,
 * (rows,V), until the next call.  After an error only another start helps. */
heed_status heed_decoder_step(heed_decoder *d, const int32_t *token, const heed_real **log_p,
                              heed_error *err);
/* Row r goes on from what was row parent[r]; rows may be repeated and dropped, and stay in the
 * order of their sentences. */
heed_status heed_decoder_reorder(heed_decoder *d, const int32_t *parent, int64_t rows,
                                 heed_error *err);

#ifdef __cplusplus
}
#endif
#endif
