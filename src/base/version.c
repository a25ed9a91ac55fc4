/* version.c: the version of the library, to compare with the header's that a program was compiled
 * with. */
#include <heed/base.h>

const char *heed_version(void)
{
    return HEED_VERSION_TEXT;
}
