/* tokenize_ter.c: Tercom's normalisation, as in sacreBLEU.  Two of its rules have no effect there
 * and are omitted: kana are separated only at the very start of a line, and `'s` at its very end,
 * where in both places a space has just been added. */
#include "metric/tokenize.h"

static bool in_ranges(int32_t c, const int32_t range[][2], size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (c >= range[i][0] && c <= range[i][1])
            return true;
    return false;
}

static bool is_asian_punctuation(int32_t c)
{
    static const int32_t range[][2] = {
        {0x3001, 0x3002}, {0x3008, 0x3011}, {0x3014, 0x301F}, {0xFF61, 0xFF65},
        {0x30FB, 0x30FB}, {0xFF0E, 0xFF0E}, {0xFF0C, 0xFF0C}, {0xFF1F, 0xFF1F},
        {0xFF1A, 0xFF1B}, {0xFF01, 0xFF02}, {0xFF08, 0xFF09},
    };
    return in_ranges(c, range, sizeof range / sizeof *range);
}

/* Ideographs, strokes, radicals and compatibility forms; U+3F22 is sacreBLEU's slip for U+32FF. */
static bool is_asian(int32_t c)
{
    static const int32_t range[][2] = {
        {0x4E00, 0x9FFF}, {0x3400, 0x4DBF}, {0x31C0, 0x31EF}, {0x2E80, 0x2EFF},
        {0x3300, 0x33FF}, {0xF900, 0xFAFF}, {0xFE30, 0xFE4F}, {0x3200, 0x3F22},
    };
    return in_ranges(c, range, sizeof range / sizeof *range) || is_asian_punctuation(c);
}

static void split_asian(heed__codes *out, const heed__codes *in)
{
    heed__set_apart(out, in, is_asian);
}

/* "'s " -> " 's " */
static void split_possessive(heed__codes *out, const heed__codes *in)
{
    for (int64_t i = 0; i < in->count; i++) {
        if (i + 2 < in->count && in->at[i] == '\'' && in->at[i + 1] == 's' && in->at[i + 2] == ' ')
            heed__codes_add(out, ' ');
        heed__codes_add(out, in->at[i]);
    }
}

static bool is_punctuation(int32_t c) /* [.,?:;!"()] */
{
    switch (c) {
    case '.':
    case ',':
    case '?':
    case ':':
    case ';':
    case '!':
    case '"':
    case '(':
    case ')':
        return true;
    default:
        return false;
    }
}

static void remove_if(heed__codes *c, bool (*member)(int32_t))
{
    int64_t kept = 0;
    for (int64_t i = 0; i < c->count; i++)
        if (!member(c->at[i]))
            c->at[kept++] = c->at[i];
    c->count = kept;
}

void heed__tokenize_ter(heed__code_line *line, const heed_ter_options *o)
{
    if (!o->case_sensitive)
        heed__line_apply(line, heed__lower);
    if (o->normalized) {
        heed__replace(&line->now, "\n-", "");
        heed__replace(&line->now, "\n", " ");
        heed__replace_entities(&line->now);
        heed__line_apply(line, heed__pad);
        heed__split_western(line);
        heed__line_apply(line, split_possessive);
        heed__split_numbers(line);
        if (o->asian_support)
            heed__line_apply(line, split_asian);
    }
    if (o->no_punctuation) {
        remove_if(&line->now, is_punctuation);
        if (o->asian_support)
            remove_if(&line->now, is_asian_punctuation);
    }
}
