/* test_stream.c: a stream of batches gives the same whatever the time and the place: neither the
 * faster thread nor a seek changes a batch; and its memory, and its end. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "batches_help.h"
#include "counting_allocator.h"

/* All that a batch says, as numbers. */
struct trace {
    int64_t *number;
    size_t count, room;
};

static void note(struct trace *t, int64_t number)
{
    if (t->count == t->room) {
        t->room = t->room ? 2 * t->room : 1024;
        t->number = realloc(t->number, t->room * sizeof *t->number);
        assert_non_null(t->number);
    }
    t->number[t->count++] = number;
}

static void note_batch(struct trace *t, const heed_batch *b)
{
    note(t, b->epoch);
    note(t, b->examples);
    for (int64_t i = 0; i < b->examples; i++)
        note(t, b->example[i]);
    for (int64_t i = 0; b->examples && i < b->source.rows->rows; i++)
        note(t, b->source.ids[i]);
    for (int64_t i = 0; b->examples && i < b->target.rows->rows; i++) {
        note(t, b->target.ids[i]);
        note(t, b->wanted[i]);
    }
}

static void assert_same(const struct trace *a, const struct trace *b)
{
    assert_int_equal(a->count, b->count);
    assert_memory_equal(a->number, b->number, a->count * sizeof *a->number);
}

/* Reads the whole stream, `count` batches at a time, resting before each call. */
static struct trace read_all(const heed_batches_options *o, const heed_vocab *v, int count,
                             useconds_t rest)
{
    heed_error err = {0};
    struct trace t = {0};
    heed_batches *b = heed_batches_new(corpus, v, v, o, NULL, &err);
    heed_batch batch[64];
    do {
        if (rest)
            usleep(rest);
        heed_batches_next(b, batch, count, &err);
        assert_string_equal(err.text, "");
        for (int i = 0; i < count && batch[i].examples; i++)
            note_batch(&t, &batch[i]);
    } while (batch[count - 1].examples);
    heed_batches_free(b);
    return t;
}

/* Catches batches that depend on who is faster, or on how many are taken at once (64 of them span
 * several epochs here). */
static void time_changes_nothing(void **state)
{
    (void)state;
    for (int sampled = 0; sampled < 2; sampled++) {
        heed_batches_options o = usual;
        o.epochs = 4;
        o.window = 100;
        o.source_sampling = o.target_sampling = sampled ? 0.2 : 0;
        o.augment = (heed_augment_options){sampled * 0.3, sampled * 0.3, sampled * 0.3, 0.1};
        struct trace one = read_all(&o, subwords, 1, 0), slow = read_all(&o, subwords, 7, 3000),
                     many = read_all(&o, subwords, 64, 0);
        assert_same(&one, &slow);
        assert_same(&one, &many);
        free(one.number);
        free(slow.number);
        free(many.number);
    }
}

/* Catches a resumed run that goes elsewhere: from every position, the same batches follow. */
static void seek_is_going_on(void **state)
{
    (void)state;
    heed_batches_options o = usual;
    o.epochs = 2;
    o.source_sampling = 0.3; /* one side kept from epoch to epoch, the other drawn anew */
    heed_error err = {0};
    heed_batches *b = heed_batches_new(corpus, subwords, subwords, &o, NULL, &err);
    heed_batches *other = heed_batches_new(corpus, subwords, subwords, &o, NULL, &err);
    heed_batches_position p[1000];
    struct trace t = {0};
    size_t begin[1001] = {0};
    int n = 0;
    for (heed_batch batch;; n++) {
        assert_true(n < 999);
        p[n] = heed_batches_tell(b);
        batch = next(b);
        note_batch(&t, &batch);
        begin[n + 1] = t.count;
        if (!batch.examples)
            break;
    }
    assert_int_equal(p[n].epoch, 2);
    for (int i = n; i >= 0; i--) { /* backwards: every seek is a jump */
        assert_int_equal(heed_batches_seek(other, p[i], &err), HEED_OK);
        heed_batches_position told = heed_batches_tell(other);
        assert_memory_equal(&told, &p[i], sizeof told);
        int last = i + 3 < n ? i + 3 : n;
        struct trace again = {0};
        for (int j = i; j <= last; j++) {
            heed_batch batch = next(other);
            note_batch(&again, &batch);
        }
        struct trace expected = {t.number + begin[i], begin[last + 1] - begin[i], 0};
        assert_same(&again, &expected);
        free(again.number);
    }
    /* Behind a window's last batch is before the next one's first. */
    int next_window = 1;
    while (p[next_window].window == 0)
        next_window++;
    heed_batches_position behind = p[next_window - 1];
    behind.batch++;
    assert_int_equal(heed_batches_seek(other, behind, &err), HEED_OK);
    heed_batches_position told = heed_batches_tell(other);
    assert_memory_equal(&told, &p[next_window], sizeof told);
    heed_batches_free(b);
    heed_batches_free(other);
    free(t.number);
}

/* Catches positions of another stream let in, and a refused seek that disturbs this one. */
static void seek_refuses(void **state)
{
    (void)state;
    heed_batches_options o = usual;
    o.epochs = 2;
    heed_batches *b = open_stream(&o), *undisturbed = open_stream(&o);
    static const heed_batches_position nowhere[] = {{-1, 0, 0}, {0, -1, 0}, {0, 0, -1}, {0, 3, 0},
                                                    {2, 1, 0},  {2, 0, 1},  {3, 0, 0}};
    struct trace t = {0}, expected = {0};
    for (size_t i = 0; i < sizeof nowhere / sizeof *nowhere; i++) {
        heed_error err = {0};
        assert_int_equal(heed_batches_seek(b, nowhere[i], &err), HEED_ARGUMENT);
        assert_non_null(strstr(err.text, "the stream has 2 epochs (0: no end) of 3 windows"));
        heed_batch batch = next(b), same = next(undisturbed);
        note_batch(&t, &batch);
        note_batch(&expected, &same);
    }
    assert_same(&t, &expected);
    heed_error err = {0};
    heed_batches_position beyond = {1, 1, 500};
    assert_int_equal(heed_batches_seek(b, beyond, &err), HEED_ARGUMENT);
    assert_non_null(strstr(err.text, "cannot go to batch 500 of window 1: it has "));
    heed_batch batch;
    assert_int_equal(heed_batches_next(b, &batch, 1, NULL), HEED_ARGUMENT);
    assert_int_equal(heed_batches_seek(b, (heed_batches_position){0}, NULL), HEED_OK);
    assert_int_equal(next(b).epoch, 0); /* a good seek makes it good again */
    heed_batches_free(b);
    heed_batches_free(undisturbed);
    free(t.number);
    free(expected.number);
}

/* Catches sampling that depends on more than seed, epoch, pair and side (other windows give the
 * same pieces), or on less (all epochs alike). */
static void sampling_belongs_to_the_pair(void **state)
{
    (void)state;
    enum { EPOCHS = 2 };
    static const int64_t windows[] = {1, 77, 300};
    uint64_t digest[3][EPOCHS][PAIRS] = {0};
    for (int k = 0; k < 3; k++) {
        heed_batches_options o = usual;
        o.window = windows[k];
        o.epochs = EPOCHS;
        o.max_tokens = 1000;
        o.source_sampling = o.target_sampling = 0.2;
        heed_error err = {0};
        heed_batches *b = heed_batches_new(corpus, subwords, subwords, &o, NULL, &err);
        for (heed_batch batch; (batch = next(b)).examples;)
            for (int64_t i = 0; i < batch.examples; i++) {
                uint64_t *d = &digest[k][batch.epoch][batch.example[i]];
                for (int64_t j = batch.source.rows->offset[i]; j < batch.source.rows->offset[i + 1];
                     j++)
                    *d = *d * 1000003 + (uint64_t)batch.source.ids[j];
                for (int64_t j = batch.target.rows->offset[i]; j < batch.target.rows->offset[i + 1];
                     j++)
                    *d = *d * 1000003 + (uint64_t)batch.wanted[j];
            }
        heed_batches_free(b);
    }
    assert_memory_equal(digest[0], digest[1], sizeof digest[0]);
    assert_memory_equal(digest[0], digest[2], sizeof digest[0]);
    int alike = 0;
    for (int i = 0; i < PAIRS; i++)
        alike += digest[0][0][i] == digest[0][1][i];
    assert_true(alike < PAIRS / 2);
}

/* ---- threads and memory ---- */

/* Catches a stream that cannot be freed: at once, while a window is made, while the maker waits. */
static void freed_at_any_moment(void **state)
{
    (void)state;
    for (int i = 0; i < 100; i++) {
        heed_batches_options o = usual;
        o.window = i % 2 ? 3 : 300;
        heed_batches *b = open_stream(&o);
        if (i % 3 == 0)
            usleep((useconds_t)(i * 20));
        for (int j = 0; j < i % 7; j++)
            next(b);
        heed_batches_free(b);
    }
    heed_batches_free(NULL);
}

/* Catches memory that grows from epoch to epoch, with ids kept and with ids drawn anew. */
static void memory_settles(void **state)
{
    (void)state;
    for (int sampled = 0; sampled < 2; sampled++) {
        struct counting c = {0};
        heed_allocator a = {counting_allocate, counting_release, &c};
        heed_batches_options o = usual;
        o.source_sampling = sampled ? 0.2 : 0;
        heed_error err = {0};
        heed_batches *b = heed_batches_new(corpus, subwords, subwords, &o, &a, &err);
        heed_batch batch[4];
        int calls = 0;
        do {
            assert_int_equal(heed_batches_next(b, batch, 4, &err), HEED_OK);
            if (batch[3].epoch < 3)
                calls = atomic_load(&c.calls);
        } while (batch[3].epoch < 20);
        assert_int_equal(atomic_load(&c.calls), calls);
        heed_batches_free(b);
        assert_int_equal(c.held, 0);
    }
}

/* Catches a leak, a crash or a hang when memory runs out in either thread. */
static void memory_runs_out(void **state)
{
    (void)state;
    heed_batches_options o = usual;
    o.epochs = 2;
    int failed = 0;
    for (int n = 1;; n++) {
        assert_true(n < 100);
        struct counting c = {.fail_at = n};
        heed_allocator a = {counting_allocate, counting_release, &c};
        heed_error err = {0};
        heed_batches *b = heed_batches_new(corpus, words, words, &o, &a, &err);
        heed_batch batch[5] = {0};
        while (b && heed_batches_next(b, batch, 5, &err) == HEED_OK && batch[4].examples)
            ;
        heed_batches_free(b);
        assert_int_equal(c.held, 0);
        if (atomic_load(&c.calls) < n)
            break;
        assert_int_equal(err.status, HEED_MEMORY);
        failed++;
    }
    assert_true(failed >= 8);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(time_changes_nothing), cmocka_unit_test(seek_is_going_on),
        cmocka_unit_test(seek_refuses),         cmocka_unit_test(sampling_belongs_to_the_pair),
        cmocka_unit_test(freed_at_any_moment),  cmocka_unit_test(memory_settles),
        cmocka_unit_test(memory_runs_out),
    };
    return cmocka_run_group_tests_name("stream", tests, set_up, tear_down);
}
