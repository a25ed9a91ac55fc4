/* test_draw.c: translations that are drawn: from the right distribution, and the same ones whatever
 * is drawn beside them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "made_up.h"

enum { DRAWS = 20000 };

static heed_hypothesis out[DRAWS];
static heed__request request[DRAWS];
static const heed_search_options plain = {
    .beam = 1, .n_best = 1, .extra_length = 10, .sample = true, .temperature = 1, .seed = 3};

static int set_up(void **state)
{
    (void)state;
    int failed = made_up_begin(9, 14);
    model.sharpness = 1.5;
    model.seed = 11;
    return failed;
}

static void draw(const heed_search_options *o, int64_t count, int64_t sentences)
{
    heed_error err = {0};
    struct requests q = {.request = request, .count = count, .arena = arena, .out = out};
    heed__budget budget = {512, 1 << 20, sentences};
    if (search_requests(o, &budget, &q, &err))
        fail_msg("%s", err.text);
}

/* ---- the distribution ---- */

static double wanted[MAX_V]; /* chances of the first token */

/* The chances after temperature, top-k and top-p, by the book. */
static void want(const heed_search_options *o, const heed_tokens *source)
{
    heed_real logit[MAX_V];
    heed_real log_z = distribution(&model, mix(history_of(source), HEED_BOS), -1, logit);
    bool in[MAX_V] = {false};
    double all = 0, sum = 0, kept = 0;
    int64_t most = o->top_k ? o->top_k : model.vocabulary;
    for (int32_t v = 0; v < model.vocabulary; v++) {
        wanted[v] = v == HEED_BOS ? 0 : exp((double)(logit[v] - log_z) / o->temperature);
        all += wanted[v];
    }
    for (int round = 0; round < 2; round++) { /* first the mass of the top-k, then the nucleus */
        int64_t left = most;
        memset(in, 0, sizeof in);
        for (sum = 0; left > 0 && (round == 0 || !o->top_p || sum < o->top_p * kept); left--) {
            int32_t best = -1;
            for (int32_t v = 0; v < model.vocabulary; v++)
                if (!in[v] && wanted[v] > 0 && (best < 0 || wanted[v] > wanted[best]))
                    best = v;
            if (best < 0)
                break;
            in[best] = true;
            sum += wanted[best];
        }
        kept = sum;
    }
    assert_true(all >= kept);
    for (int32_t v = 0; v < model.vocabulary; v++)
        wanted[v] = in[v] ? wanted[v] / sum : 0;
}

/* Catches a temperature that is ignored or upside down, a top-k or a nucleus of the wrong size, and
 * draws that favour some tokens: frequencies within five standard deviations. */
static void test_frequencies(void **state)
{
    (void)state;
    static const struct {
        double temperature, top_p;
        int64_t top_k;
    } cases[] = {{1, 0, 0},   {0.5, 1, 0},   {3, 0, 0},    {1, 0, 1},     {1, 0, 3},  {2, 0.5, 0},
                 {1, 0.9, 0}, {1, 0.001, 0}, {1, 0.95, 4}, {0.7, 0.6, 5}, {3, 0.5, 4}};
    heed_tokens source = source_of(2, 4);
    for (int64_t i = 0; i < DRAWS; i++)
        request[i] =
            (heed__request){.source = source, .number = (uint64_t)i, .owner = (void *)(intptr_t)i};
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        int64_t seen[MAX_V] = {0};
        heed_search_options o = plain;
        o.max_length = 2;
        o.temperature = cases[c].temperature;
        o.top_p = cases[c].top_p;
        o.top_k = cases[c].top_k;
        heed_arena_reset(arena);
        draw(&o, DRAWS, 1000);
        want(&o, &source);
        for (int64_t i = 0; i < DRAWS; i++)
            seen[out[i].id[0]]++;
        for (int32_t v = 0; v < model.vocabulary; v++) {
            double expected = DRAWS * wanted[v], s = sqrt(expected * (1 - wanted[v]));
            assert_true(fabs((double)seen[v] - expected) <= 5 * s + 1e-9);
        }
    }
}

/* Catches a nucleus that needs more tokens than are looked at first. */
static void test_wide_nucleus(void **state)
{
    (void)state;
    enum { N = 4000 };
    bool seen[MAX_V] = {false};
    int64_t different = 0;
    model.vocabulary = MAX_V;
    model.sharpness = 0.1;
    heed_search_options o = plain;
    o.max_length = 2;
    o.top_p = 0.8;
    for (int64_t i = 0; i < N; i++)
        request[i] = (heed__request){
            .source = source_of(0, 1), .number = (uint64_t)i, .owner = (void *)(intptr_t)i};
    draw(&o, N, 100);
    heed_tokens source = source_of(0, 1);
    want(&o, &source);
    for (int64_t i = 0; i < N; i++)
        seen[out[i].id[0]] = true;
    for (int32_t v = 0; v < MAX_V; v++) {
        assert_int_equal(seen[v], wanted[v] > 0);
        different += seen[v];
    }
    assert_true(different > 140 && different < 170);
}

/* ---- the draws ---- */

enum { B = 60, SAMPLES = 3 };

static heed__request numbered(int64_t i)
{
    return (heed__request){
        .source = source_of(i % 5, i % 6), .number = (uint64_t)i, .owner = (void *)(intptr_t)i};
}

static bool same_tokens(const heed_hypothesis *a, const heed_hypothesis *b)
{
    return a->count == b->count && !memcmp(a->id, b->id, (size_t)a->count * sizeof *a->id);
}

/* Catches draws that depend on what else is drawn: alone, together, in another order. */
static void test_alone_as_together(void **state)
{
    (void)state;
    static heed_hypothesis alone[B * SAMPLES];
    heed_search_options o = plain;
    o.n_best = SAMPLES;
    o.top_p = 0.9;
    for (int64_t i = 0; i < B; i++) {
        request[0] = numbered(i);
        draw(&o, 1, 1);
        memcpy(alone + i * SAMPLES, out + i * SAMPLES, sizeof *out * SAMPLES);
    }
    static const int64_t sizes[] = {1, 7, 64};
    for (int way = 0; way < 6; way++) {
        for (int64_t i = 0; i < B; i++)
            request[i] = numbered(way % 2 ? (i * 37) % B : i);
        draw(&o, B, sizes[way / 2]);
        for (int64_t i = 0; i < B * SAMPLES; i++) {
            assert_true(same_tokens(&out[i], &alone[i]));
            assert_memory_equal(&out[i].score, &alone[i].score, sizeof alone[i].score);
        }
    }
}

/* Catches samples that are all one, a seed or a number that is ignored, the same seed that draws
 * something else, and samples that are not sorted or get lost. */
static void test_seeds_and_samples(void **state)
{
    (void)state;
    static heed_hypothesis first[B * SAMPLES];
    heed_search_options o = plain;
    o.n_best = SAMPLES;
    for (int64_t i = 0; i < B; i++)
        request[i] = numbered(i);
    draw(&o, B, B);
    memcpy(first, out, sizeof first);
    draw(&o, B, B);
    int64_t twins = 0, by_seed = 0, by_number = 0;
    for (int64_t i = 0; i < B * SAMPLES; i++) {
        assert_true(same_tokens(&out[i], &first[i]));
        assert_true(out[i].count > 0);
        assert_true(i % SAMPLES == 0 || out[i - 1].score >= out[i].score);
        twins += i % SAMPLES && same_tokens(&out[i], &out[i - 1]);
    }
    assert_true(twins < B / 2);
    o.seed++;
    draw(&o, B, B);
    for (int64_t i = 0; i < B * SAMPLES; i++)
        by_seed += same_tokens(&out[i], &first[i]);
    o.seed--;
    for (int64_t i = 0; i < B; i++)
        request[i].number += 1000;
    draw(&o, B, B);
    for (int64_t i = 0; i < B * SAMPLES; i++)
        by_number += same_tokens(&out[i], &first[i]);
    assert_true(by_seed < B && by_number < B);
}

/* Catches sampling that is not greedy where nothing is left to chance. */
static void test_cold_is_greedy(void **state)
{
    (void)state;
    static heed_hypothesis drawn[B];
    heed_search_options o = plain;
    for (int64_t i = 0; i < B; i++)
        request[i] = numbered(i);
    o.top_k = 1;
    draw(&o, B, B);
    memcpy(drawn, out, sizeof drawn);
    o.sample = false;
    draw(&o, B, B);
    for (int64_t i = 0; i < B; i++) {
        assert_true(same_tokens(&out[i], &drawn[i]));
        assert_true(out[i].log_p == drawn[i].log_p);
    }
}

/* Catches samples that do not keep to what is forbidden or given. */
static void test_keeps_to_constraints(void **state)
{
    (void)state;
    static const int32_t banned[] = {5};
    heed_search_options o = plain;
    o.n_best = SAMPLES;
    o.banned = (heed_tokens){banned, 1};
    o.suppress_unk = true;
    o.no_repeat = 2;
    o.min_length = 4;
    o.max_length = 9;
    for (int64_t i = 0; i < B; i++) {
        request[i] = numbered(i);
        request[i].prefix = source_of(1, i % 3);
    }
    draw(&o, B, B);
    for (int64_t i = 0; i < B * SAMPLES; i++) {
        const heed_hypothesis *h = &out[i];
        assert_true(h->count > 4 && h->count <= 9);
        for (int64_t k = 0; k < h->count; k++) {
            if (k < i / SAMPLES % 3)
                assert_int_equal(h->id[k], made_up_ids[1 + k]);
            else
                assert_true(h->id[k] > HEED_BOS && h->id[k] != 5);
            for (int64_t n = k + 1; n + 1 < h->count; n++)
                assert_false(h->id[k] == h->id[n] && h->id[k + 1] == h->id[n + 1]);
        }
    }
}

/* Catches what is no number drawn from as if it were one. */
static void test_not_a_number(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++) {
        heed_search_options o = plain;
        heed_error err = {0};
        o.top_k = i / 2 * 3;
        struct requests q = {.request = request, .count = 1, .arena = arena, .out = out};
        request[0] = numbered(1);
        o.min_length = 5;
        model.steps = 0;
        model.bad_step = 3;
        model.bad_token = i % 2 ? 8 : HEED_BOS;
        model.bad_value = (heed_real)NAN;
        assert_int_equal(search_requests(&o, &heed__usual_budget, &q, &err), HEED_NUMERIC);
    }
}

int main(void)
{
#define DRAW_TEST(f) cmocka_unit_test_setup_teardown(f, set_up, made_up_end)
    const struct CMUnitTest tests[] = {
        DRAW_TEST(test_frequencies),       DRAW_TEST(test_wide_nucleus),
        DRAW_TEST(test_alone_as_together), DRAW_TEST(test_seeds_and_samples),
        DRAW_TEST(test_cold_is_greedy),    DRAW_TEST(test_keeps_to_constraints),
        DRAW_TEST(test_not_a_number),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
