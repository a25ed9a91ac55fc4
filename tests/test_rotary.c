/* Rotary positions: the kernels of every instruction set against complex numbers, what makes them
 * positions, and what the operator and the layer refuse. */
#include "kernel/kernels.h"
#include <complex.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <heed/attention.h>

#ifdef HEED_DOUBLE
#define CLOSE 1e-13
#else
#define CLOSE 1e-6
#endif
#include "kernel_check.h"

/* Pair i of head h as a complex number. */
static double complex pair_of(const heed_real *x, int64_t h, int64_t i, int64_t d, bool neighbours)
{
    const heed_real *head = x + h * d;
    return neighbours ? (double)head[2 * i] + (double)head[2 * i + 1] * I
                      : (double)head[i] + (double)head[i + d / 2] * I;
}

static void check_turn(const heed_kernels *k, int64_t heads, int64_t d, bool neighbours, bool back)
{
    enum { POSITION = 37, MOST = 512 };
    heed_real x[MOST], y[MOST], before[MOST], angles[MOST] = {0};
    fill(x, heads * d, 1);
    fill(before, heads * d, 2);
    memcpy(y, back ? before : x, sizeof y); /* forward: in place */
    heed__rotary_angles(angles, POSITION, 1, d, 100);
    (back ? k->turn_heads_back : k->turn_heads)(y, back ? x : y, angles, heads, d, neighbours);
    for (int64_t h = 0; h < heads; h++)
        for (int64_t i = 0; i < d / 2; i++) {
            const double angle = POSITION * pow(100, -2.0 * (double)i / (double)d);
            double complex wanted =
                pair_of(x, h, i, d, neighbours) * cexp((back ? -angle : angle) * I);
            if (back)
                wanted += pair_of(before, h, i, d, neighbours);
            const double complex found = pair_of(y, h, i, d, neighbours);
            expect("real part", i, creal(found), creal(wanted));
            expect("imaginary part", i, cimag(found), cimag(wanted));
        }
}

/* Catches: a pair, sign, frequency or tail of a register that is wrong in any instruction set; a
 * turn in place that reads what it has written. */
static void kernels_turn_complex_numbers(void **state)
{
    static const int64_t widths[] = {2, 6, 8, 16, 22, 64, 128};
    (void)state;
    for (int i = 0; heed__kernels_at(i); i++)
        for (size_t w = 0; w < sizeof widths / sizeof *widths; w++)
            for (int how = 0; how < 4; how++)
                check_turn(heed__kernels_at(i), 3, widths[w], how & 1, how & 2);
}

/* Catches: positions that do not count from 0 in each segment; products that depend on more than
 * the distance. */
static void products_depend_on_the_distance(void **state)
{
    enum { D = 8, N = 9 };
    static const int64_t lengths[] = {N, N - 4};
    (void)state;
    heed_tape *t = heed_tape_new(&(heed_tape_options){.threads = 2}, NULL);
    heed_real q[D], k[D], x[2][(2 * N - 4) * D];
    fill(q, D, 1);
    fill(k, D, 2);
    for (int i = 0; i < 2 * N - 4; i++) { /* the same query and the same key everywhere */
        memcpy(x[0] + i * D, q, sizeof q);
        memcpy(x[1] + i * D, k, sizeof k);
    }
    const heed_segments *s = heed_segments_new(heed_tape_arena(t), 2, lengths);
    const heed_real *turned[2];
    for (int side = 0; side < 2; side++)
        turned[side] =
            heed_tensor_data(heed_rotary(t, heed_input(t, HEED_SHAPE(2 * N - 4, D), x[side]), s,
                                         &(heed_rotary_options){.heads = 1, .base = 30}));
    assert_memory_equal(turned[0] + N * D, turned[0], (N - 4) * D * sizeof *turned[0]);
    for (int i = 3; i < N; i++) {
        double here = 0, there = 0;
        for (int j = 0; j < D; j++) {
            here += (double)turned[0][i * D + j] * (double)turned[1][(i - 3) * D + j];
            there += (double)turned[0][3 * D + j] * (double)turned[1][j];
        }
        expect("the product", i, here, there);
    }
    heed_tape_free(t);
}

static void layer_refused(const heed_mha_options *o, const char *text)
{
    heed_params *p = heed_params_new(NULL, NULL);
    heed_mha_layer l;
    heed_mha_build(&l, heed_params_scope(p), o);
    assert_string_equal(heed_params_error(p)->text, text);
    heed_params_free(p);
}

/* Catches: an odd element that nothing turns; keys of a memory that have no positions here. */
static void what_cannot_turn_is_refused(void **state)
{
    static const int64_t length = 1;
    (void)state;
    heed_tape *t = heed_tape_new(NULL, NULL);
    heed_real x[9] = {0};
    const heed_segments *s = heed_segments_new(heed_tape_arena(t), 1, &length);
    assert_null(
        heed_rotary(t, heed_input(t, HEED_SHAPE(1, 9), x), s, &(heed_rotary_options){.heads = 3}));
    assert_string_equal(heed_tape_error(t)->text,
                        "rotary: x is (1,9), expected 3 heads of even width");
    heed_tape_free(t);
    layer_refused(&(heed_mha_options){.d = 9, .heads = 3, .positions = HEED_POSITIONS_ROTARY},
                  "mha: rotary positions need an even d_k");
    layer_refused(
        &(heed_mha_options){
            .d = 8, .heads = 2, .cross = true, .positions = HEED_POSITIONS_ROTARY_NEIGHBOURS},
        "mha: rotary positions need self-attention: cross is set");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kernels_turn_complex_numbers),
        cmocka_unit_test(products_depend_on_the_distance),
        cmocka_unit_test(what_cannot_turn_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
