/* protect.c: see protect.h. */
#include "decode/protect.h"
#include "text/spans.h"

#include <string.h>

#define MARK "<ph0>"
#define MARK_LENGTH (sizeof MARK - 1)
#define MARK_DIGIT 3

/* ---- in ---- */

static int64_t count_spans(const char *text, size_t length)
{
    heed__span s;
    int64_t n = 0;
    for (size_t at = 0; heed__span_next(text, length, at, &s); at = s.end)
        n++;
    return n;
}

/* Whether a word, or what closes one, ends where a span begins: `bold</b>`, `now?</b>`. */
static bool ends_before(const char *text, size_t at)
{
    return heed__word_before(text, at) || (at > 0 && strchr(".!?,;:", text[at - 1]));
}

bool heed__protect(const char **text, size_t *length, heed_arena *arena, heed__protected **span,
                   int64_t *spans)
{
    const char *from = *text;
    const int64_t n = count_spans(from, *length);
    size_t at = 0, out = 0;
    heed__span s;
    *spans = n;
    if (n == 0)
        return true;
    char *to = heed_arena_allocate(arena, *length + (size_t)n * (MARK_LENGTH + 2));
    char *kept = heed_arena_allocate(arena, *length);
    heed__protected *p = *span = heed_arena_allocate(arena, (size_t)n * sizeof *p);
    if (!to || !kept || !p)
        return false;
    for (; heed__span_next(from, *length, at, &s); p++) {
        *p = (heed__protected){kept, s.end - s.begin, ends_before(from, s.begin),
                               heed__word_at(from, *length, s.end)};
        memcpy(kept, from + s.begin, p->length);
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

const char *heed__protect_again(const char *text, const heed__protected *span, int64_t spans,
                                heed_arena *arena)
{
    const size_t length = strlen(text);
    char *to = heed_arena_allocate(arena, (MARK_LENGTH + 3) * (length + 1));
    bool used[HEED_PLACEHOLDERS] = {false};
    size_t at = 0, n = 0;
    heed__span s;
    for (; to && heed__span_next(text, length, at, &s); at = s.end) {
        int64_t i = 0;
        while (i < spans && (used[i] || span[i].length != s.end - s.begin ||
                             memcmp(span[i].text, text + s.begin, span[i].length) != 0))
            i++;
        size_t copied = (i < spans ? s.begin : s.end) - at;
        memcpy(to + n, text + at, copied);
        n += copied;
        if (i == spans)
            continue;
        used[i] = true;
        if (span[i].glued_left && n > 0 && to[n - 1] != ' ')
            to[n++] = ' ';
        memcpy(to + n, MARK, MARK_LENGTH);
        to[n + MARK_DIGIT] = (char)('0' + i);
        n += MARK_LENGTH;
        if (span[i].glued_right && text[s.end] && text[s.end] != ' ')
            to[n++] = ' ';
    }
    if (to)
        memcpy(to + n, text + at, length - at + 1);
    return to;
}

size_t heed__mark_begin(const char *text, size_t length, size_t at)
{
    for (size_t back = 1; back < MARK_LENGTH && back <= at; back++)
        if (length - (at - back) >= MARK_LENGTH && memcmp(text + at - back, MARK, MARK_LENGTH) == 0)
            return at - back;
    return at;
}

int64_t heed__placeholders(const heed_tokens *t)
{
    int64_t n = 0;
    for (int64_t i = 0; i < t->count; i++)
        n += heed__is_placeholder(t->id[i]);
    return n;
}

int64_t heed__protected_tokens(const heed_tokens *t)
{
    int64_t n = 0, found = 0;
    for (; n < t->count; n++)
        if (heed__is_placeholder(t->id[n]) && ++found > HEED_PLACEHOLDERS)
            break;
    return n;
}

int64_t heed__number_placeholders(heed_tokens *t, heed_arena *arena)
{
    if (!heed__placeholders(t))
        return 0;
    int32_t *id = heed_arena_allocate(arena, (size_t)t->count * sizeof *id);
    if (!id)
        return -1;
    int64_t found = 0;
    for (int64_t i = 0; i < t->count; i++)
        id[i] = heed__is_placeholder(t->id[i]) ? HEED_PLACEHOLDER + (int32_t)found++ : t->id[i];
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
    size_t room = strlen(text) + 1, n = 0;
    bool there[HEED_PLACEHOLDERS] = {false};
    for (int64_t i = 0; i < spans; i++)
        room += span[i].length + 1;
    char *to = heed_arena_allocate(arena, room);
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
        memcpy(to + n, s->text, s->length);
        n += s->length;
        text += MARK_LENGTH;
        text += s->glued_right && *text == ' ';
    }
    for (int64_t i = 0; i < spans; i++)
        if (!there[i]) {
            if (n > 0)
                to[n++] = ' ';
            memcpy(to + n, span[i].text, span[i].length);
            n += span[i].length;
        }
    to[n] = '\0';
    return to;
}
