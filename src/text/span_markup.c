/* span_markup.c: addresses, placeholders of programs, markup, emoji and other symbols. */
#include "text/span_match.h"

#include <string.h>

/* Most bytes of a tag, of braces, of quoted code. */
#define MOST 200

/* Most bytes of the name of a mailbox. */
#define MOST_MAILBOX 64

/* ---- addresses ---- */

/* Bytes of an address: ASCII characters, and letters of any script. */
static size_t address_length(const heed__cursor *p)
{
    size_t n = 0;
    int32_t c;
    for (size_t size; (size = heed__utf8_next(p->text + n, p->left - n, &c)); n += size)
        if (c < 0x80 ? c <= ' ' || c == 0x7F || strchr("<>\"`", c) : !is_word(c))
            break;
    return n;
}

/* Punctuation that ends a sentence or closes a bracket around an address is not part of it. */
static size_t without_stops(const heed__cursor *p, size_t n)
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

size_t heed__match_address(const heed__cursor *p)
{
    static const char *const schemes[] = {"http://", "https://", "ftp://", "file://", "www."};
    for (size_t i = 0; begins_word(p) && i < sizeof schemes / sizeof *schemes; i++) {
        size_t scheme = strlen(schemes[i]);
        size_t n = has_at(p, 0, schemes[i]) ? without_stops(p, address_length(p)) : 0;
        if (n > scheme)
            return n;
    }
    return 0;
}

static bool in_mailbox(char c)
{
    return is_alnum(c) || (c && strchr("._%+-", c));
}

static bool in_host(char c)
{
    return is_alnum(c) || c == '-' || c == '.';
}

size_t heed__match_mail(const heed__cursor *p)
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
    return is_alnum(c) || (c && strchr("_.:,#$-", c));
}

/* {name}, {0}, {}, {{name}}, ${name}, %{name} */
size_t heed__match_braces(const heed__cursor *p)
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
size_t heed__match_conversion(const heed__cursor *p)
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
static size_t up_to(const heed__cursor *p, size_t from, char last, char never)
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
size_t heed__match_tag(const heed__cursor *p)
{
    size_t name = at(p, 1) == '/' ? 2 : 1;
    return at(p, 0) == '<' && (is_alpha(at(p, name)) || at(p, 1) == '!') ? up_to(p, name, '>', '<')
                                                                         : 0;
}

static bool in_entity(char c)
{
    return is_alnum(c);
}

/* &amp;, &#160; */
size_t heed__match_entity(const heed__cursor *p)
{
    if (at(p, 0) != '&')
        return 0;
    size_t begin = at(p, 1) == '#' ? 2 : 1, inside = run(p, begin, in_entity);
    return inside && inside <= 10 && at(p, begin + inside) == ';' ? begin + inside + 1 : 0;
}

/* `code` */
size_t heed__match_quoted_code(const heed__cursor *p)
{
    if (at(p, 0) != '`' || at(p, 1) == '`' || at(p, 1) == ' ')
        return 0;
    size_t n = up_to(p, 1, '`', '\n');
    return n && p->text[n - 2] != ' ' ? n : 0;
}

static bool has_blank(const heed__cursor *p, size_t begin, size_t end)
{
    return memchr(p->text + begin, ' ', end - begin) != NULL;
}

/* [word](address) whole; of [several words](address) first `[`, then `](address)`: the words are
 * translated. */
size_t heed__match_link(const heed__cursor *p)
{
    if (at(p, 0) == ']' && at(p, 1) == '(' && p->before)
        return up_to(p, 2, ')', '(');
    const size_t text = at(p, 0) == '[' ? up_to(p, 1, ']', '[') : 0;
    const size_t n = text > 2 && at(p, text) == '(' ? up_to(p, text + 1, ')', '(') : 0;
    return n && has_blank(p, 1, text) ? 1 : n;
}

/* **word** and __word__ whole; of more words the first and the last marks. */
size_t heed__match_bold(const heed__cursor *p)
{
    const char mark = at(p, 0);
    if ((mark != '*' && mark != '_') || at(p, 1) != mark || at(p, 2) == mark || before(p) == mark)
        return 0;
    if (!word_at(p, 2))
        return before(p) != ' ' ? 2 : 0; /* the last */
    if (!begins_word(p))
        return 0;
    for (size_t n = 3; (n = up_to(p, n, mark, '\n')); n++)
        if (at(p, n) == mark)
            return has_blank(p, 2, n) ? 2 : n + 1;
    return 0;
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
size_t heed__match_emoji(const heed__cursor *p)
{
    int32_t c;
    size_t n = 0;
    for (size_t size; (size = heed__utf8_next(p->text + n, p->left - n, &c)); n += size)
        if (!is_emoji(c) && !(n > 0 && joins_emoji(c)))
            break;
    return n;
}

/* ---- symbols ---- */

static bool is_symbol(int32_t c)
{
    static const struct {
        int32_t first, last;
    } ranges[] = {
        {0xA7, 0xA7},     /* section */
        {0xA9, 0xA9},     /* copyright */
        {0xAE, 0xAE},     /* registered */
        {0xB0, 0xB1},     /* degree, plus or minus */
        {0xB6, 0xB6},     /* paragraph */
        {0xD7, 0xD7},     /* times */
        {0xF7, 0xF7},     /* divided by */
        {0x2020, 0x2023}, /* daggers, bullets */
        {0x2030, 0x2031}, /* per mille */
        {0x2116, 0x2116}, /* numero */
        {0x2120, 0x2122}, /* service mark, telephone, trade mark */
        {0x2190, 0x2211}, /* arrows, mathematics */
        {0x2213, 0x23FF}, /* mathematics, technical */
        {0x2500, 0x25FF}, /* boxes, blocks, shapes */
        {0x27C0, 0x2BFF}, /* more mathematics and arrows */
    };
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++)
        if (c >= ranges[i].first && c <= ranges[i].last)
            return true;
    return false;
}

/* A sequence of any length. */
size_t heed__match_symbol(const heed__cursor *p)
{
    int32_t c;
    size_t n = 0;
    for (size_t size; (size = heed__utf8_next(p->text + n, p->left - n, &c)) && is_symbol(c);)
        n += size;
    return n;
}
