/* vocab.c: vocabularies: opening, looking up, and the way to the one kind or the other. */
#include "text/vocab.h"
#include "base/error.h"
#include "base/file.h"
#include "base/memory.h"
#include "text/utf8.h"

#include <string.h>

const char *heed__special(int32_t i)
{
    static const char *const text[HEED__SPECIALS] = {
        "<unk>", "<s>",   "</s>",  "<ph0>", "<ph1>", "<ph2>", "<ph3>",
        "<ph4>", "<ph5>", "<ph6>", "<ph7>", "<ph8>", "<ph9>",
    };
    return text[i];
}

heed__piece_type heed__special_type(int32_t i)
{
    return i == HEED_UNK                    ? HEED__PIECE_UNKNOWN
           : i == HEED_BOS || i == HEED_EOS ? HEED__PIECE_CONTROL
                                            : HEED__PIECE_USER;
}

/* ---- opening ---- */

static heed_status set_joiner(heed_vocab *v, const char *joiner, heed_error *err)
{
    size_t n = strlen(joiner);
    while (n > 0 && joiner[n - 1] == ' ')
        n--;
    if (n == 0 || memchr(joiner, ' ', n))
        return heed__fail(err, HEED_ARGUMENT,
                          "the joiner is '%s', expected what a piece ends in, as in '@@ '", joiner);
    v->joiner = heed__allocate(&v->allocator, n, 1);
    if (!v->joiner)
        return heed__fail(err, HEED_MEMORY, "out of memory for a vocabulary");
    memcpy(v->joiner, joiner, n);
    v->joiner_length = n;
    return HEED_OK;
}

static heed_status read_pieces(heed_vocab *v, const char *path, const char *joiner,
                               const char *bytes, size_t size, heed_error *err)
{
    if (size == 0)
        return heed__fail(err, HEED_FORMAT, "cannot read vocabulary '%s': it is empty", path);
    v->kind = HEED_WHITESPACE;
    if (joiner && set_joiner(v, joiner, err))
        return err ? err->status : HEED_ARGUMENT;
    return heed__words_read(v, path, bytes, size, err);
}

heed_vocab *heed_vocab_open(const char *path, const char *joiner, const heed_allocator *allocator,
                            heed_error *err)
{
    const void *bytes;
    size_t size;
    if (heed__file_map(path, &bytes, &size, err))
        return NULL;
    heed_allocator a = heed__allocator_or_default(allocator);
    heed_vocab *v = heed__allocate_zeroed(&a, 1, sizeof *v);
    if (v) {
        v->allocator = a;
        if (heed__pieces_init(&v->pieces, &a, err) ||
            read_pieces(v, path, joiner, bytes, size, err)) {
            heed_vocab_free(v);
            v = NULL;
        }
    } else {
        heed__fail(err, HEED_MEMORY, "out of memory for vocabulary '%s'", path);
    }
    heed__file_unmap(bytes, size);
    return v;
}

void heed_vocab_free(heed_vocab *v)
{
    if (!v)
        return;
    heed_allocator a = v->allocator;
    heed__release(&a, v->joiner, v->joiner_length, 1);
    heed__pieces_deinit(&v->pieces);
    heed__release(&a, v, 1, sizeof *v);
}

/* ---- looking up ---- */

int32_t heed_vocab_size(const heed_vocab *v)
{
    return v->pieces.count;
}

static bool in_range(const heed_vocab *v, int32_t id)
{
    return id >= 0 && id < v->pieces.count;
}

const char *heed_vocab_piece(const heed_vocab *v, int32_t id)
{
    return v->pieces.item[in_range(v, id) ? id : HEED_UNK].text;
}

int32_t heed_vocab_find(const heed_vocab *v, const char *piece)
{
    int32_t id = heed__pieces_find(&v->pieces, piece, strlen(piece));
    return id < 0 ? HEED_UNK : id;
}

/* ---- there and back ---- */

heed_status heed_vocab_encode(const heed_vocab *v, const char *text, size_t length,
                              heed_arena *arena, heed_tokens *tokens, heed_error *err)
{
    size_t bad;
    if (!heed__utf8_valid(text, length, &bad))
        return heed__fail(err, HEED_ARGUMENT, "cannot encode a text: byte %zu of %zu is not UTF-8",
                          bad + 1, length);
    return heed__words_encode(v, text, length, arena, tokens, err);
}

heed_status heed_vocab_sample(const heed_vocab *v, const char *text, size_t length, double strength,
                              const heed_rng *rng, heed_arena *arena, heed_tokens *tokens,
                              heed_error *err)
{
    (void)strength, (void)rng;
    return heed_vocab_encode(v, text, length, arena, tokens, err);
}

heed_status heed_vocab_decode(const heed_vocab *v, const int32_t *ids, int64_t n, heed_arena *arena,
                              const char **text, heed_error *err)
{
    for (int64_t i = 0; i < n; i++)
        if (!in_range(v, ids[i]))
            return heed__fail(err, HEED_ARGUMENT,
                              "cannot decode: id %d at position %lld, expected 0 to %d", ids[i],
                              (long long)i, v->pieces.count - 1);
    return heed__words_decode(v, ids, n, arena, text, err);
}

int64_t heed_vocab_words(const heed_vocab *v, const int32_t *ids, int64_t n, int32_t *word)
{
    int32_t words = 0;
    bool joined = false;
    for (int64_t i = 0; i < n; i++) {
        int32_t id = in_range(v, ids[i]) ? ids[i] : HEED_UNK;
        if (i == 0 || !joined || v->pieces.item[id].type == HEED__PIECE_CONTROL)
            words++;
        joined = heed__words_continues(v, id);
        word[i] = words - 1;
    }
    return words;
}
