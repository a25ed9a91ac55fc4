/* test_search.c: the search over a made-up model, compared with enumeration and with a beam search
 * that sorts everything and never stops early. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "failing_allocator.h"
#include "made_up.h"

static int set_up(void **state)
{
    (void)state;
    return made_up_begin(8, 12);
}

static heed_status try_search(const heed_search_options *o, const heed_tokens *source,
                              int64_t count, heed_hypothesis *out, heed_error *err)
{
    heed__stepper s = made_up_stepper(&model);
    model.steps = model.rows_stepped = 0;
    return heed__search_all(&s, o, &heed__usual_budget, source, count, NULL, arena, out, err);
}

static void search(const heed_search_options *o, const heed_tokens *source, int64_t count,
                   heed_hypothesis *out)
{
    heed_error err = {0};
    if (try_search(o, source, count, out, &err))
        fail_msg("%s", err.text);
}

/* Every sentence of the model, best first, into `done`. */
static int64_t enumerate(const struct hypothesis *h, const heed_search_options *o, int64_t found)
{
    heed_real logit[MAX_V], log_z = distribution(&model, h->history, -1, logit);
    for (int32_t v = 0; v < model.vocabulary; v++) {
        if (v == HEED_BOS)
            continue;
        struct hypothesis e = extended(h, 0, v, logit[v] - log_z);
        e.score = penalised(o, e.log_p, e.count);
        if (v == HEED_EOS)
            insert_by_score(done, &found, &e);
        else if (e.count < model.longest)
            found = enumerate(&e, o, found);
    }
    return found;
}

/* Catches a wide beam that misses the best sentence, a wrong penalty or length in it, and n-best
 * lists that are not the n best. */
static void test_wide_beam_is_exact(void **state)
{
    (void)state;
    static const double alphas[] = {0, 0.6, 1.5};
    enum { N_BEST = 40, BEAM = 300 };
    heed_hypothesis found[BEAM];
    model.vocabulary = 6;
    model.longest = 5;
    for (uint64_t seed = 1; seed <= 12; seed++) {
        model.seed = seed;
        double alpha = alphas[seed % 3];
        heed_tokens source = source_of(0, (int64_t)seed % 4);
        struct hypothesis root = {.history = mix(history_of(&source), HEED_BOS)};
        heed_search_options o = {.beam = BEAM,
                                 .length_penalty = alpha,
                                 .penalty_form = seed % 2 ? HEED_PENALTY_POWER : HEED_PENALTY_WU,
                                 .n_best = N_BEST,
                                 .extra_length = 50};
        int64_t all = enumerate(&root, &o, 0);
        search(&o, &source, 1, found);
        assert_true(all > N_BEST);
        for (int i = 0; i < N_BEST; i++) {
            assert_true(found[i].score == done[i].score);
            assert_int_equal(found[i].count, done[i].count);
            assert_memory_equal(found[i].id, done[i].id, (size_t)done[i].count * sizeof(int32_t));
        }
    }
}

/* Catches a beam of 1 that is not greedy: one that goes on after EOS, or takes an EOS that was only
 * second best. */
static void test_beam_of_one_is_greedy(void **state)
{
    (void)state;
    heed_hypothesis found;
    heed_real logit[MAX_V];
    for (uint64_t seed = 1; seed <= 200; seed++) {
        model.seed = seed;
        model.eos_bias = (double)(seed % 5) - 2;
        model.sharpness = 5;
        heed_tokens source = source_of((int64_t)seed % 5, (int64_t)seed % 6);
        heed_search_options o = {.beam = 1, .length_penalty = 2, .n_best = 1, .extra_length = 4};
        search(&o, &source, 1, &found);
        uint64_t history = mix(history_of(&source), HEED_BOS);
        double sum = 0;
        int64_t limit = source.count + 5, length = 0;
        for (int32_t token = -1; token != HEED_EOS && length < limit; length++) {
            heed_real log_z = distribution(&model, history, -1, logit);
            token = 0;
            for (int32_t v = 2; v < model.vocabulary; v++)
                token = logit[v] > logit[token] ? v : token;
            token = length + 1 == limit ? HEED_EOS : token;
            assert_true(length < found.count);
            assert_int_equal(found.id[length], token);
            assert_true(found.token_log_p[length] == logit[token] - log_z);
            sum += (double)found.token_log_p[length];
            history = mix(history, token);
        }
        assert_int_equal(found.count, length);
        assert_true(found.log_p == sum);
    }
}

/* Catches an early stop, or dropping what is without hope, that changes a result; ties that fall
 * differently; wrong parents after reordering; a wrong limit. */
static void test_same_as_slow_search(void **state)
{
    (void)state;
    static const double alphas[] = {0, 0.3, 0.6, 1, 2.5};
    heed_hypothesis found[8];
    for (uint64_t seed = 1; seed <= 600; seed++) {
        model.seed = seed;
        model.eos_bias = (double)(seed % 7) - 2;
        model.sharpness = 0.5 + (double)(seed % 4);
        model.grid = seed % 3 == 0 ? 0.5 : 0;
        model.short_list = seed % 8 == 0 ? 5 : 0;
        heed_search_options o = {.beam = 2 + (int64_t)seed % 6,
                                 .length_penalty = alphas[seed % 5],
                                 .penalty_form = seed % 7 < 3,
                                 .extra_length = (int64_t)seed % 9,
                                 .min_length = seed % 4 == 0 ? 3 : 0};
        o.n_best = 1 + (int64_t)(seed / 7) % o.beam;
        heed_tokens source = source_of((int64_t)seed % 4, (int64_t)seed % 7);
        search(&o, &source, 1, found);
        assert_same(found, o.n_best, slow_search(&model, &o, &source, (heed_tokens){0}));
    }
}

/* Catches a search that goes on although nothing can change any more: half of the rows' steps are
 * saved on sentences that end easily. */
static void test_stops_early(void **state)
{
    (void)state;
    int64_t rows = 0, all = 0;
    heed_hypothesis found;
    for (uint64_t seed = 1; seed <= 50; seed++) {
        model.seed = seed;
        model.eos_bias = 3;
        heed_search_options o = {.beam = 4, .length_penalty = 0.6, .n_best = 1, .extra_length = 50};
        heed_tokens source = source_of(0, 5);
        search(&o, &source, 1, &found);
        rows += model.rows_stepped;
        all += 1 + 4 * (model.longest - 1);
    }
    assert_true(2 * rows < all);
}

/* Catches sentences that change each other: a row of one that goes to another, limits mixed up when
 * one leaves the batch; and finished sentences that stay in it. */
static void test_batch_is_its_sentences(void **state)
{
    (void)state;
    enum { B = 7, BEAM = 3, N_BEST = 2 };
    heed_hypothesis together[B * N_BEST], alone[N_BEST];
    for (uint64_t seed = 1; seed <= 60; seed++) {
        model.seed = seed;
        model.eos_bias = (double)(seed % 5) - 1;
        heed_search_options o = {
            .beam = BEAM, .length_penalty = 0.6, .n_best = N_BEST, .extra_length = 4};
        heed_tokens source[B];
        for (int64_t b = 0; b < B; b++)
            source[b] = source_of(b, (int64_t)(seed + 3 * (uint64_t)b) % 4);
        search(&o, source, B, together);
        int64_t rows = model.rows_stepped, alone_rows = 0;
        for (int64_t b = 0; b < B; b++) {
            search(&o, &source[b], 1, alone);
            alone_rows += model.rows_stepped;
            for (int i = 0; i < N_BEST; i++) {
                const heed_hypothesis *x = &together[b * N_BEST + i];
                assert_int_equal(x->count, alone[i].count);
                assert_true(x->score == alone[i].score);
                if (x->count)
                    assert_memory_equal(x->id, alone[i].id, (size_t)x->count * sizeof *x->id);
            }
        }
        assert_int_equal(rows, alone_rows);
    }
}

/* Catches lists that are not sorted, hold one hypothesis twice, or whose token values do not add up
 * to what is reported. */
static void test_n_best_sorted_distinct(void **state)
{
    (void)state;
    enum { BEAM = 6 };
    heed_hypothesis h[BEAM];
    for (uint64_t seed = 1; seed <= 40; seed++) {
        model.seed = seed;
        heed_search_options o = {
            .beam = BEAM, .length_penalty = 1, .n_best = BEAM, .extra_length = 8};
        heed_tokens source = source_of(1, 2);
        search(&o, &source, 1, h);
        for (int i = 0; i < BEAM && h[i].count; i++) {
            double sum = 0;
            for (int64_t k = 0; k < h[i].count; k++)
                sum += (double)h[i].token_log_p[k];
            assert_true(fabs(sum - h[i].log_p) < 1e-9);
            assert_int_equal(h[i].id[h[i].count - 1], HEED_EOS);
            assert_true(i == 0 || h[i - 1].score >= h[i].score);
            for (int j = 0; j < i; j++)
                assert_false(h[i].count == h[j].count &&
                             !memcmp(h[i].id, h[j].id, (size_t)h[i].count * sizeof(int32_t)));
        }
    }
}

/* Catches an EOS before the least length, hypotheses beyond the limit, and a sentence without an
 * answer because nothing reached EOS in time. */
static void test_lengths(void **state)
{
    (void)state;
    heed_hypothesis found[4];
    heed_tokens source = source_of(2, 3);
    model.eos_bias = 8;
    heed_search_options o = {.beam = 4, .length_penalty = 0.6, .n_best = 4, .extra_length = 6};
    search(&o, &source, 1, found);
    assert_int_equal(found[0].count, 1);
    for (o.min_length = 1; o.min_length < 9; o.min_length++) {
        search(&o, &source, 1, found);
        assert_int_equal(found[0].count, o.min_length + 1);
        assert_int_equal(found[0].id[o.min_length], HEED_EOS);
    }
    o.min_length = 0;
    model.eos_bias = -60; /* never */
    search(&o, &source, 1, found);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(found[i].count, source.count + 1 + o.extra_length);
        for (int64_t k = 0; k < found[i].count; k++)
            assert_true((found[i].id[k] == HEED_EOS) == (k + 1 == found[i].count));
        assert_true(found[i].score == penalised(&o, found[i].log_p, found[i].count));
    }
    o.extra_length = INT64_MAX;
    search(&o, &source, 1, found);
    assert_int_equal(found[0].count, model.longest);
    o.extra_length = 0;
    source.count = 0;
    search(&o, &source, 1, found);
    assert_int_equal(found[0].count, 1);
}

/* Catches NaN weights that crash, loop or pass as a translation, wherever the value stands. */
static void test_not_a_number(void **state)
{
    (void)state;
    static const int32_t tokens[] = {0, HEED_BOS, HEED_EOS, 7};
    heed_hypothesis found[2];
    heed_tokens source[2] = {source_of(0, 3), source_of(1, 5)};
    heed_search_options o = {.beam = 3, .length_penalty = 0.6, .n_best = 1, .extra_length = 5};
    model.eos_bias = -3;
    for (int64_t at = 1; at <= 3; at++)
        for (int i = 0; i < 8; i++) {
            heed_error err = {0};
            model.bad_step = at;
            model.bad_token = tokens[i % 4];
            model.bad_value = i < 4 ? (heed_real)NAN : (heed_real)INFINITY;
            assert_int_equal(try_search(&o, source, 2, found, &err), HEED_NUMERIC);
            assert_non_null(strstr(err.text, "log-probability"));
        }
}

/* Catches a token of probability 0 in a hypothesis, and a search that hangs when nothing is left.
 */
static void test_impossible_tokens(void **state)
{
    (void)state;
    heed_hypothesis found[2];
    heed_tokens source = source_of(0, 3);
    heed_search_options o = {.beam = 2, .length_penalty = 0.6, .n_best = 2, .extra_length = 5};
    model.vocabulary = 3; /* UNK and EOS are all there is to say */
    model.bad_step = 1;
    model.bad_token = HEED_UNK;
    model.bad_value = -(heed_real)INFINITY;
    search(&o, &source, 1, found);
    assert_int_equal(found[0].count, 1);
    assert_int_equal(found[0].id[0], HEED_EOS);
    assert_int_equal(found[1].count, 0);
    model.bad_token = HEED_EOS;
    o.beam = o.n_best = 1;
    model.eos_bias = -60;
    search(&o, &source, 1, found);
    assert_int_equal(found[0].count, 9);
}

/* Catches wrong options that pass, and no sentences that fail. */
static void test_options(void **state)
{
    (void)state;
    static const struct {
        heed_search_options o;
        const char *text;
    } wrong[] = {
        {{.beam = 0, .n_best = 1}, "the beam is 0, expected 1 or more"},
        {{.beam = 4, .n_best = 5},
         "the number of best hypotheses is 5, expected 1 to the beam's 4"},
        {{.beam = 4, .n_best = 0},
         "the number of best hypotheses is 0, expected 1 to the beam's 4"},
        {{.beam = 1, .n_best = 1, .length_penalty = -1},
         "the length penalty is -1, expected 0 or more"},
        {{.beam = 1, .n_best = 1, .extra_length = -1},
         "the extra length is -1, expected 0 or more"},
    };
    heed_tokens source = source_of(0, 1);
    heed_hypothesis found[8];
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        heed_error err = {0};
        assert_int_equal(try_search(&wrong[i].o, &source, 1, found, &err), HEED_ARGUMENT);
        assert_string_equal(err.text, wrong[i].text);
    }
    heed_search_options right = {.beam = 1, .n_best = 1};
    assert_int_equal(try_search(&right, NULL, 0, NULL, NULL), HEED_OK);
}

/* Catches memory that is used although it was not given. */
static void test_out_of_memory(void **state)
{
    (void)state;
    heed_search_options o = {.beam = 500, .length_penalty = 0.6, .n_best = 3, .extra_length = 50};
    heed_tokens source[40];
    heed_hypothesis found[120];
    for (int i = 0; i < 40; i++)
        source[i] = source_of(i % 5, i % 4);
    heed__stepper s = made_up_stepper(&model);
    s.vocabulary = model.vocabulary = 6;
    s.longest = model.longest = 3;
    int failures = 0;
    for (int n = 1;; n++) {
        struct failing f = {.fail_at = n};
        heed_allocator a = failing_allocator(&f);
        heed_arena *short_arena = heed_arena_new(&a, NULL);
        heed_status status = HEED_MEMORY;
        if (short_arena)
            status = heed__search_all(&s, &o, &heed__usual_budget, source, 40, &a, short_arena,
                                      found, NULL);
        heed_arena_free(short_arena);
        assert_int_equal(f.held, 0);
        if (status == HEED_OK)
            break;
        assert_int_equal(status, HEED_MEMORY);
        failures++;
    }
    assert_true(failures > 2);
}

int main(void)
{
#define SEARCH_TEST(f) cmocka_unit_test_setup_teardown(f, set_up, made_up_end)
    const struct CMUnitTest tests[] = {
        SEARCH_TEST(test_wide_beam_is_exact),
        SEARCH_TEST(test_beam_of_one_is_greedy),
        SEARCH_TEST(test_same_as_slow_search),
        SEARCH_TEST(test_stops_early),
        SEARCH_TEST(test_batch_is_its_sentences),
        SEARCH_TEST(test_n_best_sorted_distinct),
        SEARCH_TEST(test_lengths),
        SEARCH_TEST(test_not_a_number),
        SEARCH_TEST(test_impossible_tokens),
        SEARCH_TEST(test_options),
        SEARCH_TEST(test_out_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
