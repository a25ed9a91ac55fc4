/* inspect_found.c: `heed inspect --model FOUND`: what a model of another program is. */
#include "cmd_inspect.h"
#include "command.h"

#include <heed/engine.h>
#include <jansson.h>
#include <stdio.h>

static void print_value(const char *name, const json_t *value)
{
    if (json_is_string(value))
        printf("  %-32s %s\n", name, json_string_value(value));
    else if (json_is_integer(value))
        printf("  %-32s %lld\n", name, (long long)json_integer_value(value));
    else if (json_is_number(value))
        printf("  %-32s %g\n", name, json_number_value(value));
    else if (json_is_boolean(value))
        printf("  %-32s %s\n", name, json_is_true(value) ? "true" : "false");
}

static void print_all(const char *title, const json_t *of)
{
    const char *name;
    json_t *value;
    if (json_object_size(of) == 0)
        return;
    printf("\n%s\n", title);
    json_object_foreach((json_t *)of, name, value) print_value(name, value);
}

bool inspect_found(const struct inspect_settings *s, heed_arena *arena)
{
    heed_error err = {0};
    const char *json = NULL;
    if (heed_found_describe(s->model, arena, &json, &err)) {
        complain("%s", err.text);
        return false;
    }
    if (s->json) {
        puts(json);
        return true;
    }
    json_t *all = json_loads(json, 0, NULL);
    const char *summary = json_string_value(json_object_get(all, "summary"));
    const char *why = json_string_value(json_object_get(all, "not_opened"));
    printf("%s: %s, weights as %s\n", s->model,
           json_string_value(json_object_get(all, "publisher")),
           json_string_value(json_object_get(all, "format")));
    printf("%s\n", summary ? summary : why);
    print_all("about", json_object_get(all, "about"));
    print_all("values by type", json_object_get(all, "types"));
    printf("\n%lld tensors, %lld values\n",
           (long long)json_integer_value(json_object_get(all, "tensors")),
           (long long)json_integer_value(json_object_get(all, "values")));
    const json_t *columns = json_object_get(all, "int8_columns");
    if (columns)
        printf(
            "%lld columns are computed in int8, sums of %lld of them in 32 bits where there is no "
            "VNNI\n",
            (long long)json_integer_value(columns),
            (long long)json_integer_value(json_object_get(all, "wide_columns")));
    json_decref(all);
    return true;
}
