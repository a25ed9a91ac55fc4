/* model.c: architectures behind one interface.
 *
 * An architecture gives the states before the output projection; logits = h W^T without a bias, as
 * in the paper, is the same for all, and so are loss, scores and attention maps. */
#include "model/model.h"

#include "base/error.h"
#include "base/memory.h"
#include "nn/params.h"
#include "tensor/tape.h"

#include <string.h>

static const heed__model_class *const classes[] = {
    [HEED_ARCH_TRANSFORMER] = &heed__transformer_class,
    [HEED_ARCH_RNN] = &heed__rnn_class,
};

const heed__model_class *heed__model_class_of(int arch)
{
    return arch >= 0 && arch < (int)(sizeof classes / sizeof *classes) ? classes[arch] : NULL;
}

/* ---- building ---- */

#define BASELINE_MOMENTUM 0.9 /* of the rewards' moving mean, as in Xu et al. 2015 */

/* What becomes of the declared parameters. */
typedef heed_status finisher(heed_params *p, const uint64_t *seed, heed_error *err);

static heed_status draw(heed_params *p, const uint64_t *seed, heed_error *err)
{
    return heed_params_finish(p, *seed, err);
}

static heed_status make_zero(heed_params *p, const uint64_t *seed, heed_error *err)
{
    (void)seed;
    return heed__params_finish_zero(p, err);
}

static heed_status leave(heed_params *p, const uint64_t *seed, heed_error *err)
{
    const heed_error *failed = heed_params_error(p);
    (void)seed;
    return failed->status ? heed__fail(err, failed->status, "%s", failed->text) : HEED_OK;
}

static heed_status build(heed_model *m, finisher *finish, const uint64_t *seed, heed_error *err)
{
    m->params = heed_params_new(&m->allocator, err);
    m->arena = m->params ? heed_arena_new(&m->allocator, err) : NULL;
    if (!m->arena)
        return HEED_MEMORY;
    m->class->build(m, heed_params_scope(m->params));
    if (!m->parts)
        return heed__fail(err, HEED_MEMORY, "no memory for a model");
    if (m->config.attention.normaliser == HEED_NORMALISE_HARD)
        heed_reinforce_build(&m->choice, heed_scope_enter(heed_params_scope(m->params), "choice"),
                             BASELINE_MOMENTUM);
    return finish(m->params, seed, err);
}

static heed_model *new_model(const heed_model_config *config, finisher *finish,
                             const uint64_t *seed, const heed_allocator *allocator, heed_error *err)
{
    if (heed__model_check(config, err))
        return NULL;
    heed_allocator a = heed__allocator_or_default(allocator);
    heed_model *m = heed__allocate_zeroed(&a, 1, sizeof *m);
    if (!m) {
        heed__fail(err, HEED_MEMORY, "no memory for a model");
        return NULL;
    }
    m->class = classes[config->arch];
    m->allocator = a;
    m->config = *config;
    if (build(m, finish, seed, err)) {
        heed_model_free(m);
        return NULL;
    }
    return m;
}

heed_model *heed_model_new(const heed_model_config *config, uint64_t seed,
                           const heed_allocator *allocator, heed_error *err)
{
    return new_model(config, draw, &seed, allocator, err);
}

heed_model *heed__model_new_zero(const heed_model_config *config, const heed_allocator *allocator,
                                 heed_error *err)
{
    return new_model(config, make_zero, NULL, allocator, err);
}

heed_model *heed_model_outline(const heed_model_config *config, const heed_allocator *allocator,
                               heed_error *err)
{
    return new_model(config, leave, NULL, allocator, err);
}

void heed_model_free(heed_model *m)
{
    if (!m)
        return;
    heed_allocator a = m->allocator;
    heed_params_free(m->params);
    heed_arena_free(m->arena);
    heed__release(&a, m, 1, sizeof *m);
}

const heed_model_config *heed_model_configuration(const heed_model *m)
{
    return &m->config;
}

heed_params *heed_model_params(const heed_model *m)
{
    return m->params;
}

const char *heed_model_summary(const heed_model *m, char text[HEED_MODEL_SUMMARY])
{
    m->class->summary(&m->config, text);
    return text;
}

heed_model_cost heed_model_costs(const heed_model *m)
{
    heed_model_cost c = m->class->cost(m);
    c.target_weights += heed_tensor_count(m->output);
    return c;
}

/* ---- using ---- */

bool heed__model_takes(const heed_model *m, heed_tape *t, const heed_batch *batch, bool targets)
{
    const heed_segments *side[2] = {batch->source, batch->target};
    static const char *const name[2] = {"source", "target"};
    if (!batch->source || (targets && !batch->target)) {
        heed_tape_fail(t, HEED_ARGUMENT, "the batch has no %s sentences",
                       batch->source ? "target" : "source");
        return false;
    }
    for (int i = 0; i < 1 + targets; i++)
        if (side[i]->longest > m->config.longest) {
            heed_tape_fail(t, HEED_ARGUMENT,
                           "a %s sentence has %lld tokens, expected at most %lld, as '--longest' "
                           "says",
                           name[i], (long long)side[i]->longest, (long long)m->config.longest);
            return false;
        }
    return true;
}

heed_tensor *heed_model_loss(const heed_model *m, heed_tape *t, const heed_batch *batch,
                             double weight, double *nll)
{
    if (!heed__model_takes(m, t, batch, true))
        return NULL;
    heed_tensor *choices = NULL, *h = m->class->states(m, t, batch, NULL, &choices); /* (N,D) */
    heed_tensor *loss = heed_project_cross_entropy(t, h, m->output, NULL, batch->target_out,
                                                   m->config.label_smoothing, weight, nll);
    if (!choices || !heed_tape_training(t))
        return loss;
    /* What was drawn is rewarded with the log-probability of each word from there on. */
    heed_tensor *rewards = heed_project_log_p(t, h, m->output, batch->target_out);
    return heed_add(
        t, loss,
        heed_reinforce(t, &m->choice, choices, heed_tensor_data(rewards), batch->target, weight));
}

/* Runs without chance and without being recorded, whatever the tape is set to. */
static heed_tensor *quiet_states(const heed_model *m, heed_tape *t, const heed_batch *batch,
                                 heed__seen *seen)
{
    const bool recording = t->recording, training = t->training;
    t->recording = t->training = false;
    heed_tensor *h =
        heed__model_takes(m, t, batch, true) ? m->class->states(m, t, batch, seen, NULL) : NULL;
    t->recording = recording;
    t->training = training;
    return h;
}

const heed_real *heed_model_score(const heed_model *m, heed_tape *t, const heed_batch *batch)
{
    heed_tensor *h = quiet_states(m, t, batch, NULL); /* (N,D) */
    return heed_tensor_data(heed_project_log_p(t, h, m->output, batch->target_out));
}

/* Appends sentence b's maps of one attention; pairs: queries times keys of the sentences before. */
static heed_attention_map *add_maps(heed_attention_map *map, const heed__seen *s, int64_t b,
                                    int64_t pairs)
{
    const int64_t queries = s->queries->offset[b + 1] - s->queries->offset[b];
    const int64_t keys = s->keys->offset[b + 1] - s->keys->offset[b];
    const heed_real *weights = heed_tensor_data(s->weights) + s->heads * pairs;
    for (int h = 0; h < s->heads; h++)
        *map++ = (heed_attention_map){
            s->kind, s->layer, h, b, queries, keys, weights + h * queries * keys};
    return map;
}

int64_t heed_model_attention(const heed_model *m, heed_tape *t, const heed_batch *batch,
                             const heed_attention_map **maps)
{
    const int n = m->class->attentions(m);
    heed_arena *arena = heed_tape_arena(t);
    *maps = NULL;
    if (n == 0) {
        heed_tape_fail(t, HEED_ARGUMENT, "this model has no attention to look at");
        return 0;
    }
    heed__seen *seen = heed_arena_allocate(arena, (size_t)n * sizeof *seen);
    int64_t *pairs = heed_arena_allocate(arena, (size_t)n * sizeof *pairs);
    if (seen && pairs)
        quiet_states(m, t, batch, seen);
    if (heed_tape_error(t)->status)
        return 0;
    int64_t count = 0;
    for (int i = 0; seen && i < n; i++)
        count += batch->source->count * seen[i].heads;
    heed_attention_map *all = heed_arena_allocate(arena, (size_t)count * sizeof *all), *map = all;
    if (!seen || !pairs || !all) {
        heed_tape_fail(t, HEED_MEMORY, "no memory for the attention of %lld sentences",
                       (long long)batch->source->count);
        return 0;
    }
    for (int i = 0; i < n; i++)
        pairs[i] = 0;
    for (int64_t b = 0; b < batch->source->count; b++)
        for (int i = 0; i < n; i++) {
            map = add_maps(map, &seen[i], b, pairs[i]);
            pairs[i] += map[-1].queries * map[-1].keys;
        }
    *maps = all;
    return count;
}
