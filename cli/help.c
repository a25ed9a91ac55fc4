/* help.c: `heed help [command]`. */
#include "command.h"

#include <stdio.h>

static const char *const examples[] = {"heed help bench", "heed help bench train", NULL};
const heed_option_set help_options = {
    .command = "heed help",
    .summary = "Show what heed can do, or how one command is used",
    .arguments = "[command [part]]",
    .most = 2,
    .examples = examples,
};

void print_overview(void)
{
    printf("heed %s: a Transformer toolkit\n\nusage: heed <command> [options] [files]\n\n",
           heed_version());
    for (const command *c = commands; c->name; c++)
        printf("  %-10s  %s\n", c->name, c->options->summary);
    printf("\n'heed help <command>' says more about one of them.\n");
}

int help_run(int argc, const char *const *argv)
{
    invocation in;
    int code = EXIT_DONE;
    if (!invocation_begin(&in, &help_options, argc, argv, NULL)) {
        code = in.exit_code;
    } else if (in.words.count == 0) {
        print_overview();
    } else {
        /* A command explains itself and its parts. */
        const char *const rest[] = {in.words.count > 1 ? in.words.items[1] : "--help", "--help"};
        const command *c = command_find(in.words.items[0]);
        code = c ? c->run(in.words.count > 1 ? 2 : 1, rest) : EXIT_USAGE;
    }
    invocation_end(&in);
    return code;
}
