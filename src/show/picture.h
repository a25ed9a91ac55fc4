/* picture.h: checking an attention picture, and the map that is shown large. */
#ifndef HEED_SHOW_PICTURE_H
#define HEED_SHOW_PICTURE_H

#include "base/error.h"

#include <heed/show.h>

enum { HEED_KINDS = 3 };

/* "Cross-attention". */
const char *heed__kind_name(heed_attention_kind kind);
/* The labels of rows and columns of a map of this kind. */
const heed_labels *heed__row_labels(const heed_attention_picture *p, heed_attention_kind kind);
const heed_labels *heed__column_labels(const heed_attention_picture *p, heed_attention_kind kind);
/* Checks that there are maps of known kinds and the size of their labels, and not too many
 * cells. */
heed_status heed__picture_check(const heed_attention_picture *p, heed_error *err);

/* The probability of a cell within [0,1]; negative if it is not finite. */
double heed__picture_cell(const heed_attention_map *m, int64_t row, int64_t column);
/* The same in thousandths, as the page and the SVG show it: one rounding for both. */
int heed__picture_thousandths(const heed_attention_map *m, int64_t row, int64_t column);
/* The column with the largest value of a row, in thousandths; -1 if all are 0. */
int64_t heed__strongest(const heed_attention_map *m, int64_t row);

typedef struct heed__large {
    heed_attention_map map;
    int64_t index;     /* into maps; -1 if it is an average */
    const char *title; /* "Cross-attention, layer 3, head 2" */
    const char *note;  /* of an average: which heads, and why; else "" */
} heed__large;
heed_status heed__large_map(const heed_attention_picture *p, int64_t large, heed_arena *arena,
                            heed__large *out, heed_error *err);

#endif
