/* split.c: splitting long texts at sentence ends.
 *
 * A sentence ends after . ! ? or an ellipsis and any closing quotes and brackets, if spaces follow
 * and then something that can begin a sentence: not a lower-case letter.  A full stop does not end
 * a sentence after an abbreviation, an initial or a number of one or two digits ("am 3.  Oktober").
 * Full-width Chinese and Japanese punctuation needs no space.  Cost: linear in the text. */
#include "text/split.h"
#include "text/utf8.h"

#include <heed/text.h>
#include <string.h>
#include <utf8proc.h>

/* ---- characters ---- */

static bool is_space(int32_t c)
{
    utf8proc_category_t k = utf8proc_category(c);
    return (c >= '\t' && c <= '\r') || k == UTF8PROC_CATEGORY_ZS || k == UTF8PROC_CATEGORY_ZL ||
           k == UTF8PROC_CATEGORY_ZP;
}

static bool is_letter(int32_t c)
{
    utf8proc_category_t k = utf8proc_category(c);
    return k >= UTF8PROC_CATEGORY_LU && k <= UTF8PROC_CATEGORY_LO;
}

/* Ends a sentence if a space follows; the last three are Arabic, Devanagari and Ethiopic. */
static bool is_stop(int32_t c)
{
    return c == '.' || c == '!' || c == '?' || c == 0x2026 || c == 0x061F || c == 0x0964 ||
           c == 0x1362;
}

/* 。！？｡ */
static bool is_wide_stop(int32_t c)
{
    return c == 0x3002 || c == 0xFF01 || c == 0xFF1F || c == 0xFF61;
}

/* German closing quotes are English opening quotes, so both count. */
static bool is_closer(int32_t c)
{
    utf8proc_category_t k = utf8proc_category(c);
    return c == '"' || c == '\'' || k == UTF8PROC_CATEGORY_PE || k == UTF8PROC_CATEGORY_PF ||
           k == UTF8PROC_CATEGORY_PI;
}

static bool can_begin(int32_t c)
{
    utf8proc_category_t k = utf8proc_category(c);
    if (k == UTF8PROC_CATEGORY_PO)
        return c == '"' || c == '\'' || c == 0xBF || c == 0xA1; /* and inverted ? and ! of
                                                                 * Spanish */
    return k != UTF8PROC_CATEGORY_LL && k != UTF8PROC_CATEGORY_PE;
}

/* The end of the characters from `at` on that satisfy `is`. */
static size_t skip(const char *text, size_t length, size_t at, bool (*is)(int32_t))
{
    int32_t c;
    for (size_t n; (n = heed__utf8_next(text + at, length - at, &c)) && is(c);)
        at += n;
    return at;
}

/* ---- sentence ends ---- */

/* Without the full stop, in lower case; English, German, French, Spanish.  Those with a full stop
 * inside (z.B., e.g., U.S.)  and single letters need no entry. */
static const char *const abbreviations[] = {
    "abb",  "abs",  "adm",  "approx", "apr",    "art",  "aug",  "bd",   "bspw", "bzw", "ca",
    "cap",  "capt", "cf",   "chap",   "co",     "col",  "corp", "dec",  "dept", "dez", "dipl",
    "dr",   "dt",   "ed",   "eds",    "eig",    "est",  "etc",  "evtl", "ex",   "feb", "ff",
    "fig",  "figs", "fr",   "geb",    "gen",    "gest", "ggf",  "gov",  "hon",  "hr",  "hrn",
    "inc",  "ing",  "inkl", "insb",   "jan",    "jh",   "jr",   "jul",  "jun",  "kap", "lt",
    "ltd",  "maj",  "mar",  "max",    "messrs", "min",  "mio",  "mlle", "mme",  "mr",  "mrd",
    "mrs",  "ms",   "mt",   "nos",    "nov",    "nr",   "okt",  "op",   "oct",  "pag", "pp",
    "pres", "prof", "pt",   "rep",    "rev",    "sec",  "sen",  "sep",  "sept", "sgt", "sog",
    "sr",   "sra",  "st",   "std",    "str",    "tel",  "univ", "usw",  "vgl",  "vol", "vols",
    "vs",   "zt",   "zzgl",
};

static bool is_abbreviation(const char *word, size_t length)
{
    char small[8];
    if (length >= sizeof small)
        return false;
    for (size_t i = 0; i < length; i++)
        small[i] = (char)(word[i] >= 'A' && word[i] <= 'Z' ? word[i] + 32 : word[i]);
    for (size_t i = 0; i < sizeof abbreviations / sizeof *abbreviations; i++)
        if (strlen(abbreviations[i]) == length && memcmp(abbreviations[i], small, length) == 0)
            return true;
    return false;
}

/* Whether the full stop at `stop` belongs to the word before it and does not end a sentence. */
static bool belongs_to_word(const char *text, size_t stop)
{
    if (stop > 0 && text[stop - 1] == '.') /* an ellipsis */
        return false;
    size_t begin = stop, letters = 0, digits = 0;
    bool inner_stop = false;
    while (begin > 0) {
        int32_t c;
        size_t n = heed__utf8_last(text, begin, &c);
        if (n == 0 || !(is_letter(c) || c == '.' || (c >= '0' && c <= '9')))
            break;
        letters += is_letter(c);
        digits += c >= '0' && c <= '9';
        inner_stop |= c == '.';
        begin -= n;
    }
    return inner_stop
               ? letters > 0
               : (letters == 1 && digits == 0) || (letters == 0 && digits > 0 && digits < 3) ||
                     is_abbreviation(text + begin, stop - begin);
}

/* If a sentence ends with the character c of n bytes at `at`: where the next one begins; else 0. */
static size_t next_sentence(const char *text, size_t length, size_t at, size_t n, int32_t c)
{
    bool wide = is_wide_stop(c);
    if (!wide && !is_stop(c))
        return 0;
    size_t closed = skip(text, length, at + n, is_closer);
    size_t next = skip(text, length, closed, is_space);
    int32_t first = 0;
    /* French has a space before the closing guillemet; German may open with the same character. */
    size_t guillemet = heed__utf8_next(text + next, length - next, &first);
    if (first == 0xBB && skip(text, length, next + guillemet, is_space) > next + guillemet) {
        closed = next + guillemet;
        next = skip(text, length, closed, is_space);
    }
    if (next == length || !heed__utf8_next(text + next, length - next, &first))
        return next == length ? length : 0;
    if (wide)
        return is_wide_stop(first) ? 0 : next;
    return next > closed && can_begin(first) && !(c == '.' && belongs_to_word(text, at)) ? next : 0;
}

size_t heed__sentence_end(const char *text, size_t length, size_t from)
{
    for (size_t at = from; at < length;) {
        int32_t c = 0;
        size_t n = heed__utf8_next(text + at, length - at, &c);
        size_t next = n ? next_sentence(text, length, at, n, c) : 0;
        if (next)
            return next;
        at += n ? n : 1;
    }
    return length;
}

/* ---- parts ---- */

/* Where the part that starts at `from` should end: at most max_bytes later, if possible. */
static size_t part_end(const char *text, size_t length, size_t from, size_t max_bytes)
{
    if (length - from <= max_bytes)
        return length;
    size_t most = from + max_bytes, at = from, sentence = 0, space = 0, cluster = 0;
    int32_t c, following, state = 0;
    size_t n = heed__utf8_next(text + at, length - at, &c);
    while (at + (n ? n : 1) <= most) {
        n = n ? n : 1;
        size_t next = next_sentence(text, length, at, n, c);
        if (next && next <= most)
            sentence = next;
        at += n;
        if (is_space(c))
            space = at;
        n = heed__utf8_next(text + at, length - at, &following);
        /* Never inside a grapheme: accents, joined emoji. */
        if (utf8proc_grapheme_break_stateful(c, following, &state))
            cluster = at;
        c = following;
    }
    if (at == from)
        return from + (n ? n : 1);
    return sentence ? sentence : space ? space : cluster ? cluster : at;
}

int64_t heed_split_sentences(const char *text, size_t length, size_t max_bytes, heed_arena *arena,
                             const size_t **end)
{
    if (!text)
        return 0;
    int64_t parts = 0;
    size_t at = 0;
    do {
        at = part_end(text, length, at, max_bytes);
        parts++;
    } while (at < length);
    size_t *ends = heed_arena_allocate(arena, (size_t)parts * sizeof *ends);
    if (!ends)
        return 0;
    at = 0;
    for (int64_t i = 0; i < parts; i++)
        ends[i] = at = part_end(text, length, at, max_bytes);
    *end = ends;
    return parts;
}
