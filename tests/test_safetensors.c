/* Reading and writing safetensors, and parameter sets in them. */
#include <heed/io.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "failing_allocator.h"
#include "temp_folder.h"

#define COUNT(array) ((int)(sizeof(array) / sizeof *(array)))
#define CORPUS "tests/fuzz/safetensors"

static size_t read_all(const char *path, char *bytes, size_t room)
{
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    size_t n = fread(bytes, 1, room, f);
    fclose(f);
    return n;
}

/* A file in memory from its header and data. */
static heed_safetensors *open_parts(const char *header, const void *data, size_t size)
{
    static unsigned char bytes[4096];
    size_t length = strlen(header);
    memset(bytes, 0, 8);
    bytes[0] = (unsigned char)(length & 0xFF);
    bytes[1] = (unsigned char)(length >> 8);
    memcpy(bytes + 8, header, length);
    memcpy(bytes + 8 + length, data, size);
    heed_error err = {0};
    heed_safetensors *f = heed_safetensors_open_memory(bytes, 8 + length + size, "m", NULL, &err);
    assert_string_equal(err.text, "");
    return f;
}

/* ---- the corpus ---- */

/* Every file of the corpus; the text after "cannot load '...': ", or NULL for a good one. */
static const struct {
    const char *name, *text;
} corpus[] = {
    {"valid_all_dtypes", NULL},
    {"valid_empty", NULL},
    {"valid_empty_tensor", NULL},
    {"valid_metadata", NULL},
    {"valid_padded", NULL},
    {"valid_rank8", NULL},
    {"valid_scalar", NULL},
    {"valid_unaligned", NULL},
    {"valid_unicode_name", NULL},
    {"valid_unordered", NULL},
    {"broken_no_bytes", "0 bytes are too few for a safetensors file"},
    {"broken_short", "7 bytes are too few for a safetensors file"},
    {"broken_header_beyond_file", "the header claims 3 bytes, the file has 2 after its length"},
    {"broken_header_limit", "the header claims 100000001 bytes, more than the 100000000 allowed"},
    {"broken_header_length_negative",
     "the header claims 18446744073709551615 bytes, more than the 100000000 allowed"},
    {"broken_header_empty", "the header is not a JSON object"},
    {"broken_header_array", "the header is not a JSON object"},
    {"broken_header_leading_space", "the header is not a JSON object"},
    {"broken_json", "the header is not valid JSON: unexpected token near end of file"},
    {"broken_json_trailing", "the header is not valid JSON: end of file expected near 'x'"},
    {"broken_json_nul_tail", "the header is not valid JSON: end of file expected near end of file"},
    {"broken_json_utf8", "the header is not valid JSON: unable to decode byte 0xff near '\"'"},
    {"broken_json_nul_name",
     "the header is not valid JSON: NUL byte in object key not supported near '\"a\\u0000b\"'"},
    {"broken_json_deep", "the header is not valid JSON: maximum parsing depth reached near '['"},
    {"broken_duplicate", "the header is not valid JSON: duplicate object key near '\"a\"'"},
    {"broken_tensor_not_object", "tensor 'a' has no dtype"},
    {"broken_no_dtype", "tensor 'a' has no dtype"},
    {"broken_dtype_number", "tensor 'a' has no dtype"},
    {"broken_dtype_unknown", "tensor 'a' has the unknown dtype 'F8_E4M3'"},
    {"broken_no_shape", "tensor 'a' has no shape"},
    {"broken_rank9", "tensor 'a' has 9 axes, expected at most 8"},
    {"broken_axis_negative", "tensor 'a': axis 0 is not a non-negative integer"},
    {"broken_axis_real", "tensor 'a': axis 0 is not a non-negative integer"},
    {"broken_axis_too_big",
     "the header is not valid JSON: too big integer near '9223372036854775808'"},
    {"broken_real_overflow", "the header is not valid JSON: real number overflow near '1e999'"},
    {"broken_shape_overflow", "tensor 'a' has a shape whose size overflows"},
    {"broken_shape_bytes_overflow", "tensor 'a' has a shape whose size overflows"},
    {"broken_no_offsets", "tensor 'a' has no data_offsets [begin, end]"},
    {"broken_offsets_three", "tensor 'a' has no data_offsets [begin, end]"},
    {"broken_offsets_reversed",
     "tensor 'a' has data_offsets 1 to 0, not a range of the 1 bytes of data"},
    {"broken_offsets_negative",
     "tensor 'a' has data_offsets -1 to 1, not a range of the 1 bytes of data"},
    {"broken_offsets_beyond",
     "tensor 'a' has data_offsets 0 to 2, not a range of the 1 bytes of data"},
    {"broken_offsets_huge",
     "tensor 'a' has data_offsets 9223372036854775805 to 9223372036854775807, not a "
     "range of the 1 bytes of data"},
    {"broken_size", "tensor 'a' has 4 bytes of data, expected 8 for its shape"},
    {"broken_overlap", "tensor 'b' overlaps tensor 'a'"},
    {"broken_same_place", "tensor 'b' overlaps tensor 'a'"},
    {"broken_hole_first", "the 1 bytes before tensor 'a' belong to no tensor"},
    {"broken_hole", "the 1 bytes before tensor 'b' belong to no tensor"},
    {"broken_rest", "the last 2 bytes belong to no tensor"},
    {"broken_metadata_list", "the metadata is not an object"},
    {"broken_metadata_number", "metadata 'step' is not a string"},
};

/* Catches a check that no longer refuses its kind of broken file, or with another text. */
static void test_corpus(void **state)
{
    (void)state;
    for (int i = 0; i < COUNT(corpus); i++) {
        char path[128], expected[512] = "";
        snprintf(path, sizeof path, CORPUS "/%s", corpus[i].name);
        if (corpus[i].text)
            snprintf(expected, sizeof expected, "cannot load '%s': %s", path, corpus[i].text);
        heed_error err = {0};
        heed_safetensors *f = heed_safetensors_open(path, NULL, &err);
        assert_string_equal(err.text, expected);
        assert_int_equal(err.status, corpus[i].text ? HEED_FORMAT : HEED_OK);
        assert_int_equal(f == NULL, corpus[i].text != NULL);
        heed_safetensors_close(f);
    }
    assert_int_equal(files_in(CORPUS), COUNT(corpus));
}

/* Catches a missing file that is not said to be missing. */
static void test_no_file(void **state)
{
    (void)state;
    heed_error err = {0};
    assert_null(heed_safetensors_open("/nowhere/model.safetensors", NULL, &err));
    assert_int_equal(err.status, HEED_IO);
    assert_non_null(strstr(err.text, "'/nowhere/model.safetensors': No such file or directory"));
}

/* ---- reading ---- */

/* Catches a wrong conversion, width or sign of any dtype. */
static void test_dtypes(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        heed_dtype dtype;
        double values[2];
    } rows[] = {{"F64", HEED_F64, {1, -2}},  {"I64", HEED_I64, {3, -4}},
                {"F32", HEED_F32, {5, -6}},  {"I32", HEED_I32, {7, -8}},
                {"F16", HEED_F16, {9, -10}}, {"BF16", HEED_BF16, {11, -12}},
                {"I8", HEED_I8, {13, -14}},  {"U8", HEED_U8, {15, 255}}};
    heed_safetensors *f = heed_safetensors_open(CORPUS "/valid_all_dtypes", NULL, NULL);
    assert_int_equal(heed_safetensors_count(f), COUNT(rows));
    for (int i = 0; i < COUNT(rows); i++) {
        const heed_stored *s = heed_safetensors_find(f, rows[i].name);
        assert_ptr_equal(s, heed_safetensors_at(f, i)); /* in the order of the data */
        assert_int_equal(s->dtype, rows[i].dtype);
        heed_real x[2];
        assert_int_equal(heed_stored_read(s, x, 0, 2, NULL), HEED_OK);
        assert_true((double)x[0] == rows[i].values[0] && (double)x[1] == rows[i].values[1]);
        assert_int_equal(heed_stored_read(s, x, 1, 1, NULL), HEED_OK);
        assert_true((double)x[0] == rows[i].values[1]);
    }
    assert_null(heed_safetensors_find(f, "F31"));
    assert_null(heed_safetensors_at(f, COUNT(rows)));
    assert_null(heed_safetensors_at(f, -1));
    heed_safetensors_close(f);
}

static heed_real read_half(const char *dtype, uint16_t bits)
{
    char header[128];
    snprintf(header, sizeof header,
             "{\"a\":{\"dtype\":\"%s\",\"shape\":[],\"data_offsets\":[0,2]}}", dtype);
    heed_safetensors *f = open_parts(header, &bits, sizeof bits);
    heed_real x = 42;
    assert_int_equal(heed_stored_read(heed_safetensors_at(f, 0), &x, 0, 1, NULL), HEED_OK);
    heed_safetensors_close(f);
    return x;
}

/* Catches wrong subnormals, infinities, NaN and signs of zero in the half formats. */
static void test_halves(void **state)
{
    (void)state;
    static const struct {
        const char *dtype;
        uint16_t bits;
        double value;
    } rows[] = {
        {"F16", 0x0000, 0},          {"F16", 0x8000, -0.0},        {"F16", 0x0001, 0x1p-24},
        {"F16", 0x83FF, -0x3FFp-24}, {"F16", 0x0400, 0x1p-14},     {"F16", 0x3C00, 1},
        {"F16", 0x3555, 0x1.554p-2}, {"F16", 0x7BFF, 65504},       {"F16", 0xFBFF, -65504},
        {"F16", 0x7C00, INFINITY},   {"F16", 0xFC00, -INFINITY},   {"BF16", 0x8000, -0.0},
        {"BF16", 0x0001, 0x1p-133},  {"BF16", 0x807F, -0x7Fp-133}, {"BF16", 0x3F80, 1},
        {"BF16", 0x4049, 3.140625},  {"BF16", 0x7F7F, 0x1.FEp127}, {"BF16", 0x7F80, INFINITY},
        {"BF16", 0xFF80, -INFINITY}};
    for (int i = 0; i < COUNT(rows); i++) {
        double x = (double)read_half(rows[i].dtype, rows[i].bits);
        if (x != rows[i].value || !signbit(x) != !signbit(rows[i].value))
            fail_msg("%s %04x is %g, expected %g", rows[i].dtype, rows[i].bits, x, rows[i].value);
    }
    assert_true(isnan(read_half("F16", 0x7C01)) && isnan(read_half("F16", 0xFFFF)));
    assert_true(isnan(read_half("BF16", 0x7F81)) && isnan(read_half("BF16", 0xFFFF)));
    /* Across all positive finite halves, the slow way. */
    for (unsigned bits = 0; bits < 0x7C00; bits += 7) {
        int exponent = (int)(bits >> 10);
        double value =
            exponent ? ldexp(1024 + (bits & 0x3FF), exponent - 25) : ldexp(bits & 0x3FF, -24);
        assert_true((double)read_half("F16", (uint16_t)bits) == value);
    }
}

/* Catches a read beyond a tensor, and an overflow in the check itself. */
static void test_read_range(void **state)
{
    (void)state;
    heed_safetensors *f = heed_safetensors_open(CORPUS "/valid_all_dtypes", NULL, NULL);
    const heed_stored *s = heed_safetensors_find(f, "I32");
    static const int64_t bad[][2] = {
        {-1, 1}, {0, 3}, {2, 1}, {3, 0}, {0, -1}, {1, INT64_MAX}, {INT64_MAX, INT64_MAX}};
    heed_real x[4];
    for (int i = 0; i < COUNT(bad); i++)
        assert_int_equal(heed_stored_read(s, x, bad[i][0], bad[i][1], NULL), HEED_ARGUMENT);
    assert_int_equal(heed_stored_read(s, NULL, 2, 0, NULL), HEED_OK);
    heed_error err = {0};
    heed_stored_read(s, x, 1, 2, &err);
    assert_string_equal(err.text, "stored read: 2 elements from 1 on, tensor 'I32' has 2");
    heed_safetensors_close(f);
}

/* Catches names that are not found by search, and metadata that is lost. */
static void test_lookup(void **state)
{
    (void)state;
    char header[4000] = "{\"__metadata__\":{\"z\":\"26\",\"a\":\"1\"}", name[16];
    for (int i = 0; i < 50; i++) /* not in the order of names */
        snprintf(header + strlen(header), sizeof header - strlen(header),
                 ",\"t%d\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[%d,%d]}", i * 37 % 50,
                 i, i + 1);
    strcat(header, "}");
    unsigned char data[50];
    for (int i = 0; i < 50; i++)
        data[i] = (unsigned char)(i * 37 % 50);
    heed_safetensors *f = open_parts(header, data, sizeof data);
    for (int i = 0; i < 50; i++) {
        heed_real x;
        snprintf(name, sizeof name, "t%d", i);
        assert_int_equal(heed_stored_read(heed_safetensors_find(f, name), &x, 0, 1, NULL), HEED_OK);
        assert_true(x == (heed_real)i);
    }
    assert_null(heed_safetensors_find(f, "__metadata__"));
    assert_string_equal(heed_safetensors_metadata(f, "a"), "1");
    assert_string_equal(heed_safetensors_metadata(f, "z"), "26");
    assert_null(heed_safetensors_metadata(f, "b"));
    heed_safetensors_close(f);
    f = heed_safetensors_open(CORPUS "/valid_empty", NULL, NULL);
    assert_null(heed_safetensors_metadata(f, "a"));
    assert_null(heed_safetensors_find(f, "a"));
    heed_safetensors_close(f);
}

/* Catches an error text that a hostile name breaks out of: control characters, great length. */
static void test_hostile_name(void **state)
{
    (void)state;
    unsigned char bytes[1024] = {0};
    char *header = (char *)bytes + 8;
    strcpy(header, "{\"\\u001b[31m\\n");
    memset(header + strlen(header), 'x', 500);
    strcat(header, "\":{}}");
    bytes[0] = (unsigned char)(strlen(header) & 0xFF);
    bytes[1] = (unsigned char)(strlen(header) >> 8);
    heed_error err = {0};
    assert_null(heed_safetensors_open_memory(bytes, 8 + strlen(header), "f", NULL, &err));
    assert_int_equal(strncmp(err.text, "cannot load 'f': tensor '?[31m?xxx", 33), 0);
    assert_non_null(strstr(err.text, "xxx...' has no dtype"));
}

/* ---- writing ---- */

static const double eight[1] = {0.1};
static const float fours[6] = {1, 2, 3, 4, 5, -0.5F};
static const uint16_t twos[3] = {0x3C00, 0x7C01, 1};
static const uint8_t ones[3] = {1, 2, 255};
static const int64_t longs[2] = {INT64_MIN, INT64_MAX};
static const int32_t ints[1] = {INT32_MIN};
static const heed_stored tensors[] = {
    {"b", HEED_U8, 1, {3}, ones, 3},
    {"a.weight", HEED_F32, 2, {2, 3}, fours, 24},
    {"half", HEED_F16, 1, {3}, twos, 6},
    {"brain", HEED_BF16, 3, {3, 1, 1}, twos, 6},
    {"scalar", HEED_F64, 0, {0}, eight, 8},
    {"long \"quoted\" h\xC3\xA9", HEED_I64, 1, {2}, longs, 16},
    {"int", HEED_I32, 1, {1}, ints, 4},
    {"byte", HEED_I8, 1, {3}, ones, 3},
    {"empty", HEED_F32, 2, {0, 7}, NULL, 0},
};

static const size_t width_of[] = {
#define WIDTH(name, bytes) bytes,
    HEED_DTYPE_LIST(WIDTH)};

static heed_safetensors_writer *fill_writer(const heed_allocator *allocator, heed_error *err)
{
    heed_safetensors_writer *w = heed_safetensors_writer_new(allocator, err);
    if (!w)
        return NULL;
    heed_safetensors_writer_metadata(w, "format", "old", err);
    heed_safetensors_writer_metadata(w, "step", "12", err);
    heed_safetensors_writer_metadata(w, "format", "heed", err);
    for (int i = 0; i < COUNT(tensors); i++)
        heed_safetensors_writer_add(w, &tensors[i], err);
    return w;
}

/* Catches anything lost on the way, data that starts unaligned, and output that differs by run. */
static void test_round_trip(void **state)
{
    (void)state;
    heed_error err = {0};
    char first[2048], second[2048];
    size_t size = 0;
    for (int run = 0; run < 2; run++) {
        heed_safetensors_writer *w = fill_writer(NULL, &err);
        heed_safetensors_writer_write(w, in_folder("model.safetensors"), &err);
        heed_safetensors_writer_free(w);
        assert_string_equal(err.text, "");
        size = read_all(in_folder("model.safetensors"), run ? second : first, sizeof first);
    }
    assert_memory_equal(first, second, size);
    size_t begin = 8 + (unsigned char)first[0] + ((size_t)(unsigned char)first[1] << 8);
    assert_int_equal(begin % 64, 0);
    assert_int_equal(first[8], '{');

    heed_safetensors *f = heed_safetensors_open(in_folder("model.safetensors"), NULL, &err);
    assert_string_equal(err.text, "");
    assert_int_equal(heed_safetensors_count(f), COUNT(tensors));
    for (int i = 0; i < COUNT(tensors); i++) {
        const heed_stored *s = heed_safetensors_find(f, tensors[i].name), *t = &tensors[i];
        assert_non_null(s);
        assert_true(s->dtype == t->dtype && s->rank == t->rank && s->bytes == t->bytes);
        assert_memory_equal(s->dim, t->dim, sizeof s->dim);
        if (s->bytes > 0)
            assert_memory_equal(s->data, t->data, s->bytes);
        assert_int_equal((uintptr_t)s->data % width_of[s->dtype], 0);
    }
    assert_string_equal(heed_safetensors_metadata(f, "format"), "heed");
    assert_string_equal(heed_safetensors_metadata(f, "step"), "12");
    heed_safetensors_close(f);
}

/* Catches a writer that makes a file the reader refuses. */
static void test_writer_refuses(void **state)
{
    (void)state;
    const struct {
        heed_stored tensor;
        const char *text;
    } rows[] = {
        {{NULL, HEED_U8, 1, {3}, ones, 3}, "safetensors add: a tensor without a name"},
        {{"__metadata__", HEED_U8, 1, {3}, ones, 3},
         "safetensors add: '__metadata__' cannot name a tensor"},
        {{"a", HEED_F32, 1, {3}, ones, 3},
         "safetensors add: tensor 'a' has 3 bytes, expected 12 for its shape"},
        {{"a", HEED_U8, 1, {3}, NULL, 3},
         "safetensors add: tensor 'a' has 0 bytes, expected 3 for its shape"},
        {{"a", (heed_dtype)99, 1, {3}, ones, 3},
         "safetensors add: tensor 'a' has no valid dtype and shape"},
        {{"a", HEED_U8, 9, {3}, ones, 3},
         "safetensors add: tensor 'a' has no valid dtype and shape"},
        {{"a", HEED_U8, 2, {INT64_MAX, 2}, ones, 3},
         "safetensors add: tensor 'a' has no valid dtype and shape"},
    };
    for (int i = 0; i < COUNT(rows); i++) {
        heed_safetensors_writer *w = heed_safetensors_writer_new(NULL, NULL);
        heed_error err = {0};
        assert_int_equal(heed_safetensors_writer_add(w, &rows[i].tensor, &err), HEED_ARGUMENT);
        assert_string_equal(err.text, rows[i].text);
        heed_safetensors_writer_free(w);
    }
    heed_safetensors_writer *w = heed_safetensors_writer_new(NULL, NULL);
    assert_int_equal(heed_safetensors_writer_metadata(w, "a", "\xFF", NULL), HEED_ARGUMENT);
    assert_int_equal(heed_safetensors_writer_metadata(w, "\xFF", "a", NULL), HEED_ARGUMENT);
    assert_int_equal(heed_safetensors_writer_metadata(w, NULL, "a", NULL), HEED_ARGUMENT);
    heed_safetensors_writer_add(w, &tensors[0], NULL);
    heed_safetensors_writer_add(w, &tensors[0], NULL);
    heed_error err = {0};
    char expected[512];
    const char *path = in_folder("twice");
    assert_int_equal(heed_safetensors_writer_write(w, path, &err), HEED_ARGUMENT);
    snprintf(expected, sizeof expected, "cannot write '%s': tensor 'b' was added twice", path);
    assert_string_equal(err.text, expected);
    heed_safetensors_writer_free(w);

    w = heed_safetensors_writer_new(NULL, NULL);
    heed_safetensors_writer_add(w, &(heed_stored){"\xC3", HEED_U8, 1, {3}, ones, 3}, NULL);
    assert_int_equal(heed_safetensors_writer_write(w, path, NULL), HEED_ARGUMENT);
    heed_safetensors_writer_free(w);
    assert_int_equal(access(path, F_OK), -1);
}

/* Catches an existing file harmed by a write that fails half-way, and a left-over beside it. */
static void test_atomic(void **state)
{
    (void)state;
    enum { BIG = 1 << 20 };
    heed_error err = {0};
    const char *path = in_folder("kept");
    heed_safetensors_writer *w = fill_writer(NULL, &err);
    assert_int_equal(heed_safetensors_writer_write(w, path, &err), HEED_OK);
    char before[2048], after[2048];
    size_t size = read_all(path, before, sizeof before);
    int files = files_in(folder);

    char *zeros = calloc(1, BIG);
    heed_safetensors_writer_add(w, &(heed_stored){"big", HEED_U8, 1, {BIG}, zeros, BIG}, &err);
    assert_int_equal(err.status, HEED_OK);
    struct rlimit old, small;
    getrlimit(RLIMIT_FSIZE, &old);
    small = old;
    small.rlim_cur = BIG / 2;
    void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &small);
    heed_status status = heed_safetensors_writer_write(w, path, &err);
    setrlimit(RLIMIT_FSIZE, &old);
    signal(SIGXFSZ, handler);
    heed_safetensors_writer_free(w);
    free(zeros);

    assert_int_equal(status, HEED_IO);
    assert_non_null(strstr(err.text, "cannot write '"));
    assert_non_null(strstr(err.text, "File too large"));
    assert_int_equal(read_all(path, after, sizeof after), size);
    assert_memory_equal(before, after, size);
    assert_int_equal(files_in(folder), files);
}

/* ---- parameter sets ---- */

/* "encoder.weight" (rows,3), "encoder.mean" (4) as state, and "out.weight" (2) if wanted. */
static heed_params *make_params(int64_t rows, bool out, uint64_t seed,
                                const heed_allocator *allocator)
{
    heed_error err = {0};
    heed_params *p = heed_params_new(allocator, &err);
    assert_non_null(p);
    heed_scope s = heed_scope_enter(heed_params_scope(p), "encoder");
    heed_param(s, "weight", HEED_SHAPE(rows, 3), (heed_init){HEED_INIT_NORMAL, 1});
    heed_state(s, "mean", HEED_SHAPE(4), (double)seed);
    if (out)
        heed_param(heed_scope_enter(heed_params_scope(p), "out"), "weight", HEED_SHAPE(2),
                   (heed_init){HEED_INIT_NORMAL, 1});
    assert_int_equal(heed_params_finish(p, seed, &err), HEED_OK);
    return p;
}

static bool same_values(const heed_params *p, const heed_params *q)
{
    return memcmp(heed_params_values(p), heed_params_values(q),
                  (size_t)heed_params_size(p) * sizeof(heed_real)) == 0 &&
           memcmp(heed_params_state_values(p), heed_params_state_values(q),
                  (size_t)heed_params_state_size(p) * sizeof(heed_real)) == 0;
}

/* Catches a parameter or state that is not saved, or not loaded to its place. */
static void test_params(void **state)
{
    (void)state;
    heed_error err = {0};
    heed_params *p = make_params(5, true, 1, NULL), *q = make_params(5, true, 2, NULL);
    const char *path = in_folder("params");
    assert_false(same_values(p, q));
    assert_int_equal(heed_params_save(p, path, &err), HEED_OK);
    assert_int_equal(heed_params_load(q, path, &err), HEED_OK);
    assert_true(same_values(p, q));
    heed_safetensors *f = heed_safetensors_open(path, NULL, NULL);
    const heed_stored *s = heed_safetensors_find(f, "encoder.weight");
    assert_int_equal(s->dtype, sizeof(heed_real) == 8 ? HEED_F64 : HEED_F32);
    assert_true(s->rank == 2 && s->dim[0] == 5 && s->dim[1] == 3);
    heed_safetensors_close(f);
    heed_params_free(p);
    heed_params_free(q);
}

/* Catches a load that accepts the wrong model, changes something first, or names nothing. */
static void test_params_refused(void **state)
{
    (void)state;
    const struct {
        int64_t rows;
        bool out, out_in_file;
        const char *text;
    } cases[] = {
        {6, true, true, "tensor 'encoder.weight' is (5,3), expected (6,3)"},
        {5, true, false, "tensor 'out.weight' is missing"},
        {5, false, true, "tensor 'out.weight' is not expected"},
    };
    const char *path = in_folder("refused");
    for (int i = 0; i < COUNT(cases); i++) {
        heed_error err = {0};
        heed_params *saved = make_params(5, cases[i].out_in_file, 1, NULL);
        heed_params *p = make_params(cases[i].rows, cases[i].out, 2, NULL);
        heed_params *untouched = make_params(cases[i].rows, cases[i].out, 2, NULL);
        assert_int_equal(heed_params_save(saved, path, &err), HEED_OK);
        assert_int_equal(heed_params_load(p, path, &err), HEED_FORMAT);
        char expected[512];
        snprintf(expected, sizeof expected, "cannot load '%s': %s", path, cases[i].text);
        assert_string_equal(err.text, expected);
        assert_true(same_values(p, untouched));
        assert_int_equal(heed_params_load(p, path, NULL), HEED_FORMAT); /* without a text */
        heed_params_free(saved);
        heed_params_free(p);
        heed_params_free(untouched);
    }
    heed_params *unfinished = heed_params_new(NULL, NULL);
    assert_int_equal(heed_params_save(unfinished, path, NULL), HEED_STATE);
    assert_int_equal(heed_params_load(unfinished, path, NULL), HEED_STATE);
    heed_params_free(unfinished);
}

/* ---- memory ---- */

/* Catches a leak or a crash when the n-th allocation of reading or writing fails, for every n. */
static void test_memory(void **state)
{
    (void)state;
    bool done = false;
    int n = 0;
    while (!done) {
        struct failing f = {.fail_at = ++n};
        heed_allocator a = failing_allocator(&f);
        heed_error err = {0};
        heed_safetensors *s = NULL;
        heed_safetensors_writer *w = fill_writer(&a, &err);
        if (err.status == HEED_OK &&
            heed_safetensors_writer_write(w, in_folder("memory"), &err) == HEED_OK)
            s = heed_safetensors_open(in_folder("memory"), &a, &err);
        done = s != NULL;
        if (!done) {
            assert_int_equal(err.status, HEED_MEMORY);
            assert_non_null(strstr(err.text, "out of memory"));
        }
        heed_safetensors_close(s);
        heed_safetensors_writer_free(w);
        assert_int_equal(f.held, 0);
    }
    assert_true(n > 5);
}

/* Catches the same in a parameter set's save and load, which must leave the set alone. */
static void test_params_memory(void **state)
{
    (void)state;
    struct failing f = {0};
    heed_allocator a = failing_allocator(&f);
    heed_params *p = make_params(5, true, 1, &a), *q = make_params(5, true, 1, NULL);
    const char *path = in_folder("params_memory");
    long held = f.held;
    int failures = 0;
    for (bool done = false; !done; failures++) {
        heed_error err = {0};
        f.calls = 0;
        f.fail_at = failures + 1;
        done = heed_params_save(p, path, &err) == HEED_OK &&
               heed_params_load(p, path, &err) == HEED_OK;
        if (!done)
            assert_int_equal(err.status, HEED_MEMORY);
        assert_int_equal(f.held, held);
        assert_true(same_values(p, q));
    }
    assert_true(failures > 5);
    heed_params_free(p);
    heed_params_free(q);
    assert_int_equal(f.held, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_corpus),         cmocka_unit_test(test_no_file),
        cmocka_unit_test(test_dtypes),         cmocka_unit_test(test_halves),
        cmocka_unit_test(test_read_range),     cmocka_unit_test(test_lookup),
        cmocka_unit_test(test_hostile_name),   cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_writer_refuses), cmocka_unit_test(test_atomic),
        cmocka_unit_test(test_params),         cmocka_unit_test(test_params_refused),
        cmocka_unit_test(test_memory),         cmocka_unit_test(test_params_memory),
    };
    return cmocka_run_group_tests_name("safetensors", tests, make_folder, remove_folder);
}
