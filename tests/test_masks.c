/* test_masks.c: what a masked language model is asked: which tokens are chosen, what stands in
 * their place, and whether the second half of a block follows the first. */
#include "task/encoder_task.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "temp_folder.h"

enum { PAD, UNK, CLS, SEP, MASK, FIRST, PIECES = 1005, BLOCKS = 300, LENGTH = 100 };

static heed_vocab *vocab;
static heed__encoding task;
static heed__item_set set;

/* [CLS] 98 words [SEP], or [CLS] 49 words [SEP] 48 words [SEP] with `halves`. */
static void make_items(bool halves)
{
    const heed_rng rng = heed_rng_stream(&(heed_rng_key){.seed = 5});
    static heed__item item[BLOCKS];
    static int32_t id[BLOCKS][LENGTH];
    for (int b = 0; b < BLOCKS; b++) {
        for (int i = 0; i < LENGTH; i++)
            id[b][i] =
                FIRST + (int32_t)heed_rng_below(&rng, (uint64_t)(b * LENGTH + i), PIECES - FIRST);
        id[b][0] = CLS;
        id[b][LENGTH - 1] = SEP;
        if (halves)
            id[b][LENGTH / 2] = SEP;
        item[b] = (heed__item){
            .read[0] = {.id = id[b], .count = LENGTH, .second = halves ? LENGTH / 2 + 1 : LENGTH}};
    }
    set = (heed__item_set){.item = item, .count = BLOCKS};
}

static int set_up(void **state)
{
    if (make_folder(state))
        return -1;
    FILE *f = fopen(in_folder("vocab.txt"), "w");
    fputs("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n", f);
    for (int i = FIRST; i < PIECES; i++)
        fprintf(f, "w%d\n", i);
    fclose(f);
    vocab = heed_vocab_open(in_folder("vocab.txt"), NULL, NULL, NULL);
    task = (heed__encoding){.vocab = vocab};
    task.recipe.train.task = HEED_ENCODER_MLM;
    task.recipe.train.mask_share = 0.15;
    task.recipe.train.batch_tokens = BLOCKS * LENGTH;
    task.recipe.model.longest = LENGTH;
    task.recipe.model.transformer.types = 2;
    return vocab ? 0 : -1;
}

static int tear_down(void **state)
{
    heed_vocab_free(vocab);
    return remove_folder(state);
}

static heed__item_batch batch_of(uint64_t seed, heed_arena *arena)
{
    heed__item_batch b;
    heed_error err = {0};
    const heed_rng rng = heed_rng_stream(&(heed_rng_key){.seed = seed});
    if (heed__encoder_batch(&task, &set, NULL, BLOCKS, true, &rng, arena, &b, &err))
        fail_msg("%s", err.text);
    assert_int_equal(b.taken, BLOCKS);
    return b;
}

/* Within four standard deviations of a binomial count. */
static void assert_share(int64_t count, int64_t of, double share)
{
    const double off = fabs((double)count - share * (double)of);
    if (off > 4 * sqrt((double)of * share * (1 - share)))
        fail_msg("%lld of %lld, expected a share of %g", (long long)count, (long long)of, share);
}

/* Catches shares other than 15 and 80/10/10, special tokens that are masked, tokens that change and
 * are not asked for, answers that are not what stood there, and masks that are always the same. */
static void test_shares(void **state)
{
    (void)state;
    heed_arena *arena = heed_arena_new(NULL, NULL);
    make_items(false);
    const heed__item_batch b = batch_of(1, arena), other = batch_of(2, arena);
    const heed_batch *batch = &b.batch;
    int64_t masked = 0, same = 0, changed = 0;
    assert_share(batch->wanted_count, BLOCKS * (LENGTH - 2), 0.15);
    for (int64_t i = 0, k = 0; i < BLOCKS * LENGTH; i++) {
        const int32_t was = set.item[i / LENGTH].read[0].id[i % LENGTH], is = batch->source.ids[i];
        if (k == batch->wanted_count || batch->wanted_row[k] != i) {
            assert_int_equal(is, was);
            continue;
        }
        assert_int_equal(batch->wanted[k++], was);
        assert_true(was >= FIRST);
        masked += is == MASK;
        same += is == was;
        changed += is != MASK && is != was;
    }
    assert_share(masked, batch->wanted_count, 0.8);
    assert_share(same, batch->wanted_count, 0.1);
    assert_share(changed, batch->wanted_count, 0.1);
    assert_int_not_equal(other.batch.wanted_count, batch->wanted_count);
    heed_arena_free(arena);
}

/* Catches halves that always follow, an answer that says the other thing, types that do not begin
 * with the second half. */
static void test_halves(void **state)
{
    (void)state;
    heed_arena *arena = heed_arena_new(NULL, NULL);
    make_items(true);
    task.recipe.train.next_sentence = true;
    task.recipe.train.mask_share = 0.0001; /* the ids can be compared */
    const heed__item_batch b = batch_of(3, arena);
    task.recipe.train.next_sentence = false;
    task.recipe.train.mask_share = 0.15;
    const heed_batch *batch = &b.batch;
    int64_t follow = 0;
    for (int64_t s = 0, k = 0; s < BLOCKS; s++) {
        const int64_t at = batch->source.rows->offset[s];
        const int32_t *id = batch->source.ids + at, *type = batch->source.types + at;
        const int32_t *own = set.item[s].read[0].id;
        while (batch->wanted_row[k] != at)
            k++;
        int64_t equal = 0;
        for (int i = 0; i < LENGTH; i++) {
            equal += i > LENGTH / 2 && id[i] == own[i];
            assert_int_equal(type[i], i > LENGTH / 2);
        }
        const bool follows = batch->wanted[k] == SEP;
        assert_true(follows || batch->wanted[k] == UNK);
        assert_true(follows ? equal >= LENGTH / 2 - 3 : equal < LENGTH / 4 || equal == 49);
        follow += follows;
    }
    assert_share(follow, BLOCKS, 0.5);
    heed_arena_free(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_shares),
                                       cmocka_unit_test(test_halves)};
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
