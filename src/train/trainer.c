/* trainer.c: the loop: update, log, validate, save, until a limit is reached, validation no longer
 * improves, or somebody asks to stop; then the average of several saves.
 *
 * What is decided by updates (validation, saves of the schedule) is the same in every run of a
 * recipe; what is decided by the clock (--valid-minutes, --max-minutes) is not. */
#include "train/trainer.h"
#include <heed/io.h>

#include <math.h>
#include <time.h>

#define DEFAULT_PATIENCE 10

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Seconds of training, earlier runs included, up to this moment. */
static void tick(heed_trainer *t)
{
    double at = now();
    t->state.seconds += at - t->clock;
    t->clock = at;
}

/* ---- limits ---- */

static double fraction_done(const heed_trainer *t)
{
    const heed_train_options *o = &t->recipe.train;
    const heed__train_state *s = &t->state;
    double f = 0;
    if (o->max_updates)
        f = fmax(f, (double)s->update / (double)o->max_updates);
    if (o->max_epochs && s->update) {
        heed_corpus_report r = heed_corpus_describe(t->corpus);
        double epochs = (double)s->position.epoch;
        if (t->epoch_bytes)
            epochs += (double)t->epoch_bytes / (double)r.target_bytes;
        f = fmax(f, epochs / (double)o->max_epochs);
    }
    if (o->max_minutes > 0)
        f = fmax(f, s->seconds / (60 * o->max_minutes));
    return fmin(f, 1);
}

static bool limit_reached(const heed_trainer *t, heed_train_reason *reason)
{
    const heed_train_options *o = &t->recipe.train;
    const heed__train_state *s = &t->state;
    bool other = o->max_updates || o->max_epochs || o->max_minutes > 0;
    int64_t patience = o->patience ? o->patience : other ? INT64_MAX : DEFAULT_PATIENCE;
    if (o->max_updates && s->update >= o->max_updates)
        *reason = HEED_TRAIN_MAX_UPDATES;
    else if (o->max_epochs && s->position.epoch >= o->max_epochs)
        *reason = HEED_TRAIN_MAX_EPOCHS;
    else if (o->max_minutes > 0 && s->seconds >= 60 * o->max_minutes)
        *reason = HEED_TRAIN_MAX_MINUTES;
    else if (s->stale >= patience)
        *reason = HEED_TRAIN_PATIENCE;
    else
        return false;
    return true;
}

/* ---- telling ---- */

static void describe(heed_trainer *t, heed_train_event event)
{
    heed_train_progress *p = &t->progress;
    const heed__train_state *s = &t->state;
    p->event = event;
    p->update = s->update;
    p->seconds = s->seconds;
    p->fraction = fraction_done(t);
    p->valid_loss = s->valid_loss;
    p->bleu = s->bleu;
    p->chrf = s->chrf;
    p->best = s->best;
    p->best_update = s->best_update;
    p->metric = heed__metric_name(t->recipe.train.valid_metric);
}

static void tell(heed_trainer *t, heed_train_event event)
{
    describe(t, event);
    if (t->hooks.progress)
        t->hooks.progress(t->hooks.context, &t->progress);
}

/* Once, when as many pairs were drawn as there are. */
static void tell_long(heed_trainer *t)
{
    const int64_t pairs = heed_corpus_describe(t->corpus).pairs;
    if (t->told_long || heed_batches_describe(t->batches).drawn < pairs)
        return;
    t->told_long = true;
    const int64_t left_out = heed__trainer_left_out(t);
    if (left_out)
        heed__trainer_say(t, HEED_LOG_WARNING,
                          "%lld of %lld pairs are left out: more than %lld tokens (%s) on a side",
                          (long long)left_out, (long long)pairs,
                          (long long)heed__trainer_max_tokens(t),
                          heed__trainer_max_tokens_option(t));
}

static heed_status log_update(heed_trainer *t, heed_error *err)
{
    const heed_train_progress *p = &t->progress;
    heed_status status = heed__log_progress(t->log, p, err);
    const struct {
        const char *tag;
        double value;
    } scalars[] = {{"train/loss", p->loss},
                   {"train/rate", p->rate},
                   {"train/gradient_norm", p->norm},
                   {"train/tokens_per_second", p->speed}};
    for (size_t i = 0; !status && i < sizeof scalars / sizeof *scalars; i++)
        status = heed__events_scalar(t->events, scalars[i].tag, p->update, scalars[i].value, err);
    return status;
}

static heed_status log_validation(heed_trainer *t, heed_error *err)
{
    const heed_train_progress *p = &t->progress;
    heed_status status = heed__log_progress(t->log, p, err);
    const struct {
        const char *tag;
        double value;
    } scalars[] = {{"valid/loss", p->valid_loss}, {"valid/bleu", p->bleu}, {"valid/chrf", p->chrf}};
    for (size_t i = 0; !status && i < sizeof scalars / sizeof *scalars; i++)
        if (isfinite(scalars[i].value))
            status =
                heed__events_scalar(t->events, scalars[i].tag, p->update, scalars[i].value, err);
    return status;
}

/* ---- one round ---- */

static heed_status after_update(heed_trainer *t, const heed__update *u, double seconds,
                                heed_error *err)
{
    heed__train_state *s = &t->state;
    heed_train_progress *p = &t->progress;
    s->nll += u->nll;
    s->tokens += u->target_tokens;
    t->epoch_bytes = u->epoch == s->position.epoch ? t->epoch_bytes + u->target_bytes : 0;
    t->speed_seconds += seconds;
    t->speed_tokens += u->source_tokens + u->target_tokens;
    p->epoch = u->epoch + 1;
    p->loss = s->nll / (double)s->tokens;
    p->rate = u->rate;
    p->norm = u->norm;
    p->speed = (double)t->speed_tokens / fmax(t->speed_seconds, 1e-9);
    p->logged = s->update % t->recipe.train.log_every == 0;
    tell(t, HEED_TRAIN_UPDATE);
    tell_long(t);
    if (!p->logged)
        return HEED_OK;
    s->nll = 0;
    s->tokens = 0;
    t->speed_seconds = 0;
    t->speed_tokens = 0;
    return log_update(t, err);
}

/* Writes the weights in use (the moving average, if there is one) where `translate` finds them.
 * Before the save that counts them as the best: a kill in between makes the resumed run do it
 * again. */
static heed_status publish_best(heed_trainer *t, heed_error *err)
{
    static const char *const names[] = {"training/best.safetensors", "model.safetensors"};
    heed_status status = HEED_OK;
    if (t->ema)
        heed_ema_swap(t->ema);
    for (int i = 0; !status && i < 2; i++) {
        heed__pathname path;
        if (!(status = heed__pathname_format(path, err, "%s/%s", t->place, names[i])))
            status = heed_params_save(t->params, path, err);
        heed__save_point(t, names[i]);
    }
    if (t->ema)
        heed_ema_swap(t->ema);
    return status;
}

static double score_of(const heed_trainer *t, const heed__validation *v)
{
    int metric = t->recipe.train.valid_metric;
    return metric == HEED_VALID_BLEU ? v->bleu : metric == HEED_VALID_CHRF ? v->chrf : v->loss;
}

static heed_status validate(heed_trainer *t, heed_error *err)
{
    heed__train_state *s = &t->state;
    heed__validation v;
    if (t->ema)
        heed_ema_swap(t->ema);
    heed_status status = heed__trainer_validate(t, &v, err);
    if (t->ema)
        heed_ema_swap(t->ema);
    t->stopped = v.stopped;
    if (!status && !v.stopped)
        status = heed__trainer_believe(t, "validation loss", v.loss, err);
    if (status || v.stopped)
        return status;
    double score = score_of(t, &v);
    s->valid_loss = v.loss;
    s->bleu = v.bleu;
    s->chrf = v.chrf;
    s->valid_update = s->update;
    if (heed__metric_better(t->recipe.train.valid_metric, score, s->best) ||
        (score == s->best && v.loss < s->best_loss)) {
        s->best = score;
        s->best_loss = v.loss;
        s->best_update = s->update;
        s->stale = 0;
        status = publish_best(t, err);
    } else {
        s->stale++;
    }
    tick(t);
    s->valid_seconds = s->seconds;
    tell(t, HEED_TRAIN_VALIDATION);
    return status ? status : log_validation(t, err);
}

static heed_status save(heed_trainer *t, bool scheduled, heed_error *err)
{
    heed_status status = heed__checkpoint_save(t, scheduled, err);
    t->saved_clock = now();
    if (!status)
        tell(t, HEED_TRAIN_SAVE);
    return status;
}

static bool due(int64_t update, int64_t every)
{
    return every && update % every == 0;
}

/* Rollbacks go to saves, and only the next update would notice what this one did to the weights. */
static heed_status check_weights(heed_trainer *t, heed_error *err)
{
    double loss;
    heed_status status = heed__trainer_probe(t, &loss, err);
    return status ? status : heed__trainer_believe(t, "loss", loss, err);
}

/* Validation and saves that this update asks for and that have not been; `last`: it is the last
 * one.  NUMERIC, and neither, if the update must not be believed. */
static heed_status look_after(heed_trainer *t, bool last, heed_error *err)
{
    const heed_train_options *o = &t->recipe.train;
    heed__train_state *s = &t->state;
    bool valid = due(s->update, o->valid_every) || last ||
                 (o->valid_minutes > 0 && s->seconds - s->valid_seconds >= 60 * o->valid_minutes);
    valid = valid && s->valid_update != s->update;
    bool scheduled = valid || due(s->update, o->save_every);
    bool timed = o->save_minutes > 0 && now() - t->saved_clock >= 60 * o->save_minutes;
    heed_status status = scheduled || timed ? check_weights(t, err) : HEED_OK;
    if (!status && valid)
        status = validate(t, err);
    if (status || t->stopped)
        return status;
    if (scheduled) {
        heed__candidates_add(t, valid);
        return save(t, true, err);
    }
    return timed ? save(t, false, err) : HEED_OK;
}

/* From an update that must not be believed back to the last save, with a smaller step; the same
 * again if that does not help, and then no more. */
static heed_status recover(heed_trainer *t, int64_t from, const heed_error *why, heed_error *err)
{
    if (t->state.rollbacks >= HEED_MAX_ROLLBACKS)
        return heed__fail(err, HEED_NUMERIC,
                          "%.300s; %d times already training went back to its last save with half "
                          "the rate: train anew, or --from this model into another directory, with "
                          "a smaller --rate or a longer --warmup",
                          why->text, HEED_MAX_ROLLBACKS);
    if (heed__checkpoint_roll_back(t, err))
        return err->status;
    heed__trainer_say(
        t, HEED_LOG_WARNING, "%s; back to update %lld, with the learning rate times %g", why->text,
        (long long)t->state.update, pow(HEED_ROLLBACK_RATE, (double)t->state.rollbacks));
    tell(t, HEED_TRAIN_ROLLBACK);
    return heed__log_rollback(t->log, from, t->state.update, why->text, err);
}

/* What is due after an update, and whether it was the last. */
static heed_status finish_update(heed_trainer *t, bool *done, heed_train_reason *reason,
                                 heed_error *err)
{
    heed_error wrong = {0};
    *done = limit_reached(t, reason);
    heed_status status = look_after(t, *done, &wrong);
    if (status == HEED_NUMERIC) {
        *done = false;
        return recover(t, t->state.update, &wrong, err);
    }
    if (status)
        return heed__fail(err, status, "%s", wrong.text);
    if (!*done)
        *done = limit_reached(t, reason);
    return HEED_OK;
}

static heed_status round_of(heed_trainer *t, bool *done, heed_train_reason *reason, heed_error *err)
{
    heed__update u;
    heed_error wrong = {0};
    double begin = now();
    heed_status status = heed__trainer_update(t, &u, &wrong);
    tick(t);
    if (status == HEED_NUMERIC)
        return recover(t, t->state.update + 1, &wrong, err);
    if (status)
        return heed__fail(err, status, "%s", wrong.text);
    if ((status = after_update(t, &u, now() - begin, err)))
        return status;
    status = finish_update(t, done, reason, err);
    tick(t);
    return status;
}

/* ---- the end ---- */

/* The average is kept if it validates no worse than the best save alone. */
static heed_status average(heed_trainer *t, heed_train_result *result, heed_error *err)
{
    const heed__train_state *s = &t->state;
    int metric = t->recipe.train.valid_metric, count;
    heed__validation v;
    heed__pathname path, best;
    if (t->recipe.train.average < 2 || s->n_candidates < 2)
        return HEED_OK;
    heed_status status = heed__candidates_average(t, &count, err);
    if (status || count < 2)
        return status;
    status = heed__trainer_validate(t, &v, err);
    t->stopped = v.stopped;
    if (status || v.stopped)
        return status;
    result->average_score = score_of(t, &v);
    bool better = !heed__metric_better(metric, s->best, result->average_score);
    result->averaged = better ? count : 0;
    status = heed__pathname_format(path, err, "%s/model.safetensors", t->place);
    if (!status && better)
        return heed_params_save(t->params, path, err);
    if (!status)
        status = heed__pathname_format(best, err, "%s/training/best.safetensors", t->place);
    return status ? status : heed__file_copy(best, path, &t->allocator, err);
}

heed_status heed_trainer_run(heed_trainer *t, heed_train_result *result, heed_error *err)
{
    heed_error own = {0};
    bool done = false, asked = false;
    heed_train_reason reason = HEED_TRAIN_ASKED;
    *result = (heed_train_result){.average_score = NAN};
    t->clock = t->saved_clock = now();
    if (!heed__trainer_settle(t, &own) && (t->state.update || limit_reached(t, &reason)))
        finish_update(t, &done, &reason, &own);
    while (!own.status && !done && !asked) {
        asked = t->stopped || (t->hooks.stop && t->hooks.stop(t->hooks.context));
        if (!asked)
            round_of(t, &done, &reason, &own);
    }
    if (!own.status && done && !t->stopped && !average(t, result, &own))
        heed__curves_write(t, &own);
    asked = asked || t->stopped;
    if (!own.status && asked)
        save(t, false, &own);
    describe(t, t->progress.event);
    result->reason = asked ? HEED_TRAIN_ASKED : reason;
    result->last = t->progress;
    return own.status ? heed__fail(err, own.status, "%s", own.text) : HEED_OK;
}
