/* base.h: what everything else uses: errors, memory, log, random numbers, clock, files.
 *
 * Errors.  A call that can fail returns a heed_status and takes a heed_error last (NULL if the text
 * is not wanted).  Objects that collect work (tape, parameter set) keep their first error instead;
 * see heed_tape_error and heed_params_error.
 * Memory.  Everything heed allocates goes through a heed_allocator; NULL means the C library's. */
#ifndef HEED_BASE_H
#define HEED_BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HEED_VERSION_MAJOR 0
#define HEED_VERSION_MINOR 1
#define HEED_VERSION_PATCH 0

/* The installed library computes in float.  The double build proves gradients and is never
 * installed. */
#ifdef HEED_DOUBLE
typedef double heed_real;
#else
typedef float heed_real;
#endif

/* ---- errors ---- */

/* A function that formats like printf, so that the compiler can check its arguments. */
#if defined(__GNUC__)
#define HEED_PRINTF(text, first) __attribute__((format(printf, text, first)))
#else
#define HEED_PRINTF(text, first)
#endif

#define HEED_STATUS_LIST(X)                                                                        \
    X(OK, "ok")                                                                                    \
    X(ARGUMENT, "wrong argument")                                                                  \
    X(SHAPE_ERROR, "wrong shape")                                                                  \
    X(MEMORY, "out of memory")                                                                     \
    X(IO, "input or output failed")                                                                \
    X(FORMAT, "wrong format")                                                                      \
    X(NUMERIC, "not a finite number")                                                              \
    X(STATE, "called in the wrong state")

typedef enum heed_status {
#define HEED_STATUS_ENUM(name, text) HEED_##name,
    HEED_STATUS_LIST(HEED_STATUS_ENUM)
#undef HEED_STATUS_ENUM
} heed_status;

/* Start with `heed_error err = {0};` (C++: `{}`).  The first failure is kept; later ones do not
 * overwrite it. */
typedef struct heed_error {
    heed_status status;
    char text[512];
} heed_error;

/* Two or three words for a status ("out of memory"); static. */
const char *heed_status_text(heed_status status);

/* ---- memory ---- */

/* `allocate` returns size bytes aligned to 64, or NULL; `release` gets the size that was allocated.
 * Both must be safe to call from any thread.  The struct is copied; `context` must outlive its
 * users. */
typedef struct heed_allocator {
    void *(*allocate)(void *context, size_t size);
    void (*release)(void *context, void *memory, size_t size);
    void *context;
} heed_allocator;

/* An arena gives 64-byte aligned memory that lives until reset or free and never moves.  Reset
 * keeps the chunks, so a loop of equal steps allocates nothing after its first step. */
typedef struct heed_arena heed_arena;
heed_arena *heed_arena_new(const heed_allocator *allocator, heed_error *err);
void heed_arena_free(heed_arena *arena);
/* Not zeroed; NULL when memory is short.  A size of 0 gives a valid pointer. */
void *heed_arena_allocate(heed_arena *arena, size_t size);
void heed_arena_reset(heed_arena *arena);
/* Bytes allocated from the arena since the last reset, and bytes it holds from the allocator. */
size_t heed_arena_used(const heed_arena *arena);
size_t heed_arena_held(const heed_arena *arena);

/* ---- log ---- */

typedef enum heed_log_level { HEED_LOG_DEBUG, HEED_LOG_INFO, HEED_LOG_WARNING } heed_log_level;
/* The library itself prints nothing: messages go here, one line each, without the line end. */
typedef struct heed_log_sink {
    void (*write)(void *context, heed_log_level level, const char *line);
    void *context;
} heed_log_sink;

/* ---- random numbers ---- */

/* Counter-based (Philox4x32-7): every element of a stream can be computed alone, in any order.  A
 * stream is named by its purpose, so nothing is stored and a resumed run draws the same numbers. */
typedef struct heed_rng_key {
    uint64_t seed;
    uint64_t step;
    uint32_t micro_batch;
    uint32_t rank;
    uint32_t set; /* of parameters that is trained: where several take turns in a step */
    uint64_t node;
} heed_rng_key;

typedef struct heed_rng {
    uint32_t key[2];
    uint32_t stream[2];
} heed_rng;

heed_rng heed_rng_stream(const heed_rng_key *key);
/* Element i of the stream: 32 random bits; a number in [0,1); a standard normal. */
uint32_t heed_rng_bits(const heed_rng *rng, uint64_t i);
double heed_rng_uniform(const heed_rng *rng, uint64_t i);
double heed_rng_normal(const heed_rng *rng, uint64_t i);
/* An integer in [0,n), n > 0, with negligible bias (n far below 2^32). */
int64_t heed_rng_below(const heed_rng *rng, uint64_t i, int64_t n);

/* ---- clock, files ---- */

/* Seconds of the monotonic clock: only differences mean something. */
double heed_clock_seconds(void);
/* Writes a text file whole or not at all: under a temporary name, synced, then renamed. */
heed_status heed_text_save(const char *path, const char *text, heed_error *err);
/* One byte of UTF-8 text as it stands in a JSON string: an escape, or the byte itself.  Returns
 * out. */
const char *heed_json_escape(char c, char out[8]);

/* ---- the machine ---- */

/* What this process runs on; strings live as long as the process. */
typedef struct heed_machine {
    const char *cpu;             /* "AMD EPYC ..." */
    const char *instruction_set; /* the kernels picked: "baseline", "avx2", "avx512" */
    const char *blas;            /* the one really loaded: "OpenBLAS 0.3.21 ... openmp" */
    int threads;                 /* processors this process may use */
} heed_machine;
void heed_machine_describe(heed_machine *machine);

const char *heed_version(void);

#ifdef __cplusplus
}
#endif
#endif
