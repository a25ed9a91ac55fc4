/* small_transformer.h: a Transformer small enough to look into, recurrent translators beside it,
 * made-up sentence pairs for them, and what the tests of src/model ask again and again. */
#ifndef HEED_TESTS_SMALL_TRANSFORMER_H
#define HEED_TESTS_SMALL_TRANSFORMER_H

#include <heed/data.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* The same sums in another order: relative to numbers around 1 to 10. */
#ifdef HEED_DOUBLE
#define SAME 1e-12
#else
#define SAME 1e-5
#endif

enum { VOCABULARY = 17, MOST_PAIRS = 64, LONGEST = 24 };

static inline heed_model_config small_config(void)
{
    return (heed_model_config){
        .encoder_layers = 2,
        .decoder_layers = 2,
        .d = 16,
        .tying = HEED_TIE_ALL,
        .transformer = {.ff = 24,
                        .heads = 4,
                        .activation = HEED_RELU,
                        .ff_bias = true,
                        .norm_eps = 1e-6,
                        .embedding_scale = true,
                        .residual = true,
                        .scale_scores = true,
                        .positions = HEED_POSITIONS_SINUSOID},
        .longest = LONGEST,
        .label_smoothing = 0.1,
        .source_vocabulary = VOCABULARY,
        .target_vocabulary = VOCABULARY,
    };
}

/* One of each: the Transformer, then Sutskever's, Bahdanau's and Luong's translator. */
enum { ARCHITECTURES = 4 };
static inline heed_model_config small_config_of(int i)
{
    heed_model_config c = small_config();
    static const heed_rnn_config rnn[] = {
        {.cell = HEED_RNN_LSTM, .attend = HEED_ATTEND_NEVER, .reverse = true},
        {.cell = HEED_RNN_GRU,
         .attend = HEED_ATTEND_BEFORE,
         .bidirectional = true,
         .embedding = 12},
        {.cell = HEED_RNN_LSTM,
         .attend = HEED_ATTEND_AFTER,
         .reverse = true,
         .input_feeding = true}};
    if (i == 0)
        return c;
    c.arch = HEED_ARCH_RNN;
    c.rnn = rnn[i - 1];
    c.transformer = (heed_transformer_config){0}; /* nobody's concern */
    if (i == 2) {
        c.encoder_layers = c.decoder_layers = 1;
        c.attention.score = HEED_SCORE_ADDITIVE;
    } else if (i == 3) {
        c.attention.score = HEED_SCORE_GENERAL;
    }
    return c;
}

static heed_model *new_model(const heed_model_config *config)
{
    heed_error err = {0};
    heed_model *m = heed_model_new(config, 7, NULL, &err);
    if (!m)
        fail_msg("%s", err.text);
    return m;
}

/* Sentences of 1 to 9 tokens that are neither BOS nor EOS. */
struct pairs {
    heed_arena *arena;
    int count;
    heed_tokens source[MOST_PAIRS], target[MOST_PAIRS];
};

static heed_tokens draw_sentence(heed_arena *arena, const heed_rng *rng, uint64_t at)
{
    heed_tokens s = {.count = 1 + heed_rng_below(rng, at, 9)};
    int32_t *id = heed_arena_allocate(arena, (size_t)s.count * sizeof *id);
    for (int64_t i = 0; i < s.count; i++)
        id[i] = 3 + (int32_t)heed_rng_below(rng, at + 1 + (uint64_t)i, VOCABULARY - 3);
    s.id = id;
    return s;
}

static inline struct pairs *draw_pairs(int count, uint64_t seed)
{
    heed_rng rng = heed_rng_stream(&(heed_rng_key){.seed = seed});
    struct pairs *p = calloc(1, sizeof *p);
    p->arena = heed_arena_new(NULL, NULL);
    p->count = count;
    for (int i = 0; i < count; i++) {
        p->source[i] = draw_sentence(p->arena, &rng, (uint64_t)(200 * i));
        p->target[i] = draw_sentence(p->arena, &rng, (uint64_t)(200 * i + 100));
    }
    return p;
}

static inline void pairs_free(struct pairs *p)
{
    heed_arena_free(p->arena);
    free(p);
}

/* Pairs first .. first+count-1, in the pairs' arena. */
static inline heed_batch pack(const struct pairs *p, int first, int count)
{
    heed_batch b;
    heed_error err = {0};
    if (heed_batch_pack(p->arena, NULL, p->source + first, p->target + first, count, &b, &err))
        fail_msg("%s", err.text);
    return b;
}

static inline heed_tape *new_tape(int threads)
{
    heed_tape *t = heed_tape_new(&(heed_tape_options){.threads = threads, .seed = 3}, NULL);
    assert_non_null(t);
    return t;
}

static inline void assert_near(double found, double wanted, double allowed)
{
    if (!(fabs(found - wanted) <= allowed * fmax(1, fabs(wanted))))
        fail_msg("found %.15g, wanted %.15g", found, wanted);
}

/* Log-probabilities of the batch's target tokens, a copy. */
static inline heed_real *score(const heed_model *m, heed_tape *t, const heed_batch *b)
{
    heed_tape_reset(t);
    const heed_real *log_p = heed_model_score(m, t, b);
    if (!log_p)
        fail_msg("%s", heed_tape_error(t)->text);
    heed_real *copy = malloc((size_t)b->target.rows->rows * sizeof *copy);
    return memcpy(copy, log_p, (size_t)b->target.rows->rows * sizeof *copy);
}

/* Calls check with configurations that between them have every part of a layer in each of its
 * forms; dropout, which must not act outside of training, is in all of them. */
static inline void for_each_form(void (*check)(const heed_model_config *))
{
    heed_model_config config = small_config();
    heed_transformer_config *c = &config.transformer;
    config.dropout = config.attention.dropout = c->ff_dropout = 0.3;
    check(&config);
    c->pre_norm = true;
    c->norm = HEED_NORM_RMS;
    c->positions = HEED_POSITIONS_LEARNED;
    c->attention_bias = true;
    c->activation = HEED_GELU;
    config.tying = HEED_TIE_NONE;
    config.source_vocabulary = VOCABULARY + 2;
    check(&config);
    c->norm = HEED_NORM_BATCH;
    c->pre_norm = false;
    c->d_k = 3;
    c->d_v = 5;
    c->positions = HEED_POSITIONS_NONE;
    config.tying = HEED_TIE_TARGET;
    c->scale_scores = false;
    check(&config);
    c->residual = false;
    c->positions = HEED_POSITIONS_SINUSOID_HALVES;
    check(&config);
    c->pre_norm = true;
    check(&config);
    c->residual = c->scale_scores = true;
    config.attention.score = HEED_SCORE_COSINE;
    check(&config);
    config.attention.beta = 3;
    check(&config);
    config.attention.score = HEED_SCORE_GENERAL;
    check(&config);
    config.attention.score = HEED_SCORE_SCALED_DOT;
    c->d_k = 6;
    c->positions = HEED_POSITIONS_ROTARY;
    c->activation = HEED_SILU;
    c->ff_gated = c->output_bias = true;
    c->ff_bias = false;
    c->kv_heads = 2;
    check(&config);
    config.attention.pattern = (heed_slot_spec)HEED_ONE(HEED_PATTERN_BAND, {4});
    config.attention.position_bias = (heed_slot_spec)HEED_ONE(HEED_BIAS_TABLE, {2});
    config.attention.memory = (heed_slot_spec)HEED_ONE(HEED_MEMORY_PERSISTENT, {2});
    check(&config);
    config.attention = (heed_attention_config){.normaliser = HEED_ONE(HEED_NORMALISE_ELU, {0})};
    check(&config);
    config.attention = (heed_attention_config){0};
    c->decoder_unit = HEED_DECODER_UNIT_SSRU;
    c->zero_start = true;
    check(&config);
    c->positions = HEED_POSITIONS_SINUSOID_MARIAN;
    c->norm = HEED_NORM_LAYER;
    c->pre_norm = false;
    check(&config);
}

#endif
