/* small_model.h: one of everything that a step uses (embedding, self-attention, cross-attention,
 * norms, dropout, feed-forward, LSTM, the fused loss), small enough to run ten thousand times. */
#ifndef HEED_TESTS_SMALL_MODEL_H
#define HEED_TESTS_SMALL_MODEL_H

#include <heed/heed.h>
#include <math.h>

enum { SMALL_V = 23, SMALL_D = 16, SMALL_F = 24, SMALL_TOKENS = 96 };

struct small_model {
    heed_embedding_layer embedding;
    heed_mha_layer self, cross;
    heed_norm_layer norm[3];
    heed_ffn_layer ffn;
    heed_rnn_layer lstm;
};

static void small_build(struct small_model *m, heed_scope s)
{
    heed_embedding_build(&m->embedding, heed_scope_enter(s, "embedding"), SMALL_V, SMALL_D,
                         HEED_POSITIONS_SINUSOID, 64, sqrt(SMALL_D), 0.1);
    heed_mha_build(&m->self, heed_scope_enter(s, "self"),
                   &(heed_mha_options){.d = SMALL_D, .heads = 2, .causal = true, .dropout = 0.1});
    heed_mha_build(&m->cross, heed_scope_enter(s, "cross"),
                   &(heed_mha_options){.d = SMALL_D, .heads = 4, .cross = true, .bias = true});
    for (int i = 0; i < 3; i++)
        heed_norm_build(&m->norm[i], heed_scope_enter(s, "norm.%d", i), HEED_NORM_LAYER, SMALL_D,
                        1e-6);
    heed_ffn_build(
        &m->ffn, heed_scope_enter(s, "ffn"),
        &(heed_ffn_options){
            .d = SMALL_D, .f = SMALL_F, .activation = HEED_RELU, .bias = true, .dropout = 0.1});
    heed_rnn_build(
        &m->lstm, heed_scope_enter(s, "lstm"),
        &(heed_rnn_options){.cell = HEED_CELL_LSTM, .layers = 1, .in = SMALL_D, .d = SMALL_D});
}

/* ids and targets have one entry per packed token of lengths[count]. */
static heed_tensor *small_loss(heed_tape *t, const struct small_model *m, const int32_t *ids,
                               const int32_t *targets, const int64_t *lengths, int64_t count)
{
    const heed_segments *s = heed_segments_new(heed_tape_arena(t), count, lengths);
    if (!s)
        return heed_tape_fail(t, HEED_MEMORY, "no room for segments");
    heed_tensor *x = heed_embedding_apply(t, &m->embedding, ids, s);
    heed_tensor *memory = heed_rnn_apply(t, &m->lstm, x, s, NULL, NULL);
    x = heed_norm_residual(t, &m->norm[0], x, heed_mha_apply(t, &m->self, x, x, s, s, NULL), 0.1);
    x = heed_norm_residual(t, &m->norm[1], x, heed_mha_apply(t, &m->cross, x, memory, s, s, NULL),
                           0.1);
    x = heed_norm_residual(t, &m->norm[2], x, heed_ffn_apply(t, &m->ffn, x), 0.1);
    return heed_project_cross_entropy(t, x, m->embedding.table, NULL, targets, 0.1,
                                      1.0 / (double)s->rows, NULL);
}

/* Tokens from a stream, and the same shifted by one as targets. */
static void small_tokens(int32_t *ids, int32_t *targets, uint64_t batch)
{
    heed_rng_key key = {.seed = 21, .step = batch};
    heed_rng rng = heed_rng_stream(&key);
    for (int i = 0; i < SMALL_TOKENS; i++) {
        ids[i] = (int32_t)heed_rng_below(&rng, (uint64_t)i, SMALL_V);
        targets[i] = (ids[i] + 1) % SMALL_V;
    }
}

#endif
