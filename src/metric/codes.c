/* codes.c: vectors of code points, UTF-8 in, spaces. */
#include "metric/codes.h"
#include "base/memory.h"

#include <string.h>

#define FIRST_CAPACITY 256
#define REPLACEMENT 0xFFFD

void heed__codes_init(heed__codes *c, const heed_allocator *allocator)
{
    *c = (heed__codes){.allocator = heed__allocator_or_default(allocator)};
}

void heed__codes_deinit(heed__codes *c)
{
    heed__release(&c->allocator, c->at, (size_t)c->capacity, sizeof *c->at);
    c->at = NULL;
    c->count = c->capacity = 0;
}

bool heed__codes_reserve(heed__codes *c, int64_t count)
{
    if (c->failed)
        return false;
    if (count <= c->capacity)
        return true;
    int64_t capacity = c->capacity ? c->capacity : FIRST_CAPACITY;
    while (capacity < count && capacity <= INT64_MAX / 2)
        capacity *= 2;
    int32_t *at =
        capacity < count ? NULL : heed__allocate(&c->allocator, (size_t)capacity, sizeof *at);
    if (!at)
        return c->failed = true, false;
    if (c->count)
        memcpy(at, c->at, (size_t)c->count * sizeof *at);
    heed__release(&c->allocator, c->at, (size_t)c->capacity, sizeof *at);
    c->at = at;
    c->capacity = capacity;
    return true;
}

/* One character, from Unicode's table of well-formed UTF-8: the first byte limits the second, so
 * that overlong forms and surrogates fail at once.  NUL is never a continuation byte. */
static int32_t decode_one(const unsigned char **text)
{
    const unsigned char *s = *text;
    unsigned first = *s++, low = 0x80, high = 0xBF;
    int more = -1;
    int32_t code = REPLACEMENT;
    if (first < 0x80) {
        more = 0;
        code = (int32_t)first;
    } else if (first >= 0xC2 && first <= 0xDF) {
        more = 1;
        code = first & 0x1F;
    } else if (first >= 0xE0 && first <= 0xEF) {
        more = 2;
        code = first & 0x0F;
        low = first == 0xE0 ? 0xA0 : low;
        high = first == 0xED ? 0x9F : high;
    } else if (first >= 0xF0 && first <= 0xF4) {
        more = 3;
        code = first & 0x07;
        low = first == 0xF0 ? 0x90 : low;
        high = first == 0xF4 ? 0x8F : high;
    }
    for (; more > 0; more--, low = 0x80, high = 0xBF) {
        if (*s < low || *s > high) {
            code = REPLACEMENT;
            break;
        }
        code = code << 6 | (*s++ & 0x3F);
    }
    *text = s;
    return code;
}

void heed__codes_decode(heed__codes *c, const char *text)
{
    const unsigned char *s = (const unsigned char *)text;
    c->count = 0;
    while (*s)
        heed__codes_add(c, decode_one(&s));
}

bool heed__is_ascii_space(int32_t code)
{
    return code == ' ' || (code >= '\t' && code <= '\r');
}

bool heed__is_space(int32_t code)
{
    if (code < 0x80)
        return heed__is_ascii_space(code) || (code >= 0x1C && code <= 0x1F);
    return code == 0x85 || code == 0xA0 || code == 0x1680 || (code >= 0x2000 && code <= 0x200A) ||
           code == 0x2028 || code == 0x2029 || code == 0x202F || code == 0x205F || code == 0x3000;
}

void heed__line_apply(heed__code_line *line, heed__rule *rule)
{
    line->spare.count = 0;
    rule(&line->spare, &line->now);
    heed__codes rewritten = line->spare;
    line->spare = line->now;
    line->now = rewritten;
}

void heed__line_strip_end(heed__code_line *line)
{
    heed__codes *c = &line->now;
    while (c->count && heed__is_space(c->at[c->count - 1]))
        c->count--;
}
