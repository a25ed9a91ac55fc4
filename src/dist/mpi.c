/* mpi.c: the transport of heed-mpi, and the only file that knows MPI.
 *
 * MPI only moves bytes: every sum is made by heed, in rank order.  All calls are non-blocking, and
 * waited for here: MPI libraries spin while they wait, which takes the processor from ranks of the
 * same machine that still compute. */
#include "base/error.h"
#include "base/memory.h"
#include "dist/transport.h"

#include <mpi.h>
#include <sched.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* A wait spins for so long, then sleeps in between. */
#define SPIN_SECONDS 0.002
#define SLEEP_NANOSECONDS 50000
/* What MPI has to end all processes; it may have to reach machines that are gone. */
#define ABORT_SECONDS 2

struct world {
    MPI_Comm comm[HEED__CHANNELS];
    heed_allocator allocator;
    int size;
    int *numbers; /* (4 * size) counts and offsets of one call, for each channel */
    struct beat { /* (size) the last one to each rank */
        MPI_Request request;
        unsigned char byte;
    } * beats;
    char host[MPI_MAX_PROCESSOR_NAME];
};

const char *heed__transport_library(void)
{
#ifdef OMPI_MAJOR_VERSION
#define AS_TEXT(x) #x
#define DOTTED(a, b, c) AS_TEXT(a) "." AS_TEXT(b) "." AS_TEXT(c)
    return "Open MPI " DOTTED(OMPI_MAJOR_VERSION, OMPI_MINOR_VERSION, OMPI_RELEASE_VERSION);
#else
    return "MPICH " MPICH_VERSION;
#endif
}

static heed_status failed(int code, const char *what, heed_error *err)
{
    char text[MPI_MAX_ERROR_STRING] = "";
    int length = 0;
    if (code == MPI_SUCCESS)
        return HEED_OK;
    MPI_Error_string(code, text, &length);
    return heed__fail(err, HEED_IO, "the ranks lost each other while they %s: %.300s", what, text);
}

static heed_status wait_for(MPI_Request *request, int code, const char *what, heed_error *err)
{
    const double begin = heed_clock_seconds();
    int done = 0;
    while (code == MPI_SUCCESS) {
        code = MPI_Test(request, &done, MPI_STATUS_IGNORE);
        if (done || code != MPI_SUCCESS)
            break;
        if (heed_clock_seconds() - begin < SPIN_SECONDS)
            sched_yield();
        else
            nanosleep(&(struct timespec){0, SLEEP_NANOSECONDS}, NULL);
    }
    return failed(code, what, err);
}

static heed_status broadcast(void *self, void *data, size_t bytes, heed_error *err)
{
    const struct world *w = self;
    MPI_Request request;
    const int code =
        MPI_Ibcast(data, (int)bytes, MPI_BYTE, 0, w->comm[HEED__CHANNEL_MAIN], &request);
    return wait_for(&request, code, "shared what rank 0 has", err);
}

/* Of one call, which ends before the next of its channel begins. */
static int *numbers_of(const struct world *w, heed__channel channel)
{
    return w->numbers + 4 * w->size * (int)channel;
}

static heed_status scatter(void *self, heed__channel channel, const void *data, const size_t *part,
                           void *got, heed_error *err)
{
    const struct world *w = self;
    int rank, *sent = numbers_of(w, channel), *from = sent + w->size, *taken = from + w->size,
              *to = taken + w->size;
    MPI_Request request;
    MPI_Comm_rank(w->comm[channel], &rank);
    const int mine = (int)(part[rank + 1] - part[rank]);
    for (int i = 0; i < w->size; i++) {
        sent[i] = (int)(part[i + 1] - part[i]);
        from[i] = (int)part[i];
        taken[i] = mine;
        to[i] = i * mine;
    }
    const int code = MPI_Ialltoallv(data, sent, from, MPI_BYTE, got, taken, to, MPI_BYTE,
                                    w->comm[channel], &request);
    return wait_for(&request, code, "exchanged gradients", err);
}

static heed_status collect(void *self, heed__channel channel, void *data, const size_t *part,
                           heed_error *err)
{
    const struct world *w = self;
    int *count = numbers_of(w, channel), *to = count + w->size;
    MPI_Request request;
    for (int i = 0; i < w->size; i++) {
        count[i] = (int)(part[i + 1] - part[i]);
        to[i] = (int)part[i];
    }
    const int code = MPI_Iallgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, data, count, to, MPI_BYTE,
                                     w->comm[channel], &request);
    return wait_for(&request, code, "shared their sums", err);
}

static bool beat(void *self, int to, unsigned char byte)
{
    const struct world *w = self;
    struct beat *b = &w->beats[to];
    int done = 0;
    if (MPI_Test(&b->request, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS || !done)
        return false;
    b->byte = byte;
    return MPI_Isend(&b->byte, 1, MPI_BYTE, to, 0, w->comm[HEED__CHANNEL_BEATS], &b->request) ==
           MPI_SUCCESS;
}

static bool hear(void *self, int *from, unsigned char *byte)
{
    const MPI_Comm comm = ((const struct world *)self)->comm[HEED__CHANNEL_BEATS];
    MPI_Status about;
    int there = 0;
    if (MPI_Iprobe(MPI_ANY_SOURCE, 0, comm, &there, &about) != MPI_SUCCESS || !there)
        return false;
    *from = about.MPI_SOURCE;
    return MPI_Recv(byte, 1, MPI_BYTE, *from, 0, comm, MPI_STATUS_IGNORE) == MPI_SUCCESS;
}

static void stop(void *self, int code)
{
    const struct world *w = self;
    alarm(ABORT_SECONDS);
    MPI_Abort(w->comm[HEED__CHANNEL_MAIN], code);
}

static void finish(void *self)
{
    struct world *w = self;
    MPI_Request request;
    /* A rank that is done long before the others sleeps here, not in MPI. */
    if (MPI_Ibarrier(w->comm[HEED__CHANNEL_MAIN], &request) == MPI_SUCCESS)
        wait_for(&request, MPI_SUCCESS, "ended", NULL);
    for (int i = 0; i < w->size; i++) /* all have been heard */
        MPI_Wait(&w->beats[i].request, MPI_STATUS_IGNORE);
    for (int i = 0; i < HEED__CHANNELS; i++)
        MPI_Comm_free(&w->comm[i]);
    heed_allocator a = w->allocator;
    heed__release(&a, w->beats, (size_t)w->size, sizeof *w->beats);
    heed__release(&a, w->numbers, (size_t)(4 * HEED__CHANNELS * w->size), sizeof *w->numbers);
    heed__release(&a, w, 1, sizeof *w);
    MPI_Finalize();
}

static int local_ranks(void)
{
    MPI_Comm local;
    int n = 1;
    if (MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &local) ==
        MPI_SUCCESS) {
        MPI_Comm_size(local, &n);
        MPI_Comm_free(&local);
    }
    return n;
}

heed_status heed__transport_open(heed__transport *t, heed_error *err)
{
    int given = 0, length = 0;
    const heed_allocator a = heed__allocator_or_default(NULL);
    *t = (heed__transport){.size = 1, .local = 1, .host = ""};
    heed_status status =
        failed(MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &given), "began", err);
    if (status)
        return status;
    MPI_Comm_rank(MPI_COMM_WORLD, &t->rank);
    MPI_Comm_size(MPI_COMM_WORLD, &t->size);
    if (given < MPI_THREAD_MULTIPLE && t->size > 1)
        return heed__fail(err, HEED_STATE, "%s was built without MPI_THREAD_MULTIPLE",
                          heed__transport_library());
    struct world *w = heed__allocate_zeroed(&a, 1, sizeof *w);
    int *numbers = heed__allocate(&a, (size_t)(4 * HEED__CHANNELS * t->size), sizeof *w->numbers);
    struct beat *beats = heed__allocate(&a, (size_t)t->size, sizeof *beats);
    if (!w || !numbers || !beats)
        return heed__fail(err, HEED_MEMORY, "out of memory for %d ranks", t->size);
    *w = (struct world){.allocator = a, .size = t->size, .numbers = numbers, .beats = beats};
    for (int i = 0; i < t->size; i++)
        beats[i].request = MPI_REQUEST_NULL;
    MPI_Get_processor_name(w->host, &length);
    for (int i = 0; !status && i < HEED__CHANNELS; i++) {
        status = failed(MPI_Comm_dup(MPI_COMM_WORLD, &w->comm[i]), "began", err);
        if (!status)
            MPI_Comm_set_errhandler(w->comm[i], MPI_ERRORS_RETURN);
    }
    *t = (heed__transport){.self = w,
                           .rank = t->rank,
                           .size = t->size,
                           .local = local_ranks(),
                           .host = w->host,
                           .broadcast = broadcast,
                           .scatter = scatter,
                           .collect = collect,
                           .beat = beat,
                           .hear = hear,
                           .stop = stop,
                           .close = finish};
    return status;
}
