/* cmd_models.h: the models that come with the program. */
#ifndef HEED_CLI_CMD_MODELS_H
#define HEED_CLI_CMD_MODELS_H

#include <heed/options.h>

#define MODEL_OPTION(owner)                                                                        \
    HEED_OPTION_TEXT(owner, model, "model", NULL, "DIR",                                           \
                     "the model's directory, or the name of an installed one (heed list models); " \
                     "HEED_MODEL, or the first installed, if not given")
#define PROTECT_OPTION(owner)                                                                      \
    HEED_OPTION_BOOL(owner, protect, "protect", "true",                                            \
                     "addresses, %s, {name}, <b>, emoji, 3.5 km, numbers and unknown names come "  \
                     "out as they are, with models that were trained with --protect")

#define CAPITALS_OPTION(owner)                                                                     \
    HEED_OPTION_BOOL(owner, capitals, "capitals", "true",                                          \
                     "a line in CAPITALS is translated like one in small letters, into CAPITALS")

/* The directory of the model that is meant: asked, which is one or the name of one that is
 * installed; without it HEED_MODEL; without that the first installed one, or the first that
 * translates into the language `to`.  NULL after saying what is missing, never if one was asked
 * for. Lives in the arena, or is asked itself. */
const char *find_model(const char *asked, const char *to, heed_arena *arena);
/* Prints what is installed: name, directory, what it is. */
void list_models(void);

#endif
