/* vocab_gguf.c: the tokenizer inside a GGUF file: SentencePiece's BPE ("llama"), byte-level BPE
 * ("gpt2") or WordPiece ("bert"). */
#include "base/error.h"
#include "files/gguf.h"
#include "vocab/vocabulary.h"

#include <math.h>
#include <stdio.h>

static bool is(const char *text, size_t length, const char *word)
{
    return text && strlen(word) == length && memcmp(text, word, length) == 0;
}

/* An array of n values of the type; NULL with *status OK if there is none and it is not needed. */
static const heed__gguf_pair *array_of(const heed__gguf *g, const char *path, const char *key,
                                       heed__gguf_type type, int64_t n, bool needed,
                                       heed_status *status, heed_error *err)
{
    const heed__gguf_pair *p = heed__gguf_find(g, key);
    const bool fits = p && p->array && p->type == type && (n < 0 || p->n == (uint64_t)n);
    *status = HEED_OK;
    if (fits || (!p && !needed))
        return p;
    *status = !p ? heed__fail(err, HEED_FORMAT, "cannot use '%s': it has no %s", path, key)
                 : heed__fail(err, HEED_FORMAT,
                              "cannot use '%s': %s is %s of %llu values of type %d, expected an "
                              "array of type %d%s",
                              path, key, p->array ? "an array" : "one", (unsigned long long)p->n,
                              (int)p->type, (int)type, n < 0 ? "" : ", one for each token");
    return NULL;
}

/* WordPiece inside GGUF marks the beginnings of words, not their insides. */
static heed_status add_wordpiece(heed_vocab *v, const char *path, const char *text, size_t length,
                                 heed_error *err)
{
    char inside[1024];
    if (length > 2 && *text == '[' && text[length - 1] == ']')
        return heed__vocab_add(v, path, text, length, HEED__PIECE_NORMAL, err);
    if (length > HEED__SPACE_LENGTH && memcmp(text, HEED__SPACE, HEED__SPACE_LENGTH) == 0)
        return heed__vocab_add(v, path, text + HEED__SPACE_LENGTH, length - HEED__SPACE_LENGTH,
                               HEED__PIECE_NORMAL, err);
    if (length + 2 > sizeof inside)
        return heed__fail(err, HEED_FORMAT, "cannot use '%s': token %d has %zu bytes", path,
                          v->pieces.count, length);
    memcpy(inside, "##", 2);
    memcpy(inside + 2, text, length);
    return heed__vocab_add(v, path, inside, length + 2, HEED__PIECE_NORMAL, err);
}

static heed_status add_tokens(heed_vocab *v, const char *path, const heed__gguf *g, bool wordpiece,
                              heed_error *err)
{
    heed_status status;
    const heed__gguf_pair *tokens =
        array_of(g, path, "tokenizer.ggml.tokens", HEED__GGUF_STRING, -1, true, &status, err);
    if (!tokens)
        return status;
    if (tokens->n > INT32_MAX)
        return heed__fail(err, HEED_FORMAT, "cannot use '%s': it has %llu tokens", path,
                          (unsigned long long)tokens->n);
    const int64_t n = (int64_t)tokens->n;
    const heed__gguf_pair *types =
        array_of(g, path, "tokenizer.ggml.token_type", HEED__GGUF_I32, n, false, &status, err);
    const heed__gguf_pair *scores = NULL;
    if (!status)
        scores = array_of(g, path, "tokenizer.ggml.scores", HEED__GGUF_F32, n, false, &status, err);
    heed__byte_cursor text = tokens->values, type = {0}, score = {0};
    if (types)
        type = types->values;
    if (scores)
        score = scores->values;
    for (int64_t i = 0; !status && i < n; i++) {
        size_t length;
        const char *bytes = heed__gguf_string(&text, &length);
        status = wordpiece ? add_wordpiece(v, path, bytes, length, err)
                           : heed__vocab_add(v, path, bytes, length, HEED__PIECE_NORMAL, err);
        const uint32_t t = types ? heed__read_u32(&type) : HEED__PIECE_NORMAL;
        const float s = scores ? heed__read_f32(&score) : 0;
        if (!status && (t < HEED__PIECE_NORMAL || t > HEED__PIECE_BYTE || !isfinite(s)))
            status = heed__fail(err, HEED_FORMAT,
                                "cannot use '%s': token %lld has type %u and score %g, expected "
                                "type 1 to 6 and a number",
                                path, (long long)i, t, (double)s);
        if (!status) {
            v->pieces.item[i].type = (heed__piece_type)t;
            v->pieces.item[i].score = s;
        }
    }
    return status;
}

static heed_status add_merges(heed_vocab *v, const char *path, const heed__gguf *g, heed_error *err)
{
    heed_status status;
    const heed__gguf_pair *merges =
        array_of(g, path, "tokenizer.ggml.merges", HEED__GGUF_STRING, -1, true, &status, err);
    if (!merges)
        return status;
    heed__byte_cursor c = merges->values;
    for (uint64_t i = 0; !status && i < merges->n; i++) {
        size_t length;
        const char *text = heed__gguf_string(&c, &length);
        status = heed__merge_line(v, path, (int64_t)i + 1, text, length, err);
    }
    return status;
}

/* An id that the file names, or the one found by name; out of range is refused. */
static heed_status set_id(const heed_vocab *v, const char *path, const heed__gguf *g,
                          const char *key, int32_t *id, heed_error *err)
{
    const double given = heed__gguf_number(g, key, -1);
    if (given == -1)
        return HEED_OK;
    if (!(given >= 0 && given < v->pieces.count))
        return heed__fail(err, HEED_FORMAT, "cannot use '%s': %s is %g, expected 0 to %d", path,
                          key, given, v->pieces.count - 1);
    *id = (int32_t)given;
    return HEED_OK;
}

static heed_status set_ids(heed_vocab *v, const char *path, const heed__gguf *g, heed_error *err)
{
    const struct {
        const char *key;
        int32_t *id;
    } fields[] = {
        {"tokenizer.ggml.unknown_token_id", &v->special.unk},
        {"tokenizer.ggml.bos_token_id", &v->special.bos},
        {"tokenizer.ggml.eos_token_id", &v->special.eos},
        {"tokenizer.ggml.padding_token_id", &v->special.pad},
        {"tokenizer.ggml.mask_token_id", &v->special.mask},
        {"tokenizer.ggml.cls_token_id", &v->special.cls},
        {"tokenizer.ggml.seperator_token_id", &v->special.sep}, /* written like that */
    };
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        if (set_id(v, path, g, fields[i].key, fields[i].id, err))
            return HEED_FORMAT;
    v->special.start = v->special.bos >= 0 ? v->special.bos : v->special.cls;
    return HEED_OK;
}

static heed_status set_split(heed_vocab *v, const char *path, const heed__gguf *g, heed_error *err)
{
    static const struct {
        const char *name;
        heed__split split;
    } known[] = {
        {"gpt-2", HEED__SPLIT_GPT2},       {"smollm", HEED__SPLIT_DIGITS},
        {"starcoder", HEED__SPLIT_DIGITS}, {"llama-bpe", HEED__SPLIT_LLAMA3},
        {"llama3", HEED__SPLIT_LLAMA3},    {"qwen2", HEED__SPLIT_QWEN2},
    };
    size_t length = 0;
    const char *pre = heed__gguf_text(g, "tokenizer.ggml.pre", &length);
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (is(pre, length, known[i].name)) {
            v->split = known[i].split;
            v->whole_words = known[i].split == HEED__SPLIT_LLAMA3;
            return HEED_OK;
        }
    return heed__fail(err, HEED_FORMAT,
                      "cannot use '%s': its splitting pattern is '%.*s', expected gpt-2, smollm, "
                      "starcoder, llama-bpe or qwen2",
                      path, (int)(length < 40 ? length : 40), pre ? pre : "");
}

static heed_status read_tokenizer(heed_vocab *v, const char *path, const heed__gguf *g,
                                  heed_error *err)
{
    size_t length = 0;
    const char *model = heed__gguf_text(g, "tokenizer.ggml.model", &length);
    const bool bytes = is(model, length, "gpt2"), pieces = is(model, length, "bert");
    if (!bytes && !pieces && !is(model, length, "llama"))
        return heed__fail(err, HEED_FORMAT,
                          "cannot use '%s': its tokenizer is '%.*s', expected llama, gpt2 or bert",
                          path, (int)(length < 40 ? length : 40), model ? model : "");
    heed_status status = add_tokens(v, path, g, pieces, err);
    if (status)
        return status;
    heed_special_ids none = {-1, -1, -1, -1, -1, -1, -1, -1, -1, 0};
    v->special = none;
    if (pieces)
        heed__special_by_name(v);
    if (set_ids(v, path, g, err))
        return HEED_FORMAT;
    if (pieces) {
        v->lowercase = v->strips_accents = v->cleans = v->separates_chinese = true;
        v->most_characters = 100;
        return heed__wordpiece_finish(v, path, err);
    }
    if (!bytes) {
        v->kind = HEED_BPE;
        v->begins_with_space = heed__gguf_number(g, "tokenizer.ggml.add_space_prefix", 1) != 0;
        return heed__scored_finish(v, path, err);
    }
    status = set_split(v, path, g, err);
    if (!status)
        status = add_merges(v, path, g, err);
    return status ? status : heed__bytes_finish(v, path, err);
}

heed_status heed__gguf_vocab_read(heed_vocab *v, const char *path, const char *bytes, size_t size,
                                  heed_error *err)
{
    heed__gguf g;
    heed_status status = heed__gguf_open(&g, path, bytes, size, &v->allocator, err);
    if (status)
        return status;
    status = read_tokenizer(v, path, &g, err);
    heed__gguf_close(&g);
    return status;
}
