/* marian_write.h: Marian's files, written: .bin version 1, .npz, and Bergamot's shortlist. */
#ifndef HEED_FILES_MARIAN_WRITE_H
#define HEED_FILES_MARIAN_WRITE_H

#include <heed/base.h>

typedef enum heed__marian_kind {
    HEED__MARIAN_FP32,
    HEED__MARIAN_INT8, /* intgemm8 of Bergamot and Firefox; matrices are turned, tables are not */
    HEED__MARIAN_TEXT, /* bytes */
} heed__marian_kind;

typedef struct heed__marian_item {
    const char *name;
    heed__marian_kind kind;
    int rank;           /* 1 or 2 */
    int64_t rows, cols; /* rank 1: cols alone */
    const float *value; /* fp32, also of what is written as int8 */
    const char *text;   /* (cols) of TEXT */
    bool table;         /* of embeddings */
} heed__marian_item;

/* The largest |value| becomes 127, or less where two that are multiplied side by side would leave
 * 16 bits. */
float heed__marian_multiplier(const heed__marian_item *item);
heed_status heed__marian_write_bin(const char *path, const heed__marian_item *item, int64_t count,
                                   heed_error *err);
/* No item is int8. */
heed_status heed__marian_write_npz(const char *path, const heed__marian_item *item, int64_t count,
                                   heed_error *err);
/* offset (sources+1), id (offset[sources]), ascending for each source. */
heed_status heed__lex_write(const char *path, int64_t first, int64_t best, int64_t sources,
                            const int64_t *offset, const int32_t *id, heed_error *err);

#endif
