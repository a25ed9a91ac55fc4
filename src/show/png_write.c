/* png_write.c: see png_write.h.  A header, one block of lines packed by zlib, an end; each with its
 * length before it and its checksum behind it. */
#include "show/png_write.h"

#include <string.h>
#include <zlib.h>

static uint8_t *put_32(uint8_t *to, uint32_t v)
{
    for (int i = 0; i < 4; i++)
        to[i] = (uint8_t)(v >> (24 - 8 * i));
    return to + 4;
}

/* What stands at to + 8 already gets its length, its kind and its checksum. */
static uint8_t *chunk(uint8_t *to, const char *kind, size_t n)
{
    put_32(to, (uint32_t)n);
    memcpy(to + 4, kind, 4);
    return put_32(to + 8 + n, (uint32_t)crc32(0, to + 4, (uInt)(n + 4)));
}

static void add_base64(heed__string *s, const uint8_t *bytes, size_t n)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (size_t i = 0; i < n; i += 3) {
        const uint32_t v = (uint32_t)bytes[i] << 16 |
                           (i + 1 < n ? (uint32_t)bytes[i + 1] << 8 : 0) |
                           (i + 2 < n ? bytes[i + 2] : 0);
        const char four[4] = {digits[v >> 18], digits[v >> 12 & 63],
                              i + 1 < n ? digits[v >> 6 & 63] : '=',
                              i + 2 < n ? digits[v & 63] : '='};
        heed__string_add_bytes(s, four, 4);
    }
}

heed_status heed__png_embed(heed__string *s, const uint8_t *pixels, int64_t height, int64_t width,
                            int64_t channels, heed_arena *arena, heed_error *err)
{
    static const uint8_t mark[8] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};
    const size_t line = (size_t)(width * channels), all = (size_t)height * (line + 1);
    uLongf packed = compressBound((uLong)all);
    uint8_t *lines = heed_arena_allocate(arena, all);
    uint8_t *file = heed_arena_allocate(arena, packed + 64 + sizeof mark);
    if (!lines || !file)
        return heed__fail(err, HEED_MEMORY, "out of memory for a picture of %lld x %lld",
                          (long long)width, (long long)height);
    for (int64_t y = 0; y < height; y++) {
        lines[(size_t)y * (line + 1)] = 0; /* no filter */
        memcpy(lines + (size_t)y * (line + 1) + 1, pixels + (size_t)y * line, line);
    }
    uint8_t *at = file + sizeof mark;
    memcpy(file, mark, sizeof mark);
    put_32(put_32(at + 8, (uint32_t)width), (uint32_t)height);
    memcpy(at + 16, (uint8_t[]){8, channels == 3 ? 2 : 0, 0, 0, 0}, 5);
    at = chunk(at, "IHDR", 13);
    if (compress2(at + 8, &packed, lines, (uLong)all, 9) != Z_OK)
        return heed__fail(err, HEED_MEMORY, "out of memory for a picture");
    at = chunk(at, "IDAT", packed);
    at = chunk(at, "IEND", 0);
    heed__string_add(s, "data:image/png;base64,");
    add_base64(s, file, (size_t)(at - file));
    return HEED_OK;
}
