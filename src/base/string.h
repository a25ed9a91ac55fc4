/* string.h: a growing text.  When memory is short the text stays as it was and the failure is
 * remembered: append freely, check once at the end.
 *
 *     heed__string s;
 *     heed__string_init(&s, allocator);
 *     heed__string_format(&s, "(%lld", ...);
 *     status = heed__string_status(&s, err);
 *     ...
 *     heed__string_deinit(&s); */
#ifndef HEED_BASE_STRING_H
#define HEED_BASE_STRING_H

#include "base/error.h"

typedef struct heed__string {
    heed_allocator allocator;
    char *text; /* NULL until something is added; NUL-terminated after that */
    size_t length, capacity;
    bool failed;
} heed__string;

void heed__string_init(heed__string *s, const heed_allocator *allocator);
void heed__string_deinit(heed__string *s);
/* Empties the text and clears the failure; the memory is kept. */
void heed__string_clear(heed__string *s);
void heed__string_add(heed__string *s, const char *text);
void heed__string_add_bytes(heed__string *s, const char *bytes, size_t n);
/* n times the character c. */
void heed__string_fill(heed__string *s, char c, size_t n);
void heed__string_format(heed__string *s, const char *format, ...) HEED_PRINTF(2, 3);
/* Never NULL; valid until the next change. */
const char *heed__string_text(const heed__string *s);
heed_status heed__string_status(const heed__string *s, heed_error *err);

#endif
