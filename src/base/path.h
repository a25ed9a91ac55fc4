/* path.h: paths on the stack; ARGUMENT if one would be longer than PATH_MAX. */
#ifndef HEED_BASE_PATH_H
#define HEED_BASE_PATH_H

#include <heed/base.h>
#include <limits.h>

typedef char heed__pathname[PATH_MAX];
heed_status heed__pathname_format(heed__pathname path, heed_error *err, const char *format, ...)
    HEED_PRINTF(3, 4);
/* folder/name; ARGUMENT also if folder is NULL or empty. */
heed_status heed__pathname_in(heed__pathname path, const char *folder, const char *name,
                              heed_error *err);
/* The directory that path lies in ("." or "/" if it names none) and, if name is not NULL, its own
 * name.  Slashes at the end of path do not count. */
heed_status heed__pathname_split(const char *path, heed__pathname parent, heed__pathname name,
                                 heed_error *err);

#endif
