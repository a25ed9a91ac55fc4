/* mha.c: multi-head attention, section 3.2.2 of "Attention Is All You Need".
 *
 *   MultiHead(Q, K, V) = concat(head_1 .. head_H) W^O
 *   head_i = softmax(Q W_i^Q (K W_i^K)^T / sqrt(Dk)) V W_i^V, or another score of the same two
 *
 * x (N,D), memory (M,memory_d) -> (N,D).  The W_i^Q of all heads are the columns of one matrix, and
 * so are the W_i^K and W_i^V, which several heads may share (kv_heads): self-attention has qkv =
 * [Q | K | V], cross-attention q and kv = [K | V]; the heads read their columns of the product in
 * place.  Rotary positions turn Q and K between the product and the scores.
 * Refuses at build: D that H does not divide unless d_k and d_v are given; a memory_d of its own
 * without cross.  At apply: a memory other than x without cross. */
#include <heed/attention.h>

#include "attention/attend.h"
#include "nn/params.h"

static bool is_rotary(const heed_mha_options *o)
{
    return heed_positions_are_rotary(o->positions);
}

static bool refused(heed_scope s, const heed_mha_options *o)
{
    const int64_t d_k = o->d_k || o->heads < 1 ? o->d_k : o->d / o->heads;
    if (o->d < 1 || o->heads < 1)
        heed__scope_fail(s, HEED_ARGUMENT, "mha: d is %lld and heads %d, expected at least 1 each",
                         (long long)o->d, o->heads);
    else if (o->d_k < 0 || o->d_v < 0 || o->memory_d < 0)
        heed__scope_fail(s, HEED_ARGUMENT,
                         "mha: d_k, d_v, memory_d are %lld, %lld, %lld, expected none below 0",
                         (long long)o->d_k, (long long)o->d_v, (long long)o->memory_d);
    else if ((!o->d_k || !o->d_v) && o->d % o->heads)
        heed__scope_fail(s, HEED_ARGUMENT,
                         "mha: %d heads do not divide d = %lld; choose heads that do, or give d_k "
                         "and d_v",
                         o->heads, (long long)o->d);
    else if (o->kv_heads < 0 || (o->kv_heads && o->heads % o->kv_heads))
        heed__scope_fail(s, HEED_ARGUMENT,
                         "mha: kv_heads is %d, expected a divisor of heads = %d, or 0", o->kv_heads,
                         o->heads);
    else if (!o->cross && o->memory_d && o->memory_d != o->d)
        heed__scope_fail(s, HEED_ARGUMENT,
                         "mha: memory_d is %lld, expected d = %lld without cross: "
                         "self-attention's memory is x",
                         (long long)o->memory_d, (long long)o->d);
    else if (is_rotary(o) && (o->cross || d_k % 2))
        heed__scope_fail(s, HEED_ARGUMENT, "mha: rotary positions need %s",
                         o->cross ? "self-attention: cross is set" : "an even d_k");
    else if (!(o->dropout >= 0 && o->dropout < 1))
        heed__scope_fail(s, HEED_ARGUMENT, "mha: dropout is %g, expected 0 <= rate < 1",
                         o->dropout);
    else
        return false;
    return true;
}

/* One for each key head, where the normaliser has gates. */
static int64_t gate_columns(const heed_mha_options *o)
{
    heed__linear_form form;
    const heed_attend_options attend = {.normaliser = o->normaliser};
    return heed__linear_form_of(&attend, &form) && form.gated ? o->kv_heads : 0;
}

/* Whether the queries are the keys. */
static bool shares_keys(const heed_mha_options *o)
{
    const heed__content *content = heed__content_of(&o->pattern);
    return !o->cross && content && content->shares_keys;
}

/* Columns of keys in the product of self-attention. */
static int64_t key_columns(const heed_mha_options *o)
{
    return shares_keys(o) ? 0 : o->kv_heads * o->d_k;
}

void heed_mha_build(heed_mha_layer *l, heed_scope s, const heed_mha_options *options)
{
    if (!l)
        return;
    *l = (heed_mha_layer){.options = *options};
    if (refused(s, options))
        return;
    heed_mha_options *o = &l->options;
    if (!o->d_k)
        o->d_k = o->d / o->heads;
    if (!o->d_v)
        o->d_v = o->d / o->heads;
    if (!o->memory_d)
        o->memory_d = o->d;
    if (!o->kv_heads)
        o->kv_heads = o->heads;
    const int64_t h = o->heads, g = o->kv_heads, gates = gate_columns(o);
    if (o->cross) {
        heed_linear_build(&l->q, heed_scope_enter(s, "q"), o->d, h * o->d_k, HEED_IDENTITY,
                          o->bias);
        heed_linear_build(&l->kv, heed_scope_enter(s, "kv"), o->memory_d, g * (o->d_k + o->d_v),
                          HEED_IDENTITY, o->bias);
    } else {
        heed_linear_build(&l->qkv, heed_scope_enter(s, "qkv"), o->d,
                          h * o->d_k + key_columns(o) + g * o->d_v + gates, HEED_IDENTITY, o->bias);
    }
    heed_attend_build(&l->attend, heed_scope_enter(s, "score"),
                      &(heed_attend_options){.score = o->score,
                                             .queries = o->queries,
                                             .memory = o->memory,
                                             .pattern = o->pattern,
                                             .position_bias = o->position_bias,
                                             .normaliser = o->normaliser,
                                             .heads = o->heads,
                                             .kv_heads = o->kv_heads,
                                             .query_d = h * o->d_k,
                                             .key_d = g * o->d_k,
                                             .value_d = g * o->d_v,
                                             .projected = true,
                                             .beta = o->beta,
                                             .longest = o->longest,
                                             .causal = o->causal,
                                             .dropout = o->dropout,
                                             .span_penalty = o->span_penalty,
                                             .layer = o->layer});
    heed_linear_build(&l->out, heed_scope_enter(s, "out"), h * o->d_v, o->d, HEED_IDENTITY,
                      o->bias);
}

/* concat(head_i) W^O */
static heed_tensor *attend(heed_tape *t, const heed_mha_layer *l, heed_tensor *q, heed_tensor *k,
                           heed_tensor *v, heed_tensor *gate, const heed_segments *queries,
                           const heed_segments *keys, const heed_attend_extra *extra)
{
    heed_memory memory = heed_attend_memory(t, &l->attend, k, v, keys);
    memory.gate = gate;
    return heed_linear_apply(t, &l->out, heed_attend(t, &l->attend, q, &memory, queries, extra));
}

/* Queries and keys, head beside head, turned by their positions. */
static heed_tensor *turn(heed_tape *t, const heed_mha_options *o, heed_tensor *qk,
                         const heed_segments *rows)
{
    return heed_rotary(
        t, qk, rows,
        &(heed_rotary_options){.heads = o->heads + (int)(key_columns(o) / o->d_k),
                               .neighbours = o->positions == HEED_POSITIONS_ROTARY_NEIGHBOURS,
                               .base = o->rotary_base});
}

heed_tensor *heed_mha_apply(heed_tape *t, const heed_mha_layer *l, heed_tensor *x,
                            heed_tensor *memory, const heed_segments *queries,
                            const heed_segments *keys, const heed_attend_extra *extra)
{
    if (!t)
        return NULL;
    const heed_mha_options *o = &l->options;
    const int64_t q_cols = o->heads * o->d_k;
    const int64_t k_cols = o->cross ? o->kv_heads * o->d_k : key_columns(o);
    const int64_t v_cols = o->kv_heads * o->d_v;
    if (o->cross) {
        heed_tensor *kv = heed_linear_apply(t, &l->kv, memory); /* (M, KvHeads*(Dk+Dv)) */
        heed_tensor *k = heed_slice_cols(t, kv, 0, k_cols);
        heed_tensor *v = heed_slice_cols(t, kv, k_cols, k_cols + v_cols);
        return attend(t, l, heed_linear_apply(t, &l->q, x), k, v, NULL, queries, keys, extra);
    }
    if (extra && extra->weights)
        *extra->weights = NULL;
    if (memory != x)
        return heed_tape_fail(t, HEED_ARGUMENT,
                              "mha: memory is not x, expected cross = true for keys and values "
                              "of another sequence");
    /* (N, H*Dk + KvHeads*(Dk+Dv)), and gates behind */
    heed_tensor *qkv = heed_linear_apply(t, &l->qkv, x), *gate = NULL;
    heed_tensor *qk = qkv;
    if (is_rotary(o))
        qk = turn(t, o, heed_slice_cols(t, qkv, 0, q_cols + k_cols), queries);
    heed_tensor *q = heed_slice_cols(t, qk, 0, q_cols);
    heed_tensor *k = k_cols ? heed_slice_cols(t, qk, q_cols, q_cols + k_cols) : q;
    heed_tensor *v = heed_slice_cols(t, qkv, q_cols + k_cols, q_cols + k_cols + v_cols);
    const int64_t gates = gate_columns(o), all = q_cols + k_cols + v_cols;
    if (gates)
        gate = heed_slice_cols(t, qkv, all, all + gates);
    return attend(t, l, q, k, v, gate, queries, keys, extra);
}
