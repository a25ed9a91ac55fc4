/* top.h (internal): the best continuations of hypotheses. */
#ifndef HEED_SEARCH_TOP_H
#define HEED_SEARCH_TOP_H

#include "search/beam.h"

/* A hypothesis and one token more. */
typedef struct heed__candidate {
    double log_p; /* of all tokens */
    int32_t row;  /* the hypothesis */
    int32_t token;
    heed_real token_log_p;
    int32_t sample;  /* which of its sentence's samples it belongs to */
    heed_real logit; /* orders what rounding made alike in log_p */
} heed__candidate;
/* A total order, better ones first; ties go to the earlier row, in it to the larger logit, then to
 * the smaller id, so that every run decides alike, and greedy search does by the logits alone. */
bool heed__candidate_before(const heed__candidate *a, const heed__candidate *b);

/* What a step says of one row. */
typedef struct heed__outlook {
    const heed_real *logit; /* (count) */
    heed_real log_z;
    int64_t count;
    const int32_t *token;  /* (count) which they are, ascending; NULL: 0, 1, ... */
    const heed_real *peak; /* as in heed_scores */
} heed__outlook;
heed__outlook heed__outlook_of(const heed_scores *s, int64_t row);
int32_t heed__token_at(const heed__outlook *v, int64_t column);
/* Where a token stands; -1 if it does not. */
int64_t heed__column_of(const heed__outlook *v, int32_t token);

/* What may not be chosen. */
typedef struct heed__filter {
    const bool *banned;  /* (V) */
    const int32_t *also; /* (count) by this hypothesis */
    int64_t count;
} heed__filter;
bool heed__forbids(const heed__filter *f, int32_t token);

/* The best `capacity` of all candidates offered: a heap with the worst on top. */
typedef struct heed__top {
    heed__candidate *item; /* (capacity), the caller's */
    int64_t count, capacity;
} heed__top;
/* Offers every token that may be chosen as a continuation of `row`, whose log-probability so far is
 * base.  False if what the model gives some token is no log-probability; *bad is its column. */
bool heed__top_scan(heed__top *top, const heed__outlook *v, const heed__filter *f, double base,
                    int32_t row, int64_t *bad);
/* From heap to list, the best first.  Set count to 0 to begin anew. */
void heed__top_sort(heed__top *top);

/* A log-probability as it is returned: at most 0.  False if it is none: NaN, or above zero by more
 * than rounding does. */
bool heed__log_p_clip(heed_real found, heed_real *log_p);
/* The same of what stands in a column. */
bool heed__log_p_at(const heed__outlook *v, int64_t column, heed_real *log_p);
/* NUMERIC: what the model gave for a token, and behind how many of its sentence. */
heed_status heed__not_log_p(int32_t token, double found, int64_t position, heed_error *err);
heed_status heed__bad_column(const heed__outlook *v, int64_t column, int64_t position,
                             heed_error *err);

#endif
