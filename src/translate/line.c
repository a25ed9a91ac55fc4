/* line.c: a line on its way in (made UTF-8, cut where it is too long for the model) and out (parts
 * joined again). */
#include "base/error.h"
#include "text/capitals.h"
#include "text/split.h"
#include "text/utf8.h"
#include "translate/translator.h"

#include <string.h>

static const char replacement[] = "\xEF\xBF\xBD"; /* U+FFFD */

/* text itself, if it is UTF-8; otherwise a copy in which each wrong byte is U+FFFD. */
static const char *repair(const char *text, size_t *length, heed_arena *arena, heed_error *err)
{
    if (heed_utf8_valid(text, *length, NULL))
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

/* A piece may stand for a line end (SentencePiece's bytes can), and so may a span hold one. */
void heed__remove_line_ends(char *text)
{
    for (; (text = strpbrk(text, "\r\n")); text++)
        *text = ' ';
}

/* ---- cutting ---- */

/* A line that is being cut. */
struct cutting {
    const heed_vocab *v;
    heed_special_ids ids; /* of v */
    const char *text;
    const heed__limits *limits;
    heed_arena *arena;
    heed__line *line;
    int64_t capacity;      /* of line->part */
    heed__protected *span; /* that are left, in the order of the text */
};

static heed_status add_one(struct cutting *c, heed_tokens tokens, heed_error *err)
{
    heed__line *l = c->line;
    if (l->parts == c->capacity) {
        c->capacity = c->capacity ? 2 * c->capacity : 1;
        heed__part *part = heed__take(c->arena, c->capacity, sizeof *part, err);
        if (!part)
            return HEED_MEMORY;
        if (l->parts)
            memcpy(part, l->part, (size_t)l->parts * sizeof *part);
        l->part = part;
    }
    int64_t spans = c->span ? heed__number_placeholders(&c->ids, &tokens, c->arena) : 0;
    if (spans < 0)
        return heed__fail(err, HEED_MEMORY, "out of memory for a line of text");
    l->part[l->parts++] = (heed__part){.tokens = tokens, .span = c->span, .spans = spans};
    if (spans)
        c->span += spans;
    return HEED_OK;
}

/* One, unless there are more spans in it than placeholders. */
static heed_status add_part(struct cutting *c, heed_tokens tokens, heed_error *err)
{
    heed_status status = HEED_OK;
    for (int64_t n; !status && tokens.count > 0; tokens.id += n, tokens.count -= n) {
        n = c->span ? heed__protected_tokens(&c->ids, &tokens) : tokens.count;
        status = add_one(c, (heed_tokens){tokens.id, n}, err);
    }
    return status;
}

static heed_status encode(const struct cutting *c, size_t begin, size_t end, heed_tokens *tokens,
                          heed_error *err)
{
    return heed_vocab_encode(c->v, c->text + begin, end - begin, c->arena, tokens, err);
}

/* Windows of equal size, each at most the longest; one, if the tokens fit. */
static heed_status add_windows(struct cutting *c, heed_tokens tokens, heed_error *err)
{
    int64_t n = (tokens.count + c->limits->longest - 1) / c->limits->longest;
    heed_status status = HEED_OK;
    for (int64_t w = 0; !status && w < n; w++) {
        int64_t begin = w * tokens.count / n, end = (w + 1) * tokens.count / n;
        status = add_part(c, (heed_tokens){tokens.id + begin, end - begin}, err);
    }
    return status;
}

/* A sentence that is too long is cut at spaces.  They are found in the text, so its tokens are
 * counted in bytes; a quarter is kept back because some are shorter than others.  What is too long
 * all the same is cut between tokens. */
static heed_status add_long_sentence(struct cutting *c, size_t begin, size_t end, int64_t count,
                                     heed_error *err)
{
    double most = 0.75 * (double)(end - begin) / (double)count * (double)c->limits->longest;
    const size_t *cut;
    size_t at = begin;
    int64_t cuts = heed_split_sentences(c->text + begin, end - begin, most < 1 ? 1 : (size_t)most,
                                        c->arena, &cut);
    if (!cuts)
        return heed__fail(err, HEED_MEMORY, "out of memory for a line of text");
    heed_status status = HEED_OK;
    for (int64_t i = 0; !status && i < cuts; i++) {
        heed_tokens tokens;
        size_t stop = begin + cut[i] - at;
        if (c->span)
            stop = heed__mark_begin(c->text + at, end - at, stop);
        status = encode(c, at, at + stop, &tokens, err);
        if (!status)
            status = add_windows(c, tokens, err);
        at += stop;
    }
    return status;
}

/* Sentences from begin to end, `count` tokens in all. */
static heed_status add_sentences(struct cutting *c, size_t begin, size_t end, int64_t count,
                                 heed_error *err)
{
    heed_tokens tokens;
    if (count > c->limits->longest)
        return add_long_sentence(c, begin, end, count, err);
    heed_status status = encode(c, begin, end, &tokens, err);
    return status ? status : add_windows(c, tokens, err);
}

/* Spans that must have placeholders of their own. */
static int64_t spans_in(const struct cutting *c, const heed_tokens *t)
{
    return c->span ? heed__placeholders(&c->ids, t) : 0;
}

/* Sentences with more spans in all are not put together: training shows few such lines. */
#define SPANS_TOGETHER (HEED_PLACEHOLDERS / 2)

/* The sentences that fit together in a part. */
static heed_status cut_at_sentences(struct cutting *c, size_t length, heed_error *err)
{
    heed_status status = HEED_OK;
    size_t begin = 0; /* of the part */
    int64_t count = 0, spans = 0;
    for (size_t at = 0, end; !status && at < length; at = end) {
        heed_tokens tokens;
        end = heed__sentence_end(c->text, length, at);
        status = encode(c, at, end, &tokens, err);
        if (!status && count &&
            (count + tokens.count > c->limits->together ||
             spans + spans_in(c, &tokens) > SPANS_TOGETHER)) {
            status = add_sentences(c, begin, at, count, err);
            begin = at;
            count = spans = 0;
        }
        if (!status) {
            count += tokens.count;
            spans += spans_in(c, &tokens);
        }
    }
    return status ? status : add_sentences(c, begin, length, count, err);
}

/* All of c->text. */
static heed_status cut(struct cutting *c, size_t length, heed_error *err)
{
    heed_tokens whole;
    heed_status status = heed_vocab_encode(c->v, c->text, length, c->arena, &whole, err);
    if (status || !whole.count)
        return status;
    return whole.count <= c->limits->together && spans_in(c, &whole) <= SPANS_TOGETHER
               ? add_part(c, whole, err)
               : cut_at_sentences(c, length, err);
}

/* The line is its own translation. */
static heed_status copy_line(const char *text, size_t length, heed_arena *arena, heed__line *line,
                             heed_error *err)
{
    char *copy = heed__take(arena, (int64_t)length + 1, 1, err);
    line->copied = copy;
    if (!copy)
        return HEED_MEMORY;
    memcpy(copy, text, length);
    copy[length] = '\0';
    heed__remove_line_ends(copy);
    return HEED_OK;
}

heed_status heed__split_line(const heed_vocab *v, const char *text, const heed__limits *limits,
                             heed_arena *arena, heed__line *line, heed_error *err)
{
    size_t length = strlen(text);
    const char *sound = repair(text, &length, arena, err);
    *line = (heed__line){.repaired = sound != text};
    if (!sound)
        return HEED_MEMORY;
    line->too_long = length > HEED_LONGEST_LINE;
    if (heed__passes_through(limits, sound, length))
        return copy_line(sound, length, arena, line, err);
    line->all_caps = limits->capitals && heed__is_all_caps(sound, length);
    if (line->all_caps) {
        char *lower = heed__to_lower(sound, &length, arena);
        if (!lower || !heed__names_capitalise(limits->names, v, lower, length, arena))
            return heed__fail(err, HEED_MEMORY, "out of memory for a line of text");
        sound = lower;
    }
    heed__span first;
    line->unprotected =
        limits->lacks_placeholders && heed__span_next(sound, length, 0, limits->into, &first);
    struct cutting plain = {v, heed_vocab_special(v), sound, limits, arena, line, 0, NULL},
                   c = plain;
    int64_t spans = 0;
    size_t marked = length;
    if (limits->protects &&
        !heed__protect(&c.text, &marked, limits->into, limits->names, v, arena, &c.span, &spans))
        return heed__fail(err, HEED_MEMORY, "out of memory for a line of text");
    if (spans && !heed__has_words(c.text, marked))
        return copy_line(sound, length, arena, line, err);
    const heed__protected *all = spans ? c.span + spans : NULL;
    heed_status status = spans ? cut(&c, marked, err) : cut(&plain, length, err);
    if (status || !spans || c.span == all)
        return status;
    line->parts = 0; /* tokens that are words have swallowed a placeholder: without them, then */
    return cut(&plain, length, err);
}

/* ---- pairs ---- */

static heed_status encode_source(const heed_translator *tr, const char *text, heed_arena *arena,
                                 heed__part *whole, bool *repaired, heed_error *err)
{
    const heed__limits limits = {.together = INT32_MAX,
                                 .longest = INT32_MAX,
                                 .protects = tr->protects,
                                 .lacks_placeholders = tr->lacks_placeholders,
                                 .capitals = tr->capitals,
                                 .names = tr->names,
                                 .into = tr->into};
    heed__line line;
    heed_status status = heed__split_line(tr->source, text, &limits, arena, &line, err);
    *whole = (heed__part){.spans = 0};
    *repaired = line.repaired;
    if (status || (line.parts == 0 && !line.copied))
        return status;
    if (line.parts)
        *whole = line.part[0];
    if (line.parts == 1)
        return HEED_OK;
    whole->spans = 0; /* more spans than placeholders, or nothing else */
    return heed__encode_line(tr->source, text, arena, &whole->tokens, repaired, err);
}

/* The spans as texts that end. */
static heed_status name_spans(const heed__part *whole, heed_arena *arena, heed_encoded_pair *pair,
                              heed_error *err)
{
    const char **span = heed__take(arena, whole->spans, sizeof *span, err);
    for (int64_t i = 0; span && i < whole->spans; i++) {
        const heed__protected *p = &whole->span[i];
        char *text = heed__take(arena, (int64_t)p->length + 1, 1, err);
        if (!text)
            return HEED_MEMORY;
        memcpy(text, p->text, p->length);
        text[p->length] = '\0';
        span[i] = text;
    }
    pair->span = span;
    pair->spans = whole->spans;
    return span ? HEED_OK : HEED_MEMORY;
}

heed_status heed_translator_encode(const heed_translator *tr, const char *source,
                                   const char *target, heed_arena *arena, heed_encoded_pair *pair,
                                   heed_error *err)
{
    if (!tr)
        return heed__missing(err, "translator");
    heed__part whole;
    bool repaired_target = false;
    *pair = (heed_encoded_pair){.spans = 0};
    heed_status status = encode_source(tr, source, arena, &whole, &pair->repaired, err);
    if (!status && whole.spans)
        status = name_spans(&whole, arena, pair, err);
    if (!status && target && whole.spans &&
        !(target = heed__protect_again(target, whole.span, whole.spans, arena)))
        status = heed__fail(err, HEED_MEMORY, "out of memory for a line of text");
    if (!status && target)
        status = heed__encode_line(tr->target, target, arena, &pair->target, &repaired_target, err);
    pair->source = whole.tokens;
    pair->repaired |= repaired_target;
    return status;
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
    heed_translation sum = {.repaired = out->repaired, .unprotected = out->unprotected};
    size_t bytes = 1;
    for (int64_t i = 0; i < parts; i++) {
        sum.tokens += part[i].tokens;
        sum.score += part[i].score;
        sum.log_p += part[i].log_p;
        sum.loop |= part[i].loop;
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
