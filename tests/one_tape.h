/* one_tape.h: a tape of one thread for each test, and rows of numbers on it. */
#ifndef HEED_TESTS_ONE_TAPE_H
#define HEED_TESTS_ONE_TAPE_H

#include <heed/ops.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static heed_tape *tape;

static int make_tape(void **state)
{
    (void)state;
    tape = heed_tape_new(&(heed_tape_options){.threads = 1}, NULL);
    return tape ? 0 : 1;
}

static int free_tape(void **state)
{
    (void)state;
    heed_tape_free(tape);
    return 0;
}

static heed_tensor *row(int64_t n, const heed_real *values)
{
    return heed_input(tape, HEED_SHAPE(1, n), values);
}

#define WITH_TAPE(test) cmocka_unit_test_setup_teardown(test, make_tape, free_tape)

#endif
