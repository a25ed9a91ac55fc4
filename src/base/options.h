/* options.h (internal): what the command line and the config file share in setting a field. */
#ifndef HEED_BASE_OPTIONS_H
#define HEED_BASE_OPTIONS_H

#include "base/error.h"
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

/* Options every set has, named in suggestions and help; the last one only where there are bundles.
 */
#define HEED_OPTION_STANDARD(X)                                                                    \
    X("help", NULL, "show this help")                                                              \
    X("config", "FILE", "read options from a JSON file; the command line wins")                    \
    X("print-config", NULL, "show the options in force as such a file, and do nothing")            \
    X("preset", "NAME", "several options under one name; the config file and the command line win")

const heed_option *heed__option_find(const heed_option_set *set, const char *name, size_t length);
/* "unknown option '--thread'; did you mean '--threads'?" */
heed_status heed__option_unknown(const heed__option_parse *p, const char *name, size_t length);
/* Each checks the range and stores.  Text is not copied. */
heed_status heed__option_set_int(const heed__option_parse *p, const heed_option *o, int64_t v);
heed_status heed__option_set_real(const heed__option_parse *p, const heed_option *o, double v);
heed_status heed__option_set_choice(const heed__option_parse *p, const heed_option *o,
                                    const char *name);
/* A value of any type but BOOL and LIST as it is typed. */
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

/* The shortest digits, six or more where that is not exact, that read back as the same number;
 * into text, which is returned. */
#define HEED_OPTION_NUMBER 40
const char *heed__option_number(double v, char text[HEED_OPTION_NUMBER]);

heed_status heed__option_read_config(heed__option_parse *p, const char *path);

#endif
