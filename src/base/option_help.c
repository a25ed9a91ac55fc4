/* option_help.c: the help text of an option set, and the nearest name to a wrong one. */
#include "base/options.h"
#include "base/string.h"

#include <stdio.h>
#include <string.h>

#define COLUMNS 80
#define WIDEST_NAME 28 /* a longer one gets its own line */

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

/* A flag that may be on without being given can be turned off. */
static void name_text(const heed_option_set *set, const heed_option *o, char *text, size_t room)
{
    static const char *const value[] = {
        [HEED_OPTION_TYPE_INT] = "N",       [HEED_OPTION_TYPE_REAL] = "X",
        [HEED_OPTION_TYPE_TEXT] = "TEXT",   [HEED_OPTION_TYPE_LIST] = "TEXT",
        [HEED_OPTION_TYPE_CHOICE] = "NAME",
    };
    if (o->type == HEED_OPTION_TYPE_BOOL)
        snprintf(text, room, "  --%s%s", o->preset || some_bundle_sets(set, o->name) ? "[no-]" : "",
                 o->name);
    else
        snprintf(text, room, "  --%s %s", o->name, o->value ? o->value : value[o->type]);
}

/* The help phrase and, in brackets, what may be given and what holds otherwise. */
static void add_description(heed__string *d, const heed_option *o)
{
    char text[HEED_OPTION_EXPECTED];
    heed__string_add(d, o->help);
    bool limited = o->least || o->most || o->low != 0 || o->high != 0;
    const char *may = o->type == HEED_OPTION_TYPE_CHOICE || limited ? heed__option_expected(o, text)
                      : o->type == HEED_OPTION_TYPE_LIST            ? "may be given several times"
                                                                    : "";
    bool shown = o->preset && o->type != HEED_OPTION_TYPE_BOOL;
    bool on = o->preset && o->type == HEED_OPTION_TYPE_BOOL && strcmp(o->preset, "true") == 0;
    if (*may || shown || on)
        heed__string_format(d, " (%s%s%s%s)", may, *may && (shown || on) ? "; " : "",
                            shown ? "default: "
                            : on  ? "default: on"
                                  : "",
                            shown ? o->preset : "");
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

static const heed_option standard[] = {
#define FIELD(name_, value_, help_)                                                                \
    {.name = name_,                                                                                \
     .type = value_ ? HEED_OPTION_TYPE_TEXT : HEED_OPTION_TYPE_BOOL,                               \
     .value = value_,                                                                              \
     .help = help_},
    HEED_OPTION_STANDARD(FIELD)
#undef FIELD
};
#define N_STANDARD ((int)(sizeof standard / sizeof *standard))

static int rows(const heed_option_set *set)
{
    return set->count + N_STANDARD - !set->bundles;
}

static const heed_option *row(const heed_option_set *set, int i)
{
    return i < set->count ? &set->fields[i] : &standard[i - set->count];
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

const char *heed_option_help(const heed_option_set *set, heed_arena *arena)
{
    heed__string s, d;
    heed__string_init(&s, NULL);
    heed__string_init(&d, NULL);
    heed__string_format(&s, "usage: %s [options]%s%s\n", set->command, set->arguments ? " " : "",
                        set->arguments ? set->arguments : "");
    if (set->summary)
        add_wrapped(&s, set->summary, 0, 0);
    size_t column = 0;
    char name[128];
    for (int i = 0; i < rows(set); i++) {
        name_text(set, row(set, i), name, sizeof name);
        size_t n = strlen(name) + 2;
        if (n > column && n <= WIDEST_NAME)
            column = n;
    }
    heed__string_add(&s, "\noptions:\n");
    for (int i = 0; i < rows(set); i++) {
        name_text(set, row(set, i), name, sizeof name);
        heed__string_clear(&d);
        add_description(&d, row(set, i));
        add_row(&s, name, heed__string_text(&d), column);
    }
    if (set->bundles)
        add_bundles(&s, set->bundles(), column);
    if (set->examples && set->examples[0])
        heed__string_add(&s, "\nexamples:\n");
    for (int i = 0; set->examples && set->examples[i]; i++)
        heed__string_format(&s, "  %s\n", set->examples[i]);
    char *text = s.failed || d.failed ? NULL : heed_arena_allocate(arena, s.length + 1);
    if (text)
        memcpy(text, heed__string_text(&s), s.length + 1);
    heed__string_deinit(&d);
    heed__string_deinit(&s);
    return text;
}

#define LONGEST 63

/* Insertions, deletions, changes and swaps of neighbours that lead from a to b. */
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
