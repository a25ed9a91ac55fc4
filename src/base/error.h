/* error.h: setting a heed_error.  The first failure is kept. */
#ifndef HEED_BASE_ERROR_H
#define HEED_BASE_ERROR_H

#include <heed/base.h>
#include <stdarg.h>

/* Returns status, so that a caller can `return heed__fail(...)`.  err may be NULL. */
heed_status heed__fail(heed_error *err, heed_status status, const char *format, ...)
    HEED_PRINTF(3, 4);
heed_status heed__vfail(heed_error *err, heed_status status, const char *format, va_list args)
    HEED_PRINTF(3, 0);
/* What a public function does without the object it works on, which could not be opened perhaps. */
heed_status heed__missing(heed_error *err, const char *what);

#endif
