/* fused.c: attention and projection+cross-entropy, against the time that their products alone would
 * take at the rate of a 512^3 product by CBLAS; and the small things, where what counts is the
 * overhead. */
#include "measure.h"

#include <math.h>
#include <stdio.h>

/* ---- attention ---- */

#define HEADS 8
#define DEPTH 64

struct attention {
    bench_run *run;
    heed_tensor *q, *k, *v;
    const heed_segments *segments;
    enum kind { DENSE, BANDED, LINEAR } kind;
    int64_t held; /* bytes of the working tape, at most */
};

/* The BAND keys around the query. */
#define BAND 64
static int band_ranges(const void *context, int head, int64_t i, int64_t queries, int64_t keys,
                       heed_key_range *out)
{
    (void)context;
    (void)head;
    (void)queries;
    out[0] = (heed_key_range){(int32_t)(i > BAND / 2 ? i - BAND / 2 : 0),
                              (int32_t)(i + BAND / 2 < keys ? i + BAND / 2 : keys), 1, 1};
    return 1;
}
static const heed_key_pattern band = {.ranges = band_ranges, .most = 1, .same_heads = true};

static double attention_both(void *context)
{
    struct attention *a = context;
    heed_tape *t = a->run->work;
    heed_tape_reset(t);
    double start = heed_clock_seconds();
    heed_tensor *y =
        a->kind == LINEAR
            ? heed_linear_attention(t, a->q, a->k, a->v, a->segments, a->segments,
                                    &(heed_linear_attention_options){.heads = HEADS})
            : heed_attention(t, a->q, a->k, a->v, a->segments, a->segments,
                             &(heed_attention_options){
                                 .heads = HEADS, .pattern = a->kind == BANDED ? &band : NULL});
    double forward = heed_clock_seconds() - start;
    forward += bench_backward(a->run, y);
    const int64_t held = (int64_t)heed_tape_memory(t);
    a->held = held > a->held ? held : a->held;
    return forward;
}

/* Linear attention does as much for a token as DEPTH keys would take.  The reference is what the
 * products of the pairs alone would take at the rate of a 512^3 product;
 * target: the share of that rate. */
static void measure_attention(bench_run *r, const char *bench, const char *shape,
                              const int64_t *lengths, int64_t count, enum kind kind)
{
    int64_t tokens = 0;
    double pairs = 0;
    for (int64_t i = 0; i < count; i++) {
        const int64_t met[] = {lengths[i], BAND, DEPTH};
        tokens += lengths[i];
        pairs += (double)(lengths[i] * met[kind]);
    }
    struct attention a = {r,
                          bench_random(r, HEED_SHAPE(tokens, HEADS * DEPTH), 1, BENCH_ACTIVATION),
                          bench_random(r, HEED_SHAPE(tokens, HEADS * DEPTH), 1, BENCH_ACTIVATION),
                          bench_random(r, HEED_SHAPE(tokens, HEADS * DEPTH), 1, BENCH_ACTIVATION),
                          heed_segments_new(heed_tape_arena(r->hold), count, lengths),
                          kind,
                          0};
    /* A tape of its own, so that what it holds is what this call allocated. */
    heed_error err = {0};
    heed_tape *kept = r->work;
    r->work = heed_tape_new(&(heed_tape_options){.threads = r->threads}, &err);
    if (!r->work) {
        heed_tape_fail(r->hold, err.status, "%s", err.text);
        r->work = kept;
    }
    if (bench_check(r, bench, r->hold) || !a.segments)
        goto done;
    /* Six products of T x T x Dk a head: q k^T and p v forward; dp, dq, dk, dv backward. */
    double best[2];
    bench_alternate((bench_subject *[]){attention_both, bench_product}, (void *[]){&a, r}, 2,
                    r->budget, best);
    if (!bench_check(r, bench, r->work)) {
        double reference = 6 * 2 * pairs * HEADS * DEPTH / BENCH_PRODUCT_FLOPS * best[1];
        char memory[64];
        snprintf(memory, sizeof memory, "%.1f MB", (double)a.held * 1e-6);
        bench_line line = {bench,
                           "",
                           best[0] * 1e3,
                           "ms",
                           reference * 1e3,
                           reference / best[0],
                           kind == DENSE ? 0.5 : 0.2,
                           memory};
        snprintf(line.shape, sizeof line.shape, "%s", shape);
        bench_report(r, &line);
    }
done:
    if (r->work != kept)
        heed_tape_free(r->work);
    r->work = kept;
    heed_tape_reset(r->hold);
}

static void measure_length(bench_run *r, const char *bench, int64_t count, int64_t length,
                           enum kind kind)
{
    int64_t lengths[128];
    char shape[64];
    for (int64_t i = 0; i < count; i++)
        lengths[i] = length;
    snprintf(shape, sizeof shape, "%lld of %lld, 8 heads of 64", (long long)count,
             (long long)length);
    measure_attention(r, bench, shape, lengths, count, kind);
}

void bench_attention(bench_run *r)
{
    static const char *const names[] = {"attention forward+backward", "attention band 64",
                                        "attention elu"};
    static const int64_t shapes[][2] = {{84, 24}, {8, 256}, {2, 1024}, {1, 4096}};
    int64_t lengths[128], tokens = 0;
    int n = 0;
    for (enum kind kind = DENSE; kind <= LINEAR; kind++)
        for (int i = kind == DENSE ? 0 : 1; i < 4 && bench_wanted(r, names[kind]); i++)
            measure_length(r, names[kind], shapes[i][0], shapes[i][1], kind);
    if (!bench_wanted(r, names[DENSE]))
        return;
    /* 5, 42, 23, 60, ...: every length from 5 to 60 once in 56, about 2000 tokens. */
    for (; tokens < 2000; n++)
        tokens += lengths[n] = 5 + n * 37 % 56;
    measure_attention(r, names[DENSE], "ragged 5 to 60", lengths, n, DENSE);
}

/* ---- projection and cross-entropy ---- */

#define TOKENS 2048
#define MODEL 512
#define WORDS 32000

struct projection {
    bench_run *run;
    heed_tensor *h, *w;
    int32_t targets[TOKENS];
};

static double projection_both(void *context)
{
    const struct projection *p = context;
    heed_tape *t = p->run->work;
    heed_tape_reset(t);
    double start = heed_clock_seconds();
    heed_tensor *loss =
        heed_project_cross_entropy(t, p->h, p->w, NULL, p->targets, 0.1, 1.0 / TOKENS, NULL);
    heed_backward(t, loss);
    return heed_clock_seconds() - start;
}

void bench_projection(bench_run *r)
{
    static const char *const bench = "projection+cross-entropy", *const memory =
                                                                     "projection+cross-entropy mem";
    if (!bench_wanted(r, bench) && !bench_wanted(r, memory))
        return;
    /* A tape of its own, so that what it holds is what this operator allocated. */
    heed_error err = {0};
    heed_tape *kept = r->work,
              *fresh = heed_tape_new(&(heed_tape_options){.threads = r->threads}, &err);
    struct projection p = {.run = r,
                           .h = bench_random(r, HEED_SHAPE(TOKENS, MODEL), 1, BENCH_PARAMETER),
                           .w = bench_random(r, HEED_SHAPE(WORDS, MODEL), 0.04, BENCH_PARAMETER)};
    for (int i = 0; i < TOKENS; i++)
        p.targets[i] = (int32_t)((int64_t)i * 7919 % WORDS);
    if (!fresh)
        heed_tape_fail(r->hold, err.status, "%s", err.text);
    if (!bench_check(r, bench, r->hold)) {
        r->work = fresh;
        /* Three products of N x D x V: logits, dh, dW. */
        double best[2];
        bench_alternate((bench_subject *[]){projection_both, bench_product}, (void *[]){&p, r}, 2,
                        r->budget, best);
        if (!bench_check(r, bench, r->work)) {
            double reference = 3 * 2.0 * TOKENS * MODEL * WORDS / BENCH_PRODUCT_FLOPS * best[1];
            double held = (double)heed_tape_memory(fresh) * 1e-6;
            bench_line time = {bench,           "2048x512x32000",    best[0] * 1e3, "ms",
                               reference * 1e3, reference / best[0], 0.90,          NULL};
            bench_report(r, &time);
            bench_line room = {memory, "2048x512x32000", held, "MB", 64, 64 / held, 1, NULL};
            bench_report(r, &room);
        }
        r->work = kept;
    }
    heed_tape_free(fresh);
    heed_tape_reset(r->hold);
}

/* ---- small things ---- */

#define ADDS 1000
#define STEPS 50
#define UNITS 100

struct small {
    bench_run *run;
    heed_tensor *x, *b, *u, *h;
};

/* A chain of additions, so that the one sum and the one reset at its ends do not count. */
static double adds(void *context)
{
    const struct small *s = context;
    heed_tape *t = s->run->work;
    double start = heed_clock_seconds();
    heed_tape_reset(t);
    heed_tensor *y = s->x;
    for (int i = 0; i < ADDS; i++)
        y = heed_add(t, y, s->b);
    heed_backward(t, heed_sum(t, y, HEED_ALL));
    return (heed_clock_seconds() - start) / ADDS;
}

static double lstm_steps(void *context)
{
    const struct small *s = context;
    heed_tape *t = s->run->work;
    double start = heed_clock_seconds();
    heed_tape_reset(t);
    heed_lstm_state state = {s->h, s->h};
    for (int i = 0; i < STEPS; i++)
        state = heed_lstm_step(t, s->x, state, s->u);
    heed_backward(t, heed_sum(t, state.h, HEED_ALL));
    return (heed_clock_seconds() - start) / STEPS;
}

static void measure_small(bench_run *r, const char *bench, const char *shape, double limit,
                          struct small *s, bench_subject *subject)
{
    double best;
    if (bench_check(r, bench, r->hold))
        return;
    bench_alternate((bench_subject *[]){subject}, (void *[]){s}, 1, r->budget / 2, &best);
    if (!bench_check(r, bench, r->work)) {
        bench_line line = {bench, "", best * 1e6, "us", limit, limit / (best * 1e6), 1, NULL};
        snprintf(line.shape, sizeof line.shape, "%s", shape);
        bench_report(r, &line);
    }
    heed_tape_reset(r->hold);
    heed_tape_reset(r->work);
}

void bench_small(bench_run *r)
{
    if (bench_wanted(r, "add forward+backward")) {
        struct small s = {.run = r,
                          .x = bench_random(r, HEED_SHAPE(1, 64), 1, BENCH_PARAMETER),
                          .b = bench_random(r, HEED_SHAPE(1, 64), 1, BENCH_PARAMETER)};
        measure_small(r, "add forward+backward", "1x64", 0.5, &s, adds);
    }
    if (bench_wanted(r, "lstm step forward+backward")) {
        struct small s = {.run = r,
                          .x = bench_random(r, HEED_SHAPE(1, 4 * UNITS), 1, BENCH_PARAMETER),
                          .u = bench_random(r, HEED_SHAPE(UNITS, 4 * UNITS), 0.1, BENCH_PARAMETER),
                          .h = bench_random(r, HEED_SHAPE(1, UNITS), 0, BENCH_INPUT)};
        measure_small(r, "lstm step forward+backward", "batch 1, 100 units", 15, &s, lstm_steps);
    }
}
