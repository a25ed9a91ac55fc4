/* export_marian.c: Marian's files: model.npz in fp32, or, as Firefox and Bergamot have it, int8
 * with multipliers for what the matrices are multiplied with; vocabulary, shortlist, decoder.yml.
 *
 * Marian's vocabulary: </s> 0, <unk> 1, no <s>, a multiple of 8 pieces. */
#include "attention/attend.h"
#include "base/error.h"
#include "engine/export.h"
#include "engine/shortlist.h"
#include "files/marian_write.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* ---- what Marian has ---- */

static bool check_form(const heed__export *x)
{
    const heed_model_config *c = &x->config;
    const heed_transformer_config *t = &c->transformer;
    const heed_attention_config *a = &c->attention;
    const struct {
        bool good;
        const char *option;
    } needed[] = {
        {t->positions == HEED_POSITIONS_SINUSOID_MARIAN, "--positions sinusoid-marian"},
        {t->zero_start, "--zero-start"},
        {t->embedding_scale, "--embedding-scale"},
        {t->norm == HEED_NORM_LAYER, "--norm layer"},
        {t->residual && t->scale_scores, "--residual --scale-scores"},
        {t->ff_bias && !t->ff_gated, "--ff-bias --no-ff-gated"},
        {!t->kv_heads && !t->d_k && !t->d_v, "--kv-heads 0 --d-k 0 --d-v 0"},
        {!t->types && !t->embedding_norm && !t->head_transform,
         "--types 0 --no-embedding-norm --no-head-transform"},
        {a->score == HEED_SCORE_SCALED_DOT, "--attention-score scaled-dot"},
        {heed__slot_kind(&a->pattern) == HEED_PATTERN_GLOBAL && a->pattern.count == 1,
         "--attention-pattern global"},
        {heed__slot_kind(&a->normaliser) == HEED_NORMALISE_SOFT, "--attention-normaliser soft"},
        {heed__slot_kind(&a->queries) == HEED_QUERIES_ALL, "--attention-queries all"},
        {heed__slot_kind(&a->memory) == HEED_MEMORY_STATES, "--attention-memory states"},
        {heed__slot_kind(&a->position_bias) == HEED_BIAS_NONE, "--position-bias none"},
        {t->activation == HEED_RELU || t->activation == HEED_SILU || t->activation == HEED_GELU,
         "--activation relu, silu or gelu"},
    };
    for (size_t i = 0; i < sizeof needed / sizeof *needed; i++)
        if (!needed[i].good) {
            heed__fail(x->err, HEED_ARGUMENT,
                       "'%.200s' cannot be written for Marian, which needs a model trained with %s",
                       x->from, needed[i].option);
            return false;
        }
    return true;
}

static bool check_widths(const heed__export *x)
{
    const heed_model_config *c = &x->config;
    if (c->d % 64 == 0 && c->transformer.ff % 64 == 0)
        return true;
    heed__fail(x->err, HEED_ARGUMENT,
               "'%.200s' cannot be written for Firefox: --d is %lld and --ff %lld, expected "
               "multiples of 64",
               x->from, (long long)c->d, (long long)c->transformer.ff);
    return false;
}

/* ---- the vocabulary ---- */

static bool order_vocabulary(const heed__export *x, heed__export_vocab *v)
{
    const int32_t most = (v->count + 15) / 8 * 8;
    heed__spm_entry *e = heed__export_take(x, most, sizeof *e);
    int32_t n = 2, fill = 0;
    if (!e)
        return false;
    e[0] = (heed__spm_entry){.from = v->ids.eos};
    e[1] = (heed__spm_entry){.from = v->ids.unk};
    for (int32_t i = 0; i < v->count; i++)
        if (i != v->ids.eos && i != v->ids.unk && i != v->ids.bos)
            e[n++] = (heed__spm_entry){.from = i};
    do { /* one at least: see set_largest */
        char *text = heed__export_take(x, 16, 1);
        if (!text)
            return false;
        snprintf(text, 16, "<fill%d>", fill++ % 8);
        e[n] = (heed__spm_entry){.from = -1, .text = text, .type = HEED__PIECE_UNUSED};
    } while (++n % 8);
    v->entry = e;
    v->count = n;
    return true;
}

/* ---- the shortlist ---- */

static int order_ids(const int32_t *id, int64_t count, int32_t *to)
{
    int n = 0;
    for (int64_t i = 0; i < count; i++) { /* by insertion: there are few */
        int at = n;
        while (at > 0 && to[at - 1] > id[i])
            at--;
        if (at > 0 && to[at - 1] == id[i])
            continue;
        memmove(to + at + 1, to + at, (size_t)(n++ - at) * sizeof *to);
        to[at] = id[i];
    }
    return n;
}

/* Our ids of the source and target, to Marian's; -1: it has none. */
static int32_t *inverse(const heed__export *x, const heed__export_vocab *v, int64_t ours)
{
    int32_t *to = heed__export_take(x, ours, sizeof *to);
    for (int64_t i = 0; to && i < ours; i++)
        to[i] = -1;
    for (int32_t i = 0; to && i < v->count; i++)
        if (v->entry[i].from >= 0)
            to[v->entry[i].from] = i;
    return to;
}

/* What every sentence may need stands at EOS, which every source has. */
static void write_lists(const heed__export *x, const heed__shortlist *s, const char *path)
{
    const heed__export_vocab *source = &x->vocab[0], *target = &x->vocab[!x->shared];
    int32_t *to = inverse(x, target, s->targets);
    int64_t *offset = heed__export_take(x, source->count + 1, sizeof *offset);
    const int64_t most = s->always_count + s->offset[s->sources];
    int32_t *id = heed__export_take(x, most, sizeof *id), *some;
    some = heed__export_take(x, most, sizeof *some);
    if (!to || !offset || !id || !some)
        return;
    int64_t n = 0, longest = 0;
    for (int32_t i = 0; i < source->count; i++) {
        const int32_t ours = source->entry[i].from;
        int64_t count = 0;
        offset[i] = n;
        for (int64_t k = 0; ours == source->ids.eos && k < s->always_count; k++)
            some[count++] = to[s->always[k]];
        for (int32_t k = ours < 0 ? 0 : s->offset[ours]; ours >= 0 && k < s->offset[ours + 1]; k++)
            some[count++] = to[s->token[k]];
        for (int64_t k = 0; k < count; k++)
            if (some[k] < 0)
                some[k--] = some[--count];
        count = order_ids(some, count, id + n);
        n += count;
        longest = count > longest ? count : longest;
    }
    offset[source->count] = n;
    heed__lex_write(path, 2, longest, source->count, offset, id, x->err);
}

static bool write_shortlist(const heed__export *x)
{
    heed__pathname from, to;
    heed__shortlist s;
    if (x->err->status || heed__pathname_in(from, x->from, HEED_SHORTLIST_FILE, x->err) ||
        heed__pathname_in(to, x->to, "lex.50.50.s2t.bin", x->err) || access(from, F_OK) != 0)
        return false;
    if (heed__shortlist_open(&s, from, x->config.source_vocabulary, x->config.target_vocabulary,
                             NULL, x->err))
        return false;
    write_lists(x, &s, to);
    heed__shortlist_close(&s);
    return !x->err->status;
}

/* ---- the model ---- */

static const char *model_yml(const heed__export *x, size_t *size)
{
    static const char *const activations[] = {
        [HEED_RELU] = "relu", [HEED_GELU] = "gelu", [HEED_SILU] = "swish"};
    const heed_model_config *c = &x->config;
    const heed_transformer_config *t = &c->transformer;
    const bool ssru = t->decoder_unit == HEED_DECODER_UNIT_SSRU;
    char *text = heed__export_take(x, 4096, 1);
    if (!text)
        return NULL;
    const int n = snprintf(
        text, 4096,
        "bert-train-type-embeddings: true\nbert-type-vocab-size: 2\n"
        "dec-cell: %s\ndec-cell-base-depth: 2\ndec-cell-high-depth: 1\n"
        "dec-depth: %lld\ndim-emb: %lld\ndim-rnn: 1024\ndim-vocabs:\n  - %d\n  - %d\n"
        "enc-cell: gru\nenc-cell-depth: 1\nenc-depth: %lld\nenc-type: bidirectional\n"
        "factors-combine: sum\nfactors-dim-emb: 0\ninput-types:\n  []\n"
        "layer-normalization: false\nlemma-dim-emb: 0\noutput-omit-bias: false\n"
        "right-left: false\nskip: false\ntied-embeddings: %s\ntied-embeddings-all: %s\n"
        "tied-embeddings-src: false\ntransformer-aan-activation: swish\n"
        "transformer-aan-depth: 2\ntransformer-aan-nogate: false\n"
        "transformer-decoder-autoreg: %s\ntransformer-decoder-dim-ffn: 0\n"
        "transformer-decoder-ffn-depth: 0\ntransformer-depth-scaling: false\n"
        "transformer-dim-aan: 2048\ntransformer-dim-ffn: %lld\n"
        "transformer-ffn-activation: %s\ntransformer-ffn-depth: 2\n"
        "transformer-guided-alignment-layer: last\ntransformer-heads: %lld\n"
        "transformer-no-projection: false\ntransformer-pool: false\n"
        "transformer-postprocess: %s\ntransformer-postprocess-emb: d\n"
        "transformer-postprocess-top: \"%s\"\ntransformer-preprocess: \"%s\"\n"
        "transformer-rnn-projection: false\ntransformer-tied-layers:\n  []\n"
        "transformer-train-position-embeddings: false\ntransformer-train-positions: false\n"
        "type: transformer\nulr: false\nulr-dim-emb: 0\n"
        "ulr-trainable-transformation: false\nversion: v1.9.56 heed %s\n",
        ssru ? "ssru" : "gru", (long long)c->decoder_layers, (long long)c->d, x->vocab[0].count,
        x->vocab[!x->shared].count, (long long)c->encoder_layers,
        c->tying == HEED_TIE_TARGET ? "true" : "false", c->tying == HEED_TIE_ALL ? "true" : "false",
        ssru ? "rnn" : "self-attention", (long long)t->ff, activations[t->activation],
        (long long)t->heads, t->pre_norm ? "da" : "dan", t->pre_norm ? "n" : "",
        t->pre_norm ? "n" : "", heed_version());
    *size = (size_t)n + 1;
    return text;
}

/* Norms before a sublayer have another ending; those at the top have none. */
static void rename_norms(heed__export *x)
{
    for (int64_t i = 0; x->config.transformer.pre_norm && i < x->count; i++) {
        heed__export_tensor *t = &x->tensor[i];
        if (!strstr(t->name, "_ln_") || strstr(t->name, "_top_"))
            continue;
        const size_t size = strlen(t->name) + 8;
        char *name = heed__export_take(x, (int64_t)size, 1);
        if (!name)
            return;
        snprintf(name, size, "%s_pre", t->name);
        t->name = name;
    }
}

/* Marian has biases everywhere in attention and in the output. */
static void add_biases(heed__export *x)
{
    static const char *const biases[] = {"bq", "bk", "bv", "bo"};
    static const char *const places[] = {"encoder_l%d_self", "decoder_l%d_self",
                                         "decoder_l%d_context"};
    const bool ssru = x->config.transformer.decoder_unit == HEED_DECODER_UNIT_SSRU;
    for (int p = 0; p < 3; p++) {
        const int64_t layers = p ? x->config.decoder_layers : x->config.encoder_layers;
        for (int n = 1; n <= layers && !(p == 1 && ssru); n++)
            for (int b = 0; b < 4; b++) {
                char place[64], name[80];
                snprintf(place, sizeof place, "%.*s%d%s", 9, places[p], n, places[p] + 11);
                snprintf(name, sizeof name, "%s_%s", place, biases[b]);
                heed__export_zeros(x, name, x->config.d);
            }
    }
}

/* Vectors are rows of a matrix in Marian. */
static heed__marian_item item_of(const heed__export_tensor *t, bool int8)
{
    return (heed__marian_item){.name = t->name,
                               .kind = int8 && (t->matrix || t->table) ? HEED__MARIAN_INT8
                                                                       : HEED__MARIAN_FP32,
                               .rank = 2,
                               .rows = t->rows ? t->rows : 1,
                               .cols = t->cols,
                               .value = t->value,
                               .table = t->table};
}

static heed__marian_item multiplier_item(const heed__export *x, const char *name, float value)
{
    const size_t size = strlen(name) + 16;
    char *full = heed__export_take(x, (int64_t)size, 1);
    float *one = heed__export_take(x, 1, sizeof *one);
    if (!full || !one)
        return (heed__marian_item){0};
    snprintf(full, size, "%s_QuantMultA", name);
    *one = value;
    return (heed__marian_item){
        .name = full, .kind = HEED__MARIAN_FP32, .rank = 1, .cols = 1, .value = one};
}

/* Marian quantises the output's table anew, so that its largest value becomes 127.  The last piece,
 * which no text has and whose bias is HEED__NEVER, gets a value that leads to the file's multiplier
 * again. */
static void set_largest(const heed__marian_item *item, float *value)
{
    const float multiplier = heed__marian_multiplier(item);
    value[(item->rows - 1) * item->cols] = 127 / multiplier;
}

/* All tensors and, of an int8 model, their multipliers. */
static heed__marian_item *list_items(const heed__export *x, bool int8, const char *sample,
                                     int64_t *count)
{
    heed__marian_item *item = heed__export_take(x, 2 * x->count + 2, sizeof *item);
    int64_t ranges = 0, n = 0;
    const heed__export_range *range = int8 ? heed__export_ranges(x, sample, &ranges) : NULL;
    size_t size = 0;
    const char *yml = model_yml(x, &size);
    if (!item || !yml || x->err->status)
        return NULL;
    for (int64_t i = 0; i < x->count; i++) {
        item[n] = item_of(&x->tensor[i], int8);
        if (int8 && x->tensor[i].table)
            set_largest(&item[n], x->tensor[i].value);
        n++;
    }
    for (int64_t i = 0; int8 && i < x->count; i++)
        for (int64_t k = 0; k < ranges; k++) {
            const heed__export_tensor *t = &x->tensor[i];
            if (range[k].of != t->of || !(t->matrix || t->table) || !(range[k].multiplier > 0))
                continue;
            item[n++] = multiplier_item(x, t->name, range[k].multiplier);
            if (strcmp(t->name, "Wemb") == 0)
                item[n++] = multiplier_item(x, "none", range[k].multiplier);
        }
    item[n++] = (heed__marian_item){.name = "special:model.yml",
                                    .kind = HEED__MARIAN_TEXT,
                                    .rank = 1,
                                    .cols = (int64_t)size,
                                    .text = yml};
    *count = n;
    return x->err->status ? NULL : item;
}

static void write_decoder_yml(const heed__export *x, const char *model, bool firefox, bool listed)
{
    char text[1024];
    const char *const vocab[] = {x->shared ? "vocab.spm" : "vocab.src.spm",
                                 x->shared ? "vocab.spm" : "vocab.trg.spm"};
    snprintf(text, sizeof text,
             "relative-paths: true\nmodels:\n  - %s\nvocabs:\n  - %s\n  - %s\n%sbeam-size: %d\n"
             "normalize: 1\nword-penalty: 0\nmini-batch: 64\nmaxi-batch: 1000\n"
             "maxi-batch-sort: src\n%s",
             model, vocab[0], vocab[1],
             listed ? "shortlist:\n  - lex.50.50.s2t.bin\n  - 50\n  - 50\n" : "", firefox ? 1 : 4,
             firefox ? "skip-cost: true\ngemm-precision: int8shiftAlphaAll\n" : "");
    heed__export_text(x, "decoder.yml", text);
}

void heed__export_marian(heed__export *x, bool firefox, const char *sample)
{
    static const char *const names[] = {"model.npz", "model.intgemm.alphas.bin"};
    heed__pathname path;
    size_t rules;
    const heed__name_rule *rule = heed__marian_rules(&rules);
    if (!check_form(x) || (firefox && !check_widths(x)))
        return;
    for (int side = 0; side < 2 - x->shared; side++)
        if (!order_vocabulary(x, &x->vocab[side]))
            return;
    heed__export_tensors(x, rule, rules, 1, true, HEED__NEVER);
    add_biases(x);
    heed__export_zeros(x, "decoder_ff_logit_out_b", x->vocab[!x->shared].count);
    rename_norms(x);
    int64_t count;
    const heed__marian_item *item = list_items(x, firefox, sample, &count);
    if (!item || heed__pathname_in(path, x->to, names[firefox], x->err))
        return;
    if (firefox)
        heed__marian_write_bin(path, item, count, x->err);
    else
        heed__marian_write_npz(path, item, count, x->err);
    for (int side = 0; side < 2 - x->shared; side++)
        heed__export_vocabulary(x, side,
                                x->shared ? "vocab.spm"
                                : side    ? "vocab.trg.spm"
                                          : "vocab.src.spm");
    const bool listed = write_shortlist(x);
    write_decoder_yml(x, names[firefox], firefox, listed);
}
