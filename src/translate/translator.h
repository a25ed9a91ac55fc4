/* translator.h (internal): what heed_translate and heed_score share. */
#ifndef HEED_TRANSLATE_TRANSLATOR_H
#define HEED_TRANSLATE_TRANSLATOR_H

#include "base/parallel.h"
#include "engine/engine.h"
#include "search/beam.h"
#include "translate/align.h"
#include "translate/protect.h"

/* What a worker has to itself. */
typedef struct heed__worker_context {
    int threads; /* inside of the session; 0: not open */
    heed_session *session;
    heed__search *search;
    heed_arena *text; /* of the sentence that is done */
} heed__worker_context;

/* Windows of lines that may be active at once. */
#define HEED__WINDOWS 4

struct heed_translator {
    heed_allocator allocator;
    heed_engine *engine;
    const heed_vocab *source, *target;
    heed_vocab *own_source, *own_target; /* only where the translator opened them itself */
    bool aligns;
    int align_layer, align_head;             /* from 1; head 0: all */
    char *sample;                            /* where its training text would lie; NULL: nowhere */
    bool shortlist;                          /* sessions use the engine's */
    int64_t trained_length, trained_longest; /* of heed_text_config; 0: not known */
    bool knows_placeholders, protects;       /* the model does; spans travel as such */
    bool lacks_placeholders;                 /* they would, if it did */
    heed__language into;                     /* as the directory's name says */
    const heed__names *names;                /* NULL: none are copied */
    heed__names *own_names;                  /* only where the translator opened them itself */
    bool knows_letters, capitals; /* not only words; a line in capitals is one in small letters */
    uint8_t *characters;          /* of the source vocabulary */
    int threads;
    heed__worker_context
        context[HEED_MAX_THREADS + 1]; /* 0: the caller's thread; 1, 2 ...: workers */
    heed_arena *lines;                 /* one call */
    heed_arena *window[HEED__WINDOWS]; /* active lines */
};

/* Opens contexts for this number of sentences: 1 to *workers, or context 0 and *workers is 0.
 * asked: workers that are wanted; 0: all threads, if there are sentences enough. */
heed_status heed__worker_contexts_open(heed_translator *tr, int asked, int64_t sentences,
                                       int *workers, heed_error *err);
void heed__worker_contexts_close(heed_translator *tr);

/* Tells it what training saw, where that is not read from a directory; names are borrowed. */
void heed__translator_trained(heed_translator *tr, const heed_text_config *text,
                              const heed__names *names);

/* Which come when: the longest first, equals in their order.  lengths are from 0 to most; NULL when
 * memory is short. */
const int64_t *heed__longest_first(const int64_t *lengths, int64_t count, int64_t most,
                                   heed_arena *arena, heed_error *err);

/* ---- lines ---- */

/* What of a line is decoded at once: all of it, unless it is too long. */
typedef struct heed__part {
    heed_tokens tokens, prefix;
    const heed__protected *span; /* (spans) what its placeholders stand for */
    int64_t spans;
    uint64_t number;                 /* names its random numbers */
    struct heed__queued_line *entry; /* the line it is of */
    heed_translation *out;           /* (outs) where its translations go */
    int64_t outs;
    heed__alignment alignment; /* of the best */
} heed__part;
typedef struct heed__line {
    heed__part *part;
    int64_t parts; /* 0: the line is empty, or */
    const char
        *copied; /* it is its own translation, as where it has nothing but spans; else NULL */
    bool repaired, all_caps, too_long, unprotected;
} heed__line;
/* One line in, one line out: line ends inside become spaces. */
void heed__remove_line_ends(char *text);
/* Tokens of a line that need not be UTF-8. */
heed_status heed__encode_line(const heed_vocab *v, const char *text, heed_arena *arena,
                              heed_tokens *tokens, bool *repaired, heed_error *err);
/* Tokens that are decoded at once, without EOS. */
typedef struct heed__limits {
    int64_t together;         /* of several sentences */
    int64_t longest;          /* of one; not less */
    bool protects;            /* spans become placeholders, HEED_PLACEHOLDERS of them at most */
    bool lacks_placeholders;  /* a line with a span is known by it */
    bool capitals;            /* a line in capitals is one in small letters */
    const heed__names *names; /* NULL, or names that are hardly known become placeholders too */
    heed__language into;
    const uint8_t *characters; /* NULL, or lines of other ones are not translated */
} heed__limits;
/* Which characters are in any piece, a bit for each; all where the rest becomes bytes. */
uint8_t *heed__characters_of(const heed_vocab *v, heed_arena *arena, const heed_allocator *a,
                             heed_error *err);
void heed__characters_free(uint8_t *known, const heed_allocator *a);
/* Whether a UTF-8 line is its own translation, because the model can make nothing of it. */
bool heed__passes_through(const heed__limits *limits, const char *text, size_t length);
/* The same in parts within the limits: cut at sentence ends, and inside of a sentence only where it
 * is longer than the longest. */
heed_status heed__split_line(const heed_vocab *v, const char *text, const heed__limits *limits,
                             heed_arena *arena, heed__line *line, heed_error *err);
/* Puts the translations of a line's parts together. */
heed_status heed__join_parts(const heed_translation *part, int64_t parts, heed_arena *arena,
                             heed_translation *out, heed_error *err);

#endif
