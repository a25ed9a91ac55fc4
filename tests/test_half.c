/* test_half.c: a model in 16 bits (heed_convert): every number is the nearest that there is, ties
 * to even, and what does not fit is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "temp_folder.h"
#include <heed/heed.h>
#include <math.h>

enum { D = 16, LARGEST = 0x7BFF, PER_HALF = 4, ROWS = (LARGEST + 1) * PER_HALF / D };

/* The bits of the half nearest to x >= 0, by arithmetic that is exact in double: a half is a
 * multiple n of 2^(e-10), where 2^e <= x < 2^(e+1) and e >= -14. */
static uint16_t nearest_half(double x)
{
    int e = -14;
    while (e < 15 && ldexp(1, e + 1) <= x)
        e++;
    return (uint16_t)(((e + 14) << 10) + (int)rint(ldexp(x, 10 - e))); /* rint: ties to even */
}

static double half_value(int bits)
{
    const int e = bits >> 10, n = bits & 0x3FF;
    return e ? ldexp(1024 + n, e - 25) : ldexp(n, -24);
}

/* Every half, the middle between it and the next, and the floats beside that. */
static float test_number(int64_t i)
{
    const int half = (int)(i / PER_HALF);
    const float here = (float)half_value(half);
    const float middle = (float)((half_value(half) + half_value(half + 1)) / 2);
    const float x[PER_HALF] = {here, middle, nextafterf(middle, 0), nextafterf(middle, INFINITY)};
    const float found = half == LARGEST ? here : x[i % PER_HALF];
    return (i / 7) % 2 ? -found : found;
}

static heed_model *new_model(void)
{
    heed_error err = {0};
    heed_model_config c = {.encoder_layers = 1,
                           .decoder_layers = 1,
                           .d = D,
                           .tying = HEED_TIE_ALL,
                           .transformer = {.ff = 8, .heads = 2, .residual = true, .norm_eps = 1e-6},
                           .longest = 8,
                           .source_vocabulary = ROWS,
                           .target_vocabulary = ROWS};
    heed_model *m = heed_model_new(&c, 1, NULL, &err);
    if (!m)
        fail_msg("%s", err.text);
    return m;
}

static heed_tensor *table_of(const heed_model *m)
{
    heed_params *p = heed_model_params(m);
    for (int i = 0; i < heed_params_count(p); i++)
        if (heed_tensor_rows(heed_params_entry(p, i).tensor) == ROWS)
            return heed_params_entry(p, i).tensor;
    fail_msg("the model has no table of %d rows", ROWS);
    return NULL;
}

/* Writes the model here and converts it to the folder `name`. */
static heed_status convert(const heed_model *m, const char *name, heed_error *err)
{
    const heed_text_config text = {.tokens = HEED_WHITESPACE};
    assert_int_equal(heed_model_describe(folder, heed_model_configuration(m), &text, err), HEED_OK);
    assert_int_equal(heed_params_save(heed_model_params(m), in_folder("model.safetensors"), err),
                     HEED_OK);
    return heed_convert(folder, in_folder(name), HEED_NUMBERS_FP16, err);
}

static void remove_converted(const char *name)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s/model.safetensors", folder, name);
    unlink(path);
    snprintf(path, sizeof path, "%s/%s/config.json", folder, name);
    unlink(path);
    rmdir(in_folder(name));
}

/* Catches numbers that are cut off, rounded away from zero at ties, or wrong below 2^-14. */
static void rounded_to_nearest(void **state)
{
    (void)state;
    char path[256];
    heed_error err = {0};
    heed_model *m = new_model();
    heed_tensor *table = table_of(m);
    for (int64_t i = 0; i < (int64_t)ROWS * D; i++)
        heed_tensor_data(table)[i] = (heed_real)test_number(i);
    if (convert(m, "half", &err))
        fail_msg("%s", err.text);
    snprintf(path, sizeof path, "%s/half/model.safetensors", folder);
    heed_safetensors *f = heed_safetensors_open(path, NULL, &err);
    assert_non_null(f);
    const heed_stored *s = NULL;
    for (int i = 0; i < heed_safetensors_count(f); i++) {
        assert_int_equal(heed_safetensors_at(f, i)->dtype, HEED_F16);
        if (heed_safetensors_at(f, i)->dim[0] == ROWS)
            s = heed_safetensors_at(f, i);
    }
    assert_non_null(s);
    for (int64_t i = 0; i < (int64_t)ROWS * D; i++) {
        const float x = test_number(i);
        const uint16_t wanted =
            (uint16_t)(nearest_half(fabs((double)x)) | (signbit(x) ? 0x8000 : 0));
        uint16_t found;
        heed_real back;
        memcpy(&found, (const char *)s->data + 2 * i, sizeof found);
        if (found != wanted)
            fail_msg("%.9g is stored as %04x, expected %04x", (double)x, found, wanted);
        assert_int_equal(heed_stored_read(s, &back, i, 1, &err), HEED_OK);
        assert_true((double)back ==
                    (signbit(x) ? -1 : 1) * half_value(wanted & 0x7FFF)); /* and read again */
    }
    heed_safetensors_close(f);
    heed_model_free(m);
}

/* Catches a number beyond the largest half that becomes infinite in silence, and one that fits and
 * is refused. */
static void limits(void **state)
{
    (void)state;
    static const struct {
        float x;
        bool fits;
    } cases[] = {{65504, true},   {-65519.996F, true}, {65520, false},
                 {-1e30F, false}, {INFINITY, false},   {NAN, false}};
    heed_model *m = new_model();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        heed_error err = {0};
        heed_tensor_data(table_of(m))[5] = (heed_real)cases[i].x;
        heed_status status = convert(m, "limit", &err);
        assert_int_equal(status, cases[i].fits ? HEED_OK : HEED_NUMERIC);
        if (!cases[i].fits)
            assert_non_null(strstr(err.text, "expected numbers that fit 16 bits"));
        remove_converted("limit");
    }
    heed_model_free(m);
}

static int tear_down(void **state)
{
    remove_converted("half");
    remove_converted("limit");
    return remove_folder(state);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, make_folder, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {TEST(rounded_to_nearest), TEST(limits)};
    return cmocka_run_group_tests_name("half", tests, NULL, NULL);
}
