/* sequences.c: texts and words as sequences of tokens. */
#include "encoder/sequences.h"
#include "base/error.h"

#include <string.h>

static heed_status no_memory(heed_error *err)
{
    return heed__fail(err, HEED_MEMORY, "out of memory for a line");
}

heed__surround heed__surround_of(const heed_special_ids *ids)
{
    return (heed__surround){ids->cls >= 0 ? ids->cls : ids->bos,
                            ids->sep >= 0 ? ids->sep : ids->eos};
}

heed_status heed__read_texts(const heed_vocab *v, const char *const text[2], int64_t longest,
                             heed_arena *arena, heed__read *out, heed_error *err)
{
    const heed_special_ids ids = heed_vocab_special(v);
    const heed__surround s = heed__surround_of(&ids);
    const int texts = text[1] ? 2 : 1;
    heed_tokens part[2] = {{NULL, 0}, {NULL, 0}};
    *out = (heed__read){0};
    heed_status status = HEED_OK;
    for (int i = 0; !status && i < texts; i++)
        status = heed_vocab_encode(v, text[i], strlen(text[i]), arena, &part[i], err);
    if (status)
        return status;
    const int64_t around = (s.cls >= 0) + (s.sep >= 0) * texts;
    while (part[0].count + part[1].count + around > longest && part[0].count + part[1].count > 0) {
        part[part[1].count > part[0].count].count--;
        out->cut = true;
    }
    out->id = heed_arena_allocate(arena, (size_t)(part[0].count + part[1].count + around + 1) *
                                             sizeof *out->id);
    if (!out->id)
        return no_memory(err);
    if (s.cls >= 0)
        out->id[out->count++] = s.cls;
    for (int i = 0; i < texts; i++) {
        if (i)
            out->second = out->count;
        if (part[i].count)
            memcpy(out->id + out->count, part[i].id, (size_t)part[i].count * sizeof *out->id);
        out->count += part[i].count;
        if (s.sep >= 0)
            out->id[out->count++] = s.sep;
    }
    if (!out->count) /* an empty line, and nothing stands around it */
        out->id[out->count++] = ids.unk >= 0 ? ids.unk : 0;
    if (texts < 2)
        out->second = out->count;
    return HEED_OK;
}

heed_status heed__read_words(const heed_vocab *v, const char *const *word, int64_t words,
                             int64_t longest, heed_arena *arena, heed__read *out, heed_error *err)
{
    const heed_special_ids ids = heed_vocab_special(v);
    const heed__surround s = heed__surround_of(&ids);
    const int64_t most = longest - (s.cls >= 0) - (s.sep >= 0);
    *out = (heed__read){0};
    out->id = heed_arena_allocate(arena, (size_t)(longest + 1) * sizeof *out->id);
    out->first = heed_arena_allocate(arena, (size_t)(words + 1) * sizeof *out->first);
    if (!out->id || !out->first)
        return no_memory(err);
    if (s.cls >= 0)
        out->id[out->count++] = s.cls;
    const int64_t begin = out->count;
    for (int64_t i = 0; i < words; i++) {
        heed_tokens t;
        const int32_t unknown = ids.unk >= 0 ? ids.unk : 0;
        const heed_status status = heed_vocab_encode(v, word[i], strlen(word[i]), arena, &t, err);
        if (status)
            return status;
        if (!t.count) /* nothing but what a vocabulary removes */
            t = (heed_tokens){&unknown, 1};
        if (out->count - begin + t.count > most) {
            out->cut = true;
            if (i > 0)
                break;
            t.count = most; /* a single word, longer than everything: its beginning */
        }
        out->first[out->words++] = (int32_t)out->count;
        memcpy(out->id + out->count, t.id, (size_t)t.count * sizeof *t.id);
        out->count += t.count;
    }
    if (s.sep >= 0)
        out->id[out->count++] = s.sep;
    out->second = out->count;
    return HEED_OK;
}

heed_status heed__read_join(const heed__read *read, int64_t count, bool types, heed_arena *arena,
                            heed_batch_side *side, heed_error *err)
{
    int64_t rows = 0;
    for (int64_t i = 0; i < count; i++)
        rows += read[i].count;
    int64_t *length = heed_arena_allocate(arena, (size_t)(count + 1) * sizeof *length);
    int32_t *id = heed_arena_allocate(arena, (size_t)(rows + 1) * sizeof *id);
    int32_t *type = types ? heed_arena_allocate(arena, (size_t)(rows + 1) * sizeof *type) : NULL;
    if (!length || !id || (types && !type))
        return no_memory(err);
    for (int64_t i = 0, at = 0; i < count; at += read[i++].count) {
        length[i] = read[i].count;
        memcpy(id + at, read[i].id, (size_t)read[i].count * sizeof *id);
        for (int64_t k = 0; type && k < read[i].count; k++)
            type[at + k] = k >= read[i].second;
    }
    *side = (heed_batch_side){
        .rows = heed_segments_new(arena, count, length), .ids = id, .types = type};
    return side->rows ? HEED_OK : no_memory(err);
}
