/* canvas.h: digits in some cells of a canvas, and the sentence that says which stand where: "seven
 * top left . three bottom right ." in reading order. */
#ifndef HEED_LABS_CANVAS_H
#define HEED_LABS_CANVAS_H

#include "picture_data.h"

enum {
    CANVAS_START = 1,
    CANVAS_END = 2,
    CANVAS_WORDS = 20,
    CANVAS_DIGITS = 3,
    CANVAS_LONGEST = 12
};
typedef struct canvas_sizes {
    int64_t side, cells; /* pixels and cells in a line */
} canvas_sizes;
typedef struct canvas {
    int digits;
    int cell[CANVAS_DIGITS];      /* in reading order */
    int32_t word[CANVAS_LONGEST]; /* four for each digit; the first names it */
} canvas;
/* Canvas i of a part, (side,side) from -1 to 1; those to train on come from the dice.  digits: of
 * files, or drawn. */
void canvas_draw(const canvas_sizes *sizes, const picture_data *digits, picture_part part,
                 int64_t i, drawing_dice *dice, heed_real *digit, heed_real *out, canvas *c);
const char *canvas_word(int32_t id);

#endif
