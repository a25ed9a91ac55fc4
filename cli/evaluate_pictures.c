/* evaluate_pictures.c: how good a picture classifier's labels are. */
#include "command.h"
#include "evaluate_examples.h"
#include "label_figures.h"

#include <heed/vit.h>

#define AT_ONCE 64

static heed_pictures *open_set(const struct example_files *f, const heed_vit_config *c,
                               heed_error *err)
{
    const heed_pictures_options o = {c->side, c->side, c->channels};
    return f->images ? heed_pictures_folder(f->images, &o, NULL, err)
                     : heed_pictures_idx(f->idx.items[0], f->idx.items[1], &o, NULL, err);
}

/* The labels of all pictures of a set. */
static heed_status answer(heed_vit *v, const heed_pictures *p, const int32_t *label,
                          int64_t classes, int32_t *wanted, int32_t *said, heed_arena *arena,
                          heed_error *err)
{
    const heed_pictures_report r = heed_pictures_describe(p);
    const int64_t size = r.height * r.width * r.channels;
    heed_arena *batch = heed_arena_new(NULL, err);
    uint8_t *pixels = heed_arena_allocate(arena, (size_t)(AT_ONCE * size));
    heed_status status = batch && pixels ? HEED_OK : HEED_MEMORY;
    for (int64_t at = 0, n; !status && at < r.count; at += n) {
        heed_image image[AT_ONCE];
        const heed_real *q;
        n = r.count - at < AT_ONCE ? r.count - at : AT_ONCE;
        for (int64_t i = 0; i < n && !status; i++) {
            image[i] = (heed_image){r.height, r.width, r.channels, pixels + i * size};
            status = heed_pictures_load(p, at + i, image[i].pixels, err);
            wanted[at + i] = label[heed_pictures_label(p, at + i)];
        }
        heed_arena_reset(batch);
        if (status || (status = heed_vit_classify(v, image, n, batch, &q, err)))
            break;
        for (int64_t i = 0; i < n; i++, q += classes) {
            said[at + i] = 0;
            for (int32_t k = 1; k < classes; k++)
                said[at + i] = q[k] > q[said[at + i]] ? k : said[at + i];
        }
    }
    heed_arena_free(batch);
    return status;
}

static heed_status run(const struct example_files *f, heed_vit *v, heed_pictures *p,
                       heed_arena *arena, heed_error *err)
{
    struct label_answers e = {.output = f->output, .json = f->json, .arena = arena};
    const int64_t n = heed_pictures_describe(p).count;
    const int32_t *label;
    int32_t *wanted = heed_arena_allocate(arena, (size_t)n * sizeof *wanted),
            *said = heed_arena_allocate(arena, (size_t)n * sizeof *said);
    e.label = heed_vit_labels(v, &e.labels);
    if (!wanted || !said)
        return HEED_MEMORY;
    if (heed_vit_match_classes(v, p, arena, &label, err) ||
        answer(v, p, label, e.labels, wanted, said, arena, err))
        return HEED_FORMAT;
    return conclude_labels(&e, wanted, said, n, err);
}

int evaluate_pictures(const struct example_files *f)
{
    heed_error err = {0};
    heed_machine m;
    heed_pictures *p = NULL;
    heed_vit *v = NULL;
    heed_machine_describe(&m);
    heed_arena *arena = heed_arena_new(NULL, &err);
    if (!f->model)
        complain("missing option '--model': the directory of a picture classifier");
    else if (arena)
        v = heed_vit_open(f->model, f->threads ? (int)f->threads : m.threads, NULL, &err);
    if (v)
        p = open_set(f, &heed_vit_network(v)->config, &err);
    const bool good = p && !run(f, v, p, arena, &err);
    if (!good && f->model)
        complain("%s", err.status ? err.text : "out of memory for the pictures");
    heed_pictures_free(p);
    heed_vit_free(v);
    heed_arena_free(arena);
    return good ? EXIT_DONE : EXIT_FAILED;
}
