/* completion.c: scripts that complete commands, options and their choices, from the option
 * tables. */
#include "cmd_help.h"
#include "command.h"

#include <stdio.h>
#include <string.h>

static void print_commands(void)
{
    for (const command *c = commands; c->name; c++)
        printf("%s%s", c == commands ? "" : " ", c->name);
}

/* Every option of a command; a flag that may be turned off, both ways. */
static void print_options(const heed_option_set *set)
{
    const heed_option *o;
    for (int i = 0; (o = heed_option_row(set, i)); i++) {
        printf("%s--%s", i ? " " : "", o->name);
        if (o->type == HEED_OPTION_TYPE_BOOL && o->preset)
            printf(" --no-%s", o->name);
    }
}

/* What may stand behind an option; false if anything may. */
static bool print_values(const heed_option_set *set, const heed_option *o)
{
    if (o->type == HEED_OPTION_TYPE_CHOICE) {
        for (int i = 0; o->choices[i]; i++)
            printf("%s%s", i ? " " : "", o->choices[i]);
        return true;
    }
    if (strcmp(o->name, "preset") != 0 || !set->bundles)
        return false;
    for (const heed_option_bundle *b = set->bundles(); b->name; b++)
        printf("%s%s", b == set->bundles() ? "" : " ", b->name);
    return true;
}

static bool has_values(const heed_option_set *set, const heed_option *o)
{
    return o->type == HEED_OPTION_TYPE_CHOICE || (strcmp(o->name, "preset") == 0 && set->bundles);
}

/* A shell `case` of each command: its options, and the values of those that have a list. */
static void print_cases(const char *list_begin, const char *list_end)
{
    for (const command *c = commands; c->name; c++) {
        const heed_option *o;
        printf("    %s)\n        options=%s", c->name, list_begin);
        print_options(c->options);
        printf("%s\n        case $before in\n", list_end);
        for (int i = 0; (o = heed_option_row(c->options, i)); i++) {
            if (!has_values(c->options, o))
                continue;
            printf("        --%s) values=%s", o->name, list_begin);
            print_values(c->options, o);
            printf("%s ;;\n", list_end);
        }
        printf("        esac\n        ;;\n");
    }
}

void print_bash_completion(void)
{
    printf("# bash completion for heed\n_heed() {\n"
           "    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]}\n"
           "    local options= values=\n"
           "    if [ \"$COMP_CWORD\" -eq 1 ]; then\n        COMPREPLY=($(compgen -W '");
    print_commands();
    printf("' -- \"$word\"))\n        return\n    fi\n    case ${COMP_WORDS[1]} in\n");
    print_cases("'", "'");
    printf("    esac\n    if [ -n \"$values\" ]; then\n"
           "        COMPREPLY=($(compgen -W \"$values\" -- \"$word\"))\n"
           "    elif [ \"${word:0:1}\" = - ]; then\n"
           "        COMPREPLY=($(compgen -W \"$options\" -- \"$word\"))\n"
           "    else\n        COMPREPLY=($(compgen -f -- \"$word\"))\n    fi\n}\n"
           "complete -o filenames -F _heed heed\n");
}

void print_zsh_completion(void)
{
    printf("#compdef heed\n_heed() {\n    local word=${words[CURRENT]} before=${words[CURRENT-1]}\n"
           "    local -a options values\n    if (( CURRENT == 2 )); then\n        compadd -- ");
    print_commands();
    printf("\n        return\n    fi\n    case ${words[2]} in\n");
    print_cases("(", ")");
    printf("    esac\n    if (( $#values )); then\n        compadd -- $values\n"
           "    elif [[ $word == -* ]]; then\n        compadd -- $options\n"
           "    else\n        _files\n    fi\n}\n_heed \"$@\"\n");
}
