/* features.h: phi, what the queries and keys of a head become where attention forms no weights.
 *
 *   elu       phi_i = elu(x_i) + 1                                        Katharopoulos et al. 2020
 *   positive  phi_i = exp(w_i.x s - |x|^2 s^2 / 2) / sqrt(M), s = Dk^-1/4   Choromanski et al. 2021
 *   waves     phi = [sin(w_i.x), cos(w_i.x)] / sqrt(M)                         Peng et al. 2021
 *   dpfp      phi = r_i r_{i-n} for n = 1 .. NU, r = [max(x, 0), max(-x, 0)]     Schlag et al. 2021
 *
 * w_1 .. w_M are random directions.  On average positive features multiply to exp(q.k / sqrt(Dk)),
 * waves to exp(-|q - k|^2 / 2). */
#ifndef HEED_KERNEL_FEATURES_H
#define HEED_KERNEL_FEATURES_H

#include <heed/base.h>

/* In the order of heed_feature_kind. */
enum { HEED__FEATURES_ELU, HEED__FEATURES_POSITIVE, HEED__FEATURES_WAVES, HEED__FEATURES_DPFP };

typedef struct heed__features {
    int kind;
    int64_t d;                  /* Dk */
    int64_t count;              /* M, or NU of dpfp */
    const heed_real *direction; /* (M,Dk) */
    bool unit_sum;              /* phi is divided by its sum */
} heed__features;

/* Of phi. */
static inline int64_t heed__feature_columns(const heed__features *f)
{
    switch (f->kind) {
    case HEED__FEATURES_POSITIVE:
        return f->count;
    case HEED__FEATURES_WAVES:
        return 2 * f->count;
    case HEED__FEATURES_DPFP:
        return 2 * f->d * f->count;
    default:
        return f->d;
    }
}

/* Reals beside phi that a single row needs: dpfp's r, twice. */
static inline int64_t heed__feature_room(const heed__features *f)
{
    return heed__feature_columns(f) + 4 * f->d;
}

#endif
