/* options.c: the command line into a typed struct.  Three passes over the words, each overwriting
 * the values of the one before, so the order of the words does not matter: the bundle that --preset
 * names, the config files, the options themselves. */
#include "base/error.h"
#include "base/option_parse.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *field_of(const heed__option_parse *p, const heed_option *o)
{
    return p->values + o->offset;
}

bool heed__option_listed(const char *names, const char *name)
{
    const size_t n = strlen(name);
    for (const char *at = names; (at = strstr(at, name)); at += n)
        if ((at == names || at[-1] == ' ') && (at[n] == ' ' || at[n] == '\0'))
            return true;
    return false;
}

bool heed__option_left_out(const heed_option_set *set, const heed_option *o)
{
    return set->without && heed__option_listed(set->without, o->name);
}

const char *heed__option_default(const heed_option_set *set, const heed_option *o)
{
    for (const char *const *d = set->defaults; d && *d; d += 2)
        if (strcmp(*d, o->name) == 0)
            return d[1];
    return o->preset;
}

/* Left out or not. */
static const heed_option *field_named(const heed_option_set *set, const char *name, size_t length)
{
    for (int i = 0; i < set->count; i++)
        if (strlen(set->fields[i].name) == length && !memcmp(set->fields[i].name, name, length))
            return &set->fields[i];
    return NULL;
}

const heed_option *heed__option_find(const heed_option_set *set, const char *name, size_t length)
{
    const heed_option *o = field_named(set, name, length);
    return o && !heed__option_left_out(set, o) ? o : NULL;
}

heed_status heed__option_unknown(const heed__option_parse *p, const char *name, size_t length)
{
    int n = 0;
    while (heed_option_row(p->set, n))
        n++;
    const char **names = heed_arena_allocate(p->arena, sizeof *names * (size_t)n);
    char *wrong = heed_arena_allocate(p->arena, length + 1);
    if (!names || !wrong)
        return heed__fail(p->err, HEED_MEMORY, "out of memory for options");
    memcpy(wrong, name, length);
    wrong[length] = '\0';
    for (int i = 0; i < n; i++)
        names[i] = heed_option_row(p->set, i)->name;
    int own = 0; /* names of the set's own */
    while (own < n && heed__option_find(p->set, names[own], strlen(names[own])))
        own++;
    for (int i = own; p->file && i < n; i++)
        if (strcmp(names[i], wrong) == 0)
            return heed__fail(p->err, HEED_FORMAT,
                              "'%s': '%s' is for the command line, not for a config file", p->file,
                              wrong);
    const char *near = heed_option_nearest(wrong, names, p->file ? own : n);
    const char *hint = near ? "; did you mean '" : "";
    if (p->file)
        return heed__fail(p->err, HEED_FORMAT, "'%s': unknown option '%s'%s%s%s", p->file, wrong,
                          hint, near ? near : "", near ? "'?" : "");
    return heed__fail(p->err, HEED_ARGUMENT, "unknown option '--%s'%s%s%s%s", wrong, hint,
                      near ? "--" : "", near ? near : "", near ? "'?" : "");
}

static bool same_text(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) == 0 : !a && !b;
}

static bool same_spec(const heed_option_spec *spec, const void *a, const void *b)
{
    char text[2][HEED_OPTION_SPEC_TEXT];
    return same_text(spec->format(a, text[0]), spec->format(b, text[1]));
}

bool heed__option_same(const heed_option *o, const void *a, const void *b)
{
    const heed_option_list *la = a, *lb = b;
    bool same = true;
    switch (o->type) {
    case HEED_OPTION_TYPE_BOOL:
        return *(const bool *)a == *(const bool *)b;
    case HEED_OPTION_TYPE_INT:
        return *(const int64_t *)a == *(const int64_t *)b;
    case HEED_OPTION_TYPE_REAL:
        return *(const double *)a == *(const double *)b;
    case HEED_OPTION_TYPE_CHOICE:
        return *(const int *)a == *(const int *)b;
    case HEED_OPTION_TYPE_TEXT:
        return same_text(*(const char *const *)a, *(const char *const *)b);
    case HEED_OPTION_TYPE_SPEC:
        return same_spec(o->spec(), a, b);
    case HEED_OPTION_TYPE_LIST:
        same = la->count == lb->count;
        for (int i = 0; same && i < la->count; i++)
            same = same_text(la->items[i], lb->items[i]);
        break;
    }
    return same;
}

const char *heed__option_number(double v, char text[HEED_OPTION_NUMBER])
{
    for (int digits = 6; digits <= 17; digits++) {
        snprintf(text, HEED_OPTION_NUMBER, "%.*g", digits, v);
        if (strtod(text, NULL) == v)
            break;
    }
    return text;
}

const char *heed__option_expected(const heed_option *o, char text[HEED_OPTION_EXPECTED])
{
    size_t n = 0, capacity = HEED_OPTION_EXPECTED;
    char low[HEED_OPTION_NUMBER], high[HEED_OPTION_NUMBER];
    switch (o->type) {
    case HEED_OPTION_TYPE_BOOL:
        return "true or false";
    case HEED_OPTION_TYPE_TEXT:
    case HEED_OPTION_TYPE_SPEC:
        return "a text";
    case HEED_OPTION_TYPE_LIST:
        return "a list of texts";
    case HEED_OPTION_TYPE_INT:
        if (o->least == 0 && o->most == 0)
            return "a whole number";
        if (o->most == INT64_MAX)
            snprintf(text, capacity, "a whole number, at least %lld", (long long)o->least);
        else if (o->least == INT64_MIN)
            snprintf(text, capacity, "a whole number, at most %lld", (long long)o->most);
        else
            snprintf(text, capacity, "a whole number from %lld to %lld", (long long)o->least,
                     (long long)o->most);
        return text;
    case HEED_OPTION_TYPE_REAL:
        if (o->low == 0 && o->high == 0)
            return "a number";
        if (isinf(o->high))
            snprintf(text, capacity, "a number, at least %s", heed__option_number(o->low, low));
        else if (isinf(o->low))
            snprintf(text, capacity, "a number, at most %s", heed__option_number(o->high, high));
        else
            snprintf(text, capacity, "a number from %s to %s", heed__option_number(o->low, low),
                     heed__option_number(o->high, high));
        return text;
    case HEED_OPTION_TYPE_CHOICE:
        text[0] = '\0';
        for (int i = 0; o->choices[i] && n < capacity; i++)
            n += (size_t)snprintf(text + n, capacity - n, "%s%s",
                                  !i                  ? ""
                                  : o->choices[i + 1] ? ", "
                                                      : " or ",
                                  o->choices[i]);
        return text;
    }
    return "";
}

heed_status heed__option_wrong(const heed__option_parse *p, const heed_option *o, const char *found)
{
    char text[HEED_OPTION_EXPECTED];
    const char *expected = heed__option_expected(o, text);
    const char *near = NULL;
    if (o->type == HEED_OPTION_TYPE_CHOICE) {
        int n = 0;
        while (o->choices[n])
            n++;
        near = heed_option_nearest(found, o->choices, n);
    }
    const char *hint[] = {near ? "; did you mean '" : "", near ? near : "", near ? "'?" : ""};
    if (p->file)
        return heed__fail(p->err, HEED_FORMAT, "'%s': option '%s' is %s, expected %s%s%s%s",
                          p->file, o->name, found, expected, hint[0], hint[1], hint[2]);
    return heed__fail(p->err, HEED_ARGUMENT, "option '--%s' is '%s', expected %s%s%s%s", o->name,
                      found, expected, hint[0], hint[1], hint[2]);
}

heed_status heed__option_set_int(const heed__option_parse *p, const heed_option *o, int64_t v)
{
    if ((o->least || o->most) && (v < o->least || v > o->most)) {
        char found[32];
        snprintf(found, sizeof found, "%lld", (long long)v);
        return heed__option_wrong(p, o, found);
    }
    *(int64_t *)field_of(p, o) = v;
    return HEED_OK;
}

heed_status heed__option_set_real(const heed__option_parse *p, const heed_option *o, double v)
{
    bool limited = o->low != 0 || o->high != 0;
    if (!isfinite(v) || (limited && (v < o->low || v > o->high))) {
        char found[HEED_OPTION_NUMBER];
        return heed__option_wrong(p, o, heed__option_number(v, found));
    }
    *(double *)field_of(p, o) = v;
    return HEED_OK;
}

heed_status heed__option_set_choice(const heed__option_parse *p, const heed_option *o,
                                    const char *name)
{
    for (int i = 0; o->choices[i]; i++)
        if (strcmp(o->choices[i], name) == 0) {
            *(int *)field_of(p, o) = i;
            return HEED_OK;
        }
    return heed__option_wrong(p, o, name);
}

heed_status heed__option_set_list(const heed__option_parse *p, const heed_option *o,
                                  const char *const *items, int count)
{
    const char **copy = heed_arena_allocate(p->arena, sizeof *copy * (size_t)count);
    if (!copy)
        return heed__fail(p->err, HEED_MEMORY, "out of memory for options");
    for (int i = 0; i < count; i++)
        copy[i] = items[i];
    *(heed_option_list *)field_of(p, o) = (heed_option_list){copy, count};
    return HEED_OK;
}

static heed_status set_spec(const heed__option_parse *p, const heed_option *o, const char *text)
{
    heed_error wrong = {0};
    if (!o->spec()->parse(text, field_of(p, o), &wrong))
        return HEED_OK;
    if (p->file)
        return heed__fail(p->err, HEED_FORMAT, "'%s': option '%s' is \"%.80s\": %s", p->file,
                          o->name, text, wrong.text);
    return heed__fail(p->err, HEED_ARGUMENT, "option '--%s' is '%.80s': %s", o->name, text,
                      wrong.text);
}

heed_status heed__option_set_text(const heed__option_parse *p, const heed_option *o,
                                  const char *text)
{
    char *end;
    if (o->type == HEED_OPTION_TYPE_CHOICE)
        return heed__option_set_choice(p, o, text);
    if (o->type == HEED_OPTION_TYPE_SPEC)
        return set_spec(p, o, text);
    if (o->type == HEED_OPTION_TYPE_TEXT) {
        *(const char **)field_of(p, o) = text;
        return HEED_OK;
    }
    /* strtoll and strtod skip leading space; here it is an error. */
    bool blank = text[0] == '\0' || strchr(" \t\n", text[0]);
    errno = 0;
    if (o->type == HEED_OPTION_TYPE_INT) {
        long long v = strtoll(text, &end, 10);
        return blank || *end || errno ? heed__option_wrong(p, o, text)
                                      : heed__option_set_int(p, o, v);
    }
    double v = strtod(text, &end);
    return blank || *end || !isfinite(v) ? heed__option_wrong(p, o, text)
                                         : heed__option_set_real(p, o, v);
}

/* A value of any type but LIST, from the text of a default or a bundle. */
static heed_status set_typed(const heed__option_parse *p, const heed_option *o, const char *text)
{
    if (o->type != HEED_OPTION_TYPE_BOOL)
        return heed__option_set_text(p, o, text);
    *(bool *)field_of(p, o) = strcmp(text, "true") == 0;
    return HEED_OK;
}

static heed_status set_defaults(const heed__option_parse *p)
{
    for (int i = 0; i < p->set->count; i++) {
        const heed_option *o = &p->set->fields[i];
        switch (o->type) {
        case HEED_OPTION_TYPE_BOOL:
            *(bool *)field_of(p, o) = false;
            break;
        case HEED_OPTION_TYPE_INT:
            *(int64_t *)field_of(p, o) = 0;
            break;
        case HEED_OPTION_TYPE_REAL:
            *(double *)field_of(p, o) = 0;
            break;
        case HEED_OPTION_TYPE_TEXT:
            *(const char **)field_of(p, o) = NULL;
            break;
        case HEED_OPTION_TYPE_LIST:
            *(heed_option_list *)field_of(p, o) = (heed_option_list){NULL, 0};
            continue;
        case HEED_OPTION_TYPE_CHOICE:
            *(int *)field_of(p, o) = 0;
            break;
        case HEED_OPTION_TYPE_SPEC:
            memset(field_of(p, o), 0, o->spec()->size);
            break;
        }
        const char *preset = heed__option_default(p->set, o);
        if (preset && set_typed(p, o, preset))
            return HEED_ARGUMENT;
    }
    return HEED_OK;
}

static heed_status unknown_bundle(const heed__option_parse *p, const char *name)
{
    const heed_option_bundle *b = p->set->bundles();
    int n = 0;
    while (b[n].name)
        n++;
    const char **names = heed_arena_allocate(p->arena, sizeof *names * (size_t)(n + 1));
    if (!names)
        return heed__fail(p->err, HEED_MEMORY, "out of memory for options");
    for (int i = 0; i <= n; i++)
        names[i] = b[i].name;
    const heed_option choice = {
        .name = "preset", .type = HEED_OPTION_TYPE_CHOICE, .choices = names};
    return heed__option_wrong(p, &choice, name);
}

static heed_status set_bundle(const heed__option_parse *p, const char *name)
{
    if (!name)
        return HEED_OK;
    const heed_option_bundle *b = p->set->bundles();
    while (b->name && strcmp(b->name, name) != 0)
        b++;
    if (!b->name)
        return unknown_bundle(p, name);
    for (const char *const *a = b->assignments; a[0]; a += 2) {
        const heed_option *o = field_named(p->set, a[0], strlen(a[0]));
        if (!o || o->type == HEED_OPTION_TYPE_LIST)
            return heed__fail(p->err, HEED_ARGUMENT,
                              "preset '%s' sets '%s', which is no option of '%s'", name, a[0],
                              p->set->command);
        heed_status status = set_typed(p, o, a[1]);
        if (status)
            return status;
        p->origin[o - p->set->fields] = HEED_OPTION_BY_BUNDLE;
    }
    return HEED_OK;
}

/* One word of the command line, taken apart. */
struct word {
    const char *name;  /* after the dashes; NULL for a plain word */
    size_t length;     /* of the name, up to its `=` */
    const char *value; /* after the `=`, or NULL */
};

/* The long name of -m, if the set has it; else NULL. */
static const char *long_name(const heed_option_set *set, char letter)
{
    const heed_option *o;
    for (int i = 0; (o = heed_option_row(set, i)); i++)
        if (heed_option_letter(o->name) == letter)
            return o->name;
    return NULL;
}

static struct word take_apart(const heed_option_set *set, const char *text)
{
    const char *letter = text[0] == '-' && text[1] && !text[2] ? long_name(set, text[1]) : NULL;
    if (letter)
        return (struct word){letter, strlen(letter), NULL};
    if (strncmp(text, "--", 2) != 0)
        return (struct word){NULL, 0, NULL};
    const char *name = text + 2, *equals = strchr(name, '=');
    return (struct word){name, equals ? (size_t)(equals - name) : strlen(name),
                         equals ? equals + 1 : NULL};
}

static bool is(struct word w, const char *name)
{
    return strlen(name) == w.length && memcmp(name, w.name, w.length) == 0;
}

/* The flag that --no-NAME turns off, or NULL. */
static const heed_option *negated(const heed_option_set *set, struct word w)
{
    if (w.length < 4 || memcmp(w.name, "no-", 3) != 0)
        return NULL;
    const heed_option *o = heed__option_find(set, w.name + 3, w.length - 3);
    return o && o->type == HEED_OPTION_TYPE_BOOL ? o : NULL;
}

/* The first pass checks the words and finds the bundle, the second reads the config files, the
 * third stores values. */
enum pass { FIND_BUNDLE, READ_CONFIGS, STORE };
struct scan {
    heed__option_parse *p;
    heed_option_result *result;
    const char **words;
    int n_words;
    const char **items; /* capacity for the list being collected */
    const char *bundle; /* the last --preset; NULL: none */
    enum pass pass;
};

static heed_status take_value(const heed__option_parse *p, struct word w, int argc,
                              const char *const *argv, int *i, const char **value)
{
    *value = w.value;
    if (w.value)
        return HEED_OK;
    if (*i + 1 >= argc || strncmp(argv[*i + 1], "--", 2) == 0)
        return heed__fail(p->err, HEED_ARGUMENT, "option '--%.*s' needs a value", (int)w.length,
                          w.name);
    *value = argv[++*i];
    return HEED_OK;
}

static heed_status no_value(const heed__option_parse *p, struct word w)
{
    return w.value ? heed__fail(p->err, HEED_ARGUMENT, "option '--%.*s' takes no value",
                                (int)w.length, w.name)
                   : HEED_OK;
}

static heed_status append(struct scan *s, const heed_option *o, const char *value)
{
    heed_option_list *list = field_of(s->p, o);
    bool again = s->p->origin[o - s->p->set->fields] == HEED_OPTION_BY_COMMAND_LINE;
    int n = again ? list->count : 0; /* the first one replaces the config file's */
    for (int i = 0; i < n; i++)
        s->items[i] = list->items[i];
    s->items[n] = value;
    return heed__option_set_list(s->p, o, s->items, n + 1);
}

/* The words of a list that takes several each time; the first one is there already. */
static heed_status take_words(struct scan *s, const heed_option *o, const char *first, int argc,
                              const char *const *argv, int *i)
{
    const char *value = first;
    for (int k = 0; k < o->takes; k++) {
        if (k > 0 && (*i + 1 >= argc || strncmp(argv[*i + 1], "--", 2) == 0))
            return heed__fail(s->p->err, HEED_ARGUMENT, "option '--%s' needs %d values: %s",
                              o->name, o->takes, o->value);
        value = k > 0 ? argv[++*i] : first;
        if (s->pass == STORE && append(s, o, value))
            return HEED_ARGUMENT;
        if (s->pass == STORE)
            s->p->origin[o - s->p->set->fields] = HEED_OPTION_BY_COMMAND_LINE;
    }
    return HEED_OK;
}

static heed_status take_option(struct scan *s, struct word w, int argc, const char *const *argv,
                               int *i)
{
    heed__option_parse *p = s->p;
    const char *value = NULL;
    if (is(w, "help") || is(w, "print-config") || (p->set->groups && is(w, "help-all"))) {
        /* Help wins, in whatever order they come. */
        if (!is(w, "print-config"))
            s->result->action = is(w, "help") ? HEED_OPTION_HELP : HEED_OPTION_HELP_ALL;
        else if (s->result->action == HEED_OPTION_RUN)
            s->result->action = HEED_OPTION_PRINT_CONFIG;
        return no_value(p, w);
    }
    if (is(w, "config")) {
        heed_status status = take_value(p, w, argc, argv, i, &value);
        return status || s->pass != READ_CONFIGS ? status : heed__option_read_config(p, value);
    }
    if (p->set->bundles && is(w, "preset"))
        return take_value(p, w, argc, argv, i, &s->bundle);
    const heed_option *off = negated(p->set, w);
    const heed_option *o = off ? off : heed__option_find(p->set, w.name, w.length);
    if (!o)
        return heed__option_unknown(p, w.name, w.length);
    const bool flag = o->type == HEED_OPTION_TYPE_BOOL;
    heed_status status = flag ? no_value(p, w) : take_value(p, w, argc, argv, i, &value);
    if (status)
        return status;
    if (o->takes > 1)
        return take_words(s, o, value, argc, argv, i);
    if (s->pass != STORE)
        return HEED_OK;
    if (flag)
        *(bool *)field_of(p, o) = !off;
    else
        status = o->type == HEED_OPTION_TYPE_LIST ? append(s, o, value)
                                                  : heed__option_set_text(p, o, value);
    p->origin[o - p->set->fields] = HEED_OPTION_BY_COMMAND_LINE;
    return status;
}

static heed_status scan(struct scan *s, int argc, const char *const *argv)
{
    bool only_words = false;
    s->n_words = 0;
    for (int i = 0; i < argc; i++) {
        struct word w = take_apart(s->p->set, argv[i]);
        if (!only_words && w.name && w.length == 0 && !w.value) {
            only_words = true;
        } else if (!only_words && w.name) {
            if (take_option(s, w, argc, argv, &i))
                return HEED_ARGUMENT;
        } else if (!only_words && argv[i][0] == '-' && argv[i][1]) {
            return heed__fail(s->p->err, HEED_ARGUMENT,
                              "unknown option '%s'; options start with two dashes, but for -h, -m, "
                              "-o, -b and -t",
                              argv[i]);
        } else {
            s->words[s->n_words++] = argv[i];
        }
    }
    return HEED_OK;
}

static heed_status check_words(const heed_option_set *set, heed_option_list words, heed_error *err)
{
    if (set->most >= 0 && words.count > set->most)
        return heed__fail(err, HEED_ARGUMENT, "unexpected argument '%s'", words.items[set->most]);
    if (words.count < set->least)
        return heed__fail(err, HEED_ARGUMENT, "missing argument, expected %s",
                          set->arguments ? set->arguments : "one");
    return HEED_OK;
}

heed_status heed_option_parse(const heed_option_set *set, int argc, const char *const *argv,
                              void *values, heed_arena *arena, heed_option_result *result,
                              heed_error *err)
{
    if (!set)
        return heed__missing(err, "option set");
    heed_error own = {0}; /* the status is needed even if err is NULL */
    heed__option_parse p = {set, values, arena, err ? err : &own, NULL, NULL};
    size_t n = (size_t)(argc > 0 ? argc : 0);
    struct scan s = {.p = &p, .result = result, .pass = FIND_BUNDLE};
    *result = (heed_option_result){.action = HEED_OPTION_RUN};
    s.words = heed_arena_allocate(arena, sizeof *s.words * n);
    s.items = heed_arena_allocate(arena, sizeof *s.items * n);
    p.origin = heed_arena_allocate(arena, sizeof *p.origin * (size_t)set->count);
    if (!s.words || !s.items || !p.origin)
        return heed__fail(p.err, HEED_MEMORY, "out of memory for options");
    for (int i = 0; i < set->count; i++)
        p.origin[i] = HEED_OPTION_BY_DEFAULT;
    if (set_defaults(&p))
        return p.err->status;
    for (s.pass = FIND_BUNDLE; s.pass <= STORE; s.pass++)
        if (scan(&s, argc, argv) || (s.pass == FIND_BUNDLE && set_bundle(&p, s.bundle)))
            return p.err->status;
    result->words = (heed_option_list){s.words, s.n_words};
    result->origins = (heed_option_origins){set, p.origin};
    return result->action == HEED_OPTION_RUN ? check_words(set, result->words, p.err) : HEED_OK;
}

heed_option_origin heed_option_origin_of(const heed_option_origins *o, const char *name)
{
    if (!o)
        return 0;
    const heed_option *found = o->set ? heed__option_find(o->set, name, strlen(name)) : NULL;
    return found ? o->origin[found - o->set->fields] : HEED_OPTION_BY_DEFAULT;
}
