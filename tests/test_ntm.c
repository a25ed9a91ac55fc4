/* test_ntm.c: the Neural Turing Machine: addressing, memory, the whole machine, its tasks. */
#include "labs/ntm.h"
#include "layer_check.h"

#ifdef HEED_DOUBLE
#define CLOSE 1e-8 /* what eps changes in a cosine */
#else
#define CLOSE 2e-6 /* a few roundings of numbers up to 1 */
#endif

static heed_tape *tape;

static int make_tape(void **state)
{
    (void)state;
    tape = heed_tape_new(&(heed_tape_options){.threads = 1}, NULL);
    return tape ? 0 : 1;
}

static int free_tape(void **state)
{
    (void)state;
    heed_tape_free(tape);
    return 0;
}

static void assert_close(const heed_tensor *found, const double *wanted, int64_t n)
{
    assert_string_equal(heed_tape_error(tape)->text, "");
    assert_int_equal(heed_tensor_count(found), n);
    for (int64_t i = 0; i < n; i++)
        if (!(fabs((double)heed_tensor_data(found)[i] - wanted[i]) <= CLOSE))
            fail_msg("number %d is %.9g, expected %.9g", (int)i, (double)heed_tensor_data(found)[i],
                     wanted[i]);
}

static heed_tensor *row(int64_t n, const heed_real *values)
{
    return heed_input(tape, HEED_SHAPE(1, n), values);
}

/* One head of n locations: shifts w by s and sharpens; g = 0 takes no notice of the content. */
static heed_tensor *move(const heed_real *w, int64_t n, const heed_real *s, int64_t offsets,
                         double gamma)
{
    heed_real zero = 0, sharp = (heed_real)gamma;
    return heed_ntm_location(tape, row(n, NULL), row(n, w), row(1, &zero), row(offsets, s),
                             row(1, &sharp));
}

/* ---- addressing ---- */

/* Catches a shift that runs the other way (cross-correlation), which training cannot show: the
 * machine learns it mirrored.  Values by hand. */
static void shift_is_a_convolution(void **state)
{
    (void)state;
    static const heed_real w[] = {0, 1, 0, 0}, s[] = {(heed_real).1, (heed_real).2, (heed_real).7};
    assert_close(move(w, 4, s, 3, 1), (const double[]){.1, .2, .7, 0}, 4);
    assert_close(move(w, 4, s, 3, 2), (const double[]){.01 / .54, .04 / .54, .49 / .54, 0}, 4);
}

/* Catches a shift that is not circular: a head at either end falls off. */
static void head_wraps(void **state)
{
    (void)state;
    static const heed_real last[] = {0, 0, 0, 0, 1}, first[] = {1, 0, 0, 0, 0};
    static const heed_real up[] = {0, 0, 1}, down[] = {1, 0, 0}, two[] = {0, 0, 0, 0, 1};
    assert_close(move(last, 5, up, 3, 1), (const double[]){1, 0, 0, 0, 0}, 5);
    assert_close(move(first, 5, down, 3, 1), (const double[]){0, 0, 0, 0, 1}, 5);
    assert_close(move(last, 5, two, 5, 1), (const double[]){0, 1, 0, 0, 0}, 5);
    /* Seven offsets on two locations: -3 .. 3 are odd, even, odd, ... */
    static const heed_real pair[] = {1, 0}, seven[] = {0, 0, 1, 0, 0, 0, 0};
    assert_close(move(pair, 2, seven, 7, 1), (const double[]){0, 1}, 2);
}

/* Catches a gate that is turned round, and heads that are mixed up. */
static void heads_interpolate_alone(void **state)
{
    (void)state;
    static const heed_real content[] = {(heed_real).5, (heed_real).5, 0, 1},
                           previous[] = {0, 1, (heed_real).25, (heed_real).75},
                           g[] = {1, (heed_real).5}, s[] = {1, 1}, gamma[] = {1, 1};
    heed_tensor *w = heed_ntm_location(tape, row(4, content), row(4, previous), row(2, g),
                                       row(2, s), row(2, gamma));
    assert_close(w, (const double[]){.5, .5, .125, .875}, 4);
}

/* Catches weights that are not a distribution, also where a sharp head leaves next to nothing. */
static void weights_sum_to_one(void **state)
{
    enum { B = 3, N = 37 };
    (void)state;
    heed_rng rng = heed_rng_stream(&(heed_rng_key){.seed = 1});
    heed_real previous[B * N], memory[B * 4 * N], key[B * 4], beta[B], g[B], s[B * 3], gamma[B];
    for (int i = 0; i < B * N * 4; i++)
        memory[i] = (heed_real)heed_rng_normal(&rng, (uint64_t)i);
    for (int i = 0; i < B * N; i++)
        previous[i] = i % N == i / N;
    for (int b = 0; b < B; b++) {
        beta[b] = (heed_real)(10 * b);
        g[b] = (heed_real)(0.1 * b);
        gamma[b] = (heed_real)(1 + 100 * b);
        for (int j = 0; j < 4; j++)
            key[4 * b + j] = (heed_real)(j - b);
        for (int j = 0; j < 3; j++)
            s[3 * b + j] = (heed_real)(1.0 / 3);
    }
    heed_tensor *content = heed_ntm_content(tape, heed_input(tape, HEED_SHAPE(B, 4, N), memory),
                                            heed_input(tape, HEED_SHAPE(B, 4), key),
                                            heed_input(tape, HEED_SHAPE(B, 1), beta));
    heed_tensor *w = heed_ntm_location(tape, content, heed_input(tape, HEED_SHAPE(B, N), previous),
                                       heed_input(tape, HEED_SHAPE(B, 1), g),
                                       heed_input(tape, HEED_SHAPE(B, 3), s),
                                       heed_input(tape, HEED_SHAPE(B, 1), gamma));
    assert_string_equal(heed_tape_error(tape)->text, "");
    for (int b = 0; b < 2 * B; b++) {
        const heed_real *row = heed_tensor_data(b < B ? content : w) + b % B * N;
        double sum = 0;
        for (int i = 0; i < N; i++) {
            assert_true(row[i] >= 0 && row[i] <= 1);
            sum += (double)row[i];
        }
        assert_true(fabs(sum - 1) <= 10 * CLOSE);
    }
}

/* Catches a cosine without its lengths: the long location would win over the one in the key's
 * direction.  By hand: cosines 1, 0.8 and -1 times beta = 2. */
static void content_goes_by_direction(void **state)
{
    (void)state;
    static const heed_real memory[] = {1, 80, -2, 0, 60, 0}, key[] = {3, 0}, beta = 2;
    heed_tensor *w = heed_ntm_content(tape, heed_input(tape, HEED_SHAPE(1, 2, 3), memory),
                                      row(2, key), row(1, &beta));
    double e[] = {exp(2), exp(1.6), exp(-2)}, sum = e[0] + e[1] + e[2];
    assert_close(w, (const double[]){e[0] / sum, e[1] / sum, e[2] / sum}, 3);
    /* Nothing written yet, or no key: all locations alike, and no NaN. */
    heed_tensor *empty = heed_ntm_content(tape, heed_input(tape, HEED_SHAPE(1, 2, 4), NULL),
                                          row(2, key), row(1, &beta));
    assert_close(empty, (const double[]){.25, .25, .25, .25}, 4);
    assert_close(heed_ntm_content(tape, heed_input(tape, HEED_SHAPE(1, 2, 3), memory), row(2, NULL),
                                  row(1, &beta)),
                 (const double[]){1 / 3., 1 / 3., 1 / 3.}, 3);
}

/* ---- memory ---- */

/* Catches heads that write one after the other: the second would erase what the first has added.
 * By hand, for one number in each of two locations. */
static void all_erase_then_all_add(void **state)
{
    (void)state;
    static const heed_real memory[] = {4, 8}, w[] = {1, 0, 1, (heed_real).5},
                           erase[] = {(heed_real).5, 1}, add[] = {3, 2};
    heed_tensor *m = heed_input(tape, HEED_SHAPE(1, 1, 2), memory);
    heed_tensor *after = heed_ntm_write(tape, m, row(4, w), row(2, erase), row(2, add));
    assert_close(after, (const double[]){4 * .5 * 0 + 3 + 2, 8 * 1 * .5 + 0 + 1}, 2);
    assert_close(heed_ntm_read(tape, row(4, w), after), (const double[]){5, 5 + .5 * 5}, 2);
}

/* Catches messages that do not say what is wrong. */
static void refuses(void **state)
{
    (void)state;
    heed_tensor *memory = heed_input(tape, HEED_SHAPE(2, 3, 4), NULL);
    heed_tensor *k = heed_input(tape, HEED_SHAPE(2, 4), NULL),
                *one = heed_input(tape, HEED_SHAPE(2, 1), NULL);
    assert_null(heed_ntm_content(tape, memory, k, one));
    assert_string_equal(heed_tape_error(tape)->text, "ntm_content: k is (2,4), expected (2,H*3)");
    heed_tape_reset(tape);
    heed_tensor *w = heed_input(tape, HEED_SHAPE(2, 4), NULL);
    one = heed_input(tape, HEED_SHAPE(2, 1), NULL);
    assert_null(heed_ntm_location(tape, w, w, one, heed_input(tape, HEED_SHAPE(2, 2), NULL), one));
    assert_string_equal(heed_tape_error(tape)->text,
                        "ntm_location: s is (2,2), expected (2,1*S), S odd");
    heed_tape_reset(tape);
    w = heed_input(tape, HEED_SHAPE(2, 4), NULL);
    assert_null(heed_ntm_read(tape, w, heed_input(tape, HEED_SHAPE(2, 3), NULL)));
    assert_string_equal(heed_tape_error(tape)->text, "ntm_read: memory is (2,3), expected (B,M,N)");
    heed_tape_reset(tape);
    memory = heed_input(tape, HEED_SHAPE(2, 3, 4), NULL);
    w = heed_input(tape, HEED_SHAPE(2, 4), NULL);
    assert_null(heed_ntm_write(tape, memory, w, heed_input(tape, HEED_SHAPE(2, 3), NULL), w));
    assert_string_equal(heed_tape_error(tape)->text, "ntm_write: add is (2,4), expected (2,3)");
}

/* ---- the machine ---- */

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

#define WITH_TAPE(test) cmocka_unit_test_setup_teardown(test, make_tape, free_tape)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_TAPE(shift_is_a_convolution),
        WITH_TAPE(head_wraps),
        WITH_TAPE(heads_interpolate_alone),
        WITH_TAPE(weights_sum_to_one),
        WITH_TAPE(content_goes_by_direction),
        WITH_TAPE(all_erase_then_all_add),
        WITH_TAPE(refuses),
        WITH_TAPE(gradients_of_whole_machines),
        WITH_TAPE(reads_before_or_after),
        WITH_TAPE(walking),
        WITH_TAPE(copying),
        WITH_TAPE(recalling),
        WITH_TAPE(sorting),
        WITH_TAPE(best_predictor),
    };
    return cmocka_run_group_tests_name("ntm", tests, NULL, NULL);
}
