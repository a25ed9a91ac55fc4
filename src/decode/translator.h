/* translator.h (internal): what heed_translate and heed_score share. */
#ifndef HEED_DECODE_TRANSLATOR_H
#define HEED_DECODE_TRANSLATOR_H

#include "decode/search.h"

struct heed_translator {
    heed_allocator allocator;
    const heed_model *model;
    const heed_vocab *source, *target;
    heed_model *own_model; /* these three only where the translator opened them itself */
    heed_vocab *own_source, *own_target;
    int64_t trained_length, trained_longest; /* of heed_text_config; 0: not known */
    int threads;
    heed_decoder *decoder;
    heed_tape *tape;   /* for scores; made when the first are asked for */
    heed_arena *lines; /* one call */
    heed_arena *batch; /* one batch of it */
};

/* Tells it what training saw, where that is not read from a directory. */
void heed__translator_trained(heed_translator *tr, const heed_text_config *text);

/* Which come when: the longest first, equals in their order.  lengths are from 0 to most; NULL when
 * memory is short. */
const int64_t *heed__longest_first(const int64_t *lengths, int64_t count, int64_t most,
                                   heed_arena *arena, heed_error *err);

/* ---- lines ---- */

/* What of a line is decoded at once: all of it, unless it is too long. */
typedef struct heed__part {
    heed_tokens tokens;
    heed_translation *out; /* (outs) where its translations go */
    int64_t outs;
} heed__part;
typedef struct heed__line {
    heed__part *part;
    int64_t parts; /* 0: the line is empty */
    bool repaired;
} heed__line;
/* Tokens of a line that need not be UTF-8. */
heed_status heed__encode_line(const heed_vocab *v, const char *text, heed_arena *arena,
                              heed_tokens *tokens, bool *repaired, heed_error *err);
/* Tokens that are decoded at once, without EOS. */
typedef struct heed__limits {
    int64_t together; /* of several sentences */
    int64_t longest;  /* of one; not less */
} heed__limits;
/* The same in parts within the limits: cut at sentence ends, and inside of a sentence only where it
 * is longer than the longest. */
heed_status heed__cut_line(const heed_vocab *v, const char *text, const heed__limits *limits,
                           heed_arena *arena, heed__line *line, heed_error *err);
/* Puts the translations of a line's parts together. */
heed_status heed__join_parts(const heed_translation *part, int64_t parts, heed_arena *arena,
                             heed_translation *out, heed_error *err);

#endif
