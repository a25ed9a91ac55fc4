/* The tasks of `heed lab long` that are made from random numbers: what is asked, what is right, and
 * that the same examples are the same. */
#include "labs/long.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static heed_arena *arena;

static int make_arena(void **state)
{
    (void)state;
    return (arena = heed_arena_new(NULL, NULL)) ? 0 : 1;
}

static int free_arena(void **state)
{
    (void)state;
    heed_arena_free(arena);
    return 0;
}

static long_source source_of(const long_task *task, int64_t length)
{
    static const long_settings settings;
    heed_error err = {0};
    long_source s = {.task = task, .settings = &settings, .length = length, .arena = arena};
    if (task->open(&s, &err))
        fail_msg("%s", err.text);
    return s;
}

static long_batch draw(const long_source *s, long_part part, int64_t at, int64_t n, uint64_t step)
{
    const heed_rng rng = heed_rng_stream(&(heed_rng_key){.seed = 5, .step = step});
    long_batch b;
    assert_true(s->task->draw(s, part, at, n, &rng, arena, &b));
    assert_int_equal(b.side.rows->count, n);
    for (int64_t i = 0; i < b.side.rows->rows; i++)
        assert_in_range(b.side.ids[i], 0, s->vocabulary - 1);
    for (int64_t i = 0; i < b.count; i++) {
        assert_in_range(b.wanted[i], 0, s->classes - 1);
        assert_in_range(b.row[i], 0, b.side.rows->rows - 1);
    }
    return b;
}

/* Catches: a second half that is not the first, answers that stand one row too early or too late.
 * */
static void duplicates(void **state)
{
    enum { W = 7, N = 5, ROWS = 2 * W + 1 };
    (void)state;
    const long_source s = source_of(&long_duplication, W);
    const long_batch b = draw(&s, LONG_TRAIN, 0, N, 1);
    assert_int_equal(b.count, N * W);
    for (int64_t i = 0; i < N; i++) {
        const int32_t *x = b.side.ids + i * ROWS;
        assert_true(x[0] == 0 && x[W + 1] == 0);
        for (int64_t k = 0; k < W; k++) {
            assert_true(x[1 + k] > 0);
            assert_int_equal(b.wanted[i * W + k], x[1 + k]);
            /* The row says the symbol before the one that is wanted. */
            assert_int_equal(b.row[i * W + k], i * ROWS + W + 1 + k);
            assert_int_equal(x[W + 1 + k], k ? x[k] : 0);
        }
    }
}

/* A list read from left to right with a stack, as a reader would do it; the position behind it. */
enum { MIN = 10, CLOSE = 14, FIRST = 15 };
static int64_t read_list(const int32_t *x, int64_t n, int64_t at, int depth, int *deepest,
                         int *value)
{
    int v[16], count = 0;
    const int32_t op = x[at];
    if (op < MIN) {
        *value = op;
        return at + 1;
    }
    *deepest = depth > *deepest ? depth : *deepest;
    assert_true(op >= MIN && op < CLOSE);
    for (at++; at < n && x[at] != CLOSE; count++) {
        assert_true(count < 10);
        at = read_list(x, n, at, depth + 1, deepest, &v[count]);
    }
    assert_true(at < n && count >= 2);
    for (int i = 0; i < count; i++)
        for (int k = i + 1; k < count; k++)
            if (v[k] < v[i]) {
                const int swap = v[i];
                v[i] = v[k];
                v[k] = swap;
            }
    int sum = 0;
    for (int i = 0; i < count; i++)
        sum += v[i];
    const int results[] = {v[0], v[count - 1], (v[(count - 1) / 2] + v[count / 2]) / 2, sum % 10};
    *value = results[op - MIN];
    return at + 1;
}

/* Catches: a value that is not the list's, lists that are too short, long or deep, parts that are
 * one another's. */
static void lists_have_their_values(void **state)
{
    enum { N = 400, LENGTH = 120 };
    (void)state;
    const long_source s = source_of(&long_listops, LENGTH);
    for (int part = LONG_TRAIN; part <= LONG_TEST; part++) {
        const long_batch b = draw(&s, part, 0, N, 2);
        int deepest = 0, times[10] = {0};
        for (int64_t i = 0; i < N; i++) {
            const int64_t first = b.side.rows->offset[i], n = b.side.rows->offset[i + 1] - first;
            int value;
            assert_int_equal(b.side.ids[first], FIRST);
            assert_in_range(n - 1, 21, LENGTH - 1);
            assert_int_equal(read_list(b.side.ids + first + 1, n - 1, 0, 1, &deepest, &value),
                             n - 1);
            assert_int_equal(b.wanted[i], value);
            assert_int_equal(b.row[i], first);
            times[value]++;
        }
        assert_in_range(deepest, 3, 5); /* a list of depth 6 would hold values of depth 6 alone */
        for (int v = 0; v < 10; v++)
            assert_true(times[v] > 0);
    }
}

/* Catches: a value that has been written over, one that was never written, a question that brings
 * its answer; keys that come twice where each comes once. */
static void keys_have_their_last_values(void **state)
{
    enum { KEYS = 9, WRITES = 20, N = 30 };
    const long_settings settings[] = {{.writes = 0}, {.writes = WRITES}};
    const heed_rng rng = heed_rng_stream(&(heed_rng_key){.seed = 5});
    (void)state;
    for (int k = 0; k < 2; k++)
        for (int part = LONG_TRAIN; part <= LONG_TEST; part++) {
            long_source s = {
                .task = &long_retrieval, .settings = &settings[k], .length = KEYS, .arena = arena};
            heed_error err = {0};
            long_batch b;
            int64_t asked = 0, most = 0;
            assert_int_equal(s.task->open(&s, &err), HEED_OK);
            assert_true(s.task->draw(&s, (long_part)part, 0, N, &rng, arena, &b));
            for (int64_t i = 0; i < N; i++) {
                int64_t last[KEYS], writes[KEYS] = {0};
                for (int64_t row = b.side.rows->offset[i]; row < b.side.rows->offset[i + 1];
                     row++) {
                    const int32_t key = b.side.ids[row], value = b.side.types[row] - 1;
                    assert_in_range(key, 0, KEYS - 1);
                    if (value >= 0) {
                        assert_true(asked == 0 || b.row[asked - 1] < row);
                        last[key] = value;
                        most = ++writes[key] > most ? writes[key] : most;
                        continue;
                    }
                    assert_true(writes[key] > 0);
                    assert_int_equal(b.row[asked], row);
                    for (int64_t v = 0; v < KEYS; v++)
                        assert_true(b.target[asked * KEYS + v] == (heed_real)(v == last[key]));
                    asked++;
                }
            }
            assert_int_equal(asked, b.count);
            assert_true(settings[k].writes ? most > 1 : most == 1 && asked == N * KEYS);
        }
}

/* Catches: a number that is not the largest, sets that all have one size. */
static void sets_have_their_largest(void **state)
{
    enum { N = 200 };
    const heed_rng rng = heed_rng_stream(&(heed_rng_key){.seed = 6});
    (void)state;
    const long_source s = source_of(&long_sets, 10);
    for (int part = LONG_TRAIN; part <= LONG_TEST; part++) {
        long_batch b;
        int times[11] = {0};
        assert_true(s.task->draw(&s, (long_part)part, 3, N, &rng, arena, &b));
        assert_int_equal(b.count, N);
        for (int64_t i = 0; i < N; i++) {
            const int64_t first = b.side.rows->offset[i], end = b.side.rows->offset[i + 1];
            heed_real most = b.side.features[first];
            for (int64_t k = first; k < end; k++)
                most = b.side.features[k] > most ? b.side.features[k] : most;
            assert_true(b.target[i] == most);
            assert_true((most + 1) * 50 > (heed_real)0.99 && (most + 1) * 50 < (heed_real)99.01);
            assert_in_range(end - first, 1, 10);
            times[end - first]++;
        }
        for (int n = 1; n <= 10; n++)
            assert_true(times[n] > 0);
    }
}

/* Catches: validation and test examples that depend on how many are drawn at once, or on the seed;
 * training examples that are always the same. */
static void tests_stay_the_same(void **state)
{
    (void)state;
    const long_task *const tasks[] = {&long_duplication, &long_listops};
    for (int k = 0; k < 2; k++) {
        const long_source s = source_of(tasks[k], 40);
        const long_batch all = draw(&s, LONG_TEST, 0, 9, 1), some = draw(&s, LONG_TEST, 4, 2, 3);
        const long_batch valid = draw(&s, LONG_VALID, 4, 2, 3);
        const int64_t first = all.side.rows->offset[4], rows = some.side.rows->rows;
        assert_int_equal(all.side.rows->offset[6] - first, rows);
        assert_memory_equal(all.side.ids + first, some.side.ids, (size_t)rows * sizeof(int32_t));
        assert_false(valid.side.rows->rows == rows &&
                     memcmp(valid.side.ids, some.side.ids, (size_t)rows * sizeof(int32_t)) == 0);
        const long_batch one = draw(&s, LONG_TRAIN, 0, 3, 1), two = draw(&s, LONG_TRAIN, 0, 3, 2);
        assert_false(
            one.side.rows->rows == two.side.rows->rows &&
            memcmp(one.side.ids, two.side.ids, (size_t)one.side.rows->rows * sizeof(int32_t)) == 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(duplicates, make_arena, free_arena),
        cmocka_unit_test_setup_teardown(lists_have_their_values, make_arena, free_arena),
        cmocka_unit_test_setup_teardown(keys_have_their_last_values, make_arena, free_arena),
        cmocka_unit_test_setup_teardown(sets_have_their_largest, make_arena, free_arena),
        cmocka_unit_test_setup_teardown(tests_stay_the_same, make_arena, free_arena),
    };
    return cmocka_run_group_tests_name("long", tests, NULL, NULL);
}
