/* test_batches.c: packing, and which pairs come in which batches. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "batches_help.h"
#include "counting_allocator.h"

/* ---- packing ---- */

/* Catches BOS or EOS in the wrong place, lengths off by one, and an empty sentence lost. */
static void packing(void **state)
{
    (void)state;
    static const int32_t x[] = {20, 21, 22}, y[] = {30, 31};
    const heed_tokens sources[] = {{x, 3}, {NULL, 0}, {x + 1, 1}};
    const heed_tokens targets[] = {{y, 1}, {y, 2}, {NULL, 0}};
    static const int32_t source_ids[] = {20, 21, 22, HEED_EOS, HEED_EOS, 21, HEED_EOS};
    static const int32_t target_in[] = {HEED_BOS, 30, HEED_BOS, 30, 31, HEED_BOS};
    static const int32_t target_out[] = {30, HEED_EOS, 30, 31, HEED_EOS, HEED_EOS};
    static const int64_t source_offset[] = {0, 4, 5, 7}, target_offset[] = {0, 2, 5, 6};
    heed_batch b;
    heed_error err = {0};
    assert_int_equal(heed_batch_pack(arena, NULL, sources, targets, 3, &b, &err), HEED_OK);
    assert_int_equal(b.examples, 3);
    assert_int_equal(b.source.rows->count, 3);
    assert_int_equal(b.target.rows->count, 3);
    assert_memory_equal(b.source.rows->offset, source_offset, sizeof source_offset);
    assert_memory_equal(b.target.rows->offset, target_offset, sizeof target_offset);
    assert_memory_equal(b.source.ids, source_ids, sizeof source_ids);
    assert_memory_equal(b.target.ids, target_in, sizeof target_in);
    assert_memory_equal(b.wanted, target_out, sizeof target_out);
    for (int i = 0; i < 3; i++)
        assert_int_equal(b.example[i], i);

    assert_int_equal(heed_batch_pack(arena, NULL, sources, NULL, 3, &b, &err), HEED_OK);
    assert_memory_equal(b.source.ids, source_ids, sizeof source_ids);
    assert_null(b.target.rows);
    assert_null(b.target.ids);
    assert_null(b.wanted);
    assert_int_equal(heed_batch_pack(arena, NULL, sources, targets, 0, &b, &err), HEED_OK);
    assert_int_equal(b.examples + b.source.rows->rows + b.target.rows->rows, 0);
}

/* Catches lengths believed before they are checked, and half a batch handed out. */
static void packing_refuses(void **state)
{
    (void)state;
    const heed_tokens large[] = {{NULL, INT32_MAX / 2}, {NULL, INT32_MAX / 2}};
    const heed_tokens negative = {NULL, -1};
    heed_batch b;
    heed_error err = {0};
    assert_int_equal(heed_batch_pack(arena, NULL, large, NULL, 2, &b, &err), HEED_ARGUMENT);
    assert_string_equal(err.text, "cannot pack 2 sentences: sentence 1 with 1073741823 tokens "
                                  "makes more than 2147483647");
    assert_int_equal(heed_batch_pack(arena, NULL, &negative, NULL, 1, &b, NULL), HEED_ARGUMENT);
    assert_int_equal(heed_batch_pack(arena, NULL, large, NULL, -1, &b, NULL), HEED_ARGUMENT);

    static int32_t ids[3000];
    const heed_tokens some = {ids, 3000};
    int failures = 0;
    for (int n = 1;; n++) {
        struct counting c = {.fail_at = n};
        heed_allocator a = {counting_allocate, counting_release, &c};
        heed_arena *short_of = heed_arena_new(&a, NULL);
        heed_status status =
            short_of ? heed_batch_pack(short_of, NULL, &some, &some, 1, &b, NULL) : 99;
        heed_arena_free(short_of);
        assert_int_equal(c.held, 0);
        if (status == HEED_OK)
            break;
        assert_true(status == 99 || (status == HEED_MEMORY && !b.source.rows && !b.examples));
        failures++;
    }
    assert_true(failures >= 2);
}

/* ---- which pairs ---- */

/* The ids of the batch are those of its pairs. */
static void assert_ids(const heed_batch *b)
{
    for (int64_t i = 0; i < b->examples; i++) {
        heed_pair p = heed_corpus_pair(corpus, b->example[i]);
        heed_tokens s, t;
        heed_arena_reset(arena);
        heed_vocab_encode(words, p.source, p.source_length, arena, &s, NULL);
        heed_vocab_encode(words, p.target, p.target_length, arena, &t, NULL);
        const int64_t *from = b->source.rows->offset + i, *to = b->target.rows->offset + i;
        assert_int_equal(from[1] - from[0], s.count + 1);
        assert_int_equal(to[1] - to[0], t.count + 1);
        assert_memory_equal(b->source.ids + from[0], s.id, (size_t)s.count * sizeof *s.id);
        assert_memory_equal(b->wanted + to[0], t.id, (size_t)t.count * sizeof *t.id);
        assert_memory_equal(b->target.ids + to[0] + 1, t.id, (size_t)t.count * sizeof *t.id);
        assert_int_equal(b->source.ids[from[1] - 1], HEED_EOS);
        assert_int_equal(b->wanted[to[1] - 1], HEED_EOS);
        assert_int_equal(b->target.ids[to[0]], HEED_BOS);
    }
}

/* Catches pairs lost, doubled or mixed up at the edges of batches, windows and epochs (the first
 * epoch tokenises, the later ones find the ids kept), and epochs that are alike. */
static void every_pair_once_an_epoch(void **state)
{
    (void)state;
    static const int64_t windows[] = {0, 1, 7, 128, 299, 300, 301};
    for (size_t k = 0; k < sizeof windows / sizeof *windows; k++) {
        heed_batches_options o = usual;
        o.window = windows[k];
        o.epochs = 3;
        heed_batches *b = open_stream(&o);
        int64_t order[3][PAIRS];
        heed_batch batch = next(b);
        int64_t tokens = 0;
        for (int64_t epoch = 0; epoch < 3; epoch++) {
            int64_t n = 0;
            bool seen[PAIRS] = {0};
            for (; batch.examples && batch.epoch == epoch; batch = next(b)) {
                assert_ids(&batch);
                tokens += batch.target.rows->rows;
                for (int64_t i = 0; i < batch.examples; i++) {
                    assert_false(seen[batch.example[i]]);
                    seen[batch.example[i]] = true;
                    order[epoch][n++] = batch.example[i];
                }
            }
            assert_int_equal(n, PAIRS);
        }
        assert_int_equal(batch.examples, 0);
        assert_int_equal(next(b).examples, 0); /* the end stays the end */
        assert_int_equal(heed_batches_describe(b).target_tokens, tokens);
        assert_memory_not_equal(order[0], order[1], sizeof *order);
        assert_memory_not_equal(order[1], order[2], sizeof *order);
        heed_batches_free(b);
    }
}

/* Catches a seed that is not used, and pairs or batches that are not shuffled: at random one pair
 * stays where it was, on average, and as many are alike with two seeds. */
static void seeds_and_shuffles(void **state)
{
    (void)state;
    int64_t order[2][PAIRS];
    for (int seed = 0; seed < 2; seed++) {
        heed_batches_options o = usual;
        o.window = 1; /* the order itself */
        o.seed = (uint64_t)seed;
        heed_batches *b = open_stream(&o);
        for (int i = 0; i < PAIRS; i++)
            order[seed][i] = next(b).example[0];
        heed_batches_free(b);
    }
    int stayed = 0, agree = 0;
    for (int i = 0; i < PAIRS; i++) {
        stayed += order[0][i] == i;
        agree += order[0][i] == order[1][i];
    }
    heed_batches_options o = usual;
    o.window = 0;
    o.epochs = 1;
    heed_batches *b = open_stream(&o);
    int batches = 0, shorter = 0;
    int64_t before = 0;
    for (heed_batch batch; (batch = next(b)).examples; batches++) {
        shorter += batch.target.rows->longest < before;
        before = batch.target.rows->longest;
    }
    heed_batches_free(b);
    assert_true(shorter > batches / 4); /* not from short to long, as they were cut */

    assert_true(stayed < 8); /* Poisson with mean 1: above this once in a hundred thousand */
    assert_true(agree < 8);
}

/* Catches a budget exceeded, batches badly filled, and a small rest at a window's end: all batches
 * of a window differ by little more than a sentence. */
static void budgets_and_balance(void **state)
{
    (void)state;
    enum { LONGEST = 17 }; /* target tokens of a pair, at most */
    for (int64_t budget = 1; budget < 3000; budget = budget * 5 / 4 + 1) {
        heed_batches_options o = usual;
        o.window = 0;
        o.batch_tokens = budget;
        o.epochs = 1;
        heed_batches *b = open_stream(&o);
        int64_t smallest = INT64_MAX, largest = 0, total = 0, batches = 0;
        for (heed_batch batch; (batch = next(b)).examples; batches++) {
            int64_t rows = batch.target.rows->rows;
            assert_true(rows <= budget || batch.examples == 1);
            smallest = rows < smallest ? rows : smallest;
            largest = rows > largest ? rows : largest;
            total += rows;
            int64_t shortest = INT64_MAX;
            for (int64_t i = 0; i < batch.examples; i++) {
                int64_t n = batch.target.rows->offset[i + 1] - batch.target.rows->offset[i];
                shortest = n < shortest ? n : shortest;
            }
            if (budget < 100)
                assert_true(batch.target.rows->longest - shortest <= 2);
        }
        if (budget >= 2 * LONGEST)
            assert_true(largest - smallest <= LONGEST);
        /* On average no batch has room for another sentence. */
        if (budget >= 2 * LONGEST)
            assert_true(batches <= total / (budget - LONGEST) + 1);
        heed_batches_free(b);
    }
}

/* ---- ends and refusals ---- */

/* Catches a pass for validation that shuffles, repeats or stops early. */
static void in_corpus_order(void **state)
{
    (void)state;
    heed_batches_options o = {
        .batch_tokens = 100, .max_tokens = 1000, .window = 50, .in_order = true};
    heed_batches *b = open_stream(&o);
    bool seen[PAIRS] = {0};
    int64_t n = 0, longest = 0;
    for (heed_batch batch; (batch = next(b)).examples;) {
        assert_ids(&batch);
        if (n % 50 == 0)
            longest = 0;
        for (int64_t i = 0; i < batch.examples; i++, n++) {
            assert_int_equal(batch.example[i] / 50, n / 50); /* window after window */
            assert_false(seen[batch.example[i]]);
            seen[batch.example[i]] = true;
            int64_t length = batch.target.rows->offset[i + 1] - batch.target.rows->offset[i];
            assert_true(length >= longest); /* and inside by length */
            longest = length;
        }
    }
    assert_int_equal(n, PAIRS);
    heed_batches_position p = heed_batches_tell(b);
    assert_int_equal(p.epoch, 1);
    assert_int_equal(p.window + p.batch, 0);
    heed_batch batch[3];
    assert_int_equal(heed_batches_seek(b, (heed_batches_position){0, 5, 0}, NULL), HEED_OK);
    int full = 0;
    do { /* an update's worth that the end cuts short */
        assert_int_equal(heed_batches_next(b, batch, 3, NULL), HEED_OK);
        for (int i = 0; i < 3; i++)
            full += batch[i].examples > 0;
    } while (batch[2].examples);
    assert_true(full >= 4 && full % 3 != 0);
    heed_batches_free(b);
}

/* Catches a limit off by one, pairs dropped without being counted, and a stream that looks for a
 * usable pair for ever. */
static void too_long_is_left_out(void **state)
{
    (void)state;
    heed_batches_options o = usual;
    o.epochs = 1;
    int64_t kept = 0, counted = 0;
    o.max_tokens = 9;
    for (int64_t i = 0; i < PAIRS; i++) {
        heed_pair p = heed_corpus_pair(corpus, i);
        int64_t source = 2, target = 2; /* the first word and EOS */
        for (size_t j = 0; j < p.source_length; j++)
            source += p.source[j] == ' ';
        for (size_t j = 0; j < p.target_length; j++)
            target += p.target[j] == ' ';
        kept += source <= 9 && target <= 9;
    }
    heed_batches *b = open_stream(&o);
    for (heed_batch batch; (batch = next(b)).examples;) {
        assert_true(batch.source.rows->longest <= 9 && batch.target.rows->longest <= 9);
        counted += batch.examples;
    }
    assert_true(kept > 0 && kept < PAIRS);
    assert_int_equal(counted, kept);
    assert_int_equal(heed_batches_describe(b).left_out, PAIRS - kept);
    heed_batches_free(b);

    for (int epochs = 0; epochs < 2; epochs++) {
        o.epochs = epochs;
        o.max_tokens = 1;
        b = open_stream(&o);
        heed_batch batch[2];
        heed_error err = {0}, again = {0};
        assert_int_equal(heed_batches_next(b, batch, 2, &err), HEED_FORMAT);
        assert_string_equal(err.text, "none of the 300 pairs has at most 1 tokens on either side, "
                                      "the end of the sentence included");
        assert_int_equal(batch[0].examples + batch[1].examples, 0);
        assert_int_equal(heed_batches_next(b, batch, 2, &again), HEED_FORMAT);
        assert_string_equal(again.text, err.text);
        heed_batches_free(b);
    }
}

/* Catches an epoch entered behind its last usable pair and taken for one that has none. */
static void nothing_left_is_not_nothing(void **state)
{
    (void)state;
    static const char text[] = "a b c\ta\na b c\ta\na\ta\na b c\ta\n"; /* the third fits */
    write_plain(in_folder("four.tsv"), text, strlen(text));
    heed_corpus *four = open_tsv(in_folder("four.tsv"));
    heed_batches_options o = {
        .batch_tokens = 9, .max_tokens = 2, .window = 1, .in_order = true, .epochs = 2};
    heed_error err = {0};
    heed_batches *b = heed_batches_new(four, words, words, &o, NULL, &err);
    usleep(1000); /* let the first windows be made: nothing in them */
    assert_int_equal(heed_batches_seek(b, (heed_batches_position){0, 3, 0}, &err), HEED_OK);
    heed_batch batch = next(b);
    assert_int_equal(batch.epoch, 1);
    assert_int_equal(batch.example[0], 2);
    assert_int_equal(next(b).examples, 0);
    heed_batches_free(b);
    heed_corpus_free(four);
}

/* ---- shares of files ---- */

/* Twenty pairs of the first file, and of the hundred of the second those with a share. */
enum { FIRST = 20, SECOND = 100, TAKEN = 25, EPOCHS = 6 };

static heed_corpus *open_mixture(void)
{
    char name[2][128];
    snprintf(name[0], sizeof *name, "%s/first.tsv", folder);
    snprintf(name[1], sizeof *name, "%s/second.tsv:0.25", folder);
    write_pairs(name[0], FIRST);
    write_pairs(in_folder("second.tsv"), SECOND);
    const char *const tsv[] = {name[0], name[1]};
    const heed_corpus_files files = {.tsv = tsv, .tsvs = 2, .shares = true};
    heed_error err = {0};
    heed_corpus *c = heed_corpus_open(&files, NULL, NULL, &err);
    assert_string_equal(err.text, "");
    return c;
}

/* Which pairs an epoch has, as bits; the stream goes on with the next. */
static void pairs_of_epoch(heed_batches *b, heed_batch *batch, bool seen[FIRST + SECOND])
{
    const int64_t epoch = batch->epoch;
    int64_t n = 0;
    memset(seen, 0, (FIRST + SECOND) * sizeof *seen);
    for (; batch->examples && batch->epoch == epoch; *batch = next(b))
        for (int64_t i = 0; i < batch->examples; i++, n++) {
            assert_false(seen[batch->example[i]]);
            seen[batch->example[i]] = true;
        }
    assert_int_equal(n, FIRST + TAKEN);
    for (int i = 0; i < FIRST; i++)
        assert_true(seen[i]);
}

/* Catches a share that is the same in every epoch, too much or too little, not spread, or another
 * one when a stream is entered in its middle. */
static void shares_are_drawn_anew(void **state)
{
    (void)state;
    heed_corpus *mixture = open_mixture();
    heed_batches_options o = usual;
    o.epochs = EPOCHS;
    o.window = 16;
    heed_error err = {0};
    heed_batches *b = heed_batches_new(mixture, words, words, &o, NULL, &err);
    bool seen[EPOCHS][FIRST + SECOND], again[FIRST + SECOND];
    heed_batch batch = next(b);
    int ever = 0, second_half = 0;
    for (int e = 0; e < EPOCHS; e++)
        pairs_of_epoch(b, &batch, seen[e]);
    assert_int_equal(batch.examples, 0);
    for (int i = FIRST; i < FIRST + SECOND; i++) {
        bool once = false;
        for (int e = 0; e < EPOCHS; e++) {
            once |= seen[e][i];
            second_half += seen[e][i] && i >= FIRST + SECOND / 2;
        }
        ever += once;
    }
    /* Drawn evenly: 82 are expected, and 75, each with a deviation of 4. */
    assert_in_range(ever, 68, 96);
    assert_in_range(second_half, 57, 93);
    assert_int_equal(heed_batches_seek(b, (heed_batches_position){4, 0, 0}, &err), HEED_OK);
    batch = next(b);
    pairs_of_epoch(b, &batch, again);
    assert_memory_equal(again, seen[4], sizeof again);
    heed_batches_free(b);

    o.in_order = true; /* all pairs */
    o.epochs = 1;
    b = heed_batches_new(mixture, words, words, &o, NULL, &err);
    int64_t n = 0;
    for (batch = next(b); batch.examples; batch = next(b))
        n += batch.examples;
    assert_int_equal(n, FIRST + SECOND);
    heed_batches_free(b);
    heed_corpus_free(mixture);
}

/* Catches nonsense let in. */
static void refused(void **state)
{
    (void)state;
    static const struct {
        heed_batches_options o;
        const char *text;
    } cases[] = {
        {{.batch_tokens = 0, .max_tokens = 1}, "batch_tokens is 0, expected from 1 to 2147483647"},
        {{.batch_tokens = (int64_t)1 << 40, .max_tokens = 1}, "batch_tokens is 1099511627776"},
        {{.batch_tokens = 1, .max_tokens = 0}, "max_tokens is 0, expected at least 1"},
        {{.batch_tokens = 1, .max_tokens = 1, .window = -1}, "window is -1"},
        {{.batch_tokens = 1, .max_tokens = 1, .epochs = -2}, "epochs is -2"},
        {{.batch_tokens = 1, .max_tokens = 1, .source_sampling = -1}, "sampling is -1 and 0"},
        {{.batch_tokens = 1, .max_tokens = 1, .target_sampling = NAN}, "sampling is 0 and "},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        heed_error err = {0};
        assert_null(heed_batches_new(corpus, words, words, &cases[i].o, NULL, &err));
        assert_int_equal(err.status, HEED_ARGUMENT);
        if (!strstr(err.text, cases[i].text))
            assert_string_equal(err.text, cases[i].text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(packing),
        cmocka_unit_test(packing_refuses),
        cmocka_unit_test(every_pair_once_an_epoch),
        cmocka_unit_test(seeds_and_shuffles),
        cmocka_unit_test(budgets_and_balance),
        cmocka_unit_test(in_corpus_order),
        cmocka_unit_test(too_long_is_left_out),
        cmocka_unit_test(nothing_left_is_not_nothing),
        cmocka_unit_test(shares_are_drawn_anew),
        cmocka_unit_test(refused),
    };
    return cmocka_run_group_tests_name("batches", tests, set_up, tear_down);
}
