/* models.h: the models that come with the program. */
#ifndef HEED_CLI_MODELS_H
#define HEED_CLI_MODELS_H

#include <heed/options.h>

/* The directory of the model that is meant: asked, which is one or the name of one that is
 * installed; without it HEED_MODEL; without that the first installed one, or the first that
 * translates into the language `to`.  NULL after saying what is missing.  Lives in the arena, or is
 * asked itself. */
const char *find_model(const char *asked, const char *to, heed_arena *arena);
/* Prints what is installed: name, directory, what it is. */
void list_models(void);

#endif
