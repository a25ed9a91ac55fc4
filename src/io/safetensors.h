/* safetensors.h (internal): what reading, writing and loading share. */
#ifndef HEED_IO_SAFETENSORS_H
#define HEED_IO_SAFETENSORS_H

#include <heed/io.h>

/* The key that holds the metadata instead of a tensor. */
#define HEED_METADATA_KEY "__metadata__"
/* Longer headers are refused before anything is allocated for them. */
#define HEED_MAX_HEADER ((uint64_t)100 * 1000 * 1000)

/* A name from a file for an error text: control characters become '?', a long name is truncated.
 * Returns text. */
#define HEED_SHOWN 128
const char *heed__shown(const char *name, char text[HEED_SHOWN]);

/* "(2,3)" into text, which is returned. */
#define HEED_DIMS_SHOWN (HEED_STORED_MAX_RANK * 21 + 2)
const char *heed__dims_shown(const int64_t *dim, int rank, char text[HEED_DIMS_SHOWN]);

/* "F32", and bytes per element; NULL and 0 for an unknown dtype. */
const char *heed__dtype_name(heed_dtype dtype);
size_t heed__dtype_size(heed_dtype dtype);
/* False if there is no dtype of that name. */
bool heed__dtype_named(const char *name, heed_dtype *dtype);

/* x rounded to F16. */
uint16_t heed__to_f16(float x);

/* Bytes for the shape of s; false if an axis is negative, or the product overflows. */
bool heed__stored_bytes(const heed_stored *s, size_t *bytes);

#endif
