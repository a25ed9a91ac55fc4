/* vocab_scored.c: BPE by scores, as llama.cpp and llama2.c store SentencePiece's: two neighbours
 * can be merged if together they are a piece, the best score first; what is in no piece is
 * written with the pieces of its bytes.  Spaces are U+2581.  Without any merges: characters. */
#include "base/error.h"
#include "text/utf8.h"
#include "vocab/sample_subwords.h"

#include <stdio.h>
#include <string.h>

/* The text with U+2581 for spaces, and one before it where the vocabulary wants that. */
static heed_status escape(heed__sampler *c, const char *text, size_t length, bool begins,
                          heed_error *err)
{
    begins &= c->v->begins_with_space && length > 0;
    size_t size = length + (begins ? HEED__SPACE_LENGTH : 0);
    for (size_t i = 0; i < length; i++)
        size += text[i] == ' ' ? HEED__SPACE_LENGTH - 1 : 0;
    char *out = heed_arena_allocate(c->arena, size);
    if (!out)
        return heed__fail(err, HEED_MEMORY, "out of memory for a text of %zu bytes", size);
    c->text = out;
    c->length = size;
    if (begins)
        memcpy(out, HEED__SPACE, HEED__SPACE_LENGTH), out += HEED__SPACE_LENGTH;
    for (size_t i = 0; i < length; i++)
        if (text[i] == ' ')
            memcpy(out, HEED__SPACE, HEED__SPACE_LENGTH), out += HEED__SPACE_LENGTH;
        else
            *out++ = text[i];
    return HEED_OK;
}

static heed_status cut(heed__sampler *c, heed_error *err)
{
    const char *text = c->text;
    size_t length = c->length, literal;
    heed_status status = length > SIZE_MAX / 4
                             ? heed__fail(err, HEED_MEMORY, "out of memory for %zu bytes", length)
                             : heed__sampler_reserve(c, HEED__SPACE_LENGTH * (length + 1), err);
    for (bool begins = true; !status && length; begins = false) {
        int32_t id;
        const size_t before = heed__literal_next(c->v, text, length, &id, &literal);
        status = escape(c, text, before, begins, err);
        c->after_unknown = false;
        if (!status)
            status = heed__sample_bpe(c, err);
        if (id >= 0)
            c->id[c->count++] = id;
        text += before + literal;
        length -= before + literal;
    }
    return status;
}

static int hex_digit(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* The byte of a piece <0x00> to <0xFF>, or -1. */
static int byte_of(const char *text, size_t length)
{
    if (length != 6 || memcmp(text, "<0x", 3) != 0 || text[5] != '>')
        return -1;
    const int high = hex_digit(text[3]), low = hex_digit(text[4]);
    return high < 0 || low < 0 ? -1 : high << 4 | low;
}

/* Writes what a piece stands for; at most as many bytes as the piece has, or the unknown
 * surface. */
static char *write_piece(const heed__piece *p, char *out)
{
    if (p->type == HEED__PIECE_CONTROL)
        return out;
    if (p->type == HEED__PIECE_BYTE) {
        *out = (char)byte_of(p->text, p->length);
        return out + 1;
    }
    if (p->type == HEED__PIECE_UNKNOWN) {
        memcpy(out, HEED__UNKNOWN_SURFACE, sizeof HEED__UNKNOWN_SURFACE - 1);
        return out + sizeof HEED__UNKNOWN_SURFACE - 1;
    }
    for (size_t i = 0; i < p->length;)
        if (p->length - i >= HEED__SPACE_LENGTH &&
            memcmp(p->text + i, HEED__SPACE, HEED__SPACE_LENGTH) == 0)
            *out++ = ' ', i += HEED__SPACE_LENGTH;
        else
            *out++ = p->text[i++];
    return out;
}

heed_status heed__scored_decode(const heed_vocab *v, const int32_t *ids, int64_t n,
                                heed_arena *arena, const char **text, size_t *size, heed_error *err)
{
    size_t most = 1;
    for (int64_t i = 0; i < n; i++)
        most += v->pieces.item[ids[i]].length + sizeof HEED__UNKNOWN_SURFACE;
    char *out = heed_arena_allocate(arena, most), *p = out;
    if (!out)
        return heed__fail(err, HEED_MEMORY, "out of memory for a text of %zu bytes", most);
    for (int64_t i = 0; i < n; i++)
        p = write_piece(&v->pieces.item[ids[i]], p);
    *p = '\0';
    const bool space = v->begins_with_space && p > out && *out == ' ';
    *text = out + space;
    *size = (size_t)(p - *text);
    return HEED_OK;
}

/* With a piece for each byte any bytes are a text. */
static const heed__vocab_class scored_class = {NULL, cut, heed__scored_decode, heed__spm_continues,
                                               true};
static const heed__vocab_class characters_class = {NULL, cut, heed__scored_decode,
                                                   heed__spm_continues, false};

heed_status heed__scored_finish(heed_vocab *v, const char *path, heed_error *err)
{
    int bytes = 0;
    for (int32_t i = 0; i < v->pieces.count; i++) {
        heed__piece *p = &v->pieces.item[i];
        const int byte = byte_of(p->text, p->length);
        if (p->type == HEED__PIECE_BYTE && byte < 0)
            return heed__fail(err, HEED_FORMAT,
                              "cannot use vocabulary '%s': piece %d is '%.40s', expected a byte as "
                              "<0x0A>, which its type says it is",
                              path, i, p->text);
        bytes += p->type == HEED__PIECE_BYTE;
        if (p->length > v->longest)
            v->longest = p->length;
    }
    if (bytes > 0 && bytes < 256)
        return heed__fail(err, HEED_FORMAT,
                          "cannot use vocabulary '%s': it has pieces for %d bytes, expected 256",
                          path, bytes);
    if (bytes == 0 && v->special.unk < 0)
        return heed__fail(err, HEED_FORMAT,
                          "cannot use vocabulary '%s': it has neither an unknown piece nor one for "
                          "each byte",
                          path);
    v->has_bytes = bytes > 0;
    v->class = v->has_bytes ? &scored_class : &characters_class;
    return heed__literals_init(v, path, err);
}
