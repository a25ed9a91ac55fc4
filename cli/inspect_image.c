/* inspect_image.c: `heed inspect --image`: where each word of a caption looked. */
#include "cmd_inspect.h"
#include "command.h"

#include <heed/see.h>
#include <stdio.h>

bool inspect_image(const struct inspect_settings *s, heed_arena *arena)
{
    heed_error err = {0};
    heed_image image = {0};
    heed_caption caption;
    const char *svg;
    heed_captioner *c = heed_captioner_open(s->model, 1, NULL, &err);
    const heed_caption_options o = {.beam = s->beam};
    bool done = c && !heed_image_read(s->image, NULL, &image, &err);
    if (done)
        done = !(s->attention ? heed_captioner_read(c, &image, s->attention, arena, &caption, &err)
                              : heed_captioner_tell(c, &image, &o, arena, &caption, &err));
    done = done && !heed_captioner_svg(c, &image, &caption, arena, &svg, &err) &&
           !heed_text_save(s->output, svg, &err);
    if (done)
        puts(caption.text);
    else
        complain("%s", err.text);
    heed_image_free(&image, NULL);
    heed_captioner_free(c);
    return done;
}
