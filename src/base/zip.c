/* zip.c: the directory at the end of an archive, and its entries. */
#include "base/zip.h"
#include "base/byte_cursor.h"
#include "base/error.h"

#include <limits.h>
#include <stdio.h>
#include <zlib.h>

#define END_SIZE 22
#define MOST_COMMENT 65535
#define MOST_RATIO 1032 /* deflate cannot do more */
/* Numbers that were learned hardly become smaller.  What becomes larger than this and a hundred
 * times its size is made to fill a memory. */
#define LARGE ((uint64_t)1 << 28)
#define LARGE_RATIO 100

enum { END = 0x06054B50, END64 = 0x06064B50, LOCATOR64 = 0x07064B50, CENTRAL = 0x02014B50 };
enum { LOCAL = 0x04034B50, STORED = 0, DEFLATED = 8 };

struct place {
    uint64_t offset, entries;
};

/* "cannot open 'path': ..." */
static heed_status fail(const heed__zip *z, heed_error *err, const char *format, ...)
    HEED_PRINTF(3, 4);

static heed_status fail(const heed__zip *z, heed_error *err, const char *format, ...)
{
    char text[256];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return heed__fail(err, HEED_FORMAT, "cannot open '%.200s': %s", z->path, text);
}

static heed_status no_memory(const heed__zip *z, heed_error *err)
{
    return heed__fail(err, HEED_MEMORY, "out of memory for '%.200s'", z->path);
}

static heed__byte_cursor at(const unsigned char *bytes, size_t size, uint64_t offset)
{
    heed__byte_cursor c = heed__bytes_over(bytes, size);
    heed__read_bytes(&c, offset);
    return c;
}

/* Where the directory is, from the record at the end of the archive. */
static bool find_directory(const unsigned char *bytes, size_t size, struct place *p)
{
    if (size < END_SIZE)
        return false;
    size_t end = size - END_SIZE;
    const size_t first = end > MOST_COMMENT ? end - MOST_COMMENT : 0;
    for (;; end--) {
        heed__byte_cursor c = at(bytes, size, end);
        if (heed__read_u32(&c) == END)
            break;
        if (end == first)
            return false;
    }
    heed__byte_cursor c = at(bytes, size, end + 10);
    p->entries = heed__read_number(&c, 2);
    heed__read_u32(&c);
    p->offset = heed__read_u32(&c);
    if (end < 20)
        return true;
    c = at(bytes, size, end - 20);
    if (heed__read_u32(&c) != LOCATOR64)
        return true;
    heed__read_u32(&c);
    c = at(bytes, size, heed__read_u64(&c));
    if (heed__read_u32(&c) != END64)
        return false;
    heed__read_bytes(&c, 28);
    p->entries = heed__read_u64(&c);
    heed__read_u64(&c);
    p->offset = heed__read_u64(&c);
    return !c.broken;
}

/* Sizes and offset that do not fit 32 bits stand in the extra field of zip64. */
static void read_zip64(heed__byte_cursor extra, uint64_t *size, uint64_t *stored, uint64_t *offset)
{
    while (heed__bytes_left(&extra) >= 4) {
        const uint64_t tag = heed__read_number(&extra, 2), length = heed__read_number(&extra, 2);
        const unsigned char *field = heed__read_bytes(&extra, length);
        if (tag != 1 || !field)
            continue;
        heed__byte_cursor c = heed__bytes_over(field, (size_t)length);
        uint64_t *const values[] = {size, stored, offset};
        for (int i = 0; i < 3; i++)
            if (*values[i] == UINT32_MAX && heed__bytes_left(&c) >= 8)
                *values[i] = heed__read_u64(&c);
    }
}

/* What an entry may not be. */
static heed_status check_entry(const heed__zip *z, const heed__zip_entry *e, uint64_t flags,
                               uint64_t method, uint64_t stored, uint64_t size, heed_error *err)
{
    if (flags & 1)
        return fail(z, err, "its entry '%.100s' is encrypted", e->name);
    if (method != STORED && method != DEFLATED)
        return fail(z, err,
                    "its entry '%.100s' is compressed by method %u, expected stored or deflated",
                    e->name, (unsigned)method);
    if (!e->data || (!e->deflated && stored != size) || size / MOST_RATIO > stored + 1)
        return fail(z, err,
                    "its entry '%.100s' announces %llu bytes from %llu, which are not there or "
                    "cannot be",
                    e->name, (unsigned long long)size, (unsigned long long)stored);
    if (size > LARGE && size / LARGE_RATIO > stored)
        return fail(z, err,
                    "its entry '%.100s' would grow from %llu to %llu bytes, as no model does",
                    e->name, (unsigned long long)stored, (unsigned long long)size);
    return HEED_OK;
}

/* A copy of a name, NUL-terminated; NULL when memory is short. */
static const char *copy_name(const heed__zip *z, const unsigned char *text, uint64_t length)
{
    char *name = heed_arena_allocate(z->arena, (size_t)length + 1);
    if (name) {
        if (length)
            memcpy(name, text, (size_t)length);
        name[length] = '\0';
    }
    return name;
}

static heed_status read_entry(const heed__zip *z, heed__byte_cursor *c, heed__zip_entry *e,
                              const unsigned char *bytes, size_t total, heed_error *err)
{
    const uint32_t signature = heed__read_u32(c);
    heed__read_bytes(c, 4);
    const uint64_t flags = heed__read_number(c, 2), method = heed__read_number(c, 2);
    heed__read_bytes(c, 8);
    uint64_t stored = heed__read_u32(c), size = heed__read_u32(c);
    const uint64_t name = heed__read_number(c, 2), extra = heed__read_number(c, 2);
    const uint64_t comment = heed__read_number(c, 2);
    heed__read_bytes(c, 8);
    uint64_t offset = heed__read_u32(c);
    const unsigned char *text = heed__read_bytes(c, name);
    const unsigned char *more = heed__read_bytes(c, extra);
    heed__read_bytes(c, comment);
    if (c->broken || signature != CENTRAL)
        return fail(z, err, "its zip directory is damaged");
    read_zip64(heed__bytes_over(more, (size_t)extra), &size, &stored, &offset);
    e->name = copy_name(z, text, name);
    if (!e->name)
        return no_memory(z, err);
    heed__byte_cursor local = at(bytes, total, offset);
    const bool here = heed__read_u32(&local) == LOCAL;
    heed__read_bytes(&local, 22);
    const uint64_t skip = heed__read_number(&local, 2) + heed__read_number(&local, 2);
    heed__read_bytes(&local, skip);
    const unsigned char *data = heed__read_bytes(&local, stored);
    e->data = here ? data : NULL;
    e->stored = (size_t)stored;
    e->size = (size_t)size;
    e->deflated = method == DEFLATED;
    return check_entry(z, e, flags, method, stored, size, err);
}

heed_status heed__zip_open(heed__zip *z, const char *path, const void *bytes, size_t size,
                           heed_arena *arena, heed_error *err)
{
    struct place p = {0};
    *z = (heed__zip){.path = path, .arena = arena};
    if (!find_directory(bytes, size, &p) || p.offset > size || p.entries > size / 46)
        return fail(z, err, "it is no zip archive, or cut short");
    z->entry = heed_arena_allocate(arena, (size_t)p.entries * sizeof *z->entry + 1);
    if (!z->entry)
        return no_memory(z, err);
    heed__byte_cursor c = at(bytes, size, p.offset);
    heed_status status = HEED_OK;
    for (; !status && z->count < p.entries; z->count++)
        status = read_entry(z, &c, &z->entry[z->count], bytes, size, err);
    return status;
}

const heed__zip_entry *heed__zip_find(const heed__zip *z, const char *name)
{
    for (size_t i = 0; i < z->count; i++)
        if (strcmp(z->entry[i].name, name) == 0)
            return &z->entry[i];
    return NULL;
}

heed_status heed__zip_copy(const heed__zip *z, const heed__zip_entry *e, void *to, heed_error *err)
{
    if (!e->deflated) {
        if (e->size)
            memcpy(to, e->data, e->size);
        return HEED_OK;
    }
    z_stream s = {.next_in = (Bytef *)(uintptr_t)e->data, .avail_in = (uInt)e->stored};
    if (e->stored > UINT_MAX || e->size > UINT_MAX)
        return fail(z, err, "its entry '%.100s' is compressed and above 4 GB", e->name);
    s.next_out = to;
    s.avail_out = (uInt)e->size;
    if (inflateInit2(&s, -MAX_WBITS) != Z_OK)
        return no_memory(z, err);
    const int end = inflate(&s, Z_FINISH);
    const size_t made = (size_t)s.total_out;
    inflateEnd(&s);
    if (end == Z_STREAM_END && made == e->size)
        return HEED_OK;
    return made == e->size
               ? fail(z, err, "its entry '%.100s' gives more than its %zu bytes", e->name, e->size)
               : fail(z, err, "its entry '%.100s' gives %zu bytes, expected %zu", e->name, made,
                      e->size);
}

heed_status heed__zip_bytes(const heed__zip *z, const heed__zip_entry *e,
                            const unsigned char **bytes, heed_error *err)
{
    *bytes = e->data;
    if (!e->deflated)
        return HEED_OK;
    unsigned char *out = heed_arena_allocate(z->arena, e->size + 1);
    *bytes = out;
    return out ? heed__zip_copy(z, e, out, err) : no_memory(z, err);
}
