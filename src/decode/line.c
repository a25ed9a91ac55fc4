/* line.c: a line on its way in (made UTF-8, cut where it is too long for the model) and out (parts
 * joined again). */
#include "base/error.h"
#include "decode/translator.h"
#include "text/utf8.h"

#include <string.h>

static const char replacement[] = "\xEF\xBF\xBD"; /* U+FFFD */

/* text itself, if it is UTF-8; otherwise a copy in which each wrong byte is U+FFFD. */
static const char *repair(const char *text, size_t *length, heed_arena *arena, heed_error *err)
{
    if (heed__utf8_valid(text, *length, NULL))
        return text;
    char *copy = heed__take(arena, (int64_t)*length, sizeof replacement - 1, err);
    char *to = copy;
    for (size_t i = 0; copy && i < *length;) {
        int32_t character;
        size_t n = heed__utf8_next(text + i, *length - i, &character);
        const char *from = n ? text + i : replacement;
        size_t bytes = n ? n : sizeof replacement - 1;
        memcpy(to, from, bytes);
        to += bytes;
        i += n ? n : 1;
    }
    *length = (size_t)(to - copy);
    return copy;
}

heed_status heed__encode_line(const heed_vocab *v, const char *text, heed_arena *arena,
                              heed_tokens *tokens, bool *repaired, heed_error *err)
{
    size_t length = strlen(text);
    const char *sound = repair(text, &length, arena, err);
    *repaired = sound != text;
    return sound ? heed_vocab_encode(v, sound, length, arena, tokens, err) : HEED_MEMORY;
}

/* Windows of equal size, each at most `limit`. */
static int64_t windows(const heed_tokens *tokens, int64_t limit)
{
    return (tokens->count + limit - 1) / limit;
}

static heed_status set_parts(heed__line *line, const heed_tokens *tokens, int64_t count,
                             int64_t limit, heed_arena *arena, heed_error *err)
{
    line->parts = 0;
    for (int64_t i = 0; i < count; i++)
        line->parts += windows(&tokens[i], limit);
    line->part = heed__take(arena, line->parts, sizeof *line->part, err);
    if (!line->part)
        return HEED_MEMORY;
    heed__part *part = line->part;
    for (int64_t i = 0; i < count; i++) {
        int64_t n = windows(&tokens[i], limit);
        for (int64_t w = 0; w < n; w++) {
            int64_t begin = w * tokens[i].count / n, end = (w + 1) * tokens[i].count / n;
            *part++ = (heed__part){.tokens = {tokens[i].id + begin, end - begin}};
        }
    }
    return HEED_OK;
}

heed_status heed__cut_line(const heed_vocab *v, const char *text, int64_t limit, heed_arena *arena,
                           heed__line *line, heed_error *err)
{
    size_t length = strlen(text);
    const char *sound = repair(text, &length, arena, err);
    heed_tokens whole;
    *line = (heed__line){.repaired = sound != text};
    if (!sound)
        return HEED_MEMORY;
    heed_status status = heed_vocab_encode(v, sound, length, arena, &whole, err);
    if (status || whole.count <= limit)
        return status ? status : set_parts(line, &whole, 1, limit, arena, err);
    /* Sentence ends are found in the text, so its tokens are counted in bytes; a quarter is kept
     * back because some are shorter than others.  What is too long all the same is cut between
     * tokens. */
    double bytes_per_token = (double)length / (double)whole.count;
    double most = 0.75 * bytes_per_token * (double)limit;
    const size_t *end;
    int64_t count = heed_split_sentences(sound, length, most < 1 ? 1 : (size_t)most, arena, &end);
    heed_tokens *tokens = count ? heed__take(arena, count, sizeof *tokens, err) : NULL;
    if (!tokens)
        return heed__fail(err, HEED_MEMORY, "out of memory for a line of %zu bytes", length);
    for (int64_t i = 0; !status && i < count; i++) {
        size_t begin = i ? end[i - 1] : 0;
        status = heed_vocab_encode(v, sound + begin, end[i] - begin, arena, &tokens[i], err);
    }
    return status ? status : set_parts(line, tokens, count, limit, arena, err);
}

/* ---- joining ---- */

/* Chinese and Japanese put no space between sentences. */
static bool is_wide(int32_t c)
{
    return (c >= 0x2E80 && c <= 0x9FFF) || (c >= 0xF900 && c <= 0xFAFF) ||
           (c >= 0xFE30 && c <= 0xFE4F) || (c >= 0xFF00 && c <= 0xFFEF) ||
           (c >= 0x20000 && c <= 0x3FFFF);
}

static bool wants_space(const char *before, size_t length, const char *after)
{
    int32_t last, first;
    return heed__utf8_last(before, length, &last) &&
           heed__utf8_next(after, strlen(after), &first) && !is_wide(last) && !is_wide(first);
}

heed_status heed__join_parts(const heed_translation *part, int64_t parts, heed_arena *arena,
                             heed_translation *out, heed_error *err)
{
    heed_translation sum = {.repaired = out->repaired};
    size_t bytes = 1;
    for (int64_t i = 0; i < parts; i++) {
        sum.tokens += part[i].tokens;
        sum.score += part[i].score;
        sum.log_p += part[i].log_p;
        bytes += strlen(part[i].text) + 1;
    }
    char *text = heed__take(arena, (int64_t)bytes, 1, err);
    int32_t *id = heed__take(arena, sum.tokens, sizeof *id, err);
    heed_real *log_p = heed__take(arena, sum.tokens, sizeof *log_p, err);
    if (!text || !id || !log_p)
        return HEED_MEMORY;
    size_t at = 0;
    sum.text = text;
    sum.id = id;
    sum.token_log_p = log_p;
    for (int64_t i = 0; i < parts; i++) {
        size_t n = strlen(part[i].text);
        if (wants_space(text, at, part[i].text))
            text[at++] = ' ';
        memcpy(text + at, part[i].text, n);
        at += n;
        for (int64_t k = 0; k < part[i].tokens; k++) {
            *id++ = part[i].id[k];
            *log_p++ = part[i].token_log_p[k];
        }
    }
    text[at] = '\0';
    *out = sum;
    return HEED_OK;
}
