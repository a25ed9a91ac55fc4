/* axis.h: the range of an axis, its round ticks and their labels. */
#ifndef HEED_SHOW_AXIS_H
#define HEED_SHOW_AXIS_H

#include "base/string.h"

enum { HEED_AXIS_TICKS = 16 };

typedef struct heed__axis {
    double low, high; /* low < high once it is finished */
    bool logarithmic; /* then only values above 0 are on it */
    int ticks;
    double tick[HEED_AXIS_TICKS];
    int decimals;   /* of the labels */
    double divisor; /* 1, 1e3 ("k"), 1e6 ("M") or 1e9 ("G"); 0: labels are a x 10^b */
} heed__axis;

/* An empty axis; then include every value; then finish, which extends the ends to ticks (if
 * outwards) and makes about `wanted` of them. */
heed__axis heed__axis_new(bool logarithmic);
bool heed__axis_takes(const heed__axis *a, double v);
void heed__axis_include(heed__axis *a, double v);
void heed__axis_finish(heed__axis *a, int wanted, bool outwards);
/* From 0 at low to 1 at high. */
double heed__axis_position(const heed__axis *a, double v);
/* Like the labels of ticks, with `more` more digits. */
void heed__axis_label(heed__string *s, const heed__axis *a, double v, int more);

#endif
