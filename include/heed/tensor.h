/* tensor.h: tensors, segments, and the tape, which records operators for the backward pass.
 *
 *     heed_tape *t = heed_tape_new(NULL, &err);
 *     heed_tensor *y = heed_tanh(t, heed_input(t, HEED_SHAPE(2, 3), values));
 *     ... heed_backward(t, loss); heed_tape_reset(t);
 *
 * Operators compute at once.  They accept NULL and return NULL after the tape's first error, so a
 * model is written without error branches and checks heed_tape_error once at the end.  A tensor
 * that an operator returns lives until heed_tape_reset; a parameter as long as its set.  A tape
 * belongs to one thread.  Shape letters: B sentences, N packed tokens, T target, S source, H heads,
 * D model, Dk and Dv a head's keys and values, F feed-forward, V vocabulary. */
#ifndef HEED_TENSOR_H
#define HEED_TENSOR_H

#include <heed/base.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HEED_MAX_RANK 4

typedef struct heed_shape {
    int rank; /* 1 to HEED_MAX_RANK; a scalar is (1) */
    int64_t dim[HEED_MAX_RANK];
} heed_shape;

/* HEED_SHAPE(N, D): a shape from its sizes. */
heed_shape heed_shape_of(int rank, int64_t d0, int64_t d1, int64_t d2, int64_t d3);
#define HEED_SHAPE_1(a) heed_shape_of(1, a, 1, 1, 1)
#define HEED_SHAPE_2(a, b) heed_shape_of(2, a, b, 1, 1)
#define HEED_SHAPE_3(a, b, c) heed_shape_of(3, a, b, c, 1)
#define HEED_SHAPE_4(a, b, c, d) heed_shape_of(4, a, b, c, d)
#define HEED_SHAPE_PICK(a, b, c, d, name, ...) name
#define HEED_SHAPE(...)                                                                            \
    HEED_SHAPE_PICK(__VA_ARGS__, HEED_SHAPE_4, HEED_SHAPE_3, HEED_SHAPE_2, HEED_SHAPE_1, 0)        \
    (__VA_ARGS__)

typedef struct heed_tensor heed_tensor;

/* All of these accept NULL, as operators return after an error, and then give 0 or NULL. */
heed_shape heed_tensor_shape(const heed_tensor *x);
/* A tensor is a matrix of rows x cols: cols is the last axis, rows all others multiplied.  Row r
 * starts at data + r * stride; stride > cols only in a column slice. */
int64_t heed_tensor_rows(const heed_tensor *x);
int64_t heed_tensor_cols(const heed_tensor *x);
int64_t heed_tensor_stride(const heed_tensor *x);
int64_t heed_tensor_count(const heed_tensor *x);
heed_real *heed_tensor_data(const heed_tensor *x);
/* The gradient of a parameter or variable, laid out like the data.  NULL for any other tensor:
 * theirs are released during heed_backward. */
heed_real *heed_tensor_grad(const heed_tensor *x);

/* ---- segments ---- */

/* A packed batch of B sequences is an (N,D) matrix with sentence b in rows offset[b] ..
 * offset[b+1]. The time-major view serves recurrent layers: sentences sorted by length (longest
 * first, ties in order), the rows of step t contiguous from step_offset[t], the first `active` =
 * step_offset[t+1]-step_offset[t] sentences still running.  Lives as long as its arena; read-only.
 */
typedef struct heed_segments {
    int64_t count;              /* B, empty ones included */
    int64_t rows;               /* N */
    int64_t longest;            /* T: the number of steps of the time-major view */
    const int64_t *offset;      /* (B+1) */
    const int64_t *step_offset; /* (T+1) */
    const int32_t *order;       /* (B) slot in the time-major view -> sentence */
    const int32_t *slot;        /* (B) sentence -> slot in the time-major view */
    const int32_t *to_time;   /* (N) time-major row -> packed row: gather with it to get the view */
    const int32_t *to_packed; /* (N) packed row -> time-major row: gather with it to return */
} heed_segments;
/* NULL when memory is short or a length is negative. */
const heed_segments *heed_segments_new(heed_arena *arena, int64_t count, const int64_t *lengths);

/* ---- the tape ---- */

typedef struct heed_tape heed_tape;

typedef struct heed_tape_options {
    const heed_allocator *allocator; /* NULL: the C library's */
    int threads;                     /* 0: all processors this process may use */
    uint64_t seed;                   /* of dropout and sampling */
    heed_log_sink log;               /* where HEED_PROFILE's table goes */
} heed_tape_options;

/* options may be NULL.  Free the tape before the allocator's context. */
heed_tape *heed_tape_new(const heed_tape_options *options, heed_error *err);
void heed_tape_free(heed_tape *t);
/* Clears everything recorded and the error; keeps the memory for the next step. */
void heed_tape_reset(heed_tape *t);
/* The first failure since the last reset, or one with status HEED_OK.  Lives in the tape. */
const heed_error *heed_tape_error(const heed_tape *t);
/* For errors found by models and layers: sets the error if there is none yet; returns NULL. */
heed_tensor *heed_tape_fail(heed_tape *t, heed_status status, const char *format, ...)
    HEED_PRINTF(3, 4);
/* Keys the random numbers of the next operators.  Call after reset, once per step: without it every
 * step draws the same dropout masks. */
void heed_tape_step(heed_tape *t, uint64_t step, uint32_t micro_batch, uint32_t rank);
/* For several parameter sets trained in turn: each draws its own numbers.  After heed_tape_step,
 * which selects set 0. */
void heed_tape_for_set(heed_tape *t, uint32_t set);
/* Recording (on at the start) stores what backward needs; training (on at the start) is read by
 * dropout and batch norm.  Both survive a reset. */
void heed_tape_set_recording(heed_tape *t, bool on);
void heed_tape_set_training(heed_tape *t, bool on);
bool heed_tape_training(const heed_tape *t);
int heed_tape_threads(const heed_tape *t);
/* From the next reset on; at once if nothing has been computed since the last. */
void heed_tape_set_threads(heed_tape *t, int threads);
/* The step arena: its memory lives until reset. */
heed_arena *heed_tape_arena(heed_tape *t);
/* Bytes this tape holds from its allocator. */
size_t heed_tape_memory(const heed_tape *t);

/* Copies values into a new tensor without gradient.  values may be NULL: then it is zero. */
heed_tensor *heed_input(heed_tape *t, heed_shape shape, const heed_real *values);
/* The same, with a gradient that heed_backward adds to and heed_tensor_grad returns. */
heed_tensor *heed_variable(heed_tape *t, heed_shape shape, const heed_real *values);

/* Adds d loss / d x into the gradient of every parameter and variable that loss, a single number,
 * was computed from.  Returns the status of heed_tape_error: the one check that a step needs.
 * heed_optimizer_step sets the gradients of parameters to zero; until then they accumulate. */
heed_status heed_backward(heed_tape *t, heed_tensor *loss);

/* ---- list of operators, gradient checks ---- */

typedef struct heed_op_info {
    const char *name;
    const char *formula; /* one line */
    int cases;           /* gradient cases; 0 where there is no gradient */
} heed_op_info;
int heed_op_count(void);
heed_op_info heed_op_describe(int i);

/* One gradient case: the analytic gradient against central differences of a random projection of
 * the outputs, error = max|a-n| / max(max|a|, max|n|) for each input, the worst of them reported.
 */
typedef struct heed_check_result {
    const char *name; /* operator */
    const char *what; /* case */
    double error;     /* the worst over the inputs */
    double tolerance; /* what this build's arithmetic allows */
    bool passed;
    char text[640]; /* why not */
} heed_check_result;
/* Runs case c of operator i with `threads` threads (0: all processors); a status other than HEED_OK
 * means it could not be run at all. */
heed_status heed_op_check(int i, int c, int threads, heed_check_result *result, heed_error *err);

#ifdef __cplusplus
}
#endif
#endif
