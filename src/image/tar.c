/* tar.c: the pictures of a tar or tar.gz, in the order in which they stand (POSIX ustar and GNU's
 * long names; links, folders and other files are passed over). */
#include "image/picture_set.h"

#include "base/error.h"
#include "base/memory.h"

#include <string.h>
#include <zlib.h>

#define BLOCK 512
#define LARGEST ((int64_t)1 << 28) /* bytes of a member */

typedef struct tar {
    gzFile file;
    const char *path;
    const heed_allocator *a;
    uint8_t *bytes; /* of the member being read */
    size_t allocated;
    char long_name[4097];
} tar;

static heed_status damaged(const tar *t, heed_error *err)
{
    return heed__fail(err, HEED_FORMAT, "%s is damaged or truncated, or no tar file", t->path);
}

/* Octal digits, spaces before and a space or zero behind them; -1: anything else. */
static int64_t octal(const uint8_t *p, int n)
{
    int64_t v = 0;
    int i = 0;
    while (i < n && p[i] == ' ')
        i++;
    if (i == n || p[i] < '0' || p[i] > '7')
        return -1;
    for (; i < n && p[i] >= '0' && p[i] <= '7'; i++)
        v = 8 * v + (p[i] - '0');
    return i == n || p[i] == ' ' || p[i] == 0 ? v : -1;
}

static bool sums_up(const uint8_t *header)
{
    int64_t sum = 0;
    for (int i = 0; i < BLOCK; i++)
        sum += i >= 148 && i < 156 ? ' ' : header[i];
    return octal(header + 148, 8) == sum;
}

/* The member's bytes and what fills its last block. */
static heed_status read_member(tar *t, int64_t size, heed_error *err)
{
    const size_t whole = (size_t)((size + BLOCK - 1) / BLOCK * BLOCK);
    if (whole > t->allocated) {
        heed__release(t->a, t->bytes, t->allocated, 1);
        t->bytes = heed__allocate(t->a, whole, 1);
        t->allocated = t->bytes ? whole : 0;
        if (!t->bytes)
            return heed__fail(err, HEED_MEMORY, "out of memory for %lld bytes of %s",
                              (long long)size, t->path);
    }
    return gzread(t->file, t->bytes, (unsigned)whole) == (int)whole ? HEED_OK : damaged(t, err);
}

/* "prefix/name" of a header, or the long name that stood before it. */
static void member_name(tar *t, const uint8_t *header, char name[4097])
{
    const char *own = (const char *)header, *prefix = own + 345;
    if (t->long_name[0]) {
        memcpy(name, t->long_name, sizeof t->long_name);
        t->long_name[0] = 0;
        return;
    }
    size_t at = 0;
    if (memcmp(header + 257, "ustar", 5) == 0 && prefix[0]) {
        at = strnlen(prefix, 155);
        memcpy(name, prefix, at);
        name[at++] = '/';
    }
    const size_t length = strnlen(own, 100);
    memcpy(name + at, own, length);
    name[at + length] = 0;
}

/* One member; *end at the end of the archive. */
static heed_status next(tar *t, heed__tar_visit *visit, void *context, bool *end, heed_error *err)
{
    uint8_t header[BLOCK];
    static const uint8_t zeros[BLOCK];
    char name[4097];
    if (gzread(t->file, header, BLOCK) != BLOCK)
        return damaged(t, err);
    *end = memcmp(header, zeros, BLOCK) == 0;
    if (*end)
        return HEED_OK;
    const int64_t size = octal(header + 124, 12);
    if (!sums_up(header) || size < 0 || size > LARGEST)
        return damaged(t, err);
    heed_status status = read_member(t, size, err);
    if (status)
        return status;
    const uint8_t type = header[156];
    if (type == 'L') {
        if (size < 1 || size >= (int64_t)sizeof t->long_name)
            return damaged(t, err);
        memcpy(t->long_name, t->bytes, (size_t)size);
        t->long_name[size] = 0;
        return HEED_OK;
    }
    member_name(t, header, name);
    if ((type != '0' && type != 0) || !heed__picture_name(name))
        return HEED_OK;
    return visit(context, name, t->bytes, (size_t)size, err);
}

heed_status heed__tar_read(const char *path, const heed_allocator *a, heed__tar_visit *visit,
                           void *context, heed_error *err)
{
    tar t = {.file = gzopen(path, "rb"), .path = path, .a = a};
    if (!t.file)
        return heed__fail(err, HEED_IO, "cannot open %s", path);
    heed_status status = HEED_OK;
    for (bool end = false; !end && !status;)
        status = next(&t, visit, context, &end, err);
    heed__release(a, t.bytes, t.allocated, 1);
    gzclose_r(t.file);
    return status;
}
