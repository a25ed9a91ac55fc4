/* name_copies.c: which numbers and names of a line are copied; names.h.
 *
 * Subwords show how frequent a word was in training: a frequent one is one piece.  A name of
 * several pieces is spelled, as is every number, and a small model spells wrong. */
#include "data/names.h"
#include "text/name_words.h"
#include "text/utf8.h"

#include <string.h>

#define UNKNOWN_PIECES 2
/* Fewest digits of a number. */
#define DIGITS 2
/* Most copies in a sentence; one with more is a table, and left to the model. */
#define MOST_COPIES (HEED_PLACEHOLDERS / 2)
/* A word that is not in the table of names gets its capital back if this saves N pieces. */
#define PIECES_SAVED 3

/* What the words of a line are looked up in. */
typedef struct lookup {
    const heed__names *names; /* NULL: none are copied */
    const heed_vocab *v;
    heed_arena *arena;
} lookup;

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Whether an ending follows, as in English Tom's: its translation is not the name alone. */
static bool is_inflected(const char *text, size_t end, heed__span w)
{
    return w.end < end && (text[w.end] == '\'' || strncmp(text + w.end, "\xE2\x80\x99", 3) == 0) &&
           w.end + 1 < end;
}

/* Digits on their own: not in a time, a date, a decimal number, 33-year-old or the 80's. */
static bool is_number(const heed__name_sentence *s, heed__span w)
{
    for (size_t i = w.begin; i < w.end; i++)
        if (!is_digit(s->text[i]))
            return false;
    const char before = s->text[w.begin - 1]; /* a sentence begins with another word */
    const char after = w.end < s->end ? s->text[w.end] : ' ';
    const char then = w.end + 1 < s->end ? s->text[w.end + 1] : ' ';
    return w.end - w.begin >= DIGITS && !strchr(".,:/-", before) && !strchr(":/-'", after) &&
           !(strchr(".,", after) && is_digit(then));
}

/* -1 when memory is short. */
static int64_t pieces_of(const lookup *l, const char *text, size_t length)
{
    heed_tokens pieces;
    return heed_vocab_encode(l->v, text, length, l->arena, &pieces, NULL) ? -1 : pieces.count;
}

/* A name of several pieces that is not known to be translated; -1 when memory is short. */
static int is_unknown_name(const lookup *l, const heed__name_sentence *s, heed__span w)
{
    if (!heed__is_written_like_name(s->text, w) || is_inflected(s->text, s->end, w) ||
        heed__names_have(l->names, s->text + w.begin, w.end - w.begin))
        return 0;
    const int64_t pieces = pieces_of(l, s->text + w.begin, w.end - w.begin);
    return pieces < 0 ? -1 : pieces >= UNKNOWN_PIECES;
}

/* A word with a capital behind the given name of a person.  One that is translated elsewhere, as
 * Smith is, is a name here, unless it is so frequent that it is one piece: Tom German. */
static int is_surname(const lookup *l, const heed__name_sentence *s, heed__span w)
{
    const char *text = s->text + w.begin;
    const size_t length = w.end - w.begin;
    if (!heed__is_written_like_name(s->text, w) || is_inflected(s->text, s->end, w) ||
        heed__known_name_of(text, length) == HEED__OTHER_NAME)
        return 0;
    if (!heed__names_have(l->names, text, length))
        return 1;
    const int64_t pieces = pieces_of(l, text, length);
    return pieces < 0 ? -1 : pieces >= UNKNOWN_PIECES;
}

/* Whether a word follows another after one blank. */
static bool follows(const heed__name_sentence *s, heed__span w, size_t end)
{
    return end + 1 == w.begin && s->text[end] == ' ';
}

/* Given name and surnames from `w` on, as one; a length of 0 if there are none, or memory is short
 * and *bad. */
static heed__span whole_name(const lookup *l, const heed__name_sentence *s, heed__span w, bool *bad)
{
    const heed__known_name known = heed__known_name_of(s->text + w.begin, w.end - w.begin);
    heed__span name = w, next;
    int more = 0;
    if (!heed__is_written_like_name(s->text, w) ||
        (known != HEED__GIVEN_NAME &&
         (known != HEED__GIVEN_NAME_OR_WORD || w.begin == s->first.begin)))
        return (heed__span){w.begin, w.begin, 0};
    while (heed__next_word(s->text, s->end, name.end, &next) && follows(s, next, name.end) &&
           (more = is_surname(l, s, next)) > 0)
        name.end = next.end;
    *bad |= more < 0;
    return name.end > w.end ? name : (heed__span){w.begin, w.begin, 0};
}

/* Appends the copies of a sentence to `count` others; returns the new count, or -1 when memory is
 * short. */
static int64_t add_copies(const lookup *l, heed__name_sentence s, heed__span *copy, int64_t count)
{
    const int64_t first = count;
    const bool names = l->names && !heed__is_heading(s);
    bool named = false, bad = false; /* whether the last one is a name */
    heed__span w = s.first;
    for (bool any = w.begin < w.end; any && !bad; any = heed__next_word(s.text, s.end, w.end, &w)) {
        const bool begins = w.begin == s.first.begin;
        const heed__span whole = l->names ? whole_name(l, &s, w, &bad) : (heed__span){0};
        int name = whole.end > whole.begin;
        if (name)
            w = whole;
        else if (names && (!begins || heed__known_name_of(s.text + w.begin, w.end - w.begin) ==
                                          HEED__GIVEN_NAME))
            name = is_unknown_name(l, &s, w);
        bad |= name < 0;
        if (name > 0 && named && follows(&s, w, copy[count - 1].end)) {
            copy[count - 1].end = w.end;
        } else if (name > 0 || (!begins && is_number(&s, w))) {
            copy[count++] = w;
            named = name > 0;
        }
    }
    return bad ? -1 : count - first > MOST_COPIES ? first : count;
}

int64_t heed__copies_of(const heed__names *n, const heed_vocab *v, const char *text, size_t length,
                        heed_arena *arena, heed__span **copy)
{
    const lookup l = {n, v, arena};
    int64_t count = 0;
    size_t at = 0;
    heed__name_sentence s;
    *copy = heed_arena_allocate(arena, ((length + 1) / (DIGITS + 1) + 1) * sizeof **copy);
    if (!*copy)
        return -1;
    while (count >= 0 && heed__next_name_sentence(text, length, &at, &s))
        count = add_copies(&l, s, *copy, count);
    return count;
}

/* ---- names in small letters ---- */

/* Whether a word in small letters is a name; -1 when memory is short. */
static int wants_capital(const lookup *l, const char *word, size_t length, char *capital)
{
    const heed__known_name known = heed__known_name_of(word, length);
    if (known == HEED__GIVEN_NAME || known == HEED__OTHER_NAME)
        return 1;
    memcpy(capital, word, length);
    capital[0] = (char)(word[0] - 32);
    const int64_t small = pieces_of(l, word, length), large = pieces_of(l, capital, length);
    const bool translated = l->names && heed__names_have(l->names, capital, length);
    return small < 0 || large < 0 ? -1 : small - large >= (translated ? 1 : PIECES_SAVED);
}

bool heed__names_capitalise(const heed__names *n, const heed_vocab *v, char *text, size_t length,
                            heed_arena *arena)
{
    const lookup l = {n, v, arena};
    char *capital = heed_arena_allocate(arena, length + 1);
    heed__span span = {0, 0, 0};
    for (heed__span w = span; capital && heed__next_word(text, length, w.end, &w);) {
        while (span.end <= w.begin && span.begin < length)
            if (!heed__span_next(text, length, span.end, HEED__ANY_LANGUAGE, &span))
                span.begin = span.end = length;
        if (text[w.begin] < 'a' || text[w.begin] > 'z' ||
            (span.begin < w.end && w.begin < span.end))
            continue;
        const int wanted = wants_capital(&l, text + w.begin, w.end - w.begin, capital);
        if (wanted < 0)
            return false;
        if (wanted)
            text[w.begin] = (char)(text[w.begin] - 32);
    }
    return capital;
}
