/* vocab_join.c: which pieces form one word.
 *
 * Words between spaces: a piece that ends in the joiner continues in the next one.  SentencePiece:
 * a word begins at a piece with U+2581 in front.  Languages without spaces would have one word per
 * line, so there every piece is a word: two pieces are not joined if one of the characters at their
 * border is of such a script, or is full-width punctuation. */
#include "text/utf8.h"
#include "vocab/vocabulary.h"

#include <string.h>

/* Han, Hiragana, Katakana, Thai, Lao, Burmese, Khmer, and the punctuation of the first three; first
 * and last character of each block. */
bool heed__has_no_spaces(int32_t c)
{
    static const int32_t blocks[][2] = {
        {0x0E00, 0x0EFF}, {0x1000, 0x109F},   {0x1780, 0x17FF},   {0x2E80, 0x312F},
        {0x3190, 0x9FFF}, {0xA9E0, 0xA9FF},   {0xF900, 0xFAFF},   {0xFE30, 0xFE4F},
        {0xFF00, 0xFFEF}, {0x1AFF0, 0x1B16F}, {0x20000, 0x3FFFF},
    };
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++)
        if (c >= blocks[i][0] && c <= blocks[i][1])
            return true;
    return false;
}

/* Only a space: with the next piece it is a word; at the end it is not. */
static bool is_space(const heed__piece *p)
{
    return p->length == HEED__SPACE_LENGTH && memcmp(p->text, HEED__SPACE, HEED__SPACE_LENGTH) == 0;
}

bool heed__spm_continues(const heed_vocab *v, int32_t before, int32_t id)
{
    const heed__piece *a = &v->pieces.item[before], *b = &v->pieces.item[id];
    if (is_space(a))
        return true;
    if (b->length >= HEED__SPACE_LENGTH && memcmp(b->text, HEED__SPACE, HEED__SPACE_LENGTH) == 0)
        return false;
    int32_t left, right;
    heed__utf8_last(a->text, a->length, &left);
    heed__utf8_next(b->text, b->length, &right);
    return !heed__has_no_spaces(left) && !heed__has_no_spaces(right);
}

static bool continues_word(const heed_vocab *v, int32_t before, int32_t id)
{
    const bool control = v->pieces.item[before].type == HEED__PIECE_CONTROL ||
                         v->pieces.item[id].type == HEED__PIECE_CONTROL;
    return !control && v->class->continues(v, before, id);
}

/* The piece, or the unknown one where there is none with this id. */
static int32_t known(const heed_vocab *v, int32_t id)
{
    return id >= 0 && id < v->pieces.count ? id : v->special.unk >= 0 ? v->special.unk : 0;
}

int64_t heed_vocab_words(const heed_vocab *v, const int32_t *ids, int64_t n, int32_t *word)
{
    int32_t words = 0, before = 0;
    for (int64_t i = 0; i < n; i++) {
        const int32_t id = known(v, ids[i]);
        const bool ends =
            i + 1 == n || v->pieces.item[known(v, ids[i + 1])].type == HEED__PIECE_CONTROL;
        const bool nothing = ends && v->kind != HEED_WHITESPACE && is_space(&v->pieces.item[id]);
        words += i == 0 || !(nothing || continues_word(v, before, id));
        word[i] = words - 1;
        before = id;
    }
    return words;
}
