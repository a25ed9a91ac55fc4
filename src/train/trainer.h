/* trainer.h: what the files of the trainer share.
 *
 *     recipe.c      options: stored, compared on resume;  recipe_check.c  which are refused
 *     translation_new.c   model and directory: what comes before the first update;  stage.c  where
 *     translation_text.c  corpora and vocabularies
 *     trainer.c     the loop
 *     update.c      one update
 *     checkpoint.c  saves;  state.c  their state.json;  prune.c  which stay;  average.c  their mean
 *     translation_valid.c  loss and translations of the validation set
 *     log_jsonl.c, tensorboard.c, curves.c   what a run leaves to look at */
#ifndef HEED_TRAIN_TRAINER_H
#define HEED_TRAIN_TRAINER_H

#include "base/error.h"
#include "base/file.h"
#include "base/folder.h"
#include "base/memory.h"
#include "data/names.h"
#include "tensor/finite.h"
#include <heed/train.h>

#define HEED_MAX_AVERAGE 100
#define HEED_MAX_KEEP 100
/* A loss that is not a number, or above HEED_EXPLODED nats a token, sends training back to the last
 * save with the learning rate times HEED_ROLLBACK_RATE; after so many times it stops. */
#define HEED_MAX_ROLLBACKS 3
#define HEED_ROLLBACK_RATE 0.5
#define HEED_EXPLODED 100.0

/* One save that the average at the end may take. */
typedef struct heed__ranked_save {
    int64_t update;
    double score; /* higher is better, whatever the metric; 0 for AVERAGE_LAST */
} heed__ranked_save;

/* What a save holds beside weights and moments: with it a run goes on as if it had not stopped. */
typedef struct heed__train_state {
    int64_t update;
    heed_batches_position position;
    int64_t rollbacks;
    double seconds;       /* of training */
    double valid_seconds; /* at the last validation */
    double valid_loss, bleu, chrf;
    int64_t best_update; /* -1: none yet */
    double best;         /* in the metric's own unit */
    double best_loss;    /* of that validation: decides between equal scores */
    int64_t stale;       /* validations since then */
    int64_t valid_update;
    double nll; /* since the last line of the log */
    int64_t tokens;
    int64_t log_bytes;
    /* Of the training data, and of the validation data.  All but the first three are -1 in saves of
     * old, which do not say. */
    int64_t pairs, source_bytes, target_bytes, checksum;
    int64_t valid_pairs, valid_source_bytes, valid_target_bytes, valid_checksum;
    heed__ranked_save candidates[HEED_MAX_AVERAGE];
    int n_candidates;
    int64_t saves[HEED_MAX_KEEP]; /* of the schedule, oldest first */
    int n_saves;
} heed__train_state;

typedef struct heed__log heed__log;
typedef struct heed__events heed__events;

struct heed_trainer {
    heed_allocator allocator;
    heed_arena *arena; /* texts of the recipe, paths */
    heed_recipe recipe;
    heed_train_hooks hooks;
    const char *folder;
    const char *place; /* where the files are now: the folder, or beside it until it is complete */
    int lock;          /* descriptor, -1: none */
    heed_corpus *corpus, *valid;
    heed_vocab *source, *target;
    heed_text_config text;
    heed_text_config from; /* of the model that it starts from; resumed: of the run itself */
    heed__names *names;    /* that are not copied; NULL: none are */
    int64_t extra_length;  /* of translations in validation */
    heed_model *model;
    heed_params *params; /* the model's */
    heed_optimizer *optimizer;
    heed_ema *ema; /* or NULL */
    heed_tape *tape;
    heed_batches *batches;
    heed_batch *micro; /* (accumulate) */
    heed_schedule schedule;
    heed__train_state state;
    int64_t saved_update; /* -1: none in this run */
    bool saved_scheduled; /* that one */
    bool told_long;       /* how many pairs are too long */
    bool stopped;         /* in the middle of a validation, which a resumed run makes up for */
    heed__log *log;
    heed__events *events;
    int64_t epoch_bytes; /* target bytes of this epoch so far, in this run */
    double clock;        /* when this run's training seconds began to count */
    double saved_clock;
    double speed_seconds; /* since the last line of the log */
    int64_t speed_tokens;
    heed_train_progress progress;
};

/* ---- recipe_check.c ---- */
heed_status heed__recipe_check(const heed_recipe *r, heed_error *err);

/* ---- recipe.c ---- */
extern const heed_option_set heed__recipe_set;
/* Fills in what "not given" stands for. */
void heed__recipe_resolve(heed_recipe *r);
/* Fills in what the model of --from has: shape, tokens, vocabularies.  Texts live in the arena. */
heed_status heed__recipe_start_from(heed_recipe *r, heed_text_config *text, heed_arena *arena,
                                    heed_error *err);
/* Makes file names absolute, so that a run can be resumed from anywhere. */
heed_status heed__recipe_absolute(heed_recipe *r, heed_arena *arena, heed_error *err);
heed_status heed__recipe_write(const heed_recipe *r, const char *path, heed_error *err);
/* Refuses what may not change; *new_bits is set when something changes the arithmetic. */
heed_status heed__recipe_may_become(const heed_recipe *from, const heed_recipe *to,
                                    const char *folder, bool *new_bits, heed_error *err);
bool heed__metric_better(int metric, double score, double than);
const char *heed__metric_name(int metric);

/* ---- translation_text.c ---- */
heed_status heed__trainer_open_corpora(heed_trainer *t, heed_error *err);
/* new: they are learned, or copied, into t->place first.  Sets the model's sizes. */
heed_status heed__trainer_open_vocabularies(heed_trainer *t, bool new_folder, heed_error *err);
/* new: learned first.  None are opened where the model has no placeholders. */
heed_status heed__trainer_open_names(heed_trainer *t, bool new_folder, heed_error *err);
/* Sets text and extra_length from the sentence pairs. */
heed_status heed__trainer_measure_text(heed_trainer *t, heed_error *err);

/* ---- translation_new.c ---- */
/* Of a pair on either side, EOS included; and the option that sets it. */
int64_t heed__trainer_max_tokens(const heed_trainer *t);
const char *heed__trainer_max_tokens_option(const heed_trainer *t);
/* Of the pairs, those that have more, reckoned from as many as were drawn. */
int64_t heed__trainer_left_out(const heed_trainer *t);
void heed__trainer_say(const heed_trainer *t, heed_log_level level, const char *format, ...)
    HEED_PRINTF(3, 4);
/* A copy that lives as long as the trainer. */
const char *heed__trainer_keep_text(heed_trainer *t, const char *text, heed_error *err);
/* Moves the prepared folder to its own name, with a first save in it. */
heed_status heed__trainer_settle(heed_trainer *t, heed_error *err);

/* ---- stage.c ---- */
/* Makes the folder in which a new one is prepared, and locks it: t->place. */
heed_status heed__trainer_stage(heed_trainer *t, heed_error *err);
/* STATE if another process trains t->place. */
heed_status heed__trainer_lock(heed_trainer *t, heed_error *err);

/* ---- update.c ---- */
typedef struct heed__update {
    double nll; /* sum over target tokens, not smoothed */
    int64_t source_tokens, target_tokens, pairs, target_bytes;
    int64_t epoch;
    double norm, rate;
    heed__origin origin; /* of a loss that is not finite */
} heed__update;
/* Update number state.update + 1.  NUMERIC, with the first bad tensor named, if it must not be
 * believed; the weights have not moved then. */
heed_status heed__trainer_update(heed_trainer *t, heed__update *u, heed_error *err);
/* NUMERIC if `loss`, a token and described by `what`, or the weights that the last update left
 * must not be believed. */
heed_status heed__trainer_believe(const heed_trainer *t, const char *what, double loss,
                                  heed_error *err);

/* ---- optimizer.c ---- */
/* heed_optimizer_step without the state: an update with several sets folds it in at its end. */
void heed__optimizer_step(heed_optimizer *o, double rate, int threads);

/* ---- checkpoint.c ---- */
/* scheduled: at an update that the recipe decides, not the clock or a signal. */
heed_status heed__checkpoint_save(heed_trainer *t, bool scheduled, heed_error *err);
/* The newest whole save; older ones, with a warning, where newer ones are damaged. */
heed_status heed__checkpoint_load_newest(heed_trainer *t, heed_error *err);
/* The last scheduled save; removes the newer ones. */
heed_status heed__checkpoint_roll_back(heed_trainer *t, heed_error *err);
/* Makes training/latest the save of state.update. */
heed_status heed__checkpoint_point_latest(const heed_trainer *t, heed_error *err);
void heed__save_point(const heed_trainer *t, const char *where);
#define HEED_SAVED_WEIGHTS "model.safetensors"
#define HEED_SAVED_AVERAGE "average.safetensors"

/* ---- moments.c ---- */
/* The optimiser's moments of the set p, by name. */
heed_status heed__moments_save(const heed_optimizer *o, const heed_params *p, const char *path,
                               heed_error *err);
heed_status heed__moments_load(heed_optimizer *o, const heed_params *p, const char *path,
                               heed_error *err);

/* ---- state.c ---- */
/* state.json of a save, with the checksums of its files. */
#define HEED_SAVE_FILES 3
typedef struct heed__save_file {
    char name[32];
    heed__checksum sum;
} heed__save_file;
heed_status heed__state_write(const char *path, const heed__train_state *s, int64_t optimizer,
                              int64_t ema, const heed__save_file *files, int count,
                              heed_error *err);
heed_status heed__state_read(const char *path, heed__train_state *s, int64_t *optimizer,
                             int64_t *ema, heed__save_file files[HEED_SAVE_FILES], int *count,
                             heed_error *err);

/* ---- prune.c ---- */
/* Saves and weights before update `below` that nothing needs any more; saves after an update; what
 * a kill left of one. */
heed_status heed__prune_unneeded(const heed_trainer *t, int64_t below, heed_error *err);
heed_status heed__prune_newer(const heed_trainer *t, int64_t update, heed_error *err);
heed_status heed__prune_unfinished(const heed_trainer *t, heed_error *err);
/* The weights of a save, whether it is whole or only its weights were kept. */
heed_status heed__checkpoint_weights(const heed_trainer *t, int64_t update, heed__pathname path,
                                     heed_error *err);

/* ---- average.c ---- */
void heed__candidates_add(heed_trainer *t, bool validated);
bool heed__candidates_hold(const heed__train_state *s, int64_t update);
/* Replaces the weights by the mean of the candidates'; *count: how many could be read. */
heed_status heed__candidates_average(heed_trainer *t, int *count, heed_error *err);

/* ---- translation_valid.c ---- */
typedef struct heed__validation {
    double loss, bleu, chrf; /* NAN where not measured */
    bool stopped;            /* somebody asked to: nothing above counts */
} heed__validation;
heed_status heed__trainer_validate(heed_trainer *t, heed__validation *v, heed_error *err);
/* Whether there is something to validate with. */
heed_status heed__trainer_check_valid(const heed_trainer *t, heed_error *err);
/* What the weights make of the batch that is in hand; 0 if there is none yet. */
heed_status heed__trainer_probe(heed_trainer *t, double *loss, heed_error *err);

/* ---- log_jsonl.c ---- */
/* Opens path at `bytes`, what follows is cut off: a resumed run writes it again. */
heed__log *heed__log_open(const char *path, int64_t bytes, const heed_allocator *allocator,
                          heed_error *err);
void heed__log_close(heed__log *l);
int64_t heed__log_bytes(const heed__log *l);
heed_status heed__log_progress(heed__log *l, const heed_train_progress *p, heed_error *err);
heed_status heed__log_rollback(heed__log *l, int64_t from, int64_t to, const char *why,
                               heed_error *err);

/* ---- tensorboard.c ---- */
heed__events *heed__events_open(const char *folder, const heed_allocator *allocator,
                                heed_error *err);
void heed__events_close(heed__events *e);
heed_status heed__events_scalar(heed__events *e, const char *tag, int64_t step, double value,
                                heed_error *err);

/* ---- curves.c ---- */
/* training/curves.svg from training/log.jsonl. */
heed_status heed__curves_write(const heed_trainer *t, heed_error *err);

#endif
