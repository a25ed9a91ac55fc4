/* test_shared_batches.c: ranks that share the making of batches get those of one process, each the
 * tokens of its own; and none cuts more text than its share.  The ranks are threads. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "batches_help.h"
#include "data/batches.h"
#include "rank_threads.h"

static heed_status gather(void *self, const void *mine, void *all, size_t bytes, heed_error *err)
{
    return heed__ranks_gather(self, mine, all, bytes, err);
}

static heed_batches *open_shared(const heed_batches_options *o, const heed_vocab *v,
                                 heed_ranks *ranks, heed_error *err)
{
    const heed__sharing sharing = {heed_ranks_rank(ranks), heed_ranks_size(ranks), gather, ranks};
    heed_batches *b = heed_batches_new(corpus, v, v, o, NULL, err);
    assert_non_null(b);
    assert_int_equal(heed__batches_share(b, &sharing, err), HEED_OK);
    return b;
}

static void assert_rows(const heed_segments *a, const heed_segments *b)
{
    assert_int_equal(a->count, b->count);
    assert_int_equal(a->rows, b->rows);
    assert_memory_equal(a->offset, b->offset, (size_t)(a->count + 1) * sizeof *a->offset);
}

/* Batch number k since the seek of a rank, against the same one of a process alone. */
static void assert_batch(const heed_batch *one, const heed_batch *shared, bool own)
{
    assert_int_equal(one->examples, shared->examples);
    assert_int_equal(one->epoch, shared->epoch);
    if (!one->examples)
        return;
    assert_memory_equal(one->example, shared->example,
                        (size_t)one->examples * sizeof *one->example);
    assert_rows(one->source.rows, shared->source.rows);
    assert_rows(one->target.rows, shared->target.rows);
    if (!own) {
        assert_null(shared->source.ids);
        assert_null(shared->target.ids);
        assert_null(shared->wanted);
        return;
    }
    const size_t source = (size_t)one->source.rows->rows * sizeof *one->source.ids,
                 target = (size_t)one->target.rows->rows * sizeof *one->target.ids;
    assert_memory_equal(one->source.ids, shared->source.ids, source);
    assert_memory_equal(one->target.ids, shared->target.ids, target);
    assert_memory_equal(one->wanted, shared->wanted, target);
}

struct reading {
    const heed_batches_options *options;
    const heed_vocab *vocab;
};

static heed_status read_both(struct rank_thread *self, heed_error *err)
{
    /* Entered at its beginning, in the middle of a window, and behind a window's last batch. */
    static const heed_batches_position from[] = {{0, 0, 0}, {0, 1, 3}, {1, 2, 0}, {0, 0, 1}};
    const struct reading *x = self->context;
    heed_batches *one = heed_batches_new(corpus, x->vocab, x->vocab, x->options, NULL, err);
    heed_batches *shared = open_shared(x->options, x->vocab, self->ranks, err);
    const int size = heed_ranks_size(self->ranks);
    for (size_t i = 0; i < sizeof from / sizeof *from; i++) {
        assert_int_equal(heed_batches_seek(one, from[i], err), HEED_OK);
        assert_int_equal(heed_batches_seek(shared, from[i], err), HEED_OK);
        heed_batch a, b;
        int k = 0;
        do {
            heed_batches_next(one, &a, 1, err);
            assert_int_equal(heed_batches_next(shared, &b, 1, err), HEED_OK);
            assert_batch(&a, &b, k % size == self->rank);
            const heed_batches_position p = heed_batches_tell(one), q = heed_batches_tell(shared);
            assert_memory_equal(&p, &q, sizeof p);
            k++;
        } while (a.examples && (i < 3 || k < 2)); /* left in the middle */
        const heed_batches_report p = heed_batches_describe(one), q = heed_batches_describe(shared);
        assert_int_equal(p.target_tokens, q.target_tokens);
        assert_int_equal(p.drawn, q.drawn);
        assert_int_equal(p.left_out, q.left_out);
    }
    heed_batches_free(one);
    heed_batches_free(shared);
    return err->status;
}

/* Catches lengths that are those of other pairs, pairs without tokens or with others than alone
 * (joined or not, drawn from other random numbers), and ranks that own the same batch, or none. */
static void shared_is_alone(void **state)
{
    (void)state;
    for (int kind = 0; kind < 4; kind++)
        for (int size = 1; size <= 4; size++) {
            heed_batches_options o = usual;
            o.epochs = 3;
            if (kind == 1)
                o.source_sampling = 0.3;
            if (kind == 2)
                o.augment = (heed_augment_options){.join = 0.5, .vary = 0.2};
            if (kind > 1)
                o.max_tokens = 20; /* some pairs are longer, and more if they are joined */
            struct reading x = {&o, kind == 1 ? subwords : words};
            void *context[MOST_RANKS] = {&x, &x, &x, &x};
            const heed_error err = run_ranks(size, read_both, context);
            assert_string_equal(err.text, "");
        }
}

/* ---- the work ---- */

struct work {
    heed_batches_options options;
    int64_t cut[2]; /* in the first epoch, and the second */
};

static heed_status count_work(struct rank_thread *self, heed_error *err)
{
    struct work *x = self->context;
    heed_batches *b = open_shared(&x->options, words, self->ranks, err);
    heed_batch batch;
    int64_t cut = 0;
    do {
        if (heed_batches_next(b, &batch, 1, err))
            break;
        const int64_t epoch = heed_batches_tell(b).epoch, now = heed_batches_describe(b).cut;
        x->cut[batch.epoch] += now - cut;
        cut = now;
        if (epoch == 2)
            break;
    } while (batch.examples);
    heed_batches_free(b);
    return err->status;
}

/* Catches ranks that cut text which others train on: in a first epoch each has 1 of R lines to
 * measure and of the rest those of its batches; later, lengths are known.  Batches are not equal in
 * lines, which a quarter of the share makes up for. */
static void work_is_shared(void **state)
{
    (void)state;
    heed_batches_options two = usual;
    two.epochs = 2;
    heed_batches *one = open_stream(&two);
    while (next(one).examples)
        ;
    assert_int_equal(heed_batches_describe(one).cut, 2 * PAIRS);
    heed_batches_free(one);
    for (int size = 1; size <= 4; size++) {
        struct work work[MOST_RANKS];
        void *context[MOST_RANKS];
        const double lines = 2 * PAIRS, share = 1.0 / size;
        double first = 0;
        for (int i = 0; i < size; i++) {
            work[i] = (struct work){.options = two};
            context[i] = &work[i];
        }
        const heed_error err = run_ranks(size, count_work, context);
        assert_string_equal(err.text, "");
        for (int i = 0; i < size; i++) {
            const double most = lines * (share + (1 - share) * share);
            assert_true((double)work[i].cut[0] <= most + lines * share / 4);
            /* What it measured or trained on is kept: of its batches, what it has not seen. */
            const double unseen = 1 - (share + (1 - share) * share);
            assert_true((double)work[i].cut[1] <= lines * share * unseen + lines * share / 4);
            first += (double)work[i].cut[0];
        }
        assert_true(first >= lines);
    }
}

/* ---- a wrong place ---- */

static heed_status seek_nowhere(struct rank_thread *self, heed_error *err)
{
    const struct reading *x = self->context;
    heed_batches *b = open_shared(x->options, x->vocab, self->ranks, err);
    heed_batch batch;
    heed_error own = {0};
    assert_int_equal(heed_batches_seek(b, (heed_batches_position){0, 1, 999}, err), HEED_OK);
    assert_int_equal(heed_batches_next(b, &batch, 1, &own), HEED_ARGUMENT);
    assert_non_null(strstr(own.text, "cannot go to batch 999 of window 1"));
    assert_int_equal(heed_batches_seek(b, (heed_batches_position){0}, err), HEED_OK);
    assert_int_equal(heed_batches_next(b, &batch, 1, err), HEED_OK);
    heed_batches_free(b);
    return err->status;
}

/* Catches a rank that waits for the others where only one has been sent. */
static void wrong_place_is_refused(void **state)
{
    (void)state;
    struct reading x = {&usual, words};
    void *context[MOST_RANKS] = {&x, &x};
    const heed_error err = run_ranks(2, seek_nowhere, context);
    assert_string_equal(err.text, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shared_is_alone),
        cmocka_unit_test(work_is_shared),
        cmocka_unit_test(wrong_place_is_refused),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
