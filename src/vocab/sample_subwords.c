/* sample_subwords.c: random segmentation into subwords, for regularisation.
 *
 * SentencePiece's own samplers have a hidden generator for each thread: a resumed run would draw
 * other pieces.  These draw from a heed_rng alone.  The text is the one SentencePiece normalised
 * (its pieces, joined), or was tokenised before, so samples decode to the same text. */
#include "vocab/sample_subwords.h"
#include "base/error.h"
#include "text/utf8.h"

#include <stdio.h>

/* With less than this the best segmentation is already the only one; no overflow. */
#define MOST_STRENGTH 1e6

double heed__sampler_draw(heed__sampler *c)
{
    return heed_rng_uniform(c->rng, c->drawn++);
}

int32_t heed__sampler_find(const heed__sampler *c, size_t begin, size_t end)
{
    int32_t id = heed__pieces_find(&c->v->pieces, c->text + begin, end - begin);
    if (id < 0)
        return -1;
    heed__piece_type type = c->v->pieces.item[id].type;
    return type == HEED__PIECE_NORMAL || type == HEED__PIECE_USER ? id : -1;
}

/* Placeholders are recognised by their '<'; all have the same length. */
static int32_t placeholder_at(const heed__sampler *c, size_t at)
{
    if (c->v->special.placeholder < 0)
        return -1;
    const heed__piece *first = &c->v->pieces.item[c->v->special.placeholder];
    if (c->text[at] != '<' || c->length - at < first->length)
        return -1;
    int32_t id = heed__sampler_find(c, at, at + first->length);
    return id >= 0 && c->v->pieces.item[id].type == HEED__PIECE_USER ? id : -1;
}

size_t heed__sampler_step(const heed__sampler *c, size_t at, bool *frozen)
{
    int32_t placeholder = placeholder_at(c, at);
    *frozen = placeholder >= 0;
    if (*frozen)
        return c->v->pieces.item[placeholder].length;
    int32_t character;
    size_t n = heed__utf8_next(c->text + at, c->length - at, &character);
    return n ? n : 1;
}

void heed__sampler_add(heed__sampler *c, size_t begin, size_t end)
{
    int32_t id = heed__sampler_find(c, begin, end);
    if (id < 0 && c->v->has_bytes) {
        for (; begin < end; begin++) {
            char name[8];
            snprintf(name, sizeof name, "<0x%02X>", (unsigned char)c->text[begin]);
            c->id[c->count++] = heed_vocab_find(c->v, name);
        }
    } else if (id >= 0 || !c->after_unknown) {
        c->id[c->count++] = id < 0 ? c->v->special.unk : id;
    }
    c->after_unknown = id < 0 && c->v->kind != HEED_CHARACTERS;
}

static heed_status check(const heed_vocab *v, double strength, heed_error *err)
{
    double most = v->kind == HEED_UNIGRAM ? MOST_STRENGTH : 1;
    if (strength > 0 && v->kind == HEED_WHITESPACE && !v->joiner)
        return heed__fail(err, HEED_ARGUMENT,
                          "cannot sample: words are not split, expected a joiner of their pieces");
    if (strength > 0 && (v->kind == HEED_WORDPIECE || v->kind == HEED_CHARACTERS))
        return heed__fail(err, HEED_ARGUMENT,
                          "cannot sample: %s are cut in one way, expected unigram, bpe or bytes",
                          v->kind == HEED_WORDPIECE ? "the pieces of WordPiece" : "characters");
    if (strength > 0 && !v->class->cut)
        return heed__fail(err, HEED_ARGUMENT,
                          "cannot sample: pieces with the ids of another list are cut in one way");
    return strength >= 0 && strength <= most
               ? HEED_OK
               : heed__fail(err, HEED_ARGUMENT, "cannot sample: strength is %g, expected 0 to %g",
                            strength, most);
}

heed_status heed__sampler_reserve(heed__sampler *c, size_t most, heed_error *err)
{
    c->id = most > SIZE_MAX / sizeof *c->id ? NULL
                                            : heed_arena_allocate(c->arena, most * sizeof *c->id);
    return c->id ? HEED_OK : heed__fail(err, HEED_MEMORY, "out of memory for %zu tokens", most);
}

heed_status heed_vocab_sample(const heed_vocab *v, const char *text, size_t length, double strength,
                              const heed_rng *rng, heed_arena *arena, heed_tokens *tokens,
                              heed_error *err)
{
    if (!v)
        return heed__missing(err, "vocab");
    if (check(v, strength, err))
        return HEED_ARGUMENT;
    if (strength == 0)
        return heed_vocab_encode(v, text, length, arena, tokens, err);
    heed__sampler c = {
        .v = v, .text = text, .length = length, .strength = strength, .rng = rng, .arena = arena};
    heed_status status = v->class->cut(&c, err);
    *tokens = (heed_tokens){c.id, c.count};
    return status;
}
