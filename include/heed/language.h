/* language.h: language models, decoders alone: how they are trained on text.  What they write is in
 * generate.h.
 *
 *     heed_language_recipe r;
 *     // words: "--preset", "char", "--text", "t.txt"
 *     heed_language_recipe_parse(&r, 4, words, arena, &err);
 *     heed_trainer *t = heed_language_trainer_new("m", &r, &hooks, NULL, &err);
 *     heed_trainer_run(t, &result, &err);
 */
#ifndef HEED_LANGUAGE_H
#define HEED_LANGUAGE_H

#include <heed/model.h>
#include <heed/train.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum heed_language_tokens {
    HEED_LANGUAGE_SENTENCEPIECE,
    HEED_LANGUAGE_WORDS,
    HEED_LANGUAGE_CHARACTERS,
    HEED_LANGUAGE_BYTES, /* byte-level BPE */
    HEED_LANGUAGE_WORDPIECE,
} heed_language_tokens;
/* What weights start as: heed's own (Xavier), or GPT-2's: N(0, .02^2), and in the products that end
 * a residual branch .02 / sqrt(2 layers). */
typedef enum heed_language_init { HEED_LANGUAGE_XAVIER, HEED_LANGUAGE_GPT2 } heed_language_init;

/* The text that is learned, and how.  The words in HEED_LANGUAGE_OPTIONS say what each is and what
 * it starts as; 0 or NULL stands for "not given". */
typedef struct heed_language_options {
    heed_option_list text, valid_text;
    int64_t hold_out; /* bytes */
    int recipe;       /* 0: what is not given is chosen; 1: the options' own defaults */
    const char *from;
    int tokens; /* heed_language_tokens */
    int vocab_type;
    int64_t vocab_size, vocab_min_count;
    double vocab_coverage;
    bool cased;
    const char *vocab, *bpe_joiner;
    int64_t batch_tokens;
    int64_t valid_tokens;
    int init; /* heed_language_init */
    heed_loop_options loop;
} heed_language_options;

#define HEED_LANGUAGE_OPTIONS(owner, at, model)                                                    \
    HEED_OPTION_LIST(owner, at.text, "text", "FILE", "text to learn, plain or .gz"),               \
        HEED_OPTION_LIST(owner, at.valid_text, "valid-text", "FILE", "text to validate with"),     \
        HEED_OPTION_INT(owner, at.hold_out, "hold-out", "0", 0, INT64_MAX, "N",                    \
                        "without --valid-text: hold out N bytes of the text, in 20 passages; 0: "  \
                        "a hundredth, 100 kB to 2 MB, a twentieth at most"),                       \
        HEED_OPTION_CHOICE(owner, at.recipe, "recipe", "auto", HEED_WORDS("auto", "paper"),        \
                           "what is not given: chosen for the text, the machine and the time "     \
                           "there is, or as GPT-2 was trained"),                                   \
        HEED_OPTION_TEXT(owner, at.from, "from", NULL, "DIR",                                      \
                         "start from this model: with its shape, vocabulary and weights"),         \
        HEED_OPTION_INT(owner, model.longest, "context", "1024", 2, 1000000, "N",                  \
                        "tokens that the model sees at once"),                                     \
        HEED_OPTION_CHOICE(                                                                        \
            owner, at.tokens, "tokens", "sentencepiece",                                           \
            HEED_WORDS("sentencepiece", "whitespace", "characters", "bytes", "wordpiece"),         \
            "what the text is cut into: subwords, its own words, characters, byte-level BPE, "     \
            "WordPiece"),                                                                          \
        HEED_OPTION_CHOICE(owner, at.vocab_type, "vocab-type", "unigram",                          \
                           HEED_WORDS("unigram", "bpe"), "kind of subwords"),                      \
        HEED_OPTION_INT(owner, at.vocab_size, "vocab-size", NULL, 0, 10000000, "N",                \
                        "pieces of a vocabulary; 0: 8000, or all words or characters"),            \
        HEED_OPTION_INT(owner, at.vocab_min_count, "vocab-min-count", "1", 1, 1000000, "N",        \
                        "whitespace tokens: rarer words are unknown"),                             \
        HEED_OPTION_REAL(owner, at.vocab_coverage, "vocab-coverage", "1", 0.98, 1, "X",            \
                         "share of the characters to cover"),                                      \
        HEED_OPTION_BOOL(owner, at.cased, "cased", "true",                                         \
                         "WordPiece: keep capitals and accents"),                                  \
        HEED_OPTION_TEXT(owner, at.vocab, "vocab", NULL, "FILE",                                   \
                         "use this vocabulary instead of learning one"),                           \
        HEED_OPTION_TEXT(owner, at.bpe_joiner, "bpe-joiner", NULL, "TEXT",                         \
                         "whitespace tokens: ends pieces that go on in the next, as '@@ '"),       \
        HEED_OPTION_INT(owner, at.batch_tokens, "batch-tokens", "8192", 1, 100000000, "N",         \
                        "tokens in a batch, in stretches of --context"),                           \
        HEED_OPTION_INT(owner, at.valid_tokens, "valid-tokens", "500000", 1, INT64_MAX, "N",       \
                        "validate with N tokens at most"),                                         \
        HEED_OPTION_CHOICE(owner, at.init, "init", "gpt2", HEED_WORDS("xavier", "gpt2"),           \
                           "first weights: by each matrix's size, or N(0, 0.02), smaller where "   \
                           "residual branches end"),                                               \
        HEED_LOOP_OPTIONS(owner, at.loop)

/* For heed_option_set: options of HEED_MODEL_OPTIONS that a decoder does not have, and defaults
 * that are its own, GPT-2's. */
#define HEED_LANGUAGE_WITHOUT                                                                      \
    "encoder-layers types cell attend embedding bidirectional reverse input-feeding zero-start "   \
    "longest"
#define HEED_LANGUAGE_DEFAULTS                                                                     \
    "arch", "decoder", "decoder-layers", "12", "d", "768", "ff", "3072", "heads", "12",            \
        "activation", "gelu-tanh", "pre-norm", "true", "norm-eps", "1e-5", "positions", "learned", \
        "attention-bias", "true", "embedding-scale", "false", "label-smoothing", "0", "optimizer", \
        "adamw", "beta2", "0.95", "eps", "1e-8", "weight-decay", "0.1", "schedule", "cosine",      \
        "rate", "0.0006", "rate-floor", "0.00006", "warmup", "2000", "clip", "1"

/* All that a run depends on; training/options.json of a model directory holds one. */
typedef struct heed_language_recipe {
    heed_model_config model; /* sizes of the vocabulary are filled in */
    heed_language_options train;
    heed_option_origins origins; /* what was given */
} heed_language_recipe;
/* Sizes and settings by name: char, gpt2, llama. */
const heed_option_bundle *heed_language_presets(void);
/* The defaults, changed by words of the command line.  Texts are borrowed from the words or live in
 * the arena. */
heed_status heed_language_recipe_parse(heed_language_recipe *recipe, int count,
                                       const char *const *words, heed_arena *arena,
                                       heed_error *err);
/* Fills in what was not given, as heed_language_trainer_new does by itself: looks at the text and
 * measures the machine for a second. */
heed_status heed_language_recipe_choose(heed_language_recipe *recipe, const heed_log_sink *log,
                                        const heed_allocator *allocator, heed_error *err);

/* As heed_trainer_new and heed_trainer_resume of task.h. */
heed_trainer *heed_language_trainer_new(const char *folder, const heed_language_recipe *recipe,
                                        const heed_train_hooks *hooks,
                                        const heed_allocator *allocator, heed_error *err);
heed_trainer *heed_language_trainer_resume(const char *folder, const heed_language_recipe *recipe,
                                           const heed_train_hooks *hooks,
                                           const heed_allocator *allocator, heed_error *err);

/* The text of a trainer made by one of these two; all zero of any other. */
typedef struct heed_language_report {
    int64_t bytes, tokens, unknown, valid_bytes, valid_tokens, vocabulary;
} heed_language_report;
heed_language_report heed_language_trainer_report(const heed_trainer *t);

#ifdef __cplusplus
}
#endif
#endif
