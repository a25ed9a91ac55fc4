/* layer_check.h: is the gradient of a whole layer right, for every parameter of its set?
 *
 * The layer's outputs are projected on fixed random weights, summed in double; each parameter's
 * gradient from the tape is held against the five-point central difference, as DESIGN has it for
 * operators: error = max|a-n| / max(max|a|, max|n|) per tensor.  Inputs are checked by declaring
 * them as parameters too.  The check is on trial itself: a gradient 0.1 % off must be refused. */
#ifndef HEED_TESTS_LAYER_CHECK_H
#define HEED_TESTS_LAYER_CHECK_H

#include "tensor/tape.h"
#include <heed/nn.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#ifdef HEED_DOUBLE
#ifndef LAYER_STEP
#define LAYER_STEP 1e-3
#endif
#ifndef LAYER_TOLERANCE
#define LAYER_TOLERANCE 1e-8
#endif
#else
#undef LAYER_STEP
/* Differences of float losses: rounding over the step. */
#define LAYER_STEP 2e-2
#define LAYER_TOLERANCE 2e-2
#endif
#define LAYER_OUTPUTS 4
/* The share of a tensor's elements that may lie next to a kink of relu or a maximum: those whose
 * differences at half the step are others.  They prove nothing, and are passed over. */
#ifndef LAYER_KINKS
#define LAYER_KINKS 0
#endif

/* Applies the layer on a clean tape and writes its outputs; returns how many. */
typedef int layer_run(heed_tape *t, void *context, heed_tensor **out);

struct layer_check {
    heed_tape *tape;
    layer_run *run;
    void *context;
    heed_real *weights[LAYER_OUTPUTS];
};

static int layer_outputs(struct layer_check *k, bool record, heed_tensor **out)
{
    heed_tape_reset(k->tape);
    heed_tape_set_recording(k->tape, record);
    int n = k->run(k->tape, k->context, out);
    assert_string_equal(heed_tape_error(k->tape)->text, "");
    assert_in_range(n, 1, LAYER_OUTPUTS);
    return n;
}

static double layer_loss(struct layer_check *k)
{
    heed_tensor *out[LAYER_OUTPUTS];
    int n = layer_outputs(k, false, out);
    double sum = 0;
    for (int o = 0; o < n; o++)
        for (int64_t r = 0; r < out[o]->rows; r++)
            for (int64_t j = 0; j < out[o]->cols; j++)
                sum += (double)k->weights[o][r * out[o]->cols + j] * heed__row(out[o], r)[j];
    return sum;
}

static double layer_slope(struct layer_check *k, heed_real *x, double step)
{
    static const int steps[4] = {-2, -1, 1, 2};
    heed_real kept = *x;
    double at[4];
    for (int s = 0; s < 4; s++) {
        *x = (heed_real)(kept + steps[s] * step);
        at[s] = layer_loss(k);
    }
    *x = kept;
    return (8 * (at[2] - at[1]) - (at[3] - at[0])) / (12 * step);
}

static void layer_check_tensor(struct layer_check *k, const heed_tensor *x, const heed_real *grad)
{
    const int64_t count = x->rows * x->cols;
    double worst = 0, worst_if_wrong = 0, largest = 0;
    double *n = malloc((size_t)count * sizeof *n);
    int64_t kinks = 0;
    for (int64_t j = 0; j < count; j++) {
        n[j] = layer_slope(k, x->data + j, LAYER_STEP);
        if (!isfinite((double)grad[j]) || !isfinite(n[j]))
            fail_msg("the gradient of '%s' is %g, by differences %g", x->name, (double)grad[j],
                     n[j]);
        largest = fmax(largest, fmax(fabs((double)grad[j]), fabs(n[j])));
    }
    for (int64_t j = 0; j < count; j++) {
        const double a = (double)grad[j];
        if (LAYER_KINKS > 0 && fabs(a - n[j]) > LAYER_TOLERANCE * largest &&
            fabs(layer_slope(k, x->data + j, LAYER_STEP / 2) - n[j]) > LAYER_TOLERANCE * largest) {
            kinks++;
            continue;
        }
        worst = fmax(worst, fabs(a - n[j]));
        worst_if_wrong = fmax(worst_if_wrong, fabs(1.001 * a - n[j]));
    }
    free(n);
    if (!(largest > 1e-4))
        fail_msg("the gradient of '%s' vanishes: the check proves nothing", x->name);
    if (!((double)kinks <= LAYER_KINKS * (double)count))
        fail_msg("%d of the %d elements of '%s' lie next to a kink", (int)kinks, (int)count,
                 x->name);
    if (!(worst <= LAYER_TOLERANCE * largest))
        fail_msg("the gradient of '%s' is off by %.3g", x->name, worst / largest);
#ifdef HEED_DOUBLE
    if (worst_if_wrong <= LAYER_TOLERANCE * largest)
        fail_msg("a gradient of '%s' that is 0.1 %% wrong would pass", x->name);
#endif
}

/* Moves every parameter of the finished set off its special start (zeros, ones), then checks all
 * that are not frozen. */
static void layer_check(heed_params *p, layer_run *run, void *context)
{
    struct layer_check k = {.run = run, .context = context};
    heed_rng rng = heed_rng_stream(&(heed_rng_key){.seed = 5});
    for (int i = 0; i < heed_params_count(p); i++) {
        heed_param_info e = heed_params_entry(p, i);
        for (int64_t j = 0; !e.is_state && j < heed_tensor_count(e.tensor); j++)
            e.tensor->data[j] += (heed_real)(0.3 * heed_rng_normal(&rng, (uint64_t)(e.offset + j)));
    }
    k.tape = heed_tape_new(&(heed_tape_options){.seed = 3}, NULL);
    assert_non_null(k.tape);
    heed_tensor *out[LAYER_OUTPUTS];
    heed_params_zero_grads(p); /* before: the fused loss writes gradients on the way forward */
    int n = layer_outputs(&k, true, out);
    for (int o = 0; o < n; o++) {
        int64_t count = heed_tensor_count(out[o]);
        k.weights[o] = malloc((size_t)count * sizeof(heed_real));
        for (int64_t j = 0; j < count; j++)
            k.weights[o][j] = (heed_real)heed_rng_normal(&rng, (uint64_t)(1000000 * (o + 1) + j));
    }
    assert_int_equal(heed__backward_from(k.tape, out, (const heed_real *const *)k.weights, n), 0);
    for (int i = 0; i < heed_params_count(p); i++) {
        heed_param_info e = heed_params_entry(p, i);
        if (!e.is_state && !e.frozen)
            layer_check_tensor(&k, e.tensor, heed_params_grads(p) + e.offset);
    }
    for (int o = 0; o < n; o++)
        free(k.weights[o]);
    heed_tape_free(k.tape);
}

#endif
