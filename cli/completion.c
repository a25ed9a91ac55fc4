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

/* The options of a command and of its parts: the set i, NULL behind the last. */
static const heed_option_set *set_of(const command *c, int i)
{
    return i == 0 ? c->options : c->options->parts ? c->options->parts[i - 1] : NULL;
}

static const heed_option *option_of(const heed_option_set *set, const char *name)
{
    const heed_option *o;
    for (int i = 0; (o = heed_option_row(set, i)); i++)
        if (strcmp(o->name, name) == 0)
            return o;
    return NULL;
}

/* Whether a set before the set k has the option. */
static bool is_known(const command *c, int k, const char *name)
{
    bool known = false;
    for (int i = 0; i < k; i++)
        known |= option_of(set_of(c, i), name) != NULL;
    return known;
}

/* Every option once; a flag that may be turned off, both ways. */
static void print_options(const command *c)
{
    const heed_option_set *set;
    const heed_option *o;
    for (int k = 0; (set = set_of(c, k)); k++)
        for (int i = 0; (o = heed_option_row(set, i)); i++) {
            if (is_known(c, k, o->name))
                continue;
            printf("%s--%s", k || i ? " " : "", o->name);
            if (o->type == HEED_OPTION_TYPE_BOOL && o->preset)
                printf(" --no-%s", o->name);
        }
}

/* The value j that a set names for an option; NULL behind the last. */
static const char *value_of(const heed_option_set *set, const heed_option *o, int j)
{
    if (o && o->type == HEED_OPTION_TYPE_CHOICE)
        return o->choices[j];
    return o && strcmp(o->name, "preset") == 0 && set->bundles ? set->bundles()[j].name : NULL;
}

static bool is_named(const command *c, int k, const char *name, const char *value)
{
    const char *other;
    for (int i = 0; i < k; i++)
        for (int j = 0; (other = value_of(set_of(c, i), option_of(set_of(c, i), name), j)); j++)
            if (strcmp(other, value) == 0)
                return true;
    return false;
}

/* What may stand behind an option, in any of the sets, each once. */
static void print_values(const command *c, const char *name)
{
    const heed_option_set *set;
    const char *value, *between = "";
    for (int k = 0; (set = set_of(c, k)); k++)
        for (int j = 0; (value = value_of(set, option_of(set, name), j)); j++)
            if (!is_named(c, k, name, value)) {
                printf("%s%s", between, value);
                between = " ";
            }
}

/* A shell `case` of each command: its options, and the values of those that have a list. */
static void print_cases(const char *list_begin, const char *list_end)
{
    for (const command *c = commands; c->name; c++) {
        const heed_option_set *set;
        const heed_option *o;
        printf("    %s)\n        options=%s", c->name, list_begin);
        print_options(c);
        printf("%s\n        case $before in\n", list_end);
        for (int k = 0; (set = set_of(c, k)); k++)
            for (int i = 0; (o = heed_option_row(set, i)); i++) {
                if (!value_of(set, o, 0) || is_known(c, k, o->name))
                    continue;
                printf("        --%s) values=%s", o->name, list_begin);
                print_values(c, o->name);
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
