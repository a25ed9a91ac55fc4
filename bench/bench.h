/* bench.h: what `heed bench` can measure.  Each prints to stdout, lines as they come, and returns
 * false, with the reason on stderr, if it could not. */
#ifndef HEED_BENCH_BENCH_H
#define HEED_BENCH_BENCH_H

#include <stdbool.h>

typedef struct bench_settings {
    int threads;      /* 0: first 1, then all processors */
    bool json;        /* one object a line */
    const char *only; /* run only measurements whose name contains this; NULL: all */
} bench_settings;

bool bench_kernels(const bench_settings *options);

#endif
