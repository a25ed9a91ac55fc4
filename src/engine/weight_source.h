/* weight_source.h (internal): where packed weights come from: the tensors of a model in memory, or
 * a file in which their names find them. */
#ifndef HEED_ENGINE_WEIGHT_SOURCE_H
#define HEED_ENGINE_WEIGHT_SOURCE_H

#include "kernel/panels.h"

#include <heed/io.h>
#include <heed/nn.h>

/* Matrices that are int8 already, with their own scales. */
typedef struct heed__given_int8 {
    const void *context;
    /* Fills bytes, scale, sum, multiplier and wide of p, whose k and n are set, from memory of the
     * arena; false: this one is not int8.  Errors stay in s->err. */
    bool (*fill)(const void *context, const heed_tensor *x, bool table, heed__panel_weights *p,
                 heed_arena *arena, heed_error *err);
} heed__given_int8;

typedef struct heed__weight_source {
    heed_safetensors *file;        /* NULL: the tensors have their values */
    const char *path;              /* of the file */
    int bits;                      /* of matrices that are packed: 0 or 8 */
    bool from_memory;              /* more values than the last cache holds */
    heed_arena *arena;             /* of what is packed */
    heed_arena *passing;           /* of what is not kept */
    heed_real *portion;            /* made when it is needed */
    const heed__given_int8 *given; /* NULL: none */
    bool mixed;                    /* some matrices were given, whatever bits is */
    heed_error *err;               /* never NULL; the first error stays */
} heed__weight_source;

/* count * size bytes of the arena; NULL after an error. */
void *heed__source_take(const heed__weight_source *s, int64_t count, size_t size);
/* A copy of a vector or a small table; NULL for none. */
heed_real *heed__source_copy(const heed__weight_source *s, const heed_tensor *x);
/* Panels of a matrix (K,N), or of a table (N,K), with their bias (NULL: none) and activation. */
heed__panel_weights heed__source_matrix(heed__weight_source *s, const heed_tensor *x, bool table,
                                        const heed_tensor *bias, heed_activation activation);
/* What the metadata of the file say of its matrices, in s->bits; 0 where they say nothing. */
heed_status heed__source_bits(heed__weight_source *s);
/* Values of the file into a tensor: a vector, or an int8 matrix as what it stands for. */
void heed__source_read(const heed__weight_source *s, heed_tensor *x);
void heed__source_unpack(const heed__weight_source *s, heed_tensor *x, bool table);

/* A matrix as int8, which lives in the arena; false when memory is short. */
bool heed__make_int8(heed__panel_weights *p, const heed_tensor *x, bool table, heed_arena *arena);

#endif
