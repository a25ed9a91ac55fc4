/* A language model in one file: a decoder alone learns to count in steps of one, two or three, with
 * weights of attention and without.
 * Catches: a one-sided batch that is not taken, a mask that lets the future in, a decoder that
 * feeds other tokens than the loss did. */
#include <heed/heed.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

enum { STEP = 3, DIGIT = 6, DIGITS = 11, B = 16, T = 12, UPDATES = 250 };

/* BOS, a step, and digits that go on by it: 1, 4, 9 11 13 15 6 ... */
static int32_t token_at(uint64_t sequence, int i)
{
    const int step = (int)(sequence * 7 % 3), first = (int)(sequence * 5 % DIGITS);
    return i == 0   ? HEED_BOS
           : i == 1 ? STEP + step
                    : DIGIT + (first + (i - 2) * (step + 1)) % DIGITS;
}

static heed_batch make_batch(heed_arena *arena, uint64_t first)
{
    int32_t *read = heed_arena_allocate(arena, B * T * sizeof *read);
    int32_t *wanted = heed_arena_allocate(arena, B * T * sizeof *wanted);
    int64_t lengths[B];
    for (int b = 0; b < B; b++) {
        lengths[b] = T;
        for (int i = 0; i < T; i++) {
            read[b * T + i] = token_at(first + (uint64_t)b, i);
            wanted[b * T + i] = token_at(first + (uint64_t)b, i + 1);
        }
    }
    return (heed_batch){.examples = B,
                        .target = {.rows = heed_segments_new(arena, B, lengths), .ids = read},
                        .wanted = wanted,
                        .wanted_count = B * T};
}

static void learn_to_count(const char *pattern, const char *normaliser)
{
    heed_model_config c;
    heed_model_defaults(&c, NULL);
    c.attention.dropout = 0;
    assert_int_equal(heed_slot_parse(HEED_SLOT_PATTERN, pattern, &c.attention.pattern, NULL),
                     HEED_OK);
    assert_int_equal(
        heed_slot_parse(HEED_SLOT_NORMALISER, normaliser, &c.attention.normaliser, NULL), HEED_OK);
    c.arch = HEED_ARCH_DECODER;
    c.decoder_layers = 2, c.d = 32, c.transformer.ff = 64, c.transformer.heads = 2;
    c.transformer.pre_norm = c.transformer.ff_gated = c.transformer.output_bias = true;
    c.target_vocabulary = DIGIT + DIGITS, c.longest = 24, c.dropout = c.label_smoothing = 0;
    heed_model *m = heed_model_new(&c, 1, NULL, NULL);
    heed_tape *t = heed_tape_new(&(heed_tape_options){.threads = 1}, NULL);
    const heed_optimizer_options adam = {.kind = HEED_ADAM};
    heed_optimizer *o = m ? heed_optimizer_new(heed_model_params(m), &adam, NULL, NULL) : NULL;
    assert_non_null(o);
    double nll = 0;
    for (int update = 0; update < UPDATES; update++) {
        heed_tape_reset(t);
        heed_batch batch = make_batch(heed_tape_arena(t), (uint64_t)update * B);
        assert_int_equal(heed_backward(t, heed_model_loss(m, t, &batch, 1.0 / (B * T), &nll)), 0);
        heed_optimizer_step(o, 0.004, 1);
    }
    assert_true(nll / B < 4.2); /* log 3 + log 11 = 3.5 cannot be known */
    heed_decoder *d = heed_decoder_new(m, 1, NULL, NULL);
    assert_int_equal(heed_decoder_start(d, &(heed_batch){.examples = 1}, NULL), HEED_OK);
    for (int i = 0; i < T; i++) {
        const heed_real *log_p;
        int32_t token = token_at(8, i), best = 0;
        assert_int_equal(heed_decoder_step(d, &token, &log_p, NULL), HEED_OK);
        for (int32_t v = 1; v < c.target_vocabulary; v++)
            best = log_p[v] > log_p[best] ? v : best;
        if (i >= 2)
            assert_int_equal(best, token_at(8, i + 1));
    }
    heed_decoder_free(d), heed_optimizer_free(o), heed_tape_free(t), heed_model_free(m);
}

static void counts_on(void **state)
{
    static const char *const normalisers[] = {"soft",         "elu",   "performer:32",
                                              "rfa:32:gated", "delta", "delta:1"};
    static const char *const patterns[] = {"top-k:3", "top-k:1:approximate+band:3", "lsh:2:2",
                                           "routing:2"};
    (void)state;
    for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++) {
        print_message("    %s\n", patterns[i]);
        learn_to_count(patterns[i], "soft");
    }
    for (size_t i = 0; i < sizeof normalisers / sizeof *normalisers; i++) {
        print_message("    %s\n", normalisers[i]);
        learn_to_count("global", normalisers[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(counts_on)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
