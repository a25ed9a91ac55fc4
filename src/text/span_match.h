/* span_match.h (internal): what the kinds of spans are found with.
 *
 * A matcher returns how many bytes of its kind begin at a position, 0 if none do.  None looks
 * further than its match and a few characters, or than a fixed number of bytes. */
#ifndef HEED_TEXT_SPAN_MATCH_H
#define HEED_TEXT_SPAN_MATCH_H

#include "text/spans.h"
#include "text/utf8.h"

#include <string.h>
#include <utf8proc.h>

/* The text from a position on, and the bytes before it. */
typedef struct heed__cursor {
    const char *text;
    size_t left, before;
} heed__cursor;

static inline bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static inline bool is_upper(char c)
{
    return c >= 'A' && c <= 'Z';
}

static inline bool is_lower(char c)
{
    return c >= 'a' && c <= 'z';
}

static inline bool is_alpha(char c)
{
    return is_lower(c) || is_upper(c);
}

static inline bool is_alnum(char c)
{
    return is_alpha(c) || is_digit(c);
}

static inline bool is_word(int32_t c)
{
    utf8proc_category_t k = utf8proc_category(c);
    return c == '_' || (k >= UTF8PROC_CATEGORY_LU && k <= UTF8PROC_CATEGORY_NO);
}

static inline bool word_at(const heed__cursor *p, size_t i)
{
    return heed__word_at(p->text, p->left, i);
}

static inline char at(const heed__cursor *p, size_t i)
{
    return i < p->left ? p->text[i] : '\0';
}

static inline char before(const heed__cursor *p)
{
    return p->before ? p->text[-1] : ' ';
}

static inline bool begins_word(const heed__cursor *p)
{
    return !heed__word_before(p->text - p->before, p->before);
}

/* Whether a word is at `i`, in small letters in `word`, whatever its letters are in the text. */
static inline bool has_at(const heed__cursor *p, size_t i, const char *word)
{
    for (; *word; i++, word++)
        if ((is_upper(at(p, i)) ? at(p, i) + 32 : at(p, i)) != *word)
            return false;
    return true;
}

/* How many bytes from `i` on satisfy `is`. */
static inline size_t run(const heed__cursor *p, size_t i, bool (*is)(char))
{
    size_t begin = i;
    while (i < p->left && is(p->text[i]))
        i++;
    return i - begin;
}

/* span_markup.c */
size_t heed__match_address(const heed__cursor *p);     /* https://x.org/a, www.x.org */
size_t heed__match_mail(const heed__cursor *p);        /* jane@x.org */
size_t heed__match_braces(const heed__cursor *p);      /* {name}, {0}, {{name}}, ${name}, %{name} */
size_t heed__match_conversion(const heed__cursor *p);  /* %s, %5.2f, %1$d, %(name)s */
size_t heed__match_tag(const heed__cursor *p);         /* <b>, </b>, <a href="x">, <!-- --> */
size_t heed__match_entity(const heed__cursor *p);      /* &amp;, &#160; */
size_t heed__match_quoted_code(const heed__cursor *p); /* `code` */
size_t heed__match_link(const heed__cursor *p);        /* [word](address); of more words the ends */
size_t heed__match_bold(const heed__cursor *p);        /* **word**; of more words the ends */
size_t heed__match_emoji(const heed__cursor *p);
size_t heed__match_symbol(const heed__cursor *p); /* a sign of trade, arrows, of mathematics */

/* span_numbers.c */
size_t heed__match_money(const heed__cursor *p);       /* $56.70, 3,000 EUR */
size_t heed__match_date(const heed__cursor *p);        /* 28/01/1966 */
size_t heed__match_named_date(const heed__cursor *p);  /* 3 May 2024, on May 3, 2024 */
size_t heed__match_time(const heed__cursor *p);        /* 11:31, 11:31:05 */
size_t heed__match_half_day(const heed__cursor *p);    /* 5:30 p.m., 3 PM */
size_t heed__match_decimal(const heed__cursor *p);     /* 1.5, 1,234.50 */
size_t heed__match_percent(const heed__cursor *p);     /* 50 % */
size_t heed__match_quantity(const heed__cursor *p);    /* 3.5 km */
size_t heed__match_fraction(const heed__cursor *p);    /* 1/2 and its own characters */
size_t heed__match_superscript(const heed__cursor *p); /* of x squared, and footnotes */
size_t heed__match_decade(const heed__cursor *p);      /* 1990s, '90s */
size_t heed__match_in_decade(const heed__cursor *p);   /* in the 1990s */
size_t heed__match_ordinal(const heed__cursor *p);     /* 3rd */
size_t heed__match_version(const heed__cursor *p);     /* v2.3.1 */
size_t heed__match_ip(const heed__cursor *p);          /* 192.168.0.1, 10.0.0.0/8, 10.0.0.1:80 */
size_t heed__match_serial(const heed__cursor *p);      /* 555-1234, 2026-11-17 */

/* span_words.c */
size_t heed__match_code(const heed__cursor *p);       /* AB-1234, COVID-19, MP3 */
size_t heed__match_formula(const heed__cursor *p);    /* H2O, C6H12O6 */
size_t heed__match_file(const heed__cursor *p);       /* file.txt, src/a.c */
size_t heed__match_path(const heed__cursor *p);       /* /usr/bin/env, ~/a, C:\a */
size_t heed__match_identifier(const heed__cursor *p); /* foo_bar, camelCase, GitHub, std::sort() */
size_t heed__match_option(const heed__cursor *p);     /* --help */
size_t heed__match_user(const heed__cursor *p);       /* @user */
size_t heed__match_topic(const heed__cursor *p);      /* #tag */
size_t heed__match_plus(const heed__cursor *p);       /* C++, C#, .NET */
size_t heed__match_apostrophe(const heed__cursor *p); /* O'Neil */
size_t heed__match_ampersand(const heed__cursor *p);  /* AT&T */
size_t heed__match_unbroken(const heed__cursor *p);   /* letters and digits without a break */

/* span_german.c: how a span is written in German; at most HEED__WRITTEN bytes in `to`.  Returns
 * their number; 0: as it stands. */
size_t heed__german_date(const char *span, size_t length, char *to);
size_t heed__german_time(const char *span, size_t length, char *to);
size_t heed__german_in_decade(const char *span, size_t length, char *to);
size_t heed__german_decade(const char *span, size_t length, char *to);
size_t heed__german_ordinal(const char *span, size_t length, char *to);

#endif
