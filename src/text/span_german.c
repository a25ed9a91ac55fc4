/* span_german.c: how spans with English words in them are written in German. */
#include "text/span_match.h"

#include <stdio.h>

/* The first number of a span, and where it ends. */
static int number_in(const char *span, size_t length, size_t *at)
{
    int n = 0;
    while (*at < length && !is_digit(span[*at]))
        ++*at;
    for (; *at < length && is_digit(span[*at]); ++*at)
        n = 10 * n + (span[*at] - '0');
    return n;
}

/* "3 May 2024", "May 3rd, 2024": 3. Mai 2024; "on 3 May": am 3. Mai. */
size_t heed__german_date(const char *span, size_t length, char *to)
{
    static const char *const months[] = {"jan", "Januar",  "feb", "Februar",  "mar", "März",
                                         "apr", "April",   "may", "Mai",      "jun", "Juni",
                                         "jul", "Juli",    "aug", "August",   "sep", "September",
                                         "oct", "Oktober", "nov", "November", "dec", "Dezember"};
    const heed__cursor p = {span, length, 0};
    const char *month = NULL;
    size_t at = 0;
    for (size_t i = 0; i < length && !month; i++)
        for (size_t k = 0; k < sizeof months / sizeof *months && is_upper(span[i]); k += 2)
            if (has_at(&p, i, months[k]))
                month = months[k + 1];
    const int day = number_in(span, length, &at), year = number_in(span, length, &at);
    const char *on = !has_at(&p, 0, "on ") ? "" : span[0] == 'O' ? "Am " : "am ";
    int n = month ? snprintf(to, HEED__WRITTEN, "%s%d. %s", on, day, month) : 0;
    if (n > 0 && n < HEED__WRITTEN && year)
        n += snprintf(to + n, (size_t)(HEED__WRITTEN - n), " %d", year);
    return n > 0 && n < HEED__WRITTEN ? (size_t)n : 0;
}

/* "5:30 p.m.": 17:30; "3 PM": 15 Uhr. */
size_t heed__german_time(const char *span, size_t length, char *to)
{
    size_t at = 0, end;
    int hour = number_in(span, length, &at);
    if (hour < 1 || hour > 12)
        return 0;
    for (end = at; end < length && (is_digit(span[end]) || span[end] == ':');)
        end++;
    const char half = span[end + (span[end] == ' ')];
    hour = hour % 12 + (half == 'p' || half == 'P' ? 12 : 0);
    const int n = snprintf(to, HEED__WRITTEN, "%d%.*s%s", hour, (int)(end - at), span + at,
                           end > at ? "" : " Uhr");
    return n > 0 && n < HEED__WRITTEN ? (size_t)n : 0;
}

/* "1990s": 1990er. */
size_t heed__german_decade(const char *span, size_t length, char *to)
{
    const int n = snprintf(to, HEED__WRITTEN, "%.*ser", (int)(length - 1), span);
    return n > 0 && n < HEED__WRITTEN ? (size_t)n : 0;
}

/* "in the 1990s": in den 1990er-Jahren. */
size_t heed__german_in_decade(const char *span, size_t length, char *to)
{
    size_t at = 0, end;
    while (at < length && !is_digit(span[at]) && span[at] != '\'')
        at++;
    for (end = at + 1; end < length && is_digit(span[end]);)
        end++;
    const int n =
        snprintf(to, HEED__WRITTEN, "%cn den %.*ser-Jahren", span[0], (int)(end - at), span + at);
    return n > 0 && n < HEED__WRITTEN ? (size_t)n : 0;
}

/* "3rd": 3. */
size_t heed__german_ordinal(const char *span, size_t length, char *to)
{
    const int n = snprintf(to, HEED__WRITTEN, "%.*s.", (int)(length - 2), span);
    return n > 0 && n < HEED__WRITTEN ? (size_t)n : 0;
}
