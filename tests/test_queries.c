/* Queries that do not all look for themselves: the limits in which they are all of attention, what
 * clusters and active queries are, and what comes later. */
#include "attention_table.h"

enum { HEADS = 2, DK = 5, N = 40 };

struct layer {
    heed_params *p;
    heed_attend_layer l;
    heed_tensor *q, *k, *v;
};

static double value(int64_t i, int salt)
{
    return sin(12.9898 * (double)(i + 1) + 78.233 * salt);
}

/* One sequence of n with values of dv columns a head. */
static struct layer layer_new(const char *queries, int64_t n, int64_t dv, bool causal)
{
    struct layer y = {.p = heed_params_new(NULL, NULL)};
    heed_scope root = heed_params_scope(y.p);
    heed_error err = {0};
    const heed_init zero = {HEED_INIT_ZERO, 0};
    y.q = heed_param(root, "q", HEED_SHAPE(n, HEADS * DK), zero);
    y.k = heed_param(root, "k", HEED_SHAPE(n, HEADS * DK), zero);
    y.v = heed_param(root, "v", HEED_SHAPE(n, HEADS * dv), zero);
    heed_attend_build(&y.l, heed_scope_enter(root, "score"),
                      &(heed_attend_options){.queries = form_slot(HEED_SLOT_QUERIES, queries),
                                             .heads = HEADS,
                                             .query_d = HEADS * DK,
                                             .key_d = HEADS * DK,
                                             .value_d = HEADS * dv,
                                             .projected = true,
                                             .causal = causal});
    if (heed_params_finish(y.p, 1, &err))
        fail_msg("%s: %s", queries, err.text);
    heed_tensor *x[] = {y.q, y.k, y.v};
    for (int i = 0; i < 3; i++)
        for (int64_t e = 0; e < heed_tensor_count(x[i]); e++)
            heed_tensor_data(x[i])[e] = (heed_real)value(e, i);
    return y;
}

static const heed_tensor *answer(heed_tape *t, struct layer *y)
{
    const int64_t n = heed_tensor_rows(y->q);
    const heed_segments *rows = heed_segments_new(heed_tape_arena(t), 1, &n);
    const heed_memory m = heed_attend_memory(t, &y->l, y->k, y->v, rows);
    const heed_tensor *out = heed_attend(t, &y->l, y->q, &m, rows, NULL);
    if (!out)
        fail_msg("%s", heed_tape_error(t)->text);
    return out;
}

static double farthest(const heed_tensor *a, const heed_tensor *b)
{
    double most = 0;
    for (int64_t i = 0; i < heed_tensor_count(a); i++)
        most = fmax(most, fabs((double)a->data[i] - (double)b->data[i]));
    return most;
}

/* Catches: clusters of several queries where there is one for each, a top that misses a key, a
 * sample or a choice that is not all of a short sequence. */
static void with_one_for_each_they_are_all(void **state)
{
    static const struct {
        const char *queries;
        bool causal;
    } rows[] = {{"clustered:40", false},          {"clustered:100", false},
                {"improved-clustered:40", false}, {"improved-clustered:3:40", false},
                {"probsparse:10", false},         {"probsparse:40", true}};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        heed_tape *t = heed_tape_new(NULL, NULL);
        struct layer some = layer_new(rows[i].queries, N, 3, rows[i].causal),
                     all = layer_new("all", N, 3, rows[i].causal);
        const double off = farthest(answer(t, &some), answer(t, &all));
        if (!(off < 1e-5))
            fail_msg("%s: %g off all queries", rows[i].queries, off);
        heed_params_free(some.p);
        heed_params_free(all.p);
        heed_tape_free(t);
    }
}

/* Catches: clusters that depend on where a query stands, empty work for equal ones. */
static void equal_queries_get_equal_answers(void **state)
{
    static const char *const queries[] = {"clustered:4", "improved-clustered:4:3"};
    (void)state;
    for (int i = 0; i < 2; i++) {
        heed_tape *t = heed_tape_new(NULL, NULL);
        struct layer y = layer_new(queries[i], N, 3, false);
        for (int64_t row = 0; row < N; row += 3)
            memcpy(heed__row(y.q, row), heed__row(y.q, 1), HEADS * DK * sizeof(heed_real));
        const heed_tensor *out = answer(t, &y);
        for (int64_t row = 0; row < N; row += 3)
            for (int64_t d = 0; d < out->cols; d++)
                assert_true(fabs((double)heed__row(out, row)[d] - (double)heed__row(out, 1)[d]) <
                            1e-6);
        heed_params_free(y.p);
        heed_tape_free(t);
    }
}

/* Catches: clusters that mix directions which lie far apart, or have nothing to do with them. */
static void planted_clusters_are_found(void **state)
{
    enum { ROWS = 120, D = 16, PLANTED = 4 };
    heed_real x[ROWS * D];
    int32_t cluster[ROWS];
    heed_arena *arena = heed_arena_new(NULL, NULL);
    int same = 0, pairs = 0;
    (void)state;
    for (int64_t i = 0; i < ROWS; i++)
        for (int64_t d = 0; d < D; d++)
            x[i * D + d] =
                (heed_real)(value(d, (int)(i % PLANTED) + 50) + 0.1 * value(i * D + d, 9));
    assert_true(heed__cluster_queries(x, D, ROWS, D, PLANTED, 0, 0, arena, cluster));
    for (int i = 0; i < ROWS; i++)
        for (int j = 0; j < i; j++) {
            assert_in_range(cluster[i], 0, PLANTED - 1);
            if (i % PLANTED == j % PLANTED) {
                pairs++;
                same += cluster[i] == cluster[j];
            }
        }
    assert_true(same >= 0.95 * pairs);
    heed_arena_free(arena);
}

/* Values that are the rows of I give the weights themselves.  Catches: weights that do not sum to
 * 1, and a better approximation that is worse: sum_i |A_i - softmax(q_i K)|_1. */
static void improved_is_nearer_to_all(void **state)
{
    static const char *const queries[] = {"all", "clustered:5", "improved-clustered:5:8"};
    double off[3] = {0};
    struct layer y[3];
    const heed_tensor *weights[3];
    heed_tape *t = heed_tape_new(NULL, NULL);
    (void)state;
    for (int i = 0; i < 3; i++) {
        y[i] = layer_new(queries[i], N, N, false);
        for (int64_t row = 0; row < N; row++)
            for (int64_t d = 0; d < HEADS * N; d++) {
                heed__row(y[i].v, row)[d] = d % N == row;
                if (d < HEADS * DK)
                    heed__row(y[i].q, row)[d] *= 3;
            }
        weights[i] = answer(t, &y[i]);
        for (int64_t row = 0; row < N; row++)
            for (int h = 0; h < HEADS; h++) {
                double sum = 0, mine = 0, plain = 0;
                for (int64_t d = h * N; d < (h + 1) * N; d++) {
                    const double all = (double)heed__row(weights[0], row)[d];
                    sum += (double)heed__row(weights[i], row)[d];
                    mine += fabs((double)heed__row(weights[i], row)[d] - all);
                    plain += i ? fabs((double)heed__row(weights[1], row)[d] - all) : 0;
                }
                assert_true(fabs(sum - 1) < 1e-5);
                if (i == 2) /* of every query, as the paper proves */
                    assert_true(mine <= plain + 1e-5);
                off[i] += mine;
            }
    }
    assert_true(off[2] < 0.9 * off[1]);
    for (int i = 0; i < 3; i++)
        heed_params_free(y[i].p);
    heed_tape_free(t);
}

/* Catches: a choice of queries that has nothing to do with how unevenly they look. */
static void planted_queries_are_active(void **state)
{
    static const int64_t planted[] = {3, 17, 18, 31};
    heed_tape *t = heed_tape_new(NULL, NULL);
    struct layer some = layer_new("probsparse:1", N, 3, false), all = layer_new("all", N, 3, false);
    struct layer *both[] = {&some, &all};
    (void)state;
    for (int i = 0; i < 2; i++)
        for (int64_t row = 0; row < N; row++) {
            bool large = false;
            for (size_t p = 0; p < sizeof planted / sizeof *planted; p++)
                large |= planted[p] == row;
            for (int64_t d = 0; d < HEADS * DK; d++)
                heed__row(both[i]->q, row)[d] *= (heed_real)(large ? 8 : 0.01);
        }
    const heed_tensor *found = answer(t, &some), *wanted = answer(t, &all);
    for (int64_t row = 0; row < N; row++) {
        bool large = false;
        for (size_t p = 0; p < sizeof planted / sizeof *planted; p++)
            large |= planted[p] == row;
        for (int64_t d = 0; d < found->cols; d++) {
            double mean = 0;
            for (int64_t j = 0; j < N; j++)
                mean += (double)heed__row(some.v, j)[d] / N;
            if (!large)
                assert_true(fabs((double)heed__row(found, row)[d] - mean) < 1e-5);
            else
                assert_true(fabs((double)heed__row(found, row)[d] -
                                 (double)heed__row(wanted, row)[d]) < 1e-5);
        }
    }
    heed_params_free(some.p);
    heed_params_free(all.p);
    heed_tape_free(t);
}

/* Catches: a causal choice that looks at what comes later. */
static void what_comes_later_changes_nothing(void **state)
{
    enum { SEEN = 23 };
    heed_tape *t = heed_tape_new(NULL, NULL);
    struct layer y = layer_new("probsparse:1", N, 3, true);
    const heed_tensor *before = answer(t, &y);
    (void)state;
    for (int64_t row = SEEN; row < N; row++)
        for (int64_t d = 0; d < HEADS * DK; d++) {
            heed__row(y.q, row)[d] *= 50;
            heed__row(y.k, row)[d] -= 9;
        }
    const heed_tensor *after = answer(t, &y);
    for (int64_t i = 0; i < SEEN * before->cols; i++)
        assert_true(fabs((double)before->data[i] - (double)after->data[i]) < 1e-6);
    assert_true(farthest(before, after) > 1e-3);
    heed_params_free(y.p);
    heed_tape_free(t);
}

/* Catches: a combination that means nothing, or a refusal that does not say what would work. */
static void refusals_say_what_would_work(void **state)
{
    static const struct {
        const char *queries, *pattern, *memory, *normaliser, *text;
        bool causal;
        double dropout;
        int score;
    } rows[] = {
        {"clustered:4", .causal = true,
         .text = "cannot be causal: use all or probsparse, or an "
                 "encoder alone"},
        {"clustered:4", .pattern = "band:3",
         .text = "clustered goes with the pattern global alone"},
        {"probsparse:4", .memory = "mca:3", .text = "probsparse goes with the memory states alone"},
        {"probsparse:4", .normaliser = "elu", .text = "elu forms no weights: its queries are all"},
        {"improved-clustered:4", .dropout = 0.1,
         .text = "no weights to drop out: dropout is 0.1, expected 0"},
        {"clustered:4", .score = HEED_SCORE_ADDITIVE, .text = "needs a score that is a product"},
        {"clustered:41", .text = "41 in clustered:C are more than the 40 tokens"},
        {"improved-clustered:4:41", .text = "41 in improved-clustered:C[:K] are more than the 40"},
        {NULL, .pattern = "longformer:4:1", .memory = "luna:2",
         .text = "luna goes with the pattern global alone"},
        {NULL, .pattern = "longformer:4:1", .score = HEED_SCORE_COSINE,
         .text = "longformer has the scores scaled-dot and dot alone"},
        {NULL, .memory = "isab:2", .causal = true, .text = "isab mixes all positions"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        heed_error err = {0};
        const heed_attend_options o = {.queries = form_slot(HEED_SLOT_QUERIES, rows[i].queries),
                                       .pattern = form_slot(HEED_SLOT_PATTERN, rows[i].pattern),
                                       .memory = form_slot(HEED_SLOT_MEMORY, rows[i].memory),
                                       .normaliser =
                                           form_slot(HEED_SLOT_NORMALISER, rows[i].normaliser),
                                       .heads = 1,
                                       .query_d = 4,
                                       .key_d = 4,
                                       .value_d = 4,
                                       .projected = true,
                                       .longest = N,
                                       .causal = rows[i].causal,
                                       .dropout = rows[i].dropout,
                                       .score = rows[i].score};
        assert_int_equal(heed__attend_check(&o, &err), HEED_ARGUMENT);
        if (!strstr(err.text, rows[i].text))
            fail_msg("'%s', expected '%s'", err.text, rows[i].text);
    }
}

/* Catches: two ways to say an adaptive span. */
static void a_span_has_one_option(void **state)
{
    heed_slot_spec spec = {0};
    heed_error err = {0};
    (void)state;
    assert_int_equal(heed_bias_option()->parse("span:9", &spec, &err), HEED_ARGUMENT);
    assert_string_equal(err.text, "span:9 is no position bias: use --adaptive-span 9");
    assert_int_equal(spec.count, 0);
    assert_int_equal(heed_bias_option()->parse("table:9", &spec, NULL), HEED_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(with_one_for_each_they_are_all),
        cmocka_unit_test(equal_queries_get_equal_answers),
        cmocka_unit_test(planted_clusters_are_found),
        cmocka_unit_test(improved_is_nearer_to_all),
        cmocka_unit_test(planted_queries_are_active),
        cmocka_unit_test(what_comes_later_changes_nothing),
        cmocka_unit_test(refusals_say_what_would_work),
        cmocka_unit_test(a_span_has_one_option),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
