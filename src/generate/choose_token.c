/* choose_token.c: which token comes next: penalty, temperature, top-k, top-p, min-p, a draw. */
#include "generate/generator.h"

#include <math.h>
#include <stdlib.h>

heed_status heed__token_chooser_init(heed__token_chooser *c, const heed_generate_options *o,
                                     int64_t vocabulary, const heed_allocator *allocator,
                                     heed_error *err)
{
    *c = (heed__token_chooser){.o = o, .allocator = *allocator, .vocabulary = vocabulary};
    c->weight = heed__allocate(allocator, (size_t)vocabulary, sizeof *c->weight);
    c->candidate = heed__allocate(allocator, (size_t)vocabulary, sizeof *c->candidate);
    if (c->weight && c->candidate)
        return HEED_OK;
    heed__token_chooser_deinit(c);
    return heed__fail(err, HEED_MEMORY, "out of memory for choosing of %lld tokens",
                      (long long)vocabulary);
}

void heed__token_chooser_deinit(heed__token_chooser *c)
{
    heed__release(&c->allocator, c->weight, (size_t)c->vocabulary, sizeof *c->weight);
    heed__release(&c->allocator, c->candidate, (size_t)c->vocabulary, sizeof *c->candidate);
    c->weight = NULL;
    c->candidate = NULL;
}

/* Logits, with the penalty of what stands in the context, however often it does. */
static void take_logits(heed__token_chooser *c, const heed_real *logit, const int32_t *context,
                        int64_t length)
{
    const double penalty = c->o->repetition_penalty;
    for (int64_t i = 0; i < c->vocabulary; i++)
        c->weight[i] = (double)logit[i];
    for (int64_t i = 0; penalty != 1 && i < length; i++) {
        const double x = (double)logit[context[i]];
        c->weight[context[i]] = x > 0 ? x / penalty : x * penalty;
    }
}

/* The first of the largest. */
static int64_t likeliest(const heed__token_chooser *c)
{
    int64_t best = 0;
    for (int64_t i = 1; i < c->vocabulary; i++)
        if (c->weight[i] > c->weight[best])
            best = i;
    return best;
}

/* exp((x - largest) / temperature), 1 for the likeliest; returns their sum. */
static double weigh(heed__token_chooser *c, double largest)
{
    double sum = 0;
    for (int64_t i = 0; i < c->vocabulary; i++) {
        c->weight[i] = exp((c->weight[i] - largest) / c->o->temperature);
        sum += c->weight[i];
    }
    return sum;
}

/* Likeliest first, equal ones by number. */
static int by_weight(const void *a, const void *b)
{
    const heed__weighed *x = a, *y = b;
    if (x->weight != y->weight)
        return x->weight < y->weight ? 1 : -1;
    return x->id < y->id ? -1 : x->id > y->id;
}

/* Puts the item at `at` of a heap, whose root is the last in that order, where it belongs. */
static void sift(heed__weighed *heap, int64_t n, int64_t at)
{
    for (;;) {
        int64_t last = at;
        for (int64_t child = 2 * at + 1; child <= 2 * at + 2 && child < n; child++)
            if (by_weight(&heap[child], &heap[last]) > 0)
                last = child;
        if (last == at)
            return;
        const heed__weighed swap = heap[at];
        heap[at] = heap[last];
        heap[last] = swap;
        at = last;
    }
}

/* The k likeliest. */
static void take_top_k(heed__token_chooser *c, int64_t k)
{
    heed__weighed *heap = c->candidate;
    for (int64_t i = 0; i < k; i++)
        heap[i] = (heed__weighed){c->weight[i], (int32_t)i};
    for (int64_t i = k / 2; i-- > 0;)
        sift(heap, k, i);
    for (int64_t i = k; i < c->vocabulary; i++) {
        const heed__weighed one = {c->weight[i], (int32_t)i};
        if (by_weight(&one, &heap[0]) < 0) {
            heap[0] = one;
            sift(heap, k, 0);
        }
    }
    c->candidates = k;
}

/* All that a nucleus may need: tokens below this bound have less than 1 - top_p together. */
static void take_likely(heed__token_chooser *c, double sum)
{
    const double least = (1 - c->o->top_p) * sum / (double)c->vocabulary;
    c->candidates = 0;
    for (int64_t i = 0; i < c->vocabulary; i++)
        if (c->weight[i] >= least)
            c->candidate[c->candidates++] = (heed__weighed){c->weight[i], (int32_t)i};
}

static double sum_of(const heed__token_chooser *c)
{
    double sum = 0;
    for (int64_t i = 0; i < c->candidates; i++)
        sum += c->candidate[i].weight;
    return sum;
}

/* The fewest of probability top_p together; one at least. */
static void keep_nucleus(heed__token_chooser *c, double all)
{
    double sum = 0;
    for (int64_t i = 0; i < c->candidates; i++)
        if ((sum += c->candidate[i].weight) >= c->o->top_p * all) {
            c->candidates = i + 1;
            return;
        }
}

static void narrow(heed__token_chooser *c, double sum)
{
    const heed_generate_options *o = c->o;
    const bool few = o->top_k > 0 && o->top_k < c->vocabulary, nucleus = o->top_p < 1;
    c->candidates = 0;
    if (!few && !nucleus)
        return;
    if (few)
        take_top_k(c, o->top_k);
    else
        take_likely(c, sum);
    qsort(c->candidate, (size_t)c->candidates, sizeof *c->candidate, by_weight);
    if (nucleus)
        keep_nucleus(c, few ? sum_of(c) : sum);
    while (c->candidates > 1 && c->candidate[c->candidates - 1].weight < o->min_p)
        c->candidates--;
}

static int32_t draw_candidate(const heed__token_chooser *c, double u)
{
    const double target = u * sum_of(c);
    double sum = 0;
    for (int64_t i = 0; i < c->candidates; i++)
        if ((sum += c->candidate[i].weight) > target)
            return c->candidate[i].id;
    return c->candidate[c->candidates - 1].id;
}

static int32_t draw(heed__token_chooser *c, double u)
{
    double all = 0, sum = 0;
    int64_t last = 0;
    for (int64_t i = 0; i < c->vocabulary; i++) {
        if (c->weight[i] < c->o->min_p)
            c->weight[i] = 0;
        all += c->weight[i];
    }
    for (int64_t i = 0; i < c->vocabulary; i++) {
        if (c->weight[i] == 0)
            continue;
        last = i;
        if ((sum += c->weight[i]) > u * all)
            break;
    }
    return (int32_t)last;
}

int32_t heed__token_choose(heed__token_chooser *c, const heed_real *logit, const int32_t *context,
                           int64_t length, double u)
{
    take_logits(c, logit, context, length);
    const int64_t best = likeliest(c);
    if (!isfinite(c->weight[best]))
        return -1;
    if (c->o->temperature == 0)
        return (int32_t)best;
    const double sum = weigh(c, c->weight[best]);
    if (!isfinite(sum))
        return -1;
    narrow(c, sum);
    return c->candidates ? draw_candidate(c, u) : draw(c, u);
}
