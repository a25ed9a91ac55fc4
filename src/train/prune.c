/* prune.c: which saves stay.  Of the saves of the schedule the last --keep; of those that the
 * average at the end will want, the weights; one made by the clock or a signal until the next of
 * the schedule. */
#include "train/trainer.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

struct pruning {
    const heed_trainer *t;
    int64_t above; /* remove only saves newer than this; INT64_MIN: those that nothing needs, */
    int64_t below; /* if they are older than this */
    heed_status status;
    heed_error *err;
    const char *folder; /* of abandoned files: "" or "training/" */
};

static bool is_needed(const heed_trainer *t, int64_t update)
{
    bool needed = update == t->state.update;
    for (int i = 0; i < t->state.n_saves; i++)
        needed = needed || t->state.saves[i] == update;
    return needed;
}

static void kept_name(const heed_trainer *t, int64_t update, int set, heed__pathname path)
{
    heed__trainer_path(t, path, "training/weights/step-%lld%s%.40s.safetensors", (long long)update,
                       set ? "-" : "", set ? t->task.set_names[set] : "");
}

static void saved_name(const heed_trainer *t, int64_t update, int set, heed__pathname path)
{
    heed__set_file name;
    heed__name_set_file(t, set, t->set[set].ema ? "average" : "model", name);
    heed__trainer_path(t, path, "training/step-%lld/%s", (long long)update, name);
}

static heed_status keep_weights(const heed_trainer *t, int64_t update, heed_error *err)
{
    heed_status status = HEED_OK;
    for (int k = 0; !status && k < t->sets; k++) {
        heed__pathname weights, kept;
        saved_name(t, update, k, weights);
        kept_name(t, update, k, kept);
        if (heed__folder_exists(weights))
            status = heed__folder_rename(weights, kept, err);
        heed__save_point(t, "kept");
    }
    return status;
}

/* A save whose weights the average will want leaves them behind. */
static void prune_save(void *context, int64_t update)
{
    struct pruning *p = context;
    const heed_trainer *t = p->t;
    heed__pathname folder;
    bool older = p->above == INT64_MIN;
    if (p->status || (older ? update >= p->below || is_needed(t, update) : update <= p->above))
        return;
    heed__trainer_path(t, folder, "training/step-%lld", (long long)update);
    if (older && heed__candidates_hold(&t->state, update))
        p->status = keep_weights(t, update, p->err);
    if (!p->status)
        p->status = heed__folder_remove(folder, p->err);
}

/* Those of the first set are found by their number, the others with them; the first go last. */
static void prune_weights(void *context, int64_t update)
{
    struct pruning *p = context;
    heed__pathname path;
    if (update >= p->below || heed__candidates_hold(&p->t->state, update))
        return;
    for (int k = p->t->sets; !p->status && k-- > 0;) {
        kept_name(p->t, update, k, path);
        if (unlink(path) != 0 && errno != ENOENT)
            p->status =
                heed__fail(p->err, HEED_IO, "cannot remove '%.400s': %s", path, strerror(errno));
    }
}

static void prune_unfinished(void *context, int64_t update)
{
    struct pruning *p = context;
    heed__pathname path;
    heed__trainer_path(p->t, path, "training/step-%lld.tmp", (long long)update);
    if (!p->status)
        p->status = heed__folder_remove(path, p->err);
}

/* The file that a process was writing when it was killed. */
static void prune_abandoned(void *context, int64_t process)
{
    struct pruning *p = context;
    heed__pathname path;
    heed__trainer_path(p->t, path, "%s.heed-%lld-0.tmp", p->folder, (long long)process);
    if (!p->status && unlink(path) != 0 && errno != ENOENT)
        p->status =
            heed__fail(p->err, HEED_IO, "cannot remove '%.400s': %s", path, strerror(errno));
}

static heed_status visit(const heed_trainer *t, const char *folder, const char *suffix,
                         void (*each)(void *, int64_t), struct pruning *p)
{
    heed__pathname path;
    heed__trainer_path(t, path, "%s", folder);
    heed_status status = heed__folder_numbered(path, "step-", suffix, each, p, p->err);
    return status ? status : p->status;
}

heed_status heed__prune_unneeded(const heed_trainer *t, int64_t below, heed_error *err)
{
    struct pruning p = {.t = t, .above = INT64_MIN, .below = below, .err = err};
    heed_status status = visit(t, "training", "", prune_save, &p);
    return status ? status : visit(t, "training/weights", ".safetensors", prune_weights, &p);
}

heed_status heed__prune_newer(const heed_trainer *t, int64_t update, heed_error *err)
{
    struct pruning p = {.t = t, .above = update, .err = err};
    return visit(t, "training", "", prune_save, &p);
}

heed_status heed__prune_unfinished(const heed_trainer *t, heed_error *err)
{
    struct pruning p = {.t = t, .err = err};
    static const char *const folders[] = {"", "training/"};
    heed_status status = visit(t, "training", ".tmp", prune_unfinished, &p);
    for (int i = 0; !status && i < 2; i++) {
        heed__pathname path;
        p.folder = folders[i];
        heed__trainer_path(t, path, "%s", p.folder);
        status = heed__folder_numbered(path, ".heed-", "-0.tmp", prune_abandoned, &p, err);
        status = status ? status : p.status;
    }
    return status;
}

void heed__checkpoint_weights(const heed_trainer *t, int64_t update, int set, heed__pathname path)
{
    saved_name(t, update, set, path);
    if (!heed__folder_exists(path))
        kept_name(t, update, set, path);
}
