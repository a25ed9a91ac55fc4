/* single_stack.c: models of one stack and a head.
 *
 *   decoder  causal: a language model (Radford et al. 2018); reads the target
 *   encoder  every row sees every row (Devlin et al. 2019); reads the source, tokens or features;
 *            answers over its vocabulary (masked language models) or over labels
 *
 * Tokens (N) or features (N,width) -> hidden states (N,D).  What distinguishes a language model, a
 * masked one, a tagger and a classifier is which rows the batch wants answers at. */
#include "model/transformer.h"

static heed_side side_of(const heed_model *model)
{
    return model->class->sides;
}

/* An embedding table is the output's as well, unless there are labels or nothing is tied. */
static heed_tensor *tied_table(const heed_model_config *c, const heed_stack *s)
{
    return c->labels || c->tying == HEED_TIE_NONE ? NULL : s->input.embedding.table;
}

static void build(heed_model *model, heed_scope s)
{
    const heed_model_config *c = &model->config;
    const bool causal = side_of(model) == HEED_TARGET;
    const int64_t vocabulary = causal ? c->target_vocabulary : c->source_vocabulary;
    const int layers = (int)(causal ? c->decoder_layers : c->encoder_layers);
    heed_stack *stack = heed_arena_allocate(model->arena, sizeof *stack);
    if (!stack)
        return;
    heed_stack_init(stack, model->arena, c->d);
    heed__build_input(&stack->input, s, c, vocabulary, (heed_positions)c->transformer.positions);
    heed__build_head(&model->head, s, c, c->labels ? c->labels : vocabulary, tied_table(c, stack));
    heed_scope under = heed_scope_enter(s, causal ? "decoder" : "encoder");
    for (int i = 0; i < layers; i++)
        heed__add_layer(stack, heed_scope_enter(under, "%d", i), c, i, causal);
    heed__add_final_norm(stack, under, c);
    model->parts = stack;
}

static heed_tensor *hidden(const heed_model *model, heed_tape *t, const heed_batch *batch,
                           heed__forward *f)
{
    const heed_stack *stack = model->parts;
    const heed_batch_side *side = side_of(model) == HEED_TARGET ? &batch->target : &batch->source;
    heed_flow flow = {.rows = side->rows, .recorder = f->recorder};
    flow.x = heed_input_apply(t, &stack->input, side);
    heed_tensor *h = heed_stack_apply(t, stack, &flow); /* (N,D) */
    f->penalty = flow.penalty;
    return h;
}

static const heed_stack *stack_of(const heed_model *model, heed_side side)
{
    (void)side;
    return model->parts;
}

static heed_model_cost cost(const heed_model *model)
{
    const heed_stack *stack = model->parts;
    const int64_t weights =
        heed_stack_cost(stack).row_weights + heed_tensor_count(stack->input.features.weight);
    return side_of(model) == HEED_TARGET ? (heed_model_cost){.target_weights = weights}
                                         : (heed_model_cost){.source_weights = weights};
}

const heed__model_class heed__decoder_only_class = {
    .sides = HEED_TARGET,
    .check = heed__transformer_check,
    .size = heed__transformer_size,
    .summary = heed__transformer_summary,
    .build = build,
    .cost = cost,
    .hidden = hidden,
    .stack = stack_of,
};

const heed__model_class heed__encoder_only_class = {
    .sides = HEED_SOURCE,
    .check = heed__transformer_check,
    .size = heed__transformer_size,
    .summary = heed__transformer_summary,
    .build = build,
    .cost = cost,
    .hidden = hidden,
    .stack = stack_of,
};
