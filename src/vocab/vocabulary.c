/* vocabulary.c: vocabularies: opening, lookup, and dispatch to their classes. */
#include "base/error.h"
#include "base/file.h"
#include "base/memory.h"
#include "files/gguf.h"
#include "text/utf8.h"
#include "vocab/sample_subwords.h"
#include "vocab/vocab_clean.h"

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

heed_status heed__vocab_add(heed_vocab *v, const char *path, const char *text, size_t length,
                            heed__piece_type type, heed_error *err)
{
    const int32_t before = v->pieces.count;
    if (length == 0 || memchr(text, '\0', length) || !heed_utf8_valid(text, length, NULL))
        return heed__fail(err, HEED_FORMAT,
                          "cannot read vocabulary '%s': piece %d is %s, expected some UTF-8 text",
                          path, before, length ? "not UTF-8 or has a NUL in it" : "empty");
    const int32_t id = heed__pieces_add(&v->pieces, text, length);
    if (id < 0)
        return heed__fail(err, HEED_MEMORY, "out of memory for vocabulary '%s'", path);
    if (id < before)
        return heed__fail(err, HEED_FORMAT,
                          "cannot read vocabulary '%s': pieces %d and %d are both '%.100s'", path,
                          id, before, v->pieces.item[id].text);
    v->pieces.item[id].type = type;
    return HEED_OK;
}

static bool is_json(const char *bytes, size_t size)
{
    size_t i = 0;
    while (i < size && (bytes[i] == ' ' || (bytes[i] >= '\t' && bytes[i] <= '\r')))
        i++;
    return i < size && bytes[i] == '{';
}

/* A line that is [UNK], in a file that does not begin as heed's own do. */
static bool is_wordpiece(const char *bytes, size_t size)
{
    static const char unknown[] = "[UNK]";
    const size_t n = sizeof unknown - 1;
    const char *end = bytes + size;
    for (const char *at = bytes; (at = memmem(at, (size_t)(end - at), unknown, n)); at += n)
        if ((at == bytes || at[-1] == '\n') && (at + n == end || at[n] == '\n' || at[n] == '\r'))
            return size < 5 || memcmp(bytes, "<unk>", 5) != 0;
    return false;
}

/* The reader of a file, by its content; vocab.yml by its name. */
static heed_status read_pieces(heed_vocab *v, const char *path, const char *joiner,
                               const char *bytes, size_t size, heed_error *err)
{
    if (size == 0)
        return heed__fail(err, HEED_FORMAT, "cannot read vocabulary '%s': it is empty", path);
    if (heed__is_gguf(bytes, size))
        return heed__gguf_vocab_read(v, path, bytes, size, err);
    /* The first number of llama2.c's is the bytes of the longest piece, below 2^16. */
    if (size >= 4 && bytes[2] == 0 && bytes[3] == 0)
        return heed__llama2c_vocab_read(v, path, bytes, size, err);
    /* A SentencePiece model begins with the key of a field: 1 pieces, 2 trainer_spec, or 3
     * normalizer_spec; no piece of text begins with one of them. */
    if (*bytes == 0x0A || *bytes == 0x12 || *bytes == 0x1A)
        return heed__spm_read(v, path, bytes, size, err);
    const size_t length = strlen(path);
    if (length > 4 && strcmp(path + length - 4, ".yml") == 0)
        return heed__yml_vocab_read(v, path, bytes, size, err);
    if (is_json(bytes, size))
        return heed__json_vocab_read(v, path, bytes, size, err);
    if (memchr(bytes, '\0', size < 4096 ? size : 4096))
        return heed__fail(err, HEED_FORMAT,
                          "cannot read vocabulary '%s': it is neither a SentencePiece model, a "
                          "tokenizer.json or vocab.json, a GGUF file, llama2.c's tokenizer nor a "
                          "text with one piece a line",
                          path);
    if (is_wordpiece(bytes, size))
        return heed__wordpiece_read(v, path, bytes, size, err);
    if (joiner && set_joiner(v, joiner, err))
        return err ? err->status : HEED_ARGUMENT;
    return heed__words_read(v, path, bytes, size, err);
}

heed_vocab *heed_vocab_open(const char *path, const char *joiner, const heed_allocator *allocator,
                            heed_error *err)
{
    const void *bytes;
    size_t size;
    if (heed__file_map_unpacked(path, &bytes, &size, err))
        return NULL;
    heed_allocator a = heed__allocator_or_default(allocator);
    heed_vocab *v = heed__allocate_zeroed(&a, 1, sizeof *v);
    if (v) {
        v->allocator = v->trie.allocator = v->merges.allocator = a;
        v->special = HEED_OWN_IDS;
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
    heed_vocab_free(v->inner);
    heed__spm_close(v->spm);
    heed__release(&a, v->joiner, v->joiner_length, 1);
    heed__trie_deinit(&v->trie);
    heed__merges_deinit(&v->merges);
    heed__pieces_deinit(&v->pieces);
    heed__release(&a, v, 1, sizeof *v);
}

/* ---- lookup ---- */

int32_t heed_vocab_size(const heed_vocab *v)
{
    if (!v)
        return 0;
    return v->pieces.count;
}

static bool in_range(const heed_vocab *v, int32_t id)
{
    return id >= 0 && id < v->pieces.count;
}

heed_special_ids heed_vocab_special(const heed_vocab *v)
{
    if (!v)
        return (heed_special_ids){0};
    return v->special;
}

const char *heed_vocab_piece(const heed_vocab *v, int32_t id)
{
    if (!v)
        return NULL;
    const int32_t known = in_range(v, id) ? id : v->special.unk;
    return known < 0 ? "" : v->pieces.item[known].text;
}

int32_t heed_vocab_find(const heed_vocab *v, const char *piece)
{
    if (!v)
        return 0;
    int32_t id = heed__pieces_find(&v->pieces, piece, strlen(piece));
    return id < 0 ? v->special.unk : id;
}

/* ---- encoding and decoding ---- */

static heed_status check_text(const char *text, size_t length, heed_error *err)
{
    size_t bad;
    return heed_utf8_valid(text, length, &bad)
               ? HEED_OK
               : heed__fail(err, HEED_ARGUMENT,
                            "cannot encode a text: byte %zu of %zu is not UTF-8", bad + 1, length);
}

heed_status heed__vocab_clean(const char *text, size_t length, heed_arena *arena,
                              const char **clean, size_t *clean_length, heed_error *err)
{
    if (check_text(text, length, err))
        return HEED_ARGUMENT;
    *clean = heed__clean(text, length, arena, clean_length);
    return *clean ? HEED_OK
                  : heed__fail(err, HEED_MEMORY, "out of memory for a text of %zu bytes", length);
}

heed_status heed_vocab_encode(const heed_vocab *v, const char *text, size_t length,
                              heed_arena *arena, heed_tokens *tokens, heed_error *err)
{
    if (!v)
        return heed__missing(err, "vocab");
    if (!v->class->any_bytes && check_text(text, length, err))
        return HEED_ARGUMENT;
    if (v->class->encode)
        return v->class->encode(v, text, length, arena, tokens, err);
    heed__sampler c = {.v = v, .text = text, .length = length, .arena = arena};
    heed_status status = v->class->cut(&c, err);
    *tokens = (heed_tokens){c.id, c.count};
    return status;
}

heed_status heed_vocab_decode_bytes(const heed_vocab *v, const int32_t *ids, int64_t n,
                                    heed_arena *arena, const char **text, size_t *size,
                                    heed_error *err)
{
    if (!v)
        return heed__missing(err, "vocab");
    for (int64_t i = 0; i < n; i++)
        if (!in_range(v, ids[i]))
            return heed__fail(err, HEED_ARGUMENT,
                              "cannot decode: id %d at position %lld, expected 0 to %d", ids[i],
                              (long long)i, v->pieces.count - 1);
    return v->class->decode(v, ids, n, arena, text, size, err);
}

heed_status heed_vocab_decode(const heed_vocab *v, const int32_t *ids, int64_t n, heed_arena *arena,
                              const char **text, heed_error *err)
{
    if (!v)
        return heed__missing(err, "vocab");
    size_t size;
    return heed_vocab_decode_bytes(v, ids, n, arena, text, &size, err);
}
