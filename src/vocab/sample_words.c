/* sample_words.c: further splitting of tokenised text: like BPE dropout (sample_bpe.c), from the
 * vocabulary alone.
 *
 * With probability strength each piece is split at one of the positions where both sides are pieces
 * too, chosen uniformly, and so is each of its parts: walking -> walk@@ ing -> wa@@ lk@@ ing.  The
 * joiner must be known; without one nothing says which pieces make a word. */
#include "base/error.h"
#include "vocab/sample_subwords.h"

#include <string.h>

struct halves {
    int32_t head, tail;
};

/* A piece that may occur in text, or -1. */
static int32_t find(const heed_vocab *v, const char *text, size_t length)
{
    int32_t id = heed__pieces_find(&v->pieces, text, length);
    return id >= 0 && v->pieces.item[id].type == HEED__PIECE_NORMAL ? id : -1;
}

/* The n-th way, from 0, to split a piece into two; returns how many there are up to it. */
static int64_t take_apart(const heed_vocab *v, int32_t id, int64_t n, char *word, struct halves *h)
{
    const heed__piece *p = &v->pieces.item[id];
    const size_t joiner = v->joiner_length;
    const size_t length = p->length - (v->class->continues(v, id, id) ? joiner : 0);
    int64_t ways = 0;
    memcpy(word, p->text, p->length);
    for (size_t cut = 1; cut < length && ways <= n; cut++) {
        const size_t left = p->length - cut;
        memcpy(word + cut, v->joiner, joiner);
        h->head = find(v, word, cut + joiner);
        memcpy(word + cut, p->text + cut, left < joiner ? left : joiner);
        h->tail = h->head < 0 ? -1 : find(v, p->text + cut, left);
        ways += h->tail >= 0;
    }
    return ways;
}

/* Draws how a piece is split; false: it stays whole. */
static bool draw(heed__sampler *c, int32_t id, char *word, struct halves *h)
{
    if (c->v->pieces.item[id].type != HEED__PIECE_NORMAL || heed__sampler_draw(c) >= c->strength)
        return false;
    const int64_t ways = take_apart(c->v, id, INT64_MAX, word, h);
    if (ways == 0)
        return false;
    const int64_t n = (int64_t)(heed__sampler_draw(c) * (double)ways);
    take_apart(c->v, id, n, word, h);
    return true;
}

heed_status heed__sample_words(heed__sampler *c, heed_error *err)
{
    heed_tokens whole;
    heed_status status = heed_vocab_encode(c->v, c->text, c->length, c->arena, &whole, err);
    if (status || (status = heed__sampler_reserve(c, c->length, err)))
        return status;
    /* A piece has at most one part a character, waiting or done. */
    int32_t *waiting = heed_arena_allocate(c->arena, (c->length + 1) * sizeof *waiting);
    char *word = heed_arena_allocate(c->arena, c->length + c->v->joiner_length + 1);
    if (!waiting || !word)
        return heed__fail(err, HEED_MEMORY, "out of memory for sampling %zu bytes", c->length);
    for (int64_t i = 0; i < whole.count; i++) {
        int64_t parts = 0;
        struct halves h;
        waiting[parts++] = whole.id[i];
        while (parts > 0) {
            int32_t id = waiting[--parts];
            if (draw(c, id, word, &h)) {
                waiting[parts++] = h.tail;
                waiting[parts++] = h.head;
            } else {
                c->id[c->count++] = id;
            }
        }
    }
    return HEED_OK;
}
