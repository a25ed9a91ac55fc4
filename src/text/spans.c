/* spans.c: each kind of span has a function that returns how many bytes of it begin at a position.
 * All are tried at every position where a span can begin; none looks more than one character beyond
 * its match.  Cost: linear in the text; unclosed tags and braces are given up after MOST bytes. */
#include "text/spans.h"
#include "text/utf8.h"

#include <stdint.h>
#include <string.h>
#include <utf8proc.h>

/* Most bytes of a tag, of braces, of quoted code. */
#define MOST 200

/* Most bytes of the name of a mailbox. */
#define MOST_MAILBOX 64

/* The text from a position on, and the bytes before it. */
typedef struct cursor {
    const char *text;
    size_t left, before;
} cursor;

/* ---- characters ---- */

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_alpha(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool is_word(int32_t c)
{
    utf8proc_category_t k = utf8proc_category(c);
    return c == '_' || (k >= UTF8PROC_CATEGORY_LU && k <= UTF8PROC_CATEGORY_NO);
}

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

static bool word_at(const cursor *p, size_t i)
{
    return heed__word_at(p->text, p->left, i);
}

static char at(const cursor *p, size_t i)
{
    return i < p->left ? p->text[i] : '\0';
}

static bool begins_word(const cursor *p)
{
    return !heed__word_before(p->text - p->before, p->before);
}

/* Ignoring case. */
static bool starts_with(const cursor *p, const char *word)
{
    size_t n = 0;
    for (; word[n]; n++) {
        char c = at(p, n);
        if (c != word[n] && !(c >= 'A' && c <= 'Z' && c + 32 == word[n]))
            return false;
    }
    return true;
}

/* How many bytes from `i` on satisfy `is`. */
static size_t run(const cursor *p, size_t i, bool (*is)(char))
{
    size_t begin = i;
    while (i < p->left && is(p->text[i]))
        i++;
    return i - begin;
}

/* ---- addresses ---- */

/* Bytes of an address: ASCII characters, and letters of any script. */
static size_t address_length(const cursor *p)
{
    size_t n = 0;
    int32_t c;
    for (size_t size; (size = heed__utf8_next(p->text + n, p->left - n, &c)); n += size)
        if (c < 0x80 ? c <= ' ' || c == 0x7F || strchr("<>\"`", c) : !is_word(c))
            break;
    return n;
}

/* Punctuation that ends a sentence or closes a bracket around an address is not part of it. */
static size_t without_stops(const cursor *p, size_t n)
{
    int64_t open = 0; /* open brackets */
    for (size_t i = 0; i < n; i++)
        open += (p->text[i] == '(') - (p->text[i] == ')');
    for (; n > 0; n--) {
        bool bracket = p->text[n - 1] == ')' && open < 0;
        if (!bracket && !strchr(".,;:!?'*_]}", p->text[n - 1]))
            break;
        open += bracket;
    }
    return n;
}

static size_t web_address(const cursor *p)
{
    static const char *const schemes[] = {"http://", "https://", "ftp://", "file://", "www."};
    for (size_t i = 0; begins_word(p) && i < sizeof schemes / sizeof *schemes; i++) {
        size_t scheme = strlen(schemes[i]);
        size_t n = starts_with(p, schemes[i]) ? without_stops(p, address_length(p)) : 0;
        if (n > scheme)
            return n;
    }
    return 0;
}

static bool in_mailbox(char c)
{
    return is_alpha(c) || is_digit(c) || (c && strchr("._%+-", c));
}

static bool in_host(char c)
{
    return is_alpha(c) || is_digit(c) || c == '-' || c == '.';
}

static size_t mail_address(const cursor *p)
{
    if (!(is_alpha(at(p, 0)) || is_digit(at(p, 0))) || !begins_word(p))
        return 0;
    size_t box = 0;
    while (box <= MOST_MAILBOX && in_mailbox(at(p, box)))
        box++;
    if (at(p, box) != '@')
        return 0;
    size_t n = box + 1 + run(p, box + 1, in_host);
    while (n > box && !is_alpha(p->text[n - 1]))
        n--;
    size_t letters = 0; /* of the last part of the host, after a dot */
    while (letters < n && is_alpha(p->text[n - 1 - letters]))
        letters++;
    return letters >= 2 && n - letters > box + 2 && p->text[n - 1 - letters] == '.' ? n : 0;
}

/* ---- placeholders of programs ---- */

static bool in_name(char c)
{
    return is_alpha(c) || is_digit(c) || (c && strchr("_.:,#$-", c));
}

/* {name}, {0}, {}, {{name}}, ${name}, %{name} */
static size_t braces(const cursor *p)
{
    size_t begin = at(p, 0) == '$' || at(p, 0) == '%';
    size_t open = 0;
    while (open < 2 && at(p, begin + open) == '{')
        open++;
    if (open == 0)
        return 0;
    size_t n = begin + open, inside = run(p, n, in_name);
    if (inside > MOST)
        return 0;
    n += inside;
    for (size_t i = 0; i < open; i++)
        if (at(p, n + i) != '}')
            return 0;
    return n + open;
}

static bool is_flag(char c)
{
    return c == '-' || c == '+' || c == '#' || c == '0';
}

static bool is_size(char c)
{
    return c && strchr("hlLqjzt", c);
}

/* %s, %5.2f, %1$d, %(name)s, %lu; but not the percent in "50%d" or "100 % sure". */
static size_t conversion(const cursor *p)
{
    if (at(p, 0) == '%' && at(p, 1) == '%')
        return 2;
    if (at(p, 0) != '%' || (p->before && is_digit(p->text[-1])))
        return 0;
    size_t n = 1;
    if (at(p, n) == '(') {
        size_t name = run(p, n + 1, in_name);
        if (!name || at(p, n + 1 + name) != ')')
            return 0;
        n += name + 2;
    }
    size_t digits = run(p, n, is_digit);
    if (digits && at(p, n + digits) == '$')
        n += digits + 1;
    n += run(p, n, is_flag);
    n += run(p, n, is_digit);
    if (at(p, n) == '.')
        n += 1 + run(p, n + 1, is_digit);
    n += run(p, n, is_size);
    char kind = at(p, n);
    return kind && strchr("diouxXeEfFgGaAcspn@", kind) && !word_at(p, n + 1) ? n + 1 : 0;
}

/* ---- markup ---- */

/* Bytes up to and including `last`, without `never` or a control character; 0 if there are too
 * many. */
static size_t up_to(const cursor *p, size_t from, char last, char never)
{
    for (size_t i = from; i < p->left && i < MOST; i++) {
        if (p->text[i] == last)
            return i + 1;
        if (p->text[i] == never || (unsigned char)p->text[i] < ' ' || p->text[i] == 0x7F)
            return 0;
    }
    return 0;
}

/* <b>, </b>, <br/>, <a href="...">, <!-- --> */
static size_t tag(const cursor *p)
{
    size_t name = at(p, 1) == '/' ? 2 : 1;
    return at(p, 0) == '<' && (is_alpha(at(p, name)) || at(p, 1) == '!') ? up_to(p, name, '>', '<')
                                                                         : 0;
}

static bool in_entity(char c)
{
    return is_alpha(c) || is_digit(c);
}

/* &amp;, &#160; */
static size_t entity(const cursor *p)
{
    if (at(p, 0) != '&')
        return 0;
    size_t begin = at(p, 1) == '#' ? 2 : 1, inside = run(p, begin, in_entity);
    return inside && inside <= 10 && at(p, begin + inside) == ';' ? begin + inside + 1 : 0;
}

/* `code` */
static size_t code(const cursor *p)
{
    if (at(p, 0) != '`' || at(p, 1) == '`' || at(p, 1) == ' ')
        return 0;
    size_t n = up_to(p, 1, '`', '\n');
    return n && p->text[n - 2] != ' ' ? n : 0;
}

/* ---- emoji ---- */

static bool is_emoji(int32_t c)
{
    return (c >= 0x1F000 && c <= 0x1FAFF) || (c >= 0x2600 && c <= 0x27BF) || c == 0x2B50 ||
           c == 0x2B55 || c == 0x231A || c == 0x231B || c == 0x23F0 || c == 0x23F3;
}

/* What only follows an emoji: variation selector, joiner, key cap, the letters of flags. */
static bool joins_emoji(int32_t c)
{
    return c == 0xFE0F || c == 0x200D || c == 0x20E3 || (c >= 0xE0020 && c <= 0xE007F);
}

/* A sequence of any length. */
static size_t emoji(const cursor *p)
{
    int32_t c;
    size_t n = 0;
    for (size_t size; (size = heed__utf8_next(p->text + n, p->left - n, &c)); n += size)
        if (!is_emoji(c) && !(n > 0 && joins_emoji(c)))
            break;
    return n;
}

/* ---- quantities ---- */

static const char *const units[] = {
    "km/h", "m/s", "mph", "km²", "m²", "cm²", "m³",  "cm³", "km",  "cm",   "mm",  "nm",
    "µm",   "m",   "kg",  "mg",  "g",  "ml",  "cl",  "l",   "kHz", "MHz",  "GHz", "Hz",
    "kB",   "KB",  "MB",  "GB",  "TB", "kW",  "kWh", "MW",  "mA",  "mV",   "kV",  "V",
    "W",    "°C",  "°F",  "K",   "px", "dpi", "ms",  "hPa", "kPa", "kcal",
};

/* 3.5 km: digits, at most one space, a unit, and no word after it. */
static size_t quantity(const cursor *p)
{
    if (!is_digit(at(p, 0)) || !begins_word(p) ||
        (p->before && (p->text[-1] == '.' || p->text[-1] == ',')))
        return 0;
    size_t n = run(p, 0, is_digit);
    while ((at(p, n) == '.' || at(p, n) == ',') && is_digit(at(p, n + 1)))
        n += 1 + run(p, n + 1, is_digit);
    n += at(p, n) == ' ';
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        size_t size = strlen(units[i]);
        if (p->left - n >= size && memcmp(p->text + n, units[i], size) == 0 &&
            !word_at(p, n + size) && at(p, n + size) != '\'')
            return n + size;
    }
    return 0;
}

/* Fewest digits of a serial number; 10-12 and 3-2 may be written differently in another
 * language. */
#define SERIAL_DIGITS 5

/* 555-1234, 2026-11-17: groups of digits with hyphens between them, not continued by other
 * characters. */
static size_t serial(const cursor *p)
{
    if (!is_digit(at(p, 0)) || !begins_word(p) || (p->before && strchr(".,/-", p->text[-1])))
        return 0;
    size_t n = run(p, 0, is_digit), digits = n;
    while (at(p, n) == '-' && is_digit(at(p, n + 1))) {
        size_t more = run(p, n + 1, is_digit);
        digits += more;
        n += 1 + more;
    }
    const bool goes_on = word_at(p, n) || at(p, n) == '-' || at(p, n) == '/' ||
                         (strchr(".,:", at(p, n)) && is_digit(at(p, n + 1)));
    return digits < n && digits >= SERIAL_DIGITS && !goes_on ? n : 0;
}

/* ---- all ---- */

bool heed__span_next(const char *text, size_t length, size_t from, heed__span *span)
{
    static size_t (*const kinds[])(const cursor *) = {
        web_address, mail_address, braces, conversion, tag, entity, code, emoji, quantity, serial};
    for (size_t i = from; i < length; i++) {
        if (((unsigned char)text[i] & 0xC0) == 0x80) /* inside a character */
            continue;
        cursor p = {text + i, length - i, i};
        for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
            size_t n = kinds[k](&p);
            if (n) {
                *span = (heed__span){i, i + n};
                return true;
            }
        }
    }
    return false;
}
