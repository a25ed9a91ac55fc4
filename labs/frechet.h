/* frechet.h: how far two sets of points are from each other, as if both were Gaussians (Heusel et
 * al. 2017). */
#ifndef HEED_LABS_FRECHET_H
#define HEED_LABS_FRECHET_H

#include <heed/heed.h>

/* |m_a - m_b|^2 + tr(A + B - 2 (A^1/2 B A^1/2)^1/2), m and A, B the means and covariances of the
 * rows: a (na,d), b (nb,d), at least 2 rows each.  NAN when memory is short. */
double frechet_distance(const heed_real *a, int64_t na, const heed_real *b, int64_t nb, int64_t d);

#endif
