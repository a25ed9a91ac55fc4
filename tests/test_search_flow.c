/* test_search_flow.c: sentences that come and go: no answer depends on what is under way beside it,
 * capacity that is free is used, and memory does not grow. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/thread_pool.h"
#include "failing_allocator.h"
#include "made_up.h"

enum { LINES = 400, LONGEST_LINE = 120, N_BEST = 2, THREADS = 4 };

static heed__request request[LINES];
static int32_t words[LINES][LONGEST_LINE];
static heed_hypothesis alone[LINES * N_BEST], out[LINES * N_BEST];
static const heed_search_options options = {
    .beam = 3, .length_penalty = 0.6, .n_best = N_BEST, .extra_length = 3};

/* Lines of 1 to 120 tokens; many scores are equal. */
static int set_up(void **state)
{
    (void)state;
    int failed = made_up_begin(10, 130);
    model.sharpness = 1;
    model.eos_bias = -1.5;
    model.seed = 7;
    model.grid = 0.25;
    heed_rng_key key = {.seed = 21};
    heed_rng rng = heed_rng_stream(&key);
    for (int64_t i = 0; i < LINES; i++) {
        for (int64_t k = 0; k < LONGEST_LINE; k++)
            words[i][k] = 3 + (int32_t)heed_rng_below(&rng, (uint64_t)(i * LONGEST_LINE + k), 7);
        int64_t n = 1 + heed_rng_below(&rng, (uint64_t)(LINES * LONGEST_LINE + i), LONGEST_LINE);
        request[i] = (heed__request){.source = {words[i], n}, .owner = (void *)(intptr_t)i};
    }
    return failed;
}

static void search_batches(const heed_search_options *o, int64_t count, int64_t batch)
{
    heed_error err = {0};
    struct requests q = {.request = request, .count = count, .arena = arena, .out = out};
    heed__budget budget = {512, 1 << 20, batch};
    if (search_requests(o, &budget, &q, &err))
        fail_msg("%s", err.text);
}

/* Bit for bit. */
static void assert_as_alone(void)
{
    for (int64_t i = 0; i < LINES * N_BEST; i++) {
        assert_int_equal(out[i].count, alone[i].count);
        assert_memory_equal(&out[i].score, &alone[i].score, sizeof alone[i].score);
        assert_memory_equal(&out[i].log_p, &alone[i].log_p, sizeof alone[i].log_p);
        assert_memory_equal(out[i].id, alone[i].id, (size_t)alone[i].count * sizeof(int32_t));
        assert_memory_equal(out[i].token_log_p, alone[i].token_log_p,
                            (size_t)alone[i].count * sizeof(heed_real));
    }
}

static void search_alone(void)
{
    search_batches(&options, LINES, 1);
    memcpy(alone, out, sizeof out);
    assert_int_equal(model.most_rows, options.beam);
}

static void shuffle(uint64_t seed)
{
    heed_rng_key key = {.seed = seed};
    heed_rng rng = heed_rng_stream(&key);
    for (int64_t i = LINES - 1; i > 0; i--) {
        int64_t k = heed_rng_below(&rng, (uint64_t)i, i + 1);
        heed__request r = request[i];
        request[i] = request[k];
        request[k] = r;
    }
}

/* Catches an answer that depends on its neighbours: alone, in batches of 7 and 64, in another
 * order, joining others that are under way or not. */
static void test_any_batch_same_answer(void **state)
{
    (void)state;
    static const int64_t batches[] = {7, 64};
    search_alone();
    for (int way = 0; way < 8; way++) {
        memset(out, 0, sizeof out);
        model.joins = way % 2;
        if (way == 4)
            shuffle(5);
        search_batches(&options, LINES, batches[way / 2 % 2]);
        assert_as_alone();
    }
}

/* ---- workers ---- */

struct shared {
    heed__thread_pool pool;
    struct requests requests;
    struct made_up *model; /* (threads) */
};

static heed_status shared_next(void *self, bool wait, heed__capacity capacity, heed__request *r,
                               int64_t *count, heed_error *err)
{
    struct shared *s = self;
    pthread_mutex_lock(&s->pool.lock);
    heed_status status = requests_next(&s->requests, wait, capacity, r, count, err);
    pthread_mutex_unlock(&s->pool.lock);
    return status;
}

static heed_status shared_done(void *self, const heed__request *r, const heed_hypothesis *found,
                               heed_error *err)
{
    struct shared *s = self;
    pthread_mutex_lock(&s->pool.lock);
    heed_status status = requests_done(&s->requests, r, found, err);
    pthread_mutex_unlock(&s->pool.lock);
    return status;
}

static heed_status work(void *context, int worker, heed_error *err)
{
    struct shared *s = context;
    heed__stepper stepper = made_up_stepper(&s->model[worker]);
    heed__request_source source = {s, shared_next, shared_done};
    heed__budget budget = {512, 1 << 20, 16};
    heed__search *own = heed__search_new(NULL, err);
    heed_status status =
        own ? heed__search_run(own, &stepper, &options, &budget, &source, err) : HEED_MEMORY;
    heed__search_free(own);
    return status;
}

/* Catches workers that disturb each other, and an answer that the number of threads changes. */
static void test_any_number_of_workers(void **state)
{
    (void)state;
    static struct made_up models[THREADS];
    search_alone();
    for (int threads = 1; threads <= THREADS; threads *= 2) {
        struct shared s = {.model = models};
        heed_error err = {0};
        s.requests = (struct requests){request, LINES, 0, N_BEST, arena, out};
        for (int i = 0; i < threads; i++)
            models[i] = model;
        memset(out, 0, sizeof out);
        assert_int_equal(heed__thread_pool_init(&s.pool, &err), HEED_OK);
        assert_int_equal(heed__thread_pool_run(&s.pool, threads, work, &s, &err), HEED_OK);
        heed__thread_pool_deinit(&s.pool);
        assert_as_alone();
    }
}

struct waiting {
    heed__thread_pool pool;
    int count;
};

/* The third fails when the others sleep. */
static heed_status fail_at_three(void *context, int worker, heed_error *err)
{
    struct waiting *w = context;
    pthread_mutex_lock(&w->pool.lock);
    w->count++;
    while (worker == 3 && w->count < 6)
        heed__thread_pool_wait_done(&w->pool, 1);
    while (worker != 3 && !w->pool.stopped)
        pthread_cond_wait(worker ? &w->pool.more : &w->pool.done, &w->pool.lock);
    pthread_mutex_unlock(&w->pool.lock);
    if (worker != 3)
        return HEED_OK;
    strcpy(err->text, "three");
    return err->status = HEED_NUMERIC;
}

/* Catches a failure of one worker that the others wait for without end, or that is not told. */
static void test_failure_stops_all(void **state)
{
    (void)state;
    struct waiting w = {.count = 0};
    heed_error err = {0};
    assert_int_equal(heed__thread_pool_init(&w.pool, &err), HEED_OK);
    assert_int_equal(heed__thread_pool_run(&w.pool, 6, fail_at_three, &w, &err), HEED_NUMERIC);
    assert_string_equal(err.text, "three");
    heed__thread_pool_deinit(&w.pool);
}

/* ---- capacity ---- */

/* Catches capacity that stays empty while sentences wait, sentences let in one by one, and more
 * rows or tokens under way than the budget says. */
static void test_room_is_used(void **state)
{
    (void)state;
    heed_search_options o = options;
    enum { BATCH = 16 };
    search_batches(&o, LINES, BATCH);
    int64_t joined_steps = model.steps, rows = model.rows_stepped;
    assert_true(model.most_rows <= BATCH * o.beam);
    /* A quarter of the capacity at a time: not one add for each sentence. */
    assert_true(model.adds < LINES / 3 && model.adds > LINES / BATCH);
    model.joins = false;
    model.steps = model.rows_stepped = model.adds = 0;
    search_batches(&o, LINES, BATCH);
    assert_int_equal(model.adds, LINES / BATCH);
    assert_int_equal(model.rows_stepped, rows);
    assert_true(4 * joined_steps < 3 * model.steps);
    /* Rows, and rows times tokens, are limits too. */
    model.joins = true;
    heed_error err = {0};
    static const heed__budget budgets[] = {{20, 1 << 20, 100}, {512, 3 * 300, 100}, {1, 1, 1}};
    static const int64_t most[] = {18, 3 * 40, 3};
    for (int i = 0; i < 3; i++) {
        struct requests q = {.request = request, .count = LINES, .arena = arena, .out = out};
        model.most_rows = 0;
        assert_int_equal(search_requests(&o, &budgets[i], &q, &err), HEED_OK);
        assert_true(model.most_rows <= most[i]);
        assert_true(2 * model.most_rows > most[i] || i == 1);
    }
}

/* What the feed gives and sees, step by step. */
struct watched {
    struct requests requests;
    int64_t open, most_open, finished_first; /* the request that was done first */
    bool dry;                                /* every other time there is nothing yet */
    int64_t asked, waits;
    int64_t fail_next, fail_done; /* from 1: this call fails */
};

static heed_status watched_next(void *self, bool wait, heed__capacity capacity, heed__request *r,
                                int64_t *count, heed_error *err)
{
    struct watched *w = self;
    w->waits += wait;
    assert_true(!wait || w->open == 0);
    *count = 0;
    if (++w->asked == w->fail_next) {
        err->status = HEED_IO;
        return HEED_IO;
    }
    if (!wait && w->dry && w->asked % 2)
        return HEED_OK;
    capacity.sentences = w->dry ? 1 : capacity.sentences;
    heed_status status = requests_next(&w->requests, wait, capacity, r, count, err);
    w->open += *count;
    w->most_open = w->open > w->most_open ? w->open : w->most_open;
    return status;
}

static heed_status watched_done(void *self, const heed__request *r, const heed_hypothesis *found,
                                heed_error *err)
{
    struct watched *w = self;
    w->open--;
    if (w->finished_first < 0)
        w->finished_first = (intptr_t)r->owner;
    if (w->fail_done && --w->fail_done == 0) {
        err->status = HEED_STATE;
        return HEED_STATE;
    }
    return requests_done(&w->requests, r, found, err);
}

static struct watched watched_feed(void)
{
    return (struct watched){.requests = {request, LINES, 0, N_BEST, arena, out},
                            .finished_first = -1};
}

static heed_status search_watched(struct watched *w)
{
    heed_error err = {0};
    heed__stepper stepper = made_up_stepper(&model);
    heed__request_source source = {w, watched_next, watched_done};
    heed__budget budget = {512, 1 << 20, 16};
    heed__search *s = heed__search_new(NULL, &err);
    assert_non_null(s);
    heed_status status = heed__search_run(s, &stepper, &options, &budget, &source, &err);
    heed__search_free(s);
    return status;
}

/* Catches a search that waits for sentences while it has some, ends because none has come yet, or
 * keeps a short sentence until a long one beside it is done; and failures of the feed that are
 * lost. */
static void test_feed(void **state)
{
    (void)state;
    search_alone();
    struct watched w = watched_feed();
    w.dry = true;
    memset(out, 0, sizeof out);
    assert_int_equal(search_watched(&w), HEED_OK);
    assert_as_alone();
    assert_true(w.waits < 20);
    w = watched_feed();
    request[0].source.count = LONGEST_LINE;
    request[1].source.count = 1;
    w.requests.count = 2;
    assert_int_equal(search_watched(&w), HEED_OK);
    assert_int_equal(w.finished_first, 1);
    w = watched_feed();
    w.fail_next = 3;
    assert_int_equal(search_watched(&w), HEED_IO);
    w = watched_feed();
    w.fail_done = 7;
    assert_int_equal(search_watched(&w), HEED_STATE);
}

/* ---- memory ---- */

static heed_status drop(void *self, const heed__request *r, const heed_hypothesis *found,
                        heed_error *err)
{
    (void)self, (void)r, (void)found, (void)err;
    return HEED_OK;
}

/* Catches memory that grows with the number of sentences: after the first hundreds, a run of any
 * length asks the allocator for nothing. */
static void test_memory_stays(void **state)
{
    (void)state;
    struct failing f = {0};
    heed_allocator a = failing_allocator(&f);
    heed_error err = {0};
    heed__stepper stepper = made_up_stepper(&model);
    heed__search *s = heed__search_new(&a, &err);
    heed__budget budget = {512, 1 << 20, 32};
    int calls = 0;
    for (int run = 0; run < 4; run++) {
        struct requests q = {.request = request, .count = LINES};
        heed__request_source source = {&q, requests_next, drop};
        assert_int_equal(heed__search_run(s, &stepper, &options, &budget, &source, &err), HEED_OK);
        if (run == 0)
            calls = f.calls;
        assert_int_equal(f.calls, calls);
    }
    /* And within a run: what the first lines took is enough for all. */
    struct failing g = {0};
    heed_allocator b = failing_allocator(&g);
    heed__search *fresh = heed__search_new(&b, &err);
    for (int64_t count = 100; count <= LINES; count += 300) {
        struct requests q = {.request = request, .count = count};
        heed__request_source source = {&q, requests_next, drop};
        assert_int_equal(heed__search_run(fresh, &stepper, &options, &budget, &source, &err),
                         HEED_OK);
        if (count == 100)
            calls = g.calls;
    }
    assert_true(g.calls <= calls + 1);
    heed__search_free(fresh);
    heed__search_free(s);
    assert_int_equal(f.held, 0);
    assert_int_equal(g.held, 0);
}

int main(void)
{
#define FLOW_TEST(f) cmocka_unit_test_setup_teardown(f, set_up, made_up_end)
    const struct CMUnitTest tests[] = {
        FLOW_TEST(test_any_batch_same_answer),
        FLOW_TEST(test_any_number_of_workers),
        FLOW_TEST(test_failure_stops_all),
        FLOW_TEST(test_room_is_used),
        FLOW_TEST(test_feed),
        FLOW_TEST(test_memory_stays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
