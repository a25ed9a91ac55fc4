/* Attention in its slots: every score over every window against loops, gradients, limit cases, and
 * what is refused. */
#include "attention_table.h"
#include "layer_check.h"
#include <heed/attention.h>
#include <heed/stack.h>

/* A key that comes into local-p's window brings its weight at once: the differences' steps must not
 * move p over such an edge, and those of float are too long not to. */
#ifdef HEED_DOUBLE
#define NEAR 1e-12
#define GRADIENT_WINDOW 2
#else
#define GRADIENT_WINDOW LONGEST
#define NEAR 1e-5 /* a few roundings of numbers of size one to ten */
#endif

enum { HEADS = 2, DQ = 6, DV = 4, B = 4, QUERIES = 6, KEYS = 20, LONGEST = 12 };
static const int64_t query_lengths[B] = {3, 0, 2, 1}, key_lengths[B] = {4, 2, 5, 9};
enum { SCORES = HEED_SCORE_LOCATION + 1 };

/* A layer with queries, keys and values as parameters, so that gradients can be checked too. */
struct setting {
    heed_params *p;
    heed_attend_layer l;
    heed_tensor *q, *k, *v;
    const int64_t *query_lengths, *key_lengths;
};

static struct setting setting_new(heed_attend_options o)
{
    struct setting s = {heed_params_new(NULL, NULL), .query_lengths = query_lengths,
                        .key_lengths = key_lengths};
    heed_scope root = heed_params_scope(s.p);
    const heed_init normal = {HEED_INIT_NORMAL, 1};
    o.heads = o.heads ? o.heads : HEADS;
    o.query_d = o.query_d ? o.query_d : DQ;
    o.key_d = o.key_d ? o.key_d : DQ;
    o.longest = LONGEST;
    s.q = heed_param(root, "q", HEED_SHAPE(QUERIES, o.query_d), normal);
    s.k = heed_param(root, "k", HEED_SHAPE(KEYS, o.key_d), normal);
    s.v = heed_param(root, "values", HEED_SHAPE(KEYS, o.heads * DV), normal);
    heed_attend_build(&s.l, heed_scope_enter(root, "score"), &o);
    heed_error err = {0};
    if (heed_params_finish(s.p, 11, &err))
        fail_msg("%s", err.text);
    return s;
}

static const heed_segments *segments(heed_tape *t, const int64_t *lengths)
{
    return heed_segments_new(heed_tape_arena(t), B, lengths);
}

static heed_tensor *attend(heed_tape *t, struct setting *s, const heed_attend_extra *extra)
{
    heed_memory m = heed_attend_memory(t, &s->l, s->k, s->v, segments(t, s->key_lengths));
    heed_tensor *y = heed_attend(t, &s->l, s->q, &m, segments(t, s->query_lengths), extra);
    if (!y)
        fail_msg("%s", heed_tape_error(t)->text);
    return y;
}

static void assert_near(double found, double wanted)
{
    if (!(fabs(found - wanted) <= NEAR * fmax(1, fabs(wanted))))
        fail_msg("found %.12g, wanted %.12g", found, wanted);
}

static void assert_same(const heed_tensor *a, const heed_tensor *b)
{
    assert_int_equal(heed_tensor_count(a), heed_tensor_count(b));
    for (int64_t i = 0; i < heed_tensor_count(a); i++)
        assert_near((double)heed_tensor_data(a)[i], (double)heed_tensor_data(b)[i]);
}

/* ---- the oracle: one pair at a time, in double ---- */

/* x[row] times column `to` of w, of which the rows from `from` on are used. */
static double times(const heed_tensor *x, int64_t row, int64_t begin, int64_t n,
                    const heed_tensor *w, int64_t from, int64_t to)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += (double)heed__row(x, row)[begin + i] * (double)heed__row(w, from + i)[to];
    return sum;
}

static double score_of(const struct setting *s, int64_t h, int64_t i, int64_t j, int64_t place)
{
    const heed_attend_options *o = &s->l.options;
    const int64_t dq = o->query_d / o->heads, dk = o->key_d / o->heads, a = o->d / o->heads;
    const heed_real *q = heed__row(s->q, i) + h * dq, *k = heed__row(s->k, j) + h * dk;
    double dot = 0, qq = 0, kk = 0, sum = 0;
    for (int64_t d = 0; d < dq && dq == dk; d++) {
        dot += (double)q[d] * (double)k[d];
        qq += (double)q[d] * (double)q[d];
        kk += (double)k[d] * (double)k[d];
    }
    switch ((heed_score_kind)o->score) {
    case HEED_SCORE_SCALED_DOT:
        return dot / sqrt((double)dk);
    case HEED_SCORE_DOT:
        return dot;
    case HEED_SCORE_GENERAL:
        for (int64_t d = 0; d < dk; d++)
            sum += times(s->q, i, h * dq, dq, s->l.weight, h * dq, d) * (double)k[d];
        return sum;
    case HEED_SCORE_ADDITIVE:
        for (int64_t d = h * a; d < (h + 1) * a; d++)
            sum += (double)s->l.weight->data[d] *
                   tanh(o->projected ? (double)heed__row(s->q, i)[d] + (double)heed__row(s->k, j)[d]
                                     : times(s->q, i, 0, o->query_d, s->l.q.weight, 0, d) +
                                           times(s->k, j, 0, o->key_d, s->l.k.weight, 0, d));
        return sum;
    case HEED_SCORE_COSINE:
        return (s->l.beta ? log1p(exp((double)s->l.beta->data[0])) : o->beta) * dot / sqrt(qq * kk);
    case HEED_SCORE_LOCATION:
        return times(s->q, i, h * dq, dq, s->l.weight, h * dq, place);
    }
    return NAN;
}

/* Where query i of head h looks: its own place, or what local-p predicts. */
static double centre_of(const struct setting *s, int64_t h, int64_t i, int64_t own, int64_t keys)
{
    const heed_attend_options *o = &s->l.options;
    if (o->pattern.term[0].kind != HEED_PATTERN_LOCAL_P)
        return (double)own;
    double sum = 0;
    for (int64_t d = 0; d < o->query_d; d++)
        sum += tanh(times(s->q, i, 0, o->query_d, s->l.place.weight, 0, d)) *
               (double)heed__row(s->l.place_out.weight, d)[h];
    return (double)keys / (1 + exp(-sum));
}

static bool sees(const heed_attend_options *o, int64_t own, int64_t j, int64_t keys, double p)
{
    const heed_term *first = &o->pattern.term[0];
    return first->kind == HEED_PATTERN_LOCAL_P
               ? fabs((double)j - p) <= (double)first->number[0]
               : form_sees(
                     &o->pattern,
                     (struct form_pair){
                         .i = own, .j = j, .queries = own + 1, .keys = keys, .causal = o->causal});
}

/* The weights of one query of one head over `keys` keys from row `first` on. */
static void weights_of(const struct setting *s, int64_t h, int64_t i, int64_t own, int64_t first,
                       int64_t keys, double *w)
{
    const heed_attend_options *o = &s->l.options;
    const double p = centre_of(s, h, i, own, keys);
    double sum = 0;
    for (int64_t j = 0; j < keys; j++) {
        w[j] = sees(o, own, j, keys, p) ? exp(score_of(s, h, i, first + j, j)) : 0;
        sum += w[j];
    }
    for (int64_t j = 0; j < keys; j++) {
        w[j] = sum > 0 ? w[j] / sum : 0;
        if (o->pattern.term[0].kind == HEED_PATTERN_LOCAL_P && isfinite(o->deviation))
            w[j] *= exp(-((double)j - p) * ((double)j - p) / (2 * o->deviation * o->deviation));
    }
}

static void check_against_loops(struct setting *s, int threads)
{
    heed_tape *t = heed_tape_new(&(heed_tape_options){.threads = threads}, NULL);
    heed_tensor *weights, *y = attend(t, s, &(heed_attend_extra){.weights = &weights});
    const heed_segments *queries = segments(t, s->query_lengths), *keys = segments(t, key_lengths);
    const heed_real *found = heed_tensor_data(weights);
    for (int b = 0; b < B; b++)
        for (int64_t h = 0; h < s->l.options.heads; h++)
            for (int64_t i = queries->offset[b]; i < queries->offset[b + 1]; i++) {
                double w[LONGEST], mixed[DV] = {0};
                weights_of(s, h, i, i - queries->offset[b], keys->offset[b], key_lengths[b], w);
                for (int64_t j = 0; j < key_lengths[b]; j++) {
                    assert_near((double)*found++, w[j]);
                    for (int d = 0; d < DV; d++)
                        mixed[d] += w[j] * (double)heed__row(s->v, keys->offset[b] + j)[h * DV + d];
                }
                for (int d = 0; d < DV; d++)
                    assert_near((double)heed__row(y, i)[h * DV + d], mixed[d]);
            }
    assert_int_equal(found - heed_tensor_data(weights), heed_tensor_count(weights));
    heed_tape_free(t);
}

/* Pattern i of those to be tried, with its windows; none behind the last. */
static heed_slot_spec pattern_of(int i, int64_t window)
{
    const heed_slot_spec patterns[] = {
        HEED_ONE(HEED_PATTERN_GLOBAL),
        HEED_ONE(HEED_PATTERN_BAND, {window}),
        HEED_ONE(HEED_PATTERN_LOCAL_M, {window}),
        HEED_ONE(HEED_PATTERN_GLOBAL, {2}),
        {2, {{HEED_PATTERN_BAND, {window}}, {HEED_PATTERN_GLOBAL, {1}}}},
        HEED_ONE(HEED_PATTERN_LOCAL_P, {window}),
    };
    return i < (int)(sizeof patterns / sizeof *patterns) ? patterns[i] : (heed_slot_spec){0};
}

/* Every score under every pattern, causal or not, that build takes. */
static void each_combination(int64_t window, void (*check)(struct setting *s, int threads))
{
    for (int score = 0; score < SCORES; score++)
        for (int i = 0; pattern_of(i, 1).count; i++)
            for (int causal = 0; causal < 2; causal++) {
                const heed_slot_spec pattern = pattern_of(i, window);
                if (causal && pattern.term[0].kind == HEED_PATTERN_LOCAL_P)
                    continue;
                struct setting s = setting_new(
                    (heed_attend_options){.score = score, .pattern = pattern, .causal = causal});
                check(&s, 1 + score % 2);
                heed_params_free(s.p);
            }
}

/* Catches: a head, window, gate or parameter taken from the wrong place, a scale by the number of
 * keys, a Gaussian before the softmax or renormalised after it. */
static void every_mechanism_matches_loops(void **state)
{
    (void)state;
    each_combination(2, check_against_loops);
    /* Widths that differ where they may; projected queries and keys; a given beta. */
    static const heed_attend_options more[] = {
        {.score = HEED_SCORE_ADDITIVE, .query_d = 4, .key_d = 8, .d = 10},
        {.score = HEED_SCORE_ADDITIVE, .projected = true},
        {.score = HEED_SCORE_GENERAL, .query_d = 4, .key_d = 8},
        {.score = HEED_SCORE_LOCATION, .query_d = 4, .key_d = 8},
        {.score = HEED_SCORE_COSINE, .beta = 3},
        {.score = HEED_SCORE_ADDITIVE, .heads = 1, .pattern = HEED_ONE(HEED_PATTERN_LOCAL_P)},
    };
    for (size_t i = 0; i < sizeof more / sizeof *more; i++) {
        struct setting s = setting_new(more[i]);
        check_against_loops(&s, 2);
        heed_params_free(s.p);
    }
}

static int run_layer(heed_tape *t, void *context, heed_tensor **out)
{
    out[0] = attend(t, context, &(heed_attend_extra){.weights = &out[1]});
    return 2;
}

/* Location does not look at keys, and a product's keys need values to be asked for. */
static void check_gradients(struct setting *s, int threads)
{
    (void)threads;
    if (s->l.options.score == HEED_SCORE_LOCATION)
        assert_int_equal(heed_params_freeze(s->p, "k", NULL), HEED_OK);
    layer_check(s->p, run_layer, s);
}

/* Catches: a parameter of a score or a window without its gradient, p that is not reached through
 * the Gaussian. */
static void every_mechanism_has_its_gradient(void **state)
{
    (void)state;
    each_combination(GRADIENT_WINDOW, check_gradients);
}

static int run_logs(heed_tape *t, void *context, heed_tensor **out)
{
    struct setting *s = context;
    heed_memory m = heed_attend_memory(t, &s->l, s->k, NULL, segments(t, key_lengths));
    heed_tensor *w = heed_attend(t, &s->l, s->q, &m, segments(t, query_lengths),
                                 &(heed_attend_extra){.log_weights = &out[0]});
    out[1] = heed_pairs_mix(t, w, s->v,
                            &(heed_pairs){segments(t, query_lengths), m.segments, HEADS, NULL,
                                          NULL}); /* the weights are what comes back */
    return 2;
}

/* Catches: log-weights that are not the logarithms of the weights, or have no gradient: what a
 * pointer network is trained with. */
static void log_weights_need_no_values(void **state)
{
    (void)state;
    for (int score = 0; score < SCORES; score++) {
        struct setting s = setting_new((heed_attend_options){.score = score});
        if (score == HEED_SCORE_LOCATION)
            heed_params_freeze(s.p, "k", NULL);
        layer_check(s.p, run_logs, &s);
        heed_tape *t = heed_tape_new(NULL, NULL);
        heed_tensor *out[2], *weights;
        run_logs(t, &s, out);
        /* With values and without logarithms it is the fast operator, where there is one. */
        assert_same(attend(t, &s, &(heed_attend_extra){.weights = &weights}), out[1]);
        assert_same(weights, heed_exp(t, out[0]));
        heed_tape_free(t);
        heed_params_free(s.p);
    }
}

/* ---- limit cases ---- */

/* Catches: a window that loses a key at a sentence's end, or a Gaussian that is not off. */
static void a_window_over_everything_is_global(void **state)
{
    (void)state;
    for (int score = 0; score < SCORES; score++) {
        struct setting s =
            setting_new((heed_attend_options){.score = score,
                                              .pattern = HEED_ONE(HEED_PATTERN_LOCAL_P, {LONGEST}),
                                              .deviation = INFINITY});
        heed_tape *t = heed_tape_new(NULL, NULL);
        heed_tensor *global, *weights;
        s.l.options.pattern = (heed_slot_spec)HEED_ONE(HEED_PATTERN_GLOBAL);
        attend(t, &s, &(heed_attend_extra){.weights = &global});
        static const heed_slot_spec wide[] = {
            HEED_ONE(HEED_PATTERN_LOCAL_P, {LONGEST}), HEED_ONE(HEED_PATTERN_LOCAL_M, {LONGEST}),
            HEED_ONE(HEED_PATTERN_BAND, {2 * LONGEST}), HEED_ONE(HEED_PATTERN_GLOBAL, {LONGEST})};
        for (size_t i = 0; i < sizeof wide / sizeof *wide; i++) {
            s.l.options.pattern = wide[i];
            attend(t, &s, &(heed_attend_extra){.weights = &weights});
            assert_same(weights, global);
        }
        heed_tape_free(t);
        heed_params_free(s.p);
    }
}

static double row_sum(const heed_tensor *weights, int64_t at, int64_t n)
{
    double sum = 0;
    for (int64_t j = 0; j < n; j++)
        sum += (double)heed_tensor_data(weights)[at + j];
    return sum;
}

/* Catches: weights renormalised after the Gaussian, one that is not the paper's, and one that does
 * not fade out as its deviation grows. */
static void the_gaussian_takes_weight_away(void **state)
{
    (void)state;
    struct setting s = setting_new((heed_attend_options){
        .score = HEED_SCORE_GENERAL, .pattern = HEED_ONE(HEED_PATTERN_LOCAL_P, {2})});
    heed_tape *t = heed_tape_new(NULL, NULL);
    heed_tensor *gated, *plain, *wide;
    attend(t, &s, &(heed_attend_extra){.weights = &gated});
    assert_near(s.l.options.deviation, 1);
    s.l.options.deviation = INFINITY;
    attend(t, &s, &(heed_attend_extra){.weights = &plain});
    s.l.options.deviation = 1e6;
    attend(t, &s, &(heed_attend_extra){.weights = &wide});
    assert_same(plain, wide);
    int64_t at = 0;
    for (int b = 0; b < B; b++)
        for (int64_t n = 0; n < HEADS * query_lengths[b]; n++, at += key_lengths[b]) {
            assert_near(row_sum(plain, at, key_lengths[b]), 1);
            double sum = row_sum(gated, at, key_lengths[b]);
            assert_true(sum > 0.1 && sum < 0.999);
        }
    /* D 10 (deviation 5), p 7.3, key 12: by hand from equation 10. */
    const int64_t one = 1, many = 20;
    heed_pairs pair = {heed_segments_new(heed_tape_arena(t), 1, &one),
                       heed_segments_new(heed_tape_arena(t), 1, &many), 1, NULL, NULL};
    heed_real p = (heed_real)7.3;
    heed_tensor *g = heed_pairs_gaussian(t, heed_input(t, HEED_SHAPE(1, 1), &p), 5, &pair);
    assert_true(fabs((double)heed_tensor_data(g)[12] - .642878) < 1e-6);
    heed_tape_free(t);
    heed_params_free(s.p);
}

/* Catches: S that is the longest of the batch instead of the sentence's own: p would move when a
 * longer sentence comes along; places of a location score beyond a sentence's end. */
static void other_sentences_change_nothing(void **state)
{
    (void)state;
    static const int64_t among[B] = {4, 2, 5, 9}, alone[B] = {4, 0, 0, 0};
    static const int64_t own_queries[B] = {3, 0, 2, 1}, own_alone[B] = {3, 0, 0, 0};
    for (int score = 0; score < SCORES; score++)
        for (int i = 0; pattern_of(i, 2).count; i++) {
            struct setting s =
                setting_new((heed_attend_options){.score = score, .pattern = pattern_of(i, 2)});
            heed_tape *t = heed_tape_new(NULL, NULL);
            heed_tensor *with = attend(t, &s, NULL);
            assert_memory_equal(among, s.key_lengths, sizeof among);
            assert_memory_equal(own_queries, s.query_lengths, sizeof own_queries);
            heed_memory m = heed_attend_memory(t, &s.l, heed_slice_rows(t, s.k, 0, 4),
                                               heed_slice_rows(t, s.v, 0, 4), segments(t, alone));
            heed_tensor *without = heed_attend(t, &s.l, heed_slice_rows(t, s.q, 0, 3), &m,
                                               segments(t, own_alone), NULL);
            assert_non_null(without);
            for (int64_t k = 0; k < heed_tensor_count(without); k++)
                assert_true(heed_tensor_data(with)[k] == heed_tensor_data(without)[k]);
            heed_tape_free(t);
            heed_params_free(s.p);
        }
}

/* Catches: a cosine that is not sharpened: over nine keys it can hardly choose. */
static void a_cosine_needs_beta(void **state)
{
    (void)state;
    double entropy[2] = {0};
    for (int sharp = 0; sharp < 2; sharp++) {
        struct setting s =
            setting_new((heed_attend_options){.score = HEED_SCORE_COSINE, .beta = sharp ? 20 : 1});
        heed_tape *t = heed_tape_new(NULL, NULL);
        heed_tensor *weights;
        attend(t, &s, &(heed_attend_extra){.weights = &weights});
        const int64_t n = heed_tensor_count(weights);
        for (int64_t i = n - 9; i < n; i++) {
            double w = (double)heed_tensor_data(weights)[i];
            entropy[sharp] -= w > 0 ? w * log(w) : 0;
        }
        heed_tape_free(t);
        heed_params_free(s.p);
    }
    assert_true(entropy[0] > 0.85 * log(9));
    assert_true(entropy[1] < 0.6 * log(9));
}

/* Whether early queries see what comes later: one at a time they cannot. */
static bool global_tokens(const heed_attend_options *o)
{
    const heed_term *last = &o->pattern.term[o->pattern.count - 1];
    return !o->causal && last->kind == HEED_PATTERN_GLOBAL && last->number[0] > 0;
}

/* Queries and keys of one sequence, all at once and one query at a time. */
static void check_steps(struct setting *s, int threads)
{
    (void)threads;
    enum { N = 5 };
    const int64_t all[B] = {N}, one[B] = {1};
    heed_tape *t = heed_tape_new(NULL, NULL);
    if (global_tokens(&s->l.options)) {
        heed_tape_free(t);
        return;
    }
    heed_tensor *k = heed_slice_rows(t, s->k, 0, N), *v = heed_slice_rows(t, s->v, 0, N);
    heed_tensor *q = heed_slice_rows(t, s->k, 7, 7 + N); /* as wide as keys are */
    heed_memory m = heed_attend_memory(t, &s->l, k, v, segments(t, all));
    heed_tensor *y = heed_attend(t, &s->l, q, &m, segments(t, all), NULL);
    assert_non_null(y);
    for (int32_t i = 0; i < N; i++) {
        const int64_t past[B] = {s->l.options.causal ? i + 1 : N};
        m = heed_attend_memory(t, &s->l, heed_slice_rows(t, k, 0, past[0]),
                               heed_slice_rows(t, v, 0, past[0]), segments(t, past));
        heed_tensor *step =
            heed_attend(t, &s->l, heed_slice_rows(t, q, i, i + 1), &m, segments(t, one),
                        &(heed_attend_extra){.place = &i, .all_past = true});
        assert_same(step, heed_slice_rows(t, y, i, i + 1));
    }
    heed_tape_free(t);
}

/* Catches: a mechanism that claims to cache, and gives something else one query at a time. */
static void steps_are_the_whole(void **state)
{
    (void)state;
    each_combination(2, check_steps);
}

/* ---- the table, and what is refused ---- */

/* Catches: a row without its facts, or words of options in another order than the rows. */
static void the_table_is_complete(void **state)
{
    (void)state;
    static const char *const names[][24] = {
        [HEED_SLOT_QUERIES] = {"all", "clustered", "improved-clustered", "probsparse"},
        [HEED_SLOT_MEMORY] = {"states", "persistent", "mca", "linformer", "isab", "luna",
                              "poolingformer"},
        [HEED_SLOT_PATTERN] = {"global", "band", "local-m", "local-p", "dilated", "random", "block",
                               "strided", "fixed", "star", "etc", "bigbird", "bpt", "block-image",
                               "axial", "longformer", "top-k", "lsh", "routing"},
        [HEED_SLOT_SCORE] = {HEED_SCORE_WORDS},
        [HEED_SLOT_BIAS] = {"none", "alibi", "table", "span"},
        [HEED_SLOT_NORMALISER] = {"soft", "hard", "elu", "performer", "rfa", "delta"},
    };
    int found[HEED_SLOT_NORMALISER + 1] = {0};
    for (int i = 0; i < heed_attention_count(); i++) {
        heed_attention_info row = heed_attention_describe(i);
        assert_non_null(heed_attention_slot_name(row.slot));
        assert_true(row.formula && row.paper && row.cost);
        assert_true(row.can & HEED_CAN_WEIGHTS ||
                    (row.slot == HEED_SLOT_NORMALISER && strcmp(row.name, "soft") != 0) ||
                    row.slot == HEED_SLOT_MEMORY || row.slot == HEED_SLOT_QUERIES ||
                    heed_sublayer_class_find(row.name));
        assert_true(strncmp(row.form, row.name, strlen(row.name)) == 0);
        assert_true(row.needs <= row.takes && row.takes <= HEED_TERM_NUMBERS);
        const char *name = names[row.slot][found[row.slot]++];
        assert_non_null(name);
        assert_string_equal(row.name, name);
    }
    for (int slot = 0; slot <= HEED_SLOT_NORMALISER; slot++)
        assert_null(names[slot][found[slot]]);
    assert_null(heed_attention_describe(-1).name);
    assert_null(heed_attention_describe(heed_attention_count()).name);
    assert_string_equal(heed_attention_ability_name(HEED_CAN_FUSED), "fused");
    assert_string_equal(heed_attention_ability_name(HEED_CAN_UNION), "union");
    assert_null(heed_attention_ability_name((heed_attention_ability)3));
}

/* Catches: a spec that reads back as another, and a wrong one that passes or is not explained. */
static void specs_are_read_and_written(void **state)
{
    (void)state;
    static const struct {
        heed_attention_slot slot;
        const char *text, *back; /* NULL: refused, and this is why */
        const char *why;
    } rows[] = {
        {HEED_SLOT_PATTERN, "global", "global", NULL},
        {HEED_SLOT_PATTERN, "global:2", "global:2", NULL},
        {HEED_SLOT_PATTERN, "band:64+global:2", "band:64+global:2", NULL},
        {HEED_SLOT_PATTERN, "local-m", "local-m", NULL},
        {HEED_SLOT_PATTERN, "local-p:4", "local-p:4", NULL},
        {HEED_SLOT_MEMORY, "persistent:256", "persistent:256", NULL},
        {HEED_SLOT_BIAS, "table:9", "table:9", NULL},
        {HEED_SLOT_NORMALISER, "hard", "hard", NULL},
        {HEED_SLOT_NORMALISER, "elu", "elu", NULL},
        {HEED_SLOT_NORMALISER, "performer:64:100", "performer:64:100", NULL},
        {HEED_SLOT_NORMALISER, "rfa:32:gated", "rfa:32:gated", NULL},
        {HEED_SLOT_NORMALISER, "delta", "delta", NULL},
        {HEED_SLOT_NORMALISER, "rfa:32:gates", NULL,
         "'gates' is no word of rfa, expected rfa[:M[:gated]]"},
        {HEED_SLOT_NORMALISER, "rfa:gated", NULL, "what stands behind rfa is no whole number"},
        {HEED_SLOT_PATTERN, "band:64+globl:2", NULL,
         "there is no pattern 'globl', expected global, band, local-m, local-p, dilated, random, "},
        {HEED_SLOT_PATTERN, "band:64+globl:2", NULL, "; did you mean 'global'?"},
        {HEED_SLOT_MEMORY, "persistant:4", NULL,
         "there is no memory 'persistant', expected states, persistent:N, mca:C, "
         "linformer:K[:shared], isab:M, luna:L or poolingformer:W:POOL; did you mean "
         "'persistent'?"},
        {HEED_SLOT_PATTERN, "strided:5:heads", "strided:5:heads", NULL},
        {HEED_SLOT_PATTERN, "fixed:32:4:layers+star", "fixed:32:4:layers+star", NULL},
        {HEED_SLOT_PATTERN, "strided:5:head", NULL,
         "'head' is no word of strided, expected strided:L[:merged|heads|layers]"},
        {HEED_SLOT_PATTERN, "strided:5:", NULL, "'' is no word of strided"},
        {HEED_SLOT_PATTERN, "fixed:4:5", NULL,
         "fixed:4:5: a block of 4 has no 5 columns: use at most 4"},
        {HEED_SLOT_PATTERN, "", NULL, "there is no pattern ''"},
        {HEED_SLOT_PATTERN, "band:4+", NULL, "there is no pattern ''"},
        {HEED_SLOT_PATTERN, "band", NULL, "band lacks a number, expected band:W"},
        {HEED_SLOT_PATTERN, "band:", NULL, "what stands behind band is no whole number"},
        {HEED_SLOT_PATTERN, "band:0", NULL, "the number of band:W is 0, expected 1 to 2147483647"},
        {HEED_SLOT_PATTERN, "band:-3", NULL, "what stands behind band is no whole number"},
        {HEED_SLOT_PATTERN, "band:3x", NULL, "what stands behind band is no whole number"},
        {HEED_SLOT_PATTERN, "band:9999999999999999999", NULL, "what stands behind band"},
        {HEED_SLOT_PATTERN, "band:4:2", NULL, "band has a number too many, expected band:W"},
        {HEED_SLOT_PATTERN, "band:4+global", NULL, "global without a number is everything"},
        {HEED_SLOT_PATTERN, "local-p:2+band:4", NULL,
         "local-p stands alone; together can stand global, band, local-m, "},
        {HEED_SLOT_PATTERN, "band:1+band:2+band:3+band:4+band:5+band:6+band:7", NULL,
         "more than 6 terms"},
        {HEED_SLOT_MEMORY, "persistent:4+states", NULL, "persistent stands alone"},
        {HEED_SLOT_MEMORY, "persistent", NULL, "persistent lacks a number, expected persistent:N"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        heed_slot_spec spec = {0};
        char text[HEED_OPTION_SPEC_TEXT];
        heed_error err = {0};
        const heed_status status = heed_slot_parse(rows[i].slot, rows[i].text, &spec, &err);
        if (!rows[i].back && (!status || !strstr(err.text, rows[i].why)))
            fail_msg("%s: '%s', expected '%s'", rows[i].text, err.text, rows[i].why);
        else if (rows[i].back && status)
            fail_msg("%s: %s", rows[i].text, err.text);
        else if (rows[i].back)
            assert_string_equal(heed_slot_format(rows[i].slot, &spec, text), rows[i].back);
    }
}

/* Catches: a combination that is built and means nothing, or a refusal that does not help. */
static void wrong_combinations_name_right_ones(void **state)
{
    (void)state;
    const struct {
        heed_attend_options o;
        const char *text;
    } rows[] = {
        {{.score = HEED_SCORE_DOT, .query_d = 4, .key_d = 8},
         "attention: the dot score needs queries and keys of one width, found 4 and 8: use "
         "general, additive or location"},
        {{.score = HEED_SCORE_ADDITIVE, .query_d = 4, .key_d = 8, .projected = true},
         "attention: the additive score needs queries and keys of one width"},
        {{.pattern = HEED_ONE(HEED_PATTERN_LOCAL_P), .causal = true, .query_d = 4, .key_d = 4},
         "attention: local-p needs to know how long the sequence is and cannot be causal: use "
         "global, band, local-m, "},
        {{.pattern = HEED_ONE(HEED_PATTERN_LOCAL_P),
          .normaliser = HEED_ONE(HEED_NORMALISE_HARD),
          .query_d = 4,
          .key_d = 4},
         "attention: hard attention draws from weights that sum to 1, those of local-p do not: "
         "use global, band, local-m, "},
        {{.score = 17, .query_d = 4, .key_d = 4},
         "attention: there is no score 17, only scaled-dot, dot, general, additive, cosine or "
         "location"},
        {{.heads = 3, .query_d = 4, .key_d = 4}, "expected multiples of 3 heads"},
        {{.score = HEED_SCORE_LOCATION, .query_d = 4, .key_d = 4}, "location needs `longest`"},
        {{.query_d = 4, .key_d = 4, .dropout = 1}, "dropout is 1, expected 0 <= rate < 1"},
        {{.query_d = 4, .key_d = 4, .beta = -1}, "beta is -1 and deviation 0, expected 0 or more"},
        {{.query_d = 4, .key_d = 4, .pattern = HEED_ONE(HEED_PATTERN_BAND, {-1})},
         "attention: the number of band:W is -1, expected 1 to 2147483647"},
        {{.query_d = 4, .key_d = 4, .heads = 4, .kv_heads = 3}, "multiples of 3 heads of keys"},
        {{.query_d = 4,
          .key_d = 2,
          .heads = 2,
          .kv_heads = 1,
          .longest = 9,
          .score = HEED_SCORE_LOCATION},
         "attention: fewer heads of keys than of queries needs a score that is a product: use "
         "scaled-dot, dot, general or cosine"},
        {{.query_d = 4,
          .key_d = 4,
          .position_bias = HEED_ONE(HEED_BIAS_ALIBI),
          .pattern = HEED_ONE(HEED_PATTERN_LOCAL_P)},
         "attention: alibi needs a pattern that follows from positions: use global, band, "
         "local-m, "},
        {{.query_d = 4,
          .key_d = 4,
          .value_d = 4,
          .memory = HEED_ONE(HEED_MEMORY_PERSISTENT, {2}),
          .single = true},
         "attention: persistent memory is for layers that look at a whole sequence at once"},
        {{.query_d = 4, .key_d = 4, .memory = HEED_ONE(HEED_MEMORY_PERSISTENT, {2})},
         "attention: persistent memory needs `value_d`"},
        {{.query_d = 4,
          .key_d = 4,
          .value_d = 4,
          .memory = HEED_ONE(HEED_MEMORY_PERSISTENT, {2}),
          .normaliser = HEED_ONE(HEED_NORMALISE_HARD)},
         "attention: persistent memory mixes all that is seen: use soft"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        heed_params *p = heed_params_new(NULL, NULL);
        heed_attend_layer l;
        heed_attend_build(&l, heed_params_scope(p), &rows[i].o);
        if (!strstr(heed_params_error(p)->text, rows[i].text))
            fail_msg("'%s', expected '%s'", heed_params_error(p)->text, rows[i].text);
        heed_params_free(p);
    }
}

/* Catches: calls that ask for what a mechanism does not have. */
static void wrong_calls_are_named(void **state)
{
    (void)state;
    heed_tape *t = heed_tape_new(NULL, NULL);
    heed_tensor *logs = NULL;
    struct setting s =
        setting_new((heed_attend_options){.pattern = HEED_ONE(HEED_PATTERN_LOCAL_P)});
    heed_memory m = heed_attend_memory(t, &s.l, s.k, s.v, segments(t, key_lengths));
    const heed_segments *queries = segments(t, query_lengths);
    assert_null(heed_attend(t, &s.l, s.q, &m, queries, &(heed_attend_extra){.log_weights = &logs}));
    assert_string_equal(
        heed_tape_error(t)->text,
        "attention: the weights of local-p do not sum to 1 and have no log-weights");
    heed_tape_reset(t);
    heed_tensor *bias = heed_input(t, HEED_SHAPE(1, 12, 12), NULL);
    m = heed_attend_memory(t, &s.l, s.k, s.v, segments(t, key_lengths));
    assert_null(heed_attend(t, &s.l, s.q, &m, segments(t, query_lengths),
                            &(heed_attend_extra){.bias = bias}));
    assert_string_equal(heed_tape_error(t)->text,
                        "attention: a bias needs a score that is a product, over all keys");
    heed_tape_reset(t);
    m = heed_attend_memory(t, &s.l, s.k, s.v, NULL);
    assert_null(heed_attend(t, &s.l, s.q, &m, segments(t, query_lengths), NULL));
    assert_string_equal(heed_tape_error(t)->text, "attention: segments of the keys are NULL");
    heed_params_free(s.p);

    heed_tape_reset(t);
    s = setting_new((heed_attend_options){.score = HEED_SCORE_LOCATION});
    const int64_t long_keys[B] = {0, LONGEST + 1, 0, KEYS - LONGEST - 1};
    m = heed_attend_memory(t, &s.l, s.k, s.v, segments(t, long_keys));
    assert_null(heed_attend(t, &s.l, s.q, &m, segments(t, query_lengths), NULL));
    assert_string_equal(heed_tape_error(t)->text,
                        "attention: a segment of 13 keys, locations for at most 12");
    heed_params_free(s.p);
    heed_tape_free(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_mechanism_matches_loops),
        cmocka_unit_test(every_mechanism_has_its_gradient),
        cmocka_unit_test(log_weights_need_no_values),
        cmocka_unit_test(a_window_over_everything_is_global),
        cmocka_unit_test(the_gaussian_takes_weight_away),
        cmocka_unit_test(other_sentences_change_nothing),
        cmocka_unit_test(a_cosine_needs_beta),
        cmocka_unit_test(steps_are_the_whole),
        cmocka_unit_test(the_table_is_complete),
        cmocka_unit_test(specs_are_read_and_written),
        cmocka_unit_test(wrong_combinations_name_right_ones),
        cmocka_unit_test(wrong_calls_are_named),
    };
    return cmocka_run_group_tests_name("attention in slots", tests, NULL, NULL);
}
