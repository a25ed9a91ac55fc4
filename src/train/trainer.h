/* trainer.h: what the files of the trainer share.  It knows no data: what is trained is a task.
 *
 *     open.c        new and resumed trainers;  stage.c  where a new folder is prepared
 *     loop.c        the loop;  decide.c  every decision of it
 *     update.c      one update;  gradients.c  those of its micro-batches
 *     overlapped_sum.c  their sums over processes;  forecast.c  what updates cost
 *     together.c    several processes
 *     checkpoint.c  saves;  state.c  their state.json;  moments.c;  prune.c  which stay
 *     average.c     the mean of several;  validate.c  which are best
 *     loop_options.c  the loop's options;  stored_options.c  those of a run, on disk
 *     log_jsonl.c, tensorboard.c, train_curves.c   what a run leaves to look at */
#ifndef HEED_TRAIN_TRAINER_H
#define HEED_TRAIN_TRAINER_H

#include "base/error.h"
#include "base/file.h"
#include "base/folder.h"
#include "base/memory.h"
#include "dist/exact_sum.h"
#include "tensor/finite.h"
#include <heed/train.h>

#define HEED_MAX_AVERAGE 100
#define HEED_MAX_KEEP 100
/* A loss that is not a number, or above the task's largest, sends training back to the last save
 * with the learning rate times HEED_ROLLBACK_RATE; after HEED_MAX_ROLLBACKS times it stops. */
#define HEED_MAX_ROLLBACKS 3
#define HEED_ROLLBACK_RATE 0.5

/* One save that the average at the end may take. */
typedef struct heed__ranked_save {
    int64_t update;
    double score; /* higher is better, whatever the measure; 0 for AVERAGE_LAST */
} heed__ranked_save;

/* What a save holds beside weights and moments: with it a run goes on as if it had not stopped.
 * Names live in the trainer's arena or with the task. */
typedef struct heed__train_state {
    int64_t update;
    heed_position position;
    int64_t rollbacks;
    double seconds;                          /* of training */
    double valid_seconds;                    /* at the last validation */
    heed_measure measure[HEED_MAX_MEASURES]; /* of the last validation */
    int measures;
    int64_t best_update; /* -1: none yet */
    heed_measure best;
    double best_first;    /* the first measure of that validation: decides between equal ones */
    int64_t stale;        /* validations since then */
    int64_t valid_update; /* of the last one; -1: none yet */
    double sum[HEED_MAX_SETS]; /* of the losses since the last line of the log */
    double terms;
    int64_t log_bytes;
    heed_fingerprint data[HEED_MAX_FINGERPRINTS];
    int n_data;
    heed__ranked_save candidates[HEED_MAX_AVERAGE];
    int n_candidates;
    int64_t saves[HEED_MAX_KEEP]; /* of the schedule, oldest first */
    int n_saves;
} heed__train_state;

typedef struct heed__log heed__log;
typedef struct heed__overlap heed__overlap;
typedef struct heed__events heed__events;

/* A set of parameters in training. */
typedef struct heed__trained_set {
    heed_params *params; /* the task's */
    heed_optimizer *optimizer;
    heed_ema *ema; /* or NULL; rank 0 alone has one */
    double *moved; /* of state: the total, and what each rank adds to it; NULL: none, or one
                      micro-batch */
} heed__trained_set;

/* What a micro-batch tells the others. */
typedef struct heed__told {
    double sum;
    char op[64], parameter[200]; /* heed__origin */
    bool asked;                  /* to stop, on its rank */
    double busy;                 /* seconds of its rank in all rounds, waiting not counted */
} heed__told;

/* What a rank has done since the last line of the log. */
typedef struct heed__rank_work {
    double items, busy;
} heed__rank_work;

struct heed_trainer {
    heed_allocator allocator;
    heed_arena *arena; /* paths, names */
    heed_task task;
    heed_loop_options loop;
    heed_train_hooks hooks;
    const char *folder;
    const char *place; /* where the files are now: the folder, or beside it until it is complete */
    int lock;          /* descriptor, -1: none */
    heed__trained_set set[HEED_MAX_SETS];
    int sets;
    heed_ranks *ranks;
    heed__exact_sum *sum;   /* NULL: one micro-batch */
    heed__overlap *overlap; /* NULL: one rank */
    heed_real *bucket;      /* one, of moments on their way; with --shard-optimizer */
    double *squares;        /* of gradients, a sum a block: of this rank, then of all */
    heed__rank_work *work;  /* (ranks) */
    double *rank_speed;     /* (ranks) items a second; of progress */
    double waited;          /* seconds for sums of gradients; see heed__waited */
    heed__told *told;       /* (2 * accumulate) of this rank, then of all */
    bool asked;             /* some rank was asked to stop */
    heed_tape *tape;
    heed_portion *portion; /* (accumulate), of the batches in hand; terms are 0 before the first */
    heed_schedule schedule;
    heed__train_state state;
    int64_t saved_update; /* -1: none in this run */
    bool saved_scheduled; /* that one */
    heed__log *log;
    heed__events *events;
    double share; /* of this epoch so far, in this run */
    double clock; /* when this run's training seconds began to count */
    double saved_clock;
    double speed_seconds; /* since the last line of the log */
    double speed_items;
    heed_train_progress progress;
};

/* ---- open.c ---- */
void heed__trainer_say(const heed_trainer *t, heed_log_level level, const char *format, ...)
    HEED_PRINTF(3, 4);
/* A copy that lives as long as the trainer. */
const char *heed__trainer_keep_text(heed_trainer *t, const char *text, heed_error *err);
/* The weights of all sets, where a program finds them. */
heed_status heed__trainer_save_models(heed_trainer *t, heed_error *err);
/* Moves the prepared folder to its own name, with a first save in it. */
heed_status heed__trainer_settle(heed_trainer *t, heed_error *err);

/* ---- stage.c ---- */
/* A path in t->place.  It fits, because the name of a folder that leaves no room for any of them is
 * refused before anything is made. */
void heed__trainer_path(const heed_trainer *t, heed__pathname path, const char *format, ...)
    HEED_PRINTF(3, 4);
heed_status heed__folder_leaves_room(const char *folder, heed_error *err);
/* Makes the folder in which a new one is prepared, and locks it: t->place. */
heed_status heed__trainer_stage(heed_trainer *t, heed_error *err);
/* ARGUMENT if there is something in the place of a new folder. */
heed_status heed__folder_is_free(const char *folder, heed_error *err);
/* STATE if another process trains t->place. */
heed_status heed__trainer_lock(heed_trainer *t, heed_error *err);

/* ---- decide.c ---- */
/* What is to be done.  All that a clock or a signal can bring about is decided here and nowhere
 * else, so that several processes can be made to agree in one place. */
typedef struct heed__decision {
    bool stop;      /* somebody asked: save and end */
    bool roll_back; /* what was just done diverged */
    bool last;      /* a limit is reached: `reason` */
    bool validate;
    bool save;
    bool scheduled; /* the save is the loop's, not one of the clock */
    heed_train_reason reason;
} heed__decision;
typedef enum heed__moment {
    HEED__UPDATED,  /* or resumed, or begun */
    HEED__MEASURED, /* a validation is over, its numbers are not taken yet */
    HEED__FINISHED, /* everything that an update asked for is done */
} heed__moment;
/* status: of what was done at this moment. */
heed__decision heed__decide(heed_trainer *t, heed__moment moment, heed_status status);
/* Done of the nearest of the limits, in [0,1]. */
double heed__fraction_done(const heed_trainer *t);
/* Brings state.seconds up to now. */
void heed__trainer_tick(heed_trainer *t);

/* ---- update.c ---- */
typedef struct heed__update {
    double sum[HEED_MAX_SETS]; /* of the losses, over the terms */
    double norm[HEED_MAX_SETS];
    double terms, items, share;
    int64_t epoch;
    double rate;
    heed__origin origin; /* of a loss that is not finite */
    int set;             /* that it belongs to */
} heed__update;
/* Update number state.update + 1.  NUMERIC, with the first bad tensor named, if it must not be
 * believed; the weights have not moved then. */
heed_status heed__trainer_update(heed_trainer *t, heed__update *u, heed_error *err);
/* NUMERIC if the weights that the last update left are not finite, or the loss (a term, described
 * by `what`) is not or is too large. */
heed_status heed__trainer_believe(const heed_trainer *t, const char *what, double loss,
                                  heed_error *err);
/* The same, with what the weights make of the batches in hand. */
heed_status heed__trainer_probe(heed_trainer *t, heed_error *err);

/* ---- gradients.c ---- */
/* Of an update, on each rank. */
int heed__trainer_rounds(const heed_trainer *t);
/* The task's loss of a micro-batch for a set; adds to *sum what it is without its weight. */
heed_tensor *heed__trainer_loss(heed_trainer *t, int64_t update, int set, int micro, double weight,
                                double *sum);
heed_status heed__gradients_open(heed_trainer *t, heed_error *err);
/* An update: start, make for each set, finish. */
void heed__gradients_start(heed_trainer *t);
/* Those of all micro-batches, added up, on all ranks; and u->sum and u->origin. */
heed_status heed__gradients_make(heed_trainer *t, int set, heed__update *u, heed_error *err);
void heed__gradients_finish(heed_trainer *t);
/* Seconds of this rank for the others, since the last line of the log. */
double heed__waited(const heed_trainer *t);

/* ---- overlapped_sum.c ---- */
/* Borrows the sum, of buffers of at most `most` elements. */
heed__overlap *heed__overlap_new(heed__exact_sum *sum, int64_t most,
                                 const heed_allocator *allocator, heed_error *err);
void heed__overlap_free(heed__overlap *o);
/* Between begin and end the caller calls heed_backward for a loss of p; then its gradients are
 * summed as heed__exact_sum_add does.  *waited: seconds are added. */
void heed__overlap_begin(heed__overlap *o, heed_tape *tape, heed_params *p, int64_t round,
                         bool share);
heed_status heed__overlap_end(heed__overlap *o, heed_tape *tape, double *waited, heed_error *err);

/* ---- together.c ---- */
/* Rank 0: what the others open the task from. */
heed_status heed__together_give(heed_trainer *t, heed_error *err);
/* Before the first update: the same options and data everywhere, and rank 0's weights. */
heed_status heed__together_meet(heed_trainer *t, heed_error *err);
/* Rank 0 has loaded a save. */
heed_status heed__together_share(heed_trainer *t, heed_error *err);
/* Moments that each rank has a part of: all of them at rank 0, to be saved; zero, to be loaded; no
 * longer.  Nothing where they are not in parts. */
heed_status heed__whole_gather(heed_trainer *t, heed_error *err);
heed_status heed__whole_zero(heed_trainer *t, heed_error *err);
void heed__whole_forget(heed_trainer *t);
/* The sum whose parts the ranks own moments of; NULL: each has all. */
const heed__exact_sum *heed__parts(const heed_trainer *t);
/* The weights of all ranks, after each has moved its own. */
heed_status heed__together_weights(heed_trainer *t, int set, heed_error *err);
/* heed_grad_norm of gradients of which each rank has its part. */
heed_status heed__together_norm(heed_trainer *t, int set, double *norm, heed_error *err);
/* Rank 0's decision, and what it failed in, on all ranks. */
heed_status heed__together_agree(heed_trainer *t, heed__decision *d, heed_status status,
                                 heed_error *err);

/* ---- clip.c ---- */
/* A norm is the root of a sum over blocks of this size, in their order. */
#define HEED_NORM_BLOCK 4096
void heed__grad_squares(const heed_real *grads, int64_t size, double *sum, int threads);
/* heed_clip_norm for a norm that is known. */
void heed__clip_to(heed_params *p, double norm, double limit, int threads);

/* ---- optimizer.c ---- */
/* An optimiser of the parts that this rank owns alone; the others' moments it does not have.
 * heed_optimizer_moment gives all of them between whole and part, as they stand in `whole` buffers
 * of this rank, which are zero at first; NULL otherwise. */
heed_optimizer *heed__optimizer_of_parts(heed_params *p, const heed_optimizer_options *options,
                                         const heed__exact_sum *sum,
                                         const heed_allocator *allocator, heed_error *err);
heed_status heed__optimizer_whole(heed_optimizer *o, heed_error *err);
void heed__optimizer_part(heed_optimizer *o);
/* This rank's own moments of a bucket. */
heed_real *heed__optimizer_own(const heed_optimizer *o, int i, int64_t bucket);
/* heed_optimizer_step without the state: an update with several sets folds it in at its end. */
void heed__optimizer_step(heed_optimizer *o, double rate, int threads);

/* ---- validate.c ---- */
typedef struct heed__validation {
    heed_measure measure[HEED_MAX_MEASURES];
    int measures;
} heed__validation;
/* Of the weights as they are.  NUMERIC if they are not finite. */
heed_status heed__trainer_measure(heed_trainer *t, heed__validation *v, heed_error *err);
/* Of the moving averages, if there are any. */
heed_status heed__trainer_validate(heed_trainer *t, heed__validation *v, heed_error *err);
/* Takes its numbers, and publishes the weights if they are the best so far. */
heed_status heed__trainer_take(heed_trainer *t, const heed__validation *v, heed_error *err);
/* Writes the weights in use where a program finds them. */
heed_status heed__trainer_publish(heed_trainer *t, heed_error *err);
/* The one that decides; its name is NULL if there is none. */
heed_measure heed__deciding(const heed_trainer *t, const heed_measure *measure, int measures);
bool heed__measure_better(const heed_measure *m, double than);
void heed__swap_averages(heed_trainer *t);

/* ---- checkpoint.c ---- */
/* "model.safetensors", and "model-critic.safetensors" of a set that is not the first. */
typedef char heed__set_file[64];
void heed__name_set_file(const heed_trainer *t, int set, const char *what, heed__set_file name);
/* The same in t->place. */
void heed__set_path(const heed_trainer *t, int set, const char *what, heed__pathname path);
/* scheduled: at an update that the loop decides, not the clock or a signal. */
heed_status heed__checkpoint_save(heed_trainer *t, bool scheduled, heed_error *err);
/* The newest whole save; older ones, with a warning, where newer ones are damaged. */
heed_status heed__checkpoint_load_newest(heed_trainer *t, heed_error *err);
/* The last scheduled save; removes the newer ones. */
heed_status heed__checkpoint_roll_back(heed_trainer *t, heed_error *err);
/* Makes training/latest the save of state.update. */
heed_status heed__checkpoint_point_latest(const heed_trainer *t, heed_error *err);
void heed__save_point(const heed_trainer *t, const char *where);

/* ---- moments.c ---- */
/* The optimiser's moments of the set p, by name. */
heed_status heed__moments_save(const heed_optimizer *o, const heed_params *p, const char *path,
                               heed_error *err);
heed_status heed__moments_load(heed_optimizer *o, const heed_params *p, const char *path,
                               heed_error *err);

/* ---- state.c ---- */
/* state.json of a save, with the checksums of its files. */
#define HEED_SAVE_FILES (3 * HEED_MAX_SETS)
typedef struct heed__save_file {
    heed__set_file name;
    heed__checksum sum;
} heed__save_file;
/* What a save's other numbers are: updates of each set's optimiser and average, and the files. */
typedef struct heed__save_parts {
    int64_t optimizer[HEED_MAX_SETS], ema[HEED_MAX_SETS];
    int sets;
    heed__save_file files[HEED_SAVE_FILES];
    int n_files;
} heed__save_parts;
heed_status heed__state_write(const char *path, const heed__train_state *s,
                              const heed__save_parts *parts, heed_error *err);
/* Names live in the arena. */
heed_status heed__state_read(const char *path, heed__train_state *s, heed__save_parts *parts,
                             heed_arena *arena, heed_error *err);

/* ---- prune.c ---- */
/* Saves and weights before update `below` that nothing needs any more; saves after an update; what
 * a kill left of one. */
heed_status heed__prune_unneeded(const heed_trainer *t, int64_t below, heed_error *err);
heed_status heed__prune_newer(const heed_trainer *t, int64_t update, heed_error *err);
heed_status heed__prune_unfinished(const heed_trainer *t, heed_error *err);
/* The weights of a set in a save, whether it is whole or only its weights were kept. */
void heed__checkpoint_weights(const heed_trainer *t, int64_t update, int set, heed__pathname path);

/* ---- average.c ---- */
void heed__candidates_add(heed_trainer *t, bool validated);
bool heed__candidates_hold(const heed__train_state *s, int64_t update);
/* Replaces the weights by the mean of the candidates'; *count: how many could be read. */
heed_status heed__candidates_average(heed_trainer *t, int *count, heed_error *err);

/* ---- stored_options.c ---- */
heed_status heed__options_write(const heed_trainer *t, heed_error *err);
/* Refuses, by name, what may not change on resume. */
heed_status heed__options_check(const heed_trainer *t, heed_error *err);

/* ---- log_jsonl.c ---- */
/* Opens path at `bytes`, what follows is cut off: a resumed run writes it again. */
heed__log *heed__log_open(const char *path, int64_t bytes, const heed_allocator *allocator,
                          heed_error *err);
void heed__log_close(heed__log *l);
int64_t heed__log_bytes(const heed__log *l);
heed_status heed__log_progress(heed__log *l, const heed_train_progress *p, heed_error *err);
heed_status heed__log_rollback(heed__log *l, int64_t from, int64_t to, const char *why,
                               heed_error *err);
/* "loss" of the only set, "loss_critic" of one of several: for the log, curves and TensorBoard. */
typedef char heed__log_key[64];
void heed__set_key(const heed_task *task, const char *what, int set, heed__log_key key);
/* "bleu" of the measure "BLEU": small letters, no blanks. */
void heed__measure_key(const char *name, heed__log_key key);

/* ---- tensorboard.c ---- */
heed__events *heed__events_open(const char *folder, const heed_allocator *allocator,
                                heed_error *err);
void heed__events_close(heed__events *e);
heed_status heed__events_scalar(heed__events *e, const char *tag, int64_t step, double value,
                                heed_error *err);
/* What heed__log_progress writes. */
heed_status heed__events_progress(heed__events *e, const heed_train_progress *p, heed_error *err);

/* ---- train_curves.c ---- */
/* training/curves.svg from training/log.jsonl. */
heed_status heed__curves_write(const heed_trainer *t, heed_error *err);

#endif
