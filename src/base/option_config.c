/* option_config.c: options from and to a JSON object.  Types are strict: a number in quotes is a
 * text.  A null leaves the option alone.  Jansson uses the C heap during a call. */
#include "base/file.h"
#include "base/json.h"
#include "base/option_parse.h"

#include <jansson.h>
#include <string.h>

static const char *keep(const heed__option_parse *p, const char *text)
{
    size_t n = strlen(text) + 1;
    char *copy = heed_arena_allocate(p->arena, n);
    if (!copy)
        heed__fail(p->err, HEED_MEMORY, "out of memory for options");
    return copy ? memcpy(copy, text, n) : NULL;
}

static heed_status wrong_json(const heed__option_parse *p, const heed_option *o,
                              const json_t *value)
{
    char *found = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT);
    heed_status status = heed__option_wrong(p, o, found ? found : "something else");
    json_free_t release;
    json_get_alloc_funcs(NULL, &release);
    release(found);
    return status;
}

static heed_status set_list(const heed__option_parse *p, const heed_option *o, const json_t *array)
{
    size_t n = json_array_size(array);
    const char **items = heed_arena_allocate(p->arena, sizeof *items * n);
    if (!items || n > INT32_MAX)
        return heed__fail(p->err, HEED_MEMORY, "out of memory for options");
    for (size_t i = 0; i < n; i++) {
        const json_t *item = json_array_get(array, i);
        if (!json_is_string(item))
            return wrong_json(p, o, array);
        if (!(items[i] = keep(p, json_string_value(item))))
            return HEED_MEMORY;
    }
    return heed__option_set_list(p, o, items, (int)n);
}

static heed_status set_json(const heed__option_parse *p, const heed_option *o, const json_t *value)
{
    const char *text;
    switch (o->type) {
    case HEED_OPTION_TYPE_BOOL:
        if (!json_is_boolean(value))
            break;
        *(bool *)(p->values + o->offset) = json_is_true(value);
        return HEED_OK;
    case HEED_OPTION_TYPE_INT:
        if (!json_is_integer(value))
            break;
        return heed__option_set_int(p, o, json_integer_value(value));
    case HEED_OPTION_TYPE_REAL:
        if (!json_is_number(value))
            break;
        return heed__option_set_real(p, o, json_number_value(value));
    case HEED_OPTION_TYPE_TEXT:
    case HEED_OPTION_TYPE_CHOICE:
    case HEED_OPTION_TYPE_SPEC:
        if (!json_is_string(value))
            break;
        text = keep(p, json_string_value(value));
        return text ? heed__option_set_text(p, o, text) : HEED_MEMORY;
    case HEED_OPTION_TYPE_LIST:
        if (!json_is_array(value))
            break;
        return set_list(p, o, value);
    }
    return wrong_json(p, o, value);
}

heed_status heed__option_read_config(heed__option_parse *p, const char *path)
{
    heed_error own = {0};
    json_t *root = heed__json_open(path, &own);
    if (!root)
        return heed__fail(p->err, own.status, "%s", own.text);
    heed_status status = HEED_OK;
    p->file = path;
    if (!json_is_object(root))
        status = heed__fail(p->err, HEED_FORMAT, "'%s': expected a JSON object of options", path);
    const char *name;
    json_t *value;
    json_object_foreach(root, name, value)
    {
        const heed_option *o = heed__option_find(p->set, name, strlen(name));
        if (!status && !o)
            status = heed__option_unknown(p, name, strlen(name));
        if (!status && !json_is_null(value)) {
            status = set_json(p, o, value);
            p->origin[o - p->set->fields] = HEED_OPTION_BY_CONFIG;
        }
    }
    p->file = NULL;
    json_decref(root);
    return status;
}

static void add_value(heed__string *s, const heed_option *o, const void *field)
{
    const heed_option_list *list = field;
    char digits[HEED_OPTION_NUMBER], spec[HEED_OPTION_SPEC_TEXT];
    const char *text;
    int64_t number;
    switch (o->type) {
    case HEED_OPTION_TYPE_BOOL:
        heed__string_add(s, *(const bool *)field ? "true" : "false");
        break;
    case HEED_OPTION_TYPE_INT:
        number = *(const int64_t *)field;
        if ((o->least || o->most) && (number < o->least || number > o->most))
            heed__string_add(s, "null"); /* not given, and outside what may be given */
        else
            heed__string_format(s, "%lld", (long long)number);
        break;
    case HEED_OPTION_TYPE_REAL:
        heed__string_add(s, heed__option_number(*(const double *)field, digits));
        break;
    case HEED_OPTION_TYPE_TEXT:
        if ((text = *(const char *const *)field))
            heed__json_quote(s, text);
        else
            heed__string_add(s, "null");
        break;
    case HEED_OPTION_TYPE_LIST:
        heed__string_add(s, "[");
        for (int i = 0; i < list->count; i++) {
            heed__string_add(s, i ? ", " : "");
            heed__json_quote(s, list->items[i]);
        }
        heed__string_add(s, "]");
        break;
    case HEED_OPTION_TYPE_CHOICE:
        heed__json_quote(s, o->choices[*(const int *)field]);
        break;
    case HEED_OPTION_TYPE_SPEC:
        heed__json_quote(s, o->spec()->format(field, spec));
        break;
    }
}

const char *heed_option_config(const heed_option_set *set, const void *values, heed_arena *arena)
{
    if (!set)
        return NULL;
    heed__string s;
    heed__string_init(&s, NULL);
    heed__string_add(&s, "{\n");
    const char *between = "  ";
    for (int i = 0; i < set->count; i++) {
        const heed_option *o = &set->fields[i];
        if (heed__option_left_out(set, o))
            continue;
        heed__string_add(&s, between);
        between = ",\n  ";
        heed__json_quote(&s, o->name);
        heed__string_add(&s, ": ");
        add_value(&s, o, (const char *)values + o->offset);
    }
    heed__string_add(&s, set->count ? "\n}\n" : "}\n");
    char *text = s.failed ? NULL : heed_arena_allocate(arena, s.length + 1);
    if (text)
        memcpy(text, heed__string_text(&s), s.length + 1);
    heed__string_deinit(&s);
    return text;
}
