/* split_words.c: the splitting patterns of byte-level BPE.
 *
 * gpt-2:     's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
 * llama-bpe: (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}
 *            | ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+
 *
 * \s is Unicode's White_Space.  \s+(?!\S) leaves the last space of several to the word behind. */
#include "vocab/split_words.h"
#include "text/utf8.h"

#include <utf8proc.h>

enum sort { END, LETTER, NUMBER, SPACE, SYMBOL };

struct text {
    const char *at;
    size_t length;
    bool digits_end; /* a number is as the end of the text */
};

static bool is_space(int32_t c, utf8proc_category_t category)
{
    return (c >= '\t' && c <= '\r') || c == 0x85 || category == UTF8PROC_CATEGORY_ZS ||
           category == UTF8PROC_CATEGORY_ZL || category == UTF8PROC_CATEGORY_ZP;
}

/* The class and the bytes of the character at a position. */
static enum sort look(const struct text *t, size_t at, size_t *size)
{
    int32_t c;
    *size = 0;
    if (at >= t->length)
        return END;
    *size = heed__utf8_next(t->at + at, t->length - at, &c);
    if (*size == 0) {
        *size = 1;
        return SYMBOL;
    }
    const utf8proc_category_t category = utf8proc_category(c);
    if (category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_LO)
        return LETTER;
    if (category >= UTF8PROC_CATEGORY_ND && category <= UTF8PROC_CATEGORY_NO)
        return t->digits_end ? END : NUMBER;
    return is_space(c, category) ? SPACE : SYMBOL;
}

/* Where a run of a class that begins at a position ends, after at most `most` characters. */
static size_t run(const struct text *t, size_t at, enum sort what, int most)
{
    size_t size;
    for (int i = 0; i < most && look(t, at, &size) == what; i++)
        at += size;
    return at;
}

#define ANY_NUMBER INT32_MAX

static char lower(char c)
{
    return (char)(c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c);
}

/* Bytes of 's 't 're 've 'm 'll 'd at the beginning, or 0. */
static size_t contraction(const struct text *t, bool any_case)
{
    static const char *const endings[] = {"s", "t", "re", "ve", "m", "ll", "d"};
    if (t->length < 2 || *t->at != '\'')
        return 0;
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        size_t n = 0;
        while (endings[i][n] && 1 + n < t->length &&
               (any_case ? lower(t->at[1 + n]) : t->at[1 + n]) == endings[i][n])
            n++;
        if (!endings[i][n])
            return 1 + n;
    }
    return 0;
}

/* \s+(?!\S)|\s+ at a space: all of the run at the end of the text, else all but its last. */
static size_t spaces(const struct text *t)
{
    size_t at = 0, before = 0, size;
    while (look(t, at, &size) == SPACE) {
        before = at;
        at += size;
    }
    return look(t, at, &size) == END || before == 0 ? at : before;
}

static size_t next_gpt2(const struct text *t)
{
    size_t size, ending = contraction(t, false);
    if (ending)
        return ending;
    const size_t begin = *t->at == ' ' ? 1 : 0;
    const enum sort what = look(t, begin, &size);
    return what == END || what == SPACE ? spaces(t) : run(t, begin, what, ANY_NUMBER);
}

static bool is_newline(const struct text *t, size_t at)
{
    return at < t->length && (t->at[at] == '\n' || t->at[at] == '\r');
}

/* Behind the last newline of the spaces at the beginning; 0 if there is none. */
static size_t to_newline(const struct text *t)
{
    size_t size, last = 0;
    for (size_t at = 0; look(t, at, &size) == SPACE; at += size)
        if (is_newline(t, at))
            last = at + size;
    return last;
}

static size_t next_llama3(const struct text *t, int digits)
{
    size_t size, next, end = contraction(t, true);
    if (end)
        return end;
    const enum sort what = look(t, 0, &size);
    const enum sort behind = look(t, size, &next);
    if (what == LETTER)
        return run(t, 0, LETTER, ANY_NUMBER);
    if (what == NUMBER)
        return run(t, 0, NUMBER, digits);
    if (behind == LETTER && !is_newline(t, 0))
        return run(t, size, LETTER, ANY_NUMBER);
    if (what == SYMBOL || (*t->at == ' ' && behind == SYMBOL)) {
        end = run(t, what == SYMBOL ? 0 : 1, SYMBOL, ANY_NUMBER);
        while (is_newline(t, end))
            end++;
        return end;
    }
    end = to_newline(t);
    return end ? end : spaces(t);
}

size_t heed__split_next(heed__split split, const char *text, size_t length)
{
    struct text t = {text, length, false};
    size_t size;
    if (length == 0)
        return 0;
    if (split == HEED__SPLIT_DIGITS && look(&t, 0, &size) == NUMBER)
        return size;
    t.digits_end = split == HEED__SPLIT_DIGITS;
    if (split == HEED__SPLIT_GPT2 || split == HEED__SPLIT_DIGITS)
        return next_gpt2(&t);
    return next_llama3(&t, split == HEED__SPLIT_LLAMA3 ? 3 : 1);
}
