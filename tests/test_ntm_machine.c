/* test_ntm_machine.c: the Neural Turing Machine whole, its tasks, and how its heads walk. */
#include "labs/ntm.h"
#include "one_tape.h"

#include <math.h>
#include <string.h>

/* ---- the machine ---- */

#ifdef HEED_DOUBLE /* what a head's start changes is lost in float's rounding */
#include "layer_check.h"

struct machine_case {
    ntm machine;
    ntm_batch batch;
};

static int run_machine(heed_tape *t, void *context, heed_tensor **out)
{
    struct machine_case *k = context;
    out[0] = ntm_answer(t, &k->machine, &k->batch, NULL);
    return 1;
}

static void check_machine(ntm_sizes sizes)
{
    enum { B = 2, STEPS = 4, IN = 2, OUT = 2 };
    heed_real x[STEPS * B * IN];
    for (int i = 0; i < STEPS * B * IN; i++)
        x[i] = (heed_real)sin(1.3 * i + 0.2);
    sizes.in = IN;
    sizes.out = OUT;
    struct machine_case k = {
        .batch = {.batch = B, .steps = STEPS, .first = 1, .in = IN, .out = OUT, .x = x}};
    heed_params *p = heed_params_new(NULL, NULL);
    ntm_build(&k.machine, heed_params_scope(p), &sizes);
    assert_int_equal(heed_params_finish(p, 2, NULL), HEED_OK);
    layer_check(p, run_machine, &k);
    heed_params_free(p);
}

/* Catches a wrong derivative where the pieces meet: through the memory from step to step, through
 * the weights carried on, into what a sequence starts with.  (The weights are drawn so that no
 * shift given as a number is near a whole one, where it has a kink.) */
static void gradients_of_whole_machines(void **state)
{
    (void)state;
    ntm_sizes one = {.units = 3,
                     .layers = 1,
                     .locations = 5,
                     .width = 2,
                     .read_heads = 1,
                     .write_heads = 1,
                     .reach = 1};
    check_machine(one);
    ntm_sizes many = one;
    many.layers = 2;
    many.read_heads = 2;
    many.write_heads = 2;
    many.shift = NTM_SHIFT_NUMBER;
    many.reach = 2;
    check_machine(many);
    ntm_sizes forward = one;
    forward.arch = NTM_FEED_FORWARD;
    forward.read_first = true;
    check_machine(forward);
    ntm_sizes none = one;
    none.arch = NTM_NO_MEMORY;
    none.layers = 2;
    check_machine(none);
}
#endif

/* Catches an option that changes nothing: reading after the write sees it, before it does not. */
static void reads_before_or_after(void **state)
{
    (void)state;
    heed_real read[2];
    for (int first = 0; first < 2; first++) {
        ntm m;
        ntm_state s;
        ntm_sizes sizes = {.in = 1,
                           .out = 1,
                           .units = 3,
                           .layers = 1,
                           .locations = 4,
                           .width = 2,
                           .read_heads = 1,
                           .write_heads = 1,
                           .reach = 1,
                           .read_first = first};
        heed_params *p = heed_params_new(NULL, NULL);
        ntm_build(&m, heed_params_scope(p), &sizes);
        assert_int_equal(heed_params_finish(p, 5, NULL), HEED_OK);
        heed_tape_reset(tape);
        ntm_start(tape, &m, 1, &s);
        ntm_step(tape, &m, &s, row(1, NULL));
        assert_string_equal(heed_tape_error(tape)->text, "");
        read[first] = heed_tensor_data(s.r)[0];
        heed_params_free(p);
    }
    assert_true(fabs((double)read[1] - 1e-6) < 1e-9); /* the memory as it starts */
    assert_true(fabs((double)read[0]) > 1e-4);
}

/* Catches a measure of walking that takes jumps or standing still for steps, or does not wrap. */
static void walking(void **state)
{
    enum { STEPS = 5, N = 4 };
    (void)state;
    static const int at[][STEPS] = {{0, 1, 2, 3, 0}, {1, 0, 3, 2, 1}, {0, 1, 1, 3, 0}};
    static const double wanted[] = {1, 1, .5};
    ntm m = {.sizes = {.locations = N}};
    for (int c = 0; c < 3; c++) {
        ntm_state states[STEPS];
        heed_tape_reset(tape);
        for (int i = 0; i < STEPS; i++) {
            heed_real w[2 * N] = {0};
            w[N + at[c][i]] = 1;
            states[i].w = row(2 * N, w);
        }
        assert_true(ntm_walking(&m, states, 0, STEPS, 1) == wanted[c]);
        assert_true(ntm_walking(&m, states, 0, STEPS, 0) == 0);
    }
}

/* ---- the tasks ---- */

static ntm_batch draw(ntm_task task, int64_t length, int64_t repeats, int64_t batch)
{
    ntm_batch b;
    heed_rng rng = heed_rng_stream(&(heed_rng_key){.seed = 9, .step = (uint64_t)task});
    assert_true(
        ntm_task_draw(task, (ntm_size){length, repeats}, batch, &rng, heed_tape_arena(tape), &b));
    return b;
}

static const heed_real *shown(const ntm_batch *b, int64_t step, int64_t s)
{
    return b->x + (step * b->batch + s) * b->in;
}

static const heed_real *wanted(const ntm_batch *b, int64_t step, int64_t s)
{
    return b->target + (step * b->batch + s) * b->out;
}

static bool same_bits(const heed_real *a, const heed_real *b, int n)
{
    return memcmp(a, b, (size_t)n * sizeof *a) == 0;
}

/* Catches a target that is not what was shown, a mark that is missing or in the wrong place, and
 * data behind the mark. */
static void copying(void **state)
{
    (void)state;
    for (int repeats = 1; repeats < 4; repeats++) {
        ntm_batch b = draw(repeats == 1 ? NTM_COPY : NTM_REPEAT_COPY, 7, repeats, 3);
        int64_t end = repeats == 1 ? 0 : 1; /* a step and a channel for the end */
        assert_int_equal(b.first, 8);
        assert_int_equal(b.steps, 8 + 7 * repeats + end);
        assert_int_equal(b.out, 8 + end);
        int ones = 0;
        for (int64_t s = 0; s < 3; s++)
            for (int64_t i = 0; i < b.steps; i++) {
                assert_true(shown(&b, i, s)[8] == (i == 7));
                for (int j = 0; j < 8; j++)
                    ones += i < 7 ? shown(&b, i, s)[j] == 1 : 100 * (shown(&b, i, s)[j] != 0);
                if (i < 8 || i - 8 == 7 * repeats)
                    continue;
                assert_true(same_bits(wanted(&b, i - 8, s), shown(&b, (i - 8) % 7, s), 8));
                assert_true(!end || wanted(&b, i - 8, s)[8] == 0);
            }
        assert_in_range(ones, 50, 118); /* of 168: six standard deviations */
        assert_true(!end || wanted(&b, 7 * repeats, 1)[8] == 1);
        assert_true(!end || fabs((double)shown(&b, 7, 0)[9] - (repeats - 5.5) / 2.8723) < 1e-4);
    }
}

/* Catches an answer that is not the item after the one asked for. */
static void recalling(void **state)
{
    (void)state;
    enum { ITEMS = 5 };
    ntm_batch b = draw(NTM_RECALL, ITEMS, 1, 20);
    int asked_before = -1, differs = 0;
    for (int64_t s = 0; s < 20; s++) {
        int asked = -1;
        assert_true(shown(&b, 4 * ITEMS, s)[7] == 1 && shown(&b, 4 * ITEMS + 4, s)[7] == 1);
        for (int item = 0; item < ITEMS; item++) {
            bool all = shown(&b, 4 * item, s)[6] == 1;
            for (int i = 0; i < 3; i++)
                all &=
                    same_bits(shown(&b, 4 * item + 1 + i, s), shown(&b, 4 * ITEMS + 1 + i, s), 6);
            asked = all ? item : asked;
        }
        assert_in_range(asked, 0, ITEMS - 2);
        for (int i = 0; i < 3; i++)
            assert_true(same_bits(wanted(&b, i, s), shown(&b, 4 * (asked + 1) + 1 + i, s), 6));
        differs += asked != asked_before;
        asked_before = asked;
    }
    assert_true(differs > 5);
}

/* Catches an order that is not that of the priorities, highest first. */
static void sorting(void **state)
{
    (void)state;
    assert_int_equal(draw(NTM_SORT, 200, 1, 1).steps, 217); /* more than the paper has */
    ntm_batch b = draw(NTM_SORT, 20, 1, 4);
    assert_int_equal(b.steps - b.first, 16);
    for (int64_t s = 0; s < 4; s++)
        for (int i = 0; i < 16; i++) {
            int rank_found = -1;
            for (int j = 0; j < 20; j++) {
                int rank = 0;
                for (int k = 0; k < 20; k++)
                    rank += shown(&b, k, s)[8] > shown(&b, j, s)[8];
                if (rank == i && same_bits(wanted(&b, i, s), shown(&b, j, s), 8))
                    rank_found = rank;
            }
            assert_int_equal(rank_found, i);
        }
}

/* Catches a predictor that counts wrongly.  The product of its probabilities has a closed form: for
 * a context with n zeros and m ones, Beta(m+1/2, n+1/2) / Beta(1/2, 1/2). */
static void best_predictor(void **state)
{
    (void)state;
    enum { LENGTH = 200 };
    ntm_batch b = draw(NTM_NGRAMS, LENGTH, 1, 6);
    assert_int_equal(b.steps, LENGTH - 1);
    double bits = 0;
    for (int64_t s = 0; s < 6; s++) {
        double count[32][2] = {{0}};
        for (int64_t i = b.first; i < b.steps; i++) {
            unsigned context = 0;
            for (int64_t j = i - 4; j <= i; j++)
                context = 2 * context + (shown(&b, j, s)[0] == 1);
            count[context][wanted(&b, i - b.first, s)[0] == 1]++;
            assert_true(i + 1 == b.steps ||
                        wanted(&b, i - b.first, s)[0] == shown(&b, i + 1, s)[0]);
        }
        for (int c = 0; c < 32; c++)
            bits -= (lgamma(count[c][0] + .5) + lgamma(count[c][1] + .5) -
                     lgamma(count[c][0] + count[c][1] + 1) - 2 * lgamma(.5)) /
                    log(2);
    }
    assert_true(fabs(ntm_ngrams_optimum(&b) - bits / 6) < 1e-9 * bits);
    assert_in_range((int)(bits / 6), 80, 180); /* the paper's figure shows 130 to 160 */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#ifdef HEED_DOUBLE
        WITH_TAPE(gradients_of_whole_machines),
#endif
        WITH_TAPE(reads_before_or_after),
        WITH_TAPE(walking),
        WITH_TAPE(copying),
        WITH_TAPE(recalling),
        WITH_TAPE(sorting),
        WITH_TAPE(best_predictor),
    };
    return cmocka_run_group_tests_name("ntm machine", tests, NULL, NULL);
}
