/* pass.h (internal): rows of hidden states through the sublayers of a packed stack, without a tape.
 *
 * Everything here works row by row: a sum runs in one order that depends on its row alone, and
 * threads share columns or rows, never a sum.  So a row's result depends neither on what other rows
 * there are nor on the number of threads. */
#ifndef HEED_ENGINE_PASS_H
#define HEED_ENGINE_PASS_H

#include "engine/known_positions.h"
#include "engine/packed_weights.h"

/* Takes the probabilities of one query, all heads, (H,n), of keys 0 .. n-1; row: of the pass. */
typedef struct heed__pass_recorder {
    void *context;
    void (*record)(void *context, const heed__packed_attention *a, int64_t row,
                   const heed_real *probabilities, int64_t n);
} heed__pass_recorder;

/* Which keys there are: known to who runs the pass. */
typedef struct heed__pass_keys {
    void *context;
    /* Fills `key` with the keys that row `row` looks at, each with its values behind it, and
     * returns how many there are: of its own sentence or hypothesis, and of the memory. */
    int64_t (*own)(void *context, const heed__packed_attention *a, int64_t row,
                   const heed_real **key);
    int64_t (*memory)(void *context, const heed__packed_attention *a, int64_t row,
                      const heed_real **key);
    /* New keys and values of self-attention, row after row at a distance of ld; before `own`.
     * NULL: they stay where the pass has made them. */
    void (*cache)(void *context, const heed__packed_attention *a, int64_t rows, const heed_real *kv,
                  int64_t ld);
    /* Where row `row` stands in its sentence or hypothesis. */
    int64_t (*position)(void *context, int64_t row);
} heed__pass_keys;

/* Memory for passes over up to `capacity` rows, and the stream x that the sublayers change. */
typedef struct heed__pass {
    const heed__weights *w;
    heed_allocator allocator;
    int threads;
    int64_t capacity, keys; /* rows, and keys of a row, that there is memory for */
    heed_real *x;           /* (capacity,D) */
    heed_real *y;           /* (capacity,D) what a sublayer reads, then what it gives */
    heed_real *wide;        /* (capacity,widest) */
    heed_real *mixed;       /* (capacity,mixed) */
    heed__panel_rows bytes;
    heed_real *scratch;                  /* (threads, H*keys + what a norm needs) */
    const heed_real **key;               /* (threads, 2 keys) */
    heed__known_positions *angles;       /* (w->rotaries) */
    const heed__pass_recorder *recorder; /* NULL: nobody looks */
} heed__pass;

void heed__pass_init(heed__pass *p, const heed__weights *w, int threads, heed_allocator allocator);
void heed__pass_deinit(heed__pass *p);
/* What the buffers hold is lost when they grow. */
heed_status heed__pass_reserve(heed__pass *p, int64_t rows, int64_t keys, heed_error *err);
/* Angles of positions below count, for all rotary heads. */
heed_status heed__pass_positions(heed__pass *p, int64_t count, heed_error *err);

/* x (rows,K) quantised, where the weights are int8; once for all products that read it. */
void heed__pass_prepare(heed__pass *p, const heed__panel_weights *w, const heed_real *x,
                        int64_t rows);
/* Panels [begin,end) of y = f(x W + b) for rows [first, first+rows) of a prepared x (.,K); ld: from
 * row to row of y. */
void heed__pass_columns(const heed__pass *p, const heed__panel_weights *w, heed_real *y, int64_t ld,
                        const heed_real *x, int64_t first, int64_t rows, int64_t begin,
                        int64_t end);
/* All of it, by all threads. */
void heed__pass_product(const heed__pass *p, const heed__panel_weights *w, heed_real *y,
                        const heed_real *x, int64_t rows);
/* Prepare and product. */
void heed__pass_linear(heed__pass *p, const heed__panel_weights *w, heed_real *y,
                       const heed_real *x, int64_t rows);
/* y = norm(x + r); r may be NULL, and y may be x. */
void heed__pass_norm(const heed__pass *p, const heed__row_norm *n, heed_real *y, const heed_real *x,
                     const heed_real *r, int64_t rows);

/* The sublayers of a stack, and its norm, on p->x. */
void heed__pass_stack(heed__pass *p, const heed__packed_stack *s, int64_t rows,
                      const heed__pass_keys *k);
/* pass_attention.c: what self- and cross-attention make of x (rows,D), in p->y. */
void heed__pass_attention(heed__pass *p, const heed__packed_attention *a, const heed_real *x,
                          int64_t rows, const heed__pass_keys *k);
/* Keys and values of a prepared memory x (rows,D) for cross-attention, in p->wide. */
void heed__pass_memory(heed__pass *p, const heed__packed_attention *a, const heed_real *x,
                       int64_t rows);
/* Reals of a thread's part of p->scratch. */
int64_t heed__pass_scratch(const heed__pass *p, int64_t keys);

#endif
