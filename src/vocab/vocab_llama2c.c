/* vocab_llama2c.c: tokenizer.bin of llama2.c: i32 bytes of the longest piece, then for each
 * piece f32 score, i32 length, bytes.  Its pieces are SentencePiece's with spaces for U+2581; 0
 * is the unknown piece, 1 BOS, 2 EOS, 3 to 258 the bytes, as <0x0A> or, in older files, as the
 * character of that number. */
#include "base/byte_cursor.h"
#include "base/error.h"
#include "vocab/vocabulary.h"

#include <math.h>
#include <stdio.h>

enum { UNKNOWN, BOS, EOS, FIRST_BYTE, BEHIND_BYTES = FIRST_BYTE + 256 };

/* BOS and EOS are stored with a newline around them. */
static heed_status add_piece(heed_vocab *v, const char *path, const char *text, size_t length,
                             heed_error *err)
{
    static const char *const names[] = {"<unk>", "<s>", "</s>"};
    const int32_t id = v->pieces.count;
    char escaped[3 * 1024];
    size_t n = 0;
    if (id >= FIRST_BYTE && id < BEHIND_BYTES) {
        const int name = snprintf(escaped, sizeof escaped, "<0x%02X>", (unsigned)(id - FIRST_BYTE));
        const bool named = length == (size_t)name && memcmp(text, escaped, length) == 0;
        if (!named && (length < 1 || length > 2))
            return heed__fail(err, HEED_FORMAT,
                              "cannot read vocabulary '%s': piece %d is no byte, expected '%s'",
                              path, id, escaped);
        return heed__vocab_add(v, path, escaped, (size_t)name, HEED__PIECE_BYTE, err);
    }
    if (id <= EOS)
        return heed__vocab_add(v, path, names[id], strlen(names[id]),
                               id == UNKNOWN ? HEED__PIECE_UNKNOWN : HEED__PIECE_CONTROL, err);
    for (size_t i = 0; i < length && n + HEED__SPACE_LENGTH <= sizeof escaped; i++)
        if (text[i] == ' ')
            memcpy(escaped + n, HEED__SPACE, HEED__SPACE_LENGTH), n += HEED__SPACE_LENGTH;
        else
            escaped[n++] = text[i];
    return heed__vocab_add(v, path, escaped, n, HEED__PIECE_NORMAL, err);
}

heed_status heed__llama2c_vocab_read(heed_vocab *v, const char *path, const char *bytes,
                                     size_t size, heed_error *err)
{
    heed__byte_cursor c = heed__bytes_over(bytes, size);
    const uint32_t longest = heed__read_u32(&c);
    while (heed__bytes_left(&c) > 0) {
        const float score = heed__read_f32(&c);
        const uint32_t length = heed__read_u32(&c);
        const unsigned char *text = heed__read_bytes(&c, length);
        if (!text || length > longest || length > 1024 || !isfinite(score))
            return heed__fail(err, HEED_FORMAT,
                              "cannot read vocabulary '%s': piece %d has %u bytes and score %g, "
                              "expected at most %u bytes and a number (as in llama2.c's "
                              "tokenizer.bin)",
                              path, v->pieces.count, length, (double)score, longest);
        heed_status status = add_piece(v, path, (const char *)text, length, err);
        if (status)
            return status;
        v->pieces.item[v->pieces.count - 1].score = score;
    }
    if (v->pieces.count < BEHIND_BYTES)
        return heed__fail(err, HEED_FORMAT,
                          "cannot read vocabulary '%s': it has %d pieces, expected at least %d (as "
                          "in llama2.c's tokenizer.bin)",
                          path, v->pieces.count, BEHIND_BYTES);
    v->special = (heed_special_ids){UNKNOWN, BOS, EOS, -1, -1, -1, -1, BOS, -1, 0};
    v->kind = HEED_BPE;
    v->begins_with_space = true;
    return heed__scored_finish(v, path, err);
}
