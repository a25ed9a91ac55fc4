/* text_facts.c: what the choices for a text rest on: how much of it there is, of how many kinds of
 * characters, and whether its target is written without blanks. */
#include "base/memory.h"
#include "task/defaults.h"
#include "text/utf8.h"

#define BYTES_A_PIECE 4.2 /* of a vocabulary made for the text; of words, blank included: */
#define BYTES_A_WORD 6.0
#define CODE_POINTS 0x110000

static void count_characters(const char *text, size_t length, int64_t *counts)
{
    int32_t c;
    size_t n;
    while ((n = heed__utf8_next(text, length, &c)) != 0) {
        if (c >= 0 && c < CODE_POINTS)
            counts[c]++;
        text += n;
        length -= n;
    }
}

static int64_t sum_between(const int64_t *counts, int32_t first, int32_t last)
{
    int64_t sum = 0;
    for (int32_t c = first; c <= last; c++)
        sum += counts[c];
    return sum;
}

/* Kinds of characters that are left when the rarest go that make up one in two thousand. */
static int64_t covering(const int64_t *counts, int64_t total)
{
    int64_t spare = total / 2000, kinds = 0, least = 1;
    for (int32_t c = 0; c < CODE_POINTS; c++)
        kinds += counts[c] > 0;
    for (; least <= spare; least++)
        for (int32_t c = 0; c < CODE_POINTS && spare >= least; c++)
            if (counts[c] == least) {
                spare -= least;
                kinds--;
            }
    return kinds;
}

heed_status heed__read_text(const heed_corpus *pairs, bool words, const heed_allocator *allocator,
                            heed__text_facts *t, heed_error *err)
{
    const heed_corpus_report report = heed_corpus_describe(pairs);
    const double bytes = words ? BYTES_A_WORD : BYTES_A_PIECE;
    const heed_allocator a = heed__allocator_or_default(allocator);
    int64_t *counts = heed__allocate_zeroed(&a, CODE_POINTS, sizeof *counts);
    if (!counts)
        return heed__fail(err, HEED_MEMORY, "out of memory to count characters");
    t->pairs = report.epoch_pairs;
    t->target_bytes = (double)report.epoch_target_bytes;
    t->source_tokens = (double)report.epoch_source_bytes / bytes + (double)report.epoch_pairs;
    t->target_tokens = (double)report.epoch_target_bytes / bytes + (double)report.epoch_pairs;
    for (int64_t i = 0; i < report.pairs; i++) {
        const heed_pair p = heed_corpus_pair(pairs, i);
        count_characters(p.target, p.target_length, counts);
    }
    const int64_t kana = sum_between(counts, 0x3040, 0x30ff);
    const int64_t han = sum_between(counts, 0x3400, 0x9fff);
    const int64_t target = sum_between(counts, 0, CODE_POINTS - 1);
    t->kana = kana > target / 10;
    t->han = !t->kana && han > target / 4;
    for (int64_t i = 0; i < report.pairs; i++) {
        const heed_pair p = heed_corpus_pair(pairs, i);
        count_characters(p.source, p.source_length, counts);
    }
    t->letters = covering(counts, sum_between(counts, 0, CODE_POINTS - 1));
    for (int32_t k = 0; k < CODE_POINTS; k++)
        t->all += counts[k] > 0;
    heed__release(&a, counts, CODE_POINTS, sizeof *counts);
    return HEED_OK;
}
