/* strips.c: see strips.h. */
#include "ops/strips.h"

/* In elements: whole cache lines, and enough work for a thread. */
#define FLAT_GRAIN 1024

struct strips {
    heed__strip *body;
    void *context;
    int64_t cols;
};

static void flat_range(void *context, int64_t begin, int64_t end, int thread)
{
    const struct strips *s = context;
    (void)thread;
    s->body(s->context, 0, begin, end);
}

static void row_range(void *context, int64_t begin, int64_t end, int thread)
{
    const struct strips *s = context;
    (void)thread;
    for (int64_t r = begin; r < end; r++)
        s->body(s->context, r, 0, s->cols);
}

void heed__strips(const heed_opcall *c, int64_t rows, int64_t cols, bool flat, int64_t work,
                  heed__strip *body, void *context)
{
    struct strips s = {body, context, cols};
    if (flat)
        heed__parallel(heed__threads(c), rows * cols, FLAT_GRAIN, work, flat_range, &s);
    else
        heed__parallel(heed__threads(c), rows, 1, cols * work, row_range, &s);
}
