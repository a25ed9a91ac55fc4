/* sagan_data.h: the pictures that a SAGAN imitates: two equal glyphs in opposite corners, or those
 * of IDX files; and what a judge of them is taught. */
#ifndef HEED_LABS_SAGAN_DATA_H
#define HEED_LABS_SAGAN_DATA_H

#include "picture_data.h"

typedef enum sagan_task { SAGAN_CORNERS, SAGAN_FASHION } sagan_task;
typedef struct sagan_data {
    sagan_task task;
    double grain; /* corners: deviation of the noise on every pixel */
    int64_t side;
    int64_t classes;       /* that a picture can be asked for; 1: none */
    int64_t looks;         /* places of a picture that a judge reads, */
    int64_t look_side;     /* which are so large, */
    int64_t kinds;         /* and kinds of things it tells apart there; kind `kinds` is none of */
    bool has_none;         /* them, if that can be */
    picture_data pictures; /* fashion */
} sagan_data;

/* folder: as picture_data_open wants it, for SAGAN_FASHION; side: for SAGAN_CORNERS. */
heed_status sagan_data_open(sagan_data *d, sagan_task task, const char *folder, int64_t side,
                            double grain, heed_arena *arena, heed_error *err);
void sagan_data_close(sagan_data *d);
/* Picture `at` of a part: (side,side) from -1 to 1; returns its class.  To train on, rng says which
 * (at < 2^20 draws numbers of its own); else the number does.  `kind`, unless NULL, is what stands
 * there. */
int sagan_data_take(const sagan_data *d, picture_part part, int64_t at, const heed_rng *rng,
                    heed_real *out, int *kind);
/* What a judge sees of a picture at a place: (look_side,look_side). */
void sagan_data_look(const sagan_data *d, const heed_real *picture, int64_t look, heed_real *out);
/* An example for a judge; returns its kind. */
int sagan_data_lesson(const sagan_data *d, int64_t at, const heed_rng *rng, heed_real *out);

#endif
