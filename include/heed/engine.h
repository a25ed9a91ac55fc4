/* engine.h: a model ready to decode: engines, sessions of rows, and model directories. */
#ifndef HEED_ENGINE_H
#define HEED_ENGINE_H

#include <heed/data.h>
#include <heed/model.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- engines and sessions ---- */

/* A model ready to decode or to encode: immutable, shared by threads.  A model made of stacks whose
 * sublayers can all be packed is packed: fp32, or, from a directory that `heed convert --quantize`
 * wrote, int8 in the mapped file.  Its stacks may be an encoder and a decoder, or one of them. */
typedef struct heed_engine heed_engine;
/* Opens a model directory, or an installed model by its name; the vocabulary is not read. */
heed_engine *heed_engine_open(const char *folder, const heed_allocator *allocator, heed_error *err);
/* Of a model in memory: one that is packed is copied as it is now, any other is borrowed. */
heed_engine *heed_engine_new(const heed_model *m, const heed_allocator *allocator, heed_error *err);
void heed_engine_free(heed_engine *e);
/* Opens the shortlist of a model directory (heed_shortlist_train), for sessions that use it. */
heed_status heed_engine_open_shortlist(heed_engine *e, const char *folder, heed_error *err);
const heed_model_config *heed_engine_configuration(const heed_engine *e);
/* Of a quantised weight, 8; 0: weights are fp32. */
int heed_engine_weight_bits(const heed_engine *e);

/* One state of decoding: rows of hypotheses that are added, extended and reordered; and the memory
 * for encoding.  One thread at a time.  What a row of a packed model gives depends neither on the
 * other rows nor on the number of threads. */
typedef struct heed_session heed_session;
/* What may follow some rows: log p of what stands in column j is logit[row*columns + j] -
 * log_z[row]. */
typedef struct heed_scores {
    const heed_real *logit; /* (rows,columns) */
    const heed_real *log_z; /* (rows) log of the sum of the exponentials */
    int64_t columns;        /* V; with a shortlist, the most that a row has */
    /* (rows) with a shortlist: which tokens a row's first columns are, ascending; NULL: column j is
     * token j */
    const heed_tokens *choice;
    /* (rows, columns / HEED_PEAK_COLUMNS rounded up) the largest of each HEED_PEAK_COLUMNS logits;
     * NULL: not known
     */
    const heed_real *peak;
} heed_scores;
#define HEED_PEAK_COLUMNS 256
typedef struct heed_session_options {
    int threads; /* that work inside */
    bool
        shortlist; /* the engine's, if it has one open: logits of a sentence's likely tokens only */
} heed_session_options;
heed_session *heed_session_new(const heed_engine *e, const heed_session_options *options,
                               const heed_allocator *allocator, heed_error *err);
void heed_session_free(heed_session *s);
/* Encodes sources (ids without EOS): one row each, behind those that are there.  A model without an
 * encoder (a language model) has no sources: source NULL, and `count` empty rows, whose prompts are
 * extensions.  Sessions of models that are not packed take new ones only when they have no rows. */
heed_status heed_session_add(heed_session *s, const heed_tokens *source, int64_t count,
                             heed_error *err);
/* Tokens that are appended to one row, and what is wanted of them. */
typedef struct heed_extension {
    int64_t row;
    heed_tokens tokens;    /* at least one; the first of a new row is BOS */
    const int32_t *wanted; /* (tokens.count) or NULL: */
    heed_real *log_p;      /* (tokens.count) receives log P(wanted[i] | source, tokens up to i);
                            * -infinity where a shortlist leaves it out */
    bool last;             /* what may follow the last token */
} heed_extension;
/* Rows take several tokens each; the result is that of single steps, bit for bit.  Rows are named
 * once, in ascending order; others stay as they are.  *last, which may be NULL where no extension
 * wants it, has a row for each that does; it lives until the next call.  No more than 64 rows of
 * logits are made for log_p.  Sessions of models that are not packed take one token for every row.
 */
heed_status heed_session_extend(heed_session *s, const heed_extension *x, int64_t count,
                                heed_scores *last, heed_error *err);
/* Extends every row by one token, a new row by BOS.  *out lives until the next call. */
heed_status heed_session_step(heed_session *s, const int32_t *token, heed_scores *out,
                              heed_error *err);
/* Takes back the tokens of a row behind the first `length`.  Sliding contexts: a row takes at most
 * `longest` tokens, and an extension beyond them is refused and changes nothing; rewind to what is
 * to stay and extend by the last tokens again, whose positions are others now.  Where attention
 * keeps a state (elu), or a window whose older keys are gone, only length 0, the row's own and what
 * the window still holds are possible; any other is refused and changes nothing. */
heed_status heed_session_rewind(heed_session *s, int64_t row, int64_t length, heed_error *err);
/* Row r continues row parent[r]; a row that nobody names is released.  Rows stay in the order of
 * their sentences. */
heed_status heed_session_reorder(heed_session *s, const int32_t *parent, int64_t rows,
                                 heed_error *err);
void heed_session_clear(heed_session *s);

/* ---- hidden states ---- */

/* What is made of the hidden states of sequences. */
typedef enum heed_encode_kind {
    HEED_ENCODE_HIDDEN, /* the hidden states themselves, (rows,D) */
    HEED_ENCODE_MEAN,   /* their mean over the wanted rows of each sequence, (B,D) */
    HEED_ENCODE_POOLED, /* what the head's transform makes of each, (rows,D) */
    HEED_ENCODE_LOGITS, /* what the head makes of each, (rows,V): labels, or tokens */
} heed_encode_kind;
typedef struct heed_encode_options {
    heed_encode_kind kind;
    const int32_t *row; /* (count) wanted rows of all that there are, ascending; NULL: all */
    int64_t count;
} heed_encode_options;
typedef struct heed_encoding {
    const heed_real *value; /* (rows,columns) */
    int64_t rows, columns;
} heed_encoding;
/* Sequences (ids and types, or features, as a batch has them) through the encoder, or through the
 * decoder of a model that has no encoder.  Nothing is put around them: [CLS], [SEP] or EOS are
 * among the ids.  Equal to heed_model_hidden and heed_model_logits; of a packed model a sequence's
 * result does not depend on the others.  *out lives until the next call; rows of hypotheses stay.
 */
heed_status heed_session_encode(heed_session *s, const heed_batch_side *side,
                                const heed_encode_options *options, heed_encoding *out,
                                heed_error *err);
/* The same without a session, by any thread: *out lives in the arena. */
heed_status heed_engine_encode(const heed_engine *e, const heed_batch_side *side,
                               const heed_encode_options *options, heed_arena *arena,
                               heed_encoding *out, heed_error *err);

/* Every attention of a pair of sentences (ids without EOS), as heed_model_attention gives it.  A
 * model of one stack has one side, and the other is NULL; an encoder alone adds no EOS.  Lives in
 * the arena. */
heed_status heed_engine_attention(const heed_engine *e, const heed_tokens *source,
                                  const heed_tokens *target, heed_arena *arena,
                                  const heed_attention_map **maps, int64_t *count, heed_error *err);
/* ---- model directories ---- */

/* What config.json holds beside the model's own configuration. */
typedef struct heed_text_config {
    int tokens;             /* heed_vocab_kind */
    const char *bpe_joiner; /* whitespace tokens only; NULL: none */
    /* Source tokens of the sentences seen in training: 90 in 100 have at most this many, and the
     * longest.  A line with more than the first is cut at sentence ends, and a sentence with more
     * than the second is cut in itself.  0: not known; no more than 250 are taken at once in any
     * case. */
    int64_t trained_length, trained_longest;
    bool protects;    /* the model knows placeholders */
    const char *task; /* what an encoder was trained for: "tag"; NULL: not known */
} heed_text_config;
/* Writes config.json, whole or not at all; reads it back.  Texts live in the arena. */
heed_status heed_model_describe(const char *folder, const heed_model_config *model,
                                const heed_text_config *text, heed_error *err);
heed_status heed_model_read_config(const char *folder, heed_arena *arena, heed_model_config *model,
                                   heed_text_config *text, heed_error *err);
/* The vocabularies of a directory: shared.spm, or source.spm and target.spm, or the same names
 * ending in .vocab.  With a shared one *source == *target. */
heed_status heed_vocabs_open(const char *folder, const char *joiner,
                             const heed_allocator *allocator, heed_vocab **source,
                             heed_vocab **target, heed_error *err);
void heed_vocabs_free(heed_vocab *source, heed_vocab *target);

/* ---- models that are installed ---- */

typedef struct heed_installed_model {
    const char *name, *folder;
} heed_installed_model;
/* Those in the directory that HEED_MODELS names, if it does, then those in share/heed/models of the
 * place where the library is, then the program; in the tree they were built in, in models/.  In the
 * order of their names in each place; lives in the arena. */
heed_status heed_models_installed(heed_arena *arena, const heed_installed_model **models,
                                  int64_t *count, heed_error *err);
/* The directory of the first installed model of this name, in the arena; the name itself where it
 * has a slash, is a directory with a model in it, or that of no installed one: opening it says what
 * is missing.  NULL after an error. */
const char *heed_model_find(const char *name, heed_arena *arena, heed_error *err);

/* ---- models of other programs ---- */

/* Whether a path, a file or a directory, holds a model of another program: GGUF, CTranslate2,
 * Hugging Face's directories (safetensors, PyTorch, ONNX), Marian, llama2.c, NumPy.
 * heed_model_read_config, heed_vocabs_open, heed_engine_open and the translator open those that
 * heed computes as they are. */
bool heed_found_is(const char *path);
/* What it is, as a JSON object in the arena: format, publisher, summary (or why it is not_opened),
 * about (sizes under the publisher's names), tensors, values, types; of int8 matrices that are
 * computed as they are, int8_columns, and wide_columns, whose sums need 32 bits. */
heed_status heed_found_describe(const char *path, heed_arena *arena, const char **json,
                                heed_error *err);

/* What a model's numbers are stored as.  Bytes: matrices in 8 bits with a scale for each column,
 * laid out as decoding reads them. */
typedef enum heed_number_kind {
    HEED_NUMBERS_FP32,
    HEED_NUMBERS_FP16,
    HEED_NUMBERS_INT8,
} heed_number_kind;
/* Writes the model of a directory to a new one, with its vocabulary. */
heed_status heed_convert(const char *from, const char *to, heed_number_kind kind, heed_error *err);

/* Other programs' forms of a translator that heed trained, in an empty directory that is made:
 * MARIAN model.npz in fp32; FIREFOX int8 with multipliers, as Firefox and Bergamot open it;
 * HUGGING_FACE a MarianMT.  Each with its vocabulary and, of the first two, the shortlist that the
 * model has.  sample: a TSV of pairs that tell how large activations get (FIREFOX); NULL: the
 * model's own sample.tsv.  Refuses a model that the program does not compute, and says which option
 * of the training makes one that it does. */
typedef enum heed_export_form {
    HEED_EXPORT_MARIAN,
    HEED_EXPORT_FIREFOX,
    HEED_EXPORT_HUGGING_FACE,
} heed_export_form;
heed_status heed_export(const char *from, const char *to, heed_export_form form, const char *sample,
                        heed_error *err);

#ifdef __cplusplus
}
#endif
#endif
