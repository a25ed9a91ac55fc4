/* One engine, eight threads, each with a session: the answers of one. */
#include "answers.h"

#include <pthread.h>

enum { THREADS = 8, SHARED = LINES / 4 };

struct one_thread {
    const heed_engine *e;
    int order[LINES];
    int64_t count;
    struct answers answers;
    heed_status status;
};

static void *run_thread(void *context)
{
    struct one_thread *t = context;
    t->status = answer(t->e, 1, 5, t->order, t->count, &t->answers);
    return NULL;
}

/* Catches: an engine that is not as immutable as it says. */
static void eight_threads_share_an_engine(void **state)
{
    (void)state;
    heed_engine *e = new_engine(8);
    struct one_thread *t = calloc(THREADS + 1, sizeof *t);
    pthread_t thread[THREADS];
    for (int i = 0; i < SHARED; i++)
        t[THREADS].order[i] = i;
    t[THREADS].e = e;
    t[THREADS].count = SHARED;
    run_thread(&t[THREADS]);
    for (int i = 0; i < THREADS; i++) {
        t[i].e = e;
        for (int k = i; k < SHARED; k += THREADS)
            t[i].order[t[i].count++] = k;
        assert_int_equal(pthread_create(&thread[i], NULL, run_thread, &t[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(thread[i], NULL);
        assert_int_equal(t[i].status, HEED_OK);
        for (int64_t k = 0; k < t[i].count; k++)
            check_same(&t[i].answers.out[2 * k], &t[THREADS].answers.out[2 * t[i].order[k]],
                       t[i].order[k]);
        heed_arena_free(t[i].answers.arena);
    }
    heed_arena_free(t[THREADS].answers.arena);
    free(t);
    heed_engine_free(e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(eight_threads_share_an_engine)};
    return cmocka_run_group_tests_name("shared engine", tests, set_up, tear_down);
}
