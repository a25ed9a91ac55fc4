/* corpus_lines.c: a corpus as a source of lines, pair after pair, source before target. */
#include "base/error.h"
#include "base/memory.h"
#include "data/corpus.h"

struct heed_corpus_lines {
    heed_allocator allocator;
    const heed_corpus *corpus;
    heed_side side;
    heed_side next; /* of pair `at`: HEED_SOURCE or HEED_TARGET */
    int64_t at, pairs;
};

heed_corpus_lines *heed_corpus_lines_new(const heed_corpus *c, heed_side side,
                                         const heed_allocator *allocator, heed_error *err)
{
    if (side < HEED_SOURCE || side > HEED_BOTH) {
        heed__fail(err, HEED_ARGUMENT, "side is %d, expected source, target or both", (int)side);
        return NULL;
    }
    heed_allocator a = heed__allocator_or_default(allocator);
    heed_corpus_lines *l = heed__allocate(&a, 1, sizeof *l);
    if (!l) {
        heed__fail(err, HEED_MEMORY, "out of memory for reading the lines of a corpus");
        return NULL;
    }
    *l = (heed_corpus_lines){a, c, side, HEED_SOURCE, 0, heed_corpus_describe(c).epoch_pairs};
    return l;
}

void heed_corpus_lines_free(heed_corpus_lines *l)
{
    if (!l)
        return;
    heed_allocator a = l->allocator;
    heed__release(&a, l, 1, sizeof *l);
}

static heed_status next(void *context, const char **text, size_t *length, heed_error *err)
{
    (void)err; /* the corpus was checked when it was opened */
    heed_corpus_lines *l = context;
    *text = NULL;
    *length = 0;
    while (l->at < l->pairs && !*text) {
        heed_pair p = heed_corpus_pair(l->corpus, heed__corpus_spread(l->corpus, l->at));
        if (l->next & l->side) {
            *text = l->next == HEED_SOURCE ? p.source : p.target;
            *length = l->next == HEED_SOURCE ? p.source_length : p.target_length;
        }
        l->at += l->next == HEED_TARGET;
        l->next = HEED_BOTH - l->next;
    }
    return HEED_OK;
}

heed_line_source heed_corpus_lines_source(heed_corpus_lines *l)
{
    return (heed_line_source){next, l};
}
