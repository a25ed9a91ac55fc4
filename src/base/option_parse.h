/* option_parse.h (internal): setting a field, for the command line and for the config file. */
#ifndef HEED_BASE_OPTION_PARSE_H
#define HEED_BASE_OPTION_PARSE_H

#include "base/error.h"
#include "base/string.h"
#include <heed/options.h>

/* One parse in progress. */
typedef struct heed__option_parse {
    const heed_option_set *set;
    char *values;
    heed_arena *arena;
    heed_error *err;
    const char *file;           /* of the config being read; NULL on the command line */
    heed_option_origin *origin; /* of each field */
} heed__option_parse;

/* Options that every set has, named in suggestions and help: always, with groups, with bundles. */
#define HEED_OPTION_STANDARD(X)                                                                    \
    X("help", NULL, "show this help", true)                                                        \
    X("help-all", NULL, "show every option, group by group", set->groups)                          \
    X("config", "FILE", "read options from a JSON file; the command line wins", true)              \
    X("print-config", NULL, "print the options in effect as such a file, and do nothing", true)    \
    X("preset", "NAME",                                                                            \
      "several options under one name; the config file and the command line win", set->bundles)

/* Whether `names`, separated by blanks, has this one. */
bool heed__option_listed(const char *names, const char *name);
/* Whether a set leaves out one of its fields; and the default that a field has in it. */
bool heed__option_left_out(const heed_option_set *set, const heed_option *o);
const char *heed__option_default(const heed_option_set *set, const heed_option *o);
const heed_option *heed__option_find(const heed_option_set *set, const char *name, size_t length);
/* "unknown option '--thread'; did you mean '--threads'?" */
heed_status heed__option_unknown(const heed__option_parse *p, const char *name, size_t length);
/* Each checks the range and stores.  Text is not copied. */
heed_status heed__option_set_int(const heed__option_parse *p, const heed_option *o, int64_t v);
heed_status heed__option_set_real(const heed__option_parse *p, const heed_option *o, double v);
heed_status heed__option_set_choice(const heed__option_parse *p, const heed_option *o,
                                    const char *name);
/* Whether two fields have equal values. */
bool heed__option_same(const heed_option *o, const void *a, const void *b);
/* A value of any type but BOOL and LIST, from its text. */
heed_status heed__option_set_text(const heed__option_parse *p, const heed_option *o,
                                  const char *text);
/* Replaces a list by `count` items, which are copied into the arena (the texts are not). */
heed_status heed__option_set_list(const heed__option_parse *p, const heed_option *o,
                                  const char *const *items, int count);
/* "a whole number from 1 to 64", into text, which is returned. */
#define HEED_OPTION_EXPECTED 256
const char *heed__option_expected(const heed_option *o, char text[HEED_OPTION_EXPECTED]);
/* "option '--threads' is '0', expected a whole number from 1 to 64" */
heed_status heed__option_wrong(const heed__option_parse *p, const heed_option *o,
                               const char *found);

/* The shortest text, of six or more digits where fewer are not exact, that reads back as the same
 * number; written to text, which is returned. */
#define HEED_OPTION_NUMBER 40
const char *heed__option_number(double v, char text[HEED_OPTION_NUMBER]);

/* "  -m, --model DIR"; the help phrase with the allowed values and the default behind it. */
void heed__option_name_text(const heed_option_set *set, const heed_option *o, char *text,
                            size_t capacity);
void heed__option_description(heed__string *d, const heed_option_set *set, const heed_option *o);
/* Whether an option stands in a group; a group without a title has what the others leave. */
bool heed__option_in_group(const heed_option_set *set, const heed_option *o,
                           const heed_option_group *g);

heed_status heed__option_read_config(heed__option_parse *p, const char *path);

#endif
