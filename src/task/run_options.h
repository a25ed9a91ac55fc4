/* run_options.h (internal): what the recipes of all tasks do with their options, whatever the
 * struct is that holds them. */
#ifndef HEED_TASK_RUN_OPTIONS_H
#define HEED_TASK_RUN_OPTIONS_H

#include <heed/model.h>
#include <heed/train.h>

/* Whether somebody asked for an option's value; plain is where nobody asked for anything. */
bool heed__option_given(const heed_option_set *set, const heed_option_origins *origins,
                        const void *values, const void *plain, const char *name);
/* Whether it was a word of the command line.  Only these are refused where they have no effect: a
 * config file may name every option, and a preset may be changed into what ignores some of it. */
bool heed__option_typed(const heed_option_origins *origins, const char *name);
/* Refuses options of the model and the loop that have no effect, whatever is trained. */
heed_status heed__check_heard(const heed_option_origins *origins, const heed_model_config *model,
                              const heed_loop_options *loop, heed_error *err);
/* Makes the options that are files absolute, so that a run can be resumed from anywhere.  names,
 * ended by NULL, are of texts and lists. */
heed_status heed__options_absolute(const heed_option_set *set, void *values,
                                   const char *const *names, heed_arena *arena, heed_error *err);
/* training/options.json holds texts as UTF-8. */
heed_status heed__options_check_names(const heed_option_set *set, const void *values,
                                      heed_error *err);
/* Fills in threads and rate where they were not given. */
void heed__loop_resolve(heed_loop_options *o);
/* Which options of the loop do not go together; and whether anything ever ends it. */
heed_status heed__loop_check(const heed_loop_options *o, heed_error *err);
/* The options of a model directory under training, as words to parse. */
heed_status heed__stored_options(const char *folder, heed_arena *arena, const char *words[2],
                                 heed_error *err);

/* ---- choosing ---- */

double heed__clamp(double x, double low, double high);
/* To two digits, at least 1. */
int64_t heed__rounded(double x);
/* "about 12 min"; text is returned. */
const char *heed__duration(double seconds, char text[48]);

#endif
