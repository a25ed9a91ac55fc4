/* vocab.h: from lines of text to token ids, and back.
 *
 *     heed_vocab *v = heed_vocab_open("m/shared.spm", NULL, NULL, &err);
 *     heed_vocab_encode(v, "a line", 6, arena, &tokens, &err);
 *
 * A vocabulary is read-only once open and may be shared by threads. */
#ifndef HEED_VOCAB_H
#define HEED_VOCAB_H

#include <heed/text.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct heed_vocab heed_vocab;
/* Recognised by its content: a SentencePiece model (unigram or BPE, with the special pieces
 * above); a text file with one piece a line for text that is already tokenised; byte-level BPE
 * (a tokenizer.json, or a vocab.json with merges.txt beside it, as of GPT-2); WordPiece
 * (vocab.txt or tokenizer.json, as of BERT); BPE by scores or of characters (tokenizer.json,
 * llama2.c's tokenizer.bin); the tokenizer inside a GGUF file; Marian's vocab.yml, by its name.
 * joiner, for text that is already tokenised, marks the pieces that continue in the next one
 * ("@@ ") and is removed on output; NULL if there is none. */
heed_vocab *heed_vocab_open(const char *path, const char *joiner, const heed_allocator *allocator,
                            heed_error *err);
void heed_vocab_free(heed_vocab *v);
int32_t heed_vocab_size(const heed_vocab *v);
/* Lives as long as v; ids out of range give the unknown piece, or "" where there is none. */
const char *heed_vocab_piece(const heed_vocab *v, int32_t id);
heed_special_ids heed_vocab_special(const heed_vocab *v);
/* The unknown piece if there is none, -1 if there is not even that. */
int32_t heed_vocab_find(const heed_vocab *v, const char *piece);

/* Ids of one line, without BOS or EOS; they live in the arena.  ARGUMENT if text is not UTF-8, but
 * for byte-level BPE and BPE with a piece for each byte, which take any bytes.
 * Before SentencePiece, spaces of every kind become U+0020, control characters are removed, and
 * letters and accents are composed (NFC); quotes, ellipses and full-width punctuation stay. */
heed_status heed_vocab_encode(const heed_vocab *v, const char *text, size_t length,
                              heed_arena *arena, heed_tokens *tokens, heed_error *err);
/* The same with a random segmentation.  Unigram: drawn with probability proportional to
 * P(segmentation)^strength (smaller is more random).  BPE, also byte-level: every merge is dropped
 * with probability strength.  Whitespace: every piece is split into two pieces of the vocabulary,
 * where possible, with probability strength, recursively; refused without a joiner.  WordPiece and
 * characters are cut in one way: refused.  strength 0 means heed_vocab_encode.  Depends on rng
 * alone. */
heed_status heed_vocab_sample(const heed_vocab *v, const char *text, size_t length, double strength,
                              const heed_rng *rng, heed_arena *arena, heed_tokens *tokens,
                              heed_error *err);
/* The text of ids; BOS and EOS are dropped, unknown pieces become U+2047 between spaces.  Lives in
 * the arena.  ARGUMENT for an id out of range. */
heed_status heed_vocab_decode(const heed_vocab *v, const int32_t *ids, int64_t n, heed_arena *arena,
                              const char **text, heed_error *err);
/* The same with the number of bytes, for texts with a NUL in them. */
heed_status heed_vocab_decode_bytes(const heed_vocab *v, const int32_t *ids, int64_t n,
                                    heed_arena *arena, const char **text, size_t *size,
                                    heed_error *err);
/* word[i] (n, the caller's memory): the index from 0 of the word that piece i belongs to; returns
 * the number of words.  BOS and EOS are words of their own; in scripts without spaces (Chinese,
 * Japanese, Thai) every piece is a word. */
int64_t heed_vocab_words(const heed_vocab *v, const int32_t *ids, int64_t n, int32_t *word);

typedef enum heed_vocab_kind {
    HEED_UNIGRAM,
    HEED_BPE, /* SentencePiece's, or by scores */
    HEED_WHITESPACE,
    HEED_CHARACTERS,
    HEED_BYTES,     /* byte-level BPE */
    HEED_WORDPIECE, /* lower case without accents, unless it is cased */
} heed_vocab_kind;
typedef struct heed_vocab_options {
    heed_vocab_kind kind;
    int64_t size;      /* pieces; whitespace: at most, 0 for all */
    int64_t min_count; /* whitespace: rarer words are unknown */
    bool cased;        /* WordPiece: keeps capitals and accents */
    double coverage;   /* of characters, from 0.98; 0 means 1 (0.9995 for Chinese or Japanese) */
    int64_t max_lines; /* at most this many lines, drawn uniformly; 0 means all */
    uint64_t seed;     /* for drawing them */
} heed_vocab_options;
/* Learns a vocabulary and writes it to path, whole or not at all.  If the text supports fewer
 * pieces than requested, the size is lowered and logged.  Lines that are not UTF-8 are skipped and
 * logged.  The same lines give the same file: SentencePiece learns on one thread, because its sums
 * depend on the number of threads. */
heed_status heed_vocab_train(const heed_vocab_options *options, const heed_line_source *lines,
                             const char *path, const heed_log_sink *log, heed_error *err);

#ifdef __cplusplus
}
#endif
#endif
