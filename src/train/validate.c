/* validate.c: how good the weights are, which are the best so far, and where those are written. */
#include "train/trainer.h"
#include <heed/io.h>

#include <math.h>
#include <string.h>

void heed__swap_averages(heed_trainer *t)
{
    for (int k = 0; k < t->sets; k++)
        if (t->set[k].ema)
            heed_ema_swap(t->set[k].ema);
}

heed_measure heed__deciding(const heed_trainer *t, const heed_measure *measure, int measures)
{
    for (int i = 0; t->task.best && i < measures; i++)
        if (strcmp(measure[i].name, t->task.best) == 0)
            return measure[i];
    return measures ? measure[0] : (heed_measure){.value = NAN};
}

bool heed__measure_better(const heed_measure *m, double than)
{
    return isfinite(m->value) &&
           (!isfinite(than) || (m->larger_is_better ? m->value > than : m->value < than));
}

double heed_train_measured(const heed_train_progress *p, const char *name)
{
    for (int i = 0; p && name && i < p->measures; i++)
        if (strcmp(p->measure[i].name, name) == 0)
            return p->measure[i].value;
    return NAN;
}

heed_status heed__trainer_measure(heed_trainer *t, heed__validation *v, heed_error *err)
{
    *v = (heed__validation){.measures = 0};
    if (!t->task.validate)
        return HEED_OK;
    heed_tape_reset(t->tape);
    heed_tape_set_training(t->tape, false);
    heed_tape_set_recording(t->tape, false);
    heed_status status = t->task.validate(t->task.self, t->tape, v->measure, &v->measures, err);
    const heed_error wrong = *heed_tape_error(t->tape);
    heed_tape_reset(t->tape);
    heed_tape_set_training(t->tape, true);
    heed_tape_set_recording(t->tape, true);
    return !status && wrong.status ? heed__fail(err, wrong.status, "%s", wrong.text) : status;
}

heed_status heed__trainer_validate(heed_trainer *t, heed__validation *v, heed_error *err)
{
    heed__swap_averages(t);
    heed_status status = heed__trainer_measure(t, v, err);
    heed__swap_averages(t);
    return status;
}

heed_status heed__trainer_publish(heed_trainer *t, heed_error *err)
{
    heed_status status = HEED_OK;
    for (int k = 0; k < t->sets; k++)
        for (int i = 0; !status && i < 2; i++) {
            heed__pathname path;
            heed__set_path(t, k, i == 0 ? "training/best" : "model", path);
            status = heed_params_save(t->set[k].params, path, err);
            heed__save_point(t, i == 0 ? "best" : "model");
        }
    return status;
}

/* The save that counts these weights as the best comes later: a kill in between makes the resumed
 * run write them again. */
heed_status heed__trainer_take(heed_trainer *t, const heed__validation *v, heed_error *err)
{
    heed__train_state *s = &t->state;
    heed_status status = HEED_OK;
    const heed_measure m = heed__deciding(t, v->measure, v->measures);
    const double first = v->measures ? v->measure[0].value : NAN;
    memcpy(s->measure, v->measure, sizeof s->measure);
    s->measures = v->measures;
    s->valid_update = s->update;
    const heed_measure tie = {.value = first,
                              .larger_is_better = v->measures && v->measure[0].larger_is_better};
    if (!v->measures || heed__measure_better(&m, s->best.value) ||
        (m.value == s->best.value && heed__measure_better(&tie, s->best_first))) {
        s->best = m;
        s->best_first = first;
        s->best_update = s->update;
        s->stale = 0;
        heed__swap_averages(t);
        status = heed__trainer_publish(t, err);
        heed__swap_averages(t);
    } else {
        s->stale++;
    }
    heed__trainer_tick(t);
    s->valid_seconds = s->seconds;
    return status;
}
