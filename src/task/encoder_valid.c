/* encoder_valid.c: how good an encoder is on its validation set: the loss; accuracy of labels,
 * tags and masked tokens; F1 of spans; rank correlation of cosines with scores, or how often a
 * text finds its partner among the others of a batch. */
#include "task/encoder_task.h"

#include <math.h>
#include <string.h>

/* What is gathered from batch to batch. */
struct gathered {
    double loss;
    int64_t terms, right;
    int32_t *wanted, *said; /* (words) of tags that name spans */
    int64_t *length;        /* (sentences) */
    int64_t words, sentences;
    double *cosine, *score; /* (pairs) */
    int64_t pairs;
};

static heed_status tape_status(const heed_tape *tape, heed_error *err)
{
    const heed_error *wrong = heed_tape_error(tape);
    return wrong->status ? heed__fail(err, wrong->status, "%s", wrong->text) : HEED_OK;
}

/* -log softmax(x)[k]; the loss of a label that does not exist is that of none. */
static double surprise(const heed_real *x, int64_t n, int32_t k)
{
    double most = -INFINITY, sum = 0;
    if (k < 0)
        return 0;
    for (int64_t i = 0; i < n; i++)
        most = fmax(most, (double)x[i]);
    for (int64_t i = 0; i < n; i++)
        sum += exp((double)x[i] - most);
    return most + log(sum) - (double)x[k];
}

static int32_t largest(const heed_real *x, int64_t n)
{
    int32_t best = 0;
    for (int32_t i = 1; i < n; i++)
        best = x[i] > x[best] ? i : best;
    return best;
}

static heed_status gather_answers(heed__encoding *t, heed_tape *tape, const heed_batch *b,
                                  struct gathered *g, heed_error *err)
{
    heed_tensor *logits = heed_model_logits(t->model, tape, b);
    if (tape_status(tape, err))
        return err->status;
    const heed_real *x = heed_tensor_data(logits);
    const int64_t n = heed_tensor_cols(logits);
    for (int64_t i = 0; i < b->wanted_count; i++, x += n) {
        const int32_t said = largest(x, n);
        g->loss += surprise(x, n, b->wanted[i]);
        g->right += said == b->wanted[i];
        if (g->said) {
            g->wanted[g->words] = b->wanted[i];
            g->said[g->words++] = said;
        }
    }
    g->terms += b->wanted_count;
    return HEED_OK;
}

static heed_status gather_scores(heed__encoding *t, heed_tape *tape, const heed_batch *b,
                                 const double *score, struct gathered *g, heed_error *err)
{
    heed_tensor *cosines = heed__encoder_cosines(t->model, tape, b, true);
    if (tape_status(tape, err))
        return err->status;
    const heed_real *x = heed_tensor_data(cosines);
    for (int64_t i = 0; i < b->examples; i++, g->pairs++) {
        g->cosine[g->pairs] = (double)x[i];
        g->score[g->pairs] = score[i];
        g->loss += ((double)x[i] - score[i]) * ((double)x[i] - score[i]);
    }
    g->terms += b->examples;
    return HEED_OK;
}

static heed_status gather_partners(heed__encoding *t, heed_tape *tape, const heed_batch *b,
                                   struct gathered *g, heed_error *err)
{
    const double scale = 1 / t->recipe.train.temperature;
    heed_tensor *cosines =
        heed_scale(tape, heed__encoder_cosines(t->model, tape, b, false), scale, 0);
    if (tape_status(tape, err))
        return err->status;
    const heed_real *x = heed_tensor_data(cosines);
    for (int32_t i = 0; i < b->examples; i++, x += b->examples) {
        g->loss += surprise(x, b->examples, i);
        g->right += largest(x, b->examples) == i;
    }
    g->terms += b->examples;
    return HEED_OK;
}

static bool stop_asked(const heed__encoding *t)
{
    return t->hooks.stop && t->hooks.stop(t->hooks.context);
}

static heed_status gather(heed__encoding *t, heed_tape *tape, heed_arena *arena, struct gathered *g,
                          heed_error *err)
{
    const heed__item_set *set = &t->valid;
    heed_status status = HEED_OK;
    int64_t *order = heed_arena_allocate(arena, (size_t)set->count * sizeof *order);
    if (!order)
        return heed__fail(err, HEED_MEMORY, "out of memory for validation");
    for (int64_t i = 0; i < set->count; i++)
        order[i] = i;
    for (int64_t at = 0; !status && at < set->count && !stop_asked(t);) {
        /* The same masks every time. */
        const heed_rng rng = heed_rng_stream(&(heed_rng_key){.step = (uint64_t)at});
        heed__item_batch b;
        heed_tape_reset(tape);
        status = heed__encoder_batch(t, set, order + at, set->count - at, false, &rng,
                                     heed_tape_arena(tape), &b, err);
        if (status)
            break;
        for (int64_t i = 0; g->said && i < b.taken; i++)
            g->length[g->sentences++] = set->item[at + i].read[0].words;
        if (t->recipe.train.task != HEED_ENCODER_EMBED)
            status = gather_answers(t, tape, &b.batch, g, err);
        else if (b.score)
            status = gather_scores(t, tape, &b.batch, b.score, g, err);
        else
            status = gather_partners(t, tape, &b.batch, g, err);
        at += b.taken;
    }
    heed_tape_reset(tape);
    return status;
}

static heed_status prepare(const heed__encoding *t, heed_arena *arena, struct gathered *g,
                           heed_error *err)
{
    const heed__item_set *set = &t->valid;
    size_t words = 1, n = (size_t)set->count;
    for (size_t i = 0; i < n; i++)
        words += (size_t)set->item[i].read[0].words;
    g->cosine = heed_arena_allocate(arena, n * sizeof *g->cosine);
    g->score = heed_arena_allocate(arena, n * sizeof *g->score);
    g->length = heed_arena_allocate(arena, n * sizeof *g->length);
    g->wanted = heed_arena_allocate(arena, words * sizeof *g->wanted);
    g->said = heed_arena_allocate(arena, words * sizeof *g->said);
    if (!g->cosine || !g->score || !g->length || !g->wanted || !g->said)
        return heed__fail(err, HEED_MEMORY, "out of memory for validation");
    if (!t->spans)
        g->said = NULL;
    return HEED_OK;
}

const char *heed__encoder_best(const heed__encoding *t)
{
    return t->spans                                      ? "F1"
           : heed_examples_are_scored(t->train.examples) ? "Spearman"
           : t->recipe.train.task == HEED_ENCODER_MLM    ? "loss"
                                                         : "accuracy";
}

heed_status heed__encoder_validate(void *self, heed_tape *tape, heed_measure *out, int *count,
                                   heed_error *err)
{
    heed__encoding *t = self;
    struct gathered g = {0};
    heed_span_figures spans = {0};
    double rho = NAN;
    heed_arena *arena = heed_arena_new(&t->allocator, err);
    heed_status status = arena ? prepare(t, arena, &g, err) : HEED_MEMORY;
    if (!status)
        status = gather(t, tape, arena, &g, err);
    if (!status && t->spans)
        status = heed_span_figures_of(t->labels, t->label_count, g.wanted, g.said, g.length,
                                      g.sentences, arena, &spans, err);
    if (!status && g.pairs)
        status = heed_spearman(g.cosine, g.score, g.pairs, &rho, err);
    heed_arena_free(arena);
    const bool scored = heed_examples_are_scored(t->train.examples);
    const double f1 = isnan(spans.all.f1) ? 0 : spans.all.f1, rank = isnan(rho) ? 0 : rho;
    *count = 0;
    out[(*count)++] = (heed_measure){"loss", g.loss / (double)g.terms, false};
    if (!scored)
        out[(*count)++] = (heed_measure){"accuracy", 100 * (double)g.right / (double)g.terms, true};
    if (t->spans)
        out[(*count)++] = (heed_measure){"F1", 100 * f1, true};
    if (scored)
        out[(*count)++] = (heed_measure){"Spearman", 100 * rank, true};
    return status;
}
