/* expand.c: one step of a sentence: along a prefix that is given, or by beam search as in the
 * paper.
 * Finished hypotheses stand apart from those alive and take none of their places.  At each step the
 * best `beam` continuations other than EOS live on; an EOS counts if it is among the best `beam` of
 * all.  In the last place that the limit leaves, EOS is all that may stand.  A beam of 1 ends with
 * its first EOS: greedy search.
 *
 * Early stop.  log P only falls, and no penalty is larger than that of the limit, so nothing that
 * descends from a hypothesis can score above its log P / penalty(limit).  One that cannot pass the
 * n-th best finished is dropped.  That changes no result: whatever its descendants could displace
 * has a lower log P still, and what comes in their place has as well.
 *
 * Patience (Kasai et al., 2022).  Where it is set, a sentence is also over as soon as that many
 * times `beam` hypotheses have ended: 1 is first come, first served, which leaves longer ones
 * unseen, as in fairseq (whose n-best list has the first `beam` only).  Until then all that live go
 * on as long as one of them can win: each may be the one whose end counts. */
#include "search/search_state.h"

#include <math.h>

/* What a float calls a probability of 0. */
#define IMPOSSIBLE ((heed_real)-104)

/* The token that comes behind the first `length` of a forced beginning. */
static int32_t forced_token(const heed__search *s, const heed__request *r, int64_t length)
{
    return length < r->prefix.count ? r->prefix.id[length] : s->model->ids.target.eos;
}

heed_status heed__force_ask(heed__search *s, const heed__sentence *one, heed_extension *x)
{
    const int64_t n = s->model->joins ? one->given - one->length : 1;
    int32_t *id = heed__take(s->forced, n + 1, sizeof *id, s->err);
    heed_real *log_p = heed__take(s->forced, n, sizeof *log_p, s->err);
    if (!id || !log_p)
        return HEED_MEMORY;
    id[0] = s->token[one->first];
    for (int64_t i = 0; i < n; i++)
        id[i + 1] = forced_token(s, &one->request, one->length + i);
    *x = (heed_extension){.row = one->first,
                          .tokens = {id, n},
                          .wanted = s->unscored ? NULL : id + 1,
                          .log_p = log_p};
    return HEED_OK;
}

/* What a forced token adds to log P. */
static heed_status forced_log_p(const heed__search *s, const heed__sentence *one,
                                const heed_extension *x, int64_t i, heed_real *log_p)
{
    *log_p = 0;
    if (!x->wanted)
        return HEED_OK;
    if (!heed__log_p_clip(x->log_p[i], log_p))
        return heed__not_log_p(x->wanted[i], (double)x->log_p[i], one->length, s->err);
    if (isinf(*log_p) && !one->request.whole)
        *log_p = IMPOSSIBLE; /* so that what follows can still be compared */
    return HEED_OK;
}

heed_status heed__force(heed__search *s, heed__sentence *one, const heed_extension *x,
                        int64_t *rows)
{
    heed__beam_row row = s->row[one->first];
    for (int64_t i = 0; i < x->tokens.count; i++) {
        const int32_t token = forced_token(s, &one->request, one->length);
        heed_real log_p;
        heed_status status = forced_log_p(s, one, x, i, &log_p);
        if (status)
            return status;
        row.log_p += (double)log_p;
        if (token == s->model->ids.target.eos) {
            heed__finish(s, one,
                         &(heed__candidate){row.log_p, (int32_t)one->first, token, log_p, -1, 0},
                         true);
            one->rows = 0;
            return HEED_OK;
        }
        heed__link *link = heed__history_grow(s, one);
        if (!link)
            return HEED_MEMORY;
        *link = (heed__link){row.log_p, token, 0, log_p};
        heed__row_take(&row, one, &s->model->ids.target, token);
        one->length++;
        s->token[*rows] = token;
    }
    s->parent[*rows] = (int32_t)one->first;
    s->next[*rows] = row;
    one->first = (*rows)++;
    return HEED_OK;
}

/* Fills s->chosen with the best continuations of a sentence, and s->end with its rows' EOS; both
 * sorted. */
static heed_status look(heed__search *s, const heed__sentence *one, const heed_scores *scores,
                        int64_t at, int64_t *ends)
{
    const int32_t eos = s->model->ids.target.eos;
    s->chosen.count = 0;
    s->chosen.capacity = s->width;
    *ends = 0;
    for (int64_t r = one->first; r < one->first + one->rows; r++) {
        heed__outlook v = heed__outlook_of(scores, at + r - one->first);
        int64_t bad, column = heed__column_of(&v, eos);
        heed_real x = -(heed_real)INFINITY;
        heed__set_filter(s, one, r);
        if (!heed__top_scan(&s->chosen, &v, &s->filter, s->row[r].log_p, (int32_t)r, &bad) ||
            (column >= 0 && !heed__log_p_at(&v, bad = column, &x)))
            return heed__bad_column(&v, bad, one->length, s->err);
        const bool early = one->length < one->least || s->row[r].owed;
        if (isinf(x) || (early && !heed__is_last(one)))
            continue;
        heed__candidate c = {s->row[r].log_p + (double)x, (int32_t)r, eos, x, -1, v.logit[column]};
        int64_t place = (*ends)++;
        for (; place > 0 && heed__candidate_before(&c, &s->end[place - 1]); place--)
            s->end[place] = s->end[place - 1];
        s->end[place] = c;
    }
    heed__top_sort(&s->chosen);
    return HEED_OK;
}

/* Keeps those of the EOS that are among the best `beam` of all continuations; in the end, all. */
static void keep_ends(heed__search *s, heed__sentence *one, int64_t ends)
{
    int64_t better = 0;
    for (int64_t i = 0; i < ends; i++) {
        while (better < s->chosen.count &&
               heed__candidate_before(&s->chosen.item[better], &s->end[i]))
            better++;
        if (better + i >= s->o->beam && !heed__is_last(one))
            break;
        heed__finish(s, one, &s->end[i], true);
        one->ends++;
    }
}

/* Whether the number of ended hypotheses is what patience waits for. */
static bool is_served(const heed__search *s, const heed__sentence *one)
{
    const heed_search_options *o = s->o;
    return o->patience > 0 && one->ends >= o->n_best &&
           (double)one->ends / (double)o->beam >= o->patience; /* so 55 are 2.2 times 25 */
}

/* How many of s->chosen go on. */
static int64_t survivors(heed__search *s, heed__sentence *one)
{
    const heed__candidate *c = s->chosen.item;
    int64_t n = s->chosen.count;
    if ((s->o->beam == 1 && one->ended) || is_served(s, one))
        return 0;
    if (heed__is_last(one)) {
        for (int64_t i = 0; i < n; i++) /* for a model that gives EOS no chance at all */
            heed__finish(s, one, &c[i], false);
        return 0;
    }
    if (one->ended == s->o->n_best) {
        double worst = one->best[one->ended - 1].score;
        while (n > 0 && c[n - 1].log_p / one->limit_penalty <= worst)
            n--;
    }
    return n > 0 && s->o->patience > 0 ? s->chosen.count : n;
}

heed_status heed__expand(heed__search *s, heed__sentence *one, const heed_scores *scores,
                         int64_t at)
{
    int64_t ends;
    heed_status status = look(s, one, scores, at, &ends);
    if (status)
        return status;
    keep_ends(s, one, ends);
    s->chosen.count = survivors(s, one);
    return HEED_OK;
}
