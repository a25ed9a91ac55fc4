/* snail_tasks.h: episodes: classes that were never seen, a few examples of each, a question. */
#ifndef HEED_LABS_SNAIL_TASKS_H
#define HEED_LABS_SNAIL_TASKS_H

#include "drawing.h"
#include "snail.h"

#include <heed/image.h>

typedef enum snail_task { SNAIL_PROTOTYPES, SNAIL_CHARACTERS, SNAIL_OMNIGLOT } snail_task;
typedef enum snail_part { SNAIL_TRAIN, SNAIL_VALID, SNAIL_TEST } snail_part;

/* Where examples come from. */
typedef struct snail_source {
    snail_task task;
    double noise; /* prototypes: of an example around its class's middle */
    /* Omniglot, in the split of Vinyals et al.; each character four times, turned. */
    heed_pictures *set[2]; /* background, evaluation */
    int32_t *first[3];     /* of each part: the first of 20 pictures, + 2^30 in the second set */
    int64_t count[3];      /* characters */
} snail_source;

/* folder: only for Omniglot: {background,evaluation}-{images-idx3-ubyte,labels-idx1-short}.gz,
 * twenty pictures of a character together, and characters.tsv, a line for each label, which is its
 * first column; its last is train, valid or test. */
heed_status snail_source_open(snail_source *s, snail_task task, double noise, const char *folder,
                              heed_arena *arena, heed_error *err);
void snail_source_close(snail_source *s);
/* Pixels in a line, or 0; numbers of a vector. */
int64_t snail_source_side(const snail_source *s);
enum { SNAIL_PROTOTYPE = 16 };

/* Episodes in the arena. */
bool snail_draw(const snail_source *s, const snail_sizes *z, snail_part part, int64_t episodes,
                const heed_rng *rng, heed_arena *arena, snail_batch *b);
/* Prototypes: of these episodes, how many the best possible guess gets right: the class whose
 * examples' mean is nearest. */
int64_t snail_bayes(const snail_sizes *z, const snail_batch *b);

#endif
