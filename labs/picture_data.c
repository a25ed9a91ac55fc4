/* picture_data.c: see picture_data.h. */
#include "picture_data.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { HELD_OUT = 5000, DRAWN = 500 };

/* "folder/train-images-idx3-ubyte", or with .gz where there is no other. */
static void name_of(char path[4096], const char *folder, const char *name)
{
    snprintf(path, 4096, "%s/%s", folder, name);
    if (access(path, F_OK) != 0)
        snprintf(path, 4096, "%s/%s.gz", folder, name);
}

static heed_pictures *open_part(const char *folder, const char *images, const char *labels,
                                heed_error *err)
{
    char image_path[4096], label_path[4096];
    name_of(image_path, folder, images);
    name_of(label_path, folder, labels);
    return heed_pictures_idx(image_path, label_path, &(heed_pictures_options){.channels = 1}, NULL,
                             err);
}

static heed_status fail(heed_error *err, const char *folder, const char *what)
{
    err->status = HEED_FORMAT;
    snprintf(err->text, sizeof err->text, "the pictures in %.300s %s", folder, what);
    return err->status;
}

heed_status picture_data_open(picture_data *d, const char *folder, int64_t side, heed_arena *arena,
                              heed_error *err)
{
    *d = (picture_data){.side = side, .classes = 10, .count = {0, DRAWN, 2 * DRAWN}};
    if (!folder)
        return HEED_OK;
    d->train = open_part(folder, "train-images-idx3-ubyte", "train-labels-idx1-ubyte", err);
    if (d->train)
        d->test = open_part(folder, "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte", err);
    if (!d->test)
        return err->status;
    const heed_pictures_report r = heed_pictures_describe(d->train),
                               s = heed_pictures_describe(d->test);
    if (r.height != r.width || s.height != r.height || s.width != r.width)
        return fail(err, folder, "are not square, or of two sizes");
    if (r.count <= HELD_OUT)
        return fail(err, folder, "are too few: 5,000 are held out for validation");
    d->side = r.height;
    d->classes = r.classes > s.classes ? r.classes : s.classes;
    d->count[PICTURES_TRAIN] = r.count - HELD_OUT;
    d->count[PICTURES_VALID] = HELD_OUT;
    d->count[PICTURES_TEST] = s.count;
    d->pixels = heed_arena_allocate(arena, (size_t)(r.height * r.width));
    return d->pixels ? HEED_OK : fail(err, folder, "need more memory than there is");
}

void picture_data_close(picture_data *d)
{
    heed_pictures_free(d->train);
    heed_pictures_free(d->test);
}

/* out = the pixels moved down and right, black where nothing comes in. */
static void moved(const uint8_t *pixels, int64_t side, int64_t down, int64_t right, heed_real *out)
{
    for (int64_t y = 0; y < side; y++)
        for (int64_t x = 0; x < side; x++) {
            const int64_t v = y - down, u = x - right;
            const bool inside = v >= 0 && u >= 0 && v < side && u < side;
            out[y * side + x] = inside ? (heed_real)(pixels[v * side + u] / 255.0) : 0;
        }
}

int picture_data_take(const picture_data *d, picture_part part, int64_t i, int64_t shift,
                      drawing_dice *dice, heed_real *out)
{
    const heed_rng own = heed_rng_stream(
        &(heed_rng_key){.seed = 1000003, .step = (uint64_t)part, .node = (uint64_t)i});
    drawing_dice fixed = {&own, 0};
    drawing_dice *use = part == PICTURES_TRAIN ? dice : &fixed;
    if (!d->train) {
        const int digit = (int)heed_rng_below(use->rng, use->next++, 10);
        drawing_digit(out, d->side, digit, use);
        return digit;
    }
    const heed_pictures *set = part == PICTURES_TEST ? d->test : d->train;
    const int64_t at = part == PICTURES_VALID ? d->count[PICTURES_TRAIN] + i : i;
    int64_t down = 0, right = 0;
    if (part == PICTURES_TRAIN && shift > 0) {
        down = heed_rng_below(dice->rng, dice->next++, 2 * shift + 1) - shift;
        right = heed_rng_below(dice->rng, dice->next++, 2 * shift + 1) - shift;
    }
    heed_pictures_load(set, at, d->pixels, NULL);
    moved(d->pixels, d->side, down, right, out);
    return (int)heed_pictures_label(set, at);
}
