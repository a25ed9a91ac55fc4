/* bench.c: `heed bench kernels`. */
#include "bench/bench.h"
#include "command.h"

struct settings {
    int64_t threads;
    bool json;
    const char *only;
};
static const heed_option fields[] = {
    HEED_OPTION_INT(struct settings, threads, "threads", NULL, 0, 64, "N",
                    "measure with so many threads, 0 for 1 and then all processors"),
    HEED_OPTION_BOOL(struct settings, json, "json", NULL, "print one JSON object a line"),
    HEED_OPTION_TEXT(struct settings, only, "only", NULL, "NAME",
                     "run only the measurements with this in their name"),
};
static const char *const examples[] = {"heed bench kernels",
                                       "heed bench kernels --threads 1 --only linear --json", NULL};
const heed_option_set bench_options = {
    .command = "heed bench",
    .summary = "Measure the kernels against what this machine gives",
    .arguments = "kernels",
    .least = 1,
    .most = 1,
    .fields = fields,
    .count = sizeof fields / sizeof *fields,
    .examples = examples,
};

int bench_run(int argc, const char *const *argv)
{
    static const char *const subjects[] = {"kernels", NULL};
    invocation in;
    struct settings s;
    int code = EXIT_DONE;
    if (!invocation_begin(&in, &bench_options, argc, argv, &s))
        code = in.exit_code;
    else if (choose_word("benchmark", in.words.items[0], subjects) < 0)
        code = EXIT_USAGE;
    else if (!bench_kernels(&(struct bench_settings){(int)s.threads, s.json, s.only}))
        code = EXIT_FAILED;
    invocation_end(&in);
    return code;
}
