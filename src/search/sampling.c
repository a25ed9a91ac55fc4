/* sampling.c: one step of a sentence, drawn: every sample takes a token with probability
 * proportional to p^(1/temperature), from all tokens, from the top-k, or from the nucleus: the
 * fewest tokens whose probabilities reach top-p (of the top-k, if both are given).
 *
 * A draw is a function of (seed, number of the sentence, sample, step) and of the distribution
 * alone: neither the batch nor the order of the work changes it. */
#include "kernel/kernels.h"
#include "search/search_state.h"

#include <math.h>

/* Tokens that are looked at first for a nucleus; eight times as many where they do not reach. */
#define NUCLEUS 64

/* The chances of all columns, 0 where a token may not be chosen, at s->chance. */
static bool weigh(heed__search *s, const heed__outlook *v, int64_t *bad)
{
    const heed__filter *f = &s->filter;
    heed_real *x = s->chance + s->model->vocabulary;
    for (int64_t i = 0; i < v->count; i++) {
        if (!heed__log_p_at(v, *bad = i, &x[i]))
            return false;
        x[i] = f->banned[heed__token_at(v, i)] ? -(heed_real)INFINITY
                                               : (heed_real)((double)x[i] / s->o->temperature);
    }
    for (int64_t i = 0; i < f->count; i++) {
        int64_t column = heed__column_of(v, f->also[i]);
        if (column >= 0)
            x[column] = -(heed_real)INFINITY;
    }
    heed__kernels()->softmax_rows(s->chance, x, v->count, 1, v->count);
    return true;
}

/* The column and the chance of the i-th token that a sample is drawn from: of those picked, or of
 * all. */
static int64_t column_at(const heed__search *s, const heed__outlook *v, int64_t i)
{
    return s->pick.count ? heed__column_of(v, s->pick.item[i].token) : i;
}

static double chance_at(const heed__search *s, const heed__outlook *v, int64_t i)
{
    return (double)s->chance[column_at(s, v, i)];
}

/* Drops of the picked tokens what the nucleus does without; false if they do not reach top-p. */
static bool keep_nucleus(heed__search *s, const heed__outlook *v, double all)
{
    double sum = 0;
    for (int64_t i = 0; i < s->pick.count; i++)
        if ((sum += chance_at(s, v, i)) >= s->o->top_p * all) {
            s->pick.count = i + 1;
            return true;
        }
    return false;
}

/* Fills s->pick with the tokens that are drawn from, or with none: then all are. */
static void narrow(heed__search *s, const heed__outlook *v)
{
    bool nucleus = s->o->top_p > 0 && s->o->top_p < 1;
    bool few = s->o->top_k > 0 && s->o->top_k < v->count;
    int64_t most = few ? s->o->top_k : v->count, bad;
    s->pick.count = 0;
    if (!nucleus && !few)
        return;
    for (int64_t capacity = few || most < NUCLEUS ? most : NUCLEUS;; capacity *= 8) {
        s->pick.capacity = capacity < most ? capacity : most;
        s->pick.count = 0;
        heed__top_scan(&s->pick, v, &s->filter, 0, 0, &bad); /* weigh has seen every value */
        heed__top_sort(&s->pick);
        double all = few ? 0 : 1;
        for (int64_t i = 0; few && i < s->pick.count; i++)
            all += chance_at(s, v, i);
        if (!nucleus || keep_nucleus(s, v, all) || capacity >= most)
            return;
    }
}

/* The column that falls to u, a number from 0 to 1; -1: there is none. */
static int64_t fall(const heed__search *s, const heed__outlook *v, double u)
{
    int64_t n = s->pick.count ? s->pick.count : v->count, last = -1;
    double total = 0, sum = 0;
    for (int64_t i = 0; i < n; i++)
        total += chance_at(s, v, i);
    for (int64_t i = 0; i < n && sum <= u * total; i++)
        if (chance_at(s, v, i) > 0) {
            sum += chance_at(s, v, i);
            last = column_at(s, v, i);
        }
    return last;
}

/* EOS, if it is all that may stand in the last place; -1 otherwise. */
static int64_t last_column(const heed__search *s, const heed__sentence *one, const heed__outlook *v)
{
    int64_t column = heed__is_last(one) ? heed__column_of(v, s->model->ids.target.eos) : -1;
    heed_real x;
    return column >= 0 && heed__log_p_at(v, column, &x) && !isinf(x) ? column : -1;
}

/* One token more for a sample: kept if that ends it, chosen otherwise. */
static void take_one(heed__search *s, heed__sentence *one, const heed__outlook *v, int64_t row,
                     int32_t sample)
{
    heed_rng_key key = {
        .seed = (uint64_t)s->o->seed, .step = one->request.number, .node = (uint64_t)sample};
    heed_rng rng = heed_rng_stream(&key);
    int64_t column = last_column(s, one, v);
    heed_real x;
    if (column < 0)
        column = fall(s, v, heed_rng_uniform(&rng, (uint64_t)one->length));
    if (column < 0)
        return;
    heed__log_p_at(v, column, &x);
    int32_t token = heed__token_at(v, column);
    heed__candidate c = {s->row[row].log_p + (double)x, (int32_t)row, token, x, sample, 0};
    if (token == s->model->ids.target.eos || heed__is_last(one))
        heed__finish(s, one, &c, true);
    else
        s->chosen.item[s->chosen.count++] = c;
}

heed_status heed__draw_tokens(heed__search *s, heed__sentence *one, const heed_scores *scores,
                              int64_t at)
{
    s->chosen.count = 0;
    for (int64_t r = one->first; r < one->first + one->rows; r++) {
        heed__outlook v = heed__outlook_of(scores, at + r - one->first);
        int32_t sample = s->row[r].sample;
        int64_t bad;
        heed__set_filter(s, one, r);
        if (!weigh(s, &v, &bad))
            return heed__bad_column(&v, bad, one->length, s->err);
        narrow(s, &v);
        if (sample >= 0)
            take_one(s, one, &v, r, sample);
        for (int32_t i = 0; sample < 0 && i < s->o->n_best; i++) /* here they part */
            take_one(s, one, &v, r, i);
    }
    return HEED_OK;
}
