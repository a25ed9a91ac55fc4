/* vit_data.c: the pictures that a Vision Transformer learns from: a folder for each class, or IDX
 * files; which of them are held out to validate with; the names of the classes. */
#include "base/error.h"
#include "base/memory.h"
#include "see/vit_task.h"

#include <heed/text.h>
#include <stdio.h>
#include <string.h>

#define KEPT ((int64_t)2 << 30) /* bytes of pictures that stay in memory */

/* What a random number is drawn for. */
enum { FOR_HOLDING_OUT = 3 };

/* ---- classes ---- */

heed_status heed__vit_class_names(const heed_pictures *p, heed_arena *arena,
                                  const char *const **names, heed_error *err)
{
    const int64_t n = heed_pictures_describe(p).classes;
    const char **all = heed_arena_allocate(arena, (size_t)n * sizeof *all);
    for (int64_t i = 0; all && i < n; i++) {
        const char *own = heed_pictures_class(p, i);
        const size_t length = own ? strlen(own) : 24;
        char *name = heed_arena_allocate(arena, length + 1);
        if (!name)
            return heed__fail(err, HEED_MEMORY, "out of memory for the names of classes");
        if (own)
            memcpy(name, own, length + 1);
        else
            snprintf(name, length + 1, "%lld", (long long)i);
        if (strchr(name, '\n') || !heed_utf8_valid(name, strlen(name), NULL))
            return heed__fail(err, HEED_FORMAT,
                              "class %lld is '%.200s', expected a name in UTF-8, of one line",
                              (long long)i, name);
        all[i] = name;
    }
    *names = all;
    return all ? HEED_OK : heed__fail(err, HEED_MEMORY, "out of memory for the names of classes");
}

heed_status heed__vit_match(const heed_pictures *p, const char *const *names, int64_t count,
                            const char *whose, heed_arena *arena, const int32_t **label,
                            heed_error *err)
{
    const char *const *own;
    const int64_t n = heed_pictures_describe(p).classes;
    int32_t *to = heed_arena_allocate(arena, (size_t)n * sizeof *to);
    if (!to)
        return heed__fail(err, HEED_MEMORY, "out of memory for classes");
    if (heed__vit_class_names(p, arena, &own, err))
        return err->status;
    for (int64_t i = 0; i < n; i++) {
        int32_t k = 0;
        while (k < count && strcmp(own[i], names[k]) != 0)
            k++;
        if (k == count)
            return heed__fail(err, HEED_FORMAT, "'%.200s' is no class that %s has", own[i], whose);
        to[i] = k;
    }
    *label = to;
    return HEED_OK;
}

/* ---- sets ---- */

static heed_pictures *open_set(const heed__vit_training *t, const char *images,
                               const heed_option_list *idx, const heed_pictures_options *o,
                               heed_error *err)
{
    return images ? heed_pictures_folder(images, o, &t->allocator, err)
                  : heed_pictures_idx(idx->items[0], idx->items[1], o, &t->allocator, err);
}

/* Files are decoded once, unless there are too many: what is wrong with one shows now. */
static heed_status keep(heed_pictures *p, heed_error *err)
{
    const heed_pictures_report r = heed_pictures_describe(p);
    const bool few = r.count < KEPT / (r.height * r.width * r.channels);
    return few ? heed_pictures_keep(p, err) : HEED_OK;
}

/* The size is asked of the set as it is; another one needs a set that scales. */
static heed_status open_train(heed__vit_training *t, heed_error *err)
{
    const heed_vit_train_options *o = &t->recipe.train;
    heed_vit_config *c = &t->recipe.model;
    const heed_pictures_options given = {c->side, c->side, c->channels};
    if (!(t->train.set = open_set(t, o->images, &o->idx, &given, err)))
        return err->status;
    t->train.owned = true;
    const heed_pictures_report r = heed_pictures_describe(t->train.set);
    heed__vit_choose_size(c, &r);
    if (r.height == c->side && r.width == c->side && r.channels == c->channels)
        return keep(t->train.set, err);
    const heed_pictures_options chosen = {c->side, c->side, c->channels};
    heed_pictures_free(t->train.set);
    t->train.set = open_set(t, o->images, &o->idx, &chosen, err);
    return t->train.set ? keep(t->train.set, err) : err->status;
}

static heed_status open_valid(heed__vit_training *t, heed_error *err)
{
    const heed_vit_train_options *o = &t->recipe.train;
    const heed_vit_config *c = &t->recipe.model;
    const heed_pictures_options same = {c->side, c->side, c->channels};
    if (!(t->valid.set = open_set(t, o->valid_images, &o->valid_idx, &same, err)))
        return err->status;
    t->valid.owned = true;
    if (keep(t->valid.set, err))
        return err->status;
    return heed__vit_match(t->valid.set, t->labels, c->classes, "the training set", t->arena,
                           &t->valid.label, err);
}

static heed_status all_of(heed__vit_training *t, heed__vit_part *part, heed_error *err)
{
    part->count = heed_pictures_describe(part->set).count;
    part->only = heed_arena_allocate(t->arena, (size_t)part->count * sizeof *part->only);
    if (!part->only)
        return heed__fail(err, HEED_MEMORY, "out of memory for %lld pictures",
                          (long long)part->count);
    for (int64_t i = 0; i < part->count; i++)
        part->only[i] = i;
    return HEED_OK;
}

/* Of each class the share, at least one picture, at most all but one, drawn by (seed, class). */
static heed_status hold_out(heed__vit_training *t, heed_error *err)
{
    const heed_pictures *p = t->train.set;
    const heed_pictures_report r = heed_pictures_describe(p);
    heed__vit_part *train = &t->train, *valid = &t->valid;
    int64_t *left = train->only,
            *one = heed_arena_allocate(t->arena, (size_t)r.count * sizeof *one);
    *valid = (heed__vit_part){.set = train->set, .label = train->label};
    valid->only = heed_arena_allocate(t->arena, (size_t)r.count * sizeof *valid->only);
    if (!one || !valid->only)
        return heed__fail(err, HEED_MEMORY, "out of memory for %lld pictures", (long long)r.count);
    train->count = 0;
    for (int64_t k = 0; k < r.classes; k++) {
        const heed_rng rng =
            heed_rng_stream(&(heed_rng_key){.seed = (uint64_t)t->recipe.train.loop.seed,
                                            .set = FOR_HOLDING_OUT,
                                            .node = (uint64_t)k});
        int64_t n = 0;
        for (int64_t i = 0; i < r.count; i++)
            if (heed_pictures_label(p, i) == k)
                one[n++] = i;
        if (n == 1)
            return heed__fail(err, HEED_FORMAT,
                              "class '%s' has 1 picture, expected at least 2: one to train on, one "
                              "to validate on",
                              t->labels[k]);
        const double share = t->recipe.train.hold_out * (double)n + 0.5;
        const int64_t held = n == 0                  ? 0
                             : share < 1             ? 1
                             : share > (double)n - 1 ? n - 1
                                                     : (int64_t)share;
        for (int64_t i = 0; i < held; i++) {
            const int64_t j = i + heed_rng_below(&rng, (uint64_t)i, n - i), kept = one[i];
            valid->only[valid->count++] = one[j];
            one[j] = kept;
        }
        for (int64_t i = held; i < n; i++)
            left[train->count++] = one[i];
    }
    return HEED_OK;
}

heed_status heed__vit_open_pictures(heed__vit_training *t, heed_error *err)
{
    const heed_vit_train_options *o = &t->recipe.train;
    heed_status status = open_train(t, err);
    if (status)
        return status;
    const heed_pictures_report r = heed_pictures_describe(t->train.set);
    t->recipe.model.classes = r.classes;
    if (r.classes < 2)
        return heed__fail(err, HEED_FORMAT, "%s has 1 class, expected at least 2",
                          o->images ? o->images : o->idx.items[1]);
    if (heed__vit_class_names(t->train.set, t->arena, &t->labels, err) ||
        heed__vit_match(t->train.set, t->labels, r.classes, "the training set", t->arena,
                        &t->train.label, err) ||
        all_of(t, &t->train, err))
        return err->status;
    if (!o->valid_images && !o->valid_idx.count)
        return hold_out(t, err);
    status = open_valid(t, err);
    return status ? status : all_of(t, &t->valid, err);
}
