/* metric.h: BLEU, chrF and TER as sacreBLEU computes them, and significance tests.
 *
 *     heed_bleu_options o = {.tokenize = HEED_TOKENIZE_13A};
 *     heed_bleu(&o, hypotheses, references, n, &result, &err);
 *
 * Texts are UTF-8, one sentence each, NUL-terminated; invalid UTF-8 counts as U+FFFD.  A sentence
 * has one reference, or as many as the options' `references` says: reference (n * references),
 * those of sentence i from i * references on.  BLEU clips by the reference that has most of an
 * n-gram and takes the length that is nearest, chrF takes each sentence's best reference, TER the
 * fewest edits and the mean length.  Scores are of the whole set, from 0 to 100 (TER: edits per
 * hundred reference words, lower is better).  For a single sentence: n = 1, and effective_order in
 * BLEU. */
#ifndef HEED_METRIC_H
#define HEED_METRIC_H

#include <heed/base.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum heed_tokenize {
    HEED_TOKENIZE_13A,
    HEED_TOKENIZE_INTL,
    HEED_TOKENIZE_NONE,
    HEED_TOKENIZE_CHAR,
    HEED_TOKENIZE_ZH,
    HEED_TOKENIZE_MULTI_BLEU, /* no tokenising and no smoothing, as multi-bleu.perl */
} heed_tokenize;
typedef enum heed_smooth { HEED_SMOOTH_EXP, HEED_SMOOTH_NONE } heed_smooth;
typedef struct heed_bleu_options {
    heed_tokenize tokenize;
    bool lowercase;
    bool compound_split; /* a-b counts as a ##AT##-##AT## b on both sides, as in the paper */
    heed_smooth smooth;
    bool effective_order;            /* for single sentences */
    int references;                  /* 0 means 1, here and below */
    const heed_allocator *allocator; /* NULL: the C library's, here and below */
} heed_bleu_options;
typedef struct heed_bleu_result {
    double score;
    double precision[4];
    double brevity_penalty;
    int64_t hypothesis_length, reference_length;
    int64_t matches[4], totals[4];
} heed_bleu_result;
heed_status heed_bleu(const heed_bleu_options *o, const char *const *hypothesis,
                      const char *const *reference, int64_t n, heed_bleu_result *result,
                      heed_error *err);
/* The settings in sacreBLEU's form; returns text. */
const char *heed_bleu_signature(const heed_bleu_options *o, char *text, size_t size);

typedef struct heed_chrf_options {
    int char_order; /* 0 means 6 */
    int word_order; /* 0: chrF; 2: chrF++ */
    double beta;    /* 0 means 2 */
    bool lowercase;
    bool whitespace; /* count spaces too */
    int references;
    const heed_allocator *allocator;
} heed_chrf_options;
heed_status heed_chrf(const heed_chrf_options *o, const char *const *hypothesis,
                      const char *const *reference, int64_t n, double *score, heed_error *err);
const char *heed_chrf_signature(const heed_chrf_options *o, char *text, size_t size);

typedef struct heed_ter_options {
    bool normalized, no_punctuation, asian_support, case_sensitive;
    int references;
    const heed_allocator *allocator;
} heed_ter_options;
heed_status heed_ter(const heed_ter_options *o, const char *const *hypothesis,
                     const char *const *reference, int64_t n, double *score, heed_error *err);
const char *heed_ter_signature(const heed_ter_options *o, char *text, size_t size);

/* Paired bootstrap, as sacreBLEU's: test sets are drawn from this one with replacement, both
 * systems scored on each, and p is how often their difference deviates from its mean by at least
 * the observed difference.  1 for a system against itself.  The same seed gives the same result. */
typedef struct heed_bootstrap {
    double score[2];          /* of a and b on the whole set */
    double mean[2], width[2]; /* over the resamples: mean and half of the 95 % interval */
    double p;                 /* of the null hypothesis that a and b are equal */
} heed_bootstrap;
heed_status heed_bleu_bootstrap(const heed_bleu_options *o, const char *const *a,
                                const char *const *b, const char *const *reference, int64_t n,
                                int64_t resamples, uint64_t seed, heed_bootstrap *result,
                                heed_error *err);
heed_status heed_chrf_bootstrap(const heed_chrf_options *o, const char *const *a,
                                const char *const *b, const char *const *reference, int64_t n,
                                int64_t resamples, uint64_t seed, heed_bootstrap *result,
                                heed_error *err);
heed_status heed_ter_bootstrap(const heed_ter_options *o, const char *const *a,
                               const char *const *b, const char *const *reference, int64_t n,
                               int64_t resamples, uint64_t seed, heed_bootstrap *result,
                               heed_error *err);

#ifdef __cplusplus
}
#endif
#endif
