/* found_ct2.c: Transformers of CTranslate2 (OpenNMT-py, OpenNMT-tf, Argos): encoder and decoder.
 *
 * What a file does not say is as in CTranslate2's own defaults: eight heads, a norm before each
 * sublayer, ReLU, embeddings times the root of d, positions from 1 in halves whose slowest
 * frequency is 1/10000.  Version 1 has the names of OpenNMT-tf. */
#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "engine/found_model.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define LONGEST 1024 /* positions that are made */
#define LAYERS 256

static const heed__name_rule rules[] = {
    {"encoder.embedding.table", "encoder/embeddings/weight"},
    {"decoder.embedding.table", "decoder/embeddings/weight"},
    {"output.weight", "decoder/projection/weight"},
    {"output.bias", "decoder/projection/bias"},
    {"encoder.%d.self.qkv.weight", "encoder/layer_%d/self_attention/linear_0/weight"},
    {"encoder.%d.self.qkv.bias", "encoder/layer_%d/self_attention/linear_0/bias"},
    {"encoder.%d.self.out.weight", "encoder/layer_%d/self_attention/linear_1/weight"},
    {"encoder.%d.self.out.bias", "encoder/layer_%d/self_attention/linear_1/bias"},
    {"encoder.%d.self.norm.gain", "encoder/layer_%d/self_attention/layer_norm/gamma"},
    {"encoder.%d.self.norm.bias", "encoder/layer_%d/self_attention/layer_norm/beta"},
    {"encoder.%d.ffn.in.weight", "encoder/layer_%d/ffn/linear_0/weight"},
    {"encoder.%d.ffn.in.bias", "encoder/layer_%d/ffn/linear_0/bias"},
    {"encoder.%d.ffn.out.weight", "encoder/layer_%d/ffn/linear_1/weight"},
    {"encoder.%d.ffn.out.bias", "encoder/layer_%d/ffn/linear_1/bias"},
    {"encoder.%d.ffn.norm.gain", "encoder/layer_%d/ffn/layer_norm/gamma"},
    {"encoder.%d.ffn.norm.bias", "encoder/layer_%d/ffn/layer_norm/beta"},
    {"encoder.norm.gain", "encoder/layer_norm/gamma"},
    {"encoder.norm.bias", "encoder/layer_norm/beta"},
    {"decoder.%d.self.qkv.weight", "decoder/layer_%d/self_attention/linear_0/weight"},
    {"decoder.%d.self.qkv.bias", "decoder/layer_%d/self_attention/linear_0/bias"},
    {"decoder.%d.self.out.weight", "decoder/layer_%d/self_attention/linear_1/weight"},
    {"decoder.%d.self.out.bias", "decoder/layer_%d/self_attention/linear_1/bias"},
    {"decoder.%d.self.norm.gain", "decoder/layer_%d/self_attention/layer_norm/gamma"},
    {"decoder.%d.self.norm.bias", "decoder/layer_%d/self_attention/layer_norm/beta"},
    {"decoder.%d.cross.q.weight", "decoder/layer_%d/attention/linear_0/weight"},
    {"decoder.%d.cross.q.bias", "decoder/layer_%d/attention/linear_0/bias"},
    {"decoder.%d.cross.kv.weight", "decoder/layer_%d/attention/linear_1/weight"},
    {"decoder.%d.cross.kv.bias", "decoder/layer_%d/attention/linear_1/bias"},
    {"decoder.%d.cross.out.weight", "decoder/layer_%d/attention/linear_2/weight"},
    {"decoder.%d.cross.out.bias", "decoder/layer_%d/attention/linear_2/bias"},
    {"decoder.%d.cross.norm.gain", "decoder/layer_%d/attention/layer_norm/gamma"},
    {"decoder.%d.cross.norm.bias", "decoder/layer_%d/attention/layer_norm/beta"},
    {"decoder.%d.ffn.in.weight", "decoder/layer_%d/ffn/linear_0/weight"},
    {"decoder.%d.ffn.in.bias", "decoder/layer_%d/ffn/linear_0/bias"},
    {"decoder.%d.ffn.out.weight", "decoder/layer_%d/ffn/linear_1/weight"},
    {"decoder.%d.ffn.out.bias", "decoder/layer_%d/ffn/linear_1/bias"},
    {"decoder.%d.ffn.norm.gain", "decoder/layer_%d/ffn/layer_norm/gamma"},
    {"decoder.%d.ffn.norm.bias", "decoder/layer_%d/ffn/layer_norm/beta"},
    {"decoder.norm.gain", "decoder/layer_norm/gamma"},
    {"decoder.norm.bias", "decoder/layer_norm/beta"},
    /* only where the file has them: otherwise sinusoids */
    {"encoder.embedding.positions", "encoder/position_encodings/encodings"},
    {"decoder.embedding.positions", "decoder/position_encodings/encodings"},
};
#define POSITION_RULES 2

/* ---- names ---- */

static const struct {
    const char *from, *to;
} old_names[] = {
    {"decoder/projection/weight", "decoder/dense/kernel:0"},
    {"decoder/projection/bias", "decoder/dense/bias:0"},
    {"embeddings/weight", "w_embs:0"},
    {"layer_norm/gamma", "LayerNorm/gamma:0"},
    {"layer_norm/beta", "LayerNorm/beta:0"},
    {"linear_0/weight", "conv1d/kernel:0"},
    {"linear_0/bias", "conv1d/bias:0"},
    {"linear_1/weight", "conv1d_1/kernel:0"},
    {"linear_1/bias", "conv1d_1/bias:0"},
    {"linear_2/weight", "conv1d_2/kernel:0"},
    {"linear_2/bias", "conv1d_2/bias:0"},
};

static void replace(char *text, size_t capacity, const char *from, const char *to)
{
    char *at = strstr(text, from), behind[512];
    if (!at)
        return;
    snprintf(behind, sizeof behind, "%s", at + strlen(from));
    snprintf(at, capacity - (size_t)(at - text), "%s%s", to, behind);
}

/* The name of version 1: "encoder/layer_0/ffn/linear_0/weight" was
 * "transformer/encoder/layer_0/ffn/conv1d/kernel:0". */
static void old_name(const heed__found_model *m, const char *name, char *out, size_t capacity)
{
    (void)m;
    snprintf(out, capacity, "transformer/%s", name);
    for (size_t i = 0; i < sizeof old_names / sizeof *old_names; i++)
        replace(out, capacity, old_names[i].from, old_names[i].to);
    const bool decoder = strncmp(name, "decoder/", 8) == 0;
    replace(out, capacity, "/self_attention/", decoder ? "/masked_multi_head/" : "/multi_head/");
    replace(out, capacity, "/attention/", "/multi_head/");
}

/* Newer files number their embeddings. */
static void new_name(const heed__found_model *m, const char *name, char *out, size_t capacity)
{
    snprintf(out, capacity, "%s", name);
    if (strcmp(name, "encoder/embeddings/weight") == 0 && !heed__found_find(m->found, name))
        snprintf(out, capacity, "encoder/embeddings_0/weight");
}

/* ---- what the file says ---- */

/* A scalar, or what it is where the file does not say. */
static double scalar(const heed__found_model *m, const char *name, double otherwise)
{
    const heed__found_tensor *t = heed__found_find(m->found, name);
    float x;
    return t && t->count == 1 && !heed__found_values(t, 0, 1, &x, NULL) ? (double)x : otherwise;
}

static int64_t layers_of(const heed__found_model *m, const char *side)
{
    for (int i = 0; i < LAYERS; i++) {
        char name[128];
        snprintf(name, sizeof name, "%s/layer_%d/ffn/linear_0/weight", side, i);
        if (!heed__found_named(m, name))
            return i;
    }
    return LAYERS;
}

static heed_status set_sizes(heed__found_model *m, heed_error *err)
{
    static const char *const needed[] = {
        "encoder/embeddings/weight", "decoder/embeddings/weight", "decoder/projection/weight",
        "encoder/layer_0/ffn/linear_0/weight", "decoder/layer_0/attention/linear_0/weight"};
    const heed__found_tensor *t[5];
    heed_model_config *c = &m->config;
    for (int i = 0; i < 5; i++) {
        t[i] = heed__found_named(m, needed[i]);
        if (!t[i] || t[i]->rank != 2)
            return heed__found_fail(m->found, err,
                                    "tensor '%s' is %s; heed opens CTranslate2's Transformers with "
                                    "an encoder and a decoder",
                                    needed[i], t[i] ? "no matrix" : "missing");
    }
    c->source_vocabulary = t[0]->dim[0];
    c->target_vocabulary = t[2]->dim[0];
    c->d = t[0]->dim[1];
    c->transformer.ff = t[3]->dim[0];
    c->encoder_layers = layers_of(m, "encoder");
    c->decoder_layers = layers_of(m, "decoder");
    c->tying = HEED_TIE_NONE;
    return HEED_OK;
}

/* Ways of Transformers that heed's does not have. */
static heed_status refuse(const heed__found_model *m, heed_error *err)
{
    static const struct {
        const char *name, *what;
    } unknown[] = {
        {"encoder/layer_0/self_attention/relative_position_keys", "relative positions"},
        {"encoder/layer_0/ffn/linear_0_noact/weight", "gated feed-forward networks"},
        {"encoder/embeddings_1/weight", "several embeddings of a token"},
        {"encoder/layernorm_embedding/gamma", "a norm on embeddings"},
    };
    for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++)
        if (heed__found_find(m->found, unknown[i].name))
            return heed__found_fail(m->found, err,
                                    "it has %s ('%s'), which heed does not open from "
                                    "CTranslate2",
                                    unknown[i].what, unknown[i].name);
    return HEED_OK;
}

static heed_status set_architecture(heed__found_model *m, heed_error *err)
{
    static const heed_activation activations[] = {
        HEED_RELU, HEED_GELU_TANH, HEED_SILU, HEED_GELU, HEED_IDENTITY, HEED_TANH, HEED_SIGMOID};
    heed_transformer_config *t = &m->config.transformer;
    const double activation = scalar(m, "decoder/activation", 0);
    if (!(activation >= 0 && activation <= 6) || activation == 4)
        return heed__found_fail(m->found, err, "its activation is %g, which heed does not have",
                                activation);
    t->activation = (int)activations[(int)activation];
    t->heads = (int64_t)scalar(m, "decoder/num_heads", 8);
    t->pre_norm = scalar(m, "decoder/pre_norm", 1) != 0;
    t->norm_eps = 1e-5;
    t->zero_start = scalar(m, "decoder/start_from_zero_embedding", 0) != 0; /* Marian's */
    if (t->zero_start)
        m->start = 0; /* is not looked up */
    t->attention_bias = t->output_bias = true;
    t->positions = HEED_POSITIONS_LEARNED;
    double scale = scalar(m, "encoder/scale_embeddings", 1);
    scale = scalar(m, "encoder/embeddings/multiply_by_sqrt_depth", scale);
    t->embedding_scale = scale != 0;
    const heed__found_tensor *table =
        heed__found_find(m->found, "encoder/position_encodings/encodings");
    m->config.longest = table && table->rank == 2 ? table->dim[0] : LONGEST;
    m->rules = rules;
    m->rule_count = sizeof rules / sizeof *rules - (table ? 0 : POSITION_RULES);
    m->ends_at_10000 = true;
    m->first = 1;
    return HEED_OK;
}

/* ---- vocabularies ---- */

/* source_vocabulary.txt and such, in either form; one for both sides if it is shared. */
static heed_status find_vocabulary(heed__found_model *m, const char *side, heed__pathname path,
                                   heed_error *err)
{
    static const char *const endings[] = {"txt", "json"};
    const char *const sides[] = {side, "shared"};
    for (int i = 0; i < 4; i++) {
        heed__pathname name;
        heed_status status =
            heed__pathname_format(name, err, "%s_vocabulary.%s", sides[i / 2], endings[i % 2]);
        if (!status)
            status = heed__pathname_in(path, m->where.folder, name, err);
        if (status)
            return status;
        if (heed__file_is_there(path))
            return HEED_OK;
    }
    return heed__found_fail(
        m->found, err, "there is no %s_vocabulary.txt beside it, nor .json, nor shared_vocabulary",
        side);
}

/* Nothing is added to a source, unless config.json says so. */
static heed_status set_text(heed__found_model *m, heed_error *err)
{
    heed__pathname path;
    heed_status status = heed__pathname_in(path, m->where.folder, "config.json", err);
    json_t *config = !status && heed__file_is_there(path) ? heed__json_open(path, NULL) : NULL;
    m->text = (heed_text_config){.tokens = HEED_WHITESPACE};
    m->source_ends = json_is_true(json_object_get(config, "add_source_eos"));
    if (json_is_true(json_object_get(config, "add_source_bos")))
        status = heed__found_fail(m->found, err,
                                  "its config.json asks for <s> before a source, "
                                  "which heed does not do");
    json_decref(config);
    if (!status)
        status = find_vocabulary(m, "source", m->vocabulary[0], err);
    return status ? status : find_vocabulary(m, "target", m->vocabulary[1], err);
}

heed_status heed__describe_ct2(heed__found_model *m, heed_error *err)
{
    m->rename =
        json_integer_value(json_object_get(m->found->about, "version")) == 1 ? old_name : new_name;
    heed_status status = set_sizes(m, err);
    if (!status)
        status = refuse(m, err);
    if (!status)
        status = set_architecture(m, err);
    return status ? status : set_text(m, err);
}
