/* generate.h: language models write and judge text.
 *
 *     heed_generator *g = heed_generator_open("m", 1, NULL, &err);
 *     heed_generate(g, "Once upon", 9, &options, 1, &sink, arena, &out, &err);
 *     heed_generator_free(g);
 */
#ifndef HEED_GENERATE_H
#define HEED_GENERATE_H

#include <heed/engine.h>
#include <heed/vocab.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A language model: a directory of heed's, or one as it was found (GPT-2, Llama, llama2.c).  One
 * thread at a time; `threads` work inside. */
typedef struct heed_generator heed_generator;
heed_generator *heed_generator_open(const char *folder, int threads,
                                    const heed_allocator *allocator, heed_error *err);
void heed_generator_free(heed_generator *g);
const heed_engine *heed_generator_engine(const heed_generator *g);
const heed_vocab *heed_generator_vocab(const heed_generator *g);

/* ---- writing ---- */

/* The distribution that a token is drawn from is made in this order: logits of tokens that stand in
 * the context already are divided by repetition_penalty if positive, else multiplied with it
 * (Keskar et al. 2019); p^(1/temperature); the top_k likeliest; of these the fewest whose
 * probabilities reach top_p; of these the ones that have min_p of the likeliest's probability. */
typedef struct heed_generate_options {
    int64_t max_tokens;
    double temperature;        /* 0: always the likeliest */
    int64_t top_k;             /* 0: all */
    double top_p;              /* 1: all */
    double min_p;              /* 0: all */
    double repetition_penalty; /* 1: none */
    heed_option_list stop;     /* texts that end the writing; they are not part of it */
    bool past_end;             /* go on behind the end mark */
    int64_t seed;
} heed_generate_options;
#define HEED_GENERATE_OPTIONS(owner, at)                                                           \
    HEED_OPTION_INT(owner, at.max_tokens, "max-tokens", "256", 1, 1000000000, "N",                 \
                    "write N tokens at most"),                                                     \
        HEED_OPTION_REAL(owner, at.temperature, "temperature", "0.8", 0, 100, "T",                 \
                         "draw from p^(1/T): 1: as the model says, below safer, above wilder; 0: " \
                         "always the likeliest"),                                                  \
        HEED_OPTION_INT(owner, at.top_k, "top-k", "0", 0, INT32_MAX, "K",                          \
                        "draw from the K most probable tokens; 0: from all"),                      \
        HEED_OPTION_REAL(owner, at.top_p, "top-p", "0.95", 0, 1, "P",                              \
                         "of these from the fewest of probability P together; 1: from all"),       \
        HEED_OPTION_REAL(owner, at.min_p, "min-p", "0", 0, 1, "P",                                 \
                         "of these from those with P times the likeliest's probability"),          \
        HEED_OPTION_REAL(owner, at.repetition_penalty, "repetition-penalty", "1", 0.01, 100, "R",  \
                         "above 1: what stands in the context already becomes less likely"),       \
        HEED_OPTION_LIST(owner, at.stop, "stop", "TEXT", "end before this text"),                  \
        HEED_OPTION_BOOL(owner, at.past_end, "past-end", NULL,                                     \
                         "go on behind the model's end mark"),                                     \
        HEED_OPTION_INT(owner, at.seed, "seed", "1", 0, INT64_MAX, "N",                            \
                        "another one, and other tokens are drawn")

typedef enum heed_generate_stop {
    HEED_STOP_END,    /* the model ended the text */
    HEED_STOP_LENGTH, /* max_tokens */
    HEED_STOP_STRING, /* one of `stop` */
    HEED_STOP_ASKED,  /* the sink said so */
} heed_generate_stop;
#define HEED_GENERATE_STOP_WORDS "eos", "length", "string", "asked"

/* Text as it is written: whole characters, nothing that may still become a text of `stop`.  Bytes
 * that are no UTF-8 are U+FFFD.  False: no more is wanted, of any sample. */
typedef struct heed_generate_sink {
    bool (*write)(void *context, int64_t sample, const char *text, size_t size);
    void *context;
} heed_generate_sink;

/* What was written behind the prompt; lives in the arena. */
typedef struct heed_generation {
    const char *text; /* (size) and a NUL; without the prompt */
    size_t size;
    const int32_t *id;   /* (count) the tokens, those of the end mark or of a text of `stop` too */
    const double *log_p; /* (count) log P of each, before temperature and the like */
    int64_t count;
    heed_generate_stop stop;
} heed_generation;

/* The prompt's tokens go through the model at once, behind the token that stands before a text;
 * then `samples` continuations are written beside each other, out (samples).  What a sample draws
 * depends on the seed and its number alone.
 * Where the context is full, the last half of it is read again, as if the text began there: so
 * there is no end to what can be written.  A prompt that is longer than the context begins with its
 * end.  sink: NULL or who wants the text at once. */
heed_status heed_generate(heed_generator *g, const char *prompt, size_t length,
                          const heed_generate_options *o, int64_t samples,
                          const heed_generate_sink *sink, heed_arena *arena, heed_generation *out,
                          heed_error *err);

/* ---- judging ---- */

/* nll: nats, over all tokens.  perplexity is exp(nll / tokens), bits per byte
 * nll / ln 2 / bytes. */
typedef struct heed_text_score {
    double nll;
    int64_t tokens, bytes;
    int64_t unknown; /* tokens that the vocabulary does not have */
} heed_text_score;
/* -log P of text files, plain or .gz, line ends included: each token has before it what fits into
 * the context, half a context at least (where the context is full, its last half is read again).
 * progress, which may be NULL, hears how many of how many tokens are done, and stops by returning
 * false: then what was read is the score. */
heed_status heed_generator_score(heed_generator *g, const char *const *paths, int count,
                                 bool (*progress)(void *context, int64_t done, int64_t all),
                                 void *context, const heed_log_sink *log, heed_text_score *out,
                                 heed_error *err);

#ifdef __cplusplus
}
#endif
#endif
