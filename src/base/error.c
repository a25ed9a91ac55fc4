/* error.c: the first failure is the cause, so later ones do not overwrite it. */
#include "base/error.h"

#include <stdio.h>

heed_status heed__vfail(heed_error *err, heed_status status, const char *format, va_list args)
{
    if (err && err->status == HEED_OK) {
        err->status = status;
        vsnprintf(err->text, sizeof err->text, format, args);
    }
    return status;
}

heed_status heed__fail(heed_error *err, heed_status status, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    heed__vfail(err, status, format, args);
    va_end(args);
    return status;
}

const char *heed_status_text(heed_status status)
{
    static const char *const text[] = {
#define HEED_STATUS_STRING(name, words) words,
        HEED_STATUS_LIST(HEED_STATUS_STRING)
#undef HEED_STATUS_STRING
    };
    return (unsigned)status < sizeof text / sizeof *text ? text[status] : "unknown status";
}

heed_status heed__missing(heed_error *err, const char *what)
{
    return heed__fail(err, HEED_ARGUMENT, "there is no %s: NULL was given", what);
}
