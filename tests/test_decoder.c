/* start / step / reorder: cached steps against the whole forward pass, row by row. */
#include "decoder_check.h"
#include "failing_allocator.h"

/* Catches: a cached step that is not the whole forward pass: a wrong position, keys of another row
 * or layer, a source that is not its sentence's, a copy that comes too late or too early. */
static void cached_steps_are_the_forward_pass(void **state)
{
    (void)state;
    for_each_form(check_model);
    for (int score = HEED_SCORE_DOT; score <= HEED_SCORE_LOCATION; score++) {
        heed_model_config config = small_config();
        config.attention.score = score;
        check_model(&config);
    }
}

/* Catches: probabilities that are none. */
static void check_log_p_is_normalised(int architecture)
{
    heed_model_config config = small_config_of(architecture);
    heed_model *m = new_model(&config);
    heed_decoder *d = new_decoder(m, 1);
    struct pairs *p = draw_pairs(6, 13);
    heed_rng rng = heed_rng_stream(&(heed_rng_key){.seed = 14});
    struct rows rows;
    start(d, p, 0, 6, &rows);
    for (int i = 0; i < 4; i++) {
        const heed_real *log_p = step(d, &rows, &rng);
        for (int r = 0; r < rows.count; r++) {
            double sum = 0;
            for (int v = 0; v < VOCABULARY; v++)
                sum += exp((double)log_p[r * VOCABULARY + v]);
            assert_near(sum, 1, SAME);
        }
    }
    pairs_free(p);
    heed_decoder_free(d);
    heed_model_free(m);
}

static void log_p_is_normalised(void **state)
{
    (void)state;
    for (int i = 0; i < ARCHITECTURES; i++)
        check_log_p_is_normalised(i);
}

/* Catches: steps that depend on the threads, or on what the decoder did before. */
static void check_the_same_start_gives_the_same_bits(int architecture)
{
    heed_model_config config = small_config_of(architecture);
    heed_model *m = new_model(&config);
    struct pairs *p = draw_pairs(16, 15);
    heed_rng rng = heed_rng_stream(&(heed_rng_key){.seed = 16});
    heed_decoder *d[2] = {new_decoder(m, 1), new_decoder(m, 2)};
    struct rows rows;
    start(d[1], p, 0, 16, &rows); /* another batch before */
    step(d[1], &rows, &rng);
    heed_real first[6][8 * VOCABULARY];
    for (int k = 0; k < 2; k++) {
        start(d[k], p, 8, 8, &rows);
        for (int i = 0; i < 6; i++) {
            const heed_real *log_p = step(d[k], &rows, &rng);
            if (k == 0)
                memcpy(first[i], log_p, sizeof first[i]);
            else
                assert_memory_equal(first[i], log_p, sizeof first[i]);
        }
    }
    pairs_free(p);
    heed_decoder_free(d[0]);
    heed_decoder_free(d[1]);
    heed_model_free(m);
}

static void the_same_start_gives_the_same_bits(void **state)
{
    (void)state;
    for (int i = 0; i < ARCHITECTURES; i++)
        check_the_same_start_gives_the_same_bits(i);
}

/* ---- learning ---- */

/* Catches: a model whose parts are right and that does not learn, or that learns and decodes
 * something else. */
static void check_thirty_two_pairs_are_learnt_by_heart(int architecture)
{
    heed_model_config config = small_config_of(architecture);
    config.d = 32;
    config.transformer.ff = 64;
    config.rnn.embedding = 0;
    config.label_smoothing = 0;
    heed_model *m = new_model(&config);
    struct pairs *p = draw_pairs(32, 19);
    heed_batch b = pack(p, 0, p->count);
    assert_true(right_translations(m, p) < 4);
    int steps = learn(m, &b, 400);
    print_message("%d updates\n", steps);
    assert_true(steps < 400);
    assert_int_equal(right_translations(m, p), p->count);
    pairs_free(p);
    heed_model_free(m);
}

static void thirty_two_pairs_are_learnt_by_heart(void **state)
{
    (void)state;
    for (int i = 0; i < ARCHITECTURES; i++)
        check_thirty_two_pairs_are_learnt_by_heart(i);
}

/* ---- refusals ---- */

/* Catches: rows that do not exist being read, and texts that do not say what is wrong. */
static void wrong_calls_are_refused(void **state)
{
    (void)state;
    heed_model_config config = small_config();
    config.longest = 5;
    heed_model *m = new_model(&config);
    heed_decoder *d = new_decoder(m, 1);
    struct pairs *p = draw_pairs(0, 1);
    static const int32_t ids[] = {3, 4, 5, 6, 7}, bos[] = {HEED_BOS, HEED_BOS};
    const heed_real *log_p;
    heed_error err = {0};
    assert_int_equal(heed_decoder_step(d, bos, &log_p, &err), HEED_STATE);
    assert_string_equal(err.text, "cannot decode a token: there was no start");
    err = (heed_error){0};
    assert_int_equal(heed_decoder_reorder(d, ids, 1, &err), HEED_STATE);
    assert_string_equal(err.text, "cannot reorder rows: there was no start");

    heed_batch b;
    p->source[0] = (heed_tokens){ids, 5};
    p->source[1] = (heed_tokens){ids, 3};
    assert_int_equal(heed_batch_pack(p->arena, NULL, p->source, NULL, 2, &b, NULL), HEED_OK);
    err = (heed_error){0};
    assert_int_equal(heed_decoder_start(d, &b, &err), HEED_ARGUMENT);
    assert_string_equal(err.text,
                        "a source sentence has 6 tokens, expected at most 5, as '--longest' says");
    assert_int_equal(heed_decoder_start(d, &b, NULL), HEED_ARGUMENT);
    assert_int_equal(heed_decoder_step(d, bos, &log_p, NULL), HEED_STATE);

    struct rows rows;
    p->source[0].count = 2;
    start(d, p, 0, 2, &rows);
    err = (heed_error){0};
    assert_int_equal(heed_decoder_reorder(d, (const int32_t[]){0, 2}, 2, &err), HEED_ARGUMENT);
    assert_string_equal(err.text, "row 1 goes on from row 2, expected 0 to 1");
    err = (heed_error){0};
    assert_int_equal(heed_decoder_reorder(d, (const int32_t[]){1, 0}, 2, &err), HEED_ARGUMENT);
    assert_string_equal(err.text, "row 1 goes on from sentence 0, expected 1 or later: rows stay "
                                  "in the order of their sentences");
    err = (heed_error){0};
    assert_int_equal(heed_decoder_reorder(d, ids, -1, &err), HEED_ARGUMENT);
    assert_string_equal(err.text, "cannot reorder to -1 rows");
    heed_rng rng = heed_rng_stream(&(heed_rng_key){.seed = 1});
    for (int i = 0; i < 5; i++)
        step(d, &rows, &rng);
    err = (heed_error){0};
    assert_int_equal(heed_decoder_step(d, bos, &log_p, &err), HEED_ARGUMENT);
    assert_string_equal(err.text, "cannot decode token 6: expected at most 5, as '--longest' says");
    assert_null(log_p);
    start(d, p, 0, 2, &rows);
    err = (heed_error){0};
    assert_int_equal(heed_decoder_step(d, (const int32_t[]){1, VOCABULARY}, &log_p, &err),
                     HEED_ARGUMENT);
    assert_non_null(strstr(err.text, "embedding: "));
    start(d, p, 0, 0, &rows);
    assert_int_equal(heed_decoder_step(d, bos, &log_p, NULL), HEED_STATE);
    start(d, p, 0, 2, &rows);
    assert_int_equal(heed_decoder_reorder(d, NULL, 0, NULL), HEED_OK); /* all finished */
    err = (heed_error){0};
    assert_int_equal(heed_decoder_step(d, bos, &log_p, &err), HEED_STATE);
    assert_string_equal(err.text, "cannot decode a token: there are no rows left");
    pairs_free(p);
    heed_decoder_free(d);
    heed_model_free(m);
}

/* ---- memory ---- */

/* One translation of a batch, with a beam that widens and narrows. */
static heed_status translate(heed_decoder *d, const heed_batch *b, heed_error *err)
{
    static const int32_t wide[] = {0, 0, 1, 1, 2, 2, 3, 3}, narrow[] = {1, 2, 5, 7};
    const int32_t token[8] = {1, 3, 4, 5, 6, 7, 8, 9};
    const heed_real *log_p;
    heed_status status = heed_decoder_start(d, b, err);
    for (int i = 0; i < 10 && !status; i++) {
        status = heed_decoder_step(d, token, &log_p, err);
        if (!status)
            status = heed_decoder_reorder(d, i % 2 ? narrow : wide, i % 2 ? 4 : 8, err);
    }
    return status;
}

/* Catches: an unchecked allocation in any call, a leak, a decoder that a failure leaves unusable.
 */
static void check_memory_fails_at_every_allocation(int architecture)
{
    heed_model_config config = small_config_of(architecture);
    heed_model *m = new_model(&config);
    struct pairs *p = draw_pairs(4, 17);
    heed_batch b = pack(p, 0, 4);
    struct failing f = {0};
    heed_allocator a = failing_allocator(&f);
    bool done = false;
    for (int at = 1; !done; at++) {
        heed_error err = {0};
        f.calls = 0;
        f.fail_at = at;
        heed_decoder *d = heed_decoder_new(m, 1, &a, &err);
        done = d && translate(d, &b, &err) == HEED_OK;
        if (!done) {
            assert_int_equal(err.status, HEED_MEMORY);
            assert_true(err.text[0]);
        }
        f.fail_at = 0;
        if (d)
            assert_int_equal(translate(d, &b, NULL), HEED_OK);
        heed_decoder_free(d);
        assert_int_equal(f.held, 0);
    }
    pairs_free(p);
    heed_model_free(m);
}

static void memory_fails_at_every_allocation(void **state)
{
    (void)state;
    for (int i = 0; i < ARCHITECTURES; i++)
        check_memory_fails_at_every_allocation(i);
}

/* Catches: memory asked for in every step, or in every batch. */
static void check_a_warm_decoder_asks_for_no_memory(int architecture)
{
    heed_model_config config = small_config_of(architecture);
    heed_model *m = new_model(&config);
    struct pairs *p = draw_pairs(8, 18);
    heed_batch b[2] = {pack(p, 0, 4), pack(p, 4, 4)};
    struct failing f = {0};
    heed_allocator a = failing_allocator(&f);
    heed_decoder *d = heed_decoder_new(m, 2, &a, NULL);
    for (int i = 0; i < 2; i++)
        assert_int_equal(translate(d, &b[i % 2], NULL), HEED_OK);
    int warm = f.calls;
    for (int i = 0; i < 6; i++)
        assert_int_equal(translate(d, &b[i % 2], NULL), HEED_OK);
    assert_int_equal(f.calls, warm);
    pairs_free(p);
    heed_decoder_free(d);
    heed_model_free(m);
}

static void a_warm_decoder_asks_for_no_memory(void **state)
{
    (void)state;
    for (int i = 0; i < ARCHITECTURES; i++)
        check_a_warm_decoder_asks_for_no_memory(i);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cached_steps_are_the_forward_pass),
        cmocka_unit_test(log_p_is_normalised),
        cmocka_unit_test(the_same_start_gives_the_same_bits),
        cmocka_unit_test(thirty_two_pairs_are_learnt_by_heart),
        cmocka_unit_test(wrong_calls_are_refused),
        cmocka_unit_test(memory_fails_at_every_allocation),
        cmocka_unit_test(a_warm_decoder_asks_for_no_memory),
    };
    return cmocka_run_group_tests_name("decoder", tests, NULL, NULL);
}
