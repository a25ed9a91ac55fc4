/* test_translator.c: text in, text out: a trained toy through heed_translate and heed_score. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <ctype.h>
#include <math.h>

#include "failing_allocator.h"
#include "temp_folder.h"
#include "toy_fixture.h"
#include "translate/translator.h"

static const heed_search_options beam_4 = {
    .beam = 4, .length_penalty = 0.6, .n_best = 1, .extra_length = 50};

static int reset(void **state)
{
    (void)state;
    heed_arena_reset(arena);
    toy_write_folder(model);
    return 0;
}

/* A line of n words drawn from the seed; good for 64 calls. */
static const char *draw_line(uint64_t seed, int64_t n)
{
    static char text[64][2048];
    static int next;
    char *line = text[next++ % 64], *p = line;
    heed_rng_key key = {.seed = seed};
    heed_rng rng = heed_rng_stream(&key);
    for (int64_t i = 0; i < n; i++) {
        *p++ = (char)('a' + heed_rng_below(&rng, (uint64_t)i, TOY_WORDS));
        *p++ = ' ';
    }
    p[n ? -1 : 0] = '\0';
    return line;
}

static void assert_capitals(const char *text, const char *line)
{
    assert_int_equal(strlen(text), strlen(line));
    for (size_t i = 0; line[i]; i++)
        assert_int_equal(text[i], toupper((unsigned char)line[i]));
}

/* Catches lines that come back in another order, a wrong vocabulary on one side, BOS or EOS in the
 * text, and an empty line that vanishes or gets a text. */
static void test_translates_in_order(void **state)
{
    (void)state;
    enum { N = 60 };
    const char *lines[N];
    heed_translation out[N];
    for (int i = 0; i < N; i++)
        lines[i] = draw_line((uint64_t)i, (i * 7) % 15);
    lines[30] = " \t ";
    translate(&beam_4, lines, N, out);
    for (int i = 0; i < N; i++) {
        bool empty = lines[i][0] == '\0' || i == 30;
        assert_capitals(out[i].text, empty ? "" : lines[i]);
        assert_false(out[i].repaired);
        assert_int_equal(out[i].tokens, empty ? 0 : (int64_t)strlen(lines[i]) / 2 + 2);
        double sum = 0;
        for (int64_t k = 0; k < out[i].tokens; k++)
            sum += (double)out[i].token_log_p[k];
        assert_true(fabs(sum - out[i].log_p) < 1e-4);
        assert_true(empty || out[i].id[out[i].tokens - 1] == HEED_EOS);
    }
    translate(&beam_4, NULL, 0, NULL);
}

/* Catches an answer that depends on its neighbours by more than rounding. */
static void test_alone_as_in_a_batch(void **state)
{
    (void)state;
    enum { N = 40 };
    const char *lines[N];
    heed_translation together[N], alone;
    for (int i = 0; i < N; i++)
        lines[i] = draw_line((uint64_t)i + 500, 1 + i % 15);
    translate(&beam_4, lines, N, together);
    for (int i = 0; i < N; i++) {
        translate(&beam_4, &lines[i], 1, &alone);
        assert_string_equal(alone.text, together[i].text);
        assert_true(fabs(alone.score - together[i].score) < 1e-4);
    }
}

/* Catches a search that loses probability against greedy search.  No theorem says that a beam finds
 * at least what greed does; on a trained model it must. */
static void test_beam_against_greedy(void **state)
{
    (void)state;
    enum { N = 60 };
    const char *lines[N];
    heed_translation beam[N], greedy[N];
    heed_search_options four = beam_4, one = beam_4;
    four.length_penalty = one.length_penalty = 0;
    one.beam = 1;
    for (int i = 0; i < N; i++)
        lines[i] = draw_line((uint64_t)i + 900, 1 + i % 15);
    translate(&four, lines, N, beam);
    translate(&one, lines, N, greedy);
    for (int i = 0; i < N; i++)
        assert_true(beam[i].log_p >= greedy[i].log_p - 1e-4);
}

/* Catches caches that drift from the full forward pass, and scores that are put to the wrong pair:
 * token by token, what scoring says is what the pass over all tokens at once says. */
static void test_score_is_the_full_pass(void **state)
{
    (void)state;
    enum { N = 30 };
    const char *lines[N], *targets[N];
    heed_tokens source[N], target[N];
    heed_hypothesis score[N];
    heed_error err = {0};
    heed_batch batch;
    bool repaired;
    for (int i = 0; i < N; i++) {
        lines[i] = draw_line((uint64_t)i + 300, i * 7 % 16);
        targets[i] = draw_line((uint64_t)i + 400, i * 5 % 16);
        heed__encode_line(vocab, lines[i], arena, &source[i], &repaired, &err);
        heed__encode_line(vocab, targets[i], arena, &target[i], &repaired, &err);
    }
    assert_int_equal(heed_batch_pack(arena, NULL, source, target, N, &batch, &err), HEED_OK);
    assert_int_equal(heed_score(translator, lines, targets, N, arena, score, &err), HEED_OK);
    heed_tape *t = heed_tape_new(&(heed_tape_options){.threads = 1}, &err);
    heed_tape_set_training(t, false);
    const heed_real *log_p = heed_model_score(model, t, &batch);
    assert_non_null(log_p);
    for (int i = 0; i < N; i++) {
        int64_t begin = batch.target.rows->offset[i];
        assert_int_equal(score[i].count, batch.target.rows->offset[i + 1] - begin);
        for (int64_t k = 0; k < score[i].count; k++) {
            assert_int_equal(score[i].id[k], batch.wanted[begin + k]);
            assert_true(fabs((double)(score[i].token_log_p[k] - log_p[begin + k])) < 1e-5);
        }
    }
    heed_tape_free(t);
}

/* Catches a search that adds up something else than the tokens it hands out. */
static void test_score_is_what_search_found(void **state)
{
    (void)state;
    enum { N = 50 };
    const char *lines[N], *targets[N];
    heed_translation out[N];
    heed_hypothesis score[N];
    heed_error err = {0};
    for (int i = 0; i < N; i++)
        lines[i] = draw_line((uint64_t)i + 77, 1 + i % 15);
    translate(&beam_4, lines, N, out);
    for (int i = 0; i < N; i++)
        targets[i] = out[i].text;
    assert_int_equal(heed_score(translator, lines, targets, N, arena, score, &err), HEED_OK);
    for (int i = 0; i < N; i++) {
        assert_int_equal(score[i].count, out[i].tokens);
        assert_true(fabs(score[i].log_p - out[i].log_p) < 1e-3);
        for (int64_t k = 0; k < score[i].count; k++) {
            assert_int_equal(score[i].id[k], out[i].id[k]);
            assert_true(fabs((double)(score[i].token_log_p[k] - out[i].token_log_p[k])) < 1e-3);
        }
    }
}

/* Catches empty lines that crash scoring, a batch that depends on its order, and a line beyond the
 * model's length that is cut in silence. */
static void test_score_edges(void **state)
{
    (void)state;
    const char *source[] = {"a b", "", "a", "", "a b"};
    const char *target[] = {"A B", "", "", "A", "B A"};
    heed_hypothesis score[5];
    heed_error err = {0};
    assert_int_equal(heed_score(translator, source, target, 5, arena, score, &err), HEED_OK);
    static const int64_t counts[] = {3, 1, 1, 2, 3};
    for (int i = 0; i < 5; i++) {
        assert_int_equal(score[i].count, counts[i]);
        assert_true(score[i].log_p < 0 && isfinite(score[i].log_p));
    }
    assert_true(score[0].log_p > score[4].log_p + 2);
    const char *long_line = draw_line(1, 16), *short_line = draw_line(1, 15);
    assert_int_equal(heed_score(translator, &short_line, target, 1, arena, score, &err), HEED_OK);
    assert_int_equal(heed_score(translator, &long_line, target, 1, arena, score, &err),
                     HEED_ARGUMENT);
    assert_string_equal(err.text,
                        "the source has 16 tokens, expected at most 15 as the model takes: cut the "
                        "pair, or leave it out");
    const char *pairs[] = {short_line, long_line};
    err = (heed_error){0};
    assert_int_equal(heed_score(translator, pairs, target, 2, arena, score, &err), HEED_ARGUMENT);
    assert_string_equal(err.text, "the source of pair 2 has 16 tokens, expected at most 15 as the "
                                  "model takes: cut the pair, or leave it out");
}

/* A model all of whose weights are zero but the embeddings and the last bias: logits are `other`
 * for every token and `begin` for BOS, times 32 and `last`. */
static heed_model *one_sided(heed_real begin, heed_real other, heed_real last)
{
    heed_error err = {0};
    heed_model *m = heed_model_new(&toy_config, 1, NULL, &err);
    assert_non_null(m);
    const heed_params *p = heed_model_params(m);
    for (int i = 0; i < heed_params_count(p); i++) {
        heed_tensor *t = heed_params_entry(p, i).tensor;
        for (int64_t k = 0; k < heed_tensor_count(t); k++)
            heed_tensor_data(t)[k] = 0;
    }
    heed_tensor *table = heed_params_find(p, "embedding.table");
    heed_tensor *bias = heed_params_find(p, "decoder.0.ffn.norm.bias");
    assert_non_null(table);
    assert_non_null(bias);
    for (int64_t k = 0; k < heed_tensor_count(table); k++)
        heed_tensor_data(table)[k] = k / 32 == HEED_BOS ? begin : other;
    for (int64_t k = 0; k < 32; k++)
        heed_tensor_data(bias)[k] = last;
    return m;
}

/* Catches translations read that were never written, where the model finds nothing possible. */
static void test_nothing_possible(void **state)
{
    (void)state;
    /* Twice the logit is more than the largest number: all but BOS are at minus infinity. */
    bool wide = sizeof(heed_real) > 4;
    heed_real w = (heed_real)(wide ? 3e152 : 1e18), last = (heed_real)(wide ? 1e154 : 1e19);
    heed_model *m = one_sided(w, -w, last);
    struct failing f = {0};
    heed_allocator a = failing_allocator(&f);
    heed_error err = {0};
    heed_translator *tr = heed_translator_new(m, vocab, vocab, 1, &a, &err);
    const char *lines[] = {"a b c", draw_line(6, 40)};
    heed_translation out[2];
    assert_int_equal(heed_translate(tr, &beam_4, lines, 2, arena, out, &err), HEED_OK);
    for (int i = 0; i < 2; i++) {
        assert_string_equal(out[i].text, "");
        assert_int_equal(out[i].tokens, 0);
        assert_true(out[i].score == 0 && out[i].log_p == 0);
    }
    heed_translator_free(tr);
    heed_model_free(m);
    assert_int_equal(f.held, 0);
}

/* Catches what a broken model says about a sentence handed out as if it were a probability. */
static void test_no_number(void **state)
{
    (void)state;
    heed_model *m = one_sided((heed_real)NAN, 0, 1);
    heed_error err = {0};
    heed_translator *tr = heed_translator_new(m, vocab, vocab, 1, NULL, &err);
    const char *line = "a b";
    heed_translation out;
    heed_hypothesis score;
    assert_int_equal(heed_translate(tr, &beam_4, &line, 1, arena, &out, &err), HEED_NUMERIC);
    err = (heed_error){0};
    assert_int_equal(heed_score(tr, &line, &line, 1, arena, &score, &err), HEED_NUMERIC);
    assert_non_null(strstr(err.text, "(after 0 tokens of a sentence): are the weights finite?"));
    heed_translator_free(tr);
    heed_model_free(m);
}

/* Catches threads that meet inside the steps of a model that is too small for it, and a number of
 * threads that was asked for and not used. */
static void test_threads_inside(void **state)
{
    (void)state;
    heed_model *m = one_sided(1, -1, 1);
    for (int threads = 0; threads <= 2; threads++) {
        heed_error err = {0};
        heed_translator *tr = heed_translator_new(m, vocab, vocab, threads, NULL, &err);
        const char *line = "a b";
        heed_translation out;
        assert_int_equal(heed_translate(tr, &beam_4, &line, 1, arena, &out, &err), HEED_OK);
        assert_int_equal(tr->context[0].threads, threads ? threads : 1);
        heed_translator_free(tr);
    }
    heed_model_free(m);
}

/* Catches words lost where a line is longer than the model takes, and parts joined in a wrong way
 * or order. */
static void test_long_lines(void **state)
{
    (void)state;
    const char *lines[] = {draw_line(3, 16), draw_line(4, 15), draw_line(5, 600), "a"};
    heed_search_options three = beam_4;
    three.n_best = 3;
    heed_translation out[12];
    translate(&three, lines, 4, out);
    for (int i = 0; i < 4; i++) {
        assert_capitals(out[3 * i].text, lines[i]);
        bool is_split = i % 2 == 0;
        assert_true((out[3 * i + 1].text == NULL) == is_split);
    }
    /* Every part brings its EOS. */
    assert_int_equal(out[0].tokens, 16 + 2);
    assert_true(out[6].tokens >= 600 + 40);
    assert_true(out[6].log_p < 0 && out[6].score < 0);
}

/* Catches long lines that are cut inside sentences, and tokens lost at the cuts. */
static void test_cuts_at_sentence_ends(void **state)
{
    (void)state;
    char text[4000] = "";
    for (int i = 0; i < 40; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "%c %.*s.%s", 'A' + i % 12,
                 2 * (i % 5), "b c d e f ", i < 39 ? " " : "");
    heed__line line;
    heed_tokens whole;
    bool repaired;
    heed_error err = {0};
    assert_int_equal(heed__encode_line(vocab, text, arena, &whole, &repaired, &err), HEED_OK);
    heed__limits limits = {.together = 15, .longest = 15};
    assert_int_equal(heed__split_line(vocab, text, &limits, arena, &line, &err), HEED_OK);
    assert_true(line.parts > whole.count / 15 && line.parts < 40);
    int64_t at = 0;
    for (int64_t i = 0; i < line.parts; i++) {
        heed_tokens t = line.part[i].tokens;
        assert_in_range(t.count, 1, 15);
        assert_int_equal(t.id[t.count - 1], HEED_UNK); /* the full stop */
        assert_memory_equal(t.id, whole.id + at, (size_t)t.count * sizeof *t.id);
        at += t.count;
    }
    assert_int_equal(at, whole.count);
}

/* Catches a sentence cut although it fits, sentences that go together although they are too long
 * for that, and a long one that takes its neighbours' capacity. */
static void test_cuts_only_what_is_too_long(void **state)
{
    (void)state;
    static const char text[] = "A . A a a a a a a a a a a a a . A b c d e . A . A . A . A .";
    static const struct {
        heed__limits limits;
        int64_t parts, count[7];
    } cases[] = {
        {{.together = 30, .longest = 30}, 1, {30}},
        {{.together = 29, .longest = 40}, 2, {28, 2}},
        {{.together = 14, .longest = 14}, 3, {2, 14, 14}},
        {{.together = 6, .longest = 14}, 5, {2, 14, 6, 6, 2}},
        {{.together = 1, .longest = 14}, 7, {2, 14, 6, 2, 2, 2, 2}},
    };
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        heed__line line;
        heed_error err = {0};
        assert_int_equal(heed__split_line(vocab, text, &cases[c].limits, arena, &line, &err),
                         HEED_OK);
        assert_int_equal(line.parts, cases[c].parts);
        for (int64_t i = 0; i < line.parts; i++)
            assert_int_equal(line.part[i].tokens.count, cases[c].count[i]);
    }
    /* Only the long sentence is cut in itself. */
    heed__line line;
    heed_error err = {0};
    heed__limits limits = {.together = 6, .longest = 8};
    assert_int_equal(heed__split_line(vocab, text, &limits, arena, &line, &err), HEED_OK);
    assert_int_equal(line.part[0].tokens.count, 2);
    assert_int_equal(line.part[line.parts - 1].tokens.count, 2);
    assert_int_equal(line.part[line.parts - 2].tokens.count, 6);
    assert_int_equal(line.part[line.parts - 3].tokens.count, 6);
    for (int64_t i = 1; i < line.parts - 3; i++)
        assert_in_range(line.part[i].tokens.count, 1, 8);
}

/* Catches a limit of the training that is stored and not kept to. */
static void test_keeps_to_what_training_saw(void **state)
{
    (void)state;
    heed_text_config text = toy_text;
    heed_error err = {0};
    text.trained_length = 4;
    text.trained_longest = 5;
    assert_int_equal(heed_model_describe(folder, &toy_config, &text, &err), HEED_OK);
    heed_translator *opened = heed_translator_open(folder, 1, NULL, &err);
    if (!opened)
        fail_msg("%s", err.text);
    const char *line = "a b c d a b c d";
    heed_translation whole, cut;
    translate(&beam_4, &line, 1, &whole);
    assert_int_equal(heed_translate(opened, &beam_4, &line, 1, arena, &cut, &err), HEED_OK);
    assert_string_equal(whole.text, cut.text);
    assert_true(cut.tokens > whole.tokens); /* each part has an EOS */
    heed_translator_free(opened);
}

/* Catches parts joined without a space, or with one where the language has none. */
static void test_joins(void **state)
{
    (void)state;
    static const int32_t id[] = {5, HEED_EOS};
    static const heed_real log_p[] = {-1, -2};
    static const struct {
        const char *text[3], *joined;
    } cases[] = {
        {{"A dog.", "A cat.", ""}, "A dog. A cat."},
        {{"你好。", "再见。", "好"}, "你好。再见。好"},
        {{"", "", "x"}, "x"},
        {{"Страница 1.", "다음.", "é"}, "Страница 1. 다음. é"},
    };
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        heed_translation part[3], out = {.repaired = true};
        for (int i = 0; i < 3; i++)
            part[i] = (heed_translation){.text = cases[c].text[i],
                                         .score = -1,
                                         .log_p = -3,
                                         .tokens = 2,
                                         .id = id,
                                         .token_log_p = log_p,
                                         .loop = i == 1};
        assert_int_equal(heed__join_parts(part, 3, arena, &out, NULL), HEED_OK);
        assert_string_equal(out.text, cases[c].joined);
        assert_true(out.score == -3 && out.log_p == -9 && out.repaired && out.loop);
        assert_int_equal(out.tokens, 6);
        assert_int_equal(out.id[5], HEED_EOS);
        assert_true(out.token_log_p[4] == -1);
    }
}

/* Catches a line that is dropped or ends the program because it is not UTF-8. */
static void test_broken_utf8(void **state)
{
    (void)state;
    static const char *const lines[] = {"a \xFF b", "a b", "\xC3", "\xF0\x9F a"};
    heed_translation out[4];
    translate(&beam_4, lines, 4, out);
    assert_true(out[0].repaired && out[2].repaired && out[3].repaired);
    assert_false(out[1].repaired);
    assert_string_equal(out[1].text, "A B");
    for (int i = 0; i < 4; i++)
        assert_non_null(out[i].text);
    heed_tokens tokens;
    bool repaired;
    assert_int_equal(heed__encode_line(vocab, lines[0], arena, &tokens, &repaired, NULL), HEED_OK);
    const int32_t expected[] = {toy_id(0, false), HEED_UNK, toy_id(1, false)};
    assert_int_equal(tokens.count, 3);
    assert_memory_equal(tokens.id, expected, sizeof expected);
}

/* Catches options that reach the search unchecked. */
static void test_wrong_options(void **state)
{
    (void)state;
    heed_search_options o = beam_4;
    o.n_best = 5;
    const char *line = "";
    heed_translation out[5];
    heed_error err = {0};
    assert_int_equal(heed_translate(translator, &o, &line, 1, arena, out, &err), HEED_ARGUMENT);
    assert_string_equal(err.text, "the number of best hypotheses is 5, expected 1 to the beam's 4");
}

/* Catches a failed allocation anywhere between opening and the answer that crashes, leaks or
 * passes. */
static void test_out_of_memory(void **state)
{
    (void)state;
    const char *lines[] = {"a b c", draw_line(5, 40)};
    int failures = 0;
    for (int n = 1;; n++) {
        struct failing f = {.fail_at = n};
        heed_allocator a = failing_allocator(&f);
        heed_error err = {0};
        heed_translation out[2];
        heed_hypothesis score[1];
        heed_arena *own = heed_arena_new(&a, &err);
        heed_translator *tr = own ? heed_translator_open(folder, 1, &a, &err) : NULL;
        if (tr && !heed_translate(tr, &beam_4, lines, 2, own, out, &err))
            heed_score(tr, lines, lines, 1, own, score, &err);
        heed_translator_free(tr);
        heed_arena_free(own);
        assert_int_equal(f.held, 0);
        if (f.calls < n)
            break;
        assert_int_equal(err.status, HEED_MEMORY);
        failures++;
    }
    assert_true(failures > 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_translates_in_order, reset),
        cmocka_unit_test_setup(test_alone_as_in_a_batch, reset),
        cmocka_unit_test_setup(test_beam_against_greedy, reset),
        cmocka_unit_test_setup(test_score_is_the_full_pass, reset),
        cmocka_unit_test_setup(test_score_is_what_search_found, reset),
        cmocka_unit_test_setup(test_score_edges, reset),
        cmocka_unit_test_setup(test_nothing_possible, reset),
        cmocka_unit_test_setup(test_no_number, reset),
        cmocka_unit_test_setup(test_threads_inside, reset),
        cmocka_unit_test_setup(test_long_lines, reset),
        cmocka_unit_test_setup(test_cuts_at_sentence_ends, reset),
        cmocka_unit_test_setup(test_cuts_only_what_is_too_long, reset),
        cmocka_unit_test_setup(test_keeps_to_what_training_saw, reset),
        cmocka_unit_test_setup(test_joins, reset),
        cmocka_unit_test_setup(test_broken_utf8, reset),
        cmocka_unit_test_setup(test_wrong_options, reset),
        cmocka_unit_test_setup(test_out_of_memory, reset),
    };
    return cmocka_run_group_tests(tests, toy_set_up, toy_tear_down);
}
