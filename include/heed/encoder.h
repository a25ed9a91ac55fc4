/* encoder.h: encoders alone: examples with answers, models that label texts and words, make vectors
 * of them and fill in what is masked, and how they are trained.
 *
 *     heed_encoder *e = heed_encoder_open("m", 1, NULL, &err);
 *     heed_encoder_classify(e, texts, NULL, n, arena, &p, &err);
 *     heed_encoder_free(e);
 */
#ifndef HEED_ENCODER_H
#define HEED_ENCODER_H

#include <heed/engine.h>
#include <heed/train.h>
#include <heed/vocab.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- examples with answers ---- */

typedef enum heed_examples_kind {
    HEED_EXAMPLES_LABELS, /* label TAB text, or label TAB text TAB text */
    HEED_EXAMPLES_PAIRS,  /* text TAB text, or score TAB text TAB text */
    HEED_EXAMPLES_TAGS,   /* columns: a word a line, an empty line behind each sentence */
} heed_examples_kind;
typedef struct heed_examples_options {
    heed_examples_kind kind;
    /* TAGS: "3" (from 1), or upos and xpos of CoNLL-U; NULL: the last column, upos in files called
     * .conllu; "none": words without tags. */
    const char *tag_column;
    /* The labels or tags that there are; NULL: those that the files have, in the order of bytes.
     * With them, another label is refused, and another tag warned of: its number is -1. */
    const char *const *labels;
    int64_t label_count;
} heed_examples_options;
/* Of LABELS: label, text[0] and perhaps text[1].  Of PAIRS: both texts, and the score or NAN.  Of
 * TAGS: words with their tags. */
typedef struct heed_example {
    const char *text[2]; /* NULL: not there */
    int32_t label;       /* number of it; -1: none */
    double score;
    const char *const *word; /* (words) */
    const int32_t *tag;      /* (words) */
    int64_t words;
    int64_t line; /* where it begins, from 1 */
} heed_example;
typedef struct heed_examples heed_examples;
/* Reads all of the files, plain or .gz.  What is wrong is said with file and line: a line without
 * what its kind has, a file whose columns change, text that is not UTF-8, no example at all.
 * Columns beyond those that are read are ignored; of CoNLL-U, comments, contractions (1-2) and
 * empty nodes (8.1). */
heed_examples *heed_examples_open(const char *const *paths, int count,
                                  const heed_examples_options *options, const heed_log_sink *log,
                                  const heed_allocator *allocator, heed_error *err);
void heed_examples_free(heed_examples *x);
int64_t heed_examples_count(const heed_examples *x);
/* What it points to lives as long as x. */
heed_example heed_examples_at(const heed_examples *x, int64_t i);
/* Names of labels or tags, by number. */
const char *const *heed_examples_labels(const heed_examples *x, int64_t *count);
/* Whether examples have two texts; whether they have scores. */
bool heed_examples_are_pairs(const heed_examples *x);
bool heed_examples_are_scored(const heed_examples *x);

/* ---- how good answers are ---- */

typedef struct heed_label_figures {
    int64_t n, right;
    int64_t labels;
    const int64_t *confusion; /* (labels,labels): wanted by said; unknown ones are not in it */
    const double *precision, *recall, *f1; /* (labels), from 0 to 1; NAN: of none */
    double accuracy;                       /* right / n */
    double macro_f1;                       /* the mean over the labels that are wanted or said */
} heed_label_figures;
/* wanted[i] < 0 is never right.  The arrays live in the arena. */
heed_status heed_label_figures_of(const int32_t *wanted, const int32_t *said, int64_t n,
                                  int64_t labels, heed_arena *arena, heed_label_figures *out,
                                  heed_error *err);
/* Whether tags name spans: every one is O, or B- or I- (also S-, E-) and a kind. */
bool heed_tags_are_spans(const char *const *tags, int64_t count);
typedef struct heed_span_kind {
    const char *name;
    int64_t wanted, said, right;
    double precision, recall, f1; /* from 0 to 1 */
} heed_span_kind;
typedef struct heed_span_figures {
    heed_span_kind all;         /* its name is NULL */
    const heed_span_kind *kind; /* (kinds), in the order of bytes */
    int64_t kinds;
} heed_span_figures;
/* Spans as conlleval counts them: right if kind, beginning and end are.  Tag -1 is a span of a kind
 * of its own.  tokens of all sentences, one after the other; length (sentences). */
heed_status heed_span_figures_of(const char *const *tags, int64_t tag_count, const int32_t *wanted,
                                 const int32_t *said, const int64_t *length, int64_t sentences,
                                 heed_arena *arena, heed_span_figures *out, heed_error *err);
/* Spearman's rank correlation; equal values share their mean rank.  NAN for fewer than two, or
 * where all are equal. */
heed_status heed_spearman(const double *a, const double *b, int64_t n, double *rho,
                          heed_error *err);

/* ---- models ---- */

#define HEED_ENCODER_TASK_WORDS "mlm", "classify", "tag", "embed"
typedef enum heed_encoder_task {
    HEED_ENCODER_MLM,      /* says what stands where [MASK] is */
    HEED_ENCODER_CLASSIFY, /* a label for a text, or for two */
    HEED_ENCODER_TAG,      /* a label for each word */
    HEED_ENCODER_EMBED,    /* a vector for a text */
} heed_encoder_task;

/* A model directory of an encoder, or one as it was found (BERT, MiniLM).  One thread at a time. */
typedef struct heed_encoder heed_encoder;
heed_encoder *heed_encoder_open(const char *folder, int threads, const heed_allocator *allocator,
                                heed_error *err);
/* The same of a model in memory; everything is borrowed.  labels: NULL for models without. */
heed_encoder *heed_encoder_new(const heed_model *m, const heed_vocab *vocab,
                               const char *const *labels, int64_t label_count, int threads,
                               const heed_allocator *allocator, heed_error *err);
void heed_encoder_free(heed_encoder *e);
/* What it was trained for, as one of HEED_ENCODER_TASK_WORDS; NULL: not known (found models). */
const char *heed_encoder_trained_for(const heed_encoder *e);
/* Whether it can do this task: labels are there, or a head over the vocabulary with [MASK].
 * Every encoder makes vectors. */
heed_status heed_encoder_can(const heed_encoder *e, heed_encoder_task task, heed_error *err);
const char *const *heed_encoder_labels(const heed_encoder *e, int64_t *count);
const heed_vocab *heed_encoder_vocab(const heed_encoder *e);
const heed_model_config *heed_encoder_configuration(const heed_encoder *e);

/* probability (count,labels), in the arena.  second: NULL, or a text beside each.  What is too long
 * for the model loses its end. */
heed_status heed_encoder_classify(heed_encoder *e, const char *const *text,
                                  const char *const *second, int64_t count, heed_arena *arena,
                                  const heed_real **probability, heed_error *err);
/* tag (words) and its probability (words), for one sentence after the other: sentence i has
 * length[i] words.  One that is too long for the model is read in parts. */
heed_status heed_encoder_tag(heed_encoder *e, const char *const *word, const int64_t *length,
                             int64_t sentences, heed_arena *arena, const int32_t **tag,
                             const heed_real **probability, heed_error *err);
/* vector (count,D) of length 1: the mean over all tokens, scaled.  Their product is the cosine. */
heed_status heed_encoder_embed(heed_encoder *e, const char *const *text, int64_t count,
                               heed_arena *arena, const heed_real **vector, heed_error *err);
/* What may stand in the place of a mask. */
typedef struct heed_filled {
    int32_t id;
    const char *piece;
    const char *text; /* the whole line with it */
    double probability;
} heed_filled;
/* top answers for each [MASK] of the text, likeliest first: filled (masks,top).  With several
 * masks, `text` has the likeliest in the others. */
heed_status heed_encoder_fill(heed_encoder *e, const char *text, int64_t top, heed_arena *arena,
                              const heed_filled **filled, int64_t *masks, heed_error *err);
/* ---- training ---- */

typedef enum heed_encoder_tokens {
    HEED_ENCODER_WORDPIECE,
    HEED_ENCODER_WORDS,
} heed_encoder_tokens;
/* The words in HEED_ENCODER_OPTIONS say what each is; 0 or NULL stands for "not given". */
typedef struct heed_encoder_options {
    int task;                          /* heed_encoder_task */
    heed_option_list text, tsv, conll; /* mlm: text; classify, embed: tsv; tag: conll */
    heed_option_list valid_text, valid_tsv, valid_conll;
    const char *tag_column;
    int64_t hold_out;
    int recipe;       /* 0: chosen for the data; 1: as the options are */
    const char *from; /* a model directory, or a model as it was found */
    int tokens;       /* heed_encoder_tokens */
    int64_t vocab_size, vocab_min_count;
    bool cased;
    const char *vocab;
    double word_dropout; /* share of tokens that are hidden while training */
    double mask_share;   /* mlm */
    bool next_sentence;  /* mlm */
    double temperature;  /* embed, pairs without scores */
    int64_t batch_tokens;
    heed_loop_options loop;
} heed_encoder_options;

#define HEED_ENCODER_OPTIONS(owner, at)                                                            \
    HEED_OPTION_CHOICE(owner, at.task, "task", "classify", HEED_WORDS(HEED_ENCODER_TASK_WORDS),    \
                       "mlm: say what is masked, from plain text; classify: a label for a line; "  \
                       "tag: one for each word; embed: vectors of lines"),                         \
        HEED_OPTION_LIST(owner, at.text, "text", "FILE", "mlm: plain text, or .gz"),               \
        HEED_OPTION_LIST(owner, at.tsv, "tsv", "FILE",                                             \
                         "classify: label TAB text [TAB text]; embed: text TAB text, or score "    \
                         "TAB text TAB text; plain or .gz"),                                       \
        HEED_OPTION_LIST(owner, at.conll, "conll", "FILE",                                         \
                         "tag: columns, a word a line, an empty line behind each sentence"),       \
        HEED_OPTION_LIST(owner, at.valid_text, "valid-text", "FILE", "mlm: to validate with"),     \
        HEED_OPTION_LIST(owner, at.valid_tsv, "valid-tsv", "FILE",                                 \
                         "classify, embed: to validate with"),                                     \
        HEED_OPTION_LIST(owner, at.valid_conll, "valid-conll", "FILE", "tag: to validate with"),   \
        HEED_OPTION_TEXT(owner, at.tag_column, "tag-column", NULL, "N|upos|xpos",                  \
                         "tag: the column of the tag, from 1; the last if not given, upos in "     \
                         ".conllu"),                                                               \
        HEED_OPTION_INT(owner, at.hold_out, "hold-out", "0", 0, 1000000, "N",                      \
                        "without validation files: hold out N examples; 0: a tenth, 1000 at "      \
                        "most"),                                                                   \
        HEED_OPTION_CHOICE(owner, at.recipe, "recipe", "auto", HEED_WORDS("auto", "given"),        \
                           "what is not given: chosen for the data, the machine and the time "     \
                           "there is, or as this help says"),                                      \
        HEED_OPTION_TEXT(owner, at.from, "from", NULL, "DIR",                                      \
                         "start from this model: with its shape, vocabulary and weights, also "    \
                         "BERT or MiniLM as they are published"),                                  \
        HEED_OPTION_CHOICE(owner, at.tokens, "tokens", "wordpiece",                                \
                           HEED_WORDS("wordpiece", "whitespace"),                                  \
                           "subwords learned from the text, or its own words"),                    \
        HEED_OPTION_INT(owner, at.vocab_size, "vocab-size", NULL, 0, 10000000, "N",                \
                        "pieces of the vocabulary; 0: 8000, or all words for whitespace tokens"),  \
        HEED_OPTION_INT(owner, at.vocab_min_count, "vocab-min-count", "1", 1, 1000000, "N",        \
                        "whitespace tokens: rarer words are unknown"),                             \
        HEED_OPTION_BOOL(owner, at.cased, "cased", NULL, "wordpiece: keep capitals and accents"),  \
        HEED_OPTION_TEXT(owner, at.vocab, "vocab", NULL, "FILE",                                   \
                         "use this vocabulary instead of learning one"),                           \
        HEED_OPTION_REAL(owner, at.word_dropout, "word-dropout", "0", 0, 0.9, "P",                 \
                         "hide a token with this probability while training"),                     \
        HEED_OPTION_REAL(owner, at.mask_share, "mask-share", "0.15", 0.01, 0.9, "P",               \
                         "mlm: share of the tokens that are asked for"),                           \
        HEED_OPTION_BOOL(owner, at.next_sentence, "next-sentence", NULL,                           \
                         "mlm: also say whether the second half follows the first"),               \
        HEED_OPTION_REAL(owner, at.temperature, "temperature", "0.05", 0.001, 100, "X",            \
                         "embed: cosines are divided by it, for pairs without scores"),            \
        HEED_OPTION_INT(owner, at.batch_tokens, "batch-tokens", "2048", 1, 100000000, "N",         \
                        "tokens in a batch, at most, or one example"),                             \
        HEED_LOOP_OPTIONS(owner, at.loop)
/* What an encoder has not of HEED_MODEL_OPTIONS, and what it has otherwise: for option sets. */
#define HEED_ENCODER_WITHOUT                                                                       \
    "decoder-layers decoder-unit zero-start cell attend embedding bidirectional reverse "          \
    "input-feeding"
#define HEED_ENCODER_DEFAULTS                                                                      \
    "arch", "encoder", "encoder-layers", "4", "d", "256", "ff", "1024", "heads", "4", "positions", \
        "learned", "activation", "gelu", "attention-bias", "true", "embedding-scale", "false",     \
        "embedding-norm", "true", "head-transform", "true", "output-bias", "true", "norm-eps",     \
        "1e-12", "longest", "512", "label-smoothing", "0", "optimizer", "adamw", "beta2", "0.999", \
        "eps", "1e-6", "weight-decay", "0.01", "schedule", "linear", "clip", "1", "max-updates",   \
        "0", "warmup", "0"

/* All that a run depends on; training/options.json of a model directory holds one. */
typedef struct heed_encoder_recipe {
    heed_model_config model; /* sizes of vocabulary and labels are filled in */
    heed_encoder_options train;
    heed_option_origins origins; /* a value set without it counts as a default */
} heed_encoder_recipe;
/* bert-tiny to bert-base, and sizes for small data. */
const heed_option_bundle *heed_encoder_presets(void);
/* The defaults, changed by words of the command line.  Texts are borrowed from the words or live in
 * the arena. */
heed_status heed_encoder_recipe_parse(heed_encoder_recipe *recipe, int count,
                                      const char *const *words, heed_arena *arena, heed_error *err);
/* Fills in what was not given, as heed_encoder_trainer_new does by itself. */
heed_status heed_encoder_recipe_choose(heed_encoder_recipe *recipe, const heed_log_sink *log,
                                       const heed_allocator *allocator, heed_error *err);
/* Checks and prepares everything: examples, vocabulary (learned where none is given), model.  The
 * folder must not exist or be empty; it appears, complete, when run begins. */
heed_trainer *heed_encoder_trainer_new(const char *folder, const heed_encoder_recipe *recipe,
                                       const heed_train_hooks *hooks,
                                       const heed_allocator *allocator, heed_error *err);
/* Goes on from the newest whole save, bit for bit as if there had been no pause.  recipe: NULL, or
 * the stored one with other limits, validation intervals, saves, log and threads. */
heed_trainer *heed_encoder_trainer_resume(const char *folder, const heed_encoder_recipe *recipe,
                                          const heed_train_hooks *hooks,
                                          const heed_allocator *allocator, heed_error *err);
/* The data of a trainer made by one of these two; all zero of any other. */
typedef struct heed_encoder_report {
    int64_t examples, valid_examples, tokens; /* tokens: of all examples */
    int64_t cut;                              /* examples that were longer than the model reads */
    int64_t vocabulary, labels;
} heed_encoder_report;
heed_encoder_report heed_encoder_trainer_report(const heed_trainer *t);

#ifdef __cplusplus
}
#endif
#endif
