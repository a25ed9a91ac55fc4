/* history.c: the tokens that led to each row of a sentence: for every step a list of links, each of
 * which names its token and the link of the step before.  Steps lie in blocks of one size, which
 * the search lends to its sentences, so that a long run needs no more memory than a short one. */
#include "search/search_state.h"

#include <stddef.h>

heed__link *heed__history_grow(heed__search *s, heed__sentence *one)
{
    int64_t step = one->length % HEED__BLOCK_STEPS;
    if (step == 0) {
        heed__block *b = s->spare_block;
        if (b)
            s->spare_block = b->before;
        else
            b = heed__take(s->memory, 1,
                           offsetof(heed__block, link) +
                               (size_t)(HEED__BLOCK_STEPS * s->width) * sizeof(heed__link),
                           s->err);
        if (!b)
            return NULL;
        b->before = one->history;
        b->first = one->length;
        one->history = b;
    }
    return one->history->link + step * s->width;
}

const heed__link *heed__history_back(const heed__search *s, const heed__sentence *one, int64_t step,
                                     int32_t place, int64_t back, int32_t *there)
{
    const heed__block *b = one->history;
    const heed__link *l;
    while (b->first > step)
        b = b->before;
    for (;; step--, place = l->before) {
        if (step < b->first)
            b = b->before;
        l = &b->link[(step - b->first) * s->width + place];
        *there = place;
        if (back-- == 0)
            return l;
    }
}

void heed__history_read(const heed__search *s, const heed__sentence *one, int64_t count,
                        int32_t place, int32_t *id, heed_real *log_p)
{
    const heed__block *b = one->history;
    while (b && b->first >= count)
        b = b->before;
    for (int64_t step = count - 1; step >= 0; step--) {
        if (step < b->first)
            b = b->before;
        const heed__link *l = &b->link[(step - b->first) * s->width + place];
        id[step] = l->token;
        if (log_p)
            log_p[step] = l->token_log_p;
        place = l->before;
    }
}

void heed__history_drop(heed__search *s, heed__sentence *one)
{
    for (heed__block *b = one->history, *before; b; b = before) {
        before = b->before;
        b->before = s->spare_block;
        s->spare_block = b;
    }
    one->history = NULL;
}
