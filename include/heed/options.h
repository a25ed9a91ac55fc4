/* options.h: command-line options from one table of fields, which also makes the help text, the
 * config file and its checks.
 *     struct settings { int64_t threads; bool json; };
 *     static const heed_option fields[] = {
 *         HEED_OPTION_INT(struct settings, threads, "threads", "1", 1, 64, "N", "threads to use"),
 *         HEED_OPTION_BOOL(struct settings, json, "json", NULL, "one JSON object a line"),
 *     };
 *     static const heed_option_set set = {.command = "heed bench", .fields = fields, .count = 2};
 *     heed_option_parse(&set, argc, argv, &s, arena, &r, &err); */
#ifndef HEED_OPTIONS_H
#define HEED_OPTIONS_H

#include <heed/base.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Accepted: --name value, --name=value, --flag, --no-flag, other words, and after `--` only those.
 * A value that itself starts with `--` needs the `=`.  Every set also has --help, --config FILE and
 * --print-config, --help-all where there are groups, and --preset NAME where there are bundles.
 * Short forms: -h help, -m model, -o output, -b beam, -t threads, where the set has the option.
 * A config file is a JSON object of the
 * same names, as training/options.json of a model and config.json of a lab are; the command line
 * wins over it. */

typedef enum heed_option_type {
    HEED_OPTION_TYPE_BOOL,   /* bool */
    HEED_OPTION_TYPE_INT,    /* int64_t */
    HEED_OPTION_TYPE_REAL,   /* double */
    HEED_OPTION_TYPE_TEXT,   /* const char *, NULL if not given */
    HEED_OPTION_TYPE_LIST,   /* heed_option_list; given again, it grows */
    HEED_OPTION_TYPE_CHOICE, /* int: index into the choices */
    HEED_OPTION_TYPE_SPEC,   /* a struct that is written as a text: "band:64+global:2" */
} heed_option_type;

/* How the texts of a SPEC are read and written.  parse() says what is wrong in err.  format()
 * writes the text that reads back the same, at most HEED_OPTION_SPEC_TEXT bytes with its end. */
#define HEED_OPTION_SPEC_TEXT 256
typedef struct heed_option_spec {
    size_t size; /* of the struct */
    heed_status (*parse)(const char *text, void *value, heed_error *err);
    const char *(*format)(const void *value, char text[HEED_OPTION_SPEC_TEXT]);
} heed_option_spec;

typedef struct heed_option_list {
    const char *const *items;
    int count;
} heed_option_list;

typedef struct heed_option {
    const char *name; /* without dashes */
    heed_option_type type;
    size_t offset;              /* of the field in the caller's struct */
    const char *preset;         /* the default as text; NULL: false, 0, NULL, first choice */
    const char *value;          /* the value's name in the help: "N"; NULL: made from the type */
    const char *help;           /* a phrase, lower case, no full stop */
    int64_t least, most;        /* INT: both included; 0, 0 means no limit */
    double low, high;           /* REAL: both included; 0, 0 means no limit */
    const char *const *choices; /* CHOICE: ended by NULL */
    const heed_option_spec *(*spec)(void); /* SPEC */
    int takes;                             /* LIST: words each time it is given; 0 means 1 */
} heed_option;

/* The field's offset; a field of another type than the option's does not compile. */
#define HEED_OPTION_FIELD(type, owner, field)                                                      \
    (offsetof(owner, field) + 0 * sizeof((type *)0 == &((owner *)0)->field))
#define HEED_OPTION_BOOL(owner, field, name, preset, help)                                         \
    {                                                                                              \
        name, HEED_OPTION_TYPE_BOOL, HEED_OPTION_FIELD(bool, owner, field), preset, NULL, help, 0, \
            0, 0, 0, NULL, NULL, 0                                                                 \
    }
#define HEED_OPTION_INT(owner, field, name, preset, least, most, value, help)                      \
    {                                                                                              \
        name, HEED_OPTION_TYPE_INT, HEED_OPTION_FIELD(int64_t, owner, field), preset, value, help, \
            least, most, 0, 0, NULL, NULL, 0                                                       \
    }
#define HEED_OPTION_REAL(owner, field, name, preset, low, high, value, help)                       \
    {                                                                                              \
        name, HEED_OPTION_TYPE_REAL, HEED_OPTION_FIELD(double, owner, field), preset, value, help, \
            0, 0, low, high, NULL, NULL, 0                                                         \
    }
#define HEED_OPTION_TEXT(owner, field, name, preset, value, help)                                  \
    {                                                                                              \
        name, HEED_OPTION_TYPE_TEXT, HEED_OPTION_FIELD(const char *, owner, field), preset, value, \
            help, 0, 0, 0, 0, NULL, NULL, 0                                                        \
    }
#define HEED_OPTION_LIST(owner, field, name, value, help)                                          \
    {                                                                                              \
        name, HEED_OPTION_TYPE_LIST, HEED_OPTION_FIELD(heed_option_list, owner, field), NULL,      \
            value, help, 0, 0, 0, 0, NULL, NULL, 0                                                 \
    }
/* A list whose option is followed by several words each time: --pair A B. */
#define HEED_OPTION_WORDS(owner, field, name, takes, value, help)                                  \
    {                                                                                              \
        name, HEED_OPTION_TYPE_LIST, HEED_OPTION_FIELD(heed_option_list, owner, field), NULL,      \
            value, help, 0, 0, 0, 0, NULL, NULL, takes                                             \
    }
#define HEED_OPTION_CHOICE(owner, field, name, preset, choices, help)                              \
    {                                                                                              \
        name, HEED_OPTION_TYPE_CHOICE, HEED_OPTION_FIELD(int, owner, field), preset, NULL, help,   \
            0, 0, 0, 0, choices, NULL, 0                                                           \
    }
#define HEED_OPTION_SPEC(owner, type, field, name, preset, value, spec, help)                      \
    {                                                                                              \
        name, HEED_OPTION_TYPE_SPEC, HEED_OPTION_FIELD(type, owner, field), preset, value, help,   \
            0, 0, 0, 0, NULL, spec, 0                                                              \
    }

/* The choices. */
#define HEED_WORDS(...) ((const char *const[]){__VA_ARGS__, NULL})

/* Several options under one name: --preset tiny.  Applied after the defaults and before the config
 * file and the command line, whatever the order there. */
typedef struct heed_option_bundle {
    const char *name;
    const char *summary;            /* for the help */
    const char *const *assignments; /* "heads", "4", "pre-norm", "true", ..., NULL; no lists */
} heed_option_bundle;

/* Options that belong together.  Where a set has groups, --help shows the main ones and --help-all
 * all of them; an option in no group stands in a last one, "more". */
typedef struct heed_option_group {
    const char *title;
    const char *names; /* separated by blanks */
    bool main;
} heed_option_group;

typedef struct heed_option_set {
    const char *command;   /* "heed bench kernels" */
    const char *summary;   /* one sentence, without full stop */
    const char *arguments; /* the words after the options, for the usage line: "[FILE...]" */
    int least, most;       /* how many of them; most < 0: any number */
    const heed_option *fields;
    int count;
    const heed_option_bundle *(*bundles)(void); /* what --preset offers, ended by a name of NULL */
    const char *const *examples;     /* whole command lines, ended by NULL; may be NULL */
    const heed_option_group *groups; /* ended by a title of NULL; NULL: no groups */
    /* Where fields are shared by several sets, what is different in this one: defaults by name,
     * ended by NULL ("heads", "4", ..., NULL), and names, separated by blanks, of fields that it
     * does not have: they are in no help and no file, and keep their default. */
    const char *const *defaults;
    const char *without;
    /* Sets with pages of their own that an option of the command chooses, ended by NULL. */
    const struct heed_option_set *const *parts;
} heed_option_set;

typedef enum heed_option_action {
    HEED_OPTION_RUN,
    HEED_OPTION_HELP,         /* --help was there: print heed_option_help */
    HEED_OPTION_HELP_ALL,     /* --help-all was there: the same with all groups */
    HEED_OPTION_PRINT_CONFIG, /* --print-config was there: print heed_option_config */
} heed_option_action;

/* What set an option last. */
typedef enum heed_option_origin {
    HEED_OPTION_BY_DEFAULT,
    HEED_OPTION_BY_BUNDLE,
    HEED_OPTION_BY_CONFIG, /* which may name every option, as --print-config does */
    HEED_OPTION_BY_COMMAND_LINE,
} heed_option_origin;
/* The origin of every option of a set; all zero: nothing was given. */
typedef struct heed_option_origins {
    const heed_option_set *set;
    const heed_option_origin *origin; /* (set->count), in the arena of the parse */
} heed_option_origins;
/* A name that the set does not have is BY_DEFAULT. */
heed_option_origin heed_option_origin_of(const heed_option_origins *o, const char *name);

typedef struct heed_option_result {
    heed_option_action action;
    heed_option_list words; /* what is neither an option nor its value */
    heed_option_origins origins;
} heed_option_result;

/* Fills the caller's struct: defaults, bundle, config file, command line.  argv[0] is the first
 * word after the command.  Texts are borrowed from argv or live in the arena.  ARGUMENT for wrong
 * usage; IO or FORMAT for the config file. */
heed_status heed_option_parse(const heed_option_set *set, int argc, const char *const *argv,
                              void *values, heed_arena *arena, heed_option_result *result,
                              heed_error *err);
/* Help for a terminal of 80 columns; all: every group.  NULL when memory is short.  Lives in the
 * arena. */
const char *heed_option_help(const heed_option_set *set, bool all, heed_arena *arena);
/* A manual page (roff) of section 1; as above. */
const char *heed_option_man(const heed_option_set *set, heed_arena *arena);
/* The row i of the help, options that every set has included; NULL behind the last. */
const heed_option *heed_option_row(const heed_option_set *set, int i);
/* The short form of an option, 0 if it has none. */
char heed_option_letter(const char *name);
/* The values as a config file that reads back the same; as above. */
const char *heed_option_config(const heed_option_set *set, const void *values, heed_arena *arena);

/* The name that was probably meant, or NULL if none is near: at most a third of its letters wrong,
 * or the beginning of just one name. */
const char *heed_option_nearest(const char *wrong, const char *const *names, int count);

#ifdef __cplusplus
}
#endif
#endif
