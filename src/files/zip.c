/* zip.c: the directory at the end of an archive, and its entries. */
#include "files/zip.h"

#include <limits.h>
#include <zlib.h>

#define END_SIZE 22
#define MOST_COMMENT 65535
#define MOST_RATIO 1032 /* deflate cannot do more */

enum { END = 0x06054B50, END64 = 0x06064B50, LOCATOR64 = 0x07064B50, CENTRAL = 0x02014B50 };
enum { LOCAL = 0x04034B50, STORED = 0, DEFLATED = 8 };

struct place {
    uint64_t offset, entries;
};

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

static heed_status read_entry(heed__found *f, heed__byte_cursor *c, heed__zip_entry *e,
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
        return heed__found_fail(f, err, "its zip directory is damaged");
    read_zip64(heed__bytes_over(more, (size_t)extra), &size, &stored, &offset);
    e->name = heed__found_text(f, (const char *)text, (size_t)name, err);
    if (!e->name)
        return HEED_MEMORY;
    if (flags & 1 || (method != STORED && method != DEFLATED))
        return heed__found_fail(f, err,
                                "its entry '%.100s' is encrypted or compressed in a way that "
                                "heed does not open",
                                e->name);
    heed__byte_cursor local = at(bytes, total, offset);
    const bool here = heed__read_u32(&local) == LOCAL;
    heed__read_bytes(&local, 22);
    const uint64_t skip = heed__read_number(&local, 2) + heed__read_number(&local, 2);
    heed__read_bytes(&local, skip);
    e->data = heed__read_bytes(&local, stored);
    e->stored = (size_t)stored;
    e->size = (size_t)size;
    e->deflated = method == DEFLATED;
    if (!here || !e->data || (!e->deflated && stored != size) || size / MOST_RATIO > stored + 1)
        return heed__found_fail(f, err,
                                "its entry '%.100s' announces %llu bytes from %llu, which are not "
                                "there or cannot be",
                                e->name, (unsigned long long)size, (unsigned long long)stored);
    return HEED_OK;
}

heed_status heed__zip_open(heed__zip *z, heed__found *f, const void *bytes, size_t size,
                           heed_error *err)
{
    struct place p = {0};
    *z = (heed__zip){0};
    if (!find_directory(bytes, size, &p) || p.offset > size || p.entries > size / 46)
        return heed__found_fail(f, err, "it is no zip archive, or cut short");
    z->entry = heed__found_take(f, (size_t)p.entries, sizeof *z->entry, err);
    if (!z->entry)
        return HEED_MEMORY;
    heed__byte_cursor c = at(bytes, size, p.offset);
    heed_status status = HEED_OK;
    for (; !status && z->count < p.entries; z->count++)
        status = read_entry(f, &c, &z->entry[z->count], bytes, size, err);
    return status;
}

const heed__zip_entry *heed__zip_find(const heed__zip *z, const char *name)
{
    for (size_t i = 0; i < z->count; i++)
        if (strcmp(z->entry[i].name, name) == 0)
            return &z->entry[i];
    return NULL;
}

heed_status heed__zip_bytes(heed__found *f, const heed__zip_entry *e, const unsigned char **bytes,
                            heed_error *err)
{
    *bytes = e->data;
    if (!e->deflated)
        return HEED_OK;
    unsigned char *out = heed__found_take(f, e->size + 1, 1, err);
    z_stream s = {.next_in = (Bytef *)e->data, .avail_in = (uInt)e->stored};
    if (!out)
        return HEED_MEMORY;
    if (e->stored > UINT_MAX || e->size >= UINT_MAX)
        return heed__found_fail(f, err, "its entry '%.100s' is compressed and above 4 GB", e->name);
    s.next_out = out;
    s.avail_out = (uInt)e->size + 1;
    if (inflateInit2(&s, -MAX_WBITS) != Z_OK)
        return heed__found_no_memory(f, err);
    const int end = inflate(&s, Z_FINISH);
    const size_t made = (size_t)s.total_out;
    inflateEnd(&s);
    if (end != Z_STREAM_END || made != e->size)
        return heed__found_fail(f, err, "its entry '%.100s' gives %zu bytes, expected %zu", e->name,
                                made, e->size);
    *bytes = out;
    return HEED_OK;
}
