/* clock.c: the one clock of the project. */
#include <heed/base.h>
#include <time.h>

double heed_clock_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}
