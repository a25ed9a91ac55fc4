/* convert_found.c: what belongs to the text of a found model, in a directory of heed's:
 * vocabularies under heed's names, and the shortlist.
 *
 * SentencePiece models whose pieces have the ids of another file become models with those ids. */
#include "base/error.h"
#include "base/file.h"
#include "engine/found_model.h"
#include "vocab/spm_order.h"

#include <heed/io.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static bool has_ending(const char *name, const char *ending)
{
    const size_t n = strlen(name), k = strlen(ending);
    return n >= k && strcmp(name + n - k, ending) == 0;
}

/* "source.spm" in `to`; "shared.spm" where both sides have one. */
static heed_status place(const heed__found_model *m, int side, const char *to, const char *ending,
                         heed__pathname path, heed_error *err)
{
    const bool shared = heed__found_shared(m);
    heed__pathname name;
    heed_status status = heed__pathname_format(name, err, "%s%s",
                                               shared ? "shared"
                                               : side ? "target"
                                                      : "source",
                                               ending);
    return status ? status : heed__pathname_in(path, to, name, err);
}

/* The file as it is, unpacked if it was packed. */
static heed_status copy(const heed__found_model *m, int side, const char *to, heed_error *err)
{
    heed__pathname path;
    const void *bytes;
    size_t size;
    const char *from = m->vocabulary[side];
    const char *ending = has_ending(from, ".spm") || has_ending(from, ".spm.gz") ? ".spm"
                         : has_ending(from, ".yml")                              ? ".yml"
                                                                                 : ".vocab";
    if (strcmp(from, m->where.weights) == 0)
        return heed__fail(err, HEED_ARGUMENT,
                          "'%.255s' cannot be converted: its vocabulary is inside of the file; it "
                          "opens as it is",
                          from);
    heed_status status = place(m, side, to, ending, path, err);
    if (!status)
        status = heed__file_map_unpacked(from, &bytes, &size, err);
    if (status)
        return status;
    status = heed__file_save(path, bytes, size, NULL, err);
    heed__file_unmap(bytes, size);
    return status;
}

/* Tokens as vocab.yml: '"token": id' a line. */
static heed_status write_yml(const heed__found_model *m, int side, const heed_vocab *v,
                             const char *to, heed_error *err)
{
    heed__pathname path;
    heed_status status = place(m, side, to, ".yml", path, err);
    heed__atomic_file *f = status ? NULL : heed__atomic_open(path, NULL, err);
    if (!f)
        return status ? status : HEED_IO;
    for (int32_t i = 0; !status && i < heed_vocab_size(v); i++) {
        char number[24];
        status = heed__atomic_write(f, "\"", 1, err);
        for (const char *c = heed_vocab_piece(v, i); !status && *c; c++) {
            if (*c == '"' || *c == '\\')
                status = heed__atomic_write(f, "\\", 1, err);
            if (!status)
                status = heed__atomic_write(f, c, 1, err);
        }
        snprintf(number, sizeof number, "\": %d\n", i);
        if (!status)
            status = heed__atomic_write(f, number, strlen(number), err);
    }
    if (!status)
        return heed__atomic_commit(f, err);
    heed__atomic_abandon(f);
    return status;
}

/* The model with the pieces of v, in their order: its own where it has them. */
static heed_status write_mapped(const heed__found_model *m, int side, const heed_vocab *v,
                                const char *to, heed_error *err)
{
    heed__pathname path;
    const void *bytes, *made;
    size_t size, made_size;
    heed_status status = place(m, side, to, ".spm", path, err);
    heed_arena *arena = status ? NULL : heed_arena_new(NULL, err);
    heed_vocab *inner = arena ? heed_vocab_open(m->vocabulary[side], NULL, NULL, err) : NULL;
    const int32_t count = heed_vocab_size(v);
    heed__spm_entry *e = inner ? heed_arena_allocate(arena, (size_t)count * sizeof *e) : NULL;
    for (int32_t i = 0; e && i < count; i++) {
        const char *text = heed_vocab_piece(v, i);
        const bool language = strncmp(text, ">>", 2) == 0;
        const int32_t at = heed_vocab_find(inner, text); /* the unknown, if it is not there */
        e[i] = (heed__spm_entry){strcmp(heed_vocab_piece(inner, at), text) == 0 ? at : -1, text,
                                 language ? HEED__PIECE_USER : HEED__PIECE_UNUSED};
    }
    const heed_special_ids ids = heed_vocab_special(v);
    if (e && !heed__file_map_unpacked(m->vocabulary[side], &bytes, &size, err)) {
        status = heed__spm_order(bytes, size, m->vocabulary[side], e, count, ids.unk, ids.eos,
                                 arena, &made, &made_size, err);
        if (!status)
            status = heed__file_save(path, made, made_size, NULL, err);
        heed__file_unmap(bytes, size);
    } else if (!status) {
        status = HEED_IO;
    }
    heed_vocab_free(inner);
    heed_arena_free(arena);
    return status;
}

static heed_status write_vocabularies(const heed__found_model *m, const char *to, heed_error *err)
{
    heed_vocab *v[2];
    heed_status status = heed__found_vocabs(m, NULL, &v[0], &v[1], err);
    const int sides = !status && v[0] == v[1] ? 1 : 2;
    for (int side = 0; !status && side < sides; side++)
        status = m->lists == HEED__FOUND_FILE     ? copy(m, side, to, err)
                 : m->lists == HEED__FOUND_MAPPED ? write_mapped(m, side, v[side], to, err)
                                                  : write_yml(m, side, v[side], to, err);
    if (!status)
        heed_vocabs_free(v[0], v[1]);
    return status;
}

/* ---- the shortlist ---- */

static void add_list(heed_safetensors_writer *w, const char *name, const int32_t *data,
                     int64_t count, heed_error *err)
{
    const heed_stored s = {.name = name,
                           .dtype = HEED_I32,
                           .rank = 1,
                           .dim = {count},
                           .data = data,
                           .bytes = (size_t)count * sizeof *data};
    heed_safetensors_writer_add(w, &s, err);
}

/* What Bergamot adds by itself stands in the lists: EOS's list on that of every sentence, a piece
 * of a shared vocabulary on its own. */
static void save_lists(const heed__shortlist *s, int32_t eos, const char *path, heed_arena *arena,
                       heed_error *err)
{
    const int64_t entries = s->offset[s->sources];
    int32_t *offset = heed_arena_allocate(arena, (size_t)(s->sources + 1) * sizeof *offset);
    int32_t *token = heed_arena_allocate(arena, (size_t)(entries + s->sources) * sizeof *token);
    int32_t *always =
        heed_arena_allocate(arena, (size_t)(s->always_count + entries) * sizeof *always);
    heed_safetensors_writer *w =
        offset && token && always ? heed_safetensors_writer_new(NULL, err) : NULL;
    if (!w) {
        heed__fail(err, HEED_MEMORY, "out of memory for '%.255s'", path);
        return;
    }
    int64_t n = 0, more = s->always_count;
    memcpy(always, s->always, (size_t)more * sizeof *always);
    for (int32_t i = 0; i < s->sources; i++) {
        const int32_t begin = s->offset[i], end = s->offset[i + 1];
        offset[i] = (int32_t)n;
        memcpy(i == eos ? always + more : token + n, s->token + begin,
               (size_t)(end - begin) * sizeof *token);
        *(i == eos ? &more : &n) += end - begin;
        if (s->shared && i != eos)
            token[n++] = i;
    }
    offset[s->sources] = (int32_t)n;
    add_list(w, "offset", offset, s->sources + 1, err);
    add_list(w, "token", token, n, err);
    add_list(w, "always", always, more, err);
    heed_safetensors_writer_write(w, path, err);
    heed_safetensors_writer_free(w);
}

static heed_status write_shortlist(const heed__found_model *m, const heed_model_config *config,
                                   const char *to, heed_error *err)
{
    heed__shortlist s;
    heed__pathname path;
    heed_error own = {0};
    if (m->where.publisher != HEED__MARIAN ||
        heed__found_shortlist(m->where.folder, config, &s, NULL, &own))
        return own.status == HEED_IO ? HEED_OK /* there is none */
               : own.status          ? heed__fail(err, own.status, "%s", own.text)
                                     : HEED_OK;
    heed_status status = heed__pathname_in(path, to, HEED_SHORTLIST_FILE, err);
    heed_arena *arena = status ? NULL : heed_arena_new(NULL, err);
    if (arena)
        save_lists(&s, config->ids.source.eos, path, arena, &own);
    heed_arena_free(arena);
    heed__shortlist_close(&s);
    return own.status ? heed__fail(err, own.status, "%s", own.text) : status;
}

heed_status heed__found_write_text(const heed__found_model *m, const heed_model_config *config,
                                   const char *to, heed_error *err)
{
    heed_status status = write_vocabularies(m, to, err);
    return status ? status : write_shortlist(m, config, to, err);
}
