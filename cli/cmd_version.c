/* cmd_version.c: `heed version`, also `heed --version`: what was built, and what it found to
 * run on. */
#include "command.h"

#include <heed/dist.h>
#include <stdio.h>

static const char *const examples[] = {"heed --version", "HEED_ISA=baseline heed --version", NULL};
const heed_option_set version_options = {
    .command = "heed version",
    .summary = "Show the version, the instruction set, the BLAS and the threads in use",
    .examples = examples,
};

int version_run(int argc, const char *const *argv)
{
    invocation in;
    bool go = invocation_begin(&in, &version_options, argc, argv, NULL);
    if (go) {
        heed_machine m;
        heed_machine_describe(&m);
        printf("heed %s\n", heed_version());
        printf("numbers:         %s\n", sizeof(heed_real) == 8 ? "double" : "float");
        printf("processor:       %s\n", m.cpu);
        printf("instruction set: %s\n", m.instruction_set);
        printf("blas:            %s\n", m.blas);
        printf("threads:         %d\n", m.threads);
        if (heed_ranks_library())
            printf("processes:       %s\n", heed_ranks_library());
    }
    invocation_end(&in);
    return go ? EXIT_DONE : in.exit_code;
}
