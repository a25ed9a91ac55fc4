/* cmd_evaluate.h: scoring lines against references and printing the scores. */
#ifndef HEED_CLI_CMD_EVALUATE_H
#define HEED_CLI_CMD_EVALUATE_H

#include <heed/metric.h>

#define METRIC_LIST(X)                                                                             \
    X(BLEU, "bleu")                                                                                \
    X(CHRF, "chrf")                                                                                \
    X(CHRF_PLUS, "chrf++")                                                                         \
    X(TER, "ter")
enum metric {
#define METRIC_ENUM(name, text) METRIC_##name,
    METRIC_LIST(METRIC_ENUM)
#undef METRIC_ENUM
        METRICS
};

struct evaluation {
    enum metric metric[METRICS]; /* the first `count`, in the order they were asked for */
    int count;
    int tokenize; /* heed_tokenize */
    bool lowercase, compound_split, sentence, json;
    heed_ter_options ter;
    int64_t resamples, seed;
    int references; /* of each line, side by side wherever references are given */
};

/* The metrics named in a list with commas; false after saying which is unknown or twice there. */
bool evaluation_choose(struct evaluation *e, const char *names);
/* Computes and prints; other, another system's lines, may be NULL.  False after saying what went
 * wrong. */
bool evaluate(const struct evaluation *e, const char *const *hypothesis, const char *const *other,
              const char *const *reference, int64_t count);

/* What a metric is called in options and for people; the score of lines, with e's options. */
const char *evaluation_name(enum metric m);
const char *evaluation_title(enum metric m);
heed_status evaluation_score(const struct evaluation *e, enum metric m,
                             const char *const *hypothesis, const char *const *reference,
                             int64_t count, double *value, heed_error *err);

/* Translations of the same lines by several systems. */
#define MOST_SYSTEMS 6 /* the number of colours of curves */
struct systems {
    int count;
    const char *name[MOST_SYSTEMS];
    const char *const *hypothesis[MOST_SYSTEMS];
    const char *const *source, *const *reference;
    int references; /* of each line */
    int64_t lines;
};
/* False after saying what is wrong with "10,15,20". */
bool length_edges_right(const char *edges);
/* A table, or JSON, and curves in the file `output` unless that is NULL: scores of the groups of
 * source lengths that edges, which are right, make.  False after saying what went wrong. */
bool evaluate_by_length(const struct evaluation *e, const struct systems *s, const char *edges,
                        const char *output, heed_arena *arena);

#endif
