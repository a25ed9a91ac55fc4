/* pass_through.c: lines that are their own translation, because the model can make nothing of them:
 * one unbroken text, nothing but marks, a script that the vocabulary does not have, and what is too
 * long to be a line of text. */
#include "base/error.h"
#include "base/memory.h"
#include "text/utf8.h"
#include "translate/translator.h"

#include <string.h>
#include <utf8proc.h>

/* Fewest bytes of a line of marks, and of unbroken text, that no model needs to see. */
#define MARKS 16
#define UNBROKEN 64
#define CHARACTERS 0x110000

/* ---- characters of a vocabulary ---- */

/* Whether a vocabulary writes what is in none of its pieces as bytes; -1 when memory is short. */
static int knows_bytes(const heed_vocab *v, heed_arena *arena)
{
    static const char rare[] = "\xEA\x93\x90"; /* a letter of the Lisu */
    const int32_t unknown = heed_vocab_special(v).unk;
    heed_tokens pieces;
    if (heed_vocab_encode(v, rare, sizeof rare - 1, arena, &pieces, NULL))
        return -1;
    for (int64_t i = 0; i < pieces.count; i++)
        if (pieces.id[i] == unknown)
            return false;
    return pieces.count > 0;
}

uint8_t *heed__characters_of(const heed_vocab *v, heed_arena *arena, const heed_allocator *a,
                             heed_error *err)
{
    const int bytes = knows_bytes(v, arena);
    uint8_t *known = bytes < 0 ? NULL : heed__allocate_zeroed(a, CHARACTERS / 8, 1);
    if (!known) {
        heed__fail(err, HEED_MEMORY, "out of memory for the characters of a vocabulary");
        return NULL;
    }
    if (bytes) {
        memset(known, 0xFF, CHARACTERS / 8);
        return known;
    }
    for (int32_t id = 0, n = heed_vocab_size(v), c; id < n; id++) {
        const char *piece = heed_vocab_piece(v, id);
        size_t left = strlen(piece), size;
        for (; (size = heed__utf8_next(piece, left, &c)); piece += size, left -= size)
            known[c / 8] |= (uint8_t)(1 << c % 8);
    }
    return known;
}

void heed__characters_free(uint8_t *known, const heed_allocator *a)
{
    heed__release(a, known, CHARACTERS / 8, 1);
}

/* ---- lines ---- */

/* Whether more than half of its letters are not in any piece. */
static bool is_foreign(const uint8_t *known, const char *text, size_t length)
{
    int64_t letters = 0, unknown = 0;
    int32_t c;
    for (size_t at = 0, n; at < length && (n = heed__utf8_next(text + at, length - at, &c));
         at += n) {
        const utf8proc_category_t kind = utf8proc_category(c);
        if (kind < UTF8PROC_CATEGORY_LU || kind > UTF8PROC_CATEGORY_LO)
            continue;
        letters++;
        unknown += !(known[c / 8] >> c % 8 & 1);
    }
    return 2 * unknown > letters;
}

static bool has_words(const char *text, size_t length)
{
    for (size_t at = 0; at < length; at++)
        if (heed__word_at(text, length, at))
            return true;
    return false;
}

bool heed__passes_through(const heed__limits *limits, const char *text, size_t length)
{
    heed__span s;
    if (length > HEED_LONGEST_LINE || (length >= MARKS && !has_words(text, length)) ||
        (limits->characters && is_foreign(limits->characters, text, length)))
        return true;
    return length >= UNBROKEN && !memchr(text, ' ', length) &&
           heed__span_next(text, length, 0, HEED__ANY_LANGUAGE, &s) && s.end - s.begin == length;
}
