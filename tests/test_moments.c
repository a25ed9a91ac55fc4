/* test_moments.c: the moments of a save are found by the names of their parameters. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "temp_folder.h"
#include "train/trainer.h"

/* Two parameters of one size and shape, and state between them, declared in either order. */
static heed_params *make_set(bool turned, heed_optimizer **o)
{
    static const char *const names[] = {"first", "second"};
    heed_error err = {0};
    heed_params *p = heed_params_new(NULL, &err);
    heed_scope s = heed_params_scope(p);
    heed_param(s, names[turned], HEED_SHAPE(2, 3), (heed_init){HEED_INIT_NORMAL, 1});
    heed_state(s, "mean", HEED_SHAPE(4), 0);
    heed_param(s, names[!turned], HEED_SHAPE(2, 3), (heed_init){HEED_INIT_NORMAL, 1});
    assert_int_equal(heed_params_finish(p, 1, &err), HEED_OK);
    const heed_optimizer_options adam = {.kind = HEED_ADAM};
    *o = heed_optimizer_new(p, &adam, NULL, &err);
    assert_non_null(*o);
    return p;
}

static int64_t offset_of(const heed_params *p, const char *name)
{
    for (int i = 0; i < heed_params_count(p); i++)
        if (strcmp(heed_params_entry(p, i).name, name) == 0)
            return heed_params_entry(p, i).offset;
    fail_msg("there is no '%s'", name);
    return -1;
}

/* Catches moments that go to whatever parameter has the same place in the set. */
static void test_by_name(void **state)
{
    (void)state;
    static const char *const names[] = {"first", "second"};
    const char *path = in_folder("moments.safetensors");
    heed_error err = {0};
    heed_optimizer *a, *b;
    heed_params *p = make_set(false, &a), *q = make_set(true, &b);
    for (int k = 0; k < 2; k++)
        for (int i = 0; i < 2; i++)
            for (int n = 0; n < 6; n++)
                heed_optimizer_moment(a, k)[offset_of(p, names[i]) + n] =
                    (heed_real)(100 * k + 10 * i + n);
    assert_int_equal(heed__moments_save(a, p, path, &err), HEED_OK);
    assert_int_equal(heed__moments_load(b, q, path, &err), HEED_OK);
    for (int k = 0; k < 2; k++)
        for (int i = 0; i < 2; i++)
            for (int n = 0; n < 6; n++)
                assert_true(heed_optimizer_moment(b, k)[offset_of(q, names[i]) + n] ==
                            (heed_real)(100 * k + 10 * i + n));
    heed_optimizer_free(a);
    heed_optimizer_free(b);
    heed_params_free(p);
    heed_params_free(q);
}

/* Catches moments of another optimiser, or of other parameters, that are taken for these. */
static void test_refused(void **state)
{
    (void)state;
    const char *path = in_folder("moments.safetensors");
    heed_error err = {0};
    heed_optimizer *a;
    heed_params *p = make_set(false, &a);
    const heed_optimizer_options kinds[] = {{.kind = HEED_SGD, .momentum = 0.9},
                                            {.kind = HEED_RMSPROP}};
    static const char *const texts[] = {"moment 'first.momentum' is missing",
                                        "4 moments, expected 2"};
    assert_int_equal(heed__moments_save(a, p, path, &err), HEED_OK);
    for (int i = 0; i < 2; i++) {
        err = (heed_error){0};
        heed_optimizer *o = heed_optimizer_new(p, &kinds[i], NULL, &err);
        assert_int_equal(heed__moments_load(o, p, path, &err), HEED_FORMAT);
        if (!strstr(err.text, texts[i]))
            fail_msg("'%s', expected '%s'", err.text, texts[i]);
        heed_optimizer_free(o);
    }
    heed_optimizer_free(a);
    heed_params_free(p);
}

/* Catches moments of a parameter of the same name that has another shape, or another rank, and a
 * name that is cut to one that another parameter has. */
static void test_other_shapes(void **state)
{
    (void)state;
    static const heed_shape shapes[] = {{2, {2, 3}}, {2, {3, 2}}, {1, {6}}};
    const char *path = in_folder("moments.safetensors");
    const heed_optimizer_options adam = {.kind = HEED_ADAM};
    char longest[1100];
    memset(longest, 'n', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    for (int i = 0; i < 4; i++) {
        heed_error err = {0};
        heed_params *p = heed_params_new(NULL, &err);
        heed_param(heed_params_scope(p), i < 3 ? "w" : longest, shapes[i % 3],
                   (heed_init){HEED_INIT_NORMAL, 1});
        assert_int_equal(heed_params_finish(p, 1, &err), HEED_OK);
        heed_optimizer *o = heed_optimizer_new(p, &adam, NULL, &err);
        if (i == 0)
            assert_int_equal(heed__moments_save(o, p, path, &err), HEED_OK);
        const heed_status status = heed__moments_load(o, p, path, &err);
        assert_int_equal(status, i == 0 ? HEED_OK : i < 3 ? HEED_FORMAT : HEED_ARGUMENT);
        if (status)
            assert_non_null(
                strstr(err.text, i < 3 ? "moment 'w.mean' is of another shape" : "is too long"));
        if (i == 3)
            assert_int_equal(heed__moments_save(o, p, path, &err), HEED_ARGUMENT);
        heed_optimizer_free(o);
        heed_params_free(p);
    }
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, make_folder, remove_folder)

int main(void)
{
    const struct CMUnitTest tests[] = {TEST(test_by_name), TEST(test_refused),
                                       TEST(test_other_shapes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
