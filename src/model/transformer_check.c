/* transformer_check.c: which models made of stacks are refused, each with what would work, and what
 * can be said of one from its configuration: its size, and a line for people. */
#include "model/transformer.h"

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

/* Attention over sentences as they are: what looks elsewhere belongs to recurrent decoders. */
static heed_status check_slots(const heed_attention_config *a, heed_error *err)
{
    if (a->pattern != HEED_PATTERN_GLOBAL)
        return heed__fail(err, HEED_ARGUMENT,
                          "--attention-window local-m and local-p follow a decoder from step to "
                          "step: use --arch rnn, or --attention-window global");
    if (a->normaliser != HEED_NORMALISE_SOFT)
        return heed__fail(err, HEED_ARGUMENT,
                          "--attention-choice hard needs one choice a step to reward: use --arch "
                          "rnn, or --attention-choice soft");
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
        status = check_slots(&config->attention, err);
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

heed__model_size heed__transformer_size(const heed_model_config *config)
{
    const heed_transformer_config *c = &config->transformer;
    const double d = (double)config->d, heads = (double)c->heads;
    const double d_k = heads * (double)(c->d_k ? c->d_k : config->d / c->heads);
    const double d_v = heads * (double)(c->d_v ? c->d_v : config->d / c->heads);
    const bool location = config->attention.score == HEED_SCORE_LOCATION;
    const double places = location ? d_k * (double)config->longest : 0;
    const double attention = 2 * d * (d_k + d_v) + places,
                 ffn = (c->ff_gated ? 3 : 2) * d * (double)c->ff,
                 cross = config->arch == HEED_ARCH_TRANSFORMER ? attention : 0;
    return (heed__model_size){
        .trained = (double)encoder_layers(config) * (attention + ffn) +
                   (double)decoder_layers(config) * (attention + cross + ffn) +
                   (c->head_transform ? d * d : 0),
        .table_rows = table_rows(config) + (double)c->types,
        .table_d = d,
        .fixed = c->positions == HEED_POSITIONS_NONE ? 0 : (double)config->longest * d,
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
    snprintf(text, HEED_MODEL_SUMMARY, "%s, %s layers, d %lld, ff %lld%s, %lld heads, %s-norm%s%s",
             archs[config->arch], layers, (long long)config->d, (long long)c->ff,
             c->ff_gated ? " gated" : "", (long long)c->heads, c->pre_norm ? "pre" : "post",
             score == HEED_SCORE_SCALED_DOT ? "" : ", score ",
             score == HEED_SCORE_SCALED_DOT ? "" : scores[score]);
}
