/* chrf.c: chrF (Popovic, WMT 2015), the F-score of character n-grams, and chrF++ (WMT 2017), with
 * word n-grams as well, as sacreBLEU computes them: precision and recall are averaged over the
 * orders that both sides have, over the whole test set. */
#include "base/error.h"
#include "metric/statistics.h"
#include "metric/tokenize.h"

#include <stdio.h>
#include <string.h>

/* More than any paper uses; bounds the statistics. */
#define MOST_ORDERS 32
/* Of each order. */
enum { HYPOTHESIS, REFERENCE, COMMON, STATISTICS };

static int char_order(const heed_chrf_options *o)
{
    return o->char_order ? o->char_order : 6;
}

static double beta(const heed_chrf_options *o)
{
    return o->beta != 0 ? o->beta : 2;
}

static void count(heed__pair *p, int n, int64_t *statistics)
{
    heed__matches m = heed__pair_matches(p, n);
    /* An order without n-grams in the reference does not count. */
    statistics[HYPOTHESIS] += m.reference ? m.hypothesis : 0;
    statistics[REFERENCE] += m.reference;
    statistics[COMMON] += m.common;
}

static void sentence(const heed__metric *m, heed__pair *p, int64_t *statistics)
{
    const heed_chrf_options *o = m->options;
    if (o->lowercase)
        for (int s = 0; s < HEED__SIDES; s++)
            heed__line_apply(&p->line[s], heed__lower);
    heed__pair_characters(p, o->whitespace);
    for (int n = 1; n <= char_order(o); n++, statistics += STATISTICS)
        count(p, n, statistics);
    if (!o->word_order)
        return;
    for (int s = 0; s < HEED__SIDES; s++)
        heed__line_apply(&p->line[s], heed__split_punctuation);
    heed__pair_words(p, heed__is_space);
    for (int n = 1; n <= o->word_order; n++, statistics += STATISTICS)
        count(p, n, statistics);
}

/* (1 + beta^2) P R / (beta^2 P + R) */
static double score(const heed__metric *m, const int64_t *statistics)
{
    const heed_chrf_options *o = m->options;
    double precision = 0, recall = 0, factor = beta(o) * beta(o);
    int orders = 0;
    for (int n = 0; n < char_order(o) + o->word_order; n++, statistics += STATISTICS) {
        if (!statistics[HYPOTHESIS] || !statistics[REFERENCE])
            continue;
        precision += (double)statistics[COMMON] / (double)statistics[HYPOTHESIS];
        recall += (double)statistics[COMMON] / (double)statistics[REFERENCE];
        orders++;
    }
    if (precision + recall == 0)
        return 0;
    precision /= orders;
    recall /= orders;
    return 100 * (1 + factor) * precision * recall / (factor * precision + recall);
}

/* The reference with the best score of the sentence. */
static void join(const heed__metric *m, int64_t *statistics, const int64_t *more)
{
    if (score(m, more) > score(m, statistics))
        memcpy(statistics, more, (size_t)m->width * sizeof *statistics);
}

static heed_status metric_of(const heed_chrf_options *o, heed__metric *m, heed_error *err)
{
    *m = (heed__metric){.name = "chrf",
                        .options = o,
                        .allocator = o->allocator,
                        .references = o->references ? o->references : 1,
                        .sentence = sentence,
                        .join = join,
                        .score = score};
    if (o->char_order < 0 || o->char_order > MOST_ORDERS || o->word_order < 0 ||
        o->word_order > MOST_ORDERS || !(o->beta >= 0))
        return heed__fail(err, HEED_ARGUMENT,
                          "chrf: orders are %d and %d, beta is %g; expected orders of at most %d "
                          "and beta not below 0",
                          o->char_order, o->word_order, o->beta, MOST_ORDERS);
    m->width = STATISTICS * (char_order(o) + o->word_order);
    return HEED_OK;
}

heed_status heed_chrf(const heed_chrf_options *o, const char *const *hypothesis,
                      const char *const *reference, int64_t n, double *result, heed_error *err)
{
    if (!o)
        return heed__missing(err, "chrf options");
    heed__metric m;
    int64_t statistics[STATISTICS * 2 * MOST_ORDERS] = {0};
    *result = 0;
    heed_status status = metric_of(o, &m, err);
    if (!status)
        status = heed__metric_collect(&m, hypothesis, reference, n, true, statistics, err);
    if (!status)
        *result = score(&m, statistics);
    return status;
}

heed_status heed_chrf_bootstrap(const heed_chrf_options *o, const char *const *a,
                                const char *const *b, const char *const *reference, int64_t n,
                                int64_t resamples, uint64_t seed, heed_bootstrap *result,
                                heed_error *err)
{
    if (!o)
        return heed__missing(err, "chrf options");
    heed__metric m;
    *result = (heed_bootstrap){0};
    heed_status status = metric_of(o, &m, err);
    return status ? status
                  : heed__metric_bootstrap(&m, a, b, reference, n, resamples, seed, result, err);
}

const char *heed_chrf_signature(const heed_chrf_options *o, char *text, size_t size)
{
    if (!o)
        return NULL;
    char wanted[32] = "";
    if (beta(o) != 2)
        snprintf(wanted, sizeof wanted, "|beta:%g", beta(o));
    snprintf(text, size, "nrefs:%d|case:%s|eff:yes|nc:%d|nw:%d|space:%s%s|version:heed-%s",
             o->references ? o->references : 1, o->lowercase ? "lc" : "mixed", char_order(o),
             o->word_order, o->whitespace ? "yes" : "no", wanted, heed_version());
    return text;
}
