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

/* Sees what matrices are multiplied with, rows (rows,K) of one product; where several products read
 * the same rows, the first. */
typedef struct heed__pass_watch {
    void *context;
    void (*see)(void *context, const heed__panel_weights *w, const heed_real *x, int64_t rows);
} heed__pass_watch;

/* Where a row stands: its position, and how many rows its sentence has so far. */
typedef struct heed__pass_place {
    int64_t position, rows;
} heed__pass_place;

/* Which keys there are: known to who runs the pass. */
typedef struct heed__pass_keys {
    void *context;
    heed__pass_place (*place)(void *context, int64_t row);
    /* The keys of these positions of the sentence or hypothesis of row `row`, each with its values
     * behind it, to `key`. */
    void (*own)(void *context, const heed__packed_attention *a, int64_t row, heed_key_range r,
                const heed_real **key);
    /* All keys of its memory; how many there are. */
    int64_t (*memory)(void *context, const heed__packed_attention *a, int64_t row,
                      const heed_real **key);
    /* New keys and values of self-attention, row after row at a distance of ld; before `own`.
     * NULL: they stay where the pass has made them. */
    void (*cache)(void *context, const heed__packed_attention *a, int64_t rows, const heed_real *kv,
                  int64_t ld);
    /* Row `row`'s own states from `at` on: those of attention without weights and of SSRUs.  NULL:
     * states begin and end with the sentences of the pass. */
    heed_real *(*state)(void *context, int64_t at, int64_t row);
} heed__pass_keys;

/* The keys of one query in one head, or in all. */
typedef struct heed__key_list {
    const heed_real **key; /* (n) */
    int32_t *position;     /* (n) in the sentence; -1: it has none */
    heed_real *distance;   /* (n), */
    int32_t *column;       /* (n) of forms that ask for them */
    int64_t n;
} heed__key_list;

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
    heed_real *scratch;                  /* (threads) parts, heed__pass_scratch each */
    const heed_real **key;               /* (threads, 2 keys) */
    int32_t *key_position, *column;      /* the same */
    heed_real *distance;                 /* the same */
    heed_key_range *ranges;              /* (threads, heed__pass_ranges) */
    heed_real *state;                    /* (w->state) of sentences of a pass */
    heed__known_positions *angles;       /* (w->rotaries) */
    const heed__pass_recorder *recorder; /* NULL: nobody looks */
    const heed__pass_watch *watch;       /* the same */
} heed__pass;

void heed__pass_init(heed__pass *p, const heed__weights *w, int threads, heed_allocator allocator);
void heed__pass_deinit(heed__pass *p);
/* What the buffers hold is lost when they grow. */
heed_status heed__pass_reserve(heed__pass *p, int64_t rows, int64_t keys, heed_error *err);
/* Angles of positions below count, for all rotary heads. */
heed_status heed__pass_positions(heed__pass *p, int64_t count, heed_error *err);

/* x (rows,K) quantised, where the weights are int8; once for all products that read it with the
 * same multiplier. */
static inline bool heed__pass_read_alike(const heed__panel_weights *a, const heed__panel_weights *b)
{
    return a->bits == b->bits && !(a->multiplier < b->multiplier || a->multiplier > b->multiplier);
}
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
/* pass_linear.c: attention without weights, of queries, keys and values in p->wide to p->mixed. */
void heed__pass_linear_attention(heed__pass *p, const heed__packed_attention *a, int64_t rows,
                                 const heed__pass_keys *k);
/* pass_ssru.c: what an SSRU makes of x (rows,D), in p->y. */
void heed__pass_ssru(heed__pass *p, const heed__packed_ssru *l, const heed_real *x, int64_t rows,
                     const heed__pass_keys *k);
/* pass_attention.c: what self- and cross-attention make of x (rows,D), in p->y. */
void heed__pass_attention(heed__pass *p, const heed__packed_attention *a, const heed_real *x,
                          int64_t rows, const heed__pass_keys *k);
/* Keys and values of a prepared memory x (rows,D) for cross-attention, in p->wide. */
void heed__pass_memory(heed__pass *p, const heed__packed_attention *a, const heed_real *x,
                       int64_t rows);
/* Keys of a row there is memory for, those of shared rows among them. */
int64_t heed__pass_key_room(const heed__pass *p, int64_t keys);
/* Ranges of keys that a query has at most. */
int64_t heed__pass_ranges(const heed__pass *p, int64_t keys);
/* Reals of a thread's part of p->scratch. */
int64_t heed__pass_scratch(const heed__pass *p, int64_t keys);

#endif
