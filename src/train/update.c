/* update.c: one update: micro-batches, gradients, clipping, the step; and what went wrong if the
 * numbers stop being numbers. */
#include "train/trainer.h"

#include <math.h>

static bool is_finite(const heed_tensor *x, const heed_real *numbers)
{
    for (int64_t k = 0; numbers && k < heed_tensor_count(x); k++)
        if (!isfinite(numbers[k]))
            return false;
    return true;
}

/* The first tensor whose weights are not finite; NULL if none. */
static const char *bad_weights(const heed_params *p)
{
    for (int i = 0; i < heed_params_count(p); i++) {
        const heed_param_info e = heed_params_entry(p, i);
        if (!is_finite(e.tensor, heed_tensor_data(e.tensor)))
            return e.name;
    }
    return NULL;
}

/* The last tensor whose gradient is not: from where it began, NaN spreads to all that comes before
 * in the forward pass. */
static const char *bad_gradient(const heed_params *p)
{
    for (int i = heed_params_count(p); i-- > 0;) {
        const heed_param_info e = heed_params_entry(p, i);
        if (!is_finite(e.tensor, heed_tensor_grad(e.tensor)))
            return e.name;
    }
    return NULL;
}

/* printf writes the sign of what is not a number. */
static double shown(double x)
{
    return isnan(x) ? fabs(x) : x;
}

static heed_status diverged(const heed_trainer *t, const heed__update *u, heed_error *err)
{
    const char *weight = bad_weights(t->params);
    const char *gradient = weight || u->origin.op ? NULL : bad_gradient(t->params);
    const long long update = (long long)t->state.update + 1;
    double loss = shown(u->nll / (double)u->target_tokens);
    if (weight || gradient)
        return heed__fail(err, HEED_NUMERIC,
                          "update %lld: the %s of '%.200s' %s not finite (loss %.4g a token, "
                          "learning rate %.4g)",
                          update, weight ? "weights" : "gradient", weight ? weight : gradient,
                          weight ? "are" : "is", loss, u->rate);
    if (u->origin.op)
        return heed__fail(
            err, HEED_NUMERIC,
            "update %lld: the loss is %.4g a token: the result of %s%s%.200s%s is not "
            "finite (learning rate %.4g)",
            update, loss, u->origin.op, u->origin.parameter ? " with '" : "",
            u->origin.parameter ? u->origin.parameter : "", u->origin.parameter ? "'" : "",
            u->rate);
    return heed__fail(err, HEED_NUMERIC,
                      "update %lld: the loss is %.4g a token, gradient norm %.4g, learning rate "
                      "%.4g",
                      update, loss, shown(u->norm), u->rate);
}

/* Of an update, counted from 1. */
static double rate_of(const heed_trainer *t, int64_t update)
{
    return heed_schedule_rate(&t->schedule, update) *
           pow(HEED_ROLLBACK_RATE, (double)t->state.rollbacks);
}

heed_status heed__trainer_believe(const heed_trainer *t, const char *what, double loss,
                                  heed_error *err)
{
    const char *weight = bad_weights(t->params);
    double rate = rate_of(t, t->state.update);
    if (weight)
        return heed__fail(err, HEED_NUMERIC,
                          "after update %lld the weights of '%.200s' are not finite (%s %.4g a "
                          "token, learning rate %.4g)",
                          (long long)t->state.update, weight, what, shown(loss), rate);
    return loss <= HEED_EXPLODED
               ? HEED_OK
               : heed__fail(err, HEED_NUMERIC,
                            "after update %lld the %s is %.4g a token, learning rate %.4g",
                            (long long)t->state.update, what, shown(loss), rate);
}

static void count_tokens(const heed_trainer *t, heed__update *u)
{
    for (int64_t i = 0; i < t->recipe.train.accumulate; i++) {
        const heed_batch *b = &t->micro[i];
        u->pairs += b->examples;
        u->source_tokens += b->examples ? b->source.rows->rows : 0;
        u->target_tokens += b->examples ? b->target.rows->rows : 0;
        for (int64_t k = 0; k < b->examples; k++)
            u->target_bytes += (int64_t)heed_corpus_pair(t->corpus, b->example[k]).target_length;
        if (i == 0)
            u->epoch = b->epoch;
    }
}

static heed_status gradients(heed_trainer *t, heed__update *u, heed_error *err)
{
    double weight = 1.0 / (double)u->target_tokens;
    for (int64_t i = 0; i < t->recipe.train.accumulate; i++) {
        double nll = 0;
        if (!t->micro[i].examples)
            continue;
        heed_tape_reset(t->tape);
        heed_tape_step(t->tape, (uint64_t)t->state.update + 1, (uint32_t)i, 0);
        heed_tensor *loss = heed_model_loss(t->model, t->tape, &t->micro[i], weight, &nll);
        if (heed_backward(t->tape, loss))
            return heed__fail(err, heed_tape_error(t->tape)->status, "%s",
                              heed_tape_error(t->tape)->text);
        u->nll += nll;
        if (!isfinite(nll) && !u->origin.op)
            u->origin = heed__tape_not_finite(t->tape);
    }
    return HEED_OK;
}

heed_status heed__trainer_update(heed_trainer *t, heed__update *u, heed_error *err)
{
    const heed_train_options *o = &t->recipe.train;
    int threads = heed_tape_threads(t->tape);
    *u = (heed__update){0};
    heed_status status = heed_batches_next(t->batches, t->micro, (int)o->accumulate, err);
    if (status)
        return status;
    count_tokens(t, u);
    if (!u->pairs)
        return heed__fail(err, HEED_STATE, "the training data ended before its time");
    u->rate = rate_of(t, t->state.update + 1);
    if ((status = gradients(t, u, err)))
        return status;
    if (t->hooks.gradients)
        t->hooks.gradients(t->hooks.context, t->params, t->state.update + 1);
    u->norm = o->clip > 0 ? heed_clip_norm(t->params, o->clip, threads)
                          : heed_grad_norm(t->params, threads);
    double loss = u->nll / (double)u->target_tokens;
    if (!isfinite(u->norm) || !(loss <= HEED_EXPLODED)) {
        status = diverged(t, u, err);
        heed_params_zero_grads(t->params);
        return status;
    }
    heed_optimizer_step(t->optimizer, u->rate, threads);
    if (t->ema)
        heed_ema_update(t->ema, threads);
    t->state.update++;
    t->state.position = heed_batches_tell(t->batches);
    return HEED_OK;
}
