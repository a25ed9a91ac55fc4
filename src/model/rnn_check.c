/* rnn_check.c: which recurrent translators are refused, each with what would work, and what follows
 * from a configuration: widths, size, attention, a line for people. */
#include "model/rnn.h"

#include "attention/attend.h"
#include "base/error.h"
#include <stdio.h>

int64_t heed__rnn_embedding_d(const heed_model_config *config)
{
    return config->rnn.embedding ? config->rnn.embedding : config->d;
}

/* Bahdanau's readout is as wide as an embedding; the others show a state. */
int64_t heed__rnn_output_d(const heed_model_config *config)
{
    return config->rnn.attend == HEED_ATTEND_BEFORE ? heed__rnn_embedding_d(config) : config->d;
}

heed_attend_options heed__rnn_attention(const heed_model_config *config)
{
    const heed_attention_config *a = &config->attention;
    return (heed_attend_options){.score = a->score,
                                 .memory = a->memory,
                                 .pattern = a->pattern,
                                 .normaliser = a->normaliser,
                                 .query_d = config->d,
                                 .key_d = (config->rnn.bidirectional ? 2 : 1) * config->d,
                                 .d = config->d,
                                 .beta = a->beta,
                                 .value_d = (config->rnn.bidirectional ? 2 : 1) * config->d,
                                 .longest = config->longest,
                                 .dropout = a->dropout,
                                 .single = config->rnn.attend == HEED_ATTEND_BEFORE ||
                                           config->rnn.input_feeding};
}

heed_status heed__rnn_check(const heed_model_config *config, heed_error *err)
{
    const heed_rnn_config *c = &config->rnn;
    const int64_t e = heed__rnn_embedding_d(config), out = heed__rnn_output_d(config);
    const int64_t layers = config->encoder_layers > config->decoder_layers ? config->encoder_layers
                                                                           : config->decoder_layers;
    if (layers > HEED_RNN_MAX_LAYERS)
        return heed__fail(err, HEED_ARGUMENT,
                          "--arch rnn takes up to %d layers on either side, found %lld",
                          HEED_RNN_MAX_LAYERS, (long long)layers);
    if (c->reverse && c->bidirectional)
        return heed__fail(err, HEED_ARGUMENT,
                          "--reverse does nothing where both directions are read: leave out "
                          "--reverse or --bidirectional");
    if (c->input_feeding && c->attend != HEED_ATTEND_AFTER)
        return heed__fail(err, HEED_ARGUMENT,
                          "--input-feeding feeds what --attend after makes: use both, or neither");
    if (config->tying != HEED_TIE_NONE && e != out)
        return heed__fail(err, HEED_ARGUMENT,
                          "--tying %s makes the embedding of the target the output projection, "
                          "which sees %lld columns: use --embedding %lld, or --tying none",
                          config->tying == HEED_TIE_ALL ? "all" : "target", (long long)out,
                          (long long)out);
    if (c->attend == HEED_ATTEND_NEVER)
        return HEED_OK;
    const heed_attend_options o = heed__rnn_attention(config);
    return heed__attend_check(&o, err);
}

/* A cell's weights: gates x (what goes in + D) x D. */
heed__model_size heed__rnn_size(const heed_model_config *config)
{
    const double d = (double)config->d, e = (double)heed__rnn_embedding_d(config);
    const double gates = config->rnn.cell == HEED_RNN_LSTM ? 4 : 3;
    const double ways = config->rnn.bidirectional ? 2 : 1, seen = ways * d;
    const bool location = config->attention.score == HEED_SCORE_LOCATION;
    const double first = gates * d * (e + d),
                 attention = 2 * d * seen + gates * d * (seen + d) + 2 * d * (d + e + seen) +
                             (location ? d * (double)config->longest : 0);
    return (heed__model_size){
        .trained = ways * (first + ((double)config->encoder_layers - 1) * gates * d * (seen + d)) +
                   first + ((double)config->decoder_layers - 1) * gates * d * 2 * d + attention,
        .table_rows = heed__two_sided_rows(config),
        .table_d = e > d ? e : d,
        .widths = "--embedding, "};
}

void heed__rnn_summary(const heed_model_config *config, char text[HEED_MODEL_SUMMARY])
{
    static const char *const cells[] = {HEED_RNN_CELL_WORDS},
                             *const attends[] = {HEED_ATTEND_WORDS},
                             *const scores[] = {HEED_SCORE_WORDS};
    char pattern[HEED_OPTION_SPEC_TEXT], choice[HEED_OPTION_SPEC_TEXT];
    const heed_rnn_config *c = &config->rnn;
    const heed_attention_config *a = &config->attention;
    int n = snprintf(text, HEED_MODEL_SUMMARY,
                     "rnn, %lld+%lld layers of %s, d %lld, embedding %lld%s%s",
                     (long long)config->encoder_layers, (long long)config->decoder_layers,
                     cells[c->cell], (long long)config->d, (long long)heed__rnn_embedding_d(config),
                     c->bidirectional ? ", both directions" : "", c->reverse ? ", reversed" : "");
    if (c->attend == HEED_ATTEND_NEVER)
        snprintf(text + n, HEED_MODEL_SUMMARY - (size_t)n, ", no attention");
    else
        snprintf(text + n, HEED_MODEL_SUMMARY - (size_t)n, ", attends %s the step: %s, %s, %s%s",
                 attends[c->attend], scores[a->score],
                 heed_slot_format(HEED_SLOT_PATTERN, &a->pattern, pattern),
                 heed_slot_format(HEED_SLOT_NORMALISER, &a->normaliser, choice),
                 c->input_feeding ? ", input feeding" : "");
}
