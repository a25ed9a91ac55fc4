/* test_ntm.c: the operators of the Neural Turing Machine: addressing, reading and writing. */
#include "kernel/kernels.h"
#include "one_tape.h"

#include <heed/ops.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#ifdef HEED_DOUBLE
#define CLOSE 1e-8 /* what eps changes in a cosine */
#else
#define CLOSE 2e-6 /* a few roundings of numbers up to 1 */
#endif

static void assert_close(const heed_tensor *found, const double *wanted, int64_t n)
{
    assert_string_equal(heed_tape_error(tape)->text, "");
    assert_int_equal(heed_tensor_count(found), n);
    for (int64_t i = 0; i < n; i++)
        if (!(fabs((double)heed_tensor_data(found)[i] - wanted[i]) <= CLOSE))
            fail_msg("number %d is %.9g, expected %.9g", (int)i, (double)heed_tensor_data(found)[i],
                     wanted[i]);
}

/* One head of n locations: shifts w by s and sharpens; g = 0 takes no notice of the content. */
static heed_tensor *move(const heed_real *w, int64_t n, const heed_real *s, int64_t offsets,
                         double gamma)
{
    heed_real zero = 0, sharp = (heed_real)gamma;
    return heed_ntm_location(tape, row(n, NULL), row(n, w), row(1, &zero), row(offsets, s),
                             row(1, &sharp));
}

/* ---- addressing ---- */

/* Catches a shift that runs the other way (cross-correlation), which training cannot show: the
 * machine learns it mirrored.  Values by hand. */
static void shift_is_a_convolution(void **state)
{
    (void)state;
    static const heed_real w[] = {0, 1, 0, 0}, s[] = {(heed_real).1, (heed_real).2, (heed_real).7};
    assert_close(move(w, 4, s, 3, 1), (const double[]){.1, .2, .7, 0}, 4);
    assert_close(move(w, 4, s, 3, 2), (const double[]){.01 / .54, .04 / .54, .49 / .54, 0}, 4);
}

/* Catches a shift that is not circular: a head at either end falls off. */
static void head_wraps(void **state)
{
    (void)state;
    static const heed_real last[] = {0, 0, 0, 0, 1}, first[] = {1, 0, 0, 0, 0};
    static const heed_real up[] = {0, 0, 1}, down[] = {1, 0, 0}, two[] = {0, 0, 0, 0, 1};
    assert_close(move(last, 5, up, 3, 1), (const double[]){1, 0, 0, 0, 0}, 5);
    assert_close(move(first, 5, down, 3, 1), (const double[]){0, 0, 0, 0, 1}, 5);
    assert_close(move(last, 5, two, 5, 1), (const double[]){0, 1, 0, 0, 0}, 5);
    /* Seven offsets on two locations: -3 .. 3 are odd, even, odd, ... */
    static const heed_real pair[] = {1, 0}, seven[] = {0, 0, 1, 0, 0, 0, 0};
    assert_close(move(pair, 2, seven, 7, 1), (const double[]){0, 1}, 2);
}

/* Catches a gate that is turned round, and heads that are mixed up. */
static void heads_interpolate_alone(void **state)
{
    (void)state;
    static const heed_real content[] = {(heed_real).5, (heed_real).5, 0, 1},
                           previous[] = {0, 1, (heed_real).25, (heed_real).75},
                           g[] = {1, (heed_real).5}, s[] = {1, 1}, gamma[] = {1, 1};
    heed_tensor *w = heed_ntm_location(tape, row(4, content), row(4, previous), row(2, g),
                                       row(2, s), row(2, gamma));
    assert_close(w, (const double[]){.5, .5, .125, .875}, 4);
}

/* Catches weights that are not a distribution, also where a sharp head leaves next to nothing. */
static void weights_sum_to_one(void **state)
{
    enum { B = 3, N = 37 };
    (void)state;
    heed_rng rng = heed_rng_stream(&(heed_rng_key){.seed = 1});
    heed_real previous[B * N], memory[B * 4 * N], key[B * 4], beta[B], g[B], s[B * 3], gamma[B];
    for (int i = 0; i < B * N * 4; i++)
        memory[i] = (heed_real)heed_rng_normal(&rng, (uint64_t)i);
    for (int i = 0; i < B * N; i++)
        previous[i] = i % N == i / N;
    for (int b = 0; b < B; b++) {
        beta[b] = (heed_real)(10 * b);
        g[b] = (heed_real)(0.1 * b);
        gamma[b] = (heed_real)(1 + 100 * b);
        for (int j = 0; j < 4; j++)
            key[4 * b + j] = (heed_real)(j - b);
        for (int j = 0; j < 3; j++)
            s[3 * b + j] = (heed_real)(1.0 / 3);
    }
    heed_tensor *content = heed_ntm_content(tape, heed_input(tape, HEED_SHAPE(B, 4, N), memory),
                                            heed_input(tape, HEED_SHAPE(B, 4), key),
                                            heed_input(tape, HEED_SHAPE(B, 1), beta));
    heed_tensor *w = heed_ntm_location(tape, content, heed_input(tape, HEED_SHAPE(B, N), previous),
                                       heed_input(tape, HEED_SHAPE(B, 1), g),
                                       heed_input(tape, HEED_SHAPE(B, 3), s),
                                       heed_input(tape, HEED_SHAPE(B, 1), gamma));
    assert_string_equal(heed_tape_error(tape)->text, "");
    for (int b = 0; b < 2 * B; b++) {
        const heed_real *row = heed_tensor_data(b < B ? content : w) + b % B * N;
        double sum = 0;
        for (int i = 0; i < N; i++) {
            assert_true(row[i] >= 0 && row[i] <= 1);
            sum += (double)row[i];
        }
        assert_true(fabs(sum - 1) <= 10 * CLOSE);
    }
}

/* Catches a cosine without its lengths: the long location would win over the one in the key's
 * direction.  By hand: cosines 1, 0.8 and -1 times beta = 2. */
static void content_goes_by_direction(void **state)
{
    (void)state;
    static const heed_real memory[] = {1, 80, -2, 0, 60, 0}, key[] = {3, 0}, beta = 2;
    heed_tensor *w = heed_ntm_content(tape, heed_input(tape, HEED_SHAPE(1, 2, 3), memory),
                                      row(2, key), row(1, &beta));
    double e[] = {exp(2), exp(1.6), exp(-2)}, sum = e[0] + e[1] + e[2];
    assert_close(w, (const double[]){e[0] / sum, e[1] / sum, e[2] / sum}, 3);
    /* Nothing written yet, or no key: all locations alike, and no NaN. */
    heed_tensor *empty = heed_ntm_content(tape, heed_input(tape, HEED_SHAPE(1, 2, 4), NULL),
                                          row(2, key), row(1, &beta));
    assert_close(empty, (const double[]){.25, .25, .25, .25}, 4);
    assert_close(heed_ntm_content(tape, heed_input(tape, HEED_SHAPE(1, 2, 3), memory), row(2, NULL),
                                  row(1, &beta)),
                 (const double[]){1 / 3., 1 / 3., 1 / 3.}, 3);
}

/* ---- memory ---- */

/* Catches heads that write one after the other: the second would erase what the first has added.
 * By hand, for one number in each of two locations. */
static void all_erase_then_all_add(void **state)
{
    (void)state;
    static const heed_real memory[] = {4, 8}, w[] = {1, 0, 1, (heed_real).5},
                           erase[] = {(heed_real).5, 1}, add[] = {3, 2};
    heed_tensor *m = heed_input(tape, HEED_SHAPE(1, 1, 2), memory);
    heed_tensor *after = heed_ntm_write(tape, m, row(4, w), row(2, erase), row(2, add));
    assert_close(after, (const double[]){4 * .5 * 0 + 3 + 2, 8 * 1 * .5 + 0 + 1}, 2);
    assert_close(heed_ntm_read(tape, row(4, w), after), (const double[]){5, 5 + .5 * 5}, 2);
}

/* Catches messages that do not say what is wrong. */
static void refuses(void **state)
{
    (void)state;
    heed_tensor *memory = heed_input(tape, HEED_SHAPE(2, 3, 4), NULL);
    heed_tensor *k = heed_input(tape, HEED_SHAPE(2, 4), NULL),
                *one = heed_input(tape, HEED_SHAPE(2, 1), NULL);
    assert_null(heed_ntm_content(tape, memory, k, one));
    assert_string_equal(heed_tape_error(tape)->text, "ntm_content: k is (2,4), expected (2,H*3)");
    heed_tape_reset(tape);
    heed_tensor *w = heed_input(tape, HEED_SHAPE(2, 4), NULL);
    one = heed_input(tape, HEED_SHAPE(2, 1), NULL);
    assert_null(heed_ntm_location(tape, w, w, one, heed_input(tape, HEED_SHAPE(2, 2), NULL), one));
    assert_string_equal(heed_tape_error(tape)->text,
                        "ntm_location: s is (2,2), expected (2,1*S), S odd");
    heed_tape_reset(tape);
    w = heed_input(tape, HEED_SHAPE(2, 4), NULL);
    assert_null(heed_ntm_read(tape, w, heed_input(tape, HEED_SHAPE(2, 3), NULL)));
    assert_string_equal(heed_tape_error(tape)->text, "ntm_read: memory is (2,3), expected (B,M,N)");
    heed_tape_reset(tape);
    memory = heed_input(tape, HEED_SHAPE(2, 3, 4), NULL);
    w = heed_input(tape, HEED_SHAPE(2, 4), NULL);
    assert_null(heed_ntm_write(tape, memory, w, heed_input(tape, HEED_SHAPE(2, 3), NULL), w));
    assert_string_equal(heed_tape_error(tape)->text, "ntm_write: add is (2,4), expected (2,3)");
}

/* ---- kernels ---- */

enum { WORDS = 3, MOST = 35, LD = MOST + 2, HEADS = 3 };

/* A memory under some heads, what each kernel adds to, and the same by plain loops in double. */
struct memory_case {
    int64_t n, heads;
    heed_real memory[WORDS * LD], w[HEADS * MOST], erase[HEADS * WORDS], add[HEADS * WORDS];
    heed_real dy[WORDS * MOST];
};

static void waves(heed_real *x, int64_t n, double start)
{
    for (int64_t i = 0; i < n; i++)
        x[i] = (heed_real)sin(1.7 * (double)i + start);
}

/* What all heads but `except` leave of element j of location i. */
static double left(const struct memory_case *c, int64_t j, int64_t i, int64_t except)
{
    double product = 1;
    for (int64_t h = 0; h < c->heads; h++)
        if (h != except)
            product *= 1 - (double)c->erase[h * WORDS + j] * (double)c->w[h * c->n + i];
    return product;
}

static void expect(const char *what, int64_t n, const heed_real *found, double wanted)
{
    if (!(fabs((double)*found - wanted) <= 4 * CLOSE * fmax(1, fabs(wanted))))
        fail_msg("%s of %d locations: %.9g, expected %.9g", what, (int)n, (double)*found, wanted);
}

static void check_write(const heed_kernels *k, const struct memory_case *c)
{
    heed_real y[WORDS * MOST];
    k->memory_write(y, c->memory, LD, c->w, c->erase, c->add, c->heads, WORDS, c->n);
    for (int64_t j = 0; j < WORDS; j++)
        for (int64_t i = 0; i < c->n; i++) {
            double wanted = (double)c->memory[j * LD + i] * left(c, j, i, -1);
            for (int64_t h = 0; h < c->heads; h++)
                wanted += (double)c->w[h * c->n + i] * (double)c->add[h * WORDS + j];
            expect("memory_write", c->n, &y[j * c->n + i], wanted);
        }
}

static void check_write_grad(const heed_kernels *k, const struct memory_case *c)
{
    heed_real dm[WORDS * LD], dw[HEADS * MOST], de[HEADS * WORDS], da[HEADS * WORDS];
    waves(dm, WORDS * LD, 3);
    waves(dw, HEADS * MOST, 4);
    waves(de, HEADS * WORDS, 5);
    waves(da, HEADS * WORDS, 6);
    k->memory_write_grad(dm, dw, de, da, c->dy, c->memory, LD, c->w, c->erase, c->add, c->heads,
                         WORDS, c->n);
    for (int64_t j = 0; j < WORDS; j++)
        for (int64_t i = 0; i < c->n; i++)
            expect("dM", c->n, &dm[j * LD + i],
                   sin(1.7 * (double)(j * LD + i) + 3) +
                       (double)c->dy[j * c->n + i] * left(c, j, i, -1));
    for (int64_t h = 0; h < c->heads; h++) {
        for (int64_t i = 0; i < c->n; i++) {
            double wanted = sin(1.7 * (double)(h * c->n + i) + 4);
            for (int64_t j = 0; j < WORDS; j++)
                wanted += (double)c->dy[j * c->n + i] *
                          ((double)c->add[h * WORDS + j] - (double)c->erase[h * WORDS + j] *
                                                               (double)c->memory[j * LD + i] *
                                                               left(c, j, i, h));
            expect("dw", c->n, &dw[h * c->n + i], wanted);
        }
        for (int64_t j = 0; j < WORDS; j++) {
            double erased = 0, added = 0;
            for (int64_t i = 0; i < c->n; i++) {
                double slope = (double)c->dy[j * c->n + i] * (double)c->w[h * c->n + i];
                added += slope;
                erased += slope * (double)c->memory[j * LD + i] * left(c, j, i, h);
            }
            expect("de", c->n, &de[h * WORDS + j], sin(1.7 * (double)(h * WORDS + j) + 5) - erased);
            expect("da", c->n, &da[h * WORDS + j], sin(1.7 * (double)(h * WORDS + j) + 6) + added);
        }
    }
}

static void check_match(const heed_kernels *k, const struct memory_case *c)
{
    heed_real squares[MOST], match[MOST], dm[WORDS * LD] = {0};
    k->memory_squares(squares, c->memory, LD, WORDS, c->n);
    k->memory_match(match, c->memory, LD, c->add, WORDS, c->n);
    k->memory_match_grad(dm, c->memory, LD, c->w, c->dy, c->add, WORDS, c->n);
    for (int64_t i = 0; i < c->n; i++) {
        double square = 0, product = 0;
        for (int64_t j = 0; j < WORDS; j++) {
            double x = (double)c->memory[j * LD + i];
            square += x * x;
            product += x * (double)c->add[j];
            expect("memory_match_grad", c->n, &dm[j * LD + i],
                   (double)c->w[i] * (double)c->add[j] + (double)c->dy[i] * x);
        }
        expect("memory_squares", c->n, &squares[i], square);
        expect("memory_match", c->n, &match[i], product);
    }
    assert_true(dm[c->n] == 0 && dm[LD + c->n] == 0); /* nothing behind the end */
}

/* Catches a wrong tail, a gap between rows that is taken for data, and heads that are mixed up, on
 * every instruction set. */
static void kernels(void **state)
{
    (void)state;
    const heed_kernels *k;
    struct memory_case c;
    waves(c.memory, WORDS * LD, 0.1);
    waves(c.w, HEADS * MOST, 0.5);
    waves(c.erase, HEADS * WORDS, 0.9);
    waves(c.add, HEADS * WORDS, 1.3);
    waves(c.dy, WORDS * MOST, 1.9);
    for (int set = 0; (k = heed__kernels_at(set)); set++)
        for (c.n = 1; c.n <= MOST; c.n++)
            for (c.heads = 1; c.heads <= HEADS; c.heads += 2) {
                check_match(k, &c);
                check_write(k, &c);
                check_write_grad(k, &c);
            }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_TAPE(shift_is_a_convolution),
        WITH_TAPE(head_wraps),
        WITH_TAPE(heads_interpolate_alone),
        WITH_TAPE(weights_sum_to_one),
        WITH_TAPE(content_goes_by_direction),
        WITH_TAPE(all_erase_then_all_add),
        WITH_TAPE(refuses),
        WITH_TAPE(kernels),
    };
    return cmocka_run_group_tests_name("ntm", tests, NULL, NULL);
}
