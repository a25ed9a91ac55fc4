/* option_man.c: the manual page of an option set, from the table that also makes its help. */
#include "base/option_parse.h"

#include <ctype.h>
#include <string.h>

/* Text as roff shows it: no line begins with a control character, backslashes and dashes stay. */
static void add_text(heed__string *s, const char *text)
{
    if (*text == '.' || *text == '\'')
        heed__string_add(s, "\\&");
    for (; *text; text++)
        switch (*text) {
        case '\\':
            heed__string_add(s, "\\e");
            break;
        case '-':
            heed__string_add(s, "\\-");
            break;
        default:
            heed__string_add_bytes(s, text, 1);
        }
}

/* "HEED\-TRAIN": blanks become dashes, and the names of options are left out. */
static void add_name(heed__string *s, const char *command, bool upper)
{
    for (const char *between = ""; *command; command += strspn(command, " ")) {
        size_t n = strcspn(command, " ");
        const bool option = strncmp(command, "--", 2) == 0;
        heed__string_add(s, option ? "" : between);
        for (; n; n--, command++) {
            const char c = (char)(upper ? toupper((unsigned char)*command) : *command);
            if (!option)
                heed__string_add_bytes(s, c == '-' ? "\\-" : &c, c == '-' ? 2 : 1);
        }
        between = "\\-";
    }
}

static void add_group(heed__string *s, heed__string *d, const heed_option_set *set,
                      const heed_option_group *g)
{
    const heed_option *o;
    char name[128];
    for (int i = 0; (o = heed_option_row(set, i)); i++) {
        if (!heed__option_in_group(set, o, g))
            continue;
        heed__option_name_text(set, o, name, sizeof name);
        heed__string_clear(d);
        heed__option_description(d, set, o);
        heed__string_add(s, ".TP\n.B ");
        add_text(s, name + strspn(name, " "));
        heed__string_add(s, "\n");
        add_text(s, heed__string_text(d));
        heed__string_add(s, "\n");
    }
}

static void add_groups(heed__string *s, heed__string *d, const heed_option_set *set)
{
    heed__string_add(s, ".SH OPTIONS\n");
    for (const heed_option_group *g = set->groups; g && g->title; g++) {
        heed__string_add(s, ".SS ");
        add_text(s, g->title);
        heed__string_add(s, "\n");
        add_group(s, d, set, g);
    }
    if (set->groups)
        heed__string_add(s, ".SS more\n");
    add_group(s, d, set, &(heed_option_group){NULL, NULL, true});
    const heed_option_bundle *b = set->bundles ? set->bundles() : NULL;
    if (b)
        heed__string_add(s, ".SH PRESETS\n");
    for (; b && b->name; b++) {
        heed__string_format(s, ".TP\n.B %s\n", b->name);
        add_text(s, b->summary);
        heed__string_add(s, "\n");
    }
}

const char *heed_option_man(const heed_option_set *set, heed_arena *arena)
{
    if (!set)
        return NULL;
    heed__string s, d;
    heed__string_init(&s, NULL);
    heed__string_init(&d, NULL);
    heed__string_add(&s, ".TH ");
    add_name(&s, set->command, true);
    heed__string_format(&s, " 1 \"\" \"heed %s\" \"heed manual\"\n.SH NAME\n", heed_version());
    add_name(&s, set->command, false);
    heed__string_add(&s, " \\- ");
    add_text(&s, set->summary ? set->summary : set->command);
    heed__string_format(&s, "\n.SH SYNOPSIS\n.B %s\n[options] %s\n", set->command,
                        set->arguments ? set->arguments : "");
    add_groups(&s, &d, set);
    if (set->examples && set->examples[0])
        heed__string_add(&s, ".SH EXAMPLES\n.nf\n");
    for (int i = 0; set->examples && set->examples[i]; i++) {
        add_text(&s, set->examples[i]);
        heed__string_add(&s, "\n");
    }
    if (set->examples && set->examples[0])
        heed__string_add(&s, ".fi\n");
    heed__string_add(&s, ".SH SEE ALSO\n.BR heed (1)\n");
    for (const heed_option_set *const *part = set->parts; part && *part; part++) {
        heed__string_add(&s, ".BR ");
        add_name(&s, (*part)->command, false);
        heed__string_add(&s, " (1)\n");
    }
    char *text = s.failed || d.failed ? NULL : heed_arena_allocate(arena, s.length + 1);
    if (text)
        memcpy(text, heed__string_text(&s), s.length + 1);
    heed__string_deinit(&d);
    heed__string_deinit(&s);
    return text;
}
