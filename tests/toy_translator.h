/* toy_translator.h: a translator that a second of training makes perfect: small letters become
 * capitals, word by word.  Include cmocka.h and folder.h first. */
#ifndef HEED_TESTS_TOY_TRANSLATOR_H
#define HEED_TESTS_TOY_TRANSLATOR_H

#include <heed/heed.h>
#include <heed/translate.h>

enum { TOY_WORDS = 12, TOY_LONGEST = 16, TOY_SENTENCE = 15, TOY_STEPS = 700 };

static const heed_model_config toy_config = {
    .arch = HEED_ARCH_TRANSFORMER,
    .encoder_layers = 1,
    .decoder_layers = 1,
    .d = 32,
    .tying = HEED_TIE_ALL,
    .transformer = {.ff = 64,
                    .heads = 2,
                    .activation = HEED_RELU,
                    .ff_bias = true,
                    .norm_eps = 1e-6,
                    .embedding_scale = true,
                    .residual = true,
                    .scale_scores = true,
                    .positions = HEED_POSITIONS_SINUSOID},
    .longest = TOY_LONGEST,
    .label_smoothing = 0.1,
    .source_vocabulary = HEED_PLACEHOLDER + HEED_PLACEHOLDERS + 2 * TOY_WORDS,
    .target_vocabulary = HEED_PLACEHOLDER + HEED_PLACEHOLDERS + 2 * TOY_WORDS,
};
static const heed_schedule toy_schedule = {
    .kind = HEED_SCHEDULE_LINEAR, .rate = 1e-2, .warmup = 50, .total = TOY_STEPS};
static const heed_text_config toy_text = {.tokens = HEED_WHITESPACE};

/* The words of both languages are one letter each: "a" is "A". */
static void toy_write_vocabulary(const char *path)
{
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs("<unk>\n<s>\n</s>\n", f);
    for (int i = 0; i < HEED_PLACEHOLDERS; i++)
        fprintf(f, "<ph%d>\n", i);
    for (int i = 0; i < TOY_WORDS; i++)
        fprintf(f, "%c\n%c\n", 'a' + i, 'A' + i);
    assert_int_equal(fclose(f), 0);
}

static int32_t toy_id(int word, bool target)
{
    return HEED_PLACEHOLDER + HEED_PLACEHOLDERS + 2 * word + target;
}

static heed_status toy_step(heed_model *m, heed_tape *t, heed_optimizer *o, uint64_t step)
{
    enum { B = 48 };
    static int32_t id[B][2][TOY_SENTENCE];
    heed_tokens source[B], target[B];
    heed_rng_key key = {.seed = 4, .step = step};
    heed_rng rng = heed_rng_stream(&key);
    int64_t tokens = 0;
    for (int b = 0; b < B; b++) {
        int64_t n = 1 + heed_rng_below(&rng, (uint64_t)b, TOY_SENTENCE);
        for (int64_t i = 0; i < n; i++) {
            int word = (int)heed_rng_below(&rng, (uint64_t)(B + b * TOY_SENTENCE + i), TOY_WORDS);
            id[b][0][i] = toy_id(word, false);
            id[b][1][i] = toy_id(word, true);
        }
        source[b] = (heed_tokens){id[b][0], n};
        target[b] = (heed_tokens){id[b][1], n};
        tokens += n + 1;
    }
    heed_batch batch;
    heed_error err = {0};
    heed_tape_reset(t);
    heed_tape_step(t, step, 0, 0);
    heed_status status = heed_batch_pack(heed_tape_arena(t), NULL, source, target, B, &batch, &err);
    if (!status)
        status = heed_backward(t, heed_model_loss(m, t, &batch, 1.0 / (double)tokens, NULL));
    if (!status)
        heed_optimizer_step(o, heed_schedule_rate(&toy_schedule, (int64_t)step), 1);
    return status;
}

/* The caller's to free. */
static inline heed_model *toy_train(void)
{
    heed_error err = {0};
    heed_model *m = heed_model_new(&toy_config, 3, NULL, &err);
    heed_tape *t = heed_tape_new(&(heed_tape_options){.threads = 1}, &err);
    assert_non_null(m);
    assert_non_null(t);
    heed_optimizer *o = heed_optimizer_new(
        heed_model_params(m), &(heed_optimizer_options){.kind = HEED_ADAM}, NULL, &err);
    assert_non_null(o);
    for (int i = 1; i <= TOY_STEPS; i++)
        assert_int_equal(toy_step(m, t, o, (uint64_t)i), HEED_OK);
    heed_optimizer_free(o);
    heed_tape_free(t);
    return m;
}

/* A whole model directory in the folder. */
static inline void toy_write_folder(const heed_model *m)
{
    heed_error err = {0};
    toy_write_vocabulary(in_folder("shared.vocab"));
    assert_int_equal(heed_model_describe(folder, &toy_config, &toy_text, &err), HEED_OK);
    assert_int_equal(heed_params_save(heed_model_params(m), in_folder("model.safetensors"), &err),
                     HEED_OK);
}

#endif
