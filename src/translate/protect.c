/* protect.c: see protect.h. */
#include "translate/protect.h"
#include "data/names.h"

#include <string.h>

#define MARK "<ph0>"
#define MARK_LENGTH (sizeof MARK - 1)
#define MARK_DIGIT 3

/* ---- in ---- */

/* Spans by their form, and what else is copied, in their order; -1 when memory is short. */
static int64_t find_spans(const char *text, size_t length, heed__language into,
                          const heed__names *names, const heed_vocab *v, heed_arena *arena,
                          heed__span **span)
{
    heed__span s, *copy;
    int64_t forms = 0, n = 0, next = 0;
    const int64_t copies = v ? heed__copies_of(names, v, text, length, arena, &copy) : 0;
    for (size_t at = 0; heed__span_next(text, length, at, into, &s); at = s.end)
        forms++;
    *span = heed_arena_allocate(arena, (size_t)(forms + copies + 1) * sizeof **span);
    if (copies < 0 || !*span)
        return -1;
    for (size_t at = 0; at <= length; at = s.end) {
        if (!heed__span_next(text, length, at, into, &s))
            s = (heed__span){length + 1, length + 1, 0};
        for (; next < copies && copy[next].begin < s.end; next++)
            if (copy[next].end <= s.begin && copy[next].begin >= at)
                (*span)[n++] = copy[next];
        if (s.begin <= length)
            (*span)[n++] = s;
    }
    return n;
}

/* Whether a word, or what closes one, ends where a span begins: `bold</b>`, `now?</b>`. */
static bool ends_before(const char *text, size_t at)
{
    return heed__word_before(text, at) || (at > 0 && strchr(".!?,;:", text[at - 1]));
}

/* How a span is written in the target language; false when memory is short. */
static bool set_written(heed__protected *p, int kind, heed__language into, heed_arena *arena)
{
    char written[HEED__WRITTEN];
    const size_t n = heed__span_write(kind, into, p->text, p->length, written);
    p->written = p->text;
    p->written_length = p->length;
    if (!n)
        return true;
    char *copy = heed_arena_allocate(arena, n);
    if (!copy)
        return false;
    memcpy(copy, written, n);
    p->written = copy;
    p->written_length = n;
    return true;
}

bool heed__protect(const char **text, size_t *length, heed__language into, const heed__names *names,
                   const heed_vocab *v, heed_arena *arena, heed__protected **span, int64_t *spans)
{
    const char *from = *text;
    heed__span *found;
    const int64_t n = find_spans(from, *length, into, names, v, arena, &found);
    size_t at = 0, out = 0;
    *spans = n;
    if (n <= 0)
        return n == 0;
    char *to = heed_arena_allocate(arena, *length + (size_t)n * (MARK_LENGTH + 2));
    char *kept = heed_arena_allocate(arena, *length);
    heed__protected *p = *span = heed_arena_allocate(arena, (size_t)n * sizeof *p);
    if (!to || !kept || !p)
        return false;
    for (int64_t i = 0; i < n; i++, p++) {
        const heed__span s = found[i];
        *p = (heed__protected){.text = kept,
                               .length = s.end - s.begin,
                               .glued_left = ends_before(from, s.begin),
                               .glued_right = heed__word_at(from, *length, s.end)};
        memcpy(kept, from + s.begin, p->length);
        if (!set_written(p, s.kind, into, arena))
            return false;
        kept += p->length;
        memcpy(to + out, from + at, s.begin - at);
        out += s.begin - at;
        if (p->glued_left) /* the model knows placeholders with spaces before them */
            to[out++] = ' ';
        memcpy(to + out, MARK, MARK_LENGTH);
        out += MARK_LENGTH;
        if (p->glued_right)
            to[out++] = ' ';
        at = s.end;
    }
    memcpy(to + out, from + at, *length - at);
    *text = to;
    *length = out + *length - at;
    return true;
}

/* Where `wanted` is in a text, from `at` on, and not as a part of a word; length if nowhere. */
static size_t find_text(const char *wanted, size_t bytes, const char *text, size_t length,
                        size_t at)
{
    const bool word_first = heed__word_at(wanted, bytes, 0);
    const bool word_last = heed__word_before(wanted, bytes);
    for (; at + bytes <= length; at++)
        if (memcmp(text + at, wanted, bytes) == 0 && !(word_first && heed__word_before(text, at)) &&
            !(word_last && heed__word_at(text, length, at + bytes)))
            return at;
    return length;
}

/* The first position of a span, in either form, and its bytes there. */
static size_t find_span(const heed__protected *span, const char *text, size_t length, size_t at,
                        size_t *bytes)
{
    const size_t written = find_text(span->written, span->written_length, text, length, at);
    const size_t same = span->written == span->text
                            ? written
                            : find_text(span->text, span->length, text, length, at);
    *bytes = written <= same ? span->written_length : span->length;
    return written <= same ? written : same;
}

const char *heed__protect_again(const char *text, const heed__protected *span, int64_t spans,
                                heed_arena *arena)
{
    const size_t length = strlen(text);
    char *to = heed_arena_allocate(arena, (MARK_LENGTH + 3) * (length + 1));
    bool used[HEED_PLACEHOLDERS] = {false};
    size_t at = 0, n = 0;
    while (to) {
        int64_t next = -1;
        size_t begin = length, bytes = 0, found_bytes = 0;
        for (int64_t i = 0; i < spans; i++) {
            size_t found = used[i] ? length : find_span(&span[i], text, length, at, &found_bytes);
            if (found < begin) {
                begin = found;
                bytes = found_bytes;
                next = i;
            }
        }
        memcpy(to + n, text + at, begin - at);
        n += begin - at;
        if (next < 0)
            break;
        used[next] = true;
        at = begin + bytes;
        if (span[next].glued_left && n > 0 && to[n - 1] != ' ')
            to[n++] = ' ';
        memcpy(to + n, MARK, MARK_LENGTH);
        to[n + MARK_DIGIT] = (char)('0' + next);
        n += MARK_LENGTH;
        if (span[next].glued_right && text[at] && text[at] != ' ')
            to[n++] = ' ';
    }
    if (to)
        to[n] = '\0';
    return to;
}

bool heed__has_words(const char *text, size_t length)
{
    for (size_t at = 0; at < length;)
        if (length - at >= MARK_LENGTH && memcmp(text + at, MARK, MARK_LENGTH) == 0)
            at += MARK_LENGTH;
        else if (heed__word_at(text, length, at++))
            return true;
    return false;
}

size_t heed__mark_begin(const char *text, size_t length, size_t at)
{
    for (size_t back = 1; back < MARK_LENGTH && back <= at; back++)
        if (length - (at - back) >= MARK_LENGTH && memcmp(text + at - back, MARK, MARK_LENGTH) == 0)
            return at - back;
    return at;
}

int64_t heed__placeholders(const heed_special_ids *ids, const heed_tokens *t)
{
    int64_t n = 0;
    for (int64_t i = 0; i < t->count; i++)
        n += heed__is_placeholder(ids, t->id[i]);
    return n;
}

int64_t heed__protected_tokens(const heed_special_ids *ids, const heed_tokens *t)
{
    int64_t n = 0, found = 0;
    for (; n < t->count; n++)
        if (heed__is_placeholder(ids, t->id[n]) && ++found > HEED_PLACEHOLDERS)
            break;
    return n;
}

int64_t heed__number_placeholders(const heed_special_ids *ids, heed_tokens *t, heed_arena *arena)
{
    if (!heed__placeholders(ids, t))
        return 0;
    int32_t *id = heed_arena_allocate(arena, (size_t)t->count * sizeof *id);
    if (!id)
        return -1;
    int64_t found = 0;
    for (int64_t i = 0; i < t->count; i++)
        id[i] =
            heed__is_placeholder(ids, t->id[i]) ? ids->placeholder + (int32_t)found++ : t->id[i];
    t->id = id;
    return found;
}

/* ---- out ---- */

/* Which placeholder stands here; -1: none of the `spans`. */
static int64_t mark_at(const char *text, int64_t spans)
{
    if (strncmp(text, MARK, MARK_DIGIT) != 0 || text[MARK_DIGIT] < '0' || text[MARK_DIGIT] > '9' ||
        text[MARK_DIGIT + 1] != '>')
        return -1;
    int64_t n = text[MARK_DIGIT] - '0';
    return n < spans ? n : -1;
}

const char *heed__restore(const char *text, const heed__protected *span, int64_t spans,
                          heed_arena *arena)
{
    size_t capacity = strlen(text) + 1, n = 0;
    bool there[HEED_PLACEHOLDERS] = {false};
    for (int64_t i = 0; i < spans; i++)
        capacity += span[i].written_length + 1;
    char *to = heed_arena_allocate(arena, capacity);
    if (!to)
        return NULL;
    while (*text) {
        int64_t which = mark_at(text, spans);
        if (which < 0 || there[which]) {
            to[n++] = *text++;
            continue;
        }
        const heed__protected *s = &span[which];
        there[which] = true;
        n -= s->glued_left && n > 0 && to[n - 1] == ' ';
        memcpy(to + n, s->written, s->written_length);
        n += s->written_length;
        text += MARK_LENGTH;
        text += s->glued_right && *text == ' ';
        /* The point of 3. is that of the sentence, too. */
        text += s->written != s->text && to[n - 1] == '.' && *text == '.';
    }
    for (int64_t i = 0; i < spans; i++)
        if (!there[i]) {
            if (n > 0 && to[n - 1] != ' ')
                to[n++] = ' ';
            memcpy(to + n, span[i].written, span[i].written_length);
            n += span[i].written_length;
        }
    to[n] = '\0';
    return to;
}
