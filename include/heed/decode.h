/* decode.h: from a trained model to translations.
 *
 *     heed_translator *tr = heed_translator_open("m", 2, NULL, &err);
 *     heed_translate(tr, &options, lines, n, arena, translations, &err);
 */
#ifndef HEED_DECODE_H
#define HEED_DECODE_H

#include <heed/model.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- engines and sessions ---- */

/* A model ready to decode: immutable, shared by threads.  A Transformer's weights are packed, as
 * numbers or, from a directory that `heed convert --quantize` wrote, as bytes in the mapped file. */
typedef struct heed_engine heed_engine;
/* Opens a model directory; its vocabulary is not read. */
heed_engine *heed_engine_open(const char *folder, const heed_allocator *allocator, heed_error *err);
/* Of a model in memory: a Transformer is copied as it is now, any other is borrowed. */
heed_engine *heed_engine_new(const heed_model *m, const heed_allocator *allocator, heed_error *err);
void heed_engine_free(heed_engine *e);
const heed_model_config *heed_engine_configuration(const heed_engine *e);

/* One state of decoding: rows of hypotheses that are added, stepped and reordered.  One thread at a
 * time; `threads` work inside.  What a row gives depends neither on the other rows nor on the number
 * of threads. */
typedef struct heed_session heed_session;
/* What a step says of every row: log p of token j is logit[row*count + j] - log_z[row]. */
typedef struct heed_scores {
    const heed_real *logit; /* (rows,count) */
    const heed_real *log_z; /* (rows) log of the sum of the exponentials */
    int64_t count;          /* V, or fewer with a shortlist */
    const int32_t *token;   /* (count) which token column j is, ascending; NULL: j itself */
} heed_scores;
heed_session *heed_session_new(const heed_engine *e, int threads, const heed_allocator *allocator,
                               heed_error *err);
void heed_session_free(heed_session *s);
/* Encodes sources (ids without EOS): one row each, behind those that are there.  Sessions of models
 * that are not packed take new ones only when they have no rows. */
heed_status heed_session_add(heed_session *s, const heed_tokens *source, int64_t count,
                             heed_error *err);
/* Every row takes its token, a new one BOS.  *out lives until the next call. */
heed_status heed_session_step(heed_session *s, const int32_t *token, heed_scores *out,
                              heed_error *err);
/* Row r goes on from row parent[r]; a row that nobody names is dropped.  Rows stay in the order of
 * their sentences. */
heed_status heed_session_reorder(heed_session *s, const int32_t *parent, int64_t rows,
                                 heed_error *err);
void heed_session_clear(heed_session *s);

/* ---- search ---- */

typedef struct heed_search_options {
    int64_t beam;          /* 1 is greedy */
    double length_penalty; /* alpha: score = log P / ((5+|Y|)/6)^alpha, EOS counted */
    int64_t n_best;        /* hypotheses handed out for each sentence, at most beam */
    int64_t extra_length;  /* at most source length + this many tokens, EOS counted in both */
    int64_t min_length;    /* at least so many before EOS, if the limit allows */
} heed_search_options;
#define HEED_SEARCH_OPTIONS(owner, at)                                                             \
    HEED_OPTION_INT(owner, at.beam, "beam", "4", 1, 1000, "N",                                     \
                    "hypotheses kept at each step; 1 is greedy"),                                  \
        HEED_OPTION_REAL(owner, at.length_penalty, "length-penalty", "0.6", 0, 10, "A",            \
                         "score = log P / ((5+length)/6)^A"),                                      \
        HEED_OPTION_INT(owner, at.n_best, "n-best", "1", 1, 1000, "N",                             \
                        "translations for each line, as `i ||| text ||| score`"),                  \
        HEED_OPTION_INT(owner, at.extra_length, "extra-length", "50", 0, 100000, "N",              \
                        "at most so many tokens more than the source has"),                        \
        HEED_OPTION_INT(owner, at.min_length, "min-length", "0", 0, 100000, "N",                   \
                        "at least so many tokens")

typedef struct heed_hypothesis {
    const int32_t *id; /* without BOS; EOS, if it was reached, is the last */
    int64_t count;
    double log_p;                 /* of all tokens */
    double score;                 /* log_p with the length penalty */
    const heed_real *token_log_p; /* (count) */
} heed_hypothesis;
/* The n_best best of each of the `count` sources (ids without EOS), best first, in
 * out[sentence*n_best + i]; where fewer were found, count is 0.  Hypotheses that reach their limit
 * without EOS are handed out only where none got there.  Lives in the arena, which holds the
 * search's own memory too. */
heed_status heed_search(heed_decoder *d, const heed_search_options *o, const heed_tokens *source,
                        int64_t count, heed_arena *arena, heed_hypothesis *out, heed_error *err);

/* ---- translators: a model with its vocabularies ---- */

typedef struct heed_translator heed_translator;
/* Opens a model directory: config.json, model.safetensors, vocabulary. */
heed_translator *heed_translator_open(const char *folder, int threads,
                                      const heed_allocator *allocator, heed_error *err);
/* Over a model that somebody else holds, as the trainer does; borrows all three. */
heed_translator *heed_translator_new(const heed_model *m, const heed_vocab *source,
                                     const heed_vocab *target, int threads,
                                     const heed_allocator *allocator, heed_error *err);
void heed_translator_free(heed_translator *tr);
const heed_model *heed_translator_model(const heed_translator *tr);
const heed_vocab *heed_translator_source(const heed_translator *tr);
const heed_vocab *heed_translator_target(const heed_translator *tr);

typedef struct heed_translation {
    const char *text; /* without line ends */
    double score, log_p;
    int64_t tokens;               /* EOS counted */
    const int32_t *id;            /* (tokens), as in heed_hypothesis */
    const heed_real *token_log_p; /* (tokens) */
    bool repaired; /* the line was not UTF-8 throughout; U+FFFD took the place of each wrong byte */
} heed_translation;
/* n_best translations of each line, best first, in out[line*n_best + i]; text is NULL where there
 * are fewer.  An empty line gives an empty line; one that is too long is split at sentence ends or
 * windows and joined (then there is one translation only, its score the sum).  Lines are sorted by
 * length and decoded in batches inside.  Lives in the arena. */
heed_status heed_translate(heed_translator *tr, const heed_search_options *o,
                           const char *const *lines, int64_t count, heed_arena *arena,
                           heed_translation *out, heed_error *err);
/* How probable given translations are: target[i] of source[i], its EOS included; score is log_p.
 * An empty line is a sentence of nothing but EOS.  Refuses a line that is longer than the model
 * takes.  Lives in the arena. */
heed_status heed_score(heed_translator *tr, const char *const *source, const char *const *target,
                       int64_t count, heed_arena *arena, heed_hypothesis *out, heed_error *err);

/* ---- model directories ---- */

/* What config.json holds beside the model's own configuration. */
typedef struct heed_text_config {
    int tokens;             /* heed_vocab_kind */
    const char *bpe_joiner; /* whitespace tokens only; NULL: none */
    /* Source tokens of the sentences seen in training: of 99 in 100 at most so many, and of the
     * longest.  A line with more than the first is cut at sentence ends, and a sentence with more
     * than the second is cut in itself.  0: not known, only the model's own limit counts. */
    int64_t trained_length, trained_longest;
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

/* What a model's numbers are stored as.  Bytes: matrices in 7 or 8 bits with a scale for each
 * column, laid out as decoding reads them. */
typedef enum heed_number_kind {
    HEED_NUMBERS_FP32,
    HEED_NUMBERS_FP16,
    HEED_NUMBERS_INT7,
    HEED_NUMBERS_INT8,
} heed_number_kind;
/* Writes the model of a directory to a new one, with its vocabulary. */
heed_status heed_convert(const char *from, const char *to, heed_number_kind kind, heed_error *err);

#ifdef __cplusplus
}
#endif
#endif
