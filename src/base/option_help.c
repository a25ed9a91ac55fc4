/* option_help.c: the help text of an option set, and the nearest name to a wrong one. */
#include "base/option_parse.h"
#include "base/string.h"

#include <stdio.h>
#include <string.h>

#define COLUMNS 80
#define WIDEST_NAME 28 /* a longer name gets its own line */

/* Appends the words of text, broken before COLUMNS, further lines indented.  `at` is the column the
 * text starts in. */
static void add_wrapped(heed__string *s, const char *text, size_t indent, size_t at)
{
    bool first = true;
    while (*text) {
        size_t n = strcspn(text, " ");
        if (!first && at + 1 + n > COLUMNS) {
            heed__string_add(s, "\n");
            heed__string_fill(s, ' ', indent);
            at = indent;
        } else if (!first) {
            heed__string_add(s, " ");
            at++;
        }
        heed__string_add_bytes(s, text, n);
        at += n;
        text += n;
        text += strspn(text, " ");
        first = false;
    }
    heed__string_add(s, "\n");
}

static bool some_bundle_sets(const heed_option_set *set, const char *name)
{
    for (const heed_option_bundle *b = set->bundles ? set->bundles() : NULL; b && b->name; b++)
        for (const char *const *a = b->assignments; *a; a += 2)
            if (strcmp(*a, name) == 0)
                return true;
    return false;
}

/* A flag that may be on by default or by a preset is shown as --[no-]NAME. */
void heed__option_name_text(const heed_option_set *set, const heed_option *o, char *text,
                            size_t capacity)
{
    static const char *const value[] = {
        [HEED_OPTION_TYPE_INT] = "N",       [HEED_OPTION_TYPE_REAL] = "X",
        [HEED_OPTION_TYPE_TEXT] = "TEXT",   [HEED_OPTION_TYPE_LIST] = "TEXT",
        [HEED_OPTION_TYPE_CHOICE] = "NAME", [HEED_OPTION_TYPE_SPEC] = "SPEC",
    };
    char letter[] = "-x, ";
    letter[1] = heed_option_letter(o->name);
    if (!letter[1])
        letter[0] = '\0';
    if (o->type == HEED_OPTION_TYPE_BOOL)
        snprintf(text, capacity, "  %s--%s%s", letter,
                 heed__option_default(set, o) || some_bundle_sets(set, o->name) ? "[no-]" : "",
                 o->name);
    else
        snprintf(text, capacity, "  %s--%s %s", letter, o->name,
                 o->value ? o->value : value[o->type]);
}

/* The help phrase and, in brackets, the allowed values and the default. */
void heed__option_description(heed__string *d, const heed_option_set *set, const heed_option *o)
{
    char text[HEED_OPTION_EXPECTED];
    const char *preset = heed__option_default(set, o);
    heed__string_add(d, o->help);
    bool limited = o->least || o->most || o->low != 0 || o->high != 0;
    const char *may = o->type == HEED_OPTION_TYPE_CHOICE || limited ? heed__option_expected(o, text)
                      : o->type == HEED_OPTION_TYPE_LIST && o->takes < 2
                          ? "may be given several times"
                          : "";
    bool shown = preset && o->type != HEED_OPTION_TYPE_BOOL;
    bool on = preset && o->type == HEED_OPTION_TYPE_BOOL && strcmp(preset, "true") == 0;
    if (*may || shown || on)
        heed__string_format(d, " (%s%s%s%s)", may, *may && (shown || on) ? "; " : "",
                            shown ? "default: "
                            : on  ? "default: on"
                                  : "",
                            shown ? preset : "");
}

static void add_row(heed__string *s, const char *name, const char *description, size_t column)
{
    size_t n = strlen(name);
    heed__string_add(s, name);
    if (n + 2 > column) {
        heed__string_add(s, "\n");
        n = 0;
    }
    heed__string_fill(s, ' ', column - n);
    add_wrapped(s, description, column, column);
}

const heed_option *heed_option_row(const heed_option_set *set, int i)
{
    if (!set)
        return NULL;
    static const heed_option standard[] = {
#define FIELD(name_, value_, help_, there)                                                         \
    {.name = name_,                                                                                \
     .type = value_ ? HEED_OPTION_TYPE_TEXT : HEED_OPTION_TYPE_BOOL,                               \
     .value = value_,                                                                              \
     .help = help_},
        HEED_OPTION_STANDARD(FIELD)
#undef FIELD
    };
    const bool there[] = {
#define THERE(name, value, help, there_) there_,
        HEED_OPTION_STANDARD(THERE)
#undef THERE
    };
    if (i < 0)
        return NULL;
    for (int k = 0; k < set->count; k++)
        if (!heed__option_left_out(set, &set->fields[k]) && i-- == 0)
            return &set->fields[k];
    for (size_t j = 0; j < sizeof there / sizeof *there; j++)
        if (there[j] && i-- == 0)
            return &standard[j];
    return NULL;
}

char heed_option_letter(const char *name)
{
    if (!name)
        return 0;
    static const char *const names[] = {"help", "model", "output", "beam", "threads"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(names[i], name) == 0)
            return name[0];
    return 0;
}

bool heed__option_in_group(const heed_option_set *set, const heed_option *o,
                           const heed_option_group *g)
{
    if (g->title)
        return heed__option_listed(g->names, o->name);
    if (o < set->fields || o >= set->fields + set->count)
        return true; /* what every set has */
    for (g = set->groups; g && g->title; g++)
        if (heed__option_listed(g->names, o->name))
            return false;
    return true;
}

static void add_bundles(heed__string *s, const heed_option_bundle *b, size_t column)
{
    char name[128];
    heed__string_add(s, "\npresets:\n");
    for (; b->name; b++) {
        snprintf(name, sizeof name, "  %s", b->name);
        add_row(s, name, b->summary, column);
    }
}

/* The rows of one group; a group without a title has what the others leave. */
static void add_group(heed__string *s, heed__string *d, const heed_option_set *set,
                      const heed_option_group *g, size_t column)
{
    const heed_option *o;
    char name[128];
    for (int i = 0; (o = heed_option_row(set, i)); i++) {
        if (!heed__option_in_group(set, o, g))
            continue;
        heed__option_name_text(set, o, name, sizeof name);
        heed__string_clear(d);
        heed__option_description(d, set, o);
        add_row(s, name, heed__string_text(d), column);
    }
}

static size_t name_column(const heed_option_set *set)
{
    size_t column = 0;
    const heed_option *o;
    char name[128];
    for (int i = 0; (o = heed_option_row(set, i)); i++) {
        heed__option_name_text(set, o, name, sizeof name);
        size_t n = strlen(name) + 2;
        if (n > column && n <= WIDEST_NAME)
            column = n;
    }
    return column;
}

static void add_parts(heed__string *s, const heed_option_set *const *parts)
{
    heed__string_add(s, parts && *parts ? "\nsee also:\n" : "");
    for (; parts && *parts; parts++) {
        heed__string_format(s, "  %s --help\n      ", (*parts)->command);
        add_wrapped(s, (*parts)->summary, 6, 6);
    }
}

const char *heed_option_help(const heed_option_set *set, bool all, heed_arena *arena)
{
    if (!set)
        return NULL;
    heed__string s, d;
    heed__string_init(&s, NULL);
    heed__string_init(&d, NULL);
    heed__string_format(&s, "usage: %s [options]%s%s\n", set->command, set->arguments ? " " : "",
                        set->arguments ? set->arguments : "");
    if (set->summary)
        add_wrapped(&s, set->summary, 0, 0);
    const size_t column = name_column(set);
    const heed_option_group *g = set->groups;
    int hidden = 0;
    for (; g && g->title; g++) {
        if (!all && !g->main) {
            hidden++;
            continue;
        }
        heed__string_format(&s, "\n%s:\n", g->title);
        add_group(&s, &d, set, g, column);
    }
    heed__string_add(&s, set->groups ? "\nmore:\n" : "\noptions:\n");
    add_group(&s, &d, set, &(heed_option_group){NULL, NULL, true}, column);
    if (set->bundles)
        add_bundles(&s, set->bundles(), column);
    if (set->examples && set->examples[0])
        heed__string_add(&s, "\nexamples:\n");
    for (int i = 0; set->examples && set->examples[i]; i++)
        heed__string_format(&s, "  %s\n", set->examples[i]);
    add_parts(&s, set->parts);
    if (hidden)
        heed__string_format(&s, "\n'%s --help-all' shows every option.\n", set->command);
    char *text = s.failed || d.failed ? NULL : heed_arena_allocate(arena, s.length + 1);
    if (text)
        memcpy(text, heed__string_text(&s), s.length + 1);
    heed__string_deinit(&d);
    heed__string_deinit(&s);
    return text;
}

#define LONGEST 63

/* Edit distance from a to b: insertions, deletions, changes and swaps of neighbours. */
static int distance(const char *a, const char *b)
{
    int row_[3][LONGEST + 1];
    int n = (int)strlen(a), m = (int)strlen(b);
    if (n > LONGEST || m > LONGEST)
        return LONGEST;
    int *before = row_[0], *last = row_[1], *now = row_[2];
    for (int j = 0; j <= m; j++)
        last[j] = before[j] = j;
    for (int i = 1; i <= n; i++) {
        now[0] = i;
        for (int j = 1; j <= m; j++) {
            int best = last[j - 1] + (a[i - 1] != b[j - 1]);
            if (last[j] + 1 < best)
                best = last[j] + 1;
            if (now[j - 1] + 1 < best)
                best = now[j - 1] + 1;
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
                before[j - 2] + 1 < best)
                best = before[j - 2] + 1;
            now[j] = best;
        }
        int *free_ = before;
        before = last;
        last = now;
        now = free_;
    }
    return last[m];
}

const char *heed_option_nearest(const char *wrong, const char *const *names, int count)
{
    if (!wrong)
        return NULL;
    const char *best = NULL, *begun = NULL;
    int best_distance = LONGEST, n_begun = 0;
    size_t n = strlen(wrong);
    for (int i = 0; i < count; i++) {
        int d = distance(wrong, names[i]);
        size_t longer = strlen(names[i]) > n ? strlen(names[i]) : n;
        if (d < best_distance && d <= (int)(longer + 2) / 3) {
            best_distance = d;
            best = names[i];
        }
        if (n >= 2 && strncmp(names[i], wrong, n) == 0) {
            begun = names[i];
            n_begun++;
        }
    }
    return n_begun == 1 ? begun : best;
}
