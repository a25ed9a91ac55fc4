/* alone.c: a program that is not linked with MPI has one rank. */
#include "base/error.h"
#include "dist/transport.h"

#include <stdlib.h>

const char *heed__transport_library(void)
{
    return NULL;
}

/* Each starter tells its processes in its own way how many there are. */
static long started(void)
{
    static const char *const names[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *text = getenv(names[i]);
        const long n = text ? strtol(text, NULL, 10) : 1;
        if (n > 1)
            return n;
    }
    return 1;
}

heed_status heed__transport_open(heed__transport *t, heed_error *err)
{
    const long n = started();
    *t = (heed__transport){.size = 1, .local = 1, .host = ""};
    return n > 1 ? heed__fail(err, HEED_STATE,
                              "%ld processes were started, and this program trains with one: start "
                              "heed-mpi instead, or one process",
                              n)
                 : HEED_OK;
}
