/* Attention in its slots: every score over every window against loops, gradients, limit cases, and
 * what is refused. */
#include "layer_check.h"
#include <heed/attention.h>

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
static const char *const score_words[] = {HEED_SCORE_WORDS};
enum { SCORES = sizeof score_words / sizeof *score_words };

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
    if (o->pattern != HEED_PATTERN_LOCAL_P)
        return (double)own;
    double sum = 0;
    for (int64_t d = 0; d < o->query_d; d++)
        sum += tanh(times(s->q, i, 0, o->query_d, s->l.place.weight, 0, d)) *
               (double)heed__row(s->l.place_out.weight, d)[h];
    return (double)keys / (1 + exp(-sum));
}

/* The weights of one query of one head over `keys` keys from row `first` on. */
static void weights_of(const struct setting *s, int64_t h, int64_t i, int64_t own, int64_t first,
                       int64_t keys, double *w)
{
    const heed_attend_options *o = &s->l.options;
    const double p = centre_of(s, h, i, own, keys), d = (double)o->window;
    double sum = 0;
    for (int64_t j = 0; j < keys; j++) {
        const double at = o->pattern == HEED_PATTERN_LOCAL_M ? fmin(p, (double)keys - 1) : p;
        bool seen = o->pattern == HEED_PATTERN_GLOBAL || fabs((double)j - at) <= d;
        if (o->causal)
            seen = seen && j <= own;
        w[j] = seen ? exp(score_of(s, h, i, first + j, j)) : 0;
        sum += w[j];
    }
    for (int64_t j = 0; j < keys; j++) {
        w[j] = sum > 0 ? w[j] / sum : 0;
        if (o->pattern == HEED_PATTERN_LOCAL_P && isfinite(o->deviation))
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

/* Every score under every window, causal or not, that build takes. */
static void each_combination(int64_t window, void (*check)(struct setting *s, int threads))
{
    for (int score = 0; score < SCORES; score++)
        for (int pattern = 0; pattern <= HEED_PATTERN_LOCAL_P; pattern++)
            for (int causal = 0; causal < 2 && (!causal || pattern < HEED_PATTERN_LOCAL_P);
                 causal++) {
                struct setting s = setting_new((heed_attend_options){
                    .score = score, .pattern = pattern, .window = window, .causal = causal});
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
        {.score = HEED_SCORE_ADDITIVE, .heads = 1, .pattern = HEED_PATTERN_LOCAL_P},
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
        struct setting s = setting_new((heed_attend_options){.score = score,
                                                             .pattern = HEED_PATTERN_LOCAL_P,
                                                             .window = LONGEST,
                                                             .deviation = INFINITY});
        heed_tape *t = heed_tape_new(NULL, NULL);
        heed_tensor *weights[3];
        for (int pattern = HEED_PATTERN_LOCAL_P; pattern >= 0; pattern--) {
            s.l.options.pattern = pattern;
            attend(t, &s, &(heed_attend_extra){.weights = &weights[pattern]});
        }
        assert_same(weights[HEED_PATTERN_LOCAL_M], weights[HEED_PATTERN_GLOBAL]);
        assert_same(weights[HEED_PATTERN_LOCAL_P], weights[HEED_PATTERN_GLOBAL]);
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
        .score = HEED_SCORE_GENERAL, .pattern = HEED_PATTERN_LOCAL_P, .window = 2});
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
        for (int pattern = 0; pattern <= HEED_PATTERN_LOCAL_P; pattern++) {
            struct setting s =
                setting_new((heed_attend_options){.score = score, .pattern = pattern, .window = 2});
            heed_tape *t = heed_tape_new(NULL, NULL);
            heed_tensor *with = attend(t, &s, NULL);
            assert_memory_equal(among, s.key_lengths, sizeof among);
            assert_memory_equal(own_queries, s.query_lengths, sizeof own_queries);
            heed_memory m = heed_attend_memory(t, &s.l, heed_slice_rows(t, s.k, 0, 4),
                                               heed_slice_rows(t, s.v, 0, 4), segments(t, alone));
            heed_tensor *without = heed_attend(t, &s.l, heed_slice_rows(t, s.q, 0, 3), &m,
                                               segments(t, own_alone), NULL);
            assert_non_null(without);
            for (int64_t i = 0; i < heed_tensor_count(without); i++)
                assert_true(heed_tensor_data(with)[i] == heed_tensor_data(without)[i]);
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

/* Queries and keys of one sequence, all at once and one query at a time. */
static void check_steps(struct setting *s)
{
    enum { N = 5 };
    const int64_t all[B] = {N}, one[B] = {1};
    heed_tape *t = heed_tape_new(NULL, NULL);
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
    for (int score = 0; score < SCORES; score++)
        for (int pattern = 0; pattern <= HEED_PATTERN_LOCAL_P; pattern++)
            for (int causal = 0; causal < 2 && (!causal || pattern < HEED_PATTERN_LOCAL_P);
                 causal++) {
                struct setting s = setting_new((heed_attend_options){
                    .score = score, .pattern = pattern, .window = 2, .causal = causal});
                check_steps(&s);
                heed_params_free(s.p);
            }
}

/* ---- the table, and what is refused ---- */

/* Catches: a row without its facts, or words of options in another order than the rows. */
static void the_table_is_complete(void **state)
{
    (void)state;
    static const char *const patterns[] = {HEED_PATTERN_WORDS}, *const normalisers[] = {
                                                                    HEED_NORMALISER_WORDS};
    const char *const *words[] = {[HEED_SLOT_PATTERN] = patterns,
                                  [HEED_SLOT_SCORE] = score_words,
                                  [HEED_SLOT_NORMALISER] = normalisers};
    const int wanted[] = {1, 3, SCORES, 1, 2};
    int found[5] = {0};
    for (int i = 0; i < heed_attention_count(); i++) {
        heed_attention_info row = heed_attention_describe(i);
        assert_non_null(heed_attention_slot_name(row.slot));
        assert_true(row.formula && row.paper && row.cost && row.can & HEED_CAN_WEIGHTS);
        if (words[row.slot])
            assert_string_equal(row.name, words[row.slot][found[row.slot]]);
        found[row.slot]++;
    }
    assert_memory_equal(found, wanted, sizeof wanted);
    assert_null(heed_attention_describe(-1).name);
    assert_null(heed_attention_describe(heed_attention_count()).name);
    assert_string_equal(heed_attention_ability_name(HEED_CAN_FUSED), "fused");
    assert_null(heed_attention_ability_name((heed_attention_ability)3));
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
        {{.pattern = HEED_PATTERN_LOCAL_P, .causal = true, .query_d = 4, .key_d = 4},
         "attention: local-p needs to know how long the sequence is and cannot be causal: use "
         "global or local-m"},
        {{.pattern = HEED_PATTERN_LOCAL_P,
          .normaliser = HEED_NORMALISE_HARD,
          .query_d = 4,
          .key_d = 4},
         "attention: hard attention draws from weights that sum to 1, those of local-p do not: "
         "use global or local-m"},
        {{.score = 17, .query_d = 4, .key_d = 4},
         "attention: there is no score 17, only scaled-dot, dot, general, additive, cosine or "
         "location"},
        {{.heads = 3, .query_d = 4, .key_d = 4}, "expected multiples of 3 heads"},
        {{.score = HEED_SCORE_LOCATION, .query_d = 4, .key_d = 4}, "location needs `longest`"},
        {{.query_d = 4, .key_d = 4, .dropout = 1}, "dropout is 1, expected 0 <= rate < 1"},
        {{.query_d = 4, .key_d = 4, .beta = -1}, "beta is -1, expected 0 or more"},
        {{.query_d = 4, .key_d = 4, .window = -1}, "expected none below 0"},
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
    struct setting s = setting_new((heed_attend_options){.pattern = HEED_PATTERN_LOCAL_P});
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
        cmocka_unit_test(wrong_combinations_name_right_ones),
        cmocka_unit_test(wrong_calls_are_named),
    };
    return cmocka_run_group_tests_name("attention in slots", tests, NULL, NULL);
}
