/* cmd_selftest.c: `heed selftest`: every operator's gradient cases, in the build at hand. */
#include "command.h"

#include <heed/tensor.h>
#include <stdio.h>

struct settings {
    int64_t threads;
    bool verbose;
};
static const heed_option fields[] = {
    HEED_OPTION_INT(struct settings, threads, "threads", NULL, 0, 64, "N",
                    "threads inside an operator, 0 for all processors"),
    HEED_OPTION_BOOL(struct settings, verbose, "verbose", NULL, "show every case and its error"),
};
static const char *const examples[] = {"heed selftest", "heed selftest --threads 1 --verbose",
                                       NULL};
const heed_option_set selftest_options = {
    .command = "heed selftest",
    .summary = "Check every operator's gradient against differences on this machine",
    .fields = fields,
    .count = sizeof fields / sizeof *fields,
    .examples = examples,
};

struct tally {
    int operators, passed, failed;
    double tolerance;
};

static void check_op(int i, const struct settings *s, struct tally *tally)
{
    heed_op_info op = heed_op_describe(i);
    tally->operators += op.cases > 0;
    for (int c = 0; c < op.cases; c++) {
        heed_check_result result = {0};
        heed_error err = {0};
        heed_status status = heed_op_check(i, c, (int)s->threads, &result, &err);
        bool passed = !status && result.passed;
        if (passed)
            tally->passed++;
        else
            tally->failed++;
        tally->tolerance = result.tolerance;
        if (!passed)
            printf("FAILED  %s, %s: %s\n", op.name, result.what, status ? err.text : result.text);
        else if (s->verbose)
            printf("passed  %s, %s: error %.2g\n", op.name, result.what, result.error);
    }
}

int selftest_run(int argc, const char *const *argv)
{
    invocation in;
    struct settings s;
    int code = EXIT_DONE;
    if (invocation_begin(&in, &selftest_options, argc, argv, &s)) {
        struct tally tally = {0};
        for (int i = 0; i < heed_op_count(); i++)
            check_op(i, &s, &tally);
        printf("gradients of %d operators in %s, error at most %g of the largest entry\n",
               tally.operators, sizeof(heed_real) == 8 ? "double" : "float", tally.tolerance);
        printf("%d passed, %d failed\n", tally.passed, tally.failed);
        code = tally.failed || !tally.passed ? EXIT_FAILED : EXIT_DONE;
    } else {
        code = in.exit_code;
    }
    invocation_end(&in);
    return code;
}
