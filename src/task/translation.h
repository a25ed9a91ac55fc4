/* translation.h: what the files of the translation task share.
 *
 *     recipe.c        options: what stands for "not given", what another model brings
 *     recipe_check.c  which are refused
 *     translation.c   the task: model, batches, losses
 *     rehearsal.c     text of the model that is started from, mixed with the new one
 *     translation_text.c   corpora, vocabularies, names, lengths
 *     translation_valid.c  loss and translations of the validation set */
#ifndef HEED_TASK_TRANSLATION_H
#define HEED_TASK_TRANSLATION_H

#include "base/error.h"
#include "base/file.h"
#include "base/folder.h"
#include "base/memory.h"
#include "base/string.h"
#include "data/names.h"
#include <heed/task.h>

/* Above this loss in nats a token, training has diverged. */
#define HEED_EXPLODED 100.0

typedef struct heed__translation {
    heed_allocator allocator;
    heed_arena *arena; /* texts of the recipe, paths */
    heed_recipe recipe;
    heed_train_hooks hooks; /* log and stop */
    const char *folder;     /* where its files are while it is opened */
    heed_corpus *corpus, *valid;
    heed_corpus *rehearsal;  /* what the model of --from rehearses, a part of corpus; NULL */
    heed__string own_sample; /* the text of that, where a run begins */
    heed_vocab *source, *target;
    heed_text_config text;
    heed_text_config from; /* of the model that it starts from; resumed: of the run itself */
    heed__names *names;    /* that are not copied; NULL: none are */
    int64_t extra_length;  /* of translations in validation */
    heed_model *model;
    heed_model *teacher;     /* the model of --from as it was, for what is rehearsed; NULL */
    int64_t first_rehearsed; /* pair of the corpus */
    heed_batches *batches;
    heed_batch *micro; /* (accumulate) */
    bool told_long;    /* how many pairs are too long */
    int threads;
} heed__translation;

/* ---- translation.c ---- */
void heed__translation_say(const heed__translation *t, heed_log_level level, const char *format,
                           ...) HEED_PRINTF(3, 4);
/* Of a pair on either side, EOS included; and the option that sets it. */
int64_t heed__max_tokens(const heed__translation *t);

/* ---- recipe_check.c ---- */
heed_status heed__recipe_check(const heed_recipe *r, heed_error *err);

/* ---- recipe.c ---- */
extern const heed_option_set heed__recipe_set;
/* Fills in what "not given" stands for. */
void heed__recipe_resolve(heed_recipe *r);
/* Whether somebody asked for an option's value; plain is where nobody asked for anything. */
bool heed__recipe_given(const heed_recipe *r, const heed_recipe *plain, const char *name);
/* Fills in what the model of --from has: shape, tokens, vocabularies.  Texts live in the arena. */
heed_status heed__recipe_start_from(heed_recipe *r, heed_text_config *text, heed_arena *arena,
                                    heed_error *err);
/* Makes file names absolute, so that a run can be resumed from anywhere. */
heed_status heed__recipe_absolute(heed_recipe *r, heed_arena *arena, heed_error *err);
/* Options that may change on resume beside the loop's; ended by NULL. */
const char *const *heed__recipe_may_change(const heed_recipe *r);

/* ---- rehearsal.c ---- */
/* Mixes what the model of a folder rehearses into the corpus; nothing if it keeps no sample.
 * resumed: what this run began with. */
heed_status heed__rehearse(heed__translation *t, const char *folder, bool resumed, heed_error *err);
/* own_sample.c: the sources of the sample, and the new ones with other words, as the model of
 * --from translates them: source TAB translation, line by line. */
heed_status heed__own_sample(const heed__translation *t, const heed_corpus *sample,
                             heed__string *out, heed_error *err);
/* Puts into t->folder what it rehearses, sample and weights, and a new sample of the corpus. */
heed_status heed__keep_sample(heed__translation *t, heed_error *err);
/* The teacher, from t->folder. */
heed_status heed__open_teacher(heed__translation *t, heed_error *err);
/* heed_model_loss; in rehearsed pairs the answers that are wanted are the teacher's. */
heed_tensor *heed__rehearsed_loss(const heed__translation *t, heed_tape *tape,
                                  const heed_batch *batch, double weight, double *nll);

/* ---- translation_text.c ---- */
heed_status heed__open_corpora(heed__translation *t, heed_error *err);
/* new: they are learned, or copied, into t->folder first.  Sets the model's sizes. */
heed_status heed__open_vocabularies(heed__translation *t, bool new_folder, heed_error *err);
/* new: learned first.  None are opened where the model has no placeholders. */
heed_status heed__open_names(heed__translation *t, bool new_folder, heed_error *err);
/* Sets text and extra_length from the sentence pairs. */
heed_status heed__measure_text(heed__translation *t, heed_error *err);

/* ---- translation_valid.c ---- */
heed_status heed__translation_validate(void *self, heed_tape *tape, heed_measure *out, int *count,
                                       heed_error *err);
/* Whether there is something to validate with. */
heed_status heed__check_valid(const heed__translation *t, heed_error *err);
/* The name of the measure that --valid-metric asks for. */
const char *heed__metric_name(int metric);

#endif
