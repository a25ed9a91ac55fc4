/* A tagger in one file: an encoder alone says of some tokens whether the next one is small.
 * Catches: answers taken from other rows than wanted_row says, a loss over rows nobody asked for,
 * an encoder that sees only what stands before. */
#include <heed/heed.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

enum { WORD = 3, WORDS = 8, B = 32, T = 8, UPDATES = 300 };

/* Sequences of T tokens, asked for every other one: is the next one of the first half of the words?
 * The next one of the last is the first. */
static heed_batch make_batch(heed_arena *arena, uint64_t seed)
{
    int32_t *ids = heed_arena_allocate(arena, B * T * sizeof *ids);
    int32_t *wanted = heed_arena_allocate(arena, B * T / 2 * sizeof *wanted);
    int32_t *row = heed_arena_allocate(arena, B * T / 2 * sizeof *row);
    int64_t lengths[B];
    for (int i = 0; i < B * T; i++, seed = seed * 6364136223846793005u + 1442695040888963407u)
        ids[i] = WORD + (int32_t)((seed >> 33) % WORDS);
    for (int i = 0; i < B * T / 2; i++) {
        row[i] = 2 * i + i / 3 % 2;
        wanted[i] = ids[row[i] / T * T + (row[i] + 1) % T] < WORD + WORDS / 2;
    }
    for (int b = 0; b < B; b++)
        lengths[b] = T;
    return (heed_batch){.examples = B,
                        .source = {.rows = heed_segments_new(arena, B, lengths), .ids = ids},
                        .wanted = wanted,
                        .wanted_row = row,
                        .wanted_count = B * T / 2};
}

static void sees_what_comes(void **state)
{
    (void)state;
    heed_model_config c;
    heed_model_defaults(&c, NULL);
    c.arch = HEED_ARCH_ENCODER;
    c.encoder_layers = 2, c.d = 32, c.transformer.ff = 64, c.transformer.heads = 4;
    c.transformer.pre_norm = c.transformer.output_bias = true;
    c.source_vocabulary = WORD + WORDS, c.labels = 2, c.longest = T;
    c.dropout = c.label_smoothing = 0;
    heed_error err = {0};
    heed_model *m = heed_model_new(&c, 2, NULL, &err);
    heed_tape *t = heed_tape_new(&(heed_tape_options){.threads = 1}, NULL);
    const heed_optimizer_options adam = {.kind = HEED_ADAM};
    heed_optimizer *o = m ? heed_optimizer_new(heed_model_params(m), &adam, NULL, &err) : NULL;
    if (!o)
        fail_msg("%s", err.text);
    for (int update = 0; update < UPDATES; update++) {
        heed_tape_reset(t);
        heed_batch b = make_batch(heed_tape_arena(t), (uint64_t)update);
        const double weight = 1.0 / (double)b.wanted_count;
        assert_int_equal(heed_backward(t, heed_model_loss(m, t, &b, weight, NULL)), HEED_OK);
        heed_optimizer_step(o, 0.003, 1);
    }
    heed_tape_reset(t);
    heed_batch b = make_batch(heed_tape_arena(t), 1000003);
    const heed_real *logits = heed_tensor_data(heed_model_logits(m, t, &b));
    assert_non_null(logits);
    int right = 0;
    for (int i = 0; i < B * T / 2; i++)
        right += (logits[2 * i + 1] > logits[2 * i]) == b.wanted[i];
    assert_in_range(right, B * T / 2 * 97 / 100, B * T / 2);
    heed_optimizer_free(o), heed_tape_free(t), heed_model_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(sees_what_comes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
