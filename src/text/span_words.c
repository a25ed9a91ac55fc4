/* span_words.c: names of files, in programs and of things that are spelled in their own way. */
#include "text/span_match.h"

/* Most bytes that are looked at. */
#define MOST 200
/* Fewest bytes of unbroken text: longer than any word. */
#define UNBROKEN 64
/* The same where there are marks between the words: a list, a program. */
#define STRETCH 256

/* The length with an English genitive, which belongs to the name. */
static size_t with_genitive(const heed__cursor *p, size_t n)
{
    const size_t mark = at(p, n) == '\''                                                 ? 1
                        : p->left - n > 3 && memcmp(p->text + n, "\xE2\x80\x99", 3) == 0 ? 3
                                                                                         : 0;
    return n + (mark && has_at(p, n + mark, "s") && !word_at(p, n + mark + 1) ? mark + 1 : 0);
}

/* ---- codes ---- */

/* Capitals and digits, and groups of them with hyphens between. */
size_t heed__match_code(const heed__cursor *p)
{
    size_t n = 0, capitals = 0, digits = 0;
    for (; begins_word(p) && n < MOST; n++)
        if (is_upper(at(p, n)))
            capitals++;
        else if (is_digit(at(p, n)))
            digits++;
        else if (at(p, n) != '-' || !n || !(is_upper(at(p, n + 1)) || is_digit(at(p, n + 1))))
            break;
    const bool goes_on = n == MOST || word_at(p, n) || (at(p, n) == '-' && is_alpha(at(p, n + 1)));
    return capitals && digits && !goes_on ? n : 0;
}

/* Symbols of elements with numbers, at least one, as digits or below the line. */
size_t heed__match_formula(const heed__cursor *p)
{
    size_t n = 0, symbols = 0, numbers = 0;
    while (begins_word(p) && n < MOST && is_upper(at(p, n))) {
        n += 1 + is_lower(at(p, n + 1));
        symbols++;
        const size_t begin = n;
        n += run(p, n, is_digit);
        while (p->left - n >= 3 && memcmp(p->text + n, "\xE2\x82", 2) == 0)
            n += 3;
        numbers += n > begin;
    }
    return symbols > 1 && numbers && !word_at(p, n) && at(p, n) != '-' ? n : 0;
}

/* ---- files ---- */

static bool in_file(char c)
{
    return is_alnum(c) || c == '_' || c == '-' || c == '.' || c == '/' || c == '~' || c == '+';
}

/* Whether a text ends in one of the endings of names of files. */
static bool is_file(const char *text, size_t length)
{
    static const char endings[] =
        " txt pdf doc docx odt ods xls xlsx csv tsv ppt pptx md rst tex html htm css xml json yaml "
        "yml toml ini cfg conf log c h cc cpp hpp py js ts java rs go rb php pl sh bat exe dll so "
        "deb rpm iso zip gz tgz xz bz2 tar rar 7z png jpg jpeg gif svg bmp ico webp mp3 mp4 wav "
        "ogg flac avi mkv mov sql db bak tmp ";
    char ending[8];
    size_t n = 0;
    while (n < length && is_alnum(text[length - 1 - n]))
        n++;
    if (n < 1 || n > sizeof ending - 3 || n + 1 >= length || text[length - 1 - n] != '.')
        return false;
    ending[0] = ' ';
    for (size_t i = 0; i < n; i++) {
        const char c = text[length - n + i];
        ending[1 + i] = (char)(is_upper(c) ? c + 32 : c);
    }
    ending[1 + n] = ' ';
    ending[2 + n] = '\0';
    return strstr(endings, ending);
}

/* file.txt, src/a.c; a point at its end is that of the sentence. */
size_t heed__match_file(const heed__cursor *p)
{
    if (!is_alnum(at(p, 0)) || !begins_word(p))
        return 0;
    size_t n = 0;
    while (n < MOST && n < p->left && in_file(p->text[n]))
        n++;
    while (n > 0 && !is_alnum(p->text[n - 1]))
        n--;
    return n < MOST && !word_at(p, n) && is_file(p->text, n) ? n : 0;
}

static bool in_path(char c)
{
    return in_file(c) || c == '\\' || c == '@' || c == '%' || c == '=';
}

/* /usr/bin/env, ~/a, ./a, ../a, C:\a */
size_t heed__match_path(const heed__cursor *p)
{
    static const char *const roots[] = {"/", "~/", "./", "../", "c:\\", "d:\\"};
    size_t root = 0;
    if (p->before && !strchr(" \t\"'([=:", before(p)))
        return 0;
    for (size_t i = 0; i < sizeof roots / sizeof *roots; i++)
        root = has_at(p, 0, roots[i]) ? strlen(roots[i]) : root;
    if (!root || !(is_alnum(at(p, root)) || at(p, root) == '.' || at(p, root) == '_'))
        return 0;
    size_t n = root + run(p, root, in_path);
    while (n > root && strchr(".-%=", p->text[n - 1]))
        n--;
    return n > root && !word_at(p, n) ? n : 0;
}

/* ---- names in programs ---- */

static bool in_identifier(char c)
{
    return is_alnum(c) || c == '_';
}

/* Whether a word has a capital behind a small letter, or an underscore. */
static bool is_identifier(const char *text, size_t length)
{
    for (size_t i = 1; i < length; i++)
        if ((is_upper(text[i]) && is_lower(text[i - 1])) ||
            (text[i] == '_' && i + 1 < length && text[i + 1] != '_'))
            return true;
    return false;
}

/* foo_bar, camelCase, GitHub; std::sort, main() */
size_t heed__match_identifier(const heed__cursor *p)
{
    if (!in_identifier(at(p, 0)) || is_digit(at(p, 0)) || !begins_word(p))
        return 0;
    size_t n = 0;
    bool joined = false;
    for (size_t more; n < MOST && (more = run(p, n, in_identifier)); n += 2) {
        n += more;
        if (at(p, n) != ':' || at(p, n + 1) != ':' || !is_alpha(at(p, n + 2)))
            break;
        joined = true;
    }
    const bool called = at(p, n) == '(' && at(p, n + 1) == ')';
    if (n > MOST || word_at(p, n) || !(joined || called || is_identifier(p->text, n)))
        return 0;
    return called ? n + 2 : with_genitive(p, n);
}

static bool in_option(char c)
{
    return is_alnum(c) || c == '-' || c == '_';
}

size_t heed__match_option(const heed__cursor *p)
{
    if (at(p, 0) != '-' || at(p, 1) != '-' || !is_alpha(at(p, 2)) || before(p) == '-' ||
        !begins_word(p))
        return 0;
    size_t n = 2 + run(p, 2, in_option);
    while (at(p, n - 1) == '-')
        n--;
    return n;
}

size_t heed__match_user(const heed__cursor *p)
{
    if (at(p, 0) != '@' || !in_identifier(at(p, 1)) || !begins_word(p))
        return 0;
    size_t n = 1 + run(p, 1, in_option);
    while (at(p, n) == '.' && in_identifier(at(p, n + 1)))
        n += 1 + run(p, n + 1, in_option);
    return n;
}

size_t heed__match_topic(const heed__cursor *p)
{
    int32_t c;
    size_t n = 1;
    if (at(p, 0) != '#' || !begins_word(p))
        return 0;
    while (word_at(p, n))
        n += heed__utf8_next(p->text + n, p->left - n, &c);
    return n > 1 ? n : 0;
}

/* ---- names ---- */

/* C++, g++, C#, .NET */
size_t heed__match_plus(const heed__cursor *p)
{
    if (!begins_word(p))
        return 0;
    if (has_at(p, 0, ".net") && !word_at(p, 4))
        return 4;
    const size_t n = run(p, 0, is_alpha);
    if (n && n <= 16 && at(p, n) == '+' && at(p, n + 1) == '+' && at(p, n + 2) != '+')
        return word_at(p, n + 2) && !is_digit(at(p, n + 2)) ? 0 : n + 2 + run(p, n + 2, is_digit);
    return n == 1 && is_upper(at(p, 0)) && at(p, 1) == '#' && !word_at(p, 2) ? 2 : 0;
}

/* O'Neil, but not I'll and o'clock. */
size_t heed__match_apostrophe(const heed__cursor *p)
{
    if (!is_upper(at(p, 0)) || at(p, 0) == 'I' || !begins_word(p))
        return 0;
    const size_t mark = at(p, 1) == '\''                                             ? 1
                        : p->left > 4 && memcmp(p->text + 1, "\xE2\x80\x99", 3) == 0 ? 3
                                                                                     : 0;
    const size_t letters = mark ? run(p, 1 + mark, is_alpha) : 0;
    if (letters < 3 || !is_upper(at(p, 1 + mark)) || word_at(p, 1 + mark + letters) ||
        has_at(p, 1 + mark, "clock"))
        return 0;
    return with_genitive(p, 1 + mark + letters);
}

/* AT&T, R&D */
size_t heed__match_ampersand(const heed__cursor *p)
{
    size_t n = is_upper(at(p, 0)) && begins_word(p) ? run(p, 0, is_alnum) : 0, marks = 0;
    for (; n && n < MOST && at(p, n) == '&' && is_upper(at(p, n + 1)); marks++)
        n += 1 + run(p, n + 1, is_alnum);
    return marks && !word_at(p, n) && at(p, n) != ';' ? with_genitive(p, n) : 0;
}

/* ---- unbroken text ---- */

/* Mostly ASCII without a blank, whatever it is made of.  Looked for behind blanks alone, so that
 * all of a text is looked at once. */
static size_t match_stretch(const heed__cursor *p)
{
    size_t n = 0, ascii = 0;
    if (p->before && before(p) != ' ')
        return 0;
    for (; n < p->left && p->text[n] != ' '; n++)
        ascii += (unsigned char)p->text[n] < 0x80;
    return n >= STRETCH && 2 * ascii > n ? n : 0;
}

/* Letters of the Latin script, digits and what else base64 has; or a longer stretch of anything. */
size_t heed__match_unbroken(const heed__cursor *p)
{
    size_t n = match_stretch(p);
    int32_t c;
    if (n || !begins_word(p))
        return n;
    for (size_t size; (size = heed__utf8_next(p->text + n, p->left - n, &c)); n += size)
        if (c < 0x80 ? !is_alnum((char)c) && !strchr("+/=_-", (int)c) : c >= 0x250 || !is_word(c))
            break;
    return n >= UNBROKEN ? n : 0;
}
