/* Sublayers of long sequences with projections of their own, Longformer's and Poolingformer's:
 * against loops in double; gradients; and pooling by attention, of sets. */
#include "attention_table.h"
#include "layer_check.h"
#include <heed/stack.h>

enum { D = 8, HEADS = 2, DH = 4, ROWS = 17, B = 4 };
static const int64_t lengths[B] = {9, 0, 1, 7};

struct setting {
    heed_params *p;
    heed_arena *arena;
    heed_stack stack;
    heed_tensor *x;
};

/* One sublayer, bare: what stands around it is the stack's. */
static struct setting setting_new(const char *pattern, const char *memory, bool causal, int seeds)
{
    struct setting s = {.p = heed_params_new(NULL, NULL), .arena = heed_arena_new(NULL, NULL)};
    heed_scope root = heed_params_scope(s.p);
    heed_error err = {0};
    const heed_sublayer_options o = {.mha = {.heads = HEADS,
                                             .causal = causal,
                                             .pattern = form_slot(HEED_SLOT_PATTERN, pattern),
                                             .memory = form_slot(HEED_SLOT_MEMORY, memory)},
                                     .ffn = {.f = 6, .activation = HEED_TANH, .bias = true},
                                     .around = {.place = HEED_NORM_NONE, .eps = 1e-5},
                                     .seeds = seeds};
    s.x = heed_param(root, "x", HEED_SHAPE(ROWS, D), (heed_init){HEED_INIT_NORMAL, 1});
    heed_stack_init(&s.stack, s.arena, D);
    heed_stack_append(&s.stack, root,
                      seeds ? heed_sublayer_class_find("pma") : heed_sublayer_class_of(&o.mha), &o);
    if (heed_params_finish(s.p, 7, &err))
        fail_msg("%s", err.text);
    return s;
}

static void setting_free(struct setting *s)
{
    heed_params_free(s->p);
    heed_arena_free(s->arena);
}

static heed_tensor *forward(heed_tape *t, const struct setting *s, const int64_t *length, int count)
{
    const heed_segments *rows = heed_segments_new(heed_tape_arena(t), count, length);
    heed_flow flow = {.x = heed_slice_rows(t, s->x, 0, rows->rows), .rows = rows};
    heed_tensor *y = heed_stack_apply(t, &s->stack, &flow);
    if (!y)
        fail_msg("%s", heed_tape_error(t)->text);
    return y;
}

static int run_stack(heed_tape *t, void *context, heed_tensor **out)
{
    out[0] = forward(t, context, lengths, B);
    return 1;
}

static const struct {
    const char *pattern, *memory;
    bool causal;
    int seeds;
} settings[] = {
    {"longformer:3:2", NULL, false, 0},    {"longformer:4:2", NULL, true, 0},
    {NULL, "poolingformer:3:2", false, 0}, {NULL, "poolingformer:2:3", true, 0},
    {NULL, "poolingformer:4:1", false, 0}, {NULL, NULL, false, 2},
};
#define SETTINGS ((int)(sizeof settings / sizeof *settings))

static struct setting setting_of(int i)
{
    return setting_new(settings[i].pattern, settings[i].memory, settings[i].causal,
                       settings[i].seeds);
}

/* ---- loops ---- */

/* row (D) of a product with columns first to first + DH of a parameter */
static void project(const heed_params *p, const char *name, const double *x, int64_t first,
                    double *to)
{
    const heed_tensor *w = heed_params_find(p, name);
    assert_non_null(w);
    for (int64_t o = 0; o < DH; o++) {
        to[o] = 0;
        for (int64_t i = 0; i < D; i++)
            to[o] += x[i] * (double)heed__row(w, i)[first + o];
    }
}

/* Adds softmax(q k) v over the keys that are seen, to y. */
static void mix(const double *q, double k[][DH], double v[][DH], const bool *seen, int64_t n,
                double *y)
{
    double w[ROWS], sum = 0;
    for (int64_t j = 0; j < n; j++) {
        w[j] = 0;
        for (int64_t d = 0; d < DH; d++)
            w[j] += q[d] * k[j][d] / sqrt(DH);
        sum += w[j] = seen[j] ? exp(w[j]) : 0;
    }
    for (int64_t j = 0; j < n; j++)
        for (int64_t d = 0; sum > 0 && d < DH; d++)
            y[d] += w[j] / sum * v[j][d];
}

static bool in_band(int64_t w, int64_t i, int64_t j, bool causal)
{
    const int64_t before = i - j;
    return causal ? before >= 0 && before < w : before <= w / 2 && -before < w - w / 2;
}

/* One head of one sequence, what W_o is multiplied with. */
static void true_longformer(const struct setting *s, int64_t w, int64_t g, bool causal, int head,
                            double x[][D], int64_t n, double y[][D])
{
    double q[DH], k[2][ROWS][DH], v[2][ROWS][DH];
    for (int64_t j = 0; j < n; j++) {
        project(s->p, "qkv.weight", x[j], D + head * DH, k[0][j]);
        project(s->p, "qkv.weight", x[j], 2 * D + head * DH, v[0][j]);
        project(s->p, "global.kv.weight", x[j], head * DH, k[1][j]);
        project(s->p, "global.kv.weight", x[j], D + head * DH, v[1][j]);
    }
    for (int64_t i = 0; i < n; i++) {
        bool seen[ROWS];
        for (int64_t j = 0; j < n; j++)
            seen[j] = (!causal || j <= i) && (i < g || j < g || in_band(w, i, j, causal));
        project(s->p, i < g ? "global.q.weight" : "qkv.weight", x[i], head * DH, q);
        mix(q, k[i < g], v[i < g], seen, n, y[i] + head * DH);
    }
}

static void true_poolingformer(const struct setting *s, int64_t w, int64_t pool, bool causal,
                               double x[][D], int64_t n, double y[][D])
{
    double first[ROWS][D] = {{0}};
    for (int head = 0; head < HEADS; head++) {
        double q[DH], k[ROWS][DH], v[ROWS][DH];
        for (int64_t j = 0; j < n; j++) {
            project(s->p, "qkv.weight", x[j], D + head * DH, k[j]);
            project(s->p, "qkv.weight", x[j], 2 * D + head * DH, v[j]);
        }
        for (int64_t i = 0; i < n; i++) {
            bool seen[ROWS];
            for (int64_t j = 0; j < n; j++)
                seen[j] = in_band(w, i, j, causal);
            project(s->p, "qkv.weight", x[i], head * DH, q);
            mix(q, k, v, seen, n, first[i] + head * DH);
        }
    }
    const int64_t blocks = (n + pool - 1) / pool;
    for (int head = 0; head < HEADS; head++) {
        double q[DH], k[ROWS][DH] = {{0}}, v[ROWS][DH] = {{0}};
        for (int64_t j = 0; j < n; j++) {
            const int64_t b = j / pool, rows = n - b * pool < pool ? n - b * pool : pool;
            double one[2][DH];
            project(s->p, "pooled.weight", first[j], D + head * DH, one[0]);
            project(s->p, "pooled.weight", first[j], 2 * D + head * DH, one[1]);
            for (int64_t d = 0; d < DH; d++) {
                k[b][d] += one[0][d] / (double)rows;
                v[b][d] += one[1][d] / (double)rows;
            }
        }
        for (int64_t i = 0; i < n; i++) {
            bool seen[ROWS];
            const int64_t own = causal ? (i + 1) / pool - 1 : i / pool;
            for (int64_t b = 0; b < blocks; b++)
                seen[b] = own >= 0 && in_band(w, own, b, causal);
            project(s->p, "pooled.weight", first[i], head * DH, q);
            for (int64_t d = 0; d < DH; d++)
                y[i][head * DH + d] = first[i][head * DH + d];
            mix(q, k, v, seen, blocks, y[i] + head * DH);
        }
    }
}

/* Catches: projections that are tied, a global position that looks with those of the others, a
 * second softmax, a key too many or too few; pooled keys of the wrong rows, or too early. */
static void sublayers_match_their_loops(void **state)
{
    (void)state;
    for (int k = 0; k < SETTINGS - 1; k++) {
        struct setting s = setting_of(k);
        heed_tape *t = heed_tape_new(NULL, NULL);
        const heed_tensor *found = forward(t, &s, lengths, B);
        const heed_slot_spec spec =
            form_slot(settings[k].pattern ? HEED_SLOT_PATTERN : HEED_SLOT_MEMORY,
                      settings[k].pattern ? settings[k].pattern : settings[k].memory);
        const int64_t *number = spec.term[0].number;
        int64_t row = 0;
        for (int b = 0; b < B; row += lengths[b], b++) {
            double x[ROWS][D], y[ROWS][D] = {{0}};
            for (int64_t i = 0; i < lengths[b]; i++)
                for (int64_t d = 0; d < D; d++)
                    x[i][d] = (double)heed__row(s.x, row + i)[d];
            for (int head = 0; settings[k].pattern && head < HEADS; head++)
                true_longformer(&s, number[0], number[1], settings[k].causal, head, x, lengths[b],
                                y);
            if (settings[k].memory)
                true_poolingformer(&s, number[0], number[1], settings[k].causal, x, lengths[b], y);
            for (int64_t i = 0; i < lengths[b]; i++)
                for (int head = 0; head < HEADS; head++) {
                    double out[DH];
                    project(s.p, "out.weight", y[i], head * DH, out);
                    for (int64_t d = 0; d < DH; d++)
                        if (!(fabs(out[d] - (double)heed__row(found, row + i)[head * DH + d]) <
                              1e-5))
                            fail_msg("setting %d, row %lld of sequence %d: %g, expected %g", k,
                                     (long long)i, b,
                                     (double)heed__row(found, row + i)[head * DH + d], out[d]);
                }
        }
        heed_tape_free(t);
        setting_free(&s);
    }
}

/* Catches: a part without its gradient. */
static void sublayers_have_their_gradients(void **state)
{
    (void)state;
    for (int k = 0; k < SETTINGS; k++) {
        struct setting s = setting_of(k);
        layer_check(s.p, run_stack, &s);
        setting_free(&s);
    }
}

/* Catches: a sequence that changes another's bits; threads that do. */
static void sequences_are_as_alone(void **state)
{
    (void)state;
    for (int k = 0; k < SETTINGS; k++) {
        struct setting s = setting_of(k);
        heed_tape *t = heed_tape_new(&(heed_tape_options){.threads = 1}, NULL);
        heed_tape *more = heed_tape_new(&(heed_tape_options){.threads = 3}, NULL);
        const heed_tensor *y = forward(t, &s, lengths, B), *alone = forward(t, &s, lengths, 1);
        assert_memory_equal(y->data, alone->data,
                            (size_t)heed_tensor_count(alone) * sizeof(heed_real));
        assert_memory_equal(y->data, forward(more, &s, lengths, B)->data,
                            (size_t)heed_tensor_count(y) * sizeof(heed_real));
        heed_tape_free(t);
        heed_tape_free(more);
        setting_free(&s);
    }
}

/* Catches: pooled rows that depend on the order of a set, are too many, or are the same for all. */
static void pooling_has_no_order(void **state)
{
    struct setting s = setting_new(NULL, NULL, false, 2);
    heed_tape *t = heed_tape_new(NULL, NULL);
    const heed_tensor *y = forward(t, &s, lengths, B);
    heed_real last[D];
    (void)state;
    assert_int_equal(y->rows, 2 * B);
    memcpy(last, heed__row(s.x, 8), sizeof last);
    memcpy(heed__row(s.x, 8), heed__row(s.x, 0), sizeof last);
    memcpy(heed__row(s.x, 0), last, sizeof last);
    const heed_tensor *moved = forward(t, &s, lengths, B);
    double apart = 0;
    for (int64_t i = 0; i < heed_tensor_count(y); i++)
        assert_true(fabs((double)y->data[i] - (double)moved->data[i]) < 1e-5);
    for (int64_t d = 0; d < D; d++)
        apart += fabs((double)heed__row(y, 0)[d] - (double)heed__row(y, 6)[d]);
    assert_true(apart > 1e-3);
    heed_tape_free(t);
    setting_free(&s);

    /* A set of k rows has nothing of the set's own to be added to. */
    heed_params *p = heed_params_new(NULL, NULL);
    heed_arena *arena = heed_arena_new(NULL, NULL);
    heed_stack stack;
    heed_stack_init(&stack, arena, D);
    heed_stack_append(&stack, heed_params_scope(p), heed_sublayer_class_find("pma"),
                      &(heed_sublayer_options){.mha = {.heads = 2}, .around = {.residual = true}});
    assert_non_null(strstr(heed_params_error(p)->text, "expected residual = false"));
    heed_params_free(p);
    heed_arena_free(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sublayers_match_their_loops),
        cmocka_unit_test(sublayers_have_their_gradients),
        cmocka_unit_test(sequences_are_as_alone),
        cmocka_unit_test(pooling_has_no_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
