/* tokenize.c: the tokenisers of BLEU, rule by rule as in sacreBLEU, whose scores they reproduce.
 * Each rule is one pass from left to right over the result of the one before, like re.sub: matches
 * do not overlap. */
#include "metric/tokenize.h"

#include <string.h>
#include <utf8proc.h>

/* ---- rules ---- */

void heed__replace(heed__codes *c, const char *from, const char *to)
{
    int64_t n = (int64_t)strlen(from), kept = 0;
    for (int64_t i = 0; i < c->count;) {
        int64_t same = 0;
        while (same < n && i + same < c->count && c->at[i + same] == from[same])
            same++;
        if (same < n) {
            c->at[kept++] = c->at[i++];
            continue;
        }
        for (const char *t = to; *t; t++)
            c->at[kept++] = *t;
        i += n;
    }
    c->count = kept;
}

void heed__replace_entities(heed__codes *c)
{
    heed__replace(c, "&quot;", "\"");
    heed__replace(c, "&amp;", "&");
    heed__replace(c, "&lt;", "<");
    heed__replace(c, "&gt;", ">");
}

void heed__pad(heed__codes *out, const heed__codes *in)
{
    heed__codes_add(out, ' ');
    for (int64_t i = 0; i < in->count; i++)
        heed__codes_add(out, in->at[i]);
    heed__codes_add(out, ' ');
}

/* (member) -> " \1 " */
void heed__set_apart(heed__codes *out, const heed__codes *in, bool (*member)(int32_t))
{
    for (int64_t i = 0; i < in->count; i++) {
        bool apart = member(in->at[i]);
        if (apart)
            heed__codes_add(out, ' ');
        heed__codes_add(out, in->at[i]);
        if (apart)
            heed__codes_add(out, ' ');
    }
}

/* (before)(mark) -> "\1 \2 " */
static void split_mark_after(heed__codes *out, const heed__codes *in, bool (*before)(int32_t),
                             bool (*mark)(int32_t))
{
    for (int64_t i = 0; i < in->count; i++) {
        heed__codes_add(out, in->at[i]);
        if (i + 1 < in->count && before(in->at[i]) && mark(in->at[i + 1])) {
            heed__codes_add(out, ' ');
            heed__codes_add(out, in->at[++i]);
            heed__codes_add(out, ' ');
        }
    }
}

/* (mark)(after) -> " \1 \2" */
static void split_mark_before(heed__codes *out, const heed__codes *in, bool (*mark)(int32_t),
                              bool (*after)(int32_t))
{
    for (int64_t i = 0; i < in->count; i++) {
        if (i + 1 < in->count && mark(in->at[i]) && after(in->at[i + 1])) {
            heed__codes_add(out, ' ');
            heed__codes_add(out, in->at[i++]);
            heed__codes_add(out, ' ');
        }
        heed__codes_add(out, in->at[i]);
    }
}

/* ---- mteval-v13a, Western part ---- */

/* [{-~[-` -&(-+:-@/], which holds the space too */
static bool is_western_mark(int32_t c)
{
    return (c >= '{' && c <= '~') || (c >= '[' && c <= '`') || (c >= ' ' && c <= '&') ||
           (c >= '(' && c <= '+') || (c >= ':' && c <= '@') || c == '/';
}
static bool is_digit(int32_t c)
{
    return c >= '0' && c <= '9';
}
static bool is_no_digit(int32_t c)
{
    return !is_digit(c);
}
static bool is_point(int32_t c)
{
    return c == '.' || c == ',';
}
static bool is_dash(int32_t c)
{
    return c == '-';
}
static void split_marks(heed__codes *out, const heed__codes *in)
{
    heed__set_apart(out, in, is_western_mark);
}
static void split_point_after_no_digit(heed__codes *out, const heed__codes *in)
{
    split_mark_after(out, in, is_no_digit, is_point);
}
static void split_point_before_no_digit(heed__codes *out, const heed__codes *in)
{
    split_mark_before(out, in, is_point, is_no_digit);
}
static void split_dash_after_digit(heed__codes *out, const heed__codes *in)
{
    split_mark_after(out, in, is_digit, is_dash);
}

void heed__split_western(heed__code_line *line)
{
    heed__line_apply(line, split_marks);
}

void heed__split_numbers(heed__code_line *line)
{
    heed__line_apply(line, split_point_after_no_digit);
    heed__line_apply(line, split_point_before_no_digit);
    heed__line_apply(line, split_dash_after_digit);
}

static void tokenize_13a(heed__code_line *line)
{
    heed__replace(&line->now, "<skipped>", "");
    heed__replace(&line->now, "-\n", "");
    heed__replace(&line->now, "\n", " ");
    heed__replace_entities(&line->now);
    heed__line_apply(line, heed__pad);
    heed__split_western(line);
    heed__split_numbers(line);
}

/* ---- zh: every Chinese character a word, the rest as 13a ---- */

/* The ranges that sacreBLEU in fact tests.  It means to include U+20000 .. U+2A6D6 and U+2F800 ..
 * U+2FA1D, but writes them with four digits and a fifth that becomes a separate character; by
 * string order that gives U+2001 .. U+2A6D, with dashes, quotes and arrows, and U+2F81 .. U+2FA1.
 */
static bool is_chinese(int32_t c)
{
    static const int32_t range[][2] = {
        {0x3400, 0x4DB5}, {0x4E00, 0x9FBB}, {0xF900, 0xFA2D}, {0xFA30, 0xFA6A},
        {0xFA70, 0xFAD9}, {0x2001, 0x2A6D}, {0x2E80, 0x2EFF}, {0x2F00, 0x2FDF},
        {0x2FF0, 0x303F}, {0x3100, 0x312F}, {0x31A0, 0x31BF}, {0x31C0, 0x31EF},
        {0x3200, 0x33FF}, {0xFE10, 0xFE1F}, {0xFE30, 0xFE4F}, {0xFF00, 0xFFEF},
    };
    for (size_t i = 0; i < sizeof range / sizeof *range; i++)
        if (c >= range[i][0] && c <= range[i][1])
            return true;
    return false;
}
static void strip_start(heed__codes *out, const heed__codes *in)
{
    int64_t i = 0;
    while (i < in->count && heed__is_space(in->at[i]))
        i++;
    for (; i < in->count; i++)
        heed__codes_add(out, in->at[i]);
}
static void split_chinese(heed__codes *out, const heed__codes *in)
{
    heed__set_apart(out, in, is_chinese);
}

static void tokenize_zh(heed__code_line *line)
{
    heed__line_apply(line, strip_start);
    heed__line_apply(line, split_chinese);
    heed__split_western(line);
    heed__split_numbers(line);
}

/* ---- intl: mteval-v14's international tokenisation, by Unicode category ---- */

static bool is_no_number(int32_t c) /* \P{N} */
{
    utf8proc_category_t k = utf8proc_category(c);
    return k != UTF8PROC_CATEGORY_ND && k != UTF8PROC_CATEGORY_NL && k != UTF8PROC_CATEGORY_NO;
}
static bool is_punctuation(int32_t c) /* \p{P} */
{
    utf8proc_category_t k = utf8proc_category(c);
    return k >= UTF8PROC_CATEGORY_PC && k <= UTF8PROC_CATEGORY_PO;
}
static bool is_symbol(int32_t c) /* \p{S} */
{
    utf8proc_category_t k = utf8proc_category(c);
    return k >= UTF8PROC_CATEGORY_SM && k <= UTF8PROC_CATEGORY_SO;
}
static void split_punctuation_after_no_number(heed__codes *out, const heed__codes *in)
{
    split_mark_after(out, in, is_no_number, is_punctuation);
}
static void split_punctuation_before_no_number(heed__codes *out, const heed__codes *in)
{
    split_mark_before(out, in, is_punctuation, is_no_number);
}
static void split_symbols(heed__codes *out, const heed__codes *in)
{
    heed__set_apart(out, in, is_symbol);
}

static void tokenize_intl(heed__code_line *line)
{
    heed__line_apply(line, split_punctuation_after_no_number);
    heed__line_apply(line, split_punctuation_before_no_number);
    heed__line_apply(line, split_symbols);
}

/* ---- char ---- */

static bool is_anything(int32_t c)
{
    (void)c;
    return true;
}
static void split_all(heed__codes *out, const heed__codes *in)
{
    heed__set_apart(out, in, is_anything);
}

void heed__tokenize(heed__code_line *line, heed_tokenize how)
{
    switch (how) {
    case HEED_TOKENIZE_13A:
        tokenize_13a(line);
        break;
    case HEED_TOKENIZE_INTL:
        tokenize_intl(line);
        break;
    case HEED_TOKENIZE_CHAR:
        heed__line_apply(line, split_all);
        break;
    case HEED_TOKENIZE_ZH:
        tokenize_zh(line);
        break;
    case HEED_TOKENIZE_NONE:
    case HEED_TOKENIZE_MULTI_BLEU:
        break;
    }
}

/* ---- other rules ---- */

/* s{(\S)-(\S)}{$1 ##AT##-##AT## $2}g, run by perl on bytes: the right neighbour of one hyphen can
 * be the left neighbour of the next only if it has more than one byte. */
void heed__split_compounds(heed__codes *out, const heed__codes *in)
{
    const int32_t *x = in->at;
    for (int64_t i = 0; i < in->count; i++) {
        heed__codes_add(out, x[i]);
        if (i + 2 >= in->count || heed__is_ascii_space(x[i]) || x[i + 1] != '-' ||
            heed__is_ascii_space(x[i + 2]))
            continue;
        for (const char *s = " ##AT##-##AT## "; *s; s++)
            heed__codes_add(out, *s);
        i++;
        if (x[i + 1] < 0x80)
            heed__codes_add(out, x[++i]);
    }
}

static bool is_ascii_punctuation(int32_t c) /* Python's string.punctuation */
{
    return (c >= '!' && c <= '/') || (c >= ':' && c <= '@') || (c >= '[' && c <= '`') ||
           (c >= '{' && c <= '~');
}

void heed__split_punctuation(heed__codes *out, const heed__codes *in)
{
    for (int64_t i = 0, end; i < in->count; i = end) {
        for (end = i; end < in->count && !heed__is_space(in->at[end]);)
            end++;
        /* The end of the first part, if the word is split. */
        int64_t cut = end;
        if (end - i > 1 && is_ascii_punctuation(in->at[end - 1]))
            cut = end - 1;
        else if (end - i > 1 && is_ascii_punctuation(in->at[i]))
            cut = i + 1;
        for (; i < end; i++) {
            if (i == cut)
                heed__codes_add(out, ' ');
            heed__codes_add(out, in->at[i]);
        }
        if (end < in->count)
            heed__codes_add(out, in->at[end++]);
    }
}
