/* image.h: pictures: files, sets of labelled or captioned pictures, batches made in the background.
 *
 *     heed_pictures *p = heed_pictures_folder("photos", &(heed_pictures_options){0}, NULL, &err);
 *     heed_picture_batches *b = heed_picture_batches_new(p, &options, NULL, &err);
 *     ... heed_picture_batches_next(b, &batch, &err);
 *
 * In a library of its own, libheed-files (pkg-config heed-files), because it links libpng and
 * libjpeg.  A picture is Y lines of X pixels of C channels (1: grey, 3: RGB), 8 bits each. */
#ifndef HEED_IMAGE_H
#define HEED_IMAGE_H

#include <heed/base.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- one picture ---- */

typedef struct heed_image {
    int64_t height, width, channels;
    uint8_t *pixels; /* (height, width, channels) */
} heed_image;
/* PNG, JPEG, PGM or PPM, by the first bytes.  Transparent pixels stand on white; turned photographs
 * (EXIF) stay turned.  Refuses 16 bits a channel, CMYK, more than 64 million pixels, and files that
 * end too early.  Free image with heed_image_free and the same allocator. */
heed_status heed_image_read(const char *path, const heed_allocator *allocator, heed_image *image,
                            heed_error *err);
/* The same from memory; name is for messages. */
heed_status heed_image_decode(const void *bytes, size_t size, const char *name,
                              const heed_allocator *allocator, heed_image *image, heed_error *err);
void heed_image_free(heed_image *image, const heed_allocator *allocator);
/* Another size and number of channels, into `to`, whose sizes are set and whose pixels the caller
 * has allocated: each pixel is the mean of what it covers, or lies between neighbours.  Grey is
 * (299 R + 587 G + 114 B) / 1000. */
void heed_image_scale(const heed_image *from, heed_image *to);

/* ---- sets of pictures ---- */

typedef struct heed_pictures heed_pictures;
typedef struct heed_pictures_options {
    int64_t height, width; /* scale to; 0: the first picture's, and others are refused */
    int64_t channels;      /* 1 or 3; 0: the first picture's */
} heed_pictures_options;
/* IDX files, plain or gzip: images (N,Y,X), labels (N) of 8 or 16 bits, or NULL: all 0. */
heed_pictures *heed_pictures_idx(const char *images, const char *labels,
                                 const heed_pictures_options *options,
                                 const heed_allocator *allocator, heed_error *err);
/* A folder for each class, its pictures inside; classes and files in the order of their names,
 * names that begin with a point left out.  Each class needs two pictures. */
heed_pictures *heed_pictures_folder(const char *folder, const heed_pictures_options *options,
                                    const heed_allocator *allocator, heed_error *err);
/* Lines FILE TAB CAPTION [TAB CAPTION ...]; the files are in the folder, or in the tar or tar.gz,
 * `images`, whose pictures are then decoded at once. */
heed_pictures *heed_pictures_captions(const char *tsv, const char *images,
                                      const heed_pictures_options *options,
                                      const heed_allocator *allocator, heed_error *err);
void heed_pictures_free(heed_pictures *p);
/* Decodes all pictures now and keeps them in memory, so that a file that is broken, or of another
 * size, shows now. */
heed_status heed_pictures_keep(heed_pictures *p, heed_error *err);
/* The pictures of a folder in the order of their names, the folder before each; of a file, itself.
 * In the arena.  A folder without pictures is refused. */
heed_status heed_pictures_in(const char *path, heed_arena *arena, const char *const **files,
                             int64_t *count, heed_error *err);

typedef struct heed_pictures_report {
    int64_t count, height, width, channels, classes;
    uint32_t checksum; /* CRC-32 of the bytes, or of names, labels and captions */
} heed_pictures_report;
heed_pictures_report heed_pictures_describe(const heed_pictures *p);
/* These live as long as p; NULL, 0 or -1 where there is none. */
const char *heed_pictures_name(const heed_pictures *p, int64_t i);
int64_t heed_pictures_label(const heed_pictures *p, int64_t i);
const char *heed_pictures_class(const heed_pictures *p, int64_t label);
int64_t heed_pictures_captions_of(const heed_pictures *p, int64_t i);
const char *heed_pictures_caption(const heed_pictures *p, int64_t i, int64_t k);
/* Picture i into pixels (height, width, channels).  From any thread. */
heed_status heed_pictures_load(const heed_pictures *p, int64_t i, uint8_t *pixels, heed_error *err);

/* ---- batches ---- */

/* Each picture is drawn anew in each epoch: turned by up to `turn` degrees, enlarged or reduced by
 * up to `zoom` (.1: 10 %), moved by up to `shift` of its size, mirrored; what comes in is black. */
typedef struct heed_picture_augment {
    double turn, zoom, shift;
    bool mirror;
} heed_picture_augment;
typedef struct heed_picture_batches_options {
    int64_t batch;        /* pictures; the last of an epoch may have fewer */
    int64_t begin, count; /* of the set; count 0: all from begin */
    const int64_t *only;  /* (count) numbers in the set, in place of begin and what follows it; kept
                             by the caller */
    bool in_order;        /* else shuffled in every epoch */
    int64_t epochs;       /* then batches are empty; 0: no end */
    uint64_t seed;
    double mean, deviation; /* a pixel v becomes (v/255 - mean) / deviation; deviation 0 means 1 */
    heed_picture_augment augment;
} heed_picture_batches_options;
/* Made by a thread of its own, a few ahead.  A batch depends on the options, the set, epoch and
 * number alone. */
typedef struct heed_picture_batches heed_picture_batches;
heed_picture_batches *heed_picture_batches_new(const heed_pictures *p,
                                               const heed_picture_batches_options *options,
                                               const heed_allocator *allocator, heed_error *err);
void heed_picture_batches_free(heed_picture_batches *b);
typedef struct heed_picture_batch {
    int64_t epoch, count;      /* count 0: the end */
    const heed_real *features; /* (count*Y*X, C) */
    const int32_t *labels;     /* (count) */
    const int64_t *example;    /* (count) numbers in the set */
} heed_picture_batch;
/* The next; lives until the next call.  After a failure every call fails, until a seek. */
heed_status heed_picture_batches_next(heed_picture_batches *b, heed_picture_batch *batch,
                                      heed_error *err);
/* Seek to where an equal stream stood, and the same batches follow. */
typedef struct heed_picture_position {
    int64_t epoch, batch;
} heed_picture_position;
heed_picture_position heed_picture_batches_tell(const heed_picture_batches *b);
heed_status heed_picture_batches_seek(heed_picture_batches *b, heed_picture_position p,
                                      heed_error *err);

#ifdef __cplusplus
}
#endif
#endif
