/* stored_options.c: the options of a run in training/options.json, and which of them may change
 * when it is resumed: when a run ends, validates, saves and speaks. */
#include "base/option_parse.h"
#include "train/trainer.h"

#include <string.h>

heed_status heed__options_write(const heed_trainer *t, heed_error *err)
{
    heed__pathname path;
    if (!t->task.options)
        return HEED_OK;
    heed_arena *arena = heed_arena_new(&t->allocator, err);
    const char *text = arena ? heed_option_config(t->task.options, t->task.values, arena) : NULL;
    heed__trainer_path(t, path, "training/options.json");
    heed_status status = text ? heed_text_save(path, text, err)
                              : heed__fail(err, HEED_MEMORY, "out of memory for options");
    heed_arena_free(arena);
    return status;
}

static bool is_listed(const char *name, const char *const *names)
{
    for (; names && *names; names++)
        if (strcmp(*names, name) == 0)
            return true;
    return false;
}

static heed_status check_one(const heed_trainer *t, const heed_option *o, const char *stored,
                             heed_error *err)
{
    static const char *const loop[] = {
        "max-updates",  "max-epochs",  "max-minutes",   "patience",        "average",
        "average-kind", "valid-every", "valid-minutes", "save-every",      "save-minutes",
        "keep",         "log-every",   "threads",       "shard-optimizer", NULL};
    const char *values = t->task.values;
    const bool total =
        t->loop.schedule == HEED_SCHEDULE_COSINE || t->loop.schedule == HEED_SCHEDULE_LINEAR;
    if (heed__option_same(o, stored + o->offset, values + o->offset))
        return HEED_OK;
    if (total && strcmp(o->name, "max-updates") == 0)
        return heed__fail(err, HEED_ARGUMENT,
                          "--max-updates cannot change on resume: the learning rate of '%.200s' "
                          "depends on it; train on with --from, into another directory",
                          t->folder);
    if (!is_listed(o->name, loop) && !is_listed(o->name, t->task.may_change))
        return heed__fail(err, HEED_ARGUMENT,
                          "--%s cannot change on resume; leave it out, or train '%.200s' anew",
                          o->name, t->folder);
    if (strcmp(o->name, "threads") == 0)
        heed__trainer_say(t, HEED_LOG_WARNING,
                          "%lld threads instead of %lld: from here on the numbers may differ in "
                          "their last digits from a run without the change",
                          (long long)*(const int64_t *)(values + o->offset),
                          (long long)*(const int64_t *)(stored + o->offset));
    return HEED_OK;
}

heed_status heed__options_check(const heed_trainer *t, heed_error *err)
{
    const heed_option_set *set = t->task.options;
    heed__pathname path;
    heed_option_result result;
    if (!set)
        return HEED_OK;
    heed__trainer_path(t, path, "training/options.json");
    if (!heed__folder_exists(path))
        return heed__fail(err, HEED_IO, "cannot resume '%.400s': there is no training in it",
                          t->folder);
    heed_arena *arena = heed_arena_new(&t->allocator, err);
    char *stored = arena ? heed_arena_allocate(arena, t->task.values_size) : NULL;
    const char *const words[] = {"--config", path};
    heed_status status = stored ? heed_option_parse(set, 2, words, stored, arena, &result, err)
                                : heed__fail(err, HEED_MEMORY, "out of memory for options");
    for (int i = 0; !status && i < set->count; i++)
        status = check_one(t, &set->fields[i], stored, err);
    heed_arena_free(arena);
    return status;
}
