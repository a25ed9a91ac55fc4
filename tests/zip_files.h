/* zip_files.h: zip archives for tests, with entries that are as wrong as a test wants them. */
#ifndef HEED_TESTS_ZIP_FILES_H
#define HEED_TESTS_ZIP_FILES_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

struct zip_out {
    unsigned char *at, *list; /* entries, and the directory that follows them */
    size_t size, listed;
    int count;
};

/* How an entry differs from an honest one; zeros: not at all. */
struct zip_wrong {
    unsigned flags, method; /* method 0: deflated */
    uint32_t announced;     /* bytes that it says to become */
};

static inline void zip_bytes(unsigned char **to, size_t *size, const void *bytes, size_t n)
{
    *to = realloc(*to, *size + n + 1);
    memcpy(*to + *size, bytes, n);
    *size += n;
}

static inline void zip_number(unsigned char **to, size_t *size, uint32_t value, size_t n)
{
    zip_bytes(to, size, &value, n);
}

static inline void zip_add(struct zip_out *z, const char *name, const void *bytes, size_t size,
                           const struct zip_wrong *wrong)
{
    uLongf packed = compressBound((uLong)size) + 16;
    unsigned char *deflated = malloc(packed);
    z_stream s = {.next_in = (Bytef *)(uintptr_t)bytes,
                  .avail_in = (uInt)size,
                  .next_out = deflated,
                  .avail_out = (uInt)packed};
    deflateInit2(&s, 6, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY);
    deflate(&s, Z_FINISH);
    deflateEnd(&s);
    const size_t begin = z->size;
    for (int i = 0; i < 2; i++) {
        unsigned char **to = i ? &z->list : &z->at;
        size_t *end = i ? &z->listed : &z->size;
        zip_number(to, end, i ? 0x02014b50 : 0x04034b50, 4);
        zip_number(to, end, 20, i ? 4 : 2);
        zip_number(to, end, wrong->flags, 2);
        zip_number(to, end, wrong->method ? wrong->method : 8, 2);
        zip_number(to, end, 0, 4);
        zip_number(to, end, (uint32_t)crc32(0, bytes, (uInt)size), 4);
        zip_number(to, end, (uint32_t)s.total_out, 4);
        zip_number(to, end, wrong->announced ? wrong->announced : (uint32_t)size, 4);
        zip_number(to, end, (uint32_t)strlen(name), 2);
        zip_number(to, end, 0, i ? 4 : 2);
        if (i) {
            zip_number(to, end, 0, 4);
            zip_number(to, end, 0, 4);
            zip_number(to, end, (uint32_t)begin, 4);
        }
        zip_bytes(to, end, name, strlen(name));
    }
    zip_bytes(&z->at, &z->size, deflated, s.total_out);
    z->count++;
    free(deflated);
}

/* Writes the archive and frees it. */
static inline void zip_write(struct zip_out *z, const char *path)
{
    const size_t begin = z->size;
    zip_bytes(&z->at, &z->size, z->list, z->listed);
    zip_number(&z->at, &z->size, 0x06054b50, 4);
    zip_number(&z->at, &z->size, 0, 4);
    zip_number(&z->at, &z->size, (uint32_t)z->count, 2);
    zip_number(&z->at, &z->size, (uint32_t)z->count, 2);
    zip_number(&z->at, &z->size, (uint32_t)z->listed, 4);
    zip_number(&z->at, &z->size, (uint32_t)begin, 4);
    zip_number(&z->at, &z->size, 0, 2);
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(z->at, 1, z->size, f), z->size);
    assert_int_equal(fclose(f), 0);
    free(z->at);
    free(z->list);
    *z = (struct zip_out){0};
}

#endif
