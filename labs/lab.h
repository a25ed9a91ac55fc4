/* lab.h: what the labs share: options, training, figures, the model directory.
 *
 * A lab is a paper's own system on the paper's own tasks, in files that can be read beside it and
 * that see the public headers only.  `heed lab NAME` parses its options, gives it a session, and
 * prints the figures that it reports.  The lab describes its system to lab_experiment, which hands
 * it to the library's training loop (saves, resume, logs, curves), once for each seed, and has the
 * best one measured and drawn. */
#ifndef HEED_LABS_LAB_H
#define HEED_LABS_LAB_H

#include <heed/heed.h>
#include <heed/options.h>

/* Options of every lab. */
typedef struct lab_common {
    const char *folder, *resume, *weights;
    bool quick, json;
    int64_t updates, batch, accumulate, valid_every, save_every, seed, seeds, threads;
    double save_minutes;
    int optimizer; /* heed_optimizer_kind */
    double rate, rate_end, momentum, clip_norm, clip_value;
} lab_common;
#define LAB_OPTIONS(owner, at)                                                                     \
    HEED_OPTION_TEXT(owner, at.folder, "model", NULL, "DIR",                                       \
                     "where the model is made; must not be there yet"),                            \
        HEED_OPTION_TEXT(owner, at.resume, "resume", NULL, "DIR",                                  \
                         "go on with a run that was interrupted, or with more --updates"),         \
        HEED_OPTION_BOOL(owner, at.quick, "quick", NULL,                                           \
                         "a small run of seconds: the same as --preset quick"),                    \
        HEED_OPTION_BOOL(owner, at.json, "json", NULL, "print the results as JSON"),               \
        HEED_OPTION_TEXT(owner, at.weights, "weights", NULL, "FILE",                               \
                         "start from these weights; with --updates 0 only measure them"),          \
        HEED_OPTION_INT(owner, at.seed, "seed", "1", 0, INT64_MAX, "N",                            \
                        "of weights and examples"),                                                \
        HEED_OPTION_INT(owner, at.seeds, "seeds", "1", 1, 100, "N",                                \
                        "train N times, with seeds from --seed on; the best on "                   \
                        "validation is kept, all are reported"),                                   \
        HEED_OPTION_INT(owner, at.accumulate, "accumulate", "1", 1, 1000, "N",                     \
                        "batches in an update"),                                                   \
        HEED_OPTION_INT(owner, at.save_every, "save-every", "0", 0, 1000000000, "N",               \
                        "save also every N updates; validations save in any case"),                \
        HEED_OPTION_REAL(owner, at.save_minutes, "save-minutes", "15", 0, 1e7, "N",                \
                         "save also every N minutes"),                                             \
        HEED_OPTION_INT(owner, at.threads, "threads", NULL, 1, 64, "N",                            \
                        "threads to use; all processors if not given")
/* Those whose defaults are the lab's own. */
#define LAB_TRAINING(owner, at, updates_, batch_, valid_every_, optimizer_, rate_, momentum_,      \
                     clip_norm_, clip_value_)                                                      \
    HEED_OPTION_INT(owner, at.updates, "updates", updates_, 0, 1000000000, "N",                    \
                    "how long to train"),                                                          \
        HEED_OPTION_INT(owner, at.batch, "batch", batch_, 1, 100000, "N", "examples in a batch"),  \
        HEED_OPTION_INT(owner, at.valid_every, "valid-every", valid_every_, 1, 1000000000, "N",    \
                        "validate every N updates; the best weights are kept"),                    \
        HEED_OPTION_CHOICE(owner, at.optimizer, "optimizer", optimizer_,                           \
                           HEED_WORDS("sgd", "adam", "adamw", "rmsprop"), "how weights move"),     \
        HEED_OPTION_REAL(owner, at.rate, "rate", rate_, 0, 100, "R", "learning rate"),             \
        HEED_OPTION_REAL(owner, at.rate_end, "rate-end", NULL, 0, 100, "R",                        \
                         "falls to this along half a cosine; 0: stays"),                           \
        HEED_OPTION_REAL(owner, at.momentum, "momentum", momentum_, 0, 1, "R", "SGD, RMSProp"),    \
        HEED_OPTION_REAL(owner, at.clip_norm, "clip-norm", clip_norm_, 0, 1e9, "R",                \
                         "largest norm of a gradient; 0: none"),                                   \
        HEED_OPTION_REAL(owner, at.clip_value, "clip-value", clip_value_, 0, 1e9, "R",             \
                         "largest element of a gradient; 0: none")

/* A measured number and what was to be reached: AT_MOST, AT_LEAST, or nothing. */
typedef enum lab_relation { LAB_NO_TARGET, LAB_AT_MOST, LAB_AT_LEAST } lab_relation;
typedef struct lab_figure {
    char name[96];
    double value;
    lab_relation relation;
    double target;
} lab_figure;
bool lab_figure_met(const lab_figure *f);

typedef struct lab_session {
    const lab_common *options;
    heed_train_hooks hooks;
    heed_arena *arena;   /* for as long as the run */
    const char *folder;  /* that is made, or resumed */
    lab_figure *figures; /* (count) */
    int count, room;
    uint64_t seed;  /* of the model at hand */
    bool chosen;    /* it is the one that is kept: its figures have targets */
    bool stopped;   /* by hooks.stop: the run can be resumed */
    double seconds; /* of training, validation included, earlier runs too */
} lab_session;

/* A system that is to be trained and measured.  The context is the lab's own.  Functions with
 * heed_task's names do what they do there (train.h). */
typedef struct lab_system {
    void *context;
    const char *unit;             /* of the loss */
    int sets;                     /* of parameters, in the order in which they take turns; 0: one */
    const char *const *set_names; /* if there are several: "generator", "critic" */
    const char *best;             /* the measure that decides; NULL: the first */
    const double *betas;          /* of Adam, two; NULL: 0.9, 0.999 */
    const char *const *may_change; /* on resume: options of the tests; ended by NULL, or NULL */
    /* Declares the parameters of a set, once for each seed: what follows uses those declared
     * last. */
    void (*build)(void *context, int set, heed_scope s);
    /* The loss of one micro-batch, pass->weight times the mean over its examples; examples are
     * drawn with pass->rng, or were by next. */
    heed_tensor *(*loss)(void *context, heed_tape *t, const heed_pass *pass, double *sum);
    heed_status (*next)(void *context, int64_t update, int micros, heed_portion *portion,
                        heed_error *err);              /* or NULL */
    int (*data)(void *context, heed_fingerprint *out); /* or NULL */
    heed_status (*validate)(void *context, heed_tape *t, heed_measure *out, int *count,
                            heed_error *err);
    /* Reports figures; draws pictures of the model that is kept. */
    heed_status (*evaluate)(void *context, lab_session *r, heed_tape *t, heed_error *err);
    heed_status (*draw)(void *context, lab_session *r, heed_tape *t, heed_error *err);
} lab_system;

typedef struct lab {
    const char *name;
    const heed_option_set *options; /* of `heed lab NAME` */
    size_t settings;                /* bytes of what they are parsed into: a struct that begins
                                       with the lab_common */
    heed_status (*run)(lab_session *r, const void *settings, heed_error *err);
} lab;
#define LAB_LIST(X)                                                                                \
    X(caption) X(long) X(lstmn) X(ntm) X(pointer) X(retrieve) X(sagan) X(snail) X(vit)
#define LAB_DECLARE(name) extern const lab lab_##name;
LAB_LIST(LAB_DECLARE)

/* The whole of it: trains the system once for each seed, or goes on with that, evaluates all, keeps
 * the one that is best on validation, draws, and writes model.safetensors, config.json,
 * results.json; log and curves are in training/.  With several seeds each has a folder of its own,
 * seed-1, and the best one's weights are copied. */
heed_status lab_experiment(lab_session *r, const lab *l, const void *settings,
                           const lab_system *system, heed_error *err);

/* Keeps a figure; format makes its name.  What could not be measured is NAN. */
void lab_report(lab_session *r, double value, lab_relation relation, double target,
                const char *format, ...) HEED_PRINTF(5, 6);
/* Writes a text into the model directory. */
heed_status lab_write(lab_session *r, const char *name, const char *text, heed_error *err);
/* results.json as a text in the run's arena; NULL when memory is short. */
const char *lab_results(const lab_session *r, const lab *l, const void *settings);
/* Sets the error, as the library does: the first one stays.  Returns its status. */
heed_status lab_fail(heed_error *err, heed_status status, const char *format, ...)
    HEED_PRINTF(3, 4);

#endif
