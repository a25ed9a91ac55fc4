/* One engine, many threads: sessions of their own, and the workers of a translator; the answers of
 * one. */
#include "answers.h"

#include "translate/translator.h"
#include "vocab/vocabulary.h"
#include "vocab_help.h"
#include <pthread.h>

enum { THREADS = 8, SHARED = LINES / 4, TOLD = LINES / 8 };

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

static void share_an_engine(int bits)
{
    heed_engine *e = new_engine(bits);
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

/* Catches: an engine that is not as immutable as it says. */
static void eight_threads_share_an_engine(void **state)
{
    (void)state;
    share_an_engine(0);
    share_an_engine(7);
    share_an_engine(8);
}

/* ---- workers ---- */

/* As many words as the model has, beside the special pieces. */
static heed_vocab *new_vocab(void)
{
    static char word[WORDS][16];
    const char *lines[WORDS + 1] = {0};
    heed_error err = {0};
    for (int i = 0; i < WORDS - HEED__SPECIALS; i++) {
        snprintf(word[i], sizeof word[i], "w%d", i);
        lines[i] = word[i];
    }
    const heed_vocab_options o = {.kind = HEED_WHITESPACE, .size = WORDS, .min_count = 1};
    if (learn(&o, lines, in_folder("v.vocab"), NULL, &err))
        fail_msg("%s", err.text);
    heed_vocab *v = open_vocab(in_folder("v.vocab"), NULL);
    assert_int_equal(heed_vocab_size(v), WORDS);
    return v;
}

/* A line's tokens as words; those that are special as others. */
static const char *line_of(int i, heed_arena *arena)
{
    char *text = heed_arena_allocate(arena, 8 * MOST_TOKENS + 1);
    size_t n = 0;
    assert_non_null(text);
    for (int64_t k = 0; k < source[i].count; k++)
        n += (size_t)sprintf(text + n, "w%d ", (int)source[i].id[k] % (WORDS - HEED__SPECIALS));
    return text;
}

struct told {
    heed_arena *arena;
    int64_t read, done;
    heed_translation out[TOLD];
};

static heed_status next_line(void *context, bool wait, heed_source_line *line, heed_error *err)
{
    struct told *t = context;
    (void)wait, (void)err;
    if (t->read < TOLD)
        *line = (heed_source_line){.text = line_of((int)t->read++, t->arena)};
    return HEED_OK;
}

static heed_status done_line(void *context, const heed_source_line *line,
                             const heed_translation *out, heed_error *err)
{
    struct told *t = context;
    const size_t bytes = (size_t)out->tokens * sizeof(heed_real);
    char *text = heed_arena_allocate(t->arena, strlen(out->text) + 1);
    void *log_p = heed_arena_allocate(t->arena, bytes);
    (void)line, (void)err;
    assert_true(text && log_p);
    heed_translation *to = &t->out[t->done++];
    *to = *out;
    to->text = strcpy(text, out->text);
    to->token_log_p = memcpy(log_p, out->token_log_p, bytes);
    return HEED_OK;
}

static struct told *translate_all(const heed_vocab *v, int bits, int workers)
{
    struct told *b = calloc(1, sizeof *b);
    heed_error err = {0};
    assert_non_null(b);
    b->arena = heed_arena_new(NULL, &err);
    heed_translator *tr = heed_translator_new(model, v, v, workers, NULL, &err);
    assert_non_null(tr);
    heed_engine_free(tr->engine);
    tr->engine = new_engine(bits);
    heed_search_options o = how;
    o.n_best = 1;
    if (heed_translate_stream(tr, &o, &(heed_stream_options){.workers = workers, .batch = 7},
                              &(heed_line_stream){b, next_line, done_line}, &err))
        fail_msg("%s", err.text);
    assert_int_equal(b->done, TOLD);
    heed_translator_free(tr);
    return b;
}

static void end(struct told *b)
{
    heed_arena_free(b->arena);
    free(b);
}

/* Catches: workers whose answers depend on what the others do, or on how many they are. */
static void workers_answer_alike(void **state)
{
    (void)state;
    heed_vocab *v = new_vocab();
    for (int bits = 0; bits <= 8; bits += 8) {
        struct told *one = translate_all(v, bits, 1);
        for (int workers = 2; workers <= 4; workers += 2) {
            struct told *b = translate_all(v, bits, workers);
            for (int i = 0; i < TOLD; i++) {
                const heed_translation *x = &b->out[i], *y = &one->out[i];
                assert_string_equal(x->text, y->text);
                assert_int_equal(x->tokens, y->tokens);
                assert_memory_equal(&x->score, &y->score, sizeof x->score);
                assert_memory_equal(x->token_log_p, y->token_log_p,
                                    (size_t)y->tokens * sizeof(heed_real));
            }
            end(b);
        }
        end(one);
    }
    heed_vocab_free(v);
}

static int set_up_all(void **state)
{
    return make_folder(state) || set_up(state);
}

static int tear_down_all(void **state)
{
    return remove_folder(state) | tear_down(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(eight_threads_share_an_engine),
                                       cmocka_unit_test(workers_answer_alike)};
    return cmocka_run_group_tests_name("shared engine", tests, set_up_all, tear_down_all);
}
