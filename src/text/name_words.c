/* name_words.c: see name_words.h. */
#include "text/name_words.h"
#include "text/split.h"
#include "text/utf8.h"

#include <string.h>
#include <utf8proc.h>

/* Fewest letters of a name. */
#define LETTERS 3

bool heed__next_word(const char *text, size_t end, size_t at, heed__span *w)
{
    int32_t c;
    size_t n;
    while (at < end && !heed__word_at(text, end, at))
        at += (n = heed__utf8_next(text + at, end - at, &c)) ? n : 1;
    w->begin = at;
    while (at < end && heed__word_at(text, end, at))
        at += (n = heed__utf8_next(text + at, end - at, &c)) ? n : 1;
    w->end = at;
    w->kind = 0;
    return w->begin < end;
}

bool heed__is_written_like_name(const char *text, heed__span w)
{
    int32_t c;
    int64_t letters = 0;
    for (size_t at = w.begin, n; at < w.end; at += n, letters++) {
        n = heed__utf8_next(text + at, w.end - at, &c);
        if (n == 0 || (utf8proc_category(c) == UTF8PROC_CATEGORY_LU) != (letters == 0) ||
            utf8proc_category(c) > UTF8PROC_CATEGORY_LO)
            return false;
    }
    return letters >= LETTERS;
}

bool heed__next_name_sentence(const char *text, size_t length, size_t *at, heed__name_sentence *s)
{
    heed__span first;
    if (*at >= length)
        return false;
    const size_t end = heed__sentence_end(text, length, *at);
    heed__next_word(text, end, *at, &first);
    *s = (heed__name_sentence){text, first, first.end, end};
    *at = end;
    return true;
}

bool heed__is_heading(heed__name_sentence s)
{
    int64_t words = 0, capitals = 0;
    int32_t c;
    for (heed__span w; heed__next_word(s.text, s.end, s.at, &w); s.at = w.end) {
        words += heed__utf8_next(s.text + w.begin, w.end - w.begin, &c) < w.end - w.begin;
        capitals += heed__is_written_like_name(s.text, w);
    }
    return words > 2 && 2 * capitals > words;
}

/* ---- names that are known ---- */

/* In small letters, each with a blank on both sides. */
static const char given[] =
    " adam albert alexander alice amy andrea andrew andy angela anna anne anthony barbara ben "
    "benjamin betty bob brian carl catherine charles charlie charlotte chris christina "
    "christine christopher cynthia daniel david deborah dennis diana donald donna dorothy "
    "edward elizabeth ellen emily emma eric ethan fred gary george greg hannah harry helen henry "
    "isaac jack jacob james jane janet jason jeff jennifer jeremy jerry jessica jim joan joe "
    "johann johannes john johnny jonathan jose joseph joshua juan judy julia julie justin karen "
    "karl kate katherine kathleen kelly kenneth kevin kim larry laura lauren leonardo linda lisa "
    "louis louise lucy luis luke maria marie martha martin mary matthew megan melissa michael "
    "michelle mike mohammed nancy nathan nicholas nicole noah olivia oliver oscar pablo pamela "
    "patricia patrick paul peter philip rachel ralph raymond rebecca richard robert roger ronald "
    "ruth ryan samantha samuel sandra sarah scott sharon sophia stephanie stephen steve steven "
    "susan teresa theresa thomas tim timothy tom tommy tony tyler victor victoria vincent virginia "
    "vladimir walter wendy wilhelm william winston wolfgang zachary ";
static const char given_or_word[] = " april art bill carol chase dawn faith frank grace grant hope "
                                    "joy june mark max nick pat ray rob rose sue will ";
static const char other[] =
    " africa america amsterdam asia athens australia austria beijing belgium berlin boston brazil "
    "britain brussels california canada chicago china christmas cologne copenhagen denmark dublin "
    "easter egypt england english europe february finland florida france frankfurt friday fridays "
    "geneva german germany greece hamburg hawaii hungary india iraq iran ireland israel istanbul "
    "italy january japan jerusalem july kyoto kobe korea london madrid mexico milan monday mondays "
    "montreal moscow munich naples netherlands norway november october osaka oslo paris poland "
    "portugal prague rome russia saturday saturdays scotland september shanghai spain stockholm "
    "sunday sundays sweden switzerland sydney texas thursday thursdays tokyo toronto tuesday "
    "tuesdays turkey ukraine venice vienna warsaw washington wednesday wednesdays zurich december ";

/* Whether a text of words has one, as a whole. */
static bool has(const char *words, const char *word, size_t length)
{
    for (const char *found = words; (found = strstr(found, word)); found++)
        if (found[-1] == ' ' && found[length] == ' ')
            return true;
    return false;
}

heed__known_name heed__known_name_of(const char *word, size_t length)
{
    char small[16];
    if (length < LETTERS || length >= sizeof small)
        return HEED__NOT_KNOWN;
    for (size_t i = 0; i < length; i++) {
        small[i] = word[i] >= 'A' && word[i] <= 'Z' ? (char)(word[i] + 32) : word[i];
        if (small[i] < 'a' || small[i] > 'z')
            return HEED__NOT_KNOWN;
    }
    small[length] = '\0';
    return has(given, small, length)           ? HEED__GIVEN_NAME
           : has(given_or_word, small, length) ? HEED__GIVEN_NAME_OR_WORD
           : has(other, small, length)         ? HEED__OTHER_NAME
                                               : HEED__NOT_KNOWN;
}
