/* draw.h: common parts of all pictures: text in the arena, numbers and labels that no locale or
 * label can break, and label widths. */
#ifndef HEED_SHOW_DRAW_H
#define HEED_SHOW_DRAW_H

#include "base/string.h"

/* A string in the arena: not to be released. */
void heed__draw_begin(heed__string *s, heed_arena *arena);
heed_status heed__draw_end(const heed__string *s, const char **text, heed_error *err);

/* v with at most `decimals` (0 to 9) digits after the point and no zeros at the end; always a
 * point, whatever the locale.  A value that is not finite becomes 0: one bad coordinate would break
 * the whole picture. */
void heed__draw_number(heed__string *s, double v, int decimals);
/* Like string_format, but each `~` takes the next number of v, with two decimals. */
void heed__draw_shape(heed__string *s, const char *pattern, const double *v);
#define HEED_DRAW(s, pattern, ...) heed__draw_shape(s, pattern, (const double[]){__VA_ARGS__})
/* Text between tags or inside quotes.  Control characters and broken UTF-8, which XML forbids,
 * become U+FFFD. */
void heed__draw_escaped(heed__string *s, const char *text);
/* A quoted JSON string that is also safe inside <script>. */
void heed__draw_json(heed__string *s, const char *text);

/* The first code point of a text and its bytes; U+FFFD and 1 for an invalid byte.  0 at the end. */
int heed__draw_next(const char *text, int32_t *point);
/* Columns of a terminal. */
int heed__draw_columns(const char *text);
/* Width in units of the font size, for wide sans-serif fonts. */
double heed__draw_width(const char *text);
/* The longest prefix of text that fits, with an ellipsis if it is not all of it. */
void heed__draw_fitted(heed__string *s, const char *text, double width);

#endif
