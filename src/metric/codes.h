/* codes.h: a line of text as code points, for tokenisers and n-grams.
 *
 * When memory is short a vector stays as it was and the failure is remembered: add freely, check
 * once at the end.  The same vector type holds word ids. */
#ifndef HEED_METRIC_CODES_H
#define HEED_METRIC_CODES_H

#include <heed/base.h>

typedef struct heed__codes {
    heed_allocator allocator;
    int32_t *at; /* NULL if capacity is 0 */
    int64_t count, capacity;
    bool failed;
} heed__codes;

void heed__codes_init(heed__codes *c, const heed_allocator *allocator);
void heed__codes_deinit(heed__codes *c);
/* Capacity for count in all; false, and failed is set, when memory is short. */
bool heed__codes_reserve(heed__codes *c, int64_t count);
static inline void heed__codes_add(heed__codes *c, int32_t code)
{
    if (c->count < c->capacity || heed__codes_reserve(c, c->count + 1))
        c->at[c->count++] = code;
}

/* Replaces c by the code points of text.  Invalid UTF-8 becomes U+FFFD, one for each maximal prefix
 * of a character, as in Python's errors="replace". */
void heed__codes_decode(heed__codes *c, const char *text);

/* Python's str.isspace of one character, used by its split, strip and \s. */
bool heed__is_space(int32_t code);
bool heed__is_ascii_space(int32_t code);
/* Python's str.lower: full case mapping, with the final sigma and I with dot above. */
void heed__lower(heed__codes *out, const heed__codes *in);

/* A line rewritten by rules: a rule reads one vector and fills the other. */
typedef struct heed__code_line {
    heed__codes now, spare;
} heed__code_line;
typedef void heed__rule(heed__codes *out, const heed__codes *in);
void heed__line_apply(heed__code_line *line, heed__rule *rule);
/* Without the spaces at its end, as str.rstrip. */
void heed__line_strip_end(heed__code_line *line);

#endif
