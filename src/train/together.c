/* together.c: training by several processes: what rank 0 has, all have.  The others only train:
 * they neither validate nor save nor write a log, and do what rank 0 decides. */
#include "train/trainer.h"

#include <math.h>
#include <string.h>

/* ---- the start ---- */

/* Up to the first line of two config texts, `"rate": 0.1,`, that differs; false: none does. */
static bool other_line(const char **a, const char **b)
{
    const char *x = *a, *y = *b;
    for (; *x && *x == *y; x++, y++)
        if (*x == '\n') {
            *a = x + 1;
            *b = y + 1;
        }
    return *x || *y;
}

/* How long the line is that begins here, without what stands around a field. */
static int length_of_line(const char **line)
{
    *line += strspn(*line, " ");
    const int n = (int)strcspn(*line, "\n");
    return n && (*line)[n - 1] == ',' ? n - 1 : n;
}

/* The rank that has other options than rank 0 names the first of them.  The number of threads is
 * each machine's own. */
static heed_status same_options(heed_trainer *t, heed_error *err)
{
    const char *mine =
        t->task.options ? heed_option_config(t->task.options, t->task.values, t->arena) : NULL;
    const char *first = mine;
    if (heed__ranks_text(t->ranks, &first, t->arena, err))
        return err->status;
    while (mine && first && other_line(&mine, &first)) {
        const int n = length_of_line(&mine), m = length_of_line(&first);
        const char *threads = strstr(mine, "\"threads\"");
        if (!threads || threads > mine + n)
            return heed__fail(err, HEED_ARGUMENT, "the options differ: %.*s here, %.*s on rank 0",
                              n, mine, m, first);
        mine += n;
        first += m;
    }
    return HEED_OK;
}

static heed_status same_data(heed_trainer *t, heed_error *err)
{
    struct {
        int n;
        int64_t value[HEED_MAX_FINGERPRINTS];
    } first = {0};
    heed_fingerprint mine[HEED_MAX_FINGERPRINTS];
    const int n = t->task.data ? t->task.data(t->task.self, mine) : 0;
    first.n = n;
    for (int i = 0; i < n; i++)
        first.value[i] = mine[i].value;
    heed_status status = heed__ranks_broadcast(t->ranks, &first, sizeof first, err);
    for (int i = 0; !status && i < n; i++)
        if (first.n != n || first.value[i] != mine[i].value)
            return heed__fail(err, HEED_STATE, "the data differs: %s %lld here, %lld on rank 0",
                              mine[i].name, (long long)mine[i].value, (long long)first.value[i]);
    return status;
}

heed_status heed__together_give(heed_trainer *t, heed_error *err)
{
    const bool new = t->place != t->folder;
    const char *options = NULL;
    if (heed_ranks_size(t->ranks) == 1)
        return HEED_OK;
    if (new && t->task.describe && t->task.describe(t->task.self, t->place, err))
        return err->status;
    if (t->task.options &&
        !(options = heed_option_config(t->task.options, t->task.values, t->arena)))
        return heed__fail(err, HEED_MEMORY, "out of memory for options");
    return heed__ranks_give_folder(t->ranks, t->place, options, err);
}

heed_status heed__together_meet(heed_trainer *t, heed_error *err)
{
    if (heed_ranks_size(t->ranks) == 1)
        return HEED_OK;
    heed_status status = same_options(t, err);
    if (!status)
        status = same_data(t, err);
    if (!status)
        status = heed__together_share(t, err);
    heed__whole_forget(t);
    heed__ranks_forget_private(t->ranks);
    return status;
}

/* ---- moments in parts ---- */

const heed__exact_sum *heed__parts(const heed_trainer *t)
{
    return t->loop.shard_optimizer && heed_ranks_size(t->ranks) > 1 ? t->sum : NULL;
}

/* Moment i of a set, bucket by bucket, in t->bucket: rank 0's whole one to its owners, or back. */
static heed_status pass_moment(heed_trainer *t, const heed__trained_set *s, int i, bool out,
                               heed_error *err)
{
    const int64_t n = heed_params_size(s->params);
    heed_real *whole = heed_optimizer_moment(s->optimizer, i);
    heed_status status = HEED_OK;
    for (int64_t b = 0; !status && b < heed__exact_sum_buckets(t->sum, n); b++) {
        const int64_t first = b * heed__exact_sum_bucket_size(t->sum);
        const int64_t rest = n - first, size = heed__exact_sum_bucket_size(t->sum);
        const size_t bytes = (size_t)(rest < size ? rest : size) * sizeof *whole;
        heed_real *own = heed__optimizer_own(s->optimizer, i, b);
        int64_t begin, end;
        heed__exact_sum_own(t->sum, n, b, &begin, &end);
        const size_t mine = (size_t)(end - begin) * sizeof *own;
        if (out) {
            if (whole)
                memcpy(t->bucket, whole + first, bytes);
            if (!(status = heed__ranks_broadcast(t->ranks, t->bucket, bytes, err)))
                memcpy(own, t->bucket + (begin - first), mine);
        } else {
            memcpy(t->bucket + (begin - first), own, mine);
            status = heed__exact_sum_share(t->sum, HEED__CHANNEL_MAIN, t->bucket, n, b, err);
            if (!status && whole)
                memcpy(whole + first, t->bucket, bytes);
        }
    }
    return status;
}

static heed_status hand_out(heed_trainer *t, const heed__trained_set *s, int i, heed_error *err)
{
    return pass_moment(t, s, i, true, err);
}

heed_status heed__whole_zero(heed_trainer *t, heed_error *err)
{
    heed_status status = HEED_OK;
    for (int k = 0; heed__parts(t) && !status && k < t->sets; k++)
        status = heed__optimizer_whole(t->set[k].optimizer, err);
    return status;
}

void heed__whole_forget(heed_trainer *t)
{
    for (int k = 0; heed__parts(t) && k < t->sets; k++)
        heed__optimizer_part(t->set[k].optimizer);
}

heed_status heed__whole_gather(heed_trainer *t, heed_error *err)
{
    if (!heed__parts(t))
        return HEED_OK;
    heed_status status = heed__ranks_lead(t->ranks) ? heed__whole_zero(t, err) : HEED_OK;
    status = heed__ranks_agree(t->ranks, status, err);
    for (int k = 0; !status && k < t->sets; k++)
        for (int i = 0; !status && i < heed_optimizer_moments(t->set[k].optimizer); i++)
            status = pass_moment(t, &t->set[k], i, false, err);
    return status;
}

heed_status heed__together_weights(heed_trainer *t, int set, heed_error *err)
{
    heed_params *p = t->set[set].params;
    const int64_t n = heed_params_size(p);
    heed_status status = HEED_OK;
    for (int64_t b = 0; heed__parts(t) && !status && b < heed__exact_sum_buckets(t->sum, n); b++)
        status = heed__exact_sum_share(
            t->sum, HEED__CHANNEL_MAIN,
            heed_params_values(p) + b * heed__exact_sum_bucket_size(t->sum), n, b, err);
    return status;
}

/* Each rank's blocks lie in its own parts, and are zero in the others: there is one number for each
 * block that is not zero, and adding the zeros of the others changes nothing. */
heed_status heed__together_norm(heed_trainer *t, int set, double *norm, heed_error *err)
{
    const heed_params *p = t->set[set].params;
    const int64_t n = heed_params_size(p), blocks = (n + HEED_NORM_BLOCK - 1) / HEED_NORM_BLOCK;
    const int size = heed_ranks_size(t->ranks);
    double sum = 0;
    heed__grad_squares(heed_params_grads(p), n, t->squares, heed_tape_threads(t->tape));
    double *all = t->squares + blocks;
    heed_status status =
        heed__ranks_gather(t->ranks, t->squares, all, (size_t)blocks * sizeof *all, err);
    for (int64_t i = 0; !status && i < blocks; i++) {
        double block = 0;
        for (int r = 0; r < size; r++)
            block += all[r * blocks + i];
        sum += block;
    }
    *norm = sqrt(sum);
    return status;
}

/* ---- weights and where the run stands ---- */

static heed_status share_set(heed_trainer *t, int k, heed_error *err)
{
    const heed__trained_set *s = &t->set[k];
    const size_t bytes = (size_t)heed_params_size(s->params) * sizeof(heed_real);
    int64_t updates = heed_optimizer_updates(s->optimizer);
    heed_status status = heed__ranks_broadcast(t->ranks, heed_params_values(s->params), bytes, err);
    if (!status)
        status = heed__ranks_broadcast(
            t->ranks, heed_params_state_values(s->params),
            (size_t)heed_params_state_size(s->params) * sizeof(heed_real), err);
    for (int i = 0; !status && i < heed_optimizer_moments(s->optimizer); i++)
        status = heed__parts(t) ? hand_out(t, s, i, err)
                                : heed__ranks_broadcast(
                                      t->ranks, heed_optimizer_moment(s->optimizer, i), bytes, err);
    if (!status)
        status = heed__ranks_broadcast(t->ranks, &updates, sizeof updates, err);
    if (!status)
        heed_optimizer_set_updates(s->optimizer, updates);
    return status;
}

heed_status heed__together_share(heed_trainer *t, heed_error *err)
{
    struct {
        int64_t update, rollbacks;
        heed_position position;
    } stands = {t->state.update, t->state.rollbacks, t->state.position};
    if (heed_ranks_size(t->ranks) == 1)
        return HEED_OK;
    heed_status status = heed__ranks_broadcast(t->ranks, &stands, sizeof stands, err);
    for (int k = 0; !status && k < t->sets; k++)
        status = share_set(t, k, err);
    if (status)
        return status;
    if (!heed__ranks_lead(t->ranks)) {
        t->state.update = stands.update;
        t->state.rollbacks = stands.rollbacks;
        t->state.position = stands.position;
        for (int k = 0; k < t->sets; k++)
            heed_params_zero_grads(t->set[k].params);
    }
    /* Rank 0 has been there by itself, but data may be shared from here on. */
    return t->task.seek ? t->task.seek(t->task.self, stands.position, err) : HEED_OK;
}

/* ---- decisions ---- */

heed_status heed__together_agree(heed_trainer *t, heed__decision *d, heed_status status,
                                 heed_error *err)
{
    /* What went wrong in an update went wrong everywhere: only what rank 0 does alone is told. */
    return heed__ranks_agree_on(t->ranks, d, sizeof *d, status, err);
}
