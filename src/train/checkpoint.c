/* checkpoint.c: saves.  training/step-N/ holds the weights, the optimiser's moments, the moving
 * average if there is one, and state.json with the checksums of the others.
 *
 * A save is written as training/step-N.tmp, every file and the directory synced, then renamed: it
 * is whole or has another name.  Only then are older ones removed.  Loading believes nothing that
 * does not match its checksum.  Saves of the schedule decide what the run becomes (averages, where
 * a rollback goes to); a save made by the clock or a signal only spares work, so that a run that
 * was interrupted ends with the same bits as one that was not. */
#include "train/trainer.h"
#include <heed/io.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char weights_name[] = HEED_SAVED_WEIGHTS;
static const char moments_name[] = "moments.safetensors";
static const char average_name[] = HEED_SAVED_AVERAGE;

void heed__save_point(const heed_trainer *t, const char *where)
{
    if (t->hooks.save_point)
        t->hooks.save_point(t->hooks.context, where);
}

/* ---- writing ---- */

/* One file of a save by its name. */
static heed_status write_file(heed_trainer *t, const char *name, const char *path, heed_error *err)
{
    heed_status status;
    if (name == moments_name)
        return heed__moments_save(t->optimizer, t->params, path, err);
    if (name == average_name)
        heed_ema_swap(t->ema);
    status = heed_params_save(t->params, path, err);
    if (name == average_name)
        heed_ema_swap(t->ema);
    return status;
}

static heed_status write_files(heed_trainer *t, const char *folder, heed_error *err)
{
    const char *const names[HEED_SAVE_FILES] = {weights_name, moments_name, average_name};
    heed__save_file files[HEED_SAVE_FILES] = {0};
    int count = t->ema ? 3 : 2;
    heed__pathname path;
    heed_status status = HEED_OK;
    for (int i = 0; !status && i < count; i++) {
        snprintf(files[i].name, sizeof files[i].name, "%s", names[i]);
        if (!(status = heed__pathname_format(path, err, "%s/%s", folder, names[i])) &&
            !(status = write_file(t, names[i], path, err)))
            status = heed__file_checksum(path, &files[i].sum, err);
        heed__save_point(t, names[i]);
    }
    if (!status)
        status = heed__pathname_format(path, err, "%s/state.json", folder);
    if (!status)
        status = heed__state_write(path, &t->state, heed_optimizer_updates(t->optimizer),
                                   t->ema ? heed_ema_updates(t->ema) : 0, files, count, err);
    heed__save_point(t, "state.json");
    return status;
}

/* `latest` tells people (and scripts) which save is the newest; resume looks for itself. */
heed_status heed__checkpoint_point_latest(const heed_trainer *t, heed_error *err)
{
    heed__pathname temporary, path;
    char name[32];
    snprintf(name, sizeof name, "step-%lld", (long long)t->state.update);
    heed_status status = heed__pathname_format(temporary, err, "%s/training/latest.tmp", t->place);
    if (!status)
        status = heed__pathname_format(path, err, "%s/training/latest", t->place);
    if (status)
        return status;
    unlink(temporary);
    if (symlink(name, temporary) != 0)
        return heed__fail(err, HEED_IO, "cannot write '%.400s': %s", temporary, strerror(errno));
    heed__save_point(t, "linked");
    return heed__folder_rename(temporary, path, err);
}

/* ---- saving ---- */

static void remember_save(heed_trainer *t)
{
    heed__train_state *s = &t->state;
    int64_t keep = t->recipe.train.keep < HEED_MAX_KEEP ? t->recipe.train.keep : HEED_MAX_KEEP;
    if (s->n_saves && s->saves[s->n_saves - 1] == s->update)
        return;
    while (s->n_saves >= keep) {
        memmove(s->saves, s->saves + 1, sizeof *s->saves * (size_t)(s->n_saves - 1));
        s->n_saves--;
    }
    s->saves[s->n_saves++] = s->update;
}

heed_status heed__checkpoint_save(heed_trainer *t, bool scheduled, heed_error *err)
{
    heed__pathname temporary, folder, training;
    if (t->saved_update == t->state.update && (t->saved_scheduled || !scheduled))
        return HEED_OK;
    if (scheduled)
        remember_save(t);
    heed_corpus_report data = heed_corpus_describe(t->corpus);
    heed_corpus_report valid = heed_corpus_describe(t->valid);
    t->state.log_bytes = heed__log_bytes(t->log);
    t->state.pairs = data.pairs;
    t->state.source_bytes = data.source_bytes;
    t->state.target_bytes = data.target_bytes;
    t->state.checksum = data.checksum;
    t->state.valid_pairs = valid.pairs;
    t->state.valid_source_bytes = valid.source_bytes;
    t->state.valid_target_bytes = valid.target_bytes;
    t->state.valid_checksum = valid.checksum;
    heed_status status = heed__pathname_format(training, err, "%s/training", t->place);
    if (!status)
        status = heed__pathname_format(folder, err, "%s/step-%lld", training,
                                       (long long)t->state.update);
    if (!status)
        status = heed__pathname_format(temporary, err, "%s.tmp", folder);
    if (!status)
        status = heed__prune_unfinished(t, err);
    if (!status)
        status = heed__folder_make(temporary, err);
    if (status)
        return status;
    heed__save_point(t, "begun");
    if (!(status = write_files(t, temporary, err)))
        status = heed__folder_sync(temporary, err);
    heed__save_point(t, "synced");
    /* What has this name is damaged, or was made by a signal before its validation. */
    if (!status && !(status = heed__folder_remove(folder, err)))
        status = heed__folder_rename(temporary, folder, err);
    if (status) {
        heed__folder_remove(temporary, NULL);
        return status;
    }
    t->saved_update = t->state.update;
    t->saved_scheduled = scheduled;
    heed__save_point(t, "renamed");
    if ((status = heed__checkpoint_point_latest(t, err)))
        return status;
    heed__save_point(t, "latest");
    status = heed__prune_unneeded(t, INT64_MAX, err);
    heed__save_point(t, "pruned");
    return status;
}

/* ---- loading ---- */

static heed_status verify(const char *folder, const heed__save_file *files, int count,
                          heed_error *err)
{
    for (int i = 0; i < count; i++) {
        heed__pathname path;
        heed__checksum sum;
        heed_status status = heed__pathname_format(path, err, "%s/%s", folder, files[i].name);
        if (!status)
            status = heed__file_checksum(path, &sum, err);
        if (status)
            return status;
        if (sum.bytes != files[i].sum.bytes)
            return heed__fail(err, HEED_FORMAT, "'%.300s' has %lld bytes, expected %lld", path,
                              (long long)sum.bytes, (long long)files[i].sum.bytes);
        if (sum.crc != files[i].sum.crc)
            return heed__fail(err, HEED_FORMAT, "'%.300s' is damaged: checksum %08x, expected %08x",
                              path, (unsigned)sum.crc, (unsigned)files[i].sum.crc);
    }
    return HEED_OK;
}

static heed_status load_file(heed_trainer *t, const char *folder, const char *name, heed_error *err)
{
    heed__pathname path;
    heed_status status = heed__pathname_format(path, err, "%s/%s", folder, name);
    if (!status)
        status = name == moments_name ? heed__moments_load(t->optimizer, t->params, path, err)
                                      : heed_params_load(t->params, path, err);
    if (!status && name == average_name)
        memcpy(heed_ema_values(t->ema), heed_params_values(t->params),
               (size_t)heed_params_size(t->params) * sizeof(heed_real));
    return status;
}

/* STATE, which is no reason to look for an older save. */
static heed_status same_text(const heed_trainer *t, const char *what, const heed_corpus *c,
                             const int64_t expected[4], heed_error *err)
{
    heed_corpus_report data = heed_corpus_describe(c);
    const bool same_size = data.pairs == expected[0] && data.source_bytes == expected[1] &&
                           data.target_bytes == expected[2];
    if (same_size && (expected[3] < 0 || data.checksum == expected[3]))
        return HEED_OK;
    if (same_size)
        return heed__fail(
            err, HEED_STATE,
            "cannot resume '%.200s': its %s data has changed: as many bytes, with the "
            "checksum %08x, expected %08x",
            t->folder, what, (unsigned)data.checksum, (unsigned)expected[3]);
    return heed__fail(err, HEED_STATE,
                      "cannot resume '%.200s': its %s data has changed: %lld pairs of %lld and "
                      "%lld bytes, expected %lld of %lld and %lld",
                      t->folder, what, (long long)data.pairs, (long long)data.source_bytes,
                      (long long)data.target_bytes, (long long)expected[0], (long long)expected[1],
                      (long long)expected[2]);
}

static heed_status same_data(const heed_trainer *t, const heed__train_state *s, heed_error *err)
{
    const int64_t train[] = {s->pairs, s->source_bytes, s->target_bytes, s->checksum};
    const int64_t valid[] = {s->valid_pairs, s->valid_source_bytes, s->valid_target_bytes,
                             s->valid_checksum};
    heed_status status = same_text(t, "training", t->corpus, train, err);
    return status || s->valid_pairs < 0 ? status : same_text(t, "validation", t->valid, valid, err);
}

static heed_status load(heed_trainer *t, int64_t update, heed_error *err)
{
    heed__pathname folder, path;
    heed__save_file files[HEED_SAVE_FILES] = {0};
    heed__train_state state;
    int64_t optimizer = 0, ema = 0;
    int count = 0;
    heed_status status =
        heed__pathname_format(folder, err, "%s/training/step-%lld", t->place, (long long)update);
    if (!status)
        status = heed__pathname_format(path, err, "%s/state.json", folder);
    if (!status)
        status = heed__state_read(path, &state, &optimizer, &ema, files, &count, err);
    if (!status && (state.update != update || count != (t->ema ? 3 : 2)))
        status = heed__fail(err, HEED_FORMAT, "'%.300s' does not belong to this save", path);
    if (!status)
        status = same_data(t, &state, err);
    if (!status)
        status = verify(folder, files, count, err);
    if (!status && t->ema)
        status = load_file(t, folder, average_name, err);
    if (!status)
        status = load_file(t, folder, weights_name, err);
    if (!status)
        status = load_file(t, folder, moments_name, err);
    if (!status)
        status = heed_batches_seek(t->batches, state.position, err);
    if (status)
        return status;
    heed_optimizer_set_updates(t->optimizer, optimizer);
    if (t->ema)
        heed_ema_set_updates(t->ema, ema);
    heed_params_zero_grads(t->params);
    t->state = state;
    t->saved_update = update;
    t->saved_scheduled = state.n_saves && state.saves[state.n_saves - 1] == update;
    return HEED_OK;
}

struct newest {
    int64_t below, update;
};

static void take_newest(void *context, int64_t update)
{
    struct newest *n = context;
    if (update < n->below && update > n->update)
        n->update = update;
}

heed_status heed__checkpoint_load_newest(heed_trainer *t, heed_error *err)
{
    struct newest n = {INT64_MAX, -1};
    heed__pathname training;
    heed_error first = {0};
    heed_status status = heed__pathname_format(training, err, "%s/training", t->place);
    while (!status) {
        heed_error own = {0};
        n.update = -1;
        status = heed__folder_numbered(training, "step-", "", take_newest, &n, err);
        if (status || n.update < 0)
            break;
        if (load(t, n.update, &own) == HEED_OK)
            return HEED_OK;
        if (own.status == HEED_STATE || own.status == HEED_MEMORY)
            return heed__fail(err, own.status, "%s", own.text);
        heed__trainer_say(t, HEED_LOG_WARNING, "save %lld is not whole (%s); trying the one before",
                          (long long)n.update, own.text);
        if (!first.status)
            first = own;
        n.below = n.update;
    }
    if (status)
        return status;
    return first.status ? heed__fail(err, first.status, "no whole save in '%.200s': %.250s",
                                     training, first.text)
                        : heed__fail(err, HEED_IO, "there is no save in '%.400s'", training);
}

heed_status heed__checkpoint_roll_back(heed_trainer *t, heed_error *err)
{
    if (!t->state.n_saves)
        return heed__fail(err, HEED_STATE, "there is no save to go back to");
    int64_t rollbacks = t->state.rollbacks, log_bytes = t->state.log_bytes;
    double seconds = t->state.seconds;
    int64_t to = t->state.saves[t->state.n_saves - 1];
    heed_status status = load(t, to, err);
    if (!status)
        status = heed__prune_newer(t, to, err);
    if (!status)
        status = heed__checkpoint_point_latest(t, err);
    t->state.rollbacks = rollbacks + 1;
    t->state.seconds = seconds;
    t->state.log_bytes = log_bytes;
    return status;
}
