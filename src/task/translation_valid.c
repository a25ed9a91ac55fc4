/* translation_valid.c: how good the weights are: cross-entropy over the whole validation set, and
 * BLEU and chrF of real translations of it (of --valid-lines of them, drawn evenly). */
#include "task/translation.h"
#include "translate/translator.h"

#include <math.h>
#include <string.h>

/* Between two portions somebody may ask to stop. */
#define LINES_AT_ONCE 256

/* ---- cross-entropy ---- */

static bool stop_asked(const heed__translation *t)
{
    return t->hooks.stop && t->hooks.stop(t->hooks.context);
}

static heed_batches *valid_batches(const heed__translation *t, heed_error *err)
{
    heed_batches_options options = {.batch_tokens = t->recipe.train.batch_tokens,
                                    .max_tokens = t->recipe.model.longest,
                                    .in_order = true,
                                    .epochs = 1};
    return heed_batches_new(t->valid, t->source, t->target, &options, &t->allocator, err);
}

heed_status heed__check_valid(const heed__translation *t, heed_error *err)
{
    heed_batch batch;
    heed_error own = {0};
    heed_batches *batches = valid_batches(t, &own);
    if (batches)
        heed_batches_next(batches, &batch, 1, &own);
    heed_batches_free(batches);
    return own.status ? heed__fail(err, own.status, "validation set: %s%s", own.text,
                                   own.status == HEED_FORMAT ? ": raise --longest" : "")
                      : HEED_OK;
}

static heed_status cross_entropy(heed__translation *t, heed_tape *tape, double *loss,
                                 heed_error *err)
{
    double nll = 0;
    int64_t tokens = 0;
    heed_batch batch;
    heed_status status = HEED_OK;
    heed_batches *batches = valid_batches(t, err);
    if (!batches)
        return err->status;
    while (!status && !stop_asked(t)) {
        if ((status = heed_batches_next(batches, &batch, 1, err)) || !batch.examples)
            break;
        double sum = 0;
        heed_tape_reset(tape);
        heed_model_loss(t->model, tape, &batch, 1, &sum);
        const heed_error *wrong = heed_tape_error(tape);
        if (wrong->status)
            status = heed__fail(err, wrong->status, "%s", wrong->text);
        nll += sum;
        tokens += batch.target.rows->rows;
    }
    heed_batches_free(batches);
    heed_tape_reset(tape);
    *loss = nll / (double)tokens;
    return status;
}

/* ---- translations ---- */

static const char *copy_text(const char *text, size_t length, heed_arena *arena)
{
    char *copy = heed_arena_allocate(arena, length + 1);
    if (copy) {
        memcpy(copy, text, length);
        copy[length] = '\0';
    }
    return copy;
}

/* Undoes the pieces of a reference as translations have theirs undone: "@@ " vanishes, and at the
 * end of the line "@@" does. */
static const char *joined(const char *text, size_t length, const char *joiner, heed_arena *arena)
{
    char *out = heed_arena_allocate(arena, length + 1);
    size_t n = strlen(joiner), bare = n, k = 0;
    while (bare && joiner[bare - 1] == ' ')
        bare--;
    for (size_t i = 0; out && i < length;) {
        size_t left = length - i;
        if (left >= n && memcmp(text + i, joiner, n) == 0)
            i += n;
        else if (bare && left == bare && memcmp(text + i, joiner, bare) == 0)
            i += bare;
        else
            out[k++] = text[i++];
    }
    if (out)
        out[k] = '\0';
    return out;
}

struct texts {
    const char **source, **reference, **hypothesis; /* (count) */
    int64_t count;
};

static heed_status draw_texts(const heed__translation *t, struct texts *x, heed_arena *arena,
                              heed_error *err)
{
    int64_t pairs = heed_corpus_describe(t->valid).pairs, most = t->recipe.train.valid_lines;
    const char *joiner = t->recipe.train.bpe_joiner;
    x->count = pairs < most ? pairs : most;
    size_t bytes = sizeof(char *) * (size_t)x->count;
    x->source = heed_arena_allocate(arena, bytes);
    x->reference = heed_arena_allocate(arena, bytes);
    x->hypothesis = heed_arena_allocate(arena, bytes);
    bool whole = x->source && x->reference && x->hypothesis;
    for (int64_t i = 0; whole && i < x->count; i++) {
        int64_t k = (int64_t)((double)i * (double)pairs / (double)x->count);
        heed_pair p = heed_corpus_pair(t->valid, k);
        x->source[i] = copy_text(p.source, p.source_length, arena);
        x->reference[i] = joiner ? joined(p.target, p.target_length, joiner, arena)
                                 : copy_text(p.target, p.target_length, arena);
        whole = x->source[i] && x->reference[i];
    }
    return whole ? HEED_OK : heed__fail(err, HEED_MEMORY, "out of memory for validation");
}

static heed_status translate(heed__translation *t, struct texts *x, heed_arena *arena,
                             heed_error *err)
{
    heed_search_options search = {.beam = t->recipe.train.valid_beam,
                                  .length_penalty = 0.6,
                                  .n_best = 1,
                                  .unscored = true,
                                  .extra_length = t->extra_length};
    heed_translation *out = heed_arena_allocate(arena, sizeof *out * (size_t)x->count);
    if (!out)
        return heed__fail(err, HEED_MEMORY, "out of memory for validation");
    heed_translator *tr =
        heed_translator_new(t->model, t->source, t->target, t->threads, &t->allocator, err);
    if (!tr)
        return err->status;
    heed__translator_trained(tr, &t->text, t->names);
    heed_status status = HEED_OK;
    for (int64_t i = 0; !status && i < x->count && !stop_asked(t); i += LINES_AT_ONCE) {
        int64_t n = x->count - i < LINES_AT_ONCE ? x->count - i : LINES_AT_ONCE;
        status = heed_translate(tr, &search, x->source + i, n, arena, out + i, err);
    }
    heed_translator_free(tr);
    if (stop_asked(t))
        return status;
    for (int64_t i = 0; !status && i < x->count; i++)
        x->hypothesis[i] = out[i].text ? out[i].text : "";
    return status;
}

static heed_status translation_scores(heed__translation *t, double *bleu_score, double *chrf_score,
                                      heed_error *err)
{
    const heed_train_options *o = &t->recipe.train;
    bool words = o->tokens == HEED_TOKENS_WHITESPACE;
    heed_bleu_options bleu = {.tokenize = o->valid_tokenize ? (heed_tokenize)(o->valid_tokenize - 1)
                                          : words           ? HEED_TOKENIZE_MULTI_BLEU
                                                            : HEED_TOKENIZE_13A};
    heed_chrf_options chrf = {0};
    heed_bleu_result result = {0};
    struct texts x = {0};
    heed_arena *arena = heed_arena_new(&t->allocator, err);
    if (!arena)
        return err->status;
    heed_status status = draw_texts(t, &x, arena, err);
    if (!status)
        status = translate(t, &x, arena, err);
    if (!status && !stop_asked(t))
        status = heed_bleu(&bleu, x.hypothesis, x.reference, x.count, &result, err);
    if (!status && !stop_asked(t))
        status = heed_chrf(&chrf, x.hypothesis, x.reference, x.count, chrf_score, err);
    *bleu_score = result.score;
    heed_arena_free(arena);
    return status;
}

/* ---- measures ---- */

static const char *const metric_names[] = {
    [HEED_VALID_BLEU] = "BLEU", [HEED_VALID_CHRF] = "chrF", [HEED_VALID_LOSS] = "loss"};

const char *heed__metric_name(int metric)
{
    return metric_names[metric];
}

heed_status heed__translation_validate(void *self, heed_tape *tape, heed_measure *out, int *count,
                                       heed_error *err)
{
    heed__translation *t = self;
    double loss = NAN, bleu = NAN, chrf = NAN;
    heed_status status = cross_entropy(t, tape, &loss, err);
    if (!status && t->recipe.train.valid_lines && loss <= HEED_EXPLODED)
        status = translation_scores(t, &bleu, &chrf, err);
    out[0] = (heed_measure){"loss", loss, false};
    out[1] = (heed_measure){"BLEU", bleu, true};
    out[2] = (heed_measure){"chrF", chrf, true};
    *count = 3;
    return status;
}
