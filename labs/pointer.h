/* pointer.h: the Pointer Network (Vinyals, Fortunato, Jaitly 2015): the network of pointer.c, its
 * decoding in pointer_search.c and the tasks of pointer_tasks.c, which pointer_lab.c brings
 * together. */
#ifndef HEED_LABS_POINTER_H
#define HEED_LABS_POINTER_H

#include <heed/heed.h>

/* ---- the tasks ---- */

typedef enum pointer_task {
    POINTER_SORT,
    POINTER_HULL,
    POINTER_DELAUNAY,
    POINTER_TSP
} pointer_task;

/* One example: n points and the indices that are to be pointed at, in order.  Where the number of
 * them depends on the points, the index n stands behind them: the end. */
typedef struct pointer_example {
    int64_t n, answers;
    const heed_real *points; /* (n,pointer_channels) */
    const int32_t *answer;   /* (answers) */
} pointer_example;
/* Numbers a point has; whether answers have an end; how many there may be. */
int64_t pointer_channels(pointer_task task);
bool pointer_ends(pointer_task task);
int64_t pointer_longest(pointer_task task, int64_t n);
/* Random points of the unit square (or numbers) and the exact answer, drawn with the numbers of rng
 * from *next on; in the arena.  False when memory is short. */
bool pointer_draw(pointer_task task, int64_t n, const heed_rng *rng, uint64_t *next,
                  heed_arena *arena, pointer_example *e);

/* How good answers are, summed over examples. */
typedef struct pointer_score {
    int64_t examples;
    double exact;   /* sets, cycles or orders that are right */
    double covered; /* elements in place; share of the hull's area; share of the triangles */
    double simple;  /* hull: polygons whose sides do not meet, the only ones that cover */
    double length;  /* TSP: of the tours found, and of the best ones */
    double optimum;
} pointer_score;
/* answer has no end any more. */
void pointer_judge(pointer_task task, const pointer_example *e, const int32_t *answer,
                   int64_t answers, pointer_score *score);

/* ---- the network ---- */

typedef struct pointer_net {
    int64_t in; /* numbers of a point and one more, which says end */
    heed_rnn_layer encoder, decoder;
    heed_tensor *go;          /* (1,in): what the decoder is shown first */
    heed_attend_layer attend; /* u_j = v tanh(W1 e_j + W2 d_i) */
} pointer_net;
void pointer_build(pointer_net *net, heed_scope s, pointer_task task, int64_t units);

/* A batch of examples, packed: the points of each, and its end behind them if answers have one. */
typedef struct pointer_batch {
    const pointer_example *examples;
    int64_t count;
    const heed_segments *shown, *answered; /* rows of x, and answers, of each example */
    heed_tensor *x;                        /* (N,in) */
} pointer_batch;
/* Borrows the examples; false when memory is short. */
bool pointer_pack(heed_tape *t, pointer_task task, const pointer_example *examples, int64_t count,
                  pointer_batch *b);
/* The sum over all answers of - log p, each shown the right ones before it. */
heed_tensor *pointer_loss(heed_tape *t, const pointer_net *net, const pointer_batch *b);

/* ---- pointing ---- */

typedef struct pointer_found {
    int32_t *answer;
    int64_t answers; /* the end is not among them */
} pointer_found;
/* The likeliest answers, by a beam of hypotheses for each example.  With `once`, no point is
 * pointed at twice.  found has room for an answer of each example; what it points to lives until
 * the tape's reset.  Fails as the tape does. */
heed_status pointer_search(heed_tape *t, const pointer_net *net, pointer_task task,
                           const pointer_batch *b, int64_t beam, bool once, pointer_found *found);

/* For both. */
heed_memory pointer_encode(heed_tape *t, const pointer_net *net, const pointer_batch *b,
                           heed_rnn_state *end);
/* Shows the decoder rows of x, or go where an index is negative: `steps` says which rows follow
 * each other in the recurrence, `queries` which belong to one example.  -> log p over the rows of
 * each example, flat (ops.h: heed_pairs). */
heed_tensor *pointer_decode(heed_tape *t, const pointer_net *net, const pointer_batch *b,
                            const heed_memory *memory, const int32_t *shown,
                            const heed_segments *steps, const heed_segments *queries,
                            const heed_rnn_state *start, heed_rnn_state *end);

#endif
