/* run_options.c: options of a run, whatever its task: which were given, which files they name,
 * which do not go together. */
#include "task/run_options.h"
#include "base/folder.h"
#include "base/option_parse.h"
#include "data/corpus_parts.h"

#include <heed/text.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool heed__option_given(const heed_option_set *set, const heed_option_origins *origins,
                        const void *values, const void *plain, const char *name)
{
    const heed_option *o = heed__option_find(set, name, strlen(name));
    return heed_option_origin_of(origins, name) != HEED_OPTION_BY_DEFAULT ||
           !heed__option_same(o, (const char *)values + o->offset, (const char *)plain + o->offset);
}

bool heed__option_typed(const heed_option_origins *origins, const char *name)
{
    return heed_option_origin_of(origins, name) == HEED_OPTION_BY_COMMAND_LINE;
}

/* ---- what would have no effect ---- */

heed_status heed__check_heard(const heed_option_origins *origins, const heed_model_config *model,
                              const heed_loop_options *loop, heed_error *err)
{
    static const char adam[] = "needs --optimizer adam or adamw";
    const bool is_adam = loop->optimizer == HEED_ADAM || loop->optimizer == HEED_ADAMW;
    const struct {
        const char *name;
        bool heard;
        const char *otherwise; /* what is said if not */
    } needs[] = {
        {"beta1", is_adam, adam},
        {"beta2", is_adam, adam},
        {"eps", loop->optimizer != HEED_SGD, "needs --optimizer adam, adamw or rmsprop"},
        {"span-penalty", model->attention.adaptive_span > 0, "needs --adaptive-span"},
        {"attention-beta", model->attention.score == HEED_SCORE_COSINE,
         "needs --attention-score cosine"},
        {"scale-scores", model->attention.score == HEED_SCORE_SCALED_DOT,
         "needs --attention-score scaled-dot"},
        {"rope-base", heed_positions_are_rotary((heed_positions)model->transformer.positions),
         "needs --positions rotary or rotary-neighbours"},
    };
    for (size_t i = 0; i < sizeof needs / sizeof *needs; i++)
        if (heed__option_typed(origins, needs[i].name) && !needs[i].heard)
            return heed__fail(err, HEED_ARGUMENT, "--%s %s", needs[i].name, needs[i].otherwise);
    return HEED_OK;
}

/* ---- names of files ---- */

/* A name that does not exist stays as it is: whoever opens it says so; behind it stays a share. */
static heed_status make_absolute(const char **name, heed_arena *arena, heed_error *err)
{
    heed__pathname full, path;
    double share;
    if (!*name || heed__share_split(*name, path, &share, NULL) || !realpath(path, full))
        return HEED_OK;
    const char *const rest = *name + strlen(path);
    const size_t n = strlen(full), more = strlen(rest) + 1;
    char *copy = heed_arena_allocate(arena, n + more);
    if (!copy)
        return heed__fail(err, HEED_MEMORY, "out of memory for options");
    memcpy(copy, full, n);
    memcpy(copy + n, rest, more);
    *name = copy;
    return HEED_OK;
}

static heed_status make_list_absolute(heed_option_list *list, heed_arena *arena, heed_error *err)
{
    heed_status status = HEED_OK;
    const char **items = heed_arena_allocate(arena, sizeof *items * (size_t)(list->count + 1));
    if (!items)
        return heed__fail(err, HEED_MEMORY, "out of memory for options");
    for (int i = 0; !status && i < list->count; i++) {
        items[i] = list->items[i];
        status = make_absolute(&items[i], arena, err);
    }
    list->items = items;
    return status;
}

heed_status heed__options_absolute(const heed_option_set *set, void *values,
                                   const char *const *names, heed_arena *arena, heed_error *err)
{
    heed_status status = HEED_OK;
    for (; !status && *names; names++) {
        const heed_option *o = heed__option_find(set, *names, strlen(*names));
        void *value = (char *)values + o->offset;
        status = o->type == HEED_OPTION_TYPE_LIST ? make_list_absolute(value, arena, err)
                                                  : make_absolute(value, arena, err);
    }
    return status;
}

/* Names are stored as they are from the root on. */
static heed_status check_name(const heed_option *o, const char *name, heed_error *err)
{
    heed__pathname full;
    const char *kept = name && realpath(name, full) ? full : name;
    if (!kept || heed_utf8_valid(kept, strlen(kept), NULL))
        return HEED_OK;
    return heed__fail(err, HEED_ARGUMENT,
                      "--%s is '%.300s', expected UTF-8: a run could not be resumed otherwise",
                      o->name, kept);
}

heed_status heed__options_check_names(const heed_option_set *set, const void *values,
                                      heed_error *err)
{
    heed_status status = HEED_OK;
    for (int i = 0; !status && i < set->count; i++) {
        const heed_option *o = &set->fields[i];
        const void *value = (const char *)values + o->offset;
        const heed_option_list *list = value;
        if (o->type == HEED_OPTION_TYPE_TEXT)
            status = check_name(o, *(const char *const *)value, err);
        for (int k = 0; o->type == HEED_OPTION_TYPE_LIST && !status && k < list->count; k++)
            status = check_name(o, list->items[k], err);
    }
    return status;
}

heed_status heed__stored_options(const char *folder, heed_arena *arena, const char *words[2],
                                 heed_error *err)
{
    char *path = heed_arena_allocate(arena, sizeof(heed__pathname));
    if (!path)
        return heed__fail(err, HEED_MEMORY, "out of memory for a path");
    heed_status status = heed__pathname_format(path, err, "%s/training/options.json", folder);
    if (status)
        return status;
    if (!heed__folder_exists(path))
        return heed__fail(err, HEED_IO, "cannot resume '%.400s': there is no training in it",
                          folder);
    words[0] = "--config";
    words[1] = path;
    return HEED_OK;
}

/* ---- the loop ---- */

void heed__loop_resolve(heed_loop_options *o)
{
    if (!o->threads) {
        heed_machine m;
        heed_machine_describe(&m);
        o->threads = m.threads;
    }
    if (o->rate == 0)
        o->rate = o->schedule == HEED_SCHEDULE_NOAM ? 1 : 0.001;
}

heed_status heed__loop_check(const heed_loop_options *o, heed_error *err)
{
    const bool total = o->schedule == HEED_SCHEDULE_COSINE || o->schedule == HEED_SCHEDULE_LINEAR;
    if (total && !o->max_updates)
        return heed__fail(err, HEED_ARGUMENT, "--schedule %s needs --max-updates to end at",
                          o->schedule == HEED_SCHEDULE_COSINE ? "cosine" : "linear");
    if (total && o->warmup >= o->max_updates)
        return heed__fail(err, HEED_ARGUMENT,
                          "--warmup is %lld, expected less than the %lld of --max-updates",
                          (long long)o->warmup, (long long)o->max_updates);
    if ((o->schedule == HEED_SCHEDULE_NOAM || o->schedule == HEED_SCHEDULE_INVERSE_SQRT) &&
        !o->warmup)
        return heed__fail(err, HEED_ARGUMENT, "this --schedule needs a --warmup of at least 1");
    if (o->weight_decay > 0 && o->optimizer != HEED_ADAMW)
        return heed__fail(err, HEED_ARGUMENT, "--weight-decay needs --optimizer adamw");
    if (o->momentum > 0 && (o->optimizer == HEED_ADAM || o->optimizer == HEED_ADAMW))
        return heed__fail(err, HEED_ARGUMENT, "--momentum needs --optimizer sgd or rmsprop");
    if (o->rate_floor > 0 && !total)
        return heed__fail(err, HEED_ARGUMENT, "--rate-floor needs --schedule cosine or linear");
    if (o->rate_floor > o->rate)
        return heed__fail(err, HEED_ARGUMENT,
                          "--rate-floor is %g, expected at most the %g of --rate", o->rate_floor,
                          o->rate);
    if (!o->valid_every && o->valid_minutes == 0 && !o->max_updates && !o->max_epochs &&
        o->max_minutes == 0)
        return heed__fail(err, HEED_ARGUMENT,
                          "nothing would ever stop this run: give --max-updates, --max-epochs, "
                          "--max-minutes or --valid-every");
    return HEED_OK;
}

/* ---- choosing ---- */

double heed__clamp(double x, double low, double high)
{
    return x < low ? low : x > high ? high : x;
}

int64_t heed__rounded(double x)
{
    if (!(x > 10))
        return (int64_t)fmax(x, 1);
    const double unit = pow(10, floor(log10(x)) - 1);
    return (int64_t)(floor(x / unit + 0.5) * unit + 0.5);
}

const char *heed__duration(double seconds, char text[48])
{
    const long long minutes = (long long)(seconds / 60 + 0.5);
    if (minutes < 1)
        snprintf(text, 48, "less than a minute");
    else if (minutes < 100)
        snprintf(text, 48, "about %lld min", minutes);
    else
        snprintf(text, 48, "about %lld h %lld min", minutes / 60, minutes % 60);
    return text;
}
