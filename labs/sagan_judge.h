/* sagan_judge.h: a small classifier that says what a picture shows, and whose features are what
 * pictures are compared by.  It is trained before a GAN is, on real pictures alone, always from the
 * same seed, and then holds still: figures of several GANs mean the same. */
#ifndef HEED_LABS_SAGAN_JUDGE_H
#define HEED_LABS_SAGAN_JUDGE_H

#include "sagan_data.h"

typedef struct sagan_judge {
    const sagan_data *data;
    heed_params *params;
    int64_t features; /* of a look */
    heed_tensor *conv[2], *bias[2];
    heed_linear_layer hidden, out;
} sagan_judge;

/* Builds and trains it. */
heed_status sagan_judge_open(sagan_judge *j, const sagan_data *data, int64_t updates, int threads,
                             heed_error *err);
void sagan_judge_close(sagan_judge *j);
/* Of `count` pictures: features (count, looks*features) and kinds (count, looks); on a tape that
 * neither trains nor records, which is reset. */
heed_status sagan_judge_read(const sagan_judge *j, heed_tape *t, const heed_real *pixels,
                             int64_t count, heed_real *features, int32_t *kinds, heed_error *err);

#endif
