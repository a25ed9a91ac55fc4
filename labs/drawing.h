/* drawing.h: digits and made-up characters, drawn with a pen from random numbers: the pictures of
 * the labs' quick runs.  (side,side) numbers, 0 background, 1 ink. */
#ifndef HEED_LABS_DRAWING_H
#define HEED_LABS_DRAWING_H

#include <heed/heed.h>

/* Where the next number of a stream is taken from. */
typedef struct drawing_dice {
    const heed_rng *rng;
    uint64_t next;
} drawing_dice;

/* digit 0 to 9, each time a little different: turned, slanted, larger or smaller, elsewhere, of
 * other thickness. */
void drawing_digit(heed_real *out, int64_t side, int digit, drawing_dice *dice);
/* The strokes of a character depend on its number alone; how it is drawn, on the dice. */
void drawing_character(heed_real *out, int64_t side, uint64_t character, drawing_dice *dice);

#endif
