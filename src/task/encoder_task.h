/* encoder_task.h (internal): what the files of the encoders' tasks share.
 *
 *     encoder_recipe.c    options: presets, what stands for "not given", which are refused
 *     encoder_defaults.c  what is chosen for the data
 *     encoder_from.c      what another model brings: shape, vocabulary, weights
 *     encoder_data.c      examples and text as sequences of tokens
 *     encoder_batches.c   batches of them: order, hidden tokens, masks
 *     encoder_task.c      the task: model, losses
 *     encoder_valid.c     loss and figures of the validation set */
#ifndef HEED_TASK_ENCODER_TASK_H
#define HEED_TASK_ENCODER_TASK_H

#include "base/error.h"
#include "base/folder.h"
#include "base/memory.h"
#include "encoder/sequences.h"
#include "task/run_options.h"

/* An example, or a block of a text, as the model reads it. */
typedef struct heed__item {
    heed__read read[2]; /* embed: both texts; else the first */
    int32_t label;
    const int32_t *tag; /* of the words that read[0] has */
    double score;       /* from 0 to 1; NAN: none */
} heed__item;
typedef struct heed__item_set {
    heed_examples *examples; /* NULL: it is plain text */
    heed__item *item;        /* (count) in the arena */
    int64_t count, tokens, cut;
    uint32_t checksum;
} heed__item_set;

typedef struct heed__encoding heed__encoding;
struct heed__encoding {
    heed_allocator allocator;
    heed_arena *arena; /* texts of the recipe, items */
    heed_encoder_recipe recipe;
    heed_train_hooks hooks;
    heed_text_config text;
    const char *folder; /* where its files are while it is opened */
    heed_vocab *vocab;
    const char *const *labels;
    int64_t label_count;
    bool spans; /* the tags name spans */
    double least_score, most_score;
    heed__item_set train, valid;
    heed_model *model;
    /* The order of an epoch's items, and where it stands. */
    int64_t *order, ordered;
    heed_position position;
    heed_arena *passing; /* of the batches in hand */
    heed_batch *micro;   /* (accumulate); examples are pairs for embed: first all first texts */
    double **score;      /* (accumulate) of the pairs; NULL: they have none */
};

void heed__encoding_say(const heed__encoding *t, heed_log_level level, const char *format, ...)
    HEED_PRINTF(3, 4);

/* ---- encoder_recipe.c ---- */
extern const heed_option_set heed__encoder_set;
void heed__encoder_resolve(heed_encoder_recipe *r);
heed_status heed__encoder_absolute(heed_encoder_recipe *r, heed_arena *arena, heed_error *err);
heed_status heed__encoder_check(const heed_encoder_recipe *r, heed_error *err);
/* The files that a task learns from, and those that it validates with. */
const heed_option_list *heed__encoder_files(const heed_encoder_options *o);
const heed_option_list *heed__encoder_valid_files(const heed_encoder_options *o);

/* ---- encoder_defaults.c ---- */
/* Fills in what was not given, for the examples of t (mlm: for the bytes of its text), and says
 * what and why. */
heed_status heed__encoder_choose(heed__encoding *t, heed_error *err);

/* ---- encoder_from.c ---- */
/* Shape and text of the model to start from. */
heed_status heed__encoder_start_from(heed__encoding *t, heed_error *err);
/* Copies its vocabulary to a path; its weights into t->model. */
heed_status heed__encoder_copy_vocabulary(const heed__encoding *t, const char *path,
                                          heed_error *err);
heed_status heed__encoder_take_weights(heed__encoding *t, heed_error *err);

/* ---- encoder_data.c ---- */
/* Reads files of examples, labels and scores; not plain text. */
heed_status heed__encoder_open_examples(heed__encoding *t, heed_error *err);
/* new: it is learned, or copied, into t->folder first.  Sets the model's sizes. */
heed_status heed__encoder_open_vocabulary(heed__encoding *t, bool new_folder, heed_error *err);
/* Cuts everything into tokens; holds out what validates if nothing was given. */
heed_status heed__encoder_make_items(heed__encoding *t, heed_error *err);

/* ---- encoder_batches.c ---- */
/* Batch `at` of items order[0], order[1] ... (n); NULL: item 0, 1 ...  Returns how many were
 * taken, at least one. */
typedef struct heed__item_batch {
    heed_batch batch;
    double *score; /* (pairs) or NULL */
    int64_t taken, tokens;
} heed__item_batch;
/* rng: hides tokens (training) and draws masks; a function of it and the items alone. */
heed_status heed__encoder_batch(const heed__encoding *t, const heed__item_set *set,
                                const int64_t *order, int64_t n, bool training, const heed_rng *rng,
                                heed_arena *arena, heed__item_batch *out, heed_error *err);
heed_status heed__encoder_next(void *self, int64_t update, int micros, heed_portion *portion,
                               heed_error *err);
heed_position heed__encoder_tell(void *self);
heed_status heed__encoder_seek(void *self, heed_position p, heed_error *err);

/* ---- encoder_task.c ---- */
/* Of pairs: cosines (pairs,pairs) of first texts by second ones, or (pairs,1) where they have
 * scores. */
heed_tensor *heed__encoder_cosines(const heed_model *m, heed_tape *t, const heed_batch *batch,
                                   bool scored);

/* ---- encoder_valid.c ---- */
heed_status heed__encoder_validate(void *self, heed_tape *tape, heed_measure *out, int *count,
                                   heed_error *err);
/* The name of the measure that decides. */
const char *heed__encoder_best(const heed__encoding *t);

#endif
