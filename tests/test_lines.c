/* test_lines.c: reading lines, plain and gzip. */
#include "base/file.h"
#include "base/line_reader.h"

#include <fcntl.h>
#include <heed/data.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <zlib.h>

#include <cmocka.h>

#include "failing_allocator.h"
#include "temp_folder.h"

static void write_gz(const char *path, const char *bytes, size_t n)
{
    gzFile f = gzopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(gzwrite(f, bytes, (unsigned)n), (int)n);
    assert_int_equal(gzclose(f), Z_OK);
}

/* The lines of a file joined by '|', or the error's text. */
static void read_all(const char *path, size_t limit, char *out, size_t room)
{
    heed_error err = {0};
    struct failing c = {0};
    heed_allocator a = failing_allocator(&c);
    heed__lines *r = heed__lines_open(path, limit, &a, &err);
    size_t n = 0;
    out[0] = '\0';
    const char *line;
    size_t length;
    while (r && heed__lines_next(r, &line, &length, &err) == HEED_OK && line) {
        assert_int_equal(strlen(line), length);
        n += (size_t)snprintf(out + n, room - n, "%s|", line);
    }
    if (err.status)
        snprintf(out + n, room - n, "%s", err.text);
    if (r && err.status) { /* and it stays failed */
        heed_error again = {0};
        assert_int_equal(heed__lines_next(r, &line, &length, &again), err.status);
        assert_string_equal(again.text, err.text);
    }
    heed__lines_close(r);
    assert_int_equal(c.held, 0);
}

/* Catches line ends taken for text, a lost last line, and a difference between plain and gzip. */
static void plain_and_gzip(void **state)
{
    (void)state;
    static const struct {
        const char *text, *lines;
    } cases[] = {
        {"", ""},
        {"\n", "|"},
        {"a", "a|"},
        {"a\nb\n", "a|b|"},
        {"a\n\nb", "a||b|"},
        {"a\r\nb\r\n", "a|b|"},
        {"a\rb\r", "a\rb\r|"}, /* a CR alone is text */
        {"\r\n\n", "||"},
        {"\xc3\xa4 \xe2\x82\xac\n", "\xc3\xa4 \xe2\x82\xac|"},
    };
    char out[256];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        write_plain(in_folder("p"), cases[i].text, strlen(cases[i].text));
        read_all(in_folder("p"), 100, out, sizeof out);
        assert_string_equal(out, cases[i].lines);
        write_gz(in_folder("z.gz"), cases[i].text, strlen(cases[i].text));
        read_all(in_folder("z.gz"), 100, out, sizeof out);
        assert_string_equal(out, cases[i].lines);
    }
}

/* Catches errors at the seams of the buffer: lines of every length around and far above it. */
static void of_any_length(void **state)
{
    (void)state;
    static const size_t lengths[] = {65533, 65534,  65535,  65536,   65537, 0,
                                     1,     131071, 131072, 1000000, 5};
    enum { N = sizeof lengths / sizeof *lengths };
    gzFile f = gzopen(in_folder("long.gz"), "wb");
    for (int i = 0; i < N; i++) {
        char *line = malloc(lengths[i] + 1);
        memset(line, 'a' + i, lengths[i]);
        line[lengths[i]] = '\n';
        assert_int_equal(gzwrite(f, line, (unsigned)lengths[i] + 1), lengths[i] + 1);
        free(line);
    }
    assert_int_equal(gzclose(f), Z_OK);
    heed_error err = {0};
    heed__lines *r = heed__lines_open(in_folder("long.gz"), HEED_LINE_LIMIT, NULL, &err);
    const char *line;
    size_t length;
    for (int i = 0; i < N; i++) {
        assert_int_equal(heed__lines_next(r, &line, &length, &err), HEED_OK);
        assert_int_equal(length, lengths[i]);
        assert_int_equal(heed__lines_number(r), i + 1);
        for (size_t j = 0; j < length; j++)
            assert_int_equal(line[j], 'a' + i);
    }
    assert_int_equal(heed__lines_next(r, &line, &length, &err), HEED_OK);
    assert_null(line);
    heed__lines_close(r);
}

/* Catches limits off by one, and NULs that would cut a line short in silence. */
static void refused(void **state)
{
    (void)state;
    char out[512], expected[512];
    const char *path = in_folder("r");
    write_plain(path, "12345\r\n123456\n", 14);
    read_all(path, 5, out, sizeof out);
    snprintf(expected, sizeof expected, "12345|'%s' line 2 is longer than 5 bytes", path);
    assert_string_equal(out, expected);
    read_all(path, 6, out, sizeof out);
    assert_string_equal(out, "12345|123456|");
    write_plain(path, "ok\nab\0c\n", 8);
    read_all(path, 100, out, sizeof out);
    snprintf(expected, sizeof expected, "ok|'%s' line 2: byte 3 is NUL, expected text", path);
    assert_string_equal(out, expected);
    read_all(in_folder("missing"), 100, out, sizeof out);
    assert_non_null(strstr(out, "missing': No such file or directory"));
    read_all(folder, 100, out, sizeof out);
    assert_non_null(strstr(out, "Is a directory"));
}

/* Catches half a corpus taken for a whole one: gzip cut off or damaged at any place. */
static void broken_gzip(void **state)
{
    (void)state;
    char text[4000], out[8192];
    for (size_t i = 0; i < sizeof text; i++)
        text[i] = i % 40 == 39 ? '\n' : (char)('a' + i * i % 23);
    write_gz(in_folder("whole.gz"), text, sizeof text);
    const void *bytes;
    size_t size;
    assert_int_equal(heed__file_map(in_folder("whole.gz"), &bytes, &size, NULL), HEED_OK);
    for (size_t cut = 11; cut < size; cut += 7) { /* the gzip header is 10 bytes */
        write_plain(in_folder("cut.gz"), bytes, cut);
        read_all(in_folder("cut.gz"), 100, out, sizeof out);
        assert_non_null(strstr(out, "cut.gz': the gzip is truncated"));
    }
    char *damaged = malloc(size);
    memcpy(damaged, bytes, size);
    damaged[size - 6] ^= 1; /* in the checksum */
    write_plain(in_folder("bad.gz"), damaged, size);
    read_all(in_folder("bad.gz"), 100, out, sizeof out);
    assert_non_null(strstr(out, "damaged gzip"));
    free(damaged);
    heed__file_unmap(bytes, size);
}

/* Catches a leak or a crash when memory runs out while opening or growing. */
static void memory_runs_out(void **state)
{
    (void)state;
    char *text = malloc(300000);
    memset(text, 'x', 300000);
    write_plain(in_folder("oom"), text, 300000);
    free(text);
    for (int n = 0; n < 6; n++) {
        struct failing c = {.fail_at = n + 1};
        heed_allocator a = failing_allocator(&c);
        heed_error err = {0};
        heed__lines *r = heed__lines_open(in_folder("oom"), HEED_LINE_LIMIT, &a, &err);
        const char *line = NULL;
        size_t length;
        if (r)
            heed__lines_next(r, &line, &length, &err);
        assert_int_equal(err.status, n < 5 ? HEED_MEMORY : HEED_OK);
        heed__lines_close(r);
        assert_int_equal(c.held, 0);
    }
}

/* Catches lines lost between two files, or counted on from one to the next. */
static void of_several_files(void **state)
{
    (void)state;
    char path[4][128];
    const char *paths[4];
    static const char *const names[] = {"a", "b.gz", "c", "missing"};
    for (int i = 0; i < 4; i++) {
        snprintf(path[i], sizeof *path, "%s", in_folder(names[i]));
        paths[i] = path[i];
    }
    write_plain(paths[0], "1\n2", 3);
    write_gz(paths[1], "", 0);
    write_plain(paths[2], "3\n", 2);
    struct failing c = {0};
    heed_allocator a = failing_allocator(&c);
    heed_error err = {0};
    heed_lines *l = heed_lines_open(paths, 4, &a, &err);
    static const char *const lines[] = {"1", "2", "3"};
    static const int file[] = {0, 0, 2}, number[] = {1, 2, 1};
    const char *line, *where;
    size_t length;
    for (int i = 0; i < 3; i++) {
        assert_int_equal(heed_lines_next(l, &line, &length, &err), HEED_OK);
        assert_string_equal(line, lines[i]);
        assert_int_equal(length, 1);
        assert_int_equal(heed_lines_where(l, &where), number[i]);
        assert_string_equal(where, paths[file[i]]);
    }
    assert_int_equal(heed_lines_next(l, &line, &length, &err), HEED_IO);
    assert_non_null(strstr(err.text, "missing': No such file or directory"));
    heed_lines_free(l);
    l = heed_lines_open(paths, 0, &a, &err);
    assert_int_equal(heed_lines_next(l, &line, &length, NULL), HEED_OK);
    assert_null(line);
    heed_lines_free(l);
    assert_int_equal(c.held, 0);
}

/* What "-" gives while fd is standard input; closes fd. */
static void read_standard_input(int fd, char *out, size_t room)
{
    int before = dup(STDIN_FILENO);
    assert_int_equal(dup2(fd, STDIN_FILENO), STDIN_FILENO);
    close(fd);
    read_all("-", HEED_LINE_LIMIT, out, room);
    if (before >= 0)
        dup2(before, STDIN_FILENO);
    close(before >= 0 ? before : STDIN_FILENO);
}

/* Catches standard input opened by its name, which a socket cannot be, and a file read from its
 * beginning where somebody has read some of it. */
static void of_standard_input(void **state)
{
    (void)state;
    char got[64];
    int pair[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    assert_int_equal(write(pair[1], "1\n2\n", 4), 4);
    close(pair[1]);
    read_standard_input(pair[0], got, sizeof got);
    assert_string_equal(got, "1|2|");
    write_plain(in_folder("half"), "1\n2\n3\n", 6);
    int fd = open(in_folder("half"), O_RDONLY);
    assert_int_equal(lseek(fd, 2, SEEK_SET), 2);
    read_standard_input(fd, got, sizeof got);
    assert_string_equal(got, "2|3|");
}

#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, make_folder, remove_folder)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_FOLDER(plain_and_gzip),    IN_FOLDER(of_any_length),    IN_FOLDER(refused),
        IN_FOLDER(broken_gzip),       IN_FOLDER(of_several_files), IN_FOLDER(memory_runs_out),
        IN_FOLDER(of_standard_input),
    };
    return cmocka_run_group_tests_name("lines", tests, NULL, NULL);
}
