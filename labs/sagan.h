/* sagan.h: the self-attention GAN (Zhang et al. 2019): a generator and a discriminator, each with
 * a block in which every pixel of a map looks at all others. */
#ifndef HEED_LABS_SAGAN_H
#define HEED_LABS_SAGAN_H

#include <heed/heed.h>

/* What stands between two convolutions: attention; a residual block of as many weights, which sees
 * one pixel alone; nothing. */
typedef enum sagan_middle { SAGAN_ATTENTION, SAGAN_RESIDUAL, SAGAN_NOTHING } sagan_middle;

typedef struct sagan_sizes {
    int64_t side;         /* pictures of side x side grey pixels, a power of 2 from 16 on */
    int64_t classes;      /* that a picture can be asked for; 1: just a picture */
    int64_t noise;        /* numbers in z */
    int64_t width;        /* channels of a map of half the side; half the side: twice of them */
    int64_t at;           /* the side of the map in whose middle the block stands: 8 to side / 2 */
    int64_t keys, values; /* f and g have C / keys channels, h has C / values */
    bool pool;            /* keys and values are the largest of 2 x 2 */
    sagan_middle middle;
} sagan_sizes;
/* Channels of a map of that side. */
int64_t sagan_channels(const sagan_sizes *z, int64_t side);

/* A matrix that is divided by its spectral norm wherever it is used. */
typedef struct sagan_weight {
    heed_tensor *w, *u; /* (K,F); the vector of the power iteration (F), state */
} sagan_weight;

/* Attention: y = x + gamma v(sum_i beta_ji h(x_i)).  Residual: y = x + gamma v(relu(h(x))). */
typedef struct sagan_block {
    sagan_middle middle;
    bool pool;
    sagan_weight f, g, h, v; /* 1 x 1 convolutions without biases */
    heed_tensor *gamma;      /* (1), 0 at the start; NULL: there is no block */
} sagan_block;

/* Batch norm whose gain and bias are the class's. */
typedef struct sagan_norm {
    heed_tensor *gain, *bias;     /* (classes,C) */
    heed_tensor *mean, *variance; /* (C), state */
} sagan_norm;

#define SAGAN_MOST_STAGES 8
typedef struct sagan_generator {
    sagan_sizes sizes;
    sagan_weight in; /* (noise, 4*4*C) */
    sagan_norm norm[SAGAN_MOST_STAGES + 1];
    sagan_weight conv[SAGAN_MOST_STAGES], out;
    heed_tensor *out_bias;
    sagan_block block;
} sagan_generator;

typedef struct sagan_discriminator {
    sagan_sizes sizes;
    sagan_weight conv[SAGAN_MOST_STAGES + 1];
    heed_tensor *bias[SAGAN_MOST_STAGES + 1];
    sagan_block block;
    sagan_weight out, classes; /* (C,1); (C,classes): the projection of each class */
    heed_tensor *out_bias;
} sagan_discriminator;

void sagan_generator_build(sagan_generator *g, heed_scope s, const sagan_sizes *sizes);
void sagan_discriminator_build(sagan_discriminator *d, heed_scope s, const sagan_sizes *sizes);

/* moves: this pass trains the network's own weights, so that the vectors of its power iterations
 * move; false in a pass that goes through it to train the other.  look, unless NULL, receives beta,
 * (B*Y*X, keys) numbers, or NULL where there is no attention. */
/* z (B,noise) -> pixels (B*side*side,1) in -1..1. */
heed_tensor *sagan_generate(heed_tape *t, const sagan_generator *g, heed_tensor *z,
                            const int32_t *classes, bool moves, heed_tensor **look);
/* pixels -> (B,1): large for what looks real. */
heed_tensor *sagan_discriminate(heed_tape *t, const sagan_discriminator *d, heed_tensor *pixels,
                                const int32_t *classes, bool moves, heed_tensor **look);
/* Equation 4, means over a batch: E max(0, 1 - D(x)) + E max(0, 1 + D(G(z))); -E D(G(z)). */
heed_tensor *sagan_discriminator_loss(heed_tape *t, heed_tensor *real, heed_tensor *made);
heed_tensor *sagan_generator_loss(heed_tape *t, heed_tensor *made);

#endif
