/* io.h: weights on disk as safetensors: eight bytes of header length, a JSON header, the raw data.
 * A file is checked completely when it is opened: bounds, sizes, overlap, holes, duplicate names.
 */
#ifndef HEED_IO_H
#define HEED_IO_H

#include <heed/nn.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HEED_DTYPE_LIST(X)                                                                         \
    X(F32, 4)                                                                                      \
    X(F16, 2)                                                                                      \
    X(BF16, 2)                                                                                     \
    X(F64, 8)                                                                                      \
    X(I64, 8)                                                                                      \
    X(I32, 4)                                                                                      \
    X(I8, 1)                                                                                       \
    X(U8, 1)
typedef enum heed_dtype {
#define HEED_DTYPE_ENUM(name, bytes) HEED_##name,
    HEED_DTYPE_LIST(HEED_DTYPE_ENUM)
#undef HEED_DTYPE_ENUM
} heed_dtype;

#define HEED_STORED_MAX_RANK 8
typedef struct heed_stored {
    const char *name;
    heed_dtype dtype;
    int rank; /* 0 for a scalar */
    int64_t dim[HEED_STORED_MAX_RANK];
    const void *data; /* in the mapping, unaligned */
    size_t bytes;
} heed_stored;

/* Reading.  Everything returned lives until close. */
typedef struct heed_safetensors heed_safetensors;
heed_safetensors *heed_safetensors_open(const char *path, const heed_allocator *allocator,
                                        heed_error *err);
/* The same on bytes in memory, which are borrowed; `name` is for error texts. */
heed_safetensors *heed_safetensors_open_memory(const void *bytes, size_t size, const char *name,
                                               const heed_allocator *allocator, heed_error *err);
void heed_safetensors_close(heed_safetensors *f);
int heed_safetensors_count(const heed_safetensors *f);
const heed_stored *heed_safetensors_at(const heed_safetensors *f, int i);
const heed_stored *heed_safetensors_find(const heed_safetensors *f, const char *name); /* or NULL */
const char *heed_safetensors_metadata(const heed_safetensors *f, const char *key);     /* or NULL */
/* Converts elements begin .. begin+count of a stored tensor of any dtype to reals. */
heed_status heed_stored_read(const heed_stored *s, heed_real *out, int64_t begin, int64_t count,
                             heed_error *err);

/* Writing: add, then write the whole file under a temporary name, sync and rename.  Data is
 * borrowed until write. */
typedef struct heed_safetensors_writer heed_safetensors_writer;
heed_safetensors_writer *heed_safetensors_writer_new(const heed_allocator *allocator,
                                                     heed_error *err);
void heed_safetensors_writer_free(heed_safetensors_writer *w);
heed_status heed_safetensors_writer_metadata(heed_safetensors_writer *w, const char *key,
                                             const char *value, heed_error *err);
heed_status heed_safetensors_writer_add(heed_safetensors_writer *w, const heed_stored *tensor,
                                        heed_error *err);
heed_status heed_safetensors_writer_write(heed_safetensors_writer *w, const char *path,
                                          heed_error *err);

/* A whole parameter set (parameters and state), by name.  Loading refuses a missing, surplus or
 * wrongly shaped tensor and changes nothing then. */
heed_status heed_params_save(const heed_params *p, const char *path, heed_error *err);
heed_status heed_params_load(heed_params *p, const char *path, heed_error *err);

#ifdef __cplusplus
}
#endif
#endif
