/* language_defaults.c: what a language model's run does where nothing was asked for.  Everything
 * follows from the number of tokens N, reckoned from the bytes, from the time there is, and from
 * the seconds an update takes, measured once:
 *
 *   pieces of the vocabulary  11 N^1/2, from 500 to 8000, from ten million on to 16000
 *   context                   256; 512 from ten million tokens on
 *   model                     d 128 and 4 layers below 300,000 tokens, d 256 and 6 layers below ten
 *                             million, else d 384 and 6 layers; a step smaller if time is short
 *   updates                   20,000 N^-1/2 passes, 1 to 60, but no more than fit into the
 *                             time
 *   dropout                   the more, the more often the text is seen
 *   rate                      0.001 (256/d)^1/2, after a warm-up, as a cosine to a tenth
 *
 * Times are rounded and what was chosen is stored, so that a resumed run does not choose again. */
#include "model/model_class.h"
#include "task/defaults.h"
#include "task/language_task.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define BYTES_A_PIECE 4.2
#define BYTES_A_WORD 5.6
#define MINUTES 60 /* where no limit is given */
#define SHARE 0.9  /* of the time that goes to updates; the rest to validation and saves */
#define FROM_RATE 0.0001

static const struct size {
    const char *words;
    int64_t layers, d, ff, heads;
} sizes[] = {
    {"4 layers, d 128, 4 heads", 4, 128, 512, 4},
    {"6 layers, d 256, 8 heads", 6, 256, 1024, 8},
    {"6 layers, d 384, 6 heads", 6, 384, 1536, 6},
};

struct chooser {
    heed__language_run *t;
    heed_language_recipe *r, plain; /* nothing is given there */
    double tokens, seconds;         /* seconds: of an update; 0: not measured */
    int ranks;                      /* that compute an update together */
    const char *size;               /* that was chosen; NULL: as given */
    bool short_of_time;
};

static bool is_free(const struct chooser *c, const char *name)
{
    return !heed__option_given(&heed__language_set, &c->r->origins, c->r, &c->plain, name);
}

static double bytes_a_token(const heed_language_options *o)
{
    return o->tokens == HEED_LANGUAGE_CHARACTERS ? 1
           : o->tokens == HEED_LANGUAGE_WORDS    ? BYTES_A_WORD
                                                 : BYTES_A_PIECE;
}

static void choose_text(struct chooser *c)
{
    heed_language_options *o = &c->r->train;
    const bool pieces = o->tokens != HEED_LANGUAGE_WORDS && o->tokens != HEED_LANGUAGE_CHARACTERS;
    const bool much = c->tokens >= 1e7;
    if (is_free(c, "vocab-size") && pieces && !o->vocab)
        o->vocab_size = heed__rounded(heed__clamp(11 * sqrt(c->tokens), 500, much ? 16000 : 8000));
    if (is_free(c, "context"))
        c->r->model.longest = much ? 512 : 256;
    if (is_free(c, "batch-tokens") && is_free(c, "accumulate"))
        o->batch_tokens = c->tokens < 3e5 ? 1024 : much ? 4096 : 2048;
}

static bool shape_is_free(const struct chooser *c)
{
    return is_free(c, "decoder-layers") && is_free(c, "d") && is_free(c, "ff") &&
           is_free(c, "heads");
}

static void take_size(struct chooser *c, int i)
{
    heed_model_config *m = &c->r->model;
    m->decoder_layers = sizes[i].layers;
    m->d = sizes[i].d;
    m->transformer.ff = sizes[i].ff;
    m->transformer.heads = sizes[i].heads;
    c->size = sizes[i].words;
}

static double tokens_an_update(const struct chooser *c)
{
    return (double)(c->r->train.batch_tokens * c->r->train.loop.accumulate);
}

static double passes(const struct chooser *c)
{
    const heed_language_options *o = &c->r->train;
    if (o->loop.max_epochs) /* a little more, so that the epochs end it */
        return 1.2 * (double)o->loop.max_epochs;
    return o->from ? 2 : heed__clamp(20000 / sqrt(c->tokens), 1, 60);
}

/* Of an update here, with a batch that is made up. */
static heed_status measure(struct chooser *c, heed_error *err)
{
    heed_model_config m = c->r->model;
    const heed_language_options *o = &c->r->train;
    const int64_t block = m.longest, n = o->batch_tokens > block ? o->batch_tokens / block : 1;
    heed_arena *arena = heed_arena_new(&c->t->allocator, err);
    if (!arena)
        return HEED_MEMORY;
    if (!o->from)
        m.target_vocabulary = o->vocab_size                           ? o->vocab_size
                              : o->tokens == HEED_LANGUAGE_CHARACTERS ? 100
                                                                      : 30000;
    m.source_vocabulary = 0;
    int64_t *length = heed_arena_allocate(arena, (size_t)n * sizeof *length);
    int32_t *id = heed_arena_allocate(arena, (size_t)(n * block) * sizeof *id);
    heed_status status = HEED_OK;
    if (!length || !id) {
        status = heed__fail(err, HEED_MEMORY, "out of memory to measure the speed of training");
    } else {
        const heed_rng rng = heed_rng_stream(&(heed_rng_key){.seed = 1});
        for (int64_t i = 0; i < n; i++)
            length[i] = block;
        for (int64_t i = 0; i < n * block; i++)
            id[i] = (int32_t)heed_rng_below(&rng, (uint64_t)i, m.target_vocabulary);
        const heed_batch b = {
            .examples = n,
            .target = {.rows = heed_segments_new(arena, (int)n, length), .ids = id},
            .wanted = id,
            .wanted_count = n * block};
        status = heed__time_updates(&m, &b, o->loop.accumulate, (int)o->loop.threads,
                                    &c->t->allocator, &c->seconds, err);
        c->seconds /= c->ranks;
    }
    heed_arena_free(arena);
    return status;
}

static double affordable(const struct chooser *c)
{
    const double minutes = c->r->train.loop.max_minutes;
    return SHARE * 60 * (minutes > 0 ? minutes : MINUTES) / c->seconds;
}

static heed_status choose_size_and_length(struct chooser *c, bool measured, heed_error *err)
{
    heed_loop_options *o = &c->r->train.loop;
    int size = c->tokens < 3e5 ? 0 : c->tokens < 1e7 ? 1 : 2;
    const bool shape = shape_is_free(c) && !c->r->train.from;
    if (shape)
        take_size(c, size);
    if (o->max_updates ||
        (o->schedule != HEED_SCHEDULE_COSINE && o->schedule != HEED_SCHEDULE_LINEAR))
        return HEED_OK;
    double updates = passes(c) * c->tokens / tokens_an_update(c);
    if (measured) {
        heed_status status = measure(c, err);
        /* A smaller model that sees enough of the text beats a larger one that does not. */
        while (!status && shape && size && affordable(c) < fmin(updates, 2000)) {
            take_size(c, --size);
            status = measure(c, err);
        }
        if (status)
            return status;
        c->short_of_time = affordable(c) < updates;
        updates = fmin(updates, affordable(c));
    }
    o->max_updates = heed__rounded(fmax(updates, 20));
    if (!is_free(c, "warmup") && o->max_updates <= o->warmup)
        o->max_updates = 2 * o->warmup;
    return HEED_OK;
}

static double epochs(const struct chooser *c)
{
    const heed_loop_options *o = &c->r->train.loop;
    return o->max_updates ? (double)o->max_updates * tokens_an_update(c) / c->tokens : 1;
}

static void choose_rest(struct chooser *c)
{
    static const struct {
        double epochs, dropout;
    } steps[] = {{3, 0}, {8, 0.1}, {20, 0.15}, {INFINITY, 0.2}};
    heed_loop_options *o = &c->r->train.loop;
    const bool from = c->r->train.from, free_schedule = is_free(c, "schedule");
    int i = 0;
    while (epochs(c) >= steps[i].epochs)
        i++;
    if (is_free(c, "dropout"))
        c->r->model.dropout = from ? 0 : steps[i].dropout;
    if (is_free(c, "warmup") && o->max_updates)
        o->warmup = (int64_t)heed__clamp((double)o->max_updates / 10, 0, 500);
    if (is_free(c, "rate") && free_schedule && is_free(c, "optimizer"))
        o->rate =
            from ? FROM_RATE
                 : (double)heed__rounded(1e6 * 0.001 * sqrt(256 / (double)c->r->model.d)) / 1e6;
    if (is_free(c, "rate-floor") && free_schedule)
        o->rate_floor = o->rate / 10;
    if (is_free(c, "beta2") && o->optimizer == HEED_ADAMW)
        o->beta2 = 0.99;
    if (is_free(c, "valid-every") && is_free(c, "valid-minutes") && o->max_updates)
        o->valid_every = heed__rounded(fmax((double)o->max_updates / 15, 100));
}

/* ---- what is said ---- */

static void tell(const struct chooser *c)
{
    const heed_language_recipe *r = c->r;
    const heed_loop_options *o = &r->train.loop;
    char time[48], why[160] = "", pieces[64] = "";
    if (!r->train.from && !r->train.vocab && r->train.vocab_size)
        snprintf(pieces, sizeof pieces, ", %lld pieces", (long long)r->train.vocab_size);
    heed__language_say(c->t, HEED_LOG_INFO, "about %lld tokens: %s%s, %lld tokens at once",
                       (long long)heed__rounded(c->tokens),
                       c->size ? c->size : "the model as given", pieces,
                       (long long)r->model.longest);
    if (c->seconds > 0)
        snprintf(why, sizeof why, ", %s here (%.2g s each, measured)%s",
                 heed__duration((double)o->max_updates * c->seconds / SHARE, time), c->seconds,
                 !c->short_of_time    ? ""
                 : o->max_minutes > 0 ? ": what --max-minutes leaves time for"
                                      : ": an hour; more with --max-minutes");
    if (o->max_updates)
        heed__language_say(c->t, HEED_LOG_INFO,
                           "%lld updates of %.0f tokens: %.1f times through the text%s",
                           (long long)o->max_updates, tokens_an_update(c), epochs(c), why);
    heed__language_say(c->t, HEED_LOG_INFO,
                       "learning rate: rises to %g in %lld updates; dropout %g; --recipe paper "
                       "chooses nothing",
                       o->rate, (long long)o->warmup, r->model.dropout);
}

heed_status heed__language_choose(heed__language_run *t, int64_t bytes, heed_error *err)
{
    struct chooser c = {.t = t, .r = &t->recipe};
    if (t->recipe.train.recipe)
        return HEED_OK;
    heed_status status = heed_language_recipe_parse(&c.plain, 0, NULL, t->arena, err);
    if (status)
        return status;
    c.ranks = heed_ranks_size(t->hooks.ranks);
    c.plain.train.loop.accumulate = c.ranks;
    c.tokens = (bytes ? (double)bytes : 1e6) / bytes_a_token(&t->recipe.train);
    heed__loop_resolve(&t->recipe.train.loop);
    if (!t->recipe.train.from)
        choose_text(&c);
    else if (is_free(&c, "batch-tokens"))
        t->recipe.train.batch_tokens = 2048;
    status = choose_size_and_length(&c, bytes > 0, err);
    if (status)
        return status;
    choose_rest(&c);
    if (bytes)
        tell(&c);
    return HEED_OK;
}
