/* test_safetensors_edges.c: what seldom happens to a file of tensors: no memory, for jansson or for
 * us, in the middle of a large header; scalars; names that do not fit a message; arguments that are
 * none.  Whatever fails, no file appears, and the one that was there stays. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "failing_allocator.h"
#include "temp_folder.h"
#include <heed/heed.h>
#include <jansson.h>
#include <math.h>

/* ---- a large file ---- */

enum { TENSORS = 1500 };

static heed_status write_large(const char *path, const heed_allocator *a, heed_error *err)
{
    static const float numbers[2] = {1, 2};
    heed_safetensors_writer *w = heed_safetensors_writer_new(a, err);
    char name[64];
    for (int i = 0; w && !err->status && i < TENSORS; i++) {
        heed_stored s = {.name = name,
                         .dtype = HEED_F32,
                         .rank = 1,
                         .dim = {2},
                         .data = numbers,
                         .bytes = sizeof numbers};
        snprintf(name, sizeof name, "a tensor with a long name, number %d", i);
        heed_safetensors_writer_add(w, &s, err);
        if (i % 10 == 0 && !err->status)
            heed_safetensors_writer_metadata(w, name, "some text that is kept", err);
    }
    if (w && !err->status)
        heed_safetensors_writer_write(w, path, err);
    heed_safetensors_writer_free(w);
    return err->status;
}

static heed_status read_large(const char *path, const heed_allocator *a, heed_error *err)
{
    heed_safetensors *f = heed_safetensors_open(path, a, err);
    if (f) {
        assert_int_equal(heed_safetensors_count(f), TENSORS);
        assert_non_null(heed_safetensors_metadata(f, "a tensor with a long name, number 10"));
    }
    heed_safetensors_close(f);
    return err->status;
}

/* Catches a leak, a crash, or a half-written file, when an allocation of a large header fails. */
static void our_memory(void **state)
{
    (void)state;
    heed_error none = {0};
    for (int reading = 0; reading < 2; reading++) {
        heed_status status = HEED_MEMORY;
        int failures = 0;
        for (int n = 1; status; n++, failures++) {
            struct failing f = {.fail_at = n};
            heed_allocator a = failing_allocator(&f);
            heed_error err = {0};
            status = reading ? read_large(in_folder("large"), &a, &err)
                             : write_large(in_folder("large"), &a, &err);
            assert_true(status == HEED_OK || status == HEED_MEMORY);
            assert_int_equal(f.held, 0);
            if (status && !reading)
                assert_int_equal(files_in(folder), 0);
        }
        assert_true(failures > 4);
        assert_int_equal(read_large(in_folder("large"), NULL, &none), HEED_OK);
    }
}

/* ---- jansson's memory ---- */

static long json_calls, json_fail_at;

static void *json_allocate(size_t size)
{
    return ++json_calls == json_fail_at ? NULL : malloc(size);
}

static heed_status with_json_failing(long n, heed_status (*work)(heed_error *), heed_error *err)
{
    json_malloc_t allocate;
    json_free_t release;
    json_get_alloc_funcs(&allocate, &release);
    json_calls = 0;
    json_fail_at = n;
    json_set_alloc_funcs(json_allocate, free);
    heed_status status = work(err);
    json_set_alloc_funcs(allocate, release);
    return status;
}

static heed_status write_few(heed_error *err)
{
    static const float numbers[6] = {1, 2, 3, 4, 5, 6};
    static const char *const names[] = {"one", "two", "three"};
    heed_safetensors_writer *w = heed_safetensors_writer_new(NULL, err);
    if (w)
        heed_safetensors_writer_metadata(w, "key", "value", err);
    for (int i = 0; w && i < 3; i++) {
        heed_stored s = {.name = names[i],
                         .dtype = HEED_F32,
                         .rank = 2,
                         .dim = {2, i + 1},
                         .data = numbers,
                         .bytes = (size_t)(2 * (i + 1)) * sizeof *numbers};
        heed_safetensors_writer_add(w, &s, err);
    }
    if (!err->status)
        heed_safetensors_writer_write(w, in_folder("few"), err);
    heed_safetensors_writer_free(w);
    return err->status;
}

static heed_status read_few(heed_error *err)
{
    heed_safetensors *f = heed_safetensors_open(in_folder("few"), NULL, err);
    if (f)
        assert_true(heed_safetensors_find(f, "one") && heed_safetensors_find(f, "two") &&
                    heed_safetensors_find(f, "three") && heed_safetensors_metadata(f, "key"));
    heed_safetensors_close(f);
    return err->status;
}

/* Catches a header that lacks what jansson had no memory for, written or read as if it were
 * whole. */
static void json_memory(void **state)
{
    (void)state;
    int told[2] = {0};
    for (long n = 1;; n++) { /* writing */
        heed_error err = {0}, none = {0};
        heed_status status = with_json_failing(n, write_few, &err);
        assert_true(status == HEED_OK || status == HEED_MEMORY);
        assert_int_equal(files_in(folder), status == HEED_OK);
        assert_true(status || read_few(&none) == HEED_OK);
        unlink(in_folder("few"));
        told[0] += status == HEED_MEMORY;
        if (json_calls < n)
            break;
    }
    heed_error err = {0};
    assert_int_equal(write_few(&err), HEED_OK);
    for (long n = 1;; n++) { /* reading; jansson takes some of it for a wrong text */
        heed_error why = {0};
        heed_status status = with_json_failing(n, read_few, &why);
        assert_true(status == HEED_OK || status == HEED_MEMORY || status == HEED_FORMAT);
        told[1] += status != HEED_OK;
        if (json_calls < n)
            break;
    }
    print_message("%d and %d failures told\n", told[0], told[1]);
    assert_true(told[0] > 20 && told[1] > 20);
}

/* ---- headers ---- */

/* Bytes of a file with this header and 16 bytes of data. */
static heed_status open_header(const char *header, heed_error *err)
{
    static char bytes[4096];
    const size_t n = strlen(header);
    memset(bytes, 0, sizeof bytes);
    bytes[0] = (char)(n & 0xFF);
    bytes[1] = (char)(n >> 8);
    memcpy(bytes + 8, header, n);
    heed_safetensors *f = heed_safetensors_open_memory(bytes, 8 + n + 16, NULL, NULL, err);
    heed_safetensors_close(f);
    return err->status;
}

/* Catches a field of the wrong kind that is taken for one of the right kind. */
static void wrong_fields(void **state)
{
    (void)state;
#define ENTRY(dtype, shape, offsets)                                                               \
    "{\"x\":{\"dtype\":" dtype ",\"shape\":" shape ",\"data_offsets\":" offsets "}}"
    static const char *const wrong[] = {
        ENTRY("\"F32\"", "[4]", "[0]"),
        ENTRY("\"F32\"", "[4]", "[0,16,16]"),
        ENTRY("\"F32\"", "[4]", "[\"0\",16]"),
        ENTRY("\"F32\"", "[4]", "[0,\"16\"]"),
        ENTRY("\"F32\"", "[4]", "[0.0,16]"),
        ENTRY("\"F32\"", "[4]", "16"),
        ENTRY("\"F32\"", "[4]", "null"),
        ENTRY("\"F32\"", "4", "[0,16]"),
        ENTRY("\"F32\"", "null", "[0,16]"),
        ENTRY("\"F32\"", "[4.0]", "[0,16]"),
        ENTRY("\"F32\"", "[-4]", "[0,16]"),
        ENTRY("\"F32\"", "[\"4\"]", "[0,16]"),
        ENTRY("7", "[4]", "[0,16]"),
        ENTRY("\"F31\"", "[4]", "[0,16]"),
        "{\"x\":7}",
        "{\"x\":null}",
        "{\"__metadata__\":7}",
        "{\"__metadata__\":{\"a\":7}}",
    };
    heed_error good = {0};
    assert_int_equal(open_header(ENTRY("\"F32\"", "[4]", "[0,16]"), &good), HEED_OK);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        heed_error err = {0};
        if (open_header(wrong[i], &err) != HEED_FORMAT)
            fail_msg("%s: '%s'", wrong[i], err.text);
        assert_non_null(strstr(err.text, "cannot load 'memory': "));
    }
}

/* Catches a message with half a character, or with what a terminal would obey. */
static void long_names(void **state)
{
    (void)state;
    for (int shift = 0; shift < 3; shift++) {
        char header[1024], name[512] = "";
        heed_error err = {0};
        for (int i = 0; i < shift; i++)
            strcat(name, "x");
        for (int i = 0; i < 120; i++)
            strcat(name, "\xe2\x82\xac"); /* a euro sign */
        snprintf(header, sizeof header, "{\"%s\":{\"dtype\":\"F\x7f\"}}", name);
        assert_int_equal(open_header(header, &err), HEED_FORMAT);
        assert_true(heed_utf8_valid(err.text, strlen(err.text), NULL));
        assert_non_null(strstr(err.text, "..."));
        assert_null(strchr(err.text, 0x7f));
    }
}

/* ---- arguments ---- */

static void arguments(void **state)
{
    (void)state;
    static const float one = 1;
    const heed_stored good = {
        .name = "x", .dtype = HEED_F32, .rank = 1, .dim = {1}, .data = &one, .bytes = 4};
    heed_error err = {0};
    heed_safetensors_writer *w = heed_safetensors_writer_new(NULL, &err);
    assert_non_null(w);
    assert_int_equal(heed_safetensors_writer_metadata(w, NULL, "v", NULL), HEED_ARGUMENT);
    assert_int_equal(heed_safetensors_writer_metadata(w, "k", NULL, NULL), HEED_ARGUMENT);
    assert_int_equal(heed_safetensors_writer_metadata(w, "\xff", "v", NULL), HEED_ARGUMENT);
    assert_int_equal(heed_safetensors_writer_metadata(w, "k", "\xff", NULL), HEED_ARGUMENT);
    assert_int_equal(heed_safetensors_writer_add(w, NULL, NULL), HEED_ARGUMENT);
    heed_stored wrong[] = {good, good, good, good, good, good};
    wrong[0].name = NULL;
    wrong[1].dtype = (heed_dtype)99;
    wrong[2].rank = -1;
    wrong[3].rank = HEED_STORED_MAX_RANK + 1;
    wrong[4].bytes = 5;
    wrong[5].data = NULL;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_int_equal(heed_safetensors_writer_add(w, &wrong[i], NULL), HEED_ARGUMENT);
    assert_int_equal(heed_safetensors_writer_add(w, &good, &err), HEED_OK);
    assert_int_equal(heed_safetensors_writer_write(w, in_folder("no/where"), NULL), HEED_IO);
    heed_stored other = good;
    other.name = "\xff";
    assert_int_equal(heed_safetensors_writer_add(w, &other, &err), HEED_OK);
    assert_int_equal(heed_safetensors_writer_write(w, in_folder("x"), NULL), HEED_ARGUMENT);
    heed_safetensors_writer_free(w);

    /* Together larger than memory can be addressed. */
    w = heed_safetensors_writer_new(NULL, &err);
    heed_stored huge = good;
    huge.dtype = HEED_I8;
    huge.dim[0] = INT64_MAX;
    huge.bytes = (size_t)INT64_MAX;
    static const char *const names[] = {"a", "b", "c"};
    for (int i = 0; i < 3; i++) {
        huge.name = names[i];
        assert_int_equal(heed_safetensors_writer_add(w, &huge, &err), HEED_OK);
    }
    assert_int_equal(heed_safetensors_writer_write(w, in_folder("x"), &err), HEED_ARGUMENT);
    heed_safetensors_writer_free(w);
    heed_safetensors_writer_free(NULL);
    assert_int_equal(files_in(folder), 0);

    heed_real x;
    heed_stored bad = good;
    bad.dtype = (heed_dtype)99;
    assert_int_equal(heed_stored_read(NULL, &x, 0, 1, NULL), HEED_ARGUMENT);
    assert_int_equal(heed_stored_read(&bad, &x, 0, 1, NULL), HEED_ARGUMENT);
    assert_int_equal(heed_stored_read(&good, NULL, 0, 1, NULL), HEED_ARGUMENT);
    assert_int_equal(heed_stored_read(&good, NULL, 0, 0, NULL), HEED_OK);
    bad = good;
    bad.name = NULL;
    assert_int_equal(heed_stored_read(&bad, &x, 1, 1, NULL), HEED_ARGUMENT);
    assert_null(heed_safetensors_open_memory(NULL, 9, "nothing", NULL, NULL));
    assert_null(heed_safetensors_open_memory(NULL, 0, "nothing", NULL, NULL));
    assert_null(heed_safetensors_open(NULL, NULL, NULL));
    assert_int_equal(heed_params_save(NULL, in_folder("x"), NULL), HEED_STATE);
    assert_int_equal(heed_params_load(NULL, in_folder("x"), NULL), HEED_STATE);
}

/* Catches a scalar that does not fit a parameter of one number, or fits one of two. */
static void scalars(void **state)
{
    (void)state;
    static const double number = 2.5;
    const heed_stored s = {
        .name = "s.x", .dtype = HEED_F64, .rank = 0, .data = &number, .bytes = sizeof number};
    heed_error err = {0};
    heed_safetensors_writer *w = heed_safetensors_writer_new(NULL, &err);
    heed_safetensors_writer_add(w, &s, &err);
    heed_safetensors_writer_write(w, in_folder("scalar"), &err);
    heed_safetensors_writer_free(w);
    assert_int_equal(err.status, HEED_OK);
    for (int64_t n = 1; n <= 2; n++) {
        heed_params *p = heed_params_new(NULL, &err);
        heed_tensor *x = heed_param(heed_scope_enter(heed_params_scope(p), "s"), "x", HEED_SHAPE(n),
                                    (heed_init){HEED_INIT_ZERO, 0});
        assert_int_equal(heed_params_finish(p, 1, &err), HEED_OK);
        assert_int_equal(heed_params_load(p, in_folder("scalar"), NULL),
                         n == 1 ? HEED_OK : HEED_FORMAT);
        assert_true(heed_tensor_data(x)[0] == (n == 1 ? (heed_real)2.5 : 0));
        heed_params_free(p);
    }
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, make_folder, remove_folder)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(our_memory), TEST(json_memory), TEST(wrong_fields),
        TEST(long_names), TEST(arguments),   TEST(scalars),
    };
    return cmocka_run_group_tests_name("safetensors edges", tests, NULL, NULL);
}
