/* measure.h: timing by alternation, and the lines that come of it.
 *
 * A subject does its thing once and returns the seconds that counted, so that it can prepare
 * itself outside of them.  Subject and reference take turns and the best of each is kept: what
 * disturbs the machine disturbs both, and never makes anything faster than it is. */
#ifndef HEED_BENCH_MEASURE_H
#define HEED_BENCH_MEASURE_H

#include "bench.h"

#include <heed/ops.h>

typedef double bench_subject(void *context);

/* Turns until `budget` seconds have gone by, at least three; best[i] for subject i. */
#define BENCH_SUBJECTS 4
void bench_alternate(bench_subject *const *subjects, void *const *contexts, int n, double budget,
                     double *best);

/* The run with one number of threads, and what this machine gives with it. */
typedef struct bench_run {
    const bench_settings *settings;
    int threads;
    heed_tape *hold; /* inputs live here, from one measurement to its end */
    heed_tape *work; /* what is measured records here */
    heed_tape *yard; /* what the yardsticks work on, for the whole run */
    heed_real *triad[3];
    heed_real *product[3];
    bool own_threads; /* whether the library's own threads make the 512^3 product faster */
    double budget;    /* seconds for a measurement */
    int lines;        /* reported so far */
    bool failed;
} bench_run;

/* How `value` is meant. */
typedef struct bench_line {
    const char *bench;
    char shape[64];
    double value;
    const char *unit;
    double reference; /* in the same unit; NAN: none */
    double ratio;     /* more is better; NAN: none */
    double target;    /* NAN: none */
    const char *note; /* for the table only; NULL: none */
} bench_line;
void bench_header(const bench_settings *s);
void bench_report(bench_run *r, const bench_line *line);
/* Whether --only lets a measurement of this name run. */
bool bench_wanted(const bench_run *r, const char *bench);
/* Says on stderr what went wrong on a tape, once, and marks the run; true if something had. */
bool bench_check(bench_run *r, const char *bench, const heed_tape *t);

/* Normal numbers times scale on the holding tape.  An activation's gradient starts
 * fresh in every backward, a parameter's is added to; an input has none. */
typedef enum bench_role { BENCH_INPUT, BENCH_ACTIVATION, BENCH_PARAMETER } bench_role;
heed_tensor *bench_random(bench_run *r, heed_shape shape, double scale, bench_role role);
/* Seconds of the backward of the operator that made y, the newest on the working tape, and of
 * nothing else: the gradient of y is given. */
double bench_backward(bench_run *r, heed_tensor *y);

/* The yardsticks, as references to alternate with; the context is the run.  The triad moves
 * BENCH_TRIAD_BYTES, the 512^3 product by CBLAS does BENCH_PRODUCT_FLOPS. */
#define BENCH_TRIAD_ELEMENTS ((int64_t)1 << 25) /* 128 MB an array: four times the last cache */
#define BENCH_TRIAD_BYTES (3.0 * (double)BENCH_TRIAD_ELEMENTS * (double)sizeof(heed_real))
#define BENCH_EDGE 512
#define BENCH_PRODUCT_FLOPS (2.0 * BENCH_EDGE * BENCH_EDGE * BENCH_EDGE)
/* Multiply-adds in registers, in fp32 or int8: operations a second, one turn. */
double bench_peak(int threads);
double bench_int8_peak(int threads);
/* Seconds of one thread that reads n numbers. */
double bench_read(const heed_real *x, int64_t n);
double bench_triad(void *run);
double bench_product(void *run);

/* The measurements, by subject. */
void bench_machine(bench_run *r); /* prepares the yardsticks; always first */
void bench_few_rows(bench_run *r);
void bench_panels(bench_run *r);
void bench_linear(bench_run *r);
void bench_convolution(bench_run *r);
void bench_memory(bench_run *r);
void bench_attention(bench_run *r);
void bench_mechanisms(bench_run *r);
void bench_projection(bench_run *r);
void bench_small(bench_run *r);

#endif
