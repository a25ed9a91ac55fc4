/* Every operator's gradient cases, in the build at hand: 1e-8 in double, a coarse look in float. */
#include "ops/list.h"
#include "tensor/op.h"
#include <heed/ops.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* Catches: a wrong derivative, a forgotten input, an assignment where there should be an addition,
 * an operator that ignores leading dimensions or breaks when one tensor comes in twice. */
static void every_case_of_every_operator(void **state)
{
    (void)state;
    int failed = 0, ran = 0;
    for (int i = 0; i < heed_op_count(); i++) {
        heed_op_info info = heed_op_describe(i);
        for (int c = 0; c < info.cases; c++, ran++) {
            heed_check_result result;
            heed_error err = {0};
            heed_status status = heed_op_check(i, c, 0, &result, &err);
            if (status || !result.passed) {
                print_message("%s, %s: %s\n", info.name, result.what,
                              status ? err.text : result.text);
                failed++;
            }
        }
    }
    print_message("%d gradient cases\n", ran);
    assert_int_equal(failed, 0);
    assert_true(ran > 0);
}

/* A gradient flows, and nothing would notice if it were wrong. */
static bool is_unproved(const heed_op *op)
{
    return op->backward && (op->n_cases < 1 || !op->run);
}

#define DECLARE(name) extern const heed_op heed__op_##name;
HEED_OP_LIST(DECLARE)

/* Catches: an operator with a backward and no cases. */
static void every_operator_has_cases(void **state)
{
    static const heed_op *const all[] = {
#define ROW(name) &heed__op_##name,
        HEED_OP_LIST(ROW)};
    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (is_unproved(all[i]))
            fail_msg("%s has a backward and no cases", all[i]->name);
    heed_op bare = *all[0];
    bare.n_cases = 0;
    assert_true(is_unproved(&bare));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_operator_has_cases),
        cmocka_unit_test(every_case_of_every_operator),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
