/* Greedy search without scores: what is left out cannot be the best, and what comes out is what
 * greedy search with scores finds. */
#include "answers.h"

#include "kernel/kernels.h"
#include <pthread.h>

/* ---- bounds ---- */

/* Rows for which a screening matrix pays off. */
enum { PAYING_ROWS = 1000 };

/* A matrix (k,n) of numbers in panels, whose columns differ in size, and one row. */
struct product {
    int64_t k, n;
    heed_real *plain, *panels, *x;
    heed__panel_weights w;
    heed_arena *arena;
    heed__screen *screen;
};

static void product_begin(struct product *at, int64_t k, int64_t n, uint64_t seed)
{
    const heed_rng rng = heed_rng_stream(&(heed_rng_key){.seed = seed});
    struct product p = {.k = k, .n = n};
    p.plain = malloc((size_t)(k * n) * sizeof *p.plain);
    p.x = malloc((size_t)k * sizeof *p.x);
    p.panels = malloc((size_t)heed__panel_reals(k, n) * sizeof *p.panels);
    for (int64_t i = 0; i < k * n; i++)
        p.plain[i] = (heed_real)(heed_rng_normal(&rng, (uint64_t)i) * (1 + (double)(i % n % 7)));
    for (int64_t i = 0; i < k; i++)
        p.x[i] = (heed_real)heed_rng_normal(&rng, (uint64_t)(k * n + i));
    heed__panel_pack(p.panels, p.plain, n, 1, k, n);
    p.w = (heed__panel_weights){.k = k, .n = n, .real = p.panels};
    *at = p;
    at->arena = heed_arena_new(NULL, NULL);
    assert_true(heed__screen_pays(&at->w));
    at->screen = heed__screen_new(&at->w, at->arena, NULL);
    assert_non_null(at->screen);
}

static void product_end(struct product *p)
{
    heed__screen_free(p->screen);
    heed_arena_free(p->arena);
    free(p->plain);
    free(p->panels);
    free(p->x);
}

/* Catches: a bound that some logit is beyond, and one so wide that it says nothing. */
static void check_bound(const heed_kernels *kernels, struct product *p)
{
    const heed__screening *r = heed__screen_matrix(p->screen, PAYING_ROWS);
    assert_non_null(r);
    uint8_t *bytes = malloc((size_t)(4 * heed__panel_groups(p->k)));
    heed_real *rough = malloc((size_t)p->n * sizeof *rough);
    heed_real *exact = malloc((size_t)p->n * sizeof *exact);
    float low, step;
    const heed__panel_rows rows = {bytes, &step, &low};
    heed__screen_bound b;
    kernels->panel_quantise(&rows, p->x, p->k, 1, p->k);
    kernels->panel_product(rough, p->n, p->x, p->k, &rows, 1, &r->w, 0, heed__panels(p->n));
    kernels->panel_product(exact, p->n, p->x, p->k, &rows, 1, &p->w, 0, heed__panels(p->n));
    assert_true(heed__screening_bound(r, p->x, bytes, low, step, &b));
    double floor = -INFINITY, best = -INFINITY;
    int64_t possible[2000], found = 0;
    for (int64_t j = 0; j < p->n; j++) {
        double bound = (double)b.a * (double)b.norm[j] + (double)b.b * (double)b.error[j];
        double wrong = fabs((double)exact[j] - (double)rough[j]);
        double size = 0;
        for (int64_t i = 0; i < p->k; i++)
            size += fabs((double)p->x[i] * (double)p->plain[i * p->n + j]);
        if (!(wrong <= bound && bound <= 0.6 * size))
            fail_msg("k %d, column %d: wrong by %g, bound %g, size %g", (int)p->k, (int)j, wrong,
                     bound, size);
        floor = fmax(floor, (double)rough[j] - bound);
        best = fmax(best, (double)exact[j]);
    }
    for (int64_t left = 0; left < p->n; left += HEED_PANEL) {
        double most = -INFINITY;
        for (int64_t j = left; j < left + HEED_PANEL && j < p->n; j++)
            most = fmax(most, (double)rough[j] + (double)b.a * (double)b.norm[j] +
                                  (double)b.b * (double)b.error[j]);
        if (most >= floor)
            possible[found++] = left / HEED_PANEL;
    }
    int32_t panel[2000];
    heed_real given = kernels->screen_floor(rough, &b, p->n);
    assert_near((double)given, floor, 1e-5);
    assert_true(given <= (heed_real)best);
    assert_int_equal(kernels->screen_panels(panel, rough, &b, given, p->n, 2000), found);
    for (int64_t i = 0; i < found; i++)
        assert_int_equal(panel[i], possible[i]);
    panel[1] = -1;
    assert_int_equal(kernels->screen_panels(panel, rough, &b, -(heed_real)INFINITY, p->n, 1),
                     heed__panels(p->n));
    assert_int_equal(panel[1], -1);
    free(bytes);
    free(rough);
    free(exact);
}

static void bounds_hold(void **state)
{
    (void)state;
    static const int64_t ks[] = {1, 5, 16, 100, 256, 1000}, ns[] = {1, 17, 100, 523};
    for (int s = 0; heed__kernels_at(s); s++)
        for (size_t i = 0; i < sizeof ks / sizeof *ks; i++)
            for (size_t j = 0; j < sizeof ns / sizeof *ns; j++) {
                struct product p;
                product_begin(&p, ks[i], ns[j], 10 * i + j);
                check_bound(heed__kernels_at(s), &p);
                p.x[ks[i] / 2] = 30; /* which leaves few steps for the others */
                check_bound(heed__kernels_at(s), &p);
                product_end(&p);
            }
}

static void what_is_not_finite_has_no_bound(void **state)
{
    (void)state;
    struct product p;
    product_begin(&p, 8, 40, 1);
    heed__screen_bound b;
    uint8_t bytes[8] = {0};
    assert_null(heed__screen_matrix(p.screen, 1)); /* for one row it does not pay */
    const heed__screening *r = heed__screen_matrix(p.screen, PAYING_ROWS);
    assert_non_null(r);
    assert_ptr_equal(heed__screen_matrix(p.screen, 1), r);
    p.x[3] = (heed_real)NAN;
    assert_false(heed__screening_bound(r, p.x, bytes, 0, 1, &b));
    p.x[3] = (heed_real)INFINITY;
    assert_false(heed__screening_bound(r, p.x, bytes, 0, 1, &b));
    product_end(&p);
    static const double useless[] = {NAN, -INFINITY, 1e30};
    for (int i = 0; i < 3; i++) {
        product_begin(&p, 8, 40, 2);
        p.panels[77] = (heed_real)useless[i];
        assert_null(heed__screen_matrix(p.screen, PAYING_ROWS));
        assert_null(heed__screen_matrix(p.screen, PAYING_ROWS));
        product_end(&p);
    }
    heed__panel_weights w = {.k = 1, .n = 1, .from_memory = true};
    assert_false(heed__screen_pays(&w));
    w = (heed__panel_weights){.k = 1, .n = 1, .bits = 8};
    assert_false(heed__screen_pays(&w));
}

/* ---- search ---- */

enum { SOME = 100 };

static heed_session *new_session(const heed_engine *e, int threads)
{
    heed_session *s = heed_session_new(e, &(heed_session_options){.threads = threads}, NULL, NULL);
    assert_non_null(s);
    return s;
}

/* Greedy answers to some lines, with scores or without. */
static heed_status greedy(heed_session *s, heed_search_options o, bool unscored, struct answers *a)
{
    a->arena = heed_arena_new(NULL, NULL);
    o.beam = o.n_best = 1;
    o.unscored = unscored;
    return heed_search(s, &o, source, SOME, a->arena, a->out, NULL);
}

/* Whether the last step gave some row less than all logits. */
static bool left_out(const heed_session *s)
{
    const heed__rows *r = s->stepper.self;
    assert_false(r->best_only);
    return r->screening && r->last.choice[0].count < r->w->output.n;
}

static void check_texts(const struct answers *with, const struct answers *without)
{
    for (int i = 0; i < SOME; i++) {
        const heed_hypothesis *a = &with->out[i], *b = &without->out[i];
        if (a->count != b->count || a->loop != b->loop ||
            memcmp(a->id, b->id, (size_t)a->count * sizeof *a->id) != 0)
            fail_msg("line %d has another translation without scores", i);
        assert_false(isnan(a->log_p) || isnan(a->score) || isnan(a->token_log_p[0]));
        assert_true(isnan(b->log_p) && isnan(b->score) && isnan(b->token_log_p[0]));
    }
}

/* With scores, without, and with them again in one session. */
static void check_greedy(const heed_engine *e, heed_search_options o, bool leaves_out)
{
    struct answers *with = malloc(sizeof *with), *other = malloc(sizeof *other);
    for (int threads = 1; threads < 3; threads++) {
        heed_session *s = new_session(e, threads);
        assert_int_equal(greedy(s, o, false, with), HEED_OK);
        assert_false(left_out(s));
        assert_int_equal(greedy(s, o, true, other), HEED_OK);
        assert_int_equal(left_out(s), leaves_out);
        check_texts(with, other);
        heed_arena_free(other->arena);
        assert_int_equal(greedy(s, o, false, other), HEED_OK);
        for (int i = 0; i < SOME; i++)
            assert_memory_equal(&other->out[i].log_p, &with->out[i].log_p, sizeof(double));
        heed_arena_free(other->arena);
        heed_arena_free(with->arena);
        heed_session_free(s);
    }
    free(with);
    free(other);
}

/* Among the lines are ties, which the smaller id wins.  Catches: tokens that are left out although
 * they are the best, or the best that may be chosen. */
static void the_same_without_scores(void **state)
{
    (void)state;
    heed_engine *e = new_engine(0);
    const heed_search_options plain = {.extra_length = 3};
    heed_search_options o = plain;
    check_greedy(e, o, true);
    o.min_length = 6;
    o.suppress_unk = true;
    check_greedy(e, o, true);
    /* what is chosen most often, banned again and again */
    int32_t ban[6] = {0};
    for (int i = 0; i < 6; i++) {
        struct answers *a = malloc(sizeof *a);
        int32_t times[WORDS] = {0}, most = 3;
        heed_session *s = new_session(e, 1);
        assert_int_equal(greedy(s, o, false, a), HEED_OK);
        heed_session_free(s);
        for (int k = 0; k < SOME; k++)
            for (int64_t t = 0; t < a->out[k].count; t++)
                most = ++times[a->out[k].id[t]] > times[most] && a->out[k].id[t] != HEED_EOS
                           ? a->out[k].id[t]
                           : most;
        ban[i] = most;
        o.banned = (heed_tokens){ban, i + 1};
        heed_arena_free(a->arena);
        free(a);
    }
    check_greedy(e, o, true);
    o = plain;
    o.no_repeat = 2;
    check_greedy(e, o, false);
    heed_engine_free(e);
    e = new_engine(8);
    check_greedy(e, plain, false);
    heed_engine_free(e);
}

/* A model whose tokens are all alike gives all their logits. */
static void all_alike(void **state)
{
    (void)state;
    enum { MANY = 1200 };
    heed_model_config config = *heed_model_configuration(model);
    config.source_vocabulary = config.target_vocabulary = MANY;
    heed_model *m = new_model(&config);
    heed_real *table = heed_tensor_data(heed_params_find(heed_model_params(m), "embedding.table"));
    for (int64_t i = 1; i < MANY; i++)
        memcpy(table + i * config.d, table, (size_t)config.d * sizeof *table);
    heed_engine *e = heed_engine_new(m, NULL, NULL);
    assert_non_null(e);
    const int32_t ban[] = {3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17};
    check_greedy(e,
                 (heed_search_options){
                     .extra_length = 3, .min_length = 4, .suppress_unk = true, .banned = {ban, 15}},
                 false);
    heed_engine_free(e);
    heed_model_free(m);
}

/* The best of a row's scores but for one token. */
static int32_t best_but(const heed_scores *s, int64_t row, int32_t but)
{
    const heed_tokens all = {NULL, s->columns}, *of = s->choice ? &s->choice[row] : &all;
    const heed_real *logit = s->logit + row * s->columns;
    int64_t best = -1;
    for (int64_t i = 0; i < of->count; i++)
        if ((of->id ? of->id[i] : i) != but && (best < 0 || logit[i] > logit[best]))
            best = i;
    return of->id ? of->id[best] : (int32_t)best;
}

/* Catches: an EOS that stands far behind the first tokens and is left out; one that is
 * forbidden and so large that it screens out the token that should win. */
static void special_tokens_stand_anywhere(void **state)
{
    (void)state;
    enum { MANY = 1200, END = 700, OTHER = 1199, ROWS = 40 };
    heed_model_config config = *heed_model_configuration(model);
    config.source_vocabulary = config.target_vocabulary = MANY;
    heed_model *m = new_model(&config);
    heed_real *table = heed_tensor_data(heed_params_find(heed_model_params(m), "embedding.table"));
    for (int64_t j = 0; j < config.d; j++)
        table[END * config.d + j] *= 9;
    heed_engine *e = heed_engine_new(m, NULL, NULL);
    assert_non_null(e);
    const int32_t special[] = {OTHER, END, HEED_EOS, END + 1, MANY};
    assert_true(heed__weights_set_always(e->weights, special, 5));
    assert_int_equal(e->weights->always_count, 3); /* the last token is none */
    assert_non_null(heed__screen_matrix(e->weights->screen, PAYING_ROWS));
    heed_session *s[2] = {new_session(e, 1), new_session(e, 2)};
    int32_t token[ROWS];
    int ahead = 0;
    s[1]->stepper.best_only(s[1]->stepper.self, &(heed_tokens){NULL, 0});
    for (int k = 0; k < 2; k++)
        assert_int_equal(heed_session_add(s[k], source, ROWS, NULL), HEED_OK);
    for (int step = 0; step < 5; step++) {
        heed_scores all, some;
        for (int r = 0; r < ROWS; r++)
            token[r] = step ? 3 + (r * 37 + step * 101) % (MANY - 3) : HEED_BOS;
        assert_int_equal(heed_session_step(s[0], token, &all, NULL), HEED_OK);
        assert_int_equal(heed_session_step(s[1], token, &some, NULL), HEED_OK);
        for (int r = 0; r < ROWS; r++) {
            const heed_real *logit = all.logit + r * MANY;
            const heed_tokens *list = &some.choice[r];
            int found = 0;
            assert_true(list->count < MANY);
            for (int64_t i = 0; i < list->count; i++) {
                found += list->id[i] == END || list->id[i] == OTHER || list->id[i] == HEED_EOS;
                assert_memory_equal(&some.logit[r * MANY + i], &logit[list->id[i]], sizeof *logit);
            }
            assert_int_equal(found, 3);
            assert_int_equal(best_but(&some, r, END), best_but(&all, r, END));
            ahead += logit[END] > 2 * logit[best_but(&all, r, END)];
        }
    }
    assert_true(ahead > 20); /* else nothing was at stake */
    heed_session_free(s[0]);
    heed_session_free(s[1]);
    heed_engine_free(e);
    heed_model_free(m);
}

struct one_thread {
    heed_session *session;
    struct answers answers;
    heed_status status;
};

static void *run_thread(void *context)
{
    struct one_thread *t = context;
    t->status = greedy(t->session, (heed_search_options){.extra_length = 3}, true, &t->answers);
    return NULL;
}

/* Catches: a screening matrix that one session reads while another makes it. */
static void two_threads_want_the_matrix(void **state)
{
    (void)state;
    heed_engine *e = new_engine(0);
    struct one_thread *t = malloc(2 * sizeof *t);
    struct answers *with = malloc(sizeof *with);
    pthread_t thread[2];
    for (int i = 0; i < 2; i++) {
        t[i].session = new_session(e, 1);
        assert_int_equal(pthread_create(&thread[i], NULL, run_thread, &t[i]), 0);
    }
    for (int i = 0; i < 2; i++)
        pthread_join(thread[i], NULL);
    assert_int_equal(greedy(t[0].session, (heed_search_options){.extra_length = 3}, false, with),
                     HEED_OK);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(t[i].status, HEED_OK);
        check_texts(with, &t[i].answers);
        heed_session_free(t[i].session);
        heed_arena_free(t[i].answers.arena);
    }
    heed_arena_free(with->arena);
    free(with);
    free(t);
    heed_engine_free(e);
}

/* Catches: weights that are not numbers, gone unnoticed because nobody adds up all logits. */
static void numbers_that_are_none(void **state)
{
    (void)state;
    static const char *const names[] = {"embedding.table", "decoder.1.ffn.out.weight"};
    for (int i = 0; i < 2; i++) {
        heed_model *m = new_model(heed_model_configuration(model));
        heed_tensor *x = heed_params_find(heed_model_params(m), names[i]);
        assert_non_null(x);
        heed_tensor_data(x)[heed_tensor_count(x) - 1] = (heed_real)NAN;
        heed_engine *e = heed_engine_new(m, NULL, NULL);
        heed_session *s = heed_session_new(e, &(heed_session_options){.threads = 1}, NULL, NULL);
        heed_arena *arena = heed_arena_new(NULL, NULL);
        heed_hypothesis *out = malloc(SOME * sizeof *out);
        heed_error err = {0};
        const heed_search_options o = {.beam = 1, .n_best = 1, .extra_length = 3, .unscored = true};
        const heed__rows *r = s->stepper.self;
        heed__screen_matrix(r->w->screen, PAYING_ROWS); /* from the first row on */
        assert_int_equal(heed_search(s, &o, source, SOME, arena, out, &err), HEED_NUMERIC);
        free(out);
        heed_arena_free(arena);
        heed_session_free(s);
        heed_engine_free(e);
        heed_model_free(m);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bounds_hold),
        cmocka_unit_test(what_is_not_finite_has_no_bound),
        cmocka_unit_test(the_same_without_scores),
        cmocka_unit_test(all_alike),
        cmocka_unit_test(special_tokens_stand_anywhere),
        cmocka_unit_test(two_threads_want_the_matrix),
        cmocka_unit_test(numbers_that_are_none),
    };
    return cmocka_run_group_tests_name("screen", tests, set_up, tear_down);
}
