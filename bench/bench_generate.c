/* bench_generate.c: `heed bench generate`: a language model with random weights writes one token at
 * a time (batch 1), and reads a prompt at once.
 *
 * One token needs every weight once: the reference is one thread that reads as many bytes and does
 * nothing else.  Both take turns.  A prompt is bound by products: its reference is the multiply-add
 * peak. */
#include "measure.h"

#include <dirent.h>
#include <heed/engine.h>
#include <heed/io.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PROMPT = 256, WRITTEN = 32 };

struct writer {
    const bench_generate_settings *s;
    heed_session *session;
    heed_error err;
    int32_t prompt[PROMPT];
    int64_t prompt_tokens;
    const heed_real *bytes; /* (count) to be read for a token */
    int64_t count;
};

/* With its files. */
static void remove_folder(const char *folder)
{
    DIR *d = opendir(folder);
    const struct dirent *e;
    char path[512];
    while (d && (e = readdir(d))) {
        snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
        unlink(path);
    }
    if (d)
        closedir(d);
    rmdir(folder);
}

/* The model with random weights, in the folder, converted. */
static bool write_model(const bench_generate_settings *s, const char *folder, heed_error *err)
{
    char plain[96], path[128];
    snprintf(plain, sizeof plain, "%s/plain", folder);
    snprintf(path, sizeof path, "%s/model.safetensors", plain);
    heed_model *m = heed_model_new(&s->model, 1, NULL, err);
    bool good = m && mkdir(plain, 0777) == 0 &&
                !heed_model_describe(plain, &s->model, &(heed_text_config){0}, err) &&
                !heed_params_save(heed_model_params(m), path, err);
    heed_model_free(m);
    good = good && !heed_convert(plain, folder, (heed_number_kind)s->numbers, err);
    remove_folder(plain);
    return good;
}

/* Weights that a token is multiplied with, and their bytes: all matrices of the file. */
static double weights_of(const char *folder, double *bytes)
{
    char path[128];
    double all = 0;
    *bytes = 0;
    snprintf(path, sizeof path, "%s/model.safetensors", folder);
    heed_safetensors *f = heed_safetensors_open(path, NULL, NULL);
    for (int i = 0; f && i < heed_safetensors_count(f); i++) {
        const heed_stored *x = heed_safetensors_at(f, i);
        double count = x->rank < 2 ? 0 : 1;
        for (int k = 0; k < x->rank; k++)
            count *= (double)x->dim[k];
        if (strstr(x->name, "positions"))
            continue;
        all += count;
        *bytes += count > 0 ? (double)x->bytes * (x->dtype == HEED_F16 ? 2 : 1) : 0;
    }
    heed_safetensors_close(f);
    return all;
}

static bool failed(const struct writer *w)
{
    return w->err.status != HEED_OK;
}

/* A new row with the prompt; seconds of reading it. */
static double read_prompt(void *context)
{
    struct writer *w = context;
    heed_scores scores;
    heed_session_clear(w->session);
    if (failed(w) || heed_session_add(w->session, NULL, 1, &w->err))
        return 1;
    const heed_extension x = {.tokens = {w->prompt, w->prompt_tokens}, .last = true};
    const double start = heed_clock_seconds();
    heed_session_extend(w->session, &x, 1, &scores, &w->err);
    return heed_clock_seconds() - start;
}

/* WRITTEN tokens one by one, the likeliest each time; a row of two tokens goes before them. */
static double write_tokens(void *context)
{
    struct writer *w = context;
    heed_scores scores = {.columns = 0};
    heed_session_clear(w->session);
    if (failed(w) || heed_session_add(w->session, NULL, 1, &w->err))
        return 1;
    const heed_extension x = {.tokens = {w->prompt, 2}, .last = true};
    if (heed_session_extend(w->session, &x, 1, &scores, &w->err))
        return 1;
    const double start = heed_clock_seconds();
    for (int i = 0; i < WRITTEN; i++) {
        int32_t best = 0;
        for (int64_t k = 1; k < scores.columns; k++)
            if (scores.logit[k] > scores.logit[best])
                best = (int32_t)k;
        if (heed_session_step(w->session, &best, &scores, &w->err))
            return 1;
    }
    return heed_clock_seconds() - start;
}

static double read_bytes(void *context)
{
    const struct writer *w = context;
    double seconds = 0;
    for (int i = 0; i < WRITTEN; i++)
        seconds += bench_read(w->bytes, w->count);
    return seconds;
}

static double peak(void *context)
{
    (void)context;
    return 1 / bench_peak(1);
}

static void name_line(const bench_generate_settings *s, bench_line *line)
{
    static const char *const numbers[] = {"fp32", "fp16", "int8"};
    snprintf(line->shape, sizeof line->shape, "%s %s", s->preset ? s->preset : "model",
             numbers[s->numbers]);
}

static void report(const struct writer *w, double bytes, double weights, const double writing[2],
                   const double reading[2])
{
    const bench_generate_settings *s = w->s;
    bench_run r = {.settings = &s->common, .threads = 1};
    bench_line tokens = {.bench = "writing",
                         .value = WRITTEN / writing[0],
                         .unit = "tokens/s",
                         .reference = NAN,
                         .ratio = NAN,
                         .target = NAN};
    bench_line rate = {.bench = "reading weights",
                       .value = 1e-9 * bytes * WRITTEN / writing[0],
                       .unit = "GB/s",
                       .reference = 1e-9 * bytes * WRITTEN / writing[1],
                       .ratio = writing[1] / writing[0],
                       .target = 0.85};
    const double speed = 2 * weights * (double)w->prompt_tokens / reading[0];
    bench_line prompt = {.bench = "prompt",
                         .value = (double)w->prompt_tokens / reading[0],
                         .unit = "tokens/s",
                         .reference = NAN,
                         .ratio = speed * reading[1],
                         .target = NAN,
                         .note = "of the fp32 multiply-add peak"};
    name_line(s, &tokens);
    name_line(s, &rate);
    name_line(s, &prompt);
    bench_report(&r, &tokens);
    bench_report(&r, &rate);
    bench_report(&r, &prompt);
}

static bool measure(struct writer *w, const char *folder)
{
    double bytes;
    const double weights = weights_of(folder, &bytes);
    double writing[BENCH_SUBJECTS], reading[BENCH_SUBJECTS];
    heed_arena *arena = heed_arena_new(NULL, &w->err);
    w->count = (int64_t)bytes / (int64_t)sizeof(heed_real);
    heed_real *x = arena ? heed_arena_allocate(arena, (size_t)w->count * sizeof *x) : NULL;
    for (int64_t i = 0; x && i < w->count; i++)
        x[i] = 1;
    w->bytes = x;
    if (x) {
        void *const contexts[] = {w, w};
        bench_alternate((bench_subject *const[]){write_tokens, read_bytes}, contexts, 2,
                        w->s->seconds, writing);
        bench_alternate((bench_subject *const[]){read_prompt, peak}, contexts, 2, w->s->seconds,
                        reading);
    }
    heed_arena_free(arena);
    if (x && !failed(w))
        report(w, bytes, weights, writing, reading);
    return x && !failed(w);
}

bool bench_generate(const bench_generate_settings *settings)
{
    struct writer w = {.s = settings};
    char folder[] = "/tmp/heed-bench-XXXXXX";
    const int64_t longest = settings->model.longest;
    const heed_rng rng = heed_rng_stream(&(heed_rng_key){.seed = 3});
    w.prompt_tokens = longest < PROMPT ? longest : PROMPT;
    for (int64_t i = 0; i < PROMPT; i++)
        w.prompt[i] = (int32_t)heed_rng_below(&rng, (uint64_t)i, settings->model.target_vocabulary);
    if (!mkdtemp(folder)) {
        fputs("heed: cannot make a folder in /tmp\n", stderr);
        return false;
    }
    heed_engine *e = NULL;
    if (longest < WRITTEN + 2) {
        w.err.status = HEED_ARGUMENT;
        snprintf(w.err.text, sizeof w.err.text, "--context is %lld, expected %d at least",
                 (long long)longest, WRITTEN + 2);
    } else if (write_model(settings, folder, &w.err) &&
               (e = heed_engine_open(folder, NULL, &w.err)))
        w.session = heed_session_new(e, &(heed_session_options){.threads = 1}, NULL, &w.err);
    if (w.session) {
        bench_header(&settings->common);
        measure(&w, folder);
    }
    heed_session_free(w.session);
    heed_engine_free(e);
    remove_folder(folder);
    if (failed(&w))
        fprintf(stderr, "heed: %s\n", w.err.text);
    return !failed(&w);
}
