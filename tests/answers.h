/* answers.h: lines of many lengths, with ties, for a small random model, and their translations. */
#ifndef HEED_TESTS_ANSWERS_H
#define HEED_TESTS_ANSWERS_H

#include "small_transformer.h"

#include "engine/engine.h"
#include "search/beam.h"

enum { LINES = 400, MOST_TOKENS = 120, WORDS = 700 };

static const heed_search_options how = {
    .beam = 4, .length_penalty = 0.6, .n_best = 2, .extra_length = 3};

static heed_model *model;
static int32_t ids[LINES][MOST_TOKENS];
static heed_tokens source[LINES];

/* Pieces 5 and 6 are one and the same to the model, 7 and 8 nearly, and so on: ties, and near-ties.
 */
static int set_up(void **state)
{
    (void)state;
    heed_model_config config = small_config();
    config.d = 32;
    config.transformer.ff = 40;
    config.longest = MOST_TOKENS + 10;
    config.source_vocabulary = config.target_vocabulary = WORDS;
    model = new_model(&config);
    heed_real *table =
        heed_tensor_data(heed_params_find(heed_model_params(model), "embedding.table"));
    for (int64_t i = 0; i + 8 < WORDS; i += 4) {
        heed_real *of = table + i * config.d;
        memcpy(of + 6 * config.d, of + 5 * config.d, (size_t)config.d * sizeof *table);
        for (int64_t j = 0; j < config.d; j++)
            of[8 * config.d + j] = of[7 * config.d + j] * (heed_real)(1 + 1e-6);
    }
    const heed_rng rng = heed_rng_stream(&(heed_rng_key){.seed = 77});
    for (int i = 0; i < LINES; i++) {
        source[i] = (heed_tokens){ids[i], 1 + i * 37 % MOST_TOKENS};
        for (int64_t k = 0; k < source[i].count; k++)
            ids[i][k] =
                3 + (int32_t)heed_rng_below(&rng, (uint64_t)(i * MOST_TOKENS + k), WORDS - 3);
    }
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    heed_model_free(model);
    return 0;
}

static heed_engine *new_engine(int bits)
{
    heed_error err = {0};
    heed_engine *e = heed_engine_new(model, NULL, &err);
    if (!e)
        fail_msg("%s", err.text);
    if (bits) {
        heed__weights_free(e->weights);
        e->weights = heed__weights_of(model, bits, NULL, NULL);
        assert_non_null(e->weights);
    }
    return e;
}

/* The answers to some lines, `together` of them at a time. */
struct answers {
    heed_arena *arena;
    heed_hypothesis out[LINES * 2];
};

static inline heed_status answer(const heed_engine *e, int threads, int64_t together,
                                 const int *order, int64_t count, struct answers *a)
{
    heed_tokens chosen[LINES];
    heed_error err = {0};
    const heed__budget budget = {.rows = 4 * together, .tokens = 1 << 20, .sentences = together};
    heed_session *s = heed_session_new(e, &(heed_session_options){.threads = threads}, NULL, &err);
    a->arena = heed_arena_new(NULL, &err);
    for (int64_t i = 0; i < count; i++)
        chosen[i] = source[order[i]];
    if (s && a->arena)
        heed__search_all(&s->stepper, &how, &budget, chosen, count, NULL, a->arena, a->out, &err);
    heed_session_free(s);
    return err.status;
}

static inline void check_same(const heed_hypothesis *found, const heed_hypothesis *wanted, int line)
{
    for (int k = 0; k < 2; k++) {
        if (found[k].count != wanted[k].count ||
            memcmp(found[k].id, wanted[k].id, (size_t)wanted[k].count * sizeof(int32_t)) != 0)
            fail_msg("line %d has another translation", line);
        assert_memory_equal(&found[k].score, &wanted[k].score, sizeof found[k].score);
        assert_memory_equal(found[k].token_log_p, wanted[k].token_log_p,
                            (size_t)wanted[k].count * sizeof(heed_real));
    }
}

#endif
