/* long.h: tasks that show what long-range attention is for (`heed lab long`): each is a row of a
 * table: it draws examples for the stack of layers that long_lab.c trains, whatever stands in the
 * slots of its attention. */
#ifndef HEED_LABS_LONG_H
#define HEED_LABS_LONG_H

#include "lab.h"

typedef enum long_part { LONG_TRAIN, LONG_VALID, LONG_TEST } long_part;
/* How a set becomes one row: seeds that look at it, behind layers of attention; or the mean or the
 * largest of what feed-forward layers alone make of each element. */
typedef enum long_pooling { LONG_PMA, LONG_MEAN, LONG_MAX } long_pooling;
#define LONG_POOLING_WORDS "pma", "mean", "max"

typedef struct long_settings {
    lab_common shared;
    int task; /* row of the table */
    const char *data;
    int64_t length; /* 0: the task's own */
    int64_t layers, d, heads, ff, test_examples;
    int64_t dropout_percent;
    int64_t writes; /* of retrieval: pairs, keys drawn anew for each; 0: every key once */
    int pooling;    /* long_pooling */
    int positions;  /* heed_positions */
    heed_slot_spec queries, memory, pattern, position_bias, normaliser;
    int64_t adaptive_span;
    double span_penalty;
} long_settings;

/* Sequences, and what is wanted behind some of their rows. */
typedef struct long_batch {
    heed_batch_side side;
    const int32_t *wanted;   /* (count) classes; NULL: */
    const heed_real *target; /* (count,outputs) numbers */
    const int32_t *row;      /* (count) the rows they stand at; NULL: row i */
    int64_t count;
} long_batch;

typedef struct long_score {
    double nats, right;       /* for each wanted; of 1 */
    double most;              /* the share of the commonest class */
    double asked;             /* right among the rows at the ends */
    double squared, absolute; /* of regression: errors of a wanted row, summed over its columns */
} long_score;

struct long_task;
typedef struct long_source {
    const struct long_task *task;
    const long_settings *settings;
    int64_t length;              /* of what the task counts */
    int64_t vocabulary, classes; /* tokens; what is wanted */
    int64_t types, width;        /* second kind of token; features instead of tokens */
    int64_t outputs;             /* numbers that are wanted instead of classes */
    double unit;                 /* what a 1 of them is */
    int64_t longest;             /* sequence */
    int64_t count[3];            /* examples of each part; 0: any number */
    void *data;                  /* the task's own */
    heed_arena *arena;
} long_source;

typedef struct long_task {
    const char *name, *unit; /* of the loss */
    bool causal;             /* a row sees nothing behind it */
    bool needs_data;
    bool absolute;  /* the regression loss is the absolute error, else the squared one */
    bool pools;     /* one answer for each sequence, which is a set */
    int64_t asked;  /* rows at the end of each sequence that are counted apart */
    int64_t length; /* if none is given */
    /* Fills vocabulary, classes, longest, and what it keeps in data. */
    heed_status (*open)(long_source *s, heed_error *err);
    void (*close)(long_source *s); /* or NULL */
    /* n examples: of LONG_TRAIN drawn with rng, else those from `at` on, always the same.  False
     * when memory is short. */
    bool (*draw)(const long_source *s, long_part part, int64_t at, int64_t n, const heed_rng *rng,
                 heed_arena *arena, long_batch *out);
    void (*report)(const long_source *s, const long_score *score, lab_session *r);
    /* What can be said of the layers themselves; or NULL. */
    void (*report_layers)(const long_source *s, const heed_stack *layers, lab_session *r);
} long_task;
#define LONG_TASKS(X)                                                                              \
    X(duplication)                                                                                 \
    X(listops)                                                                                     \
    X(characters) X(pixels) X(reviews) X(retrieval) X(sets) X(series) X(span) X(persistent)
#define LONG_DECLARE(name) extern const long_task long_##name;
LONG_TASKS(LONG_DECLARE)

/* The random numbers of an example: of training those given, else its own. */
const heed_rng *long_rng_of(long_part part, int64_t example, const heed_rng *rng, heed_rng *own);
/* A file of a folder, or the same with .gz. */
void long_path_in(char path[4096], const char *folder, const char *name);

/* Whether every query sees every key: what the targets of a task are for. */
bool long_is_dense(const long_settings *settings);
/* Memory for n sequences of these lengths, all rows wanted or `wanted` of them; false when it is
 * short. */
bool long_batch_new(long_batch *b, heed_arena *arena, const int64_t *lengths, int64_t n,
                    int64_t wanted, int32_t **ids, int32_t **answers, int32_t **rows);

#endif
