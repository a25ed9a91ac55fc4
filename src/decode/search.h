/* search.h (internal): the search over anything that can start, step and reorder rows of
 * hypotheses, and the choice of the best continuations. */
#ifndef HEED_DECODE_SEARCH_H
#define HEED_DECODE_SEARCH_H

#include <heed/decode.h>

/* What the search knows of a model; heed_decoder has the same three calls. */
typedef struct heed__stepper {
    void *self;
    int64_t vocabulary; /* V */
    int64_t longest;    /* tokens that a hypothesis may have, EOS included */
    heed_status (*start)(void *self, const heed_tokens *source, int64_t count, heed_error *err);
    heed_status (*step)(void *self, const int32_t *token, const heed_real **log_p, heed_error *err);
    heed_status (*reorder)(void *self, const int32_t *parent, int64_t rows, heed_error *err);
} heed__stepper;
/* Whether the options make sense. */
heed_status heed__search_check(const heed_search_options *o, heed_error *err);
heed_status heed__search(const heed__stepper *model, const heed_search_options *o,
                         const heed_tokens *source, int64_t count, heed_arena *arena,
                         heed_hypothesis *out, heed_error *err);
/* count * size bytes, not zeroed; NULL after setting err. */
void *heed__take(heed_arena *arena, int64_t count, size_t size, heed_error *err);

/* A hypothesis and one token more. */
typedef struct heed__candidate {
    double log_p; /* of all tokens */
    int32_t row;  /* the hypothesis */
    int32_t token;
    heed_real token_log_p;
} heed__candidate;
/* A total order, better ones first; ties go to the earlier row, then to the smaller id, so that
 * every run decides alike. */
bool heed__candidate_before(const heed__candidate *a, const heed__candidate *b);

/* The best `room` of all candidates offered: a heap with the worst on top. */
typedef struct heed__top {
    heed__candidate *item; /* (room), the caller's */
    int64_t count, room;
} heed__top;
/* Offers every token but BOS and EOS as a continuation of `row`, whose log-probability so far is
 * base; log_p is (vocabulary).  False if one of them is no log-probability; *bad is its token. */
bool heed__top_scan(heed__top *top, const heed_real *log_p, int64_t vocabulary, double base,
                    int32_t row, int32_t *bad);
/* From heap to list, the best first.  Set count to 0 to begin anew. */
void heed__top_sort(heed__top *top);
/* A log-probability that is one: not NaN, and above zero by no more than rounding does. */
bool heed__is_log_p(heed_real x);
/* NUMERIC: what the model gave for a token, and where in its sentence. */
heed_status heed__not_log_p(heed_error *err, int32_t token, heed_real found, int64_t place);

#endif
