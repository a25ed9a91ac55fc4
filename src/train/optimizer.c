/* optimizer.c: SGD, Adam (Kingma and Ba 2015), AdamW (Loshchilov and Hutter 2019), RMSProp (Hinton;
 * centred: Graves 2013, with eps outside the root) over a set's flat buffers.
 *
 * A step is one parallel pass: a thread takes its part of the flat buffer and walks the ranges that
 * lie in it (groups, frozen entries).  Every number is updated alone, so the result does not depend
 * on the number of threads.  Memory: one flat buffer a moment. */
#include <heed/train.h>
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/parallel.h"
#include "kernel/kernels.h"
#include "nn/params.h"
#include "train/trainer.h"

#define MAX_MOMENTS 3
/* Threads are cut apart at whole blocks: full vectors, no shared cache lines. */
#define BLOCK 1024

enum moment { MEAN, SQUARE, MOMENTUM };
static const char *const moment_names[] = {"mean", "square", "momentum"};

struct heed_optimizer {
    heed_allocator allocator;
    heed_params *params;
    heed_optimizer_options o; /* as they apply, defaults filled in */
    int64_t size;
    int64_t updates;
    int count;
    enum moment kind[MAX_MOMENTS];  /* (count) */
    heed_real *moment[MAX_MOMENTS]; /* (size) each, by enum moment; NULL where there is none */
    /* Of parts: moments are those of the parts alone, one after the other; size is theirs. */
    const heed__exact_sum *parts;
    heed_real *whole[MAX_MOMENTS]; /* (heed_params_size) between whole and part */
};

/* ---- options ---- */

/* 0 stands for the default, a negative number for 0. */
static double or_default(double x, double value)
{
    return x == 0 ? value : x < 0 ? 0 : x;
}

static heed_status check_options(heed_optimizer_options *o, heed_error *err)
{
    bool rmsprop = o->kind == HEED_RMSPROP;
    o->momentum = or_default(o->momentum, 0);
    o->beta1 = or_default(o->beta1, 0.9);
    o->beta2 = or_default(o->beta2, 0.98);
    o->eps = or_default(o->eps, rmsprop ? 1e-8 : 1e-9);
    o->alpha = or_default(o->alpha, 0.95);
    const struct {
        const char *name;
        double value, below;
    } checks[] = {{"momentum", o->momentum, 1}, {"beta1", o->beta1, 1},
                  {"beta2", o->beta2, 1},       {"alpha", o->alpha, 1},
                  {"eps", o->eps, INFINITY},    {"weight decay", o->weight_decay, INFINITY}};
    if (o->kind < HEED_SGD || o->kind > HEED_RMSPROP)
        return heed__fail(err, HEED_ARGUMENT, "optimizer: there is no kind %d", (int)o->kind);
    for (size_t i = 0; i < sizeof checks / sizeof *checks; i++)
        if (!(checks[i].value >= 0 && checks[i].value < checks[i].below))
            return heed__fail(err, HEED_ARGUMENT, "optimizer: %s is %g, expected in [0,%g)",
                              checks[i].name, checks[i].value, checks[i].below);
    return HEED_OK;
}

/* ---- new, free ---- */

static bool add_moment(heed_optimizer *o, enum moment which)
{
    o->moment[which] = heed__allocate_zeroed(&o->allocator, (size_t)o->size, sizeof(heed_real));
    o->kind[o->count++] = which;
    return o->moment[which] != NULL;
}

static bool add_moments(heed_optimizer *o)
{
    bool adam = o->o.kind == HEED_ADAM || o->o.kind == HEED_ADAMW;
    bool rmsprop = o->o.kind == HEED_RMSPROP;
    return (!(adam || (rmsprop && o->o.centred)) || add_moment(o, MEAN)) &&
           (!(adam || rmsprop) || add_moment(o, SQUARE)) &&
           (adam || o->o.momentum == 0 || add_moment(o, MOMENTUM));
}

heed_optimizer *heed__optimizer_of_parts(heed_params *p, const heed_optimizer_options *options,
                                         const heed__exact_sum *sum,
                                         const heed_allocator *allocator, heed_error *err)
{
    heed_optimizer_options checked = options ? *options : (heed_optimizer_options){0};
    if (!p || !heed_params_values(p)) {
        heed__fail(err, HEED_STATE, "optimizer: the parameter set is not finished");
        return NULL;
    }
    if (check_options(&checked, err) != HEED_OK)
        return NULL;
    heed_allocator a = heed__allocator_or_default(allocator);
    heed_optimizer *o = heed__allocate_zeroed(&a, 1, sizeof *o);
    if (o) {
        o->allocator = a;
        o->params = p;
        o->o = checked;
        o->parts = sum;
        o->size = sum ? heed__exact_sum_own_size(sum, heed_params_size(p)) : heed_params_size(p);
        if (add_moments(o))
            return o;
    }
    heed__fail(err, HEED_MEMORY, "optimizer: out of memory for %lld parameters",
               (long long)heed_params_size(p));
    heed_optimizer_free(o);
    return NULL;
}

heed_optimizer *heed_optimizer_new(heed_params *p, const heed_optimizer_options *options,
                                   const heed_allocator *allocator, heed_error *err)
{
    return heed__optimizer_of_parts(p, options, NULL, allocator, err);
}

void heed__optimizer_part(heed_optimizer *o)
{
    for (int i = 0; i < MAX_MOMENTS; i++) {
        heed__release(&o->allocator, o->whole[i], (size_t)heed_params_size(o->params),
                      sizeof(heed_real));
        o->whole[i] = NULL;
    }
}

heed_status heed__optimizer_whole(heed_optimizer *o, heed_error *err)
{
    heed__optimizer_part(o);
    for (int i = 0; i < o->count; i++) {
        heed_real *all =
            heed__allocate_zeroed(&o->allocator, (size_t)heed_params_size(o->params), sizeof *all);
        if (!all)
            return heed__fail(err, HEED_MEMORY,
                              "optimizer: out of memory for the moments of all "
                              "processes");
        o->whole[o->kind[i]] = all;
    }
    return HEED_OK;
}

heed_real *heed__optimizer_own(const heed_optimizer *o, int i, int64_t bucket)
{
    return o->moment[o->kind[i]] + heed__exact_sum_own_offset(o->parts, bucket);
}

void heed_optimizer_free(heed_optimizer *o)
{
    if (!o)
        return;
    heed__optimizer_part(o);
    heed_allocator a = o->allocator;
    for (int i = 0; i < MAX_MOMENTS; i++)
        heed__release(&a, o->moment[i], (size_t)o->size, sizeof(heed_real));
    heed__release(&a, o, 1, sizeof *o);
}

/* ---- a step ---- */

struct step {
    const heed_optimizer *o;
    double rate;
    int64_t first; /* element of the buffers that the first moment belongs to */
    int64_t begin; /* where the elements of this step begin */
};

/* Adam, section 2: m / (1 - beta1^t) and v / (1 - beta2^t), folded into rate and scale. */
static heed__adam adam_constants(const heed_optimizer *o, double rate, double weight_decay)
{
    double t = (double)o->updates;
    return (heed__adam){
        .rate = (heed_real)(rate / (1 - pow(o->o.beta1, t))),
        .beta1 = (heed_real)o->o.beta1,
        .rest1 = (heed_real)(1 - o->o.beta1),
        .beta2 = (heed_real)o->o.beta2,
        .rest2 = (heed_real)(1 - o->o.beta2),
        .scale = (heed_real)(1 / sqrt(1 - pow(o->o.beta2, t))),
        .eps = (heed_real)o->o.eps,
        .keep = (heed_real)(1 - rate * weight_decay),
    };
}

/* Elements begin .. end, which lie in one range r; the moments of begin are number `at`. */
static void update(const heed_optimizer *o, const heed__param_range *r, double rate, int64_t begin,
                   int64_t end, int64_t at)
{
    const heed_kernels *k = heed__kernels();
    int64_t n = end - begin;
    heed_real *w = heed_params_values(o->params) + begin, *g = heed_params_grads(o->params) + begin;
    heed_real *m[MAX_MOMENTS];
    for (int i = 0; i < MAX_MOMENTS; i++)
        m[i] = o->moment[i] ? o->moment[i] + at : NULL;
    if (r->frozen) {
        memset(g, 0, (size_t)n * sizeof *g);
        return;
    }
    rate *= r->rate_factor;
    switch (o->o.kind) {
    case HEED_SGD:
        k->sgd(w, g, m[MOMENTUM], n, (heed_real)rate, (heed_real)o->o.momentum);
        break;
    case HEED_ADAM:
    case HEED_ADAMW: {
        double decay = r->has_weight_decay ? r->weight_decay : o->o.weight_decay;
        heed__adam c = adam_constants(o, rate, o->o.kind == HEED_ADAMW ? decay : 0);
        k->adam(w, g, m[MEAN], m[SQUARE], n, &c);
        break;
    }
    case HEED_RMSPROP: {
        heed__rmsprop c = {(heed_real)rate, (heed_real)o->o.alpha, (heed_real)(1 - o->o.alpha),
                           (heed_real)o->o.eps, (heed_real)o->o.momentum};
        k->rmsprop(w, g, m[SQUARE], m[MEAN], m[MOMENTUM], n, &c);
        break;
    }
    }
}

static void step_part(void *context, int64_t begin, int64_t end, int thread)
{
    const struct step *c = context;
    (void)thread;
    begin += c->begin;
    end += c->begin;
    for (int i = 0; i < heed__params_ranges(c->o->params); i++) {
        heed__param_range r = heed__params_range(c->o->params, i);
        int64_t from = r.begin > begin ? r.begin : begin, to = r.end < end ? r.end : end;
        if (from < to)
            update(c->o, &r, c->rate, from, to, from - c->first);
    }
}

void heed__optimizer_step(heed_optimizer *o, double rate, int threads)
{
    o->updates++;
    if (!o->parts) {
        struct step c = {o, rate, 0, 0};
        heed__parallel(threads, o->size, BLOCK, 4, step_part, &c);
        return;
    }
    const int64_t n = heed_params_size(o->params);
    for (int64_t b = 0; b < heed__exact_sum_buckets(o->parts, n); b++) {
        int64_t begin, end;
        heed__exact_sum_own(o->parts, n, b, &begin, &end);
        struct step c = {o, rate, begin - heed__exact_sum_own_offset(o->parts, b), begin};
        heed__parallel(threads, end - begin, BLOCK, 4, step_part, &c);
    }
}

void heed_optimizer_step(heed_optimizer *o, double rate, int threads)
{
    if (!o)
        return;
    heed__optimizer_step(o, rate, threads);
    heed_params_fold_state(o->params);
}

/* ---- asking ---- */

int64_t heed_optimizer_updates(const heed_optimizer *o)
{
    if (!o)
        return 0;
    return o->updates;
}

void heed_optimizer_set_updates(heed_optimizer *o, int64_t updates)
{
    if (!o)
        return;
    o->updates = updates > 0 ? updates : 0;
}

int heed_optimizer_moments(const heed_optimizer *o)
{
    if (!o)
        return 0;
    return o->count;
}

heed_real *heed_optimizer_moment(const heed_optimizer *o, int i)
{
    if (!o)
        return NULL;
    if (i < 0 || i >= o->count)
        return NULL;
    return o->parts ? o->whole[o->kind[i]] : o->moment[o->kind[i]];
}

const char *heed_optimizer_moment_name(const heed_optimizer *o, int i)
{
    if (!o)
        return NULL;
    return i >= 0 && i < o->count ? moment_names[o->kind[i]] : NULL;
}
