/* made_up.h: a model whose every distribution is drawn from the whole history, as a stepper, and a
 * beam search by the book to compare with: it sorts everything and stops early only where patience
 * says so.  Include cmocka.h first. */
#ifndef HEED_TESTS_MADE_UP_H
#define HEED_TESTS_MADE_UP_H

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "search/beam.h"

enum { MAX_V = 200, MAX_ROWS = 4096, MAX_SCORES = 40000, MAX_LENGTH = 160 };

/* ---- the model ---- */

struct made_up {
    uint64_t seed;
    int64_t vocabulary, longest;
    bool joins;
    double sharpness, eos_bias;
    double grid;        /* > 0: log-probabilities are multiples of it, so that many are equal */
    double stubborn;    /* added to the token that was said last */
    int64_t short_list; /* > 0: every so many-th token is not in the scores at all */
    int64_t rows;
    uint64_t history[MAX_ROWS];
    int32_t last[MAX_ROWS];
    bool fresh[MAX_ROWS]; /* BOS must come next */
    heed_real logit[MAX_SCORES], log_z[MAX_ROWS];
    int32_t token[MAX_V];
    heed_tokens choice[MAX_ROWS];
    int64_t adds, steps, rows_stepped, most_rows; /* since the last start from nothing */
    bool (*may_step)(void); /* NULL, or steps wait for it, some seconds at most */
    int64_t bad_step;       /* from 1: this step gives bad_value to bad_token */
    int32_t bad_token;
    heed_real bad_value;
};

static inline uint64_t mix(uint64_t history, int32_t token)
{
    uint64_t h = (history ^ (uint64_t)(token + 1)) * 0x9E3779B97F4A7C15u;
    return h ^ (h >> 29);
}

/* Whether the scores say anything of a token. */
static inline bool is_listed(const struct made_up *m, int32_t token)
{
    return !m->short_list || token <= HEED_EOS || token % m->short_list;
}

/* The logits after a history, (V), and the logarithm of their sum. */
static inline heed_real distribution(const struct made_up *m, uint64_t history, int32_t last,
                                     heed_real *logit)
{
    heed_rng_key key = {.seed = m->seed, .step = history};
    heed_rng rng = heed_rng_stream(&key);
    double x[MAX_V], sum = 0;
    for (int64_t i = 0; i < m->vocabulary; i++) {
        x[i] = m->sharpness * heed_rng_normal(&rng, (uint64_t)i);
        x[i] += i == HEED_EOS ? m->eos_bias : i == last ? m->stubborn : 0;
        sum += exp(x[i]);
    }
    /* Any constant may be in the logits. */
    double shift = floor(32 * heed_rng_normal(&rng, (uint64_t)m->vocabulary)) / 4;
    for (int64_t i = 0; i < m->vocabulary; i++) {
        x[i] -= log(sum);
        logit[i] = (heed_real)((m->grid > 0 ? m->grid * floor(x[i] / m->grid) : x[i]) + shift);
    }
    return (heed_real)shift;
}

static inline uint64_t history_of(const heed_tokens *source)
{
    uint64_t h = 77;
    for (int64_t i = 0; i < source->count; i++)
        h = mix(h, source->id[i]);
    return h;
}

static inline heed_status made_up_add(void *self, const heed_tokens *source,
                                      const heed_tokens *wanted, int64_t count, heed_error *err)
{
    struct made_up *m = self;
    (void)wanted, (void)err;
    assert_true(count > 0);
    assert_true(m->joins || m->rows == 0);
    m->adds++;
    for (int64_t i = 0; i < count; i++, m->rows++) {
        assert_true(m->rows < MAX_ROWS);
        m->history[m->rows] = history_of(&source[i]);
        m->last[m->rows] = -1;
        m->fresh[m->rows] = true;
    }
    return HEED_OK;
}

/* The columns that there are, moved to the front. */
static inline int64_t shorten(struct made_up *m, heed_real *logit)
{
    int64_t n = 0;
    for (int32_t v = 0; v < m->vocabulary; v++)
        if (is_listed(m, v)) {
            logit[n] = logit[v];
            m->token[n++] = v;
        }
    return n;
}

/* The columns of a row that has taken its tokens, in `out`; returns how many there are. */
static inline int64_t made_up_take(struct made_up *m, const heed_extension *x, bool bad,
                                   heed_real *out, heed_real *log_z)
{
    const int64_t r = x->row;
    int64_t count = 0;
    for (int64_t i = 0; i < x->tokens.count; i++) {
        const int32_t token = x->tokens.id[i];
        assert_true(m->fresh[r] == (token == HEED_BOS));
        m->fresh[r] = false;
        m->history[r] = mix(m->history[r], token);
        m->last[r] = token;
        *log_z = distribution(m, m->history[r], token, out);
        if (bad && i + 1 == x->tokens.count)
            out[m->bad_token] = m->bad_value;
        if (x->wanted)
            x->log_p[i] =
                is_listed(m, x->wanted[i]) ? out[x->wanted[i]] - *log_z : -(heed_real)INFINITY;
        count = shorten(m, out);
    }
    return count;
}

static inline heed_status made_up_extend(void *self, const heed_extension *x, int64_t rows,
                                         heed_scores *out, heed_error *err)
{
    struct made_up *m = self;
    heed_real all[MAX_V];
    (void)err;
    assert_true(m->rows > 0 && rows <= m->rows && (m->joins || rows == m->rows));
    int64_t count = m->vocabulary, n = 0;
    for (int i = 0; m->may_step && !m->may_step() && i < 10000; i++)
        usleep(1000);
    m->steps++;
    m->rows_stepped += rows;
    m->most_rows = rows > m->most_rows ? rows : m->most_rows;
    for (int64_t i = 0; i < rows; i++) {
        assert_true(x[i].row < m->rows && (i == 0 || x[i].row > x[i - 1].row));
        assert_true(m->joins || x[i].tokens.count == 1);
        count = made_up_take(m, &x[i], m->steps == m->bad_step && i == rows - 1, all, &m->log_z[n]);
        if (!x[i].last)
            continue;
        assert_true((n + 1) * count <= MAX_SCORES);
        memcpy(m->logit + n * count, all, (size_t)count * sizeof *all);
        m->choice[n++] = (heed_tokens){m->token, count};
    }
    *out = (heed_scores){m->logit, m->log_z, count, m->short_list ? m->choice : NULL, NULL};
    return HEED_OK;
}

static inline int64_t made_up_rows(const void *self)
{
    return ((const struct made_up *)self)->rows;
}

static inline heed_status made_up_reorder(void *self, const int32_t *parent, int64_t rows,
                                          heed_error *err)
{
    struct made_up *m = self;
    (void)err;
    uint64_t history[MAX_ROWS];
    int32_t last[MAX_ROWS];
    memcpy(history, m->history, (size_t)m->rows * sizeof *history);
    memcpy(last, m->last, (size_t)m->rows * sizeof *last);
    for (int64_t r = 0; r < rows; r++) {
        assert_in_range(parent[r], 0, m->rows - 1);
        m->history[r] = history[parent[r]];
        m->last[r] = last[parent[r]];
    }
    m->rows = rows;
    return HEED_OK;
}

static inline void made_up_clear(void *self)
{
    ((struct made_up *)self)->rows = 0;
}

static inline heed__stepper made_up_stepper(struct made_up *m)
{
    return (heed__stepper){.self = m,
                           .vocabulary = m->vocabulary,
                           .longest = m->longest,
                           .ids = {HEED_OWN_IDS, HEED_OWN_IDS},
                           .joins = m->joins,
                           .sources = true,
                           .add = made_up_add,
                           .rows = made_up_rows,
                           .extend = made_up_extend,
                           .reorder = made_up_reorder,
                           .clear = made_up_clear};
}

/* ---- the search by the book ---- */

struct hypothesis {
    int32_t id[MAX_LENGTH];
    int64_t count;
    double log_p, score;
    double sum[MAX_LENGTH]; /* log_p of the first tokens */
    uint64_t history;
    int64_t parent;
    heed_real logit; /* of the last token */
    bool ended, loop;
};

static inline double penalised(const heed_search_options *o, double log_p, int64_t length)
{
    double base =
        o->penalty_form == HEED_PENALTY_POWER ? (double)length : (5.0 + (double)length) / 6.0;
    return log_p / pow(base, o->length_penalty);
}

static inline struct hypothesis extended(const struct hypothesis *h, int64_t index, int32_t token,
                                         heed_real log_p)
{
    struct hypothesis e = *h;
    e.log_p += (double)(log_p < 0 ? log_p : 0);
    e.sum[e.count] = e.log_p;
    e.id[e.count++] = token;
    e.parent = index;
    e.history = mix(h->history, token);
    return e;
}

/* Equal ones stay in the order of parent, logit and token, as the search promises. */
static inline int by_log_p(const void *a, const void *b)
{
    const struct hypothesis *x = a, *y = b;
    if (x->log_p != y->log_p)
        return x->log_p > y->log_p ? -1 : 1;
    if (x->parent != y->parent)
        return x->parent < y->parent ? -1 : 1;
    if (x->logit != y->logit)
        return x->logit > y->logit ? -1 : 1;
    return x->id[x->count - 1] < y->id[y->count - 1] ? -1 : 1;
}

/* Inserts behind those that are as good. */
static inline void insert_by_score(struct hypothesis *list, int64_t *count,
                                   const struct hypothesis *h)
{
    int64_t place = (*count)++;
    for (; place > 0 && list[place - 1].score < h->score; place--)
        list[place] = list[place - 1];
    list[place] = *h;
}

enum { MAX_LIST = 2000 };
static struct hypothesis alive[MAX_LIST], candidate[MAX_LIST], done[MAX_LIST];

/* Whether a token would make an n-gram that is there already. */
static inline bool repeats_ngram(const struct hypothesis *h, int64_t n, int32_t token)
{
    struct hypothesis e = extended(h, 0, token, 0);
    for (int64_t i = 0; n && i + n < e.count; i++)
        if (memcmp(e.id + i, e.id + e.count - n, (size_t)n * sizeof *e.id) == 0)
            return true;
    return false;
}

/* How many of the last tokens only say again what stands before them, in a loop; 0: no loop. */
static inline int64_t looping(const int32_t *id, int64_t count, int64_t from, int64_t least)
{
    for (int64_t p = 1; p <= 8; p++) {
        int64_t run = 0;
        while (count - 1 - run - p >= 0 && count - 1 - run >= from &&
               id[count - 1 - run] == id[count - 1 - run - p])
            run++;
        if (run + p >= 4 * p && run + p >= least)
            return run;
    }
    return 0;
}

/* The longest loop anywhere in the source, twice; 16 at least. */
static inline int64_t loop_least(const heed_tokens *source)
{
    int64_t longest = 0;
    for (int64_t end = 1; end <= source->count; end++)
        for (int64_t p = 1; p <= 8; p++) {
            int64_t run = 0;
            while (end - 1 - run - p >= 0 &&
                   source->id[end - 1 - run] == source->id[end - 1 - run - p])
                run++;
            if (run + p >= 4 * p && run + p > longest)
                longest = run + p;
        }
    return 2 * longest > 16 ? 2 * longest : 16;
}

static inline bool may_follow(const struct made_up *m, const heed_search_options *o,
                              const heed_tokens *source, const struct hypothesis *h, bool last,
                              int32_t v)
{
    int64_t least = (int64_t)ceil(o->min_ratio * (double)(source->count + 1));
    least = least > o->min_length ? least : o->min_length;
    if (v == HEED_BOS || !is_listed(m, v) || (v == HEED_UNK && o->suppress_unk) ||
        (v == HEED_EOS && h->count < least && !last) || (last && v != HEED_EOS))
        return false;
    for (int64_t i = 0; i < o->banned.count; i++)
        if (o->banned.id[i] == v)
            return false;
    return v == HEED_EOS || !repeats_ngram(h, o->no_repeat, v);
}

static inline int64_t slow_limit(const struct made_up *m, const heed_search_options *o,
                                 int64_t source, int64_t prefix)
{
    int64_t limit = source + 1 + o->extra_length;
    limit = limit < m->longest ? limit : m->longest;
    if (o->max_length && o->max_length < limit)
        limit = o->max_length;
    if (o->max_ratio > 0 && ceil(o->max_ratio * (double)(source + 1)) < (double)limit)
        limit = (int64_t)ceil(o->max_ratio * (double)(source + 1));
    return limit > prefix ? limit : prefix + 1;
}

static int64_t slow_finished;

static inline void slow_keep(const heed_search_options *o, struct hypothesis *h, bool ended)
{
    if (!ended && slow_finished && done[0].ended)
        return;
    if (ended && slow_finished && !done[0].ended)
        slow_finished = 0;
    h->score = penalised(o, h->log_p, h->count);
    h->ended = ended;
    insert_by_score(done, &slow_finished, h);
}

/* Candidates of all that live, best first. */
static inline int64_t slow_candidates(const struct made_up *m, const heed_search_options *o,
                                      const heed_tokens *source, const heed_tokens *prefix,
                                      int64_t length, int64_t limit, int64_t n_alive)
{
    heed_real logit[MAX_V];
    int64_t n = 0;
    for (int64_t i = 0; i < n_alive; i++) {
        const struct hypothesis *h = &alive[i];
        int32_t last = h->count ? h->id[h->count - 1] : HEED_BOS;
        heed_real log_z = distribution(m, h->history, last, logit);
        for (int32_t v = 0; v < m->vocabulary; v++) {
            bool forced = length < prefix->count;
            if (forced ? v == prefix->id[length]
                       : may_follow(m, o, source, h, length + 1 == limit, v)) {
                assert_true(n < MAX_LIST);
                candidate[n] = extended(h, i, v, logit[v] - log_z);
                candidate[n++].logit = logit[v];
            }
        }
    }
    qsort(candidate, (size_t)n, sizeof *candidate, by_log_p);
    return n;
}

/* Leaves the finished, best first, in `done` (or loops if there is nothing else) and returns how
 * many there are. */
static inline int64_t slow_search(const struct made_up *m, const heed_search_options *o,
                                  const heed_tokens *source, heed_tokens prefix)
{
    int64_t limit = slow_limit(m, o, source->count, prefix.count), n_alive = 1;
    int64_t least = loop_least(source), ends = 0;
    slow_finished = 0;
    alive[0] = (struct hypothesis){.history = mix(history_of(source), HEED_BOS)};
    for (int64_t length = 0; length < limit && n_alive > 0; length++) {
        int64_t n = slow_candidates(m, o, source, &prefix, length, limit, n_alive), took = 0;
        n_alive = 0;
        for (int64_t i = 0; i < n; i++) {
            struct hypothesis *c = &candidate[i];
            int64_t said = o->allow_loops || length < prefix.count
                               ? 0
                               : looping(c->id, c->count, prefix.count, least);
            if (c->id[c->count - 1] == HEED_EOS) {
                if (i >= o->beam && length + 1 < limit)
                    continue;
                slow_keep(o, c, true);
                ends++;
            } else if (took++ >= o->beam) {
                break;
            } else if (said) {
                c->count -= said;
                c->log_p = c->sum[c->count - 1];
                c->loop = true;
                slow_keep(o, c, false);
            } else {
                alive[n_alive++] = *c;
            }
        }
        if ((o->beam == 1 && ends) ||
            (o->patience > 0 && ends >= o->n_best && (double)ends / (double)o->beam >= o->patience))
            break;
    }
    return slow_finished;
}

static inline void assert_same(const heed_hypothesis *found, int64_t n_best, int64_t expected)
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
        assert_true(found[i].loop || !done[i].loop); /* of others as well */
    }
}

/* ---- what the tests have ---- */

static struct made_up model;
static heed_arena *arena;

/* A model that gets its seed and its moods from the test. */
static inline int made_up_begin(int64_t vocabulary, int64_t longest)
{
    memset(&model, 0, sizeof model);
    model.vocabulary = vocabulary;
    model.longest = longest;
    model.sharpness = 2;
    model.joins = true;
    arena = heed_arena_new(NULL, NULL);
    return arena ? 0 : -1;
}

static inline int made_up_end(void **state)
{
    (void)state;
    heed_arena_free(arena);
    return 0;
}

/* ---- sentences ---- */

static const int32_t made_up_ids[] = {5, 6, 7, 4, 3, 6, 6, 5, 4, 7};
static inline heed_tokens source_of(int64_t first, int64_t count)
{
    return (heed_tokens){made_up_ids + first, count};
}

/* ---- a feed ---- */

/* Sentences by number, in any order; their answers are kept in the arena. */
struct requests {
    const heed__request *request; /* (count) owner: the place of its answers in out */
    int64_t count, next, n_best;
    heed_arena *arena;
    heed_hypothesis *out;
};

static inline heed_status requests_next(void *self, bool wait, heed__capacity capacity,
                                        heed__request *out, int64_t *count, heed_error *err)
{
    struct requests *q = self;
    (void)err;
    for (*count = 0; q->next < q->count; q->next++, ++*count) {
        const heed__request *r = &q->request[q->next];
        if (!heed__capacity_take(&capacity, &r->source, wait && !*count))
            break;
        out[*count] = *r;
    }
    return HEED_OK;
}

static inline heed_status requests_done(void *self, const heed__request *r,
                                        const heed_hypothesis *found, heed_error *err)
{
    struct requests *q = self;
    heed_hypothesis *out = q->out + (intptr_t)r->owner * q->n_best;
    for (int64_t i = 0; i < q->n_best; i++) {
        out[i] = found[i];
        assert_int_equal(heed__hypothesis_keep(&out[i], q->arena, err), HEED_OK);
    }
    return HEED_OK;
}

static inline heed_status search_requests(const heed_search_options *o, const heed__budget *budget,
                                          struct requests *q, heed_error *err)
{
    heed__stepper stepper = made_up_stepper(&model);
    heed__request_source source = {q, requests_next, requests_done};
    heed__search *s = heed__search_new(NULL, err);
    assert_non_null(s);
    q->n_best = o->n_best;
    heed_status status = heed__search_run(s, &stepper, o, budget, &source, err);
    heed__search_free(s);
    return status;
}

/* One sentence that begins in a given way. */
static inline heed_status search_prefix(const heed_search_options *o, heed_tokens source,
                                        heed_tokens prefix, heed_hypothesis *out, heed_error *err)
{
    heed__request r = {.source = source, .prefix = prefix};
    struct requests q = {.request = &r, .count = 1, .arena = arena, .out = out};
    return search_requests(o, &heed__usual_budget, &q, err);
}

#endif
