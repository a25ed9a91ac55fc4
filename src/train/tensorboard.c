/* tensorboard.c: TensorBoard event files, written by hand: TFRecords (length, its masked CRC-32C,
 * data, its masked CRC-32C) around protocol buffers
 *     Event { double wall_time = 1; int64 step = 2; string file_version = 3; Summary summary = 5 }
 *     Summary { repeated Value value = 1 }      Value { string tag = 1; float simple_value = 2 }
 * One file for each start of a run; the viewer lets a resumed run replace what it repeats. */
#include "train/trainer.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct heed__events {
    heed_allocator allocator;
    int fd;
};

/* A message under construction; everything written here is far smaller. */
struct message {
    unsigned char bytes[256];
    size_t length;
};

static void put(struct message *m, const void *bytes, size_t n)
{
    if (n > sizeof m->bytes - m->length)
        n = sizeof m->bytes - m->length;
    memcpy(m->bytes + m->length, bytes, n);
    m->length += n;
}

static void put_varint(struct message *m, uint64_t v)
{
    do {
        unsigned char byte = (unsigned char)((v & 0x7f) | (v > 0x7f ? 0x80 : 0));
        put(m, &byte, 1);
        v >>= 7;
    } while (v);
}

enum wire { VARINT = 0, FIXED64 = 1, BYTES = 2, FIXED32 = 5 };

static void put_key(struct message *m, unsigned field, enum wire wire)
{
    put_varint(m, field << 3 | wire);
}

static void put_bytes(struct message *m, unsigned field, const void *bytes, size_t n)
{
    put_key(m, field, BYTES);
    put_varint(m, n);
    put(m, bytes, n);
}

/* Fixed numbers are little-endian, whatever the machine is. */
static void put_fixed(struct message *m, uint64_t bits, int bytes)
{
    for (int i = 0; i < bytes; i++) {
        unsigned char byte = (unsigned char)(bits >> (8 * i));
        put(m, &byte, 1);
    }
}

/* Castagnoli's polynomial, reflected. */
static uint32_t crc32c(const unsigned char *p, size_t n)
{
    uint32_t crc = 0xffffffffu;
    for (size_t i = 0; i < n; i++) {
        crc ^= p[i];
        for (int k = 0; k < 8; k++)
            crc = crc >> 1 ^ (0x82f63b78u & (0u - (crc & 1)));
    }
    return ~crc;
}

static uint32_t masked(uint32_t crc)
{
    return (crc >> 15 | crc << 17) + 0xa282ead8u;
}

static heed_status write_record(heed__events *e, const struct message *event, heed_error *err)
{
    struct message r = {.length = 0};
    put_fixed(&r, event->length, 8);
    put_fixed(&r, masked(crc32c(r.bytes, 8)), 4);
    put(&r, event->bytes, event->length);
    put_fixed(&r, masked(crc32c(event->bytes, event->length)), 4);
    ssize_t n = write(e->fd, r.bytes, r.length);
    if (n == (ssize_t)r.length)
        return HEED_OK;
    return heed__fail(err, HEED_IO, "cannot write TensorBoard events: %s",
                      n < 0 ? strerror(errno) : "no space left");
}

static void put_time(struct message *m)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    double seconds = (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
    uint64_t bits;
    memcpy(&bits, &seconds, sizeof bits);
    put_key(m, 1, FIXED64);
    put_fixed(m, bits, 8);
}

heed__events *heed__events_open(const char *folder, const heed_allocator *allocator,
                                heed_error *err)
{
    heed_allocator a = heed__allocator_or_default(allocator);
    heed__events *e = heed__allocate_zeroed(&a, 1, sizeof *e);
    heed__pathname path;
    heed_error own = {0};
    if (!e) {
        heed__fail(err, HEED_MEMORY, "out of memory for TensorBoard events");
        return NULL;
    }
    e->allocator = a;
    e->fd = -1;
    heed__pathname_format(path, NULL, "%s/events.out.tfevents.%lld.heed.%ld", folder,
                          (long long)time(NULL), (long)getpid());
    e->fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (e->fd < 0)
        heed__fail(&own, HEED_IO, "cannot write '%.400s': %s", path, strerror(errno));
    struct message version = {.length = 0};
    put_time(&version);
    put_bytes(&version, 3, "brain.Event:2", 13);
    if (!own.status)
        write_record(e, &version, &own);
    if (own.status) {
        heed__fail(err, own.status, "%s", own.text);
        heed__events_close(e);
        return NULL;
    }
    return e;
}

void heed__events_close(heed__events *e)
{
    if (!e)
        return;
    if (e->fd >= 0)
        close(e->fd);
    heed_allocator a = e->allocator;
    heed__release(&a, e, 1, sizeof *e);
}

heed_status heed__events_scalar(heed__events *e, const char *tag, int64_t step, double value,
                                heed_error *err)
{
    struct message v = {.length = 0}, summary = {.length = 0}, event = {.length = 0};
    float simple = (float)value;
    uint32_t bits;
    memcpy(&bits, &simple, sizeof bits);
    put_bytes(&v, 1, tag, strlen(tag));
    put_key(&v, 2, FIXED32);
    put_fixed(&v, bits, 4);
    put_bytes(&summary, 1, v.bytes, v.length);
    put_time(&event);
    put_key(&event, 2, VARINT);
    put_varint(&event, (uint64_t)step);
    put_bytes(&event, 5, summary.bytes, summary.length);
    return write_record(e, &event, err);
}

static heed_status write_scalar(heed__events *e, const heed_train_progress *p, const char *part,
                                const char *key, double value, heed_error *err)
{
    char tag[96];
    snprintf(tag, sizeof tag, "%s/%s", part, key);
    return isfinite(value) ? heed__events_scalar(e, tag, p->update, value, err) : HEED_OK;
}

static heed_status write_update(heed__events *e, const heed_train_progress *p, heed_error *err)
{
    const heed_task *task = p->task;
    heed_status status = HEED_OK;
    heed__log_key key;
    for (int k = 0; !status && k < (task->sets > 1 ? task->sets : 1); k++) {
        heed__set_key(task, "loss", k, key);
        status = write_scalar(e, p, "train", key, p->loss[k], err);
        heed__set_key(task, "gradient_norm", k, key);
        if (!status)
            status = write_scalar(e, p, "train", key, p->norm[k], err);
    }
    if (!status)
        status = write_scalar(e, p, "train", "rate", p->rate, err);
    snprintf(key, sizeof key, "%s_per_second", task->items ? task->items : "updates");
    return status ? status : write_scalar(e, p, "train", key, p->speed, err);
}

heed_status heed__events_progress(heed__events *e, const heed_train_progress *p, heed_error *err)
{
    heed_status status = HEED_OK;
    if (p->event == HEED_TRAIN_UPDATE)
        return write_update(e, p, err);
    for (int i = 0; !status && i < p->measures; i++) {
        heed__log_key key;
        heed__measure_key(p->measure[i].name, key);
        status = write_scalar(e, p, "valid", key, p->measure[i].value, err);
    }
    return status;
}
