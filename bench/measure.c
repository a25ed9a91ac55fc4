/* measure.c: see measure.h. */
#include "measure.h"

#include "tensor/tape.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define FEWEST_TURNS 3

void bench_alternate(bench_subject *const *subjects, void *const *contexts, int n, double budget,
                     double *best)
{
    for (int i = 0; i < n; i++) {
        best[i] = INFINITY;
        subjects[i](contexts[i]); /* pages touched, caches and threads warm */
    }
    double start = heed_clock_seconds();
    for (int turn = 0; turn < FEWEST_TURNS || heed_clock_seconds() - start < budget; turn++)
        for (int i = 0; i < n; i++)
            best[i] = fmin(best[i], subjects[i](contexts[i]));
}

bool bench_wanted(const bench_run *r, const char *bench)
{
    return !r->failed && (!r->settings->only || strstr(bench, r->settings->only));
}

bool bench_check(bench_run *r, const char *bench, const heed_tape *t)
{
    const heed_error *e = heed_tape_error(t);
    if (e->status && !r->failed) {
        fprintf(stderr, "heed: cannot measure '%s': %s\n", bench, e->text);
        r->failed = true;
    }
    return e->status != HEED_OK;
}

heed_tensor *bench_random(bench_run *r, heed_shape shape, double scale, bench_role role)
{
    heed_tensor *x = role == BENCH_INPUT ? heed_input(r->hold, shape, NULL)
                                         : heed_variable(r->hold, shape, NULL);
    if (!x)
        return NULL;
    /* Normal numbers, a few thousand of them over and over: drawing millions takes longer than
     * measuring. */
    heed_rng rng = heed_rng_stream(&(heed_rng_key){.seed = (uint64_t)(x->rows * 31 + x->cols)});
    real some[4093];
    for (size_t i = 0; i < sizeof some / sizeof *some; i++)
        some[i] = (real)(scale * heed_rng_normal(&rng, i));
    for (int64_t i = 0; i < x->rows * x->cols; i++)
        x->data[i] = some[i % (int64_t)(sizeof some / sizeof *some)];
    x->keeps_grad = role == BENCH_PARAMETER;
    return x;
}

double bench_backward(bench_run *r, heed_tensor *y)
{
    heed_opcall *c = r->work->last;
    if (!y || !c || c->out[0] != y || heed__grad_ensure(r->work, y, "bench")) {
        heed_tape_fail(r->work, HEED_STATE, "bench: the operator recorded nothing");
        return 0;
    }
    real *dy = heed__grad_of(y);
    for (int64_t i = 0; i < y->rows * y->cols; i++)
        dy[i] = (real)((double)(i % 251 - 125) * 1e-5);
    for (int i = 0; i < c->n_in; i++)
        if (c->in[i] && c->in[i]->needs_grad && !c->in[i]->keeps_grad)
            c->in[i]->fresh_grad = true;
    double start = heed_clock_seconds();
    c->op->backward(c);
    return heed_clock_seconds() - start;
}

/* ---- lines ---- */

void bench_header(const bench_settings *s)
{
    if (!s->json)
        printf("%-28s %-23s %7s %10s %-8s %10s %6s %6s\n", "bench", "shape", "threads", "value",
               "unit", "reference", "ratio", "target");
}

static void json_number(const char *name, double v, const char *end)
{
    if (isfinite(v))
        printf("\"%s\":%.5g%s", name, v, end);
    else
        printf("\"%s\":null%s", name, end);
}

static void cell(double v, int width, int decimals)
{
    if (isfinite(v))
        printf(" %*.*f", width, decimals, v);
    else
        printf(" %*s", width, "-");
}

void bench_report(bench_run *r, const bench_line *l)
{
    r->lines++;
    if (r->settings->json) {
        printf("{\"bench\":\"%s\",\"shape\":\"%s\",\"threads\":%d,", l->bench, l->shape,
               r->threads);
        json_number("value", l->value, ",");
        printf("\"unit\":\"%s\",", l->unit);
        json_number("reference", l->reference, ",");
        json_number("ratio", l->ratio, ",");
        json_number("target", l->target, ",");
        heed_machine m;
        heed_machine_describe(&m);
        printf("\"machine\":\"%s, %s kernels\"}\n", m.cpu, m.instruction_set);
    } else {
        printf("%-28s %-23s %7d", l->bench, l->shape, r->threads);
        cell(l->value, 10, 3);
        printf(" %-8s", l->unit);
        cell(l->reference, 10, 3);
        cell(l->ratio, 6, 2);
        cell(l->target, 6, 2);
        printf("%s%s%s\n", l->ratio < l->target ? "  SHORT" : "", l->note ? "  " : "",
               l->note ? l->note : "");
    }
    fflush(stdout);
}
