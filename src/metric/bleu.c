/* bleu.c: BLEU (Papineni et al., ACL 2002): BP * exp(sum_n log p_n / 4) over the whole test set, as
 * sacreBLEU computes it (Post, WMT 2018), and as multi-bleu.perl does for text that is tokenised
 * already. */
#include "base/error.h"
#include "metric/statistics.h"
#include "metric/tokenize.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define ORDER 4
/* Where the statistics of a pair are. */
enum {
    HYPOTHESIS_LENGTH,
    REFERENCE_LENGTH,
    MATCHES,
    TOTALS = MATCHES + ORDER,
    WIDTH = TOTALS + ORDER
};

static void prepare(const heed_bleu_options *o, heed__code_line *line)
{
    if (o->compound_split)
        heed__line_apply(line, heed__split_compounds);
    if (o->lowercase)
        heed__line_apply(line, heed__lower);
    if (o->tokenize != HEED_TOKENIZE_MULTI_BLEU)
        heed__line_strip_end(line);
    heed__tokenize(line, o->tokenize);
}

static void sentence(const heed__metric *m, heed__pair *p, int64_t *statistics)
{
    const heed_bleu_options *o = m->options;
    for (int s = 0; s < HEED__SIDES; s++)
        prepare(o, &p->line[s]);
    heed__pair_words(p, o->tokenize == HEED_TOKENIZE_MULTI_BLEU ? heed__is_ascii_space
                                                                : heed__is_space);
    statistics[HYPOTHESIS_LENGTH] += p->unit[HEED__HYPOTHESIS].count;
    statistics[REFERENCE_LENGTH] += p->unit[HEED__REFERENCE].count;
    for (int n = 0; n < ORDER; n++) {
        heed__matches found = heed__pair_new_matches(p, n + 1);
        statistics[MATCHES + n] += found.common;
        statistics[TOTALS + n] += found.hypothesis;
    }
}

/* Of reference lengths, the one nearest to the hypothesis' counts, the shorter of two. */
static void join(const heed__metric *m, int64_t *statistics, const int64_t *more)
{
    const int64_t length = statistics[HYPOTHESIS_LENGTH], old = statistics[REFERENCE_LENGTH],
                  new = more[REFERENCE_LENGTH], far = llabs(old - length),
                  near = llabs(new - length);
    (void)m;
    if (near < far || (near == far && new < old))
        statistics[REFERENCE_LENGTH] = new;
    for (int n = 0; n < ORDER; n++)
        statistics[MATCHES + n] += more[MATCHES + n];
}

static heed_smooth smoothing(const heed_bleu_options *o)
{
    return o->tokenize == HEED_TOKENIZE_MULTI_BLEU ? HEED_SMOOTH_NONE : o->smooth;
}

static double brevity_penalty(int64_t hypothesis, int64_t reference)
{
    if (hypothesis >= reference)
        return 1;
    return hypothesis ? exp(1 - (double)reference / (double)hypothesis) : 0;
}

/* Method 3 of Chen and Cherry (WMT 2014), mteval's: the k-th order without a match counts 1/2^k
 * matches.  Without any match at all the score is 0. */
static heed_bleu_result compute(const heed_bleu_options *o, const int64_t *statistics)
{
    heed_bleu_result r = {.hypothesis_length = statistics[HYPOTHESIS_LENGTH],
                          .reference_length = statistics[REFERENCE_LENGTH]};
    int64_t any = 0;
    for (int n = 0; n < ORDER; n++) {
        r.matches[n] = statistics[MATCHES + n];
        r.totals[n] = statistics[TOTALS + n];
        any |= r.matches[n];
    }
    r.brevity_penalty = brevity_penalty(r.hypothesis_length, r.reference_length);
    if (!any)
        return r;
    double divisor = 1, sum = 0;
    int order = 0;
    for (; order < ORDER && r.totals[order]; order++) {
        double matches = (double)r.matches[order];
        if (!r.matches[order] && smoothing(o) == HEED_SMOOTH_EXP)
            matches = 1 / (divisor *= 2);
        r.precision[order] = 100 * matches / (double)r.totals[order];
        sum += log(r.precision[order]);
    }
    if (o->effective_order || order == ORDER)
        r.score = r.brevity_penalty * exp(sum / order);
    return r;
}

static double score(const heed__metric *m, const int64_t *statistics)
{
    return compute(m->options, statistics).score;
}

static heed__metric metric_of(const heed_bleu_options *o)
{
    return (heed__metric){.name = "bleu",
                          .options = o,
                          .allocator = o->allocator,
                          .width = WIDTH,
                          .references = o->references ? o->references : 1,
                          .sentence = sentence,
                          .join = join,
                          .score = score};
}

heed_status heed_bleu(const heed_bleu_options *o, const char *const *hypothesis,
                      const char *const *reference, int64_t n, heed_bleu_result *result,
                      heed_error *err)
{
    if (!o)
        return heed__missing(err, "bleu options");
    heed__metric m = metric_of(o);
    int64_t statistics[WIDTH] = {0};
    heed_status status = heed__metric_collect(&m, hypothesis, reference, n, true, statistics, err);
    *result = status ? (heed_bleu_result){0} : compute(o, statistics);
    return status;
}

heed_status heed_bleu_bootstrap(const heed_bleu_options *o, const char *const *a,
                                const char *const *b, const char *const *reference, int64_t n,
                                int64_t resamples, uint64_t seed, heed_bootstrap *result,
                                heed_error *err)
{
    if (!o)
        return heed__missing(err, "bleu options");
    heed__metric m = metric_of(o);
    return heed__metric_bootstrap(&m, a, b, reference, n, resamples, seed, result, err);
}

const char *heed_bleu_signature(const heed_bleu_options *o, char *text, size_t size)
{
    if (!o)
        return NULL;
    static const char *const names[] = {
        [HEED_TOKENIZE_13A] = "13a",   [HEED_TOKENIZE_INTL] = "intl",
        [HEED_TOKENIZE_NONE] = "none", [HEED_TOKENIZE_CHAR] = "char",
        [HEED_TOKENIZE_ZH] = "zh",     [HEED_TOKENIZE_MULTI_BLEU] = "multi-bleu",
    };
    snprintf(text, size, "nrefs:%d|case:%s|eff:%s|tok:%s%s|smooth:%s|version:heed-%s",
             o->references ? o->references : 1, o->lowercase ? "lc" : "mixed",
             o->effective_order ? "yes" : "no", names[o->tokenize],
             o->compound_split ? "|compounds:split" : "",
             smoothing(o) == HEED_SMOOTH_EXP ? "exp" : "none", heed_version());
    return text;
}
