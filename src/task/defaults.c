/* defaults.c: what a run does where nothing was asked for.  Everything follows from the number of
 * target tokens N, which is reckoned from the bytes, from the time there is, and from the seconds
 * an update takes, measured once:
 *
 *   pieces of the vocabulary  11 N^1/2, 8000 at most, from ten million on 16000
 *   model                     tiny below a million tokens, else small, or tiny if time is short
 *   tokens in all             11500 N^1/2, so many updates, but no more than fit into the time
 *   dropout                   the more, the more often each pair is seen
 *   rate                      0.0012 (256/d)^1/2, after a warm-up in a straight line to 0
 *
 * The figures were chosen by the runs in docs/RESULTS.md.  Times are rounded, so that a clock that
 * differs a little chooses the same; and what was chosen is stored, so that a resumed run does not
 * choose again. */
#include "task/defaults.h"
#include "task/run_options.h"
#include "task/translation.h"
#include "vocab/vocabulary.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define SMALL_LEAST 1e6          /* target tokens that feed preset small */
#define SMALL_LEAST_UPDATES 4000 /* fewer: preset tiny, which learns faster */
#define MOST_EPOCHS 80
#define MINUTES 60         /* where no limit is given; but on a slow machine */
#define LEAST_UPDATES 4000 /* all the same, because fewer are hardly worth it */
#define SHARE 0.9          /* of the time that goes to updates; the rest to validation and saves */
#define FEW_PAIRS 500
#define FROM_RATE 0.0002 /* of weights that were trained */
#define FROM_LEAST_UPDATES 60

struct chooser {
    heed_recipe *r;
    heed_recipe plain; /* nothing is given there */
    heed__text_facts text;
    double seconds; /* an update; 0: not measured */
    bool short_of_time;
    const char *preset; /* that was chosen; NULL: none */
    int ranks;
    bool rehearsed; /* the text holds, each so often as it should, a sample of the old one */
};

int64_t heed__hold_out(int64_t pairs)
{
    int64_t n = pairs / 100;
    n = n < 50 ? 50 : n > 1000 ? 1000 : n;
    n = n < pairs / 20 ? n : pairs / 20;
    return n > 0 ? n : 1;
}

/* ---- choosing ---- */

static bool is_free(const struct chooser *c, const char *name)
{
    return !heed__recipe_given(c->r, &c->plain, name);
}

static bool learns_pieces(const heed_train_options *o)
{
    return o->tokens == HEED_TOKENS_SENTENCEPIECE && !o->vocab && !o->source_vocab && !o->from;
}

static void choose_vocabulary(struct chooser *c)
{
    heed_train_options *o = &c->r->train;
    if (is_free(c, "valid-tokenize") && (c->text.han || c->text.kana))
        o->valid_tokenize = 1 + (c->text.han ? HEED_TOKENIZE_ZH : HEED_TOKENIZE_CHAR);
    if (!learns_pieces(o))
        return;
    if (is_free(c, "vocab-coverage") && (c->text.han || c->text.kana))
        o->vocab_coverage = 0.9995;
    int64_t letters = o->vocab_coverage < 1 ? c->text.letters : c->text.all;
    double size = heed__clamp(11 * sqrt(c->text.target_tokens), 500,
                              c->text.target_tokens < 1e7 ? 8000 : 16000);
    if (is_free(c, "vocab-size"))
        o->vocab_size = heed__rounded(fmax(size, 1.5 * (double)letters + HEED__SPECIALS));
}

/* Somebody who describes the model gets that one. */
static bool by_hand(const struct chooser *c)
{
    static const char *const names[] = {"arch", "encoder-layers", "decoder-layers", "d",
                                        "ff",   "heads"};
    bool is = false;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        is |= !is_free(c, names[i]) &&
              heed_option_origin_of(&c->r->origins, names[i]) != HEED_OPTION_BY_BUNDLE;
    return is;
}

static bool preset_given(const struct chooser *c)
{
    return heed_option_origin_of(&c->r->origins, "d") == HEED_OPTION_BY_BUNDLE;
}

static heed_status take_preset(struct chooser *c, const char *name, heed_arena *arena,
                               heed_error *err)
{
    const char *const words[] = {"--preset", name};
    heed_recipe p;
    if (heed_recipe_parse(&p, 2, words, arena, err))
        return err->status;
    heed_model_config *m = &c->r->model;
    m->encoder_layers = p.model.encoder_layers;
    m->decoder_layers = p.model.decoder_layers;
    m->d = p.model.d;
    m->transformer.ff = p.model.transformer.ff;
    m->transformer.heads = p.model.transformer.heads;
    c->preset = name;
    return HEED_OK;
}

static void choose_batches(struct chooser *c)
{
    const double n = c->text.target_tokens;
    if (is_free(c, "batch-tokens") && is_free(c, "accumulate"))
        c->r->train.batch_tokens = n < 2e5 ? 256 : n < 3e6 ? 384 : 512;
}

static double tokens_an_update(const heed_train_options *o)
{
    return (double)(o->batch_tokens * o->loop.accumulate);
}

/* Of an update here, unless the number of updates is given. */
static heed_status measure(struct chooser *c, const heed_allocator *allocator, heed_error *err)
{
    const double pairs = (double)c->text.pairs;
    const heed_train_options *o = &c->r->train;
    const double longest =
        (double)(o->max_tokens < c->r->model.longest ? o->max_tokens : c->r->model.longest);
    heed_recipe r = *c->r;
    heed__recipe_resolve(&r);
    const heed__update_size size = {
        .vocabulary = o->vocab_size > HEED__SPECIALS ? o->vocab_size : 8000,
        .source_tokens = (int64_t)heed__clamp(c->text.source_tokens / pairs, 2, longest),
        .target_tokens = (int64_t)heed__clamp(c->text.target_tokens / pairs, 2, longest)};
    heed_status status = heed__measure_update(&r, &size, allocator, &c->seconds, err);
    c->seconds /= c->ranks;
    return status;
}

/* Updates that the text is worth. */
static double worth(const struct chooser *c)
{
    const heed_train_options *o = &c->r->train;
    const double n = c->text.target_tokens, update = tokens_an_update(o);
    if (o->loop.max_epochs) /* a little more, so that the epochs end it */
        return 1.2 * (double)o->loop.max_epochs * n / update;
    return fmin(11500 * sqrt(n), MOST_EPOCHS * n) / update;
}

/* Updates that there is time for. */
static double affordable(const struct chooser *c)
{
    const double minutes =
        c->r->train.loop.max_minutes > 0 ? c->r->train.loop.max_minutes : MINUTES;
    return SHARE * 60 * minutes / c->seconds;
}

static bool needs_total(const heed_train_options *o)
{
    return o->loop.schedule == HEED_SCHEDULE_LINEAR || o->loop.schedule == HEED_SCHEDULE_COSINE;
}

static heed_status choose_model_and_length(struct chooser *c, bool measured,
                                           const heed_allocator *allocator, heed_arena *arena,
                                           heed_error *err)
{
    heed_train_options *o = &c->r->train;
    const bool hand = by_hand(c), shape = !hand && !preset_given(c);
    const bool small = c->text.target_tokens >= SMALL_LEAST;
    if (shape && take_preset(c, small ? "small" : "tiny", arena, err))
        return err->status;
    if (!hand && c->r->model.arch == HEED_ARCH_TRANSFORMER) {
        if (is_free(c, "pre-norm"))
            c->r->model.transformer.pre_norm = true;
        if (is_free(c, "attention-score") && is_free(c, "scale-scores") &&
            is_free(c, "attention-normaliser"))
            c->r->model.attention.score = HEED_SCORE_COSINE;
    }
    if (o->loop.max_updates || !needs_total(o))
        return HEED_OK;
    double updates = worth(c);
    if (measured) {
        if (measure(c, allocator, err))
            return err->status;
        if (shape && small && affordable(c) < fmin(updates, SMALL_LEAST_UPDATES) &&
            (take_preset(c, "tiny", arena, err) || measure(c, allocator, err)))
            return err->status;
        const double least = o->loop.max_minutes > 0 ? 0 : fmin(updates, LEAST_UPDATES);
        c->short_of_time = affordable(c) < updates;
        updates = fmin(updates, fmax(affordable(c), least));
    }
    o->loop.max_updates = heed__rounded(fmax(updates, 20));
    if (!is_free(c, "warmup") && o->loop.max_updates <= o->loop.warmup)
        o->loop.max_updates = 2 * o->loop.warmup;
    return HEED_OK;
}

static double epochs(const struct chooser *c)
{
    const heed_train_options *o = &c->r->train;
    if (!o->loop.max_updates)
        return o->loop.max_epochs ? (double)o->loop.max_epochs : 1;
    return (double)o->loop.max_updates * tokens_an_update(o) / c->text.target_tokens;
}

static void choose_dropout(struct chooser *c)
{
    static const struct {
        double epochs, dropout;
    } steps[] = {{4, 0}, {10, 0.1}, {25, 0.15}, {60, 0.2}, {INFINITY, 0.3}};
    int i = 0;
    while (epochs(c) >= steps[i].epochs)
        i++;
    if (is_free(c, "dropout"))
        c->r->model.dropout = steps[i].dropout;
}

/* What a schedule is goes together: with one that is given, only what is given. */
static bool scheduled(const struct chooser *c)
{
    return !is_free(c, "schedule") || !is_free(c, "optimizer");
}

static void choose_rate(struct chooser *c)
{
    heed_train_options *o = &c->r->train;
    const bool rnn = c->r->model.arch == HEED_ARCH_RNN;
    if (is_free(c, "rate"))
        o->loop.rate =
            rnn ? 0.0015
                : (double)heed__rounded(1e6 * 0.0012 * sqrt(256.0 / (double)c->r->model.d)) / 1e6;
    if (is_free(c, "clip"))
        o->loop.clip = 1;
    if (is_free(c, "beta2"))
        o->loop.beta2 = rnn ? 0.999 : 0.99;
}

static void choose_validation(struct chooser *c)
{
    heed_train_options *o = &c->r->train;
    const double least = o->from ? 1000 : 200; /* few pairs that are held out decide by chance */
    if (o->loop.max_updates && is_free(c, "valid-every") && is_free(c, "valid-minutes"))
        o->loop.valid_every = heed__rounded(fmax((double)o->loop.max_updates / 10, least));
}

/* From weights that know much already: gently, and so often that something sticks.  Dropout would
 * disturb what they know more than it helps. */
static void choose_from(struct chooser *c, bool free_schedule)
{
    heed_train_options *o = &c->r->train;
    const double n = c->text.target_tokens;
    if (is_free(c, "batch-tokens") && is_free(c, "accumulate"))
        o->batch_tokens = 512;
    if (is_free(c, "dropout"))
        c->r->model.dropout = 0;
    if (free_schedule) {
        o->loop.schedule = HEED_SCHEDULE_LINEAR;
        if (is_free(c, "rate"))
            o->loop.rate = FROM_RATE;
        if (is_free(c, "clip"))
            o->loop.clip = 1;
    }
    if (!needs_total(o))
        return;
    if (!o->loop.max_updates) {
        const double once = c->rehearsed ? 1 : heed__passes(c->text.target_bytes);
        const double passes = o->loop.max_epochs ? 1.2 * (double)o->loop.max_epochs : once;
        o->loop.max_updates =
            heed__rounded(fmax(passes * n / tokens_an_update(o), FROM_LEAST_UPDATES));
    }
    if (is_free(c, "warmup"))
        o->loop.warmup = (int64_t)heed__clamp((double)o->loop.max_updates / 8, 0, 20);
}

static heed_status choose(struct chooser *c, bool measured, const heed_allocator *allocator,
                          heed_arena *arena, heed_error *err)
{
    const bool free_schedule = !scheduled(c);
    if (c->r->train.from) {
        choose_from(c, free_schedule);
        choose_validation(c);
        return HEED_OK;
    }
    choose_vocabulary(c);
    choose_batches(c);
    if (free_schedule)
        c->r->train.loop.schedule = HEED_SCHEDULE_LINEAR;
    if (choose_model_and_length(c, measured, allocator, arena, err))
        return err->status;
    choose_dropout(c);
    if (needs_total(&c->r->train) && is_free(c, "warmup"))
        c->r->train.loop.warmup =
            (int64_t)heed__clamp((double)c->r->train.loop.max_updates / 8, 0, 800);
    if (free_schedule)
        choose_rate(c);
    choose_validation(c);
    return HEED_OK;
}

/* ---- what is said ---- */

static void say(const heed_log_sink *log, const char *line)
{
    if (log && log->write)
        log->write(log->context, HEED_LOG_INFO, line);
}

static void say_model(const struct chooser *c, const heed_log_sink *log)
{
    const heed_train_options *o = &c->r->train;
    char line[256], pieces[64] = "";
    if (c->text.pairs < FEW_PAIRS && !o->from && log && log->write) {
        snprintf(line, sizeof line, "%lld pairs are few: a translator learns from thousands",
                 (long long)c->text.pairs);
        log->write(log->context, HEED_LOG_WARNING, line);
    }
    if (learns_pieces(o))
        snprintf(pieces, sizeof pieces, ", %lld pieces", (long long)o->vocab_size);
    snprintf(line, sizeof line, "%lld pairs, about %lld target tokens: %s%s%s%s",
             (long long)c->text.pairs, (long long)heed__rounded(c->text.target_tokens),
             c->preset ? "preset " : "the model as given", c->preset ? c->preset : "",
             !c->preset                            ? ""
             : c->text.target_tokens < SMALL_LEAST ? " (small from a million on)"
             : strcmp(c->preset, "tiny") == 0      ? " (for small the time is too short)"
                                                   : " (tiny below a million)",
             pieces);
    say(log, line);
}

static void say_length(const struct chooser *c, const heed_log_sink *log)
{
    const heed_train_options *o = &c->r->train;
    char line[256], time[48], why[128] = "";
    if (c->seconds > 0)
        snprintf(why, sizeof why, ", %s here (%.2g s each, measured)%s",
                 heed__duration((double)o->loop.max_updates * c->seconds / SHARE, time), c->seconds,
                 !c->short_of_time         ? ""
                 : o->loop.max_minutes > 0 ? ": what --max-minutes leaves time for"
                                           : ": an hour; more with --max-minutes");
    if (o->loop.max_updates)
        snprintf(line, sizeof line, "%lld updates of %.0f tokens: %.*f times through the text%s",
                 (long long)o->loop.max_updates, tokens_an_update(o), epochs(c) < 10 ? 1 : 0,
                 epochs(c), why);
    else
        snprintf(line, sizeof line, "updates of %.0f tokens, until a limit is reached",
                 tokens_an_update(o));
    say(log, line);
}

static void say_rate(const struct chooser *c, const heed_log_sink *log)
{
    const heed_train_options *o = &c->r->train;
    static const char *const course[] = {"and stays there", "and then falls with 1/sqrt(update)",
                                         "and then falls with 1/sqrt(update)",
                                         "and then falls as a cosine",
                                         "and then falls in a straight line"};
    char line[256];
    snprintf(line, sizeof line, "learning rate: rises to %g in %lld updates, %s", o->loop.rate,
             (long long)o->loop.warmup, course[o->loop.schedule]);
    say(log, line);
}

static void say_rest(const struct chooser *c, const heed_log_sink *log)
{
    const heed_train_options *o = &c->r->train;
    char line[256], every[64] = "at the end";
    if (o->loop.valid_every)
        snprintf(every, sizeof every, "every %lld updates", (long long)o->loop.valid_every);
    snprintf(line, sizeof line, "dropout %g; validation %s; --recipe paper chooses nothing",
             c->r->model.dropout, every);
    say(log, line);
}

/* ---- entries ---- */

static heed_status start(struct chooser *c, heed_recipe *r, heed_arena **arena,
                         const heed_allocator *allocator, heed_error *err)
{
    *c = (struct chooser){.r = r};
    *arena = heed_arena_new(allocator, err);
    return *arena ? heed_recipe_parse(&c->plain, 0, NULL, *arena, err) : HEED_MEMORY;
}

heed_status heed__recipe_choose(heed_recipe *r, const heed_corpus *pairs, bool rehearsed, int ranks,
                                const heed_log_sink *log, const heed_allocator *allocator,
                                heed_error *err)
{
    struct chooser c;
    heed_arena *arena;
    if (r->train.recipe == HEED_RECIPE_PAPER)
        return HEED_OK;
    heed_status status = start(&c, r, &arena, allocator, err);
    c.rehearsed = rehearsed;
    c.ranks = ranks;
    c.plain.train.loop.accumulate = ranks;
    if (!status)
        status = heed__read_text(pairs, r->train.tokens == HEED_TOKENS_WHITESPACE, allocator,
                                 &c.text, err);
    if (!status)
        status = choose(&c, true, allocator, arena, err);
    heed_arena_free(arena);
    if (status)
        return status;
    heed__recipe_resolve(r);
    say_model(&c, log);
    say_length(&c, log);
    say_rate(&c, log);
    say_rest(&c, log);
    return HEED_OK;
}

heed_status heed__recipe_draft(heed_recipe *r, const heed_allocator *allocator, heed_error *err)
{
    struct chooser c;
    heed_arena *arena;
    if (r->train.recipe == HEED_RECIPE_PAPER)
        return HEED_OK;
    heed_status status = start(&c, r, &arena, allocator, err);
    c.text = (heed__text_facts){.pairs = 100000,
                                .target_bytes = 4e6,
                                .source_tokens = 1e6,
                                .target_tokens = 1e6,
                                .letters = 100,
                                .all = 100};
    if (!status)
        status = choose(&c, false, allocator, arena, err);
    heed_arena_free(arena);
    return status;
}
