/* json_fields.c: where the fields of an object begin and end.  Everything was checked before, so
 * only strings and brackets have to be told apart. */
#include "json_fields.h"

#include <jansson.h>
#include <string.h>

static const char *skip_blank(const char *at)
{
    return at + strspn(at, " \t\r\n");
}

static const char *skip_string(const char *at)
{
    for (at++; *at && *at != '"'; at++)
        if (*at == '\\' && at[1])
            at++;
    return *at ? at + 1 : at;
}

static const char *skip_value(const char *at)
{
    int depth = 0;
    while (*at && (depth > 0 || !strchr(",}] \t\r\n", *at))) {
        depth += *at == '{' || *at == '[';
        depth -= *at == '}' || *at == ']';
        at = *at == '"' ? skip_string(at) : at + 1;
        if (depth == 0 && strchr("\"}]", at[-1]))
            break;
    }
    return at;
}

bool json_next_field(const char **at, json_field *f)
{
    const char *p = skip_blank(*at);
    if (*p == '{' || *p == ',')
        p = skip_blank(p + 1);
    if (*p != '"')
        return false;
    f->name = p;
    p = skip_string(p);
    f->name_length = (size_t)(p - f->name);
    p = skip_blank(p);
    f->value = skip_blank(p + (*p == ':'));
    p = skip_value(f->value);
    f->value_length = (size_t)(p - f->value);
    *at = p;
    return true;
}

bool json_field_is(const json_field *f, const char *name)
{
    json_t *text = json_loadb(f->name, f->name_length, JSON_DECODE_ANY, NULL);
    bool is = text && strcmp(json_string_value(text), name) == 0;
    json_decref(text);
    return is;
}
