/* edit.h: the edit distance of TER: near the diagonal only, with its alignment. */
#ifndef HEED_METRIC_EDIT_H
#define HEED_METRIC_EDIT_H

#include "metric/codes.h"

typedef struct heed__band {
    int64_t begin, end; /* of the reference positions */
} heed__band;

/* Distances between prefixes of a hypothesis (H words) and a reference (R words).  Row i, for the
 * first i words of the hypothesis, has its band of the R+1 columns; outside it the distance is
 * infinite. */
typedef struct heed__edit {
    const int32_t *reference;
    int64_t hypothesis_length, reference_length;
    int64_t beam; /* half the width of a band */
    double ratio; /* R/H, the slope of the diagonal */
    int64_t width;
    heed__codes cost;   /* (H+1, width) */
    heed__codes row[2]; /* (width) each, for distances without alignment */
    heed__codes align;  /* (R) the hypothesis word at or before reference word j, or -1 */
    heed__codes hypothesis_wrong, reference_wrong; /* (H), (R): 1 where the alignment has an edit */
} heed__edit;

void heed__edit_init(heed__edit *e, const heed_allocator *allocator);
void heed__edit_deinit(heed__edit *e);
/* Lengths, neither 0, which stay the same while words are shifted; false when memory is short.
 * Borrows the reference. */
bool heed__edit_begin(heed__edit *e, int64_t hypothesis_length, const int32_t *reference,
                      int64_t reference_length);
/* The distance; fills cost, and from the cheapest path align and the wrong flags. */
int32_t heed__edit_align(heed__edit *e, const int32_t *hypothesis);
/* The distance of a hypothesis whose first `same` words are those aligned last. */
int32_t heed__edit_distance(heed__edit *e, const int32_t *hypothesis, int64_t same);

#endif
