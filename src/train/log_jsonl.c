/* log_jsonl.c: training/log.jsonl: one JSON object a line, written as it happens.
 *
 * A save remembers how long the log was; a resumed run cuts it there and writes what follows again,
 * so that the log of an interrupted run reads like that of one that was not. */
#include "train/trainer.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct heed__log {
    heed_allocator allocator;
    int fd;
    int64_t bytes;
    char line[1024];
    size_t length;
};

heed__log *heed__log_open(const char *path, int64_t bytes, const heed_allocator *allocator,
                          heed_error *err)
{
    heed_allocator a = heed__allocator_or_default(allocator);
    heed__log *l = heed__allocate_zeroed(&a, 1, sizeof *l);
    if (!l) {
        heed__fail(err, HEED_MEMORY, "out of memory for '%.400s'", path);
        return NULL;
    }
    l->allocator = a;
    l->fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
    off_t end = l->fd < 0 ? -1 : lseek(l->fd, 0, SEEK_END);
    /* A power cut may have taken lines that the save still counted. */
    if (end > bytes)
        end = ftruncate(l->fd, bytes) == 0 ? lseek(l->fd, 0, SEEK_END) : -1;
    if (end < 0) {
        heed__fail(err, HEED_IO, "cannot write '%.400s': %s", path, strerror(errno));
        heed__log_close(l);
        return NULL;
    }
    l->bytes = end;
    return l;
}

void heed__log_close(heed__log *l)
{
    if (!l)
        return;
    if (l->fd >= 0)
        close(l->fd);
    heed_allocator a = l->allocator;
    heed__release(&a, l, 1, sizeof *l);
}

int64_t heed__log_bytes(const heed__log *l)
{
    return l->bytes;
}

static void HEED_PRINTF(2, 3) add(heed__log *l, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int n = vsnprintf(l->line + l->length, sizeof l->line - l->length, format, args);
    va_end(args);
    if (n > 0)
        l->length += (size_t)n;
    if (l->length >= sizeof l->line)
        l->length = sizeof l->line - 1;
}

/* JSON has no NaN. */
static void add_real(heed__log *l, const char *name, double x)
{
    if (isfinite(x))
        add(l, ", \"%s\": %.6g", name, x);
}

static heed_status write_line(heed__log *l, heed_error *err)
{
    add(l, "}\n");
    const char *p = l->line;
    while (l->length) {
        ssize_t n = write(l->fd, p, l->length);
        if (n < 0 && errno != EINTR)
            return heed__fail(err, HEED_IO, "cannot write the log: %s", strerror(errno));
        if (n > 0) {
            p += n;
            l->length -= (size_t)n;
            l->bytes += n;
        }
    }
    return HEED_OK;
}

heed_status heed__log_progress(heed__log *l, const heed_train_progress *p, heed_error *err)
{
    bool update = p->event == HEED_TRAIN_UPDATE;
    l->length = 0;
    add(l, "{\"event\": \"%s\", \"update\": %lld, \"epoch\": %lld",
        update ? "update" : "validation", (long long)p->update, (long long)p->epoch);
    if (update) {
        add_real(l, "loss", p->loss);
        add_real(l, "perplexity", exp(p->loss));
        add_real(l, "rate", p->rate);
        add_real(l, "norm", p->norm);
        add_real(l, "tokens_per_second", p->speed);
    } else {
        add_real(l, "loss", p->valid_loss);
        add_real(l, "perplexity", exp(p->valid_loss));
        add_real(l, "bleu", p->bleu);
        add_real(l, "chrf", p->chrf);
        add(l, ", \"metric\": \"%s\"", p->metric);
        add_real(l, "best", p->best);
        add(l, ", \"best_update\": %lld", (long long)p->best_update);
    }
    add_real(l, "seconds", p->seconds);
    return write_line(l, err);
}

heed_status heed__log_rollback(heed__log *l, int64_t from, int64_t to, const char *why,
                               heed_error *err)
{
    char plain[sizeof(((heed_error *)0)->text)];
    size_t n = 0;
    for (; why[n] && n + 1 < sizeof plain; n++)
        plain[n] = why[n] == '"' || why[n] == '\\' || (unsigned char)why[n] < 0x20 ? '\'' : why[n];
    plain[n] = '\0';
    l->length = 0;
    add(l, "{\"event\": \"rollback\", \"update\": %lld, \"to\": %lld, \"why\": \"%s\"",
        (long long)from, (long long)to, plain);
    return write_line(l, err);
}
