/* caption_find.c: the caption of a picture by beam search: `beam` captions go on together, all
 * looking at the same places; one that ends leaves its room; the best mean log-probability of a
 * token wins. */
#include "base/error.h"
#include "see/caption_net.h"

#include <math.h>
#include <string.h>

enum { BEAM = 3, LONGEST = 30, MOST_BEAM = 64 };

/* A caption that goes on, or has ended. */
struct line {
    double log_p;
    int64_t count;      /* words */
    int32_t *id;        /* (longest) */
    heed_real *weights; /* (longest + 1, L) */
};
struct candidate {
    double log_p;
    int32_t row, token;
};
struct find {
    heed_tape *t;
    const heed_caption_net *m;
    heed_caption_options o;
    int64_t each; /* L */
    struct line live[MOST_BEAM], next[MOST_BEAM], best;
    double best_score;
    int64_t rows, ended;
};

static bool line_new(struct find *f, struct line *l, heed_arena *arena)
{
    *l = (struct line){.id = heed_arena_allocate(arena, (size_t)(f->o.longest + 1) * sizeof *l->id),
                       .weights = heed_arena_allocate(
                           arena, (size_t)((f->o.longest + 1) * f->each) * sizeof *l->weights)};
    return l->id && l->weights;
}

static bool lines_new(struct find *f, heed_arena *arena)
{
    for (int64_t i = 0; i < f->o.beam; i++)
        if (!line_new(f, &f->live[i], heed_tape_arena(f->t)) ||
            !line_new(f, &f->next[i], heed_tape_arena(f->t)))
            return false;
    return line_new(f, &f->best, arena);
}

/* `from` and one token more, which looked where `weights` says. */
static void line_extend(const struct find *f, struct line *to, const struct line *from,
                        const struct candidate *c, const heed_real *weights)
{
    memcpy(to->id, from->id, (size_t)from->count * sizeof *to->id);
    memcpy(to->weights, from->weights, (size_t)(from->count * f->each) * sizeof *to->weights);
    if (weights)
        memcpy(to->weights + from->count * f->each, weights + c->row * f->each,
               (size_t)f->each * sizeof *to->weights);
    to->id[from->count] = c->token;
    to->count = from->count + 1;
    to->log_p = c->log_p;
}

/* The 2 * beam best continuations, best first; returns how many.  Behind the longest caption there
 * is only its end. */
static int candidates(const struct find *f, const heed_tensor *log_p, struct candidate *out)
{
    const int most = (int)(2 * f->o.beam);
    const int64_t v = heed_tensor_cols(log_p);
    const bool last = f->live[0].count == f->o.longest;
    int n = 0;
    for (int32_t r = 0; r < f->rows; r++)
        for (int32_t k = 0; k < v; k++) {
            const double p = f->live[r].log_p + (double)heed_tensor_data(log_p)[r * v + k];
            if (k == f->o.start || k == f->o.unknown || (last && k != f->o.end) ||
                (n == most && p <= out[n - 1].log_p))
                continue;
            int at = n < most ? n++ : n - 1;
            for (; at > 0 && out[at - 1].log_p < p; at--)
                out[at] = out[at - 1];
            out[at] = (struct candidate){p, r, k};
        }
    return n;
}

static void finish(struct find *f, const struct line *from, const struct candidate *c,
                   const heed_real *weights)
{
    const double score = c->log_p / (double)(from->count + 1);
    f->ended++;
    if (score > f->best_score) {
        f->best_score = score;
        line_extend(f, &f->best, from, c, weights);
    }
}

/* log p of what may follow, (rows,V). */
static heed_tensor *step(struct find *f, const heed__places *p, const int32_t *token,
                         heed_lstm_state *state, heed_tensor **weights)
{
    heed_tape *t = f->t;
    const heed_caption_net *m = f->m;
    heed_tensor *word = heed_embedding(t, m->words, token, f->rows, NULL);
    const heed__caption_step now =
        heed__caption_step_on(t, m, p, heed_linear_apply(t, &m->input, word), NULL, state);
    heed_tensor *hidden = heed__caption_output(t, m, word, now.h, now.z);
    *weights = now.weights;
    return heed_log_softmax(t, heed_add(t, heed_matmul(t, hidden, m->out, HEED_NT), m->bias));
}

/* Chooses who goes on; false: none does. */
static bool choose(struct find *f, const heed_tensor *log_p, const heed_tensor *weights,
                   int32_t *parent, int32_t *token)
{
    struct candidate c[2 * MOST_BEAM];
    const heed_real *where = weights ? heed_tensor_data(weights) : NULL;
    const int n = candidates(f, log_p, c);
    int64_t rows = 0;
    for (int i = 0; i < n && rows + f->ended < f->o.beam; i++) {
        if (c[i].token == f->o.end) {
            finish(f, &f->live[c[i].row], &c[i], where);
            continue;
        }
        line_extend(f, &f->next[rows], &f->live[c[i].row], &c[i], where);
        parent[rows] = c[i].row;
        token[rows++] = c[i].token;
    }
    for (int64_t i = 0; i < rows; i++) {
        const struct line kept = f->live[i];
        f->live[i] = f->next[i];
        f->next[i] = kept;
    }
    f->rows = rows;
    return rows > 0;
}

heed_status heed_caption_find(heed_tape *t, const heed_caption_net *m, const heed_real *pixels,
                              const heed_caption_options *o, heed_arena *arena, heed_caption *out,
                              heed_error *err)
{
    static const int32_t none[MOST_BEAM] = {0};
    struct find f = {.t = t, .m = m, .best_score = -INFINITY, .rows = 1};
    if (!t || !m || !o || !out)
        return heed__missing(err, "captioner");
    f.o = *o;
    f.o.beam = o->beam ? o->beam : BEAM;
    f.o.longest = o->longest ? o->longest : LONGEST;
    if (f.o.beam < 1 || f.o.beam > MOST_BEAM || f.o.longest < 1)
        return heed__fail(err, HEED_ARGUMENT, "caption: beam is %lld, expected 1 to %d",
                          (long long)f.o.beam, MOST_BEAM);
    f.each = m->grid.size.y * m->grid.size.x;
    heed_tape_reset(t);
    heed__places p = heed__caption_see(t, m, pixels, 1, none, f.o.beam);
    heed_lstm_state state = heed__caption_begin(t, m, &p);
    if (!lines_new(&f, arena))
        return heed__fail(err, HEED_MEMORY, "out of memory for a caption");
    int32_t *token = heed_arena_allocate(heed_tape_arena(t), MOST_BEAM * sizeof *token),
            *parent = NULL;
    if (token)
        token[0] = o->start;
    for (bool more = token != NULL; more && !heed_tape_error(t)->status;) {
        heed_tensor *weights, *log_p = step(&f, &p, token, &state, &weights);
        /* Operators may look at indices until the tape is reset: new ones for each step. */
        token = heed_arena_allocate(heed_tape_arena(t), MOST_BEAM * sizeof *token);
        parent = heed_arena_allocate(heed_tape_arena(t), MOST_BEAM * sizeof *parent);
        more = log_p && token && parent && choose(&f, log_p, weights, parent, token);
        if (more) {
            state.h = heed_gather_rows(t, state.h, parent, f.rows);
            state.c = heed_gather_rows(t, state.c, parent, f.rows);
        }
    }
    if (heed_tape_error(t)->status)
        return heed__fail(err, heed_tape_error(t)->status, "%s", heed_tape_error(t)->text);
    if (!token || (!parent && !f.ended))
        return heed__fail(err, HEED_MEMORY, "out of memory for a caption");
    if (!f.ended)
        return heed__fail(err, HEED_NUMERIC, "caption: the weights give no probabilities");
    *out = (heed_caption){.id = f.best.id,
                          .count = f.best.count - 1, /* without the end */
                          .log_p = f.best.log_p,
                          .score = f.best_score,
                          .weights = p.keys ? f.best.weights : NULL};
    return HEED_OK;
}
