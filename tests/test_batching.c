/* The answer to a line is its own: whatever else is decoded, in whatever order, by however many
 * threads, text and scores are the same bits, in numbers and in bytes. */
#include "answers.h"

static void draw_order(int *order, uint64_t seed)
{
    const heed_rng rng = heed_rng_stream(&(heed_rng_key){.seed = seed});
    for (int i = 0; i < LINES; i++)
        order[i] = i;
    for (int i = LINES - 1; seed && i > 0; i--) {
        int k = (int)heed_rng_below(&rng, (uint64_t)i, i + 1), kept = order[i];
        order[i] = order[k];
        order[k] = kept;
    }
}

static void check_engine(int bits)
{
    static const struct {
        int threads;
        int64_t together;
        uint64_t shuffled;
    } ways[] = {{1, 7, 0}, {1, 64, 3}, {2, 64, 0}, {4, 7, 5}};
    heed_engine *e = new_engine(bits);
    static struct answers alone, found;
    int order[LINES], ties = 0;
    draw_order(order, 0);
    assert_int_equal(answer(e, 1, 1, order, LINES, &alone), HEED_OK);
    for (size_t w = 0; w < sizeof ways / sizeof *ways; w++) {
        draw_order(order, ways[w].shuffled);
        assert_int_equal(answer(e, ways[w].threads, ways[w].together, order, LINES, &found),
                         HEED_OK);
        for (int i = 0; i < LINES; i++)
            check_same(&found.out[2 * i], &alone.out[2 * order[i]], order[i]);
        heed_arena_free(found.arena);
    }
    for (int i = 0; i < LINES; i++)
        ties += alone.out[2 * i].score == alone.out[2 * i + 1].score;
    print_message("%d of %d lines end in a tie\n", ties, LINES);
    assert_true(ties > 0);
    heed_arena_free(alone.arena);
    heed_engine_free(e);
}

/* Catches: a sum whose order depends on the rows or the threads; a tie that is decided by luck. */
static void batches_do_not_matter_in_numbers(void **state)
{
    (void)state;
    check_engine(0);
}

static void batches_do_not_matter_in_bytes(void **state)
{
    (void)state;
    check_engine(8);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(batches_do_not_matter_in_numbers),
        cmocka_unit_test(batches_do_not_matter_in_bytes),
    };
    return cmocka_run_group_tests_name("batching", tests, set_up, tear_down);
}
