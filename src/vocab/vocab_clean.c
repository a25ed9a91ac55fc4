/* vocab_clean.c: normalising a text.  Printable ASCII, and whatever has no special spaces or
 * combining characters, is not copied. */
#include "vocab/vocab_clean.h"
#include "text/utf8.h"

#include <string.h>
#include <utf8proc.h>

enum { KEEP, DROP, SPACE };

static int treatment(int32_t c, const utf8proc_property_t *p)
{
    switch (p->category) {
    case UTF8PROC_CATEGORY_ZS:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
        return SPACE;
    case UTF8PROC_CATEGORY_CC:
        return (c >= '\t' && c <= '\r') || c == 0x85 ? SPACE : DROP;
    default:
        break;
    }
    switch (c) {
    case 0x00AD: /* soft hyphen */
    case 0x200E: /* direction marks; the joiners beside them are spelling and stay */
    case 0x200F:
    case 0x2060: /* word joiner */
    case 0xFEFF: /* byte order mark */
        return DROP;
    case 0x200B: /* zero width space */
    case 0x2581: /* SentencePiece's space */
        return SPACE;
    default:
        return KEEP;
    }
}

/* Whether NFC might change a text with this character: it can combine with the one before it, or
 * decomposes.  Latin letters with one accent (below U+0300) are composed already. */
static bool may_compose(int32_t c, const utf8proc_property_t *p)
{
    if (c < 0x300)
        return false;
    bool second = p->comb_index != UINT16_MAX && p->comb_index >= 0x8000;
    bool canonical = p->decomp_type == 0 && p->decomp_seqindex != UINT16_MAX;
    bool jamo = c >= 0x1100 && c <= 0x11FF;
    return p->combining_class != 0 || second || canonical || jamo;
}

static bool is_plain(const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if ((unsigned char)(text[i] - ' ') > '~' - ' ')
            return false;
    return true;
}

static const char *compose(const char *text, size_t length, heed_arena *arena, size_t *clean_length)
{
    const utf8proc_option_t options = UTF8PROC_STABLE | UTF8PROC_COMPOSE;
    const utf8proc_uint8_t *from = (const utf8proc_uint8_t *)text;
    utf8proc_ssize_t n = utf8proc_decompose(from, (utf8proc_ssize_t)length, NULL, 0, options);
    if (n < 0)
        return NULL;
    /* Converted to UTF-8 in place, with a NUL at the end. */
    utf8proc_int32_t *buffer = heed_arena_allocate(arena, ((size_t)n + 1) * sizeof *buffer);
    if (!buffer)
        return NULL;
    utf8proc_decompose(from, (utf8proc_ssize_t)length, buffer, n, options);
    n = utf8proc_reencode(buffer, n, options);
    if (n < 0)
        return NULL;
    *clean_length = (size_t)n;
    return (const char *)buffer;
}

const char *heed__clean(const char *text, size_t length, heed_arena *arena, size_t *clean_length)
{
    *clean_length = length;
    if (is_plain(text, length))
        return text;
    char *out = heed_arena_allocate(arena, length);
    if (!out)
        return NULL;
    size_t n = 0;
    bool composing = false;
    for (size_t i = 0, size; i < length; i += size) {
        int32_t c;
        size = heed__utf8_next(text + i, length - i, &c);
        if (size == 0)
            break;
        const utf8proc_property_t *p = utf8proc_get_property(c);
        int what = treatment(c, p);
        composing |= may_compose(c, p);
        if (what == SPACE)
            out[n++] = ' ';
        else if (what == KEEP)
            memcpy(out + n, text + i, size), n += size;
    }
    *clean_length = n;
    return composing ? compose(out, n, arena, clean_length) : out;
}
