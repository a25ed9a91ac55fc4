/* corpus_parts.c: see corpus_parts.h. */
#include "data/corpus_parts.h"
#include "base/error.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

heed_status heed__share_split(const char *name, heed__pathname path, double *share, heed_error *err)
{
    const char *colon = strrchr(name, ':');
    char *end = NULL;
    *share = 1;
    if (colon && colon > name && strchr(".0123456789", colon[1]) && access(name, F_OK) != 0)
        *share = strtod(colon + 1, &end);
    if (!end || *end || end == colon + 1) {
        *share = 1;
        return heed__pathname_format(path, err, "%s", name);
    }
    if (!(*share > 0 && *share <= 1))
        return heed__fail(err, HEED_ARGUMENT,
                          "'%.300s': the share of a file's pairs that an epoch has is above 0 and "
                          "at most 1",
                          name);
    return heed__pathname_format(path, err, "%.*s", (int)(colon - name), name);
}

void heed__part_take(heed__corpus_part *p)
{
    p->taken = (int64_t)(p->share * (double)p->count + 0.5);
    if (p->taken < 1 && p->count > 0)
        p->taken = 1;
}

int64_t heed__parts_spread(const heed__corpus_part *part, int64_t parts, int64_t k)
{
    int64_t i = 0;
    for (; i < parts - 1 && k >= part[i].taken; i++)
        k -= part[i].taken;
    if (part[i].taken == part[i].count)
        return part[i].first + k;
    return part[i].first + (int64_t)((double)k * (double)part[i].count / (double)part[i].taken);
}

int64_t heed__part_draw(const heed__corpus_part *p, const heed_rng *rng, uint32_t *order)
{
    int64_t n = 0;
    for (int64_t i = 0; i < p->count; i++)
        if (p->taken == p->count || heed_rng_below(rng, (uint64_t)i, p->count - i) < p->taken - n)
            order[n++] = (uint32_t)(p->first + i);
    return n;
}
