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
/* A model as it lies in a directory. */
struct inspect_model {
    heed_engine *engine;
    heed_vocab *source, *target;
    heed_model *outline;
    heed_text_config text;
};
heed_status inspect_open(struct inspect_model *m, const char *folder, heed_arena *arena,
                         heed_error *err);
void inspect_close(struct inspect_model *m);

/* All say what went wrong and return false then. */
/* Of a model of another program. */
bool inspect_found(const struct inspect_settings *s, heed_arena *arena);
bool inspect_facts(const struct inspect_settings *s);
/* Of a captioner: where the words of its own caption of a picture look, or of a given one. */
bool inspect_image(const struct inspect_settings *s, heed_arena *arena);
/* Of a translation, and of a text through a model that has one stack. */
bool inspect_attention(const struct inspect_settings *s, heed_translator *tr, heed_arena *arena);
bool inspect_text(const struct inspect_settings *s, heed_arena *arena);
/* Whether a model has one stack: a language model, or an encoder alone. */
bool inspect_is_single(const char *folder, heed_arena *arena);

#endif
