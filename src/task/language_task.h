/* language_task.h (internal): what the files of the language-model task share.
 *
 *     language_recipe.c    options: presets, what stands for "not given", which are refused
 *     language_defaults.c  what is chosen for the text
 *     language_from.c      what another model brings: shape, vocabulary, weights
 *     language_text.c      vocabulary, and the text as tokens
 *     language_task.c      the task: model, blocks, losses */
#ifndef HEED_TASK_LANGUAGE_TASK_H
#define HEED_TASK_LANGUAGE_TASK_H

#include "base/error.h"
#include "base/folder.h"
#include "base/memory.h"
#include "data/token_stream.h"
#include "task/run_options.h"

#include <heed/engine.h>
#include <heed/language.h>

typedef struct heed__language_run {
    heed_allocator allocator;
    heed_arena *arena; /* texts of the recipe, paths */
    heed_language_recipe recipe;
    heed_train_hooks hooks; /* log and stop */
    const char *folder;     /* where its files are while it is opened */
    heed__text_files files, valid_files;
    heed_vocab *vocab;
    heed__token_stream train, valid;
    heed_model *model;
    /* Blocks: an epoch is the text from a place that is drawn, in stretches of `block` tokens in an
     * order that is drawn. */
    int64_t block;
    uint32_t *order; /* (blocks) of epoch `ordered`; -1: none yet */
    int64_t capacity, ordered;
    heed_position position; /* at[0]: the next block of the epoch */
    heed_arena *passing;    /* of the batches in hand */
    heed_batch *micro;      /* (micros) */
} heed__language_run;

void heed__language_say(const heed__language_run *t, heed_log_level level, const char *format, ...)
    HEED_PRINTF(3, 4);

/* ---- language_recipe.c ---- */
extern const heed_option_set heed__language_set;
void heed__language_resolve(heed_language_recipe *r);
heed_status heed__language_absolute(heed_language_recipe *r, heed_arena *arena, heed_error *err);
heed_status heed__language_check(const heed_language_recipe *r, heed_error *err);

/* ---- language_defaults.c ---- */
/* Fills in what was not given, for a text of these bytes, and says what and why.  bytes 0: of
 * everyday size, unmeasured and unsaid, so that what does not go together shows before files are
 * read. */
heed_status heed__language_choose(heed__language_run *t, int64_t bytes, heed_error *err);

/* ---- language_from.c ---- */
/* Shape and tokens of the model to start from. */
heed_status heed__language_start_from(heed__language_run *t, heed_error *err);
/* Where its vocabulary is; its weights into t->model. */
heed_status heed__language_find_vocabulary(const heed__language_run *t, heed__pathname path,
                                           heed_error *err);
heed_status heed__language_take_weights(heed__language_run *t, heed_error *err);

/* ---- language_text.c ---- */
heed_status heed__language_open_files(heed__language_run *t, heed_error *err);
/* new: it is learned, or copied, into t->folder first.  Sets the model's sizes. */
heed_status heed__language_open_vocabulary(heed__language_run *t, bool new_folder, heed_error *err);
heed_status heed__language_read_text(heed__language_run *t, heed_error *err);

#endif
