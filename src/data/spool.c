/* spool.c: a temporary file that nobody else sees, written through one buffer. */
#include "data/spool.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

const char *heed__spool_folder(void)
{
    const char *folder = getenv("TMPDIR");
    return folder && *folder ? folder : "/tmp";
}

void heed__spool_open(heed__spool *s)
{
    char name[PATH_MAX];
    s->held = s->size = 0;
    s->failed = 0;
    int n = snprintf(name, sizeof name, "%s/heed-corpus-XXXXXX", heed__spool_folder());
    s->fd = -1;
    if (n < 0 || (size_t)n >= sizeof name)
        s->failed = ENAMETOOLONG;
    else if ((s->fd = mkostemp(name, O_CLOEXEC)) < 0 || unlink(name) != 0)
        s->failed = errno;
}

static void flush(heed__spool *s)
{
    for (size_t done = 0; done < s->held && !s->failed;) {
        ssize_t n = write(s->fd, s->buffer + done, s->held - done);
        if (n < 0 && errno != EINTR)
            s->failed = errno;
        if (n > 0)
            done += (size_t)n;
    }
    s->size += s->held;
    s->held = 0;
}

void heed__spool_add(heed__spool *s, const void *bytes, size_t size)
{
    const char *from = bytes;
    while (size) {
        size_t n = HEED__SPOOL_BUFFER - s->held < size ? HEED__SPOOL_BUFFER - s->held : size;
        memcpy(s->buffer + s->held, from, n);
        s->held += n;
        from += n;
        size -= n;
        if (s->held == HEED__SPOOL_BUFFER)
            flush(s);
    }
}

const void *heed__spool_map(heed__spool *s, size_t *size)
{
    flush(s);
    void *map = NULL;
    if (!s->failed && s->size) {
        map = mmap(NULL, s->size, PROT_READ, MAP_PRIVATE, s->fd, 0);
        if (map == MAP_FAILED)
            s->failed = errno;
    }
    *size = s->failed ? 0 : s->size;
    return *size ? map : "";
}

void heed__spool_close(heed__spool *s)
{
    if (s->fd >= 0)
        close(s->fd);
    s->fd = -1;
}
