/* Pictures in a picture: that the SVG is well-formed, and that the PNG in it, decoded by libpng,
 * has the pixels that were given. */
#include "picture_check.h"

#include <heed/image.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static int value_of(char c)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const char *at = strchr(digits, c);
    assert_non_null(at);
    return (int)(at - digits);
}

/* The n-th PNG of an SVG, decoded. */
static heed_image picture(const char *svg, int n)
{
    static const char mark[] = "data:image/png;base64,";
    static uint8_t bytes[1 << 16];
    heed_image image;
    heed_error err = {0};
    size_t size = 0;
    for (int i = 0; i <= n; i++) {
        svg = strstr(svg, mark);
        assert_non_null(svg);
        svg += strlen(mark);
    }
    for (; *svg != '"'; svg += 4) {
        const int missing = (svg[2] == '=') + (svg[3] == '=');
        const unsigned v = (unsigned)(value_of(svg[0]) << 18 | value_of(svg[1]) << 12 |
                                      (missing > 1 ? 0 : value_of(svg[2]) << 6) |
                                      (missing > 0 ? 0 : value_of(svg[3])));
        for (int k = 0; k < 3 - missing; k++)
            bytes[size++] = (uint8_t)(v >> (16 - 8 * k));
    }
    if (heed_image_decode(bytes, size, "the PNG", NULL, &image, &err))
        fail_msg("%s", err.text);
    return image;
}

/* Catches a PNG that only some programs read, another scale, weights in another corner. */
static void pixels_come_back(void **state)
{
    enum { Y = 6, X = 8 };
    heed_real grey[Y * X], rgb[Y * X * 3];
    static const heed_real weights[] = {0, 0, 0, 1};
    const char *svg;
    (void)state;
    for (int i = 0; i < Y * X * 3; i++)
        rgb[i] = (heed_real)(i % 41) / 20 - 1;
    for (int i = 0; i < Y * X; i++)
        grey[i] = (heed_real)i / (Y * X);
    grey[5] = (heed_real)NAN;
    const heed_image_cell cells[] = {
        {.title = "<", .pixels = rgb, .height = Y, .width = X, .channels = 3, .low = -1, .high = 1},
        {.pixels = grey, .height = Y, .width = X, .channels = 1, .high = 1},
        {.pixels = rgb,
         .height = Y,
         .width = X,
         .channels = 3,
         .low = -1,
         .high = 1,
         .weights = weights,
         .rows = 2,
         .cols = 2},
    };
    assert_int_equal(heed_images_svg("Three <pictures>", cells, 3, 2, 16, arena, &svg, NULL),
                     HEED_OK);
    check_xml(svg);
    assert_int_equal(occurrences(svg, "<image "), 3);
    assert_int_equal(occurrences(svg, ">&lt;</text>"), 1);
    heed_image a = picture(svg, 0), b = picture(svg, 1), c = picture(svg, 2);
    assert_int_equal(a.height, 2 * Y); /* 16 wide, so each pixel twice */
    assert_int_equal(a.width, 2 * X);
    assert_int_equal(a.channels, 3);
    assert_int_equal(b.channels, 1);
    for (int y = 0; y < 2 * Y; y++)
        for (int x = 0; x < 2 * X; x++) {
            const int at = y / 2 * X + x / 2;
            for (int k = 0; k < 3; k++)
                assert_true(abs(a.pixels[(y * 2 * X + x) * 3 + k] -
                                (int)lround(((double)rgb[at * 3 + k] + 1) / 2 * 255)) <= 1);
            assert_int_equal(b.pixels[y * 2 * X + x],
                             at == 5 ? 0 : (int)lround((double)grey[at] * 255));
        }
    /* All weight is in the last quarter. */
    const int64_t last = (2 * Y * 2 * X - 1) * 3;
    assert_int_equal(c.pixels[last], a.pixels[last]);
    assert_true(c.pixels[2] < 0.2 * a.pixels[2] + 1);
    heed_image_free(&a, NULL);
    heed_image_free(&b, NULL);
    heed_image_free(&c, NULL);
}

/* Catches a division by zero, or a picture of nothing. */
static void what_is_refused(void **state)
{
    static const heed_real pixel[] = {0};
    const char *svg;
    heed_error err = {0};
    (void)state;
    const heed_image_cell flat = {.pixels = pixel, .height = 1, .width = 1, .channels = 1};
    assert_int_equal(heed_images_svg("t", &flat, 1, 1, 16, arena, &svg, &err), HEED_ARGUMENT);
    assert_string_equal(err.text, "picture 0 is 1 x 1 with 1 channels, from 0 to 0, expected 1 to "
                                  "8192 pixels, 1 or 3 channels, and values that differ");
    err = (heed_error){0};
    assert_int_equal(heed_images_svg("t", &flat, 0, 1, 16, arena, &svg, &err), HEED_ARGUMENT);
    assert_null(svg);
}

/* Catches a reading with another word marked, a shade of what is not read yet, words that break the
 * text. */
static void reading(void **state)
{
    static const char *const words[] = {"The", "<FBI>", "is"};
    static const heed_real weights[] = {1, 1, 1, 0.25, 1, 1, 0.75, (heed_real)NAN, 1};
    const char *svg;
    (void)state;
    assert_int_equal(heed_reading_svg("t", (heed_labels){words, 3}, weights, arena, &svg, NULL),
                     HEED_OK);
    check_xml(svg);
    assert_int_equal(occurrences(svg, "class=\"now\""), 3);
    assert_int_equal(occurrences(svg, ">&lt;FBI&gt;</text>"), 2);
    assert_int_equal(occurrences(svg, "<rect class=\"seen\""), 2);
    assert_non_null(strstr(svg, "fill-opacity=\"0.25\""));
    assert_non_null(strstr(svg, "fill-opacity=\"0.75\""));
    assert_int_equal(heed_reading_svg("t", (heed_labels){words, 0}, weights, arena, &svg, NULL),
                     HEED_ARGUMENT);
    assert_null(svg);
}

int main(void)
{
    const struct CMUnitTest tests[] = {WITH_ARENA(pixels_come_back), WITH_ARENA(what_is_refused),
                                       WITH_ARENA(reading)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
