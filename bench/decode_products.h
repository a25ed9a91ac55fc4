/* decode_products.h: the matrix products of decoding, without all that stands between them. */
#ifndef HEED_BENCH_DECODE_PRODUCTS_H
#define HEED_BENCH_DECODE_PRODUCTS_H

#include <heed/model.h>

/* How a batch is decoded. */
typedef struct bench_products_form {
    const heed_model_config *model;
    bool bytes;             /* int8 */
    int64_t batch, beam;    /* lines, and hypotheses of each */
    int64_t tokens_in, out; /* of a line, its EOS included; and steps */
    int64_t shortlist;      /* pieces that can come out; 0: all */
} bench_products_form;

typedef struct bench_products bench_products;
/* Random weights; NULL after an error. */
bench_products *bench_products_new(const bench_products_form *form, heed_error *err);
void bench_products_free(bench_products *p);
/* Operations of a batch, and seconds of one turn with one thread, rounding of rows included. */
double bench_products_operations(const bench_products *p);
double bench_products_turn(bench_products *p);

#endif
