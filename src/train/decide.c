/* decide.c: every decision of a clock or a signal: stop, validate, save, roll back, end. */
#include "train/trainer.h"

#include <math.h>

#define DEFAULT_PATIENCE 10

void heed__trainer_tick(heed_trainer *t)
{
    const double at = heed_clock_seconds();
    t->state.seconds += at - t->clock;
    t->clock = at;
}

double heed__fraction_done(const heed_trainer *t)
{
    const heed_loop_options *o = &t->loop;
    const heed__train_state *s = &t->state;
    double f = 0;
    if (o->max_updates > 0)
        f = fmax(f, (double)s->update / (double)o->max_updates);
    if (o->max_epochs && s->update)
        f = fmax(f, ((double)s->position.epoch + t->share) / (double)o->max_epochs);
    if (o->max_minutes > 0)
        f = fmax(f, s->seconds / (60 * o->max_minutes));
    return fmin(f, 1);
}

static bool limit_reached(const heed_trainer *t, heed_train_reason *reason)
{
    const heed_loop_options *o = &t->loop;
    const heed__train_state *s = &t->state;
    const bool other = o->max_updates || o->max_epochs || o->max_minutes > 0;
    const int64_t patience = o->patience ? o->patience : other ? INT64_MAX : DEFAULT_PATIENCE;
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

static bool due(int64_t update, int64_t every)
{
    return every && update % every == 0;
}

/* Validation and saves that this update asks for and that have not been. */
static void decide_what_is_due(const heed_trainer *t, heed__decision *d)
{
    const heed_loop_options *o = &t->loop;
    const heed__train_state *s = &t->state;
    const bool minutes =
        o->valid_minutes > 0 && s->seconds - s->valid_seconds >= 60 * o->valid_minutes;
    d->validate =
        (due(s->update, o->valid_every) || d->last || minutes) && s->valid_update != s->update;
    d->scheduled = d->validate || due(s->update, o->save_every);
    d->save = d->scheduled || (o->save_minutes > 0 &&
                               heed_clock_seconds() - t->saved_clock >= 60 * o->save_minutes);
}

heed__decision heed__decide(heed_trainer *t, heed__moment moment, heed_status status)
{
    heed__decision d = {.reason = HEED_TRAIN_ASKED};
    if (moment != HEED__UPDATED) /* the clock stands at the end of the update */
        heed__trainer_tick(t);
    d.roll_back = status == HEED_NUMERIC;
    if (status)
        return d;
    d.stop = moment != HEED__FINISHED &&
             (t->asked || (t->hooks.stop && t->hooks.stop(t->hooks.context)));
    d.last = moment != HEED__MEASURED && limit_reached(t, &d.reason);
    if (moment == HEED__UPDATED)
        decide_what_is_due(t, &d);
    return d;
}
