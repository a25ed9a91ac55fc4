/* transformer_check.c: which Transformers are refused, each with what would work, and what can be
 * said of one from its configuration: its size, and a line for people. */
#include "model/transformer.h"

#include "base/error.h"
#include <stdio.h>

/* The nearest numbers of heads that divide d, on both sides of what was asked for. */
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

heed_status heed__transformer_check(const heed_model_config *config, heed_error *err)
{
    heed_status status = check_heads(config->d, &config->transformer, err);
    return status ? status : check_slots(&config->attention, err);
}

heed__model_size heed__transformer_size(const heed_model_config *config)
{
    const heed_transformer_config *c = &config->transformer;
    const double d = (double)config->d, heads = (double)c->heads;
    const double d_k = heads * (double)(c->d_k ? c->d_k : config->d / c->heads);
    const double d_v = heads * (double)(c->d_v ? c->d_v : config->d / c->heads);
    const bool location = config->attention.score == HEED_SCORE_LOCATION;
    const double places = location ? d_k * (double)config->longest : 0;
    const double attention = 2 * d * (d_k + d_v) + places, ffn = 2 * d * (double)c->ff;
    return (heed__model_size){
        .trained = (double)config->encoder_layers * (attention + ffn) +
                   (double)config->decoder_layers * (2 * attention + ffn),
        .table_d = d,
        .fixed = c->positions == HEED_POSITIONS_NONE ? 0 : (double)config->longest * d,
        .widths = "--ff, "};
}

void heed__transformer_summary(const heed_model_config *config, char text[HEED_MODEL_SUMMARY])
{
    static const char *const scores[] = {HEED_SCORE_WORDS};
    const heed_transformer_config *c = &config->transformer;
    const int score = config->attention.score;
    snprintf(text, HEED_MODEL_SUMMARY,
             "transformer, %lld+%lld layers, d %lld, ff %lld, %lld heads, %s-norm%s%s",
             (long long)config->encoder_layers, (long long)config->decoder_layers,
             (long long)config->d, (long long)c->ff, (long long)c->heads,
             c->pre_norm ? "pre" : "post", score == HEED_SCORE_SCALED_DOT ? "" : ", score ",
             score == HEED_SCORE_SCALED_DOT ? "" : scores[score]);
}
