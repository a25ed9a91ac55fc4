/* export_hugging_face.c: a translator as Hugging Face's MarianMT: config.json, model.safetensors,
 * source.spm, target.spm, vocab.json.
 *
 * Ids are heed's own; the padding comes behind them, and its embedding is zeros, with which the
 * decoder begins where the model begins with zeros. */
#include "attention/attend.h"
#include "base/error.h"
#include "engine/export.h"

#include <heed/io.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

static bool check_form(const heed__export *x)
{
    const heed_model_config *c = &x->config;
    const heed_transformer_config *t = &c->transformer;
    const heed_attention_config *a = &c->attention;
    const struct {
        bool good;
        const char *option;
    } needed[] = {
        {t->positions == HEED_POSITIONS_SINUSOID_HALVES, "--positions sinusoid-halves"},
        {t->decoder_unit == HEED_DECODER_UNIT_SELF, "--decoder-unit self"},
        {!t->pre_norm && t->norm == HEED_NORM_LAYER, "--no-pre-norm --norm layer"},
        {t->residual && t->scale_scores, "--residual --scale-scores"},
        {!t->ff_gated && !t->kv_heads && !t->d_k && !t->d_v,
         "--no-ff-gated --kv-heads 0 --d-k 0 --d-v 0"},
        {!t->types && !t->embedding_norm && !t->head_transform,
         "--types 0 --no-embedding-norm --no-head-transform"},
        {a->score == HEED_SCORE_SCALED_DOT, "--attention-score scaled-dot"},
        {heed__slot_kind(&a->pattern) == HEED_PATTERN_GLOBAL && a->pattern.count == 1,
         "--attention-pattern global"},
        {heed__slot_kind(&a->normaliser) == HEED_NORMALISE_SOFT, "--attention-normaliser soft"},
        {heed__slot_kind(&a->queries) == HEED_QUERIES_ALL, "--attention-queries all"},
        {heed__slot_kind(&a->memory) == HEED_MEMORY_STATES, "--attention-memory states"},
        {heed__slot_kind(&a->position_bias) == HEED_BIAS_NONE, "--position-bias none"},
        {x->shared, "one vocabulary for both sides"},
    };
    for (size_t i = 0; i < sizeof needed / sizeof *needed; i++)
        if (!needed[i].good) {
            heed__fail(x->err, HEED_ARGUMENT,
                       "'%.200s' cannot be written as a MarianMT, which needs a model trained with "
                       "%s",
                       x->from, needed[i].option);
            return false;
        }
    return true;
}

/* heed's ids, and the padding. */
static bool order_vocabulary(const heed__export *x, heed__export_vocab *v)
{
    heed__spm_entry *e = heed__export_take(x, v->count + 1, sizeof *e);
    for (int32_t i = 0; e && i < v->count; i++)
        e[i] = (heed__spm_entry){.from = i};
    if (e)
        e[v->count++] = (heed__spm_entry){.from = -1, .text = "<pad>", .type = HEED__PIECE_CONTROL};
    v->entry = e;
    return e;
}

static void write_json(const heed__export *x, const char *name, json_t *value)
{
    char *text = value ? json_dumps(value, JSON_INDENT(2) | JSON_REAL_PRECISION(9)) : NULL;
    if (text)
        heed__export_text(x, name, text);
    else
        heed__fail(x->err, HEED_MEMORY, "out of memory for writing '%.255s'", x->to);
    free(text);
    json_decref(value);
}

static void write_vocab(const heed__export *x)
{
    const heed__export_vocab *v = &x->vocab[0];
    heed_vocab *source, *target;
    if (x->err->status ||
        heed_vocabs_open(x->from, x->text.bpe_joiner, NULL, &source, &target, x->err))
        return;
    json_t *ids = json_object();
    for (int32_t i = 0; i < v->count; i++)
        json_object_set_new(ids,
                            v->entry[i].from < 0 ? v->entry[i].text : heed_vocab_piece(source, i),
                            json_integer(i));
    heed_vocabs_free(source, target);
    write_json(x, "vocab.json", ids);
}

static void write_config(const heed__export *x)
{
    static const char *const activations[] = {"identity", "relu", "gelu",   "gelu_new",
                                              "swish",    "tanh", "sigmoid"};
    const heed_model_config *c = &x->config;
    const heed_transformer_config *t = &c->transformer;
    const heed__export_vocab *v = &x->vocab[0];
    const json_int_t pad = v->count - 1;
    const json_int_t start = t->zero_start ? pad : v->ids.start;
    json_t *config = json_pack(
        "{s:s,s:[s],s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:s,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:[[I]],s:b,"
        "s:b,s:b,s:b,s:b,s:b,s:b,s:I,s:I,s:i,s:f,s:f,s:b,s:f,s:s}",
        "model_type", "marian", "architectures", "MarianMTModel", "d_model", (json_int_t)c->d,
        "encoder_layers", (json_int_t)c->encoder_layers, "decoder_layers",
        (json_int_t)c->decoder_layers, "encoder_attention_heads", (json_int_t)t->heads,
        "decoder_attention_heads", (json_int_t)t->heads, "encoder_ffn_dim", (json_int_t)t->ff,
        "decoder_ffn_dim", (json_int_t)t->ff, "activation_function", activations[t->activation],
        "vocab_size", (json_int_t)v->count, "decoder_vocab_size", (json_int_t)v->count,
        "pad_token_id", pad, "decoder_start_token_id", start, "eos_token_id",
        (json_int_t)v->ids.eos, "forced_eos_token_id", (json_int_t)v->ids.eos, "bos_token_id",
        (json_int_t)(v->ids.bos >= 0 ? v->ids.bos : 0), "unk_token_id", (json_int_t)v->ids.unk,
        "bad_words_ids", pad, "scale_embedding", t->embedding_scale, "static_position_embeddings",
        1, "share_encoder_decoder_embeddings", c->tying == HEED_TIE_ALL, "tie_word_embeddings",
        c->tying != HEED_TIE_NONE, "normalize_before", 0, "normalize_embedding", 0,
        "is_encoder_decoder", 1, "max_position_embeddings", (json_int_t)c->longest, "max_length",
        (json_int_t)c->longest, "num_beams", 4, "dropout", c->dropout, "attention_dropout",
        c->attention.dropout, "use_cache", 1, "init_std", 0.02, "torch_dtype", "float32");
    write_json(x, "config.json", config);
    write_json(x, "tokenizer_config.json",
               json_pack("{s:s,s:s,s:s,s:b,s:s,s:s,s:s}", "tokenizer_class", "MarianTokenizer",
                         "source_lang", "source", "target_lang", "target", "separate_vocabs", 0,
                         "eos_token", "</s>", "unk_token", "<unk>", "pad_token", "<pad>"));
}

/* MarianMT has biases in every product. */
static void add_biases(heed__export *x)
{
    static const char *const products[] = {"q_proj", "k_proj", "v_proj", "out_proj"};
    static const char *const sides[] = {"encoder", "decoder", "decoder"};
    for (int kind = 0; kind < 3; kind++) {
        const int64_t layers = kind ? x->config.decoder_layers : x->config.encoder_layers;
        const char *attention = kind == 2 ? "encoder_attn" : "self_attn";
        for (int n = 0; n < layers; n++) {
            char name[128];
            for (int b = 0; b < 4; b++) {
                snprintf(name, sizeof name, "model.%s.layers.%d.%s.%s.bias", sides[kind], n,
                         attention, products[b]);
                heed__export_zeros(x, name, x->config.d);
            }
            snprintf(name, sizeof name, "model.%s.layers.%d.fc1.bias", sides[kind], n);
            heed__export_zeros(x, name, x->config.transformer.ff);
            snprintf(name, sizeof name, "model.%s.layers.%d.fc2.bias", sides[kind], n);
            heed__export_zeros(x, name, x->config.d);
        }
    }
}

static void write_weights(const heed__export *x)
{
    heed__pathname path;
    heed_safetensors_writer *w = heed_safetensors_writer_new(NULL, x->err);
    for (int64_t i = 0; w && !x->err->status && i < x->count; i++) {
        const heed__export_tensor *t = &x->tensor[i];
        const bool row = strcmp(t->name, "final_logits_bias") == 0; /* (1,V) */
        const int64_t rows = row ? 1 : t->rows;
        const heed_stored s = {.name = t->name,
                               .dtype = HEED_F32,
                               .rank = rows ? 2 : 1,
                               .dim = {rows ? rows : t->cols, rows ? t->cols : 0},
                               .data = t->value,
                               .bytes = (size_t)((rows ? rows : 1) * t->cols) * sizeof(float)};
        heed_safetensors_writer_add(w, &s, x->err);
    }
    if (w && !x->err->status)
        heed_safetensors_writer_metadata(w, "format", "pt", x->err);
    if (w && !x->err->status && !heed__pathname_in(path, x->to, "model.safetensors", x->err))
        heed_safetensors_writer_write(w, path, x->err);
    heed_safetensors_writer_free(w);
}

void heed__export_hugging_face(heed__export *x)
{
    size_t rules;
    const heed__name_rule *rule = heed__hugging_face_rules(&rules);
    if (!check_form(x) || !order_vocabulary(x, &x->vocab[0]))
        return;
    heed__export_tensors(x, rule, rules, 0, false, HEED__NEVER);
    add_biases(x);
    heed__export_zeros(x, "final_logits_bias", x->vocab[0].count);
    write_weights(x);
    x->vocab[0].count--; /* the padding is in vocab.json alone */
    heed__export_vocabulary(x, 0, "source.spm");
    heed__export_vocabulary(x, 0, "target.spm");
    x->vocab[0].count++;
    write_vocab(x);
    write_config(x);
}
