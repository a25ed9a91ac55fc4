/* bert_text.c: BERT's basic tokeniser (Devlin et al., 2019; tokenization.py of its release): clean,
 * set Chinese characters apart, lower the case, take off accents (canonical decomposition without
 * its marks), then cut at spaces and around punctuation. */
#include "vocab/bert_text.h"
#include "text/utf8.h"

#include <string.h>
#include <utf8proc.h>

/* Most characters that one decomposes into, and most bytes of it all with a space around each. */
#define MOST_PARTS HEED__BERT_PARTS
#define MOST_BYTES (MOST_PARTS * 6)

static bool is_chinese(int32_t c)
{
    static const int32_t blocks[][2] = {{0x4E00, 0x9FFF},   {0x3400, 0x4DBF},   {0x20000, 0x2A6DF},
                                        {0x2A700, 0x2B73F}, {0x2B740, 0x2B81F}, {0x2B820, 0x2CEAF},
                                        {0xF900, 0xFAFF},   {0x2F800, 0x2FA1F}};
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++)
        if (c >= blocks[i][0] && c <= blocks[i][1])
            return true;
    return false;
}

static bool is_space(int32_t c, utf8proc_category_t category)
{
    return (c >= '\t' && c <= '\r') || c == 0x85 || category == UTF8PROC_CATEGORY_ZS ||
           category == UTF8PROC_CATEGORY_ZL || category == UTF8PROC_CATEGORY_ZP;
}

/* All that is no letter, digit or space in ASCII, and what Unicode calls punctuation. */
static bool is_punctuation(int32_t c, utf8proc_category_t category)
{
    if (c < 0x80)
        return (c >= '!' && c <= '/') || (c >= ':' && c <= '@') || (c >= '[' && c <= '`') ||
               (c >= '{' && c <= '~');
    return category >= UTF8PROC_CATEGORY_PC && category <= UTF8PROC_CATEGORY_PO;
}

/* Tab, newline and return are spaces; the other control characters, format characters and what has
 * no meaning are removed. */
static bool is_removed(int32_t c, utf8proc_category_t category)
{
    const bool control = category == UTF8PROC_CATEGORY_CC || category == UTF8PROC_CATEGORY_CF ||
                         category == UTF8PROC_CATEGORY_CN || category == UTF8PROC_CATEGORY_CO;
    return c == 0 || c == 0xFFFD || (control && c != '\t' && c != '\n' && c != '\r');
}

struct words {
    char *text;
    size_t size;
};

static void add_space(struct words *w)
{
    if (w->size > 0 && w->text[w->size - 1] != ' ')
        w->text[w->size++] = ' ';
}

static void add_character(struct words *w, int32_t c, bool alone)
{
    if (alone)
        add_space(w);
    w->size += (size_t)utf8proc_encode_char(c, (utf8proc_uint8_t *)w->text + w->size);
    if (alone)
        add_space(w);
}

static void add(const heed__bert_options *o, struct words *w, int32_t c)
{
    const utf8proc_category_t category = utf8proc_category(c);
    const bool space = is_space(c, category);
    if (o->cleans && is_removed(c, category))
        return;
    if (space) {
        add_space(w);
        return;
    }
    int32_t parts[MOST_PARTS] = {c};
    utf8proc_ssize_t n = 1;
    if (o->strips_accents) {
        int boundary;
        n = utf8proc_decompose_char(c, parts, MOST_PARTS, UTF8PROC_DECOMPOSE, &boundary);
        if (n < 1 || n > MOST_PARTS)
            parts[0] = c, n = 1;
    }
    const bool chinese = o->separates_chinese && is_chinese(c);
    for (utf8proc_ssize_t i = 0; i < n; i++) {
        if (o->strips_accents && utf8proc_category(parts[i]) == UTF8PROC_CATEGORY_MN)
            continue;
        const int32_t letter = o->lowercase ? utf8proc_tolower(parts[i]) : parts[i];
        add_character(w, letter, chinese || is_punctuation(letter, utf8proc_category(letter)));
    }
}

const char *heed__bert_words(const heed__bert_options *options, const char *text, size_t length,
                             heed_arena *arena, size_t *size)
{
    /* Most texts are ASCII: three bytes for each of theirs; what is not is counted. */
    size_t most = 1;
    int32_t c;
    for (size_t i = 0, n; i < length; i += n) {
        n = heed__utf8_next(text + i, length - i, &c);
        n = n ? n : 1;
        most += n == 1 ? 3 : MOST_BYTES;
    }
    struct words w = {heed_arena_allocate(arena, most), 0};
    if (!w.text)
        return NULL;
    for (size_t i = 0, n; i < length; i += n) {
        n = heed__utf8_next(text + i, length - i, &c);
        if (n == 0)
            break;
        add(options, &w, c);
    }
    while (w.size > 0 && w.text[w.size - 1] == ' ')
        w.size--;
    *size = w.size;
    return w.text;
}
