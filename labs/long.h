/* long.h: tasks that show what long-range attention is for (`heed lab long`): each is a row of a
 * table: it draws examples for the stack of layers that long_lab.c trains, whatever stands in the
 * slots of its attention. */
#ifndef HEED_LABS_LONG_H
#define HEED_LABS_LONG_H

#include "lab.h"

typedef enum long_part { LONG_TRAIN, LONG_VALID, LONG_TEST } long_part;

typedef struct long_settings {
    lab_common shared;
    int task; /* row of the table */
    const char *data;
    int64_t length; /* 0: the task's own */
    int64_t layers, d, heads, ff, test_examples;
    int64_t dropout_percent;
    int positions; /* heed_positions */
    heed_slot_spec queries, memory, pattern, position_bias, normaliser;
    int64_t adaptive_span;
    double span_penalty;
} long_settings;

/* Sequences, and what is wanted behind some of their rows. */
typedef struct long_batch {
    heed_batch_side side;
    const int32_t *wanted; /* (count) classes */
    const int32_t *row;    /* (count) the rows they stand at; NULL: row i */
    int64_t count;
} long_batch;

typedef struct long_score {
    double nats, right; /* for each wanted; of 1 */
    double most;        /* the share of the commonest class */
} long_score;

struct long_task;
typedef struct long_source {
    const struct long_task *task;
    const long_settings *settings;
    int64_t length;              /* of what the task counts */
    int64_t vocabulary, classes; /* tokens; what is wanted */
    int64_t longest;             /* sequence */
    int64_t count[3];            /* examples of each part; 0: any number */
    void *data;                  /* the task's own */
    heed_arena *arena;
} long_source;

typedef struct long_task {
    const char *name, *unit; /* of the loss */
    bool causal;             /* a row sees nothing behind it */
    bool needs_data;
    int64_t length; /* if none is given */
    /* Fills vocabulary, classes, longest, and what it keeps in data. */
    heed_status (*open)(long_source *s, heed_error *err);
    void (*close)(long_source *s); /* or NULL */
    /* n examples: of LONG_TRAIN drawn with rng, else those from `at` on, always the same.  False
     * when memory is short. */
    bool (*draw)(const long_source *s, long_part part, int64_t at, int64_t n, const heed_rng *rng,
                 heed_arena *arena, long_batch *out);
    void (*report)(const long_source *s, const long_score *score, lab_session *r);
} long_task;
#define LONG_TASKS(X) X(duplication) X(listops) X(characters) X(pixels) X(reviews)
#define LONG_DECLARE(name) extern const long_task long_##name;
LONG_TASKS(LONG_DECLARE)

/* Whether every query sees every key: what the targets of a task are for. */
bool long_is_dense(const long_settings *settings);
/* Memory for n sequences of these lengths, all rows wanted or `wanted` of them; false when it is
 * short. */
bool long_batch_new(long_batch *b, heed_arena *arena, const int64_t *lengths, int64_t n,
                    int64_t wanted, int32_t **ids, int32_t **answers, int32_t **rows);

#endif
