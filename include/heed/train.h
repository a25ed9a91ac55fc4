/* train.h: optimisers over a parameter set's flat buffers, gradient clipping, learning-rate
 * schedules, averages; and the trainer, which makes a model directory from files of text.
 *
 *     heed_trainer *t = heed_trainer_new("m", &recipe, &hooks, NULL, &err);
 *     heed_trainer_run(t, &result, &err);
 *     heed_trainer_free(t);
 */
#ifndef HEED_TRAIN_H
#define HEED_TRAIN_H

#include <heed/metric.h>
#include <heed/nn.h>
#include <heed/translate.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- schedules ---- */

typedef enum heed_schedule_kind {
    HEED_SCHEDULE_CONSTANT,     /* rate, after a linear warm-up if warmup > 0 */
    HEED_SCHEDULE_NOAM,         /* rate * d^-0.5 min(step^-0.5, step warmup^-1.5) */
    HEED_SCHEDULE_INVERSE_SQRT, /* rises to rate at warmup, then rate sqrt(warmup/step) */
    HEED_SCHEDULE_COSINE,       /* warm-up, then half a cosine from rate to floor at total */
    HEED_SCHEDULE_LINEAR,       /* warm-up, then a line from rate to floor at total */
} heed_schedule_kind;
typedef struct heed_schedule {
    heed_schedule_kind kind;
    double rate;    /* the peak; for Noam a factor, 1 in the paper */
    int64_t warmup; /* steps */
    int64_t total;  /* cosine, linear */
    double floor;   /* cosine, linear */
    int64_t d;      /* Noam: D */
} heed_schedule;
/* step counts from 1. */
double heed_schedule_rate(const heed_schedule *s, int64_t step);

/* ---- optimisers ---- */

typedef enum heed_optimizer_kind {
    HEED_SGD,
    HEED_ADAM,
    HEED_ADAMW,
    HEED_RMSPROP,
} heed_optimizer_kind;
/* Zero means the default: momentum 0, beta1 .9, beta2 .98, eps 1e-9 (Adam, the paper's) or 1e-8
 * (RMSProp), alpha .95. To really have beta1 = 0, set it negative. */
typedef struct heed_optimizer_options {
    heed_optimizer_kind kind;
    double momentum;     /* SGD, RMSProp */
    double beta1, beta2; /* Adam, AdamW */
    double eps;
    double alpha;        /* RMSProp: decay of the mean square */
    bool centred;        /* RMSProp: divide by the standard deviation (Graves 2013) */
    double weight_decay; /* AdamW: decoupled */
} heed_optimizer_options;

typedef struct heed_optimizer heed_optimizer;
/* Borrows p, which must be finished.  options NULL: SGD without momentum. */
heed_optimizer *heed_optimizer_new(heed_params *p, const heed_optimizer_options *options,
                                   const heed_allocator *allocator, heed_error *err);
void heed_optimizer_free(heed_optimizer *o);
/* One update at this rate with the gradients as they are, which are then set to zero; state moves,
 * too (heed_state_add).  Frozen parameters and their moments stay.  threads, here and below: as
 * many as heed_tape_threads says, or 1. */
void heed_optimizer_step(heed_optimizer *o, double rate, int threads);
int64_t heed_optimizer_updates(const heed_optimizer *o);
void heed_optimizer_set_updates(heed_optimizer *o, int64_t updates);
/* The moments, flat like the set: i in [0, count). For checkpoints. */
int heed_optimizer_moments(const heed_optimizer *o);
heed_real *heed_optimizer_moment(const heed_optimizer *o, int i);
const char *heed_optimizer_moment_name(const heed_optimizer *o, int i);

/* ---- clipping ---- */

/* The Euclidean norm of all gradients of p (frozen ones are zero).  Deterministic for a number of
 * threads. */
double heed_grad_norm(const heed_params *p, int threads);
/* Scales the gradients so that their norm is at most limit; returns the norm before.  A norm that
 * is not finite leaves them alone. */
double heed_clip_norm(heed_params *p, double limit, int threads);
void heed_clip_value(heed_params *p, double limit, int threads);

/* ---- moving average of the weights ---- */

typedef struct heed_ema heed_ema;
/* average = decay average + (1 - decay) weights, decay corrected early on: min(decay,
 * (1+n)/(10+n)). */
heed_ema *heed_ema_new(const heed_params *p, double decay, const heed_allocator *allocator,
                       heed_error *err);
void heed_ema_free(heed_ema *e);
void heed_ema_update(heed_ema *e, int threads);
/* Exchanges average and weights: call before validation and again after it. */
void heed_ema_swap(heed_ema *e);
heed_real *heed_ema_values(const heed_ema *e);
int64_t heed_ema_updates(const heed_ema *e);
void heed_ema_set_updates(heed_ema *e, int64_t updates);

/* ---- recipes ---- */

typedef enum heed_tokens_kind {
    HEED_TOKENS_SENTENCEPIECE,
    HEED_TOKENS_WHITESPACE
} heed_tokens_kind;
typedef enum heed_sides { HEED_SIDES_BOTH, HEED_SIDES_SOURCE, HEED_SIDES_TARGET } heed_sides;
typedef enum heed_valid_metric {
    HEED_VALID_BLEU,
    HEED_VALID_CHRF,
    HEED_VALID_LOSS
} heed_valid_metric;
typedef enum heed_average_kind { HEED_AVERAGE_BEST, HEED_AVERAGE_LAST } heed_average_kind;

/* How to train: everything a run depends on beside the model's own configuration.  The words in
 * HEED_TRAIN_OPTIONS say what each is and what it starts as; 0 or NULL stands for "not given". */
typedef struct heed_train_options {
    heed_option_list source, target, tsv;                   /* the n-th target belongs to the n-th
                                                               source */
    heed_option_list valid_source, valid_target, valid_tsv; /* none: hold_out pairs are held out */
    int64_t hold_out;
    const char *from; /* a model directory to start from */
    int tokens;       /* heed_tokens_kind */
    int vocab_type;
    int64_t vocab_size, vocab_min_count;
    double vocab_coverage;
    bool joint;
    const char *vocab, *source_vocab, *target_vocab, *bpe_joiner;
    double subword_sampling;
    int sampling_sides; /* heed_sides */
    heed_augment_options augment;
    int64_t max_tokens;
    int64_t batch_tokens, accumulate;
    int64_t max_updates, max_epochs;
    double max_minutes;
    int64_t patience;
    int optimizer; /* heed_optimizer_kind */
    double beta1, beta2, eps, momentum, weight_decay;
    int schedule; /* heed_schedule_kind */
    double rate, rate_floor;
    int64_t warmup;
    double clip;
    double ema;
    int64_t average;
    int average_kind; /* heed_average_kind */
    int64_t valid_every;
    double valid_minutes;
    /* Translations may have as many more tokens than their source as 99 in 100 pairs of the
     * training have, and 10 more, but 50 at most. */
    int64_t valid_beam, valid_lines;
    int valid_metric;   /* heed_valid_metric */
    int valid_tokenize; /* 0: 13a, or multi-bleu for whitespace tokens; else heed_tokenize + 1 */
    int64_t save_every;
    double save_minutes;
    int64_t keep;
    int64_t log_every;
    int64_t threads;
    int64_t seed;
} heed_train_options;

#define HEED_TRAIN_OPTIONS(owner, at)                                                              \
    HEED_OPTION_LIST(owner, at.source, "source", "FILE",                                           \
                     "text to learn from, one sentence a line, plain or .gz"),                     \
        HEED_OPTION_LIST(owner, at.target, "target", "FILE",                                       \
                         "its translation, line by line; one file for each --source"),             \
        HEED_OPTION_LIST(owner, at.tsv, "tsv", "FILE", "both in one file: source TAB target"),     \
        HEED_OPTION_LIST(owner, at.valid_source, "valid-source", "FILE", "text to validate with"), \
        HEED_OPTION_LIST(owner, at.valid_target, "valid-target", "FILE", "its translation"),       \
        HEED_OPTION_LIST(owner, at.valid_tsv, "valid-tsv", "FILE", "both in one file"),            \
        HEED_OPTION_INT(owner, at.hold_out, "hold-out", "1000", 1, 1000000, "N",                   \
                        "without validation files: hold out N pairs, a twentieth at most"),        \
        HEED_OPTION_TEXT(owner, at.from, "from", NULL, "DIR",                                      \
                         "start from this model, an installed one's name or a directory: with "    \
                         "its shape, vocabulary and weights; unless --schedule is given, at a "    \
                         "constant --rate, of 0.0002 if not given, after a --warmup of 20"),       \
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
        HEED_OPTION_INT(owner, at.accumulate, "accumulate", "1", 1, 1000, "N",                     \
                        "batches in an update"),                                                   \
        HEED_OPTION_INT(owner, at.max_updates, "max-updates", "0", 0, 1000000000, "N",             \
                        "stop after N updates"),                                                   \
        HEED_OPTION_INT(owner, at.max_epochs, "max-epochs", "0", 0, 1000000000, "N",               \
                        "stop after N passes over the text (epochs)"),                             \
        HEED_OPTION_REAL(owner, at.max_minutes, "max-minutes", "0", 0, 1e7, "N",                   \
                         "stop after N minutes of training"),                                      \
        HEED_OPTION_INT(owner, at.patience, "patience", "0", 0, 1000000, "N",                      \
                        "stop after N validations without a better score; 0: 10 if there "         \
                        "is no other limit, else never"),                                          \
        HEED_OPTION_CHOICE(owner, at.optimizer, "optimizer", "adam",                               \
                           HEED_WORDS("sgd", "adam", "adamw", "rmsprop"), "how weights move"),     \
        HEED_OPTION_REAL(owner, at.beta1, "beta1", "0.9", 0, 0.99999, "X",                         \
                         "Adam: decay of the mean"),                                               \
        HEED_OPTION_REAL(owner, at.beta2, "beta2", "0.98", 0, 0.999999, "X",                       \
                         "Adam: decay of the mean square"),                                        \
        HEED_OPTION_REAL(owner, at.eps, "eps", "1e-9", 0, 1, "X",                                  \
                         "Adam, RMSProp: added to the root"),                                      \
        HEED_OPTION_REAL(owner, at.momentum, "momentum", "0", 0, 0.99999, "X", "SGD, RMSProp"),    \
        HEED_OPTION_REAL(owner, at.weight_decay, "weight-decay", "0", 0, 1, "X",                   \
                         "AdamW: share of a weight lost in an update at rate 1"),                  \
        HEED_OPTION_CHOICE(owner, at.schedule, "schedule", "noam",                                 \
                           HEED_WORDS("constant", "noam", "inverse-sqrt", "cosine", "linear"),     \
                           "how the learning rate moves"),                                         \
        HEED_OPTION_REAL(owner, at.rate, "rate", "0", 0, 1e30, "X",                                \
                         "peak learning rate, for noam a factor; 0: 1 for noam, else 0.001"),      \
        HEED_OPTION_REAL(owner, at.rate_floor, "rate-floor", "0", 0, 1e30, "X",                    \
                         "cosine, linear: where the rate ends"),                                   \
        HEED_OPTION_INT(owner, at.warmup, "warmup", "4000", 0, 1000000000, "N",                    \
                        "updates until the learning rate is at its peak"),                         \
        HEED_OPTION_REAL(owner, at.clip, "clip", "0", 0, 1e30, "X",                                \
                         "largest norm of the gradient; 0: any"),                                  \
        HEED_OPTION_REAL(owner, at.ema, "ema", "0", 0, 0.9999999, "D",                             \
                         "validate and keep a moving average of the weights with this decay"),     \
        HEED_OPTION_INT(owner, at.average, "average", "5", 0, 100, "K",                            \
                        "at the end, average the weights of N saves"),                             \
        HEED_OPTION_CHOICE(owner, at.average_kind, "average-kind", "best",                         \
                           HEED_WORDS("best", "last"), "which saves to average"),                  \
        HEED_OPTION_INT(owner, at.valid_every, "valid-every", "500", 0, 1000000000, "N",           \
                        "validate and save every N updates; 0: not by updates"),                   \
        HEED_OPTION_REAL(owner, at.valid_minutes, "valid-minutes", "0", 0, 1e7, "N",               \
                         "validate and save every N minutes"),                                     \
        HEED_OPTION_INT(owner, at.valid_beam, "valid-beam", "4", 1, 1000, "N",                     \
                        "beam of the translations that are scored"),                               \
        HEED_OPTION_INT(owner, at.valid_lines, "valid-lines", "2000", 0, 100000000, "N",           \
                        "translate at most N validation lines, drawn evenly; 0: none"),            \
        HEED_OPTION_CHOICE(owner, at.valid_metric, "valid-metric", "bleu",                         \
                           HEED_WORDS("bleu", "chrf", "loss"), "what the best model is best at"),  \
        HEED_OPTION_CHOICE(owner, at.valid_tokenize, "valid-tokenize", "auto",                     \
                           HEED_WORDS("auto", "13a", "intl", "none", "char", "zh", "multi-bleu"),  \
                           "BLEU's tokens; auto is 13a, or multi-bleu for whitespace tokens"),     \
        HEED_OPTION_INT(owner, at.save_every, "save-every", "0", 0, 1000000000, "N",               \
                        "save also every N updates"),                                              \
        HEED_OPTION_REAL(owner, at.save_minutes, "save-minutes", "15", 0, 1e7, "N",                \
                         "save also every N minutes, to lose no more at a power cut"),             \
        HEED_OPTION_INT(owner, at.keep, "keep", "2", 1, 100, "K", "whole saves to keep"),          \
        HEED_OPTION_INT(owner, at.log_every, "log-every", "50", 1, 1000000000, "N",                \
                        "updates from one line of the log to the next"),                           \
        HEED_OPTION_INT(owner, at.threads, "threads", NULL, 1, 64, "N",                            \
                        "threads to use; all processors if not given"),                            \
        HEED_OPTION_INT(owner, at.seed, "seed", "1", 0, INT64_MAX, "N",                            \
                        "of weights, order, dropout and sampling")

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
/* The recipe of a model directory under training; texts live in the arena. */
heed_status heed_recipe_open(const char *folder, heed_recipe *recipe, heed_arena *arena,
                             heed_error *err);

/* ---- training ---- */

typedef enum heed_train_event {
    HEED_TRAIN_UPDATE,
    HEED_TRAIN_VALIDATION,
    HEED_TRAIN_SAVE,
    HEED_TRAIN_ROLLBACK, /* back to the last save, at half the learning rate */
} heed_train_event;
typedef struct heed_train_progress {
    heed_train_event event;
    bool logged; /* UPDATE: a line of the log was written */
    int64_t update, epoch;
    double loss;       /* nats a target token since the last line of the log, not smoothed */
    double rate, norm; /* of this update */
    double speed;      /* source and target tokens a second, validation and saves not counted */
    double seconds;    /* of training so far, earlier runs included */
    double fraction;   /* done of the nearest of the limits; 0 if there is none */
    double valid_loss; /* nats a token; NAN before the first validation, as those below */
    double bleu, chrf;
    double best; /* score of the best validation */
    int64_t best_update;
    const char *metric; /* what best measures: "bleu", "chrf", "loss" */
} heed_train_progress;

/* All may be NULL.  The library prints nothing and installs no signal handler: a program's handler
 * sets a flag that stop reports. */
typedef struct heed_train_hooks {
    heed_log_sink log;
    void (*progress)(void *context, const heed_train_progress *p);
    bool (*stop)(void *context); /* asked before each update; true: save and stop */
    /* The gradients of an update are complete and not clipped yet. */
    void (*gradients)(void *context, heed_params *p, int64_t update);
    /* Between the steps of a save, for tests that kill there: "weights", ..., "renamed". */
    void (*save_point)(void *context, const char *where);
    void *context;
} heed_train_hooks;

typedef enum heed_train_reason {
    HEED_TRAIN_ASKED, /* stop said so */
    HEED_TRAIN_MAX_UPDATES,
    HEED_TRAIN_MAX_EPOCHS,
    HEED_TRAIN_MAX_MINUTES,
    HEED_TRAIN_PATIENCE,
} heed_train_reason;
typedef struct heed_train_result {
    heed_train_reason reason;
    heed_train_progress last;
    int averaged; /* saves in the average that was kept; 0: the best single one was better */
    double average_score; /* NAN without an average */
} heed_train_result;

typedef struct heed_trainer heed_trainer;
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
void heed_trainer_free(heed_trainer *t);
/* Removes what heed_trainer_new has made so far, from another thread: for a program that ends
 * without waiting for it, since learning a vocabulary cannot be interrupted. */
heed_status heed_trainer_discard(const char *folder, heed_error *err);
/* Until a limit is reached or stop says so. */
heed_status heed_trainer_run(heed_trainer *t, heed_train_result *result, heed_error *err);

/* What a run would need, from a few updates that are thrown away: do not run the trainer then. */
typedef struct heed_train_forecast {
    int64_t pairs, valid_pairs;
    int64_t left_out; /* of the pairs, too long; reckoned from those that were drawn */
    int64_t source_vocabulary, target_vocabulary;
    int64_t parameters;
    size_t memory; /* bytes of parameters, moments and the largest batch */
    double tokens_per_second;
    double seconds_per_update, seconds_per_epoch;
    int64_t updates_per_epoch;
} heed_train_forecast;
heed_status heed_trainer_forecast(heed_trainer *t, heed_train_forecast *forecast, heed_error *err);

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
