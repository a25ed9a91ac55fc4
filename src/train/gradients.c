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

static heed_status open_parts(heed_trainer *t, int64_t most, heed_error *err)
{
    const size_t blocks = (size_t)((most + HEED_NORM_BLOCK - 1) / HEED_NORM_BLOCK);
    const size_t ranks = (size_t)heed_ranks_size(t->ranks) + 1;
    t->bucket = heed_arena_allocate(t->arena, (size_t)heed__exact_sum_bucket_size(t->sum) *
                                                  sizeof *t->bucket);
    t->squares = heed_arena_allocate(t->arena, blocks * ranks * sizeof *t->squares);
    return t->bucket && t->squares
               ? HEED_OK
               : heed__fail(err, HEED_MEMORY, "out of memory for moments in parts");
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
    t->work = heed_arena_allocate(t->arena, sizeof *t->work * (size_t)size);
    t->rank_speed = heed_arena_allocate(t->arena, sizeof *t->rank_speed * (size_t)size);
    if (!t->told || !t->work || !t->rank_speed)
        return heed__fail(err, HEED_MEMORY, "out of memory for %lld batches",
                          (long long)t->loop.accumulate);
    memset(t->work, 0, sizeof *t->work * (size_t)size);
    if (t->loop.accumulate == 1)
        return HEED_OK;
    t->sum = heed__exact_sum_new(t->ranks, most, heed__trainer_rounds(t), &t->allocator, err);
    if (t->sum && size > 1)
        t->overlap = heed__overlap_new(t->sum, most, &t->allocator, err);
    if (!t->sum || (size > 1 && !t->overlap))
        return err->status;
    heed_status status = heed__parts(t) ? open_parts(t, most, err) : HEED_OK;
    return status ? status : open_moved(t, err);
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

/* The loss of a micro-batch and its gradients, which are summed over the ranks meanwhile. */
static heed_status one_pass(heed_trainer *t, int k, int round, double terms, heed__told *told,
                            heed_error *err)
{
    const int micro = round * heed_ranks_size(t->ranks) + heed_ranks_rank(t->ranks);
    heed_params *p = t->set[k].params;
    const bool any = t->portion[micro].terms > 0;
    heed_tensor *loss =
        any ? heed__trainer_loss(t, t->state.update + 1, k, micro, 1 / terms, &told->sum) : NULL;
    if (!any)
        heed_tape_reset(t->tape);
    if (t->overlap)
        heed__overlap_begin(t->overlap, t->tape, p, round, !heed__parts(t));
    if (any)
        heed_backward(t->tape, loss);
    heed_status status = HEED_OK;
    if (t->overlap)
        status = heed__overlap_end(t->overlap, t->tape, &t->waited, err);
    else if (t->sum)
        for (int64_t b = heed__exact_sum_buckets(t->sum, heed_params_size(p)); b-- > 0;)
            heed__exact_sum_add(t->sum, heed_params_grads(p), heed_params_size(p), b, round, true,
                                NULL);
    const heed_error *wrong = heed_tape_error(t->tape);
    if (wrong->status)
        return heed__fail(err, wrong->status, "%s", wrong->text);
    if (!isfinite(told->sum))
        note_origin(told, heed__tape_not_finite(t->tape));
    return status;
}

/* ---- all of them ---- */

double heed__waited(const heed_trainer *t)
{
    return t->waited + heed__ranks_waited(t->ranks, HEED__CHANNEL_MAIN);
}

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
        t->work[m % size].items += k == 0 ? t->portion[m].items : 0;
        t->work[m % size].busy += told->busy;
        if (*told->op && !u->origin.op)
            u->origin = (heed__origin){told->op, *told->parameter ? told->parameter : NULL};
    }
    return status;
}

heed_status heed__gradients_make(heed_trainer *t, int k, heed__update *u, heed_error *err)
{
    const int rounds = heed__trainer_rounds(t);
    heed_status status = HEED_OK;
    memset(t->told, 0, sizeof *t->told * (size_t)rounds);
    t->told->asked = t->hooks.stop && t->hooks.stop(t->hooks.context);
    const double begin = heed_clock_seconds(), waited = heed__waited(t);
    for (int i = 0; !status && i < rounds; i++) {
        status = one_pass(t, k, i, u->terms, &t->told[i], err);
        if (!status && t->sum)
            status = sum_moved(t, err);
    }
    t->told->busy = heed_clock_seconds() - begin - (heed__waited(t) - waited);
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
