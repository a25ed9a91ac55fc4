/* vocab_wordpiece.c: WordPiece, as BERT uses it: a word is cut into the longest piece that it
 * begins with, then the longest "##" piece that the rest begins with, and so on; a word for
 * which that fails is unknown. */
#include "base/error.h"
#include "text/utf8.h"
#include "vocab/bert_text.h"
#include "vocab/sample_subwords.h"

#include <string.h>
#include <utf8proc.h>

#define INSIDE "##"
#define INSIDE_LENGTH (sizeof INSIDE - 1)
/* Of a word; BERT's are 100.  A word's bytes with "##" before them. */
#define MOST_CHARACTERS 1000
#define MOST_WORD (4 * MOST_CHARACTERS + INSIDE_LENGTH)

/* The longest piece that word[at, length) begins with, and its end; -1 if there is none. */
static int32_t longest_piece(const heed_vocab *v, const char *word, size_t at, size_t length,
                             size_t *end)
{
    char text[MOST_WORD];
    const size_t prefix = at ? INSIDE_LENGTH : 0;
    memcpy(text, INSIDE, prefix);
    memcpy(text + prefix, word + at, length - at);
    size_t n = length - at;
    if (prefix + n > v->longest)
        n = v->longest > prefix ? v->longest - prefix : 0;
    for (; n > 0; n--) {
        if (at + n < length && ((unsigned char)word[at + n] & 0xC0) == 0x80)
            continue; /* within a character */
        const int32_t id = heed__pieces_find(&v->pieces, text, prefix + n);
        if (id >= 0 && v->pieces.item[id].type == HEED__PIECE_NORMAL) {
            *end = at + n;
            return id;
        }
    }
    return -1;
}

static void cut_word(heed__sampler *c, const char *word, size_t length)
{
    const int64_t before = c->count;
    int32_t characters = 0;
    for (size_t i = 0; i < length; i++)
        characters += ((unsigned char)word[i] & 0xC0) != 0x80;
    for (size_t at = 0, end; characters <= c->v->most_characters && at < length; at = end) {
        const int32_t id = longest_piece(c->v, word, at, length, &end);
        if (id < 0) {
            c->count = before;
            break;
        }
        c->id[c->count++] = id;
    }
    if (c->count == before)
        c->id[c->count++] = c->v->special.unk;
}

/* Cuts a text without literals. */
static heed_status cut_text(heed__sampler *c, const char *text, size_t length, heed_error *err)
{
    const heed_vocab *v = c->v;
    const heed__bert_options o = {v->lowercase, v->strips_accents, v->separates_chinese, v->cleans};
    size_t size;
    const char *words = heed__bert_words(&o, text, length, c->arena, &size);
    if (!words)
        return heed__fail(err, HEED_MEMORY, "out of memory for a text of %zu bytes", length);
    for (size_t at = 0; at < size;) {
        const char *space = memchr(words + at, ' ', size - at);
        const size_t end = space ? (size_t)(space - words) : size;
        cut_word(c, words + at, end - at);
        at = end + 1;
    }
    return HEED_OK;
}

static heed_status cut(heed__sampler *c, heed_error *err)
{
    const char *text = c->text;
    size_t length = c->length, literal;
    /* No piece has less than a character. */
    heed_status status = length > SIZE_MAX / HEED__BERT_PARTS
                             ? heed__fail(err, HEED_MEMORY, "out of memory for %zu bytes", length)
                             : heed__sampler_reserve(c, HEED__BERT_PARTS * length, err);
    while (!status && length) {
        int32_t id;
        const size_t before = heed__literal_next(c->v, text, length, &id, &literal);
        status = cut_text(c, text, before, err);
        if (id >= 0)
            c->id[c->count++] = id;
        text += before + literal;
        length -= before + literal;
    }
    return status;
}

static bool is_inside(const heed__piece *p)
{
    return p->type == HEED__PIECE_NORMAL && p->length > INSIDE_LENGTH &&
           memcmp(p->text, INSIDE, INSIDE_LENGTH) == 0;
}

static heed_status decode(const heed_vocab *v, const int32_t *ids, int64_t n, heed_arena *arena,
                          const char **text, size_t *size, heed_error *err)
{
    size_t most = 1;
    for (int64_t i = 0; i < n; i++)
        most += v->pieces.item[ids[i]].length + sizeof HEED__UNKNOWN_SURFACE;
    char *out = heed_arena_allocate(arena, most), *p = out;
    if (!out)
        return heed__fail(err, HEED_MEMORY, "out of memory for a text of %zu bytes", most);
    for (int64_t i = 0; i < n; i++) {
        const heed__piece *piece = &v->pieces.item[ids[i]];
        const size_t skip = is_inside(piece) ? INSIDE_LENGTH : 0;
        const bool unknown = piece->type == HEED__PIECE_UNKNOWN;
        const char *from = unknown ? HEED__UNKNOWN_SURFACE : piece->text + skip;
        if (piece->type == HEED__PIECE_CONTROL)
            continue;
        if (p > out && !skip)
            *p++ = ' ';
        const size_t length = unknown ? sizeof HEED__UNKNOWN_SURFACE - 1 : piece->length - skip;
        memcpy(p, from, length);
        p += length;
    }
    *p = '\0';
    *text = out;
    *size = (size_t)(p - out);
    return HEED_OK;
}

static bool continues(const heed_vocab *v, int32_t before, int32_t id)
{
    (void)before;
    return is_inside(&v->pieces.item[id]);
}

static const heed__vocab_class wordpiece_class = {NULL, cut, decode, continues, false};

heed_status heed__wordpiece_finish(heed_vocab *v, const char *path, heed_error *err)
{
    v->kind = HEED_WORDPIECE;
    v->class = &wordpiece_class;
    if (v->special.unk < 0)
        return heed__fail(err, HEED_FORMAT,
                          "cannot use vocabulary '%s': it has no unknown piece, expected '[UNK]'",
                          path);
    if (v->most_characters < 1 || v->most_characters > MOST_CHARACTERS)
        return heed__fail(err, HEED_FORMAT,
                          "cannot use vocabulary '%s': words have at most %d characters, expected "
                          "1 to %d",
                          path, v->most_characters, MOST_CHARACTERS);
    for (int32_t i = 0; i < v->pieces.count; i++)
        if (v->pieces.item[i].length > v->longest)
            v->longest = v->pieces.item[i].length;
    return heed__literals_init(v, path, err);
}

/* ---- vocab.txt ---- */

/* Whether no piece has a capital: then texts are written in small letters, without accents, as all
 * published vocabularies of that kind are. */
static bool has_no_capitals(const heed_vocab *v)
{
    for (int32_t i = 0; i < v->pieces.count; i++) {
        const heed__piece *p = &v->pieces.item[i];
        if (p->type != HEED__PIECE_NORMAL || *p->text == '[')
            continue;
        for (size_t at = 0, n; at < p->length; at += n) {
            int32_t c;
            n = heed__utf8_next(p->text + at, p->length - at, &c);
            if (utf8proc_tolower(c) != c) /* of mathematics there are capitals without */
                return false;
        }
    }
    return true;
}

heed_status heed__wordpiece_read(heed_vocab *v, const char *path, const char *bytes, size_t size,
                                 heed_error *err)
{
    const char *end = bytes + size;
    while (bytes < end) {
        const char *lf = memchr(bytes, '\n', (size_t)(end - bytes));
        size_t length = (size_t)((lf ? lf : end) - bytes);
        const size_t text = length && bytes[length - 1] == '\r' ? length - 1 : length;
        heed_status status = heed__vocab_add(v, path, bytes, text, HEED__PIECE_NORMAL, err);
        if (status)
            return status;
        bytes += lf ? length + 1 : length;
    }
    heed__special_by_name(v);
    v->lowercase = v->strips_accents = has_no_capitals(v);
    v->cleans = v->separates_chinese = true;
    v->most_characters = 100;
    return heed__wordpiece_finish(v, path, err);
}
