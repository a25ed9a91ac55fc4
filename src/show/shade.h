/* shade.h: the colour of a probability.
 *
 * Sixteen steps of even lightness in OKLCH (light page: L .99 to .28, hue 215 to 275; dark page: L
 * .21 to .97, hue 275 to 90), so that they work in grey and with every kind of colour blindness.
 * Shades are by square root, so that a probability spread over forty words is still visible. */
#ifndef HEED_SHOW_SHADE_H
#define HEED_SHOW_SHADE_H

#include <math.h>

enum { HEED_SHADES = 16 };

static inline int heed__shade(double weight)
{
    return (int)lround(sqrt(weight) * (HEED_SHADES - 1));
}

#define HEED_SHADES_LIGHT                                                                          \
    {                                                                                              \
        "#f9fcfd", "#d7f1fa", "#b8e5f6", "#9cd7f1", "#82c9ec", "#6bb9e6", "#58a9dd", "#4a99d3",    \
            "#4089c7", "#3b79b8", "#3769a7", "#355a94", "#324c7f", "#2f3f69", "#2a3352", "#23273b" \
    }
#define HEED_SHADES_DARK                                                                           \
    {                                                                                              \
        "#16181f", "#1d2338", "#212f51", "#203d69", "#164d7e", "#005f90", "#00739d", "#0086a4",    \
            "#009aa6", "#00aba3", "#47ba9f", "#79c79c", "#a5d2a0", "#c9dcae", "#e6e7c7", "#f9f5ea" \
    }

#endif
