/* loop.c: the one training loop: update, log, validate, save, until a limit is reached, validation
 * no longer improves, or somebody asks to stop; then the average of several saves.
 *
 * What is decided by updates (validation, saves of the schedule) is the same in every run of the
 * same options; what is decided by the clock (--valid-minutes, --max-minutes) is not.  Of several
 * processes, rank 0 alone validates, saves and decides; the others do the updates with it. */
#include "train/trainer.h"
#include <heed/io.h>

#include <math.h>
#include <string.h>

/* ---- telling ---- */

static void describe(heed_trainer *t, heed_train_event event)
{
    heed_train_progress *p = &t->progress;
    const heed__train_state *s = &t->state;
    p->event = event;
    p->update = s->update;
    p->seconds = s->seconds;
    p->fraction = heed__fraction_done(t);
    memcpy(p->measure, s->measure, sizeof p->measure);
    p->measures = s->measures;
    p->best = s->best;
    p->best_update = s->best_update;
    p->task = &t->task;
}

static void tell(heed_trainer *t, heed_train_event event)
{
    describe(t, event);
    if (t->hooks.progress)
        t->hooks.progress(t->hooks.context, &t->progress);
}

static heed_status write_log(heed_trainer *t, heed_error *err)
{
    heed_status status = heed__log_progress(t->log, &t->progress, err);
    return status ? status : heed__events_progress(t->events, &t->progress, err);
}

static void describe_ranks(heed_trainer *t)
{
    heed_train_progress *p = &t->progress;
    p->ranks = heed_ranks_size(t->ranks);
    p->rank_speed = t->rank_speed;
    p->waiting = p->ranks > 1 ? fmin(heed__waited(t) / fmax(t->speed_seconds, 1e-9), 1) : 0;
    for (int i = 0; i < p->ranks; i++)
        t->rank_speed[i] = t->work[i].items / fmax(t->work[i].busy, 1e-9);
}

static void forget_speed(heed_trainer *t)
{
    t->speed_seconds = t->speed_items = 0;
    t->waited = -heed__ranks_waited(t->ranks, HEED__CHANNEL_MAIN);
    memset(t->work, 0, sizeof *t->work * (size_t)heed_ranks_size(t->ranks));
}

static heed_status after_update(heed_trainer *t, const heed__update *u, double seconds,
                                heed_error *err)
{
    heed__train_state *s = &t->state;
    heed_train_progress *p = &t->progress;
    s->terms += u->terms;
    for (int k = 0; k < t->sets; k++) {
        s->sum[k] += u->sum[k];
        p->loss[k] = s->sum[k] / s->terms;
        p->norm[k] = u->norm[k];
    }
    t->share = u->epoch == s->position.epoch ? t->share + u->share : 0;
    t->speed_seconds += seconds;
    t->speed_items += u->items;
    p->epoch = u->epoch + 1;
    p->rate = u->rate;
    p->speed = t->speed_items / fmax(t->speed_seconds, 1e-9);
    p->logged = s->update % t->loop.log_every == 0;
    describe_ranks(t);
    tell(t, HEED_TRAIN_UPDATE);
    if (!p->logged)
        return HEED_OK;
    memset(s->sum, 0, sizeof s->sum);
    s->terms = 0;
    forget_speed(t);
    return write_log(t, err);
}

/* ---- what follows an update ---- */

static heed_status save(heed_trainer *t, bool scheduled, heed_error *err)
{
    heed_status status = heed__checkpoint_save(t, scheduled, err);
    t->saved_clock = heed_clock_seconds();
    if (!status)
        tell(t, HEED_TRAIN_SAVE);
    return status;
}

/* Sets d->stop when somebody asked to stop meanwhile: a resumed run validates again. */
static heed_status validate(heed_trainer *t, heed__decision *d, heed_error *err)
{
    heed__validation v;
    heed_status status = heed__trainer_validate(t, &v, err);
    d->stop = heed__decide(t, HEED__MEASURED, status).stop;
    if (!status && !d->stop && v.measures)
        status = heed__trainer_believe(t, "validation loss", v.measure[0].value, err);
    if (status || d->stop)
        return status;
    status = heed__trainer_take(t, &v, err);
    tell(t, HEED_TRAIN_VALIDATION);
    if (!status)
        status = write_log(t, err);
    return status ? status : heed__curves_write(t, err);
}

/* Validation and saves.  NUMERIC, and neither, if the update diverged: rollbacks go to
 * saves, and only the next update would notice what this one did to the weights. */
static heed_status look_after(heed_trainer *t, heed__decision *d, heed_error *err)
{
    heed_status status = d->save ? heed__trainer_probe(t, err) : HEED_OK;
    if (!status && d->validate)
        status = validate(t, d, err);
    if (status || d->stop || !d->save)
        return status;
    if (d->scheduled)
        heed__candidates_add(t, d->validate);
    return save(t, d->scheduled, err);
}

/* From an update that diverged back to the last save, with a smaller step; the same
 * again if that does not help, and then no more. */
static heed_status recover(heed_trainer *t, int64_t from, const heed_error *why, heed_error *err)
{
    if (t->state.rollbacks >= HEED_MAX_ROLLBACKS)
        return heed__fail(err, HEED_NUMERIC,
                          "%.300s; %d times already training went back to its last save with half "
                          "the rate: train anew, or --from this model into another directory, with "
                          "a smaller --rate or a longer --warmup",
                          why->text, HEED_MAX_ROLLBACKS);
    const bool leads = heed__ranks_lead(t->ranks);
    heed_status status = leads ? heed__whole_zero(t, err) : HEED_OK;
    if (leads && !status)
        status = heed__checkpoint_roll_back(t, err);
    status = heed__ranks_agree(t->ranks, status, err);
    if (status || heed__together_share(t, err))
        return err->status;
    heed__whole_forget(t);
    if (!leads)
        return HEED_OK;
    heed__trainer_say(
        t, HEED_LOG_WARNING, "%s; back to update %lld, with the learning rate times %g", why->text,
        (long long)t->state.update, pow(HEED_ROLLBACK_RATE, (double)t->state.rollbacks));
    tell(t, HEED_TRAIN_ROLLBACK);
    return heed__log_rollback(t->log, from, t->state.update, why->text, err);
}

/* Does what is decided, and decides what comes then: *d, of which only stop and last count. */
static heed_status act(heed_trainer *t, heed__decision *d, heed_error *err)
{
    heed_error wrong = {0};
    if (d->stop)
        return HEED_OK;
    heed_status status = d->save ? heed__whole_gather(t, &wrong) : HEED_OK;
    const bool gathered = !status; /* else all know, or do not hear this rank */
    if (gathered && heed__ranks_lead(t->ranks))
        status = look_after(t, d, &wrong);
    heed__whole_forget(t);
    if (!gathered)
        return heed__fail(err, status, "%s", wrong.text);
    const bool stop = d->stop, last = d->last;
    *d = heed__decide(t, HEED__FINISHED, status);
    d->stop = stop;
    /* The clock may have passed the limit since: then the next update is the last, which is
     * validated and saved, as this one was not. */
    d->last = d->last && (last || t->state.valid_update == t->state.update);
    status = heed__together_agree(t, d, status, &wrong);
    if (d->roll_back)
        return recover(t, t->state.update, &wrong, err);
    return status ? heed__fail(err, status, "%s", wrong.text) : HEED_OK;
}

static heed_status round_of(heed_trainer *t, heed__decision *d, heed_error *err)
{
    heed__update u;
    heed_error wrong = {0};
    const double begin = heed_clock_seconds();
    heed_status status = heed__trainer_update(t, &u, &wrong);
    if (!status && heed__ranks_lead(t->ranks)) {
        heed__trainer_tick(t);
        status = after_update(t, &u, heed_clock_seconds() - begin, &wrong);
    }
    *d = heed__decide(t, HEED__UPDATED, status);
    /* An update that diverged did so on all ranks.  Of anything else the others may know nothing:
     * they are doing something else, and there is no asking them. */
    if (!status || d->roll_back)
        status = heed__together_agree(t, d, status, &wrong);
    if (d->roll_back)
        return recover(t, t->state.update + 1, &wrong, err);
    return status ? heed__fail(err, status, "%s", wrong.text) : act(t, d, err);
}

/* ---- the end ---- */

/* The best weights, for whatever is to be done with them. */
static heed_status load_best(heed_trainer *t, heed_error *err)
{
    heed_status status = HEED_OK;
    for (int k = 0; !status && k < t->sets; k++) {
        heed__pathname path;
        heed__set_path(t, k, "model", path);
        status = heed_params_load(t->set[k].params, path, err);
    }
    return status;
}

static heed_status restore_best(heed_trainer *t, heed_error *err)
{
    heed_status status = HEED_OK;
    for (int k = 0; !status && k < t->sets; k++) {
        heed__pathname path, best;
        heed__set_path(t, k, "model", path);
        heed__set_path(t, k, "training/best", best);
        status = heed__file_copy(best, path, &t->allocator, err);
    }
    return status;
}

/* The average is kept if it validates no worse than the best save alone. */
static heed_status average(heed_trainer *t, heed_train_result *result, bool *stopped,
                           heed_error *err)
{
    const heed__train_state *s = &t->state;
    heed__validation v;
    int count;
    if (t->loop.average < 2 || s->n_candidates < 2)
        return HEED_OK;
    heed_status status = heed__candidates_average(t, &count, err);
    if (status || count < 2)
        return status;
    status = heed__trainer_measure(t, &v, err);
    *stopped = heed__decide(t, HEED__MEASURED, status).stop;
    if (status || *stopped)
        return status;
    const heed_measure m = heed__deciding(t, v.measure, v.measures);
    result->average_score = m.value;
    const bool better = !v.measures || !heed__measure_better(&s->best, m.value);
    result->averaged = better ? count : 0;
    return better ? heed__trainer_save_models(t, err) : restore_best(t, err);
}

static heed_status end(heed_trainer *t, heed_train_result *result, bool *stopped, heed_error *err)
{
    heed_status status = average(t, result, stopped, err);
    if (!status && !*stopped && t->task.finish) {
        status = load_best(t, err);
        heed_tape_reset(t->tape);
        heed_tape_set_training(t->tape, false);
        heed_tape_set_recording(t->tape, false);
        if (!status)
            status = t->task.finish(t->task.self, t->tape, t->place, err);
    }
    return status;
}

heed_status heed_trainer_run(heed_trainer *t, heed_train_result *result, heed_error *err)
{
    heed_error own = {0};
    heed__decision d = {0};
    if (!t || !result)
        return heed__fail(err, HEED_ARGUMENT, "there is no trainer, or no room for its result");
    *result = (heed_train_result){.average_score = NAN};
    const bool leads = heed__ranks_lead(t->ranks);
    t->clock = t->saved_clock = heed_clock_seconds();
    forget_speed(t);
    if (leads)
        heed__trainer_settle(t, &own);
    if (!own.status)
        d = heed__decide(t, HEED__UPDATED, HEED_OK);
    heed__together_agree(t, &d, own.status, &own);
    if (!own.status && (t->state.update || d.last))
        act(t, &d, &own);
    while (!own.status && !d.last && !d.stop)
        round_of(t, &d, &own);
    const bool stopped = d.stop; /* all of them; while the average is measured, rank 0 alone */
    if (leads && !own.status && !d.stop)
        end(t, result, &d.stop, &own);
    if (!own.status && stopped)
        heed__whole_gather(t, &own);
    if (leads && !own.status && d.stop)
        save(t, false, &own);
    heed__whole_forget(t);
    if (leads && !own.status)
        heed__curves_write(t, &own);
    describe(t, t->progress.event);
    result->reason = d.stop ? HEED_TRAIN_ASKED : d.reason;
    result->last = t->progress;
    return own.status ? heed__fail(err, own.status, "%s", own.text) : HEED_OK;
}
