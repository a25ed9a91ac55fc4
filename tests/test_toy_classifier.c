/* A classifier in one file: an encoder alone reads points on the way around a circle and says which
 * way they go and how fast: four labels, answered at the first row of each series.
 * Catches: features that are not read or not placed, answers at other rows than the first. */
#include <heed/heed.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

enum { B = 32, T = 9, WIDTH = 2, LABELS = 4, UPDATES = 250 };

/* Series b has T - b % 3 points, speed 0.3 or 0.5 to either side, and noise. */
static heed_batch make_batch(heed_arena *arena, uint64_t seed)
{
    heed_real *x = heed_arena_allocate(arena, B * T * WIDTH * sizeof *x);
    int32_t *label = heed_arena_allocate(arena, B * sizeof *label);
    int32_t *first = heed_arena_allocate(arena, B * sizeof *first);
    int64_t lengths[B], n = 0;
    for (int b = 0; b < B; b++) {
        double angle = (double)(seed % 628) / 100;
        label[b] = (int32_t)(seed / 628 % LABELS);
        first[b] = (int32_t)n;
        lengths[b] = T - b % 3;
        const double step = (label[b] & 1 ? 0.5 : 0.3) * (label[b] & 2 ? 1 : -1);
        for (int i = 0; i < lengths[b]; i++, n++, angle += step) {
            seed = seed * 6364136223846793005u + 1442695040888963407u;
            const double noise = ((double)(seed >> 40) / (1 << 24) - 0.5) * 0.1;
            x[n * WIDTH] = (heed_real)(cos(angle) + noise);
            x[n * WIDTH + 1] = (heed_real)(sin(angle) - noise);
        }
        seed >>= 20;
    }
    return (heed_batch){.examples = B,
                        .source = {heed_segments_new(arena, B, lengths), NULL, NULL, x, WIDTH},
                        .wanted = label,
                        .wanted_row = first,
                        .wanted_count = B};
}

static void knows_the_way(void **state)
{
    (void)state;
    heed_model_config c;
    heed_model_defaults(&c, NULL);
    c.arch = HEED_ARCH_ENCODER;
    c.encoder_layers = 2, c.d = 24, c.transformer.ff = 48, c.transformer.heads = 3;
    c.transformer.head_transform = c.transformer.embedding_norm = true;
    c.transformer.activation = HEED_GELU, c.transformer.positions = HEED_POSITIONS_LEARNED;
    c.features = WIDTH, c.labels = LABELS, c.longest = T, c.dropout = c.label_smoothing = 0;
    heed_model *m = heed_model_new(&c, 3, NULL, NULL);
    heed_tape *t = heed_tape_new(&(heed_tape_options){.threads = 1}, NULL);
    const heed_optimizer_options adam = {.kind = HEED_ADAM};
    heed_optimizer *o = m ? heed_optimizer_new(heed_model_params(m), &adam, NULL, NULL) : NULL;
    assert_non_null(o);
    for (int update = 0; update < UPDATES; update++) {
        heed_tape_reset(t);
        heed_batch b = make_batch(heed_tape_arena(t), (uint64_t)update * 1000033 + 1);
        assert_int_equal(heed_backward(t, heed_model_loss(m, t, &b, 1.0 / B, NULL)), HEED_OK);
        heed_optimizer_step(o, 0.003, 1);
    }
    int right = 0;
    for (int k = 0; k < 8; k++) {
        heed_tape_reset(t);
        heed_batch b = make_batch(heed_tape_arena(t), 77777777777 * (uint64_t)(k + 1));
        heed_tensor *best = heed_top_k(t, heed_model_logits(m, t, &b), 1, &b.source.ids);
        for (int i = 0; best && i < B; i++)
            right += b.source.ids[i] == b.wanted[i];
    }
    assert_in_range(right, 8 * B * 97 / 100, 8 * B);
    heed_optimizer_free(o), heed_tape_free(t), heed_model_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(knows_the_way)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
