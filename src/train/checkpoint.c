/* checkpoint.c: saves.  training/step-N/ holds, for each set of parameters, the weights, the
 * optimiser's moments and the moving average if there is one; and state.json with the checksums of
 * the others.
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

enum part { WEIGHTS, MOMENTS, AVERAGE, PARTS };
static const char *const part_names[PARTS] = {"model", "moments", "average"};

void heed__name_set_file(const heed_trainer *t, int set, const char *what, heed__set_file name)
{
    snprintf(name, sizeof(heed__set_file), "%s%s%.40s.safetensors", what, set ? "-" : "",
             set ? t->task.set_names[set] : "");
}

void heed__set_path(const heed_trainer *t, int set, const char *what, heed__pathname path)
{
    heed__set_file name;
    heed__name_set_file(t, set, what, name);
    heed__trainer_path(t, path, "%s", name);
}

/* The folder of a save in training/, ".tmp" while it is written. */
typedef char save_name[40];

static void name_save(int64_t update, const char *suffix, save_name name)
{
    snprintf(name, sizeof(save_name), "step-%lld%s", (long long)update, suffix);
}

void heed__save_point(const heed_trainer *t, const char *where)
{
    if (t->hooks.save_point)
        t->hooks.save_point(t->hooks.context, where);
}

/* ---- writing ---- */

static heed_status write_part(const heed__trained_set *set, enum part part, const char *path,
                              heed_error *err)
{
    heed_status status;
    if (part == MOMENTS)
        return heed__moments_save(set->optimizer, set->params, path, err);
    if (part == AVERAGE)
        heed_ema_swap(set->ema);
    status = heed_params_save(set->params, path, err);
    if (part == AVERAGE)
        heed_ema_swap(set->ema);
    return status;
}

/* The files of a set: all parts, or all but the average. */
static heed_status write_set(heed_trainer *t, int k, const char *save, heed__save_parts *parts,
                             heed_error *err)
{
    const heed__trained_set *set = &t->set[k];
    heed_status status = HEED_OK;
    for (int i = 0; !status && i < (set->ema ? PARTS : AVERAGE); i++) {
        heed__save_file *file = &parts->files[parts->n_files++];
        heed__pathname path;
        heed__name_set_file(t, k, part_names[i], file->name);
        heed__trainer_path(t, path, "training/%s/%s", save, file->name);
        if (!(status = write_part(set, (enum part)i, path, err)))
            status = heed__file_checksum(path, &file->sum, err);
        heed__save_point(t, file->name);
    }
    return status;
}

static heed_status write_files(heed_trainer *t, const char *save, heed_error *err)
{
    heed__save_parts parts = {.sets = t->sets};
    heed__pathname path;
    heed_status status = HEED_OK;
    for (int k = 0; !status && k < t->sets; k++) {
        status = write_set(t, k, save, &parts, err);
        parts.optimizer[k] = heed_optimizer_updates(t->set[k].optimizer);
        parts.ema[k] = t->set[k].ema ? heed_ema_updates(t->set[k].ema) : 0;
    }
    heed__trainer_path(t, path, "training/%s/state.json", save);
    if (!status)
        status = heed__state_write(path, &t->state, &parts, err);
    heed__save_point(t, "state.json");
    return status;
}

/* `latest` tells people (and scripts) which save is the newest; resume looks for itself. */
heed_status heed__checkpoint_point_latest(const heed_trainer *t, heed_error *err)
{
    heed__pathname temporary, path;
    save_name name;
    name_save(t->state.update, "", name);
    heed__trainer_path(t, temporary, "training/latest.tmp");
    heed__trainer_path(t, path, "training/latest");
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
    int64_t keep = t->loop.keep < HEED_MAX_KEEP ? t->loop.keep : HEED_MAX_KEEP;
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
    heed__pathname temporary, folder;
    save_name name;
    if (t->saved_update == t->state.update && (t->saved_scheduled || !scheduled))
        return HEED_OK;
    if (scheduled)
        remember_save(t);
    t->state.log_bytes = heed__log_bytes(t->log);
    t->state.n_data = t->task.data ? t->task.data(t->task.self, t->state.data) : 0;
    name_save(t->state.update, ".tmp", name);
    heed__trainer_path(t, temporary, "training/%s", name);
    heed__trainer_path(t, folder, "training/step-%lld", (long long)t->state.update);
    heed_status status = heed__prune_unfinished(t, err);
    if (!status)
        status = heed__folder_make(temporary, err);
    if (status)
        return status;
    heed__save_point(t, "begun");
    if (!(status = write_files(t, name, err)))
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

static heed_status verify(const heed_trainer *t, const char *save, const heed__save_parts *parts,
                          heed_error *err)
{
    for (int i = 0; i < parts->n_files; i++) {
        const heed__save_file *f = &parts->files[i];
        heed__pathname path;
        heed__checksum sum;
        heed__trainer_path(t, path, "training/%s/%s", save, f->name);
        heed_status status = heed__file_checksum(path, &sum, err);
        if (status)
            return status;
        if (sum.bytes != f->sum.bytes)
            return heed__fail(err, HEED_FORMAT, "'%.300s' has %lld bytes, expected %lld", path,
                              (long long)sum.bytes, (long long)f->sum.bytes);
        if (sum.crc != f->sum.crc)
            return heed__fail(err, HEED_FORMAT, "'%.300s' is damaged: checksum %08x, expected %08x",
                              path, (unsigned)sum.crc, (unsigned)f->sum.crc);
    }
    return HEED_OK;
}

/* The average comes first: it is loaded as weights, and those replace it then. */
static heed_status load_set(heed_trainer *t, int k, const char *save, heed_error *err)
{
    const heed__trained_set *set = &t->set[k];
    heed_status status = HEED_OK;
    for (int i = set->ema ? AVERAGE : WEIGHTS; !status; i = i == AVERAGE ? WEIGHTS : i + 1) {
        heed__pathname path;
        heed__set_file name;
        heed__name_set_file(t, k, part_names[i], name);
        heed__trainer_path(t, path, "training/%s/%s", save, name);
        status = i == MOMENTS ? heed__moments_load(set->optimizer, set->params, path, err)
                              : heed_params_load(set->params, path, err);
        if (!status && i == AVERAGE)
            memcpy(heed_ema_values(set->ema), heed_params_values(set->params),
                   (size_t)heed_params_size(set->params) * sizeof(heed_real));
        if (i == MOMENTS)
            break;
    }
    return status;
}

/* STATE, which is no reason to look for an older save. */
static heed_status same_data(const heed_trainer *t, const heed__train_state *s, heed_error *err)
{
    heed_fingerprint now[HEED_MAX_FINGERPRINTS];
    const int n = t->task.data ? t->task.data(t->task.self, now) : 0;
    for (int i = 0; i < s->n_data || i < n; i++) {
        if (i >= s->n_data || i >= n || strcmp(s->data[i].name, now[i].name) != 0)
            return heed__fail(err, HEED_STATE,
                              "cannot resume '%.200s': its save describes other data", t->folder);
        if (s->data[i].value != now[i].value)
            return heed__fail(
                err, HEED_STATE,
                "cannot resume '%.200s': its data has changed: %s %lld, expected %lld", t->folder,
                now[i].name, (long long)now[i].value, (long long)s->data[i].value);
    }
    return HEED_OK;
}

static heed_status read_state(heed_trainer *t, const char *save, int64_t update,
                              heed__train_state *state, heed__save_parts *parts, heed_error *err)
{
    heed__pathname path;
    int files = 0;
    for (int k = 0; k < t->sets; k++)
        files += t->set[k].ema ? PARTS : AVERAGE;
    heed__trainer_path(t, path, "training/%s/state.json", save);
    heed_status status = heed__state_read(path, state, parts, t->arena, err);
    if (!status && (state->update != update || parts->n_files != files || parts->sets != t->sets))
        status = heed__fail(err, HEED_FORMAT, "'%.300s' does not belong to this save", path);
    if (!status)
        status = same_data(t, state, err);
    return status ? status : verify(t, save, parts, err);
}

static heed_status load(heed_trainer *t, int64_t update, heed_error *err)
{
    save_name save;
    heed__save_parts parts;
    heed__train_state state;
    name_save(update, "", save);
    heed_status status = read_state(t, save, update, &state, &parts, err);
    for (int k = 0; !status && k < t->sets; k++)
        status = load_set(t, k, save, err);
    if (!status && t->task.seek)
        status = t->task.seek(t->task.self, state.position, err);
    if (status)
        return status;
    for (int k = 0; k < t->sets; k++) {
        heed_optimizer_set_updates(t->set[k].optimizer, parts.optimizer[k]);
        if (t->set[k].ema)
            heed_ema_set_updates(t->set[k].ema, parts.ema[k]);
        heed_params_zero_grads(t->set[k].params);
    }
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
    heed__trainer_path(t, training, "training");
    for (;;) {
        heed_error own = {0};
        n.update = -1;
        heed_status status = heed__folder_numbered(training, "step-", "", take_newest, &n, err);
        if (status)
            return status;
        if (n.update < 0)
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
