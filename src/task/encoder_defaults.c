/* encoder_defaults.c: what an encoder's run does where nothing was asked for.  Everything
 * follows from the task, the number of tokens N, reckoned from the bytes, and the time there is:
 *
 *   pieces of the vocabulary  11 N^1/2, from 1000 to 8000; mlm: to 16000
 *   model                     2 layers of d 128 below a million tokens, else 3 of d 192; mlm: mini
 *   updates                   8,000 N^-1/2 passes, 8 to 40; no more than fit into the time
 *   dropout                   much, since each example is seen often, and tokens are hidden
 *   rate                      rises in a tenth of the updates, then falls in a straight line to 0
 *
 * From another model: three passes at a small rate.  Times are rounded and stored, so that a
 * resumed run does not choose again. */
#include "model/model_class.h"
#include "task/defaults.h"
#include "task/encoder_task.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define BYTES_A_TOKEN 4.2
#define MINUTES 30 /* where no limit is given */
#define SHARE 0.85 /* of the time that goes to updates; the rest to validation and saves */
#define MLM_LONGEST 128
#define FROM_PASSES 3

struct chooser {
    heed__encoding *t;
    heed_encoder_recipe *r, plain;
    int64_t examples;
    double bytes, tokens;
    double seconds; /* an update; 0: not measured */
    bool short_of_time;
};

static bool is_free(const struct chooser *c, const char *name)
{
    return !heed__option_given(&heed__encoder_set, &c->r->origins, c->r, &c->plain, name);
}

/* ---- the text ---- */

static void count_examples(struct chooser *c)
{
    const heed_examples *x = c->t->train.examples;
    c->examples = heed_examples_count(x);
    for (int64_t i = 0; i < c->examples; i++) {
        const heed_example e = heed_examples_at(x, i);
        for (int side = 0; side < 2; side++)
            c->bytes += e.text[side] ? (double)strlen(e.text[side]) : 0;
        for (int64_t k = 0; k < e.words; k++)
            c->bytes += (double)strlen(e.word[k]) + 1;
    }
}

static heed_status count_lines(struct chooser *c, heed_error *err)
{
    const heed_option_list *files = &c->r->train.text;
    const char *text = "";
    size_t length;
    heed_status status = HEED_OK;
    heed_lines *lines = heed_lines_open(files->items, files->count, &c->t->allocator, err);
    if (!lines)
        return HEED_MEMORY;
    while (!status && !(status = heed_lines_next(lines, &text, &length, err)) && text) {
        c->examples++;
        c->bytes += (double)length;
    }
    heed_lines_free(lines);
    return status;
}

/* ---- choosing ---- */

static bool is_mlm(const struct chooser *c)
{
    return c->r->train.task == HEED_ENCODER_MLM;
}

static bool is_tag(const struct chooser *c)
{
    return c->r->train.task == HEED_ENCODER_TAG;
}

static void choose_text(struct chooser *c)
{
    heed_encoder_options *o = &c->r->train;
    if (is_free(c, "vocab-size") && o->tokens == HEED_ENCODER_WORDPIECE && !o->vocab)
        o->vocab_size =
            heed__rounded(heed__clamp(11 * sqrt(c->tokens), 1000, is_mlm(c) ? 16000 : 8000));
    if (is_free(c, "cased") && is_tag(c) && o->tokens == HEED_ENCODER_WORDPIECE && !o->vocab)
        o->cased = true;
    if (is_free(c, "batch-tokens"))
        o->batch_tokens = is_mlm(c) ? 4096 : c->tokens < 2e5 ? 512 : 1024;
}

static void choose_model(struct chooser *c)
{
    heed_model_config *m = &c->r->model;
    const bool little = c->tokens < 1e6;
    if (is_free(c, "longest") && is_mlm(c))
        m->longest = MLM_LONGEST;
    static const char *const sizes[] = {"encoder-layers", "d", "ff", "heads"};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        if (!is_free(c, sizes[i]))
            return;
    if (is_mlm(c))
        return; /* bert-mini, as the options are */
    m->encoder_layers = little ? 2 : 3;
    m->d = little ? 128 : 192;
    m->transformer.ff = 4 * m->d;
    m->transformer.heads = m->d / 32;
}

static void choose_noise(struct chooser *c)
{
    heed_model_config *m = &c->r->model;
    const bool gentle = is_mlm(c) || c->r->train.from;
    if (is_free(c, "dropout"))
        m->dropout = gentle ? 0.1 : 0.3;
    if (is_free(c, "word-dropout"))
        c->r->train.word_dropout = gentle ? 0 : 0.1;
    if (is_free(c, "label-smoothing") && !gentle && c->r->train.task != HEED_ENCODER_EMBED)
        m->label_smoothing = 0.1;
}

static bool needs_total(const struct chooser *c)
{
    const int schedule = c->r->train.loop.schedule;
    return schedule == HEED_SCHEDULE_LINEAR || schedule == HEED_SCHEDULE_COSINE;
}

/* Passes over the data that it is worth. */
static double passes(const struct chooser *c)
{
    const heed_encoder_options *o = &c->r->train;
    if (o->loop.max_epochs)
        return 1.2 * (double)o->loop.max_epochs;
    if (o->from && !is_mlm(c))
        return FROM_PASSES;
    if (is_mlm(c))
        return 40;
    return heed__clamp(8000 / sqrt(c->tokens), 8, 40);
}

static double tokens_an_update(const struct chooser *c)
{
    return (double)(c->r->train.batch_tokens * c->r->train.loop.accumulate);
}

/* Made-up sequences of the length that the data's have. */
static heed_status measure(struct chooser *c, heed_error *err)
{
    heed_model_config m = c->r->model;
    const int task = c->r->train.task;
    const int64_t each =
        is_mlm(c) ? m.longest
                  : (int64_t)heed__clamp(c->tokens / (double)c->examples, 2, (double)m.longest);
    const int64_t n = (int64_t)fmax(1, (double)(c->r->train.batch_tokens / each));
    heed_arena *arena = heed_arena_new(&c->t->allocator, err);
    if (!arena)
        return HEED_MEMORY;
    if (!m.source_vocabulary)
        m.source_vocabulary = c->r->train.vocab_size ? c->r->train.vocab_size : 8000;
    m.labels = is_mlm(c) ? 0 : c->t->label_count ? c->t->label_count : 2;
    int32_t *id = heed_arena_allocate(arena, (size_t)(n * each) * sizeof *id);
    int32_t *row = heed_arena_allocate(arena, (size_t)(n * each) * sizeof *row);
    int32_t *wanted = heed_arena_allocate(arena, (size_t)(n * each) * sizeof *wanted);
    int64_t *length = heed_arena_allocate(arena, (size_t)n * sizeof *length);
    heed_status status = HEED_OK;
    if (!id || !row || !wanted || !length)
        status = heed__fail(err, HEED_MEMORY, "out of memory to measure the speed of training");
    if (!status) {
        const heed_rng rng = heed_rng_stream(&(heed_rng_key){.seed = 1});
        const int64_t every = task == HEED_ENCODER_TAG ? 1 : is_mlm(c) ? 7 : each;
        int64_t answers = 0;
        for (int64_t i = 0; i < n; i++)
            length[i] = each;
        for (int64_t i = 0; i < n * each; i++) {
            id[i] = (int32_t)heed_rng_below(&rng, (uint64_t)i, m.source_vocabulary);
            if (i % every == 0) {
                row[answers] = (int32_t)i;
                wanted[answers++] = 0;
            }
        }
        const heed_batch batch = {
            .examples = n,
            .source = {.rows = heed_segments_new(arena, n, length), .ids = id},
            .wanted = wanted,
            .wanted_row = row,
            .wanted_count = answers};
        status =
            heed__time_updates(&m, &batch, c->r->train.loop.accumulate,
                               (int)c->r->train.loop.threads, &c->t->allocator, &c->seconds, err);
    }
    heed_arena_free(arena);
    return status;
}

static heed_status choose_length(struct chooser *c, heed_error *err)
{
    heed_loop_options *o = &c->r->train.loop;
    double updates = passes(c) * c->tokens / tokens_an_update(c);
    if (o->max_updates || !needs_total(c))
        return HEED_OK;
    heed_status status = measure(c, err);
    if (status)
        return status;
    const double minutes = o->max_minutes > 0 ? o->max_minutes : MINUTES;
    const double affordable = SHARE * 60 * minutes / c->seconds;
    c->short_of_time = affordable < updates;
    updates = fmin(updates, affordable);
    o->max_updates = heed__rounded(fmax(updates, 20));
    if (!is_free(c, "warmup") && o->max_updates <= o->warmup)
        o->max_updates = 2 * o->warmup;
    return HEED_OK;
}

static void choose_rate(struct chooser *c)
{
    heed_loop_options *o = &c->r->train.loop;
    const double d = (double)c->r->model.d;
    if (is_free(c, "warmup") && o->max_updates)
        o->warmup = (int64_t)heed__clamp((double)o->max_updates / 10, 0, 2000);
    if (is_free(c, "rate") && is_free(c, "schedule") && is_free(c, "optimizer"))
        o->rate = c->r->train.from && !is_mlm(c)
                      ? (double)heed__rounded(1e7 * 5e-5 * sqrt(768 / d)) / 1e7
                      : (double)heed__rounded(1e6 * 0.001 * sqrt(128 / d)) / 1e6;
    if (is_free(c, "valid-every") && is_free(c, "valid-minutes") && o->max_updates)
        o->valid_every = heed__rounded(fmax((double)o->max_updates / 20, 20));
}

/* ---- what is said ---- */

static void say(const struct chooser *c)
{
    const heed_encoder_recipe *r = c->r;
    const heed_loop_options *o = &r->train.loop;
    char time[48], why[160] = "", pieces[64] = "";
    if (!r->train.from && !r->train.vocab && r->train.tokens == HEED_ENCODER_WORDPIECE)
        snprintf(pieces, sizeof pieces, ", %lld pieces", (long long)r->train.vocab_size);
    heed__encoding_say(c->t, HEED_LOG_INFO,
                       "%lld %s, about %lld tokens: %lld layers, d %lld, ff %lld, %lld heads%s",
                       (long long)c->examples, is_mlm(c) ? "lines" : "examples",
                       (long long)heed__rounded(c->tokens), (long long)r->model.encoder_layers,
                       (long long)r->model.d, (long long)r->model.transformer.ff,
                       (long long)r->model.transformer.heads, pieces);
    if (c->seconds > 0)
        snprintf(why, sizeof why, ", %s here (%.2g s each, measured)%s",
                 heed__duration((double)o->max_updates * c->seconds / SHARE, time), c->seconds,
                 !c->short_of_time    ? ""
                 : o->max_minutes > 0 ? ": what --max-minutes leaves time for"
                                      : ": half an hour; more with --max-minutes");
    if (o->max_updates)
        heed__encoding_say(c->t, HEED_LOG_INFO,
                           "%lld updates of %.0f tokens: %.1f times through the data%s",
                           (long long)o->max_updates, tokens_an_update(c),
                           (double)o->max_updates * tokens_an_update(c) / c->tokens, why);
    heed__encoding_say(c->t, HEED_LOG_INFO,
                       "learning rate: rises to %g in %lld updates; dropout %g, %g of the tokens "
                       "hidden, label smoothing %g; validation every %lld updates",
                       o->rate, (long long)o->warmup, r->model.dropout, r->train.word_dropout,
                       r->model.label_smoothing, (long long)o->valid_every);
}

heed_status heed__encoder_choose(heed__encoding *t, heed_error *err)
{
    struct chooser c = {.t = t, .r = &t->recipe};
    if (t->recipe.train.recipe)
        return HEED_OK;
    heed_status status = heed_encoder_recipe_parse(&c.plain, 0, NULL, t->arena, err);
    if (!status && is_mlm(&c))
        status = count_lines(&c, err);
    else
        count_examples(&c);
    if (status)
        return status;
    c.tokens = c.bytes / BYTES_A_TOKEN + 2 * (double)c.examples;
    heed__loop_resolve(&t->recipe.train.loop);
    if (t->recipe.train.from) {
        if (is_free(&c, "batch-tokens"))
            t->recipe.train.batch_tokens = is_mlm(&c) ? 4096 : 512;
    } else {
        choose_text(&c);
        choose_model(&c);
    }
    choose_noise(&c);
    status = choose_length(&c, err);
    if (status)
        return status;
    choose_rate(&c);
    say(&c);
    return HEED_OK;
}
