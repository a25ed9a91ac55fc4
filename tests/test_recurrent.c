/* LSTM and GRU: the gate kernels, one step, and whole stacks over packed segments. */
#include "layer_check.h"
#include "recurrent_golden.h"
#include <heed/nn.h>

#ifdef HEED_DOUBLE
#define NEAR 1e-12 /* the golden values have 15 digits */
#else
#define NEAR 1e-5 /* some tens of roundings of numbers around 1 */
#endif

static void fill(heed_real *out, int64_t n, double k, double scale)
{
    for (int64_t i = 0; i < n; i++)
        out[i] = (heed_real)(scale * sin(0.7 * (double)i + k));
}

/* The tensor k of recurrent_golden.h. */
static heed_tensor *variable(heed_tape *t, heed_shape shape, double k, double scale)
{
    heed_tensor *x = heed_variable(t, shape, NULL);
    assert_non_null(x);
    fill(x->data, heed_tensor_count(x), k, scale);
    return x;
}

static void assert_values(const char *what, const heed_real *found, const double *wanted, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        if (!(fabs((double)found[i] - wanted[i]) <= NEAR))
            fail_msg("%s: element %d is %.12g, expected %.12g", what, (int)i, (double)found[i],
                     wanted[i]);
}
#define ASSERT_GOLDEN(found, wanted)                                                               \
    assert_values(#wanted, found, wanted, (int64_t)(sizeof wanted / sizeof *wanted))

static void walk_back(heed_tape *t, heed_tensor **out, const double *k, int n, double scale)
{
    heed_real *seeds[16];
    for (int o = 0; o < n; o++) {
        int64_t count = heed_tensor_count(out[o]);
        seeds[o] = heed_arena_allocate(heed_tape_arena(t), (size_t)count * sizeof(heed_real));
        fill(seeds[o], count, k[o], scale);
    }
    assert_int_equal(heed__backward_from(t, out, (const heed_real *const *)seeds, n), HEED_OK);
}

/* ---- kernels ---- */

static double sigma(double x)
{
    return 1 / (1 + exp(-x));
}

enum { MOST = 37 };
struct gate_buffers {
    heed_real gates[5 * MOST], x[4 * MOST], h_prev[MOST], c_prev[MOST], bias[3 * MOST];
    heed_real h[MOST], c[MOST], dh[MOST], dc[MOST], slope[5 * MOST];
};

static void fill_buffers(struct gate_buffers *b)
{
    fill(b->gates, 5 * MOST, 1, 2);
    fill(b->x, 4 * MOST, 2, 3);
    fill(b->h_prev, MOST, 3, 1);
    fill(b->c_prev, MOST, 4, 2);
    fill(b->bias, 3 * MOST, 5, 1);
    fill(b->dh, MOST, 6, 1);
    fill(b->dc, MOST, 7, 1);
    memset(b->slope, 0, sizeof b->slope);
}

/* Catches: a tail handled apart, a swapped gate, in any instruction set. */
static void lstm_kernel_is_the_formula(void **state)
{
    (void)state;
    const heed_kernels *k;
    for (int set = 0; (k = heed__kernels_at(set)); set++)
        for (int64_t d = 1; d <= MOST; d++) {
            struct gate_buffers b, in;
            fill_buffers(&b);
            in = b;
            k->lstm_cell(b.h, b.c, b.gates, b.x, b.c_prev, d);
            k->lstm_cell_grad(b.slope, b.dh, b.dc, b.gates, b.c_prev, d);
            for (int64_t j = 0; j < d; j++) {
                double a[4];
                for (int g = 0; g < 4; g++)
                    a[g] = (double)in.gates[g * d + j] + (double)in.x[g * d + j];
                double i = sigma(a[0]), f = sigma(a[1]), g = tanh(a[2]), o = sigma(a[3]);
                double cell = f * (double)in.c_prev[j] + i * g, t = tanh(cell);
                assert_values("c", &b.c[j], &cell, 1);
                assert_values("h", &b.h[j], &(double){o * t}, 1);
                double dcell = (double)in.dc[j] + (double)in.dh[j] * o * (1 - t * t);
                double wanted[5] = {
                    dcell * g * i * (1 - i), dcell * (double)in.c_prev[j] * f * (1 - f),
                    dcell * i * (1 - g * g), (double)in.dh[j] * t * o * (1 - o), dcell * f};
                for (int w = 0; w < 5; w++)
                    assert_values("slope", &b.slope[w * d + j], &wanted[w], 1);
            }
            assert_true(b.h[d - 1] != 0 && (d == MOST || b.x[4 * d] == in.x[4 * d]));
        }
}

/* Catches: the same for the four GRUs, with and without bias. */
static void gru_kernels_are_the_formula(void **state)
{
    (void)state;
    const heed_kernels *k;
    for (int set = 0; (k = heed__kernels_at(set)); set++)
        for (int kind = 0; kind < 8; kind++)
            for (int64_t d = 1; d <= MOST; d += 3) {
                bool takes = kind & 1, after = kind & 2, biased = kind & 4;
                struct gate_buffers b, in;
                fill_buffers(&b);
                in = b;
                const heed_real *bias = biased ? b.bias : NULL;
                k->gru_reset(b.gates, b.x, b.h_prev, bias, after, d);
                /* the product (r h) U_n stays what it was filled with */
                k->gru_new(b.h, b.gates, b.x, b.h_prev, bias, after, takes, d);
                k->gru_new_grad(b.slope, b.dh, b.gates, b.h_prev, after, takes, d);
                heed_real dq_given[MOST];
                if (!after) {
                    fill(dq_given, d, 8, 1);
                    memcpy(b.slope + 2 * d, dq_given, (size_t)d * sizeof *dq_given);
                    k->gru_reset_grad(b.slope, b.gates, b.h_prev, d);
                }
                for (int64_t j = 0; j < d; j++) {
                    double a[3], x[3], hp = (double)in.h_prev[j], up = (double)in.dh[j];
                    for (int g = 0; g < 3; g++) {
                        a[g] =
                            (double)in.gates[g * d + j] + (biased ? (double)in.bias[g * d + j] : 0);
                        x[g] = (double)in.x[g * d + j];
                    }
                    double r = sigma(a[0] + x[0]), z = sigma(a[1] + x[1]);
                    double n = tanh(x[2] + (after ? r * a[2] : a[2]));
                    double keep = takes ? 1 - z : z;
                    double dn = up * (1 - keep) * (1 - n * n);
                    double dz = up * (hp - n) * z * (1 - z) * (takes ? -1 : 1);
                    double dq = after ? dn * r : (double)dq_given[j];
                    double dr = (after ? dn * a[2] : dq * hp) * r * (1 - r);
                    double wanted[5] = {dr, dz, dq, dn, up * keep + (after ? 0 : dq * r)};
                    assert_values("h", &b.h[j], &(double){keep * hp + (1 - keep) * n}, 1);
                    assert_values("q", &b.gates[3 * d + j], &(double){after ? a[2] : r * hp}, 1);
                    for (int w = 0; w < 5; w++)
                        assert_values("slope", &b.slope[w * d + j], &wanted[w], 1);
                }
            }
}

/* Catches: the same for the SSRU, its first step, its bias, and gradients that are assigned. */
static void ssru_kernel_is_the_formula(void **state)
{
    (void)state;
    const heed_kernels *k;
    for (int set = 0; (k = heed__kernels_at(set)); set++)
        for (int64_t d = 1; d <= MOST; d++)
            for (int first = 0; first < 2; first++) {
                struct gate_buffers b, in;
                fill_buffers(&b);
                in = b;
                heed_real *dx = b.slope, *df = b.slope + MOST;
                const heed_real *before = first ? NULL : b.c_prev, *f = b.gates;
                k->ssru_cell(b.h, b.c, b.x, f, b.bias, before, d);
                for (int64_t j = 0; j < d; j++)
                    b.gates[j] += b.bias[j];
                k->ssru_cell_grad(dx, df, b.dc, b.dh, b.x, f, b.c, before, d);
                k->ssru_cell_grad(dx, NULL, in.slope, b.dh, b.x, f, b.c, before, d);
                for (int64_t j = 0; j < d; j++) {
                    const double s = sigma((double)in.gates[j] + (double)in.bias[j]);
                    const double c = first ? 0 : (double)in.c_prev[j], x = (double)in.x[j];
                    const double cell = s * c + (1 - s) * x;
                    const double up = cell > 0 ? (double)in.dh[j] : 0, all = (double)in.dc[j] + up;
                    assert_values("c", &b.c[j], &cell, 1);
                    assert_values("h", &b.h[j], &(double){fmax(0, cell)}, 1);
                    assert_values("dx twice", &dx[j], &(double){(all + up) * (1 - s)}, 1);
                    assert_values("df", &df[j], &(double){all * (c - x) * s * (1 - s)}, 1);
                    assert_values("dc", &b.dc[j], &(double){all * s}, 1);
                }
            }
}

/* ---- one step ---- */

/* Catches: another order of the gates than i f g o, any error shared by forward and backward. */
static void lstm_step_is_torchs(void **state)
{
    (void)state;
    heed_tape *t = heed_tape_new(NULL, NULL);
    heed_tensor *x = variable(t, HEED_SHAPE(2, 12), 1, 0.5), *u;
    heed_lstm_state before = {variable(t, HEED_SHAPE(2, 3), 2, 0.5),
                              variable(t, HEED_SHAPE(2, 3), 3, 0.5)};
    u = variable(t, HEED_SHAPE(3, 12), 4, 0.5);
    heed_lstm_state s = heed_lstm_step(t, x, before, u);
    assert_string_equal(heed_tape_error(t)->text, "");
    ASSERT_GOLDEN(s.h->data, lstm_h);
    ASSERT_GOLDEN(s.c->data, lstm_c);
    walk_back(t, (heed_tensor *[]){s.h, s.c}, (double[]){5, 6}, 2, 0.5);
    ASSERT_GOLDEN(x->grad, lstm_dx);
    ASSERT_GOLDEN(before.h->grad, lstm_dh);
    ASSERT_GOLDEN(before.c->grad, lstm_dc);
    ASSERT_GOLDEN(u->grad, lstm_du);
    heed_tape_free(t);
}

/* Catches: z swapped, the reset on the wrong side of the product, the bias outside of it. */
static void gru_steps_are_torchs_and_bahdanaus(void **state)
{
    (void)state;
    heed_tape *t = heed_tape_new(NULL, NULL);
    for (int after = 0; after < 2; after++) {
        heed_tape_reset(t);
        heed_tensor *x = variable(t, HEED_SHAPE(2, 9), 1, 0.5);
        heed_tensor *h = variable(t, HEED_SHAPE(2, 3), 2, 0.5);
        heed_tensor *u = variable(t, HEED_SHAPE(3, 9), 4, 0.5);
        heed_tensor *b = after ? variable(t, HEED_SHAPE(9), 7, 0.5) : NULL;
        heed_tensor *y =
            heed_gru_step(t, x, h, u, b, after ? HEED_GRU_RESET_AFTER : HEED_GRU_Z_TAKES);
        assert_string_equal(heed_tape_error(t)->text, "");
        walk_back(t, &y, (double[]){5}, 1, 0.5);
        if (after) {
            ASSERT_GOLDEN(y->data, gru_after_h);
            ASSERT_GOLDEN(x->grad, gru_after_dx);
            ASSERT_GOLDEN(h->grad, gru_after_dh);
            ASSERT_GOLDEN(u->grad, gru_after_du);
            ASSERT_GOLDEN(b->grad, gru_after_db);
        } else {
            ASSERT_GOLDEN(y->data, gru_before_h);
            ASSERT_GOLDEN(x->grad, gru_before_dx);
            ASSERT_GOLDEN(h->grad, gru_before_dh);
            ASSERT_GOLDEN(u->grad, gru_before_du);
        }
    }
    heed_tape_free(t);
}

/* Catches: a z that keeps where it should take.  sigma(-a) = 1 - sigma(a): with the sign of z's
 * inputs turned the two conventions are one; with the same inputs they must differ. */
static void swapped_z_is_caught(void **state)
{
    (void)state;
    heed_tape *t = heed_tape_new(NULL, NULL);
    for (int after = 0; after <= HEED_GRU_RESET_AFTER; after += HEED_GRU_RESET_AFTER) {
        heed_tape_reset(t);
        heed_tensor *x = variable(t, HEED_SHAPE(2, 9), 1, 1), *minus_x;
        heed_tensor *u = variable(t, HEED_SHAPE(3, 9), 4, 1), *minus_u;
        heed_tensor *h = variable(t, HEED_SHAPE(2, 3), 2, 1);
        minus_x = heed_variable(t, x->shape, x->data);
        minus_u = heed_variable(t, u->shape, u->data);
        for (int r = 0; r < 3; r++)
            for (int j = 3; j < 6; j++) {
                if (r < 2)
                    minus_x->data[r * 9 + j] *= -1;
                minus_u->data[r * 9 + j] *= -1;
            }
        heed_tensor *keeps = heed_gru_step(t, x, h, u, NULL, HEED_GRU_Z_KEEPS + after);
        heed_tensor *takes = heed_gru_step(t, x, h, u, NULL, HEED_GRU_Z_TAKES + after);
        heed_tensor *turned = heed_gru_step(t, minus_x, h, minus_u, NULL, HEED_GRU_Z_TAKES + after);
        assert_string_equal(heed_tape_error(t)->text, "");
        for (int i = 0; i < 6; i++) {
            assert_values("turned", &turned->data[i], &(double){(double)keeps->data[i]}, 1);
            assert_true(fabs((double)keeps->data[i] - (double)takes->data[i]) > 1e-3);
        }
    }
    heed_tape_free(t);
}

/* Catches: a wrong shape that is read anyway. */
static void wrong_shapes_are_named(void **state)
{
    (void)state;
    heed_tape *t = heed_tape_new(NULL, NULL);
#define ZEROS(...) heed_input(t, HEED_SHAPE(__VA_ARGS__), NULL)
#define EXPECT(call, message)                                                                      \
    do {                                                                                           \
        heed_tape_reset(t);                                                                        \
        (void)(call);                                                                              \
        assert_string_equal(heed_tape_error(t)->text, message);                                    \
    } while (0)
    EXPECT(
        heed_lstm_step(t, ZEROS(2, 12), (heed_lstm_state){ZEROS(2, 3), ZEROS(2, 3)}, ZEROS(3, 11)),
        "lstm_step: u is (3,11), expected (D,4*D)");
    EXPECT(
        heed_lstm_step(t, ZEROS(2, 9), (heed_lstm_state){ZEROS(2, 3), ZEROS(2, 3)}, ZEROS(3, 12)),
        "lstm_step: x is (2,9), expected (B,12)");
    EXPECT(
        heed_lstm_step(t, ZEROS(2, 12), (heed_lstm_state){ZEROS(1, 3), ZEROS(2, 3)}, ZEROS(3, 12)),
        "lstm_step: h_prev is (1,3), expected (2,3) or more rows");
    EXPECT(heed_gru_step(t, ZEROS(2, 9), ZEROS(2, 3), ZEROS(3, 9), ZEROS(8), 0),
           "gru_step: bias is (8), expected (9)");
    EXPECT(heed_gru_step(t, ZEROS(2, 9), ZEROS(2, 3), ZEROS(3, 9), NULL, 4),
           "gru_step: kind is 4, expected 0 to 3");
#undef EXPECT
#undef ZEROS
    heed_tape_free(t);
}

/* ---- stacks ---- */

static heed_params *build(heed_rnn_layer *l, const heed_rnn_options *o)
{
    heed_params *p = heed_params_new(NULL, NULL);
    heed_rnn_build(l, heed_scope_enter(heed_params_scope(p), "rnn"), o);
    heed_error err = {0};
    heed_params_finish(p, 23, &err);
    assert_string_equal(err.text, "");
    return p;
}

enum { N = 10, B = 4, IN = 3, UNITS = 2 };
static const int64_t four[B] = {3, 1, 4, 2};

static void golden_parameters(heed_rnn_layer *l)
{
    double k = 10;
    for (int layer = 0; layer < 2; layer++)
        for (int way = 0; way < 2; way++, k += 4) {
            heed_rnn_cell *c = &l->cell[layer][way];
            heed_tensor *all[] = {c->input.weight, c->input.bias, c->recurrent, c->bias};
            for (int i = 0; i < 4; i++)
                if (all[i])
                    fill(all[i]->data, heed_tensor_count(all[i]), k + i, 0.5);
        }
}

/* (layer and direction, B, D) with one filling, as torch lays it out. */
static void golden_start(heed_tape *t, heed_rnn_state *start, bool lstm)
{
    for (int i = 0; i < 4; i++) {
        heed_lstm_state *s = &start->at[i / 2][i % 2];
        s->h = variable(t, HEED_SHAPE(B, UNITS), 2 + 0.7 * B * UNITS * i, 0.5);
        s->c = lstm ? variable(t, HEED_SHAPE(B, UNITS), 3 + 0.7 * B * UNITS * i, 0.5) : NULL;
    }
}

/* Catches: a state taken after the wrong step, a backward direction that starts in the wrong place,
 * layers or directions crossed, any gradient that does not arrive. */
static void stack_is_torchs(heed_cell cell)
{
    bool lstm = cell == HEED_CELL_LSTM;
    heed_rnn_options o = {.cell = cell,
                          .gru_kind = HEED_GRU_RESET_AFTER,
                          .layers = 2,
                          .bidirectional = true,
                          .in = IN,
                          .d = UNITS};
    heed_rnn_layer l;
    heed_params *p = build(&l, &o);
    golden_parameters(&l);
    heed_tape *t = heed_tape_new(NULL, NULL);
    const heed_segments *s = heed_segments_new(heed_tape_arena(t), B, four);
    heed_tensor *x = variable(t, HEED_SHAPE(N, IN), 1, 1);
    heed_rnn_state start = {0}, end;
    golden_start(t, &start, lstm);
    heed_tensor *out[9];
    double k[9] = {5};
    out[0] = heed_rnn_apply(t, &l, x, s, &start, &end);
    assert_string_equal(heed_tape_error(t)->text, "");
    assert_int_equal(heed_tensor_cols(out[0]), 2 * UNITS);
    int n = 1;
    for (int i = 0; i < 4; i++) {
        const heed_lstm_state *at = &end.at[i / 2][i % 2];
        int from = i * B * UNITS;
        assert_values("h", at->h->data, (lstm ? lstm_stack_h : gru_stack_h) + from, B * UNITS);
        out[n] = at->h;
        k[n++] = 6 + 0.7 * from;
        assert_int_equal(at->c != NULL, lstm);
        if (lstm) {
            assert_values("c", at->c->data, lstm_stack_c + from, B * UNITS);
            out[n] = at->c;
            k[n++] = 8 + 0.7 * from;
        }
    }
    assert_values("y", out[0]->data, lstm ? lstm_stack_y : gru_stack_y, N * 2 * UNITS);

    walk_back(t, out, k, n, 1);
    assert_values("dx", x->grad, lstm ? lstm_stack_dx : gru_stack_dx, N * IN);
    const double *dp = lstm ? lstm_stack_dp : gru_stack_dp;
    for (int i = 0; i < 4; i++) {
        const heed_rnn_cell *c = &l.cell[i / 2][i % 2];
        const heed_tensor *all[] = {c->input.weight, c->input.bias, c->recurrent, c->bias};
        for (int j = 0; j < 4; j++)
            if (all[j]) {
                assert_values(all[j]->name, all[j]->grad, dp, heed_tensor_count(all[j]));
                dp += heed_tensor_count(all[j]);
            }
        int from = i * B * UNITS;
        assert_values("dh0", start.at[i / 2][i % 2].h->grad,
                      (lstm ? lstm_stack_dh0 : gru_stack_dh0) + from, B * UNITS);
        if (lstm)
            assert_values("dc0", start.at[i / 2][i % 2].c->grad, lstm_stack_dc0 + from, B * UNITS);
    }
    int64_t dp_count = lstm ? (int64_t)(sizeof lstm_stack_dp / sizeof *dp)
                            : (int64_t)(sizeof gru_stack_dp / sizeof *dp);
    assert_int_equal(dp - (lstm ? lstm_stack_dp : gru_stack_dp), dp_count);
    heed_tape_free(t);
    heed_params_free(p);
}

static void lstm_stack_is_torchs(void **state)
{
    (void)state;
    stack_is_torchs(HEED_CELL_LSTM);
}

static void gru_stack_is_torchs(void **state)
{
    (void)state;
    stack_is_torchs(HEED_CELL_GRU);
}

/* Catches: one sentence that changes another, a state at the batch's last step instead of the
 * sentence's own, an empty sentence whose state is not its start. */
static void packed_is_each_sentence_alone(void **state)
{
    (void)state;
    enum { COUNT = 5, ROWS = 13, WIDE = 5 };
    static const int64_t lengths[COUNT] = {2, 5, 0, 5, 1};
    for (int cell = 0; cell < 2; cell++) {
        heed_rnn_options o = {.cell = cell ? HEED_CELL_GRU : HEED_CELL_LSTM,
                              .layers = 2,
                              .bidirectional = true,
                              .in = IN,
                              .d = WIDE};
        heed_rnn_layer l;
        heed_params *p = build(&l, &o);
        heed_tape *t = heed_tape_new(NULL, NULL);
        const heed_segments *s = heed_segments_new(heed_tape_arena(t), COUNT, lengths);
        heed_tensor *x = variable(t, HEED_SHAPE(ROWS, IN), 1, 2);
        heed_rnn_state start = {0}, end, alone;
        heed_tensor *h0 = variable(t, HEED_SHAPE(COUNT, WIDE), 9, 1);
        heed_tensor *c0 = variable(t, HEED_SHAPE(COUNT, WIDE), 11, 1);
        start.at[0][0] = start.at[1][1] = (heed_lstm_state){h0, cell ? NULL : c0};
        heed_tensor *y = heed_rnn_apply(t, &l, x, s, &start, &end);
        assert_string_equal(heed_tape_error(t)->text, "");
        for (int64_t b = 0; b < COUNT; b++) {
            if (lengths[b] == 0) {
                for (int j = 0; j < WIDE; j++) {
                    assert_true(heed__row(end.at[0][0].h, b)[j] == heed__row(h0, b)[j]);
                    assert_true(heed__row(end.at[0][1].h, b)[j] == 0);
                    assert_true(cell || heed__row(end.at[1][1].c, b)[j] == heed__row(c0, b)[j]);
                }
                continue;
            }
            const heed_segments *one = heed_segments_new(heed_tape_arena(t), 1, &lengths[b]);
            heed_rnn_state own = {0};
            own.at[0][0].h = own.at[1][1].h = heed_slice_rows(t, h0, b, b + 1);
            if (!cell)
                own.at[0][0].c = own.at[1][1].c = heed_slice_rows(t, c0, b, b + 1);
            heed_tensor *rows = heed_slice_rows(t, x, s->offset[b], s->offset[b + 1]);
            heed_tensor *z = heed_rnn_apply(t, &l, rows, one, &own, &alone);
            assert_string_equal(heed_tape_error(t)->text, "");
            for (int64_t n = 0; n < lengths[b] * 2 * WIDE; n++)
                assert_values("y", y->data + s->offset[b] * 2 * WIDE + n,
                              &(double){(double)z->data[n]}, 1);
            for (int i = 0; i < 4; i++)
                for (int j = 0; j < WIDE; j++)
                    assert_values("end", heed__row(end.at[i / 2][i % 2].h, b) + j,
                                  &(double){(double)alone.at[i / 2][i % 2].h->data[j]}, 1);
        }
        heed_tape_free(t);
        heed_params_free(p);
    }
}

struct stack {
    heed_rnn_layer l;
    heed_tensor *x, *h0;
};

static int run_stack(heed_tape *t, void *context, heed_tensor **out)
{
    struct stack *m = context;
    static const int64_t lengths[3] = {2, 0, 3};
    const heed_segments *s = heed_segments_new(heed_tape_arena(t), 3, lengths);
    heed_rnn_state start = {0}, end;
    start.at[0][0].h = m->h0;
    out[0] = heed_rnn_apply(t, &m->l, m->x, s, &start, &end);
    out[1] = end.at[0][0].h;
    out[2] = m->l.options.cell == HEED_CELL_LSTM ? end.at[1][1].c : end.at[1][1].h;
    return 3;
}

/* Catches: a gradient lost between steps, layers or directions, for both cells, each GRU, with
 * dropout between the layers and an empty sentence. */
static void stack_gradients(void **state)
{
    (void)state;
    for (int kind = -1; kind < 4; kind++) {
        heed_params *p = heed_params_new(NULL, NULL);
        heed_scope s = heed_params_scope(p);
        heed_init normal = {HEED_INIT_NORMAL, 1};
        struct stack m = {.x = heed_param(s, "x", HEED_SHAPE(5, 2), normal),
                          .h0 = heed_param(s, "h0", HEED_SHAPE(3, 3), normal)};
        heed_rnn_options o = {.cell = kind < 0 ? HEED_CELL_LSTM : HEED_CELL_GRU,
                              .gru_kind = kind < 0 ? 0 : kind,
                              .layers = 2,
                              .bidirectional = true,
                              .in = 2,
                              .d = 3,
                              .dropout = kind % 2 ? 0.3 : 0};
        heed_rnn_build(&m.l, heed_scope_enter(s, "rnn"), &o);
        assert_int_equal(heed_params_finish(p, 1, NULL), HEED_OK);
        layer_check(p, run_stack, &m);
        heed_params_free(p);
    }
}

/* Catches: names or starts that change what a saved model means. */
static void names_and_starts(void **state)
{
    (void)state;
    heed_rnn_layer l;
    heed_params *p =
        build(&l, &(heed_rnn_options){
                      .cell = HEED_CELL_LSTM, .layers = 2, .bidirectional = true, .in = 3, .d = 4});
    static const char *const names[] = {"rnn.0.forward.input.weight", "rnn.0.forward.input.bias",
                                        "rnn.0.forward.recurrent", "rnn.0.backward.input.weight"};
    for (int i = 0; i < 4; i++)
        assert_string_equal(heed_params_entry(p, i).name, names[i]);
    assert_non_null(heed_params_find(p, "rnn.1.backward.recurrent"));
    assert_int_equal(heed_tensor_rows(l.cell[1][0].input.weight), 8);
    for (int j = 0; j < 16; j++)
        assert_true(l.cell[0][0].input.bias->data[j] == (j >= 4 && j < 8 ? 1 : 0));
    heed_params_free(p);
}

/* Catches: a crash on what a caller may get wrong. */
static void wrong_use_is_refused(void **state)
{
    (void)state;
    heed_rnn_layer l;
    heed_params *p = heed_params_new(NULL, NULL);
    heed_rnn_build(&l, heed_params_scope(p), &(heed_rnn_options){.layers = 17, .in = 3, .d = 4});
    assert_string_equal(heed_params_error(p)->text, "rnn '': 17 layers, expected 1 to 16");
    heed_params_free(p);

    p = build(&l, &(heed_rnn_options){.layers = 1, .in = IN, .d = 4});
    heed_tape *t = heed_tape_new(NULL, NULL);
    const heed_segments *s = heed_segments_new(heed_tape_arena(t), B, four);
    assert_null(heed_rnn_apply(t, &l, heed_input(t, HEED_SHAPE(9, IN), NULL), s, NULL, NULL));
    assert_string_equal(heed_tape_error(t)->text, "rnn: x has 9 rows, the segments 10");
    heed_tape_reset(t);
    s = heed_segments_new(heed_tape_arena(t), B, four);
    heed_rnn_state start = {0}, end;
    start.at[0][0].h = heed_input(t, HEED_SHAPE(B, 3), NULL);
    assert_null(heed_rnn_apply(t, &l, heed_input(t, HEED_SHAPE(N, IN), NULL), s, &start, &end));
    assert_string_equal(heed_tape_error(t)->text,
                        "lstm_step: h_prev is (4,3), expected (4,4) or more rows");
    assert_null(end.at[0][0].h);
    heed_tape_reset(t);
    s = heed_segments_new(heed_tape_arena(t), 2, (int64_t[]){0, 0});
    assert_null(heed_rnn_apply(t, &l, heed_input(t, HEED_SHAPE(1, IN), NULL), s, NULL, NULL));
    assert_string_equal(heed_tape_error(t)->text, "rnn: no segments, or none with a row");
    heed_tape_free(t);
    heed_params_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lstm_kernel_is_the_formula),
        cmocka_unit_test(gru_kernels_are_the_formula),
        cmocka_unit_test(ssru_kernel_is_the_formula),
        cmocka_unit_test(lstm_step_is_torchs),
        cmocka_unit_test(gru_steps_are_torchs_and_bahdanaus),
        cmocka_unit_test(swapped_z_is_caught),
        cmocka_unit_test(wrong_shapes_are_named),
        cmocka_unit_test(lstm_stack_is_torchs),
        cmocka_unit_test(gru_stack_is_torchs),
        cmocka_unit_test(packed_is_each_sentence_alone),
        cmocka_unit_test(stack_gradients),
        cmocka_unit_test(names_and_starts),
        cmocka_unit_test(wrong_use_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
