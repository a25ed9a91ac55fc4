/* The answer to a line is its own: whatever else is decoded, in whatever order, by however many
 * threads, text and scores are the same bits, in numbers and in bytes. */
#include "small_transformer.h"

#include "decode/engine.h"
#include "decode/search.h"
#include <pthread.h>

enum { LINES = 400, MOST_TOKENS = 120, WORDS = 60, THREADS = 8 };

static const heed_search_options how = {
    .beam = 4, .length_penalty = 0.6, .n_best = 2, .extra_length = 3};

static heed_model *model;
static int32_t ids[LINES][MOST_TOKENS];
static heed_tokens source[LINES];

/* Pieces 5 and 6 are one and the same to the model, 8 and 9 nearly: ties, and near-ties. */
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
    memcpy(table + 6 * config.d, table + 5 * config.d, (size_t)config.d * sizeof *table);
    for (int64_t j = 0; j < config.d; j++)
        table[9 * config.d + j] = table[8 * config.d + j] * (heed_real)(1 + 1e-6);
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

static heed_status answer(const heed_engine *e, int threads, int64_t together, const int *order,
                          int64_t count, struct answers *a)
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

static void check_same(const heed_hypothesis *found, const heed_hypothesis *wanted, int line)
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

static void draw_order(int *order, uint64_t seed)
{
    const heed_rng rng = heed_rng_stream(&(heed_rng_key){.seed = seed});
    for (int i = 0; i < LINES; i++)
        order[i] = i;
    for (int i = LINES - 1; seed && i > 0; i--) {
        int k = (int)heed_rng_below(&rng, (uint64_t)i, i + 1), kept = order[i];
        order[i] = order[k];
        order[k] = kept;
    }
}

static void check_engine(int bits)
{
    static const struct {
        int threads;
        int64_t together;
        uint64_t shuffled;
    } ways[] = {{1, 7, 0}, {1, 64, 3}, {2, 64, 0}, {4, 7, 5}};
    heed_engine *e = new_engine(bits);
    static struct answers alone, found;
    int order[LINES], ties = 0;
    draw_order(order, 0);
    assert_int_equal(answer(e, 1, 1, order, LINES, &alone), HEED_OK);
    for (size_t w = 0; w < sizeof ways / sizeof *ways; w++) {
        draw_order(order, ways[w].shuffled);
        assert_int_equal(answer(e, ways[w].threads, ways[w].together, order, LINES, &found),
                         HEED_OK);
        for (int i = 0; i < LINES; i++)
            check_same(&found.out[2 * i], &alone.out[2 * order[i]], order[i]);
        heed_arena_free(found.arena);
    }
    for (int i = 0; i < LINES; i++)
        ties += alone.out[2 * i].score == alone.out[2 * i + 1].score;
    print_message("%d of %d lines end in a tie\n", ties, LINES);
    assert_true(ties > 0);
    heed_arena_free(alone.arena);
    heed_engine_free(e);
}

/* Catches: a sum whose order depends on the rows or the threads; a tie that is decided by luck. */
static void batches_do_not_matter_in_numbers(void **state)
{
    (void)state;
    check_engine(0);
}

static void batches_do_not_matter_in_bytes(void **state)
{
    (void)state;
    check_engine(7);
    check_engine(8);
}

/* ---- one engine, eight threads ---- */

struct one_thread {
    const heed_engine *e;
    int order[LINES];
    int64_t count;
    struct answers answers;
    heed_status status;
};

static void *run_thread(void *context)
{
    struct one_thread *t = context;
    t->status = answer(t->e, 1, 5, t->order, t->count, &t->answers);
    return NULL;
}

/* Catches: an engine that is not as immutable as it says. */
static void eight_threads_share_an_engine(void **state)
{
    (void)state;
    heed_engine *e = new_engine(8);
    struct one_thread *t = calloc(THREADS + 1, sizeof *t);
    pthread_t thread[THREADS];
    draw_order(t[THREADS].order, 0);
    t[THREADS].e = e;
    t[THREADS].count = LINES / 2;
    run_thread(&t[THREADS]);
    for (int i = 0; i < THREADS; i++) {
        t[i].e = e;
        for (int k = i; k < LINES / 2; k += THREADS)
            t[i].order[t[i].count++] = k;
        assert_int_equal(pthread_create(&thread[i], NULL, run_thread, &t[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(thread[i], NULL);
        assert_int_equal(t[i].status, HEED_OK);
        for (int64_t k = 0; k < t[i].count; k++)
            check_same(&t[i].answers.out[2 * k], &t[THREADS].answers.out[2 * t[i].order[k]],
                       t[i].order[k]);
        heed_arena_free(t[i].answers.arena);
    }
    heed_arena_free(t[THREADS].answers.arena);
    free(t);
    heed_engine_free(e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(batches_do_not_matter_in_numbers),
        cmocka_unit_test(batches_do_not_matter_in_bytes),
        cmocka_unit_test(eight_threads_share_an_engine),
    };
    return cmocka_run_group_tests_name("batching", tests, set_up, tear_down);
}
