/* spans.c: the table of kinds of spans.
 *
 * All kinds are tried at every position where a character begins; the longest match is taken, the
 * first row among equals.  Cost: linear in the text. */
#include "text/span_match.h"

typedef struct span_kind {
    const char *name;
    size_t (*match)(const heed__cursor *p);
    bool has_words; /* a span only where the target language has a form of its own */
    size_t (*german)(const char *span, size_t length, char *to); /* NULL: as it stands */
} span_kind;

/* Digits keep their points and commas: 1.5 may be a version or a section as well as a number. */
static const span_kind kinds[] = {
    {.name = "web address", .match = heed__match_address},
    {.name = "mail address", .match = heed__match_mail},
    {.name = "braces", .match = heed__match_braces},
    {.name = "conversion", .match = heed__match_conversion},
    {.name = "tag", .match = heed__match_tag},
    {.name = "entity", .match = heed__match_entity},
    {.name = "quoted code", .match = heed__match_quoted_code},
    {.name = "link", .match = heed__match_link},
    {.name = "bold", .match = heed__match_bold},
    {.name = "emoji", .match = heed__match_emoji},
    {.name = "symbol", .match = heed__match_symbol},
    {.name = "money", .match = heed__match_money},
    {.name = "date", .match = heed__match_date},
    {"date with a month", heed__match_named_date, true, heed__german_date},
    {.name = "time", .match = heed__match_time},
    {"time of half a day", heed__match_half_day, true, heed__german_time},
    {.name = "percentage", .match = heed__match_percent},
    {.name = "quantity", .match = heed__match_quantity},
    {.name = "fraction", .match = heed__match_fraction},
    {.name = "superscript", .match = heed__match_superscript},
    {"decade", heed__match_decade, false, heed__german_decade},
    {"in a decade", heed__match_in_decade, true, heed__german_in_decade},
    {"ordinal", heed__match_ordinal, false, heed__german_ordinal},
    {.name = "IP address", .match = heed__match_ip},
    {.name = "version", .match = heed__match_version},
    {.name = "decimal", .match = heed__match_decimal},
    {.name = "serial number", .match = heed__match_serial},
    {.name = "formula", .match = heed__match_formula},
    {.name = "code", .match = heed__match_code},
    {.name = "path", .match = heed__match_path},
    {.name = "file name", .match = heed__match_file},
    {.name = "identifier", .match = heed__match_identifier},
    {.name = "option", .match = heed__match_option},
    {.name = "user", .match = heed__match_user},
    {.name = "topic", .match = heed__match_topic},
    {.name = "name with a plus", .match = heed__match_plus},
    {.name = "name with an apostrophe", .match = heed__match_apostrophe},
    {.name = "name with an ampersand", .match = heed__match_ampersand},
    {.name = "unbroken text", .match = heed__match_unbroken},
};
enum { KINDS = sizeof kinds / sizeof *kinds };

int heed__span_kinds(void)
{
    return KINDS;
}

const char *heed__span_kind_name(int kind)
{
    return kind >= 1 && kind <= KINDS ? kinds[kind - 1].name : "copy";
}

heed__language heed__language_of(const char *folder)
{
    size_t n = strlen(folder);
    while (n > 0 && folder[n - 1] == '/')
        n--;
    return n >= 3 && memcmp(folder + n - 3, "-de", 3) == 0 ? HEED__GERMAN : HEED__OTHER_LANGUAGE;
}

/* ---- words ---- */

bool heed__word_before(const char *text, size_t at)
{
    int32_t c;
    return heed__utf8_last(text, at, &c) && is_word(c);
}

bool heed__word_at(const char *text, size_t length, size_t at)
{
    int32_t c;
    return at < length && heed__utf8_next(text + at, length - at, &c) && is_word(c);
}

/* ---- all ---- */

static bool is_wanted(const span_kind *k, heed__language into)
{
    return !k->has_words || into == HEED__ANY_LANGUAGE || (into == HEED__GERMAN && k->german);
}

static size_t longest_at(const heed__cursor *p, heed__language into, int *kind)
{
    size_t longest = 0;
    for (int k = 0; k < KINDS; k++) {
        const size_t n = is_wanted(&kinds[k], into) ? kinds[k].match(p) : 0;
        if (n > longest) {
            longest = n;
            *kind = k + 1;
        }
    }
    return longest;
}

bool heed__span_next(const char *text, size_t length, size_t from, heed__language into,
                     heed__span *span)
{
    for (size_t i = from; i < length; i++) {
        /* Inside of a word or character no span begins; a blank is none. */
        if (((unsigned char)text[i] & 0xC0) == 0x80 || text[i] == ' ' ||
            (is_alnum(text[i]) && i > from && is_alnum(text[i - 1])))
            continue;
        const heed__cursor p = {text + i, length - i, i};
        int kind = 0;
        const size_t n = longest_at(&p, into, &kind);
        if (n) {
            *span = (heed__span){i, i + n, kind};
            return true;
        }
    }
    return false;
}

size_t heed__span_write(int kind, heed__language into, const char *span, size_t length, char *to)
{
    if (kind < 1 || kind > KINDS || into != HEED__GERMAN || !kinds[kind - 1].german ||
        length > HEED__WRITTEN)
        return 0;
    return kinds[kind - 1].german(span, length, to);
}
