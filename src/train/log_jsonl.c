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

/* Ranks of which a line of the log has room for the speed of each. */
#define MOST_SPEEDS 64

struct heed__log {
    heed_allocator allocator;
    int fd;
    int64_t bytes;
    char line[2048];
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

void heed__set_key(const heed_task *task, const char *what, int set, heed__log_key key)
{
    if (task->sets > 1)
        snprintf(key, sizeof(heed__log_key), "%s_%s", what, task->set_names[set]);
    else
        snprintf(key, sizeof(heed__log_key), "%s", what);
}

void heed__measure_key(const char *name, heed__log_key key)
{
    size_t n = 0;
    for (; name[n] && n + 1 < sizeof(heed__log_key); n++) {
        const char c = name[n];
        const bool plain = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
        key[n] = c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : plain ? c : '_';
    }
    key[n] = '\0';
}

static void add_update(heed__log *l, const heed_train_progress *p)
{
    const heed_task *task = p->task;
    heed__log_key key;
    for (int k = 0; k < (task->sets > 1 ? task->sets : 1); k++) {
        heed__set_key(task, "loss", k, key);
        add_real(l, key, p->loss[k]);
        heed__set_key(task, "norm", k, key);
        add_real(l, key, p->norm[k]);
    }
    if (task->perplexity)
        add_real(l, "perplexity", exp(p->loss[0]));
    add_real(l, "rate", p->rate);
    snprintf(key, sizeof key, "%s_per_second", task->items ? task->items : "updates");
    add_real(l, key, p->speed);
    if (p->ranks < 2)
        return;
    add_real(l, "waiting", p->waiting);
    int slowest = 0;
    for (int i = 1; i < p->ranks; i++)
        slowest = p->rank_speed[i] < p->rank_speed[slowest] ? i : slowest;
    add(l, ", \"ranks\": %d, \"slowest\": %d", p->ranks, slowest);
    for (int i = 0; i < p->ranks && p->ranks <= MOST_SPEEDS; i++)
        add(l, "%s%.6g%s", i ? ", " : ", \"each_per_second\": [", p->rank_speed[i],
            i == p->ranks - 1 ? "]" : "");
}

static void add_validation(heed__log *l, const heed_train_progress *p)
{
    heed__log_key key;
    for (int i = 0; i < p->measures; i++) {
        heed__measure_key(p->measure[i].name, key);
        add_real(l, key, p->measure[i].value);
    }
    if (p->task->perplexity && p->measures)
        add_real(l, "perplexity", exp(p->measure[0].value));
    if (p->best.name) {
        heed__measure_key(p->best.name, key);
        add(l, ", \"metric\": \"%s\"", key);
        add_real(l, "best", p->best.value);
        add(l, ", \"best_update\": %lld", (long long)p->best_update);
    }
}

heed_status heed__log_progress(heed__log *l, const heed_train_progress *p, heed_error *err)
{
    const bool update = p->event == HEED_TRAIN_UPDATE;
    l->length = 0;
    add(l, "{\"event\": \"%s\", \"update\": %lld, \"epoch\": %lld",
        update ? "update" : "validation", (long long)p->update, (long long)p->epoch);
    if (update)
        add_update(l, p);
    else
        add_validation(l, p);
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
