/* fuzz_picture_set.c: libFuzzer target for IDX, tar and captions: the first byte says which of them
 * the others are.  Opening ends in an error with a text, or in a set whose pictures can be loaded.
 * Corpus: tests/fuzz/picture_set. */
#include <heed/image.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

#define REQUIRE(condition)                                                                         \
    do {                                                                                           \
        if (!(condition))                                                                          \
            abort();                                                                               \
    } while (0)

static int file_of(const void *bytes, size_t size, char name[64])
{
    int fd = memfd_create("fuzz", MFD_CLOEXEC);
    REQUIRE(fd >= 0 && write(fd, bytes, size) == (ssize_t)size);
    snprintf(name, 64, "/proc/self/fd/%d", fd);
    return fd;
}

static void check(heed_pictures *p, const heed_error *err)
{
    if (!p) {
        REQUIRE(err->status != HEED_OK && err->text[0]);
        return;
    }
    const heed_pictures_report r = heed_pictures_describe(p);
    REQUIRE(r.count > 0 && r.height > 0 && r.width > 0 && r.classes > 0);
    uint8_t *pixels = malloc((size_t)(r.height * r.width * r.channels));
    REQUIRE(pixels);
    for (int64_t i = 0; i < r.count && i < 8; i++) {
        REQUIRE(heed_pictures_load(p, i, pixels, NULL) == HEED_OK);
        REQUIRE(heed_pictures_label(p, i) >= 0 && heed_pictures_label(p, i) < r.classes);
        for (int64_t k = 0; k < heed_pictures_captions_of(p, i); k++)
            REQUIRE(heed_pictures_caption(p, i, k)[0]);
    }
    free(pixels);
    heed_pictures_free(p);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    static const char line[] = "a.ppm\tone\ttwo\nb.ppm\tthree\n";
    char name[64], other[64];
    heed_error err = {0};
    if (size < 1)
        return 0;
    int fd = file_of(bytes + 1, size - 1, name);
    if (bytes[0] % 3 == 0) {
        check(heed_pictures_idx(name, NULL, NULL, NULL, &err), &err);
        err = (heed_error){0};
        check(heed_pictures_idx(name, name, NULL, NULL, &err), &err);
    } else if (bytes[0] % 3 == 1) {
        int tsv = file_of(line, sizeof line - 1, other);
        check(heed_pictures_captions(other, name, NULL, NULL, &err), &err);
        close(tsv);
    } else {
        check(heed_pictures_captions(name, "/proc/self/fd", NULL, NULL, &err), &err);
    }
    close(fd);
    return 0;
}
