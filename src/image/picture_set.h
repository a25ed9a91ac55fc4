/* picture_set.h: the inside of heed_pictures: bytes of all pictures in memory, or the paths of
 * files that are decoded when they are asked for. */
#ifndef HEED_IMAGE_PICTURE_SET_H
#define HEED_IMAGE_PICTURE_SET_H

#include <heed/image.h>

struct heed_pictures {
    heed_allocator allocator;
    heed_arena *arena; /* all below but the bytes */
    heed_pictures_report report;
    heed_pictures_options options;
    uint8_t *bytes; /* (count,Y,X,C) or NULL */
    size_t allocated;
    size_t skip;       /* bytes before the first picture: an IDX header */
    const char **path; /* (count) or NULL */
    const char **name; /* (count) or NULL */
    int32_t *label;    /* (count) or NULL */
    const char **class_name;
    int64_t *first_caption; /* (count+1) or NULL */
    const char **caption;
};

heed_pictures *heed__pictures_new(const heed_pictures_options *options,
                                  const heed_allocator *allocator, heed_error *err);
/* A copy on the set's arena. */
char *heed__pictures_text(heed_pictures *p, const char *text, size_t length);
/* Sets what the options leave open from the first picture. */
void heed__pictures_like(heed_pictures *p, const heed_image *first);
/* A decoded picture as the set wants it: refuses another size if none was given. */
heed_status heed__pictures_fit(const heed_pictures *p, const heed_image *image, const char *name,
                               uint8_t *pixels, heed_error *err);
/* "photo.JPG": whether the name ends as a picture's does. */
bool heed__picture_name(const char *name);

/* The pictures of a tar or tar.gz, name by name. */
typedef heed_status heed__tar_visit(void *context, const char *name, const uint8_t *bytes,
                                    size_t size, heed_error *err);
heed_status heed__tar_read(const char *path, const heed_allocator *a, heed__tar_visit *visit,
                           void *context, heed_error *err);

#endif
