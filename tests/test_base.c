/* test_base.c: memory, arenas, errors, text, files and the clock. */
#include "base/error.h"
#include "base/file.h"
#include "base/folder.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/string.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "failing_allocator.h"
#include "temp_folder.h"

#if defined(__SANITIZE_ADDRESS__)
#define ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define ASAN 1
#endif
#endif
#ifdef ASAN
#include <sanitizer/asan_interface.h>
#endif

static void assert_content(const char *path, const char *expected)
{
    const void *bytes;
    size_t size;
    heed_error err = {0};
    assert_int_equal(heed__file_map(path, &bytes, &size, &err), HEED_OK);
    assert_int_equal(size, strlen(expected));
    assert_memory_equal(bytes, expected, size);
    heed__file_unmap(bytes, size);
}

/* ---- sizes, memory, errors ---- */

/* Catches a product or sum of sizes that wraps round and looks small. */
static void test_sizes_are_checked(void **state)
{
    (void)state;
    int64_t p;
    size_t s;
    assert_true(heed__multiply(3037000499, 3037000499, &p));
    assert_int_equal(p, 3037000499 * 3037000499);
    assert_false(heed__multiply(3037000500, 3037000500, &p));
    assert_false(heed__multiply(INT64_MAX, 2, &p));
    assert_false(heed__multiply(-1, 2, &p));
    assert_true(heed__multiply(0, INT64_MAX, &p));
    assert_true(heed__add_sizes(INT64_MAX - 1, 1, &s));
    assert_false(heed__add_sizes(INT64_MAX, 1, &s));
    assert_false(heed__add_sizes(SIZE_MAX, 1, &s));
    heed_allocator a = heed__allocator_or_default(NULL);
    assert_null(heed__allocate(&a, SIZE_MAX / 2, 3));
    assert_null(heed__allocate(&a, 1, SIZE_MAX - 10));
    assert_null(heed__allocate_zeroed(&a, (size_t)1 << 40, (size_t)1 << 40));
}

/* Catches memory that vector loads cannot use, and zeroed memory that is not zero. */
static void test_memory_is_aligned(void **state)
{
    (void)state;
    heed_allocator a = heed__allocator_or_default(NULL);
    for (size_t n = 0; n < 300; n += 37) {
        unsigned char *p = heed__allocate_zeroed(&a, n, 1);
        assert_non_null(p);
        assert_int_equal((uintptr_t)p % 64, 0);
        for (size_t i = 0; i < n; i++)
            assert_int_equal(p[i], 0);
        heed__release(&a, p, n, 1);
    }
}

/* Catches a later failure that hides the first, and a text longer than its room. */
static void test_first_error_stays(void **state)
{
    (void)state;
    heed_error err = {0};
    assert_int_equal(heed__fail(&err, HEED_FORMAT, "first %d", 1), HEED_FORMAT);
    assert_int_equal(heed__fail(&err, HEED_IO, "second"), HEED_IO);
    assert_int_equal(err.status, HEED_FORMAT);
    assert_string_equal(err.text, "first 1");
    assert_int_equal(heed__fail(NULL, HEED_IO, "nobody listens"), HEED_IO);
    heed_error lengthy = {0};
    heed__fail(&lengthy, HEED_IO, "%0600d", 7);
    assert_int_equal(strlen(lengthy.text), sizeof lengthy.text - 1);
    assert_string_equal(heed_status_text(HEED_OK), "ok");
    assert_string_equal(heed_status_text(HEED_STATE), "called in the wrong state");
    assert_string_equal(heed_status_text((heed_status)99), "unknown status");
}

/* ---- arena ---- */

/* Catches unaligned, overlapping or moving allocations: each is filled and looked at in the end. */
static void test_arena_never_moves(void **state)
{
    (void)state;
    enum { N = 500 };
    unsigned char *p[N];
    heed_arena *arena = heed_arena_new(NULL, NULL);
    assert_non_null(arena);
    for (int i = 0; i < N; i++) {
        size_t n = (size_t)(i * 7919 % 3001);
        p[i] = heed_arena_allocate(arena, n);
        assert_non_null(p[i]);
        assert_int_equal((uintptr_t)p[i] % 64, 0);
        memset(p[i], i % 251, n);
    }
    for (int i = 0; i < N; i++)
        for (size_t j = 0; j < (size_t)(i * 7919 % 3001); j++)
            assert_int_equal(p[i][j], i % 251);
    assert_true(heed_arena_used(arena) <= heed_arena_held(arena));
    assert_null(heed_arena_allocate(arena, SIZE_MAX));
    assert_null(heed_arena_allocate(arena, SIZE_MAX - 63));
    heed_arena_free(arena);
    heed_arena_free(NULL);
}

/* Catches a reset that gives memory back or asks for more: the second round must be the first. */
static void test_arena_reset_reuses(void **state)
{
    (void)state;
    struct failing c = {0};
    heed_allocator a = failing_allocator(&c);
    heed_arena *arena = heed_arena_new(&a, NULL);
    void *first = NULL;
    int calls = 0;
    for (int round = 0; round < 3; round++) {
        void *p = heed_arena_allocate(arena, 1000);
        for (int i = 0; i < 100; i++)
            assert_non_null(heed_arena_allocate(arena, 5000));
        if (round == 0) {
            first = p;
            calls = c.calls;
        }
        assert_ptr_equal(p, first);
        assert_int_equal(c.calls, calls);
        heed_arena_reset(arena);
        assert_int_equal(heed_arena_used(arena), 0);
    }
    heed_arena_free(arena);
    assert_int_equal(c.held, 0);
}

/* Catches a leak or a crash when the n-th allocation fails, and an arena unusable after it. */
static void test_arena_out_of_memory(void **state)
{
    (void)state;
    for (int n = 0; n < 6; n++) {
        struct failing c = {.fail_at = n + 1};
        heed_allocator a = failing_allocator(&c);
        heed_error err = {0};
        heed_arena *arena = heed_arena_new(&a, &err);
        assert_true(arena || err.status == HEED_MEMORY);
        int failures = 0;
        for (int i = 0; arena && i < 50; i++)
            failures += heed_arena_allocate(arena, 40000) == NULL;
        assert_true(failures <= 1);
        heed_arena_free(arena);
        assert_int_equal(c.held, 0);
    }
}

#ifdef ASAN
/* Catches an arena whose memory can be read after reset, or past its end, unseen by ASan. */
static void test_arena_is_poisoned(void **state)
{
    (void)state;
    heed_arena *arena = heed_arena_new(NULL, NULL);
    char *p = heed_arena_allocate(arena, 64);
    assert_int_equal(__asan_address_is_poisoned(p), 0);
    assert_int_equal(__asan_address_is_poisoned(p + 63), 0);
    assert_int_equal(__asan_address_is_poisoned(p + 64), 1);
    heed_arena_reset(arena);
    assert_int_equal(__asan_address_is_poisoned(p), 1);
    assert_ptr_equal(heed_arena_allocate(arena, 10), p);
    assert_int_equal(__asan_address_is_poisoned(p + 9), 0);
    assert_int_equal(__asan_address_is_poisoned(p + 10), 1);
    heed_arena_free(arena);
}
#endif

/* ---- text ---- */

/* Catches lost or doubled bytes where the text grows, and a missing NUL. */
static void test_string_grows(void **state)
{
    (void)state;
    struct failing c = {0};
    heed_allocator a = failing_allocator(&c);
    heed__string s;
    heed__string_init(&s, &a);
    assert_string_equal(heed__string_text(&s), "");
    for (int i = 0; i < 1000; i++)
        heed__string_format(&s, "%d,", i % 10);
    heed__string_add_bytes(&s, "ab\0c", 4);
    heed__string_fill(&s, '-', 300);
    assert_int_equal(heed__string_status(&s, NULL), HEED_OK);
    assert_int_equal(s.length, 2304);
    for (int i = 0; i < 1000; i++)
        assert_int_equal(s.text[2 * i], '0' + i % 10);
    assert_memory_equal(s.text + 2000, "ab\0c--", 6);
    assert_int_equal(s.text[s.length], '\0');
    heed__string_clear(&s);
    assert_string_equal(heed__string_text(&s), "");
    heed__string_deinit(&s);
    assert_int_equal(c.held, 0);
}

/* Catches a text that goes on after memory ran out, as if nothing had been lost. */
static void test_string_failure_sticks(void **state)
{
    (void)state;
    struct failing c = {.fail_at = 2};
    heed_allocator a = failing_allocator(&c);
    heed_error err = {0};
    heed__string s;
    heed__string_init(&s, &a);
    heed__string_add(&s, "kept");
    heed__string_fill(&s, 'x', 1000); /* the second allocation: fails */
    heed__string_add(&s, "lost");
    assert_int_equal(heed__string_status(&s, &err), HEED_MEMORY);
    assert_string_equal(heed__string_text(&s), "kept");
    heed__string_deinit(&s);
    assert_int_equal(c.held, 0);
}

/* ---- atomic files and mapping ---- */

/* Catches bytes lost between buffer and file, for sizes around the buffer's. */
static void test_atomic_write(void **state)
{
    (void)state;
    enum { N = 200000 };
    char *bytes = malloc(N);
    for (int i = 0; i < N; i++)
        bytes[i] = (char)(i * 31 + i / 256);
    const char *path = in_folder("a");
    size_t parts[] = {1, 65535, 1, 65537, 0, 3, 65536, 3387};
    heed_error err = {0};
    heed__atomic_file *f = heed__atomic_open(path, NULL, &err);
    assert_non_null(f);
    assert_int_equal(access(path, F_OK), -1); /* not there before commit */
    size_t at = 0;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; at += parts[i++])
        assert_int_equal(heed__atomic_write(f, bytes + at, parts[i], &err), HEED_OK);
    assert_int_equal(heed__atomic_commit(f, &err), HEED_OK);
    const void *map;
    size_t size;
    assert_int_equal(heed__file_map(path, &map, &size, &err), HEED_OK);
    assert_int_equal(size, at);
    assert_memory_equal(map, bytes, at);
    heed__file_unmap(map, size);
    assert_int_equal(files_in(folder), 1);
    free(bytes);
}

/* Catches an abandoned or failed write that harms the old file, leaves a temporary one or gives the
 * file another name.  The failure is real: the process may not write files beyond 64 kB. */
static void test_atomic_keeps_the_old_file(void **state)
{
    (void)state;
    const char *path = in_folder("old");
    write_plain(path, "old", 3);
    heed_error err = {0};
    heed__atomic_file *f = heed__atomic_open(path, NULL, &err);
    assert_int_equal(heed__atomic_write(f, "new", 3, &err), HEED_OK);
    heed__atomic_abandon(f);
    heed__atomic_abandon(NULL);
    assert_content(path, "old");

    struct rlimit before, small = {1 << 16, RLIM_INFINITY};
    getrlimit(RLIMIT_FSIZE, &before);
    small.rlim_max = before.rlim_max;
    signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &small);
    char *much = calloc(1, 1 << 20);
    f = heed__atomic_open(in_folder("./old"), NULL, &err);
    heed_status wrote = heed__atomic_write(f, much, 1 << 20, &err);
    heed_error later = {0};
    heed_status committed = heed__atomic_commit(f, &later);
    setrlimit(RLIMIT_FSIZE, &before);
    free(much);
    assert_int_equal(wrote, HEED_IO);
    assert_int_equal(committed, HEED_IO);
    assert_non_null(strstr(err.text, "/./old': File too large"));
    assert_content(path, "old");
    assert_int_equal(files_in(folder), 1);
}

/* Catches a rename over a link or a device, and permissions lost by replacing a file. */
static void test_atomic_looks_before_it_renames(void **state)
{
    (void)state;
    const char *target = in_folder("target"), *link = in_folder("link");
    write_plain(target, "1", 1);
    assert_int_equal(chmod(target, 0640), 0);
    assert_int_equal(symlink("target", link), 0);
    heed_error err = {0};
    heed__atomic_file *f = heed__atomic_open(link, NULL, &err);
    assert_non_null(f);
    assert_int_equal(heed__atomic_write(f, "22", 2, &err), HEED_OK);
    assert_int_equal(heed__atomic_commit(f, &err), HEED_OK);
    struct stat st;
    assert_int_equal(lstat(link, &st), 0);
    assert_true(S_ISLNK(st.st_mode));
    assert_content(target, "22");
    assert_int_equal(stat(target, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0640);

    assert_null(heed__atomic_open("/dev/null", NULL, &err));
    assert_string_equal(err.text, "cannot write '/dev/null': not a regular file");
    heed_error directory = {0};
    assert_null(heed__atomic_open(folder, NULL, &directory));
    assert_non_null(strstr(directory.text, "Is a directory"));
    heed_error nowhere = {0};
    assert_null(heed__atomic_open(in_folder("no/such"), NULL, &nowhere));
    assert_non_null(strstr(nowhere.text, "No such file or directory"));
    assert_int_equal(nowhere.status, HEED_IO);
}

/* Catches mapping what is no file, waiting for ever for a pipe's writer, and an empty file taken
 * for an error. */
static void test_map_special_cases(void **state)
{
    (void)state;
    const void *bytes = NULL;
    size_t size = 1;
    heed_error err = {0};
    write_plain(in_folder("empty"), "", 0);
    assert_int_equal(heed__file_map(in_folder("empty"), &bytes, &size, &err), HEED_OK);
    assert_non_null(bytes);
    assert_int_equal(size, 0);
    heed__file_unmap(bytes, size);
    assert_int_equal(heed__file_map(in_folder("missing"), &bytes, &size, &err), HEED_IO);
    assert_non_null(strstr(err.text, "missing': No such file or directory"));
    heed_error other = {0};
    assert_int_equal(heed__file_map(folder, &bytes, &size, &other), HEED_IO);
    heed_error device = {0};
    assert_int_equal(heed__file_map("/dev/zero", &bytes, &size, &device), HEED_IO);
    assert_string_equal(device.text, "cannot read '/dev/zero': not a regular file");
    heed_error pipe_error = {0};
    assert_int_equal(mkfifo(in_folder("pipe"), 0600), 0);
    assert_int_equal(heed__file_map(in_folder("pipe"), &bytes, &size, &pipe_error), HEED_IO);
    assert_int_equal(heed__file_map(NULL, &bytes, &size, NULL), HEED_ARGUMENT);
    assert_null(heed__atomic_open(NULL, NULL, NULL));
}

/* Catches a save or copy that loses bytes, and a failure without status where no text is wanted. */
static void test_save_and_copy(void **state)
{
    (void)state;
    heed_error err = {0};
    char from[600], to[600];
    snprintf(from, sizeof from, "%s", in_folder("from"));
    snprintf(to, sizeof to, "%s", in_folder("to"));
    assert_int_equal(heed_text_save(from, "one\ntwo\n", &err), HEED_OK);
    assert_content(from, "one\ntwo\n");
    assert_int_equal(heed__file_copy(from, to, NULL, &err), HEED_OK);
    assert_content(to, "one\ntwo\n");
    assert_int_equal(files_in(folder), 2);
    assert_int_equal(heed_text_save(in_folder("no/such"), "", NULL), HEED_IO);
    assert_int_equal(heed__file_copy(in_folder("none"), to, NULL, NULL), HEED_IO);
    assert_content(to, "one\ntwo\n");
}

/* Catches a path that is cut off, doubled slashes and a file in no directory. */
static void test_paths(void **state)
{
    (void)state;
    heed__pathname path;
    heed_error err = {0}, empty = {0};
    char *longest = malloc(PATH_MAX);
    memset(longest, 'x', PATH_MAX - 2);
    longest[PATH_MAX - 2] = '\0';
    assert_int_equal(heed__pathname_in(path, "a/b", "c", &err), HEED_OK);
    assert_string_equal(path, "a/b/c");
    assert_int_equal(heed__pathname_in(path, "/", "c", &err), HEED_OK);
    assert_string_equal(path, "/c");
    assert_int_equal(heed__pathname_in(path, longest, "", &err), HEED_OK);
    assert_int_equal(heed__pathname_in(path, longest, "c", &err), HEED_ARGUMENT);
    assert_non_null(strstr(err.text, "xxx...' is too long"));
    assert_int_equal(heed__pathname_in(path, "", "c", &empty), HEED_ARGUMENT);
    assert_string_equal(empty.text, "the name of a directory is empty");
    assert_int_equal(heed__pathname_in(path, NULL, "c", NULL), HEED_ARGUMENT);
    free(longest);
}

/* Catches a folder that is taken for its own parent because of the slash behind it. */
static void test_split_paths(void **state)
{
    (void)state;
    static const char *const cases[][3] = {
        {"m", ".", "m"},  {"m//", ".", "m"},  {"a/m", "a", "m"},  {"a//b/m/", "a//b", "m"},
        {"/m", "/", "m"}, {"//m/", "/", "m"}, {"../m", "..", "m"}};
    heed__pathname parent, name;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(heed__pathname_split(cases[i][0], parent, name, NULL), HEED_OK);
        assert_string_equal(parent, cases[i][1]);
        assert_string_equal(name, cases[i][2]);
    }
    assert_int_equal(heed__pathname_split("a/b", parent, NULL, NULL), HEED_OK);
    assert_string_equal(parent, "a");
}

/* Catches a character that would end a JSON string, or UTF-8 that is changed. */
static void test_json_strings(void **state)
{
    (void)state;
    heed__string s;
    heed__string_init(&s, NULL);
    heed__json_quote(&s, "a\"b\\c\n\x01\x7F\xC3\xA9");
    assert_string_equal(heed__string_text(&s), "\"a\\\"b\\\\c\\u000a\\u0001\x7F\xC3\xA9\"");
    heed__string_deinit(&s);
}

/* Catches a clock of the wrong unit, or one that goes back. */
static void test_clock(void **state)
{
    (void)state;
    double begin = heed_clock_seconds();
    usleep(20000);
    double passed = heed_clock_seconds() - begin;
    assert_true(passed >= 0.019 && passed < 10);
}

#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, make_folder, remove_folder)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sizes_are_checked),
        cmocka_unit_test(test_memory_is_aligned),
        cmocka_unit_test(test_first_error_stays),
        cmocka_unit_test(test_arena_never_moves),
        cmocka_unit_test(test_arena_reset_reuses),
        cmocka_unit_test(test_arena_out_of_memory),
#ifdef ASAN
        cmocka_unit_test(test_arena_is_poisoned),
#endif
        cmocka_unit_test(test_string_grows),
        cmocka_unit_test(test_string_failure_sticks),
        IN_FOLDER(test_atomic_write),
        IN_FOLDER(test_atomic_keeps_the_old_file),
        IN_FOLDER(test_atomic_looks_before_it_renames),
        IN_FOLDER(test_map_special_cases),
        IN_FOLDER(test_save_and_copy),
        cmocka_unit_test(test_paths),
        cmocka_unit_test(test_split_paths),
        cmocka_unit_test(test_json_strings),
        cmocka_unit_test(test_clock),
    };
    return cmocka_run_group_tests_name("base", tests, NULL, NULL);
}
