/* captioned.c: see captioned.h.  Words stand between blanks, in small letters. */
#include "see/captioned.h"

#include "base/error.h"
#include "base/path.h"
#include "task/run_options.h"

#include <string.h>

/* ---- words ---- */

/* ASCII letters; in the arena, NULL when memory is short. */
static char *small_letters(const char *text, heed_arena *arena)
{
    const size_t n = strlen(text);
    char *small = heed_arena_allocate(arena, n + 1);
    for (size_t i = 0; small && i <= n; i++)
        small[i] = (char)(text[i] >= 'A' && text[i] <= 'Z' ? text[i] - 'A' + 'a' : text[i]);
    return small;
}

heed_status heed__caption_encode(const heed_vocab *v, const char *text, heed_arena *arena,
                                 heed_tokens *tokens, heed_error *err)
{
    const char *small = small_letters(text, arena);
    return small ? heed_vocab_encode(v, small, strlen(small), arena, tokens, err)
                 : heed__fail(err, HEED_MEMORY, "out of memory for a caption");
}

heed_status heed__caption_encode_known(const heed_vocab *v, const char *text, heed_arena *arena,
                                       heed_tokens *tokens, heed_error *err)
{
    const int32_t unknown = heed_vocab_special(v).unk;
    const heed_status status = heed__caption_encode(v, text, arena, tokens, err);
    if (status)
        return status;
    if (!tokens->count)
        return heed__fail(err, HEED_ARGUMENT, "the text has no words");
    for (int64_t i = 0; i < tokens->count; i++) {
        if (tokens->id[i] != unknown)
            continue;
        while (*text == ' ')
            text++;
        for (int64_t k = 0; k < i; k++) {
            text += strcspn(text, " ");
            text += strspn(text, " ");
        }
        return heed__fail(err, HEED_ARGUMENT, "the model does not know the word '%.*s'",
                          (int)strcspn(text, " "), text);
    }
    return HEED_OK;
}

struct caption_lines {
    const heed__captions *d;
    int64_t picture, caption;
    heed_arena *line; /* of the one returned last */
};

static heed_status next_line(void *context, const char **text, size_t *length, heed_error *err)
{
    struct caption_lines *l = context;
    const heed__captions *d = l->d;
    while (l->picture < d->count &&
           l->caption == heed_pictures_captions_of(d->set, d->begin + l->picture)) {
        l->picture++;
        l->caption = 0;
    }
    *text = NULL;
    if (l->picture == d->count)
        return HEED_OK;
    heed_arena_reset(l->line);
    *text =
        small_letters(heed_pictures_caption(d->set, d->begin + l->picture, l->caption++), l->line);
    if (!*text)
        return heed__fail(err, HEED_MEMORY, "out of memory for a caption");
    *length = strlen(*text);
    return HEED_OK;
}

static heed_status learn_words(heed__captioned *t, const char *path, heed_error *err)
{
    struct caption_lines lines = {.d = &t->train, .line = heed_arena_new(&t->allocator, err)};
    const heed_line_source source = {next_line, &lines};
    const heed_vocab_options o = {
        .kind = HEED_WHITESPACE, .size = t->o->vocab_size, .min_count = t->o->vocab_min_count};
    const heed_status status =
        lines.line ? heed_vocab_train(&o, &source, path, &t->hooks.log, err) : err->status;
    heed_arena_free(lines.line);
    return status;
}

static heed_status number_captions(heed__captioned *t, heed__captions *d, heed_error *err)
{
    int64_t all = 0;
    d->first = heed_arena_allocate(t->arena, (size_t)(d->count + 1) * sizeof *d->first);
    for (int64_t i = 0; d->first && i <= d->count; i++) {
        d->first[i] = all;
        all += i < d->count ? heed_pictures_captions_of(d->set, d->begin + i) : 0;
    }
    d->tokens = heed_arena_allocate(t->arena, (size_t)all * sizeof *d->tokens);
    d->captions = all;
    if (!d->first || !d->tokens)
        return heed__fail(err, HEED_MEMORY, "out of memory for %lld captions", (long long)all);
    for (int64_t i = 0, k = 0; i < d->count; i++)
        for (int64_t n = 0; k < d->first[i + 1]; n++, k++)
            if (heed__caption_encode(t->vocab, heed_pictures_caption(d->set, d->begin + i, n),
                                     t->arena, &d->tokens[k], err))
                return err->status;
    return HEED_OK;
}

heed_status heed__captioned_words(heed__captioned *t, const char *folder, bool new_folder,
                                  heed_error *err)
{
    heed__pathname path;
    if (heed__pathname_format(path, err, "%s/" HEED__CAPTION_WORDS, folder) ||
        (new_folder && learn_words(t, path, err)) ||
        !(t->vocab = heed_vocab_open(path, NULL, &t->allocator, err)) ||
        number_captions(t, &t->train, err) || number_captions(t, &t->valid, err) ||
        !(t->params = heed_params_new(&t->allocator, err)))
        return err->status;
    return HEED_OK;
}

/* ---- pictures ---- */

heed_status heed__captioned_begin(heed__captioned *t, const char *folder, bool resume,
                                  const heed_option_set *set, void *recipe,
                                  const heed_train_hooks *hooks, const heed_allocator *a,
                                  heed_error *err)
{
    const char *words[2];
    heed_option_result result;
    t->allocator = *a;
    t->hooks = hooks ? *hooks : (heed_train_hooks){.progress = NULL};
    if (!(t->arena = heed_arena_new(a, err)) || !(t->update = heed_arena_new(a, err)) ||
        (resume && (heed__stored_options(folder, t->arena, words, err) ||
                    heed_option_parse(set, 2, words, recipe, t->arena, &result, err))))
        return err->status;
    return HEED_OK;
}

heed_status heed__captioned_check(const heed_caption_train_options *o, int64_t side,
                                  int64_t channels, int64_t stages, heed_error *err)
{
    if (!o->captions || !o->images)
        return heed__fail(
            err, HEED_ARGUMENT, "missing option '--%s': %s", o->captions ? "images" : "captions",
            o->captions ? "the folder or .tar.gz of the pictures" : "lines FILE TAB CAPTION");
    if (o->valid_images && !o->valid_captions)
        return heed__fail(err, HEED_ARGUMENT, "--valid-images needs --valid-captions");
    if (o->hold_out && o->valid_captions)
        return heed__fail(err, HEED_ARGUMENT,
                          "--hold-out is for training without --valid-captions");
    if (channels == 2)
        return heed__fail(err, HEED_ARGUMENT, "--channels is 2, expected 1 or 3");
    if (side >> stages < 2)
        return heed__fail(err, HEED_ARGUMENT,
                          "--stages %lld leaves nothing of %lld pixels to look at",
                          (long long)stages, (long long)side);
    return heed__loop_check(&o->loop, err);
}

static heed_pictures *open_set(const heed__captioned *t, const char *captions, const char *images,
                               heed_error *err)
{
    return heed_pictures_captions(
        captions, images,
        &(heed_pictures_options){.height = *t->side, .width = *t->side, .channels = *t->channels},
        &t->allocator, err);
}

static heed_status open_pictures(heed__captioned *t, heed_error *err)
{
    const heed_caption_train_options *o = t->o;
    if (!(t->train.set = open_set(t, o->captions, o->images, err)))
        return err->status;
    t->train.owned = true;
    t->train.count = heed_pictures_describe(t->train.set).count;
    if (o->valid_captions) {
        t->valid.set =
            open_set(t, o->valid_captions, o->valid_images ? o->valid_images : o->images, err);
        if (!t->valid.set)
            return err->status;
        t->valid.owned = true;
        t->valid.count = heed_pictures_describe(t->valid.set).count;
        return HEED_OK;
    }
    const int64_t held = o->hold_out ? o->hold_out : (t->train.count + 19) / 20;
    if (held >= t->train.count)
        return heed__fail(err, HEED_ARGUMENT,
                          "of %lld pictures, %lld cannot be held out to validate with",
                          (long long)t->train.count, (long long)held);
    t->train.count -= held;
    t->valid = (heed__captions){.set = t->train.set, .begin = t->train.count, .count = held};
    return HEED_OK;
}

heed_status heed__captioned_open(heed__captioned *t, const heed_option_set *set, void *recipe,
                                 heed_error *err)
{
    static const char *const files[] = {"captions", "images", "valid-captions", "valid-images",
                                        NULL};
    if (heed__options_check_names(set, recipe, err) ||
        heed__options_absolute(set, recipe, files, t->arena, err))
        return err->status;
    return open_pictures(t, err);
}

void heed__captioned_end(heed__captioned *t)
{
    heed_picture_batches_free(t->train_batches);
    heed_picture_batches_free(t->valid_batches);
    heed_params_free(t->params);
    heed_vocab_free(t->vocab);
    if (t->valid.owned)
        heed_pictures_free(t->valid.set);
    if (t->train.owned)
        heed_pictures_free(t->train.set);
    heed_arena_free(t->update);
    heed_arena_free(t->arena);
}

/* ---- batches ---- */

static heed_picture_batches *stream(const heed__captioned *t, const heed__captions *d, bool train,
                                    heed_error *err)
{
    return heed_picture_batches_new(
        d->set,
        &(heed_picture_batches_options){.batch = t->o->batch,
                                        .begin = d->begin,
                                        .count = d->count,
                                        .in_order = !train,
                                        .seed = (uint64_t)t->o->loop.seed,
                                        .mean = 0.5,
                                        .deviation = 0.5,
                                        .augment.mirror = train && t->o->mirror},
        &t->allocator, err);
}

heed_status heed__captioned_start(heed__captioned *t, heed_error *err)
{
    if (heed_params_finish(t->params, (uint64_t)t->o->loop.seed, err) ||
        !(t->train_batches = stream(t, &t->train, true, err)) ||
        !(t->valid_batches = stream(t, &t->valid, false, err)))
        return err->status;
    return HEED_OK;
}

heed_status heed__captioned_take(heed__captioned *t, heed_picture_batch *p, heed_error *err)
{
    if (heed_picture_batches_next(t->train_batches, p, err))
        return err->status;
    const size_t bytes =
        (size_t)(p->count * *t->side * *t->side * *t->channels) * sizeof *p->features;
    heed_real *kept = heed_arena_allocate(t->update, bytes);
    if (!kept)
        return heed__fail(err, HEED_MEMORY, "out of memory for a batch");
    p->features = memcpy(kept, p->features, bytes);
    return HEED_OK;
}

heed_params *heed__captioned_params(void *self, int set)
{
    (void)set;
    return ((heed__captioned *)self)->params;
}

int heed__captioned_data(void *self, heed_fingerprint *out)
{
    const heed__captioned *t = self;
    const heed_pictures_report r = heed_pictures_describe(t->train.set),
                               v = heed_pictures_describe(t->valid.set);
    out[0] = (heed_fingerprint){"training pictures", t->train.count};
    out[1] = (heed_fingerprint){"checksum of the training captions", r.checksum};
    out[2] = (heed_fingerprint){"validation pictures", t->valid.count};
    out[3] = (heed_fingerprint){"checksum of the validation captions", v.checksum};
    return 4;
}

heed_position heed__captioned_tell(void *self)
{
    const heed_picture_position p =
        heed_picture_batches_tell(((heed__captioned *)self)->train_batches);
    return (heed_position){.epoch = p.epoch, .at = {p.batch}};
}

heed_status heed__captioned_seek(void *self, heed_position p, heed_error *err)
{
    return heed_picture_batches_seek(((heed__captioned *)self)->train_batches,
                                     (heed_picture_position){p.epoch, p.at[0]}, err);
}
