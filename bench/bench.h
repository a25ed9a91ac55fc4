/* bench.h: what `heed bench` can measure.  Each prints to stdout, lines as they come, and returns
 * false, with the reason on stderr, if it could not. */
#ifndef HEED_BENCH_BENCH_H
#define HEED_BENCH_BENCH_H

#include <heed/model.h>

typedef struct bench_settings {
    int threads;      /* 0: first 1, then all processors */
    bool json;        /* one object a line */
    const char *only; /* run only measurements whose name contains this; NULL: all */
} bench_settings;

bool bench_kernels(const bench_settings *options);

typedef struct bench_train_settings {
    bench_settings common;
    const char *preset;      /* the name of the model, for the lines; NULL: none */
    heed_model_config model; /* with its vocabularies' sizes */
    const char *ids;         /* a file of batches (train_batches.c); NULL: they are made up */
    int64_t batch_tokens;    /* made up: target tokens of a batch */
    int64_t turns;           /* over all batches; 0: for ten seconds, three at least */
} bench_train_settings;

bool bench_train(const bench_train_settings *settings);

typedef struct bench_decode_settings {
    bench_settings common;
    const char *preset;
    heed_model_config model;
    int numbers;         /* heed_number_kind */
    int64_t beam, batch; /* 0: the usual ones, one after the other */
    int64_t workers;
    int64_t shortlist; /* pieces that a sentence may use; 0: all */
    double seconds;    /* for each cell, three turns at least */
} bench_decode_settings;

bool bench_decode(const bench_decode_settings *settings);

typedef struct bench_generate_settings {
    bench_settings common;
    const char *preset;
    heed_model_config model; /* a decoder's */
    int numbers;             /* heed_number_kind */
    double seconds;          /* for each half */
} bench_generate_settings;

bool bench_generate(const bench_generate_settings *settings);

/* Rows of attention's slots, patterns or normalisers as options say them, and lengths; none: the
 * usual ones. */
#define BENCH_ATTENTION_ROWS 64
#define BENCH_ATTENTION_LENGTHS 16
typedef struct bench_attention_settings {
    bench_settings common;
    const char *row[BENCH_ATTENTION_ROWS];
    int count;
    int64_t length[BENCH_ATTENTION_LENGTHS];
    int lengths;
    bool both_sides; /* not causal */
} bench_attention_settings;

bool bench_attention_rows(const bench_attention_settings *settings);

#endif
