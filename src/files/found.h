/* found.h: a model as its publisher ships it: named tensors and what the file says of them.  Each
 * format is one reader, which checks every length before it believes it and adds tensors; values
 * are read as fp32, whatever they are stored as.
 *
 *     heed__found *f = heed__found_new(path, allocator, err);
 *     heed__ct2_read(f, bytes, size, err);
 *     const heed__found_tensor *t = heed__found_find(f, "decoder/projection/weight");
 *     heed__found_values(t, 0, t->count, out, err); */
#ifndef HEED_FILES_FOUND_H
#define HEED_FILES_FOUND_H

#include "base/byte_cursor.h"

#include <heed/base.h>
#include <jansson.h>

/* How values are stored. */
typedef enum heed__found_type {
    HEED__FOUND_F32,
    HEED__FOUND_F16,
    HEED__FOUND_BF16,
    HEED__FOUND_F64,
    HEED__FOUND_I64,
    HEED__FOUND_I32,
    HEED__FOUND_I16,
    HEED__FOUND_I8,
    HEED__FOUND_U8,
    HEED__FOUND_Q8_0, /* GGUF: blocks of 32: f16 d, 32 int8; w = q d */
    HEED__FOUND_Q4_0, /* f16 d, 16 bytes, byte j holds w[j] (low) and w[j+16]; w = (q - 8) d */
    HEED__FOUND_TYPES,
} heed__found_type;

#define HEED__FOUND_RANK 8
typedef struct heed__found_tensor {
    const char *name;
    heed__found_type type;
    int rank; /* 0 for a scalar */
    int64_t dim[HEED__FOUND_RANK];
    int64_t count; /* of elements */
    const unsigned char *data;
    size_t bytes;
    /* Integers stand for (q - zero) * scale (a product) or (q - zero) / scale, one scale for all or
     * one for each of `scales` equal parts in order (rows) or turn (columns); NULL: as they are. */
    const float *scale;
    const float *zero; /* NULL: 0; as many as there are scales */
    int64_t scales;
    bool divides, by_column;
} heed__found_tensor;

typedef struct heed__found {
    heed_allocator allocator;
    heed_arena *arena;  /* names, scales, what was inflated */
    const char *path;   /* for messages */
    const char *format; /* "GGUF" */
    heed__found_tensor *tensor;
    int64_t count, capacity;
    int32_t *slot; /* hash table of names; -1 is free */
    size_t slots;
    json_t *about; /* an object: what the file says of the model; never NULL */
    struct heed__found_mapping {
        const void *bytes;
        size_t size;
        struct heed__found_mapping *next;
    } * mapping; /* unmapped on close */
} heed__found;

/* path is copied. */
heed__found *heed__found_new(const char *path, const heed_allocator *allocator, heed_error *err);
void heed__found_free(heed__found *f);
/* Maps a file until f is freed. */
heed_status heed__found_map(heed__found *f, const char *path, const void **bytes, size_t *size,
                            heed_error *err);
/* "cannot open 'path': ..." */
heed_status heed__found_fail(const heed__found *f, heed_error *err, const char *format, ...)
    HEED_PRINTF(3, 4);
heed_status heed__found_no_memory(const heed__found *f, heed_error *err);
/* Memory of the arena; NULL after an error. */
void *heed__found_take(heed__found *f, size_t count, size_t size, heed_error *err);
/* A copy of a text, NUL-terminated. */
const char *heed__found_text(heed__found *f, const char *text, size_t length, heed_error *err);

/* The bytes of n values; false for a number of them that there cannot be. */
bool heed__found_bytes(heed__found_type type, int64_t n, size_t *bytes);
const char *heed__found_type_name(heed__found_type type);
/* Adds a tensor: name (copied), type, rank and dims are given, data and bytes what there is for it.
 * Refuses another number of bytes than the shape needs, a name that is there, a name that is no
 * text. */
heed_status heed__found_add(heed__found *f, const heed__found_tensor *t, heed_error *err);
/* NULL if there is none. */
const heed__found_tensor *heed__found_find(const heed__found *f, const char *name);
/* Values begin .. begin+count. */
heed_status heed__found_values(const heed__found_tensor *t, int64_t begin, int64_t count,
                               float *out, heed_error *err);
/* A number or a text about the model. */
heed_status heed__found_say(heed__found *f, const char *key, json_t *value, heed_error *err);

/* ---- the formats: each adds the tensors of the bytes of a file, which must outlive f ---- */

typedef heed_status heed__found_reader(heed__found *f, const void *bytes, size_t size,
                                       heed_error *err);
heed__found_reader heed__ct2_read;     /* CTranslate2's model.bin, versions 1 to 6 */
heed__found_reader heed__gguf_read;    /* F32, F16, BF16, Q8_0, Q4_0 */
heed__found_reader heed__llama2c_read; /* llama2.c's .bin */
heed__found_reader heed__marian_read;  /* Marian's .bin, version 1 */
heed__found_reader heed__npz_read;     /* NumPy's .npz: a zip of .npy */
heed__found_reader heed__pytorch_read; /* pytorch_model.bin: a zip of a pickle and its storages */
heed__found_reader heed__lex_read;     /* a shortlist of Bergamot's: no tensors, its sizes */
heed__found_reader heed__onnx_read;    /* initialisers of an ONNX graph */

#endif
