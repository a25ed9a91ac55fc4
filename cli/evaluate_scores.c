/* evaluate_scores.c: the scores of `heed evaluate`, as lines for people or as JSON. */
#include "cmd_evaluate.h"
#include "command.h"

#include <stdio.h>
#include <string.h>

static const char *const names[] = {
#define METRIC_NAME(name, text) text,
    METRIC_LIST(METRIC_NAME)
#undef METRIC_NAME
        NULL};
static const char *const titles[] = {"BLEU", "chrF2", "chrF2++", "TER"};

bool evaluation_choose(struct evaluation *e, const char *list)
{
    e->count = 0;
    for (const char *at = list, *end; at; at = *end ? end + 1 : NULL) {
        char name[32];
        end = at + strcspn(at, ",");
        snprintf(name, sizeof name, "%.*s", (int)(end - at < 31 ? end - at : 31), at);
        int m = choose_word("metric", name, names);
        if (m < 0)
            return false;
        for (int i = 0; i < e->count; i++)
            if (e->metric[i] == (enum metric)m) {
                complain("metric '%s' is there twice", name);
                return false;
            }
        e->metric[e->count++] = (enum metric)m;
    }
    return true;
}

/* One metric with its options, and what it found. */
struct score {
    enum metric metric;
    heed_bleu_options bleu;
    heed_chrf_options chrf;
    heed_ter_options ter;
    double value;
    heed_bleu_result detail; /* BLEU */
    heed_bootstrap compared;
};

static struct score score_of(const struct evaluation *e, enum metric m)
{
    struct score s = {.metric = m, .ter = e->ter};
    s.ter.references = e->references;
    s.bleu = (heed_bleu_options){.tokenize = (heed_tokenize)e->tokenize,
                                 .lowercase = e->lowercase,
                                 .compound_split = e->compound_split,
                                 .effective_order = e->sentence,
                                 .references = e->references};
    s.chrf = (heed_chrf_options){.word_order = m == METRIC_CHRF_PLUS ? 2 : 0,
                                 .lowercase = e->lowercase,
                                 .references = e->references};
    return s;
}

static heed_status compute(struct score *s, const char *const *hypothesis,
                           const char *const *reference, int64_t count, heed_error *err)
{
    switch (s->metric) {
    case METRIC_BLEU: {
        heed_status status = heed_bleu(&s->bleu, hypothesis, reference, count, &s->detail, err);
        s->value = s->detail.score;
        return status;
    }
    case METRIC_TER:
        return heed_ter(&s->ter, hypothesis, reference, count, &s->value, err);
    default:
        return heed_chrf(&s->chrf, hypothesis, reference, count, &s->value, err);
    }
}

const char *evaluation_name(enum metric m)
{
    return names[m];
}

const char *evaluation_title(enum metric m)
{
    return titles[m];
}

heed_status evaluation_score(const struct evaluation *e, enum metric m,
                             const char *const *hypothesis, const char *const *reference,
                             int64_t count, double *value, heed_error *err)
{
    struct score s = score_of(e, m);
    heed_status status = compute(&s, hypothesis, reference, count, err);
    *value = s.value;
    return status;
}

static heed_status compare(struct score *s, const struct evaluation *e, const char *const *a,
                           const char *const *b, const char *const *reference, int64_t count,
                           heed_error *err)
{
    uint64_t seed = (uint64_t)e->seed;
    switch (s->metric) {
    case METRIC_BLEU:
        return heed_bleu_bootstrap(&s->bleu, a, b, reference, count, e->resamples, seed,
                                   &s->compared, err);
    case METRIC_TER:
        return heed_ter_bootstrap(&s->ter, a, b, reference, count, e->resamples, seed, &s->compared,
                                  err);
    default:
        return heed_chrf_bootstrap(&s->chrf, a, b, reference, count, e->resamples, seed,
                                   &s->compared, err);
    }
}

static const char *signature(const struct score *s, char *text, size_t size)
{
    switch (s->metric) {
    case METRIC_BLEU:
        return heed_bleu_signature(&s->bleu, text, size);
    case METRIC_TER:
        return heed_ter_signature(&s->ter, text, size);
    default:
        return heed_chrf_signature(&s->chrf, text, size);
    }
}

/* ---- for people ---- */

static void print_line(const struct score *s, bool compared)
{
    char text[256];
    const heed_bleu_result *d = &s->detail;
    const heed_bootstrap *c = &s->compared;
    printf("%s %.2f", titles[s->metric], s->value);
    if (s->metric == METRIC_BLEU)
        printf("  %.1f/%.1f/%.1f/%.1f  BP %.3f (%lld/%lld)", d->precision[0], d->precision[1],
               d->precision[2], d->precision[3], d->brevity_penalty,
               (long long)d->hypothesis_length, (long long)d->reference_length);
    printf("  %s\n", signature(s, text, sizeof text));
    if (compared)
        printf("%s %.2f (%.2f ± %.2f) against %.2f (%.2f ± %.2f): %+.2f, p = %.4f\n",
               titles[s->metric], c->score[0], c->mean[0], c->width[0], c->score[1], c->mean[1],
               c->width[1], c->score[0] - c->score[1], c->p);
}

/* ---- for machines ---- */

static void print_json(const struct score *s, bool compared)
{
    char text[256];
    const heed_bleu_result *d = &s->detail;
    const heed_bootstrap *c = &s->compared;
    printf("\"%s\":{\"score\":%.10g,\"signature\":\"%s\"", names[s->metric], s->value,
           signature(s, text, sizeof text));
    if (s->metric == METRIC_BLEU)
        printf(",\"precisions\":[%.10g,%.10g,%.10g,%.10g],\"brevity_penalty\":%.10g,"
               "\"hypothesis_length\":%lld,\"reference_length\":%lld",
               d->precision[0], d->precision[1], d->precision[2], d->precision[3],
               d->brevity_penalty, (long long)d->hypothesis_length, (long long)d->reference_length);
    if (compared)
        printf(",\"mean\":%.10g,\"width\":%.10g,\"compare\":{\"score\":%.10g,\"mean\":%.10g,"
               "\"width\":%.10g},\"p\":%.10g",
               c->mean[0], c->width[0], c->score[1], c->mean[1], c->width[1], c->p);
    putchar('}');
}

static bool evaluate_whole(const struct evaluation *e, const char *const *hypothesis,
                           const char *const *other, const char *const *reference, int64_t count,
                           heed_error *err)
{
    struct score scores[METRICS];
    for (int i = 0; i < e->count; i++) {
        scores[i] = score_of(e, e->metric[i]);
        if (compute(&scores[i], hypothesis, reference, count, err) ||
            (other && compare(&scores[i], e, hypothesis, other, reference, count, err)))
            return false;
    }
    for (int i = 0; i < e->count; i++) {
        if (e->json)
            putchar(i ? ',' : '{');
        (e->json ? print_json : print_line)(&scores[i], other != NULL);
    }
    if (e->json)
        puts("}");
    return true;
}

static bool evaluate_sentences(const struct evaluation *e, const char *const *hypothesis,
                               const char *const *reference, int64_t count, heed_error *err)
{
    for (int64_t line = 0; line < count && !ferror(stdout); line++) {
        if (e->json)
            printf("{\"line\":%lld", (long long)line + 1);
        for (int i = 0; i < e->count; i++) {
            double value;
            if (evaluation_score(e, e->metric[i], hypothesis + line,
                                 reference + line * e->references, 1, &value, err))
                return false;
            if (e->json)
                printf(",\"%s\":%.10g", names[e->metric[i]], value);
            else
                printf("%s%.4f", i ? "\t" : "", value);
        }
        puts(e->json ? "}" : "");
    }
    return true;
}

bool evaluate(const struct evaluation *e, const char *const *hypothesis, const char *const *other,
              const char *const *reference, int64_t count)
{
    heed_error err = {0};
    bool good = e->sentence ? evaluate_sentences(e, hypothesis, reference, count, &err)
                            : evaluate_whole(e, hypothesis, other, reference, count, &err);
    if (!good)
        complain("%s", err.text);
    return good;
}
