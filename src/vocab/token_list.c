/* token_list.c: see token_list.h. */
#include "vocab/token_list.h"
#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/memory.h"
#include "files/vocab_yml.h"
#include "vocab/vocab_json.h"

#include <string.h>

static heed_status read_lines(heed_vocab *v, const char *path, const char *bytes, size_t size,
                              heed_error *err)
{
    const char *end = bytes + size;
    heed_status status = HEED_OK;
    while (!status && bytes < end) {
        const char *lf = memchr(bytes, '\n', (size_t)(end - bytes));
        const size_t length = (size_t)((lf ? lf : end) - bytes);
        const size_t text = length && bytes[length - 1] == '\r' ? length - 1 : length;
        status = heed__vocab_add(v, path, bytes, text, HEED__PIECE_NORMAL, err);
        bytes += lf ? length + 1 : length;
    }
    return status;
}

static heed_status read_array(heed_vocab *v, const char *path, const char *bytes, size_t size,
                              heed_error *err)
{
    json_error_t why;
    json_t *list = json_loadb(bytes, size, 0, &why), *token;
    heed_status status = HEED_OK;
    size_t i;
    if (!json_is_array(list))
        status = heed__fail(err, HEED_FORMAT,
                            "cannot read vocabulary '%s': expected a JSON array of texts", path);
    json_array_foreach(list, i, token)
    {
        const char *text = json_string_value(token);
        if (!status)
            status = heed__vocab_add(v, path, text ? text : "", text ? strlen(text) : 0,
                                     HEED__PIECE_NORMAL, err);
    }
    json_decref(list);
    return status;
}

static heed_status read_object(heed_vocab *v, const char *path, const char *bytes, size_t size,
                               heed_error *err)
{
    json_error_t why;
    json_t *ids = json_loadb(bytes, size, JSON_REJECT_DUPLICATES, &why);
    heed_status status = ids ? heed__json_pieces_add(v, path, ids, NULL, err)
                         : heed__json_short_of_memory(&why)
                             ? heed__fail(err, HEED_MEMORY, "out of memory for '%.300s'", path)
                             : heed__fail(err, HEED_FORMAT, "cannot read '%.300s' line %d: %.150s",
                                          path, why.line, why.text);
    json_decref(ids);
    return status;
}

static heed_status read_yml(heed_vocab *v, const char *path, const char *bytes, size_t size,
                            heed_error *err)
{
    heed__yml_piece *piece;
    size_t count = 0;
    heed_arena *arena = heed_arena_new(&v->allocator, err);
    heed_status status =
        arena ? heed__yml_read(path, bytes, size, arena, &piece, &count, err) : HEED_MEMORY;
    for (size_t i = 0; !status && i < count; i++)
        status =
            piece[i].id == (int64_t)i
                ? heed__vocab_add(v, path, piece[i].text, piece[i].length, HEED__PIECE_NORMAL, err)
                : heed__fail(err, HEED_FORMAT,
                             "cannot use vocabulary '%s': no piece has id %zu, expected one "
                             "for each from 0 on",
                             path, i);
    heed_arena_free(arena);
    return status;
}

heed_status heed__yml_vocab_read(heed_vocab *v, const char *path, const char *bytes, size_t size,
                                 heed_error *err)
{
    heed_status status = read_yml(v, path, bytes, size, err);
    v->kind = HEED_WHITESPACE;
    v->class = &heed__words_class;
    if (!status)
        heed__special_by_name(v);
    return status;
}

static bool is_yml(const char *path)
{
    const size_t n = strlen(path);
    return n >= 4 && strcmp(path + n - 4, ".yml") == 0;
}

/* Whether the file says its ids, instead of their order. */
static heed_status read_any(heed_vocab *v, const char *path, const char *bytes, size_t size,
                            bool *numbered, heed_error *err)
{
    const char first = size ? *bytes : '\0';
    *numbered = first == '{' || is_yml(path);
    return first == '{'   ? read_object(v, path, bytes, size, err)
           : *numbered    ? read_yml(v, path, bytes, size, err)
           : first == '[' ? read_array(v, path, bytes, size, err)
                          : read_lines(v, path, bytes, size, err);
}

heed_status heed__token_list_read(heed_vocab *v, const char *path, int64_t expected,
                                  heed_error *err)
{
    const void *bytes;
    size_t size;
    bool numbered;
    heed_status status = heed__file_map(path, &bytes, &size, err);
    if (status)
        return status;
    status = read_any(v, path, bytes, size, &numbered, err);
    heed__file_unmap(bytes, size);
    if (!status && !numbered && v->pieces.count + 1 == expected)
        status = heed__vocab_add(v, path, "<unk>", 5, HEED__PIECE_UNKNOWN, err);
    if (!status && !numbered && v->pieces.count != expected)
        status = heed__fail(err, HEED_FORMAT,
                            "cannot use vocabulary '%s': it has %d tokens, expected %lld as in the "
                            "model, or one less",
                            path, v->pieces.count, (long long)expected);
    return status;
}

heed_vocab *heed__token_list_open(const char *path, int64_t expected,
                                  const heed_allocator *allocator, heed_error *err)
{
    heed_allocator a = heed__allocator_or_default(allocator);
    heed_vocab *v = heed__allocate_zeroed(&a, 1, sizeof *v);
    if (!v) {
        heed__fail(err, HEED_MEMORY, "out of memory for vocabulary '%s'", path);
        return NULL;
    }
    v->allocator = v->trie.allocator = v->merges.allocator = a;
    v->kind = HEED_WHITESPACE;
    v->class = &heed__words_class;
    if (heed__pieces_init(&v->pieces, &a, err) || heed__token_list_read(v, path, expected, err)) {
        heed_vocab_free(v);
        return NULL;
    }
    heed__special_by_name(v);
    return v;
}
