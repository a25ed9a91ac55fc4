/* text.h: lines of text, token ids, sentences. */
#ifndef HEED_TEXT_H
#define HEED_TEXT_H

#include <heed/base.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- lines ---- */

/* A source of lines: *text is NULL at the end; valid until the next call. */
typedef struct heed_line_source {
    heed_status (*next)(void *context, const char **text, size_t *length, heed_error *err);
    void *context;
} heed_line_source;

/* The lines of files, plain or .gz, one file after the other; "-" is standard input.  The paths are
 * borrowed.  A line has at most 16 MB and no NUL; it ends in LF or CRLF and is returned without. */
typedef struct heed_lines heed_lines;
heed_lines *heed_lines_open(const char *const *paths, int count, const heed_allocator *allocator,
                            heed_error *err);
void heed_lines_free(heed_lines *l);
heed_status heed_lines_next(heed_lines *l, const char **text, size_t *length, heed_error *err);
/* The file and the number, from 1, of the last line returned. */
int64_t heed_lines_where(const heed_lines *l, const char **path);

/* Whether text is valid UTF-8; if not, *bad (may be NULL) is the index of the first invalid byte.
 * NUL is a valid character here. */
bool heed_utf8_valid(const char *text, size_t length, size_t *bad);

/* ---- tokens ---- */

/* The tokens of a vocabulary that are not text; -1: there is none.  They come from the vocabulary
 * (heed_vocab_special); what only has a model finds them in its configuration. */
typedef struct heed_special_ids {
    int32_t unk, bos, eos, pad, mask, cls, sep;
    int32_t start;        /* what a decoder reads first: BOS, or another (Marian: the padding) */
    int32_t placeholder;  /* the first of those that stand for protected spans, <ph0> .. <ph9>, */
    int32_t placeholders; /* and how many there are: 0 or HEED_PLACEHOLDERS */
} heed_special_ids;
typedef struct heed_pair_ids {
    heed_special_ids source, target;
} heed_pair_ids;

/* Where they are in the vocabularies that heed learns for translation: the first ids. */
enum { HEED_UNK = 0, HEED_BOS = 1, HEED_EOS = 2, HEED_PLACEHOLDER = 3, HEED_PLACEHOLDERS = 10 };
#define HEED_OWN_IDS                                                                               \
    ((heed_special_ids){.unk = HEED_UNK,                                                           \
                        .bos = HEED_BOS,                                                           \
                        .eos = HEED_EOS,                                                           \
                        .pad = -1,                                                                 \
                        .mask = -1,                                                                \
                        .cls = -1,                                                                 \
                        .sep = -1,                                                                 \
                        .start = HEED_BOS,                                                         \
                        .placeholder = HEED_PLACEHOLDER,                                           \
                        .placeholders = HEED_PLACEHOLDERS})

typedef struct heed_tokens {
    const int32_t *id;
    int64_t count;
} heed_tokens;

/* ---- sentences ---- */

/* Splits a text at sentence ends into parts of at most max_bytes if possible, else at spaces, else
 * between characters; joined they are the text.  Returns the number of parts; end[i] is where part
 * i ends.  end lives in the arena; 0 when memory is short. */
int64_t heed_split_sentences(const char *text, size_t length, size_t max_bytes, heed_arena *arena,
                             const size_t **end);

#ifdef __cplusplus
}
#endif
#endif
