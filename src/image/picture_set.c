/* picture_set.c: what sets of pictures have in common. */
#include "image/picture_set.h"

#include "base/error.h"
#include "base/memory.h"
#include "image/image_decode.h"

#include <string.h>
#include <strings.h>

heed_pictures *heed__pictures_new(const heed_pictures_options *options,
                                  const heed_allocator *allocator, heed_error *err)
{
    const heed_pictures_options none = {0}, *o = options ? options : &none;
    const heed_allocator a = heed__allocator_or_default(allocator);
    if (o->height < 0 || o->width < 0 || !o->height != !o->width ||
        (o->height && o->height > HEED__IMAGE_PIXELS / o->width) ||
        (o->channels != 0 && o->channels != 1 && o->channels != 3)) {
        heed__fail(err, HEED_ARGUMENT,
                   "pictures of %lld x %lld pixels with %lld channels, expected both sizes or "
                   "none, and 1 or 3 channels (0: as the first picture has them)",
                   (long long)o->height, (long long)o->width, (long long)o->channels);
        return NULL;
    }
    heed_pictures *p = heed__allocate_zeroed(&a, 1, sizeof *p);
    if (!p) {
        heed__fail(err, HEED_MEMORY, "out of memory for a set of pictures");
        return NULL;
    }
    p->allocator = a;
    p->options = *o;
    p->report = (heed_pictures_report){
        .height = o->height, .width = o->width, .channels = o->channels, .classes = 1};
    p->arena = heed_arena_new(&a, err);
    if (!p->arena) {
        heed_pictures_free(p);
        return NULL;
    }
    return p;
}

void heed_pictures_free(heed_pictures *p)
{
    if (!p)
        return;
    const heed_allocator a = p->allocator;
    heed__release(&a, p->bytes, p->allocated, 1);
    heed_arena_free(p->arena);
    heed__release(&a, p, 1, sizeof *p);
}

char *heed__pictures_text(heed_pictures *p, const char *text, size_t length)
{
    char *copy = heed_arena_allocate(p->arena, length + 1);
    if (copy) {
        memcpy(copy, text, length);
        copy[length] = 0;
    }
    return copy;
}

void heed__pictures_like(heed_pictures *p, const heed_image *first)
{
    heed_pictures_report *r = &p->report;
    if (!r->height) {
        r->height = first->height;
        r->width = first->width;
    }
    r->channels = r->channels ? r->channels : first->channels;
}

heed_status heed__pictures_fit(const heed_pictures *p, const heed_image *image, const char *name,
                               uint8_t *pixels, heed_error *err)
{
    const heed_pictures_report *r = &p->report;
    const bool same = image->height == r->height && image->width == r->width;
    if (!same && !p->options.height)
        return heed__fail(err, HEED_FORMAT,
                          "%s is %lld x %lld pixels, expected %lld x %lld as the first picture; "
                          "give a size to scale to",
                          name, (long long)image->width, (long long)image->height,
                          (long long)r->width, (long long)r->height);
    heed_image to = {r->height, r->width, r->channels, pixels};
    if (same && image->channels == r->channels)
        memcpy(pixels, image->pixels, (size_t)(r->height * r->width * r->channels));
    else
        heed_image_scale(image, &to);
    return HEED_OK;
}

bool heed__picture_name(const char *name)
{
    static const char *const ends[] = {".png", ".jpg", ".jpeg", ".ppm", ".pgm"};
    const char *dot = strrchr(name, '.');
    for (size_t i = 0; dot && i < sizeof ends / sizeof *ends; i++)
        if (strcasecmp(dot, ends[i]) == 0)
            return true;
    return false;
}

/* ---- accessors ---- */

heed_pictures_report heed_pictures_describe(const heed_pictures *p)
{
    if (!p)
        return (heed_pictures_report){0};
    return p->report;
}

static bool has(const heed_pictures *p, int64_t i)
{
    return i >= 0 && i < p->report.count;
}

const char *heed_pictures_name(const heed_pictures *p, int64_t i)
{
    if (!p)
        return NULL;
    return p->name && has(p, i) ? p->name[i] : NULL;
}

int64_t heed_pictures_label(const heed_pictures *p, int64_t i)
{
    if (!p)
        return 0;
    return !has(p, i) ? -1 : p->label ? p->label[i] : 0;
}

const char *heed_pictures_class(const heed_pictures *p, int64_t label)
{
    if (!p)
        return NULL;
    return p->class_name && label >= 0 && label < p->report.classes ? p->class_name[label] : NULL;
}

int64_t heed_pictures_captions_of(const heed_pictures *p, int64_t i)
{
    if (!p)
        return 0;
    return p->first_caption && has(p, i) ? p->first_caption[i + 1] - p->first_caption[i] : 0;
}

const char *heed_pictures_caption(const heed_pictures *p, int64_t i, int64_t k)
{
    if (!p)
        return NULL;
    return k >= 0 && k < heed_pictures_captions_of(p, i) ? p->caption[p->first_caption[i] + k]
                                                         : NULL;
}

heed_status heed_pictures_load(const heed_pictures *p, int64_t i, uint8_t *pixels, heed_error *err)
{
    if (!p)
        return heed__missing(err, "pictures");
    const heed_pictures_report *r = &p->report;
    if (!has(p, i))
        return heed__fail(err, HEED_ARGUMENT, "there is no picture %lld: the set has %lld",
                          (long long)i, (long long)r->count);
    const size_t size = (size_t)(r->height * r->width * r->channels);
    if (p->bytes) {
        memcpy(pixels, p->bytes + p->skip + (size_t)i * size, size);
        return HEED_OK;
    }
    heed_image image;
    heed_status status = heed_image_read(p->path[i], &p->allocator, &image, err);
    if (status)
        return status;
    status = heed__pictures_fit(p, &image, p->path[i], pixels, err);
    heed_image_free(&image, &p->allocator);
    return status;
}

heed_status heed_pictures_keep(heed_pictures *p, heed_error *err)
{
    if (!p)
        return heed__missing(err, "pictures");
    const heed_pictures_report *r = &p->report;
    const int64_t each = r->height * r->width * r->channels;
    int64_t all;
    if (p->bytes)
        return HEED_OK;
    uint8_t *bytes =
        heed__multiply(each, r->count, &all) ? heed__allocate(&p->allocator, (size_t)all, 1) : NULL;
    if (!bytes)
        return heed__fail(err, HEED_MEMORY, "out of memory for %lld pictures of %lld x %lld",
                          (long long)r->count, (long long)r->width, (long long)r->height);
    heed_status status = HEED_OK;
    for (int64_t i = 0; !status && i < r->count; i++)
        status = heed_pictures_load(p, i, bytes + i * each, err);
    if (status) {
        heed__release(&p->allocator, bytes, (size_t)all, 1);
        return status;
    }
    p->bytes = bytes;
    p->allocated = (size_t)all;
    return HEED_OK;
}
