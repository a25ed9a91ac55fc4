/* file_gzip.c: files packed by gzip, unpacked into memory of their own, which is unmapped like a
 * file.  Nothing is allocated that the packed bytes do not fill, and no more than LARGEST. */
#include "base/error.h"
#include "base/file.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <zlib.h>

#define LARGEST ((size_t)4 << 30)
#define GZIP (15 + 16) /* zlib's window bits, with a gzip header */

static bool is_packed(const void *bytes, size_t size)
{
    return size >= 18 && memcmp(bytes, "\x1f\x8b", 2) == 0;
}

size_t heed__gzip_begin(const void *bytes, size_t size, void *to, size_t capacity)
{
    z_stream z = {.next_in = (Bytef *)(uintptr_t)bytes, .next_out = to};
    if (!is_packed(bytes, size) || inflateInit2(&z, GZIP) != Z_OK)
        return 0;
    z.avail_in = size < 1 << 20 ? (uInt)size : 1 << 20;
    z.avail_out = (uInt)capacity;
    inflate(&z, Z_SYNC_FLUSH);
    const size_t got = capacity - z.avail_out;
    inflateEnd(&z);
    return got;
}

/* Memory as a file's mapping has; NULL when there is none. */
static unsigned char *map_memory(size_t size)
{
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

static unsigned char *grow(unsigned char *memory, size_t *capacity)
{
    const size_t larger = *capacity ? 2 * *capacity : (size_t)1 << 20;
    unsigned char *grown = larger > LARGEST ? NULL : map_memory(larger);
    if (*capacity) {
        if (grown)
            memcpy(grown, memory, *capacity);
        munmap(memory, *capacity);
    }
    *capacity = grown ? larger : 0;
    return grown;
}

/* All of it, and how large; NULL after an error. */
static unsigned char *unpack(const char *path, const unsigned char *bytes, size_t size, size_t *got,
                             heed_error *err)
{
    z_stream z = {0};
    size_t capacity = 0, taken = 0;
    unsigned char *to = NULL;
    int state = inflateInit2(&z, GZIP);
    *got = 0;
    while (state == Z_OK) {
        if (*got == capacity && !(to = grow(to, &capacity)))
            break;
        const size_t in = size - taken, room = capacity - *got;
        z.next_in = (Bytef *)(uintptr_t)(bytes + taken);
        z.next_out = to + *got;
        const uInt given = z.avail_in = in < 1 << 30 ? (uInt)in : 1 << 30;
        const uInt left = z.avail_out = room < 1 << 30 ? (uInt)room : 1 << 30;
        state = inflate(&z, Z_NO_FLUSH);
        taken += given - z.avail_in;
        *got += left - z.avail_out;
        if (state == Z_STREAM_END && size - taken >= 18) /* gzip files may follow each other */
            state = inflateReset(&z);
    }
    inflateEnd(&z);
    const bool whole = state == Z_STREAM_END;
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    const size_t used = whole ? (*got + page - 1) / page * page : 0;
    if (capacity > used)
        munmap(to + used, capacity - used);
    if (whole)
        return *got ? to : (unsigned char *)(uintptr_t) "";
    if (!to)
        heed__fail(err, HEED_MEMORY, "out of memory for '%.255s', which is packed by gzip", path);
    else
        heed__fail(err, HEED_FORMAT, "cannot open '%.255s': it is packed by gzip, and damaged",
                   path);
    return NULL;
}

heed_status heed__file_map_unpacked(const char *path, const void **bytes, size_t *size,
                                    heed_error *err)
{
    const void *packed;
    size_t packed_size, got;
    heed_status status = heed__file_map(path, &packed, &packed_size, err);
    if (status || !is_packed(packed, packed_size)) {
        *bytes = status ? NULL : packed;
        *size = status ? 0 : packed_size;
        return status;
    }
    heed_error own = {0};
    unsigned char *all = unpack(path, packed, packed_size, &got, &own);
    heed__file_unmap(packed, packed_size);
    if (!all)
        return heed__fail(err, own.status, "%s", own.text);
    *bytes = all;
    *size = got;
    return HEED_OK;
}
