/* registry.c: what can stand in each slot of attention, what it can do, and which combinations are
 * refused: a message names those that would work. */
#include "attention/attend.h"

#include "base/error.h"
#include <stdio.h>

#define ALWAYS (HEED_CAN_CROSS | HEED_CAN_CACHE | HEED_CAN_WEIGHTS)
#define SCORE (ALWAYS | HEED_CAN_CAUSAL | HEED_CAN_HEADS | HEED_CAN_LOGS)

/* Slot by slot; within one, in the order of its heed_..._kind. */
static const heed_attention_info rows[] = {
    {HEED_SLOT_MEMORY, "states", "K = V = H, or projections of them", "Bahdanau et al. 2015",
     "nothing", SCORE | HEED_CAN_WIDTHS | HEED_CAN_FUSED},

    {HEED_SLOT_PATTERN, "global", "query i sees every key of its sentence", "Bahdanau et al. 2015",
     "S pairs a query", SCORE | HEED_CAN_WIDTHS | HEED_CAN_FUSED},
    {HEED_SLOT_PATTERN, "local-m", "query i sees keys p-D to p+D, p = i", "Luong et al. 2015",
     "2D+1 pairs a query", SCORE | HEED_CAN_WIDTHS},
    {HEED_SLOT_PATTERN, "local-p",
     "p = S sigmoid(v.tanh(W q)), keys p-D to p+D, weights times exp(-(j-p)^2 / 2 (D/2)^2)",
     "Luong et al. 2015", "2D+1 pairs and a W a query", ALWAYS | HEED_CAN_HEADS | HEED_CAN_WIDTHS},

    {HEED_SLOT_SCORE, "scaled-dot", "q.k / sqrt(Dk)", "Vaswani et al. 2017", "Dk a pair",
     SCORE | HEED_CAN_FUSED},
    {HEED_SLOT_SCORE, "dot", "q.k", "Luong et al. 2015", "Dk a pair", SCORE | HEED_CAN_FUSED},
    {HEED_SLOT_SCORE, "general", "q W k", "Luong et al. 2015", "Dk a pair and a W a query",
     SCORE | HEED_CAN_WIDTHS | HEED_CAN_FUSED},
    {HEED_SLOT_SCORE, "additive", "v.tanh(W q + U k)", "Bahdanau et al. 2015",
     "A tanh a pair, a W a query, a U a key", SCORE | HEED_CAN_WIDTHS},
    {HEED_SLOT_SCORE, "cosine", "beta q.k / |q||k|", "Graves et al. 2014", "Dk a pair",
     SCORE | HEED_CAN_FUSED},
    {HEED_SLOT_SCORE, "location", "(W q)[j], whatever key j is", "Luong et al. 2015", "a W a query",
     SCORE | HEED_CAN_WIDTHS},

    {HEED_SLOT_BIAS, "table", "a number for each head, query and key, added to the score",
     "Raffel et al. 2020", "one a pair", SCORE | HEED_CAN_FUSED},

    {HEED_SLOT_NORMALISER, "soft", "softmax over the keys that a query sees",
     "Bahdanau et al. 2015", "an exp a pair", SCORE | HEED_CAN_WIDTHS | HEED_CAN_FUSED},
    {HEED_SLOT_NORMALISER, "hard",
     "one key, drawn in training (gradient by REINFORCE, moving baseline), else the likeliest",
     "Xu et al. 2015", "an exp a pair", SCORE | HEED_CAN_WIDTHS},
};
#define N_ROWS ((int)(sizeof rows / sizeof *rows))

int heed_attention_count(void)
{
    return N_ROWS;
}

heed_attention_info heed_attention_describe(int i)
{
    return i >= 0 && i < N_ROWS ? rows[i] : (heed_attention_info){0};
}

const char *heed_attention_slot_name(heed_attention_slot slot)
{
    static const char *const names[] = {"memory", "pattern", "score", "bias", "normaliser"};
    return slot <= HEED_SLOT_NORMALISER ? names[slot] : NULL;
}

const char *heed_attention_ability_name(heed_attention_ability ability)
{
    static const char *const names[] = {"causal", "cross",  "cache", "weights",
                                        "heads",  "widths", "logs",  "fused"};
    for (int i = 0; i < (int)(sizeof names / sizeof *names); i++)
        if (ability == 1u << i)
            return names[i];
    return NULL;
}

const heed_attention_info *heed__attention_row(heed_attention_slot slot, int kind)
{
    for (int i = 0; i < N_ROWS; i++)
        if (rows[i].slot == slot && kind-- == 0)
            return &rows[i];
    return NULL;
}

/* ---- what goes together ---- */

/* "general, additive or location": the rows of a slot that can do all of this. */
static const char *those_that_can(heed_attention_slot slot, unsigned can, char text[128])
{
    const char *names[N_ROWS];
    int n = 0;
    for (int i = 0; i < N_ROWS; i++)
        if (rows[i].slot == slot && (rows[i].can & can) == can)
            names[n++] = rows[i].name;
    int at = 0;
    text[0] = '\0';
    for (int i = 0; i < n; i++)
        at += snprintf(text + at, 128 - (size_t)at, "%s%s",
                       i == 0       ? ""
                       : i == n - 1 ? " or "
                                    : ", ",
                       names[i]);
    return text;
}

static heed_status check_kinds(const heed_attend_options *o, heed_error *err)
{
    const struct {
        heed_attention_slot slot;
        int kind;
    } kinds[] = {{HEED_SLOT_SCORE, o->score},
                 {HEED_SLOT_PATTERN, o->pattern},
                 {HEED_SLOT_NORMALISER, o->normaliser}};
    for (int i = 0; i < 3; i++) {
        char text[128];
        if (kinds[i].kind < 0 || !heed__attention_row(kinds[i].slot, kinds[i].kind))
            return heed__fail(err, HEED_ARGUMENT, "attention: there is no %s %d, only %s",
                              heed_attention_slot_name(kinds[i].slot), kinds[i].kind,
                              those_that_can(kinds[i].slot, 0, text));
    }
    return HEED_OK;
}

static heed_status check_sizes(const heed_attend_options *o, heed_error *err)
{
    const int heads = o->heads ? o->heads : 1;
    if (heads < 1 || o->query_d < 1 || o->key_d < 1 || o->query_d % heads || o->key_d % heads ||
        o->d < 0 || o->d % heads)
        return heed__fail(err, HEED_ARGUMENT,
                          "attention: queries of %lld columns, keys of %lld, additive width %lld, "
                          "expected multiples of %d heads",
                          (long long)o->query_d, (long long)o->key_d, (long long)o->d, heads);
    if (!(o->dropout >= 0 && o->dropout < 1))
        return heed__fail(err, HEED_ARGUMENT, "attention: dropout is %g, expected 0 <= rate < 1",
                          o->dropout);
    if (!(o->beta >= 0))
        return heed__fail(err, HEED_ARGUMENT, "attention: beta is %g, expected 0 or more", o->beta);
    if (o->window < 0 || !(o->deviation >= 0))
        return heed__fail(err, HEED_ARGUMENT,
                          "attention: window %lld and deviation %g, expected none below 0",
                          (long long)o->window, o->deviation);
    if (o->score == HEED_SCORE_LOCATION && o->longest < 1)
        return heed__fail(err, HEED_ARGUMENT,
                          "attention: location needs `longest`, the keys that a segment may have, "
                          "found %lld",
                          (long long)o->longest);
    return HEED_OK;
}

heed_status heed__attend_check(const heed_attend_options *o, heed_error *err)
{
    heed_status status = check_kinds(o, err);
    if (status || (status = check_sizes(o, err)))
        return status;
    const heed_attention_info *score = heed__attention_row(HEED_SLOT_SCORE, o->score);
    const heed_attention_info *pattern = heed__attention_row(HEED_SLOT_PATTERN, o->pattern);
    char text[128];
    const bool additive = o->score == HEED_SCORE_ADDITIVE;
    if (o->query_d != o->key_d && (!(score->can & HEED_CAN_WIDTHS) || (additive && o->projected)))
        return heed__fail(err, HEED_ARGUMENT,
                          "attention: the %s score needs queries and keys of one width, found %lld "
                          "and %lld: use %s",
                          score->name, (long long)o->query_d, (long long)o->key_d,
                          those_that_can(HEED_SLOT_SCORE, HEED_CAN_WIDTHS, text));
    if (o->causal && !(pattern->can & HEED_CAN_CAUSAL))
        return heed__fail(err, HEED_ARGUMENT,
                          "attention: %s needs to know how long the sequence is and cannot be "
                          "causal: use %s",
                          pattern->name, those_that_can(HEED_SLOT_PATTERN, HEED_CAN_CAUSAL, text));
    if (o->normaliser == HEED_NORMALISE_HARD && !(pattern->can & HEED_CAN_LOGS))
        return heed__fail(err, HEED_ARGUMENT,
                          "attention: hard attention draws from weights that sum to 1, those of %s "
                          "do not: use %s",
                          pattern->name, those_that_can(HEED_SLOT_PATTERN, HEED_CAN_LOGS, text));
    return HEED_OK;
}
