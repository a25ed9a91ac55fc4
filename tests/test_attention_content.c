/* Patterns by content beyond the table of forms: what each paper says of its own.  Limit cases
 * that are dense attention, planted neighbours that must be found, hashes that agree more often
 * the closer two rows are, centroids that move without a gradient, what is causal to the letter,
 * and what is refused. */
#include "attention_table.h"
#include "base/random.h"
#ifdef HEED_DOUBLE
#define LAYER_STEP 1e-5 /* so small that no choice is another */
#endif
#include "layer_check.h"

#ifdef HEED_DOUBLE
#define NEAR 1e-9
#else
#define NEAR 2e-4
#endif

enum { HEADS = 2, DK = 8, WIDTH = HEADS * DK };

static double value(int64_t i, int salt)
{
    return sin(12.9898 * (double)(i + 1) + 78.233 * salt);
}

static heed_tensor *rows_of(heed_tape *t, int64_t n, int64_t d, int salt)
{
    heed_tensor *x = heed_variable(t, HEED_SHAPE(n, d), NULL);
    for (int64_t i = 0; i < n * d; i++)
        heed_tensor_data(x)[i] = (heed_real)value(i, salt);
    return x;
}

/* A layer with this pattern, its state drawn. */
static heed_params *layer_new(heed_attend_layer *l, const char *pattern, bool causal)
{
    heed_error err = {0};
    heed_params *p = heed_params_new(NULL, NULL);
    heed_attend_build(l, heed_params_scope(p),
                      &(heed_attend_options){.pattern = form_slot(HEED_SLOT_PATTERN, pattern),
                                             .heads = HEADS,
                                             .query_d = WIDTH,
                                             .key_d = WIDTH,
                                             .value_d = WIDTH,
                                             .projected = true,
                                             .causal = causal});
    if (heed_params_finish(p, 3, &err))
        fail_msg("%s: %s", pattern, err.text);
    return p;
}

static heed_tensor *attend(heed_tape *t, const heed_attend_layer *l, heed_tensor *const in[3],
                           const heed_segments *s, heed_tensor **weights)
{
    const heed_memory m = heed_attend_memory(t, l, in[1], in[2], s);
    heed_tensor *y = heed_attend(t, l, in[0], &m, s, &(heed_attend_extra){.weights = weights});
    if (!y)
        fail_msg("%s", heed_tape_error(t)->text);
    return y;
}

/* The gradients of y . w in copies of theirs. */
static void back(heed_tape *t, heed_tensor *y, heed_tensor *const in[3], double *grad)
{
    heed_tensor *w = heed_input(t, heed_tensor_shape(y), NULL);
    for (int64_t i = 0; i < heed_tensor_count(w); i++)
        heed_tensor_data(w)[i] = (heed_real)value(i, 9);
    assert_int_equal(heed_backward(t, heed_sum(t, heed_mul(t, y, w), HEED_ALL)), HEED_OK);
    for (int i = 0; i < 3; i++)
        for (int64_t n = 0; n < heed_tensor_count(in[i]); n++)
            *grad++ = heed_tensor_grad(in[i]) ? (double)heed_tensor_grad(in[i])[n] : 0;
}

/* ---- limits that are dense attention ---- */

enum { LIMIT_ROWS = 61 + 1 + 20 };
static const int64_t limit_lengths[] = {61, 0, 1, 20};

static heed_tensor *dense(heed_tape *t, heed_tensor *const in[3], const heed_segments *s,
                          bool causal, bool shared)
{
    heed_tensor *bias = NULL, *k = in[1];
    if (shared) { /* keys are queries of length 1, the own one only where there is no other */
        k = heed_unit(t, in[0], HEADS, HEED__COSINE_EPS);
        bias = heed_input(t, (heed_shape){3, {1, s->longest, s->longest}}, NULL);
        for (int64_t i = 0; i < s->longest; i++)
            heed_tensor_data(bias)[i * s->longest + i] = (heed_real)(i || !causal ? -1e5 : 0);
    }
    return heed_attention(
        t, in[0], k, in[2], s, s,
        &(heed_attention_options){.heads = HEADS, .causal = causal, .bias = bias});
}

static void check_limit(const char *pattern, bool causal, bool shared)
{
    heed_attend_layer l;
    heed_params *p = layer_new(&l, pattern, causal);
    heed_tape *t = heed_tape_new(&(heed_tape_options){.threads = 2}, NULL);
    double *grad[2];
    heed_tensor *y[2];
    const heed_segments *s = heed_segments_new(heed_tape_arena(t), 4, limit_lengths);
    for (int which = 0; which < 2; which++) {
        heed_tensor *in[3];
        for (int i = 0; i < 3; i++)
            in[i] = rows_of(t, LIMIT_ROWS, WIDTH, i);
        y[which] = which ? dense(t, in, s, causal, shared) : attend(t, &l, in, s, NULL);
        grad[which] = malloc((size_t)(3 * LIMIT_ROWS * WIDTH) * sizeof(double));
        back(t, y[which], in, grad[which]);
    }
    for (int64_t i = 0; i < LIMIT_ROWS * WIDTH; i++)
        if (fabs((double)heed_tensor_data(y[0])[i] - (double)heed_tensor_data(y[1])[i]) > NEAR)
            fail_msg("%s, causal %d: y[%lld] is %g, dense %g", pattern, causal, (long long)i,
                     (double)heed_tensor_data(y[0])[i], (double)heed_tensor_data(y[1])[i]);
    for (int64_t i = 0; i < 3 * LIMIT_ROWS * WIDTH; i++)
        if (fabs(grad[0][i] - grad[1][i]) > NEAR)
            fail_msg("%s, causal %d: gradient %lld is %g, dense %g", pattern, causal, (long long)i,
                     grad[0][i], grad[1][i]);
    free(grad[0]);
    free(grad[1]);
    heed_tape_free(t);
    heed_params_free(p);
}

/* Catches: a key that is lost, or weighed twice, where all are to be seen. */
static void limits_are_dense(void **state)
{
    (void)state;
    for (int causal = 0; causal < 2; causal++) {
        check_limit("top-k:61", causal, false);
        check_limit("top-k:61:approximate", causal, false);
        check_limit("routing:1", causal, false);
        check_limit("lsh:1:1", causal, true);
        check_limit("lsh:1:3", causal, true);
    }
}

/* ---- what is found ---- */

/* Of the K largest, how many an approximate search over n rows keeps; `clusters` directions are
 * planted, 0: none. */
static double recall_of(const char *exact, const char *approximate, int64_t n, int64_t clusters,
                        bool causal)
{
    heed_tape *t = heed_tape_new(&(heed_tape_options){.threads = 1}, NULL);
    heed_tensor *in[3], *weights[2];
    const heed_rng rng = heed_rng_stream(&(heed_rng_key){.seed = 5, .node = (uint64_t)clusters});
    int64_t found = 0, wanted = 0;
    for (int x = 0; x < 3; x++) {
        in[x] = heed_input(t, HEED_SHAPE(n, WIDTH), NULL);
        for (int64_t i = 0; i < n * WIDTH; i++) {
            const int64_t row = i / WIDTH + x * n;
            const double noise = heed_rng_normal(&rng, (uint64_t)(i + x * n * WIDTH));
            const uint64_t of = clusters ? (uint64_t)(row * 7919 % 104729 % clusters) : 0;
            const double plan = clusters ? heed_rng_normal(&rng, ((uint64_t)1 << 40) + of * WIDTH +
                                                                     (uint64_t)(i % WIDTH))
                                         : 0;
            heed_tensor_data(in[x])[i] = (heed_real)(clusters ? 2 * plan + 0.5 * noise : noise);
        }
    }
    const heed_segments *s = heed_segments_new(heed_tape_arena(t), 1, &n);
    for (int x = 0; x < 2; x++) {
        heed_attend_layer l;
        heed_params *p = layer_new(&l, x ? approximate : exact, causal);
        attend(t, &l, in, s, &weights[x]);
        heed_params_free(p);
    }
    for (int64_t i = 0; i < HEADS * n * n; i++)
        if (heed_tensor_data(weights[0])[i] > 0) {
            wanted++;
            found += heed_tensor_data(weights[1])[i] > 0;
        }
    heed_tape_free(t);
    return (double)found / (double)wanted;
}

/* Catches: files in which keys are lost, and queries that open the wrong ones. */
static void most_of_the_largest_are_found(void **state)
{
    static const struct {
        int64_t clusters;
        double least;
    } rows[] = {{0, 0.5}, {16, 0.7}, {64, 0.7}};
    (void)state;
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++)
        for (int causal = 0; causal < 2; causal++) {
            const double recall =
                recall_of("top-k:8", "top-k:8:approximate", 700, rows[r].clusters, causal);
            print_message("    %lld clusters, causal %d: recall %.3f\n",
                          (long long)rows[r].clusters, causal, recall);
            if (!(recall >= rows[r].least && recall <= 1))
                fail_msg("recall %g, expected %g", recall, rows[r].least);
        }
}

/* Catches: gradients of keys and values that no query kept. */
static void gradients_reach_what_is_kept(void **state)
{
    enum { N = 30, HIDDEN = 17 };
    const int64_t n = N;
    heed_attend_layer l;
    heed_params *p = layer_new(&l, "top-k:4", false);
    heed_tape *t = heed_tape_new(NULL, NULL);
    heed_tensor *in[3];
    double *grad = malloc(3 * N * WIDTH * sizeof *grad);
    (void)state;
    for (int i = 0; i < 3; i++)
        in[i] = rows_of(t, N, WIDTH, i);
    for (int64_t i = 0; i < N * WIDTH; i++) { /* all queries point away from one key */
        heed_tensor_data(in[0])[i] = (heed_real)fabs((double)heed_tensor_data(in[0])[i]) + 1;
        if (i / WIDTH == HIDDEN)
            heed_tensor_data(in[1])[i] = -50;
    }
    const heed_segments *s = heed_segments_new(heed_tape_arena(t), 1, &n);
    back(t, attend(t, &l, in, s, NULL), in, grad);
    double others = 0;
    for (int x = 1; x < 3; x++)
        for (int64_t i = 0; i < N * WIDTH; i++)
            if (i / WIDTH == HIDDEN)
                assert_true(grad[x * N * WIDTH + i] == 0);
            else
                others += fabs(grad[x * N * WIDTH + i]);
    assert_true(others > 0.1);
    free(grad);
    heed_tape_free(t);
    heed_params_free(p);
}

/* Catches: a hash that says nothing about how close two rows are. */
static void closer_rows_collide_more_often(void **state)
{
    enum { TRIALS = 3000, BUCKETS = 8, D = 16 };
    static const int64_t sizes[] = {BUCKETS, 64};
    const heed_rng rng = heed_rng_stream(&(heed_rng_key){.seed = 8});
    (void)state;
    for (int size = 0; size < 2; size++) {
        double before = -1;
        for (double cosine = -0.5; cosine < 1.01; cosine += 0.25) {
            int together = 0;
            for (int trial = 0; trial < TRIALS; trial++) {
                heed_real r[64 * D], products[HEED__FEW_ROWS * 64], x[2][D] = {{0}};
                int32_t bucket[2];
                double a[D], b[D], aa = 0, ab = 0, bb = 0;
                heed__lsh_directions(r, 0, 0, trial, sizes[size], D);
                for (int i = 0; i < D; i++) {
                    a[i] = heed_rng_normal(&rng, (uint64_t)(trial * 2 * D + i));
                    b[i] = heed_rng_normal(&rng, (uint64_t)(trial * 2 * D + D + i));
                    aa += a[i] * a[i];
                    ab += a[i] * b[i];
                }
                for (int i = 0; i < D; i++) {
                    b[i] -= ab / aa * a[i];
                    bb += b[i] * b[i];
                }
                for (int i = 0; i < D; i++) {
                    x[0][i] = (heed_real)a[i];
                    x[1][i] = (heed_real)(cosine * a[i] / sqrt(aa) +
                                          sqrt(fmax(0, 1 - cosine * cosine)) * b[i] / sqrt(bb));
                }
                heed__lsh_buckets(bucket, x[0], D, 2, r, sizes[size], D, products);
                assert_in_range(bucket[0], 0, sizes[size] - 1);
                together += bucket[0] == bucket[1];
            }
            const double share = (double)together / TRIALS;
            if (!(share > before || (share == 0 && before == 0)))
                fail_msg("%lld buckets, cosine %g: %g together, %g of what is less close",
                         (long long)sizes[size], cosine, share, before);
            before = share;
        }
        assert_true(before > 0.999); /* the same direction */
    }
}

/* ---- centroids ---- */

enum { CLUSTERS = 4, PER = 24, ROUTED = CLUSTERS * PER };
#define NOISE 1.5 /* of the first centroids, beside directions of length 2.8 */

/* Rows around CLUSTERS directions of each head, in no order. */
static heed_tensor *planted(heed_tape *t, int salt)
{
    heed_tensor *x = heed_variable(t, HEED_SHAPE(ROUTED, WIDTH), NULL);
    const heed_rng rng = heed_rng_stream(&(heed_rng_key){.seed = 6, .node = (uint64_t)salt});
    for (int64_t i = 0; i < ROUTED * WIDTH; i++)
        heed_tensor_data(x)[i] = (heed_real)((i / WIDTH % CLUSTERS == i % DK / 2 ? 2 : 0) +
                                             0.5 * heed_rng_normal(&rng, (uint64_t)i));
    return x;
}

/* Of the pairs of one planted cluster, how many meet. */
static double routed_recall(heed_tape *t, const heed_attend_layer *l, const heed_segments *s)
{
    heed_tensor *in[] = {planted(t, 1), planted(t, 2), planted(t, 3)}, *weights;
    int64_t met = 0;
    attend(t, l, in, s, &weights);
    for (int64_t x = 0; x < HEADS * ROUTED * ROUTED; x++)
        met += heed_tensor_data(weights)[x] > 0 &&
               x / ROUTED % ROUTED % CLUSTERS == x % ROUTED % CLUSTERS;
    return (double)met / (HEADS * CLUSTERS * PER * PER);
}

/* Catches: centroids that do not find what is there; that have a gradient, move in evaluation, in
 * the middle of an update, or by more than the moving mean of what is nearest; clusters that are
 * not equally large. */
static void centroids_find_planted_clusters(void **state)
{
    const int64_t n = ROUTED;
    heed_attend_layer l;
    heed_params *p = layer_new(&l, "routing:4", false);
    heed_tape *t = heed_tape_new(&(heed_tape_options){.threads = 1}, NULL);
    const heed_segments *s;
    heed_real kept[HEADS * CLUSTERS * DK];
    (void)state;
    assert_int_equal(heed_params_count(p), 1);
    assert_int_equal(heed_params_state_size(p) >= HEADS * CLUSTERS * DK, 1);
    /* Each begins somewhere around a cluster of its own. */
    const heed_rng rng = heed_rng_stream(&(heed_rng_key){.seed = 11});
    const heed_tensor *rows = planted(t, 4);
    for (int64_t i = 0; i < HEADS * CLUSTERS * DK; i++)
        heed_tensor_data(l.centroids)[i] =
            heed__row(rows, i / DK % CLUSTERS)[i / DK / CLUSTERS * DK + i % DK] +
            (heed_real)(NOISE * heed_rng_normal(&rng, (uint64_t)i));
    memcpy(kept, heed_tensor_data(l.centroids), sizeof kept);
    heed_tape_reset(t);
    s = heed_segments_new(heed_tape_arena(t), 1, &n);
    heed_tape_set_training(t, false);
    const double at_first = routed_recall(t, &l, s);
    heed_params_fold_state(p);
    assert_memory_equal(kept, heed_tensor_data(l.centroids), sizeof kept);
    heed_tape_set_training(t, true);
    for (int update = 0; update < 400; update++) {
        heed_tape_reset(t);
        s = heed_segments_new(heed_tape_arena(t), 1, &n);
        routed_recall(t, &l, s);
        if (update == 0) {
            assert_memory_equal(kept, heed_tensor_data(l.centroids), sizeof kept);
            routed_recall(t, &l, s); /* a second micro-batch, the same: the mean is, too */
        }
        heed_params_fold_state(p);
        if (update == 0) { /* one step of the moving mean, in double */
            heed_tensor *q = planted(t, 1), *k = planted(t, 2);
            for (int c = 0; c < HEADS * CLUSTERS; c++) {
                double sum[DK] = {0};
                bool any = false;
                for (int64_t r = 0; r < 2 * ROUTED; r++) {
                    const heed_real *x =
                        heed__row(r < ROUTED ? q : k, r % ROUTED) + c / CLUSTERS * DK;
                    double mean = 0, square = 0, best = -INFINITY;
                    int near = 0;
                    for (int d = 0; d < DK; d++)
                        mean += (double)x[d] / DK;
                    for (int d = 0; d < DK; d++)
                        square += ((double)x[d] - mean) * ((double)x[d] - mean);
                    for (int m = 0; m < CLUSTERS; m++) {
                        const heed_real *mu = kept + (c / CLUSTERS * CLUSTERS + m) * DK;
                        double dot = 0, length = 0, middle = 0;
                        for (int d = 0; d < DK; d++)
                            middle += (double)mu[d] / DK;
                        for (int d = 0; d < DK; d++) {
                            dot += (double)mu[d] * ((double)x[d] - mean);
                            length += ((double)mu[d] - middle) * ((double)mu[d] - middle);
                        }
                        if (dot / sqrt(length) > best) {
                            best = dot / sqrt(length);
                            near = m;
                        }
                    }
                    for (int d = 0; near == c % CLUSTERS && d < DK; d++) {
                        any = true;
                        sum[d] += ((double)x[d] - mean) / sqrt(square) / 2;
                    }
                }
                for (int d = 0; d < DK; d++) {
                    const double old = (double)kept[c * DK + d];
                    const double wanted = 0.999 * old + 0.001 * (any ? sum[d] : old);
                    assert_true(fabs((double)heed_tensor_data(l.centroids)[c * DK + d] - wanted) <
                                1e-5);
                }
            }
        }
    }
    heed_tape_reset(t);
    heed_tape_set_training(t, false);
    s = heed_segments_new(heed_tape_arena(t), 1, &n);
    const double at_last = routed_recall(t, &l, s);
    print_message("    recall of planted pairs %.3f, %.3f at first\n", at_last, at_first);
    assert_true(at_first < 0.93 && at_last >= 0.95);
    heed_tape_free(t);
    heed_params_free(p);
}

/* ---- causal ---- */

/* Catches: a choice that a later key changes, where the row says that none does. */
static void top_k_is_causal_to_the_letter(void **state)
{
    enum { N = 90 };
    static const char *const patterns[] = {"top-k:3", "top-k:2:approximate", "top-k:2+band:2"};
    (void)state;
    for (size_t f = 0; f < sizeof patterns / sizeof *patterns; f++) {
        heed_attend_layer l;
        heed_params *p = layer_new(&l, patterns[f], true);
        heed_tape *t = heed_tape_new(NULL, NULL);
        heed_tensor *in[3], *whole;
        int64_t n = N;
        for (int i = 0; i < 3; i++)
            in[i] = rows_of(t, N, WIDTH, i);
        whole = attend(t, &l, in, heed_segments_new(heed_tape_arena(t), 1, &n), NULL);
        for (n = 1; n < N; n += 7) {
            heed_tensor *part[3];
            for (int i = 0; i < 3; i++)
                part[i] = heed_slice_rows(t, in[i], 0, n);
            heed_tensor *y =
                attend(t, &l, part, heed_segments_new(heed_tape_arena(t), 1, &n), NULL);
            assert_memory_equal(heed_tensor_data(y), heed_tensor_data(whole),
                                (size_t)(n * WIDTH) * sizeof(heed_real));
        }
        heed_tape_free(t);
        heed_params_free(p);
    }
}

/* ---- layers ---- */

struct layer {
    heed_mha_layer mha;
    heed_tensor *x;
    int64_t n;
};

static int run_layer(heed_tape *t, void *context, heed_tensor **out)
{
    const struct layer *l = context;
    const heed_segments *s = heed_segments_new(heed_tape_arena(t), 1, &l->n);
    out[0] = heed_mha_apply(t, &l->mha, l->x, l->x, s, s, NULL);
    return 1;
}

/* Catches: a gradient that is lost on the way from what is kept to the product of queries, keys and
 * values: in lsh keys are queries, and have no columns of their own. */
static void layers_have_their_gradients(void **state)
{
    static const struct {
        const char *pattern;
        heed_positions positions;
        int columns; /* of queries, keys and values, in heads */
    } rows[] = {{"top-k:3", HEED_POSITIONS_NONE, 3},
                {"top-k:1:approximate", HEED_POSITIONS_ROTARY, 3},
                {"lsh:2:2", HEED_POSITIONS_ROTARY, 2},
                {"lsh:4:1+band:2", HEED_POSITIONS_NONE, 2},
                {"routing:3", HEED_POSITIONS_NONE, 3}};
    (void)state;
#ifndef HEED_DOUBLE
    skip(); /* the steps of differences in float are large, and choices would be others */
#endif
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++)
        for (int causal = 0; causal < 2; causal++) {
            struct layer l = {.n = 12};
            heed_params *p = heed_params_new(NULL, NULL);
            heed_scope root = heed_params_scope(p);
            heed_mha_build(
                &l.mha, root,
                &(heed_mha_options){.d = 8,
                                    .heads = 2,
                                    .causal = causal,
                                    .bias = true,
                                    .pattern = form_slot(HEED_SLOT_PATTERN, rows[r].pattern),
                                    .positions = rows[r].positions});
            l.x = heed_param(root, "x", HEED_SHAPE(l.n, 8), (heed_init){HEED_INIT_NORMAL, 1});
            assert_int_equal(heed_params_finish(p, 4, NULL), HEED_OK);
            assert_int_equal(heed_tensor_cols(l.mha.qkv.weight), 8 * rows[r].columns);
            print_message("    %s\n", rows[r].pattern);
            layer_check(p, run_layer, &l);
            heed_params_free(p);
        }
}

/* ---- what is refused ---- */

static void wrong_slots_are_named(void **state)
{
    static const struct {
        const char *pattern, *memory, *normaliser;
        heed_attend_options o;
        const char *text;
    } rows[] = {
        {"top-k:200",
         NULL,
         NULL,
         {.longest = 100},
         "attention: top-k:200 needs 200 keys, and a sequence of this model has at most 100"},
        {"routing:64",
         NULL,
         NULL,
         {.longest = 32},
         "attention: routing:64 needs 64 keys, and a sequence of this model has at most 32"},
        {"lsh:64",
         NULL,
         NULL,
         {.longest = 32},
         "attention: lsh:64 needs 64 keys, and a sequence of this model has at most 32"},
        {"top-k:4+routing:2",
         NULL,
         NULL,
         {.longest = 0},
         "attention: one of a pattern's terms may choose by content, found top-k and another"},
        {"top-k:4",
         "mca:2",
         NULL,
         {.longest = 0},
         "attention: top-k chooses among the keys of single positions: use the memory states or "
         "persistent"},
        {"lsh:4",
         NULL,
         NULL,
         {.score = HEED_SCORE_GENERAL},
         "attention: the keys of lsh are its queries: use the score scaled-dot or dot, and as many "
         "heads of keys as of queries"},
        {"routing:4",
         NULL,
         NULL,
         {.score = HEED_SCORE_ADDITIVE},
         "attention: routing needs a score that is a product: use scaled-dot, dot, general or "
         "cosine"},
        {"top-k:4",
         NULL,
         "elu",
         {.longest = 0},
         "attention: elu forms no weights: it sums over all keys, as the pattern global has them"},
        {"top-k:4",
         NULL,
         NULL,
         {.single = true},
         "attention: top-k is for layers that look at a whole sequence at once, not for recurrent "
         "steps"},
    };
    static const struct {
        const char *text, *wanted;
    } forms[] = {{"top-k:0", "the number of top-k:K[:approximate] is 0, expected 1 to 2147483647"},
                 {"top-k:4:exact", "'exact' is no word of top-k, expected top-k:K[:approximate]"},
                 {"lsh:3:2", "lsh has 3 buckets, expected 1 or an even number: a hash takes each "
                             "direction and its opposite"}};
    heed_error err = {0};
    heed_slot_spec spec;
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        heed_attend_options o = rows[i].o;
        err = (heed_error){0};
        o.heads = HEADS, o.query_d = o.key_d = o.value_d = WIDTH, o.projected = true;
        o.pattern = form_slot(HEED_SLOT_PATTERN, rows[i].pattern);
        o.memory = form_slot(HEED_SLOT_MEMORY, rows[i].memory);
        o.normaliser = form_slot(HEED_SLOT_NORMALISER, rows[i].normaliser);
        assert_int_equal(heed__attend_check(&o, &err), HEED_ARGUMENT);
        assert_string_equal(err.text, rows[i].text);
    }
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        err = (heed_error){0};
        assert_int_equal(heed_slot_parse(HEED_SLOT_PATTERN, forms[i].text, &spec, &err),
                         HEED_ARGUMENT);
        assert_string_equal(err.text, forms[i].wanted);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(limits_are_dense),
        cmocka_unit_test(most_of_the_largest_are_found),
        cmocka_unit_test(gradients_reach_what_is_kept),
        cmocka_unit_test(closer_rows_collide_more_often),
        cmocka_unit_test(centroids_find_planted_clusters),
        cmocka_unit_test(top_k_is_causal_to_the_letter),
        cmocka_unit_test(layers_have_their_gradients),
        cmocka_unit_test(wrong_slots_are_named),
    };
    return cmocka_run_group_tests_name("attention by content", tests, NULL, NULL);
}
