/* draw.c: text, numbers and labels for pictures. */
#include "show/draw.h"

#include <math.h>
#include <string.h>
#include <utf8proc.h>

static void *from_arena(void *arena, size_t size)
{
    return heed_arena_allocate(arena, size);
}

static void to_arena(void *arena, void *memory, size_t size)
{
    (void)arena, (void)memory, (void)size;
}

void heed__draw_begin(heed__string *s, heed_arena *arena)
{
    heed__string_init(s, &(heed_allocator){from_arena, to_arena, arena});
}

heed_status heed__draw_end(const heed__string *s, const char **text, heed_error *err)
{
    heed_status status = heed__string_status(s, err);
    *text = status ? NULL : heed__string_text(s);
    return status;
}

void heed__draw_number(heed__string *s, double v, int decimals)
{
    static const int64_t power[] = {1,      10,      100,      1000,      10000,
                                    100000, 1000000, 10000000, 100000000, 1000000000};
    if (!isfinite(v))
        v = 0;
    v = fmin(fmax(v, -1e9), 1e9);
    int64_t n = llround(v * (double)power[decimals]);
    int64_t size = n < 0 ? -n : n;
    int64_t rest = size % power[decimals];
    while (decimals > 0 && rest % 10 == 0) {
        rest /= 10;
        decimals--;
        size /= 10;
    }
    heed__string_format(s, "%s%lld", n < 0 ? "-" : "", (long long)(size / power[decimals]));
    if (decimals > 0)
        heed__string_format(s, ".%0*lld", decimals, (long long)rest);
}

void heed__draw_shape(heed__string *s, const char *pattern, const double *v)
{
    for (;;) {
        size_t n = strcspn(pattern, "~");
        heed__string_add_bytes(s, pattern, n);
        if (!pattern[n])
            return;
        heed__draw_number(s, *v++, 2);
        pattern += n + 1;
    }
}

int heed__draw_next(const char *text, int32_t *point)
{
    if (!*text)
        return 0;
    utf8proc_ssize_t n = utf8proc_iterate((const utf8proc_uint8_t *)text, -1, point);
    if (n > 0)
        return (int)n;
    *point = 0xFFFD;
    return 1;
}

void heed__draw_escaped(heed__string *s, const char *text)
{
    int32_t c;
    for (int n; (n = heed__draw_next(text, &c)) > 0; text += n) {
        const char *as = c == '&'    ? "&amp;"
                         : c == '<'  ? "&lt;"
                         : c == '>'  ? "&gt;"
                         : c == '"'  ? "&quot;"
                         : c == '\'' ? "&#39;"
                         : c < 0x20 || c == 0x7F || c == 0xFFFD || (c & 0xFFFE) == 0xFFFE
                             ? "\xEF\xBF\xBD"
                             : NULL;
        if (as)
            heed__string_add(s, as);
        else
            heed__string_add_bytes(s, text, (size_t)n);
    }
}

void heed__draw_json(heed__string *s, const char *text)
{
    int32_t c;
    char escaped[8];
    heed__string_add(s, "\"");
    for (int n; (n = heed__draw_next(text, &c)) > 0; text += n)
        if (c == 0xFFFD || strchr("<>&\x7F", c < 0x80 ? (int)c : ' '))
            heed__string_format(s, "\\u%04x", (unsigned)c);
        else if (c < 0x80)
            heed__string_add(s, heed_json_escape((char)c, escaped));
        else
            heed__string_add_bytes(s, text, (size_t)n);
    heed__string_add(s, "\"");
}

int heed__draw_columns(const char *text)
{
    int32_t c;
    int columns = 0;
    for (int n; (n = heed__draw_next(text, &c)) > 0; text += n)
        columns += utf8proc_charwidth(c);
    return columns;
}

/* Of one character, in hundredths of the font size: DejaVu Sans, rounded up, one of the widest
 * fonts that `sans-serif` may be. */
static int point_width(int32_t c)
{
    if (c < 0x80 && strchr("ijl'|!,.:; ()[]/\\fIt-", (int)c))
        return 40;
    if ((c < 0x80 && strchr("mMwW@%<>+=~#_&", (int)c)) || c == 0x2026)
        return 100;
    int columns = utf8proc_charwidth(c);
    return columns == 2 ? 110 : columns == 0 ? 0 : c >= 'A' && c <= 'Z' ? 76 : 64;
}

double heed__draw_width(const char *text)
{
    int32_t c;
    int64_t width = 0;
    for (int n; (n = heed__draw_next(text, &c)) > 0; text += n)
        width += point_width(c);
    return (double)width / 100;
}

void heed__draw_fitted(heed__string *s, const char *text, double width)
{
    static const char ellipsis[] = "\xE2\x80\xA6";
    if (heed__draw_width(text) <= width) {
        heed__draw_escaped(s, text);
        return;
    }
    char letter[8] = "";
    int32_t c;
    double space = width - heed__draw_width(ellipsis);
    for (int n; (n = heed__draw_next(text, &c)) > 0; text += n) {
        space -= point_width(c) / 100.;
        if (space < 0)
            break;
        memcpy(letter, text, (size_t)n);
        letter[n] = '\0';
        heed__draw_escaped(s, letter);
    }
    heed__string_add(s, ellipsis);
}
