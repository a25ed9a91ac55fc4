/* corpus_parts.h (internal): which pairs of a corpus an epoch has.  A file may be given as
 * NAME:0.3: each epoch has that share of its pairs, drawn anew.  A part is what one file gave. */
#ifndef HEED_DATA_CORPUS_PARTS_H
#define HEED_DATA_CORPUS_PARTS_H

#include "base/path.h"

typedef struct heed__corpus_part {
    int64_t first, count; /* its pairs */
    int64_t taken;        /* of them, how many an epoch has */
    double share;
    int64_t bytes[2]; /* of its sources and targets */
} heed__corpus_part;

/* Divides NAME:SHARE.  A file of the whole name wins; where no number follows a colon, all is the
 * name.  share is 1 if none is given. */
heed_status heed__share_split(const char *name, heed__pathname path, double *share,
                              heed_error *err);
/* Sets `taken` from share and count: at least one, where there are any. */
void heed__part_take(heed__corpus_part *p);
/* The k-th of the pairs of an epoch, were they not drawn but spread evenly: rises with k. */
int64_t heed__parts_spread(const heed__corpus_part *part, int64_t parts, int64_t k);
/* Writes the pairs that this random stream draws, in the order of the corpus; returns how many. */
int64_t heed__part_draw(const heed__corpus_part *p, const heed_rng *rng, uint32_t *order);

#endif
