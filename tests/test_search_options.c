/* test_search_options.c: every option of the search, against a search by the book that has them all
 * and by what each one promises. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "made_up.h"
#include "search/search_state.h"

static const heed_search_options plain = {
    .beam = 4, .length_penalty = 0.6, .n_best = 1, .extra_length = 10};

static int set_up(void **state)
{
    (void)state;
    return made_up_begin(9, 14);
}

static void search(const heed_search_options *o, heed_tokens source, heed_tokens prefix,
                   heed_hypothesis *out)
{
    heed_error err = {0};
    if (search_prefix(o, source, prefix, out, &err))
        fail_msg("%s", err.text);
}

static const heed_tokens none = {NULL, 0};

static int64_t count_token(const heed_hypothesis *h, int32_t token)
{
    int64_t n = 0;
    for (int64_t i = 0; i < h->count; i++)
        n += h->id[i] == token;
    return n;
}

/* Catches an early stop that an option makes wrong, options that disturb each other, and any of
 * them that is not kept to at some step, for some hypothesis, among equals. */
static void test_all_together(void **state)
{
    (void)state;
    static const double alphas[] = {0, 0.4, 1, 2};
    static const int32_t banned[] = {4, 8};
    heed_hypothesis found[8];
    int loops = 0;
    for (uint64_t seed = 1; seed <= 1200; seed++) {
        heed_rng_key key = {.seed = seed};
        heed_rng rng = heed_rng_stream(&key);
#define PICK(i, n) heed_rng_below(&rng, i, n)
        model.seed = seed;
        model.longest = seed % 3 ? 44 : 14;
        model.eos_bias = (double)PICK(0, 9) - 7;
        model.sharpness = 0.5 + (double)PICK(1, 4);
        model.grid = PICK(2, 3) == 0 ? 0.5 : 0;
        model.stubborn = PICK(3, 3) == 0 ? 12 : 0;
        model.short_list = PICK(4, 4) == 0 ? 7 : 0;
        heed_search_options o = {.beam = 1 + PICK(5, 6),
                                 .length_penalty = alphas[PICK(6, 4)],
                                 .penalty_form = (int)PICK(7, 2),
                                 .patience = PICK(27, 2) ? 0.5 * (double)PICK(28, 5) : 0,
                                 .extra_length = PICK(8, 40),
                                 .max_length = PICK(9, 3) == 0 ? 1 + PICK(10, 12) : 0,
                                 .max_ratio = PICK(11, 3) == 0 ? 0.7 * (double)PICK(12, 5) : 0,
                                 .min_length = PICK(13, 3) == 0 ? PICK(14, 4) : 0,
                                 .min_ratio = PICK(15, 4) == 0 ? 0.5 : 0,
                                 .no_repeat = PICK(16, 3) == 0 ? 1 + PICK(17, 3) : 0,
                                 .allow_loops = PICK(18, 4) == 0,
                                 .suppress_unk = PICK(19, 2) == 0,
                                 .banned = {banned, PICK(20, 3)}};
        o.n_best = 1 + PICK(21, o.beam);
        heed_tokens source = source_of(PICK(22, 4), PICK(23, 7));
        heed_tokens prefix = source_of(PICK(24, 3), PICK(25, 2) * PICK(26, 6));
#undef PICK
        if (model.short_list && prefix.count)
            model.short_list = 0; /* 7 may stand in the prefix */
        search(&o, source, prefix, found);
        assert_same(found, o.n_best, slow_search(&model, &o, &source, prefix));
        loops += found[0].loop;
    }
    assert_true(loops > 20);
}

/* Catches a form that is ignored: with the power form and alpha 1 the score is the mean. */
static void test_penalty_forms(void **state)
{
    (void)state;
    heed_hypothesis wu, power;
    int differ = 0;
    for (uint64_t seed = 1; seed <= 60; seed++) {
        heed_search_options o = plain;
        model.seed = seed;
        o.length_penalty = 1;
        search(&o, source_of(0, 4), none, &wu);
        o.penalty_form = HEED_PENALTY_POWER;
        search(&o, source_of(0, 4), none, &power);
        assert_true(wu.score == wu.log_p / ((5.0 + (double)wu.count) / 6));
        assert_true(power.score == power.log_p / (double)power.count);
        differ += wu.count != power.count;
    }
    assert_true(differ > 5);
}

/* Catches a patience that is ignored, that counts rows or kept hypotheses instead of ends, or that
 * stops before n_best are there. */
static void test_patience(void **state)
{
    (void)state;
    heed_hypothesis found[4];
    heed_search_options o = plain;
    int64_t steps[3] = {0}, shorter = 0;
    o.penalty_form = HEED_PENALTY_POWER;
    o.length_penalty = 1;
    for (uint64_t seed = 1; seed <= 60; seed++) {
        static const double patience[] = {0, 1, 0.25};
        int64_t length[3];
        model.seed = seed;
        for (int i = 0; i < 3; i++) {
            model.steps = 0;
            o.patience = patience[i];
            search(&o, source_of(0, 4), none, found);
            steps[i] += model.steps;
            length[i] = found->count;
        }
        assert_int_equal(length[2], model.steps); /* of four the first that ends */
        shorter += length[1] < length[0];
        assert_true(length[1] <= length[0]);
    }
    assert_true(shorter > 5);
    assert_true(steps[2] < steps[1] && steps[1] < steps[0]);
    o.n_best = 4;
    search(&o, source_of(0, 4), none, found);
    assert_true(found[3].count > 0);
}

/* Catches hypotheses that cannot win dropped before their ends have counted, while another one that
 * can is still alive. */
static void test_patience_counts_losers(void **state)
{
    (void)state;
    heed_hypothesis found;
    heed_search_options o = {.beam = 6, .n_best = 1, .extra_length = 10};
    heed_tokens source = source_of(0, 4);
    for (uint64_t seed = 1; seed <= 600; seed++) {
        model.seed = seed;
        model.sharpness = 0.5 + (double)(seed % 5);
        model.eos_bias = (double)(seed % 7) - 3;
        o.patience = 0.5 + 0.5 * (double)(seed % 3);
        search(&o, source, none, &found);
        assert_same(&found, 1, slow_search(&model, &o, &source, none));
    }
}

/* Catches limits that are not kept to, are taken for one another, or do not count EOS. */
static void test_lengths(void **state)
{
    (void)state;
    heed_hypothesis found;
    heed_search_options o = plain;
    heed_tokens source = source_of(0, 4); /* 5 with EOS */
    model.eos_bias = -60;                 /* never, if it may go on */
    search(&o, source, none, &found);
    assert_int_equal(found.count, 14); /* the model's */
    o.extra_length = 4;
    search(&o, source, none, &found);
    assert_int_equal(found.count, 9);
    o.max_ratio = 1.5;
    search(&o, source, none, &found);
    assert_int_equal(found.count, 8); /* 7.5 */
    o.max_length = 6;
    search(&o, source, none, &found);
    assert_int_equal(found.count, 6);
    o.max_length = 1;
    search(&o, source, source_of(0, 3), &found);
    assert_int_equal(found.count, 4); /* a prefix has its place, and one more */
    o = plain;
    model.eos_bias = 20; /* at once, if it may */
    search(&o, source, none, &found);
    assert_int_equal(found.count, 1);
    o.min_ratio = 1.3;
    search(&o, source, none, &found);
    assert_int_equal(found.count, 7 + 1); /* 6.5, and EOS */
    o.min_length = 9;
    search(&o, source, none, &found);
    assert_int_equal(found.count, 9 + 1);
}

/* Catches banned tokens that are written, also the unknown one, and a ban that bans all. */
static void test_banned(void **state)
{
    (void)state;
    static const int32_t banned[] = {5, 3, 7};
    heed_hypothesis found;
    int64_t without = 0, unknown = 0;
    for (uint64_t seed = 1; seed <= 40; seed++) {
        heed_search_options o = plain;
        model.seed = seed;
        model.eos_bias = -2;
        search(&o, source_of(1, 5), none, &found);
        for (int i = 0; i < 3; i++)
            without += count_token(&found, banned[i]);
        unknown += count_token(&found, HEED_UNK);
        o.banned = (heed_tokens){banned, 3};
        o.suppress_unk = true;
        search(&o, source_of(1, 5), none, &found);
        assert_true(found.count > 0);
        for (int i = 0; i < 3; i++)
            assert_int_equal(count_token(&found, banned[i]), 0);
        assert_int_equal(count_token(&found, HEED_UNK), 0);
        o.banned.count = 0;
        o.suppress_unk = false;
    }
    assert_true(without > 40 && unknown > 10);
}

static int64_t repeated_ngrams(const heed_hypothesis *h, int64_t n)
{
    int64_t found = 0;
    for (int64_t i = 0; i + n <= h->count; i++)
        for (int64_t k = i + 1; k + n <= h->count; k++)
            found += !memcmp(h->id + i, h->id + k, (size_t)n * sizeof *h->id);
    return found;
}

/* Catches n-grams that come twice although they must not, of every length. */
static void test_no_repeat(void **state)
{
    (void)state;
    heed_hypothesis found;
    model.longest = 30;
    for (int64_t n = 1; n <= 3; n++) {
        int64_t without = 0;
        for (uint64_t seed = 1; seed <= 30; seed++) {
            heed_search_options o = plain;
            model.seed = seed;
            model.eos_bias = -3;
            model.stubborn = 2;
            o.extra_length = 25;
            search(&o, source_of(1, 3), none, &found);
            without += repeated_ngrams(&found, n);
            o.no_repeat = n;
            search(&o, source_of(1, 3), none, &found);
            assert_true(found.count > 0);
            assert_int_equal(repeated_ngrams(&found, n), 0);
        }
        assert_true(without > 20);
    }
}

/* Catches hypotheses that do not begin as they are told to, or with other scores than the model
 * gives these tokens; and beginnings that cannot be. */
static void test_prefix(void **state)
{
    (void)state;
    heed_hypothesis found[4];
    heed_real logit[MAX_V];
    heed_search_options o = plain;
    o.n_best = 4;
    for (uint64_t seed = 1; seed <= 30; seed++) {
        heed_tokens source = source_of(2, 4), prefix = source_of((int64_t)seed % 5, 4);
        model.seed = seed;
        search(&o, source, prefix, found);
        assert_true(found[0].count > prefix.count);
        for (int i = 0; i < 4 && found[i].count; i++) {
            uint64_t history = mix(history_of(&source), HEED_BOS);
            for (int64_t k = 0; k < prefix.count; k++) {
                heed_real log_z = distribution(&model, history, -1, logit);
                assert_int_equal(found[i].id[k], prefix.id[k]);
                assert_true(found[i].token_log_p[k] == logit[prefix.id[k]] - log_z);
                history = mix(history, prefix.id[k]);
            }
        }
    }
    /* What the model cannot say is said all the same, and what follows can be told apart. */
    model.short_list = 7;
    search(&o, source_of(0, 2), source_of(2, 1), found);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(found[i].id[0], 7);
        assert_true(isfinite(found[i].score) && found[i].token_log_p[0] < -100);
        assert_true(i == 0 || found[i].score < found[i - 1].score);
    }
    static const int32_t wrong[] = {5, HEED_EOS, HEED_BOS, 9, -1};
    for (int i = 1; i < 5; i++) {
        heed_error err = {0};
        heed_tokens prefix = {(int32_t[]){5, wrong[i]}, 2};
        assert_int_equal(search_prefix(&o, source_of(0, 2), prefix, found, &err), HEED_ARGUMENT);
        assert_non_null(strstr(err.text, "a translation cannot begin with token"));
    }
    int32_t many[14] = {5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5};
    heed_error err = {0};
    search(&o, source_of(0, 2), (heed_tokens){many, 13}, found);
    assert_int_equal(found[0].count, 14);
    assert_int_equal(search_prefix(&o, source_of(0, 2), (heed_tokens){many, 14}, found, &err),
                     HEED_ARGUMENT);
    assert_string_equal(err.text, "the beginning of a translation has 14 tokens, expected at most "
                                  "13 as the model takes");
}

/* Catches a translation that goes round in circles to its limit, or is cut in the wrong place, or
 * without a word; a guard that cannot be turned off. */
static void test_loop_guard(void **state)
{
    (void)state;
    heed_hypothesis found, free_run;
    heed_search_options o = plain;
    o.beam = 1;
    o.extra_length = 100;
    model.longest = 100;
    model.eos_bias = -30;
    model.stubborn = 30; /* the first word for ever */
    heed_tokens source = source_of(0, 5);
    search(&o, source, none, &found);
    assert_true(found.loop);
    assert_int_equal(found.count, 1);
    assert_true(found.log_p == (double)found.token_log_p[0]);
    o.allow_loops = true;
    search(&o, source, none, &free_run);
    assert_false(free_run.loop);
    assert_int_equal(free_run.count, 100);
    assert_int_equal(free_run.id[0], found.id[0]);
    assert_int_equal(free_run.id[98], found.id[0]);
    assert_int_equal(free_run.id[99], HEED_EOS);
    /* What is given may repeat itself; what goes on from there may not. */
    int32_t same[40];
    for (int i = 0; i < 40; i++)
        same[i] = found.id[0];
    o.allow_loops = false;
    search(&o, source, (heed_tokens){same, 40}, &found);
    assert_true(found.loop);
    assert_int_equal(found.count, 40);
    /* A source of 20 equal words may become 39. */
    o.max_length = 40;
    search(&o, (heed_tokens){same, 20}, none, &found);
    assert_false(found.loop);
    o.max_length = 41;
    search(&o, (heed_tokens){same, 20}, none, &found);
    assert_true(found.loop);
}

/* Catches a stretch that is taken for a loop too early or too late, or not from where it begins: of
 * every period, behind other words, in hypotheses and in sources. */
static void test_loops_of_every_period(void **state)
{
    const heed_special_ids own = HEED_OWN_IDS;
    (void)state;
    for (uint64_t seed = 1; seed <= 300; seed++) {
        heed_rng_key key = {.seed = seed};
        heed_rng rng = heed_rng_stream(&key);
        int64_t period = 1 + (int64_t)seed % 10, before = heed_rng_below(&rng, 0, 12);
        int64_t turns = 2 + heed_rng_below(&rng, 1, 7), count = before;
        int32_t id[MAX_LENGTH];
        heed__sentence one = {.given = heed_rng_below(&rng, 2, 8), .loop = seed % 4 ? 16 : 40};
        heed__beam_row row = {0};
        for (int64_t i = 0; i < before; i++)
            id[i] = 3 + (int32_t)heed_rng_below(&rng, 10 + (uint64_t)i, 5);
        for (int64_t i = 0; i < period * turns; i++, count++)
            id[count] = i < period ? 3 + (int32_t)heed_rng_below(&rng, 100 + (uint64_t)i, 5)
                                   : id[count - period];
        for (; one.length < count; one.length++) {
            int64_t expected =
                one.length < one.given ? 0 : looping(id, one.length + 1, one.given, one.loop);
            assert_int_equal(heed__row_take(&row, &one, &own, id[one.length]), expected);
        }
        heed_tokens source = {id, count};
        assert_int_equal(heed__loop_length(&source), loop_least(&source));
    }
}

/* Catches a loop that is handed out although a whole sentence was found, and one that takes a place
 * in the beam. */
static void test_loops_give_way(void **state)
{
    (void)state;
    heed_hypothesis found;
    int ends = 0, loops = 0;
    model.longest = 60;
    for (uint64_t seed = 1; seed <= 80; seed++) {
        heed_search_options o = plain;
        o.extra_length = 50;
        model.seed = seed;
        model.eos_bias = -1;
        model.stubborn = 7;
        search(&o, source_of(0, 3), none, &found);
        bool ended = found.id[found.count - 1] == HEED_EOS;
        ends += ended;
        loops += !ended;
        assert_true(ended || found.loop);
        o.beam = 1;
        search(&o, source_of(0, 3), none, &found);
        loops += found.loop;
    }
    assert_true(ends > 10 && loops > 10);
}

/* Catches scores that are not of the tokens given, an end that is left out, and given sentences
 * that other options change. */
static void test_whole(void **state)
{
    (void)state;
    heed_real logit[MAX_V];
    heed_search_options o = plain;
    o.beam = 1;
    o.no_repeat = 1;
    o.min_length = 9;
    o.max_length = 2;
    heed__request r = {.source = source_of(1, 3), .prefix = source_of(3, 5), .whole = true};
    heed_hypothesis found;
    struct requests q = {.request = &r, .count = 1, .arena = arena, .out = &found};
    heed_error err = {0};
    model.seed = 5;
    assert_int_equal(search_requests(&o, &heed__usual_budget, &q, &err), HEED_OK);
    uint64_t history = mix(history_of(&r.source), HEED_BOS);
    double sum = 0;
    assert_int_equal(found.count, 6);
    for (int64_t i = 0; i < 6; i++) {
        int32_t token = i < 5 ? r.prefix.id[i] : HEED_EOS;
        heed_real log_z = distribution(&model, history, -1, logit);
        assert_int_equal(found.id[i], token);
        assert_true(found.token_log_p[i] == logit[token] - log_z);
        sum += (double)found.token_log_p[i];
        history = mix(history, token);
    }
    assert_true(found.log_p == sum);
}

/* Catches wrong options that pass. */
static void test_wrong_options(void **state)
{
    (void)state;
    static const int32_t end = HEED_EOS, beyond = 9;
    static const struct {
        heed_search_options o;
        const char *text;
    } wrong[] = {
        {{.beam = 1, .n_best = 1, .penalty_form = 2}, "there is no form 2 of the length penalty"},
        {{.beam = 1, .n_best = 1, .patience = -1}, "the patience is -1, expected 0 or more"},
        {{.beam = 1, .n_best = 1, .max_length = -1},
         "the greatest length is -1, expected 0 or more"},
        {{.beam = 1, .n_best = 1, .max_ratio = -0.5},
         "the greatest ratio of lengths is -0.5, expected 0 or more"},
        {{.beam = 1, .n_best = 1, .min_length = -2}, "the least length is -2, expected 0 or more"},
        {{.beam = 1, .n_best = 1, .min_ratio = -3},
         "the least ratio of lengths is -3, expected 0 or more"},
        {{.beam = 1, .n_best = 1, .no_repeat = -1},
         "the length of n-grams not to be repeated is -1, expected 0 or more"},
        {{.beam = 1, .n_best = 1, .banned = {&end, 1}},
         "token 2 cannot be banned, expected one of 0 to 8 other than the end of the sentence"},
        {{.beam = 1, .n_best = 1, .banned = {&beyond, 1}},
         "token 9 cannot be banned, expected one of 0 to 8 other than the end of the sentence"},
        {{.beam = 1, .n_best = 1, .sample = true}, "the temperature is 0, expected more than 0"},
        {{.beam = 1, .n_best = 1, .sample = true, .temperature = 1, .top_k = -1},
         "top-k is -1, expected 0 or more"},
        {{.beam = 1, .n_best = 1, .sample = true, .temperature = 1, .top_p = 1.5},
         "top-p is 1.5, expected 0 to 1"},
    };
    heed_hypothesis found;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        heed_error err = {0};
        assert_int_equal(search_prefix(&wrong[i].o, source_of(0, 1), none, &found, &err),
                         HEED_ARGUMENT);
        assert_string_equal(err.text, wrong[i].text);
    }
}

int main(void)
{
#define OPTION_TEST(f) cmocka_unit_test_setup_teardown(f, set_up, made_up_end)
    const struct CMUnitTest tests[] = {
        OPTION_TEST(test_all_together),   OPTION_TEST(test_penalty_forms),
        OPTION_TEST(test_patience),       OPTION_TEST(test_patience_counts_losers),
        OPTION_TEST(test_lengths),        OPTION_TEST(test_banned),
        OPTION_TEST(test_no_repeat),      OPTION_TEST(test_prefix),
        OPTION_TEST(test_loop_guard),     OPTION_TEST(test_loops_of_every_period),
        OPTION_TEST(test_loops_give_way), OPTION_TEST(test_whole),
        OPTION_TEST(test_wrong_options),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
