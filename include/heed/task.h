/* task.h: the tasks that come with the library, for the trainer of train.h.
 *
 * Translation: a recipe says with which text and how a model is trained.
 *
 *     heed_trainer *t = heed_trainer_new("m", &recipe, &hooks, NULL, &err);
 *     heed_trainer_run(t, &result, &err);
 *     heed_trainer_free(t);
 */
#ifndef HEED_TASK_H
#define HEED_TASK_H

#include <heed/metric.h>
#include <heed/train.h>
#include <heed/translate.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- recipes ---- */

typedef enum heed_tokens_kind {
    HEED_TOKENS_SENTENCEPIECE,
    HEED_TOKENS_WHITESPACE
} heed_tokens_kind;
typedef enum heed_recipe_kind { HEED_RECIPE_AUTO, HEED_RECIPE_PAPER } heed_recipe_kind;
typedef enum heed_sides { HEED_SIDES_BOTH, HEED_SIDES_SOURCE, HEED_SIDES_TARGET } heed_sides;
typedef enum heed_valid_metric {
    HEED_VALID_BLEU,
    HEED_VALID_CHRF,
    HEED_VALID_LOSS
} heed_valid_metric;

/* The text that a translation is learned from, and how.  The words in HEED_TRAIN_OPTIONS say what
 * each is and what it starts as; 0 or NULL stands for "not given". */
typedef struct heed_train_options {
    heed_option_list source, target, tsv;                   /* the n-th target belongs to the n-th
                                                               source */
    heed_option_list valid_source, valid_target, valid_tsv; /* none: hold_out pairs are held out */
    int64_t hold_out;
    int recipe;       /* heed_recipe_kind: what becomes of all that is not given */
    const char *from; /* a model directory to start from */
    double rehearse;  /* with from: the share of pairs that come from the sample that it keeps */
    int64_t sample_pairs;
    int tokens; /* heed_tokens_kind */
    int vocab_type;
    int64_t vocab_size, vocab_min_count;
    double vocab_coverage;
    bool joint;
    const char *vocab, *source_vocab, *target_vocab, *bpe_joiner;
    double subword_sampling;
    int sampling_sides; /* heed_sides */
    heed_augment_options augment;
    int64_t max_tokens;
    int64_t batch_tokens;
    /* Translations may have as many more tokens than their source as 99 in 100 pairs of the
     * training have, and 10 more, but 50 at most. */
    int64_t valid_beam, valid_lines;
    int valid_metric;   /* heed_valid_metric */
    int valid_tokenize; /* 0: 13a, or multi-bleu for whitespace tokens; else heed_tokenize + 1 */
    heed_loop_options loop;
} heed_train_options;

#define HEED_TRAIN_OPTIONS(owner, at)                                                              \
    HEED_OPTION_LIST(owner, at.source, "source", "FILE",                                           \
                     "text to learn from, one sentence a line, plain or .gz"),                     \
        HEED_OPTION_LIST(owner, at.target, "target", "FILE",                                       \
                         "its translation, line by line; one file for each --source"),             \
        HEED_OPTION_LIST(owner, at.tsv, "tsv", "FILE",                                             \
                         "both in one file: source TAB target; FILE:0.3, here and for --source: "  \
                         "each epoch has that share of its pairs, drawn anew"),                    \
        HEED_OPTION_LIST(owner, at.valid_source, "valid-source", "FILE", "text to validate with"), \
        HEED_OPTION_LIST(owner, at.valid_target, "valid-target", "FILE", "its translation"),       \
        HEED_OPTION_LIST(owner, at.valid_tsv, "valid-tsv", "FILE", "both in one file"),            \
        HEED_OPTION_INT(owner, at.hold_out, "hold-out", "0", 0, 1000000, "N",                      \
                        "without validation files: hold out N pairs, a twentieth at most; 0: one " \
                        "in a hundred, 50 to 1000"),                                               \
        HEED_OPTION_CHOICE(owner, at.recipe, "recipe", "auto", HEED_WORDS("auto", "paper"),        \
                           "what is not given: chosen for the text, the machine and the time "     \
                           "there is, or the paper's own settings (preset base, noam)"),           \
        HEED_OPTION_TEXT(owner, at.from, "from", NULL, "DIR",                                      \
                         "start from this model, an installed one's name or a directory: with "    \
                         "its shape, vocabulary and weights"),                                     \
        HEED_OPTION_REAL(owner, at.rehearse, "rehearse", "0.75", 0, 0.99, "P",                     \
                         "with --from: of the pairs, this share comes from the sample of its own " \
                         "text that the model keeps, so that it forgets little; 0: none"),         \
        HEED_OPTION_INT(owner, at.sample_pairs, "sample-pairs", "2000", 0, 100000, "N",            \
                        "keep N pairs of the text with the model, as sample.tsv, for --from"),     \
        HEED_OPTION_CHOICE(owner, at.tokens, "tokens", "sentencepiece",                            \
                           HEED_WORDS("sentencepiece", "whitespace"),                              \
                           "subwords learned from the text, or its own words"),                    \
        HEED_OPTION_CHOICE(owner, at.vocab_type, "vocab-type", "unigram",                          \
                           HEED_WORDS("unigram", "bpe"), "kind of subwords"),                      \
        HEED_OPTION_INT(owner, at.vocab_size, "vocab-size", NULL, 0, 10000000, "N",                \
                        "pieces of a vocabulary; 0: 8000, or all words for whitespace tokens"),    \
        HEED_OPTION_INT(owner, at.vocab_min_count, "vocab-min-count", "1", 1, 1000000, "N",        \
                        "whitespace tokens: rarer words are unknown"),                             \
        HEED_OPTION_REAL(owner, at.vocab_coverage, "vocab-coverage", "1", 0.98, 1, "X",            \
                         "share of the characters to cover; 0.9995 for Chinese or Japanese"),      \
        HEED_OPTION_BOOL(owner, at.joint, "joint", "true", "one vocabulary for both languages"),   \
        HEED_OPTION_TEXT(owner, at.vocab, "vocab", NULL, "FILE",                                   \
                         "use this vocabulary for both languages instead of learning one"),        \
        HEED_OPTION_TEXT(owner, at.source_vocab, "source-vocab", NULL, "FILE",                     \
                         "the same for the source alone"),                                         \
        HEED_OPTION_TEXT(owner, at.target_vocab, "target-vocab", NULL, "FILE",                     \
                         "the same for the target alone"),                                         \
        HEED_OPTION_TEXT(owner, at.bpe_joiner, "bpe-joiner", NULL, "TEXT",                         \
                         "whitespace tokens: ends pieces that go on in the next, as '@@ '"),       \
        HEED_OPTION_REAL(owner, at.subword_sampling, "subword-sampling", "0", 0, 10, "A",          \
                         "cut words at random: unigram P^A, smaller is wilder; bpe drops merges, " \
                         "--bpe-joiner takes pieces apart, with probability A; 0: never"),         \
        HEED_OPTION_CHOICE(owner, at.sampling_sides, "sampling-sides", "both",                     \
                           HEED_WORDS("both", "source", "target"), "where to cut at random"),      \
        HEED_OPTION_REAL(owner, at.augment.join, "join", "0", 0, 1, "P",                           \
                         "put 1 to 7 other pairs behind a pair with this probability, so that "    \
                         "long lines are learned"),                                                \
        HEED_OPTION_REAL(owner, at.augment.protect, "protect", "0", 0, 1, "P",                     \
                         "names and numbers that are the same on both sides become placeholders, " \
                         "so that addresses, %s, <b> and the like survive translation"),           \
        HEED_OPTION_REAL(owner, at.augment.invent, "invent", "0", 0, 1, "P",                       \
                         "such names become words that nobody has seen, to be copied"),            \
        HEED_OPTION_REAL(owner, at.augment.vary, "vary", "0", 0, 1, "P",                           \
                         "no full stop, or a small letter at the beginning"),                      \
        HEED_OPTION_INT(owner, at.max_tokens, "max-tokens", "256", 1, 1000000, "N",                \
                        "leave out pairs with more tokens on either side, the end included"),      \
        HEED_OPTION_INT(owner, at.batch_tokens, "batch-tokens", "4096", 1, 100000000, "N",         \
                        "target tokens in a batch, at most"),                                      \
        HEED_OPTION_INT(owner, at.valid_beam, "valid-beam", "4", 1, 1000, "N",                     \
                        "beam of the translations that are scored"),                               \
        HEED_OPTION_INT(owner, at.valid_lines, "valid-lines", "2000", 0, 100000000, "N",           \
                        "translate at most N validation lines, drawn evenly; 0: none"),            \
        HEED_OPTION_CHOICE(owner, at.valid_metric, "valid-metric", "bleu",                         \
                           HEED_WORDS("bleu", "chrf", "loss"), "what the best model is best at"),  \
        HEED_OPTION_CHOICE(owner, at.valid_tokenize, "valid-tokenize", "auto",                     \
                           HEED_WORDS("auto", "13a", "intl", "none", "char", "zh", "multi-bleu"),  \
                           "BLEU's tokens; auto is 13a, or multi-bleu for whitespace tokens"),     \
        HEED_LOOP_OPTIONS(owner, at.loop)

/* All that a run depends on; training/options.json of a model directory holds one, in the form of a
 * config file. */
typedef struct heed_recipe {
    heed_model_config model; /* sizes of vocabularies are filled in */
    heed_train_options train;
    /* What was given: --from may not change it, and what would be ignored is refused.  A value
     * set without it counts as a default. */
    heed_option_origins origins;
} heed_recipe;
/* The defaults, changed by words of the command line: {"--preset", "tiny", "--source", ...}.  Texts
 * are borrowed from the words or live in the arena. */
heed_status heed_recipe_parse(heed_recipe *recipe, int count, const char *const *words,
                              heed_arena *arena, heed_error *err);
/* Fills in what was not given, as heed_trainer_new does by itself: reads the text and measures the
 * machine for a second.  The result, given to heed_trainer_new, is trained as it stands. */
heed_status heed_recipe_choose(heed_recipe *recipe, const heed_log_sink *log,
                               const heed_allocator *allocator, heed_error *err);
/* The recipe of a model directory under training; texts live in the arena. */
heed_status heed_recipe_open(const char *folder, heed_recipe *recipe, heed_arena *arena,
                             heed_error *err);

/* ---- training ---- */

/* Checks everything and prepares it: corpora, vocabularies (learned where none is given), model.
 * The folder must not exist or be empty; it appears, complete, when run begins. */
heed_trainer *heed_trainer_new(const char *folder, const heed_recipe *recipe,
                               const heed_train_hooks *hooks, const heed_allocator *allocator,
                               heed_error *err);
/* Goes on from the newest whole save, bit for bit as if there had been no pause.  recipe, if not
 * NULL, may differ from the stored one in limits, validation, saves, log and threads (which may
 * change the bits); anything else is refused by name. */
heed_trainer *heed_trainer_resume(const char *folder, const heed_recipe *recipe,
                                  const heed_train_hooks *hooks, const heed_allocator *allocator,
                                  heed_error *err);

/* The text of a trainer made by one of these two; all zero of any other. */
typedef struct heed_text_report {
    int64_t pairs, valid_pairs;
    int64_t left_out; /* of the pairs, too long; reckoned from those that were drawn so far */
    int64_t source_vocabulary, target_vocabulary;
} heed_text_report;
heed_text_report heed_trainer_text(const heed_trainer *t);

/* ---- shortlists ---- */

typedef struct heed_shortlist_options {
    int64_t translations; /* of each source piece, the most probable */
    int64_t frequent;     /* target pieces that every sentence may use */
} heed_shortlist_options;
/* Learns from pairs of sentences which target pieces translate which source pieces, and writes the
 * lists into a model directory, for heed_engine_open_shortlist. */
heed_status heed_shortlist_train(const char *folder, const heed_corpus *c,
                                 const heed_shortlist_options *o, const heed_allocator *allocator,
                                 heed_error *err);

#ifdef __cplusplus
}
#endif
#endif
