/* tape.h (internal): the tape itself.  Operators see it through op.h only. */
#ifndef HEED_TENSOR_TAPE_H
#define HEED_TENSOR_TAPE_H

#include "base/memory.h"
#include "tensor/op.h"

/* Told after each node of a backward pass, newest first, also of nodes that are skipped. */
typedef void heed__watch(void *context, const heed_opcall *node);

/* A released gradient block, for reuse; the list node lies in the block itself. */
typedef struct heed__free_block {
    struct heed__free_block *next;
    size_t bytes;
} heed__free_block;

/* Time spent in one operator, only with HEED_PROFILE=1. */
typedef struct heed__profile_row {
    const heed_op *op;
    int64_t calls;
    double forward, backward; /* seconds */
} heed__profile_row;
#define HEED_PROFILE_ROWS 128

struct heed_tape {
    heed_allocator allocator;
    heed_arena *arena;
    heed_error error;
    heed_opcall *last; /* the newest node */
    uint64_t calls;    /* since reset */
    heed_rng_key key;  /* node is set per call */
    bool recording, training;
    int threads, next_threads; /* next_threads: from the next reset on */
    char *scratch;             /* scratch_threads parts of scratch_bytes */
    size_t scratch_bytes;
    int scratch_threads;
    real *panels; /* for copies in matrix products: panel_threads parts of HEED_PANEL_COUNT */
    int panel_threads;
    heed__free_block *free_blocks;
    heed__watch *watch; /* or NULL */
    void *watched;
    heed_log_sink log;
    heed__profile_row *profile; /* NULL unless HEED_PROFILE is set */
};

/* Allocates a contiguous tensor and its data on the step arena; NULL (and the error set, in `who`'s
 * name) on failure. */
heed_tensor *heed__tensor_new(heed_tape *t, heed_shape shape, const char *who);

/* The backward pass from outputs whose gradients start as seeds[i] (contiguous, of out[i]'s
 * size). */
heed_status heed__backward_from(heed_tape *t, heed_tensor *const *out, const real *const *seeds,
                                int n);

/* Who is told during heed_backward; NULL: nobody. */
void heed__tape_watch(heed_tape *t, heed__watch *watch, void *context);

/* Allocates the gradient memory of x's root if it has none; MEMORY when memory is short. */
heed_status heed__grad_ensure(heed_tape *t, heed_tensor *x, const char *who);
/* Where x's gradient starts; the memory exists.  Zeroed first if uninitialised. */
real *heed__grad_of(heed_tensor *x);
void heed__grads_release(heed_tape *t, heed_tensor *x);

void heed__profile_add(heed_tape *t, const heed_op *op, double forward, double backward);
void heed__profile_report(heed_tape *t);

/* gradient_check.c: one gradient case with all its variations. */
heed_status heed__check_case(const heed_op *op, const heed_opcase *c, int threads,
                             heed_check_result *result, heed_error *err);

#endif
