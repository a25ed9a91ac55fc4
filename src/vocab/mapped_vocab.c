/* mapped_vocab.c: see mapped_vocab.h.  The SentencePiece model is a vocabulary of its own
 * inside. */
#include "vocab/mapped_vocab.h"
#include "base/error.h"
#include "base/file.h"
#include "base/memory.h"
#include "vocab/token_list.h"
#include "vocab/vocabulary.h"

#include <string.h>

/* ">>deu<<" at the beginning of a text, if it is a piece: its bytes. */
static size_t language_token(const heed_vocab *v, const char *text, size_t length, int32_t *id)
{
    if (length < 4 || memcmp(text, ">>", 2) != 0)
        return 0;
    const char *end = memmem(text, length, "<<", 2);
    const size_t n = end ? (size_t)(end - text) + 2 : 0;
    *id = n ? heed__pieces_find(&v->pieces, text, n) : -1;
    return *id < 0 ? 0 : n;
}

static heed_status encode(const heed_vocab *v, const char *text, size_t length, heed_arena *arena,
                          heed_tokens *tokens, heed_error *err)
{
    int32_t language = -1;
    const size_t skip = language_token(v, text, length, &language);
    heed_tokens inner;
    heed_status status =
        heed__spm_encode(v->inner->spm, text + skip, length - skip, arena, &inner, err);
    if (status)
        return status;
    int32_t *id = heed_arena_allocate(arena, (size_t)(inner.count + 1) * sizeof *id);
    if (!id)
        return heed__fail(err, HEED_MEMORY, "out of memory for %lld tokens",
                          (long long)inner.count);
    *tokens = (heed_tokens){id, inner.count + (skip > 0)};
    if (skip)
        *id++ = language;
    for (int64_t i = 0; i < inner.count; i++)
        id[i] = v->outer[inner.id[i]];
    return HEED_OK;
}

static const heed__vocab_class mapped_class = {encode, NULL, heed__scored_decode,
                                               heed__spm_continues, false};

/* The bytes of a SentencePiece model of any program. */
static heed_vocab *open_inner(const char *path, const heed_allocator *a, heed_error *err)
{
    const void *bytes;
    size_t size;
    if (heed__file_map_unpacked(path, &bytes, &size, err))
        return NULL;
    heed_vocab *v = heed__allocate_zeroed(a, 1, sizeof *v);
    if (v) {
        v->allocator = v->trie.allocator = v->merges.allocator = *a;
        v->foreign = true;
    } else {
        heed__fail(err, HEED_MEMORY, "out of memory for vocabulary '%s'", path);
    }
    if (v && (heed__pieces_init(&v->pieces, a, err) || heed__spm_read(v, path, bytes, size, err))) {
        heed_vocab_free(v);
        v = NULL;
    }
    heed__file_unmap(bytes, size);
    return v;
}

static heed_status map_ids(heed_vocab *v, const char *path, heed_error *err)
{
    const heed__pieces *inner = &v->inner->pieces;
    if (v->special.unk < 0)
        return heed__fail(err, HEED_FORMAT,
                          "cannot use vocabulary '%s': it has no unknown piece, expected '<unk>'",
                          path);
    v->outer = heed_arena_allocate(v->pieces.arena, (size_t)inner->count * sizeof *v->outer);
    if (!v->outer)
        return heed__fail(err, HEED_MEMORY, "out of memory for vocabulary '%s'", path);
    for (int32_t i = 0; i < inner->count; i++) {
        const int32_t id =
            heed__pieces_find(&v->pieces, inner->item[i].text, inner->item[i].length);
        v->outer[i] = id < 0 ? v->special.unk : id;
    }
    return HEED_OK;
}

heed_vocab *heed__mapped_vocab_open(const char *spm, const char *ids, int64_t expected,
                                    const heed_allocator *allocator, heed_error *err)
{
    heed_error failed = {0};
    heed_allocator a = heed__allocator_or_default(allocator);
    heed_vocab *v = heed__allocate_zeroed(&a, 1, sizeof *v);
    if (!v) {
        heed__fail(err, HEED_MEMORY, "out of memory for vocabulary '%s'", ids);
        return NULL;
    }
    v->allocator = v->trie.allocator = v->merges.allocator = a;
    v->kind = HEED_UNIGRAM;
    v->class = &mapped_class;
    v->begins_with_space = true;
    if (!heed__pieces_init(&v->pieces, &a, &failed) &&
        !heed__token_list_read(v, ids, expected, &failed)) {
        heed__special_by_name(v);
        v->inner = open_inner(spm, &a, &failed);
        if (v->inner)
            map_ids(v, ids, &failed);
    }
    if (!failed.status)
        return v;
    heed_vocab_free(v);
    heed__fail(err, failed.status, "%s", failed.text);
    return NULL;
}
