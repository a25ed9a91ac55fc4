/* test_search.c: the search over a made-up model whose every distribution is drawn from the whole
 * history, compared with enumeration and with a beam search that sorts everything and never stops
 * early. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "decode/search.h"
#include "failing_allocator.h"

enum { MAX_V = 200, MAX_ROWS = 4096, MAX_LENGTH = 24 };

/* ---- the made-up model ---- */

struct made_up {
    uint64_t seed;
    int64_t vocabulary, longest;
    double sharpness, eos_bias;
    double grid; /* > 0: log-probabilities are multiples of it, so that many are equal */
    int64_t rows;
    uint64_t history[MAX_ROWS];
    heed_real log_p[MAX_ROWS * 8 > MAX_V * 32 ? MAX_ROWS * 8 : MAX_V * 32];
    int64_t steps, rows_stepped, reorders;
    int64_t bad_step; /* from 1: this step gives bad_value to bad_token */
    int32_t bad_token;
    heed_real bad_value;
};

static uint64_t mix(uint64_t history, int32_t token)
{
    uint64_t h = (history ^ (uint64_t)(token + 1)) * 0x9E3779B97F4A7C15u;
    return h ^ (h >> 29);
}

/* The distribution after a history. */
static void distribution(const struct made_up *m, uint64_t history, heed_real *log_p)
{
    heed_rng_key key = {.seed = m->seed, .step = history};
    heed_rng rng = heed_rng_stream(&key);
    double logit[MAX_V], sum = 0;
    for (int64_t i = 0; i < m->vocabulary; i++) {
        logit[i] = m->sharpness * heed_rng_normal(&rng, (uint64_t)i);
        logit[i] += i == HEED_EOS ? m->eos_bias : 0;
        sum += exp(logit[i]);
    }
    for (int64_t i = 0; i < m->vocabulary; i++) {
        double x = logit[i] - log(sum);
        log_p[i] = (heed_real)(m->grid > 0 ? m->grid * floor(x / m->grid) : x);
    }
}

static uint64_t history_of(const heed_tokens *source)
{
    uint64_t h = 77;
    for (int64_t i = 0; i < source->count; i++)
        h = mix(h, source->id[i]);
    return h;
}

static heed_status made_up_start(void *self, const heed_tokens *source, int64_t count,
                                 heed_error *err)
{
    struct made_up *m = self;
    (void)err;
    m->rows = count;
    m->steps = m->rows_stepped = m->reorders = 0;
    for (int64_t i = 0; i < count; i++)
        m->history[i] = history_of(&source[i]);
    return HEED_OK;
}

static heed_status made_up_step(void *self, const int32_t *token, const heed_real **log_p,
                                heed_error *err)
{
    struct made_up *m = self;
    (void)err;
    assert_true(m->rows * m->vocabulary <= (int64_t)(sizeof m->log_p / sizeof *m->log_p));
    m->steps++;
    m->rows_stepped += m->rows;
    for (int64_t r = 0; r < m->rows; r++) {
        assert_true((m->steps == 1) == (token[r] == HEED_BOS));
        m->history[r] = mix(m->history[r], token[r]);
        distribution(m, m->history[r], m->log_p + r * m->vocabulary);
    }
    if (m->steps == m->bad_step)
        m->log_p[(m->rows - 1) * m->vocabulary + m->bad_token] = m->bad_value;
    *log_p = m->log_p;
    return HEED_OK;
}

static heed_status made_up_reorder(void *self, const int32_t *parent, int64_t rows, heed_error *err)
{
    struct made_up *m = self;
    (void)err;
    static uint64_t old[MAX_ROWS];
    memcpy(old, m->history, sizeof old);
    for (int64_t r = 0; r < rows; r++) {
        assert_in_range(parent[r], 0, m->rows - 1);
        m->history[r] = old[parent[r]];
    }
    m->rows = rows;
    m->reorders++;
    return HEED_OK;
}

static heed__stepper stepper(struct made_up *m)
{
    return (heed__stepper){
        m, m->vocabulary, m->longest, made_up_start, made_up_step, made_up_reorder};
}

/* ---- what it is compared with ---- */

struct hypothesis {
    int32_t id[MAX_LENGTH];
    int64_t count;
    double log_p, score;
    uint64_t history;
    int64_t parent;
};

static double penalised(double log_p, int64_t length, double alpha)
{
    return log_p / pow((5.0 + (double)length) / 6.0, alpha);
}

static struct hypothesis extended(const struct hypothesis *h, int64_t index, int32_t token,
                                  heed_real log_p)
{
    struct hypothesis e = *h;
    e.id[e.count++] = token;
    e.log_p += (double)log_p;
    e.parent = index;
    return e;
}

/* Equal ones stay in the order of parent and token, as the search promises. */
static int by_log_p(const void *a, const void *b)
{
    const struct hypothesis *x = a, *y = b;
    if (x->log_p != y->log_p)
        return x->log_p > y->log_p ? -1 : 1;
    if (x->parent != y->parent)
        return x->parent < y->parent ? -1 : 1;
    return x->id[x->count - 1] < y->id[y->count - 1] ? -1 : 1;
}

/* Inserts behind those that are as good. */
static void insert_by_score(struct hypothesis *list, int64_t *count, const struct hypothesis *h)
{
    int64_t place = (*count)++;
    for (; place > 0 && list[place - 1].score < h->score; place--)
        list[place] = list[place - 1];
    list[place] = *h;
}

enum { MAX_LIST = 20000 };
static struct hypothesis alive[MAX_LIST], candidate[MAX_LIST], done[MAX_LIST];

/* Beam search by the book: everything sorted, no early stop.  Leaves the finished, best first, in
 * `done` (or what is alive at the end if there is none) and returns how many there are. */
static int64_t slow_search(const struct made_up *m, const heed_search_options *o,
                           const heed_tokens *source)
{
    heed_real log_p[MAX_V];
    int64_t limit = source->count + 1 + o->extra_length, finished = 0, n_alive = 1;
    limit = limit < m->longest ? limit : m->longest;
    alive[0] = (struct hypothesis){.history = mix(history_of(source), HEED_BOS)};
    for (int64_t length = 0; length < limit && n_alive > 0; length++) {
        int64_t n = 0;
        for (int64_t i = 0; i < n_alive; i++) {
            distribution(m, alive[i].history, log_p);
            for (int32_t v = 0; v < m->vocabulary; v++)
                if (v != HEED_BOS && (v != HEED_EOS || length >= o->min_length)) {
                    assert_true(n < MAX_LIST);
                    candidate[n++] = extended(&alive[i], i, v, log_p[v]);
                }
        }
        qsort(candidate, (size_t)n, sizeof *candidate, by_log_p);
        n_alive = 0;
        for (int64_t i = 0; i < n; i++) {
            struct hypothesis *c = &candidate[i];
            int32_t token = c->id[c->count - 1];
            c->score = penalised(c->log_p, c->count, o->length_penalty);
            c->history = mix(c->history, token);
            if (token == HEED_EOS && i < o->beam)
                insert_by_score(done, &finished, c);
            else if (token != HEED_EOS && n_alive < o->beam)
                alive[n_alive++] = *c;
        }
        if (o->beam == 1 && finished)
            break;
    }
    for (int64_t i = 0, none = !finished; none && i < n_alive; i++)
        insert_by_score(done, &finished, &alive[i]);
    return finished;
}

static void assert_same(const heed_hypothesis *found, int64_t n_best, int64_t expected)
{
    for (int64_t i = 0; i < n_best; i++) {
        if (i >= expected) {
            assert_int_equal(found[i].count, 0);
            continue;
        }
        assert_int_equal(found[i].count, done[i].count);
        assert_memory_equal(found[i].id, done[i].id, (size_t)done[i].count * sizeof(int32_t));
        assert_true(found[i].log_p == done[i].log_p);
        assert_true(found[i].score == done[i].score);
    }
}

/* ---- the tests ---- */

static struct made_up model;
static heed_arena *arena;

static int set_up(void **state)
{
    (void)state;
    memset(&model, 0, sizeof model);
    model.vocabulary = 8;
    model.longest = 12;
    model.sharpness = 2;
    arena = heed_arena_new(NULL, NULL);
    return arena ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    heed_arena_free(arena);
    return 0;
}

static const int32_t ids[] = {5, 6, 7, 4, 3, 6, 6, 5, 4, 7};
static heed_tokens source_of(int64_t first, int64_t count)
{
    return (heed_tokens){ids + first, count};
}

static void search(const heed_search_options *o, const heed_tokens *source, int64_t count,
                   heed_hypothesis *out)
{
    heed_error err = {0};
    heed__stepper s = stepper(&model);
    heed_status status = heed__search(&s, o, source, count, arena, out, &err);
    if (status)
        print_error("%s\n", err.text);
    assert_int_equal(status, HEED_OK);
}

/* Every sentence of the model, best first, into `done`. */
static int64_t enumerate(const struct hypothesis *h, int64_t limit, double alpha, int64_t found)
{
    heed_real log_p[MAX_V];
    distribution(&model, h->history, log_p);
    for (int32_t v = 0; v < model.vocabulary; v++) {
        if (v == HEED_BOS)
            continue;
        struct hypothesis e = extended(h, 0, v, log_p[v]);
        e.history = mix(h->history, v);
        e.score = penalised(e.log_p, e.count, alpha);
        if (v == HEED_EOS)
            insert_by_score(done, &found, &e);
        else if (e.count < limit)
            found = enumerate(&e, limit, alpha, found);
    }
    return found;
}

/* Catches a wide beam that misses the best sentence, a wrong penalty or length in it, and n-best
 * lists that are not the n best. */
static void test_wide_beam_is_exact(void **state)
{
    (void)state;
    static const double alphas[] = {0, 0.6, 1.5};
    enum { N_BEST = 40, BEAM = 300 };
    heed_hypothesis found[BEAM];
    model.vocabulary = 6;
    model.longest = 5;
    for (uint64_t seed = 1; seed <= 12; seed++) {
        model.seed = seed;
        double alpha = alphas[seed % 3];
        heed_tokens source = source_of(0, (int64_t)seed % 4);
        struct hypothesis root = {.history = mix(history_of(&source), HEED_BOS)};
        int64_t all = enumerate(&root, model.longest, alpha, 0);
        heed_search_options o = {
            .beam = BEAM, .length_penalty = alpha, .n_best = N_BEST, .extra_length = 50};
        search(&o, &source, 1, found);
        assert_true(all > N_BEST);
        for (int i = 0; i < N_BEST; i++) {
            assert_true(found[i].score == done[i].score);
            assert_int_equal(found[i].count, done[i].count);
            assert_memory_equal(found[i].id, done[i].id, (size_t)done[i].count * sizeof(int32_t));
        }
    }
}

/* Catches a beam of 1 that is not greedy: one that goes on after EOS, or takes an EOS that was only
 * second best. */
static void test_beam_of_one_is_greedy(void **state)
{
    (void)state;
    heed_hypothesis found;
    heed_real log_p[MAX_V];
    for (uint64_t seed = 1; seed <= 200; seed++) {
        model.seed = seed;
        model.eos_bias = (double)(seed % 5) - 2;
        model.sharpness = 5;
        heed_tokens source = source_of((int64_t)seed % 5, (int64_t)seed % 6);
        heed_search_options o = {.beam = 1, .length_penalty = 2, .n_best = 1, .extra_length = 4};
        search(&o, &source, 1, &found);
        uint64_t history = mix(history_of(&source), HEED_BOS);
        double sum = 0;
        int64_t limit = source.count + 5, length = 0;
        for (int32_t token = -1; token != HEED_EOS && length < limit; length++) {
            distribution(&model, history, log_p);
            token = 0;
            for (int32_t v = 2; v < model.vocabulary; v++)
                token = log_p[v] > log_p[token] ? v : token;
            assert_true(length < found.count);
            assert_int_equal(found.id[length], token);
            assert_true(found.token_log_p[length] == log_p[token]);
            sum += (double)log_p[token];
            history = mix(history, token);
        }
        assert_int_equal(found.count, length);
        assert_true(found.log_p == sum);
    }
}

/* Catches an early stop, or dropping what is without hope, that changes a result; ties that fall
 * differently; wrong parents after reordering; a wrong limit. */
static void test_same_as_slow_search(void **state)
{
    (void)state;
    static const double alphas[] = {0, 0.3, 0.6, 1, 2.5};
    heed_hypothesis found[8];
    for (uint64_t seed = 1; seed <= 600; seed++) {
        model.seed = seed;
        model.eos_bias = (double)(seed % 7) - 2;
        model.sharpness = 0.5 + (double)(seed % 4);
        model.grid = seed % 3 == 0 ? 0.5 : 0;
        heed_search_options o = {.beam = 2 + (int64_t)seed % 6,
                                 .length_penalty = alphas[seed % 5],
                                 .extra_length = (int64_t)seed % 9,
                                 .min_length = seed % 4 == 0 ? 3 : 0};
        o.n_best = 1 + (int64_t)(seed / 7) % o.beam;
        heed_tokens source = source_of((int64_t)seed % 4, (int64_t)seed % 7);
        search(&o, &source, 1, found);
        assert_same(found, o.n_best, slow_search(&model, &o, &source));
    }
}

/* Catches a search that goes on although nothing can change any more: half of the rows' steps are
 * saved on sentences that end easily. */
static void test_stops_early(void **state)
{
    (void)state;
    int64_t rows = 0, all = 0;
    heed_hypothesis found;
    for (uint64_t seed = 1; seed <= 50; seed++) {
        model.seed = seed;
        model.eos_bias = 3;
        heed_search_options o = {.beam = 4, .length_penalty = 0.6, .n_best = 1, .extra_length = 50};
        heed_tokens source = source_of(0, 5);
        search(&o, &source, 1, &found);
        rows += model.rows_stepped;
        all += 1 + 4 * (model.longest - 1);
    }
    assert_true(2 * rows < all);
}

/* Catches sentences that change each other: a row of one that goes to another, limits mixed up when
 * one leaves the batch; and finished sentences that stay in it. */
static void test_batch_is_its_sentences(void **state)
{
    (void)state;
    enum { B = 7, BEAM = 3, N_BEST = 2 };
    heed_hypothesis together[B * N_BEST], alone[N_BEST];
    for (uint64_t seed = 1; seed <= 60; seed++) {
        model.seed = seed;
        model.eos_bias = (double)(seed % 5) - 1;
        heed_search_options o = {
            .beam = BEAM, .length_penalty = 0.6, .n_best = N_BEST, .extra_length = 4};
        heed_tokens source[B];
        for (int64_t b = 0; b < B; b++)
            source[b] = source_of(b, (int64_t)(seed + 3 * (uint64_t)b) % 4);
        search(&o, source, B, together);
        int64_t rows = model.rows_stepped, alone_rows = 0;
        for (int64_t b = 0; b < B; b++) {
            search(&o, &source[b], 1, alone);
            alone_rows += model.rows_stepped;
            for (int i = 0; i < N_BEST; i++) {
                const heed_hypothesis *x = &together[b * N_BEST + i];
                assert_int_equal(x->count, alone[i].count);
                assert_true(x->score == alone[i].score);
                if (x->count)
                    assert_memory_equal(x->id, alone[i].id, (size_t)x->count * sizeof *x->id);
            }
        }
        assert_int_equal(rows, alone_rows);
    }
}

/* Catches lists that are not sorted, hold one hypothesis twice, or whose token values do not add up
 * to what is reported. */
static void test_n_best_sorted_distinct(void **state)
{
    (void)state;
    enum { BEAM = 6 };
    heed_hypothesis h[BEAM];
    for (uint64_t seed = 1; seed <= 40; seed++) {
        model.seed = seed;
        heed_search_options o = {
            .beam = BEAM, .length_penalty = 1, .n_best = BEAM, .extra_length = 8};
        heed_tokens source = source_of(1, 2);
        search(&o, &source, 1, h);
        for (int i = 0; i < BEAM && h[i].count; i++) {
            double sum = 0;
            for (int64_t k = 0; k < h[i].count; k++)
                sum += (double)h[i].token_log_p[k];
            assert_true(fabs(sum - h[i].log_p) < 1e-9);
            assert_int_equal(h[i].id[h[i].count - 1], HEED_EOS);
            assert_true(i == 0 || h[i - 1].score >= h[i].score);
            for (int j = 0; j < i; j++)
                assert_false(h[i].count == h[j].count &&
                             !memcmp(h[i].id, h[j].id, (size_t)h[i].count * sizeof(int32_t)));
        }
    }
}

/* Catches an EOS before the least length, hypotheses beyond the limit, and a sentence without an
 * answer because nothing reached EOS in time. */
static void test_lengths(void **state)
{
    (void)state;
    heed_hypothesis found[4];
    heed_tokens source = source_of(2, 3);
    model.eos_bias = 8;
    heed_search_options o = {.beam = 4, .length_penalty = 0.6, .n_best = 4, .extra_length = 6};
    search(&o, &source, 1, found);
    assert_int_equal(found[0].count, 1);
    for (o.min_length = 1; o.min_length < 9; o.min_length++) {
        search(&o, &source, 1, found);
        assert_int_equal(found[0].count, o.min_length + 1);
        assert_int_equal(found[0].id[o.min_length], HEED_EOS);
    }
    o.min_length = 0;
    model.eos_bias = -60; /* never */
    search(&o, &source, 1, found);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(found[i].count, source.count + 1 + o.extra_length);
        for (int64_t k = 0; k < found[i].count; k++)
            assert_int_not_equal(found[i].id[k], HEED_EOS);
        assert_true(found[i].score == penalised(found[i].log_p, found[i].count, 0.6));
    }
    o.extra_length = INT64_MAX;
    search(&o, &source, 1, found);
    assert_int_equal(found[0].count, model.longest);
    o.extra_length = 0;
    source.count = 0;
    search(&o, &source, 1, found);
    assert_int_equal(found[0].count, 1);
}

/* Catches NaN weights that crash, loop or pass as a translation, wherever the value stands. */
static void test_not_a_number(void **state)
{
    (void)state;
    static const int32_t tokens[] = {0, HEED_BOS, HEED_EOS, 7};
    heed_hypothesis found[2];
    heed_tokens source[2] = {source_of(0, 3), source_of(1, 5)};
    heed_search_options o = {.beam = 3, .length_penalty = 0.6, .n_best = 1, .extra_length = 5};
    heed__stepper s = stepper(&model);
    model.eos_bias = -3;
    for (int64_t at = 1; at <= 3; at++)
        for (int i = 0; i < 8; i++) {
            heed_error err = {0};
            model.bad_step = at;
            model.bad_token = tokens[i % 4];
            model.bad_value = i < 4 ? (heed_real)NAN : (heed_real)INFINITY;
            assert_int_equal(heed__search(&s, &o, source, 2, arena, found, &err), HEED_NUMERIC);
            assert_non_null(strstr(err.text, "log-probability"));
        }
}

/* Catches a token of probability 0 in a hypothesis, and a search that hangs when nothing is left.
 */
static void test_impossible_tokens(void **state)
{
    (void)state;
    heed_hypothesis found[2];
    heed_tokens source = source_of(0, 3);
    heed_search_options o = {.beam = 2, .length_penalty = 0.6, .n_best = 2, .extra_length = 5};
    model.vocabulary = 3; /* UNK and EOS are all there is to say */
    model.bad_step = 1;
    model.bad_token = HEED_UNK;
    model.bad_value = -(heed_real)INFINITY;
    search(&o, &source, 1, found);
    assert_int_equal(found[0].count, 1);
    assert_int_equal(found[0].id[0], HEED_EOS);
    assert_int_equal(found[1].count, 0);
    model.bad_token = HEED_EOS;
    o.beam = o.n_best = 1;
    model.eos_bias = -60;
    search(&o, &source, 1, found);
    assert_int_equal(found[0].count, 9);
}

/* Catches wrong options that pass, and no sentences that fail. */
static void test_options(void **state)
{
    (void)state;
    static const struct {
        heed_search_options o;
        const char *text;
    } wrong[] = {
        {{.beam = 0, .n_best = 1}, "the beam is 0, expected 1 or more"},
        {{.beam = 4, .n_best = 5},
         "the number of best hypotheses is 5, expected 1 to the beam's 4"},
        {{.beam = 4, .n_best = 0},
         "the number of best hypotheses is 0, expected 1 to the beam's 4"},
        {{.beam = 1, .n_best = 1, .length_penalty = -1},
         "the length penalty is -1, expected 0 or more"},
        {{.beam = 1, .n_best = 1, .extra_length = -1},
         "the extra length is -1, expected 0 or more"},
    };
    heed__stepper s = stepper(&model);
    heed_tokens source = source_of(0, 1);
    heed_hypothesis found[8];
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        heed_error err = {0};
        assert_int_equal(heed__search(&s, &wrong[i].o, &source, 1, arena, found, &err),
                         HEED_ARGUMENT);
        assert_string_equal(err.text, wrong[i].text);
    }
    heed_search_options right = {.beam = 1, .n_best = 1};
    assert_int_equal(heed__search(&s, &right, NULL, 0, arena, NULL, NULL), HEED_OK);
}

/* Catches memory that is used although it was not given. */
static void test_out_of_memory(void **state)
{
    (void)state;
    heed_search_options o = {.beam = 500, .length_penalty = 0.6, .n_best = 3, .extra_length = 50};
    heed_tokens source[40];
    heed_hypothesis found[120];
    for (int i = 0; i < 40; i++)
        source[i] = source_of(i % 5, i % 4);
    heed__stepper s = stepper(&model);
    model.vocabulary = 6;
    model.longest = 3;
    int failures = 0;
    for (int n = 1;; n++) {
        struct failing f = {.fail_at = n};
        heed_allocator a = failing_allocator(&f);
        heed_arena *short_arena = heed_arena_new(&a, NULL);
        heed_status status = HEED_MEMORY;
        if (short_arena)
            status = heed__search(&s, &o, source, 40, short_arena, found, NULL);
        heed_arena_free(short_arena);
        assert_int_equal(f.held, 0);
        if (status == HEED_OK)
            break;
        assert_int_equal(status, HEED_MEMORY);
        failures++;
    }
    assert_true(failures > 2);
}

static int by_candidate(const void *a, const void *b)
{
    return heed__candidate_before(a, b) ? -1 : 1;
}

/* Catches a best one that the block-wise scan skips: at block edges, among equals, in short rows.
 */
static void test_top_scan(void **state)
{
    (void)state;
    enum { ROWS = 3, MOST = 32 };
    static heed_real log_p[ROWS][MAX_V];
    static heed__candidate every[ROWS * MAX_V], best[MOST];
    for (uint64_t seed = 1; seed <= 300; seed++) {
        heed_rng_key key = {.seed = seed};
        heed_rng rng = heed_rng_stream(&key);
        int64_t v = 3 + heed_rng_below(&rng, 0, MAX_V - 3), all = 0;
        double base[ROWS];
        heed__top top = {.item = best, .room = 1 + heed_rng_below(&rng, 1, MOST)};
        for (int r = 0; r < ROWS; r++) {
            int32_t bad;
            base[r] = -10 * heed_rng_uniform(&rng, 2 + (uint64_t)r);
            if (seed % 2)
                base[r] = floor(base[r]);
            for (int64_t i = 0; i < v; i++) {
                double x = -20 * heed_rng_uniform(&rng, (uint64_t)(r * MAX_V + i + 10));
                if (seed % 2)
                    x = floor(x);
                if (seed % 5 == 0 && x < -15)
                    x = -INFINITY;
                log_p[r][i] = (heed_real)x;
                if (i != HEED_BOS && i != HEED_EOS && !isinf(x))
                    every[all++] = (heed__candidate){base[r] + (double)log_p[r][i], r, (int32_t)i,
                                                     log_p[r][i]};
            }
            assert_true(heed__top_scan(&top, log_p[r], v, base[r], r, &bad));
        }
        heed__top_sort(&top);
        qsort(every, (size_t)all, sizeof *every, by_candidate);
        assert_int_equal(top.count, all < top.room ? all : top.room);
        for (int64_t i = 0; i < top.count; i++) {
            assert_int_equal(best[i].row, every[i].row);
            assert_int_equal(best[i].token, every[i].token);
            assert_true(best[i].log_p == every[i].log_p);
            assert_true(best[i].token_log_p == every[i].token_log_p);
        }
    }
}

int main(void)
{
#define SEARCH_TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        SEARCH_TEST(test_wide_beam_is_exact),
        SEARCH_TEST(test_beam_of_one_is_greedy),
        SEARCH_TEST(test_same_as_slow_search),
        SEARCH_TEST(test_stops_early),
        SEARCH_TEST(test_batch_is_its_sentences),
        SEARCH_TEST(test_n_best_sorted_distinct),
        SEARCH_TEST(test_lengths),
        SEARCH_TEST(test_not_a_number),
        SEARCH_TEST(test_impossible_tokens),
        SEARCH_TEST(test_options),
        SEARCH_TEST(test_out_of_memory),
        SEARCH_TEST(test_top_scan),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
