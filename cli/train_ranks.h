/* train_ranks.h: the processes of a command that trains. */
#ifndef HEED_CLI_TRAIN_RANKS_H
#define HEED_CLI_TRAIN_RANKS_H

#include "command.h"

#include <heed/train.h>

/* All processes, which must have been given the same words; NULL after saying what is wrong. */
heed_ranks *ranks_begin(int argc, const char *const *argv);
/* Rank 0 alone speaks. */
void ranks_silence(const heed_ranks *ranks, heed_train_hooks *hooks);
/* What went wrong here, with the rank if there are several; nothing if rank 0 says it. */
void ranks_complain(const heed_ranks *ranks, const heed_error *err);
/* Processors for this rank, unless the words say how many. */
int64_t ranks_threads(const heed_ranks *ranks, const heed_option_set *set, const void *values,
                      const invocation *in);
/* With several ranks: their threads; and --accumulate, which is of each rank, becomes that of all
 * together, unless it comes from a run that is resumed. */
void ranks_settle(const heed_ranks *ranks, const heed_option_set *set, void *values,
                  const invocation *in, bool resumed);
/* Waits for the others, or ends them if this one failed by itself; returns code. */
int ranks_end(heed_ranks *ranks, int code);

#endif
