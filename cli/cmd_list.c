/* cmd_list.c: `heed list ops`: name, number of gradient cases, formula; `heed list attention`:
 * what can stand in each slot of attention; `heed list models`: what is installed. */
#include "cmd_models.h"
#include "command.h"

#include <heed/attention.h>
#include <stdio.h>
#include <string.h>

static const char *const examples[] = {"heed list ops", "heed list attention", "heed list models",
                                       NULL};
const heed_option_set list_options = {
    .command = "heed list",
    .summary = "List what there is: operators (ops), what attention can be made of (attention), "
               "models that are installed (models)",
    .arguments = "ops|attention|models",
    .least = 1,
    .most = 1,
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
        for (unsigned bit = 1; bit <= HEED_CAN_UNION; bit *= 2)
            if (row.can & bit)
                printf(" %s", heed_attention_ability_name((heed_attention_ability)bit));
        putchar('\n');
    }
}

int list_run(int argc, const char *const *argv)
{
    static const char *const subjects[] = {"ops", "attention", "models", NULL};
    invocation in;
    int code = EXIT_DONE, subject;
    if (!invocation_begin(&in, &list_options, argc, argv, NULL))
        code = in.exit_code;
    else if ((subject = choose_word("list", in.words.items[0], subjects)) < 0)
        code = EXIT_USAGE;
    else if (subject == 0)
        list_ops();
    else if (subject == 1)
        list_attention();
    else
        list_models();
    invocation_end(&in);
    return code;
}
