/* sublayers.c: the table of sublayer classes, and the three of "Attention Is All You Need". */
#include "model/sublayers.h"

#include "attention/attend.h"
#include <string.h>

/* ---- the table: a class is a row ---- */

static const heed_sublayer_class *const classes[] = {
    &heed__self_sublayer,       &heed__cross_sublayer,         &heed__ffn_sublayer,
    &heed__ssru_sublayer,       &heed__isab_sublayer,          &heed__luna_sublayer,
    &heed__longformer_sublayer, &heed__poolingformer_sublayer, &heed__pma_sublayer,
};

int heed_sublayer_class_count(void)
{
    return (int)(sizeof classes / sizeof *classes);
}

const heed_sublayer_class *heed_sublayer_class_at(int i)
{
    return i >= 0 && i < heed_sublayer_class_count() ? classes[i] : NULL;
}

const heed_sublayer_class *heed_sublayer_class_find(const char *name)
{
    if (!name)
        return NULL;
    for (int i = 0; i < heed_sublayer_class_count(); i++)
        if (strcmp(classes[i]->name, name) == 0)
            return classes[i];
    return NULL;
}

const heed_sublayer_class *heed_sublayer_class_of(const heed_mha_options *mha)
{
    if (!mha)
        return NULL;
    const heed_attend_options o = {.memory = mha->memory, .pattern = mha->pattern};
    const heed__slot_row *row = heed__sublayer_row(&o);
    return heed_sublayer_class_find(row ? row->sublayer : "self");
}

/* ---- 3.2.3 Applications of attention ---- */

static void build_self(heed_sublayer *s, heed_scope scope, const heed_sublayer_options *options,
                       heed_arena *arena)
{
    heed_mha_options o = options->mha;
    (void)arena;
    o.cross = false;
    o.layer = options->layer;
    heed_mha_build(&s->as.mha, scope, &o);
}

/* All of the memory, softly: what stands in other slots is of self-attention. */
static void build_cross(heed_sublayer *s, heed_scope scope, const heed_sublayer_options *options,
                        heed_arena *arena)
{
    const heed_mha_options o = heed__plain_cross(&options->mha);
    (void)arena;
    heed_mha_build(&s->as.mha, scope, &o);
}

/* Attention from x to memory, recorded if there is a recorder. */
static heed_tensor *attend(heed_tape *t, const heed_sublayer *s, heed_tensor *x,
                           heed_tensor *memory, heed_attention_kind kind,
                           const heed_segments *queries, const heed_segments *keys,
                           heed_attention_recorder *recorder)
{
    const heed_mha_layer *l = &s->as.mha;
    if (!(heed__attend_can(&l->attend.options) & HEED_CAN_WEIGHTS))
        recorder = NULL;
    heed_attention_record *record =
        heed_attention_recorder_add(recorder, t,
                                    (heed_attention_record){.kind = kind,
                                                            .layer = s->layer,
                                                            .heads = l->options.heads,
                                                            .queries = queries,
                                                            .keys = keys});
    heed_attend_extra extra = {.weights = record ? &record->probabilities : NULL};
    return heed_mha_apply(t, l, x, memory, queries, keys, &extra);
}

/* "all of the keys, values and queries come from the same place ... the output of the previous
 * layer"; "masking out ... all values in the input of the softmax which correspond to illegal
 * connections" in a causal layer. */
static heed_tensor *apply_self(heed_tape *t, const heed_sublayer *s, heed_tensor *x,
                               heed_flow *flow)
{
    heed_tensor *penalty = heed_attend_penalty(t, &s->as.mha.attend, flow->rows->rows);
    if (penalty)
        flow->penalty = flow->penalty ? heed_add(t, flow->penalty, penalty) : penalty;
    return attend(t, s, x, x, s->as.mha.options.causal ? HEED_DECODER_SELF : HEED_ENCODER_SELF,
                  flow->rows, flow->rows, flow->recorder);
}

/* "the memory keys and values come from the output of the encoder" */
static heed_tensor *apply_cross(heed_tape *t, const heed_sublayer *s, heed_tensor *x,
                                heed_flow *flow)
{
    if (!flow->memory_rows)
        return heed_tape_fail(t, HEED_ARGUMENT,
                              "cross-attention of layer %d: the flow has no memory", s->layer);
    return attend(t, s, x, flow->memory, HEED_CROSS, flow->rows, flow->memory_rows, flow->recorder);
}

static heed_sublayer_cost cost_self(const heed_sublayer *s)
{
    const heed_mha_layer *l = &s->as.mha;
    return (heed_sublayer_cost){heed_tensor_count(l->qkv.weight) + heed_tensor_count(l->out.weight),
                                0};
}

static heed_sublayer_cost cost_cross(const heed_sublayer *s)
{
    const heed_mha_layer *l = &s->as.mha;
    return (heed_sublayer_cost){heed_tensor_count(l->q.weight) + heed_tensor_count(l->out.weight),
                                heed_tensor_count(l->kv.weight)};
}

static unsigned can_self(const heed_sublayer *s)
{
    const unsigned causal = HEED_CAN_CAUSAL | HEED_CAN_CACHE;
    return heed__attend_can(&s->as.mha.attend.options) & ~HEED_CAN_CROSS &
           (s->as.mha.options.causal ? ~0u : ~causal);
}

static unsigned can_cross(const heed_sublayer *s)
{
    return heed__attend_can(&s->as.mha.attend.options) | HEED_CAN_CAUSAL;
}

const heed_sublayer_class heed__self_sublayer = {
    .name = "self",
    .formula = "concat_h softmax(x W_q (x W_k)^T / sqrt(Dk)) x W_v, W_o",
    .form = HEED_SUBLAYER_MHA,
    .build = build_self,
    .apply = apply_self,
    .cost = cost_self,
    .can = can_self,
};

const heed_sublayer_class heed__cross_sublayer = {
    .name = "cross",
    .formula = "concat_h softmax(x W_q (memory W_k)^T / sqrt(Dk)) memory W_v, W_o",
    .form = HEED_SUBLAYER_MHA,
    .build = build_cross,
    .apply = apply_cross,
    .cost = cost_cross,
    .can = can_cross,
};

/* ---- 3.3 Position-wise feed-forward networks ---- */

static void build_ffn(heed_sublayer *s, heed_scope scope, const heed_sublayer_options *options,
                      heed_arena *arena)
{
    (void)arena;
    heed_ffn_build(&s->as.ffn, scope, &options->ffn);
}

static heed_tensor *apply_ffn(heed_tape *t, const heed_sublayer *s, heed_tensor *x, heed_flow *flow)
{
    (void)flow;
    return heed_ffn_apply(t, &s->as.ffn, x);
}

static heed_sublayer_cost cost_ffn(const heed_sublayer *s)
{
    const heed_ffn_layer *l = &s->as.ffn;
    return (heed_sublayer_cost){heed_tensor_count(l->in.weight) + heed_tensor_count(l->out.weight),
                                0};
}

static unsigned can_ffn(const heed_sublayer *s)
{
    (void)s;
    return HEED_CAN_CAUSAL | HEED_CAN_CACHE;
}

const heed_sublayer_class heed__ffn_sublayer = {
    .name = "ffn",
    .formula = "activation(x W_1 + b_1) W_2 + b_2",
    .form = HEED_SUBLAYER_FFN,
    .build = build_ffn,
    .apply = apply_ffn,
    .cost = cost_ffn,
    .can = can_ffn,
};
