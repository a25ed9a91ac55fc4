/* cmd_list.c: `heed list ops`: name, number of gradient cases, formula; `heed list attention`:
 * what can stand in each slot of attention, and pictures of the patterns; `heed list models`: what
 * is installed. */
#include "cmd_models.h"
#include "command.h"

#include <heed/show.h>
#include <stdio.h>
#include <string.h>

struct settings {
    bool json;
    const char *output;
};
static const heed_option fields[] = {
    HEED_OPTION_BOOL(struct settings, json, "json", NULL,
                     "attention: print one JSON object a row, instead of lines for people"),
    HEED_OPTION_TEXT(struct settings, output, "output", NULL, "FILE.svg",
                     "attention: draw which pairs of a query and a key may meet, a picture for "
                     "each pattern by position"),
};
static const char *const examples[] = {"heed list ops", "heed list attention",
                                       "heed list attention --output patterns.svg",
                                       "heed list models", NULL};
const heed_option_set list_options = {
    .command = "heed list",
    .summary = "List operators, what attention is made of, or installed models",
    .arguments = "ops|attention|models",
    .least = 1,
    .most = 1,
    .fields = fields,
    .count = sizeof fields / sizeof *fields,
    .examples = examples,
};

static int longer(int widest, const char *name)
{
    int n = name ? (int)strlen(name) : 0;
    return n > widest ? n : widest;
}

static void list_ops(void)
{
    int widest = 0;
    for (int i = 0; i < heed_op_count(); i++)
        widest = longer(widest, heed_op_describe(i).name);
    for (int i = 0; i < heed_op_count(); i++) {
        heed_op_info op = heed_op_describe(i);
        if (op.name)
            printf("%-*s  %3d cases  %s\n", widest, op.name, op.cases, op.formula);
    }
}

/* A row is a line for people, with what it costs and can do below it. */
static void list_attention(void)
{
    int widest = 0, slot = -1;
    for (int i = 0; i < heed_attention_count(); i++)
        widest = longer(widest, heed_attention_describe(i).form);
    for (int i = 0; i < heed_attention_count(); i++) {
        heed_attention_info row = heed_attention_describe(i);
        if ((int)row.slot != slot)
            printf("%s%s\n", i ? "\n" : "", heed_attention_slot_name(row.slot));
        slot = (int)row.slot;
        printf("  %-*s  %s\n", widest, row.form, row.formula);
        printf("  %-*s  %s; costs %s; can:", widest, "", row.paper, row.cost);
        for (unsigned bit = 1; heed_attention_ability_name((heed_attention_ability)bit); bit *= 2)
            if (row.can & bit)
                printf(" %s", heed_attention_ability_name((heed_attention_ability)bit));
        putchar('\n');
    }
}

static void print_member(const char *name, const char *text)
{
    printf(",\"%s\":", name);
    print_json_text(text);
}

static void list_attention_json(void)
{
    for (int i = 0; i < heed_attention_count(); i++) {
        const heed_attention_info row = heed_attention_describe(i);
        const char *before = "";
        printf("{\"slot\":\"%s\"", heed_attention_slot_name(row.slot));
        print_member("name", row.name);
        print_member("form", row.form);
        print_member("formula", row.formula);
        print_member("cost", row.cost);
        printf(",\"can\":[");
        for (unsigned bit = 1; heed_attention_ability_name((heed_attention_ability)bit); bit *= 2)
            if (row.can & bit) {
                printf("%s\"%s\"", before,
                       heed_attention_ability_name((heed_attention_ability)bit));
                before = ",";
            }
        printf("]");
        print_member("paper", row.paper);
        if (row.example)
            print_member("example", row.example);
        puts("}");
    }
}

/* Every pattern by position twice: all keys, and causal; and a union. */
static heed_status draw_patterns(const char *path, heed_arena *arena, heed_error *err)
{
    enum { POSITIONS = 36, ACROSS = 6, ROOM = 48 };
    static const char *const more[] = {"band:5+random:2"};
    const int rows = heed_attention_count(), all = rows + (int)(sizeof more / sizeof *more);
    heed_pattern_square *squares = heed_arena_allocate(arena, 2 * (size_t)all * sizeof *squares);
    char(*title)[ROOM] = heed_arena_allocate(arena, 2 * (size_t)all * sizeof *title);
    const char *svg;
    int count = 0;
    for (int i = 0; squares && title && i < all; i++) {
        const char *form = i < rows ? heed_attention_describe(i).example : more[i - rows];
        for (int causal = 0; form && causal < 2; causal++, count++) {
            heed_pattern_square *s = &squares[count];
            *s = (heed_pattern_square){.title = title[count], .causal = causal};
            snprintf(title[count], ROOM, causal ? "causal" : "%s", form);
            if (heed_slot_parse(HEED_SLOT_PATTERN, form, &s->pattern, err))
                return err->status;
        }
    }
    if (!count)
        return HEED_MEMORY;
    heed_status status = heed_patterns_svg("Patterns of attention: which pairs may meet", squares,
                                           count, POSITIONS, ACROSS, arena, &svg, err);
    return status ? status : heed_text_save(path, svg, err);
}

static int list_mechanisms(const struct settings *s, heed_arena *arena)
{
    heed_error err = {0};
    if (s->output && !ends_with(s->output, ".svg")) {
        complain("option '--output' draws an SVG, expected a name like patterns.svg, found '%s'",
                 s->output);
        return EXIT_USAGE;
    }
    if (s->output && draw_patterns(s->output, arena, &err)) {
        complain("%s", err.status ? err.text : "out of memory for a picture");
        return EXIT_FAILED;
    }
    if (s->json)
        list_attention_json();
    else if (!s->output)
        list_attention();
    return EXIT_DONE;
}

int list_run(int argc, const char *const *argv)
{
    static const char *const subjects[] = {"ops", "attention", "models", NULL};
    invocation in;
    struct settings s;
    int code = EXIT_DONE, subject;
    if (!invocation_begin(&in, &list_options, argc, argv, &s)) {
        code = in.exit_code;
    } else if ((subject = choose_word("list", in.words.items[0], subjects)) < 0) {
        code = EXIT_USAGE;
    } else if (subject == 1) {
        code = list_mechanisms(&s, in.arena);
    } else if (s.json || s.output) {
        complain("option '--%s' has no effect with '%s': it is of 'heed list attention'",
                 s.json ? "json" : "output", subjects[subject]);
        code = EXIT_USAGE;
    } else if (subject == 0) {
        list_ops();
    } else {
        list_models();
    }
    invocation_end(&in);
    return code;
}
