/* test_caption.c: Show, Attend and Tell: its gradient, what hard attention's gradient is worth, the
 * penalty, packing, search; canvases of digits. */
#include "labs/canvas.h"
#include "layer_check.h"

#include <heed/see.h>

#ifdef HEED_DOUBLE
#define CLOSE 1e-10
#else
#define CLOSE 1e-4
#endif

enum { SIDE = 4, PICTURES = 2, CAPTIONS = 3, V = 6, PLACES = 4 };

struct fixture {
    heed_params *params;
    heed_arena *arena;
    heed_tape *tape;
    heed_caption_net net;
    heed_caption_batch batch;
};

/* Two pictures, the first with captions of three and one word, the second with one of two. */
static struct fixture fixture_new(heed_caption_config config)
{
    static const int64_t lengths[CAPTIONS] = {2, 4, 3};
    static const int32_t picture[CAPTIONS] = {0, 0, 1}, read[9] = {1, 3, 1, 4, 5, 3, 1, 5, 5},
                         wanted[9] = {3, 2, 4, 5, 3, 2, 5, 5, 2};
    struct fixture f = {.params = heed_params_new(NULL, NULL),
                        .arena = heed_arena_new(NULL, NULL),
                        .tape = heed_tape_new(&(heed_tape_options){.threads = 1, .seed = 7}, NULL)};
    const heed_rng rng = heed_rng_stream(&(heed_rng_key){.seed = 2});
    config.side = SIDE;
    config.channels = 1;
    config.stages = 1;
    config.filters = 5;
    config.vocabulary = V;
    config.embedding = 3;
    config.d = 4;
    heed_caption_build(&f.net, heed_params_scope(f.params), &config);
    assert_int_equal(heed_params_finish(f.params, 3, NULL), HEED_OK);
    heed_real *pixels = heed_arena_allocate(f.arena, PICTURES * SIDE * SIDE * sizeof *pixels);
    for (int i = 0; i < PICTURES * SIDE * SIDE; i++)
        pixels[i] = (heed_real)heed_rng_normal(&rng, (uint64_t)i);
    f.batch = (heed_caption_batch){.pixels = pixels,
                                   .pictures = PICTURES,
                                   .rows = heed_segments_new(f.arena, CAPTIONS, lengths),
                                   .picture = picture,
                                   .read = read,
                                   .wanted = wanted};
    return f;
}

static void fixture_free(struct fixture *f)
{
    heed_tape_free(f->tape);
    heed_arena_free(f->arena);
    heed_params_free(f->params);
}

static void far_from_uniform(struct fixture *f)
{
    for (int64_t i = 0; i < heed_params_size(f->params); i++)
        heed_params_values(f->params)[i] *= 3;
}

static int run_loss(heed_tape *t, void *context, heed_tensor **out)
{
    struct fixture *f = context;
    out[0] = heed_caption_loss(t, &f->net, &f->batch, 0.5, NULL, NULL);
    return 1;
}

/* Catches a wrong derivative of a word's probability or of the penalty.  The convolutions have
 * kinks and tests of their own. */
static void gradient(void **state)
{
    static const heed_caption_config kinds[] = {
        {.look = HEED_LOOK_SOFT, .gate = true, .doubly = 0.7},
        {.look = HEED_LOOK_SOFT},
        {.look = HEED_LOOK_MEAN},
        {.look = HEED_LOOK_BLIND},
    };
    (void)state;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        struct fixture f = fixture_new(kinds[i]);
        if (kinds[i].look != HEED_LOOK_BLIND)
            assert_int_equal(heed_params_freeze(f.params, "grid", NULL), HEED_OK);
        layer_check(f.params, run_loss, &f);
        fixture_free(&f);
    }
}

static double loss_of(struct fixture *f, bool train, double *nll, heed_tensor **looks)
{
    heed_tape_reset(f->tape);
    heed_tape_set_training(f->tape, train);
    heed_tape_set_recording(f->tape, train);
    heed_tensor *y = heed_caption_loss(f->tape, &f->net, &f->batch, 1, nll, looks);
    assert_string_equal(heed_tape_error(f->tape)->text, "");
    return (double)heed_tensor_data(y)[0];
}

/* Catches a penalty over words in place of places, or of captions together; one that is part of
 * validation; weights that do not sum to 1. */
static void doubly_stochastic(void **state)
{
    (void)state;
    struct fixture f = fixture_new((heed_caption_config){.look = HEED_LOOK_SOFT, .doubly = 2});
    heed_tensor *looks;
    double nll, expected = 0;
    far_from_uniform(&f);
    const double with = loss_of(&f, true, &nll, &looks);
    for (int64_t c = 0; c < CAPTIONS; c++)
        for (int i = 0; i < PLACES; i++) {
            double seen = 0;
            for (int64_t r = f.batch.rows->offset[c]; r < f.batch.rows->offset[c + 1]; r++)
                seen += (double)heed_tensor_data(looks)[r * PLACES + i];
            expected += 2 * (1 - seen) * (1 - seen);
        }
    assert_true(fabs(with - nll - expected) < CLOSE * with);
    for (int64_t r = 0; r < f.batch.rows->rows; r++) {
        double sum = 0;
        for (int i = 0; i < PLACES; i++)
            sum += (double)heed_tensor_data(looks)[r * PLACES + i];
        assert_true(fabs(sum - 1) < 1e-5);
    }
    assert_true(fabs(loss_of(&f, false, &nll, NULL) - nll) < CLOSE * nll);
    fixture_free(&f);
}

/* Catches a caption that sees another one's words or picture, and one that reads ahead. */
static void alone_as_packed(void **state)
{
    (void)state;
    for (int look = 0; look < 4; look++) {
        struct fixture f = fixture_new((heed_caption_config){.look = look, .gate = look == 0});
        const heed_caption_batch all = f.batch;
        double together, sum = 0;
        far_from_uniform(&f);
        loss_of(&f, false, &together, NULL);
        for (int64_t c = 0; c < CAPTIONS; c++) {
            static const int32_t first = 0;
            const int64_t from = all.rows->offset[c], n = all.rows->offset[c + 1] - from;
            double nll;
            f.batch = (heed_caption_batch){
                .pixels = all.pixels + all.picture[c] * SIDE * SIDE,
                .pictures = 1,
                .rows = heed_segments_new(f.arena, 1, &n),
                .picture = &first,
                .read = all.read + from,
                .wanted = all.wanted + from,
            };
            loss_of(&f, false, &nll, NULL);
            sum += nll;
        }
        assert_true(fabs(sum - together) < CLOSE * together);
        fixture_free(&f);
    }
}

/* ---- hard attention ---- */

/* Copies the values of parameters that have the same names. */
static void copy_values(heed_params *to, const heed_params *from)
{
    for (int i = 0; i < heed_params_count(to); i++) {
        heed_param_info e = heed_params_entry(to, i);
        heed_tensor *x = heed_params_find(from, e.name);
        if (!e.is_state && x)
            memcpy(heed_tensor_data(e.tensor), heed_tensor_data(x),
                   (size_t)heed_tensor_count(x) * sizeof(heed_real));
    }
}

/* Catches an expectation that is not what soft attention computes. */
static void expectation_is_soft(void **state)
{
    static const uint8_t all[CAPTIONS] = {1, 1, 1};
    (void)state;
    struct fixture soft = fixture_new((heed_caption_config){.look = HEED_LOOK_SOFT}),
                   hard = fixture_new((heed_caption_config){.look = HEED_LOOK_HARD});
    double a, b;
    far_from_uniform(&soft);
    copy_values(hard.params, soft.params);
    hard.batch.expect = all;
    loss_of(&soft, true, &a, NULL);
    loss_of(&hard, true, &b, NULL);
    assert_true(fabs(a - b) < CLOSE * a);
    fixture_free(&soft);
    fixture_free(&hard);
}

/* Of one caption of one word: its loss behind each of the places, found by drawing, and how likely
 * each is, as soft attention says. */
static double expected_loss(struct fixture *soft, const double *nll)
{
    heed_tensor *looks;
    double sum = 0;
    loss_of(soft, true, NULL, &looks);
    for (int i = 0; i < PLACES; i++)
        sum += (double)heed_tensor_data(looks)[i] * nll[i];
    return sum;
}

/* Catches the wrong sign of the reward, a gradient through the choice, a baseline that biases: the
 * mean gradient of many draws is that of sum_s p(s) (- log p(y | s)), within four standard errors;
 * and a baseline that does not make it less noisy. */
static void reinforce_is_unbiased(void **state)
{
    enum { DRAWS = 4000, A = 5 };
    static const int64_t length = 1;
    (void)state;
    struct fixture soft = fixture_new((heed_caption_config){.look = HEED_LOOK_SOFT}),
                   hard = fixture_new((heed_caption_config){.look = HEED_LOOK_HARD, .reward = 1});
    double nll[PLACES] = {0}, spread[2] = {0}, mean_nll = 0;
    far_from_uniform(&soft);
    copy_values(hard.params, soft.params);
    for (int k = 0; k < 2; k++) {
        struct fixture *f = k ? &hard : &soft;
        f->batch.rows = heed_segments_new(f->arena, 1, &length);
        f->batch.pictures = 1;
    }
    heed_tensor *v = heed_params_find(hard.params, "attend.v"),
                *same = heed_params_find(soft.params, "attend.v"),
                *baseline = heed_params_find(hard.params, "choice.baseline");
    assert_non_null(v);
    assert_int_equal(heed_tensor_count(v), A);
    double exact[A], sum[2][A] = {{0}}, squares[2][A] = {{0}};
    for (int with = 0; with < 2; with++) {
        for (int n = 0; n < DRAWS; n++) {
            heed_tensor *looks, *y;
            double one;
            heed_params_zero_grads(hard.params); /* and what the baseline would move by */
            heed_tape_reset(hard.tape);
            heed_tape_step(hard.tape, (uint64_t)(with * DRAWS + n + 1), 0, 0);
            y = heed_caption_loss(hard.tape, &hard.net, &hard.batch, 1, &one, &looks);
            assert_int_equal(heed_backward(hard.tape, y), HEED_OK);
            for (int i = 0; i < PLACES; i++)
                if (heed_tensor_data(looks)[i] > 0)
                    nll[i] = one;
            mean_nll += one / (2.0 * DRAWS);
            for (int i = 0; i < A; i++) {
                const double g = (double)heed_tensor_grad(v)[i];
                sum[with][i] += g / DRAWS;
                squares[with][i] += g * g / DRAWS;
            }
        }
        heed_tensor_data(baseline)[0] = (heed_real)(-2 * mean_nll);
        heed_tensor_data(baseline)[1] = 1;
    }
    for (int i = 0; i < A; i++) {
        const heed_real kept = heed_tensor_data(same)[i];
        const double step = 1e-2;
        heed_tensor_data(same)[i] = (heed_real)(kept + step);
        exact[i] = expected_loss(&soft, nll);
        heed_tensor_data(same)[i] = (heed_real)(kept - step);
        exact[i] = (exact[i] - expected_loss(&soft, nll)) / (2 * step);
        heed_tensor_data(same)[i] = kept;
        for (int with = 0; with < 2; with++) {
            const double variance = squares[with][i] - sum[with][i] * sum[with][i];
            spread[with] += variance;
            assert_true(fabs(sum[with][i] - exact[i]) < 4 * sqrt(variance / DRAWS) + 1e-4);
        }
    }
    double largest = 0;
    for (int i = 0; i < A; i++)
        largest = fmax(largest, fabs(exact[i]));
    assert_true(largest > 1e-3);
    assert_true(spread[1] < spread[0]);
    fixture_free(&soft);
    fixture_free(&hard);
}

/* ---- search ---- */

/* Catches a beam that loses what greedy finds, scores that are not those of the words, weights of
 * other steps. */
static void search(void **state)
{
    (void)state;
    struct fixture f = fixture_new((heed_caption_config){.look = HEED_LOOK_SOFT, .gate = true});
    heed_caption greedy, beam;
    heed_error err = {0};
    far_from_uniform(&f);
    heed_tape_set_recording(f.tape, false);
    heed_tape_set_training(f.tape, false);
    heed_caption_options o = {.beam = 1, .longest = 6, .start = 1, .end = 2, .unknown = 0};
    assert_int_equal(heed_caption_find(f.tape, &f.net, f.batch.pixels, &o, f.arena, &greedy, &err),
                     HEED_OK);
    o.beam = 20;
    assert_int_equal(heed_caption_find(f.tape, &f.net, f.batch.pixels, &o, f.arena, &beam, &err),
                     HEED_OK);
    assert_true(beam.score >= greedy.score);
    for (int k = 0; k < 2; k++) {
        const heed_caption *c = k ? &beam : &greedy;
        int32_t read[8] = {1}, wanted[8];
        const int64_t n = c->count + 1;
        static const int32_t first = 0;
        double nll;
        heed_tensor *looks;
        assert_in_range(c->count, 0, 6);
        for (int64_t i = 0; i < c->count; i++) {
            read[i + 1] = wanted[i] = c->id[i];
            assert_true(c->id[i] > 2);
        }
        wanted[c->count] = 2;
        f.batch = (heed_caption_batch){.pixels = f.batch.pixels,
                                       .pictures = 1,
                                       .rows = heed_segments_new(f.arena, 1, &n),
                                       .picture = &first,
                                       .read = read,
                                       .wanted = wanted};
        loss_of(&f, false, &nll, &looks);
        assert_true(fabs(nll + c->log_p) < CLOSE * fmax(1, nll));
        assert_true(fabs(c->score - c->log_p / (double)n) < CLOSE);
        for (int64_t i = 0; i < c->count * PLACES; i++)
            assert_true(fabs((double)heed_tensor_data(looks)[i] - (double)c->weights[i]) < CLOSE);
    }
    o.beam = 65;
    assert_int_equal(heed_caption_find(f.tape, &f.net, f.batch.pixels, &o, f.arena, &beam, &err),
                     HEED_ARGUMENT);
    fixture_free(&f);
}

/* ---- canvases ---- */

/* Catches a sentence that names another cell, an order that is not that of reading, empty cells
 * with ink. */
static void canvases(void **state)
{
    static const char *const rows[] = {"top", "middle", "bottom"}, *const columns[] = {
                                                                       "left", "centre", "right"};
    (void)state;
    heed_arena *arena = heed_arena_new(NULL, NULL);
    int seen[CANVAS_DIGITS + 1] = {0};
    for (int cells = 2; cells < 4; cells++) {
        const canvas_sizes z = {36, cells};
        const int size = 36 / cells;
        picture_data d;
        heed_real digit[18 * 18], out[36 * 36];
        assert_int_equal(picture_data_open(&d, NULL, size, arena, NULL), HEED_OK);
        for (int i = 0; i < 60; i++) {
            canvas c;
            canvas_draw(&z, &d, PICTURES_TEST, i, NULL, digit, out, &c);
            seen[c.digits]++;
            for (int k = 0; k < c.digits; k++) {
                assert_true(!k || c.cell[k] > c.cell[k - 1]);
                const int y = c.cell[k] / cells, x = c.cell[k] % cells;
                assert_string_equal(canvas_word(c.word[4 * k + 1]), rows[cells == 2 ? 2 * y : y]);
                assert_string_equal(canvas_word(c.word[4 * k + 2]),
                                    columns[cells == 2 ? 2 * x : x]);
                assert_string_equal(canvas_word(c.word[4 * k + 3]), ".");
            }
            for (int cell = 0; cell < cells * cells; cell++) {
                bool ink = false, named = false;
                for (int p = 0; p < size * size; p++)
                    ink |= out[(cell / cells * size + p / size) * 36 + cell % cells * size +
                               p % size] > 0;
                for (int k = 0; k < c.digits; k++)
                    named |= c.cell[k] == cell;
                assert_int_equal(ink, named);
            }
        }
    }
    for (int n = 1; n <= CANVAS_DIGITS; n++)
        assert_in_range(seen[n], 20, 60); /* of 120 */
    heed_arena_free(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradient),
        cmocka_unit_test(doubly_stochastic),
        cmocka_unit_test(alone_as_packed),
        cmocka_unit_test(expectation_is_soft),
        cmocka_unit_test(reinforce_is_unbiased),
        cmocka_unit_test(search),
        cmocka_unit_test(canvases),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
