/* train_numbers.h: what the tests of src/train share. */
#ifndef HEED_TESTS_TRAIN_NUMBERS_H
#define HEED_TESTS_TRAIN_NUMBERS_H

#include <heed/task.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

#define COUNT(array) ((int)(sizeof(array) / sizeof *(array)))

static bool near(double a, double b, double allowed)
{
    if (fabs(a - b) <= allowed * fmax(1, fabs(b)))
        return true;
    print_error("%.17g, expected %.17g\n", a, b);
    return false;
}

/* A set with one parameter of n numbers for each name, all zero. */
static heed_params *make_params(const char *const *names, int count, int64_t n)
{
    heed_error err = {0};
    heed_params *p = heed_params_new(NULL, &err);
    assert_non_null(p);
    for (int i = 0; i < count; i++)
        heed_param(heed_scope_enter(heed_params_scope(p), "%s", names[i]), "weight", HEED_SHAPE(n),
                   (heed_init){HEED_INIT_ZERO, 0});
    assert_int_equal(heed_params_finish(p, 1, &err), HEED_OK);
    return p;
}

/* Smooth numbers of both signs, different for every seed. */
static heed_real number(int64_t i, int seed)
{
    return (heed_real)(sin(0.37 * (double)i + seed) * (1 + (double)(i % 5)));
}

#endif
