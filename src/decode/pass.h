/* pass.h (internal): rows of numbers through the layers of a Transformer, without a tape.
 *
 * Everything here works row by row: a sum runs in one order that depends on its row alone, and
 * threads share columns or rows, never a sum.  So a row's result depends neither on what other rows
 * there are nor on the number of threads. */
#ifndef HEED_DECODE_PASS_H
#define HEED_DECODE_PASS_H

#include "decode/weights.h"

/* The weights of one query, all heads, (H,n), for whoever wants to look. */
typedef void heed__watch(void *context, heed_attention_kind kind, int layer, int64_t row,
                         const heed_real *weights, int64_t n);

/* Who runs the pass knows which keys there are. */
typedef struct heed__pass_keys {
    void *context;
    /* Fills `key` with the keys that row `row` looks at, each with its values behind it, and
     * returns how many there are: of its own sentence or hypothesis, and of the source. */
    int64_t (*self)(void *context, int layer, int64_t row, const heed_real **key);
    int64_t (*cross)(void *context, int layer, int64_t row, const heed_real **key);
    /* The decoder's new keys and values, row after row at a distance of ld; before `self`. */
    void (*keep)(void *context, int layer, const heed_real *kv, int64_t ld);
} heed__pass_keys;

/* Memory for passes over up to `room` rows, and the stream x that the layers change. */
typedef struct heed__pass {
    const heed__weights *w;
    heed_allocator allocator;
    int threads;
    int64_t room, keys; /* rows, and keys of a row, that there is memory for */
    heed_real *x;       /* (room,D) */
    heed_real *y;       /* (room,D) what a sublayer reads, then what it gives */
    heed_real *wide;    /* (room,widest) */
    heed_real *mixed;   /* (room,H*Dv) */
    heed__panel_rows bytes;
    heed_real *scratch;    /* (threads, H*keys + what a norm needs) */
    const heed_real **key; /* (threads, 2 keys) */
    heed__watch *watch;    /* or NULL */
    void *watching;
} heed__pass;

void heed__pass_init(heed__pass *p, const heed__weights *w, int threads, heed_allocator allocator);
void heed__pass_deinit(heed__pass *p);
/* What the buffers hold is forgotten when they grow. */
heed_status heed__pass_reserve(heed__pass *p, int64_t rows, int64_t keys, heed_error *err);

/* x (rows,K) as bytes, where the weights are bytes; once for all products that read it. */
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
/* y = norm(x + r); r may be NULL, and y may be x. */
void heed__pass_norm(const heed__pass *p, const heed__row_norm *n, heed_real *y, const heed_real *x,
                     const heed_real *r, int64_t rows);
/* With cosines: the first vectors of Dk numbers in each row get length 1; ld: from row to row. */
void heed__pass_unit(const heed__pass *p, heed_real *x, int64_t ld, int64_t vectors, int64_t rows);

/* The layers on p->x. */
void heed__pass_encoder_layer(heed__pass *p, int layer, int64_t rows, const heed__pass_keys *k);
void heed__pass_decoder_layer(heed__pass *p, int layer, int64_t rows, const heed__pass_keys *k);

#endif
