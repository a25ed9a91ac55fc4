/* registry.c: what can stand in each slot of attention, what it can do, and which combinations are
 * refused: a message names those that would work. */
#include "attention/attend.h"

#include "base/error.h"
#include <stdio.h>

#define POINTER(name) &heed__##name,
static const heed__slot_row *const rows[] = {HEED_ATTENTION_ROWS(POINTER)};
#define N_ROWS ((int)(sizeof rows / sizeof *rows))

int heed_attention_count(void)
{
    return N_ROWS;
}

heed_attention_info heed_attention_describe(int i)
{
    return i >= 0 && i < N_ROWS ? rows[i]->info : (heed_attention_info){0};
}

const char *heed_attention_slot_name(heed_attention_slot slot)
{
    static const char *const names[] = {"queries", "memory", "pattern",
                                        "score",   "bias",   "normaliser"};
    return slot <= HEED_SLOT_NORMALISER ? names[slot] : NULL;
}

const char *heed_attention_ability_name(heed_attention_ability ability)
{
    static const char *const names[] = {"causal", "cross", "cache", "weights", "heads",
                                        "widths", "logs",  "fused", "stacks",  "union"};
    for (int i = 0; i < (int)(sizeof names / sizeof *names); i++)
        if (ability == 1u << i)
            return names[i];
    return NULL;
}

const heed__slot_row *heed__row_of(heed_attention_slot slot, int kind)
{
    for (int i = 0; kind >= 0 && i < N_ROWS; i++)
        if (rows[i]->info.slot == slot && kind-- == 0)
            return rows[i];
    return NULL;
}

const heed__score *heed__score_of(const heed_attend_layer *l)
{
    return heed__row_of(HEED_SLOT_SCORE, l->options.score)->score;
}

/* What all terms can. */
static unsigned terms_can(heed_attention_slot slot, const heed_slot_spec *spec)
{
    unsigned can = heed__row_of(slot, heed__slot_kind(spec))->info.can;
    for (int i = 1; i < spec->count; i++)
        can &= heed__row_of(slot, spec->term[i].kind)->info.can;
    return can;
}

unsigned heed__attend_can(const heed_attend_options *o)
{
    return heed__row_of(HEED_SLOT_SCORE, o->score)->info.can &
           terms_can(HEED_SLOT_QUERIES, &o->queries) & terms_can(HEED_SLOT_MEMORY, &o->memory) &
           terms_can(HEED_SLOT_PATTERN, &o->pattern) &
           terms_can(HEED_SLOT_BIAS, &o->position_bias) &
           terms_can(HEED_SLOT_NORMALISER, &o->normaliser);
}

/* ---- what goes together ---- */

const char *heed__rows_that_can(heed_attention_slot slot, unsigned can, char text[HEED__ROWS_TEXT])
{
    const char *names[N_ROWS];
    int n = 0;
    for (int i = 0; i < N_ROWS; i++)
        if (rows[i]->info.slot == slot && (rows[i]->info.can & can) == can)
            names[n++] = rows[i]->info.name;
    size_t at = 0;
    text[0] = '\0';
    for (int i = 0; i < n && at < HEED__ROWS_TEXT; i++)
        at += (size_t)snprintf(text + at, HEED__ROWS_TEXT - at, "%s%s",
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
        heed_slot_spec spec;
    } slots[] = {{HEED_SLOT_SCORE, {1, {{o->score, {0}}}}}, {HEED_SLOT_PATTERN, o->pattern},
                 {HEED_SLOT_QUERIES, o->queries},           {HEED_SLOT_MEMORY, o->memory},
                 {HEED_SLOT_BIAS, o->position_bias},        {HEED_SLOT_NORMALISER, o->normaliser}};
    heed_error why = {0};
    for (size_t i = 0; i < sizeof slots / sizeof *slots; i++)
        if (heed__slot_check(slots[i].slot, &slots[i].spec, &why))
            return heed__fail(err, HEED_ARGUMENT, "attention: %s", why.text);
    return HEED_OK;
}

static heed_status check_sizes(const heed_attend_options *o, heed_error *err)
{
    const int heads = o->heads ? o->heads : 1, kv_heads = o->kv_heads ? o->kv_heads : heads;
    const heed_attention_info *memory =
        &heed__row_of(HEED_SLOT_MEMORY, heed__slot_kind(&o->memory))->info;
    if (heads < 1 || o->query_d < 1 || o->key_d < 1 || o->query_d % heads || o->d < 0 ||
        o->d % heads)
        return heed__fail(err, HEED_ARGUMENT,
                          "attention: queries of %lld columns, keys of %lld, additive width %lld, "
                          "expected multiples of %d heads",
                          (long long)o->query_d, (long long)o->key_d, (long long)o->d, heads);
    if (kv_heads < 1 || heads % kv_heads || o->key_d % kv_heads || o->value_d % kv_heads)
        return heed__fail(err, HEED_ARGUMENT,
                          "attention: %d heads, keys of %lld columns and values of %lld, expected "
                          "multiples of %d heads of keys and values",
                          heads, (long long)o->key_d, (long long)o->value_d, kv_heads);
    if (!(o->dropout >= 0 && o->dropout < 1))
        return heed__fail(err, HEED_ARGUMENT, "attention: dropout is %g, expected 0 <= rate < 1",
                          o->dropout);
    if (!(o->beta >= 0) || !(o->deviation >= 0))
        return heed__fail(err, HEED_ARGUMENT,
                          "attention: beta is %g and deviation %g, expected 0 or more", o->beta,
                          o->deviation);
    if (o->score == HEED_SCORE_LOCATION && o->longest < 1)
        return heed__fail(err, HEED_ARGUMENT,
                          "attention: location needs `longest`, the keys that a segment may have, "
                          "found %lld",
                          (long long)o->longest);
    if (heed__memory_form_of(o) && o->value_d < 1)
        return heed__fail(err, HEED_ARGUMENT,
                          "attention: %s memory needs `value_d`, the columns of values, found %lld",
                          memory->name, (long long)o->value_d);
    if (heed__slot_kind(&o->memory) == HEED_MEMORY_LINFORMER && o->longest < 1)
        return heed__fail(err, HEED_ARGUMENT,
                          "attention: linformer needs `longest`, the positions that a segment may "
                          "have, found %lld",
                          (long long)o->longest);
    return HEED_OK;
}

/* What one operator alone can do, and so what else must let it. */
static heed_status check_fused(const heed_attend_options *o, heed_error *err)
{
    const heed_attention_info *bias =
        &heed__row_of(HEED_SLOT_BIAS, heed__slot_kind(&o->position_bias))->info;
    const heed_attention_info *memory =
        &heed__row_of(HEED_SLOT_MEMORY, heed__slot_kind(&o->memory))->info;
    const int heads = o->heads ? o->heads : 1;
    const heed_term *content = heed__content_term(&o->pattern);
    const char *what = content ? heed__row_of(HEED_SLOT_PATTERN, content->kind)->info.name
                       : heed__slot_kind(&o->memory) == HEED_MEMORY_PERSISTENT ? "persistent memory"
                       : heed__memory_form_of(o)                               ? memory->name
                       : heed__slot_kind(&o->position_bias) != HEED_BIAS_NONE  ? bias->name
                       : o->kv_heads && o->kv_heads != heads ? "fewer heads of keys than of queries"
                                                             : NULL;
    char text[HEED__ROWS_TEXT];
    if (!what || heed__linear_form_of(o, NULL)) /* it has its own check */
        return HEED_OK;
    if (!(heed__row_of(HEED_SLOT_SCORE, o->score)->info.can & HEED_CAN_FUSED))
        return heed__fail(err, HEED_ARGUMENT,
                          "attention: %s needs a score that is a product: use %s", what,
                          heed__rows_that_can(HEED_SLOT_SCORE, HEED_CAN_FUSED, text));
    if (!(terms_can(HEED_SLOT_PATTERN, &o->pattern) & HEED_CAN_FUSED))
        return heed__fail(err, HEED_ARGUMENT,
                          "attention: %s needs a pattern that follows from positions: use %s", what,
                          heed__rows_that_can(HEED_SLOT_PATTERN, HEED_CAN_FUSED, text));
    if (!(terms_can(HEED_SLOT_NORMALISER, &o->normaliser) & HEED_CAN_FUSED))
        return heed__fail(err, HEED_ARGUMENT, "attention: %s mixes all that is seen: use %s", what,
                          heed__rows_that_can(HEED_SLOT_NORMALISER, HEED_CAN_FUSED, text));
    if (o->single)
        return heed__fail(err, HEED_ARGUMENT,
                          "attention: %s is for layers that look at a whole sequence at once, not "
                          "for recurrent steps",
                          what);
    return HEED_OK;
}

const heed__queries_form *heed__queries_form_of(const heed_attend_options *o)
{
    return heed__row_of(HEED_SLOT_QUERIES, heed__slot_kind(&o->queries))->queries;
}

const heed__slot_row *heed__sublayer_row(const heed_attend_options *o)
{
    const heed__slot_row *pattern = heed__row_of(HEED_SLOT_PATTERN, heed__slot_kind(&o->pattern)),
                         *memory = heed__row_of(HEED_SLOT_MEMORY, heed__slot_kind(&o->memory));
    return memory->sublayer ? memory : pattern->sublayer ? pattern : NULL;
}

const heed__memory_form *heed__memory_form_of(const heed_attend_options *o)
{
    return heed__row_of(HEED_SLOT_MEMORY, heed__slot_kind(&o->memory))->memory;
}

/* Of memories of which a key stands for many positions, and of spans. */
static heed_status check_places(const heed_attend_options *o, heed_error *err)
{
    const heed_attention_info *memory =
        &heed__row_of(HEED_SLOT_MEMORY, heed__slot_kind(&o->memory))->info;
    const heed_attention_info *bias =
        &heed__row_of(HEED_SLOT_BIAS, heed__slot_kind(&o->position_bias))->info;
    const heed__memory_form *form = heed__memory_form_of(o);
    const bool whole = heed__pattern_is_whole(&o->pattern);
    char text[HEED__ROWS_TEXT];
    if (o->causal && !(memory->can & HEED_CAN_CAUSAL))
        return heed__fail(err, HEED_ARGUMENT,
                          "attention: %s mixes all positions and cannot be causal: use %s, or an "
                          "encoder alone",
                          memory->name,
                          heed__rows_that_can(HEED_SLOT_MEMORY, HEED_CAN_CAUSAL, text));
    if (form && form->compress && heed__slot_kind(&o->position_bias) != HEED_BIAS_NONE)
        return heed__fail(err, HEED_ARGUMENT,
                          "attention: a key of %s has no position that the bias %s could be about: "
                          "use the bias none",
                          memory->name, bias->name);
    if (!whole && heed__slot_kind(&o->memory) == HEED_MEMORY_LINFORMER)
        return heed__fail(err, HEED_ARGUMENT,
                          "attention: a key of %s has no position: use the pattern global",
                          memory->name);
    if (!whole && heed__slot_kind(&o->position_bias) == HEED_BIAS_SPAN)
        return heed__fail(err, HEED_ARGUMENT,
                          "attention: an adaptive span is a pattern of its own: use the pattern "
                          "global");
    return HEED_OK;
}

/* The slot of these in which something else than its first row stands; -1: none. */
static int taken(const heed_attend_options *o, unsigned slots)
{
    const heed_slot_spec *spec[] = {[HEED_SLOT_QUERIES] = &o->queries,
                                    [HEED_SLOT_MEMORY] = &o->memory,
                                    [HEED_SLOT_PATTERN] = &o->pattern,
                                    [HEED_SLOT_BIAS] = &o->position_bias,
                                    [HEED_SLOT_NORMALISER] = &o->normaliser};
    for (int slot = HEED_SLOT_QUERIES; slot <= HEED_SLOT_NORMALISER; slot++) {
        const bool whole = slot != HEED_SLOT_PATTERN || heed__pattern_is_whole(&o->pattern);
        if (slots >> slot & 1 && (heed__slot_kind(spec[slot]) || !whole))
            return slot;
    }
    return -1;
}

/* What has its own way through all of attention leaves the other slots as they are. */
static heed_status check_alone(const heed_attend_options *o, const heed_attention_info *row,
                               heed_error *err)
{
    const unsigned all = 1u << HEED_SLOT_QUERIES | 1u << HEED_SLOT_MEMORY |
                         1u << HEED_SLOT_PATTERN | 1u << HEED_SLOT_BIAS |
                         1u << HEED_SLOT_NORMALISER;
    const int slot = taken(o, all & ~(1u << row->slot));
    if (slot >= 0)
        return heed__fail(err, HEED_ARGUMENT, "attention: %s goes with the %s %s alone", row->name,
                          heed_attention_slot_name((heed_attention_slot)slot),
                          heed__row_of((heed_attention_slot)slot, 0)->info.name);
    return HEED_OK;
}

static heed_status check_queries(const heed_attend_options *o, heed_error *err)
{
    const heed__slot_row *row = heed__row_of(HEED_SLOT_QUERIES, heed__slot_kind(&o->queries));
    const char *name = row->info.name;
    const int64_t *number = o->queries.term[0].number;
    char text[HEED__ROWS_TEXT];
    heed_status status = row->queries ? check_alone(o, &row->info, err) : HEED_OK;
    if (status || !row->queries)
        return status;
    if (!(heed__row_of(HEED_SLOT_SCORE, o->score)->info.can & HEED_CAN_FUSED))
        return heed__fail(err, HEED_ARGUMENT,
                          "attention: %s needs a score that is a product: use %s", name,
                          heed__rows_that_can(HEED_SLOT_SCORE, HEED_CAN_FUSED, text));
    if (o->causal && !(row->info.can & HEED_CAN_CAUSAL))
        return heed__fail(err, HEED_ARGUMENT,
                          "attention: what %s gives a query depends on later ones and cannot be "
                          "causal: use %s, or an encoder alone",
                          name, heed__rows_that_can(HEED_SLOT_QUERIES, HEED_CAN_CAUSAL, text));
    if (o->single)
        return heed__fail(err, HEED_ARGUMENT,
                          "attention: %s is for layers that look at a whole sequence at once, not "
                          "for recurrent steps",
                          name);
    if (o->dropout > 0 && !row->queries->drops)
        return heed__fail(err, HEED_ARGUMENT,
                          "attention: %s adds mixtures to each other and has no weights to drop "
                          "out: dropout is %g, expected 0",
                          name, o->dropout);
    for (int i = 0; o->longest > 0 && i < row->info.takes; i++)
        if (number[i] > o->longest)
            return heed__fail(err, HEED_ARGUMENT,
                              "attention: %lld in %s are more than the %lld tokens that a sequence "
                              "may have",
                              (long long)number[i], row->info.form, (long long)o->longest);
    return HEED_OK;
}

/* A class of sublayers. */
static heed_status check_sublayer(const heed_attend_options *o, heed_error *err)
{
    const heed__slot_row *row = heed__sublayer_row(o);
    heed_status status = row ? check_alone(o, &row->info, err) : HEED_OK;
    char text[HEED__ROWS_TEXT];
    if (status || !row)
        return status;
    if (o->causal && !(row->info.can & HEED_CAN_CAUSAL))
        return heed__fail(err, HEED_ARGUMENT,
                          "attention: %s mixes all positions and cannot be causal: use %s, or an "
                          "encoder alone",
                          row->info.name,
                          heed__rows_that_can(row->info.slot, HEED_CAN_CAUSAL, text));
    if (!row->any_score && o->score != HEED_SCORE_SCALED_DOT && o->score != HEED_SCORE_DOT)
        return heed__fail(err, HEED_ARGUMENT,
                          "attention: %s has the scores scaled-dot and dot alone", row->info.name);
    return HEED_OK;
}

heed_status heed__attend_check(const heed_attend_options *o, heed_error *err)
{
    heed_status status = check_kinds(o, err);
    if (status || (status = check_sizes(o, err)) || (status = check_sublayer(o, err)) ||
        (status = heed__linear_check(o, err)) || (status = check_queries(o, err)) ||
        (status = check_fused(o, err)) || (status = check_places(o, err)) ||
        (status = heed__content_check(o, err)))
        return status;
    const heed_attention_info *score = &heed__row_of(HEED_SLOT_SCORE, o->score)->info;
    const heed_attention_info *pattern =
        &heed__row_of(HEED_SLOT_PATTERN, heed__slot_kind(&o->pattern))->info;
    const int heads = o->heads ? o->heads : 1, kv_heads = o->kv_heads ? o->kv_heads : heads;
    char text[HEED__ROWS_TEXT];
    const bool additive = o->score == HEED_SCORE_ADDITIVE;
    if (o->query_d / heads != o->key_d / kv_heads &&
        (!(score->can & HEED_CAN_WIDTHS) || (additive && o->projected)))
        return heed__fail(err, HEED_ARGUMENT,
                          "attention: the %s score needs queries and keys of one width, found %lld "
                          "and %lld: use %s",
                          score->name, (long long)o->query_d, (long long)o->key_d,
                          heed__rows_that_can(HEED_SLOT_SCORE, HEED_CAN_WIDTHS, text));
    if (o->causal && !(pattern->can & HEED_CAN_CAUSAL))
        return heed__fail(
            err, HEED_ARGUMENT,
            "attention: %s needs to know how long the sequence is and cannot be causal: use %s",
            pattern->name, heed__rows_that_can(HEED_SLOT_PATTERN, HEED_CAN_CAUSAL, text));
    if (heed__slot_kind(&o->normaliser) == HEED_NORMALISE_HARD && !(pattern->can & HEED_CAN_LOGS))
        return heed__fail(err, HEED_ARGUMENT,
                          "attention: hard attention draws from weights that sum to 1, those of %s "
                          "do not: use %s",
                          pattern->name,
                          heed__rows_that_can(HEED_SLOT_PATTERN, HEED_CAN_LOGS, text));
    return HEED_OK;
}
