/* ranks.c: the processes that train together: what the trainer asks of them, over any transport. */
#include "dist/ranks.h"
#include "base/error.h"
#include "base/file.h"
#include "base/folder.h"
#include "base/memory.h"
#include "base/parallel.h"
#include "dist/heartbeat.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Of one call: a transport may count bytes in an int. */
#define MOST_BYTES ((size_t)1 << 28)
/* After these without a sign of life a rank is lost: longer than a busy machine lets a thread
 * wait, and than a network needs to send what was lost again. */
#define SILENCE_SECONDS 6.0
#define HOST_BYTES 64

struct heed_ranks {
    heed_allocator allocator;
    heed__transport transport;
    bool told; /* the last failure is known to all */
    double waited[HEED__CHANNELS];
    heed__pathname folder; /* private; "" before there is one */
    heed__pathname inside; /* the name in it that was asked for last */
    heed__heartbeat *heartbeat;
    double silence; /* seconds */
    char *hosts;    /* (size * HOST_BYTES) */
    void (*lost)(void *context, const char *text);
    void *context; /* of lost */
};

int heed_ranks_rank(const heed_ranks *r)
{
    return r ? r->transport.rank : 0;
}

int heed_ranks_size(const heed_ranks *r)
{
    return r ? r->transport.size : 1;
}

const char *heed_ranks_host(const heed_ranks *r)
{
    return r ? r->transport.host : "";
}

bool heed_ranks_told(const heed_ranks *r)
{
    return r && r->told;
}

const char *heed_ranks_library(void)
{
    return heed__transport_library();
}

bool heed__ranks_lead(const heed_ranks *r)
{
    return heed_ranks_rank(r) == 0;
}

double heed__ranks_waited(const heed_ranks *r, heed__channel channel)
{
    return r ? r->waited[channel] : 0;
}

int heed_ranks_threads(const heed_ranks *r)
{
    const int mine = heed__processors(), local = r ? r->transport.local : 1;
    heed_machine m;
    if (local < 2)
        return mine;
    heed_machine_describe(&m);
    /* A starter may have bound each rank to processors of its own. */
    return mine < m.threads || mine < local ? mine : mine / local;
}

/* ---- opening, closing ---- */

heed_ranks *heed__ranks_of(const heed__transport *transport, const heed_allocator *allocator,
                           heed_error *err)
{
    const heed_allocator a = heed__allocator_or_default(allocator);
    heed_ranks *r = heed__allocate_zeroed(&a, 1, sizeof *r);
    if (!r) {
        heed__fail(err, HEED_MEMORY, "out of memory for the ranks of a training");
        return NULL;
    }
    r->allocator = a;
    r->transport = *transport;
    return r;
}

/* What is computed must not depend on who computes it. */
static heed_status same_version(heed_ranks *r, heed_error *err)
{
    char mine[128], first[128];
    snprintf(mine, sizeof mine, "heed %s in %s", heed_version(),
             sizeof(heed_real) == 8 ? "double" : "float");
    memcpy(first, mine, sizeof first);
    heed_status status = heed__ranks_broadcast(r, first, sizeof first, err);
    first[sizeof first - 1] = '\0';
    return status || strcmp(mine, first) == 0
               ? status
               : heed__fail(err, HEED_STATE, "rank %d on %s is %s, and rank 0 is %s",
                            heed_ranks_rank(r), heed_ranks_host(r), mine, first);
}

heed_ranks *heed_ranks_open(heed_error *err)
{
    heed__transport transport;
    if (heed__transport_open(&transport, err))
        return NULL;
    heed_ranks *r = heed__ranks_of(&transport, NULL, err);
    if (r && same_version(r, err)) {
        r->transport.close = NULL; /* it would wait for the others */
        heed_ranks_close(r);
        return NULL;
    }
    return r;
}

/* ---- watching ---- */

static void rank_is_lost(void *context, int rank)
{
    const heed_ranks *r = context;
    char text[160];
    snprintf(
        text, sizeof text,
        "nothing has been heard of rank %d on %s for %g seconds: it, its machine or the network "
        "is gone",
        rank, rank < 0 ? "" : r->hosts + (size_t)rank * HOST_BYTES, r->silence);
    r->lost(r->context, rank < 0 ? NULL : text);
}

heed_status heed__ranks_watch(heed_ranks *r, double seconds,
                              void (*lost)(void *context, const char *text), void *context,
                              heed_error *err)
{
    char mine[HOST_BYTES];
    const size_t n = (size_t)heed_ranks_size(r);
    if (n == 1)
        return HEED_OK;
    r->lost = lost;
    r->context = context;
    r->silence = seconds;
    r->hosts = heed__allocate(&r->allocator, n, HOST_BYTES);
    if (!r->hosts)
        return heed__fail(err, HEED_MEMORY, "out of memory for the names of %zu machines", n);
    memset(mine, 0, sizeof mine);
    snprintf(mine, sizeof mine, "%s", r->transport.host);
    heed_status status = heed__ranks_gather(r, mine, r->hosts, sizeof mine, err);
    if (!status && !(r->heartbeat = heed__heartbeat_new(&r->transport, seconds, rank_is_lost, r,
                                                        &r->allocator, err)))
        status = HEED_MEMORY;
    return status;
}

heed_status heed_ranks_watch(heed_ranks *r, void (*lost)(void *context, const char *text),
                             void *context, heed_error *err)
{
    if (!lost)
        return heed__missing(err, "lost");
    return heed__ranks_watch(r, SILENCE_SECONDS, lost, context, err);
}

/* ---- the end ---- */

void heed__ranks_forget_private(heed_ranks *r)
{
    if (r && *r->folder)
        heed__folder_remove(r->folder, NULL);
    if (r)
        *r->folder = '\0';
}

void heed_ranks_close(heed_ranks *r)
{
    if (!r)
        return;
    heed__ranks_forget_private(r);
    heed__heartbeat_end(r->heartbeat);
    if (r->transport.close)
        r->transport.close(r->transport.self);
    const heed_allocator a = r->allocator;
    heed__release(&a, r->hosts, (size_t)r->transport.size, HOST_BYTES);
    heed__release(&a, r, 1, sizeof *r);
}

void heed_ranks_stop(heed_ranks *r, int code)
{
    if (!r)
        return;
    heed__ranks_forget_private(r);
    if (r->transport.size > 1 && r->transport.stop)
        r->transport.stop(r->transport.self, code);
}

/* ---- moving bytes ---- */

heed_status heed__ranks_broadcast(heed_ranks *r, void *data, size_t bytes, heed_error *err)
{
    heed_status status = HEED_OK;
    const double begin = heed_clock_seconds();
    if (heed_ranks_size(r) == 1)
        return HEED_OK;
    for (size_t at = 0; !status && at < bytes; at += MOST_BYTES)
        status = r->transport.broadcast(r->transport.self, (char *)data + at,
                                        bytes - at < MOST_BYTES ? bytes - at : MOST_BYTES, err);
    r->waited[HEED__CHANNEL_MAIN] += heed_clock_seconds() - begin;
    return status;
}

heed_status heed__ranks_scatter(heed_ranks *r, heed__channel channel, const void *data,
                                const size_t *part, void *got, heed_error *err)
{
    const double begin = heed_clock_seconds();
    heed_status status = r->transport.scatter(r->transport.self, channel, data, part, got, err);
    r->waited[channel] += heed_clock_seconds() - begin;
    return status;
}

heed_status heed__ranks_collect(heed_ranks *r, heed__channel channel, void *data,
                                const size_t *part, heed_error *err)
{
    const double begin = heed_clock_seconds();
    heed_status status = r->transport.collect(r->transport.self, channel, data, part, err);
    r->waited[channel] += heed_clock_seconds() - begin;
    return status;
}

heed_status heed__ranks_gather(heed_ranks *r, const void *mine, void *all, size_t bytes,
                               heed_error *err)
{
    const size_t n = (size_t)heed_ranks_size(r), rank = (size_t)heed_ranks_rank(r);
    memcpy((char *)all + rank * bytes, mine, bytes);
    if (n == 1)
        return HEED_OK;
    size_t *part = heed__allocate(&r->allocator, n + 1, sizeof *part);
    if (!part)
        return heed__fail(err, HEED_MEMORY, "out of memory for the sizes of %zu parts", n);
    for (size_t i = 0; i <= n; i++)
        part[i] = i * bytes;
    heed_status status = heed__ranks_collect(r, HEED__CHANNEL_MAIN, all, part, err);
    heed__release(&r->allocator, part, n + 1, sizeof *part);
    return status;
}

/* ---- errors, texts ---- */

heed_status heed__ranks_agree_on(heed_ranks *r, void *data, size_t bytes, heed_status status,
                                 heed_error *err)
{
    struct {
        heed_error failed;
        char data[128];
    } first = {.failed = {.status = status}};
    heed_error own = {0};
    if (heed_ranks_size(r) == 1)
        return status;
    if (bytes > sizeof first.data)
        return heed__fail(err, HEED_ARGUMENT, "%zu bytes are too many to agree on", bytes);
    if (status && err)
        first.failed = *err;
    memcpy(first.data, data, bytes);
    if (heed__ranks_broadcast(r, &first, sizeof first, &own))
        return heed__fail(err, own.status, "%s", own.text);
    first.failed.text[sizeof first.failed.text - 1] = '\0';
    memcpy(data, first.data, bytes);
    r->told = first.failed.status != HEED_OK;
    if (!first.failed.status || heed__ranks_lead(r))
        return status;
    if (err)
        err->status = HEED_OK;
    return heed__fail(err, first.failed.status, "%s", first.failed.text);
}

heed_status heed__ranks_agree(heed_ranks *r, heed_status status, heed_error *err)
{
    char nothing = 0;
    return heed__ranks_agree_on(r, &nothing, sizeof nothing, status, err);
}

heed_status heed__ranks_text(heed_ranks *r, const char **text, heed_arena *arena, heed_error *err)
{
    uint64_t bytes = heed__ranks_lead(r) && *text ? strlen(*text) + 1 : 0;
    heed_status status = heed__ranks_broadcast(r, &bytes, sizeof bytes, err);
    if (status || heed__ranks_lead(r))
        return status ? status : heed__ranks_broadcast(r, (char *)*text, bytes, err);
    char *copy = bytes ? heed_arena_allocate(arena, bytes) : NULL;
    *text = copy;
    if (bytes && !copy)
        return heed__fail(err, HEED_MEMORY, "out of memory for a text of rank 0");
    return heed__ranks_broadcast(r, copy, bytes, err);
}

const char *heed__ranks_private(heed_ranks *r, const char *name, heed_error *err)
{
    const char *temporary = getenv("TMPDIR");
    if (!*r->folder && heed__pathname_format(r->folder, err, "%s/heed-rank-XXXXXX",
                                             temporary && *temporary ? temporary : "/tmp"))
        return NULL;
    if (strstr(r->folder, "XXXXXX") && !mkdtemp(r->folder)) {
        heed__fail(err, HEED_IO, "cannot make a directory '%.400s'", r->folder);
        *r->folder = '\0';
        return NULL;
    }
    return heed__pathname_format(r->inside, err, "%s/%s", r->folder, name) ? NULL : r->inside;
}

static heed_status other_word(const char *mine, const char *first, const char *option,
                              heed_error *err)
{
    char before[128] = "";
    if (option && *option == '-' && !(mine && *mine == '-'))
        snprintf(before, sizeof before, "%.100s ", option);
    return heed__fail(err, HEED_ARGUMENT,
                      "the options differ: '%s%.200s' here, '%s%.200s' on rank 0", before,
                      mine ? mine : "nothing more", before, first ? first : "nothing more");
}

heed_status heed_ranks_same_words(heed_ranks *r, int count, const char *const *words,
                                  heed_error *err)
{
    heed_error own = {0};
    int32_t n = count;
    if (heed_ranks_size(r) == 1)
        return HEED_OK;
    heed_arena *arena = heed_arena_new(&r->allocator, &own);
    heed_status status = arena ? heed__ranks_broadcast(r, &n, sizeof n, &own) : HEED_MEMORY;
    for (int i = 0; !status && i < n; i++) {
        const char *first = i < count ? words[i] : NULL;
        const char *const mine = first;
        status = heed__ranks_text(r, &first, arena, &own);
        if (!status && (!mine || strcmp(mine, first) != 0))
            status = other_word(mine, first, i > 0 && i <= count ? words[i - 1] : NULL, &own);
    }
    if (!status && count > n)
        status = other_word(words[n], NULL, n > 0 ? words[n - 1] : NULL, &own);
    heed_arena_free(arena);
    return status ? heed__fail(err, own.status, "%s", own.text) : HEED_OK;
}
