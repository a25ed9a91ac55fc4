/* test_tensorboard.c: event files as TensorBoard reads them: records with their checksums, and the
 * numbers inside. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "train/trainer.h"
#include "train_case.h"
#include <dirent.h>

/* By table, unlike the writer. */
static uint32_t crc32c(const unsigned char *p, size_t n)
{
    uint32_t table[256], crc = 0xffffffffu;
    for (uint32_t i = 0; i < 256; i++) {
        table[i] = i;
        for (int k = 0; k < 8; k++)
            table[i] = table[i] & 1 ? table[i] >> 1 ^ 0x82f63b78u : table[i] >> 1;
    }
    while (n--)
        crc = table[(crc ^ *p++) & 0xff] ^ crc >> 8;
    return crc ^ 0xffffffffu;
}

static uint32_t u32(const unsigned char *p)
{
    return p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

/* The record's mask undone. */
static uint32_t unmasked(uint32_t m)
{
    uint32_t r = m - 0xa282ead8u;
    return r << 15 | r >> 17;
}

/* The events file in the room, with its size. */
static unsigned char *events(size_t *size)
{
    char path[512] = "";
    DIR *d = opendir(room);
    for (struct dirent *e; (e = readdir(d));)
        if (strncmp(e->d_name, "events.out.tfevents.", 20) == 0)
            snprintf(path, sizeof path, "%s/%s", room, e->d_name);
    closedir(d);
    return (unsigned char *)bytes_of(path, size);
}

/* Checks a record and gives its data. */
static const unsigned char *record(const unsigned char **at, const unsigned char *end,
                                   size_t *length)
{
    const unsigned char *p = *at;
    assert_true(end - p >= 16);
    *length = u32(p);
    assert_int_equal(u32(p + 4), 0);
    assert_int_equal(unmasked(u32(p + 8)), crc32c(p, 8));
    assert_true((size_t)(end - p) >= 16 + *length);
    assert_int_equal(unmasked(u32(p + 12 + *length)), crc32c(p + 12, *length));
    *at = p + 16 + *length;
    return p + 12;
}

/* Catches a checksum, a length or a field that TensorBoard would not take. */
static void test_records(void **state)
{
    (void)state;
    heed_error err = {0};
    size_t size, n;
    /* The check value that everybody gives for this polynomial. */
    assert_int_equal(crc32c((const unsigned char *)"123456789", 9), 0xe3069283u);
    heed__events *e = heed__events_open(room, NULL, &err);
    assert_non_null(e);
    assert_int_equal(heed__events_scalar(e, "train/loss", 300, 1.5, &err), HEED_OK);
    heed__events_close(e);
    unsigned char *bytes = events(&size);
    const unsigned char *at = bytes, *end = bytes + size;
    const unsigned char *version = record(&at, end, &n);
    assert_int_equal(n, 9 + 2 + 13);
    assert_int_equal(version[0], 1 << 3 | 1); /* wall time, eight bytes */
    assert_memory_equal(version + 9,
                        "\x1a\x0d"
                        "brain.Event:2",
                        15);
    const unsigned char *scalar = record(&at, end, &n);
    /* step 300 = 0xac 0x02; summary of one value: tag of ten letters, 1.5f = 0x3fc00000 */
    static const unsigned char expected[] = "\x10\xac\x02"
                                            "\x2a\x13\x0a\x11\x0a\x0a"
                                            "train/loss"
                                            "\x15\x00\x00\xc0\x3f";
    assert_int_equal(n, 9 + sizeof expected - 1);
    assert_memory_equal(scalar + 9, expected, sizeof expected - 1);
    assert_ptr_equal(at, end);
    free(bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_records, make_room, clear_room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
