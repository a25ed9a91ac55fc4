/* test_found.c: the readers of other programs' weights, on small files that were made byte by byte
 * from the formats' descriptions (tests/fuzz/<reader>/valid*), and on broken ones. */
#include "files/found.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "failing_allocator.h"

#define FUZZ "tests/fuzz/"

static unsigned char bytes[1 << 16];

static size_t slurp(const char *name)
{
    char path[256];
    snprintf(path, sizeof path, FUZZ "%s", name);
    FILE *f = fopen(path, "rb");
    if (!f)
        fail_msg("there is no '%s'", path);
    const size_t n = fread(bytes, 1, sizeof bytes, f);
    fclose(f);
    return n;
}

static heed__found *open_found(heed__found_reader *read, const char *name)
{
    heed_error err = {0};
    const size_t n = slurp(name);
    heed__found *f = heed__found_new(name, NULL, &err);
    assert_non_null(f);
    if (read(f, bytes, n, &err))
        fail_msg("%s", err.text);
    return f;
}

/* "name rank dims: values" of one tensor. */
static void check(const heed__found *f, const char *name, const char *expected)
{
    char found[600];
    const heed__found_tensor *t = heed__found_find(f, name);
    if (!t)
        fail_msg("there is no tensor '%s' in '%s'", name, f->path);
    size_t n = 0;
    for (int i = 0; i < t->rank; i++)
        n += (size_t)snprintf(found + n, sizeof found - n, i ? "x%lld" : "%lld",
                              (long long)t->dim[i]);
    n += (size_t)snprintf(found + n, sizeof found - n, ":");
    for (int64_t i = 0; i < t->count; i++) {
        float x;
        assert_int_equal(heed__found_values(t, i, 1, &x, NULL), HEED_OK);
        n += (size_t)snprintf(found + n, sizeof found - n, " %g", (double)x);
    }
    if (strcmp(found, expected) != 0)
        fail_msg("'%s' of '%s' is %s, expected %s", name, f->path, found, expected);
}

/* Catches item sizes taken for types (below version 4), scales that multiply instead of divide, and
 * aliases that are lost. */
static void ct2(void **state)
{
    (void)state;
    static const char *const files[] = {"ct2/valid_1", "ct2/valid_2", "ct2/valid_3", "ct2/valid_4",
                                        "ct2/valid_6"};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        heed__found *f = open_found(heed__ct2_read, files[i]);
        check(f, "a/weight", "2x3: 0.5 1 1.5 -0.25 -0.5 -0.75");
        check(f, "a/bias", "3: 1 2 3");
        check(f, "n", ": 5");
        if (i >= 2)
            check(f, "b/weight", "2x3: 0.5 1 1.5 -0.25 -0.5 -0.75");
        heed__found_free(f);
    }
    heed__found *f = open_found(heed__ct2_read, "ct2/valid_int16");
    check(f, "a", "2: 1 -2");
    check(f, "h", "2: 1.5 -2");
    check(f, "g", "1: 1");
    heed__found_free(f);
}

/* Catches dimensions in the file's order instead of C's, blocks unpacked in another order, and data
 * that do not begin at a multiple of the alignment. */
static void gguf(void **state)
{
    (void)state;
    static const char *const files[] = {"gguf/valid", "gguf/valid_aligned"};
    for (size_t i = 0; i < 2; i++) {
        heed__found *f = open_found(heed__gguf_read, files[i]);
        check(f, "a", "2x3: 1 2 3 4 5 6");
        check(f, "h", "2: 1.5 -2");
        check(f, "b", "1: 1");
        check(f, "q4",
              "32: -16 -14 -12 -10 -8 -6 -4 -2 0 2 4 6 8 10 12 14 14 12 10 8 6 4 2 0 -2 -4 "
              "-6 -8 -10 -12 -14 -16");
        check(f, "q8",
              "1x32: 0 0.5 1 1.5 2 2.5 3 3.5 4 4.5 5 5.5 6 6.5 7 7.5 8 8.5 9 9.5 10 10.5 11 "
              "11.5 12 12.5 13 13.5 14 14.5 15 15.5");
        if (i == 0)
            assert_string_equal(
                json_string_value(json_object_get(f->about, "general.architecture")), "llama");
        heed__found_free(f);
    }
}

/* Catches matrices in another order, sizes of key/value heads, and the tables of frequencies taken
 * for weights. */
static void llama2c(void **state)
{
    (void)state;
    heed__found *f = open_found(heed__llama2c_read, "llama2c/valid");
    check(f, "0.rms_att", "4: 2.5 2.625 2.75 2.875");
    check(f, "0.wk", "2x4: 5 5.125 5.25 5.375 5.5 5.625 5.75 5.875");
    check(f, "rms_final", "4: 18.5 18.625 18.75 18.875");
    assert_int_equal(f->count, 11);
    heed__found_free(f);
    f = open_found(heed__llama2c_read, "llama2c/valid_untied");
    assert_int_equal(heed__found_find(f, "wcls")->dim[0], 5);
    heed__found_free(f);
}

/* Catches matrices that are not turned back, the embedding that is, and multipliers that are
 * not. */
static void marian(void **state)
{
    (void)state;
    heed__found *f = open_found(heed__marian_read, "marian/valid");
    check(f, "encoder_l1_self_Wq", "2x3: 0.5 1 1.5 2 2.5 3");
    check(f, "Wemb", "2x3: 0.25 0.5 0.75 1 1.25 1.5");
    check(f, "decoder_ff_logit_out_b", "1x3: 1 2 3");
    check(f, "h", "2: 1.5 -2");
    assert_string_equal((const char *)heed__found_find(f, "special:model.yml")->data,
                        "type: transformer");
    heed__found_free(f);
}

/* Catches entries that are stored or deflated and read as the other, and shapes of one or no
 * axis. */
static void npz(void **state)
{
    (void)state;
    static const char *const files[] = {"npz/valid", "npz/valid_stored"};
    for (size_t i = 0; i < 2; i++) {
        heed__found *f = open_found(heed__npz_read, files[i]);
        check(f, "Wemb", "2x3: 1 2 3 4 5 6");
        check(f, "b", "2: 0.5 -1");
        check(f, "s", ": 7");
        check(f, "special:model.yml", "4: 97 58 32 98");
        assert_int_equal(f->count, 4);
        heed__found_free(f);
    }
    heed__found *f = open_found(heed__npz_read, "npz/valid_npy");
    check(f, "array", "2x3: 1 2 3 4 5 6");
    heed__found_free(f);
}

/* Catches offsets in storages, scalars, shared storages and dictionaries in dictionaries. */
static void pytorch(void **state)
{
    (void)state;
    heed__found *f = open_found(heed__pytorch_read, "pytorch/valid");
    check(f, "w", "2x3: 1 2 3 4 5 6");
    check(f, "v", "3: 3 4 5");
    check(f, "h", "2: 1.5 -2");
    check(f, "one", ": 2");
    heed__found_free(f);
    f = open_found(heed__pytorch_read, "pytorch/valid_nested");
    check(f, "model.w", "2: 1 2");
    heed__found_free(f);
}

/* Catches anonymous matrices without a name, zero points left out, and scales by row. */
static void onnx(void **state)
{
    (void)state;
    heed__found *f = open_found(heed__onnx_read, "onnx/valid");
    check(f, "emb.weight", "2x3: 1 2 3 4 5 6");
    check(f, "encoder.layer.0.query.weight.T", "3x2: 1 2 3 4 5 6");
    check(f, "b", "2: 1 2");
    check(f, "w_quantized", "2x2: 0 4 -1 2");
    check(f, "h", "1: 1.5");
    heed__found_free(f);
}

/* Catches broken files that open, or a sentence that does not say what is wrong. */
static void refused(void **state)
{
    (void)state;
    static const struct {
        heed__found_reader *read;
        const char *file, *says;
    } cases[] = {
        {heed__ct2_read, "ct2/broken_version", "of version 7, expected 1 to 6"},
        {heed__ct2_read, "ct2/broken_cut", "variable 4 is damaged or leaves the file"},
        {heed__ct2_read, "ct2/broken_rest", "1 bytes follow its last variable"},
        {heed__ct2_read, "ct2/broken_scale", "'a_scale' has a scale of 0"},
        {heed__ct2_read, "ct2/broken_scales", "'a_scale' has 3 values for the 2 of its matrix"},
        {heed__ct2_read, "ct2/broken_alias", "alias 1 is damaged or names no variable"},
        {heed__ct2_read, "ct2/broken_twice", "there are two tensors 'a/weight'"},
        {heed__ct2_read, "ct2/broken_type", "variable 'a' has type 9, which heed does not open"},
        {heed__ct2_read, "ct2/broken_bytes", "'a' has 8 bytes, expected 12 for 3 values of F32"},
        {heed__gguf_read, "gguf/broken_type",
         "tensor 'a.weight' is of type Q2_K (10), heed opens F32, F16, BF16, Q8_0 and Q4_0"},
        {heed__gguf_read, "gguf/broken_version", "it is GGUF version 2, heed opens version 3"},
        {heed__gguf_read, "gguf/broken_cut", "the file has"},
        {heed__gguf_read, "gguf/broken_block", "'a' begins at 0 and has 31 values"},
        {heed__gguf_read, "gguf/broken_many", "more than it can hold"},
        {heed__gguf_read, "gguf/broken_pairs", "more than its 24 bytes can hold"},
        {heed__gguf_read, "gguf/broken_alignment", "general.alignment is 0"},
        {heed__gguf_read, "gguf/broken_dims", "dimensions that cannot be"},
        {heed__llama2c_read, "llama2c/broken_cut", "it has"},
        {heed__llama2c_read, "llama2c/broken_rest", "other than its sizes need"},
        {heed__llama2c_read, "llama2c/broken_heads",
         "3 heads, 1 for keys and values, do not divide"},
        {heed__llama2c_read, "llama2c/broken_zero", "hidden is 0, expected 1 to"},
        {heed__llama2c_read, "llama2c/broken_huge", "it is cut short, or not of llama2.c"},
        {heed__marian_read, "marian/broken_encrypted", "it is encrypted"},
        {heed__marian_read, "marian/broken_packed", "packed8avx2, which is packed for one machine"},
        {heed__marian_read, "marian/broken_cut",
         "'h' has 4 bytes, expected at least 4 in the file"},
        {heed__marian_read, "marian/broken_type", "of type 0x999, which heed does not know"},
        {heed__marian_read, "marian/broken_small", "'W' has 16 bytes, expected at least 32"},
        {heed__marian_read, "marian/broken_multiplier", "'W' has a multiplier of 0"},
        {heed__npz_read, "npz/broken_order", "'a' is not stored row by row"},
        {heed__npz_read, "npz/broken_object", "'a' is of type '|O'"},
        {heed__npz_read, "npz/broken_size", "'a' has 4 bytes, expected 12 for 3 values of F32"},
        {heed__npz_read, "npz/broken_cut", "it is no zip archive, or cut short"},
        {heed__npz_read, "npz/broken_bomb", "which are not there or cannot be"},
        {heed__npz_read, "npz/broken_offset", "which are not there or cannot be"},
        {heed__pytorch_read, "pytorch/broken_code",
         "its pickle asks to run 'os system'; heed runs nothing and reads tensors only"},
        {heed__pytorch_read, "pytorch/broken_strides", "'w' is not stored row by row"},
        {heed__pytorch_read, "pytorch/broken_storage",
         "tensor 'h' is in 'archive/data/1', which is not there"},
        {heed__pytorch_read, "pytorch/broken_long",
         "'w' has 3 values from 4 on, its storage 24 bytes"},
        {heed__pytorch_read, "pytorch/broken_old",
         "files of PyTorch before 1.6 must be saved again"},
        {heed__pytorch_read, "pytorch/broken_no_pickle", "without data.pkl: not PyTorch's"},
        {heed__pytorch_read, "pytorch/broken_list", "it is no dictionary of tensors"},
        {heed__onnx_read, "onnx/broken_fused", "its graph was fused by onnxruntime"},
        {heed__onnx_read, "onnx/broken_external", "initialiser 'a' is in another file"},
        {heed__onnx_read, "onnx/broken_bytes", "'a' has 4 bytes, expected 12 for 3 values of F32"},
        {heed__onnx_read, "onnx/broken_type", "'a' is of type 8, which heed does not open"},
        {heed__onnx_read, "onnx/broken_zero_point", "has 2 scales and 1 zero points"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        heed_error err = {0};
        const size_t n = slurp(cases[i].file);
        heed__found *f = heed__found_new(cases[i].file, NULL, &err);
        assert_int_not_equal(cases[i].read(f, bytes, n, &err), HEED_OK);
        if (!strstr(err.text, cases[i].says) || !strstr(err.text, cases[i].file))
            fail_msg("'%s' does not say '%s'", err.text, cases[i].says);
        heed__found_free(f);
    }
}

/* Catches memory that is lost or used unasked when any allocation fails. */
static void out_of_memory(void **state)
{
    (void)state;
    static const struct {
        heed__found_reader *read;
        const char *file;
    } cases[] = {{heed__ct2_read, "ct2/valid_6"},       {heed__gguf_read, "gguf/valid"},
                 {heed__llama2c_read, "llama2c/valid"}, {heed__marian_read, "marian/valid"},
                 {heed__npz_read, "npz/valid"},         {heed__pytorch_read, "pytorch/valid"},
                 {heed__onnx_read, "onnx/valid"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const size_t size = slurp(cases[i].file);
        bool whole = false;
        for (int n = 1; !whole; n++) {
            struct failing failing = {.fail_at = n};
            const heed_allocator a = failing_allocator(&failing);
            heed_error err = {0};
            heed__found *f = heed__found_new("f", &a, &err);
            whole = f && cases[i].read(f, bytes, size, &err) == HEED_OK;
            assert_true(whole || err.status == HEED_MEMORY);
            heed__found_free(f);
            assert_int_equal(failing.held, 0);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ct2),    cmocka_unit_test(gguf),          cmocka_unit_test(llama2c),
        cmocka_unit_test(marian), cmocka_unit_test(npz),           cmocka_unit_test(pytorch),
        cmocka_unit_test(onnx),   cmocka_unit_test(out_of_memory), cmocka_unit_test(refused),
    };
    return cmocka_run_group_tests_name("found", tests, NULL, NULL);
}
