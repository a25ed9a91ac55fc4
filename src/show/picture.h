/* picture.h: an attention picture checked, and the map that is shown large. */
#ifndef HEED_SHOW_PICTURE_H
#define HEED_SHOW_PICTURE_H

#include "base/error.h"

#include <heed/show.h>

enum { HEED_KINDS = 3 };

/* "Cross-attention". */
const char *heed__kind_name(heed_attention_kind kind);
/* What a map of this kind has beside its rows and above its columns. */
const heed_labels *heed__row_labels(const heed_attention_picture *p, heed_attention_kind kind);
const heed_labels *heed__column_labels(const heed_attention_picture *p, heed_attention_kind kind);
/* Maps there, of a known kind, as large as their labels say; not too many cells to draw. */
heed_status heed__picture_check(const heed_attention_picture *p, heed_error *err);

/* The weight of a cell within [0,1]; negative if it is not a finite number. */
double heed__cell(const heed_attention_map *m, int64_t row, int64_t column);
/* The column of a row that weighs most; -1 if none weighs anything. */
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
