/* train.h: optimisers over a parameter set's flat buffers, gradient clipping, learning-rate
 * schedules, averages; and the one training loop, which trains a task:
 *
 *     heed_loop_options loop;
 *     heed_loop_defaults(&loop, &err);
 *     loop.max_updates = 1000;
 *     heed_task task = {.self = &mine, .loop = &loop, .params = my_params, .loss = my_loss};
 *     heed_trainer *t = heed_trainer_open("m", &task, false, NULL, NULL, &err);
 *     heed_trainer_run(t, &result, &err);
 *     heed_trainer_free(t);
 *
 * The tasks that come with the library are in task.h. */
#ifndef HEED_TRAIN_H
#define HEED_TRAIN_H

#include <heed/dist.h>
#include <heed/nn.h>
#include <heed/options.h>

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

/* ---- how to train: what does not depend on the task ---- */

typedef enum heed_average_kind { HEED_AVERAGE_BEST, HEED_AVERAGE_LAST } heed_average_kind;
/* max_updates: not one; what there is, is validated. */
#define HEED_NO_UPDATES (-1)
/* The words in HEED_LOOP_OPTIONS say what each is and what it starts as. */
typedef struct heed_loop_options {
    bool shard_optimizer;
    int64_t accumulate; /* micro-batches in an update, those of all ranks together */
    int64_t max_updates, max_epochs;
    double max_minutes;
    int64_t patience;
    int optimizer; /* heed_optimizer_kind */
    double beta1, beta2, eps, momentum, weight_decay;
    int schedule; /* heed_schedule_kind */
    double rate, rate_floor;
    int64_t warmup;
    double clip, clip_value;
    double ema;
    int64_t average;
    int average_kind; /* heed_average_kind */
    int64_t valid_every;
    double valid_minutes;
    int64_t save_every;
    double save_minutes;
    int64_t keep;
    int64_t log_every;
    int64_t threads;
    int64_t seed;
} heed_loop_options;
#define HEED_LOOP_OPTIONS(owner, at)                                                               \
    HEED_OPTION_INT(owner, at.accumulate, "accumulate", "1", 1, 1000, "N",                         \
                    "batches in an update"),                                                       \
        HEED_OPTION_BOOL(owner, at.shard_optimizer, "shard-optimizer", NULL,                       \
                         "several processes: each keeps the optimiser's moments of its own part "  \
                         "of the weights alone; the result is the same"),                          \
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
        HEED_OPTION_REAL(owner, at.clip_value, "clip-value", "0", 0, 1e30, "X",                    \
                         "largest element of the gradient, before --clip; 0: any"),                \
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

/* What the words start as, and one thread. */
heed_status heed_loop_defaults(heed_loop_options *o, heed_error *err);

/* ---- a task: what is trained ---- */

#define HEED_MAX_SETS 4     /* of parameters */
#define HEED_MAX_MEASURES 8 /* of a validation */
#define HEED_MAX_FINGERPRINTS 16

/* What validation has measured.  Names are short ("loss", "BLEU") and live as long as the task. */
typedef struct heed_measure {
    const char *name;
    double value; /* NAN: not measured this time */
    bool larger_is_better;
} heed_measure;
/* A number that is another one with other data: "training pairs", a checksum. */
typedef struct heed_fingerprint {
    const char *name;
    int64_t value;
} heed_fingerprint;
/* Where a stream of data stands. */
typedef struct heed_position {
    int64_t epoch; /* passes over the data that are over */
    int64_t at[3]; /* the task's own */
} heed_position;
/* What one micro-batch is made of. */
typedef struct heed_portion {
    double terms;  /* of the loss, which is divided by them: tokens, labels, bits; 0: none left */
    double items;  /* what the speed counts */
    double share;  /* of a pass over the data; 0 where there are no passes */
    int64_t epoch; /* the pass that it is of, from 0 */
} heed_portion;
/* The loss of one micro-batch for one set of parameters, and the numbers it may draw: other ones
 * for each (seed, update, micro-batch, set), and the same whenever they are drawn. */
#define HEED_TASK_NODE ((uint64_t)1 << 63) /* of the key of those numbers */
typedef struct heed_pass {
    int64_t update; /* from 1; 0: no update, the loss of the batch in hand is looked at */
    int set, micro;
    double weight; /* 1 / the terms of all micro-batches */
    heed_rng rng;
} heed_pass;

/* A task in functions of its own.  `self` is handed to all of them; what is NULL is left out.
 * A call comes back with the status of its error, as everywhere. */
typedef struct heed_task {
    void *self;
    const heed_loop_options *loop; /* read while the trainer is opened, and copied */
    /* Stored in training/options.json.  A run is resumed with the same values, but for the loop's
     * limits, validation, saves, log and threads, and those that may_change names (ended by NULL).
     * values lives as long as the task. */
    const heed_option_set *options;
    const void *values;
    size_t values_size; /* bytes of the struct that values points to */
    const char *const *may_change;
    const char *unit;             /* of the loss: "nats a token" */
    const char *items;            /* what the speed counts: "tokens"; NULL: "updates" */
    bool perplexity;              /* exp(loss) means something */
    double largest_loss;          /* above it, training has diverged; 0: any finite loss is fine */
    int64_t width;                /* D, for Noam's schedule; 0: 1 */
    int sets;                     /* of parameters; 0: one */
    const char *const *set_names; /* (sets), for names of files and curves, if there are several */
    const char *best;             /* the measure that decides which weights are best; NULL: the
                                     first.  Equal ones are told apart by the first. */

    /* Makes data and parameters ready.  new_folder: folder is being prepared, what has to be there
     * from the beginning (vocabularies) goes into it; otherwise a training in it is resumed. */
    heed_status (*open)(void *self, const char *folder, bool new_folder, heed_error *err);
    /* The sets, from open to close. */
    heed_params *(*params)(void *self, int set);
    /* Writes what a program needs to use the model, into a new folder. */
    heed_status (*describe)(void *self, const char *folder, heed_error *err);
    /* What the data is, into room for HEED_MAX_FINGERPRINTS; returns how many. */
    int (*data)(void *self, heed_fingerprint *out);
    /* Draws the micro-batches of an update, and says what they are.  NULL: loss draws from the
     * numbers of its pass, and is the mean of its terms. */
    heed_status (*next)(void *self, int64_t update, int micros, heed_portion *portion,
                        heed_error *err);
    /* weight times the sum of the loss over the terms of a micro-batch; *sum: the sum that is
     * shown, without label smoothing and the like; left alone: that of the tensor. */
    heed_tensor *(*loss)(void *self, heed_tape *t, const heed_pass *pass, double *sum);
    /* The position behind the last update; seek goes back there.  NULL: there is none to keep. */
    heed_position (*tell)(void *self);
    heed_status (*seek)(void *self, heed_position p, heed_error *err);
    /* On a tape that neither trains nor records.  At most HEED_MAX_MEASURES, the same ones every
     * time; the first is a loss, which must be finite. */
    heed_status (*validate)(void *self, heed_tape *t, heed_measure *out, int *count,
                            heed_error *err);
    /* At the end, with the best weights in place: results, pictures. */
    heed_status (*finish)(void *self, heed_tape *t, const char *folder, heed_error *err);
    void (*close)(void *self);
} heed_task;

/* ---- training ---- */

typedef enum heed_train_event {
    HEED_TRAIN_UPDATE,
    HEED_TRAIN_VALIDATION,
    HEED_TRAIN_SAVE,
    HEED_TRAIN_ROLLBACK, /* back to the last save, at half the learning rate */
    HEED_TRAIN_PREPARE,  /* before the first update: `fraction` of what takes long is done, and
                            nothing else is set */
} heed_train_event;
typedef struct heed_train_progress {
    heed_train_event event;
    bool logged; /* UPDATE: a line of the log was written */
    int64_t update, epoch;
    double loss[HEED_MAX_SETS]; /* a term, since the last line of the log */
    double norm[HEED_MAX_SETS]; /* of this update's gradients */
    double rate;                /* of this update */
    double speed;               /* items a second, validation and saves not counted */
    double seconds;             /* of training so far, earlier runs included */
    double fraction;            /* done of the nearest of the limits; 0 if there is none */
    int ranks;                  /* processes */
    const double *rank_speed;   /* (ranks) items a second of each while it does not wait */
    double waiting;             /* share of the updates' time that this rank waits for others */
    heed_measure measure[HEED_MAX_MEASURES]; /* of the last validation */
    int measures;                            /* 0 before the first */
    heed_measure best;                       /* of the best one; name: NULL before the first */
    int64_t best_update;
    const heed_task *task;
} heed_train_progress;
/* The value of a measure; NAN if there is none of that name. */
double heed_train_measured(const heed_train_progress *p, const char *name);

/* All may be NULL.  The library prints nothing and installs no signal handler: a program's handler
 * sets a flag that stop reports, on any rank. */
typedef struct heed_train_hooks {
    heed_log_sink log;
    void (*progress)(void *context, const heed_train_progress *p);
    /* Asked after each update: true saves and stops.  Before the first: opening fails. */
    bool (*stop)(void *context);
    /* The gradients of a set are complete and not clipped yet. */
    void (*gradients)(void *context, heed_params *p, int64_t update);
    /* Between the steps of a save, for tests that kill there: "weights", ..., "renamed". */
    void (*save_point)(void *context, const char *where);
    heed_ranks *ranks; /* that train together, each with a trainer of the same task and options */
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
    heed_train_progress last; /* names in it live as long as the trainer */
    int averaged; /* saves in the average that was kept; 0: the best single one was better */
    double average_score; /* NAN without an average */
} heed_train_result;

typedef struct heed_trainer heed_trainer;
/* A trainer of the task in a folder, which has the task closed when it is freed, or when this
 * fails.  New: the folder must not exist or be empty; it appears, complete, when run begins.
 * resume: goes on from the newest whole save, bit for bit as if there had been no pause (another
 * number of threads may change the bits). */
heed_trainer *heed_trainer_open(const char *folder, const heed_task *task, bool resume,
                                const heed_train_hooks *hooks, const heed_allocator *allocator,
                                heed_error *err);
void heed_trainer_free(heed_trainer *t);
/* Removes what heed_trainer_open has made so far, from another thread: for a program that ends
 * without waiting for it, since learning a vocabulary cannot be interrupted. */
heed_status heed_trainer_discard(const char *folder, heed_error *err);
/* Until a limit is reached or stop says so. */
heed_status heed_trainer_run(heed_trainer *t, heed_train_result *result, heed_error *err);

/* What a run would need, from a few updates that are thrown away: do not run the trainer then. */
typedef struct heed_train_forecast {
    int64_t parameters;
    size_t memory; /* bytes of parameters, moments and the largest batch */
    double items_per_second;
    double seconds_per_update;
    double seconds_per_epoch; /* 0 where there are no epochs */
    int64_t updates_per_epoch;
} heed_train_forecast;
heed_status heed_trainer_forecast(heed_trainer *t, heed_train_forecast *forecast, heed_error *err);
/* The loop's options in effect, what was chosen included; lives as long as t. */
const heed_loop_options *heed_trainer_options(const heed_trainer *t);

#ifdef __cplusplus
}
#endif
#endif
