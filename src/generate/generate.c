/* generate.c: from a prompt to texts: all samples side by side, each a row of the session until it
 * ends. */
#include "base/min_max.h"
#include "generate/generator.h"

#include <math.h>
#include <string.h>

struct sample {
    int32_t *id; /* the prompt's and its own */
    double *log_p;
    int64_t count, capacity;
    heed__written_text text;
    heed_generate_stop stop;
    bool ended;
};

struct writing {
    heed_generator *g;
    const heed_generate_options *o;
    const heed_generate_sink *sink;
    heed_tokens prompt;
    struct sample *sample; /* (samples) */
    int64_t samples;
    int64_t *row; /* (rows) the sample of each */
    int64_t rows;
    int32_t *parent;   /* (samples) */
    heed_tokens *feed; /* (samples) */
    heed__token_chooser chooser;
    heed__context context;
    bool unwanted; /* the sink wants no more */
};

/* ---- checks ---- */

static heed_status check(const heed_generate_options *o, int64_t samples, heed_error *err)
{
    const struct {
        const char *what;
        bool right;
        double found;
        const char *expected;
    } checks[] = {
        {"samples", samples >= 1 && samples <= 65536, (double)samples, "1 to 65536"},
        {"max-tokens", o->max_tokens >= 1, (double)o->max_tokens, "1 or more"},
        {"temperature", o->temperature >= 0 && isfinite(o->temperature), o->temperature,
         "0 or more"},
        {"top-k", o->top_k >= 0, (double)o->top_k, "0 or more"},
        {"top-p", o->top_p >= 0 && o->top_p <= 1, o->top_p, "0 to 1"},
        {"min-p", o->min_p >= 0 && o->min_p <= 1, o->min_p, "0 to 1"},
        {"repetition-penalty", o->repetition_penalty > 0 && isfinite(o->repetition_penalty),
         o->repetition_penalty, "more than 0"},
    };
    for (size_t i = 0; i < sizeof checks / sizeof *checks; i++)
        if (!checks[i].right)
            return heed__fail(err, HEED_ARGUMENT, "%s is %g, expected %s", checks[i].what,
                              checks[i].found, checks[i].expected);
    for (int i = 0; i < o->stop.count; i++)
        if (!o->stop.items[i] || !*o->stop.items[i])
            return heed__fail(err, HEED_ARGUMENT, "a text to stop at is empty");
    return HEED_OK;
}

/* ---- memory ---- */

static heed_status no_memory(heed_error *err)
{
    return heed__fail(err, HEED_MEMORY, "out of memory for generating text");
}

static heed_status grow(struct writing *w, struct sample *s, heed_error *err)
{
    const heed_allocator *a = &w->g->allocator;
    if (s->count < s->capacity)
        return HEED_OK;
    const int64_t capacity = 2 * s->capacity;
    int32_t *id = heed__allocate(a, (size_t)capacity, sizeof *id);
    double *log_p = heed__allocate(a, (size_t)capacity, sizeof *log_p);
    if (!id || !log_p) {
        heed__release(a, id, (size_t)capacity, sizeof *id);
        heed__release(a, log_p, (size_t)capacity, sizeof *log_p);
        return no_memory(err);
    }
    memcpy(id, s->id, (size_t)s->count * sizeof *id);
    memcpy(log_p, s->log_p, (size_t)s->count * sizeof *log_p);
    heed__release(a, s->id, (size_t)s->capacity, sizeof *id);
    heed__release(a, s->log_p, (size_t)s->capacity, sizeof *log_p);
    s->id = id;
    s->log_p = log_p;
    s->capacity = capacity;
    return HEED_OK;
}

static heed_status prepare_sample(struct writing *w, struct sample *s, heed_error *err)
{
    const heed_allocator *a = &w->g->allocator;
    s->capacity = w->prompt.count + heed__min(w->o->max_tokens, 1024);
    s->id = heed__allocate(a, (size_t)s->capacity, sizeof *s->id);
    s->log_p = heed__allocate_zeroed(a, (size_t)s->capacity, sizeof *s->log_p);
    if (!s->id || !s->log_p)
        return no_memory(err);
    memcpy(s->id, w->prompt.id, (size_t)w->prompt.count * sizeof *s->id);
    s->count = w->prompt.count;
    return heed__written_text_init(&s->text, w->g, &w->o->stop, err);
}

static heed_status prepare(struct writing *w, heed_arena *arena, heed_error *err)
{
    const size_t n = (size_t)w->samples;
    w->sample = heed_arena_allocate(arena, n * sizeof *w->sample);
    w->row = heed_arena_allocate(arena, n * sizeof *w->row);
    w->parent = heed_arena_allocate(arena, n * sizeof *w->parent);
    w->feed = heed_arena_allocate(arena, n * sizeof *w->feed);
    if (!w->sample || !w->row || !w->parent || !w->feed) {
        w->samples = 0;
        return no_memory(err);
    }
    memset(w->sample, 0, n * sizeof *w->sample);
    heed_status status = heed__token_chooser_init(
        &w->chooser, w->o, heed_engine_configuration(w->g->engine)->target_vocabulary,
        &w->g->allocator, err);
    for (int64_t i = 0; !status && i < w->samples; i++)
        status = prepare_sample(w, &w->sample[i], err);
    return status;
}

static void release(struct writing *w)
{
    const heed_allocator *a = &w->g->allocator;
    for (int64_t i = 0; i < w->samples; i++) {
        struct sample *s = &w->sample[i];
        heed__release(a, s->id, (size_t)s->capacity, sizeof *s->id);
        heed__release(a, s->log_p, (size_t)s->capacity, sizeof *s->log_p);
        heed__written_text_deinit(&s->text);
    }
    if (w->chooser.vocabulary)
        heed__token_chooser_deinit(&w->chooser);
}

/* ---- tokens ---- */

static void show(struct writing *w, int64_t i)
{
    const char *text;
    const size_t n = heed__written_text_take(&w->sample[i].text, &text);
    if (n && w->sink && w->sink->write && !w->unwanted)
        w->unwanted = !w->sink->write(w->sink->context, i, text, n);
}

static void end_sample(struct writing *w, int64_t i, heed_generate_stop why)
{
    struct sample *s = &w->sample[i];
    s->ended = true;
    heed__written_text_end(&s->text);
    s->stop = s->text.stopped ? HEED_STOP_STRING : why;
    show(w, i);
}

/* The next token of a sample, by row `at` of the scores. */
static heed_status take_token(struct writing *w, int64_t i, const heed_scores *scores, int64_t at,
                              heed_error *err)
{
    struct sample *s = &w->sample[i];
    const int64_t n = s->count - w->prompt.count;
    const heed_real *logit = scores->logit + at * scores->columns;
    const int64_t context = heed__min(s->count, w->g->longest);
    const heed_rng rng = heed_rng_stream(
        &(heed_rng_key){.seed = (uint64_t)w->o->seed, .step = (uint64_t)i, .node = 'g'});
    const int32_t token = heed__token_choose(&w->chooser, logit, s->id + s->count - context,
                                             context, heed_rng_uniform(&rng, (uint64_t)n));
    if (token < 0)
        return heed__fail(err, HEED_NUMERIC, "what may follow %lld tokens is not a finite number",
                          (long long)s->count);
    heed_status status = grow(w, s, err);
    if (status)
        return status;
    s->log_p[s->count] = (double)(logit[token] - scores->log_z[at]);
    s->id[s->count++] = token;
    if (heed__generator_ends(w->g, token) && !w->o->past_end) {
        end_sample(w, i, HEED_STOP_END);
        return HEED_OK;
    }
    status = heed__written_text_add(&s->text, s->id, s->count, w->prompt.count, err);
    if (s->text.stopped || n + 1 == w->o->max_tokens)
        end_sample(w, i, HEED_STOP_LENGTH);
    else
        show(w, i);
    return status;
}

/* Rows of samples that go on; false if there are none. */
static heed_status keep_rows(struct writing *w, heed_error *err)
{
    int64_t n = 0;
    bool moved = w->rows != w->context.rows;
    for (int64_t r = 0; r < w->rows; r++) {
        if (w->sample[w->row[r]].ended)
            continue;
        w->parent[n] = w->context.rows == 1 ? 0 : (int32_t)r;
        moved |= n != r;
        w->row[n++] = w->row[r];
    }
    moved |= n != w->rows;
    w->rows = n;
    return n && moved ? heed__context_reorder(&w->context, w->parent, n, err) : HEED_OK;
}

/* The rows' last tokens go in; where the context is full, it slides first. */
static heed_status step(struct writing *w, heed_scores *scores, heed_error *err)
{
    heed_status status = HEED_OK;
    const bool full = w->context.length == w->g->longest;
    for (int64_t r = 0; r < w->rows; r++) {
        const struct sample *s = &w->sample[w->row[r]];
        w->feed[r] = (heed_tokens){s->id, s->count - 1};
    }
    if (full)
        status = heed__context_slide(&w->context, w->feed, err);
    for (int64_t r = 0; r < w->rows; r++) {
        const struct sample *s = &w->sample[w->row[r]];
        w->feed[r] = (heed_tokens){s->id + s->count - 1, 1};
    }
    return status ? status : heed__context_feed(&w->context, w->feed, NULL, NULL, scores, err);
}

static heed_status write_all(struct writing *w, heed_error *err)
{
    heed_scores scores;
    const int64_t seen = heed__min(w->prompt.count, w->g->longest);
    const heed_tokens end = {w->prompt.id + w->prompt.count - seen, seen};
    heed_status status = heed__context_begin(&w->context, w->g, err);
    if (!status)
        status = heed__context_feed(&w->context, &end, NULL, NULL, &scores, err);
    for (w->rows = 0; w->rows < w->samples; w->rows++)
        w->row[w->rows] = w->rows;
    while (!status && w->rows && !w->unwanted) {
        for (int64_t r = 0; !status && r < w->rows; r++)
            status = take_token(w, w->row[r], &scores, w->context.rows == 1 ? 0 : r, err);
        if (!status)
            status = keep_rows(w, err);
        if (!status && w->rows && !w->unwanted)
            status = step(w, &scores, err);
    }
    for (int64_t r = 0; r < w->rows; r++)
        end_sample(w, w->row[r], HEED_STOP_ASKED);
    return status;
}

static heed_status give(const struct writing *w, const struct sample *s, heed_arena *arena,
                        heed_generation *out, heed_error *err)
{
    const int64_t n = s->count - w->prompt.count;
    const size_t size = s->text.text.length;
    int32_t *id = heed_arena_allocate(arena, (size_t)n * sizeof *id);
    double *log_p = heed_arena_allocate(arena, (size_t)n * sizeof *log_p);
    char *text = heed_arena_allocate(arena, size + 1);
    if (!id || !log_p || !text)
        return no_memory(err);
    memcpy(id, s->id + w->prompt.count, (size_t)n * sizeof *id);
    memcpy(log_p, s->log_p + w->prompt.count, (size_t)n * sizeof *log_p);
    memcpy(text, heed__string_text(&s->text.text), size);
    text[size] = '\0';
    *out = (heed_generation){
        .text = text, .size = size, .id = id, .log_p = log_p, .count = n, .stop = s->stop};
    return HEED_OK;
}

heed_status heed_generate(heed_generator *g, const char *prompt, size_t length,
                          const heed_generate_options *o, int64_t samples,
                          const heed_generate_sink *sink, heed_arena *arena, heed_generation *out,
                          heed_error *err)
{
    if (!g || !o || !arena || !out)
        return heed__missing(err, !g ? "generator" : !o ? "options" : !arena ? "arena" : "out");
    struct writing w = {.g = g, .o = o, .sink = sink, .samples = samples};
    heed_error own = {0};
    heed_status status = check(o, samples, &own);
    if (status)
        return heed__fail(err, status, "%s", own.text);
    status = heed__generator_encode(g, prompt ? prompt : "", prompt ? length : 0, arena, &w.prompt,
                                    &own);
    if (status)
        return heed__fail(err, status, "%s", own.text);
    status = prepare(&w, arena, &own);
    if (!status)
        status = write_all(&w, &own);
    for (int64_t i = 0; !status && i < samples; i++)
        status = give(&w, &w.sample[i], arena, &out[i], &own);
    release(&w);
    return status ? heed__fail(err, status, "%s", own.text) : HEED_OK;
}
