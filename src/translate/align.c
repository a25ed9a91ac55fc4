/* align.c: from attention between pieces to pairs of words.
 *
 * The weights of all pieces of a target word are summed over the pieces of each source word; the
 * source word with the largest sum is taken, the first among equals.  Where words begin the
 * vocabulary knows.  EOS is no word: what was looked at there, for want of anything better, does
 * not count. */
#include "translate/align.h"
#include "search/beam.h"

#include <stdio.h>
#include <string.h>

/* What the tokens [begin,end) of a word stand for: how many spaces are in it, and whether it is
 * glued to its neighbours. */
static heed__protected span_of(const heed__side *side, int64_t begin, int64_t end, int32_t *spaces)
{
    const heed_special_ids ids = heed_vocab_special(side->vocab);
    heed__protected all = {0};
    *spaces = 0;
    for (int64_t i = begin; i < end; i++) {
        const int64_t which = heed__placeholder_of(&ids, side->tokens.id[i]);
        if (which < 0 || which >= side->spans)
            continue;
        const heed__protected *s = &side->span[which];
        all.glued_left |= s->glued_left;
        all.glued_right |= s->glued_right;
        const char *text = side->written ? s->written : s->text;
        const size_t length = side->written ? s->written_length : s->length;
        for (size_t k = 0; k < length; k++)
            *spaces += text[k] == ' ';
    }
    return all;
}

/* word[i]: which word of the text, with its spans in their places, token i is of; -1: none.
 * Returns the number of words, -1 after an error. */
static int64_t find_words(const heed__side *side, int32_t **word, heed_arena *arena,
                          heed_error *err)
{
    const heed_tokens *t = &side->tokens;
    const heed_special_ids ids = heed_vocab_special(side->vocab);
    int32_t *w = *word = heed__take(arena, t->count, sizeof *w, err);
    if (!w)
        return -1;
    heed_vocab_words(side->vocab, t->id, t->count, w);
    int32_t words = 0, spaces;
    bool glued = false; /* to the word before */
    for (int64_t begin = 0, end; begin < t->count; begin = end) {
        for (end = begin + 1; end < t->count && w[end] == w[begin];)
            end++;
        const bool special = t->id[begin] == ids.start || t->id[begin] == ids.eos;
        const heed__protected s = span_of(side, begin, end, &spaces);
        words += !special && !(words > 0 && (glued || s.glued_left));
        for (int64_t i = begin; i < end; i++)
            w[i] = special ? -1 : words - 1;
        words += spaces;
        glued = s.glued_right;
    }
    return words;
}

/* The source word that tokens [begin,end) of the target looked at most. */
static int32_t most_seen(double *sum, int64_t words, const int32_t *source_word, int64_t sources,
                         const heed_real *weight, int64_t ld, int64_t begin, int64_t end)
{
    int32_t best = 0;
    for (int64_t i = 0; i < words; i++)
        sum[i] = 0;
    for (int64_t t = begin; t < end; t++)
        for (int64_t k = 0; k < sources; k++)
            if (source_word[k] >= 0)
                sum[source_word[k]] += (double)weight[t * ld + k];
    for (int32_t i = 1; i < words; i++)
        best = sum[i] > sum[best] ? i : best;
    return best;
}

heed_status heed__align(const heed__side *source, const heed__side *target, const heed_real *weight,
                        int64_t ld, heed_arena *arena, heed__alignment *out, heed_error *err)
{
    int32_t *source_word, *target_word;
    int64_t sources = find_words(source, &source_word, arena, err);
    int64_t targets = sources < 0 ? -1 : find_words(target, &target_word, arena, err);
    if (targets < 0)
        return HEED_MEMORY;
    double *sum = heed__take(arena, sources, sizeof *sum, err);
    heed__word_pair *pair = heed__take(arena, targets, sizeof *pair, err);
    if (!sum || !pair)
        return HEED_MEMORY;
    *out = (heed__alignment){pair, 0, sources, targets};
    for (int64_t begin = 0, end; sources && begin < target->tokens.count; begin = end) {
        for (end = begin; end < target->tokens.count && target_word[end] == target_word[begin];)
            end++;
        if (target_word[begin] < 0)
            continue;
        int32_t seen =
            most_seen(sum, sources, source_word, source->tokens.count, weight, ld, begin, end);
        pair[out->pairs++] = (heed__word_pair){seen, target_word[begin]};
    }
    return HEED_OK;
}

const char *heed__pharaoh(const heed__alignment *part, int64_t parts, heed_arena *arena,
                          heed_error *err)
{
    enum { LONGEST_PAIR = 48 }; /* two numbers of 64 bits and what stands between */
    int64_t pairs = 0, source = 0, target = 0, at = 0;
    for (int64_t i = 0; i < parts; i++)
        pairs += part[i].pairs;
    char *text = heed__take(arena, pairs + 1, LONGEST_PAIR, err);
    if (!text)
        return NULL;
    text[0] = '\0';
    for (int64_t i = 0; i < parts; i++) {
        for (int64_t k = 0; k < part[i].pairs; k++)
            at += snprintf(text + at, LONGEST_PAIR, "%s%lld-%lld", at ? " " : "",
                           (long long)(source + part[i].pair[k].source),
                           (long long)(target + part[i].pair[k].target));
        source += part[i].source_words;
        target += part[i].target_words;
    }
    return text;
}

const char *heed__pharaoh_same(const char *text, heed_arena *arena, heed_error *err)
{
    int64_t words = 0;
    for (const char *at = text; *(at += strspn(at, " \t")); at += strcspn(at, " \t"))
        words++;
    heed__word_pair *pair = heed__take(arena, words, sizeof *pair, err);
    for (int32_t i = 0; pair && i < words; i++)
        pair[i] = (heed__word_pair){i, i};
    return pair ? heed__pharaoh(&(heed__alignment){pair, words, words, words}, 1, arena, err)
                : NULL;
}
