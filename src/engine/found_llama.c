/* found_llama.c: Llama-style decoders: RMSNorm, rotary positions, gated SiLU, fewer heads of
 * keys and values.  llama2.c's .bin, GGUF and Hugging Face's directories hold the same under
 * other names; the first two turn neighbours (2i, 2i+1), Hugging Face halves (i, i + d/2). */
#include "base/error.h"
#include "engine/found_model.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const heed__name_rule llama2c_rules[] = {
    {"embedding.table", "token_embedding"},
    {"output.weight", "wcls"},
    {"decoder.%d.self.qkv.weight", "%d.wq|%d.wk|%d.wv"},
    {"decoder.%d.self.out.weight", "%d.wo"},
    {"decoder.%d.self.norm.gain", "%d.rms_att"},
    {"decoder.%d.ffn.in.weight", "%d.w1|%d.w3"},
    {"decoder.%d.ffn.out.weight", "%d.w2"},
    {"decoder.%d.ffn.norm.gain", "%d.rms_ffn"},
    {"decoder.norm.gain", "rms_final"},
};

static const heed__name_rule gguf_rules[] = {
    {"embedding.table", "token_embd.weight"},
    {"output.weight", "output.weight"},
    {"decoder.%d.self.qkv.weight",
     "blk.%d.attn_q.weight|blk.%d.attn_k.weight|blk.%d.attn_v.weight"},
    {"decoder.%d.self.out.weight", "blk.%d.attn_output.weight"},
    {"decoder.%d.self.norm.gain", "blk.%d.attn_norm.weight"},
    {"decoder.%d.ffn.in.weight", "blk.%d.ffn_gate.weight|blk.%d.ffn_up.weight"},
    {"decoder.%d.ffn.out.weight", "blk.%d.ffn_down.weight"},
    {"decoder.%d.ffn.norm.gain", "blk.%d.ffn_norm.weight"},
    {"decoder.norm.gain", "output_norm.weight"},
};

#define LAYER "model.layers.%d."
static const heed__name_rule hugging_face_rules[] = {
    {"embedding.table", "model.embed_tokens.weight"},
    {"output.weight", "lm_head.weight"},
    {"decoder.%d.self.qkv.weight", LAYER
     "self_attn.q_proj.weight|" LAYER "self_attn.k_proj.weight|" LAYER "self_attn.v_proj.weight"},
    {"decoder.%d.self.out.weight", LAYER "self_attn.o_proj.weight"},
    {"decoder.%d.self.norm.gain", LAYER "input_layernorm.weight"},
    {"decoder.%d.ffn.in.weight", LAYER "mlp.gate_proj.weight|" LAYER "mlp.up_proj.weight"},
    {"decoder.%d.ffn.out.weight", LAYER "mlp.down_proj.weight"},
    {"decoder.%d.ffn.norm.gain", LAYER "post_attention_layernorm.weight"},
    {"decoder.norm.gain", "model.norm.weight"},
};

/* What Llamas have in common; sizes are in. */
static heed_status set_llama(heed__found_model *m, heed_error *err)
{
    heed_model_config *c = &m->config;
    heed_transformer_config *t = &c->transformer;
    if (t->heads < 1 || t->kv_heads < 1 || t->heads % t->kv_heads || c->d < 1)
        return heed__found_fail(m->found, err,
                                "%lld heads, %lld for keys and values, and a width of "
                                "%lld do not go together",
                                (long long)t->heads, (long long)t->kv_heads, (long long)c->d);
    c->arch = HEED_ARCH_DECODER;
    c->encoder_layers = 1;
    t->norm = HEED_NORM_RMS;
    t->pre_norm = t->ff_gated = true;
    t->ff_bias = t->attention_bias = t->output_bias = t->embedding_scale = false;
    t->activation = HEED_SILU;
    return HEED_OK;
}

static double number(const heed__found_model *m, const char *key, double otherwise)
{
    const json_t *value = json_object_get(m->found->about, key);
    return json_is_number(value) ? json_number_value(value) : otherwise;
}

static void set_file(heed__found_model *m)
{
    memcpy(m->vocabulary[1], m->vocabulary[0], sizeof m->vocabulary[1]);
    m->lists = HEED__FOUND_FILE;
}

#define SET_RULES(m, list) (m)->rules = (list), (m)->rule_count = sizeof(list) / sizeof *(list)

/* ---- llama2.c ---- */

/* tokenizer.bin, or another tok*.bin, in the folder of the model. */
static heed_status find_tokenizer(heed__found_model *m, heed_error *err)
{
    DIR *d = opendir(m->where.folder);
    heed_status status = HEED_OK;
    bool there = false;
    for (struct dirent *e; d && !status && !there && (e = readdir(d));) {
        const size_t n = strlen(e->d_name);
        there =
            n > 4 && strncmp(e->d_name, "tok", 3) == 0 && strcmp(e->d_name + n - 4, ".bin") == 0;
        if (there)
            status = heed__pathname_in(m->vocabulary[0], m->where.folder, e->d_name, err);
    }
    if (d)
        closedir(d);
    return status || there
               ? status
               : heed__found_fail(m->found, err, "there is no tokenizer.bin or tok*.bin beside it");
}

heed_status heed__describe_llama2c(heed__found_model *m, heed_error *err)
{
    heed_model_config *c = &m->config;
    c->d = (int64_t)number(m, "dim", 0);
    c->decoder_layers = (int64_t)number(m, "layers", 0);
    c->transformer.heads = (int64_t)number(m, "heads", 0);
    c->transformer.kv_heads = (int64_t)number(m, "kv_heads", 0);
    c->transformer.ff = (int64_t)number(m, "hidden", 0);
    c->transformer.norm_eps = 1e-5;
    c->transformer.positions = HEED_POSITIONS_ROTARY_NEIGHBOURS;
    c->target_vocabulary = (int64_t)number(m, "vocabulary", 0);
    c->longest = (int64_t)number(m, "longest", 0);
    c->tying =
        json_is_true(json_object_get(m->found->about, "tied")) ? HEED_TIE_ALL : HEED_TIE_NONE;
    m->text = (heed_text_config){.tokens = HEED_BPE};
    SET_RULES(m, llama2c_rules);
    heed_status status = find_tokenizer(m, err);
    set_file(m);
    return status ? status : set_llama(m, err);
}

/* ---- GGUF ---- */

heed_status heed__describe_gguf(heed__found_model *m, heed_error *err)
{
    heed_model_config *c = &m->config;
    heed_transformer_config *t = &c->transformer;
    const char *kind = json_string_value(json_object_get(m->found->about, "general.architecture"));
    const heed__found_tensor *table = heed__found_find(m->found, "token_embd.weight");
    if (!kind || strcmp(kind, "llama") != 0)
        return heed__found_fail(m->found, err,
                                "its general.architecture is '%.60s', heed computes llama",
                                kind ? kind : "missing");
    if (!table || table->rank != 2)
        return heed__found_fail(m->found, err, "it has no token_embd.weight: a vocabulary alone");
    if (json_object_get(m->found->about, "llama.rope.scaling.type") ||
        heed__found_find(m->found, "rope_freqs.weight"))
        return heed__found_fail(m->found, err,
                                "its rotary positions are scaled, which heed does not "
                                "compute");
    c->d = (int64_t)number(m, "llama.embedding_length", 0);
    c->decoder_layers = (int64_t)number(m, "llama.block_count", 0);
    t->heads = (int64_t)number(m, "llama.attention.head_count", 0);
    t->kv_heads = (int64_t)number(m, "llama.attention.head_count_kv", (double)t->heads);
    t->ff = (int64_t)number(m, "llama.feed_forward_length", 0);
    t->norm_eps = number(m, "llama.attention.layer_norm_rms_epsilon", 1e-5);
    t->positions = HEED_POSITIONS_ROTARY_NEIGHBOURS;
    t->rope_base = number(m, "llama.rope.freq_base", 10000);
    c->target_vocabulary = table->dim[0];
    c->longest = (int64_t)number(m, "llama.context_length", 2048);
    c->tying = heed__found_find(m->found, "output.weight") ? HEED_TIE_NONE : HEED_TIE_ALL;
    m->text = (heed_text_config){.tokens = HEED_BPE};
    SET_RULES(m, gguf_rules);
    heed_status status = heed__pathname_format(m->vocabulary[0], err, "%s", m->where.weights);
    set_file(m);
    return status ? status : set_llama(m, err);
}

/* ---- Hugging Face ---- */

heed_status heed__describe_llama(heed__found_model *m, heed_error *err)
{
    heed_model_config *c = &m->config;
    heed_transformer_config *t = &c->transformer;
    const json_t *scaling = json_object_get(m->found->about, "rope_scaling");
    const char *activation = json_string_value(json_object_get(m->found->about, "hidden_act"));
    if (scaling && !json_is_null(scaling))
        return heed__found_fail(m->found, err,
                                "its rope_scaling is not null, which heed does not "
                                "compute");
    if (activation && strcmp(activation, "silu") != 0)
        return heed__found_fail(m->found, err, "its hidden_act is '%.60s', expected 'silu'",
                                activation);
    c->d = (int64_t)number(m, "hidden_size", 0);
    c->decoder_layers = (int64_t)number(m, "num_hidden_layers", 0);
    t->heads = (int64_t)number(m, "num_attention_heads", 0);
    t->kv_heads = (int64_t)number(m, "num_key_value_heads", (double)t->heads);
    t->d_k = t->d_v = (int64_t)number(m, "head_dim", 0);
    t->ff = (int64_t)number(m, "intermediate_size", 0);
    t->norm_eps = number(m, "rms_norm_eps", 1e-6);
    t->positions = HEED_POSITIONS_ROTARY;
    t->rope_base = number(m, "rope_theta", 10000);
    c->target_vocabulary = (int64_t)number(m, "vocab_size", 0);
    c->longest = (int64_t)number(m, "max_position_embeddings", 2048);
    c->tying = json_is_true(json_object_get(m->found->about, "tie_word_embeddings"))
                   ? HEED_TIE_ALL
                   : HEED_TIE_NONE;
    SET_RULES(m, hugging_face_rules);
    return set_llama(m, err);
}
