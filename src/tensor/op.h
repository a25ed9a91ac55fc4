/* op.h: how an operator is written.  See CONTRIBUTING.md, "add an operator".
 *
 * An operator is one file with up to three functions and its gradient cases:
 *   shape     checks the inputs and declares outputs, saved memory and scratch: the only part that
 *             may fail
 *   forward   computes the outputs
 *   backward adds into the inputs' gradients, never assigns (heed__grad_beta where assigning pays
 *             off)
 * A public wrapper fills the attributes and calls heed__apply. */
#ifndef HEED_TENSOR_OP_H
#define HEED_TENSOR_OP_H

#include "base/error.h"
#include "kernel/kernels.h"
#include "tensor/tensor_fields.h"

#define HEED_MAX_OUT 3

typedef struct heed_op heed_op;
typedef struct heed_opcall heed_opcall;

/* One call of an operator; if it is recorded, a node of the tape. */
struct heed_opcall {
    const heed_op *op;
    heed_tape *tape;
    heed_opcall *previous; /* the node recorded before this one */
    uint64_t node;         /* number of the call since reset: keys its random numbers */
    int n_in, n_out;
    bool recorded;    /* backward may run: save what it needs */
    bool *wanted;     /* which inputs needed a gradient when the call was made */
    heed_tensor **in; /* NULL for an absent optional input */
    heed_tensor *out[HEED_MAX_OUT];
    const void *attributes; /* the operator's own struct, copied */
    void *saved;            /* from heed__save */
};

/* A gradient case: all inputs of one call, as data.  The operator's `run` reads it. */
#define HEED_CASE_IN 6
typedef enum heed_domain {
    HEED_ANY,      /* normal */
    HEED_POSITIVE, /* in [0.5, 2] */
    HEED_SPREAD,   /* distinct values at least 0.1 apart and 0.05 from zero, so that no kink, tie or
                      maximum is near */
} heed_domain;
typedef struct heed_opcase {
    const char *what;
    heed_shape in[HEED_CASE_IN]; /* up to the first with rank 0 */
    heed_domain domain;
    const void *arguments; /* HEED_WITH */
    int64_t i[6];
    double r[4];
    int64_t lengths[6],
        more_lengths[6]; /* segments, ended by -1; used by operators that take them */
} heed_opcase;
/* HEED_WITH(.eps = 1e-6): what a case gives besides tensors and segments; the operator's file has a
 * `struct arguments` for it. */
#define HEED_WITH(...)                                                                             \
    .arguments = &(const struct arguments)                                                         \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }
#define HEED_DIMS1(a)                                                                              \
    {                                                                                              \
        1,                                                                                         \
        {                                                                                          \
            a, 1, 1, 1                                                                             \
        }                                                                                          \
    }
#define HEED_DIMS2(a, b)                                                                           \
    {                                                                                              \
        2,                                                                                         \
        {                                                                                          \
            a, b, 1, 1                                                                             \
        }                                                                                          \
    }
#define HEED_DIMS3(a, b, c)                                                                        \
    {                                                                                              \
        3,                                                                                         \
        {                                                                                          \
            a, b, c, 1                                                                             \
        }                                                                                          \
    }

struct heed_op {
    const char *name;
    const char *formula;
    heed_status (*shape)(heed_opcall *c);
    void (*forward)(heed_opcall *c);
    void (*backward)(heed_opcall *c); /* NULL: no gradient */
    const heed_opcase *cases;
    int n_cases;
    /* Runs a case through the public wrapper.  Sets out[0], and further outputs if there are
     * any. */
    void (*run)(heed_tape *t, const heed_opcase *c, heed_tensor **in, heed_tensor **out);
};

/* HEED_OP(softmax, "y = ...", shape, forward, backward, cases, run): defines heed__op_softmax.  An
 * operator without backward has HEED_OP_NO_GRADIENT. */
#define HEED_OP(name_, formula_, shape_, forward_, backward_, cases_, run_)                        \
    const heed_op heed__op_##name_ = {#name_,                                                      \
                                      formula_,                                                    \
                                      shape_,                                                      \
                                      forward_,                                                    \
                                      backward_,                                                   \
                                      cases_,                                                      \
                                      (int)(sizeof cases_ / sizeof *cases_),                       \
                                      run_}
#define HEED_OP_NO_GRADIENT(name_, formula_, shape_, forward_)                                     \
    const heed_op heed__op_##name_ = {#name_, formula_, shape_, forward_, NULL, NULL, 0, NULL}

/* ---- calling ---- */

/* Checks, computes and records.  An input may be NULL only if its bit is set in `optional` (bit 0 =
 * first); after an error, or with a NULL input that is not optional, it does nothing and returns
 * NULL.  attributes (may be NULL) are copied.  Returns the call, whose out[] the wrapper returns;
 * it lives until reset. */
heed_opcall *heed__apply(heed_tape *t, const heed_op *op, heed_tensor *const *in, int n_in,
                         unsigned optional, const void *attributes, size_t attribute_bytes);
/* For one output. */
static inline heed_tensor *heed__first(heed_opcall *c)
{
    return c ? c->out[0] : NULL;
}

/* The same memory with another shape, from element `offset` on, rows `ld` apart.  No node, no copy;
 * its gradient is part of x's.  The caller has checked that it fits. */
heed_tensor *heed__view(heed_tape *t, heed_tensor *x, heed_shape shape, int64_t offset, int64_t ld);
/* For a wrapper that checks before the call: "slice_cols: ..." as the tape's error; returns
 * NULL. */
heed_tensor *heed__wrapper_fail(heed_tape *t, const heed_op *op, heed_status status,
                                const char *format, ...) HEED_PRINTF(4, 5);
/* False if x is NULL or the tape has failed: the wrapper then returns NULL. */
bool heed__usable(heed_tape *t, const heed_op *op, const heed_tensor *x);
/* Segments of a case, on the tape's arena, from lengths ended by -1. */
const heed_segments *heed__case_segments(heed_tape *t, const int64_t *lengths);

/* ---- in shape ---- */

/* Declares the next output.  Its memory is there when forward runs, not zeroed. */
heed_status heed__out(heed_opcall *c, heed_shape shape);
/* Memory in c->saved that lives until reset. */
heed_status heed__save(heed_opcall *c, size_t bytes);
/* Memory from the step arena, for index results returned to the user. */
void *heed__keep(heed_opcall *c, size_t bytes);
/* Scratch that forward and backward may use, for each of the tape's threads. */
heed_status heed__want_scratch(heed_opcall *c, size_t bytes_per_thread);
/* Memory for a product of these sizes and for its gradients: see heed__op_gemm. */
heed_status heed__want_panels(heed_opcall *c, int64_t m, int64_t n, int64_t k);
/* "add: ..." as the tape's error; returns the status. */
heed_status heed__op_fail(heed_opcall *c, heed_status status, const char *format, ...)
    HEED_PRINTF(3, 4);
/* "softmax: x is (3,4), expected (N,512)": what was expected, in words. */
heed_status heed__op_shape_fail(heed_opcall *c, const char *input, const heed_tensor *x,
                                const char *expected, ...) HEED_PRINTF(4, 5);

/* ---- in forward and backward ---- */

int heed__threads(const heed_opcall *c);
/* 64-byte aligned; of the size given to heed__want_scratch.  The threads' parts are contiguous, so
 * thread 0's pointer is also one block for all. */
void *heed__scratch(const heed_opcall *c, int thread);
/* The thread's part of the memory of heed__want_panels; NULL if those sizes need none. */
real *heed__thread_panels(const heed_opcall *c, int thread);
/* heed__gemm with all of the tape's threads and panels.  Every product must have been announced
 * with heed__want_panels: its kernel must not depend on what other operators announced. */
void heed__op_gemm(const heed_opcall *c, const heed__product *p, heed__after_block *after,
                   void *context);
/* The stream of random numbers of this call: the same in forward and backward. */
heed_rng heed__rng(const heed_opcall *c);

/* ---- in backward ---- */

/* The gradient of output i; NULL if it received none.  The operator may overwrite it: nothing reads
 * it afterwards. */
real *heed__out_grad(const heed_opcall *c, int i);
/* Whether input i exists and needs a gradient. */
bool heed__wants(const heed_opcall *c, int i);
/* The gradient of input i, with the input's ld: add to it.  Only if heed__wants.  Two inputs may be
 * the same tensor: write one input's gradient completely before getting the next. */
real *heed__grad(heed_opcall *c, int i);
/* The same where assigning saves a pass: *beta is 0 if the memory is uninitialised and every
 * element must be assigned, else 1. */
real *heed__grad_beta(heed_opcall *c, int i, real *beta);

/* Whether inputs first to last are columns of one tensor, each column once and none left out, whose
 * gradient holds nothing yet.  Then every element of theirs must be assigned (heed__grad tells
 * where), as with a beta of 0. */
bool heed__grads_tile(heed_opcall *c, int first, int last);

/* For operators that make gradients during forward (heed_project_cross_entropy): the gradient of
 * any tensor, now. Call it in shape, where failing is allowed; use heed__grad later. */
heed_status heed__grad_early(heed_opcall *c, int i);

#endif
