/* json.c: JSON files and strings. */
#include "base/json.h"
#include "base/error.h"
#include "base/file.h"

#include <stdio.h>

bool heed__json_short_of_memory(const json_error_t *e)
{
    /* Before its parser is there jansson says nothing: the code is not set then. */
    return !*e->text || json_error_code(e) == json_error_out_of_memory;
}

json_t *heed__json_open(const char *path, heed_error *err)
{
    const void *bytes;
    size_t size;
    json_error_t why;
    if (heed__file_map(path, &bytes, &size, err))
        return NULL;
    json_t *root = json_loadb(bytes, size, JSON_REJECT_DUPLICATES, &why);
    heed__file_unmap(bytes, size);
    if (!root && heed__json_short_of_memory(&why))
        heed__fail(err, HEED_MEMORY, "cannot read '%.300s': out of memory", path);
    else if (!root)
        heed__fail(err, HEED_FORMAT, "cannot read '%.300s' line %d: %.150s", path, why.line,
                   why.text);
    return root;
}

const char *heed_json_escape(char c, char out[8])
{
    if (!out)
        return NULL;
    if (c == '"' || c == '\\')
        snprintf(out, 8, "\\%c", c);
    else if ((unsigned char)c < 0x20)
        snprintf(out, 8, "\\u%04x", (unsigned)c);
    else
        out[0] = c, out[1] = '\0';
    return out;
}

void heed__json_quote(heed__string *s, const char *text)
{
    char escaped[8];
    heed__string_add(s, "\"");
    for (; *text; text++)
        heed__string_add(s, heed_json_escape(*text, escaped));
    heed__string_add(s, "\"");
}
