/* version.c: the version the library was built as, which a program may compare with the header it
 * was compiled with. */
#include <heed/base.h>

const char *heed_version(void)
{
    return HEED_VERSION_TEXT;
}
