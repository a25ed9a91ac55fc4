/* search.h: from the rows of a session to hypotheses: beam search and sampling. */
#ifndef HEED_SEARCH_H
#define HEED_SEARCH_H

#include <heed/engine.h>
#include <heed/options.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What a hypothesis Y is divided by: score = log P(Y) / penalty, EOS counted in |Y|. */
typedef enum heed_penalty_form {
    HEED_PENALTY_WU,   /* ((5+|Y|)/6)^alpha, Wu et al. (2016), as in the Transformer's paper */
    HEED_PENALTY_POWER /* |Y|^alpha; alpha 1 gives the mean log-probability of a token */
} heed_penalty_form;

/* Lengths are in tokens.  A field that is 0 has no effect. */
typedef struct heed_search_options {
    int64_t beam;          /* 1 is greedy */
    int64_t n_best;        /* hypotheses returned for each sentence, at most beam */
    double length_penalty; /* alpha */
    int penalty_form;      /* heed_penalty_form */
    double patience;       /* stop when patience × beam have ended, and n_best; 0: when none that
                      * lives can win */
    /* At most, EOS counted, of the source too: source + extra_length (0 is a limit here),
     * max_length, source * max_ratio, and what the model takes.  Where a model has no source, the
     * prompt takes its place. */
    int64_t extra_length, max_length;
    double max_ratio;
    /* At least this many before EOS, if the limit allows. */
    int64_t min_length;
    double min_ratio;
    int64_t no_repeat;    /* no n-gram of this length twice */
    bool unscored;        /* log_p and score are not needed: greedy search gives NaN for both and
                           * finds the same hypotheses faster */
    bool allow_loops;     /* do not end hypotheses that repeat themselves without end */
    bool suppress_unk;    /* never the unknown piece */
    heed_option_list ban; /* never these pieces; heed_translate knows their ids */
    heed_tokens banned;   /* never these ids */
    bool sample;          /* draw n_best hypotheses instead of searching with a beam */
    double temperature;   /* from p^(1/temperature) */
    int64_t top_k;        /* draw from the k likeliest tokens */
    double top_p;         /* of the fewest tokens whose probabilities reach top_p */
    int64_t seed;
} heed_search_options;
#define HEED_SEARCH_OPTIONS(owner, at)                                                             \
    HEED_OPTION_INT(owner, at.beam, "beam", "4", 1, 1000, "N",                                     \
                    "hypotheses kept at each step; 1 is greedy"),                                  \
        HEED_OPTION_INT(owner, at.n_best, "n-best", "1", 1, 1000, "N",                             \
                        "translations for each line, as `i ||| text ||| score`"),                  \
        HEED_OPTION_REAL(owner, at.length_penalty, "length-penalty", "0.6", 0, 10, "A",            \
                         "score = log P / ((5+length)/6)^A"),                                      \
        HEED_OPTION_CHOICE(owner, at.penalty_form, "penalty-form", "wu",                           \
                           HEED_WORDS("wu", "power"),                                              \
                           "of the length penalty: ((5+length)/6)^A, or length^A"),                \
        HEED_OPTION_REAL(owner, at.patience, "patience", "0", 0, 1000, "P",                        \
                         "stop when P times the beam have ended (1: first come, first served); "   \
                         "0: when none that goes on can win"),                                     \
        HEED_OPTION_INT(owner, at.extra_length, "extra-length", "50", 0, 100000, "N",              \
                        "at most N tokens more than the source has"),                              \
        HEED_OPTION_INT(owner, at.max_length, "max-length", "0", 0, 100000, "N",                   \
                        "at most N tokens, the end counted, in each part of a line that is cut; "  \
                        "0: no such limit"),                                                       \
        HEED_OPTION_REAL(owner, at.max_ratio, "max-ratio", "0", 0, 1000, "R",                      \
                         "at most R times the source's tokens; 0: no such limit"),                 \
        HEED_OPTION_INT(owner, at.min_length, "min-length", "0", 0, 100000, "N",                   \
                        "at least N tokens, in each part of a line that is cut"),                  \
        HEED_OPTION_REAL(owner, at.min_ratio, "min-ratio", "0", 0, 1000, "R",                      \
                         "at least R times the source's tokens"),                                  \
        HEED_OPTION_INT(owner, at.no_repeat, "no-repeat", "0", 0, 1000, "N",                       \
                        "no N tokens in a row twice in a translation; 0: they may"),               \
        HEED_OPTION_BOOL(owner, at.allow_loops, "allow-loops", NULL,                               \
                         "do not cut translations that repeat themselves without end"),            \
        HEED_OPTION_BOOL(owner, at.suppress_unk, "suppress-unk", NULL,                             \
                         "never write the unknown piece"),                                         \
        HEED_OPTION_LIST(owner, at.ban, "ban", "PIECE",                                            \
                         "never write this piece of the vocabulary")
#define HEED_SAMPLE_OPTIONS(owner, at)                                                             \
    HEED_OPTION_BOOL(owner, at.sample, "sample", NULL,                                             \
                     "draw --n-best translations instead of searching"),                           \
        HEED_OPTION_REAL(                                                                          \
            owner, at.temperature, "temperature", "0.7", 0.01, 100, "T",                           \
            "--sample from p^(1/T): 1: as the model says, below safer, above wilder"),             \
        HEED_OPTION_INT(owner, at.top_k, "top-k", "0", 0, INT32_MAX, "K",                          \
                        "--sample from the K most probable tokens; 0: from all"),                  \
        HEED_OPTION_REAL(                                                                          \
            owner, at.top_p, "top-p", "0.9", 0, 1, "P",                                            \
            "--sample from the fewest tokens of probability P together; 1: from all"),             \
        HEED_OPTION_INT(owner, at.seed, "seed", "1", 0, INT64_MAX, "N",                            \
                        "another one, and --sample draws other translations")

typedef struct heed_hypothesis {
    const int32_t *id; /* without BOS; EOS, if it was reached, is the last */
    int64_t count;
    double log_p;                 /* of all tokens */
    double score;                 /* log_p with the length penalty */
    const heed_real *token_log_p; /* (count) */
    bool loop; /* hypotheses of its sentence repeated themselves without end and were ended */
} heed_hypothesis;
/* The n_best best of each of the `count` sources (ids without EOS; where a model has none, prompts,
 * with which every hypothesis begins), best first, in
 * out[sentence*n_best + i]; where fewer were found, count is 0.  In the last place that its limit
 * leaves a hypothesis has EOS, however improbable.  One that says the same again and again is cut
 * behind the first time, has no EOS, and is returned only where no other was found, or if it was
 * drawn.  What is drawn depends on the seed and a sentence's place among the sources.  Lives in the
 * arena. */
heed_status heed_search(heed_session *s, const heed_search_options *o, const heed_tokens *source,
                        int64_t count, heed_arena *arena, heed_hypothesis *out, heed_error *err);

#ifdef __cplusplus
}
#endif
#endif
