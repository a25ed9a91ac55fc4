/* Pictures from files: every kind that is read, every kind that is refused and what is then said;
 * sets of them; batches that depend on nothing but their position. */
#include <stddef.h>
#include <stdio.h>

#include <heed/image.h>
#include <jpeglib.h>
#include <math.h>
#include <png.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <zlib.h>

#include <cmocka.h>

#include "temp_folder.h"

enum { Y = 5, X = 7 };

/* A slope in every channel, so that no two pixels are alike. */
static void slopes(uint8_t *pixels, int channels)
{
    for (int i = 0; i < Y * X; i++)
        for (int k = 0; k < channels; k++)
            pixels[i * channels + k] = (uint8_t)(40 + 4 * i + 20 * k);
}

static void write_png(const char *path, uint32_t format, int channels, const void *pixels)
{
    png_image image = {.version = PNG_IMAGE_VERSION, .width = X, .height = Y, .format = format};
    (void)channels;
    assert_true(png_image_write_to_file(&image, path, 0, pixels, 0, NULL));
}

static void write_jpeg(const char *path, int channels, J_COLOR_SPACE space)
{
    uint8_t pixels[Y * X * 4];
    struct jpeg_error_mgr errors;
    struct jpeg_compress_struct c = {.err = jpeg_std_error(&errors)};
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    memset(pixels, 120, sizeof pixels);
    jpeg_create_compress(&c);
    jpeg_stdio_dest(&c, f);
    c.image_width = X;
    c.image_height = Y;
    c.input_components = channels;
    c.in_color_space = space;
    jpeg_set_defaults(&c);
    jpeg_start_compress(&c, TRUE);
    while (c.next_scanline < Y) {
        JSAMPROW line = pixels + c.next_scanline * X * (unsigned)channels;
        jpeg_write_scanlines(&c, &line, 1);
    }
    jpeg_finish_compress(&c);
    jpeg_destroy_compress(&c);
    fclose(f);
}

static size_t bytes_of(const char *path, uint8_t *bytes, size_t most)
{
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    const size_t n = fread(bytes, 1, most, f);
    fclose(f);
    assert_true(n < most);
    return n;
}

static void expect_pixels(const char *path, int channels, const uint8_t *wanted, int tolerance)
{
    heed_image image;
    heed_error err = {0};
    if (heed_image_read(path, NULL, &image, &err))
        fail_msg("%s", err.text);
    assert_int_equal(image.height, Y);
    assert_int_equal(image.width, X);
    assert_int_equal(image.channels, channels);
    for (int i = 0; i < Y * X * channels; i++)
        if (abs(image.pixels[i] - wanted[i]) > tolerance)
            fail_msg("%s: byte %d is %d, expected %d", path, i, image.pixels[i], wanted[i]);
    heed_image_free(&image, NULL);
}

/* expect_refused(path, "is 30 x ..."): the whole message is the path, a blank and the text. */
static void expect_refused(const char *path, const char *text)
{
    heed_image image;
    heed_error err = {0};
    char wanted[700];
    assert_int_not_equal(heed_image_read(path, NULL, &image, &err), HEED_OK);
    assert_null(image.pixels);
    snprintf(wanted, sizeof wanted, "%s %s", path, text);
    assert_string_equal(err.text, wanted);
}

/* Catches: channels or lines in another order, transparency that shows what it hides. */
static void kinds_of_png(void **state)
{
    uint8_t grey[Y * X], rgb[Y * X * 3], mixed[Y * X * 4];
    (void)state;
    slopes(grey, 1);
    slopes(rgb, 3);
    write_png(in_folder("a.png"), PNG_FORMAT_GRAY, 1, grey);
    expect_pixels(in_folder("a.png"), 1, grey, 0);
    write_png(in_folder("a.png"), PNG_FORMAT_RGB, 3, rgb);
    expect_pixels(in_folder("a.png"), 3, rgb, 0);
    for (int i = 0; i < Y * X; i++) {
        const int alpha = i % 3 == 0 ? 0 : i % 3 == 1 ? 255 : 128;
        for (int k = 0; k < 3; k++) {
            mixed[4 * i + k] = rgb[3 * i + k];
            rgb[3 * i + k] = (uint8_t)((rgb[3 * i + k] * alpha + 255 * (255 - alpha) + 127) / 255);
        }
        mixed[4 * i + 3] = (uint8_t)alpha;
    }
    write_png(in_folder("a.png"), PNG_FORMAT_RGBA, 4, mixed);
    expect_pixels(in_folder("a.png"), 3, rgb, 0);
    uint16_t deep[Y * X];
    memset(deep, 1, sizeof deep);
    write_png(in_folder("a.png"), PNG_FORMAT_LINEAR_Y, 1, deep);
    expect_refused(in_folder("a.png"), "has 16 bits a channel, expected 8");
}

/* Catches: a file cut anywhere that is taken for a whole one, or that crashes. */
static void cut_short(void **state)
{
    static uint8_t bytes[8192];
    uint8_t rgb[Y * X * 3];
    (void)state;
    slopes(rgb, 3);
    write_png(in_folder("a"), PNG_FORMAT_RGB, 3, rgb);
    write_jpeg(in_folder("b"), 3, JCS_RGB);
    for (int kind = 0; kind < 2; kind++) {
        const size_t n = bytes_of(in_folder(kind ? "b" : "a"), bytes, sizeof bytes);
        heed_image image;
        heed_error err = {0};
        assert_int_equal(heed_image_decode(bytes, n, "whole", NULL, &image, &err), HEED_OK);
        heed_image_free(&image, NULL);
        /* The last two bytes of a JPEG are its end mark, which some programs leave out. */
        for (size_t length = 0; length + (kind ? 3 : 1) < n; length++) {
            err = (heed_error){0};
            if (!heed_image_decode(bytes, length, "cut", NULL, &image, &err))
                fail_msg("%d bytes of %d were taken for a picture", (int)length, (int)n);
            assert_non_null(strstr(err.text, "cut is "));
        }
        memset(bytes + n / 2, 0xa5, n / 4);
        heed_image_decode(bytes, n, "damaged", NULL, &image, NULL);
        heed_image_free(&image, NULL);
    }
}

/* Catches: a header that is believed. */
static void kinds_of_jpeg(void **state)
{
    static uint8_t bytes[8192];
    uint8_t wanted[Y * X * 3];
    (void)state;
    memset(wanted, 120, sizeof wanted);
    write_jpeg(in_folder("a.jpg"), 1, JCS_GRAYSCALE);
    expect_pixels(in_folder("a.jpg"), 1, wanted, 1);
    write_jpeg(in_folder("a.jpg"), 3, JCS_RGB);
    expect_pixels(in_folder("a.jpg"), 3, wanted, 2);
    const size_t n = bytes_of(in_folder("a.jpg"), bytes, sizeof bytes);
    for (size_t i = 0; i + 9 < n; i++)
        if (bytes[i] == 0xff && bytes[i + 1] == 0xc0) /* the frame: length, bits, height, width */
            memcpy(bytes + i + 5, (uint8_t[]){65500 >> 8, 65500 & 255, 65500 >> 8, 65500 & 255}, 4);
    write_plain(in_folder("a.jpg"), bytes, n);
    expect_refused(in_folder("a.jpg"), "is 65500 x 65500, expected 1 to 67108864 pixels");
    write_jpeg(in_folder("a.jpg"), 4, JCS_CMYK);
    expect_refused(in_folder("a.jpg"), "has 4 channels (CMYK), expected grey or RGB");
}

/* Catches: a comment taken for a number, a header that is believed. */
static void kinds_of_ppm(void **state)
{
    uint8_t rgb[Y * X * 3], file[200];
    static const struct {
        const char *file, *text;
    } bad[] = {
        {"P6 7 5 255\nabc", "ends too early: 3 bytes of pixels, expected 105"},
        {"P6 7 5 65535\nabc", "has values to 65535, expected to 255 (8 bits)"},
        {"P6 7", "has no whole header: width, height, largest value"},
        {"P5 0 5 255\nabc", "is 0 x 5, expected 1 to 67108864 pixels"},
        {"P5 99999999999999999999 5 255\nabc", "is 67108865 x 5, expected 1 to 67108864 pixels"},
        {"P3 1 1 255\n1 2 3", "is of kind P3, expected P5 (grey) or P6 (RGB)"},
        {"GIF89a", "is none of PNG, JPEG, PPM"},
        {"", "is none of PNG, JPEG, PPM"},
    };
    (void)state;
    slopes(rgb, 3);
    const int head = snprintf((char *)file, sizeof file, "P6\n# by hand 1 2 3\n%d %d\n255\n", X, Y);
    memcpy(file + head, rgb, sizeof rgb);
    write_plain(in_folder("a.ppm"), file, (size_t)head + sizeof rgb);
    expect_pixels(in_folder("a.ppm"), 3, rgb, 0);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        write_plain(in_folder("a.ppm"), bad[i].file, strlen(bad[i].file));
        expect_refused(in_folder("a.ppm"), bad[i].text);
    }
}

/* Catches: an edge counted twice or left out, a mean over other pixels than those covered. */
static void scaling(void **state)
{
    uint8_t four[] = {0, 100, 200, 60}, out[64];
    heed_image from = {2, 2, 1, four}, to = {1, 1, 1, out};
    (void)state;
    heed_image_scale(&from, &to);
    assert_int_equal(out[0], 90);
    to = (heed_image){1, 4, 1, out};
    heed_image_scale(&from, &to); /* half-way down: 100 and 80; across .25, .75 between centres */
    assert_int_equal(out[0], 100);
    assert_int_equal(out[1], 95);
    assert_int_equal(out[2], 85);
    assert_int_equal(out[3], 80);
    uint8_t three[] = {0, 90, 30};
    from = (heed_image){1, 3, 1, three};
    to = (heed_image){1, 2, 1, out};
    heed_image_scale(&from, &to); /* (0 + 90/2) / 1.5, (90/2 + 30) / 1.5 */
    assert_int_equal(out[0], 30);
    assert_int_equal(out[1], 50);
    uint8_t colour[] = {255, 0, 0};
    from = (heed_image){1, 1, 3, colour};
    to = (heed_image){1, 1, 1, out};
    heed_image_scale(&from, &to);
    assert_int_equal(out[0], 76);
}

/* ---- sets ---- */

static void write_gz(const char *path, const uint8_t *bytes, size_t n)
{
    gzFile f = gzopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(gzwrite(f, bytes, (unsigned)n), n);
    gzclose(f);
}

enum { COUNT = 6 };
static size_t idx_images(uint8_t *to)
{
    static const uint8_t head[] = {0, 0, 8, 3, 0, 0, 0, COUNT, 0, 0, 0, Y, 0, 0, 0, X};
    memcpy(to, head, sizeof head);
    for (int i = 0; i < COUNT * Y * X; i++)
        to[sizeof head + (size_t)i] = (uint8_t)(i % 251);
    return sizeof head + COUNT * Y * X;
}

/* Catches: a length that is believed, 16-bit labels read as bytes, gzip not recognised. */
static void idx_files(void **state)
{
    uint8_t file[512], pixels[Y * X];
    static const uint8_t labels[] = {0, 0, 8, 1, 0, 0, 0, COUNT, 3, 1, 4, 1, 5, 2};
    static const uint8_t wide[] = {0, 0, 11, 1, 0, 0, 0, COUNT, 0, 3, 0, 1, 1, 4, 0, 1, 0, 5, 0, 2};
    heed_error err = {0};
    (void)state;
    const size_t n = idx_images(file);
    write_gz(in_folder("images"), file, n);
    write_plain(in_folder("labels"), labels, sizeof labels);
    heed_pictures *p =
        heed_pictures_idx(in_folder("images"), in_folder("labels"), NULL, NULL, &err);
    if (!p)
        fail_msg("%s", err.text);
    const heed_pictures_report r = heed_pictures_describe(p);
    assert_int_equal(r.count, COUNT);
    assert_int_equal(r.height, Y);
    assert_int_equal(r.width, X);
    assert_int_equal(r.channels, 1);
    assert_int_equal(r.classes, 6);
    assert_int_equal(heed_pictures_load(p, 2, pixels, NULL), HEED_OK);
    assert_memory_equal(pixels, file + 16 + 2 * Y * X, sizeof pixels);
    assert_int_equal(heed_pictures_label(p, 4), 5);
    assert_int_equal(heed_pictures_label(p, 6), -1);
    assert_int_not_equal(heed_pictures_load(p, 6, pixels, NULL), HEED_OK);
    heed_pictures_free(p);
    write_plain(in_folder("labels"), wide, sizeof wide);
    p = heed_pictures_idx(in_folder("images"), in_folder("labels"),
                          &(heed_pictures_options){.height = 2, .width = 3, .channels = 3}, NULL,
                          NULL);
    assert_int_equal(heed_pictures_label(p, 2), 260);
    assert_int_equal(heed_pictures_describe(p).height, 2);
    heed_pictures_free(p);

    const struct {
        size_t at;
        uint8_t byte;
        const char *text;
    } bad[] = {
        {0, 1, "is no IDX file: it begins with 01 00 08 03, expected 00 00"},
        {2, 13,
         "is IDX of type 0x0d with 3 sizes, expected 0x08 (bytes) or 0x0b (16 bits) with 1 to 4"},
        {7, COUNT + 1, "has 210 bytes behind its header, which promises 245"},
        {4, 255, "has 210 bytes behind its header, which promises 149736653010"},
        {3, 1, "has 218 bytes behind its header, which promises 6"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char wanted[700];
        const uint8_t before = file[bad[i].at];
        file[bad[i].at] = bad[i].byte;
        write_plain(in_folder("images"), file, n);
        file[bad[i].at] = before;
        err = (heed_error){0};
        assert_null(heed_pictures_idx(in_folder("images"), NULL, NULL, NULL, &err));
        snprintf(wanted, sizeof wanted, "%s %s", in_folder("images"), bad[i].text);
        assert_string_equal(err.text, wanted);
    }
    write_plain(in_folder("images"), file, n);
    write_plain(in_folder("labels"), "\0\0\10\1\0\0\0\2\1\1", 10);
    err = (heed_error){0};
    assert_null(heed_pictures_idx(in_folder("images"), in_folder("labels"), NULL, NULL, &err));
    assert_non_null(strstr(err.text, "has 2 labels for 6 pictures"));
}

/* path with the temporary folder's name in it. */
static const char *text_of(char *to, const char *format, ...) HEED_PRINTF(2, 3);
static const char *text_of(char *to, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(to, 700, format, args);
    va_end(args);
    return to;
}

static void expect_no_folder(const heed_pictures_options *o, const char *wanted)
{
    heed_error err = {0};
    assert_null(heed_pictures_folder(in_folder("set"), o, NULL, &err));
    assert_string_equal(err.text, wanted);
}

/* Catches: classes that follow the order of the file system, a class or a picture that cannot be
 * used and is passed over in silence. */
static void folders(void **state)
{
    static const char *const names[] = {"set",
                                        "set/dogs",
                                        "set/cats",
                                        "set/cats/b.png",
                                        "set/cats/a.png",
                                        "set/dogs/1.png",
                                        "set/dogs/2.PNG",
                                        "set/dogs/.x.png",
                                        "set/dogs/notes.txt"};
    uint8_t grey[Y * X], other[(Y + 1) * X];
    char text[700];
    (void)state;
    slopes(grey, 1);
    memset(other, 9, sizeof other);
    mkdir(in_folder("set"), 0700);
    expect_no_folder(NULL,
                     text_of(text, "%s/set has no folders, expected one for each class", folder));
    mkdir(in_folder("set/dogs"), 0700);
    mkdir(in_folder("set/cats"), 0700);
    write_png(in_folder("set/cats/b.png"), PNG_FORMAT_GRAY, 1, grey);
    grey[0] = 1;
    write_png(in_folder("set/cats/a.png"), PNG_FORMAT_GRAY, 1, grey);
    write_plain(in_folder("set/dogs/notes.txt"), "none", 4);
    write_plain(in_folder("set/dogs/.x.png"), "none", 4);
    expect_no_folder(NULL,
                     text_of(text,
                             "%s/set/dogs has no pictures, expected at least 2 (PNG, JPEG or PPM): "
                             "one to train on, one to validate on",
                             folder));
    write_png(in_folder("set/dogs/1.png"), PNG_FORMAT_GRAY, 1, grey);
    expect_no_folder(NULL,
                     text_of(text,
                             "%s/set/dogs has 1 picture, expected at least 2 (PNG, JPEG or PPM): "
                             "one to train on, one to validate on",
                             folder));
    png_image image = {
        .version = PNG_IMAGE_VERSION, .width = X, .height = Y + 1, .format = PNG_FORMAT_GRAY};
    assert_true(png_image_write_to_file(&image, in_folder("set/dogs/2.PNG"), 0, other, 0, NULL));
    heed_error err = {0};
    heed_pictures *p = heed_pictures_folder(in_folder("set"), NULL, NULL, &err);
    assert_non_null(p);
    assert_int_equal(heed_pictures_describe(p).count, 4);
    assert_int_equal(heed_pictures_describe(p).classes, 2);
    assert_string_equal(heed_pictures_class(p, 0), "cats");
    assert_string_equal(heed_pictures_name(p, 1), "b.png");
    assert_int_equal(heed_pictures_label(p, 1), 0);
    assert_int_equal(heed_pictures_label(p, 2), 1);
    uint8_t pixels[Y * X];
    assert_int_equal(heed_pictures_load(p, 0, pixels, &err), HEED_OK);
    assert_memory_equal(pixels, grey, sizeof pixels);
    assert_int_not_equal(heed_pictures_load(p, 3, pixels, &err), HEED_OK);
    assert_string_equal(err.text,
                        text_of(text,
                                "%s/set/dogs/2.PNG is 7 x 6 pixels, expected 7 x 5 as the first "
                                "picture; give a size to scale to",
                                folder));
    heed_pictures_free(p);
    p = heed_pictures_folder(in_folder("set"), &(heed_pictures_options){.height = 3, .width = 3},
                             NULL, NULL);
    assert_non_null(p);
    assert_int_equal(heed_pictures_load(p, 3, pixels, NULL), HEED_OK);
    assert_int_equal(pixels[4], 9);
    heed_pictures_free(p);
    for (int i = sizeof names / sizeof *names - 1; i >= 0; i--)
        remove(in_folder(names[i]));
}

/* One member of a tar. */
static void add_member(gzFile f, const char *name, char type, const void *bytes, size_t n)
{
    char head[512] = {0};
    static const char zeros[512];
    snprintf(head, 100, "%s", name);
    snprintf(head + 124, 12, "%011o", (unsigned)n);
    head[156] = type;
    memset(head + 148, ' ', 8);
    unsigned sum = 0;
    for (int i = 0; i < 512; i++)
        sum += (uint8_t)head[i];
    snprintf(head + 148, 8, "%06o", sum);
    gzwrite(f, head, 512);
    gzwrite(f, bytes, (unsigned)n);
    gzwrite(f, zeros, (unsigned)((512 - n % 512) % 512));
}

static void write_tar(const char *path, size_t drop)
{
    static const char ppm_a[] = "P5 2 1 255\n\1\2", ppm_b[] = "P5 2 1 255\n\3\4";
    static const char zeros[1024];
    char long_name[160];
    memset(long_name, 'n', sizeof long_name);
    strcpy(long_name + 140, "/b.ppm");
    gzFile f = gzopen(path, "wb");
    add_member(f, "photos/", '5', "", 0);
    add_member(f, "././@LongLink", 'L', long_name, strlen(long_name) + 1);
    add_member(f, "cut", '0', ppm_b, sizeof ppm_b - 1);
    add_member(f, "photos/readme.txt", '0', "hello", 5);
    if (!drop)
        add_member(f, "./photos/a.ppm", '0', ppm_a, sizeof ppm_a - 1);
    gzwrite(f, zeros, sizeof zeros);
    gzclose(f);
}

/* Catches: captions that go to another picture, an archive in another order, a picture that is
 * missing and is passed over. */
static void captions(void **state)
{
    static const char lines[] = "a.ppm\tone\ttwo\nb.ppm\tthree\na.ppm\tfour\n";
    uint8_t pixels[2];
    heed_error err = {0};
    char text[700];
    (void)state;
    write_plain(in_folder("c.tsv"), lines, sizeof lines - 1);
    write_tar(in_folder("p.tar.gz"), 0);
    heed_pictures *p =
        heed_pictures_captions(in_folder("c.tsv"), in_folder("p.tar.gz"), NULL, NULL, &err);
    if (!p)
        fail_msg("%s", err.text);
    assert_int_equal(heed_pictures_describe(p).count, 3);
    assert_int_equal(heed_pictures_captions_of(p, 0), 2);
    assert_string_equal(heed_pictures_caption(p, 0, 1), "two");
    assert_string_equal(heed_pictures_caption(p, 1, 0), "three");
    assert_null(heed_pictures_caption(p, 1, 1));
    for (int i = 0; i < 3; i++) {
        assert_int_equal(heed_pictures_load(p, i, pixels, NULL), HEED_OK);
        assert_int_equal(pixels[1], i == 1 ? 4 : 2);
    }
    heed_pictures_free(p);
    write_tar(in_folder("p.tar.gz"), 1);
    assert_null(
        heed_pictures_captions(in_folder("c.tsv"), in_folder("p.tar.gz"), NULL, NULL, &err));
    assert_string_equal(err.text, text_of(text, "%s/c.tsv names a.ppm, which is not in %s/p.tar.gz",
                                          folder, folder));
    err = (heed_error){0};
    assert_null(heed_pictures_captions(in_folder("c.tsv"), folder, NULL, NULL, &err));
    assert_string_equal(err.text,
                        text_of(text, "%s/c.tsv names a.ppm, which is not in %s", folder, folder));
    write_plain(in_folder("c.tsv"), "a.ppm\n", 6);
    err = (heed_error){0};
    assert_null(heed_pictures_captions(in_folder("c.tsv"), folder, NULL, NULL, &err));
    assert_string_equal(err.text,
                        text_of(text, "%s/c.tsv, line 1: expected FILE TAB CAPTION", folder));
    write_plain(in_folder("c.tsv"), lines, sizeof lines - 1);
    write_plain(in_folder("p.tar.gz"), lines, sizeof lines - 1);
    err = (heed_error){0};
    assert_null(
        heed_pictures_captions(in_folder("c.tsv"), in_folder("p.tar.gz"), NULL, NULL, &err));
    assert_string_equal(
        err.text, text_of(text, "%s/p.tar.gz is damaged or truncated, or no tar file", folder));
}

/* ---- batches ---- */

enum { LONG = 40 };

static heed_picture_batches *stream(const heed_pictures *p, double turn)
{
    heed_error err = {0};
    heed_picture_batches *b = heed_picture_batches_new(
        p,
        &(heed_picture_batches_options){.batch = 4,
                                        .seed = 7,
                                        .epochs = 12,
                                        .mean = 0.5,
                                        .deviation = 0.25,
                                        .augment = {turn, turn / 100, turn / 100, turn > 0}},
        NULL, &err);
    if (!b)
        fail_msg("%s", err.text);
    return b;
}

/* Catches: an order or an augmentation that depends on what was read before, a picture twice in an
 * epoch, an epoch like the one before, a position that is off by one. */
static void batches_depend_on_their_position(void **state)
{
    uint8_t file[512];
    heed_picture_batch a, c;
    heed_picture_position at[LONG];
    heed_real first[LONG];
    int64_t examples[LONG];
    heed_error err = {0};
    (void)state;
    write_plain(in_folder("images"), file, idx_images(file));
    heed_pictures *p = heed_pictures_idx(in_folder("images"), NULL, NULL, NULL, NULL);
    assert_non_null(p);
    for (int turned = 0; turned < 2; turned++) {
        heed_picture_batches *b = stream(p, turned * 10), *again = stream(p, turned * 10);
        int n = 0, seen[12] = {0}, others = 0;
        for (; n < LONG; n++) {
            at[n] = heed_picture_batches_tell(b);
            assert_int_equal(heed_picture_batches_next(b, &a, &err), HEED_OK);
            if (a.count == 0)
                break;
            assert_int_equal(a.count, n % 2 ? 2 : 4);
            assert_int_equal(a.epoch, n / 2);
            for (int i = 0; i < a.count; i++)
                seen[a.epoch] |= 1 << a.example[i];
            examples[n] = a.example[0];
            first[n] = a.features[17];
            if (!turned)
                assert_true((double)a.features[3] >
                            (((a.example[0] * Y * X + 3) % 251) / 255.0 - 0.5) / 0.25 - 1e-6);
            others += n >= 2 && examples[n] != examples[n - 2];
        }
        assert_int_equal(n, 24);
        assert_true(others > 10);
        for (int e = 0; e < 12; e++)
            assert_int_equal(seen[e], (1 << COUNT) - 1);
        /* Backwards, so that nothing can come from the batch before. */
        for (int k = n - 1; k >= 0; k -= 3) {
            assert_int_equal(heed_picture_batches_seek(again, at[k], &err), HEED_OK);
            assert_int_equal(heed_picture_batches_next(again, &c, &err), HEED_OK);
            assert_int_equal(c.example[0], examples[k]);
            assert_true(c.features[17] == first[k]);
        }
        assert_int_not_equal(heed_picture_batches_seek(again, (heed_picture_position){3, 2}, &err),
                             HEED_OK);
        assert_string_equal(err.text, "cannot go to epoch 3, batch 2: there are 12 epochs (0: no "
                                      "end) of 2 batches");
        err = (heed_error){0};
        heed_picture_batches_free(b);
        heed_picture_batches_free(again);
    }
    heed_pictures_free(p);
}

/* Catches: a picture that cannot be read and stops nothing, or everything without a word. */
static void a_bad_picture_is_named(void **state)
{
    heed_picture_batch a;
    heed_error err = {0};
    char text[700];
    (void)state;
    write_plain(in_folder("c.tsv"), "a.ppm\tx\nb.ppm\ty\n", 16);
    write_plain(in_folder("a.ppm"), "P5 1 1 255\nx", 12);
    write_plain(in_folder("b.ppm"), "P5 1 1 255\n", 11);
    heed_pictures *p = heed_pictures_captions(in_folder("c.tsv"), folder, NULL, NULL, &err);
    assert_non_null(p);
    heed_picture_batches *b = heed_picture_batches_new(
        p, &(heed_picture_batches_options){.batch = 1, .in_order = true}, NULL, &err);
    assert_int_equal(heed_picture_batches_next(b, &a, &err), HEED_OK);
    for (int i = 0; i < 2; i++) {
        err = (heed_error){0};
        assert_int_not_equal(heed_picture_batches_next(b, &a, &err), HEED_OK);
        assert_string_equal(
            err.text,
            text_of(text, "%s/b.ppm ends too early: 0 bytes of pixels, expected 1", folder));
    }
    assert_int_equal(heed_picture_batches_seek(b, (heed_picture_position){1, 0}, NULL), HEED_OK);
    assert_int_equal(heed_picture_batches_next(b, &a, NULL), HEED_OK);
    assert_int_equal(a.count, 1);
    heed_picture_batches_free(b);
    err = (heed_error){0};
    assert_null(heed_picture_batches_new(p, &(heed_picture_batches_options){.batch = 1, .begin = 3},
                                         NULL, &err));
    assert_non_null(strstr(err.text, "batches of 1 out of pictures 3 to 2 of 2 cannot be made"));
    heed_pictures_free(p);
}

/* Catches: files out of order, a folder's name lost, what is no picture; a broken file that is not
 * noticed when it should be; a picture that is not among those asked for. */
static void lists_and_choices(void **state)
{
    static const char names[] = "0.ppm\tx\n1.ppm\tx\n2.ppm\tx\n3.ppm\tx\n4.ppm\tx\n";
    const char *const *file;
    int64_t count, seen = 0;
    char text[700];
    heed_error err = {0};
    heed_picture_batch a;
    (void)state;
    heed_arena *arena = heed_arena_new(NULL, NULL);
    assert_int_not_equal(heed_pictures_in(folder, arena, &file, &count, &err), HEED_OK);
    assert_string_equal(err.text, text_of(text, "%s has no pictures (PNG, JPEG or PPM)", folder));
    for (int i = 4; i >= 0; i--) {
        char name[] = "0.ppm";
        name[0] = (char)('0' + i);
        snprintf(text, sizeof text, "P5 1 1 255\n%c", 'a' + i);
        write_plain(in_folder(name), text, 12);
    }
    write_plain(in_folder("c.tsv"), names, sizeof names - 1);
    assert_int_equal(heed_pictures_in(folder, arena, &file, &count, NULL), HEED_OK);
    assert_int_equal(count, 5);
    assert_string_equal(file[3], in_folder("3.ppm"));
    assert_int_equal(heed_pictures_in("any/file", arena, &file, &count, NULL), HEED_OK);
    assert_int_equal(count, 1);
    assert_string_equal(file[0], "any/file");

    heed_pictures *p = heed_pictures_captions(in_folder("c.tsv"), folder, NULL, NULL, NULL);
    static const int64_t only[] = {4, 1, 3};
    heed_picture_batches *b =
        heed_picture_batches_new(p,
                                 &(heed_picture_batches_options){
                                     .batch = 2, .only = only, .count = 3, .deviation = 1 / 255.0},
                                 NULL, NULL);
    assert_non_null(b);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(heed_picture_batches_next(b, &a, NULL), HEED_OK);
        for (int64_t k = 0; k < a.count; k++) {
            assert_true(fabs((double)a.features[k] - (double)('a' + a.example[k])) < 1e-3);
            seen |= (int64_t)1 << a.example[k];
        }
    }
    assert_int_equal(seen, 1 << 4 | 1 << 1 | 1 << 3);
    heed_picture_batches_free(b);
    static const int64_t beyond[] = {5};
    assert_null(heed_picture_batches_new(
        p, &(heed_picture_batches_options){.batch = 1, .only = beyond, .count = 1}, NULL, NULL));

    write_plain(in_folder("3.ppm"), "P5 1 1 255\n", 11);
    err = (heed_error){0};
    assert_int_not_equal(heed_pictures_keep(p, &err), HEED_OK);
    assert_non_null(strstr(err.text, "3.ppm ends too early"));
    write_plain(in_folder("3.ppm"), "P5 1 1 255\nz", 12);
    assert_int_equal(heed_pictures_keep(p, NULL), HEED_OK);
    unlink(in_folder("3.ppm"));
    uint8_t byte = 0;
    assert_int_equal(heed_pictures_load(p, 3, &byte, NULL), HEED_OK);
    assert_int_equal(byte, 'z');
    heed_pictures_free(p);
    heed_arena_free(arena);
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, make_folder, remove_folder)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(kinds_of_png),
        TEST(cut_short),
        TEST(kinds_of_jpeg),
        TEST(kinds_of_ppm),
        TEST(scaling),
        TEST(idx_files),
        TEST(folders),
        TEST(captions),
        TEST(batches_depend_on_their_position),
        TEST(a_bad_picture_is_named),
        TEST(lists_and_choices),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
