/* update.c: one update: for each set of parameters the gradients of all micro-batches, clipping and
 * the step, while the other sets hold still; then the state, once.  And what went wrong if the
 * numbers stop being numbers. */
#include "nn/params.h"
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
static const char *bad_weights(const heed_trainer *t)
{
    for (int k = 0; k < t->sets; k++)
        for (int i = 0; i < heed_params_count(t->set[k].params); i++) {
            const heed_param_info e = heed_params_entry(t->set[k].params, i);
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

static const char *unit_of(const heed_trainer *t)
{
    return t->task.unit ? t->task.unit : "a term";
}

/* Of an update, counted from 1. */
static double rate_of(const heed_trainer *t, int64_t update)
{
    return heed_schedule_rate(&t->schedule, update) *
           pow(HEED_ROLLBACK_RATE, (double)t->state.rollbacks);
}

static bool is_too_large(const heed_trainer *t, double loss)
{
    return !isfinite(loss) || (t->task.largest_loss > 0 && loss > t->task.largest_loss);
}

static heed_status diverged(const heed_trainer *t, const heed__update *u, heed_error *err)
{
    const char *weight = bad_weights(t);
    const char *gradient = weight || u->origin.op ? NULL : bad_gradient(t->set[u->set].params);
    const long long update = (long long)t->state.update + 1;
    double loss = shown(u->sum[u->set] / u->terms);
    if (weight || gradient)
        return heed__fail(err, HEED_NUMERIC,
                          "update %lld: the %s of '%.200s' %s not finite (loss %.4g %s, "
                          "learning rate %.4g)",
                          update, weight ? "weights" : "gradient", weight ? weight : gradient,
                          weight ? "are" : "is", loss, unit_of(t), u->rate);
    if (u->origin.op)
        return heed__fail(err, HEED_NUMERIC,
                          "update %lld: the loss is %.4g %s: the result of %s%s%.200s%s is not "
                          "finite (learning rate %.4g)",
                          update, loss, unit_of(t), u->origin.op,
                          u->origin.parameter ? " with '" : "",
                          u->origin.parameter ? u->origin.parameter : "",
                          u->origin.parameter ? "'" : "", u->rate);
    return heed__fail(err, HEED_NUMERIC,
                      "update %lld: the loss is %.4g %s, gradient norm %.4g, learning rate %.4g",
                      update, loss, unit_of(t), shown(u->norm[u->set]), u->rate);
}

heed_status heed__trainer_believe(const heed_trainer *t, const char *what, double loss,
                                  heed_error *err)
{
    const char *weight = bad_weights(t);
    double rate = rate_of(t, t->state.update);
    if (weight)
        return heed__fail(err, HEED_NUMERIC,
                          "after update %lld the weights of '%.200s' are not finite (%s %.4g %s, "
                          "learning rate %.4g)",
                          (long long)t->state.update, weight, what, shown(loss), unit_of(t), rate);
    return !is_too_large(t, loss)
               ? HEED_OK
               : heed__fail(err, HEED_NUMERIC,
                            "after update %lld the %s is %.4g %s, learning rate %.4g",
                            (long long)t->state.update, what, shown(loss), unit_of(t), rate);
}

/* ---- a look at the weights ---- */

heed_status heed__trainer_probe(heed_trainer *t, heed_error *err)
{
    const double terms = t->portion[0].terms;
    double worst = 0;
    heed_tape_set_training(t->tape, false);
    heed_tape_set_recording(t->tape, false);
    for (int k = 0; k < t->sets && terms > 0; k++) {
        double sum = 0;
        heed__trainer_loss(t, t->state.update, k, 0, 1 / terms, &sum);
        /* The first that is not finite, or else the largest. */
        worst = !isfinite(worst) || sum / terms < worst ? worst : sum / terms;
    }
    const heed_error wrong = *heed_tape_error(t->tape);
    heed_tape_reset(t->tape);
    heed_tape_set_training(t->tape, true);
    heed_tape_set_recording(t->tape, true);
    return wrong.status ? heed__fail(err, wrong.status, "%s", wrong.text)
                        : heed__trainer_believe(t, "loss", worst, err);
}

/* ---- the update ---- */

static heed_status draw(heed_trainer *t, heed__update *u, heed_error *err)
{
    const int micros = (int)t->loop.accumulate;
    for (int i = 0; i < micros; i++)
        t->portion[i] = t->task.next ? (heed_portion){0} : (heed_portion){.terms = 1, .items = 1};
    heed_status status =
        t->task.next ? t->task.next(t->task.self, t->state.update + 1, micros, t->portion, err)
                     : HEED_OK;
    for (int i = 0; !status && i < micros; i++) {
        u->terms += t->portion[i].terms;
        u->items += t->portion[i].items;
        u->share += t->portion[i].share;
    }
    u->epoch = t->portion[0].epoch;
    if (!status && !(u->terms > 0))
        status = heed__fail(err, HEED_STATE, "the training data ended before its time");
    return status;
}

static void hold_others(heed_trainer *t, int set, bool hold)
{
    for (int k = 0; k < t->sets; k++)
        if (k != set)
            heed__params_hold(t->set[k].params, hold);
}

static heed_status norm_of(heed_trainer *t, int k, double *norm, heed_error *err)
{
    if (heed__parts(t))
        return heed__together_norm(t, k, norm, err);
    *norm = heed_grad_norm(t->set[k].params, heed_tape_threads(t->tape));
    return HEED_OK;
}

/* *norm: of the gradient, before it is clipped. */
static heed_status clip(heed_trainer *t, int k, double *norm, heed_error *err)
{
    heed_params *p = t->set[k].params;
    const int threads = heed_tape_threads(t->tape);
    heed_status status = norm_of(t, k, norm, err);
    double then = *norm;
    if (!status && t->loop.clip_value > 0) {
        heed_clip_value(p, t->loop.clip_value, threads);
        status = t->loop.clip > 0 ? norm_of(t, k, &then, err) : HEED_OK;
    }
    if (!status && t->loop.clip > 0)
        heed__clip_to(p, then, t->loop.clip, threads);
    return status;
}

/* The loss of set k moves its parameters, and those of the others not. */
static heed_status train_set(heed_trainer *t, int k, heed__update *u, heed_error *err)
{
    heed__trained_set *s = &t->set[k];
    hold_others(t, k, true);
    heed_status status = heed__gradients_make(t, k, u, err);
    hold_others(t, k, false);
    if (status)
        return status;
    if (t->hooks.gradients)
        t->hooks.gradients(t->hooks.context, s->params, t->state.update + 1);
    u->set = k;
    if ((status = clip(t, k, &u->norm[k], err)))
        return status;
    if (!isfinite(u->norm[k]) || is_too_large(t, u->sum[k] / u->terms))
        return diverged(t, u, err);
    const int threads = heed_tape_threads(t->tape);
    heed__optimizer_step(s->optimizer, u->rate, threads);
    status = heed__together_weights(t, k, err);
    if (!status && s->ema)
        heed_ema_update(s->ema, threads);
    return status;
}

heed_status heed__trainer_update(heed_trainer *t, heed__update *u, heed_error *err)
{
    *u = (heed__update){.rate = rate_of(t, t->state.update + 1)};
    heed_status status = draw(t, u, err);
    heed__gradients_start(t);
    for (int k = 0; !status && k < t->sets; k++)
        status = train_set(t, k, u, err);
    heed__gradients_finish(t);
    for (int k = 0; k < t->sets; k++)
        if (status)
            heed_params_zero_grads(t->set[k].params);
        else
            heed_params_fold_state(t->set[k].params);
    if (status)
        return status;
    t->state.update++;
    t->state.position =
        t->task.tell ? t->task.tell(t->task.self) : (heed_position){.epoch = u->epoch};
    return HEED_OK;
}
