/* search_state.h (internal): what the files of the search share.
 *
 *     beam.c           sentences come, take steps together, leave
 *     search_options.c what the options allow: their check, lengths
 *     constraint.c     banned tokens, repeated n-grams, loops
 *     expand.c         one step of a sentence: forced, or by beam
 *     sampling.c       one step of a sentence: drawn
 *     finish.c         hypotheses that are done, and their scores
 *     history.c        the tokens that led to each row
 *     top.c            the best of many continuations */
#ifndef HEED_SEARCH_SEARCH_STATE_H
#define HEED_SEARCH_SEARCH_STATE_H

#include "search/top.h"

/* ---- history ---- */

/* One token of one hypothesis; hypotheses share their beginnings. */
typedef struct heed__link {
    double log_p; /* of all tokens up to this one */
    int32_t token;
    int32_t before; /* the place of the token before it, among the links of the step before */
    heed_real token_log_p;
} heed__link;

/* Steps of a sentence in a block.  Blocks go back to the search when their sentence leaves. */
#define HEED__BLOCK_STEPS 16
typedef struct heed__block {
    struct heed__block *before; /* earlier steps; of a spare block: the next one */
    int64_t first;              /* its first step */
    heed__link link[];          /* (BLOCK_STEPS,width) */
} heed__block;

/* ---- rows and sentences ---- */

/* A hypothesis that lives. */
#define HEED__PERIODS 8
typedef struct heed__beam_row {
    double log_p;
    int32_t sample; /* which of its sentence's samples; -1 before they part */
    uint32_t owed;  /* bit i: placeholder i must still come */
    /* For the loop guard: token i is tail[i % PERIODS]; run[p-1] of the last tokens are equal to
     * the token p before. */
    int32_t tail[HEED__PERIODS], run[HEED__PERIODS];
} heed__beam_row;

/* One that is done. */
typedef struct heed__finished {
    int64_t length;        /* of its tokens in the history, */
    int32_t place;         /* where the last of them stands, */
    int32_t token;         /* and one more behind them; -1: none */
    heed_real token_log_p; /* of that one */
    double log_p, score;
} heed__finished;

typedef struct heed__sentence {
    heed__request request;
    int64_t first, rows;  /* its rows */
    int64_t length;       /* tokens that each of them has */
    int64_t given;        /* forced tokens, EOS included if the request is whole */
    int64_t least, limit; /* tokens before EOS, tokens with EOS: at least, at most */
    int64_t loop;         /* tokens of a repetition that end a hypothesis; 0: none do */
    bool looped;          /* a hypothesis was */
    double limit_penalty; /* of the longest hypothesis */
    heed__block *history; /* the newest block */
    heed__finished *best; /* (n_best), best first */
    int64_t found, ended; /* how many of them; of these, how many count as whole sentences */
    int64_t ends;         /* EOS that counted, of hypotheses kept or not */
} heed__sentence;

/* Whether the next token is the last that the limit allows. */
static inline bool heed__is_last(const heed__sentence *one)
{
    return one->length + 1 == one->limit;
}

struct heed__search {
    heed_allocator allocator;
    heed_arena *memory; /* of one run: all that follows */
    heed_arena *handed; /* of the sentence returned last */
    heed_arena *forced; /* of one step: tokens that are given, and their log P */
    const heed__stepper *model;
    const heed_search_options *o;
    const heed__request_source *requests;
    heed_error *err;
    int64_t width;           /* rows that a sentence may have */
    bool unscored;           /* scores are not needed */
    heed__capacity capacity; /* that is free */
    heed__capacity all;      /* of it, when no sentence is there */
    heed__block *spare_block;
    heed__sentence **live, **spare; /* (all.sentences) in the order of their rows */
    int64_t sentences, spares;
    heed__request *request;       /* (all.sentences) */
    heed_tokens *source, *wanted; /* (all.sentences) of those that come, and how they begin */
    heed__beam_row *row, *next;   /* (all.sentences * width): now, and after this step */
    int64_t rows;
    int32_t *token, *parent;   /* of the rows after this step */
    heed_extension *extension; /* what the model computes for each row */
    heed__top chosen;          /* (width): what continues of the current sentence, best first */
    heed__candidate *end;      /* (width): the EOS of each of its rows */
    heed__filter filter;       /* of the current row */
    bool *banned;              /* (V) */
    int32_t *past, *repeat;    /* (longest): a row's tokens; those it may not take */
    heed__top pick;            /* sampling: what a token is drawn from, */
    heed_real *chance;         /* (2,V) or the chances of all */
};

/* ---- search_options.c ---- */

/* Sets given, least, limit of a sentence that begins; refuses a prefix that does not fit. */
heed_status heed__set_lengths(const heed__search *s, heed__sentence *one);

/* ---- constraint.c ---- */

/* Fills s->banned. */
heed_status heed__set_banned(heed__search *s);
/* Sets s->filter for a row. */
void heed__set_filter(heed__search *s, const heed__sentence *one, int64_t row);
/* The placeholders that a hypothesis of this source must have, as heed__beam_row.owed. */
uint32_t heed__placeholders_of(const heed__search *s, const heed__request *r);
/* Tokens of a repetition that end a hypothesis: more where the source repeats itself. */
int64_t heed__loop_length(const heed_tokens *source);
/* The row takes a token.  Returns how many of its last tokens only repeat what stands before them,
 * if that makes a loop; 0 otherwise. */
int64_t heed__row_take(heed__beam_row *row, const heed__sentence *one, const heed_special_ids *ids,
                       int32_t token);

/* ---- expand.c, sampling.c: one step of a sentence ---- */

/* A sentence whose next tokens are given: what the model is asked, and what becomes of its answer.
 * All of them at once where the model extends rows by several tokens. */
heed_status heed__force_ask(heed__search *s, const heed__sentence *one, heed_extension *x);
heed_status heed__force(heed__search *s, heed__sentence *one, const heed_extension *x,
                        int64_t *rows);
/* Each leaves in s->chosen what continues, and keeps what is done; the sentence's first row is row
 * `at` of the scores. */
heed_status heed__expand(heed__search *s, heed__sentence *one, const heed_scores *scores,
                         int64_t at);
heed_status heed__draw_tokens(heed__search *s, heed__sentence *one, const heed_scores *scores,
                              int64_t at);

/* ---- finish.c ---- */

double heed__penalty(const heed_search_options *o, int64_t length);
/* Keeps a continuation among the best of its sentence: as one that reached its end, or one that
 * counts only where none did. */
void heed__finish(heed__search *s, heed__sentence *one, const heed__candidate *c, bool ended);
/* The same for a continuation that goes in circles, without its last `repeated` tokens. */
void heed__finish_loop(heed__search *s, heed__sentence *one, const heed__candidate *c,
                       int64_t repeated);
/* Returns a sentence's best to the request source. */
heed_status heed__return_best(heed__search *s, const heed__sentence *one);

/* ---- history.c ---- */

/* Links (width) for the token that the sentence's rows take now; NULL after an error. */
heed__link *heed__history_grow(heed__search *s, heed__sentence *one);
/* What a hypothesis whose token of `step` stands at `place` had `back` tokens before. */
const heed__link *heed__history_back(const heed__search *s, const heed__sentence *one, int64_t step,
                                     int32_t place, int64_t back, int32_t *there);
/* Its first `count` tokens, the last of which stands at `place`; log_p may be NULL. */
void heed__history_read(const heed__search *s, const heed__sentence *one, int64_t count,
                        int32_t place, int32_t *id, heed_real *log_p);
void heed__history_drop(heed__search *s, heed__sentence *one);

#endif
