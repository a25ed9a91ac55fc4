/* ranks.h (internal): what the trainer asks of the other ranks.  All of it is collective: called by
 * every rank, in the same order.  With one rank nothing moves and nothing fails. */
#ifndef HEED_DIST_RANKS_H
#define HEED_DIST_RANKS_H

#include "dist/transport.h"

/* The ranks of a transport that is there already. */
heed_ranks *heed__ranks_of(const heed__transport *transport, const heed_allocator *allocator,
                           heed_error *err);
bool heed__ranks_lead(const heed_ranks *r);

/* heed_ranks_watch, with the seconds of silence after which a rank is lost. */
heed_status heed__ranks_watch(heed_ranks *r, double seconds,
                              void (*lost)(void *context, const char *text), void *context,
                              heed_error *err);

/* From rank 0 to all. */
heed_status heed__ranks_broadcast(heed_ranks *r, void *data, size_t bytes, heed_error *err);
/* `bytes` of each rank, in rank order, into all (size * bytes). */
heed_status heed__ranks_gather(heed_ranks *r, const void *mine, void *all, size_t bytes,
                               heed_error *err);
heed_status heed__ranks_scatter(heed_ranks *r, heed__channel channel, const void *data,
                                const size_t *part, void *got, heed_error *err);
heed_status heed__ranks_collect(heed_ranks *r, heed__channel channel, void *data,
                                const size_t *part, heed_error *err);
/* Rank 0's failure, if it has one, on all ranks. */
heed_status heed__ranks_agree(heed_ranks *r, heed_status status, heed_error *err);
/* The same, and rank 0's `bytes` of data with it, which are few. */
heed_status heed__ranks_agree_on(heed_ranks *r, void *data, size_t bytes, heed_status status,
                                 heed_error *err);
/* A text of rank 0, or NULL, on all ranks: its own there, elsewhere a copy in the arena. */
heed_status heed__ranks_text(heed_ranks *r, const char **text, heed_arena *arena, heed_error *err);
/* A name, until the next one, in a folder of this rank alone, which is made when it is first asked
 * for; removed with all in it by forget, and by heed_ranks_close. */
const char *heed__ranks_private(heed_ranks *r, const char *name, heed_error *err);
void heed__ranks_forget_private(heed_ranks *r);
/* Copies rank 0's file `path` to `copy` on the others. */
heed_status heed__ranks_copy(heed_ranks *r, const char *path, const char *copy, heed_error *err);
/* Rank 0's half of heed_ranks_folder: all files of the folder that a task is resumed from, but for
 * weights, logs and pictures, and options as training/options.json, unless they are NULL. */
heed_status heed__ranks_give_folder(heed_ranks *r, const char *folder, const char *options,
                                    heed_error *err);

/* Seconds in which a channel waited for other ranks. */
double heed__ranks_waited(const heed_ranks *r, heed__channel channel);

#endif
