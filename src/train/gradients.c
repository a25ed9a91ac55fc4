/* gradients.c: the gradients of an update: those of all micro-batches, added up in their order.
 *
 * Each micro-batch starts from zero and is then added to those before it, so that it makes no
 * difference which process has computed it: micro-batch m is that of rank m % R.  The same goes for
 * what passes add to state, and for the losses that are shown. */
#include "nn/params.h"
#include "train/trainer.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

int heed__trainer_rounds(const heed_trainer *t)
{
    return (int)t->loop.accumulate / heed_ranks_size(t->ranks);
}

heed_tensor *heed__trainer_loss(heed_trainer *t, int64_t update, int set, int micro, double weight,
                                double *sum)
{
    const heed_rng_key key = {.seed = (uint64_t)t->loop.seed,
                              .step = (uint64_t)update,
                              .micro_batch = (uint32_t)micro,
                              .set = (uint32_t)set,
                              .node = HEED_TASK_NODE};
    const heed_pass pass = {update, set, micro, weight, heed_rng_stream(&key)};
    double shown_sum = NAN;
    heed_tape_reset(t->tape);
    heed_tape_step(t->tape, (uint64_t)update, (uint32_t)micro, 0);
    heed_tape_for_set(t->tape, (uint32_t)set);
    heed_tensor *loss = t->task.loss(t->task.self, t->tape, &pass, &shown_sum);
    if (isnan(shown_sum) && loss)
        shown_sum = (double)heed_tensor_data(loss)[0] / weight;
    *sum += shown_sum;
    return loss;
}

/* ---- memory ---- */

/* What the sums of the passes of several micro-batches need. */
static heed_status open_moved(heed_trainer *t, heed_error *err)
{
    const int n = heed_ranks_size(t->ranks) + 1; /* of each rank, and the total */
    for (int k = 0; k < t->sets; k++) {
        int64_t count;
        heed__params_moved(t->set[k].params, &count);
        const size_t doubles = (size_t)(n * count);
        if (!count)
            continue;
        t->set[k].moved = heed_arena_allocate(t->arena, doubles * sizeof(double));
        if (!t->set[k].moved)
            return heed__fail(err, HEED_MEMORY, "out of memory for state of %d processes", n - 1);
    }
    return HEED_OK;
}

heed_status heed__gradients_open(heed_trainer *t, heed_error *err)
{
    const int size = heed_ranks_size(t->ranks);
    int64_t most = 0;
    if (t->loop.accumulate % size)
        return heed__fail(err, HEED_ARGUMENT,
                          "%lld batches in an update cannot be shared by %d processes",
                          (long long)t->loop.accumulate, size);
    for (int k = 0; k < t->sets; k++) {
        const int64_t n = heed_params_size(t->set[k].params);
        most = n > most ? n : most;
    }
    t->told = heed_arena_allocate(t->arena, sizeof *t->told * 2 * (size_t)t->loop.accumulate);
    if (!t->told)
        return heed__fail(err, HEED_MEMORY, "out of memory for %lld batches",
                          (long long)t->loop.accumulate);
    if (t->loop.accumulate == 1)
        return HEED_OK;
    t->sum = heed__exact_sum_new(t->ranks, most, heed__trainer_rounds(t), &t->allocator, err);
    return t->sum ? open_moved(t, err) : err->status;
}

void heed__gradients_start(heed_trainer *t)
{
    for (int k = 0; k < t->sets; k++) {
        int64_t count;
        heed__params_moved(t->set[k].params, &count);
        if (t->set[k].moved)
            memset(t->set[k].moved, 0, (size_t)count * sizeof(double));
    }
}

/* ---- a round ---- */

static heed_status sum_gradients(heed_trainer *t, int k, int round, heed_error *err)
{
    heed_params *p = t->set[k].params;
    const int64_t n = heed_params_size(p);
    heed_status status = HEED_OK;
    for (int64_t b = heed__exact_sum_buckets(t->sum, n); !status && b-- > 0;)
        status = heed__exact_sum_add(t->sum, heed_params_grads(p), n, b, round, true, err);
    return status;
}

/* A pass may move state of any set. */
static heed_status sum_moved(heed_trainer *t, heed_error *err)
{
    heed_status status = HEED_OK;
    for (int k = 0; !status && k < t->sets; k++) {
        int64_t count;
        double *moved = heed__params_moved(t->set[k].params, &count);
        double *total = t->set[k].moved, *all = total ? total + count : NULL;
        if (!total)
            continue;
        status = heed__ranks_gather(t->ranks, moved, all, (size_t)count * sizeof *all, err);
        for (int i = 0; !status && i < heed_ranks_size(t->ranks); i++)
            heed__params_add_moved(t->set[k].params, total, all + i * count);
        memset(moved, 0, (size_t)count * sizeof *moved);
    }
    return status;
}

static void note_origin(heed__told *told, heed__origin origin)
{
    if (!origin.op)
        return;
    snprintf(told->op, sizeof told->op, "%s", origin.op);
    snprintf(told->parameter, sizeof told->parameter, "%s",
             origin.parameter ? origin.parameter : "");
}

static heed_status one_pass(heed_trainer *t, int k, int micro, double terms, heed__told *told,
                            heed_error *err)
{
    if (!(t->portion[micro].terms > 0))
        return HEED_OK;
    heed_tensor *loss = heed__trainer_loss(t, t->state.update + 1, k, micro, 1 / terms, &told->sum);
    if (heed_backward(t->tape, loss))
        return heed__fail(err, heed_tape_error(t->tape)->status, "%s",
                          heed_tape_error(t->tape)->text);
    if (!isfinite(told->sum))
        note_origin(told, heed__tape_not_finite(t->tape));
    return HEED_OK;
}

/* ---- all of them ---- */

static heed_status gather_told(heed_trainer *t, int k, heed__update *u, heed_error *err)
{
    const int rounds = heed__trainer_rounds(t), size = heed_ranks_size(t->ranks);
    heed__told *all = t->told + t->loop.accumulate;
    heed_status status =
        heed__ranks_gather(t->ranks, t->told, all, sizeof *all * (size_t)rounds, err);
    for (int m = 0; !status && m < (int)t->loop.accumulate; m++) {
        const heed__told *told = &all[m % size * rounds + m / size];
        u->sum[k] += told->sum;
        t->asked |= told->asked;
        if (*told->op && !u->origin.op)
            u->origin = (heed__origin){told->op, *told->parameter ? told->parameter : NULL};
    }
    return status;
}

heed_status heed__gradients_make(heed_trainer *t, int k, heed__update *u, heed_error *err)
{
    const int rounds = heed__trainer_rounds(t), size = heed_ranks_size(t->ranks);
    heed_status status = HEED_OK;
    memset(t->told, 0, sizeof *t->told * (size_t)rounds);
    t->told->asked = t->hooks.stop && t->hooks.stop(t->hooks.context);
    for (int i = 0; !status && i < rounds; i++) {
        status = one_pass(t, k, i * size + heed_ranks_rank(t->ranks), u->terms, &t->told[i], err);
        if (!status && t->sum)
            status = sum_gradients(t, k, i, err);
        if (!status && t->sum)
            status = sum_moved(t, err);
    }
    return status ? status : gather_told(t, k, u, err);
}

void heed__gradients_finish(heed_trainer *t)
{
    for (int k = 0; k < t->sets; k++) {
        int64_t count;
        double *moved = heed__params_moved(t->set[k].params, &count);
        if (t->set[k].moved)
            memcpy(moved, t->set[k].moved, (size_t)count * sizeof *moved);
    }
}
