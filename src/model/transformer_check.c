/* transformer_check.c: which configurations are refused, each with what would work.  Values from
 * the command line have passed their ranges already; an embedder's or a file's have not. */
#include "model/transformer.h"

#include "base/error.h"
#include <stdio.h>
#include <unistd.h>

static heed_status check_ranges(const heed_transformer_config *c, heed_error *err)
{
    const struct {
        const char *name;
        int64_t value, least, most;
    } whole[] = {
        {"encoder-layers", c->encoder_layers, 1, 256},
        {"decoder-layers", c->decoder_layers, 1, 256},
        {"d", c->d, 1, 65536},
        {"ff", c->ff, 1, 1048576},
        {"heads", c->heads, 1, 1024},
        {"d-k", c->d_k, 0, 65536},
        {"d-v", c->d_v, 0, 65536},
        {"activation", c->activation, HEED_IDENTITY, HEED_SIGMOID},
        {"norm", c->norm, HEED_NORM_LAYER, HEED_NORM_BATCH},
        {"positions", c->positions, HEED_POSITIONS_NONE, HEED_POSITIONS_LEARNED},
        {"tying", c->tying, HEED_TIE_NONE, HEED_TIE_ALL},
    };
    const struct {
        const char *name;
        double value;
    } rates[] = {
        {"dropout", c->dropout},
        {"attention-dropout", c->attention_dropout},
        {"ff-dropout", c->ff_dropout},
    };
    for (size_t i = 0; i < sizeof whole / sizeof *whole; i++)
        if (whole[i].value < whole[i].least || whole[i].value > whole[i].most)
            return heed__fail(err, HEED_ARGUMENT,
                              "option '--%s' is %lld, expected a whole number from %lld to %lld",
                              whole[i].name, (long long)whole[i].value, (long long)whole[i].least,
                              (long long)whole[i].most);
    for (size_t i = 0; i < sizeof rates / sizeof *rates; i++)
        if (!(rates[i].value >= 0 && rates[i].value <= 0.95))
            return heed__fail(err, HEED_ARGUMENT,
                              "option '--%s' is %g, expected a number from 0 to 0.95",
                              rates[i].name, rates[i].value);
    return HEED_OK;
}

/* The nearest numbers of heads that divide d, on both sides of what was asked for. */
static heed_status check_heads(const heed_transformer_config *c, heed_error *err)
{
    if ((c->d_k && c->d_v) || c->d % c->heads == 0)
        return HEED_OK;
    int64_t fewer = c->heads, more = c->heads;
    while (c->d % fewer)
        fewer--;
    while (more < c->d && c->d % more)
        more++;
    char others[48] = "";
    if (more <= 1024 && more <= c->d)
        snprintf(others, sizeof others, " or %lld", (long long)more);
    return heed__fail(err, HEED_ARGUMENT,
                      "--heads %lld does not divide --d %lld: use --heads %lld%s, or give both "
                      "--d-k and --d-v",
                      (long long)c->heads, (long long)c->d, (long long)fewer, others);
}

static heed_status check_tying(const heed_model_config *config, heed_error *err)
{
    if (config->transformer.tying != HEED_TIE_ALL ||
        config->source_vocabulary == config->target_vocabulary)
        return HEED_OK;
    return heed__fail(err, HEED_ARGUMENT,
                      "--tying all needs one vocabulary for both sides, found %lld source and %lld "
                      "target pieces: use a joint vocabulary, or --tying target",
                      (long long)config->source_vocabulary, (long long)config->target_vocabulary);
}

/* In double: absurd sizes overflow integers before they are refused. */
static double parameters(const heed_model_config *config)
{
    const heed_transformer_config *c = &config->transformer;
    const double d = (double)c->d, heads = (double)c->heads;
    const double d_k = heads * (double)(c->d_k ? c->d_k : c->d / c->heads);
    const double d_v = heads * (double)(c->d_v ? c->d_v : c->d / c->heads);
    const double attention = 2 * d * (d_k + d_v), ffn = 2 * d * (double)c->ff;
    const double tables = c->tying == HEED_TIE_ALL      ? 0
                          : c->tying == HEED_TIE_TARGET ? (double)config->source_vocabulary
                                                        : (double)config->source_vocabulary +
                                                              (double)config->target_vocabulary;
    return (double)c->encoder_layers * (attention + ffn) +
           (double)c->decoder_layers * (2 * attention + ffn) +
           d * (tables + (double)config->target_vocabulary);
}

/* Without this, a machine that lends more memory than it has would kill the process instead. */
static heed_status check_memory(const heed_model_config *config, heed_error *err)
{
    const double there = (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE);
    const double count = parameters(config);
    const double positions = config->transformer.positions == HEED_POSITIONS_NONE
                                 ? 0
                                 : (double)config->longest * (double)config->transformer.d;
    const double bytes = (2 * count + positions) * sizeof(heed_real);
    if (bytes <= there)
        return HEED_OK;
    return heed__fail(err, HEED_MEMORY,
                      "%.4g million parameters take %.4g GB with their gradients, this machine has "
                      "%.3g GB: choose a smaller --d, --ff, --longest, vocabulary or fewer layers",
                      count / 1e6, bytes / 1e9, there / 1e9);
}

heed_status heed__transformer_check(const heed_model_config *config, heed_error *err)
{
    const heed_transformer_config *c = &config->transformer;
    heed_status status = check_ranges(c, err);
    if (!status)
        status = check_heads(c, err);
    if (!status)
        status = check_tying(config, err);
    return status ? status : check_memory(config, err);
}
