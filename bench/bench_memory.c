/* bench_memory.c: operators that only move numbers, beyond the caches, against the triad.
 *
 * Counted are the bytes that must move, per element of the main array:
 *   layer norm           forward 2: reads x, writes y;     backward 3: reads x and dy, writes dx
 *   residual+drop+norm   forward 3: reads x and y, writes; backward 5: reads x, y, dz, writes 2
 *   softmax              forward 2: reads x, writes y;     backward 3: reads y and dy, writes dx
 *   Adam                 8: reads and writes weight, gradient (set to zero) and both moments
 * Statistics of a row and the gains are small and not counted. */
#include "measure.h"

#include <heed/train.h>
#include <math.h>
#include <stdio.h>

#define ROWS 65536
#define COLS 512

typedef enum kind { LAYER_NORM, ADD_NORM, SOFTMAX } kind;

struct subject {
    bench_run *run;
    kind kind;
    heed_tensor *x, *y, *gain, *bias;
};

static heed_tensor *apply(const struct subject *s)
{
    heed_tape *t = s->run->work;
    heed_tape_reset(t);
    switch (s->kind) {
    case LAYER_NORM:
        return heed_layer_norm(t, s->x, s->gain, s->bias, 1e-5);
    case ADD_NORM:
        return heed_add_norm(t, s->x, s->y, s->gain, s->bias, 0.1, 1e-5);
    case SOFTMAX:
        return heed_softmax(t, s->x);
    }
    return NULL;
}

static double forward(void *context)
{
    double start = heed_clock_seconds();
    apply(context);
    return heed_clock_seconds() - start;
}

static double backward(void *context)
{
    const struct subject *s = context;
    return bench_backward(s->run, apply(s));
}

/* Measures against the triad; numbers is how many must move, per element. */
static void measure(bench_run *r, const char *bench, double numbers, double target,
                    bench_subject *subject, void *context)
{
    double best[2];
    bench_alternate((bench_subject *[]){subject, bench_triad}, (void *[]){context, r}, 2,
                    2 * r->budget, best);
    if (bench_check(r, bench, r->work))
        return;
    double rate = numbers * ROWS * COLS * sizeof(heed_real) / best[0];
    double triad = BENCH_TRIAD_BYTES / best[1];
    bench_line line = {bench, "", rate * 1e-9, "GB/s", triad * 1e-9, rate / triad, target, NULL};
    snprintf(line.shape, sizeof line.shape, "%dx%d", ROWS, COLS);
    bench_report(r, &line);
}

struct adam {
    bench_run *run;
    heed_optimizer *optimizer;
};

static double adam_step(void *context)
{
    const struct adam *a = context;
    double start = heed_clock_seconds();
    heed_optimizer_step(a->optimizer, 1e-3, a->run->threads);
    return heed_clock_seconds() - start;
}

static void measure_adam(bench_run *r)
{
    static const char *const bench = "adam";
    if (!bench_wanted(r, bench))
        return;
    heed_error err = {0};
    heed_params *p = heed_params_new(NULL, &err);
    if (p)
        heed_param(heed_params_scope(p), "w", HEED_SHAPE(ROWS, COLS),
                   (heed_init){HEED_INIT_CONSTANT, 0.5});
    if (!p || heed_params_finish(p, 1, &err))
        goto done;
    struct adam a = {
        r, heed_optimizer_new(p, &(heed_optimizer_options){.kind = HEED_ADAM}, NULL, &err)};
    if (!a.optimizer)
        goto done;
    measure(r, bench, 8, 0.70, adam_step, &a);
    heed_optimizer_free(a.optimizer);
done:
    if (err.status) {
        heed_tape_fail(r->hold, err.status, "%s", err.text);
        bench_check(r, bench, r->hold);
    }
    heed_params_free(p);
}

void bench_memory(bench_run *r)
{
    static const struct {
        const char *forward, *backward;
        kind kind;
        double forward_numbers, backward_numbers, target;
    } rows[] = {
        {"layer norm forward", "layer norm backward", LAYER_NORM, 2, 3, 0.70},
        {"residual+norm forward", "residual+norm backward", ADD_NORM, 3, 5, 0.60},
        {"softmax forward", "softmax backward", SOFTMAX, 2, 3, 0.40},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        bool want_forward = bench_wanted(r, rows[i].forward),
             want_backward = bench_wanted(r, rows[i].backward);
        if (!want_forward && !want_backward)
            continue;
        struct subject s = {r,
                            rows[i].kind,
                            bench_random(r, HEED_SHAPE(ROWS, COLS), 1, BENCH_ACTIVATION),
                            rows[i].kind == ADD_NORM
                                ? bench_random(r, HEED_SHAPE(ROWS, COLS), 1, BENCH_ACTIVATION)
                                : NULL,
                            NULL,
                            NULL};
        s.gain = bench_random(r, HEED_SHAPE(COLS), 1, BENCH_PARAMETER);
        s.bias = bench_random(r, HEED_SHAPE(COLS), 1, BENCH_PARAMETER);
        if (bench_check(r, rows[i].forward, r->hold))
            return;
        if (want_forward)
            measure(r, rows[i].forward, rows[i].forward_numbers, rows[i].target, forward, &s);
        if (want_backward)
            measure(r, rows[i].backward, rows[i].backward_numbers, rows[i].target, backward, &s);
        heed_tape_reset(r->hold);
        heed_tape_reset(r->work);
    }
    measure_adam(r);
}
