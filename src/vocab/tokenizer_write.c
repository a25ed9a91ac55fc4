/* tokenizer_write.c: a learned vocabulary as tokenizer.json, which other programs open too. */
#include "base/file.h"
#include "base/json.h"
#include "vocab/learn_merges.h"

#include <string.h>

/* What stands around the model, as Hugging Face's tokenizers write it. */
static const struct {
    const char *normalizer, *pre_tokenizer, *decoder, *model;
} parts[] = {
    [HEED_CHARACTERS] = {"{\"type\":\"Replace\",\"pattern\":{\"String\":\" \"},\"content\":"
                         "\"" HEED__SPACE "\"}",
                         "null",
                         "{\"type\":\"Sequence\",\"decoders\":[{\"type\":\"Replace\",\"pattern\":{"
                         "\"String\":\"" HEED__SPACE "\"},\"content\":\" \"},{\"type\":\"Fuse\"}]}",
                         "\"type\":\"BPE\",\"unk_token\":\"<unk>\",\"byte_fallback\":false"},
    [HEED_BYTES] = {"null",
                    "{\"type\":\"ByteLevel\",\"add_prefix_space\":false,\"trim_offsets\":true,"
                    "\"use_regex\":true}",
                    "{\"type\":\"ByteLevel\",\"add_prefix_space\":true,\"trim_offsets\":true,"
                    "\"use_regex\":true}",
                    "\"type\":\"BPE\",\"unk_token\":\"<unk>\",\"byte_fallback\":false"},
    [HEED_WORDPIECE] = {NULL, "{\"type\":\"BertPreTokenizer\"}",
                        "{\"type\":\"WordPiece\",\"prefix\":\"##\",\"cleanup\":false}",
                        "\"type\":\"WordPiece\",\"unk_token\":\"[UNK]\","
                        "\"continuing_subword_prefix\":\"##\",\"max_input_chars_per_word\":100"},
};

static void write_normalizer(heed__string *s, heed_vocab_kind kind, bool cased)
{
    if (kind == HEED_WORDPIECE)
        heed__string_format(s,
                            "{\"type\":\"BertNormalizer\",\"clean_text\":true,"
                            "\"handle_chinese_chars\":true,\"strip_accents\":null,"
                            "\"lowercase\":%s}",
                            cased ? "false" : "true");
    else
        heed__string_add(s, parts[kind].normalizer);
}

static void write_added(heed__string *s, const heed__pieces *pieces)
{
    bool first = true;
    for (int32_t i = 0; i < pieces->count; i++) {
        const heed__piece *p = &pieces->item[i];
        if (p->type == HEED__PIECE_NORMAL)
            continue;
        heed__string_format(s, "%s\n{\"id\":%d,\"content\":", first ? "" : ",", i);
        heed__json_quote(s, p->text);
        heed__string_format(s,
                            ",\"single_word\":false,\"lstrip\":false,\"rstrip\":false,"
                            "\"normalized\":false,\"special\":%s}",
                            p->type == HEED__PIECE_USER ? "false" : "true");
        first = false;
    }
}

static void write_merges(heed__string *s, const heed__learner *l)
{
    for (int32_t i = 0; i < l->merges; i++) {
        heed__string_add(s, i ? ",\n[" : "\n[");
        heed__json_quote(s, l->pieces.item[l->merge[i][0]].text);
        heed__string_add(s, ",");
        heed__json_quote(s, l->pieces.item[l->merge[i][1]].text);
        heed__string_add(s, "]");
    }
}

heed_status heed__tokenizer_write(const heed__learner *l, heed_vocab_kind kind, bool cased,
                                  const char *path, heed_error *err)
{
    heed__string s;
    heed__string_init(&s, &l->allocator);
    heed__string_add(&s, "{\"version\":\"1.0\",\"truncation\":null,\"padding\":null,\n"
                         "\"added_tokens\":[");
    write_added(&s, &l->pieces);
    heed__string_add(&s, "],\n\"normalizer\":");
    write_normalizer(&s, kind, cased);
    heed__string_format(&s, ",\n\"pre_tokenizer\":%s,\n\"post_processor\":null,\n\"decoder\":%s,\n",
                        parts[kind].pre_tokenizer, parts[kind].decoder);
    heed__string_format(&s, "\"model\":{%s,\n\"vocab\":{", parts[kind].model);
    for (int32_t i = 0; i < l->pieces.count; i++) {
        heed__string_add(&s, i ? ",\n" : "\n");
        heed__json_quote(&s, l->pieces.item[i].text);
        heed__string_format(&s, ":%d", i);
    }
    heed__string_add(&s, "}");
    if (kind != HEED_WORDPIECE) {
        heed__string_add(&s, ",\n\"merges\":[");
        write_merges(&s, l);
        heed__string_add(&s, "]");
    }
    heed__string_add(&s, "}}\n");
    heed_status status = heed__string_status(&s, err);
    if (!status)
        status = heed__file_save(path, s.text, s.length, NULL, err);
    heed__string_deinit(&s);
    return status;
}
