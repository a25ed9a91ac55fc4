/* finish.c: hypotheses that are done, their scores, and their way back to the caller:
 *     score(Y) = log P(Y) / penalty(|Y|),  EOS counted in |Y|,
 * with the penalty of Wu et al. (2016), ((5 + |Y|) / 6)^alpha, or the plain |Y|^alpha.  Neither
 * ever falls with the length, which is all that the early stop leans on. */
#include "search/search_state.h"

#include <math.h>

double heed__penalty(const heed_search_options *o, int64_t length)
{
    double base =
        o->penalty_form == HEED_PENALTY_POWER ? (double)length : (5.0 + (double)length) / 6.0;
    return pow(base, o->length_penalty);
}

/* Among equals the one found first stays first.  Those that reached their end drive out those that
 * did not. */
static void insert(const heed__search *s, heed__sentence *one, heed__finished f, bool ended)
{
    if (!ended && one->ended)
        return;
    if (ended && !one->ended)
        one->found = 0;
    int64_t length = f.length + (f.token >= 0), place = one->found;
    f.score = f.log_p / heed__penalty(s->o, length);
    while (place > 0 && one->best[place - 1].score < f.score)
        place--;
    if (place == s->o->n_best)
        return;
    one->found += one->found < s->o->n_best;
    for (int64_t i = one->found - 1; i > place; i--)
        one->best[i] = one->best[i - 1];
    one->best[place] = f;
    one->ended = ended ? one->found : 0;
}

void heed__finish(heed__search *s, heed__sentence *one, const heed__candidate *c, bool ended)
{
    insert(s, one,
           (heed__finished){.length = one->length,
                            .place = c->row - (int32_t)one->first,
                            .token = c->token,
                            .token_log_p = c->token_log_p,
                            .log_p = c->log_p},
           ended);
}

void heed__finish_loop(heed__search *s, heed__sentence *one, const heed__candidate *c,
                       int64_t repeated)
{
    heed__finished f = {.length = one->length + 1 - repeated, .token = -1};
    one->looped = true;
    f.log_p = heed__history_back(s, one, one->length - 1, c->row - (int32_t)one->first,
                                 repeated - 1, &f.place)
                  ->log_p;
    insert(s, one, f, s->o->sample);
}

/* One hypothesis, in s->handed. */
static heed_status write_out(heed__search *s, const heed__sentence *one, const heed__finished *f,
                             heed_hypothesis *out)
{
    int64_t count = f->length + (f->token >= 0);
    int32_t *id = heed__take(s->handed, count, sizeof *id, s->err);
    heed_real *log_p = heed__take(s->handed, count, sizeof *log_p, s->err);
    if (!id || !log_p)
        return HEED_MEMORY;
    heed__history_read(s, one, f->length, f->place, id, log_p);
    if (f->token >= 0) {
        id[f->length] = f->token;
        log_p[f->length] = f->token_log_p;
    }
    for (int64_t i = 0; s->unscored && i < count; i++)
        log_p[i] = (heed_real)NAN;
    *out = (heed_hypothesis){id,
                             count,
                             s->unscored ? (double)NAN : f->log_p,
                             s->unscored ? (double)NAN : f->score,
                             log_p,
                             one->looped};
    return HEED_OK;
}

heed_status heed__return_best(heed__search *s, const heed__sentence *one)
{
    heed_arena_reset(s->handed);
    heed_hypothesis *out = heed__take(s->handed, s->o->n_best, sizeof *out, s->err);
    heed_status status = out ? HEED_OK : HEED_MEMORY;
    for (int64_t i = 0; !status && i < s->o->n_best; i++) {
        out[i] = (heed_hypothesis){0};
        if (i < one->found)
            status = write_out(s, one, &one->best[i], &out[i]);
    }
    return status ? status : s->requests->done(s->requests->self, &one->request, out, s->err);
}
