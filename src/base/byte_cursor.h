/* byte_cursor.h: reading little-endian numbers from bytes of a file, never beyond their end.
 * After the first number that does not fit everything is zero and `broken` says so: read freely,
 * ask once. */
#ifndef HEED_BASE_BYTE_CURSOR_H
#define HEED_BASE_BYTE_CURSOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef struct heed__byte_cursor {
    const unsigned char *begin, *at, *end;
    bool broken;
} heed__byte_cursor;

static inline heed__byte_cursor heed__bytes_over(const void *bytes, size_t size)
{
    const unsigned char *begin = bytes;
    return (heed__byte_cursor){begin, begin, begin + size, false};
}

static inline size_t heed__bytes_left(const heed__byte_cursor *c)
{
    return c->broken ? 0 : (size_t)(c->end - c->at);
}

static inline size_t heed__bytes_offset(const heed__byte_cursor *c)
{
    return (size_t)(c->at - c->begin);
}

/* n bytes, or NULL. */
static inline const unsigned char *heed__read_bytes(heed__byte_cursor *c, uint64_t n)
{
    if (c->broken || n > (uint64_t)(c->end - c->at)) {
        c->broken = true;
        return NULL;
    }
    const unsigned char *bytes = c->at;
    c->at += n;
    return bytes;
}

/* The number in the next n bytes, 1 to 8. */
static inline uint64_t heed__read_number(heed__byte_cursor *c, int bytes)
{
    const unsigned char *p = heed__read_bytes(c, (uint64_t)bytes);
    uint64_t value = 0;
    for (int i = 0; p && i < bytes; i++)
        value |= (uint64_t)p[i] << 8 * i;
    return value;
}

static inline uint32_t heed__read_u32(heed__byte_cursor *c)
{
    return (uint32_t)heed__read_number(c, 4);
}

static inline uint64_t heed__read_u64(heed__byte_cursor *c)
{
    return heed__read_number(c, 8);
}

static inline float heed__read_f32(heed__byte_cursor *c)
{
    const uint32_t bits = heed__read_u32(c);
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

#endif
