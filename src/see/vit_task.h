/* vit_task.h (internal): how a Vision Transformer is trained, in parts: its pictures, what is
 * chosen, the task. */
#ifndef HEED_SEE_VIT_TASK_H
#define HEED_SEE_VIT_TASK_H

#include <heed/vit.h>

/* Pictures of a set: which, and the model's number of each of the set's classes. */
typedef struct heed__vit_part {
    heed_pictures *set;
    bool owned;
    int64_t *only; /* (count) */
    int64_t count;
    const int32_t *label; /* (classes of the set) */
} heed__vit_part;

typedef struct heed__vit_batch {
    heed_real *pixels;
    int32_t *labels;
    int64_t count;
} heed__vit_batch;

typedef struct heed__vit_training {
    heed_allocator allocator;
    heed_arena *arena, *update; /* update: of the batches at hand */
    heed_train_hooks hooks;
    heed_vit_recipe recipe;
    heed__vit_part train, valid;
    const char *const *labels; /* (recipe.model.classes) */
    heed_params *params;
    heed_vit_net net;
    heed_picture_batches *train_batches, *valid_batches;
    heed__vit_batch *batch; /* (accumulate) */
} heed__vit_training;

extern const heed_option_set heed__vit_set;

/* A model directory's config.json and labels.txt. */
heed_status heed__vit_write(const char *folder, const heed_vit_config *c, const char *const *labels,
                            heed_arena *arena, heed_error *err);

/* Opens the sets, with the sizes that are chosen where they were not given, and holds out. */
heed_status heed__vit_open_pictures(heed__vit_training *t, heed_error *err);
/* The names of a set's classes; the number where there is no name. */
heed_status heed__vit_class_names(const heed_pictures *p, heed_arena *arena,
                                  const char *const **names, heed_error *err);
/* Which of the names each class of a set is; `whose` has the names: "the model". */
heed_status heed__vit_match(const heed_pictures *p, const char *const *names, int64_t count,
                            const char *whose, heed_arena *arena, const int32_t **label,
                            heed_error *err);

/* Side, channels and patches from the first picture, where they were not given. */
void heed__vit_choose_size(heed_vit_config *c, const heed_pictures_report *first);
/* The rest, once the pictures are open; and says it. */
heed_status heed__vit_choose(heed__vit_training *t, heed_error *err);
/* What does not go together. */
heed_status heed__vit_check(const heed_vit_recipe *r, heed_error *err);

#endif
