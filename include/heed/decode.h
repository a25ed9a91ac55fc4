/* decode.h: from a trained model to translations.
 * A complete program, C11 or C++20:
 * cc say.c $(pkg-config --cflags --libs heed) && ./a.out m 'A dog.'
 *
 *     #include <heed/decode.h>
 *     #include <stdio.h>
 *
 *     int main(int argc, char **argv)
 *     {
 *         heed_error err = {HEED_OK, ""};
 *         heed_search_options how = {.beam = 4, .n_best = 1, .length_penalty = 0.6,
 *                                    .extra_length = 50};
 *         heed_translator *tr = heed_translator_open(argc > 1 ? argv[1] : "m", 0, NULL, &err);
 *         heed_arena *arena = heed_arena_new(NULL, &err);        // what a translation lives in
 *         for (int i = 2; i < argc && err.status == HEED_OK; i++) {
 *             heed_translation best;
 *             const char *line = argv[i];
 *             heed_arena_reset(arena);
 *             if (heed_translate(tr, &how, &line, 1, arena, &best, &err) == HEED_OK)
 *                 printf("%s\n", best.text);
 *         }
 *         if (err.status != HEED_OK)
 *             fprintf(stderr, "%s\n", err.text);
 *         heed_arena_free(arena);
 *         heed_translator_free(tr);
 *         return err.status != HEED_OK;
 *     }
 *
 * A translator is an engine with its vocabularies; engine, sessions and search also work on ids. */
#ifndef HEED_DECODE_H
#define HEED_DECODE_H

#include <heed/model.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- engines and sessions ---- */

/* A model ready to decode: immutable, shared by threads.  The weights of a Transformer with scaled
 * dot, dot or cosine scores are packed, as numbers or, from a directory that `heed convert
 * --quantize` wrote, as bytes in the mapped file. */
typedef struct heed_engine heed_engine;
/* Opens a model directory; its vocabulary is not read. */
heed_engine *heed_engine_open(const char *folder, const heed_allocator *allocator, heed_error *err);
/* Of a model in memory: one that is packed is copied as it is now, any other is borrowed. */
heed_engine *heed_engine_new(const heed_model *m, const heed_allocator *allocator, heed_error *err);
void heed_engine_free(heed_engine *e);
/* Opens the shortlist of a model directory (heed_shortlist_train), for sessions that ask for it. */
heed_status heed_engine_open_shortlist(heed_engine *e, const char *folder, heed_error *err);
const heed_model_config *heed_engine_configuration(const heed_engine *e);
/* Of a weight that is a whole number, 8; 0: they are floating-point numbers. */
int heed_engine_weight_bits(const heed_engine *e);

/* One state of decoding: rows of hypotheses that are added, stepped and reordered.  One thread at a
 * time.  What a row of a packed model gives depends neither on the other rows nor on the number of
 * threads. */
typedef struct heed_session heed_session;
/* What a step says of every row: log p of what stands in column j is logit[row*columns + j] -
 * log_z[row]. */
typedef struct heed_scores {
    const heed_real *logit; /* (rows,columns) */
    const heed_real *log_z; /* (rows) log of the sum of the exponentials */
    int64_t columns;        /* V; with a shortlist, the most that a row has */
    /* (rows) with a shortlist: which tokens a row's first columns are, ascending; NULL: column j is
     * token j */
    const heed_tokens *choice;
    /* (rows, columns / HEED_PEAK_COLUMNS rounded up) the largest of so many logits; NULL: not known
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

/* Every attention of a pair of sentences (ids without EOS), as heed_model_attention gives it.
 * Lives in the arena. */
heed_status heed_engine_attention(const heed_engine *e, const heed_tokens *source,
                                  const heed_tokens *target, heed_arena *arena,
                                  const heed_attention_map **maps, int64_t *count, heed_error *err);

/* ---- search ---- */

/* What a hypothesis Y is divided by: score = log P(Y) / penalty, EOS counted in |Y|. */
typedef enum heed_penalty_form {
    HEED_PENALTY_WU,   /* ((5+|Y|)/6)^alpha, Wu et al. (2016), as in the Transformer's paper */
    HEED_PENALTY_POWER /* |Y|^alpha; alpha 1 gives the mean log-probability of a token */
} heed_penalty_form;

/* Lengths are in tokens.  A field that is 0 asks for nothing. */
typedef struct heed_search_options {
    int64_t beam;          /* 1 is greedy */
    int64_t n_best;        /* hypotheses handed out for each sentence, at most beam */
    double length_penalty; /* alpha */
    int penalty_form;      /* heed_penalty_form */
    double patience; /* stop when so many times the beam have ended, and n_best; 0: when none that
                      * lives can win */
    /* At most, EOS counted, of the source too: source + extra_length (0 is a limit here),
     * max_length, source * max_ratio, and what the model takes. */
    int64_t extra_length, max_length;
    double max_ratio;
    /* At least so many before EOS, if the limit allows. */
    int64_t min_length;
    double min_ratio;
    int64_t no_repeat;    /* no n-gram of so many tokens twice */
    bool unscored;        /* nobody wants log_p and score, which greedy search then gives as NaN:
                           * it finds the same hypotheses faster without them */
    bool allow_loops;     /* do not end hypotheses that repeat themselves without end */
    bool suppress_unk;    /* never HEED_UNK */
    heed_option_list ban; /* never these pieces; heed_translate knows their ids */
    heed_tokens banned;   /* never these ids */
    bool sample;          /* draw n_best hypotheses instead of searching with a beam */
    double temperature;   /* from p^(1/temperature) */
    int64_t top_k;        /* of so many tokens */
    double top_p;         /* of the fewest tokens that have so much probability together */
    int64_t seed;
} heed_search_options;
#define HEED_SEARCH_OPTIONS(owner, at)                                                             \
    HEED_OPTION_INT(owner, at.beam, "beam", "4", 1, 1000, "N",                                     \
                    "hypotheses kept at each step; 1 is greedy"),                                  \
        HEED_OPTION_INT(owner, at.n_best, "n-best", "1", 1, 1000, "N",                             \
                        "translations for each line, as `i ||| text ||| score`"),                  \
        HEED_OPTION_REAL(owner, at.length_penalty, "length-penalty", "0.6", 0, 10, "A",            \
                         "score = log P / ((5+length)/6)^A"),                                      \
        HEED_OPTION_CHOICE(owner, at.penalty_form, "penalty-form", "wu",                           \
                           HEED_WORDS("wu", "power"),                                              \
                           "of the length penalty: ((5+length)/6)^A, or length^A"),                \
        HEED_OPTION_REAL(owner, at.patience, "patience", "0", 0, 1000, "P",                        \
                         "stop when P times the beam have ended (1: first come, first served); "   \
                         "0: when none that goes on can win"),                                     \
        HEED_OPTION_INT(owner, at.extra_length, "extra-length", "50", 0, 100000, "N",              \
                        "at most so many tokens more than the source has"),                        \
        HEED_OPTION_INT(                                                                           \
            owner, at.max_length, "max-length", "0", 0, 100000, "N",                               \
            "at most so many tokens, the end counted, in each part of a line that is cut; "        \
            "0: no such limit"),                                                                   \
        HEED_OPTION_REAL(owner, at.max_ratio, "max-ratio", "0", 0, 1000, "R",                      \
                         "at most R times the source's tokens; 0: no such limit"),                 \
        HEED_OPTION_INT(owner, at.min_length, "min-length", "0", 0, 100000, "N",                   \
                        "at least so many tokens, in each part of a line that is cut"),            \
        HEED_OPTION_REAL(owner, at.min_ratio, "min-ratio", "0", 0, 1000, "R",                      \
                         "at least R times the source's tokens"),                                  \
        HEED_OPTION_INT(owner, at.no_repeat, "no-repeat", "0", 0, 1000, "N",                       \
                        "no N tokens in a row twice in a translation; 0: they may"),               \
        HEED_OPTION_BOOL(owner, at.allow_loops, "allow-loops", NULL,                               \
                         "do not cut translations that repeat themselves without end"),            \
        HEED_OPTION_BOOL(owner, at.suppress_unk, "suppress-unk", NULL,                             \
                         "never write the unknown piece"),                                         \
        HEED_OPTION_LIST(owner, at.ban, "ban", "PIECE",                                            \
                         "never write this piece of the vocabulary")
#define HEED_SAMPLE_OPTIONS(owner, at)                                                             \
    HEED_OPTION_BOOL(owner, at.sample, "sample", NULL,                                             \
                     "draw translations, as many as --n-best says, instead of searching"),         \
        HEED_OPTION_REAL(owner, at.temperature, "temperature", "1", 0.01, 100, "T",                \
                         "--sample from p^(1/T): below 1 safer, above 1 wilder"),                  \
        HEED_OPTION_INT(owner, at.top_k, "top-k", "0", 0, INT32_MAX, "K",                          \
                        "--sample from the K most probable tokens; 0: from all"),                  \
        HEED_OPTION_REAL(                                                                          \
            owner, at.top_p, "top-p", "1", 0, 1, "P",                                              \
            "--sample from the fewest tokens of probability P together; 0: from all"),             \
        HEED_OPTION_INT(owner, at.seed, "seed", "1", 0, INT64_MAX, "N",                            \
                        "another one, and --sample draws other translations")

typedef struct heed_hypothesis {
    const int32_t *id; /* without BOS; EOS, if it was reached, is the last */
    int64_t count;
    double log_p;                 /* of all tokens */
    double score;                 /* log_p with the length penalty */
    const heed_real *token_log_p; /* (count) */
    bool loop; /* hypotheses of its sentence repeated themselves without end and were ended */
} heed_hypothesis;
/* The n_best best of each of the `count` sources (ids without EOS), best first, in
 * out[sentence*n_best + i]; where fewer were found, count is 0.  In the last place that its limit
 * leaves a hypothesis has EOS, however improbable.  One that says the same again and again is cut
 * behind the first time, has no EOS, and is handed out only where no other was found, or if it was
 * drawn.  What is drawn depends on the seed and a sentence's place among the sources.  Lives in the
 * arena. */
heed_status heed_search(heed_session *s, const heed_search_options *o, const heed_tokens *source,
                        int64_t count, heed_arena *arena, heed_hypothesis *out, heed_error *err);

/* ---- translators: a model with its vocabularies ---- */

typedef struct heed_translator heed_translator;
/* Opens a model directory: config.json, model.safetensors, vocabulary.  threads 0: all processors,
 * and for few lines one where the model is small. */
heed_translator *heed_translator_open(const char *folder, int threads,
                                      const heed_allocator *allocator, heed_error *err);
/* Over a model that somebody else holds, as the trainer does, as it is now; borrows all three. */
heed_translator *heed_translator_new(const heed_model *m, const heed_vocab *source,
                                     const heed_vocab *target, int threads,
                                     const heed_allocator *allocator, heed_error *err);
void heed_translator_free(heed_translator *tr);
const heed_engine *heed_translator_engine(const heed_translator *tr);
/* From now on with word alignments: where the words of a translation looked in the source, in a
 * head of a decoder layer, or in all its heads together; both from 1.  Layer 0: the last but one of
 * three or more, which aligns best as a rule, else the last; head 0: all. */
heed_status heed_translator_align(heed_translator *tr, int layer, int head, heed_error *err);
/* From now on with the shortlist that lies in the directory: faster where the vocabulary is large.
 * */
heed_status heed_translator_use_shortlist(heed_translator *tr, const char *folder, heed_error *err);
/* Whether addresses, %s, {name}, <b>, emoji, 3.5 km, numbers, unknown names and the like come out
 * as they went in, each once; they do with every model that was trained for it, unless this says
 * no. */
void heed_translator_protect(heed_translator *tr, bool on);
/* Whether a line that is all in CAPITALS is translated as if it were not, and the translation put
 * into capitals; it is, unless this says no or the tokens are whole words. */
void heed_translator_capitals(heed_translator *tr, bool on);
/* A pair as the model sees it, without EOS: spans of the source that must not change are
 * placeholders on both sides, and a source in capitals is in small letters.  A source with more
 * spans than there are placeholders, or with nothing else, is taken as it stands. */
typedef struct heed_encoded_pair {
    heed_tokens source, target;
    const char *const *span; /* (spans) what the placeholders stand for, in their order */
    int64_t spans;
    bool repaired; /* as in heed_translation */
} heed_encoded_pair;
/* The target may be NULL.  Lives in the arena. */
heed_status heed_translator_encode(const heed_translator *tr, const char *source,
                                   const char *target, heed_arena *arena, heed_encoded_pair *pair,
                                   heed_error *err);
const heed_vocab *heed_translator_source(const heed_translator *tr);
const heed_vocab *heed_translator_target(const heed_translator *tr);

typedef struct heed_translation {
    const char *text; /* without line ends */
    double score, log_p;
    int64_t tokens;               /* EOS counted */
    const int32_t *id;            /* (tokens), as in heed_hypothesis; of a line that was cut, each
                                     part counts its placeholders from 0 */
    const heed_real *token_log_p; /* (tokens) */
    bool repaired; /* the line was not UTF-8 throughout; U+FFFD took the place of each wrong byte */
    bool loop;     /* as in heed_hypothesis */
    /* Of the best one, with heed_translator_align: which word of the line each of its words comes
     * from, in Pharaoh's form, "0-0 1-2"; else NULL. */
    const char *alignment;
} heed_translation;
/* n_best translations of each line, best first, in out[line*n_best + i]; text is NULL where there
 * are fewer.  An empty line gives an empty line; one that is too long is split at sentence ends or
 * windows and joined (then there is one translation only, its score the sum).  Lines are sorted by
 * length and decoded in batches inside, by all threads side by side if there are lines enough.
 * Lives in the arena. */
heed_status heed_translate(heed_translator *tr, const heed_search_options *o,
                           const char *const *lines, int64_t count, heed_arena *arena,
                           heed_translation *out, heed_error *err);

/* A line that comes by itself. */
typedef struct heed_source_line {
    const char *text;   /* until next is called again; NULL: there is none */
    const char *prefix; /* how its translations begin (of a line that is split: the first part), as
                         * far as the model takes it; NULL: anyhow.  Lives as long as text */
    uint64_t number;    /* names its random numbers when translations are drawn */
    void *tag;          /* the caller's own */
} heed_source_line;
/* Where lines come from and translations go.  Both are called in the thread that called
 * heed_translate_stream. */
typedef struct heed_line_stream {
    void *context;
    /* The next line.  Without `wait` a text of NULL only means that none has come yet. */
    heed_status (*next)(void *context, bool wait, heed_source_line *line, heed_error *err);
    /* Line by line in the order they came: number and tag of the line, and its translations
     * (n_best), which live until the call returns. */
    heed_status (*done)(void *context, const heed_source_line *line, const heed_translation *out,
                        heed_error *err);
} heed_line_stream;
typedef struct heed_stream_options {
    int workers;   /* lines are translated side by side by so many; 0: the first lines that come
                    * decide: many, one for each thread; few, one with all threads inside */
    int64_t batch; /* sentences decoded together by a worker, at most; 0: up to 512 rows */
} heed_stream_options;
/* heed_translate for as many lines as come, in constant memory.  A line's translation is handed out
 * as soon as it is there and those before it are.  When next fails, the lines before are still
 * translated and handed out, and then the call ends with its error; when done fails, it ends at
 * once. */
heed_status heed_translate_stream(heed_translator *tr, const heed_search_options *o,
                                  const heed_stream_options *so, const heed_line_stream *stream,
                                  heed_error *err);
/* How probable given translations are: target[i] of source[i], its EOS included; score is log_p.
 * An empty line is a sentence of nothing but EOS.  Tokens are those of heed_translator_encode.
 * Refuses a line that is longer than the model takes.  Lives in the arena. */
heed_status heed_score(heed_translator *tr, const char *const *source, const char *const *target,
                       int64_t count, heed_arena *arena, heed_hypothesis *out, heed_error *err);

/* ---- model directories ---- */

/* What config.json holds beside the model's own configuration. */
typedef struct heed_text_config {
    int tokens;             /* heed_vocab_kind */
    const char *bpe_joiner; /* whitespace tokens only; NULL: none */
    /* Source tokens of the sentences seen in training: of 90 in 100 at most so many, and of the
     * longest.  A line with more than the first is cut at sentence ends, and a sentence with more
     * than the second is cut in itself.  0: not known; no more than 250 are taken at once in any
     * case. */
    int64_t trained_length, trained_longest;
    bool protects; /* the model knows placeholders */
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

/* What a model's numbers are stored as.  Bytes: matrices in 8 bits with a scale for each column,
 * laid out as decoding reads them. */
typedef enum heed_number_kind {
    HEED_NUMBERS_FP32,
    HEED_NUMBERS_FP16,
    HEED_NUMBERS_INT8,
} heed_number_kind;
/* Writes the model of a directory to a new one, with its vocabulary. */
heed_status heed_convert(const char *from, const char *to, heed_number_kind kind, heed_error *err);

#ifdef __cplusplus
}
#endif
#endif
