/* command.c: parsing a command's options and saying what was wrong with them. */
#include "command.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

void complain(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fputs("heed: ", stderr);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
}

bool invocation_parse(invocation *in, const heed_option_set *set, int argc, const char *const *argv,
                      void *values)
{
    heed_error err = {0};
    heed_option_result result;
    *in = (invocation){.exit_code = EXIT_FAILED};
    in->arena = heed_arena_new(NULL, &err);
    if (!in->arena || heed_option_parse(set, argc, argv, values, in->arena, &result, &err)) {
        complain("%s", err.text);
        if (err.status == HEED_ARGUMENT) {
            fprintf(stderr, "try '%s --help'\n", set->command);
            in->exit_code = EXIT_USAGE;
        }
        return false;
    }
    in->words = result.words;
    in->origins = result.origins;
    in->action = result.action;
    return true;
}

bool invocation_runs(invocation *in, const heed_option_set *set, const void *values)
{
    if (in->action == HEED_OPTION_RUN)
        return true;
    const bool all = in->action == HEED_OPTION_HELP_ALL;
    const char *text = in->action == HEED_OPTION_PRINT_CONFIG
                           ? heed_option_config(set, values, in->arena)
                           : heed_option_help(set, all, in->arena);
    if (text)
        fputs(text, stdout);
    else
        complain("out of memory");
    in->exit_code = text ? EXIT_DONE : EXIT_FAILED;
    return false;
}

bool invocation_begin(invocation *in, const heed_option_set *set, int argc, const char *const *argv,
                      void *values)
{
    return invocation_parse(in, set, argc, argv, values) && invocation_runs(in, set, values);
}

void invocation_end(invocation *in)
{
    heed_arena_free(in->arena);
}

bool option_typed(const invocation *in, const char *name)
{
    return heed_option_origin_of(&in->origins, name) == HEED_OPTION_BY_COMMAND_LINE;
}

static bool nobody_reads; /* stdout */

bool reader_left(void)
{
    return nobody_reads;
}

bool results_written(void)
{
    static bool failed;
    errno = 0;
    bool lost = (fflush(stdout) != 0) | ferror(stdout);
    /* The write that failed may lie behind us and its reason be gone: it stops one more, too. */
    if (lost && !failed && !errno && write(STDOUT_FILENO, "\n", 1) > 0)
        errno = 0;
    if (lost && !failed && errno == EPIPE)
        nobody_reads = true;
    else if (lost && !failed)
        complain("cannot write to standard output: %s", errno ? strerror(errno) : "write error");
    failed |= lost;
    return !failed;
}

void print_json_text(const char *text)
{
    char escaped[8];
    putchar('"');
    for (; *text; text++)
        fputs(heed_json_escape(*text, escaped), stdout);
    putchar('"');
}

int choose_word(const char *what, const char *word, const char *const *names)
{
    int n = 0;
    for (; names[n]; n++)
        if (strcmp(names[n], word) == 0)
            return n;
    const char *near = heed_option_nearest(word, names, n);
    if (near)
        complain("unknown %s '%s'; did you mean '%s'?", what, word, near);
    else if (n > 4)
        complain("unknown %s '%s'", what, word);
    else
        complain("unknown %s '%s', expected %s%s%s%s%s%s%s", what, word, names[0],
                 n > 2 ? ", " : "", n > 2 ? names[1] : "", n > 3 ? ", " : "", n > 3 ? names[2] : "",
                 n > 1 ? " or " : "", n > 1 ? names[n - 1] : "");
    return -1;
}

bool ends_with(const char *text, const char *end)
{
    size_t n = strlen(text), m = strlen(end);
    return n > m && strcmp(text + n - m, end) == 0;
}
