/* generator.h (internal): what the files of text generation share.
 *
 *     generator.c       a model and its vocabulary, opened
 *     context.c         rows of a session whose context slides
 *     choose_token.c    the distribution that a token is drawn from
 *     written_text.c    tokens to text, as it can be shown
 *     generate.c        the loop
 *     score_text.c      -log P of a text */
#ifndef HEED_GENERATE_GENERATOR_H
#define HEED_GENERATE_GENERATOR_H

#include "base/error.h"
#include "base/memory.h"
#include "base/string.h"

#include <heed/generate.h>

struct heed_generator {
    heed_allocator allocator;
    heed_engine *engine;
    heed_vocab *vocab, *other; /* other: the same, or the unused one of two */
    heed_session *session;
    heed_special_ids ids;
    int32_t end_mark; /* -1: none */
    bool keeps_lines; /* line ends are tokens */
    bool packed;      /* rows take several tokens, and give them back */
    int64_t longest;
};

/* Whether a token ends the text: the end mark, or the beginning of another. */
bool heed__generator_ends(const heed_generator *g, int32_t token);
/* The tokens of a prompt, the one that stands before a text first. */
heed_status heed__generator_encode(const heed_generator *g, const char *text, size_t length,
                                   heed_arena *arena, heed_tokens *tokens, heed_error *err);

/* ---- context.c ---- */

/* Rows of the session, of the same length. */
typedef struct heed__context {
    heed_generator *g;
    int64_t rows, length; /* tokens that the model sees */
} heed__context;
/* One row without tokens. */
heed_status heed__context_begin(heed__context *c, heed_generator *g, heed_error *err);
/* Row r takes text[r], as many tokens as any other and no more than fit.  scores: NULL or what may
 * follow.  Of one row, wanted (tokens) may be given: log_p[i] = log P(wanted[i] | all up to i). */
heed_status heed__context_feed(heed__context *c, const heed_tokens *text, const int32_t *wanted,
                               heed_real *log_p, heed_scores *scores, heed_error *err);
/* Where the context is full: rows begin again with the last half of text[r], which is all that they
 * have read. */
heed_status heed__context_slide(heed__context *c, const heed_tokens *text, heed_error *err);
/* Row r continues row parent[r]. */
heed_status heed__context_reorder(heed__context *c, const int32_t *parent, int64_t rows,
                                  heed_error *err);

/* ---- choose_token.c ---- */

typedef struct heed__weighed {
    double weight;
    int32_t id;
} heed__weighed;
typedef struct heed__token_chooser {
    const heed_generate_options *o;
    heed_allocator allocator;
    int64_t vocabulary;
    double *weight;           /* (V) not normalised */
    heed__weighed *candidate; /* (V) */
    int64_t candidates;       /* of the last choice, likeliest first; 0: all of weight */
} heed__token_chooser;
heed_status heed__token_chooser_init(heed__token_chooser *c, const heed_generate_options *o,
                                     int64_t vocabulary, const heed_allocator *allocator,
                                     heed_error *err);
void heed__token_chooser_deinit(heed__token_chooser *c);
/* A token by its logits; context (length) stands before it; u is drawn from 0 to 1.  -1: the logits
 * are not finite. */
int32_t heed__token_choose(heed__token_chooser *c, const heed_real *logit, const int32_t *context,
                           int64_t length, double u);

/* ---- written_text.c ---- */

/* The text of a growing row of tokens. */
typedef struct heed__written_text {
    const heed_generator *g;
    heed_arena *arena; /* for decoding; reset at each token */
    heed__string text; /* as far as it is sure */
    heed__string raw;  /* bytes that may be half a character */
    int64_t from, read;
    const heed_option_list *stop;
    size_t shown; /* of text, to the sink */
    bool stopped; /* a text of stop was found, and cut off with what is behind it */
} heed__written_text;
heed_status heed__written_text_init(heed__written_text *w, const heed_generator *g,
                                    const heed_option_list *stop, heed_error *err);
void heed__written_text_deinit(heed__written_text *w);
/* id (count): the row from its beginning, the new token last; those before `first` are of the
 * prompt, whose text is not written. */
heed_status heed__written_text_add(heed__written_text *w, const int32_t *id, int64_t count,
                                   int64_t first, heed_error *err);
/* Nothing more comes. */
void heed__written_text_end(heed__written_text *w);
/* What can be shown now and was not: its size, at *text. */
size_t heed__written_text_take(heed__written_text *w, const char **text);

#endif
