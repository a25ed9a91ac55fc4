/* collect.c: the statistics of every sentence pair of a test set. */
#include "base/error.h"
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

heed_status heed__metric_collect(const heed__metric *m, const char *const *hypothesis,
                                 const char *const *reference, int64_t n, bool one_row,
                                 int64_t *statistics, heed_error *err)
{
    if (n < 1)
        return heed__fail(err, HEED_ARGUMENT, "%s: %lld sentences, expected at least 1", m->name,
                          (long long)n);
    heed_status status = HEED_OK;
    heed__pair p;
    heed__pair_init(&p, m->allocator);
    for (int64_t i = 0; i < n && !status; i++) {
        if ((status = check(m, "hypothesis", hypothesis[i], i, err)) ||
            (status = check(m, "reference", reference[i], i, err)))
            break;
        heed__codes_decode(&p.line[HEED__HYPOTHESIS].now, hypothesis[i]);
        heed__codes_decode(&p.line[HEED__REFERENCE].now, reference[i]);
        m->sentence(m, &p, statistics + (one_row ? 0 : i * m->width));
        if (heed__pair_failed(&p))
            status = heed__fail(err, HEED_MEMORY, "%s: out of memory at sentence %lld", m->name,
                                (long long)i + 1);
    }
    heed__pair_deinit(&p);
    return status;
}
