/* vocabulary.h: what the files of the vocabulary share.  There are two kinds with one interface:
 * SentencePiece (unigram, BPE) and words between spaces. */
#ifndef HEED_VOCAB_VOCABULARY_H
#define HEED_VOCAB_VOCABULARY_H

#include "vocab/sentencepiece_shim.h"
#include "vocab/vocab_pieces.h"
#include "vocab/vocab_trie.h"

#include <heed/vocab.h>

/* <unk> <s> </s> and the placeholders. */
#define HEED__SPECIALS (HEED_PLACEHOLDER + HEED_PLACEHOLDERS)

struct heed_vocab {
    heed_allocator allocator;
    heed_vocab_kind kind;
    heed__pieces pieces;
    heed_special_ids special;
    char *joiner; /* without its space; NULL if there is none */
    size_t joiner_length;
    /* SentencePiece only: */
    heed__spm *spm;
    heed__trie trie;   /* unigram */
    float least_score; /* of the ordinary pieces */
    uint32_t longest;  /* bytes of the longest piece */
    bool has_bytes;    /* <0x00> .. <0xFF> for characters that are in no piece */
};

/* U+2581, which SentencePiece writes for a space. */
#define HEED__SPACE "\xe2\x96\x81"
#define HEED__SPACE_LENGTH (sizeof HEED__SPACE - 1)

/* The text of special piece i and its type. */
const char *heed__special(int32_t i);
heed__piece_type heed__special_type(int32_t i);

/* The text normalised for SentencePiece (vocab_clean.h); ARGUMENT if it is not UTF-8. */
heed_status heed__vocab_clean(const char *text, size_t length, heed_arena *arena,
                              const char **clean, size_t *clean_length, heed_error *err);

/* ---- words between spaces ---- */

/* Fills v->pieces from the bytes of a file. */
heed_status heed__words_read(heed_vocab *v, const char *path, const char *bytes, size_t size,
                             heed_error *err);
heed_status heed__words_encode(const heed_vocab *v, const char *text, size_t length,
                               heed_arena *arena, heed_tokens *tokens, heed_error *err);
heed_status heed__words_decode(const heed_vocab *v, const int32_t *ids, int64_t n,
                               heed_arena *arena, const char **text, heed_error *err);
/* Whether the piece is joined to the next one. */
bool heed__words_continues(const heed_vocab *v, int32_t id);
/* Learns and writes a vocabulary; *count: its number of pieces. */
heed_status heed__words_learn(const heed_vocab_options *options, const heed_line_source *lines,
                              const char *path, int32_t *count, heed_error *err);

/* ---- SentencePiece ---- */

heed_status heed__spm_read(heed_vocab *v, const char *path, const void *bytes, size_t size,
                           heed_error *err);
heed_status heed__spm_learn(const heed_vocab_options *options, const heed_line_source *lines,
                            const char *path, int32_t *count, heed_error *err);

#endif
