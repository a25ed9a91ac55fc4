/* cmd_inspect.h: the settings of `heed inspect`, and its two halves: what a model is, and where it
 * looks. */
#ifndef HEED_CLI_CMD_INSPECT_H
#define HEED_CLI_CMD_INSPECT_H

#include <heed/translate.h>

struct inspect_settings {
    const char *model, *attention, *target, *output, *image;
    int64_t layer, head, beam, width;
    int kind;   /* heed_attention_kind, in the order of the option's words */
    int colour; /* auto, always, never */
    bool pieces, protect, capitals, json;
};
/* All say what went wrong and return false then. */
/* Of a model of another program. */
bool inspect_found(const struct inspect_settings *s, heed_arena *arena);
bool inspect_facts(const struct inspect_settings *s);
/* Of a captioner: where the words of its own caption of a picture look, or of a given one. */
bool inspect_image(const struct inspect_settings *s, heed_arena *arena);
bool inspect_attention(const struct inspect_settings *s, heed_translator *tr, heed_arena *arena);

#endif
