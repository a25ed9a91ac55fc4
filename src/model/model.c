/* model.c: architectures behind one interface.
 *
 * An architecture gives the hidden states that the head reads; head, loss, scores and attention
 * maps are the same for all. */
#include "model/model_class.h"

#include "base/error.h"
#include "base/memory.h"
#include "nn/params.h"
#include "tensor/tape.h"
#include "text/special_ids.h"

#include <stdlib.h>

static const heed__model_class *const classes[] = {
    [HEED_ARCH_TRANSFORMER] = &heed__transformer_class,
    [HEED_ARCH_RNN] = &heed__rnn_class,
    [HEED_ARCH_DECODER] = &heed__decoder_only_class,
    [HEED_ARCH_ENCODER] = &heed__encoder_only_class,
};

const heed__model_class *heed__model_class_of(int arch)
{
    return arch >= 0 && arch < (int)(sizeof classes / sizeof *classes) ? classes[arch] : NULL;
}

/* ---- building ---- */

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
    m->config.ids.source = heed__ids_or_own(&config->ids.source);
    m->config.ids.target = heed__ids_or_own(&config->ids.target);
    if (build(m, finish, seed, err)) {
        heed_model_free(m);
        return NULL;
    }
    return m;
}

heed_model *heed_model_new(const heed_model_config *config, uint64_t seed,
                           const heed_allocator *allocator, heed_error *err)
{
    if (!config)
        return heed__missing(err, "model config"), NULL;
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
    if (!config)
        return heed__missing(err, "model config"), NULL;
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
    if (!m)
        return NULL;
    return m->params;
}

const char *heed_model_summary(const heed_model *m, char text[HEED_MODEL_SUMMARY])
{
    if (!m)
        return NULL;
    m->class->summary(&m->config, text);
    return text;
}

heed_model_cost heed_model_costs(const heed_model *m)
{
    if (!m)
        return (heed_model_cost){0};
    heed_model_cost c = m->class->cost(m);
    if (m->class->sides & HEED_TARGET)
        c.target_weights += heed_head_cost(&m->head);
    else
        c.source_weights += heed_head_cost(&m->head);
    return c;
}

const heed_stack *heed__model_stack(const heed_model *m, heed_side side)
{
    return m->class->stack && m->class->sides & side ? m->class->stack(m, side) : NULL;
}

/* ---- hidden states ---- */

static bool takes_side(heed_tape *t, const heed_batch_side *side, const char *name,
                       int64_t features, int64_t longest)
{
    if (!side->rows)
        heed_tape_fail(t, HEED_ARGUMENT, "the batch has no %s sentences", name);
    else if (features && (!side->features || side->width != features))
        heed_tape_fail(t, HEED_ARGUMENT,
                       "the batch has %lld features in each %s row, expected %lld",
                       side->features ? (long long)side->width : 0, name, (long long)features);
    else if (!features && !side->ids)
        heed_tape_fail(t, HEED_ARGUMENT, "the batch has no %s tokens", name);
    else if (side->rows->longest > longest)
        heed_tape_fail(t, HEED_ARGUMENT,
                       "a %s sentence has %lld tokens, expected at most %lld, as '--longest' says",
                       name, (long long)side->rows->longest, (long long)longest);
    else
        return true;
    return false;
}

bool heed__model_takes(const heed_model *m, heed_tape *t, const heed_batch *batch, heed_side sides)
{
    const heed_model_config *c = &m->config;
    if (sides & HEED_SOURCE && !takes_side(t, &batch->source, "source", c->features, c->longest))
        return false;
    return !(sides & HEED_TARGET) || takes_side(t, &batch->target, "target", 0, c->longest);
}

heed_tensor *heed_model_hidden(const heed_model *m, heed_tape *t, const heed_batch *batch)
{
    if (!m)
        return NULL;
    heed__forward f = {0};
    return heed__model_takes(m, t, batch, m->class->sides) ? m->class->hidden(m, t, batch, &f)
                                                           : NULL;
}

/* Without chance and without being recorded, whatever the tape is set to. */
static heed_tensor *hidden_without_chance(const heed_model *m, heed_tape *t,
                                          const heed_batch *batch,
                                          heed_attention_recorder *recorder)
{
    heed__forward f = {.recorder = recorder};
    const bool recording = t->recording, training = t->training;
    t->recording = t->training = false;
    heed_tensor *h =
        heed__model_takes(m, t, batch, m->class->sides) ? m->class->hidden(m, t, batch, &f) : NULL;
    t->recording = recording;
    t->training = training;
    return h;
}

/* ---- answers: hidden states -> wanted rows -> head ---- */

/* What the head's table is multiplied with at the rows where answers stand, (wanted_count,D). */
static heed_tensor *at_answers(const heed_model *m, heed_tape *t, heed_tensor *h,
                               const heed_batch *batch)
{
    if (!h)
        return NULL;
    if (batch->wanted_row)
        h = heed_gather_rows(t, h, batch->wanted_row, batch->wanted_count);
    else if (batch->wanted_count != heed_tensor_rows(h))
        return heed_tape_fail(t, HEED_ARGUMENT,
                              "the batch has %lld answers to %lld rows, expected one for each, or "
                              "wanted_row to say where they stand",
                              (long long)batch->wanted_count, (long long)heed_tensor_rows(h));
    return heed_head_transform(t, &m->head, h);
}

heed_tensor *heed__model_answer_loss(const heed_model *m, heed_tape *t, heed_tensor *h,
                                     const heed_batch *batch, double weight, double *nll)
{
    return heed_project_cross_entropy(t, at_answers(m, t, h, batch), m->head.table, m->head.bias,
                                      batch->wanted, m->config.label_smoothing, weight, nll);
}

heed_tensor *heed__model_answer_log_p(const heed_model *m, heed_tape *t, heed_tensor *h,
                                      const heed_batch *batch)
{
    return heed_project_log_p(t, at_answers(m, t, h, batch), m->head.table, m->head.bias,
                              batch->wanted);
}

heed_tensor *heed_model_loss(const heed_model *m, heed_tape *t, const heed_batch *batch,
                             double weight, double *nll)
{
    if (!m)
        return NULL;
    if (!m->class->loss)
        return heed__model_distil(m, t, batch, NULL, weight, nll);
    return heed__model_takes(m, t, batch, m->class->sides)
               ? m->class->loss(m, t, batch, weight, nll)
               : NULL;
}

bool heed__model_can_distil(const heed_model *m)
{
    return !m->class->loss;
}

heed_tensor *heed__model_distil(const heed_model *m, heed_tape *t, const heed_batch *batch,
                                const heed_model *teacher, double weight, double *nll)
{
    heed__forward f = {0};
    heed_teacher said = {NULL, NULL, NULL};
    if (!heed__model_takes(m, t, batch, m->class->sides))
        return NULL;
    if (teacher) {
        heed_tensor *states = hidden_without_chance(teacher, t, batch, NULL); /* (N,D) */
        said = (heed_teacher){at_answers(teacher, t, states, batch), teacher->head.table,
                              teacher->head.bias};
    }
    heed_tensor *h = m->class->hidden(m, t, batch, &f); /* (N,D) */
    heed_tensor *loss = heed_project_distil(t, at_answers(m, t, h, batch), m->head.table,
                                            m->head.bias, teacher ? &said : NULL, batch->wanted,
                                            m->config.label_smoothing, weight, nll);
    return f.penalty ? heed_add(t, loss, heed_scale(t, f.penalty, weight, 0)) : loss;
}

const heed_real *heed_model_score(const heed_model *m, heed_tape *t, const heed_batch *batch)
{
    if (!m)
        return NULL;
    heed_tensor *h = hidden_without_chance(m, t, batch, NULL); /* (N,D) */
    return heed_tensor_data(heed__model_answer_log_p(m, t, h, batch));
}

heed_tensor *heed_model_logits(const heed_model *m, heed_tape *t, const heed_batch *batch)
{
    if (!m)
        return NULL;
    heed_tensor *h = hidden_without_chance(m, t, batch, NULL); /* (N,D) */
    if (batch->wanted_row)
        h = heed_gather_rows(t, h, batch->wanted_row, batch->wanted_count);
    return heed_head_logits(t, &m->head, h);
}

/* ---- attention maps ---- */

/* A record, and the pairs of queries and keys in the sentences before. */
struct recorded {
    const heed_attention_record *at;
    int64_t pairs;
};

/* Kind by kind, then layer by layer. */
static int by_kind(const void *left, const void *right)
{
    const heed_attention_record *a = ((const struct recorded *)left)->at;
    const heed_attention_record *b = ((const struct recorded *)right)->at;
    return a->kind != b->kind ? (int)a->kind - (int)b->kind : a->layer - b->layer;
}

/* Appends sentence b's maps of one attention. */
static heed_attention_map *add_maps(heed_attention_map *map, struct recorded *r, int64_t b)
{
    const heed_attention_record *s = r->at;
    const int64_t queries = s->queries->offset[b + 1] - s->queries->offset[b];
    const int64_t keys = s->keys->offset[b + 1] - s->keys->offset[b];
    const heed_real *p = heed_tensor_data(s->probabilities) + s->heads * r->pairs;
    for (int h = 0; h < s->heads; h++)
        *map++ =
            (heed_attention_map){s->kind, s->layer, h, b, queries, keys, p + h * queries * keys};
    r->pairs += queries * keys;
    return map;
}

static int64_t make_maps(heed_tape *t, const heed_attention_recorder *recorder, int64_t sentences,
                         const heed_attention_map **maps)
{
    heed_arena *arena = heed_tape_arena(t);
    struct recorded *all = heed_arena_allocate(arena, (size_t)recorder->count * sizeof *all);
    int64_t heads = 0;
    int n = 0;
    for (const heed_attention_record *r = recorder->first; all && r; r = r->next) {
        all[n++] = (struct recorded){r, 0};
        heads += r->heads;
    }
    heed_attention_map *map = heed_arena_allocate(arena, (size_t)(sentences * heads) * sizeof *map);
    if (!all || !map) {
        heed_tape_fail(t, HEED_MEMORY, "no memory for the attention of %lld sentences",
                       (long long)sentences);
        return 0;
    }
    *maps = map;
    qsort(all, (size_t)n, sizeof *all, by_kind);
    for (int64_t b = 0; b < sentences; b++)
        for (int i = 0; i < n; i++)
            map = add_maps(map, &all[i], b);
    return sentences * heads;
}

int64_t heed_model_attention(const heed_model *m, heed_tape *t, const heed_batch *batch,
                             const heed_attention_map **maps)
{
    if (!m)
        return 0;
    heed_attention_recorder recorder = {0};
    *maps = NULL;
    hidden_without_chance(m, t, batch, &recorder);
    if (heed_tape_error(t)->status)
        return 0;
    if (!recorder.count) {
        heed_tape_fail(t, HEED_ARGUMENT, "this model has no attention to look at");
        return 0;
    }
    return make_maps(t, &recorder, recorder.first->queries->count, maps);
}
