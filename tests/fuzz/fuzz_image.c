/* fuzz_image.c: libFuzzer target for pictures.  Whatever the bytes, decoding them ends in an error
 * that names the file, or in pixels of the size that it says.  Corpus: tests/fuzz/image. */
#include <heed/image.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

#define REQUIRE(condition)                                                                         \
    do {                                                                                           \
        if (!(condition))                                                                          \
            abort();                                                                               \
    } while (0)

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    heed_image image;
    heed_error err = {0};
    if (heed_image_decode(bytes, size, "a picture", NULL, &image, &err)) {
        REQUIRE(err.status != HEED_OK && strstr(err.text, "a picture") && !image.pixels);
        return 0;
    }
    REQUIRE(image.height > 0 && image.width > 0 && (image.channels == 1 || image.channels == 3));
    unsigned sum = 0;
    for (int64_t i = 0; i < image.height * image.width * image.channels; i++)
        sum += image.pixels[i];
    uint8_t small[5 * 7 * 3];
    heed_image to = {5, 7, sum % 2 ? 1 : 3, small};
    if (image.height * image.width < 1 << 20)
        heed_image_scale(&image, &to);
    heed_image_free(&image, NULL);
    return 0;
}
