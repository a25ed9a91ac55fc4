/* found_marian.c: Marian's Transformers: NAME.npz and NAME.bin, those of Firefox and Bergamot among
 * them, with vocab.spm, vocab.yml or source.spm and target.spm beside them.
 *
 * What the model is stands in its tensor special:model.yml.  Matrices are (in,out); embeddings are
 * multiplied with the root of d, positions are Marian's sinusoids, the decoder begins with an
 * embedding of zeros, norms have an epsilon of 1e-6. */
#include "base/error.h"
#include "engine/export.h"
#include "engine/found_model.h"

#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LONGEST 1024
#define LAYERS 256
#define MOST_YML (1 << 20)

#define LAYER(side)                                                                                \
    {#side ".%d.self.qkv.weight",                                                                  \
     #side "_l%d_self_Wq|" #side "_l%d_self_Wk|" #side "_l%d_self_Wv"},                            \
        {#side ".%d.self.qkv.bias",                                                                \
         #side "_l%d_self_bq|" #side "_l%d_self_bk|" #side "_l%d_self_bv"},                        \
        {#side ".%d.self.out.weight", #side "_l%d_self_Wo"},                                       \
        {#side ".%d.self.out.bias", #side "_l%d_self_bo"},                                         \
        {#side ".%d.self.norm.gain", #side "_l%d_self_Wo_ln_scale"},                               \
        {#side ".%d.self.norm.bias", #side "_l%d_self_Wo_ln_bias"},                                \
        {#side ".%d.ffn.in.weight", #side "_l%d_ffn_W1"},                                          \
        {#side ".%d.ffn.in.bias", #side "_l%d_ffn_b1"},                                            \
        {#side ".%d.ffn.out.weight", #side "_l%d_ffn_W2"},                                         \
        {#side ".%d.ffn.out.bias", #side "_l%d_ffn_b2"},                                           \
        {#side ".%d.ffn.norm.gain", #side "_l%d_ffn_ffn_ln_scale"},                                \
        {#side ".%d.ffn.norm.bias", #side "_l%d_ffn_ffn_ln_bias"},                                 \
        {#side ".norm.gain", #side "_top_ln_scale"}, {#side ".norm.bias", #side "_top_ln_bias"},   \
    {                                                                                              \
#side ".embedding.positions", "Wpos"                                                       \
    }

static const heed__name_rule rules[] = {
    {"embedding.table", "Wemb"},
    {"embedding.positions", "Wpos"},
    {"encoder.embedding.table", "encoder_Wemb"},
    {"decoder.embedding.table", "decoder_Wemb"},
    {"output.weight", "decoder_ff_logit_out_Wt"},
    {"output.bias", "decoder_ff_logit_out_b"},
    LAYER(encoder),
    LAYER(decoder),
    {"decoder.%d.ssru.in.weight", "decoder_l%d_rnn_W"},
    {"decoder.%d.ssru.forget.weight", "decoder_l%d_rnn_Wf"},
    {"decoder.%d.ssru.forget.bias", "decoder_l%d_rnn_bf"},
    {"decoder.%d.ssru.norm.gain", "decoder_l%d_rnn_ffn_ln_scale"},
    {"decoder.%d.ssru.norm.bias", "decoder_l%d_rnn_ffn_ln_bias"},
    {"decoder.%d.cross.q.weight", "decoder_l%d_context_Wq"},
    {"decoder.%d.cross.q.bias", "decoder_l%d_context_bq"},
    {"decoder.%d.cross.kv.weight", "decoder_l%d_context_Wk|decoder_l%d_context_Wv"},
    {"decoder.%d.cross.kv.bias", "decoder_l%d_context_bk|decoder_l%d_context_bv"},
    {"decoder.%d.cross.out.weight", "decoder_l%d_context_Wo"},
    {"decoder.%d.cross.out.bias", "decoder_l%d_context_bo"},
    {"decoder.%d.cross.norm.gain", "decoder_l%d_context_Wo_ln_scale"},
    {"decoder.%d.cross.norm.bias", "decoder_l%d_context_Wo_ln_bias"},
};

const heed__name_rule *heed__marian_rules(size_t *count)
{
    *count = sizeof rules / sizeof *rules;
    return rules;
}

/* Norms before a sublayer have another ending; tables that are one have one name; an output that is
 * no table of embeddings is (d,V) in older files. */
static void stored_name(const heed__found_model *m, const char *name, char *out, size_t capacity)
{
    const size_t n = strlen(name);
    snprintf(out, capacity, "%s", name);
    if (heed__found_find(m->found, out))
        return;
    if (strstr(name, "_ln_"))
        snprintf(out, capacity, "%s_pre", name);
    else if (n > 5 && strcmp(name + n - 5, "_Wemb") == 0)
        snprintf(out, capacity, "Wemb");
    else if (strcmp(name, "decoder_ff_logit_out_Wt") == 0)
        snprintf(out, capacity, "decoder_ff_logit_out_W");
}

/* ---- special:model.yml: "key: value" a line; lists below a key are not needed ---- */

/* A copy of the value behind a key at the beginning of a line, without quotes; NULL: it is not
 * there. */
static const char *value_of(const char *yml, const char *key, char text[64])
{
    const size_t n = strlen(key);
    for (const char *line = yml; line && *line; line = strchr(line, '\n'), line += line != NULL) {
        if (strncmp(line, key, n) != 0 || line[n] != ':')
            continue;
        const char *at = line + n + 1;
        at += strspn(at, " \t\"'");
        const size_t length = strcspn(at, "\n\r\"'#");
        snprintf(text, 64, "%.*s", (int)(length < 63 ? length : 63), at);
        for (size_t i = strlen(text); i > 0 && isspace((unsigned char)text[i - 1]);)
            text[--i] = '\0';
        return text;
    }
    return NULL;
}

static const char *read_yml(const heed__found_model *m, heed_error *err)
{
    const heed__found_tensor *t = heed__found_find(m->found, "special:model.yml");
    const bool fits = t && t->type == HEED__FOUND_I8 && t->bytes < MOST_YML;
    if (!fits) {
        heed__found_fail(m->found, err,
                         t ? "its special:model.yml is no text"
                           : "it has no special:model.yml, in which Marian says what a model is");
        return NULL;
    }
    return heed__found_text(m->found, (const char *)t->data,
                            strnlen((const char *)t->data, t->bytes), err);
}

/* ---- what heed does not compute ---- */

/* Operations around sublayers: d dropout, a add, n norm.  Dropout says nothing here. */
static void without_dropout(const char *ops, char out[64])
{
    size_t n = 0;
    for (; ops && *ops && n < 63; ops++)
        if (*ops != 'd')
            out[n++] = *ops;
    out[n] = '\0';
}

static heed_status refuse_value(const heed__found_model *m, const char *key, const char *value,
                                const char *expected, heed_error *err)
{
    return heed__found_fail(m->found, err, "its %s is '%.60s', heed computes %s", key, value,
                            expected);
}

static heed_status check_ops(heed__found_model *m, const char *yml, heed_error *err)
{
    char text[64], before[64], after[64], embedding[64], top[64];
    without_dropout(value_of(yml, "transformer-preprocess", text), before);
    without_dropout(value_of(yml, "transformer-postprocess", text), after);
    without_dropout(value_of(yml, "transformer-postprocess-emb", text), embedding);
    without_dropout(value_of(yml, "transformer-postprocess-top", text), top);
    m->config.transformer.pre_norm = strcmp(before, "n") == 0;
    const bool post = !*before && strcmp(after, "an") == 0 && !*top;
    const bool pre = *before && strcmp(after, "a") == 0 && strcmp(top, "n") == 0;
    if (!(m->config.transformer.pre_norm ? pre : post) || *embedding)
        return heed__found_fail(m->found, err,
                                "its transformer-preprocess, -postprocess, -emb and -top are "
                                "'%s', '%s', '%s' and '%s', heed computes '', 'an', '' and '', or "
                                "'n', 'a', '' and 'n'",
                                before, after, embedding, top);
    return HEED_OK;
}

static heed_status check_architecture(heed__found_model *m, const char *yml, heed_error *err)
{
    static const struct {
        const char *key, *is, *says; /* the only value that there may be; "": none */
    } only[] = {
        {"type", "transformer", "'transformer'"},
        {"transformer-tied-layers", "[]", "layers that are not tied"},
        {"transformer-ffn-depth", "2", "2"},
        {"transformer-decoder-ffn-depth", "2", "2"},
        {"transformer-no-projection", "false", "'false'"},
        {"transformer-rnn-projection", "false", "'false'"},
        {"transformer-no-bias", "false", "'false'"},
        {"transformer-no-affine", "false", "'false'"},
        {"right-left", "false", "translators from left to right"},
        {"ulr", "false", "'false'"},
        {"lemma-dim-emb", "0", "0"},
        {"factors-combine", "sum", "vocabularies without factors"},
    };
    char text[64];
    for (size_t i = 0; i < sizeof only / sizeof *only; i++) {
        const char *value = value_of(yml, only[i].key, text);
        const bool depth = strstr(only[i].key, "decoder-ffn-depth") && value &&
                           strcmp(value, "0") == 0; /* as the encoder */
        if (value && *value && !depth && strcmp(value, only[i].is) != 0)
            return refuse_value(m, only[i].key, value, only[i].says, err);
    }
    const char *value = value_of(yml, "transformer-decoder-autoreg", text);
    const bool rnn = value && strcmp(value, "rnn") == 0;
    if (value && !rnn && strcmp(value, "self-attention") != 0)
        return refuse_value(m, "transformer-decoder-autoreg", value,
                            "'self-attention' and 'rnn' with the cell 'ssru'", err);
    value = rnn ? value_of(yml, "dec-cell", text) : NULL;
    if (rnn && (!value || strcmp(value, "ssru") != 0))
        return refuse_value(m, "dec-cell", value ? value : "missing", "'ssru'", err);
    m->config.transformer.decoder_unit = rnn ? HEED_DECODER_UNIT_SSRU : HEED_DECODER_UNIT_SELF;
    return HEED_OK;
}

/* "gelu" of Marian's older versions is the swish that approximates it, as CTranslate2 has it. */
static heed_status set_activation(heed__found_model *m, const char *yml, heed_error *err)
{
    static const struct {
        const char *name;
        heed_activation activation;
    } known[] = {{"relu", HEED_RELU}, {"swish", HEED_SILU}, {"gelu", HEED_GELU}};
    char text[64];
    const char *value = value_of(yml, "transformer-ffn-activation", text);
    if (!value)
        value = "swish";
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(value, known[i].name) == 0) {
            m->config.transformer.activation = (int)known[i].activation;
            return HEED_OK;
        }
    return refuse_value(m, "transformer-ffn-activation", value, "relu, swish and gelu", err);
}

/* ---- sizes ---- */

static int64_t layers_of(const heed__found_model *m, const char *side)
{
    for (int i = 0; i < LAYERS; i++) {
        char name[64];
        snprintf(name, sizeof name, "%s_l%d_ffn_W1", side, i + 1);
        if (!heed__found_named(m, name))
            return i;
    }
    return LAYERS;
}

static const heed__found_tensor *matrix(const heed__found_model *m, const char *name,
                                        heed_error *err)
{
    const heed__found_tensor *t = heed__found_named(m, name);
    if (t && t->rank == 2)
        return t;
    heed__found_fail(m->found, err, "tensor '%s' is %s", name, t ? "no matrix" : "missing");
    return NULL;
}

static heed_status set_sizes(heed__found_model *m, const char *yml, heed_error *err)
{
    heed_model_config *c = &m->config;
    char text[64];
    const heed__found_tensor *source = matrix(m, "encoder_Wemb", err);
    const heed__found_tensor *target = source ? matrix(m, "decoder_Wemb", err) : NULL;
    const heed__found_tensor *in = target ? matrix(m, "encoder_l1_ffn_W1", err) : NULL;
    const heed__found_tensor *other = in ? matrix(m, "decoder_l1_ffn_W1", err) : NULL;
    if (!other)
        return HEED_FORMAT;
    const char *heads = value_of(yml, "transformer-heads", text);
    c->transformer.heads = heads ? strtoll(heads, NULL, 10) : 8;
    c->source_vocabulary = source->dim[0];
    c->target_vocabulary = target->dim[0];
    c->d = source->dim[1];
    c->transformer.ff = in->dim[1];
    c->encoder_layers = layers_of(m, "encoder");
    c->decoder_layers = layers_of(m, "decoder");
    if (other->dim[1] != in->dim[1])
        return heed__found_fail(m->found, err,
                                "its encoder and decoder differ in transformer-dim-ffn: %lld and "
                                "%lld",
                                (long long)in->dim[1], (long long)other->dim[1]);
    c->tying = heed__found_named(m, "decoder_ff_logit_out_Wt") ? HEED_TIE_NONE
               : source == target                              ? HEED_TIE_ALL
                                                               : HEED_TIE_TARGET;
    return HEED_OK;
}

static void set_rest(heed__found_model *m)
{
    heed_model_config *c = &m->config;
    heed_transformer_config *t = &c->transformer;
    const heed__found_tensor *positions = heed__found_find(m->found, "Wpos");
    c->arch = HEED_ARCH_TRANSFORMER;
    c->longest = positions && positions->rank == 2 ? positions->dim[0] : LONGEST;
    t->positions = positions ? HEED_POSITIONS_LEARNED : HEED_POSITIONS_SINUSOID_MARIAN;
    t->embedding_scale = t->attention_bias = t->ff_bias = t->zero_start = true;
    t->output_bias = heed__found_find(m->found, "decoder_ff_logit_out_b");
    t->norm_eps = 1e-6;
    m->rules = rules;
    m->rule_count = sizeof rules / sizeof *rules;
    m->in_out = m->own_int8 = true;
    m->first_layer = 1;
    m->start = 0; /* is not looked up, see zero_start */
    m->source_ends = true;
}

/* ---- vocabularies ---- */

static bool has_ending(const char *name, const char *ending)
{
    const size_t n = strlen(name), k = strlen(ending);
    return n >= k && strcmp(name + n - k, ending) == 0;
}

/* Which side a file is of: 0 source, 1 target, 2 both. */
static int side_of(const char *name)
{
    static const char *const sides[2][2] = {{"src", "source"}, {"trg", "target"}};
    for (int side = 0; side < 2; side++)
        for (int i = 0; i < 2; i++)
            if (strstr(name, sides[side][i]))
                return side;
    return 2;
}

/* Vocabularies of a folder by kind and side. */
struct found_files {
    heed__pathname spm[3], yml[3];
};

static heed_status list_vocabularies(const heed__found_model *m, struct found_files *f,
                                     heed_error *err)
{
    *f = (struct found_files){0};
    DIR *d = opendir(m->where.folder);
    heed_status status = HEED_OK;
    for (struct dirent *e; d && !status && (e = readdir(d));) {
        const char *name = e->d_name;
        const bool spm = has_ending(name, ".spm") || has_ending(name, ".spm.gz");
        const bool yml = has_ending(name, "vocab.yml");
        char *to = spm ? f->spm[side_of(name)] : f->yml[side_of(name)];
        if (!spm && !yml)
            continue;
        if (*to)
            status = heed__found_fail(m->found, err,
                                      "there are two vocabularies beside it, '%.100s' and '%.100s'",
                                      strrchr(to, '/') + 1, name);
        else
            status = heed__pathname_in(to, m->where.folder, name, err);
    }
    if (d)
        closedir(d);
    return status;
}

static void take(heed__found_model *m, int side, const char *vocabulary, const char *pieces)
{
    memcpy(m->vocabulary[side], vocabulary, sizeof m->vocabulary[side]);
    if (pieces)
        memcpy(m->pieces[side], pieces, sizeof m->pieces[side]);
}

static heed_status set_text(heed__found_model *m, heed_error *err)
{
    struct found_files f;
    heed_status status = list_vocabularies(m, &f, err);
    const bool pair = *f.spm[0] && *f.spm[1], ymls = *f.yml[2] || (*f.yml[0] && *f.yml[1]);
    m->text = (heed_text_config){.tokens = HEED_UNIGRAM};
    for (int side = 0; !status && side < 2; side++) {
        const char *yml = *f.yml[side] ? f.yml[side] : f.yml[2];
        if (pair && ymls) { /* OPUS-MT: pieces of one file, ids of another */
            m->lists = HEED__FOUND_MAPPED;
            take(m, side, f.spm[side], yml);
        } else if (pair || *f.spm[2]) {
            m->lists = HEED__FOUND_FILE;
            take(m, side, pair ? f.spm[side] : f.spm[2], NULL);
        } else if (ymls) {
            m->lists = HEED__FOUND_FILE;
            m->text.tokens = HEED_WHITESPACE;
            take(m, side, yml, NULL);
        } else {
            status = heed__found_fail(m->found, err,
                                      "there is no vocabulary beside it, expected vocab.spm, or "
                                      "names with src and trg in them, or vocab.yml");
        }
    }
    return status;
}

heed_status heed__describe_marian(heed__found_model *m, heed_error *err)
{
    m->rename = stored_name;
    const char *yml = read_yml(m, err);
    heed_status status = yml ? check_architecture(m, yml, err) : HEED_FORMAT;
    if (!status)
        status = check_ops(m, yml, err);
    if (!status)
        status = set_activation(m, yml, err);
    if (!status)
        status = set_sizes(m, yml, err);
    if (!status)
        set_rest(m);
    return status ? status : set_text(m, err);
}
