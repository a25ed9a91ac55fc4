/* main.c: the program `heed`: a table of commands.  Exit 0 done, 1 failed, 2 wrong usage, 130
 * interrupted.  What could not be written to stdout counts as failed. */
#include "command.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const command commands[] = {
#define COMMAND_ROW(name) {#name, &name##_options, name##_run},
    COMMAND_LIST(COMMAND_ROW)
#undef COMMAND_ROW
        {NULL, NULL, NULL},
};

const command *command_find(const char *name)
{
    const char *names[sizeof commands / sizeof *commands];
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        names[i] = commands[i].name;
    int i = choose_word("command", name, names);
    return i < 0 ? NULL : &commands[i];
}

/* The library takes what it has when HEED_ISA names nothing that it could run; who set it wants
 * to know. */
static void check_environment(void)
{
    const char *wanted = getenv("HEED_ISA");
    heed_machine m;
    heed_machine_describe(&m);
    if (wanted && *wanted && strcmp(wanted, m.instruction_set) != 0)
        complain("HEED_ISA is '%s', which does not run here; using '%s'", wanted,
                 m.instruction_set);
}

static int run(int argc, const char *const *argv)
{
    if (argc < 2) {
        print_overview();
        return EXIT_DONE;
    }
    const char *name = argv[1];
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0)
        name = "help";
    if (strcmp(name, "--version") == 0)
        name = "version";
    const command *c = command_find(name);
    if (!c) {
        fputs("try 'heed help'\n", stderr);
        return EXIT_USAGE;
    }
    return c->run(argc - 2, argv + 2);
}

int main(int argc, char **argv)
{
    /* A reader that went away then shows as a failed write: what was begun is ended in order. */
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN); /* and so does a file that grows beyond `ulimit -f` */
    check_environment();
    int code = run(argc, (const char *const *)argv);
    bool written = results_written();
    if (written && fclose(stdout) != 0) { /* some file systems say it only now */
        complain("cannot write to standard output: %s", strerror(errno));
        written = false;
    }
    return written || reader_left() ? code : EXIT_FAILED;
}
