/* sagan_draw.h: pictures of a trained SAGAN. */
#ifndef HEED_LABS_SAGAN_DRAW_H
#define HEED_LABS_SAGAN_DRAW_H

#include "lab.h"
#include "sagan_game.h"

/* samples.svg: real pictures and made ones; attention.svg: where pixels of made pictures look, and
 * attention-discriminator.svg, of real ones; gamma.svg: both gammas from update to update. */
heed_status sagan_draw(const sagan_game *g, lab_session *r, heed_tape *t, heed_error *err);

#endif
