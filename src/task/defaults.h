/* defaults.h (internal): what a run does where nothing was asked for. */
#ifndef HEED_TASK_DEFAULTS_H
#define HEED_TASK_DEFAULTS_H

#include "base/error.h"
#include <heed/task.h>

/* How many of n pairs validate a run that was given none to validate with. */
int64_t heed__hold_out(int64_t pairs);

/* Fills in what was not given, for these pairs on this machine, and says in four lines what and
 * why.  Texts that are added live as long as the program.  Nothing is chosen, and nothing said,
 * with --recipe paper; with --from, only what is about how it is trained.  rehearsed: the pairs are
 * what heed__rehearse made of them.  ranks: that compute an update together. */
heed_status heed__recipe_choose(heed_recipe *r, const heed_corpus *pairs, bool rehearsed, int ranks,
                                const heed_log_sink *log, const heed_allocator *allocator,
                                heed_error *err);
/* How often a model that was trained already should see a text of this size. */
double heed__passes(double target_bytes);
/* The same for a text of everyday size, unmeasured: so that what does not go together shows before
 * files are read. */
heed_status heed__recipe_draft(heed_recipe *r, const heed_allocator *allocator, heed_error *err);

/* What a choice rests on.  Tokens are reckoned from the bytes: there is no vocabulary yet. */
typedef struct heed__text_facts {
    int64_t pairs;
    double target_bytes, source_tokens, target_tokens;
    int64_t letters; /* kinds of characters that cover the text but for one in two thousand */
    int64_t all;     /* kinds of characters */
    bool han, kana;  /* the target is Chinese, is Japanese */
} heed__text_facts;
/* words: its tokens are those between blanks. */
heed_status heed__read_text(const heed_corpus *pairs, bool words, const heed_allocator *allocator,
                            heed__text_facts *facts, heed_error *err);

/* Seconds that an update takes on this machine, measured in about one: the model of the recipe
 * with a vocabulary of this size, on made-up sentences of these lengths. */
typedef struct heed__update_size {
    int64_t vocabulary;
    int64_t source_tokens, target_tokens; /* of a sentence */
} heed__update_size;
heed_status heed__measure_update(const heed_recipe *r, const heed__update_size *size,
                                 const heed_allocator *allocator, double *seconds, heed_error *err);
/* The same for any model and batch. */
heed_status heed__time_updates(const heed_model_config *config, const heed_batch *batch,
                               int64_t accumulate, int threads, const heed_allocator *allocator,
                               double *seconds, heed_error *err);
/* The same for what `update` does. */
heed_status heed__time_calls(heed_status (*update)(void *context, heed_error *err), void *context,
                             double *seconds, heed_error *err);

#endif
