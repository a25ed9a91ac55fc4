/* slot_spec.c: what stands in a slot, as a text and back: terms joined by `+`, each the name of a
 * row and its numbers behind colons, "band:64+global:2".
 *
 * Texts are read here alone, where they come in; from then on a spec is numbers.  What follows from
 * no row is refused by name, with the forms that there are. */
#include "attention/attend.h"

#include "base/error.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

int heed__slot_kind(const heed_slot_spec *spec)
{
    return spec->count > 0 ? spec->term[0].kind : 0;
}

heed_slot_spec heed__slot_complete(heed_attention_slot slot, const heed_slot_spec *spec)
{
    heed_slot_spec full = *spec;
    full.count = full.count ? full.count : 1;
    for (int i = 0; i < full.count; i++) {
        const heed_attention_info *row = &heed__row_of(slot, full.term[i].kind)->info;
        for (int n = 0; n < row->takes; n++)
            if (full.term[i].number[n] == 0)
                full.term[i].number[n] = row->number[n].otherwise;
    }
    return full;
}

/* ---- what is refused ---- */

#define MANY_ROWS 8

/* "states or persistent:N": the forms of a slot's rows, or where these are many, their names. */
static const char *forms_of(heed_attention_slot slot, char text[HEED__ROWS_TEXT])
{
    const size_t capacity = HEED__ROWS_TEXT;
    size_t n = 0;
    text[0] = '\0';
    if (heed__row_of(slot, MANY_ROWS))
        return heed__rows_that_can(slot, 0, text);
    for (int kind = 0; heed__row_of(slot, kind) && n < capacity; kind++)
        n += (size_t)snprintf(text + n, capacity - n, "%s%s",
                              kind == 0                              ? ""
                              : heed__row_of(slot, kind + 1) == NULL ? " or "
                                                                     : ", ",
                              heed__row_of(slot, kind)->info.form);
    return text;
}

static heed_status unknown_name(heed_attention_slot slot, const char *name, heed_error *err)
{
    const char *names[64];
    char forms[HEED__ROWS_TEXT];
    int n = 0;
    while (n < 64 && heed__row_of(slot, n)) {
        names[n] = heed__row_of(slot, n)->info.name;
        n++;
    }
    const char *near = heed_option_nearest(name, names, n);
    return heed__fail(err, HEED_ARGUMENT, "there is no %s '%s', expected %s%s%s%s",
                      heed_attention_slot_name(slot), name, forms_of(slot, forms),
                      near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
}

static heed_status check_term(heed_attention_slot slot, const heed_term *term, heed_error *err)
{
    char text[HEED__ROWS_TEXT];
    const heed__slot_row *row = heed__row_of(slot, term->kind);
    if (!row)
        return heed__fail(err, HEED_ARGUMENT, "there is no %s %d, only %s",
                          heed_attention_slot_name(slot), term->kind,
                          heed__rows_that_can(slot, 0, text));
    for (int i = 0; i < HEED_TERM_NUMBERS; i++) {
        const heed_row_number *n = &row->info.number[i];
        if (i >= row->info.takes && term->number[i])
            return heed__fail(err, HEED_ARGUMENT, "%s has a number too many, expected %s",
                              row->info.name, row->info.form);
        if (i < row->info.needs && term->number[i] == 0)
            return heed__fail(err, HEED_ARGUMENT,
                              "%s lacks a number, expected %s, from %lld to %lld", row->info.name,
                              row->info.form, (long long)n->least, (long long)n->most);
        if (term->number[i] && (term->number[i] < n->least || term->number[i] > n->most))
            return heed__fail(err, HEED_ARGUMENT, "the number of %s is %lld, expected %lld to %lld",
                              row->info.form, (long long)term->number[i], (long long)n->least,
                              (long long)n->most);
    }
    return row->check ? row->check(term, err) : HEED_OK;
}

heed_status heed__slot_check(heed_attention_slot slot, const heed_slot_spec *spec, heed_error *err)
{
    char text[HEED__ROWS_TEXT];
    if (spec->count < 0 || spec->count > HEED_SLOT_TERMS)
        return heed__fail(err, HEED_ARGUMENT, "%d terms, expected at most %d", spec->count,
                          HEED_SLOT_TERMS);
    for (int i = 0; i < spec->count; i++) {
        heed_status status = check_term(slot, &spec->term[i], err);
        if (status)
            return status;
    }
    for (int i = 0; spec->count > 1 && i < spec->count; i++) {
        const heed_attention_info *row = &heed__row_of(slot, spec->term[i].kind)->info;
        if (!(row->can & HEED_CAN_UNION))
            return heed__fail(
                err, HEED_ARGUMENT, "%s stands alone%s%s", row->name,
                slot == HEED_SLOT_PATTERN ? "; together can stand " : "",
                slot == HEED_SLOT_PATTERN ? heed__rows_that_can(slot, HEED_CAN_UNION, text) : "");
        if (row->takes && !row->needs && row->number[0].otherwise == 0 &&
            spec->term[i].number[0] == 0)
            return heed__fail(err, HEED_ARGUMENT,
                              "%s without a number is everything and stands alone: give it one, as "
                              "in %s",
                              row->name, row->form);
    }
    return HEED_OK;
}

/* ---- from and to text ---- */

/* One of the words that text begins with, from 1 on; 0 if there is none. */
static int64_t parse_word(const char *const *words, const char *text, int *read)
{
    const size_t length = strcspn(text, ":+");
    for (int64_t i = 0; words[i]; i++)
        if (strlen(words[i]) == length && strncmp(words[i], text, length) == 0) {
            *read = (int)length;
            return i + 1;
        }
    return 0;
}

/* ":64" or ":heads", which text begins with. */
static heed_status parse_number(const heed_attention_info *row, int i, const char *text,
                                int64_t *number, int *read, heed_error *err)
{
    const heed_row_number *n = &row->number[i];
    char digit[2];
    long long value;
    if (n->words) {
        *number = parse_word(n->words, text + 1, read);
        if (!*number)
            return heed__fail(err, HEED_ARGUMENT, "'%.*s' is no word of %s, expected %s",
                              (int)strcspn(text + 1, ":+"), text + 1, row->name, row->form);
        *read += 1;
        return HEED_OK;
    }
    if (sscanf(text, ":%1[0-9]", digit) != 1 || sscanf(text, ":%12lld%n", &value, read) != 1 ||
        !strchr("+:", text[*read]))
        return heed__fail(err, HEED_ARGUMENT,
                          "what stands behind %s is no whole number, expected %s", row->name,
                          row->form);
    if (value < n->least || value > n->most)
        return heed__fail(err, HEED_ARGUMENT, "the number of %s is %lld, expected %lld to %lld",
                          row->form, value, (long long)n->least, (long long)n->most);
    *number = value;
    return HEED_OK;
}

#define NAME 32
/* The term that begins at text, up to `+` or the end. */
static heed_status parse_term(heed_attention_slot slot, const char *text, heed_term *term,
                              heed_error *err)
{
    const size_t all = strcspn(text, "+"), length = strcspn(text, "+:");
    char name[NAME];
    const heed__slot_row *row = NULL;
    snprintf(name, sizeof name, "%.*s", (int)(length < NAME ? length : NAME), text);
    *term = (heed_term){.kind = -1};
    for (int kind = 0; term->kind < 0 && (row = heed__row_of(slot, kind)); kind++)
        if (strcmp(row->info.name, name) == 0)
            term->kind = kind;
    if (term->kind < 0)
        return unknown_name(slot, name, err);
    size_t at = length;
    for (int i = 0; at < all; i++) {
        int read = 0;
        if (i == row->info.takes)
            return heed__fail(err, HEED_ARGUMENT, "%s has a number too many, expected %s", name,
                              row->info.form);
        heed_status status = parse_number(&row->info, i, text + at, &term->number[i], &read, err);
        if (status)
            return status;
        at += (size_t)read;
    }
    return HEED_OK;
}

heed_status heed_slot_parse(heed_attention_slot slot, const char *text, heed_slot_spec *spec,
                            heed_error *err)
{
    if (!text)
        return heed__missing(err, "text");
    heed_slot_spec read = {0};
    for (const char *at = text;; at++) {
        if (read.count == HEED_SLOT_TERMS)
            return heed__fail(err, HEED_ARGUMENT, "more than %d terms", HEED_SLOT_TERMS);
        heed_status status = parse_term(slot, at, &read.term[read.count++], err);
        if (status)
            return status;
        at += strcspn(at, "+");
        if (*at == '\0')
            break;
    }
    heed_status status = heed__slot_check(slot, &read, err);
    if (status)
        return status;
    *spec = read;
    return HEED_OK;
}

const char *heed_slot_format(heed_attention_slot slot, const heed_slot_spec *spec,
                             char text[HEED_OPTION_SPEC_TEXT])
{
    if (!spec)
        return NULL;
    const heed_slot_spec first = {1, {{0, {0}}}}, *s = spec->count > 0 ? spec : &first;
    size_t n = 0;
    text[0] = '\0';
    for (int i = 0; i < s->count && i < HEED_SLOT_TERMS; i++) {
        const heed__slot_row *row = heed__row_of(slot, s->term[i].kind);
        n += (size_t)snprintf(text + n, HEED_OPTION_SPEC_TEXT - n, "%s%s", i ? "+" : "",
                              row ? row->info.name : "?");
        for (int k = 0; row && k < row->info.takes && s->term[i].number[k]; k++) {
            const char *const *words = row->info.number[k].words;
            if (words)
                n += (size_t)snprintf(text + n, HEED_OPTION_SPEC_TEXT - n, ":%s",
                                      words[s->term[i].number[k] - 1]);
            else
                n += (size_t)snprintf(text + n, HEED_OPTION_SPEC_TEXT - n, ":%lld",
                                      (long long)s->term[i].number[k]);
        }
    }
    return text;
}

/* ---- for tables of options ---- */

/* An adaptive span takes the bias's place, and has an option of its own. */
static heed_status parse_option(heed_attention_slot slot, const char *text, heed_slot_spec *value,
                                heed_error *err)
{
    heed_slot_spec spec = {0};
    heed_status status = heed_slot_parse(slot, text, &spec, err);
    if (!status && slot == HEED_SLOT_BIAS && heed__slot_kind(&spec) == HEED_BIAS_SPAN)
        status = heed__fail(err, HEED_ARGUMENT, "%s is no position bias: use --adaptive-span %lld",
                            text, (long long)spec.term[0].number[0]);
    if (!status)
        *value = spec;
    return status;
}

#define SPEC_OPTION(name, slot)                                                                    \
    static heed_status parse_##name(const char *text, void *value, heed_error *err)                \
    {                                                                                              \
        return parse_option(slot, text, value, err);                                               \
    }                                                                                              \
    static const char *format_##name(const void *value, char text[HEED_OPTION_SPEC_TEXT])          \
    {                                                                                              \
        return heed_slot_format(slot, value, text);                                                \
    }                                                                                              \
    const heed_option_spec *heed_##name##_option(void)                                             \
    {                                                                                              \
        static const heed_option_spec spec = {sizeof(heed_slot_spec), parse_##name,                \
                                              format_##name};                                      \
        return &spec;                                                                              \
    }
SPEC_OPTION(queries, HEED_SLOT_QUERIES)
SPEC_OPTION(memory, HEED_SLOT_MEMORY)
SPEC_OPTION(pattern, HEED_SLOT_PATTERN)
SPEC_OPTION(bias, HEED_SLOT_BIAS)
SPEC_OPTION(normaliser, HEED_SLOT_NORMALISER)
