/* wire.c: a cable between two network namespaces, with a speed and a delay:
 *
 *     wire MBIT_PER_SECOND MICROSECONDS
 *
 * makes the devices heed-a and heed-b, prints "ready", and carries frames from each to the other
 * until it is killed: for kernels without netem.  A frame leaves when those before it have, takes
 * its bits at the given speed, and arrives after the delay. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

enum { FRAMES = 4096, FRAME = 65536 };

struct way {
    int from, to;
    char (*frame)[FRAME]; /* (FRAMES) a ring */
    int bytes[FRAMES];
    int64_t arrives[FRAMES]; /* nanoseconds */
    int first, count;
    int64_t free; /* when the cable has taken the frames so far */
};

static int64_t now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

static int device(const char *name)
{
    struct ifreq r = {.ifr_flags = IFF_TAP | IFF_NO_PI};
    const int fd = open("/dev/net/tun", O_RDWR | O_NONBLOCK);
    snprintf(r.ifr_name, sizeof r.ifr_name, "%s", name);
    if (fd < 0 || ioctl(fd, TUNSETIFF, &r) < 0) {
        fprintf(stderr, "wire: %s: %s\n", name, strerror(errno));
        exit(1);
    }
    return fd;
}

static void take(struct way *w, double nanoseconds_a_byte, int64_t delay)
{
    while (w->count < FRAMES) {
        const int i = (w->first + w->count) % FRAMES;
        const ssize_t n = read(w->from, w->frame[i], FRAME);
        const int64_t at = now();
        if (n <= 0)
            return;
        w->free = (w->free > at ? w->free : at) + (int64_t)((double)n * nanoseconds_a_byte);
        w->bytes[i] = (int)n;
        w->arrives[i] = w->free + delay;
        w->count++;
    }
}

/* Nanoseconds until the next frame arrives; -1: there is none. */
static int64_t give(struct way *w)
{
    while (w->count) {
        const int64_t wait = w->arrives[w->first] - now();
        if (wait > 0)
            return wait;
        if (write(w->to, w->frame[w->first], (size_t)w->bytes[w->first]) < 0 && errno == EAGAIN)
            return 100000;
        w->first = (w->first + 1) % FRAMES;
        w->count--;
    }
    return -1;
}

int main(int argc, char **argv)
{
    static struct way way[2];
    const double mbit = argc > 1 ? atof(argv[1]) : 0;
    const int64_t delay = argc > 2 ? atoll(argv[2]) * 1000 : 0;
    if (!(mbit > 0)) {
        fputs("usage: wire MBIT_PER_SECOND MICROSECONDS\n", stderr);
        return 2;
    }
    const int a = device("heed-a"), b = device("heed-b");
    for (int k = 0; k < 2; k++) {
        way[k].from = k ? b : a;
        way[k].to = k ? a : b;
        if (!(way[k].frame = malloc((size_t)FRAMES * FRAME)))
            return 1;
    }
    puts("ready");
    fflush(stdout);
    for (;;) {
        int64_t wait = -1;
        for (int k = 0; k < 2; k++) {
            take(&way[k], 8000 / mbit, delay);
            const int64_t more = give(&way[k]);
            wait = more >= 0 && (wait < 0 || more < wait) ? more : wait;
        }
        struct pollfd fd[2] = {{.fd = a, .events = way[0].count < FRAMES ? POLLIN : 0},
                               {.fd = b, .events = way[1].count < FRAMES ? POLLIN : 0}};
        const struct timespec most = {0, wait < 1000000000 ? wait : 999999999};
        ppoll(fd, 2, wait < 0 ? NULL : &most, NULL);
    }
}
