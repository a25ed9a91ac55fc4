/* vocab_yml.c: the YAML that vocabularies are written in, and no more: `piece: id`, the piece
 * plain, in 'single' quotes ('' is one) or in "double" ones with escapes, or `? piece` and `:
 * id` on two lines.  Readers of YAML skip some of these pieces, so it is read by hand. */
#include "files/vocab_yml.h"
#include "base/error.h"

#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

struct reading {
    const char *name, *at, *end;
    int64_t line;
    heed_arena *arena;
    heed_error *err;
};

static heed_status wrong(const struct reading *r, const char *what)
{
    return heed__fail(r->err, HEED_FORMAT, "cannot read vocabulary '%s': line %lld %s", r->name,
                      (long long)r->line, what);
}

static int hex(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

/* An escape behind its backslash, written as UTF-8; *at moves over it.  0 if it is none. */
static size_t unescape(const char **at, const char *end, char *out)
{
    static const char names[] = "0abtnvfre \"/\\N_LP";
    static const int32_t values[] = {0,   7,   8,   9,    10,   11,   12,     13,    27,
                                     ' ', '"', '/', '\\', 0x85, 0xA0, 0x2028, 0x2029};
    if (*at == end)
        return 0;
    const char c = *(*at)++;
    const int digits = c == 'x' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : 0;
    int32_t value = 0;
    const char *known = digits || !c ? NULL : strchr(names, c);
    for (int i = 0; i < digits; i++) {
        const int digit = *at < end ? hex(**at) : -1;
        if (digit < 0 || value > 0x10FFFF)
            return 0;
        value = value * 16 + digit;
        ++*at;
    }
    if (!digits && !known)
        return 0;
    value = known ? values[known - names] : value;
    return value > 0 && utf8proc_codepoint_valid(value)
               ? (size_t)utf8proc_encode_char(value, (utf8proc_uint8_t *)out)
               : 0;
}

/* A quoted text from its first quote on; *at moves behind the last. */
static heed_status read_quoted(struct reading *r, const char **at, const char *end, char *out,
                               size_t *length)
{
    const char quote = *(*at)++;
    size_t n = 0;
    while (*at < end) {
        const char c = *(*at)++;
        if (c == quote && quote == '\'' && *at < end && **at == '\'') {
            out[n++] = *(*at)++;
        } else if (c == quote) {
            *length = n;
            return HEED_OK;
        } else if (c == '\\' && quote == '"') {
            const size_t size = unescape(at, end, out + n);
            if (!size)
                return wrong(r, "has an escape that YAML does not have");
            n += size;
        } else {
            out[n++] = c;
        }
    }
    return wrong(r, "has a quote that does not end");
}

/* Where ": " before the id begins: the last of the line. */
static const char *find_colon(const char *begin, const char *end)
{
    for (const char *c = end - 1; c > begin; c--)
        if (*c == ' ' && c[-1] == ':')
            return c - 1;
    return NULL;
}

static bool read_id(const char *at, const char *end, int64_t *id)
{
    while (at < end && *at == ' ')
        at++;
    while (end > at && (end[-1] == ' ' || end[-1] == '\r'))
        end--;
    *id = 0;
    if (at == end || end - at > 9)
        return false;
    for (; at < end; at++) {
        if (*at < '0' || *at > '9')
            return false;
        *id = *id * 10 + (*at - '0');
    }
    return true;
}

/* The next line, without its end; false at the end of the file. */
static bool next_line(struct reading *r, const char **begin, const char **end)
{
    if (r->at >= r->end)
        return false;
    const char *lf = memchr(r->at, '\n', (size_t)(r->end - r->at));
    *begin = r->at;
    *end = lf ? lf : r->end;
    r->at = lf ? lf + 1 : r->end;
    r->line++;
    return true;
}

static heed_status read_piece(struct reading *r, const char *at, const char *end,
                              heed__yml_piece *p)
{
    const bool two_lines = end - at > 2 && at[0] == '?' && at[1] == ' ';
    at += two_lines ? 2 : 0;
    /* an escape of two characters may make three bytes: \L, U+2028 */
    char *text = heed_arena_allocate(r->arena, 2 * (size_t)(end - at) + 1);
    if (!text)
        return heed__fail(r->err, HEED_MEMORY, "out of memory for vocabulary '%s'", r->name);
    const bool quoted = *at == '\'' || *at == '"';
    if (quoted) {
        heed_status status = read_quoted(r, &at, end, text, &p->length);
        if (status)
            return status;
    } else {
        const char *colon = two_lines ? end : find_colon(at, end);
        if (!colon)
            return wrong(r, "has no id, expected 'piece: id'");
        p->length = (size_t)(colon - at);
        memcpy(text, at, p->length);
        at = colon;
    }
    if (two_lines && !next_line(r, &at, &end))
        return wrong(r, "is the last, expected ': id' behind '? piece'");
    if (at == end || *at != ':' || !read_id(at + 1, end, &p->id))
        return wrong(r, "has no id, expected 'piece: id' with a number of at most nine digits");
    if (memchr(text, '\0', p->length) || p->length == 0)
        return wrong(r, "has an empty piece, or one with a NUL");
    text[p->length] = '\0';
    p->text = text;
    return HEED_OK;
}

static int by_id(const void *a, const void *b)
{
    const heed__yml_piece *x = a, *y = b;
    return x->id < y->id ? -1 : x->id > y->id;
}

heed_status heed__yml_read(const char *name, const char *bytes, size_t size, heed_arena *arena,
                           heed__yml_piece **piece, size_t *count, heed_error *err)
{
    struct reading r = {name, bytes, bytes + size, 0, arena, err};
    size_t lines = 1;
    const char *begin, *end;
    for (size_t i = 0; i < size; i++)
        lines += bytes[i] == '\n';
    *count = 0;
    *piece = heed_arena_allocate(arena, lines * sizeof **piece);
    if (!*piece)
        return heed__fail(err, HEED_MEMORY, "out of memory for vocabulary '%s'", name);
    while (next_line(&r, &begin, &end)) {
        if (end > begin && end[-1] == '\r')
            end--;
        const bool nothing = begin == end || (end - begin == 3 && memcmp(begin, "---", 3) == 0);
        heed_status status = nothing ? HEED_OK : read_piece(&r, begin, end, &(*piece)[*count]);
        if (status)
            return status;
        *count += !nothing;
    }
    if (*count)
        qsort(*piece, *count, sizeof **piece, by_id);
    for (size_t i = 1; i < *count; i++)
        if ((*piece)[i].id == (*piece)[i - 1].id)
            return heed__fail(err, HEED_FORMAT,
                              "cannot read vocabulary '%s': '%.60s' and '%.60s' both have id %lld",
                              name, (*piece)[i - 1].text, (*piece)[i].text,
                              (long long)(*piece)[i].id);
    return HEED_OK;
}
