/* search.c: beam search as in the paper, with the length penalty of Wu et al. (2016):
 *     score(Y) = log P(Y) / ((5 + |Y|) / 6)^alpha,  EOS counted in |Y|.
 * Finished hypotheses stand apart from those alive and take none of their places.  At each step the
 * best `beam` continuations other than EOS live on; an EOS counts if it is among the best `beam` of
 * all.  A beam of 1 ends with its first EOS: greedy search.
 *
 * Early stop.  log P only falls, so nothing that descends from a hypothesis can score above its
 * log P / penalty(limit).  One that cannot pass the n-th best finished is dropped.  That changes no
 * result: whatever its descendants could displace has the same length and a lower log P still. */
#include "decode/search.h"
#include "base/error.h"
#include "base/memory.h"
#include "model/model.h"

#include <math.h>

/* Hypotheses share their beginnings. */
struct node {
    const struct node *parent; /* NULL: the first token */
    int32_t token;
    heed_real log_p;
};

struct row {
    const struct node *last; /* NULL: nothing yet */
    double log_p;
};

/* One that is done: with EOS, or at its limit without. */
struct finished {
    const struct node *before; /* the last token but one */
    int32_t token;
    heed_real token_log_p;
    double log_p, score;
};

struct sentence {
    int64_t index; /* in the caller's order */
    int64_t limit; /* tokens at most, EOS included */
    int64_t first, rows;
    struct finished *best; /* (n_best), best first */
    int64_t found;
};

struct search {
    const heed__stepper *model;
    const heed_search_options *o;
    heed_arena *arena;
    heed_error *err;
    int64_t length; /* tokens that every row has so far */
    struct sentence *sentence;
    int64_t sentences;
    struct row *row, *next; /* (sentences * beam): now, and after this step */
    int64_t rows;
    int32_t *token, *parent; /* of the rows after this step */
    double *penalty;         /* by length */
    heed__top top;
    heed__candidate *end; /* (beam): the EOS of each row of a sentence */
};

heed_status heed__search_check(const heed_search_options *o, heed_error *err)
{
    if (o->beam < 1 || o->beam > INT32_MAX)
        return heed__fail(err, HEED_ARGUMENT, "the beam is %lld, expected 1 or more",
                          (long long)o->beam);
    if (o->n_best < 1 || o->n_best > o->beam)
        return heed__fail(err, HEED_ARGUMENT,
                          "the number of best hypotheses is %lld, expected 1 to the beam's %lld",
                          (long long)o->n_best, (long long)o->beam);
    if (!(o->length_penalty >= 0) || isinf(o->length_penalty))
        return heed__fail(err, HEED_ARGUMENT, "the length penalty is %g, expected 0 or more",
                          o->length_penalty);
    if (o->extra_length < 0)
        return heed__fail(err, HEED_ARGUMENT, "the extra length is %lld, expected 0 or more",
                          (long long)o->extra_length);
    return HEED_OK;
}

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

static void *take(const struct search *s, int64_t count, size_t size)
{
    return heed__take(s->arena, count, size, s->err);
}

static heed_status prepare(struct search *s, const heed_tokens *source, int64_t count)
{
    int64_t places, longest = 0;
    if (!heed__multiply(count, s->o->beam, &places) || places > INT32_MAX)
        return heed__fail(s->err, HEED_ARGUMENT, "%lld sentences with a beam of %lld are too many",
                          (long long)count, (long long)s->o->beam);
    s->sentence = take(s, count, sizeof *s->sentence);
    s->row = take(s, places, sizeof *s->row);
    s->next = take(s, places, sizeof *s->next);
    s->token = take(s, places, sizeof *s->token);
    s->parent = take(s, places, sizeof *s->parent);
    s->top.room = s->o->beam;
    s->top.item = take(s, s->top.room, sizeof *s->top.item);
    s->end = take(s, s->o->beam, sizeof *s->end);
    struct finished *best = take(s, places, sizeof *best);
    if (!s->sentence || !s->row || !s->next || !s->token || !s->parent || !s->top.item || !s->end ||
        !best)
        return HEED_MEMORY;
    for (int64_t i = 0; i < count; i++) {
        /* The source with its EOS, and so many more. */
        int64_t limit = s->model->longest;
        if (source[i].count < limit && s->o->extra_length < limit - source[i].count)
            limit = source[i].count + 1 + s->o->extra_length;
        s->sentence[i] = (struct sentence){
            .index = i, .limit = limit, .first = i, .rows = 1, .best = best + i * s->o->n_best};
        s->row[i] = (struct row){0};
        s->token[i] = HEED_BOS;
        longest = limit > longest ? limit : longest;
    }
    s->sentences = s->rows = count;
    s->penalty = take(s, longest + 1, sizeof *s->penalty);
    for (int64_t i = 0; s->penalty && i <= longest; i++)
        s->penalty[i] = pow((5.0 + (double)i) / 6.0, s->o->length_penalty);
    return s->penalty ? HEED_OK : HEED_MEMORY;
}

/* Among equals the one found first stays first. */
static void keep(const struct search *s, struct sentence *one, const heed__candidate *c)
{
    double score = c->log_p / s->penalty[s->length + 1];
    int64_t place = one->found;
    while (place > 0 && one->best[place - 1].score < score)
        place--;
    if (place == s->o->n_best)
        return;
    one->found += one->found < s->o->n_best;
    for (int64_t i = one->found - 1; i > place; i--)
        one->best[i] = one->best[i - 1];
    one->best[place] =
        (struct finished){s->row[c->row].last, c->token, c->token_log_p, c->log_p, score};
}

/* Fills s->top with the best continuations of a sentence, and s->end with its rows' EOS; both
 * sorted. */
static heed_status look(struct search *s, const struct sentence *one, const heed_real *log_p,
                        int64_t *ends)
{
    s->top.count = 0;
    *ends = 0;
    for (int64_t r = one->first; r < one->first + one->rows; r++) {
        const heed_real *p = log_p + r * s->model->vocabulary;
        int32_t bad = HEED_EOS;
        if (!heed__is_log_p(p[HEED_EOS]) ||
            !heed__top_scan(&s->top, p, s->model->vocabulary, s->row[r].log_p, (int32_t)r, &bad))
            return heed__not_log_p(s->err, bad, p[bad], s->length);
        if (s->length < s->o->min_length || isinf(p[HEED_EOS]))
            continue;
        heed_real x = p[HEED_EOS] < 0 ? p[HEED_EOS] : 0;
        heed__candidate c = {s->row[r].log_p + (double)x, (int32_t)r, HEED_EOS, x};
        int64_t place = (*ends)++;
        for (; place > 0 && heed__candidate_before(&c, &s->end[place - 1]); place--)
            s->end[place] = s->end[place - 1];
        s->end[place] = c;
    }
    heed__top_sort(&s->top);
    return HEED_OK;
}

/* Keeps those of the EOS that are among the best `beam` of all continuations. */
static void finish(struct search *s, struct sentence *one, int64_t ends)
{
    int64_t better = 0;
    for (int64_t i = 0; i < ends; i++) {
        while (better < s->top.count && heed__candidate_before(&s->top.item[better], &s->end[i]))
            better++;
        if (better + i >= s->o->beam)
            break;
        keep(s, one, &s->end[i]);
    }
}

/* How many of s->top go on. */
static int64_t survivors(const struct search *s, struct sentence *one)
{
    int64_t n = s->top.count;
    if (s->o->beam == 1 && one->found)
        return 0;
    if (s->length + 1 == one->limit) {
        for (int64_t i = 0, none = !one->found; none && i < n; i++)
            keep(s, one, &s->top.item[i]);
        return 0;
    }
    if (one->found == s->o->n_best) {
        double least = one->best[one->found - 1].score, best_penalty = s->penalty[one->limit];
        while (n > 0 && s->top.item[n - 1].log_p / best_penalty <= least)
            n--;
    }
    return n;
}

/* One step of one sentence; what goes on is added to the rows of the next step. */
static heed_status advance(struct search *s, struct sentence *one, const heed_real *log_p,
                           int64_t *rows)
{
    int64_t ends;
    heed_status status = look(s, one, log_p, &ends);
    if (status)
        return status;
    finish(s, one, ends);
    one->rows = survivors(s, one);
    one->first = *rows;
    struct node *node = take(s, one->rows, sizeof *node);
    if (!node)
        return HEED_MEMORY;
    for (int64_t i = 0; i < one->rows; i++) {
        const heed__candidate *c = &s->top.item[i];
        node[i] = (struct node){s->row[c->row].last, c->token, c->token_log_p};
        s->next[*rows] = (struct row){&node[i], c->log_p};
        s->parent[*rows] = c->row;
        s->token[*rows] = c->token;
        ++*rows;
    }
    return HEED_OK;
}

static heed_status hand_out(const struct search *s, const struct sentence *one,
                            heed_hypothesis *out)
{
    for (int64_t i = 0; i < s->o->n_best; i++) {
        heed_hypothesis *h = &out[one->index * s->o->n_best + i];
        *h = (heed_hypothesis){0};
        if (i >= one->found)
            continue;
        const struct finished *f = &one->best[i];
        int64_t n = 1;
        for (const struct node *a = f->before; a; a = a->parent)
            n++;
        int32_t *id = take(s, n, sizeof *id);
        heed_real *log_p = take(s, n, sizeof *log_p);
        if (!id || !log_p)
            return HEED_MEMORY;
        *h = (heed_hypothesis){id, n, f->log_p, f->score, log_p};
        id[--n] = f->token;
        log_p[n] = f->token_log_p;
        for (const struct node *a = f->before; a; a = a->parent) {
            id[--n] = a->token;
            log_p[n] = a->log_p;
        }
    }
    return HEED_OK;
}

/* One step of all sentences.  Those without a row left leave the batch. */
static heed_status step(struct search *s, heed_hypothesis *out)
{
    const heed_real *log_p;
    heed_status status = s->model->step(s->model->self, s->token, &log_p, s->err);
    int64_t rows = 0, staying = 0;
    for (int64_t i = 0; !status && i < s->sentences; i++) {
        struct sentence one = s->sentence[i];
        status = advance(s, &one, log_p, &rows);
        if (!status && one.rows == 0)
            status = hand_out(s, &one, out);
        else
            s->sentence[staying++] = one;
    }
    if (status)
        return status;
    bool moved = rows != s->rows;
    for (int64_t r = 0; !moved && r < rows; r++)
        moved = s->parent[r] != r;
    struct row *was = s->row;
    s->row = s->next;
    s->next = was;
    s->rows = rows;
    s->sentences = staying;
    s->length++;
    return moved && rows > 0 ? s->model->reorder(s->model->self, s->parent, rows, s->err) : HEED_OK;
}

heed_status heed__search(const heed__stepper *model, const heed_search_options *o,
                         const heed_tokens *source, int64_t count, heed_arena *arena,
                         heed_hypothesis *out, heed_error *err)
{
    struct search s = {.model = model, .o = o, .arena = arena, .err = err};
    heed_status status = heed__search_check(o, err);
    if (status || count == 0)
        return status;
    status = prepare(&s, source, count);
    if (!status)
        status = model->start(model->self, source, count, err);
    while (!status && s.rows > 0)
        status = step(&s, out);
    return status;
}

/* ---- over a decoder ---- */

struct decoding {
    heed_decoder *decoder;
    heed_arena *arena;
};

static heed_status start_decoder(void *self, const heed_tokens *source, int64_t count,
                                 heed_error *err)
{
    struct decoding *d = self;
    heed_batch batch;
    heed_status status = heed_batch_pack(d->arena, source, NULL, count, &batch, err);
    return status ? status : heed_decoder_start(d->decoder, &batch, err);
}

static heed_status step_decoder(void *self, const int32_t *token, const heed_real **log_p,
                                heed_error *err)
{
    return heed_decoder_step(((struct decoding *)self)->decoder, token, log_p, err);
}

static heed_status reorder_decoder(void *self, const int32_t *parent, int64_t rows, heed_error *err)
{
    return heed_decoder_reorder(((struct decoding *)self)->decoder, parent, rows, err);
}

heed_status heed_search(heed_decoder *d, const heed_search_options *o, const heed_tokens *source,
                        int64_t count, heed_arena *arena, heed_hypothesis *out, heed_error *err)
{
    const heed_model_config *config = heed_model_configuration(d->model);
    struct decoding decoding = {d, arena};
    heed__stepper model = {.self = &decoding,
                           .vocabulary = config->target_vocabulary,
                           .longest = config->longest,
                           .start = start_decoder,
                           .step = step_decoder,
                           .reorder = reorder_decoder};
    return heed__search(&model, o, source, count, arena, out, err);
}
