/* positions.c: the sinusoids of section 3.5, PE(pos,2i) = sin(pos / 10000^(2i/D)) and PE(pos,2i+1)
 * the cosine.  Halves: all sines, then all cosines.  An odd D has one sine more than cosines.
 * Marian's, T2T's and fairseq's are halves with other exponents: 0 to 1 in equal steps. */
#include "nn/params.h"

#include <math.h>

void heed__sinusoid_rows(heed_real *out, int64_t first, int64_t count, int64_t d,
                         heed_positions layout)
{
    const bool marian = layout == HEED_POSITIONS_SINUSOID_MARIAN;
    const bool halves = marian || layout == HEED_POSITIONS_SINUSOID_HALVES;
    const int64_t sines = (d + 1) / 2;
    const double steps = !marian ? (double)d / 2 : sines > 1 ? (double)(sines - 1) : 1;
    for (int64_t c = 0; c < d; c++) {
        int64_t i = halves ? c % sines : c / 2;
        bool sine = halves ? c < sines : c % 2 == 0;
        double frequency = pow(10000, -(double)i / steps);
        for (int64_t pos = 0; pos < count; pos++) {
            double angle = (double)(first + pos) * frequency;
            out[pos * d + c] = (heed_real)(sine ? sin(angle) : cos(angle));
        }
    }
}

void heed_sinusoid(heed_real *out, int64_t count, int64_t d, heed_positions layout)
{
    heed__sinusoid_rows(out, 0, count, d, layout);
}
