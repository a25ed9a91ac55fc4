/* The kernels of one attention head against loops, for every instruction set. */
#include "attention_oracle.h"

/* beta 0 must not read what was there: it is NaN. */
static void assert_rows(heed__matrix x, const double *expected, int64_t rows, int64_t cols,
                        double before)
{
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < cols; j++) {
            double wanted = expected[i * cols + j] + before, found = (double)x.at[i * x.ld + j];
            if (!(fabs(found - wanted) <= TOLERANCE * (1 + fabs(wanted))))
                fail_msg("(%lld,%lld) is %.9g, expected %.9g", (long long)i, (long long)j, found,
                         wanted);
        }
    for (int64_t i = 0; i + 1 < rows; i++) /* nothing beside the head's own columns */
        for (int64_t j = cols; j < x.ld; j++)
            assert_true(isnan(x.at[i * x.ld + j]) || x.at[i * x.ld + j] == (real)0.5);
}

static heed__matrix filled(int64_t rows, int64_t cols, real with)
{
    heed__matrix x = {malloc((size_t)(rows * (cols + 3) + 1) * sizeof(real)), cols + 3};
    for (int64_t i = 0; i < rows * x.ld; i++)
        x.at[i] = with;
    return x;
}

static heed__matrix random_rows(int64_t rows, int64_t cols, int salt)
{
    return (heed__matrix){values(rows * (cols + 3), salt), cols + 3};
}

static void check_kernels(const heed_kernels *kernels, int64_t t, int64_t s, int64_t dk, int64_t dv,
                          bool causal, bool biased, double dropout, real beta)
{
    const heed_rng rng = heed_rng_stream(&(heed_rng_key){.seed = 5});
    const real before = beta == 0 ? (real)NAN : (real)0.5;
    heed__head h = {.t = t, .s = s, .d_k = dk, .d_v = dv, .scale = (real)0.3, .causal = causal};
    h.dropout = dropout;
    h.rng = &rng;
    h.first = 1003;
    h.q = random_rows(t, dk, 1);
    h.k = random_rows(s, dk, 2);
    h.v = random_rows(s, dv, 3);
    h.d_out = random_rows(t, dv, 4);
    if (biased)
        h.bias = random_rows(t, s, 5);
    for (int64_t j = 0; biased && j < s;
         j++) /* a query that may see nothing, and one forbidden key */
        h.bias.at[(t / 2) * h.bias.ld + j] = h.bias.at[j * 7 % s] = -INFINITY;
    real *d_weights = values(t * s, 6), *mask = malloc((size_t)(t * s + 1) * sizeof *mask);
    h.d_weights = biased ? d_weights : NULL;
    if (dropout > 0)
        kernels->dropout_mask(mask, &rng, h.first, t * s, dropout);
    h.weights = filled(1, t * s, NAN).at;
    h.d_scores = filled(1, t * s, NAN).at;
    h.out = filled(t, dv, NAN);
    h.d_q = filled(t, dk, before);
    h.d_k_rows = filled(s, dk, before);
    h.d_v_rows = filled(s, dv, before);
    h.beta_q = h.beta_k = h.beta_v = beta;
    size_t bytes = kernels->head_scratch(t, s, dk, dv);
    h.scratch = aligned_alloc(64, (bytes + 127) / 64 * 64);
    memset(h.scratch, 0xff, (bytes + 127) / 64 * 64); /* NaN: scratch holds nothing yet */

    oracle r = naive(&h, dropout > 0 ? mask : NULL);
    kernels->head_forward(&h);
    const double start = beta == 0 ? 0 : (double)before;
    assert_rows(h.out, r.o, t, dv, 0);
    assert_near(h.weights, r.p, t * s, TOLERANCE);
    kernels->head_backward(&h);
    assert_rows(h.d_q, r.dq, t, dk, start);
    assert_rows(h.d_k_rows, r.dk_, s, dk, start);
    assert_rows(h.d_v_rows, r.dv_, s, dv, start);
    assert_near(h.d_scores, r.dz, t * s, TOLERANCE);

    oracle_free(&r);
    void *all[] = {h.q.at,    h.k.at,    h.v.at,        h.d_out.at,   h.bias.at,
                   d_weights, mask,      h.weights,     h.d_scores,   h.out.at,
                   h.d_q.at,  h.scratch, h.d_k_rows.at, h.d_v_rows.at};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        free(all[i]);
}

/* ---- runs of keys ---- */

typedef struct band {
    int64_t width, keys;
} band;

static int band_runs(const void *context, int64_t head, int64_t i, heed__run *out)
{
    const band *b = context;
    const int64_t begin = i > b->width ? i - b->width : 0;
    const int64_t end = i + b->width < b->keys ? i + b->width + 1 : b->keys;
    (void)head;
    *out = (heed__run){begin, end, 1, 1};
    return begin < end;
}

/* Keys that stand anywhere, every (width + 2)-th from another place for each query. */
static bool is_listed(const band *b, int64_t i, int64_t j)
{
    return (3 * i + j) % (b->width + 2) == 0;
}

static int64_t listed_keys(const void *context, int64_t head, int64_t i, int32_t *out)
{
    const band *b = context;
    int64_t n = 0;
    (void)head;
    for (int64_t j = 0; j < b->keys; j++)
        if (is_listed(b, i, j))
            out[n++] = (int32_t)j;
    return n;
}

/* Queries that see some keys, those near their own place or those of a list, against loops with all
 * others forbidden. */
static void check_sparse(const heed_kernels *kernels, bool listed, int64_t t, int64_t s, int64_t dk,
                         int64_t dv, int64_t width, double dropout, real beta)
{
    const heed_rng rng = heed_rng_stream(&(heed_rng_key){.seed = 5});
    const real before = beta == 0 ? (real)NAN : (real)0.5;
    const band b = {width, s};
    heed__head h = {.t = t, .s = s, .d_k = dk, .d_v = dv, .scale = (real)0.3, .kv_heads = 1};
    h.heads = h.most = 1;
    h.runs = band_runs;
    h.list = listed_keys;
    h.context = &b;
    h.dropout = dropout;
    h.rng = &rng;
    h.first = 1003;
    h.q = random_rows(t, dk, 1);
    h.k = random_rows(s, dk, 2);
    h.v = random_rows(s, dv, 3);
    h.d_out = random_rows(t, dv, 4);
    h.stats = filled(1, 2 * t, NAN).at;
    h.stats_step = 2;
    h.out = filled(t, dv, NAN);
    h.d_q = filled(t, dk, before);
    h.d_k_rows = filled(s, dk, before);
    h.d_v_rows = filled(s, dv, before);
    h.beta_q = h.beta_k = h.beta_v = beta;
    const size_t bytes =
        listed ? kernels->list_scratch(s, 0, dk) : kernels->tiles_scratch(t, s, 0, h.most, dk, dv);
    h.scratch = aligned_alloc(64, (bytes + 127) / 64 * 64);
    memset(h.scratch, 0xff, (bytes + 127) / 64 * 64);
    real *mask = malloc((size_t)(t * s + 1) * sizeof *mask);
    if (dropout > 0)
        kernels->dropout_mask(mask, &rng, h.first, t * s, dropout);

    heed__head all = h;
    all.bias = filled(t, s, 0);
    for (int64_t i = 0; i < t; i++)
        for (int64_t j = 0; j < s; j++)
            if (listed ? !is_listed(&b, i, j) : j < i - width || j > i + width)
                all.bias.at[i * all.bias.ld + j] = -INFINITY;
    oracle r = naive(&all, dropout > 0 ? mask : NULL);
    listed ? kernels->list_forward(&h) : kernels->tiles_forward(&h);
    const double start = beta == 0 ? 0 : (double)before;
    assert_rows(h.out, r.o, t, dv, 0);
    listed ? kernels->list_backward(&h) : kernels->tiles_backward(&h);
    assert_rows(h.d_q, r.dq, t, dk, start);
    assert_rows(h.d_k_rows, r.dk_, s, dk, start);
    assert_rows(h.d_v_rows, r.dv_, s, dv, start);

    oracle_free(&r);
    void *own[] = {h.q.at, h.k.at,   h.v.at,   h.d_out.at, h.stats,       all.bias.at,
                   mask,   h.out.at, h.d_q.at, h.scratch,  h.d_k_rows.at, h.d_v_rows.at};
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        free(own[i]);
}

/* Catches: a tile or a listed key that is left out or made twice, a wrong mask at the end of a run,
 * a row's maximum or sum that is another in backward, in any instruction set. */
static void sparse_matches_loops(bool listed)
{
    static const int64_t sizes[][4] = {
        {1, 1, 1, 1},    {7, 9, 3, 17},   {24, 24, 64, 64}, {13, 25, 31, 9},
        {49, 61, 20, 6}, {97, 101, 5, 3}, {61, 17, 8, 40},  {130, 130, 16, 8},
    };
    static const int64_t widths[] = {0, 3, 40};
    for (int i = 0; heed__kernels_at(i); i++)
        for (size_t n = 0; n < sizeof sizes / sizeof *sizes; n++)
            for (int flags = 0; flags < 12; flags++) {
                const int64_t *z = sizes[n];
                check_sparse(heed__kernels_at(i), listed, z[0], z[1], z[2], z[3], widths[flags / 4],
                             flags & 1 ? 0.3 : 0, flags & 2 ? 1 : 0);
            }
}

static void runs_match_loops(void **state)
{
    (void)state;
    sparse_matches_loops(false);
}

static void lists_match_loops(void **state)
{
    (void)state;
    sparse_matches_loops(true);
}

/* Catches: a wrong tile, strip, tail, block edge or triangle in any instruction set. */
static void kernels_match_loops(void **state)
{
    (void)state;
    static const int64_t sizes[][4] = {
        {1, 1, 1, 1},    {2, 3, 5, 4},    {7, 9, 3, 17},   {24, 24, 64, 64}, {5, 8, 16, 8},
        {13, 25, 31, 9}, {48, 33, 7, 24}, {49, 61, 20, 6}, {97, 101, 5, 3},  {61, 17, 8, 40},
        {3, 130, 2, 2},  {4, 0, 3, 5},    {0, 4, 3, 5},    {50, 50, 1, 1},
    };
    for (int i = 0; heed__kernels_at(i); i++)
        for (size_t n = 0; n < sizeof sizes / sizeof *sizes; n++)
            for (int flags = 0; flags < 16; flags++) {
                const int64_t *z = sizes[n];
                bool biased = flags & 2 && z[0] && z[1];
                check_kernels(heed__kernels_at(i), z[0], z[1], z[2], z[3], flags & 1, biased,
                              flags & 4 ? 0.3 : 0, flags & 8 ? 1 : 0);
            }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kernels_match_loops),
        cmocka_unit_test(runs_match_loops),
        cmocka_unit_test(lists_match_loops),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
