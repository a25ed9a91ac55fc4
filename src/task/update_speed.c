/* update_speed.c: how long an update takes here.  The model is built with random weights and
 * trained on one batch, a translator's on made-up sentences; the first update, which asks for
 * memory, is not counted.  The fastest of the others counts, with a tenth more: neighbours that
 * are busy for a moment say nothing about the next hour. */
#include "model/model_class.h"
#include "task/defaults.h"
#include <heed/data.h>
#include <math.h>

#define LEAST_UPDATES 5
#define LEAST_SECONDS 1.0
#define MORE 1.1

struct trial {
    heed_model *model;
    heed_tape *tape;
    heed_optimizer *optimizer;
    const heed_batch *batch;
    int64_t accumulate;
    uint64_t step;
};

static heed_status one_update(void *context, heed_error *err)
{
    struct trial *x = context;
    heed_params *p = heed_model_params(x->model);
    const int threads = heed_tape_threads(x->tape);
    const double weight = 1.0 / (double)(x->batch->wanted_count * x->accumulate);
    for (int64_t i = 0; i < x->accumulate; i++) {
        double nll;
        heed_tape_reset(x->tape);
        heed_tape_step(x->tape, x->step, (uint32_t)i, 0);
        heed_tensor *loss = heed_model_loss(x->model, x->tape, x->batch, weight, &nll);
        if (heed_backward(x->tape, loss))
            return heed__fail(err, heed_tape_error(x->tape)->status, "%s",
                              heed_tape_error(x->tape)->text);
    }
    x->step++;
    heed_clip_norm(p, 1, threads);
    heed_optimizer_step(x->optimizer, 1e-6, threads);
    return HEED_OK;
}

heed_status heed__time_calls(heed_status (*update)(void *context, heed_error *err), void *context,
                             double *seconds, heed_error *err)
{
    heed_status status = update(context, err);
    double best = INFINITY, spent = 0;
    for (int i = 0; !status && (i < LEAST_UPDATES || spent < LEAST_SECONDS); i++) {
        const double begin = heed_clock_seconds();
        status = update(context, err);
        const double took = heed_clock_seconds() - begin;
        best = fmin(best, took);
        spent += took;
    }
    *seconds = MORE * best;
    return status;
}

heed_status heed__time_updates(const heed_model_config *config, const heed_batch *batch,
                               int64_t accumulate, int threads, const heed_allocator *allocator,
                               double *seconds, heed_error *err)
{
    struct trial x = {.batch = batch, .accumulate = accumulate};
    const heed_tape_options tape = {.allocator = allocator, .threads = threads, .seed = 1};
    heed_status status = HEED_OK;
    if ((x.model = heed_model_new(config, 1, allocator, err)) == NULL ||
        (x.tape = heed_tape_new(&tape, err)) == NULL ||
        (x.optimizer = heed_optimizer_new(heed_model_params(x.model),
                                          &(heed_optimizer_options){.kind = HEED_ADAM}, allocator,
                                          err)) == NULL)
        status = err->status;
    if (!status)
        status = heed__time_calls(one_update, &x, seconds, err);
    heed_optimizer_free(x.optimizer);
    heed_tape_free(x.tape);
    heed_model_free(x.model);
    return status;
}

/* ---- translation ---- */

static heed_status make_batch(heed_batch *batch, const heed_recipe *r,
                              const heed__update_size *size, heed_arena *arena, heed_error *err)
{
    int64_t n = r->train.batch_tokens / size->target_tokens;
    int64_t most =
        size->source_tokens > size->target_tokens ? size->source_tokens : size->target_tokens;
    n = n > 0 ? n : 1;
    heed_tokens *source = heed_arena_allocate(arena, (size_t)n * sizeof *source);
    heed_tokens *target = heed_arena_allocate(arena, (size_t)n * sizeof *target);
    int32_t *id = heed_arena_allocate(arena, (size_t)(n * most) * sizeof *id);
    if (!source || !target || !id)
        return heed__fail(err, HEED_MEMORY, "out of memory to measure the speed of training");
    const heed_rng rng = heed_rng_stream(&(heed_rng_key){.seed = 1});
    for (int64_t i = 0; i < n * most; i++)
        id[i] = (int32_t)heed_rng_below(&rng, (uint64_t)i, size->vocabulary);
    for (int64_t i = 0; i < n; i++) {
        /* The end of a sentence counts as a token, and is added. */
        source[i] = (heed_tokens){id + i * most, size->source_tokens - 1};
        target[i] = (heed_tokens){id + i * most, size->target_tokens - 1};
    }
    return heed_batch_pack(arena, NULL, source, target, n, batch, err);
}

heed_status heed__measure_update(const heed_recipe *r, const heed__update_size *size,
                                 const heed_allocator *allocator, double *seconds, heed_error *err)
{
    heed_batch batch;
    heed_model_config config = r->model;
    heed__model_reads_text(&config, size->vocabulary, size->vocabulary);
    heed_arena *arena = heed_arena_new(allocator, err);
    heed_status status = arena ? make_batch(&batch, r, size, arena, err) : HEED_MEMORY;
    if (!status)
        status = heed__time_updates(&config, &batch, r->train.loop.accumulate,
                                    (int)r->train.loop.threads, allocator, seconds, err);
    heed_arena_free(arena);
    return status;
}
