/* beam.c: sentences come, take steps together and leave.
 *
 * A sentence that is done leaves at once; when a quarter of the capacity is free, waiting ones are
 * admitted, so that the model encodes several at a time.  A model whose rows must all have one
 * length gets new sentences when the last one has left. */
#include "search/search_state.h"

#include "base/error.h"
#include "base/memory.h"

/* Enough rows for the products to be efficient, few enough for (rows,V) and the caches of a large
 * model to stay below some hundred megabytes. */
const heed__budget heed__usual_budget = {.rows = 512, .tokens = 4096, .sentences = INT32_MAX};

void *heed__take(heed_arena *arena, int64_t count, size_t size, heed_error *err)
{
    int64_t bytes;
    void *p = heed__multiply(count, (int64_t)size, &bytes)
                  ? heed_arena_allocate(arena, (size_t)bytes)
                  : NULL;
    if (!p)
        heed__fail(err, HEED_MEMORY, "out of memory for %lld times %zu bytes", (long long)count,
                   size);
    return p;
}

bool heed__capacity_take(heed__capacity *capacity, const heed_tokens *source, bool must)
{
    if (!must && (capacity->sentences < 1 || capacity->tokens < source->count + 1))
        return false;
    capacity->sentences--;
    capacity->tokens -= source->count + 1;
    return true;
}

heed__search *heed__search_new(const heed_allocator *allocator, heed_error *err)
{
    heed_allocator a = heed__allocator_or_default(allocator);
    heed__search *s = heed__allocate_zeroed(&a, 1, sizeof *s);
    if (!s) {
        heed__fail(err, HEED_MEMORY, "out of memory for a search");
        return NULL;
    }
    s->allocator = a;
    s->memory = heed_arena_new(&a, err);
    s->handed = s->memory ? heed_arena_new(&a, err) : NULL;
    s->forced = s->handed ? heed_arena_new(&a, err) : NULL;
    if (s->forced)
        return s;
    heed__search_free(s);
    return NULL;
}

void heed__search_free(heed__search *s)
{
    if (!s)
        return;
    heed_allocator a = s->allocator;
    heed_arena_free(s->forced);
    heed_arena_free(s->handed);
    heed_arena_free(s->memory);
    heed__release(&a, s, 1, sizeof *s);
}

/* ---- a run begins ---- */

static void *take(const heed__search *s, int64_t count, size_t size)
{
    return heed__take(s->memory, count, size, s->err);
}

/* Slots for sentences, all of them spare. */
static heed_status take_slots(heed__search *s)
{
    int64_t n = s->all.sentences;
    s->live = take(s, n, sizeof *s->live);
    s->spare = take(s, n, sizeof *s->spare);
    s->request = take(s, n, sizeof *s->request);
    s->source = take(s, n, sizeof *s->source);
    s->wanted = take(s, n, sizeof *s->wanted);
    heed__sentence *slot = take(s, n, sizeof *slot);
    heed__finished *best = take(s, n, (size_t)s->o->n_best * sizeof *best);
    if (!s->live || !s->spare || !s->request || !s->source || !s->wanted || !slot || !best)
        return HEED_MEMORY;
    for (int64_t i = 0; i < n; i++) {
        slot[i].best = best + i * s->o->n_best;
        s->spare[i] = &slot[i];
    }
    s->spares = n;
    return HEED_OK;
}

/* Only sampling needs these; most of it the size of the vocabulary. */
static heed_status take_chances(heed__search *s)
{
    int64_t v = s->model->vocabulary;
    if (!s->o->sample)
        return HEED_OK;
    s->chance = take(s, 2 * v, sizeof *s->chance);
    s->pick.item = take(s, v, sizeof *s->pick.item);
    return s->chance && s->pick.item ? HEED_OK : HEED_MEMORY;
}

static heed_status prepare(heed__search *s, const heed__budget *budget)
{
    int64_t past = s->o->no_repeat ? s->model->longest : 0;
    heed_arena_reset(s->memory);
    s->width = s->o->sample ? s->o->n_best : s->o->beam;
    s->unscored = s->o->unscored && s->width == 1 && !s->o->sample;
    int64_t most = budget->rows / s->width;
    most = most < budget->sentences ? most : budget->sentences;
    s->all = (heed__capacity){most > 1 ? most : 1, budget->tokens / s->width};
    s->capacity = s->all;
    s->spare_block = NULL;
    s->sentences = s->rows = 0;
    heed_status status = take_slots(s);
    if (!status)
        status = take_chances(s);
    if (status)
        return status;
    int64_t places = s->all.sentences * s->width;
    s->row = take(s, places, sizeof *s->row);
    s->next = take(s, places, sizeof *s->next);
    s->token = take(s, places, sizeof *s->token);
    s->parent = take(s, places, sizeof *s->parent);
    s->extension = take(s, places, sizeof *s->extension);
    s->chosen = (heed__top){.item = take(s, s->width, sizeof *s->chosen.item)};
    s->end = take(s, s->width, sizeof *s->end);
    s->banned = take(s, s->model->vocabulary, sizeof *s->banned);
    s->past = take(s, past, sizeof *s->past);
    s->repeat = take(s, past + HEED_PLACEHOLDERS + 1, sizeof *s->repeat);
    if (!s->row || !s->next || !s->token || !s->parent || !s->extension || !s->chosen.item ||
        !s->end || !s->banned || !s->past || !s->repeat)
        return HEED_MEMORY;
    return heed__set_banned(s);
}

/* The best token is all that greedy search wants to know, unless what a row has said before may
 * forbid it. */
static void ask_model(const heed__search *s, bool running)
{
    if (s->model->best_only)
        s->model->best_only(s->model->self,
                            running && s->unscored && !s->o->no_repeat ? &s->o->banned : NULL);
}

/* ---- sentences come ---- */

static heed_status begin(heed__search *s, const heed__request *r)
{
    heed__sentence *one = s->spare[--s->spares];
    *one = (heed__sentence){.request = *r, .first = s->rows, .rows = 1, .best = one->best};
    s->live[s->sentences++] = one;
    s->row[s->rows] = (heed__beam_row){.sample = -1, .owed = heed__placeholders_of(s, r)};
    s->token[s->rows++] = s->model->ids.target.start;
    heed_status status = heed__set_lengths(s, one);
    one->limit_penalty = heed__penalty(s->o, one->limit);
    one->loop = s->o->allow_loops || r->whole ? 0 : heed__loop_length(&r->source);
    return status;
}

static bool wants_more(const heed__search *s)
{
    if (s->sentences == 0)
        return true;
    return s->model->joins && 4 * s->capacity.sentences >= s->all.sentences &&
           4 * s->capacity.tokens >= s->all.tokens;
}

static heed_status admit(heed__search *s)
{
    int64_t count = 0;
    if (!wants_more(s))
        return HEED_OK;
    heed_status status = s->requests->next(s->requests->self, s->sentences == 0, s->capacity,
                                           s->request, &count, s->err);
    for (int64_t i = 0; !status && i < count; i++) {
        s->source[i] = s->request[i].source;
        s->wanted[i] = s->request[i].prefix;
        heed__capacity_take(&s->capacity, &s->source[i], true);
        status = begin(s, &s->request[i]);
    }
    return status || !count ? status
                            : s->model->add(s->model->self, s->model->sources ? s->source : NULL,
                                            s->wanted, count, s->err);
}

/* ---- a step ---- */

/* What continues of one sentence after one step becomes rows of the next step. */
static heed_status continue_rows(heed__search *s, heed__sentence *one, int64_t *rows)
{
    heed__link *link = heed__history_grow(s, one);
    if (!link)
        return HEED_MEMORY;
    int64_t first = *rows;
    for (int64_t i = 0; i < s->chosen.count; i++) {
        const heed__candidate *c = &s->chosen.item[i];
        heed__beam_row *row = &s->next[*rows];
        *row = s->row[c->row];
        row->log_p = c->log_p;
        row->sample = c->sample;
        int64_t repeated = heed__row_take(row, one, &s->model->ids.target, c->token);
        if (repeated) {
            heed__finish_loop(s, one, c, repeated);
            continue;
        }
        *link++ = (heed__link){c->log_p, c->token, c->row - (int32_t)one->first, c->token_log_p};
        s->parent[*rows] = c->row;
        s->token[*rows] = c->token;
        ++*rows;
    }
    one->first = first;
    one->rows = *rows - first;
    one->length++;
    return HEED_OK;
}

/* One step of one sentence, whose first row is row `at` of the scores. */
static heed_status advance(heed__search *s, heed__sentence *one, const heed_scores *scores,
                           int64_t at, int64_t *rows)
{
    heed_status status =
        s->o->sample ? heed__draw_tokens(s, one, scores, at) : heed__expand(s, one, scores, at);
    return status ? status : continue_rows(s, one, rows);
}

static heed_status leave(heed__search *s, heed__sentence *one)
{
    heed_status status = heed__return_best(s, one);
    heed__history_drop(s, one);
    s->capacity.sentences++;
    s->capacity.tokens += one->request.source.count + 1;
    s->spare[s->spares++] = one;
    return status;
}

/* The model's rows become those of the next step. */
static heed_status reorder(heed__search *s, int64_t rows)
{
    bool moved = rows != s->rows;
    for (int64_t r = 0; !moved && r < rows; r++)
        moved = s->parent[r] != r;
    heed__beam_row *was = s->row;
    s->row = s->next;
    s->next = was;
    s->rows = rows;
    if (rows == 0)
        s->model->clear(s->model->self);
    return rows && moved ? s->model->reorder(s->model->self, s->parent, rows, s->err) : HEED_OK;
}

/* What the model computes for each row: what may follow, or how probable what is forced is. */
static heed_status ask(heed__search *s)
{
    heed_extension *x = s->extension;
    heed_arena_reset(s->forced);
    for (int64_t i = 0; i < s->sentences; i++) {
        heed__sentence *one = s->live[i];
        if (one->length < one->given) {
            heed_status status = heed__force_ask(s, one, x++);
            if (status)
                return status;
            continue;
        }
        for (int64_t r = one->first; r < one->first + one->rows; r++)
            *x++ = (heed_extension){.row = r, .tokens = {&s->token[r], 1}, .last = true};
    }
    return HEED_OK;
}

/* One step of all sentences.  Those without a row left leave. */
static heed_status step(heed__search *s)
{
    heed_scores scores = {0};
    heed_status status = ask(s);
    if (!status)
        status = s->model->extend(s->model->self, s->extension, s->rows, &scores, s->err);
    int64_t rows = 0, staying = 0, at = 0;
    for (int64_t i = 0; !status && i < s->sentences; i++) {
        heed__sentence *one = s->live[i];
        const int64_t had = one->rows;
        if (one->length < one->given) {
            status = heed__force(s, one, &s->extension[one->first], &rows);
        } else {
            status = advance(s, one, &scores, at, &rows);
            at += had;
        }
        if (!status && one->rows == 0)
            status = leave(s, one);
        else
            s->live[staying++] = one;
    }
    if (status)
        return status;
    s->sentences = staying;
    return reorder(s, rows);
}

heed_status heed__search_run(heed__search *s, const heed__stepper *model,
                             const heed_search_options *o, const heed__budget *budget,
                             const heed__request_source *requests, heed_error *err)
{
    s->model = model;
    s->o = o;
    s->requests = requests;
    s->err = err;
    heed_status status = heed__search_check(o, err);
    if (!status)
        status = prepare(s, budget);
    if (status)
        return status;
    model->clear(model->self);
    ask_model(s, true);
    while (!status) {
        status = admit(s);
        if (status || s->sentences == 0)
            break;
        status = step(s);
    }
    ask_model(s, false);
    return status;
}
