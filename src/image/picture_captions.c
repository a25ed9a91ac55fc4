/* picture_captions.c: a set out of lines FILE TAB CAPTION [TAB CAPTION ...] and the folder or tar
 * of its pictures.  Those of a folder are decoded when they are asked for, those of a tar at once.
 */
#include "image/picture_set.h"

#include "base/error.h"
#include "base/line_reader.h"
#include "base/memory.h"
#include "base/path.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <zlib.h>

/* Arrays that grow on the set's arena. */
typedef struct rows {
    const char **name, **caption;
    int64_t *first;
    int64_t count, captions, capacity, caption_capacity;
} rows;

static bool grow(heed_pictures *p, void *array, int64_t count, int64_t capacity, size_t size)
{
    void *more = heed_arena_allocate(p->arena, (size_t)capacity * size);
    void **at = array;
    if (more && count)
        memcpy(more, *at, (size_t)count * size);
    *at = more;
    return more != NULL;
}

static bool room(heed_pictures *p, rows *r)
{
    if (r->count == r->capacity) {
        const int64_t n = r->capacity ? 2 * r->capacity : 256;
        /* One number more: where the captions of the last end. */
        if (!grow(p, &r->name, r->count, n, sizeof *r->name) ||
            !grow(p, &r->first, r->count ? r->count + 1 : 0, n + 1, sizeof *r->first))
            return false;
        r->capacity = n;
        r->first[0] = 0;
    }
    return true;
}

static bool caption_room(heed_pictures *p, rows *r)
{
    if (r->captions == r->caption_capacity) {
        const int64_t n = r->caption_capacity ? 2 * r->caption_capacity : 1024;
        if (!grow(p, &r->caption, r->captions, n, sizeof *r->caption))
            return false;
        r->caption_capacity = n;
    }
    return true;
}

static heed_status take_line(heed_pictures *p, rows *r, const char *line, size_t length,
                             const char *path, int64_t number, heed_error *err)
{
    const char *tab = memchr(line, '\t', length), *end = line + length;
    if (!tab || tab == line)
        return heed__fail(err, HEED_FORMAT, "%s, line %lld: expected FILE TAB CAPTION", path,
                          (long long)number);
    if (!room(p, r) || !(r->name[r->count] = heed__pictures_text(p, line, (size_t)(tab - line))))
        return heed__fail(err, HEED_MEMORY, "out of memory for the captions of %s", path);
    while (tab) {
        const char *begin = tab + 1;
        tab = memchr(begin, '\t', (size_t)(end - begin));
        const size_t n = (size_t)((tab ? tab : end) - begin);
        if (n == 0)
            return heed__fail(err, HEED_FORMAT, "%s, line %lld: a caption is empty", path,
                              (long long)number);
        if (!caption_room(p, r) || !(r->caption[r->captions] = heed__pictures_text(p, begin, n)))
            return heed__fail(err, HEED_MEMORY, "out of memory for the captions of %s", path);
        r->captions++;
    }
    r->first[++r->count] = r->captions;
    p->report.checksum = (uint32_t)crc32_z(p->report.checksum, (const Bytef *)line, length);
    return HEED_OK;
}

static heed_status read_lines(heed_pictures *p, const char *tsv, heed_error *err)
{
    rows r = {0};
    const char *line = "";
    size_t length = 0;
    heed__lines *lines = heed__lines_open(tsv, HEED_LINE_LIMIT, &p->allocator, err);
    if (!lines)
        return err ? err->status : HEED_IO;
    heed_status status = HEED_OK;
    while (!status && !(status = heed__lines_next(lines, &line, &length, err)) && line)
        status = take_line(p, &r, line, length, tsv, heed__lines_number(lines), err);
    heed__lines_close(lines);
    if (!status && r.count == 0)
        status = heed__fail(err, HEED_FORMAT, "%s has no lines, expected FILE TAB CAPTION", tsv);
    p->name = r.name;
    p->caption = r.caption;
    p->first_caption = r.first;
    p->report.count = r.count;
    return status;
}

/* ---- a folder ---- */

static heed_status from_folder(heed_pictures *p, const char *tsv, const char *folder,
                               heed_error *err)
{
    const int64_t n = p->report.count;
    p->path = heed_arena_allocate(p->arena, (size_t)n * sizeof *p->path);
    if (!p->path)
        return heed__fail(err, HEED_MEMORY, "out of memory for the names in %s", tsv);
    for (int64_t i = 0; i < n; i++) {
        heed__pathname path;
        struct stat s;
        heed_status status = heed__pathname_in(path, folder, p->name[i], err);
        if (status)
            return status;
        if (stat(path, &s) || !S_ISREG(s.st_mode))
            return heed__fail(err, HEED_IO, "%s names %s, which is not in %s", tsv, p->name[i],
                              folder);
        if (!(p->path[i] = heed__pictures_text(p, path, strlen(path))))
            return heed__fail(err, HEED_MEMORY, "out of memory for the names in %s", tsv);
    }
    heed_image first;
    heed_status status = heed_image_read(p->path[0], &p->allocator, &first, err);
    if (!status)
        heed__pictures_like(p, &first);
    heed_image_free(&first, &p->allocator);
    return status;
}

/* ---- a tar ---- */

/* The set's names in order, to find a member's line: an archive need not be in theirs. */
typedef struct wanted {
    const char *name;
    int64_t i;
} wanted;

typedef struct unpack {
    heed_pictures *p;
    wanted *sorted;
    bool *found;
} unpack;

static int by_name(const void *a, const void *b)
{
    const wanted *x = a, *y = b;
    const int order = strcmp(x->name, y->name);
    return order ? order : (x->i > y->i) - (x->i < y->i);
}

/* The first of the set's lines with this name, or -1. */
static int64_t find(const unpack *u, const char *name)
{
    int64_t low = 0, high = u->p->report.count;
    while (low < high) {
        const int64_t middle = (low + high) / 2;
        if (strcmp(u->sorted[middle].name, name) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low < u->p->report.count && strcmp(u->sorted[low].name, name) == 0 ? low : -1;
}

/* Sizes are known with the first picture, and with them the memory for all. */
static heed_status allocate(heed_pictures *p, const heed_image *first, heed_error *err)
{
    heed_pictures_report *r = &p->report;
    int64_t each, all;
    heed__pictures_like(p, first);
    if (!heed__multiply(r->height * r->width, r->channels, &each) ||
        !heed__multiply(each, r->count, &all) || all > INT64_C(1) << 36)
        return heed__fail(err, HEED_ARGUMENT,
                          "%lld pictures of %lld x %lld are too many bytes; give a smaller size",
                          (long long)r->count, (long long)r->width, (long long)r->height);
    p->bytes = heed__allocate(&p->allocator, (size_t)all, 1);
    p->allocated = p->bytes ? (size_t)all : 0;
    return p->bytes ? HEED_OK
                    : heed__fail(err, HEED_MEMORY, "out of memory for %lld pictures",
                                 (long long)r->count);
}

static heed_status take_member(void *context, const char *name, const uint8_t *bytes, size_t size,
                               heed_error *err)
{
    unpack *u = context;
    heed_pictures *p = u->p;
    int64_t at = find(u, name);
    /* "flickr8k/1.jpg" is found as "1.jpg", "./1.jpg" too. */
    for (const char *rest = name; at < 0 && (rest = strchr(rest, '/'));)
        at = find(u, ++rest);
    if (at < 0)
        return HEED_OK;
    heed_image image;
    heed_status status = heed_image_decode(bytes, size, name, &p->allocator, &image, err);
    if (!status && !p->bytes)
        status = allocate(p, &image, err);
    const char *same = u->sorted[at].name;
    const int64_t each = p->report.height * p->report.width * p->report.channels;
    for (; !status && at < p->report.count && strcmp(u->sorted[at].name, same) == 0; at++) {
        const int64_t i = u->sorted[at].i;
        status = heed__pictures_fit(p, &image, name, p->bytes + i * each, err);
        u->found[i] = true;
    }
    heed_image_free(&image, &p->allocator);
    return status;
}

static heed_status from_tar(heed_pictures *p, const char *tsv, const char *path, heed_error *err)
{
    const int64_t n = p->report.count;
    unpack u = {p, heed_arena_allocate(p->arena, (size_t)n * sizeof *u.sorted),
                heed_arena_allocate(p->arena, (size_t)n)};
    if (!u.sorted || !u.found)
        return heed__fail(err, HEED_MEMORY, "out of memory for the names in %s", tsv);
    memset(u.found, 0, (size_t)n * sizeof *u.found);
    for (int64_t i = 0; i < n; i++)
        u.sorted[i] = (wanted){p->name[i], i};
    qsort(u.sorted, (size_t)n, sizeof *u.sorted, by_name);
    heed_status status = heed__tar_read(path, &p->allocator, take_member, &u, err);
    for (int64_t i = 0; !status && i < n; i++)
        if (!u.found[i])
            status = heed__fail(err, HEED_FORMAT, "%s names %s, which is not in %s", tsv,
                                p->name[i], path);
    return status;
}

heed_pictures *heed_pictures_captions(const char *tsv, const char *images,
                                      const heed_pictures_options *options,
                                      const heed_allocator *allocator, heed_error *err)
{
    if (!tsv)
        return heed__missing(err, "tsv"), NULL;
    heed_error own = {0};
    heed_pictures *p = heed__pictures_new(options, allocator, err);
    if (!p)
        return NULL;
    struct stat s;
    heed_status status = read_lines(p, tsv, &own);
    if (!status)
        status = stat(images, &s) == 0 && S_ISDIR(s.st_mode) ? from_folder(p, tsv, images, &own)
                                                             : from_tar(p, tsv, images, &own);
    if (status) {
        heed__fail(err, own.status, "%s", own.text);
        heed_pictures_free(p);
        return NULL;
    }
    return p;
}
