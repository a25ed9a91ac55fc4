/* vocab_json_pieces.c: pieces and their ids from JSON; vocab.json with the merges in a file
 * beside it, as GPT-2 has them. */
#include "base/error.h"
#include "base/file.h"
#include "vocab/vocab_json.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

/* ---- pieces ---- */

/* Puts a piece's text where its id says; added tokens may repeat pieces. */
static heed_status place(const char **text, size_t count, const char *path, const char *piece,
                         const json_t *id, heed_error *err)
{
    const json_int_t at = json_is_integer(id) ? json_integer_value(id) : -1;
    if (at < 0 || (size_t)at >= count)
        return heed__fail(
            err, HEED_FORMAT,
            "cannot use vocabulary '%s': the id of '%.60s' is %lld, expected 0 to %zu", path, piece,
            (long long)at, count - 1);
    if (text[at] && strcmp(text[at], piece) != 0)
        return heed__fail(err, HEED_FORMAT,
                          "cannot use vocabulary '%s': '%.60s' and '%.60s' both have id %lld", path,
                          text[at], piece, (long long)at);
    text[at] = piece;
    return HEED_OK;
}

/* The pieces of the model and the added tokens, in the order of their ids. */
heed_status heed__json_pieces_add(heed_vocab *v, const char *path, const json_t *vocab,
                                  const json_t *added, heed_error *err)
{
    const char *piece;
    json_t *id;
    size_t i, count = json_object_size(vocab), more = 0;
    json_array_foreach(added, i, id)
    {
        const char *content = json_string_value(json_object_get(id, "content"));
        more += content && !json_object_get(vocab, content);
    }
    count += more;
    if (count == 0 || count > INT32_MAX)
        return heed__fail(err, HEED_FORMAT, "cannot use vocabulary '%s': it has %zu pieces", path,
                          count);
    const char **text = heed_arena_allocate(v->pieces.arena, count * sizeof *text);
    if (!text)
        return heed__fail(err, HEED_MEMORY, "out of memory for vocabulary '%s'", path);
    memset(text, 0, count * sizeof *text);
    heed_status status = HEED_OK;
    json_object_foreach((json_t *)vocab, piece, id)
    {
        status = place(text, count, path, piece, id, err);
        if (status)
            return status;
    }
    json_array_foreach(added, i, id)
    {
        const char *content = json_string_value(json_object_get(id, "content"));
        if (!content)
            return heed__fail(err, HEED_FORMAT,
                              "cannot use vocabulary '%s': added token %zu has no content", path,
                              i);
        status = place(text, count, path, content, json_object_get(id, "id"), err);
        if (status)
            return status;
    }
    for (i = 0; i < count; i++) {
        if (!text[i])
            return heed__fail(err, HEED_FORMAT,
                              "cannot use vocabulary '%s': no piece has id %zu, expected one for "
                              "each from 0 to %zu",
                              path, i, count - 1);
        status = heed__vocab_add(v, path, text[i], strlen(text[i]), HEED__PIECE_NORMAL, err);
        if (status)
            return status;
    }
    return HEED_OK;
}

/* ---- vocab.json ---- */

static heed_status read_merges_file(heed_vocab *v, const char *path, const char *bytes, size_t size,
                                    heed_error *err)
{
    const char *end = bytes + size;
    heed_status status = HEED_OK;
    for (int64_t number = 1; !status && bytes < end;) {
        const char *lf = memchr(bytes, '\n', (size_t)(end - bytes));
        size_t length = (size_t)((lf ? lf : end) - bytes);
        const size_t text = length && bytes[length - 1] == '\r' ? length - 1 : length;
        const bool header = number == 1 && text >= 9 && memcmp(bytes, "#version:", 9) == 0;
        if (text > 0 && !header)
            status = heed__merge_line(v, path, number++, bytes, text, err);
        bytes += lf ? length + 1 : length;
    }
    return status;
}

/* merges.txt or vocab.bpe in the folder of vocab.json. */
heed_status heed__vocab_and_merges_read(heed_vocab *v, const char *path, const json_t *root,
                                        heed_error *err)
{
    static const char *const names[] = {"merges.txt", "vocab.bpe"};
    const char *slash = strrchr(path, '/');
    const int folder = slash ? (int)(slash - path) + 1 : 0;
    char merges[PATH_MAX];
    const void *bytes = NULL;
    size_t size = 0;
    heed_error why = {0};
    heed_status status = heed__json_pieces_add(v, path, root, NULL, err);
    if (status)
        return status;
    heed__special_by_name(v);
    v->split = HEED__SPLIT_GPT2;
    for (size_t i = 0; !bytes && i < sizeof names / sizeof *names; i++) {
        if (snprintf(merges, sizeof merges, "%.*s%s", folder, path, names[i]) >= PATH_MAX)
            break;
        why = (heed_error){0};
        if (heed__file_map(merges, &bytes, &size, &why))
            bytes = NULL;
    }
    if (!bytes)
        return heed__fail(err, HEED_FORMAT,
                          "cannot use vocabulary '%s': it is a vocab.json, expected merges.txt or "
                          "vocab.bpe beside it",
                          path);
    status = read_merges_file(v, merges, bytes, size, err);
    heed__file_unmap(bytes, size);
    return status ? status : heed__bytes_finish(v, path, err);
}
