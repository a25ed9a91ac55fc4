/* vocabulary.h: what the files of the vocabulary share.  Each kind of vocabulary is a class of four
 * functions: SentencePiece's own library, words between spaces, byte-level BPE, BPE by scores
 * (characters: without any), WordPiece. */
#ifndef HEED_VOCAB_VOCABULARY_H
#define HEED_VOCAB_VOCABULARY_H

#include "vocab/sentencepiece_shim.h"
#include "vocab/split_words.h"
#include "vocab/vocab_merges.h"
#include "vocab/vocab_pieces.h"
#include "vocab/vocab_trie.h"

#include <heed/vocab.h>

/* <unk> <s> </s> and the placeholders. */
#define HEED__SPECIALS (HEED_PLACEHOLDER + HEED_PLACEHOLDERS)

struct heed__sampler;

typedef struct heed__vocab_class {
    /* NULL: cut with strength 0. */
    heed_status (*encode)(const heed_vocab *v, const char *text, size_t length, heed_arena *arena,
                          heed_tokens *tokens, heed_error *err);
    /* Cuts the text of c, at random if its strength is not 0; NULL: there is one way. */
    heed_status (*cut)(struct heed__sampler *c, heed_error *err);
    /* *size bytes and a NUL. */
    heed_status (*decode)(const heed_vocab *v, const int32_t *ids, int64_t n, heed_arena *arena,
                          const char **text, size_t *size, heed_error *err);
    /* Whether a piece continues the word of the one before; neither is a control piece. */
    bool (*continues)(const heed_vocab *v, int32_t before, int32_t id);
    bool any_bytes; /* a text need not be UTF-8 */
} heed__vocab_class;

/* Pieces that are found as they stand before a text is cut: placeholders, [MASK]. */
typedef struct heed__literals {
    int32_t *id; /* in the arena of the pieces */
    int32_t count;
    bool first[256]; /* bytes that one of them begins with */
} heed__literals;

struct heed_vocab {
    heed_allocator allocator;
    const heed__vocab_class *class;
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
    bool foreign;      /* special pieces as another program has them */
    /* Mapped: */
    heed_vocab *inner; /* cuts the text */
    int32_t *outer;    /* (inner's pieces) their ids; in the arena of the pieces */
    /* The others: */
    heed__literals literals;
    heed__merges merges; /* byte-level BPE */
    heed__split split;
    bool whole_words;     /* byte-level BPE: a word that is a piece is not merged from its bytes */
    int32_t byte_id[256]; /* byte-level BPE: the pieces of bytes, -1 where there is none */
    bool begins_with_space; /* BPE by scores: a space before the text */
    /* WordPiece: */
    bool lowercase, strips_accents, separates_chinese, cleans;
    int32_t most_characters; /* of a word; longer ones are unknown */
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

/* ---- opening: each reader fills v from the bytes of a file; path is for messages ---- */

/* Adds a piece; FORMAT if it is empty, not UTF-8, has a NUL in it or is there already. */
heed_status heed__vocab_add(heed_vocab *v, const char *path, const char *text, size_t length,
                            heed__piece_type type, heed_error *err);
/* Finds the special pieces by the names that published vocabularies give them, and makes them
 * control pieces (the unknown one unknown, [MASK] a literal). */
void heed__special_by_name(heed_vocab *v);
/* Adds merge `number` (from 1): two pieces, both and their joint text in the vocabulary. */
heed_status heed__merge_add(heed_vocab *v, const char *path, int64_t number, const char *left,
                            size_t left_length, const char *right, size_t right_length,
                            heed_error *err);
/* The same from "left right". */
heed_status heed__merge_line(heed_vocab *v, const char *path, int64_t number, const char *text,
                             size_t length, heed_error *err);
/* Makes v byte-level BPE; its pieces and merges are there. */
heed_status heed__bytes_finish(heed_vocab *v, const char *path, heed_error *err);
/* Makes v BPE by scores, or characters. */
heed_status heed__scored_finish(heed_vocab *v, const char *path, heed_error *err);
heed_status heed__wordpiece_finish(heed_vocab *v, const char *path, heed_error *err);
/* tokenizer.json of Hugging Face; vocab.json with merges.txt (or vocab.bpe) beside it. */
heed_status heed__json_vocab_read(heed_vocab *v, const char *path, const char *bytes, size_t size,
                                  heed_error *err);
/* The tokenizer of a GGUF file. */
heed_status heed__gguf_vocab_read(heed_vocab *v, const char *path, const char *bytes, size_t size,
                                  heed_error *err);
/* tokenizer.bin of llama2.c. */
heed_status heed__llama2c_vocab_read(heed_vocab *v, const char *path, const char *bytes,
                                     size_t size, heed_error *err);
/* Marian's vocab.yml, for text that is cut at spaces. */
heed_status heed__yml_vocab_read(heed_vocab *v, const char *path, const char *bytes, size_t size,
                                 heed_error *err);
/* vocab.txt of WordPiece. */
heed_status heed__wordpiece_read(heed_vocab *v, const char *path, const char *bytes, size_t size,
                                 heed_error *err);

/* ---- shared by the classes ---- */

heed_status heed__literals_init(heed_vocab *v, const char *path, heed_error *err);
/* Where the first literal of the text begins, its piece and its length; length if there is none. */
size_t heed__literal_next(const heed_vocab *v, const char *text, size_t length, int32_t *id,
                          size_t *size);
/* The unknown piece on output, as with SentencePiece: U+2047, two question marks. */
#define HEED__UNKNOWN_SURFACE "\xe2\x81\x87"
/* Texts of pieces with U+2581 for spaces. */
heed_status heed__scored_decode(const heed_vocab *v, const int32_t *ids, int64_t n,
                                heed_arena *arena, const char **text, size_t *size,
                                heed_error *err);
/* Whether two characters of such texts are of one word: not in Chinese, Japanese, Thai. */
bool heed__has_no_spaces(int32_t character);

/* ---- learning: each writes a vocabulary; *count: its number of pieces ---- */

heed_status heed__characters_learn(const heed_vocab_options *options, const heed_line_source *lines,
                                   const char *path, int32_t *count, heed_error *err);
heed_status heed__bytes_learn(const heed_vocab_options *options, const heed_line_source *lines,
                              const char *path, int32_t *count, heed_error *err);
heed_status heed__wordpiece_learn(const heed_vocab_options *options, const heed_line_source *lines,
                                  const char *path, int32_t *count, heed_error *err);

/* ---- words between spaces ---- */

extern const heed__vocab_class heed__words_class;

/* Fills v->pieces from the bytes of a file. */
heed_status heed__words_read(heed_vocab *v, const char *path, const char *bytes, size_t size,
                             heed_error *err);
/* Learns and writes a vocabulary; *count: its number of pieces. */
heed_status heed__words_learn(const heed_vocab_options *options, const heed_line_source *lines,
                              const char *path, int32_t *count, heed_error *err);

/* ---- SentencePiece ---- */

extern const heed__vocab_class heed__spm_class;
/* U+2581 before a piece begins a word. */
bool heed__spm_continues(const heed_vocab *v, int32_t before, int32_t id);

heed_status heed__spm_read(heed_vocab *v, const char *path, const void *bytes, size_t size,
                           heed_error *err);
heed_status heed__spm_learn(const heed_vocab_options *options, const heed_line_source *lines,
                            const char *path, int32_t *count, heed_error *err);

#endif
