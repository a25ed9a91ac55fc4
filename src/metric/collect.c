/* collect.c: the statistics of every sentence pair of a test set. */
#include "base/error.h"
#include "base/memory.h"
#include "metric/statistics.h"

#include <string.h>

/* Counts of a line's words and characters have 32 bits. */
#define LONGEST ((size_t)1 << 28)

static heed_status check(const heed__metric *m, const char *what, const char *text, int64_t i,
                         heed_error *err)
{
    if (!text)
        return heed__fail(err, HEED_ARGUMENT, "%s: %s %lld is NULL, expected text", m->name, what,
                          (long long)i + 1);
    if (strnlen(text, LONGEST + 1) > LONGEST)
        return heed__fail(err, HEED_ARGUMENT, "%s: %s %lld is longer than %zu bytes", m->name, what,
                          (long long)i + 1, LONGEST);
    return HEED_OK;
}

/* The statistics of a sentence with all of its references, into one (2,width). */
static heed_status sentence(const heed__metric *m, heed__pair *p, const char *hypothesis,
                            const char *const *reference, int64_t i, int64_t *one, heed_error *err)
{
    int64_t *more = one + m->width;
    for (int k = 0; k < m->references; k++) {
        int64_t *to = k ? more : one;
        if (check(m, "reference", reference[k], i, err))
            return HEED_ARGUMENT;
        memset(to, 0, (size_t)m->width * sizeof *to);
        heed__codes_decode(&p->line[HEED__HYPOTHESIS].now, hypothesis);
        heed__codes_decode(&p->line[HEED__REFERENCE].now, reference[k]);
        p->first = k == 0;
        m->sentence(m, p, to);
        if (k)
            m->join(m, one, more);
    }
    return heed__pair_failed(p) ? heed__fail(err, HEED_MEMORY, "%s: out of memory at sentence %lld",
                                             m->name, (long long)i + 1)
                                : HEED_OK;
}

heed_status heed__metric_collect(const heed__metric *m, const char *const *hypothesis,
                                 const char *const *reference, int64_t n, bool one_row,
                                 int64_t *statistics, heed_error *err)
{
    if (n < 1)
        return heed__fail(err, HEED_ARGUMENT, "%s: %lld sentences, expected at least 1", m->name,
                          (long long)n);
    if (m->references < 1)
        return heed__fail(err, HEED_ARGUMENT, "%s: %d references, expected at least 1", m->name,
                          m->references);
    const heed_allocator a = heed__allocator_or_default(m->allocator);
    heed_status status = HEED_OK;
    heed__pair p;
    int64_t *one = heed__allocate(&a, 2 * (size_t)m->width, sizeof *one);
    if (!one)
        return heed__fail(err, HEED_MEMORY, "%s: out of memory", m->name);
    heed__pair_init(&p, m->allocator);
    for (int64_t i = 0; i < n && !status; i++) {
        int64_t *row = statistics + (one_row ? 0 : i * m->width);
        if (!(status = check(m, "hypothesis", hypothesis[i], i, err)))
            status = sentence(m, &p, hypothesis[i], reference + i * m->references, i, one, err);
        for (int64_t k = 0; k < m->width && !status; k++)
            row[k] += one[k];
    }
    heed__pair_deinit(&p);
    heed__release(&a, one, 2 * (size_t)m->width, sizeof *one);
    return status;
}
