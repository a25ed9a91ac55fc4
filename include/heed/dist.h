/* dist.h: the processes that train one model together, on one machine or on many.  Each has a
 * number, its rank.  Rank 0 leads: it alone reads the clock, hears signals and owns the model's
 * directory.
 *
 *     hooks.ranks = heed_ranks_open(&err);          // of heed_train_hooks
 *     folder = heed_ranks_folder(hooks.ranks, &err);
 *     t = folder ? heed_trainer_resume(folder, NULL, &hooks, NULL, &err)
 *                : heed_trainer_new("m", &recipe, &hooks, NULL, &err);       // on rank 0
 *     heed_trainer_run(t, &result, &err);
 *     heed_trainer_free(t);
 *     heed_ranks_close(hooks.ranks);
 *
 * R ranks compute the bits of one process whose updates have as many micro-batches.  Functions that
 * take a heed_ranks accept NULL: this process alone, rank 0 of 1. */
#ifndef HEED_DIST_H
#define HEED_DIST_H

#include <heed/base.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct heed_ranks heed_ranks;
/* Once in a process.  In a program that is linked with MPI (`make MPI=1` builds one, heed-mpi) they
 * are those that mpirun has started.  Everywhere else there is one, and STATE where mpirun has
 * started several.  Checks that all ranks run the same version: STATE on the rank that has another
 * one, whose process has to end, and takes all others with it. */
heed_ranks *heed_ranks_open(heed_error *err);
/* From now on, until it is closed, each rank notices when nothing is heard of another one for six
 * seconds: its machine or the network is gone, which breaks no connection.  `lost` is then called
 * in a thread of its own, with a sentence, or with NULL where another rank says it: nothing is left
 * but to stop the ranks.  Called by all of them. */
heed_status heed_ranks_watch(heed_ranks *r, void (*lost)(void *context, const char *text),
                             void *context, heed_error *err);
/* Waits until all ranks do so. */
void heed_ranks_close(heed_ranks *r);
int heed_ranks_rank(const heed_ranks *r);
int heed_ranks_size(const heed_ranks *r);
/* Processors for this rank: those it may use, divided among the ranks of its machine unless it is
 * bound to some of them. */
int heed_ranks_threads(const heed_ranks *r);
/* The machine's name; lives as long as r. */
const char *heed_ranks_host(const heed_ranks *r);
/* What connects the processes of a program: "Open MPI 4.1.4"; NULL: it trains alone. */
const char *heed_ranks_library(void);

/* NULL on rank 0.  The others wait for it to open a trainer; then, a private folder with what the
 * task is resumed from: options, configuration, vocabularies.  It goes when the trainer is open. */
const char *heed_ranks_folder(heed_ranks *r, heed_error *err);
/* A file of rank 0: its own path there, a private copy elsewhere, which goes with that folder.
 * NULL where rank 0 cannot read it. */
const char *heed_ranks_file(heed_ranks *r, const char *path, heed_error *err);
/* The words of a command line must be the same on all ranks; ARGUMENT, on the rank that has others,
 * names the first difference. */
heed_status heed_ranks_same_words(heed_ranks *r, int count, const char *const *words,
                                  heed_error *err);
/* Whether the failure that a call has just reported was rank 0's, or everybody's, and is known to
 * all: then rank 0 says it, and all end. */
bool heed_ranks_told(const heed_ranks *r);
/* After a failure of this rank alone: ends the processes of all ranks, this one too, with an exit
 * code.  Returns only where there is one rank. */
void heed_ranks_stop(heed_ranks *r, int code);

#ifdef __cplusplus
}
#endif
#endif
