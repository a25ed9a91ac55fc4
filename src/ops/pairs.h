/* pairs.h: what the operators over pairs of a query and a key share (heed_pairs in ops.h).
 *
 * A flat tensor has a number for each pair.  The rows of it are walked segment by segment, head by
 * head, query by query; a segment is one thread's alone, so that what a query or a key receives is
 * summed in one order whatever the number of threads. */
#ifndef HEED_OPS_PAIRS_H
#define HEED_OPS_PAIRS_H

#include "tensor/op.h"
#include <heed/ops.h>

/* One query of one head, and the keys it sees. */
typedef struct heed__pairs_row {
    int64_t query, head; /* packed row of the query */
    int64_t key;         /* packed row of the first key it sees */
    int64_t first, seen; /* place of that key in its segment, and how many it sees */
    int64_t keys;        /* S of the segment */
    int64_t at;          /* of the pair with key 0 of the segment in a flat tensor */
} heed__pairs_row;
typedef void heed__pairs_body(void *context, const heed__pairs_row *r, int thread);

static inline int64_t heed__length(const heed_segments *s, int64_t b)
{
    return s->offset[b + 1] - s->offset[b];
}

/* How many numbers a flat tensor has. */
int64_t heed__pairs_count(const heed_pairs *p);
/* Refuses segments that do not fit each other and windows that leave them; *count is what
 * heed__pairs_count gives. */
heed_status heed__pairs_check(heed_opcall *c, const heed_pairs *p, int64_t *count);
/* x must be (rows of s, H*something). */
heed_status heed__pairs_check_rows(heed_opcall *c, const char *name, const heed_tensor *x,
                                   const heed_segments *s, int heads, const char *columns);
heed_status heed__pairs_check_flat(heed_opcall *c, const char *name, const heed_tensor *x,
                                   int64_t count);
/* Calls body for each query of each head.  work: operations a pair. */
void heed__pairs_each(const heed_pairs *p, int threads, int64_t work, heed__pairs_body *body,
                      void *context);
/* The threads that may add to the gradients of queries x and keys y at once: one, where they lie in
 * the same memory and are cut differently. */
int heed__pairs_threads(const heed_opcall *c, const heed_pairs *p, int x, int y);

/* The pairs of a case: lengths, more_lengths; i[0] heads, i[1] not 0: windows that differ from
 * query to query, one of them empty. */
heed_pairs heed__case_pairs(heed_tape *t, const heed_opcase *c);

#endif
