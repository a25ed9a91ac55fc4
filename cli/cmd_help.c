/* cmd_help.c: `heed help [command]`; the same tables as manual pages and shell completion. */
#include "cmd_help.h"
#include "command.h"

#include <stdio.h>
#include <string.h>

struct settings {
    bool man;
    int completion;
};
static const char *const shells[] = {"none", "bash", "zsh", NULL};
static const heed_option fields[] = {
    HEED_OPTION_BOOL(struct settings, man, "man", NULL, "print the manual page (roff)"),
    HEED_OPTION_CHOICE(struct settings, completion, "completion", "none", shells,
                       "print the completion script of a shell"),
};
static const char *const examples[] = {"heed help bench", "heed help bench train",
                                       "heed help --man train | man -l -",
                                       "source <(heed help --completion bash)", NULL};
const heed_option_set help_options = {
    .command = "heed help",
    .summary = "Show what heed can do, or how one command is used",
    .arguments = "[command [part]]",
    .most = 2,
    .fields = fields,
    .count = sizeof fields / sizeof *fields,
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

/* heed(1): the commands, each with a page of its own. */
static void print_main_page(void)
{
    printf(".TH HEED 1 \"\" \"heed %s\" \"heed manual\"\n.SH NAME\nheed \\- train, translate and "
           "look inside attention models on ordinary processors\n.SH SYNOPSIS\n.B heed\n"
           "command [options] [files]\n.SH COMMANDS\n",
           heed_version());
    for (const command *c = commands; c->name; c++)
        printf(".TP\n.BR heed\\-%s (1)\n%s\n", c->name, c->options->summary);
    printf(".SH EXIT STATUS\n0 done, 1 failed, 2 wrong usage, 130 interrupted\n"
           ".SH ENVIRONMENT\n.TP\n.B HEED_ISA\nthe instruction set to use: baseline, avx2 or "
           "avx512\n");
}

/* The part of a command whose last word that is; NULL: it has none. */
static const heed_option_set *part_of(const command *c, const char *word)
{
    const heed_option_set *const *part = c ? c->options->parts : NULL;
    const size_t n = strlen(word);
    for (; part && *part; part++) {
        const char *name = (*part)->command, *last = name + strlen(name) - n;
        if (strlen(name) > n && last[-1] == ' ' && strcmp(last, word) == 0)
            return *part;
    }
    return NULL;
}

static int print_page(const heed_option_list *words, heed_arena *arena)
{
    const char *name = words->count ? words->items[0] : NULL;
    const command *c = name ? command_find(name) : NULL;
    const heed_option_set *set = c ? c->options : NULL;
    if (c && words->count > 1 && !(set = part_of(c, words->items[1]))) {
        complain("'heed %s' has no page on '%s'", name, words->items[1]);
        return EXIT_USAGE;
    }
    const char *text = set ? heed_option_man(set, arena) : NULL;
    if (!name)
        print_main_page();
    else if (text)
        fputs(text, stdout);
    else if (c)
        complain("out of memory");
    return !name || text ? EXIT_DONE : c ? EXIT_FAILED : EXIT_USAGE;
}

/* A command explains itself and what it runs by name. */
static int explain(const heed_option_list *words, heed_arena *arena)
{
    const char *const rest[] = {words->count > 1 ? words->items[1] : "--help", "--help"};
    const command *c = command_find(words->items[0]);
    const heed_option_set *part = c && words->count > 1 ? part_of(c, words->items[1]) : NULL;
    const char *text = part ? heed_option_help(part, false, arena) : NULL;
    if (text)
        fputs(text, stdout);
    if (part)
        return text ? EXIT_DONE : EXIT_FAILED;
    return c ? c->run(words->count > 1 ? 2 : 1, rest) : EXIT_USAGE;
}

int help_run(int argc, const char *const *argv)
{
    invocation in;
    struct settings s;
    int code = EXIT_DONE;
    if (!invocation_begin(&in, &help_options, argc, argv, &s)) {
        code = in.exit_code;
    } else if (s.man) {
        code = print_page(&in.words, in.arena);
    } else if (s.completion) {
        (s.completion == 1 ? print_bash_completion : print_zsh_completion)();
    } else if (in.words.count == 0) {
        print_overview();
    } else {
        code = explain(&in.words, in.arena);
    }
    invocation_end(&in);
    return code;
}
