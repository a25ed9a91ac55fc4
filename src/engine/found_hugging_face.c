/* found_hugging_face.c: models of Hugging Face's directories that heed computes: MarianMT, BERT
 * and GPT-2.  A row for each: the model_type of config.json, rules, and a function that reads
 * the sizes.
 *
 * Linear weights are (out, in); GPT-2's Conv1D and the matrices of ONNX exports (named .T by the
 * reader) are (in, out).  Names may have the model's own prefix or none; norms of old files are
 * called gamma and beta. */
#include "base/error.h"
#include "engine/export.h"
#include "engine/found_model.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define LONGEST_MARIAN 1024 /* sinusoids can be made for any length */

#define MARIAN_LAYER(side)                                                                         \
    {#side ".%d.self.qkv.weight",                                                                  \
     "model." #side ".layers.%d.self_attn.q_proj.weight|model." #side                              \
     ".layers.%d.self_attn.k_proj.weight|model." #side ".layers.%d.self_attn.v_proj.weight"},      \
        {#side ".%d.self.qkv.bias",                                                                \
         "model." #side ".layers.%d.self_attn.q_proj.bias|model." #side                            \
         ".layers.%d.self_attn.k_proj.bias|model." #side ".layers.%d.self_attn.v_proj.bias"},      \
        {#side ".%d.self.out.weight", "model." #side ".layers.%d.self_attn.out_proj.weight"},      \
        {#side ".%d.self.out.bias", "model." #side ".layers.%d.self_attn.out_proj.bias"},          \
        {#side ".%d.self.norm.gain", "model." #side ".layers.%d.self_attn_layer_norm.weight"},     \
        {#side ".%d.self.norm.bias", "model." #side ".layers.%d.self_attn_layer_norm.bias"},       \
        {#side ".%d.ffn.in.weight", "model." #side ".layers.%d.fc1.weight"},                       \
        {#side ".%d.ffn.in.bias", "model." #side ".layers.%d.fc1.bias"},                           \
        {#side ".%d.ffn.out.weight", "model." #side ".layers.%d.fc2.weight"},                      \
        {#side ".%d.ffn.out.bias", "model." #side ".layers.%d.fc2.bias"},                          \
        {#side ".%d.ffn.norm.gain", "model." #side ".layers.%d.final_layer_norm.weight"},          \
    {                                                                                              \
#side ".%d.ffn.norm.bias", "model." #side ".layers.%d.final_layer_norm.bias"               \
    }

#define CROSS "model.decoder.layers.%d.encoder_attn."
static const heed__name_rule marian_rules[] = {
    {"embedding.table", "model.shared.weight"},
    {"encoder.embedding.table", "model.encoder.embed_tokens.weight"},
    {"decoder.embedding.table", "model.decoder.embed_tokens.weight"},
    {"output.weight", "lm_head.weight"},
    {"output.bias", "final_logits_bias"},
    MARIAN_LAYER(encoder),
    MARIAN_LAYER(decoder),
    {"decoder.%d.cross.q.weight", CROSS "q_proj.weight"},
    {"decoder.%d.cross.q.bias", CROSS "q_proj.bias"},
    {"decoder.%d.cross.kv.weight", CROSS "k_proj.weight|" CROSS "v_proj.weight"},
    {"decoder.%d.cross.kv.bias", CROSS "k_proj.bias|" CROSS "v_proj.bias"},
    {"decoder.%d.cross.out.weight", CROSS "out_proj.weight"},
    {"decoder.%d.cross.out.bias", CROSS "out_proj.bias"},
    {"decoder.%d.cross.norm.gain", "model.decoder.layers.%d.encoder_attn_layer_norm.weight"},
    {"decoder.%d.cross.norm.bias", "model.decoder.layers.%d.encoder_attn_layer_norm.bias"},
};

#define BERT "encoder.layer.%d."
#define BERT_SELF BERT "attention.self."
static const heed__name_rule bert_rules[] = {
    {"embedding.table", "embeddings.word_embeddings.weight"},
    {"embedding.positions", "embeddings.position_embeddings.weight"},
    {"embedding.types", "embeddings.token_type_embeddings.weight"},
    {"embedding.norm.gain", "embeddings.LayerNorm.weight"},
    {"embedding.norm.bias", "embeddings.LayerNorm.bias"},
    {"encoder.%d.self.qkv.weight",
     BERT_SELF "query.weight|" BERT_SELF "key.weight|" BERT_SELF "value.weight"},
    {"encoder.%d.self.qkv.bias",
     BERT_SELF "query.bias|" BERT_SELF "key.bias|" BERT_SELF "value.bias"},
    {"encoder.%d.self.out.weight", BERT "attention.output.dense.weight"},
    {"encoder.%d.self.out.bias", BERT "attention.output.dense.bias"},
    {"encoder.%d.self.norm.gain", BERT "attention.output.LayerNorm.weight"},
    {"encoder.%d.self.norm.bias", BERT "attention.output.LayerNorm.bias"},
    {"encoder.%d.ffn.in.weight", BERT "intermediate.dense.weight"},
    {"encoder.%d.ffn.in.bias", BERT "intermediate.dense.bias"},
    {"encoder.%d.ffn.out.weight", BERT "output.dense.weight"},
    {"encoder.%d.ffn.out.bias", BERT "output.dense.bias"},
    {"encoder.%d.ffn.norm.gain", BERT "output.LayerNorm.weight"},
    {"encoder.%d.ffn.norm.bias", BERT "output.LayerNorm.bias"},
    {"output.transform.weight", "cls.predictions.transform.dense.weight"},
    {"output.transform.bias", "cls.predictions.transform.dense.bias"},
    {"output.norm.gain", "cls.predictions.transform.LayerNorm.weight"},
    {"output.norm.bias", "cls.predictions.transform.LayerNorm.bias"},
    {"output.bias", "cls.predictions.bias"},
};

static const heed__name_rule gpt2_rules[] = {
    {"embedding.table", "wte.weight"},
    {"embedding.positions", "wpe.weight"},
    {"decoder.%d.self.qkv.weight", "h.%d.attn.c_attn.weight"},
    {"decoder.%d.self.qkv.bias", "h.%d.attn.c_attn.bias"},
    {"decoder.%d.self.out.weight", "h.%d.attn.c_proj.weight"},
    {"decoder.%d.self.out.bias", "h.%d.attn.c_proj.bias"},
    {"decoder.%d.self.norm.gain", "h.%d.ln_1.weight"},
    {"decoder.%d.self.norm.bias", "h.%d.ln_1.bias"},
    {"decoder.%d.ffn.in.weight", "h.%d.mlp.c_fc.weight"},
    {"decoder.%d.ffn.in.bias", "h.%d.mlp.c_fc.bias"},
    {"decoder.%d.ffn.out.weight", "h.%d.mlp.c_proj.weight"},
    {"decoder.%d.ffn.out.bias", "h.%d.mlp.c_proj.bias"},
    {"decoder.%d.ffn.norm.gain", "h.%d.ln_2.weight"},
    {"decoder.%d.ffn.norm.bias", "h.%d.ln_2.bias"},
    {"decoder.norm.gain", "ln_f.weight"},
    {"decoder.norm.bias", "ln_f.bias"},
};

const heed__name_rule *heed__hugging_face_rules(size_t *count)
{
    *count = sizeof marian_rules / sizeof *marian_rules;
    return marian_rules;
}

/* ---- names ---- */

/* The prefixes that a file may have; the tied tables of which only one is stored. */
static void published_name(const heed__found_model *m, const char *name, char *out, size_t capacity)
{
    static const char *const prefixes[] = {"", "bert.", "transformer.", "model."};
    static const char *const variants[][2] = {
        {"", ""},
        {"LayerNorm.weight", "LayerNorm.gamma"},
        {"LayerNorm.bias", "LayerNorm.beta"},
        {".weight", ".weight.T"},
        {"model.shared.weight", "model.encoder.embed_tokens.weight"},
        {"model.shared.weight", "lm_head.weight"},
        {"model.encoder.embed_tokens.weight", "encoder.embed_tokens.weight"},
    };
    const size_t length = strlen(name);
    for (size_t v = 0; v < sizeof variants / sizeof *variants; v++) {
        const size_t n = strlen(variants[v][0]);
        if (n > length || strcmp(name + length - n, variants[v][0]) != 0)
            continue;
        for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++) {
            snprintf(out, capacity, "%s%.*s%s", prefixes[i], (int)(length - n), name,
                     variants[v][1]);
            if (heed__found_find(m->found, out))
                return;
        }
    }
    snprintf(out, capacity, "%s", name);
}

/* ---- config.json ---- */

static int64_t number(const heed__found_model *m, const char *key, int64_t otherwise)
{
    const json_t *value = json_object_get(m->found->about, key);
    return json_is_integer(value) ? (int64_t)json_integer_value(value) : otherwise;
}

static double real(const heed__found_model *m, const char *key, double otherwise)
{
    const json_t *value = json_object_get(m->found->about, key);
    return json_is_number(value) ? json_number_value(value) : otherwise;
}

static bool truth(const heed__found_model *m, const char *key, bool otherwise)
{
    const json_t *value = json_object_get(m->found->about, key);
    return json_is_boolean(value) ? json_is_true(value) : otherwise;
}

static heed_status set_activation(heed__found_model *m, const char *key, heed_error *err)
{
    static const struct {
        const char *name;
        heed_activation activation;
    } known[] = {{"relu", HEED_RELU},          {"gelu", HEED_GELU},
                 {"gelu_new", HEED_GELU_TANH}, {"gelu_fast", HEED_GELU_TANH},
                 {"swish", HEED_SILU},         {"silu", HEED_SILU},
                 {"tanh", HEED_TANH}};
    const char *name = json_string_value(json_object_get(m->found->about, key));
    for (size_t i = 0; name && i < sizeof known / sizeof *known; i++)
        if (strcmp(name, known[i].name) == 0) {
            m->config.transformer.activation = (int)known[i].activation;
            return HEED_OK;
        }
    return heed__found_fail(m->found, err, "its %s is '%.60s', which heed does not have", key,
                            name ? name : "missing");
}

static heed_status check_flag(const heed__found_model *m, const char *key, bool expected,
                              heed_error *err)
{
    return truth(m, key, expected) == expected
               ? HEED_OK
               : heed__found_fail(m->found, err, "its %s is %s, which heed does not open", key,
                                  expected ? "false" : "true");
}

/* What the three have in common. */
static void set_common(heed__found_model *m, const heed__name_rule *rules, size_t count)
{
    heed_transformer_config *t = &m->config.transformer;
    m->rules = rules;
    m->rule_count = count;
    m->rename = published_name;
    t->attention_bias = true;
    t->positions = HEED_POSITIONS_LEARNED;
    m->config.tying = HEED_TIE_ALL;
    m->config.encoder_layers = m->config.decoder_layers = 1;
}

#define RULES(list) list, sizeof list / sizeof *list

static heed_status describe_marian(heed__found_model *m, heed_error *err)
{
    heed_model_config *c = &m->config;
    set_common(m, RULES(marian_rules));
    c->arch = HEED_ARCH_TRANSFORMER;
    c->d = number(m, "d_model", 0);
    c->encoder_layers = number(m, "encoder_layers", 0);
    c->decoder_layers = number(m, "decoder_layers", 0);
    c->transformer.heads = number(m, "decoder_attention_heads", 0);
    c->transformer.ff = number(m, "decoder_ffn_dim", 0);
    c->transformer.output_bias = true;
    c->transformer.norm_eps = 1e-5;
    c->transformer.embedding_scale = truth(m, "scale_embedding", true);
    c->source_vocabulary = number(m, "vocab_size", 0);
    c->target_vocabulary = number(m, "decoder_vocab_size", c->source_vocabulary);
    c->longest = LONGEST_MARIAN;
    const bool shared = truth(m, "share_encoder_decoder_embeddings", true);
    c->tying = !truth(m, "tie_word_embeddings", true) ? HEED_TIE_NONE
               : shared                               ? HEED_TIE_ALL
                                                      : HEED_TIE_TARGET;
    m->source_ends = true;
    m->start = (int32_t)number(m, "decoder_start_token_id", -1);
    static const char *const never[] = {"normalize_before", "normalize_embedding",
                                        "add_final_layer_norm", "add_bias_logits"};
    heed_status status = check_flag(m, "static_position_embeddings", true, err);
    for (size_t i = 0; !status && i < sizeof never / sizeof *never; i++)
        status = check_flag(m, never[i], false, err);
    if (!status &&
        (number(m, "encoder_ffn_dim", c->transformer.ff) != c->transformer.ff ||
         number(m, "encoder_attention_heads", c->transformer.heads) != c->transformer.heads))
        status =
            heed__found_fail(m->found, err, "its encoder and decoder differ in heads or ffn_dim");
    return status ? status : set_activation(m, "activation_function", err);
}

static heed_status describe_bert(heed__found_model *m, heed_error *err)
{
    heed_model_config *c = &m->config;
    set_common(m, RULES(bert_rules));
    c->arch = HEED_ARCH_ENCODER;
    c->d = number(m, "hidden_size", 0);
    c->encoder_layers = number(m, "num_hidden_layers", 0);
    c->transformer.heads = number(m, "num_attention_heads", 0);
    c->transformer.ff = number(m, "intermediate_size", 0);
    c->transformer.types = number(m, "type_vocab_size", 2);
    c->transformer.norm_eps = real(m, "layer_norm_eps", 1e-12);
    c->transformer.embedding_scale = false;
    c->transformer.embedding_norm = true;
    c->source_vocabulary = number(m, "vocab_size", 0);
    c->longest = number(m, "max_position_embeddings", 512);
    const bool predicts = heed__found_named(m, "cls.predictions.transform.dense.weight");
    c->transformer.head_transform = c->transformer.output_bias = predicts;
    const char *kind =
        json_string_value(json_object_get(m->found->about, "position_embedding_type"));
    if (kind && strcmp(kind, "absolute") != 0)
        return heed__found_fail(m->found, err,
                                "its position_embedding_type is '%.60s', expected "
                                "'absolute'",
                                kind);
    return set_activation(m, "hidden_act", err);
}

static heed_status describe_gpt2(heed__found_model *m, heed_error *err)
{
    heed_model_config *c = &m->config;
    set_common(m, RULES(gpt2_rules));
    m->in_out = true;
    c->arch = HEED_ARCH_DECODER;
    c->d = number(m, "n_embd", 768);
    c->decoder_layers = number(m, "n_layer", 12);
    c->transformer.heads = number(m, "n_head", 12);
    c->transformer.ff = number(m, "n_inner", 4 * c->d);
    c->transformer.pre_norm = true;
    c->transformer.norm_eps = real(m, "layer_norm_epsilon", 1e-5);
    c->transformer.embedding_scale = false;
    c->target_vocabulary = number(m, "vocab_size", 50257);
    c->longest = number(m, "n_positions", number(m, "n_ctx", 1024));
    heed_status status = check_flag(m, "scale_attn_by_inverse_layer_idx", false, err);
    if (!json_object_get(m->found->about, "activation_function"))
        c->transformer.activation = HEED_GELU_TANH;
    else if (!status)
        status = set_activation(m, "activation_function", err);
    return status;
}

/* ---- vocabularies ---- */

static bool there(const heed__found_model *m, const char *name, heed__pathname path)
{
    return !heed__pathname_in(path, m->where.folder, name, NULL) && access(path, F_OK) == 0;
}

static heed_status find_vocabularies(heed__found_model *m, heed_error *err)
{
    static const char *const names[] = {"tokenizer.json", "vocab.txt", "vocab.json"};
    m->text = (heed_text_config){.tokens = HEED_UNIGRAM};
    if (there(m, "source.spm", m->vocabulary[0]) && there(m, "target.spm", m->vocabulary[1])) {
        if (!there(m, "vocab.json", m->pieces[0]))
            return heed__found_fail(m->found, err, "there is no vocab.json beside it");
        if (!there(m, "target_vocab.json", m->pieces[1]))
            memcpy(m->pieces[1], m->pieces[0], sizeof m->pieces[1]);
        m->lists = HEED__FOUND_MAPPED;
        return HEED_OK;
    }
    m->lists = HEED__FOUND_FILE;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (there(m, names[i], m->vocabulary[0])) {
            memcpy(m->vocabulary[1], m->vocabulary[0], sizeof m->vocabulary[1]);
            m->text.tokens = m->config.arch == HEED_ARCH_ENCODER ? HEED_WORDPIECE : HEED_BYTES;
            return HEED_OK;
        }
    return heed__found_fail(m->found, err,
                            "there is no vocabulary beside it, expected source.spm, target.spm and "
                            "vocab.json, or tokenizer.json, vocab.txt or vocab.json");
}

heed_status heed__describe_hugging_face(heed__found_model *m, heed_error *err)
{
    static const struct {
        const char *type;
        heed_status (*describe)(heed__found_model *m, heed_error *err);
    } known[] = {{"marian", describe_marian},
                 {"bert", describe_bert},
                 {"gpt2", describe_gpt2},
                 {"llama", heed__describe_llama}};
    const char *type = json_string_value(json_object_get(m->found->about, "model_type"));
    for (size_t i = 0; type && i < sizeof known / sizeof *known; i++)
        if (strcmp(type, known[i].type) == 0) {
            heed_status status = known[i].describe(m, err);
            return status ? status : find_vocabularies(m, err);
        }
    return heed__found_fail(m->found, err,
                            "its model_type is '%.60s', heed computes marian, bert, gpt2 and llama",
                            type ? type : "missing");
}
