/* test_match.c: pictures and texts that ask each other: gradient, against plain loops, batches. */
#include "layer_check.h"

#include <heed/see.h>

#ifdef HEED_DOUBLE
#define CLOSE 1e-10
#else
#define CLOSE 1e-5
#endif

enum { SIDE = 4, PICTURES = 3, PLACES = 4, D = 4 };

struct fixture {
    heed_params *params;
    heed_arena *arena;
    heed_tape *tape;
    heed_match_net net;
    heed_real pixels[PICTURES * SIDE * SIDE];
    const heed_segments *rows;
};
static const int32_t ids[6] = {1, 2, 3, 4, 2, 1};

static struct fixture fixture_new(void)
{
    static const int64_t lengths[PICTURES] = {2, 3, 1};
    struct fixture f = {.params = heed_params_new(NULL, NULL),
                        .arena = heed_arena_new(NULL, NULL),
                        .tape = heed_tape_new(&(heed_tape_options){.threads = 1}, NULL)};
    const heed_rng rng = heed_rng_stream(&(heed_rng_key){.seed = 2});
    heed_match_build(&f.net, heed_params_scope(f.params),
                     &(heed_match_config){.side = SIDE,
                                          .channels = 1,
                                          .stages = 1,
                                          .filters = 5,
                                          .vocabulary = 5,
                                          .embedding = 3,
                                          .d = D,
                                          .sharpness = 4,
                                          .contrast = 3});
    assert_int_equal(heed_params_finish(f.params, 3, NULL), HEED_OK);
    for (int i = 0; i < PICTURES * SIDE * SIDE; i++)
        f.pixels[i] = (heed_real)heed_rng_normal(&rng, (uint64_t)i);
    f.rows = heed_segments_new(f.arena, PICTURES, lengths);
    return f;
}

static void fixture_free(struct fixture *f)
{
    heed_tape_free(f->tape);
    heed_arena_free(f->arena);
    heed_params_free(f->params);
}

static int run_loss(heed_tape *t, void *context, heed_tensor **out)
{
    struct fixture *f = context;
    out[0] = heed_match_loss(t, &f->net, f->pixels, ids, f->rows, 0.5);
    return 1;
}

/* Catches a wrong derivative on the way from words or places to the loss. */
static void gradient(void **state)
{
    (void)state;
    struct fixture f = fixture_new();
    assert_int_equal(heed_params_freeze(f.params, "grid", NULL), HEED_OK);
    layer_check(f.params, run_loss, &f);
    fixture_free(&f);
}

static double dot(const heed_real *a, const heed_real *b)
{
    double sum = 0;
    for (int i = 0; i < D; i++)
        sum += (double)a[i] * (double)b[i];
    return sum;
}

/* The mean over queries of their cosine with what they find. */
static double asked(const heed_real *queries, int64_t n, const heed_real *keys, int64_t m)
{
    double mean = 0;
    for (int64_t i = 0; i < n; i++) {
        double p[8], sum = 0;
        heed_real found[D] = {0};
        for (int64_t k = 0; k < m; k++)
            sum += p[k] = exp(4 * dot(queries + i * D, keys + k * D));
        for (int64_t k = 0; k < m; k++)
            for (int c = 0; c < D; c++)
                found[c] += (heed_real)(p[k] / sum * (double)keys[k * D + c]);
        mean += dot(queries + i * D, found) / sqrt(dot(found, found)) / (double)n;
    }
    return mean;
}

/* Catches pairs that are mixed up, one direction alone, a text that sees its neighbours' words. */
static void scores(void **state)
{
    (void)state;
    struct fixture f = fixture_new();
    heed_tape_set_training(f.tape, false);
    heed_tensor *v = heed_match_places(f.tape, &f.net, f.pixels, PICTURES),
                *w = heed_match_words(f.tape, &f.net, ids, f.rows),
                *s = heed_match_scores(f.tape, &f.net, v, PICTURES, w, f.rows);
    assert_string_equal(heed_tape_error(f.tape)->text, "");
    for (int b = 0; b < PICTURES; b++)
        for (int c = 0; c < PICTURES; c++) {
            const heed_real *places = heed_tensor_data(v) + b * PLACES * D,
                            *words = heed_tensor_data(w) + f.rows->offset[c] * D;
            const int64_t n = f.rows->offset[c + 1] - f.rows->offset[c];
            const double expected =
                (asked(words, n, places, PLACES) + asked(places, PLACES, words, n)) / 2;
            assert_true(fabs((double)heed_tensor_data(s)[b * PICTURES + c] - expected) < CLOSE);
        }
    const heed_real *by_word, *by_place;
    assert_true(heed_match_looks(f.tape, &f.net, heed_slice_rows(f.tape, v, 0, PLACES),
                                 heed_slice_rows(f.tape, w, 2, 5), &by_word, &by_place));
    for (int i = 0; i < 3; i++)
        assert_true(fabs((double)by_word[i * 4] + (double)by_word[i * 4 + 1] +
                         (double)by_word[i * 4 + 2] + (double)by_word[i * 4 + 3] - 1) < 1e-5);
    for (int i = 0; i < PLACES; i++)
        assert_true(fabs((double)by_place[i * 3] + (double)by_place[i * 3 + 1] +
                         (double)by_place[i * 3 + 2] - 1) < 1e-5);
    fixture_free(&f);
}

/* Catches a loss that knows one direction, or another partner: from its formula. */
static void contrast(void **state)
{
    (void)state;
    struct fixture f = fixture_new();
    heed_tape_set_training(f.tape, false);
    heed_tensor *s = heed_match_scores(
                    f.tape, &f.net, heed_match_places(f.tape, &f.net, f.pixels, PICTURES), PICTURES,
                    heed_match_words(f.tape, &f.net, ids, f.rows), f.rows),
                *loss = heed_match_loss(f.tape, &f.net, f.pixels, ids, f.rows, 0.5);
    double expected = 0;
    for (int i = 0; i < PICTURES; i++) {
        double row = 0, column = 0;
        for (int k = 0; k < PICTURES; k++) {
            row += exp(3 * (double)heed_tensor_data(s)[i * PICTURES + k]);
            column += exp(3 * (double)heed_tensor_data(s)[k * PICTURES + i]);
        }
        expected += log(row) + log(column) - 6 * (double)heed_tensor_data(s)[i * PICTURES + i];
    }
    assert_true(fabs((double)heed_tensor_data(loss)[0] - expected / 2) < CLOSE * 10);
    fixture_free(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradient),
        cmocka_unit_test(scores),
        cmocka_unit_test(contrast),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
