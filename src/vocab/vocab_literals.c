/* vocab_literals.c: pieces that are found in a text as they stand: placeholders, [MASK]. */
#include "base/error.h"
#include "vocab/vocabulary.h"

#include <string.h>

heed_status heed__literals_init(heed_vocab *v, const char *path, heed_error *err)
{
    heed__literals *l = &v->literals;
    for (int32_t i = 0; i < v->pieces.count; i++)
        l->count += v->pieces.item[i].type == HEED__PIECE_USER;
    l->id = heed_arena_allocate(v->pieces.arena, (size_t)l->count * sizeof *l->id);
    if (!l->id)
        return heed__fail(err, HEED_MEMORY, "out of memory for vocabulary '%s'", path);
    l->count = 0;
    for (int32_t i = 0; i < v->pieces.count; i++) {
        if (v->pieces.item[i].type != HEED__PIECE_USER)
            continue;
        l->id[l->count++] = i;
        l->first[(unsigned char)*v->pieces.item[i].text] = true;
    }
    return HEED_OK;
}

/* The longest literal that a text begins with, or -1. */
static int32_t literal_at(const heed_vocab *v, const char *text, size_t length)
{
    int32_t best = -1;
    for (int32_t i = 0; i < v->literals.count; i++) {
        const heed__piece *p = &v->pieces.item[v->literals.id[i]];
        if (p->length <= length && memcmp(text, p->text, p->length) == 0 &&
            (best < 0 || p->length > v->pieces.item[best].length))
            best = v->literals.id[i];
    }
    return best;
}

size_t heed__literal_next(const heed_vocab *v, const char *text, size_t length, int32_t *id,
                          size_t *size)
{
    *id = -1;
    *size = 0;
    for (size_t at = 0; v->literals.count && at < length; at++)
        if (v->literals.first[(unsigned char)text[at]] &&
            (*id = literal_at(v, text + at, length - at)) >= 0) {
            *size = v->pieces.item[*id].length;
            return at;
        }
    return length;
}
