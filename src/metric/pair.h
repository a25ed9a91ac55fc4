/* pair.h: comparing a hypothesis with its reference: lines, units, n-grams.  The memory is reused
 * from pair to pair. */
#ifndef HEED_METRIC_PAIR_H
#define HEED_METRIC_PAIR_H

#include "metric/codes.h"
#include "metric/ngram_table.h"

enum { HEED__HYPOTHESIS, HEED__REFERENCE, HEED__SIDES };

enum { HEED__ORDERS = 4 }; /* of n-grams that heed__pair_new_matches counts */

typedef struct heed__pair {
    heed__code_line line[HEED__SIDES];
    heed__codes unit[HEED__SIDES]; /* units of n-grams: characters, or word ids */
    heed__table table;
    bool first;                        /* of the sentence's references */
    heed__codes matched[HEED__ORDERS]; /* n-grams of the hypothesis that some reference has */
    bool failed;                       /* memory was short */
} heed__pair;

void heed__pair_init(heed__pair *p, const heed_allocator *allocator);
void heed__pair_deinit(heed__pair *p);
bool heed__pair_failed(const heed__pair *p);
/* Units: the words of both lines; equal words have equal ids. */
void heed__pair_words(heed__pair *p, bool (*is_space)(int32_t));
/* Units: the characters of both lines, all or only those that are no spaces. */
void heed__pair_characters(heed__pair *p, bool spaces);
/* How many n-grams of units each side has, and how many of the hypothesis' match one of the
 * reference, each used once. */
typedef struct heed__matches {
    int64_t hypothesis, reference, common;
} heed__matches;
heed__matches heed__pair_matches(heed__pair *p, int64_t n);
/* The same, n up to HEED__ORDERS, but in common only those that no reference before had: over all
 * references they are what the one with most of each n-gram allows. */
heed__matches heed__pair_new_matches(heed__pair *p, int64_t n);

#endif
