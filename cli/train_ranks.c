/* train_ranks.c: the processes of a command that trains: one, or those that mpirun has started. */
#include "train_ranks.h"
#include "train_signals.h"

#include <string.h>
#include <unistd.h>

void ranks_complain(const heed_ranks *ranks, const heed_error *err)
{
    if (heed_ranks_size(ranks) == 1)
        complain("%s", err->text);
    else if (heed_ranks_rank(ranks) == 0 || !heed_ranks_told(ranks))
        complain("rank %d on %s: %s", heed_ranks_rank(ranks), heed_ranks_host(ranks), err->text);
}

void ranks_silence(const heed_ranks *ranks, heed_train_hooks *hooks)
{
    if (heed_ranks_rank(ranks) == 0)
        return;
    hooks->log.write = NULL;
    hooks->progress = NULL;
}

int ranks_end(heed_ranks *ranks, int code)
{
    if (code != EXIT_DONE && code != EXIT_INTERRUPTED && !heed_ranks_told(ranks)) {
        signals_silence(); /* the starter ends all of them with a signal */
        heed_ranks_stop(ranks, code);
    }
    heed_ranks_close(ranks);
    return code;
}

static int64_t *number(const heed_option_set *set, const void *values, const char *name)
{
    for (int i = 0; i < set->count; i++)
        if (strcmp(set->fields[i].name, name) == 0)
            return (int64_t *)((char *)values + set->fields[i].offset);
    return NULL;
}

int64_t ranks_threads(const heed_ranks *ranks, const heed_option_set *set, const void *values,
                      const invocation *in)
{
    const int64_t *given = number(set, values, "threads");
    return given && option_typed(in, "threads") ? *given : heed_ranks_threads(ranks);
}

void ranks_settle(const heed_ranks *ranks, const heed_option_set *set, void *values,
                  const invocation *in, bool resumed)
{
    int64_t *threads = number(set, values, "threads"), *all = number(set, values, "accumulate");
    if (heed_ranks_size(ranks) == 1)
        return;
    if (threads && !*threads)
        *threads = heed_ranks_threads(ranks);
    if (all && (!resumed || option_typed(in, "accumulate")))
        *all *= heed_ranks_size(ranks);
}

/* Where rank 0 says it, it also ends this one, if it can reach it. */
static void rank_is_lost(void *context, const char *text)
{
    heed_ranks *ranks = context;
    if (text)
        complain("rank %d on %s: %s", heed_ranks_rank(ranks), heed_ranks_host(ranks), text);
    else
        sleep(1);
    signals_silence();
    heed_ranks_stop(ranks, EXIT_FAILED);
}

heed_ranks *ranks_begin(int argc, const char *const *argv)
{
    heed_error err = {0};
    heed_ranks *ranks = heed_ranks_open(&err);
    if (!ranks) {
        complain("%s", err.text);
        return NULL;
    }
    if (heed_ranks_rank(ranks) > 0)
        signals_silence();
    if (heed_ranks_watch(ranks, rank_is_lost, ranks, &err) ||
        heed_ranks_same_words(ranks, argc, argv, &err)) {
        ranks_complain(ranks, &err);
        ranks_end(ranks, EXIT_USAGE);
        return NULL;
    }
    return ranks;
}
