/* string.c: a growing text through the allocator; capacity doubles, so appending n bytes costs O(n)
 * altogether. */
#include "base/string.h"
#include "base/memory.h"

#include <stdio.h>
#include <string.h>

#define FIRST_CAPACITY 128

void heed__string_init(heed__string *s, const heed_allocator *allocator)
{
    *s = (heed__string){.allocator = heed__allocator_or_default(allocator)};
}

void heed__string_deinit(heed__string *s)
{
    heed__release(&s->allocator, s->text, 1, s->capacity);
    s->text = NULL;
    s->length = s->capacity = 0;
}

void heed__string_clear(heed__string *s)
{
    s->length = 0;
    s->failed = false;
    if (s->text)
        s->text[0] = '\0';
}

/* Space for n more bytes and the NUL. */
static bool reserve(heed__string *s, size_t n)
{
    size_t need;
    if (s->failed || !heed__add_sizes(s->length, n, &need) || !heed__add_sizes(need, 1, &need))
        return s->failed = true, false;
    if (need <= s->capacity)
        return true;
    size_t capacity = s->capacity ? s->capacity : FIRST_CAPACITY;
    while (capacity < need)
        capacity *= 2; /* need fits int64_t, so this cannot wrap */
    char *text = heed__allocate(&s->allocator, 1, capacity);
    if (!text)
        return s->failed = true, false;
    if (s->text)
        memcpy(text, s->text, s->length + 1);
    heed__release(&s->allocator, s->text, 1, s->capacity);
    s->text = text;
    s->capacity = capacity;
    return true;
}

void heed__string_add_bytes(heed__string *s, const char *bytes, size_t n)
{
    if (!reserve(s, n))
        return;
    if (n)
        memcpy(s->text + s->length, bytes, n);
    s->length += n;
    s->text[s->length] = '\0';
}

void heed__string_add(heed__string *s, const char *text)
{
    heed__string_add_bytes(s, text, strlen(text));
}

void heed__string_fill(heed__string *s, char c, size_t n)
{
    if (!reserve(s, n))
        return;
    memset(s->text + s->length, c, n);
    s->length += n;
    s->text[s->length] = '\0';
}

void heed__string_format(heed__string *s, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int n = vsnprintf(NULL, 0, format, args);
    va_end(args);
    if (n < 0 || !reserve(s, (size_t)n)) {
        s->failed = true;
        return;
    }
    va_start(args, format);
    vsnprintf(s->text + s->length, (size_t)n + 1, format, args);
    va_end(args);
    s->length += (size_t)n;
}

const char *heed__string_text(const heed__string *s)
{
    return s->text ? s->text : "";
}

heed_status heed__string_status(const heed__string *s, heed_error *err)
{
    return s->failed
               ? heed__fail(err, HEED_MEMORY, "out of memory for a text of %zu bytes", s->length)
               : HEED_OK;
}
