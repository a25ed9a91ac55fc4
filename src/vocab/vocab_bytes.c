/* vocab_bytes.c: byte-level BPE (Radford et al., "Language Models are Unsupervised Multitask
 * Learners", 2019): a text is cut into words, their bytes are merged, best merge first.  Every text
 * has pieces, and they give it back byte for byte, whether it is UTF-8 or not. */
#include "base/error.h"
#include "text/utf8.h"
#include "vocab/byte_letters.h"
#include "vocab/sample_subwords.h"

#include <string.h>

/* The piece that a whole word is, or -1. */
static int32_t whole_word(const heed_vocab *v, const char *text, size_t length)
{
    char letters[256];
    size_t n = 0;
    if (!v->whole_words || length > sizeof letters / 2)
        return -1;
    for (size_t i = 0; i < length; i++)
        n += heed__byte_letter((unsigned char)text[i], letters + n);
    const int32_t id = heed__pieces_find(&v->pieces, letters, n);
    return id >= 0 && v->pieces.item[id].type == HEED__PIECE_NORMAL ? id : -1;
}

/* Cuts a text without literals, as if nothing stood around it. */
static heed_status cut_words(heed__sampler *c, const char *text, size_t length, heed_error *err)
{
    heed_status status = HEED_OK;
    for (size_t n; !status && length; text += n, length -= n) {
        n = heed__split_next(c->v->split, text, length);
        const int32_t id = c->strength > 0 ? -1 : whole_word(c->v, text, n);
        c->text = text;
        c->length = n;
        if (id >= 0)
            c->id[c->count++] = id;
        else
            status = heed__sample_bpe(c, err);
    }
    return status;
}

static heed_status cut(heed__sampler *c, heed_error *err)
{
    const char *text = c->text;
    size_t length = c->length, literal;
    heed_status status = heed__sampler_reserve(c, length, err);
    while (!status && length) {
        int32_t id;
        const size_t before = heed__literal_next(c->v, text, length, &id, &literal);
        status = cut_words(c, text, before, err);
        if (id >= 0)
            c->id[c->count++] = id;
        text += before + literal;
        length -= before + literal;
    }
    return status;
}

/* The bytes that a piece stands for, written to out, which may be NULL. */
static size_t bytes_of(const heed__piece *p, char *out)
{
    size_t n = 0;
    if (p->type == HEED__PIECE_CONTROL)
        return 0;
    for (size_t at = 0, size; at < p->length; at += size) {
        int32_t c;
        size = heed__utf8_next(p->text + at, p->length - at, &c);
        const int byte = p->type == HEED__PIECE_NORMAL ? heed__letter_byte(c) : -1;
        if (out && byte >= 0)
            out[n] = (char)byte;
        else if (out)
            memcpy(out + n, p->text + at, size);
        n += byte >= 0 ? 1 : size;
    }
    return n;
}

static heed_status decode(const heed_vocab *v, const int32_t *ids, int64_t n, heed_arena *arena,
                          const char **text, size_t *size, heed_error *err)
{
    static const heed__piece unknown = {.text = HEED__UNKNOWN_SURFACE,
                                        .length = sizeof HEED__UNKNOWN_SURFACE - 1,
                                        .type = HEED__PIECE_USER};
    *size = 0;
    for (int64_t i = 0; i < n; i++) {
        const heed__piece *p = &v->pieces.item[ids[i]];
        *size += bytes_of(p->type == HEED__PIECE_UNKNOWN ? &unknown : p, NULL);
    }
    char *out = heed_arena_allocate(arena, *size + 1);
    if (!out)
        return heed__fail(err, HEED_MEMORY, "out of memory for a text of %zu bytes", *size);
    *text = out;
    for (int64_t i = 0; i < n; i++) {
        const heed__piece *p = &v->pieces.item[ids[i]];
        out += bytes_of(p->type == HEED__PIECE_UNKNOWN ? &unknown : p, out);
    }
    *out = '\0';
    return HEED_OK;
}

/* The first byte that a piece stands for, or -1. */
static int first_byte(const heed__piece *p)
{
    int32_t c;
    heed__utf8_next(p->text, p->length, &c);
    return p->type == HEED__PIECE_NORMAL ? heed__letter_byte(c) : -1;
}

/* A piece that begins with white space begins a word, and so does the first byte of a character of
 * the East: 0xE3 to 0xE9. */
static bool continues(const heed_vocab *v, int32_t before, int32_t id)
{
    (void)before;
    const int byte = first_byte(&v->pieces.item[id]);
    return byte > ' ' && !(byte >= 0xE3 && byte <= 0xE9);
}

static const heed__vocab_class bytes_class = {NULL, cut, decode, continues, true};

heed_status heed__merge_add(heed_vocab *v, const char *path, int64_t number, const char *left,
                            size_t left_length, const char *right, size_t right_length,
                            heed_error *err)
{
    char joined[2048];
    const int shown = (int)(left_length < 40 ? left_length : 40);
    if (left_length + right_length > sizeof joined)
        return heed__fail(err, HEED_FORMAT,
                          "cannot use vocabulary '%s': merge %lld makes a piece of %zu bytes, "
                          "expected at most %zu",
                          path, (long long)number, left_length + right_length, sizeof joined);
    memcpy(joined, left, left_length);
    memcpy(joined + left_length, right, right_length);
    const int32_t l = heed__pieces_find(&v->pieces, left, left_length);
    const int32_t r = heed__pieces_find(&v->pieces, right, right_length);
    const int32_t both = heed__pieces_find(&v->pieces, joined, left_length + right_length);
    if (l < 0 || r < 0 || both < 0)
        return heed__fail(err, HEED_FORMAT,
                          "cannot use vocabulary '%s': merge %lld is '%.*s %.*s', but %s is no "
                          "piece",
                          path, (long long)number, shown, left,
                          (int)(right_length < 40 ? right_length : 40), right,
                          l < 0   ? "the first"
                          : r < 0 ? "the second"
                                  : "what they make");
    return heed__merges_add(&v->merges, l, r, both)
               ? HEED_OK
               : heed__fail(err, HEED_MEMORY, "out of memory for vocabulary '%s'", path);
}

heed_status heed__merge_line(heed_vocab *v, const char *path, int64_t number, const char *text,
                             size_t length, heed_error *err)
{
    const char *space = length ? memchr(text, ' ', length) : NULL;
    if (!space)
        return heed__fail(err, HEED_FORMAT,
                          "cannot use vocabulary '%s': merge %lld is '%.*s', expected two pieces "
                          "with a space between",
                          path, (long long)number, (int)(length < 40 ? length : 40),
                          length ? text : "");
    return heed__merge_add(v, path, number, text, (size_t)(space - text), space + 1,
                           length - (size_t)(space - text) - 1, err);
}

heed_status heed__bytes_finish(heed_vocab *v, const char *path, heed_error *err)
{
    v->kind = HEED_BYTES;
    v->class = &bytes_class;
    for (int i = 0; i < 256; i++) {
        char letter[3];
        const size_t n = heed__byte_letter((unsigned char)i, letter);
        v->byte_id[i] = heed__pieces_find(&v->pieces, letter, n);
        if (v->byte_id[i] < 0 && v->special.unk < 0)
            return heed__fail(err, HEED_FORMAT,
                              "cannot use vocabulary '%s': it has no piece for byte 0x%02X and no "
                              "unknown piece",
                              path, (unsigned)i);
    }
    return heed__literals_init(v, path, err);
}
