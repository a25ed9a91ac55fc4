/* list.c: `heed list ops`: name, number of gradient cases, formula. */
#include "command.h"

#include <heed/tensor.h>
#include <stdio.h>
#include <string.h>

static const char *const examples[] = {"heed list ops", NULL};
const heed_option_set list_options = {
    .command = "heed list",
    .summary = "List what the library has: its operators (ops)",
    .arguments = "ops",
    .least = 1,
    .most = 1,
    .examples = examples,
};

static void list_ops(void)
{
    int widest = 0;
    for (int i = 0; i < heed_op_count(); i++) {
        heed_op_info op = heed_op_describe(i);
        int n = op.name ? (int)strlen(op.name) : 0;
        widest = n > widest ? n : widest;
    }
    for (int i = 0; i < heed_op_count(); i++) {
        heed_op_info op = heed_op_describe(i);
        if (op.name)
            printf("%-*s  %3d cases  %s\n", widest, op.name, op.cases, op.formula);
    }
}

int list_run(int argc, const char *const *argv)
{
    static const char *const subjects[] = {"ops", NULL};
    invocation in;
    int code = EXIT_DONE;
    if (!invocation_begin(&in, &list_options, argc, argv, NULL))
        code = in.exit_code;
    else if (choose_word("list", in.words.items[0], subjects) < 0)
        code = EXIT_USAGE;
    else
        list_ops();
    invocation_end(&in);
    return code;
}
