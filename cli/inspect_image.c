/* inspect_image.c: `heed inspect --image`: where each word of a caption looked, where a picture
 * classifier looks, or which parts of a picture and a text mean each other. */
#include "cmd_inspect.h"
#include "command.h"

#include <heed/see.h>
#include <heed/vit.h>
#include <stdio.h>
#include <string.h>

static bool captioned(const struct inspect_settings *s, const heed_image *image, heed_arena *arena,
                      heed_error *err)
{
    heed_caption caption;
    const char *svg;
    heed_captioner *c = heed_captioner_open(s->model, 1, NULL, err);
    const heed_caption_options o = {.beam = s->beam};
    if (c &&
        !(s->attention ? heed_captioner_read(c, image, s->attention, arena, &caption, err)
                       : heed_captioner_tell(c, image, &o, arena, &caption, err)) &&
        !heed_captioner_svg(c, image, &caption, arena, &svg, err) &&
        !heed_text_save(s->output, svg, err))
        puts(caption.text);
    heed_captioner_free(c);
    return !err->status;
}

static bool classified(const struct inspect_settings *s, const heed_image *image, heed_arena *arena,
                       heed_error *err)
{
    const char *svg;
    const heed_real *p;
    int64_t classes, best = 0;
    heed_vit *v = heed_vit_open(s->model, 1, NULL, err);
    const char *const *label = heed_vit_labels(v, &classes);
    if (v && !heed_vit_classify(v, image, 1, arena, &p, err) &&
        !heed_vit_looks_svg(v, image, arena, &svg, err) && !heed_text_save(s->output, svg, err)) {
        for (int64_t k = 1; k < classes; k++)
            best = p[k] > p[best] ? k : best;
        printf("%s\t%.4f\n", label[best], (double)p[best]);
    }
    heed_vit_free(v);
    return !err->status;
}

static bool compared(const struct inspect_settings *s, const heed_image *image, heed_arena *arena,
                     heed_error *err)
{
    const char *svg;
    heed_retriever *r = heed_retriever_open(s->model, 1, NULL, err);
    if (r && !heed_retriever_svg(r, image, s->attention, arena, &svg, err))
        heed_text_save(s->output, svg, err);
    heed_retriever_free(r);
    return !err->status;
}

bool inspect_image(const struct inspect_settings *s, heed_arena *arena)
{
    heed_error err = {0};
    heed_image image = {0};
    const char *found = heed_see_arch(s->model), *arch = found ? found : "";
    const bool classifies = strcmp(arch, "vit") == 0, compares = strcmp(arch, "retrieve") == 0;
    if (classifies && s->attention) {
        complain("'%.300s' classifies pictures and reads no text: leave out '--attention'",
                 s->model);
        return false;
    }
    if (compares && !s->attention) {
        complain("'%.300s' compares pictures with texts: give one with '--attention'", s->model);
        return false;
    }
    if (!heed_image_read(s->image, NULL, &image, &err))
        (classifies ? classified : compares ? compared : captioned)(s, &image, arena, &err);
    if (err.status)
        complain("%s", err.text);
    heed_image_free(&image, NULL);
    return !err.status;
}
