/* command.h: what the commands of the program share.
 *
 * A command is one file: an option set, a run function, and a line in main.c's table.  Results go
 * to stdout and nothing else does; run returns an exit code. */
#ifndef HEED_CLI_COMMAND_H
#define HEED_CLI_COMMAND_H

#include <heed/options.h>

enum { EXIT_DONE = 0, EXIT_FAILED = 1, EXIT_USAGE = 2, EXIT_INTERRUPTED = 130 };

typedef struct command {
    const char *name;
    const heed_option_set *options;
    /* argv[0] is the first word after the command's name. */
    int (*run)(int argc, const char *const *argv);
} command;

/* Every command, in the order of the overview: NAME_options and NAME_run of cli/NAME.c. */
#define COMMAND_LIST(X)                                                                            \
    X(train)                                                                                       \
    X(translate)                                                                                   \
    X(generate)                                                                                    \
    X(classify)                                                                                    \
    X(tag)                                                                                         \
    X(embed)                                                                                       \
    X(fill)                                                                                        \
    X(score)                                                                                       \
    X(evaluate)                                                                                    \
    X(caption)                                                                                     \
    X(retrieve)                                                                                    \
    X(convert)                                                                                     \
    X(shortlist)                                                                                   \
    X(inspect)                                                                                     \
    X(lab)                                                                                         \
    X(vocab)                                                                                       \
    X(list)                                                                                        \
    X(selftest)                                                                                    \
    X(bench)                                                                                       \
    X(version)                                                                                     \
    X(help)
#define COMMAND_DECLARE(name)                                                                      \
    extern const heed_option_set name##_options;                                                   \
    int name##_run(int argc, const char *const *argv);
COMMAND_LIST(COMMAND_DECLARE)

/* The table, ended by a name of NULL; by name, or NULL after saying on stderr what was meant. */
extern const command commands[];
const command *command_find(const char *name);
/* Prints what `heed` alone prints. */
void print_overview(void);

/* An arena and the options in it, from begin to end. */
typedef struct invocation {
    heed_arena *arena;
    heed_option_list words;
    heed_option_origins origins;
    heed_option_action action;
    int exit_code; /* if begin returned false: what to return */
} invocation;
/* Parses into values.  False if there is nothing left to do: help or the config was printed, or
 * something was wrong and has been said.  Call end in any case. */
bool invocation_begin(invocation *in, const heed_option_set *set, int argc, const char *const *argv,
                      void *values);
/* Its two halves, for a command that fills something in between. */
bool invocation_parse(invocation *in, const heed_option_set *set, int argc, const char *const *argv,
                      void *values);
bool invocation_runs(invocation *in, const heed_option_set *set, const void *values);
void invocation_end(invocation *in);
/* Whether the option stands on the command line itself: then it must have an effect.  A config file
 * may name every option. */
bool option_typed(const invocation *in, const char *name);

/* "heed: text" on stderr. */
void complain(const char *format, ...)
#if defined(__GNUC__)
    __attribute__((format(printf, 1, 2)))
#endif
    ;
/* Sends off what was printed on stdout; false after saying, once, why it could not be written.  A
 * command with more to come stops then; the program's end asks in any case. */
bool results_written(void);
/* Whether that was because nobody reads on, as `head` does: no failure, and nothing was said. */
bool reader_left(void);
/* A JSON string on stdout; text is UTF-8. */
void print_json_text(const char *text);
bool ends_with(const char *text, const char *end);
/* One of several words, as in `heed list ops`: its index, or -1 after saying what was meant.  names
 * ends with NULL. */
int choose_word(const char *what, const char *word, const char *const *names);

#endif
