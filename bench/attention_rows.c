/* attention_rows.c: every efficient attention beside the dense one as sequences grow: 8 heads of
 * 64, forward and backward, time and memory, the exponents that fit them, and from where on a row
 * is faster than dense attention.  All rows take turns at each length; the best turn of each
 * counts. */
#include "bench.h"

#include <heed/attention.h>

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { HEADS = 8, DEPTH = 64, WIDTH = HEADS * DEPTH, TURNS = 2 };
/* What costs the square of the length stops here. */
#define LONGEST_QUADRATIC 8192
/* Exponents are fitted to lengths from here on. */
#define FIT_FROM 2048

/* The rows that are measured if none are named. */
static const char *const usual[] = {"global",
                                    "band:256",
                                    "dilated:64:2",
                                    "band:64+global:2",
                                    "random:8",
                                    "block:64",
                                    "strided:128",
                                    "fixed:128:8",
                                    "star",
                                    "etc:64:8",
                                    "bigbird:64:3",
                                    "bpt:4",
                                    "block-image:64:8",
                                    "axial:64:heads",
                                    "top-k:16",
                                    "top-k:16:approximate",
                                    "lsh:64:2",
                                    "routing:64",
                                    "elu",
                                    "performer",
                                    "rfa",
                                    "delta"};
static const int64_t usual_lengths[] = {256, 512, 1024, 2048, 4096, 8192, 16384};

struct point {
    double forward, both; /* seconds, best; 0: not measured */
    int64_t bytes, pairs;
};
struct row {
    const char *text;
    heed_attend_options options;
    bool dense, quadratic;
    struct point at[BENCH_ATTENTION_LENGTHS];
};

/* A row is a pattern, a normaliser or a choice of queries: by its first name. */
static bool read_row(struct row *r, const char *text, bool causal)
{
    heed_error first = {0}, second = {0}, third = {0};
    *r = (struct row){.text = text,
                      .options = {.heads = HEADS,
                                  .query_d = WIDTH,
                                  .key_d = WIDTH,
                                  .value_d = WIDTH,
                                  .projected = true,
                                  .causal = causal}};
    if (heed_slot_parse(HEED_SLOT_PATTERN, text, &r->options.pattern, &first) &&
        heed_slot_parse(HEED_SLOT_NORMALISER, text, &r->options.normaliser, &second) &&
        heed_slot_parse(HEED_SLOT_QUERIES, text, &r->options.queries, &third)) {
        fprintf(stderr, "heed: %s; or as a normaliser: %s; or of queries: %s\n", first.text,
                second.text, third.text);
        return false;
    }
    const heed_term *term = &r->options.pattern.term[0];
    r->dense = strcmp(text, "global") == 0;
    r->quadratic = r->dense || (term->kind == HEED_PATTERN_TOP_K && term->number[1] == 0);
    return true;
}

static void fill(heed_tensor *x, uint64_t salt)
{
    const heed_rng rng = heed_rng_stream(&(heed_rng_key){.seed = 3, .node = salt});
    for (int64_t i = 0; x && i < heed_tensor_count(x); i++)
        heed_tensor_data(x)[i] = (heed_real)heed_rng_normal(&rng, (uint64_t)i);
}

/* Whether the slots take it, as a causal row or not. */
static bool is_refused(const struct row *r, heed_error *err)
{
    heed_params *p = heed_params_new(NULL, err);
    heed_attend_layer l;
    if (p)
        heed_attend_build(&l, heed_params_scope(p), &r->options);
    if (p)
        heed_params_finish(p, 1, err);
    heed_params_free(p);
    return err->status;
}

/* Of one thread its own seconds, which other programs do not lengthen. */
static double seconds_of(int threads)
{
    struct timespec t;
    if (threads > 1 || clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t) != 0)
        return heed_clock_seconds();
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* One turn; false after saying what is wrong. */
static bool turn(struct row *r, int at, int64_t n, int threads)
{
    heed_error err = {0};
    heed_params *p = heed_params_new(NULL, &err);
    heed_tape *t = heed_tape_new(&(heed_tape_options){.threads = threads}, &err);
    heed_attend_layer l;
    heed_tensor *in[3], *y = NULL;
    struct point *to = &r->at[at];
    heed_attention_counts counts = {0};
    double forward = 0, both = 0;
    if (p && t) {
        heed_attend_build(&l, heed_params_scope(p), &r->options);
        heed_params_finish(p, 1, &err);
    }
    if (p && t && !err.status) {
        const heed_segments *s = heed_segments_new(heed_tape_arena(t), 1, &n);
        for (int i = 0; i < 3; i++)
            fill(in[i] = heed_variable(t, HEED_SHAPE(n, WIDTH), NULL), (uint64_t)i);
        const double start = seconds_of(threads);
        const heed_memory m = heed_attend_memory(t, &l, in[1], in[2], s);
        y = heed_attend(t, &l, in[0], &m, s, &(heed_attend_extra){.counts = &counts});
        forward = seconds_of(threads) - start;
        heed_backward(t, heed_sum(t, y, HEED_ALL));
        both = seconds_of(threads) - start;
        if (heed_tape_error(t)->status)
            err = *heed_tape_error(t);
    }
    if (err.status) {
        fprintf(stderr, "heed: %s: %s\n", r->text, err.text);
    } else {
        to->forward = to->forward > 0 ? fmin(to->forward, forward) : forward;
        to->both = to->both > 0 ? fmin(to->both, both) : both;
        to->bytes = (int64_t)heed_tape_memory(t);
        to->pairs = counts.pairs;
    }
    heed_tape_free(t);
    heed_params_free(p);
    return !err.status;
}

/* ---- what is said ---- */

static void say_point(const struct row *r, const struct point *p, const struct point *dense,
                      int64_t n, bool json)
{
    const double rate = (double)n / p->both, ratio = dense->both > 0 ? dense->both / p->both : 0;
    if (json) {
        printf("{\"row\":\"%s\",\"n\":%lld,\"forward_ms\":%.3f,\"both_ms\":%.3f,\"tokens_s\":%.0f,"
               "\"mb\":%.1f,\"pairs\":%lld",
               r->text, (long long)n, p->forward * 1e3, p->both * 1e3, rate,
               (double)p->bytes * 1e-6, (long long)p->pairs);
        if (ratio > 0)
            printf(",\"times_dense\":%.2f", ratio);
        puts("}");
        return;
    }
    printf("%-18s %6lld %10.1f ms %10.1f ms %9.0f tokens/s %9.1f MB", r->text, (long long)n,
           p->forward * 1e3, p->both * 1e3, rate, (double)p->bytes * 1e-6);
    if (ratio > 0 && !r->dense)
        printf("  %6.2f x dense", ratio);
    putchar('\n');
}

/* The slope of log y over log n by least squares; NAN of fewer than two points. */
static double exponent(const struct row *r, const int64_t *lengths, int count, bool memory)
{
    double n = 0, x = 0, y = 0, xx = 0, xy = 0;
    for (int i = 0; i < count; i++) {
        if (lengths[i] < FIT_FROM || !(r->at[i].both > 0))
            continue;
        const double a = log((double)lengths[i]),
                     b = log(memory ? (double)r->at[i].bytes : r->at[i].both);
        n++;
        x += a;
        y += b;
        xx += a * a;
        xy += a * b;
    }
    return n < 2 ? (double)NAN : (n * xy - x * y) / (n * xx - x * x);
}

/* The first length from which on the row is faster than the dense one; 0: none was. */
static int64_t overtakes(const struct row *r, const struct row *dense, const int64_t *lengths,
                         int count)
{
    int64_t from = 0;
    for (int i = 0; i < count; i++)
        if (dense->at[i].both > 0 && r->at[i].both > 0) {
            if (r->at[i].both >= dense->at[i].both)
                from = 0;
            else if (!from)
                from = lengths[i];
        }
    return from;
}

static void say_row(const struct row *r, const struct row *dense, const int64_t *lengths, int count,
                    bool json)
{
    const double time = exponent(r, lengths, count, false),
                 memory = exponent(r, lengths, count, true);
    const int64_t from = dense ? overtakes(r, dense, lengths, count) : 0;
    if (json && !isfinite(time) && !from)
        return;
    if (json) {
        printf("{\"row\":\"%s\"", r->text);
        if (isfinite(time))
            printf(",\"time_exponent\":%.2f,\"memory_exponent\":%.2f", time, memory);
        if (from)
            printf(",\"faster_from\":%lld", (long long)from);
        puts("}");
        return;
    }
    printf("%-18s", r->text);
    if (isfinite(time))
        printf(" time n^%.2f, memory n^%.2f", time, memory);
    if (from)
        printf(", faster than dense from n = %lld", (long long)from);
    else if (dense && !r->dense)
        printf(", not faster than dense at these lengths");
    putchar('\n');
}

bool bench_attention_rows(const bench_attention_settings *s)
{
    static struct row row[BENCH_ATTENTION_ROWS];
    const int named = s->count ? s->count : (int)(sizeof usual / sizeof *usual);
    const int64_t *lengths = s->lengths ? s->length : usual_lengths;
    const int count = s->lengths ? s->lengths : (int)(sizeof usual_lengths / sizeof *usual_lengths);
    const struct row *dense = NULL;
    int rows = 0;
    for (int i = 0; i < named; i++) {
        heed_error err = {0};
        if (!read_row(&row[rows], s->count ? s->row[i] : usual[i], !s->both_sides))
            return false;
        const bool refused = is_refused(&row[rows], &err);
        if (refused && s->count) {
            fprintf(stderr, "heed: %s\n", err.text);
            return false;
        }
        dense = row[rows].dense ? &row[rows] : dense;
        rows += !refused;
    }
    for (int at = 0; at < count; at++) {
        for (int k = 0; k < TURNS; k++)
            for (int i = 0; i < rows; i++)
                if ((!row[i].quadratic || lengths[at] <= LONGEST_QUADRATIC) &&
                    !turn(&row[i], at, lengths[at], s->common.threads))
                    return false;
        for (int i = 0; i < rows; i++)
            if (row[i].at[at].both > 0)
                say_point(&row[i], &row[i].at[at], dense ? &dense->at[at] : &(struct point){0},
                          lengths[at], s->common.json);
        fflush(stdout);
    }
    for (int i = 0; i < rows; i++)
        say_row(&row[i], dense, lengths, count, s->common.json);
    return true;
}
