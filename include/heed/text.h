/* text.h: from lines of text to packed batches of token ids, and back.
 *
 *     heed_vocab *v = heed_vocab_open("m/shared.spm", NULL, NULL, &err);
 *     heed_vocab_encode(v, "a line", 6, arena, &tokens, &err);
 *
 * A vocabulary is read-only once open and may be shared by threads. */
#ifndef HEED_TEXT_H
#define HEED_TEXT_H

#include <heed/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- lines ---- */

/* Where lines come from: *text NULL at the end; valid until the next call. */
typedef struct heed_line_source {
    heed_status (*next)(void *context, const char **text, size_t *length, heed_error *err);
    void *context;
} heed_line_source;

/* The lines of files, plain or .gz, one file after the other; "-" is standard input.  The paths are
 * borrowed.  A line has at most 16 MB and no NUL; it ends in LF or CRLF and is handed out without.
 */
typedef struct heed_lines heed_lines;
heed_lines *heed_lines_open(const char *const *paths, int count, const heed_allocator *allocator,
                            heed_error *err);
void heed_lines_free(heed_lines *l);
heed_status heed_lines_next(heed_lines *l, const char **text, size_t *length, heed_error *err);
/* The file and, from 1, the number of the line handed out last. */
int64_t heed_lines_where(const heed_lines *l, const char **path);
heed_line_source heed_lines_source(heed_lines *l);

/* ---- vocabularies ---- */

/* The first ids of every vocabulary; after them the placeholders for spans that must survive
 * translation untouched (<ph0> .. <ph9>). */
enum { HEED_UNK = 0, HEED_BOS = 1, HEED_EOS = 2, HEED_PLACEHOLDER = 3, HEED_PLACEHOLDERS = 10 };

typedef struct heed_vocab heed_vocab;
/* A SentencePiece model (unigram or BPE, with the special pieces above), or a text file with one
 * piece a line for text that is already tokenised (told by content).  joiner, for the second kind,
 * marks the pieces that continue in the next one ("@@ ") and is undone on output; NULL if there is
 * none. */
heed_vocab *heed_vocab_open(const char *path, const char *joiner, const heed_allocator *allocator,
                            heed_error *err);
void heed_vocab_free(heed_vocab *v);
int32_t heed_vocab_size(const heed_vocab *v);
/* Lives as long as v; ids out of range give the unknown piece. */
const char *heed_vocab_piece(const heed_vocab *v, int32_t id);
/* HEED_UNK if there is none. */
int32_t heed_vocab_find(const heed_vocab *v, const char *piece);

/* Whether all of it is UTF-8; if not, *bad (may be NULL) is where the first wrong byte stands.  A
 * NUL is a character like another here. */
bool heed_utf8_valid(const char *text, size_t length, size_t *bad);

typedef struct heed_tokens {
    const int32_t *id;
    int64_t count;
} heed_tokens;
/* Ids of one line, without BOS or EOS; they live in the arena.  ARGUMENT if text is not UTF-8.
 * Before SentencePiece cuts a text, spaces of every kind become one, control characters vanish, and
 * letters and accents are composed (NFC); quotes, ellipses and full-width signs stay. */
heed_status heed_vocab_encode(const heed_vocab *v, const char *text, size_t length,
                              heed_arena *arena, heed_tokens *tokens, heed_error *err);
/* The same, cut at random.  Unigram: a segmentation drawn with probability proportional to
 * P(segmentation)^strength (smaller is wilder).  BPE: every merge is left out with probability
 * strength.  Whitespace: every piece is taken apart into two of the vocabulary, where there are
 * such, with probability strength, and so are these; refused without a joiner.  strength 0 means
 * heed_vocab_encode.  A function of rng alone. */
heed_status heed_vocab_sample(const heed_vocab *v, const char *text, size_t length, double strength,
                              const heed_rng *rng, heed_arena *arena, heed_tokens *tokens,
                              heed_error *err);
/* Text of ids; BOS and EOS vanish, unknown pieces become U+2047 between spaces.  Lives in the
 * arena.  ARGUMENT for an id out of range. */
heed_status heed_vocab_decode(const heed_vocab *v, const int32_t *ids, int64_t n, heed_arena *arena,
                              const char **text, heed_error *err);
/* word[i] (n of them, the caller's): which word of the line piece i belongs to, from 0; returns the
 * number of words.  BOS and EOS are words of their own; in scripts without spaces (Chinese,
 * Japanese, Thai) every piece is one. */
int64_t heed_vocab_words(const heed_vocab *v, const int32_t *ids, int64_t n, int32_t *word);

typedef enum heed_vocab_kind { HEED_UNIGRAM, HEED_BPE, HEED_WHITESPACE } heed_vocab_kind;
typedef struct heed_vocab_options {
    heed_vocab_kind kind;
    int64_t size;      /* pieces; whitespace: at most, 0 for all */
    int64_t min_count; /* whitespace: rarer words are unknown */
    double coverage;   /* of characters, from 0.98; 0 means 1 (0.9995 for Chinese or Japanese) */
    int64_t max_lines; /* lines used at most, drawn evenly; 0 means all */
    uint64_t seed;     /* for drawing them */
} heed_vocab_options;
/* Learns a vocabulary and writes it to path, whole or not at all.  If the text supports fewer
 * pieces than asked for, the size is lowered and the log told.  Lines that are not UTF-8 are left
 * out and the log told.  The same lines give the same file: SentencePiece learns on one thread,
 * because its sums over several depend on how many they are. */
heed_status heed_vocab_train(const heed_vocab_options *options, const heed_line_source *lines,
                             const char *path, const heed_log_sink *log, heed_error *err);

/* ---- corpora ---- */

/* Lines of files, plain, gzip or from a pipe, indexed so that any pair can be fetched; what does
 * not fit in memory stays in the mapped file.  A gzip or a pipe is copied, decompressed, to TMPDIR
 * (or /tmp) first.  Files must not be shortened while a corpus has them open. */
typedef struct heed_corpus_files {
    const char *const *source; /* the n-th of one belongs to the n-th of the other */
    const char *const *target;
    int pairs;
    const char *const *tsv; /* source TAB target (further columns are ignored) */
    int tsvs;
} heed_corpus_files;
typedef struct heed_corpus heed_corpus;
/* Broken UTF-8, empty sides (nothing but blanks) and lines without a tab are skipped, counted, and
 * the first ten of each reported to the log with file and line.  Refuses files with different
 * numbers of lines, binary files, and a corpus without a single usable pair. */
heed_corpus *heed_corpus_open(const heed_corpus_files *files, const heed_log_sink *log,
                              const heed_allocator *allocator, heed_error *err);
void heed_corpus_free(heed_corpus *c);
/* Takes so many pairs out of c, spread evenly and drawn from the seed, and gives them as a corpus
 * of their own, which borrows c's text: free it before c. */
heed_corpus *heed_corpus_hold_out(heed_corpus *c, int64_t pairs, uint64_t seed,
                                  const heed_allocator *allocator, heed_error *err);
typedef struct heed_corpus_report {
    int64_t lines, pairs;               /* read, usable */
    int64_t broken, empty, untabbed;    /* skipped, each for the first of these that holds */
    int64_t source_bytes, target_bytes; /* of the usable ones */
    uint32_t checksum;                  /* of the usable ones, CRC-32, those held out included */
} heed_corpus_report;
heed_corpus_report heed_corpus_describe(const heed_corpus *c);
typedef struct heed_pair {
    const char *source, *target; /* not NUL-terminated */
    size_t source_length, target_length;
} heed_pair;
/* Pair i, from 0; both sides empty if there is none.  Lives as long as the corpus. */
heed_pair heed_corpus_pair(const heed_corpus *c, int64_t i);
/* The usable lines of one or both sides, for training a vocabulary. */
typedef enum heed_side { HEED_SOURCE = 1, HEED_TARGET = 2, HEED_BOTH = 3 } heed_side;
typedef struct heed_corpus_lines heed_corpus_lines;
heed_corpus_lines *heed_corpus_lines_new(const heed_corpus *c, heed_side side,
                                         const heed_allocator *allocator, heed_error *err);
void heed_corpus_lines_free(heed_corpus_lines *l);
heed_line_source heed_corpus_lines_source(heed_corpus_lines *l);

/* ---- packed batches ---- */

/* B sentence pairs, packed: sentence b of the source is rows source->offset[b] .. [b+1]. */
typedef struct heed_batch {
    int64_t epoch;               /* from 0 */
    int64_t pairs;               /* B; 0 at the end of a stream that ends */
    const heed_segments *source; /* each sentence with its EOS */
    const heed_segments *target; /* n tokens and one more */
    const int32_t *source_ids;   /* x1 .. xm EOS */
    const int32_t *target_in;    /* BOS y1 .. yn */
    const int32_t *target_out;   /* y1 .. yn EOS */
    const int64_t *pair;         /* (B) index into the corpus */
} heed_batch;

/* Packs sentences given by their tokens; lives in the arena.  NULL targets: source only, and the
 * target's fields are NULL.  pair counts from 0. */
heed_status heed_batch_pack(heed_arena *arena, const heed_tokens *sources,
                            const heed_tokens *targets, int64_t count, heed_batch *batch,
                            heed_error *err);

/* Pairs as users type them, made of the pairs there are; each with this probability. */
typedef struct heed_augment_options {
    double join;    /* 1 to 7 other pairs of the corpus behind it */
    double protect; /* words that stand once on both sides become placeholders; where it is above
                     * 0, spans that heed_translator protects always do */
    double invent;  /* names that stand once on both sides become words that nobody has seen */
    double vary;    /* no full stop, or a source that begins with a small letter */
} heed_augment_options;
typedef struct heed_batches_options {
    int64_t batch_tokens; /* target tokens, EOS included, per batch: at most, unless one pair has
                             more */
    int64_t max_tokens;   /* pairs with more on either side are left out and counted */
    int64_t window;       /* pairs of the shuffled order that are sorted by length together; 0:
                             32768 */
    bool in_order;        /* no shuffling: corpus order, sorted inside windows */
    int64_t epochs;       /* then the stream ends; 0: never, but after one pass if in_order */
    uint64_t seed;
    double source_sampling, target_sampling; /* heed_vocab_sample's strength */
    heed_augment_options augment;
} heed_batches_options;
/* A stream of batches made by a thread of its own.  Which batch comes when depends on the options
 * and the corpus alone.  A window's target tokens are cut into as few batches as can be, of nearly
 * equal size.  Everything is borrowed; a stream belongs to one thread. */
typedef struct heed_batches heed_batches;
heed_batches *heed_batches_new(const heed_corpus *c, const heed_vocab *source,
                               const heed_vocab *target, const heed_batches_options *options,
                               const heed_allocator *allocator, heed_error *err);
void heed_batches_free(heed_batches *b);
/* The next `count` batches (the micro-batches of one update); they live until the next call.
 * After a failure every call fails, until a seek. */
heed_status heed_batches_next(heed_batches *b, heed_batch *batch, int count, heed_error *err);
/* Where the stream stands: hand it to seek of an equal stream and the same batches follow.  Seek
 * waits for the window it goes to, and refuses a position that the stream does not have. */
typedef struct heed_batches_position {
    int64_t epoch, window, batch;
} heed_batches_position;
heed_batches_position heed_batches_tell(const heed_batches *b);
heed_status heed_batches_seek(heed_batches *b, heed_batches_position p, heed_error *err);
typedef struct heed_batches_report {
    int64_t drawn;                        /* pairs of the windows entered */
    int64_t left_out;                     /* of these, above max_tokens */
    int64_t source_tokens, target_tokens; /* handed out, EOS included */
} heed_batches_report;
/* Since the start or the last seek. */
heed_batches_report heed_batches_describe(const heed_batches *b);

/* ---- sentences ---- */

/* Cuts a text at sentence ends into parts of at most max_bytes where that is possible, else at
 * spaces, else between characters; joined again they are the text.  Returns the number of parts;
 * end[i] is where part i ends.  end lives in the arena; 0 when memory is short. */
int64_t heed_split_sentences(const char *text, size_t length, size_t max_bytes, heed_arena *arena,
                             const size_t **end);

#ifdef __cplusplus
}
#endif
#endif
