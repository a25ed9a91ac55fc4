/* sagan_game.h: a generator and a discriminator, and the pictures that they play with. */
#ifndef HEED_LABS_SAGAN_GAME_H
#define HEED_LABS_SAGAN_GAME_H

#include "sagan.h"
#include "sagan_data.h"

/* Sets of parameters, in the order in which they take turns. */
enum { SAGAN_GENERATOR, SAGAN_DISCRIMINATOR, SAGAN_SETS };

typedef struct sagan_game {
    sagan_data data;
    sagan_sizes sizes;
    sagan_generator generator;
    sagan_discriminator discriminator;
} sagan_game;

void sagan_game_build(sagan_game *g, int set, heed_scope s);
/* The loss of a set on `batch` pictures of each kind, all of them drawn with rng. */
heed_tensor *sagan_game_loss(heed_tape *t, const sagan_game *g, int set, int64_t batch,
                             const heed_rng *rng);
/* Pictures first, first + 1, ... that the generator makes of a stream of its own: (count*side*side,
 * 1).  classes (count): what is asked for; drawn where it is negative, and then says what.  look as
 * in sagan_generate. */
heed_tensor *sagan_game_make(heed_tape *t, const sagan_game *g, int64_t first, int64_t count,
                             int32_t *classes, heed_tensor **look);

#endif
