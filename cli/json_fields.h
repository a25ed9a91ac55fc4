/* json_fields.h: the fields of a JSON object as they are written, to be passed on byte for byte. */
#ifndef HEED_CLI_JSON_FIELDS_H
#define HEED_CLI_JSON_FIELDS_H

#include <stdbool.h>
#include <stddef.h>

typedef struct json_field {
    const char *name, *value; /* both as they stand in the text */
    size_t name_length, value_length;
} json_field;
/* The field at `at`, which begins as the text of an object that a parser has found sound and goes
 * behind the field; false behind the last. */
bool json_next_field(const char **at, json_field *f);
/* Whether that is its name, whatever escapes it is written with. */
bool json_field_is(const json_field *f, const char *name);

#endif
