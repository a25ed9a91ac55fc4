/* test_sagan.c: the networks of `heed lab sagan`: gradients of both losses, attention at the start
 * and its rows, spectral norms, whose passes move what; its pictures; the distance between sets. */
#include "labs/frechet.h"
#include "labs/sagan_game.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#ifdef HEED_DOUBLE
#define LAYER_STEP 3e-6      /* thousands of relus and maxima: few of them within reach */
#define LAYER_TOLERANCE 1e-6 /* rounding over the step */
#define LAYER_KINKS 0.3
#include "layer_check.h"
#endif

#ifdef HEED_DOUBLE
#define CLOSE 1e-9
#else
#define CLOSE 1e-4
#endif

enum { BATCH = 2 };

static sagan_sizes sizes_of(sagan_middle middle, bool pool)
{
    return (sagan_sizes){.side = 16,
                         .classes = 1,
                         .noise = 2,
                         .width = 4,
                         .at = 8,
                         .keys = 2,
                         .values = 2,
                         .pool = pool,
                         .middle = middle};
}

struct fixture {
    heed_params *params[SAGAN_SETS];
    heed_arena *arena;
    heed_tape *tape;
    sagan_game game;
};

/* together: both networks are in set 0. */
static struct fixture fixture_new(sagan_sizes sizes, bool together)
{
    struct fixture f = {.arena = heed_arena_new(NULL, NULL),
                        .tape = heed_tape_new(&(heed_tape_options){.threads = 1}, NULL)};
    heed_error err = {0};
    assert_int_equal(
        sagan_data_open(&f.game.data, SAGAN_CORNERS, NULL, sizes.side, 0.1, f.arena, &err),
        HEED_OK);
    f.game.data.classes = sizes.classes;
    f.game.sizes = sizes;
    for (int k = 0; k < SAGAN_SETS; k++) {
        if (!k || !together)
            f.params[k] = heed_params_new(NULL, NULL);
        const heed_scope s = heed_params_scope(f.params[together ? 0 : k]);
        sagan_game_build(&f.game, k, together ? heed_scope_enter(s, "%d", k) : s);
    }
    for (int k = 0; k < SAGAN_SETS && f.params[k]; k++)
        assert_int_equal(heed_params_finish(f.params[k], 3 + (uint64_t)k, NULL), HEED_OK);
    return f;
}

static void fixture_free(struct fixture *f)
{
    sagan_data_close(&f->game.data);
    heed_tape_free(f->tape);
    for (int k = 0; k < SAGAN_SETS; k++)
        heed_params_free(f->params[k]);
    heed_arena_free(f->arena);
}

static heed_rng stream(uint64_t step)
{
    return heed_rng_stream(&(heed_rng_key){.seed = 6, .step = step});
}

/* One pass of each network that trains it; the vectors of its power iterations move. */
static void pass_both(heed_tape *t, struct fixture *f, uint64_t step)
{
    const heed_rng rng = stream(step);
    for (int set = 0; set < SAGAN_SETS; set++) {
        heed_tape_reset(t);
        heed_tape_set_recording(t, false);
        if (!sagan_game_loss(t, &f->game, set, BATCH, &rng))
            fail_msg("%s", heed_tape_error(t)->text);
    }
    for (int k = 0; k < SAGAN_SETS; k++)
        heed_params_fold_state(f->params[k]);
}

/* ---- gradients ---- */

static void set_gamma(struct fixture *f, heed_real gamma)
{
    heed_tensor_data(f->game.generator.block.gamma)[0] = gamma;
    heed_tensor_data(f->game.discriminator.block.gamma)[0] = gamma;
}

#ifdef HEED_DOUBLE
/* The generator's loss, and the two parts of the discriminator's, each for itself; on classes, two
 * of which the batch has.  The vectors of the power iterations have converged: the gradient of a
 * spectral norm takes them for constants. */
struct losses {
    struct fixture f;
    bool settled;
};

static int run_losses(heed_tape *t, void *context, heed_tensor **out)
{
    enum { ROUNDS = 3000, SIZE = 256 };
    struct losses *l = context;
    struct fixture *f = &l->f;
    static const int32_t real_classes[BATCH] = {1, 0}, made_classes[BATCH] = {0, 1};
    const heed_rng rng = stream(1);
    for (int i = 0; !l->settled && i < ROUNDS; i++)
        pass_both(f->tape, f, 7);
    l->settled = true;
    heed_tensor *z = heed_input(t, HEED_SHAPE(BATCH, f->game.sizes.noise), NULL);
    heed_tensor *pixels = heed_input(t, HEED_SHAPE(BATCH * SIZE, 1), NULL);
    for (int64_t i = 0; i < heed_tensor_count(z); i++)
        heed_tensor_data(z)[i] = (heed_real)heed_rng_normal(&rng, (uint64_t)i);
    for (int i = 0; i < BATCH; i++)
        sagan_data_take(&f->game.data, PICTURES_TRAIN, i + 1, &rng,
                        heed_tensor_data(pixels) + i * SIZE, NULL);
    heed_tensor *made = sagan_generate(t, &f->game.generator, z, made_classes, true, NULL);
    heed_tensor *of_made =
        sagan_discriminate(t, &f->game.discriminator, made, made_classes, false, NULL);
    heed_tensor *of_real =
        sagan_discriminate(t, &f->game.discriminator, pixels, real_classes, false, NULL);
    heed_tensor *surely = heed_input(t, HEED_SHAPE(1), (heed_real[]){-100});
    out[0] = sagan_generator_loss(t, of_made);
    out[1] = sagan_discriminator_loss(t, heed_scale(t, of_real, 0.1, 0), surely);
    out[2] =
        sagan_discriminator_loss(t, heed_scale(t, surely, -1, 0), heed_scale(t, of_made, 0.1, 0));
    return 3;
}

static void check_losses(sagan_sizes sizes)
{
    struct losses l = {.settled = false};
    sizes.classes = 2;
    l.f = fixture_new(sizes, true);
    set_gamma(&l.f, 3); /* so that keys and queries matter more than rounding */
    layer_check(l.f.params[0], run_losses, &l);
    fixture_free(&l.f);
}
#endif

/* Catches a wrong derivative anywhere from z to the hinges, with the block as printed, with pooled
 * keys, and with the residual block that stands in its place. */
static void gradients(void **state)
{
    (void)state;
#ifdef HEED_DOUBLE
    check_losses(sizes_of(SAGAN_ATTENTION, false));
    check_losses(sizes_of(SAGAN_ATTENTION, true));
    check_losses(sizes_of(SAGAN_RESIDUAL, false));
#else
    skip(); /* hundreds of sums of hundreds of products: float says nothing */
#endif
}

/* ---- the block ---- */

static heed_tensor *say(struct fixture *f, heed_tensor **look, int set)
{
    int32_t classes[BATCH] = {0};
    heed_tape_set_recording(f->tape, false);
    heed_tape_set_training(f->tape, false);
    heed_tensor *made =
        sagan_game_make(f->tape, &f->game, 0, BATCH, classes, set == SAGAN_GENERATOR ? look : NULL);
    heed_tensor *said = set == SAGAN_GENERATOR ? made
                                               : sagan_discriminate(f->tape, &f->game.discriminator,
                                                                    made, classes, false, look);
    assert_string_equal(heed_tape_error(f->tape)->text, "");
    return said;
}

static bool equal(const heed_tensor *a, const heed_tensor *b)
{
    assert_int_equal(heed_tensor_count(a), heed_tensor_count(b));
    for (int64_t i = 0; i < heed_tensor_count(a); i++)
        if (heed_tensor_data(a)[i] != heed_tensor_data(b)[i])
            return false;
    return true;
}

/* Catches a block that changes what comes through before it has learned anything, a gamma that does
 * not start at 0, and one that lets nothing in when it has moved. */
static void same_at_the_start(void **state)
{
    (void)state;
    for (int middle = SAGAN_ATTENTION; middle <= SAGAN_RESIDUAL; middle++) {
        struct fixture f = fixture_new(sizes_of((sagan_middle)middle, true), false);
        for (int set = 0; set < SAGAN_SETS; set++) {
            heed_tape_reset(f.tape);
            const heed_tensor *with = say(&f, NULL, set);
            f.game.generator.block.middle = f.game.discriminator.block.middle = SAGAN_NOTHING;
            const heed_tensor *without = say(&f, NULL, set);
            f.game.generator.block.middle = f.game.discriminator.block.middle =
                (sagan_middle)middle;
            assert_true(equal(with, without));
            set_gamma(&f, (heed_real)0.5);
            assert_false(equal(say(&f, NULL, set), without));
            set_gamma(&f, 0);
        }
        fixture_free(&f);
    }
}

/* Catches a softmax over the queries, and keys that are not pooled, or not all there. */
static void rows_sum_to_one(void **state)
{
    (void)state;
    for (int pool = 0; pool < 2; pool++) {
        struct fixture f = fixture_new(sizes_of(SAGAN_ATTENTION, pool), false);
        const int64_t queries = 64, keys = pool ? 16 : 64;
        for (int set = 0; set < SAGAN_SETS; set++) {
            heed_tensor *look = NULL;
            double columns = 0;
            heed_tape_reset(f.tape);
            say(&f, &look, set);
            assert_int_equal(heed_tensor_count(look), BATCH * queries * keys);
            for (int64_t q = 0; q < BATCH * queries; q++) {
                double sum = 0;
                for (int64_t i = 0; i < keys; i++)
                    sum += (double)heed_tensor_data(look)[q * keys + i];
                assert_true(fabs(sum - 1) < 1e-5);
            }
            for (int64_t i = 0; i < keys; i++) {
                double sum = 0;
                for (int64_t q = 0; q < queries; q++)
                    sum += (double)heed_tensor_data(look)[q * keys + i] * (double)keys / 64;
                columns = fmax(columns, fabs(sum - 1));
            }
            assert_true(columns > 1e-4); /* which a softmax over the queries would make 0 */
        }
        fixture_free(&f);
    }
}

/* The block by plain loops: s_ij = f(x_i) g(x_j), softmax over i, not divided by sqrt(d).  Catches
 * keys and queries that are exchanged, a scale, a gamma elsewhere. */
static void block_by_loops(void **state)
{
    (void)state;
    enum { N = 64, C = 4, K = 2 };
    struct fixture f = fixture_new(sizes_of(SAGAN_ATTENTION, false), false);
    heed_tensor *look = NULL;
    const sagan_block *b = &f.game.discriminator.block;
    int32_t class = 0;
    /* The first convolution alone, as the discriminator has it. */
    sagan_sizes z = f.game.sizes;
    heed_tape_set_recording(f.tape, false);
    heed_tensor *pixels = heed_input(f.tape, HEED_SHAPE(256, 1), NULL);
    const heed_rng rng = stream(3);
    sagan_data_take(&f.game.data, PICTURES_TRAIN, 0, &rng, heed_tensor_data(pixels), NULL);
    assert_int_equal(sagan_channels(&z, 8), C);
    heed_tensor *x =
        heed_conv2d(f.tape, pixels,
                    heed_spectral_norm(f.tape, f.game.discriminator.conv[0].w,
                                       f.game.discriminator.conv[0].u, false),
                    f.game.discriminator.bias[0],
                    &(heed_conv2d_options){
                        .image = {16, 16}, .kernel = {4, 4}, .stride = {2, 2}, .padding = {1, 1}});
    heed_tensor *fw = heed_spectral_norm(f.tape, b->f.w, b->f.u, false),
                *gw = heed_spectral_norm(f.tape, b->g.w, b->g.u, false);
    assert_non_null(
        sagan_discriminate(f.tape, &f.game.discriminator, pixels, &class, false, &look));
    for (int j = 0; j < N; j++) {
        double score[N], all = 0;
        for (int i = 0; i < N; i++) {
            score[i] = 0;
            for (int k = 0; k < K; k++) {
                double fx = 0, gx = 0;
                for (int c = 0; c < C; c++) {
                    fx += (double)heed_tensor_data(x)[i * C + c] *
                          (double)heed_tensor_data(fw)[c * K + k];
                    gx += (double)heed_tensor_data(x)[j * C + c] *
                          (double)heed_tensor_data(gw)[c * K + k];
                }
                score[i] += fx * gx;
            }
            all += exp(score[i]);
        }
        for (int i = 0; i < N; i++)
            assert_true(fabs(exp(score[i]) / all - (double)heed_tensor_data(look)[j * N + i]) <
                        CLOSE);
    }
    fixture_free(&f);
}

/* Catches networks of which one is larger: then the comparison would say nothing. */
static void residual_is_as_large(void **state)
{
    (void)state;
    struct fixture a = fixture_new(sizes_of(SAGAN_ATTENTION, true), false),
                   b = fixture_new(sizes_of(SAGAN_RESIDUAL, true), false),
                   c = fixture_new(sizes_of(SAGAN_NOTHING, true), false);
    for (int k = 0; k < SAGAN_SETS; k++) {
        assert_int_equal(heed_params_trainable(a.params[k]), heed_params_trainable(b.params[k]));
        assert_true(heed_params_trainable(a.params[k]) > heed_params_trainable(c.params[k]));
    }
    fixture_free(&a);
    fixture_free(&b);
    fixture_free(&c);
}

/* ---- spectral norms ---- */

/* The largest singular value of w (rows,cols), by what is left when all pairs of columns have been
 * turned to be orthogonal (one-sided Jacobi). */
static double largest(const heed_tensor *w)
{
    const int64_t n = heed_tensor_rows(w), d = heed_tensor_cols(w);
    double *a = malloc((size_t)(n * d) * sizeof *a), best = 0;
    for (int64_t i = 0; i < n * d; i++)
        a[i] = (double)heed_tensor_data(w)[i];
    for (int sweep = 0; sweep < 60; sweep++)
        for (int64_t p = 0; p < d; p++)
            for (int64_t q = p + 1; q < d; q++) {
                double pp = 0, qq = 0, pq = 0;
                for (int64_t i = 0; i < n; i++) {
                    pp += a[i * d + p] * a[i * d + p];
                    qq += a[i * d + q] * a[i * d + q];
                    pq += a[i * d + p] * a[i * d + q];
                }
                const double angle = 0.5 * atan2(2 * pq, pp - qq), c = cos(angle), s = sin(angle);
                for (int64_t i = 0; i < n; i++) {
                    const double x = a[i * d + p], y = a[i * d + q];
                    a[i * d + p] = c * x + s * y;
                    a[i * d + q] = c * y - s * x;
                }
            }
    for (int64_t k = 0; k < d; k++) {
        double length = 0;
        for (int64_t i = 0; i < n; i++)
            length += a[i * d + k] * a[i * d + k];
        best = fmax(best, sqrt(length));
    }
    free(a);
    return best;
}

/* Every matrix has a vector of its own, as wide as it, behind it. */
static heed_tensor *vector_of(const heed_params *p, int i)
{
    const heed_param_info e = heed_params_entry(p, i);
    char name[128];
    if (e.is_state || e.role != HEED_ROLE_MATRIX)
        return NULL;
    snprintf(name, sizeof name, "%.*s.u", (int)(strlen(e.name) - strlen(".weight")), e.name);
    heed_tensor *u = heed_params_find(p, name);
    assert_non_null(u);
    return u;
}

static void unsettle(heed_params *p)
{
    const heed_rng rng = stream(11);
    for (int i = 0; i < heed_params_count(p); i++) {
        const heed_param_info e = heed_params_entry(p, i);
        for (int64_t j = 0; e.role == HEED_ROLE_MATRIX && j < heed_tensor_count(e.tensor); j++)
            heed_tensor_data(e.tensor)[j] +=
                (heed_real)(0.3 * heed_rng_normal(&rng, (uint64_t)(e.offset + j)));
    }
}

/* Catches a matrix without its norm, a vector that does not stay from update to update, a matrix
 * that is read in another shape. */
static void norms_against_svd(void **state)
{
    (void)state;
    sagan_sizes sizes = sizes_of(SAGAN_ATTENTION, true);
    sizes.classes = 3;
    sizes.width = 8;
    struct fixture f = fixture_new(sizes, false);
    int checked = 0;
    for (int k = 0; k < SAGAN_SETS; k++)
        unsettle(f.params[k]); /* orthogonal ones are settled from the start */
    for (uint64_t step = 0; step < 50; step++)
        pass_both(f.tape, &f, step);
    heed_tape_reset(f.tape);
    for (int k = 0; k < SAGAN_SETS; k++)
        for (int i = 0; i < heed_params_count(f.params[k]); i++) {
            heed_tensor *u = vector_of(f.params[k], i);
            const heed_param_info e = heed_params_entry(f.params[k], i);
            if (!u)
                continue;
            const heed_tensor *y = heed_spectral_norm(f.tape, e.tensor, u, false);
            if (fabs(largest(y) - 1) > 0.01)
                fail_msg("'%s' divided by its norm has a norm of %g", e.name, largest(y));
            checked++;
        }
    assert_int_equal(checked, 8 + 8); /* in, 2 stages, f g h v, out; 2, f g h v, out, classes */
    fixture_free(&f);
}

static double moved(const heed_params *p, heed_real *kept)
{
    double most = 0;
    for (int64_t i = 0; i < heed_params_state_size(p); i++)
        most = fmax(most, fabs((double)kept[i] - (double)heed_params_state_values(p)[i]));
    return most;
}

/* Catches vectors of the discriminator that move when the generator is trained, and ones that do
 * not when it is. */
static void who_moves_what(void **state)
{
    (void)state;
    for (int set = 0; set < SAGAN_SETS; set++) {
        struct fixture f = fixture_new(sizes_of(SAGAN_ATTENTION, true), false);
        const int64_t n = heed_params_state_size(f.params[SAGAN_DISCRIMINATOR]);
        heed_real *kept = malloc((size_t)n * sizeof *kept);
        const heed_rng rng = stream(2);
        for (int k = 0; k < SAGAN_SETS; k++)
            unsettle(f.params[k]);
        memcpy(kept, heed_params_state_values(f.params[SAGAN_DISCRIMINATOR]),
               (size_t)n * sizeof *kept);
        assert_int_equal(heed_backward(f.tape, sagan_game_loss(f.tape, &f.game, set, BATCH, &rng)),
                         HEED_OK);
        const heed_tensor *mine = f.game.generator.conv[0].u;
        const heed_real first = heed_tensor_data(mine)[0];
        for (int k = 0; k < SAGAN_SETS; k++)
            heed_params_fold_state(f.params[k]);
        const double distance = moved(f.params[SAGAN_DISCRIMINATOR], kept);
        assert_true(set == SAGAN_DISCRIMINATOR ? distance > 0.01 : distance == 0);
        assert_true((heed_tensor_data(mine)[0] != first) == (set == SAGAN_GENERATOR));
        free(kept);
        fixture_free(&f);
    }
}

/* ---- pictures ---- */

/* Catches corners that differ, glyphs that do not all come, pictures of the training in a test. */
static void corners(void **state)
{
    (void)state;
    enum { SIDE = 32, PICTURES = 900, KINDS = 18 };
    heed_arena *arena = heed_arena_new(NULL, NULL);
    heed_error err = {0};
    sagan_data d;
    assert_int_equal(sagan_data_open(&d, SAGAN_CORNERS, NULL, SIDE, 0, arena, &err), HEED_OK);
    assert_int_equal(d.kinds, KINDS);
    static heed_real picture[SIDE * SIDE], other[SIDE * SIDE];
    heed_real look[2][49], shown[KINDS][49];
    int count[KINDS] = {0};
    const heed_rng rng = stream(4);
    for (int i = 0; i < PICTURES; i++) {
        int kind;
        assert_int_equal(sagan_data_take(&d, PICTURES_TRAIN, i, &rng, picture, &kind), 0);
        for (int k = 0; k < 2; k++)
            sagan_data_look(&d, picture, k, look[k]);
        assert_memory_equal(look[0], look[1], sizeof look[0]);
        if (count[kind]++)
            assert_memory_equal(look[0], shown[kind], sizeof look[0]);
        memcpy(shown[kind], look[0], sizeof look[0]);
        for (int p = 0; p < SIDE * SIDE; p++) /* nothing else stands anywhere */
            if ((p / SIDE > 6 || p % SIDE > 6) && (p / SIDE < 25 || p % SIDE < 25))
                assert_true(picture[p] == picture[SIDE - 1]);
    }
    for (int k = 0; k < KINDS; k++) {
        assert_in_range(count[k], 20, 90); /* 50 each by chance */
        for (int i = 0; i < k; i++)
            assert_memory_not_equal(shown[i], shown[k], sizeof shown[k]);
    }
    d.grain = 0.1;
    sagan_data_take(&d, PICTURES_TEST, 5, NULL, picture, NULL);
    sagan_data_take(&d, PICTURES_TEST, 5, NULL, other, NULL);
    assert_memory_equal(picture, other, sizeof other);
    sagan_data_take(&d, PICTURES_VALID, 5, NULL, other, NULL);
    assert_memory_not_equal(picture, other, sizeof other);
    sagan_data_close(&d);
    heed_arena_free(arena);
}

/* Catches a distance that is not that of two Gaussians: equal sets, moved, stretched and turned
 * ones, whose covariances commute or do not. */
static void distance_between_sets(void **state)
{
    (void)state;
    enum { N = 2000, D = 3 };
    static heed_real a[N * D], b[N * D];
    const heed_rng rng = stream(5);
    for (int i = 0; i < N * D; i++)
        a[i] = (heed_real)((1 + i % D) * heed_rng_normal(&rng, (uint64_t)i));
    assert_true(fabs(frechet_distance(a, N, a, N, D)) < 1e-6);
    for (int i = 0; i < N * D; i++)
        b[i] = a[i] + (i % D == 1 ? 2 : 0);
    assert_true(fabs(frechet_distance(a, N, b, N, D) - 4) < 1e-3);
    for (int i = 0; i < N * D; i++)
        b[i] = 3 * a[i];
    double want = 0; /* (3 - 1)^2 tr A + |3 m - m|^2 */
    for (int k = 0; k < D; k++) {
        double mean = 0, square = 0;
        for (int i = 0; i < N; i++) {
            mean += (double)a[i * D + k] / N;
            square += (double)a[i * D + k] * (double)a[i * D + k] / N;
        }
        want += 4 * (square - mean * mean) + 4 * mean * mean;
    }
    assert_true(fabs(frechet_distance(a, N, b, N, D) / want - 1) < 1e-3);
    /* In two dimensions tr (A B)^1/2 is sqrt(tr(A B) + 2 sqrt(det A det B)). */
    double c[2][3] = {{0}}, trace = 0, mean[2][2] = {{0}};
    for (int i = 0; i < N; i++) {
        a[2 * i] = (heed_real)heed_rng_normal(&rng, (uint64_t)(90000 + 4 * i));
        a[2 * i + 1] = (heed_real)(3 * heed_rng_normal(&rng, (uint64_t)(90001 + 4 * i)));
        const double u = heed_rng_normal(&rng, (uint64_t)(90002 + 4 * i)),
                     v = 2 * heed_rng_normal(&rng, (uint64_t)(90003 + 4 * i));
        b[2 * i] = (heed_real)(u + v);
        b[2 * i + 1] = (heed_real)(u - v);
    }
    want = 0;
    for (int s = 0; s < 2; s++) {
        const heed_real *x = s ? b : a;
        for (int i = 0; i < 2 * N; i++)
            mean[s][i % 2] += (double)x[i] / N;
        for (int i = 0; i < N; i++) {
            const double u = (double)x[2 * i] - mean[s][0], v = (double)x[2 * i + 1] - mean[s][1];
            c[s][0] += u * u / N;
            c[s][1] += u * v / N;
            c[s][2] += v * v / N;
        }
        want += c[s][0] + c[s][2];
    }
    for (int k = 0; k < 2; k++)
        want += (mean[0][k] - mean[1][k]) * (mean[0][k] - mean[1][k]);
    trace = c[0][0] * c[1][0] + 2 * c[0][1] * c[1][1] + c[0][2] * c[1][2];
    want -= 2 * sqrt(trace + 2 * sqrt((c[0][0] * c[0][2] - c[0][1] * c[0][1]) *
                                      (c[1][0] * c[1][2] - c[1][1] * c[1][1])));
    assert_true(fabs(frechet_distance(a, N, b, N, 2) / want - 1) < 1e-6);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradients),
        cmocka_unit_test(same_at_the_start),
        cmocka_unit_test(rows_sum_to_one),
        cmocka_unit_test(block_by_loops),
        cmocka_unit_test(residual_is_as_large),
        cmocka_unit_test(norms_against_svd),
        cmocka_unit_test(who_moves_what),
        cmocka_unit_test(corners),
        cmocka_unit_test(distance_between_sets),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
