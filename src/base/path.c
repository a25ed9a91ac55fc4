/* path.c: paths on the stack. */
#include "base/path.h"
#include "base/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

heed_status heed__pathname_format(heed__pathname path, heed_error *err, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int n = vsnprintf(path, PATH_MAX, format, args);
    va_end(args);
    if (n < 0 || n >= PATH_MAX)
        return heed__fail(err, HEED_ARGUMENT, "the path '%.100s...' is too long", path);
    return HEED_OK;
}

heed_status heed__pathname_in(heed__pathname path, const char *folder, const char *name,
                              heed_error *err)
{
    if (!folder || !*folder)
        return heed__fail(err, HEED_ARGUMENT, "the name of a directory is empty");
    const char *slash = folder[strlen(folder) - 1] == '/' ? "" : "/";
    return heed__pathname_format(path, err, "%s%s%s", folder, slash, name);
}

heed_status heed__pathname_split(const char *path, heed__pathname parent, heed__pathname name,
                                 heed_error *err)
{
    size_t end = strlen(path), begin;
    while (end > 1 && path[end - 1] == '/')
        end--;
    for (begin = end; begin > 0 && path[begin - 1] != '/';)
        begin--;
    size_t above = begin;
    while (above > 1 && path[above - 1] == '/')
        above--;
    heed_status status =
        heed__pathname_format(parent, err, "%.*s", above ? (int)above : 1, above ? path : ".");
    if (!status && name)
        status = heed__pathname_format(name, err, "%.*s", (int)(end - begin), path + begin);
    return status;
}
