/* transformer_check.c: which models made of stacks are refused, each with what would work, and what
 * can be said of one from its configuration: its size, and a line for people. */
#include "model/transformer.h"

#include "attention/attend.h"
#include "base/error.h"
#include <stdio.h>

/* The nearest numbers of heads that divide d, on both sides of the given one. */
static heed_status check_heads(int64_t d, const heed_transformer_config *c, heed_error *err)
{
    if ((c->d_k && c->d_v) || d % c->heads == 0)
        return HEED_OK;
    int64_t fewer = c->heads, more = c->heads;
    while (d % fewer)
        fewer--;
    while (more < d && d % more)
        more++;
    char others[48] = "";
    if (more <= 1024 && more <= d)
        snprintf(others, sizeof others, " or %lld", (long long)more);
    return heed__fail(err, HEED_ARGUMENT,
                      "--heads %lld does not divide --d %lld: use --heads %lld%s, or give both "
                      "--d-k and --d-v",
                      (long long)c->heads, (long long)d, (long long)fewer, others);
}

/* What recurrent decoders alone have is refused here; the rest where the slots are put together. */
static heed_status check_slot(heed_attention_slot slot, const heed_slot_spec *spec,
                              const char *option, heed_error *err)
{
    for (int i = 0; i < spec->count; i++) {
        const heed__slot_row *row = heed__row_of(slot, spec->term[i].kind);
        if (row && !(row->info.can & HEED_CAN_STACKS))
            return heed__fail(err, HEED_ARGUMENT,
                              "--%s %s follows a decoder from step to step: use --arch rnn, or "
                              "another one of 'heed list attention'",
                              option, row->info.name);
    }
    return HEED_OK;
}

static heed_status check_slots(const heed_model_config *config, heed_error *err)
{
    const heed_attention_config *a = &config->attention;
    const heed_transformer_config *c = &config->transformer;
    heed_status status = check_slot(HEED_SLOT_PATTERN, &a->pattern, "attention-pattern", err);
    if (!status)
        status = check_slot(HEED_SLOT_NORMALISER, &a->normaliser, "attention-normaliser", err);
    if (status)
        return status;
    if (a->adaptive_span && heed__slot_kind(&a->position_bias) != HEED_BIAS_NONE)
        return heed__fail(err, HEED_ARGUMENT,
                          "--adaptive-span %lld takes the place of a position bias: use "
                          "--position-bias none",
                          (long long)a->adaptive_span);
    if (c->kv_heads && c->heads % c->kv_heads)
        return heed__fail(err, HEED_ARGUMENT,
                          "--kv-heads %lld does not divide --heads %lld: use a divisor, or 0 for "
                          "all of them",
                          (long long)c->kv_heads, (long long)c->heads);
    const int64_t d_k = c->d_k ? c->d_k : config->d / c->heads;
    const int64_t d_v = c->d_v ? c->d_v : config->d / c->heads;
    const int64_t shared = c->kv_heads ? c->kv_heads : c->heads;
    heed_attend_options o = {.score = a->score,
                             .queries = a->queries,
                             .memory = a->memory,
                             .pattern = a->pattern,
                             .position_bias = heed__position_bias(config),
                             .normaliser = a->normaliser,
                             .heads = (int)c->heads,
                             .kv_heads = (int)shared,
                             .query_d = c->heads * d_k,
                             .key_d = shared * d_k,
                             .value_d = shared * d_v,
                             .projected = true,
                             .beta = a->beta,
                             .longest = config->longest,
                             .dropout = a->dropout};
    if (config->arch != HEED_ARCH_DECODER) /* the encoder */
        status = heed__attend_check(&o, err);
    o.causal = true;
    return status || config->arch == HEED_ARCH_ENCODER ? status : heed__attend_check(&o, err);
}

/* Pairs of elements are turned. */
static heed_status check_rotary(int64_t d, const heed_transformer_config *c, heed_error *err)
{
    const int64_t d_k = c->d_k ? c->d_k : d / c->heads;
    if (!heed_positions_are_rotary((heed_positions)c->positions))
        return HEED_OK;
    if (d_k % 2)
        return heed__fail(err, HEED_ARGUMENT,
                          "--positions rotary turns pairs of elements, and a head has %lld: use an "
                          "even --d-k, or other --heads",
                          (long long)d_k);
    if (c->rope_base != 0 && !(c->rope_base > 1))
        return heed__fail(err, HEED_ARGUMENT, "--rope-base is %g, expected more than 1",
                          c->rope_base);
    return HEED_OK;
}

/* Features have no vocabulary to answer with, and no types. */
static heed_status check_features(const heed_model_config *c, heed_error *err)
{
    if (c->features && !c->labels)
        return heed__fail(err, HEED_ARGUMENT,
                          "an encoder of %lld features has no vocabulary to answer with: give it "
                          "labels",
                          (long long)c->features);
    if (c->features && c->transformer.types)
        return heed__fail(err, HEED_ARGUMENT,
                          "--types %lld are types of tokens, and this encoder reads features: use "
                          "--types 0",
                          (long long)c->transformer.types);
    return HEED_OK;
}

heed_status heed__transformer_check(const heed_model_config *config, heed_error *err)
{
    heed_status status = check_heads(config->d, &config->transformer, err);
    if (!status)
        status = check_rotary(config->d, &config->transformer, err);
    if (!status)
        status = check_slots(config, err);
    return status ? status : check_features(config, err);
}

/* Layers of each stack; 0 where there is none. */
static int64_t encoder_layers(const heed_model_config *c)
{
    return c->arch == HEED_ARCH_DECODER ? 0 : c->encoder_layers;
}

static int64_t decoder_layers(const heed_model_config *c)
{
    return c->arch == HEED_ARCH_ENCODER ? 0 : c->decoder_layers;
}

/* Rows of embeddings and output. */
static double table_rows(const heed_model_config *c)
{
    if (c->arch == HEED_ARCH_TRANSFORMER)
        return heed__two_sided_rows(c);
    const double pieces = (double)(c->source_vocabulary + c->target_vocabulary);
    const double outputs = (double)c->labels + (c->labels || c->tying ? 0 : pieces);
    return pieces + outputs + (double)c->features;
}

/* What a memory or projections of its own add to a layer with keys of key_d and values of value_d
 * columns. */
static double memory_size(const heed_model_config *config, double key_d, double value_d)
{
    const heed_transformer_config *c = &config->transformer;
    const heed_slot_spec *memory = &config->attention.memory;
    const double shared = c->kv_heads ? (double)c->kv_heads / (double)c->heads : 1;
    const double products = key_d / shared + key_d + value_d; /* of queries, keys and values */
    const double n = (double)memory->term[0].number[0], d = (double)config->d;
    const double heads = (double)(c->kv_heads ? c->kv_heads : c->heads);
    if (heed__slot_kind(&config->attention.pattern) == HEED_PATTERN_LONGFORMER)
        return d * products;
    switch ((heed_memory_kind)heed__slot_kind(memory)) {
    case HEED_MEMORY_PERSISTENT:
        return n * (key_d + value_d);
    case HEED_MEMORY_MCA:
        return n * (key_d * key_d + value_d * value_d) / heads + key_d + value_d;
    case HEED_MEMORY_LINFORMER:
        return (memory->term[0].number[1] ? 1 : 2) * n * (double)config->longest;
    case HEED_MEMORY_ISAB:
        return (n + 4 * d + 2 * (double)c->ff) * d;
    case HEED_MEMORY_LUNA:
        return (n + 4 * d) * d;
    case HEED_MEMORY_POOLINGFORMER:
        return value_d / shared * products;
    case HEED_MEMORY_STATES:
        break;
    }
    return 0;
}

heed__model_size heed__transformer_size(const heed_model_config *config)
{
    const heed_transformer_config *c = &config->transformer;
    const double d = (double)config->d, heads = (double)c->heads;
    const double d_k = heads * (double)(c->d_k ? c->d_k : config->d / c->heads);
    const double d_v = heads * (double)(c->d_v ? c->d_v : config->d / c->heads);
    const double shared = c->kv_heads ? (double)c->kv_heads / heads : 1;
    const bool location = config->attention.score == HEED_SCORE_LOCATION;
    const double places = location ? d_k * (double)config->longest : 0;
    const double attention = d * (d_k + d_v) * (1 + shared) + places +
                             memory_size(config, shared * d_k, shared * d_v),
                 own = c->decoder_unit == HEED_DECODER_UNIT_SSRU ? 2 * d * d : attention,
                 ffn = (c->ff_gated ? 3 : 2) * d * (double)c->ff,
                 cross = config->arch == HEED_ARCH_TRANSFORMER ? attention : 0;
    return (heed__model_size){.trained = (double)encoder_layers(config) * (attention + ffn) +
                                         (double)decoder_layers(config) * (own + cross + ffn) +
                                         (c->head_transform ? d * d : 0),
                              .table_rows = table_rows(config) + (double)c->types,
                              .table_d = d,
                              .fixed =
                                  c->positions == HEED_POSITIONS_NONE ||
                                          heed_positions_are_rotary((heed_positions)c->positions)
                                      ? 0
                                      : (double)config->longest * d,
                              .widths = "--ff, "};
}

void heed__transformer_summary(const heed_model_config *config, char text[HEED_MODEL_SUMMARY])
{
    static const char *const scores[] = {HEED_SCORE_WORDS}, *const archs[] = {HEED_ARCH_WORDS};
    const heed_transformer_config *c = &config->transformer;
    const int score = config->attention.score;
    char layers[48];
    if (config->arch == HEED_ARCH_TRANSFORMER)
        snprintf(layers, sizeof layers, "%lld+%lld", (long long)config->encoder_layers,
                 (long long)config->decoder_layers);
    else
        snprintf(layers, sizeof layers, "%lld",
                 (long long)(encoder_layers(config) + decoder_layers(config)));
    const bool ssru = decoder_layers(config) && c->decoder_unit == HEED_DECODER_UNIT_SSRU;
    snprintf(text, HEED_MODEL_SUMMARY,
             "%s, %s layers%s, d %lld, ff %lld%s, %lld heads, %s-norm%s%s", archs[config->arch],
             layers, ssru ? " (decoder: SSRU)" : "", (long long)config->d, (long long)c->ff,
             c->ff_gated ? " gated" : "", (long long)c->heads, c->pre_norm ? "pre" : "post",
             score == HEED_SCORE_SCALED_DOT ? "" : ", score ",
             score == HEED_SCORE_SCALED_DOT ? "" : scores[score]);
}
