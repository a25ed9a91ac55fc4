/* pair.c: units of two lines and their common n-grams.  The reference's n-grams are counted in a
 * table and the hypothesis' subtracted, which clips every count. */
#include "metric/pair.h"

void heed__pair_init(heed__pair *p, const heed_allocator *allocator)
{
    for (int s = 0; s < HEED__SIDES; s++) {
        heed__codes_init(&p->line[s].now, allocator);
        heed__codes_init(&p->line[s].spare, allocator);
        heed__codes_init(&p->unit[s], allocator);
    }
    heed__table_init(&p->table, allocator);
    for (int n = 0; n < HEED__ORDERS; n++)
        heed__codes_init(&p->matched[n], allocator);
    p->first = true;
    p->failed = false;
}

void heed__pair_deinit(heed__pair *p)
{
    for (int s = 0; s < HEED__SIDES; s++) {
        heed__codes_deinit(&p->line[s].now);
        heed__codes_deinit(&p->line[s].spare);
        heed__codes_deinit(&p->unit[s]);
    }
    heed__table_deinit(&p->table);
    for (int n = 0; n < HEED__ORDERS; n++)
        heed__codes_deinit(&p->matched[n]);
}

bool heed__pair_failed(const heed__pair *p)
{
    bool failed = p->failed;
    for (int n = 0; n < HEED__ORDERS; n++)
        failed |= p->matched[n].failed;
    for (int s = 0; s < HEED__SIDES; s++)
        failed |= p->line[s].now.failed | p->line[s].spare.failed | p->unit[s].failed;
    return failed;
}

static bool begin_table(heed__pair *p, int64_t keys)
{
    if (!heed__table_begin(&p->table, keys))
        p->failed = true;
    return !p->failed;
}

void heed__pair_words(heed__pair *p, bool (*is_space)(int32_t))
{
    int64_t characters = 0, known = 0;
    for (int s = 0; s < HEED__SIDES; s++) {
        characters += p->line[s].now.count;
        p->unit[s].count = 0;
    }
    if (!begin_table(p, (characters + HEED__SIDES) / 2)) /* there is a space between two words */
        return;
    for (int s = 0; s < HEED__SIDES; s++) {
        const heed__codes *c = &p->line[s].now;
        for (int64_t i = 0, end; i < c->count; i = end + 1) {
            for (end = i; end < c->count && !is_space(c->at[end]);)
                end++;
            if (end == i)
                continue;
            int64_t *number = heed__table_add(&p->table, c->at + i, end - i);
            if (!*number)
                *number = ++known;
            heed__codes_add(&p->unit[s], (int32_t)*number);
        }
    }
}

void heed__pair_characters(heed__pair *p, bool spaces)
{
    for (int s = 0; s < HEED__SIDES; s++) {
        const heed__codes *c = &p->line[s].now;
        p->unit[s].count = 0;
        for (int64_t i = 0; i < c->count; i++)
            if (spaces || !heed__is_space(c->at[i]))
                heed__codes_add(&p->unit[s], c->at[i]);
    }
}

/* matched, unless it is NULL, says of each n-gram of the hypothesis whether it has matched. */
static heed__matches match(heed__pair *p, int64_t n, heed__codes *matched)
{
    const heed__codes *h = &p->unit[HEED__HYPOTHESIS], *r = &p->unit[HEED__REFERENCE];
    heed__matches m = {0};
    m.hypothesis = h->count < n ? 0 : h->count - n + 1;
    m.reference = r->count < n ? 0 : r->count - n + 1;
    if (!m.hypothesis || !m.reference || !begin_table(p, m.reference))
        return m;
    for (int64_t i = 0; i < m.reference; i++)
        ++*heed__table_add(&p->table, r->at + i, n);
    for (int64_t i = 0; i < m.hypothesis; i++) {
        int64_t *left = heed__table_find(&p->table, h->at + i, n);
        if (!left || !*left)
            continue;
        --*left;
        m.common += !matched || !matched->at[i];
        if (matched)
            matched->at[i] = 1;
    }
    return m;
}

heed__matches heed__pair_matches(heed__pair *p, int64_t n)
{
    return match(p, n, NULL);
}

/* The k-th of equal n-grams of the hypothesis matches a reference that has k of them. */
heed__matches heed__pair_new_matches(heed__pair *p, int64_t n)
{
    heed__codes *matched = &p->matched[n - 1];
    if (p->first) {
        matched->count = 0;
        for (int64_t i = 0; i < p->unit[HEED__HYPOTHESIS].count; i++)
            heed__codes_add(matched, 0);
    }
    return matched->failed ? (heed__matches){0} : match(p, n, matched);
}
