/* translate.h: from a trained model to translations.
 * A complete program, C11 or C++20:
 * cc say.c $(pkg-config --cflags --libs heed) && ./a.out m 'A dog.'
 *
 *     #include <heed/translate.h>
 *     #include <stdio.h>
 *
 *     int main(int argc, char **argv)
 *     {
 *         heed_error err = {HEED_OK, ""};
 *         heed_search_options how = {.beam = 4, .n_best = 1, .length_penalty = 0.6,
 *                                    .extra_length = 50};
 *         heed_translator *tr = heed_translator_open(argc > 1 ? argv[1] : "m", 0, NULL, &err);
 *         heed_arena *arena = heed_arena_new(NULL, &err);        // what a translation lives in
 *         for (int i = 2; i < argc && err.status == HEED_OK; i++) {
 *             heed_translation best;
 *             const char *line = argv[i];
 *             heed_arena_reset(arena);
 *             if (heed_translate(tr, &how, &line, 1, arena, &best, &err) == HEED_OK)
 *                 printf("%s\n", best.text);
 *         }
 *         if (err.status != HEED_OK)
 *             fprintf(stderr, "%s\n", err.text);
 *         heed_arena_free(arena);
 *         heed_translator_free(tr);
 *         return err.status != HEED_OK;
 *     }
 *
 * A translator is an engine with its vocabularies; engine, sessions and search also work on ids. */
#ifndef HEED_TRANSLATE_H
#define HEED_TRANSLATE_H

#include <heed/search.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct heed_translator heed_translator;
/* Opens a model directory (config.json, model.safetensors, vocabulary) or an installed model by its
 * name, as heed_model_find finds it.  threads 0: all processors, and for few lines one where the
 * model is small. */
heed_translator *heed_translator_open(const char *folder, int threads,
                                      const heed_allocator *allocator, heed_error *err);
/* Over a model that somebody else holds, as the trainer does, as it is now; borrows all three. */
heed_translator *heed_translator_new(const heed_model *m, const heed_vocab *source,
                                     const heed_vocab *target, int threads,
                                     const heed_allocator *allocator, heed_error *err);
void heed_translator_free(heed_translator *tr);
const heed_engine *heed_translator_engine(const heed_translator *tr);
/* From now on with word alignments: where the words of a translation looked in the source, in a
 * head of a decoder layer, or in all its heads together; both from 1.  Layer and head 0: the best
 * head; layer 0 where that is not known: the last but one of three or more, which aligns best as a
 * rule, else the last; head 0: all. */
heed_status heed_translator_align(heed_translator *tr, int layer, int head, heed_error *err);
/* The head that looks most often where a lexicon, learned from the sample of its training text that
 * lies in a model's directory, says that a piece of a translation comes from; head 0: all of the
 * layer together do better; layer 0 where there is no sample, or nothing to choose. */
heed_status heed_translator_best_head(const heed_translator *tr, int *layer, int *head,
                                      heed_error *err);
/* From now on with the shortlist that lies in the directory: faster where the vocabulary is large.
 * */
heed_status heed_translator_use_shortlist(heed_translator *tr, const char *folder, heed_error *err);
/* Whether addresses, %s, {name}, <b>, 3.5 km, $5, dates, file names, unknown names and the like
 * come out as they went in, each once; they do with every model that was trained for it, unless
 * this says no. */
void heed_translator_protect(heed_translator *tr, bool on);
/* Whether a line that is all in CAPITALS is translated as if it were not, and the translation put
 * into capitals; it is, unless this says no or the tokens are whole words. */
void heed_translator_capitals(heed_translator *tr, bool on);
/* A pair as the model sees it, without EOS: spans of the source that must not change are
 * placeholders on both sides, and a source in capitals is in small letters.  A source with more
 * spans than there are placeholders, or with nothing else, is taken as it stands. */
typedef struct heed_encoded_pair {
    heed_tokens source, target;
    const char *const *span; /* (spans) what the placeholders stand for, in their order */
    int64_t spans;
    bool repaired; /* as in heed_translation */
} heed_encoded_pair;
/* The target may be NULL.  Lives in the arena. */
heed_status heed_translator_encode(const heed_translator *tr, const char *source,
                                   const char *target, heed_arena *arena, heed_encoded_pair *pair,
                                   heed_error *err);
const heed_vocab *heed_translator_source(const heed_translator *tr);
const heed_vocab *heed_translator_target(const heed_translator *tr);

/* Bytes of a line that is translated, at most: a longer one is a file without line ends. */
#define HEED_LONGEST_LINE ((size_t)1 << 20)
typedef struct heed_translation {
    const char *text; /* without line ends */
    double score, log_p;
    int64_t tokens;               /* EOS counted */
    const int32_t *id;            /* (tokens), as in heed_hypothesis; of a line that was cut, each
                                     part counts its placeholders from 0 */
    const heed_real *token_log_p; /* (tokens) */
    bool repaired; /* the line was not UTF-8 throughout; U+FFFD took the place of each wrong byte */
    bool loop;     /* as in heed_hypothesis */
    bool too_long; /* the line has more than HEED_LONGEST_LINE bytes and is its own translation */
    bool unprotected; /* it has addresses, times or the like, and the model no placeholders */
    /* Of the best one, with heed_translator_align: which word of the line each of its words comes
     * from, in Pharaoh's form, "0-0 1-2"; else NULL. */
    const char *alignment;
} heed_translation;
/* n_best translations of each line, best first, in out[line*n_best + i]; text is NULL where there
 * are fewer.  An empty line gives an empty line; a line that the model can make nothing of (base64,
 * marks, a script that the vocabulary does not have) gives itself; one that is too long is split at
 * sentence ends or windows and joined (then there is one translation only, its score the sum).
 * Lines are sorted by length and decoded in batches inside, by all threads side by side if there
 * are lines enough.  Lives in the arena. */
heed_status heed_translate(heed_translator *tr, const heed_search_options *o,
                           const char *const *lines, int64_t count, heed_arena *arena,
                           heed_translation *out, heed_error *err);

/* A line that comes by itself. */
typedef struct heed_source_line {
    const char *text;   /* until next is called again; NULL: there is none */
    const char *prefix; /* how its translations begin (of a line that is split: the first part), as
                         * far as the model takes it; NULL: anyhow.  Lives as long as text */
    uint64_t number;    /* names its random numbers when translations are drawn */
    void *tag;          /* the caller's own */
} heed_source_line;
/* Where lines come from and translations go.  Both are called in the thread that called
 * heed_translate_stream. */
typedef struct heed_line_stream {
    void *context;
    /* The next line.  Without `wait` a text of NULL only means that none has come yet. */
    heed_status (*next)(void *context, bool wait, heed_source_line *line, heed_error *err);
    /* Line by line in the order they came: number and tag of the line, and its translations
     * (n_best), which live until the call returns. */
    heed_status (*done)(void *context, const heed_source_line *line, const heed_translation *out,
                        heed_error *err);
} heed_line_stream;
typedef struct heed_stream_options {
    int workers;   /* workers that translate side by side; 0: the first lines that come
                    * decide: many, one for each thread; few, one with all threads inside */
    int64_t batch; /* sentences decoded together by a worker, at most; 0: up to 512 rows */
} heed_stream_options;
/* heed_translate for a stream of lines, in constant memory.  A line's translation is delivered
 * as soon as it is there and those before it are.  When next fails, the lines before are still
 * translated and delivered, and then the call ends with its error; when done fails, it ends at
 * once. */
heed_status heed_translate_stream(heed_translator *tr, const heed_search_options *o,
                                  const heed_stream_options *so, const heed_line_stream *stream,
                                  heed_error *err);
/* How probable given translations are: target[i] of source[i], its EOS included; score is log_p.
 * An empty line is a sentence of nothing but EOS.  Tokens are those of heed_translator_encode.
 * Refuses a line that is longer than the model takes.  Lives in the arena. */
heed_status heed_score(heed_translator *tr, const char *const *source, const char *const *target,
                       int64_t count, heed_arena *arena, heed_hypothesis *out, heed_error *err);

#ifdef __cplusplus
}
#endif
#endif
