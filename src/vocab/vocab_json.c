/* vocab_json.c: tokenizer.json of Hugging Face's tokenizers (byte-level BPE, BPE with U+2581 for
 * spaces, WordPiece), and vocab.json with the merges in a file beside it (GPT-2).  What a file asks
 * for and heed does not do is refused by name, never passed over. */
#include "vocab/vocab_json.h"
#include "base/error.h"
#include "base/json.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static bool is_type(const json_t *object, const char *type)
{
    const char *text = json_string_value(json_object_get(object, "type"));
    return text && strcmp(text, type) == 0;
}

static heed_status unsupported(const char *path, const char *what, const json_t *object,
                               const char *expected, heed_error *err)
{
    const char *text = json_is_string(object) ? json_string_value(object)
                                              : json_string_value(json_object_get(object, "type"));
    return heed__fail(err, HEED_FORMAT, "cannot use vocabulary '%s': its %s is %.120s%s%.120s%s",
                      path, what, text ? "'" : "", text ? text : "none that heed knows",
                      text ? "'" : "", expected);
}

/* Special added tokens are never in a text; the others are found in it as they stand. */
static void set_added(heed_vocab *v, const json_t *added)
{
    size_t i;
    json_t *token;
    json_array_foreach(added, i, token)
    {
        const char *content = json_string_value(json_object_get(token, "content"));
        const int32_t id = heed__pieces_find(&v->pieces, content, strlen(content));
        const bool special = json_is_true(json_object_get(token, "special"));
        if (v->pieces.item[id].type == HEED__PIECE_NORMAL)
            v->pieces.item[id].type = special ? HEED__PIECE_CONTROL : HEED__PIECE_USER;
    }
}

static heed_status add_merges(heed_vocab *v, const char *path, const json_t *merges,
                              heed_error *err)
{
    size_t i;
    json_t *m;
    json_array_foreach(merges, i, m)
    {
        const char *left = json_string_value(json_array_get(m, 0));
        const char *right = json_string_value(json_array_get(m, 1));
        const char *text = json_string_value(m);
        heed_status status = left && right
                                 ? heed__merge_add(v, path, (int64_t)i + 1, left, strlen(left),
                                                   right, strlen(right), err)
                                 : heed__merge_line(v, path, (int64_t)i + 1, text,
                                                    text ? json_string_length(m) : 0, err);
        if (status)
            return status;
    }
    return HEED_OK;
}

/* ---- byte-level BPE ---- */

/* The regular expressions that files spell out. */
static const struct {
    const char *regex;
    heed__split split;
} patterns[] = {
    {"'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+",
     HEED__SPLIT_GPT2},
    {"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}| "
     "?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+",
     HEED__SPLIT_LLAMA3},
    {"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}| "
     "?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+",
     HEED__SPLIT_QWEN2},
};

/* What a pre-tokenizer or the parts of a sequence of them say. */
struct splitting {
    bool bytes, digits, regex, known;
    heed__split split;
    const json_t *refused;
};

static void look_at(const json_t *pre, struct splitting *s)
{
    size_t i;
    json_t *part;
    if (!pre || json_is_null(pre))
        return;
    if (is_type(pre, "Sequence")) {
        json_array_foreach(json_object_get(pre, "pretokenizers"), i,
                           part) if (!is_type(part, "Sequence")) look_at(part, s);
    } else if (is_type(pre, "ByteLevel") &&
               !json_is_true(json_object_get(pre, "add_prefix_space"))) {
        s->bytes = true;
        s->regex |= !json_is_false(json_object_get(pre, "use_regex"));
    } else if (is_type(pre, "Digits") && json_is_true(json_object_get(pre, "individual_digits"))) {
        s->digits = true;
    } else if (is_type(pre, "Split")) {
        const json_t *regex = json_object_get(json_object_get(pre, "pattern"), "Regex");
        const char *text = json_string_value(regex);
        for (i = 0; text && i < sizeof patterns / sizeof *patterns; i++)
            if (strcmp(text, patterns[i].regex) == 0) {
                s->split = patterns[i].split;
                s->known = true;
            }
        if (!s->known)
            s->refused = regex ? regex : pre;
    } else {
        s->refused = pre;
    }
}

static heed_status read_bytes(heed_vocab *v, const char *path, const json_t *model,
                              const struct splitting *s, heed_error *err)
{
    v->split = s->known ? s->split : s->digits ? HEED__SPLIT_DIGITS : HEED__SPLIT_GPT2;
    v->whole_words = json_is_true(json_object_get(model, "ignore_merges"));
    if (s->known && (s->digits || s->regex) && s->split != HEED__SPLIT_GPT2)
        return heed__fail(err, HEED_FORMAT,
                          "cannot use vocabulary '%s': its pre_tokenizer splits twice", path);
    if (!s->known && !s->regex)
        return heed__fail(err, HEED_FORMAT,
                          "cannot use vocabulary '%s': its pre_tokenizer does not split, expected "
                          "the pattern of gpt-2, llama 3 or qwen 2",
                          path);
    heed_status status = add_merges(v, path, json_object_get(model, "merges"), err);
    return status ? status : heed__bytes_finish(v, path, err);
}

/* ---- BPE with U+2581 ---- */

struct normalizing {
    bool replaces, prepends;
    const json_t *refused;
};

static bool string_is(const json_t *text, const char *expected)
{
    return json_is_string(text) && strcmp(json_string_value(text), expected) == 0;
}

static void look_at_normalizer(const json_t *n, struct normalizing *s)
{
    size_t i;
    json_t *part;
    if (!n || json_is_null(n))
        return;
    if (is_type(n, "Sequence")) {
        json_array_foreach(json_object_get(n, "normalizers"), i,
                           part) if (!is_type(part, "Sequence")) look_at_normalizer(part, s);
    } else if (is_type(n, "Prepend") && string_is(json_object_get(n, "prepend"), HEED__SPACE)) {
        s->prepends = true;
    } else if (is_type(n, "Replace") && string_is(json_object_get(n, "content"), HEED__SPACE) &&
               string_is(json_object_get(json_object_get(n, "pattern"), "String"), " ")) {
        s->replaces = true;
    } else {
        s->refused = n;
    }
}

/* Metaspace that does not split words is the same as the two normalisers. */
static void look_at_metaspace(const json_t *pre, struct normalizing *s)
{
    const char *scheme = json_string_value(json_object_get(pre, "prepend_scheme"));
    if (!pre || json_is_null(pre))
        return;
    if (!is_type(pre, "Metaspace") || !json_is_false(json_object_get(pre, "split"))) {
        s->refused = pre;
        return;
    }
    s->replaces = true;
    s->prepends = !scheme || strcmp(scheme, "never") != 0;
}

/* The score of a piece is the rank of the first merge that makes it. */
static heed_status score_pieces(heed_vocab *v, const char *path, const json_t *merges,
                                heed_error *err)
{
    heed_status status = add_merges(v, path, merges, err);
    if (status)
        return status;
    for (int32_t i = 0; i < v->pieces.count; i++)
        v->pieces.item[i].score = -INFINITY;
    for (size_t i = 0; i < v->merges.slots; i++) {
        const struct heed__merge *m = &v->merges.slot[i];
        float *score = m->left < 0 ? NULL : &v->pieces.item[m->id].score;
        if (score && *score < -(float)m->rank)
            *score = -(float)m->rank;
    }
    heed__merges_deinit(&v->merges);
    return HEED_OK;
}

static heed_status read_scored(heed_vocab *v, const char *path, const json_t *root,
                               const json_t *model, heed_error *err)
{
    struct normalizing n = {0};
    look_at_normalizer(json_object_get(root, "normalizer"), &n);
    look_at_metaspace(json_object_get(root, "pre_tokenizer"), &n);
    if (n.refused)
        return unsupported(path, "normalizer or pre_tokenizer", n.refused,
                           ", expected U+2581 for spaces and no splitting", err);
    if (!n.replaces)
        return heed__fail(
            err, HEED_FORMAT,
            "cannot use vocabulary '%s': spaces stay spaces, expected byte-level BPE, "
            "or U+2581 for them",
            path);
    const json_t *merges = json_object_get(model, "merges");
    v->kind = json_array_size(merges) ? HEED_BPE : HEED_CHARACTERS;
    v->begins_with_space = n.prepends;
    heed_status status = score_pieces(v, path, merges, err);
    for (int32_t i = 0;
         json_is_true(json_object_get(model, "byte_fallback")) && i < v->pieces.count; i++) {
        heed__piece *p = &v->pieces.item[i];
        unsigned byte;
        if (p->length == 6 && sscanf(p->text, "<0x%02X>", &byte) == 1)
            p->type = HEED__PIECE_BYTE;
    }
    return status ? status : heed__scored_finish(v, path, err);
}

/* ---- WordPiece ---- */

static heed_status read_wordpiece(heed_vocab *v, const char *path, const json_t *root,
                                  const json_t *model, heed_error *err)
{
    const json_t *prefix = json_object_get(model, "continuing_subword_prefix");
    const json_t *most = json_object_get(model, "max_input_chars_per_word");
    const json_t *n = json_object_get(root, "normalizer");
    const json_t *pre = json_object_get(root, "pre_tokenizer");
    if (prefix && !string_is(prefix, "##"))
        return unsupported(path, "continuing_subword_prefix", prefix, ", expected '##'", err);
    if (n && !json_is_null(n) && !is_type(n, "BertNormalizer"))
        return unsupported(path, "normalizer", n, ", expected 'BertNormalizer'", err);
    if (!pre || !is_type(pre, "BertPreTokenizer"))
        return unsupported(path, "pre_tokenizer", pre, ", expected 'BertPreTokenizer'", err);
    const json_t *accents = json_object_get(n, "strip_accents");
    v->lowercase = json_is_true(json_object_get(n, "lowercase"));
    v->strips_accents = json_is_boolean(accents) ? json_is_true(accents) : v->lowercase;
    v->separates_chinese = json_is_true(json_object_get(n, "handle_chinese_chars"));
    v->cleans = json_is_true(json_object_get(n, "clean_text"));
    v->most_characters =
        json_is_integer(most) && json_integer_value(most) <= INT_MAX && json_integer_value(most) > 0
            ? (int32_t)json_integer_value(most)
            : 100;
    return heed__wordpiece_finish(v, path, err);
}

/* ---- files ---- */

static bool is_blank(const json_t *text)
{
    return !text || json_is_null(text) || string_is(text, "");
}

static heed_status read_model(heed_vocab *v, const char *path, const json_t *root, heed_error *err)
{
    const json_t *model = json_object_get(root, "model"),
                 *added = json_object_get(root, "added_tokens");
    const json_t *merges = json_object_get(model, "merges");
    const bool pieces = is_type(model, "WordPiece");
    const bool bpe = is_type(model, "BPE") || (!json_object_get(model, "type") && merges);
    if (!pieces && !bpe)
        return unsupported(path, "model", model, ", expected 'BPE' or 'WordPiece'", err);
    if (bpe && !is_blank(json_object_get(model, "continuing_subword_prefix")))
        return unsupported(path, "continuing_subword_prefix",
                           json_object_get(model, "continuing_subword_prefix"), ", expected none",
                           err);
    if (bpe && !is_blank(json_object_get(model, "end_of_word_suffix")))
        return unsupported(path, "end_of_word_suffix", json_object_get(model, "end_of_word_suffix"),
                           ", expected none", err);
    heed_status status =
        heed__json_pieces_add(v, path, json_object_get(model, "vocab"), added, err);
    if (status)
        return status;
    heed__special_by_name(v);
    set_added(v, added);
    if (pieces)
        return read_wordpiece(v, path, root, model, err);
    struct splitting s = {0};
    look_at(json_object_get(root, "pre_tokenizer"), &s);
    if (!s.bytes)
        return read_scored(v, path, root, model, err);
    const json_t *normalizer = json_object_get(root, "normalizer");
    if (normalizer && !json_is_null(normalizer))
        return unsupported(path, "normalizer", normalizer, ", expected none", err);
    if (s.refused)
        return unsupported(path, "splitting pattern", s.refused,
                           ", expected that of gpt-2, llama 3 or qwen 2", err);
    return read_bytes(v, path, model, &s, err);
}

heed_status heed__json_vocab_read(heed_vocab *v, const char *path, const char *bytes, size_t size,
                                  heed_error *err)
{
    json_error_t why;
    json_t *root = json_loadb(bytes, size, JSON_REJECT_DUPLICATES, &why);
    if (!root && heed__json_short_of_memory(&why))
        return heed__fail(err, HEED_MEMORY, "out of memory for vocabulary '%s'", path);
    if (!root)
        return heed__fail(err, HEED_FORMAT, "cannot read vocabulary '%s' line %d: %.150s", path,
                          why.line, why.text);
    heed_status status = json_is_object(json_object_get(root, "model"))
                             ? read_model(v, path, root, err)
                             : heed__vocab_and_merges_read(v, path, root, err);
    json_decref(root);
    return status;
}
