/* vocab_words.c: the vocabulary of text that is already tokenised, with tokens between spaces.
 *
 * Its file has one piece per line, the special ones first.  The others are sorted by count, then by
 * their bytes, so that the same text always gives the same file. */
#include "base/error.h"
#include "base/file.h"
#include "base/memory.h"
#include "text/utf8.h"
#include "vocab/sample_subwords.h"

#include <stdlib.h>
#include <string.h>

static bool is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

/* The next token of [*at, end), or NULL; *at moves to its end. */
static const char *next_token(const char **at, const char *end, size_t *length)
{
    const char *p = *at;
    while (p < end && is_space(*p))
        p++;
    const char *token = p;
    while (p < end && !is_space(*p))
        p++;
    *at = p;
    *length = (size_t)(p - token);
    return *length ? token : NULL;
}

/* ---- the file ---- */

static heed_status check_line(const char *path, int64_t number, const char *line, size_t length,
                              heed_error *err)
{
    size_t bad;
    if (length == 0)
        return heed__fail(err, HEED_FORMAT,
                          "cannot read vocabulary '%s': line %lld is empty, expected one piece a "
                          "line",
                          path, (long long)number);
    if (!heed_utf8_valid(line, length, &bad))
        return heed__fail(err, HEED_FORMAT,
                          "cannot read vocabulary '%s': line %lld, byte %zu is not UTF-8", path,
                          (long long)number, bad + 1);
    for (size_t i = 0; i < length; i++)
        if (is_space(line[i]) || line[i] == '\0')
            return heed__fail(err, HEED_FORMAT,
                              "cannot read vocabulary '%s': line %lld has a %s in it, expected one "
                              "piece a line",
                              path, (long long)number, line[i] ? "space" : "NUL");
    if (number <= HEED__SPECIALS) {
        const char *special = heed__special((int32_t)number - 1);
        if (strlen(special) != length || memcmp(line, special, length) != 0)
            return heed__fail(
                err, HEED_FORMAT, "cannot read vocabulary '%s': line %lld is '%.*s', expected '%s'",
                path, (long long)number, (int)(length < 40 ? length : 40), line, special);
    }
    return HEED_OK;
}

heed_status heed__words_read(heed_vocab *v, const char *path, const char *bytes, size_t size,
                             heed_error *err)
{
    v->kind = HEED_WHITESPACE;
    v->class = &heed__words_class;
    const char *end = bytes + size;
    for (int64_t number = 1; bytes < end; number++) {
        const char *lf = memchr(bytes, '\n', (size_t)(end - bytes));
        size_t length = (size_t)((lf ? lf : end) - bytes);
        size_t text = length && lf && bytes[length - 1] == '\r' ? length - 1 : length;
        if (check_line(path, number, bytes, text, err))
            return HEED_FORMAT;
        int32_t before = v->pieces.count;
        int32_t id = heed__pieces_add(&v->pieces, bytes, text);
        if (id < 0)
            return heed__fail(err, HEED_MEMORY, "out of memory for vocabulary '%s'", path);
        if (id < before)
            return heed__fail(err, HEED_FORMAT,
                              "cannot read vocabulary '%s': line %lld is '%.*s', which line %d was "
                              "before",
                              path, (long long)number, (int)(text < 40 ? text : 40), bytes, id + 1);
        if (id < HEED__SPECIALS)
            v->pieces.item[id].type = heed__special_type(id);
        bytes += lf ? length + 1 : length;
    }
    if (v->pieces.count < HEED__SPECIALS)
        return heed__fail(err, HEED_FORMAT,
                          "cannot read vocabulary '%s': it ends after %d lines, expected '%s' next",
                          path, v->pieces.count, heed__special(v->pieces.count));
    return HEED_OK;
}

/* ---- encoding and decoding ---- */

static heed_status encode(const heed_vocab *v, const char *text, size_t length, heed_arena *arena,
                          heed_tokens *tokens, heed_error *err)
{
    const char *end = text + length, *at = text, *token;
    size_t n;
    int64_t count = 0;
    while (next_token(&at, end, &n))
        count++;
    int32_t *id = heed_arena_allocate(arena, (size_t)count * sizeof *id);
    if (!id)
        return heed__fail(err, HEED_MEMORY, "out of memory for %lld tokens", (long long)count);
    at = text;
    for (int64_t i = 0; (token = next_token(&at, end, &n)); i++) {
        int32_t found = heed__pieces_find(&v->pieces, token, n);
        /* "</s>" in the text does not end a sentence. */
        id[i] =
            found < 0 || v->pieces.item[found].type == HEED__PIECE_CONTROL ? v->special.unk : found;
    }
    *tokens = (heed_tokens){id, count};
    return HEED_OK;
}

/* Whether the piece before is joined to the next one. */
static bool continues(const heed_vocab *v, int32_t before, int32_t id)
{
    (void)id;
    const heed__piece *p = &v->pieces.item[before];
    return v->joiner && p->type == HEED__PIECE_NORMAL && p->length >= v->joiner_length &&
           memcmp(p->text + p->length - v->joiner_length, v->joiner, v->joiner_length) == 0;
}

static heed_status decode(const heed_vocab *v, const int32_t *ids, int64_t n, heed_arena *arena,
                          const char **text, size_t *length_out, heed_error *err)
{
    size_t size = 1;
    for (int64_t i = 0; i < n; i++)
        size += v->pieces.item[ids[i]].length + sizeof HEED__UNKNOWN_SURFACE;
    char *out = heed_arena_allocate(arena, size);
    if (!out)
        return heed__fail(err, HEED_MEMORY, "out of memory for a text of %zu bytes", size);
    char *p = out;
    bool joined = true;
    for (int64_t i = 0; i < n; i++) {
        const heed__piece *piece = &v->pieces.item[ids[i]];
        if (piece->type == HEED__PIECE_CONTROL)
            continue;
        bool unknown = piece->type == HEED__PIECE_UNKNOWN;
        const char *from = unknown ? HEED__UNKNOWN_SURFACE : piece->text;
        size_t length = unknown ? sizeof HEED__UNKNOWN_SURFACE - 1 : piece->length;
        if (!joined)
            *p++ = ' ';
        joined = continues(v, ids[i], ids[i]);
        if (joined)
            length -= v->joiner_length;
        memcpy(p, from, length);
        p += length;
    }
    *p = '\0';
    *text = out;
    *length_out = (size_t)(p - out);
    return HEED_OK;
}

const heed__vocab_class heed__words_class = {encode, heed__sample_words, decode, continues, false};

/* ---- learning ---- */

static int by_count(const void *a, const void *b)
{
    const heed__piece *x = a, *y = b;
    if (x->count != y->count)
        return x->count < y->count ? 1 : -1;
    return strcmp(x->text, y->text);
}

static heed_status count_words(heed__pieces *words, const heed_line_source *lines, heed_error *err)
{
    for (int32_t i = 0; i < HEED__SPECIALS; i++)
        if (heed__pieces_add(words, heed__special(i), strlen(heed__special(i))) < 0)
            return heed__fail(err, HEED_MEMORY, "out of memory for a vocabulary");
    for (;;) {
        const char *line, *token;
        size_t length, n;
        heed_status status = lines->next(lines->context, &line, &length, err);
        if (status || !line)
            return status;
        for (const char *at = line; (token = next_token(&at, line + length, &n));) {
            int32_t id = heed__pieces_add(words, token, n);
            if (id < 0)
                return heed__fail(err, HEED_MEMORY, "out of memory for a vocabulary of %d words",
                                  words->count);
            words->item[id].count++;
        }
    }
}

static heed_status write_words(const heed__pieces *words, int32_t count, const char *path,
                               heed_error *err)
{
    heed__atomic_file *f = heed__atomic_open(path, &words->allocator, err);
    if (!f)
        return HEED_IO;
    for (int32_t i = 0; i < count; i++) {
        const heed__piece *w = &words->item[i];
        if (heed__atomic_write(f, w->text, w->length, err) || heed__atomic_write(f, "\n", 1, err)) {
            heed__atomic_abandon(f);
            return HEED_IO;
        }
    }
    return heed__atomic_commit(f, err);
}

heed_status heed__words_learn(const heed_vocab_options *options, const heed_line_source *lines,
                              const char *path, int32_t *count, heed_error *err)
{
    heed__pieces words = {0};
    heed_status status = heed__pieces_init(&words, NULL, err);
    if (!status)
        status = count_words(&words, lines, err);
    if (!status && words.count == HEED__SPECIALS)
        status = heed__fail(err, HEED_ARGUMENT,
                            "cannot learn vocabulary '%s': there is not a word in the text", path);
    if (!status) {
        *count = words.count;
        qsort(words.item + HEED__SPECIALS, (size_t)(words.count - HEED__SPECIALS),
              sizeof *words.item, by_count);
        while (*count > HEED__SPECIALS && words.item[*count - 1].count < options->min_count)
            --*count;
        if (options->size && options->size < *count)
            *count = (int32_t)options->size;
        status = *count > HEED__SPECIALS
                     ? write_words(&words, *count, path, err)
                     : heed__fail(err, HEED_ARGUMENT,
                                  "cannot learn vocabulary '%s': the most frequent word was seen "
                                  "%lld times, expected at least %lld (min_count)",
                                  path, (long long)words.item[HEED__SPECIALS].count,
                                  (long long)options->min_count);
    }
    heed__pieces_deinit(&words);
    return status;
}
