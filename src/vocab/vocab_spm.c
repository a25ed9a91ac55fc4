/* vocab_spm.c: SentencePiece models: a reader of their format that checks everything before
 * SentencePiece itself reads the bytes.
 *
 * The format is a protocol buffer, ModelProto of sentencepiece_model.proto: 1 pieces (1 text,
 * 2 score, 3 type), 2 trainer_spec (3 model_type), 3 normalizer_spec and 5 denormalizer_spec
 * (2 precompiled_charsmap). */
#include "base/error.h"
#include "base/file.h"
#include "files/protobuf.h"
#include "text/utf8.h"
#include "vocab/sample_subwords.h"
#include "vocab/vocab_charsmap.h"
#include "vocab/vocab_clean.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static heed_status broken(const char *path, heed_error *err, const char *what)
{
    return heed__fail(err, HEED_FORMAT,
                      "cannot read vocabulary '%s': not a SentencePiece model, or a damaged one "
                      "(%s)",
                      path, what);
}

/* ---- its parts ---- */

static heed_status read_piece(heed_vocab *v, const char *path, const heed__field *message,
                              heed_error *err)
{
    heed__message r = heed__message_in(message);
    heed__field f, text = {0};
    float score = 0;
    uint64_t type = HEED__PIECE_NORMAL;
    while (heed__field_next(&r, &f)) {
        if (f.number == 1 && f.wire == HEED__WIRE_BYTES)
            text = f;
        else if (f.number == 2 && f.wire == HEED__WIRE_FIXED32)
            memcpy(&score, f.bytes, sizeof score);
        else if (f.number == 3 && f.wire == HEED__WIRE_VARINT)
            type = f.value;
    }
    const char *bytes = (const char *)text.bytes;
    if (r.broken || text.size == 0 || !heed_utf8_valid(bytes, text.size, NULL) ||
        memchr(bytes, '\0', text.size) || !isfinite(score) || type < HEED__PIECE_NORMAL ||
        type > HEED__PIECE_BYTE) {
        char what[48];
        snprintf(what, sizeof what, "piece %d is invalid", v->pieces.count);
        return broken(path, err, what);
    }
    int32_t before = v->pieces.count;
    int32_t id = heed__pieces_add(&v->pieces, bytes, text.size);
    if (id < 0)
        return heed__fail(err, HEED_MEMORY, "out of memory for vocabulary '%s'", path);
    if (id < before)
        return heed__fail(err, HEED_FORMAT,
                          "cannot read vocabulary '%s': pieces %d and %d are both '%s'", path, id,
                          before, v->pieces.item[id].text);
    v->pieces.item[id].score = score;
    v->pieces.item[id].type = (heed__piece_type)type;
    return HEED_OK;
}

static heed_status read_kind(heed_vocab *v, const char *path, const heed__field *message,
                             heed_error *err)
{
    static const char *const names[] = {"unigram", "bpe", "word", "char"};
    heed__message r = heed__message_in(message);
    heed__field f;
    uint64_t type = 1;
    while (heed__field_next(&r, &f))
        if (f.number == 3 && f.wire == HEED__WIRE_VARINT)
            type = f.value;
    if (r.broken || type < 1 || type > 4)
        return broken(path, err, "its trainer_spec is invalid");
    if (type > 2)
        return heed__fail(err, HEED_FORMAT,
                          "cannot use vocabulary '%s': its type is '%s', expected 'unigram' or "
                          "'bpe'",
                          path, names[type - 1]);
    v->kind = type == 2 ? HEED_BPE : HEED_UNIGRAM;
    v->class = &heed__spm_class;
    return HEED_OK;
}

static heed_status check_normalizer(const char *path, const heed__field *message,
                                    const heed_allocator *allocator, heed_error *err)
{
    heed__message r = heed__message_in(message);
    heed__field f;
    while (heed__field_next(&r, &f))
        if (f.number == 2 && f.wire == HEED__WIRE_BYTES && f.size > 0) {
            heed_status status = heed__charsmap_check(f.bytes, f.size, allocator);
            if (status == HEED_MEMORY)
                return heed__fail(err, status, "out of memory for vocabulary '%s'", path);
            if (status)
                return broken(path, err, "its character map is invalid");
        }
    return r.broken ? broken(path, err, "its normalizer_spec is invalid") : HEED_OK;
}

/* Of another program: it knows the unknown and the end, but they are not at heed's places, or there
 * are no placeholders. */
static bool is_foreign(const heed_vocab *v)
{
    const int32_t unk = heed__pieces_find(&v->pieces, "<unk>", 5);
    const int32_t eos = heed__pieces_find(&v->pieces, "</s>", 4);
    const bool places = unk == HEED_UNK && eos == HEED_EOS;
    return unk >= 0 && eos >= 0 && !(places && heed__pieces_find(&v->pieces, "<ph0>", 5) >= 0);
}

/* heed's own have theirs at fixed places. */
static heed_status check_specials(const heed_vocab *v, const char *path, heed_error *err)
{
    for (int32_t i = 0; i < HEED__SPECIALS; i++) {
        const char *special = heed__special(i);
        int32_t found = heed__pieces_find(&v->pieces, special, strlen(special));
        if (found == i && v->pieces.item[i].type == heed__special_type(i))
            continue;
        if (found == i)
            return heed__fail(err, HEED_FORMAT,
                              "cannot use vocabulary '%s': '%s' is piece %d, as it should be, but "
                              "of type %d, expected %d",
                              path, special, i, (int)v->pieces.item[i].type,
                              (int)heed__special_type(i));
        if (found < 0)
            return heed__fail(
                err, HEED_FORMAT,
                "cannot use vocabulary '%s': it has no piece '%s', expected as number "
                "%d; was it made by another program?",
                path, special, i);
        return heed__fail(
            err, HEED_FORMAT,
            "cannot use vocabulary '%s': '%s' is piece %d, expected as number %d; was "
            "it made by another program?",
            path, special, found, i);
    }
    return HEED_OK;
}

static heed_status read_model(heed_vocab *v, const char *path, const void *bytes, size_t size,
                              heed_error *err)
{
    heed__message r = heed__message_over(bytes, size);
    heed__field f;
    heed_status status = HEED_OK;
    unsigned seen = 0;
    while (!status && heed__field_next(&r, &f)) {
        bool message = f.wire == HEED__WIRE_BYTES;
        seen |= message && f.number < 8 ? 1u << f.number : 0;
        if (f.number == 1 && message)
            status = read_piece(v, path, &f, err);
        else if (f.number == 2 && message)
            status = read_kind(v, path, &f, err);
        else if ((f.number == 3 || f.number == 5) && message)
            status = check_normalizer(path, &f, &v->allocator, err);
    }
    if (status)
        return status;
    /* Truncated between two fields it is still a valid protocol buffer. */
    if (r.broken || !(seen & 1 << 2) || !(seen & 1 << 3))
        return broken(path, err, "it ends too early");
    if (v->pieces.count == 0)
        return broken(path, err, "it has no pieces");
    if (v->foreign || is_foreign(v)) {
        v->foreign = true;
        heed__special_by_name(v);
        return HEED_OK;
    }
    return check_specials(v, path, err);
}

heed_status heed__spm_read(heed_vocab *v, const char *path, const void *bytes, size_t size,
                           heed_error *err)
{
    heed_status status = read_model(v, path, bytes, size, err);
    if (status)
        return status;
    v->least_score = INFINITY;
    for (int32_t i = 0; i < v->pieces.count; i++) {
        const heed__piece *p = &v->pieces.item[i];
        if (p->type == HEED__PIECE_NORMAL && p->score < v->least_score)
            v->least_score = p->score;
        if (p->length > v->longest)
            v->longest = p->length;
        v->has_bytes |= p->type == HEED__PIECE_BYTE;
    }
    heed_error why = {0};
    if (v->kind == HEED_UNIGRAM)
        heed__trie_init(&v->trie, &v->pieces, &why);
    if (!why.status)
        v->spm = heed__spm_open(bytes, size, &why);
    return v->spm ? HEED_OK
                  : heed__fail(err, why.status, "cannot read vocabulary '%s': %s", path, why.text);
}

/* ---- encoding and decoding ---- */

static heed_status encode(const heed_vocab *v, const char *text, size_t length, heed_arena *arena,
                          heed_tokens *tokens, heed_error *err)
{
    heed_status status =
        v->foreign ? HEED_OK : heed__vocab_clean(text, length, arena, &text, &length, err);
    return status ? status : heed__spm_encode(v->spm, text, length, arena, tokens, err);
}

static heed_status cut(heed__sampler *c, heed_error *err)
{
    const char *text;
    size_t length;
    heed_status status = HEED_OK;
    if (c->v->foreign) { /* its own normaliser does it */
        text = c->text;
        length = c->length;
    } else {
        status = heed__vocab_clean(c->text, c->length, c->arena, &text, &length, err);
    }
    if (!status)
        status = heed__spm_normalize(c->v->spm, text, length, c->arena, &c->text, &c->length, err);
    if (!status)
        status = heed__sampler_reserve(c, c->length, err);
    if (status)
        return status;
    return c->v->kind == HEED_BPE ? heed__sample_bpe(c, err) : heed__sample_unigram(c, err);
}

static heed_status decode(const heed_vocab *v, const int32_t *ids, int64_t n, heed_arena *arena,
                          const char **text, size_t *size, heed_error *err)
{
    heed_status status = heed__spm_decode(v->spm, ids, n, arena, text, err);
    *size = status ? 0 : strlen(*text);
    return status;
}

const heed__vocab_class heed__spm_class = {encode, cut, decode, heed__spm_continues, false};

/* ---- learning ---- */

/* A source that normalises the lines of another, and removes what would make SentencePiece end the
 * process: lines of only spaces, special pieces in the text (if they hold all characters it has to
 * cover), and more text than its 32-bit suffix array takes. */
struct cleaned {
    const heed_line_source *from;
    heed_arena *arena;
    size_t bytes;
};

#define MOST_BYTES ((size_t)INT32_MAX / 2)

/* The line with special pieces replaced by spaces. */
static const char *without_specials(const char *text, size_t length, heed_arena *arena)
{
    if (!memchr(text, '<', length))
        return text;
    char *copy = heed_arena_allocate(arena, length);
    if (!copy)
        return NULL;
    memcpy(copy, text, length);
    for (size_t i = 0; i < length; i++)
        for (int32_t k = 0; k < HEED__SPECIALS && copy[i] == '<'; k++) {
            size_t n = strlen(heed__special(k));
            if (n <= length - i && memcmp(copy + i, heed__special(k), n) == 0)
                memset(copy + i, ' ', n);
        }
    return copy;
}

static heed_status next_clean(void *context, const char **text, size_t *length, heed_error *err)
{
    struct cleaned *c = context;
    for (;;) {
        heed_arena_reset(c->arena);
        heed_status status = c->from->next(c->from->context, text, length, err);
        if (status || !*text)
            return status;
        *text = heed__clean(*text, *length, c->arena, length);
        if (!*text)
            return heed__fail(err, HEED_MEMORY, "out of memory for a line");
        *text = without_specials(*text, *length, c->arena);
        if (!*text)
            return heed__fail(err, HEED_MEMORY, "out of memory for a line");
        size_t spaces = 0;
        while (spaces < *length && (*text)[spaces] == ' ')
            spaces++;
        c->bytes += *length;
        if (c->bytes > MOST_BYTES)
            return heed__fail(err, HEED_ARGUMENT,
                              "cannot learn a vocabulary from more than %zu bytes: use fewer lines "
                              "(heed vocab --max-lines)",
                              MOST_BYTES);
        if (spaces < *length)
            return HEED_OK;
    }
}

static void symbol_list(char *text, size_t capacity)
{
    size_t n = 0;
    for (int32_t i = HEED_PLACEHOLDER; i < HEED__SPECIALS; i++)
        n += (size_t)snprintf(text + n, capacity - n, "%s%s", n ? "," : "", heed__special(i));
}

/* The learned model is read like any other: it checks the special pieces and gives the number of
 * pieces. */
static heed_status check_learned(const heed__spm_model *model, const char *path, int32_t *count,
                                 heed_error *err)
{
    heed_vocab v = {0};
    heed_status status = heed__pieces_init(&v.pieces, NULL, err);
    v.allocator = v.pieces.allocator;
    if (!status)
        status = read_model(&v, path, model->bytes, model->size, err);
    *count = v.pieces.count;
    heed__pieces_deinit(&v.pieces);
    return status;
}

heed_status heed__spm_learn(const heed_vocab_options *options, const heed_line_source *lines,
                            const char *path, int32_t *count, heed_error *err)
{
    char symbols[16 * HEED_PLACEHOLDERS];
    symbol_list(symbols, sizeof symbols);
    struct cleaned c = {.from = lines, .arena = heed_arena_new(NULL, err)};
    if (!c.arena)
        return HEED_MEMORY;
    heed__spm_model model = {0};
    heed_line_source clean = {next_clean, &c};
    heed_status status = heed__spm_train(options, symbols, &clean, &model, err);
    if (!status)
        status = check_learned(&model, path, count, err);
    if (!status)
        status = heed__file_save(path, model.bytes, model.size, NULL, err);
    heed__spm_model_free(&model);
    heed_arena_free(c.arena);
    return status;
}
