/* constraint.c: what a hypothesis may not say: tokens that are banned throughout, n-grams it has
 * said already, and one thing over and over; and what it must: the placeholders of its source, each
 * once, before it ends.
 *
 * A loop is a stretch at the end of a hypothesis that repeats some 1 to 8 tokens at least four
 * times and is at least 16 long.  A row knows how long it has been doing so: for every period p,
 * how many of its last tokens were equal to the token p before.  A source that repeats itself (dots
 * in a table of contents, a long number) may be answered in its own way: then the stretch must be
 * twice as long as the source's. */
#include "base/error.h"
#include "search/search_state.h"
#include "text/special_ids.h"

#include <string.h>

#define LOOP_TURNS 4
#define LOOP_LENGTH 16

heed_status heed__set_banned(heed__search *s)
{
    const heed_search_options *o = s->o;
    const heed_special_ids *ids = &s->model->ids.target;
    memset(s->banned, 0, (size_t)s->model->vocabulary * sizeof *s->banned);
    for (int64_t i = 0; i < o->banned.count; i++) {
        int32_t token = o->banned.id[i];
        if (token < 0 || token >= s->model->vocabulary || token == ids->eos)
            return heed__fail(s->err, HEED_ARGUMENT,
                              "token %d cannot be banned, expected one of 0 to %lld other than the "
                              "end of the sentence",
                              (int)token, (long long)s->model->vocabulary - 1);
        s->banned[token] = true;
    }
    int32_t special[HEED__SPECIAL_IDS];
    for (int i = heed__ids_list(ids, special) - 1; i >= 0; i--)
        if (special[i] < s->model->vocabulary)
            s->banned[special[i]] |= special[i] != ids->unk || o->suppress_unk;
    /* A beam treats it apart from the others. */
    if (ids->eos >= 0 && ids->eos < s->model->vocabulary)
        s->banned[ids->eos] = !o->sample;
    return HEED_OK;
}

/* The tokens that would complete an n-gram the row has already; returns how many. */
static int64_t repeats(heed__search *s, const heed__sentence *one, int64_t row)
{
    int64_t n = s->o->no_repeat, length = one->length, found = 0;
    if (!n || length < n)
        return 0;
    heed__history_read(s, one, length, (int32_t)(row - one->first), s->past, NULL);
    const int32_t *last = s->past + length - (n - 1);
    for (int64_t i = 0; i + n <= length; i++)
        if (memcmp(s->past + i, last, (size_t)(n - 1) * sizeof *last) == 0)
            s->repeat[found++] = s->past[i + n - 1];
    return found;
}

void heed__set_filter(heed__search *s, const heed__sentence *one, int64_t row)
{
    int64_t count = repeats(s, one, row);
    const uint32_t owed = s->row[row].owed;
    const heed_special_ids *ids = &s->model->ids.target;
    for (int32_t i = 0; one->request.protects && i < ids->placeholders; i++)
        if (!(owed >> i & 1))
            s->repeat[count++] = ids->placeholder + i;
    if (ids->eos >= 0 && (one->length < one->least || owed))
        s->repeat[count++] = ids->eos;
    s->filter = (heed__filter){s->banned, s->repeat, count};
}

uint32_t heed__placeholders_of(const heed__search *s, const heed__request *r)
{
    uint32_t owed = 0;
    const heed_pair_ids *ids = &s->model->ids;
    for (int64_t i = 0; r->protects && i < r->source.count; i++) {
        const int32_t which = heed__placeholder_of(&ids->source, r->source.id[i]);
        if (which >= 0 && which < ids->target.placeholders &&
            !s->banned[ids->target.placeholder + which])
            owed |= (uint32_t)1 << which;
    }
    return owed;
}

/* ---- loops ---- */

/* How many of the last tokens are equal to the one a period before, when `token` has joined them.
 */
static int32_t run_after(int32_t run, int32_t token, int32_t before)
{
    return token == before ? run + 1 : 0;
}

static bool is_loop(int64_t run, int64_t period, int64_t least)
{
    return run + period >= LOOP_TURNS * period && run + period >= least;
}

int64_t heed__loop_length(const heed_tokens *source)
{
    int64_t longest = 0;
    for (int64_t p = 1; p <= HEED__PERIODS; p++) {
        int32_t run = 0;
        for (int64_t i = p; i < source->count; i++) {
            run = run_after(run, source->id[i], source->id[i - p]);
            if (is_loop(run, p, longest))
                longest = run + p;
        }
    }
    return 2 * longest > LOOP_LENGTH ? 2 * longest : LOOP_LENGTH;
}

int64_t heed__row_take(heed__beam_row *row, const heed__sentence *one, const heed_special_ids *ids,
                       int32_t token)
{
    int64_t at = one->length, repeated = 0;
    /* What was forced is no loop of the model's. */
    for (int64_t p = 1; at >= one->given && p <= HEED__PERIODS && p <= at; p++) {
        int32_t *run = &row->run[p - 1];
        *run = run_after(*run, token, row->tail[(at - p) % HEED__PERIODS]);
        if (!repeated && one->loop && is_loop(*run, p, one->loop))
            repeated = *run;
    }
    row->tail[at % HEED__PERIODS] = token;
    const int32_t which = heed__placeholder_of(ids, token);
    if (which >= 0)
        row->owed &= ~((uint32_t)1 << which);
    return repeated;
}
