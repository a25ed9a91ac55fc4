/* search_options.c: what the options of a search allow: whether they make sense, and how long a
 * hypothesis may be.  Lengths count EOS, of the source as well. */
#include "base/error.h"
#include "base/min_max.h"
#include "search/search_state.h"

#include <math.h>

/* A number that may be 0 or more. */
static heed_status check_amount(const char *what, double found, heed_error *err)
{
    if (found >= 0 && !isinf(found))
        return HEED_OK;
    return heed__fail(err, HEED_ARGUMENT, "the %s is %g, expected 0 or more", what, found);
}

static heed_status check_sampling(const heed_search_options *o, heed_error *err)
{
    if (!(o->temperature > 0) || isinf(o->temperature))
        return heed__fail(err, HEED_ARGUMENT, "the temperature is %g, expected more than 0",
                          o->temperature);
    if (o->top_k < 0)
        return heed__fail(err, HEED_ARGUMENT, "top-k is %lld, expected 0 or more",
                          (long long)o->top_k);
    if (!(o->top_p >= 0 && o->top_p <= 1))
        return heed__fail(err, HEED_ARGUMENT, "top-p is %g, expected 0 to 1", o->top_p);
    return HEED_OK;
}

heed_status heed__search_check(const heed_search_options *o, heed_error *err)
{
    if (o->beam < 1 || o->beam > INT32_MAX)
        return heed__fail(err, HEED_ARGUMENT, "the beam is %lld, expected 1 or more",
                          (long long)o->beam);
    if (o->n_best < 1 || o->n_best > (o->sample ? INT32_MAX : o->beam))
        return heed__fail(err, HEED_ARGUMENT,
                          "the number of best hypotheses is %lld, expected 1 to the beam's %lld",
                          (long long)o->n_best, (long long)o->beam);
    if (o->penalty_form != HEED_PENALTY_WU && o->penalty_form != HEED_PENALTY_POWER)
        return heed__fail(err, HEED_ARGUMENT, "there is no form %d of the length penalty",
                          o->penalty_form);
    const struct {
        const char *what;
        double found;
    } amounts[] = {
        {"length penalty", o->length_penalty},
        {"patience", o->patience},
        {"extra length", (double)o->extra_length},
        {"greatest length", (double)o->max_length},
        {"greatest ratio of lengths", o->max_ratio},
        {"least length", (double)o->min_length},
        {"least ratio of lengths", o->min_ratio},
        {"length of n-grams not to be repeated", (double)o->no_repeat},
    };
    heed_status status = o->sample ? check_sampling(o, err) : HEED_OK;
    for (size_t i = 0; !status && i < sizeof amounts / sizeof *amounts; i++)
        status = check_amount(amounts[i].what, amounts[i].found, err);
    return status;
}

/* A multiple of the source's tokens; what is beyond all sentences is `most`. */
static int64_t times(double ratio, int64_t tokens, int64_t most)
{
    double n = ceil(ratio * (double)tokens);
    return n < (double)most ? (int64_t)n : most;
}

heed_status heed__set_lengths(const heed__search *s, heed__sentence *one)
{
    const heed_search_options *o = s->o;
    const heed__request *r = &one->request;
    const heed_special_ids *ids = &s->model->ids.target;
    int64_t source = (s->model->sources ? r->source.count : r->prefix.count) + 1,
            longest = s->model->longest, limit = longest;
    if (r->prefix.count >= longest)
        return heed__fail(s->err, HEED_ARGUMENT,
                          "the beginning of a translation has %lld tokens, expected at most %lld "
                          "as the model takes",
                          (long long)r->prefix.count, (long long)longest - 1);
    for (int64_t i = 0; i < r->prefix.count; i++)
        if (r->prefix.id[i] < 0 || r->prefix.id[i] >= s->model->vocabulary ||
            r->prefix.id[i] == ids->bos || r->prefix.id[i] == ids->eos)
            return heed__fail(s->err, HEED_ARGUMENT,
                              "a translation cannot begin with token %d, expected one of a "
                              "vocabulary of %lld, neither BOS nor EOS",
                              (int)r->prefix.id[i], (long long)s->model->vocabulary);
    if (source < limit && o->extra_length < limit - source)
        limit = source + o->extra_length;
    if (o->max_length)
        limit = heed__min(limit, o->max_length);
    if (o->max_ratio > 0)
        limit = heed__min(limit, times(o->max_ratio, source, longest));
    if (limit <= r->prefix.count)
        limit = r->prefix.count + 1;
    int64_t ratio = times(o->min_ratio, source, longest);
    one->given = r->prefix.count + r->whole;
    one->limit = r->whole ? one->given : limit;
    one->least = o->min_length > ratio ? o->min_length : ratio;
    return HEED_OK;
}
