/* Whole training steps: memory that runs out, memory that is not asked for, the same numbers every
 * time. */
#include "small_model.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "failing_allocator.h"

/* Batches of differing lengths under one budget, the largest first. */
static const int64_t batch_lengths[4][8] = {
    {40, 30, 20, 6, -1}, {24, 24, 24, 20, -1}, {13, 11, 9, 7, 5, 3, 1, -1}, {31, 0, 17, 30, -1}};

static int64_t count_lengths(const int64_t *lengths)
{
    int64_t n = 0;
    while (lengths[n] >= 0)
        n++;
    return n;
}

struct run {
    heed_allocator allocator;
    heed_params *p;
    heed_optimizer *o;
    heed_tape *t;
    struct small_model m;
};

static heed_status run_start(struct run *r, struct failing *c, int threads)
{
    heed_error err = {0};
    memset(r, 0, sizeof *r);
    r->allocator = failing_allocator(c);
    r->p = heed_params_new(&r->allocator, &err);
    if (!r->p)
        return err.status;
    small_build(&r->m, heed_params_scope(r->p));
    if (heed_params_finish(r->p, 4, &err))
        return err.status;
    r->o =
        heed_optimizer_new(r->p, &(heed_optimizer_options){.kind = HEED_ADAM}, &r->allocator, &err);
    if (!r->o)
        return err.status;
    r->t = heed_tape_new(&(heed_tape_options){&r->allocator, threads, 6, {0}}, &err);
    return err.status;
}

static heed_status run_step(struct run *r, int step, double *loss)
{
    int32_t ids[SMALL_TOKENS], targets[SMALL_TOKENS];
    small_tokens(ids, targets, (uint64_t)step);
    const int64_t *lengths = batch_lengths[step % 4];
    heed_tape_reset(r->t);
    heed_tape_step(r->t, (uint64_t)step, 0, 0);
    heed_tensor *l = small_loss(r->t, &r->m, ids, targets, lengths, count_lengths(lengths));
    heed_status status = heed_backward(r->t, l);
    if (status)
        return status;
    *loss = heed_tensor_data(l)[0];
    heed_clip_norm(r->p, 1, heed_tape_threads(r->t));
    heed_optimizer_step(r->o, 1e-3, heed_tape_threads(r->t));
    return HEED_OK;
}

static void run_end(struct run *r)
{
    heed_tape_free(r->t);
    heed_optimizer_free(r->o);
    heed_params_free(r->p);
}

/* Catches: an unchecked allocation, a leak on an error path, an error without a text. */
static void memory_fails_at_every_allocation(void **state)
{
    (void)state;
    int n = 1;
    for (;; n++) {
        struct failing c = {.fail_at = n};
        struct run r;
        double loss;
        heed_status status = run_start(&r, &c, 2);
        if (!status)
            status = run_step(&r, 0, &loss);
        bool reached = c.calls >= n;
        if (reached && !status)
            fail_msg("allocation %d failed and nobody said so", n);
        if (reached && status != HEED_MEMORY)
            fail_msg("allocation %d failed: status %d", n, (int)status);
        if (status && r.t && heed_tape_error(r.t)->status && !*heed_tape_error(r.t)->text)
            fail_msg("allocation %d failed without a text", n);
        /* With memory back, the same tape works again. */
        if (status && r.t) {
            c.fail_at = 0;
            heed_params_zero_grads(r.p);
            assert_int_equal(run_step(&r, 0, &loss), HEED_OK);
        }
        run_end(&r);
        assert_int_equal(c.held, 0);
        if (!reached)
            break;
    }
    print_message("%d allocations in build, step and backward\n", n - 1);
    assert_true(n > 10);
}

/* Catches: a step that allocates for ever, and memory that does not come back. */
static void no_allocation_after_the_second_step(void **state)
{
    (void)state;
    struct failing c = {0};
    struct run r;
    double loss;
    assert_int_equal(run_start(&r, &c, 2), HEED_OK);
    for (int step = 0; step < 2; step++)
        assert_int_equal(run_step(&r, step, &loss), HEED_OK);
    int before = c.calls;
    for (int step = 2; step < 10; step++)
        assert_int_equal(run_step(&r, step, &loss), HEED_OK);
    assert_int_equal(c.calls, before);
    run_end(&r);
    assert_int_equal(c.held, 0);
}

/* Catches: sums whose order depends on which thread comes first, random numbers drawn from shared
 * state. */
static void same_threads_same_bits(void **state)
{
    (void)state;
    for (int threads = 1; threads <= 4; threads++) {
        struct failing c = {0};
        struct run a, b;
        assert_int_equal(run_start(&a, &c, threads), HEED_OK);
        assert_int_equal(run_start(&b, &c, threads), HEED_OK);
        for (int step = 0; step < 12; step++) {
            double x, y;
            assert_int_equal(run_step(&a, step, &x), HEED_OK);
            assert_int_equal(run_step(&b, step, &y), HEED_OK);
            assert_memory_equal(&x, &y, sizeof x);
        }
        assert_memory_equal(heed_params_values(a.p), heed_params_values(b.p),
                            (size_t)heed_params_size(a.p) * sizeof(heed_real));
        run_end(&a);
        run_end(&b);
    }
}

/* Catches: a loss that does not fall, whatever the pieces say of themselves. */
static void loss_falls(void **state)
{
    (void)state;
    struct failing c = {0};
    struct run r;
    double first = 0, last = 0;
    assert_int_equal(run_start(&r, &c, 2), HEED_OK);
    for (int step = 0; step < 300; step++) {
        assert_int_equal(run_step(&r, step, &last), HEED_OK);
        if (step == 0)
            first = last;
    }
    print_message("loss %.3f -> %.3f\n", first, last);
    assert_true(last < 0.7 * first);
    run_end(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_fails_at_every_allocation),
        cmocka_unit_test(no_allocation_after_the_second_step),
        cmocka_unit_test(same_threads_same_bits),
        cmocka_unit_test(loss_falls),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
