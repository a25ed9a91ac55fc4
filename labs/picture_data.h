/* picture_data.h: the pictures that labs learn from: IDX files of a folder, or digits that are
 * drawn from random numbers. */
#ifndef HEED_LABS_PICTURE_DATA_H
#define HEED_LABS_PICTURE_DATA_H

#include "drawing.h"

#include <heed/image.h>

typedef enum picture_part { PICTURES_TRAIN, PICTURES_VALID, PICTURES_TEST } picture_part;
typedef struct picture_data {
    heed_pictures *train, *test; /* NULL: drawn */
    int64_t side, classes;
    int64_t count[3]; /* of each part; of drawn ones how many are tested */
    uint8_t *pixels;  /* of one picture */
} picture_data;

/* folder has train-images-idx3-ubyte(.gz) and so on, as MNIST and Fashion-MNIST do; the last 5,000
 * of train are for validation.  NULL: digits of side x side pixels are drawn. */
heed_status picture_data_open(picture_data *d, const char *folder, int64_t side, heed_arena *arena,
                              heed_error *err);
void picture_data_close(picture_data *d);
/* Picture i of a part, (side,side) from 0 to 1, moved by up to `shift` pixels of the dice; returns
 * its label.  Drawn ones come from the dice while training, else from their number. */
int picture_data_take(const picture_data *d, picture_part part, int64_t i, int64_t shift,
                      drawing_dice *dice, heed_real *out);

#endif
