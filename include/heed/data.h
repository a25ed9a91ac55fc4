/* data.h: corpora of sentence pairs and the packed batches made of them. */
#ifndef HEED_DATA_H
#define HEED_DATA_H

#include <heed/model.h>
#include <heed/vocab.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- corpora ---- */

/* Lines of files, plain, gzip or from a pipe, indexed for random access; the text stays in the
 * mapped file.  A gzip or a pipe is copied, decompressed, to TMPDIR (or /tmp) first.  Files must
 * not be shortened while a corpus has them open. */
typedef struct heed_corpus_files {
    const char *const *source; /* source[i] belongs to target[i] */
    const char *const *target;
    int pairs;
    const char *const *tsv; /* source TAB target (further columns are ignored) */
    int tsvs;
    bool shares; /* a name of source and tsv may be NAME:0.3: an epoch of batches has that share of
                  * the file's pairs, drawn anew; a file of the whole name wins */
} heed_corpus_files;
typedef struct heed_corpus heed_corpus;
/* Broken UTF-8, empty sides (nothing but blanks) and lines without a tab are skipped, counted, and
 * the first ten of each logged with file and line.  Refuses files with different numbers of lines,
 * binary files, and a corpus without a usable pair. */
heed_corpus *heed_corpus_open(const heed_corpus_files *files, const heed_log_sink *log,
                              const heed_allocator *allocator, heed_error *err);
void heed_corpus_free(heed_corpus *c);
/* Removes `pairs` pairs from c, spread evenly over those of an epoch and drawn from the seed, and
 * returns them as a corpus that borrows c's text: free it before c. */
heed_corpus *heed_corpus_hold_out(heed_corpus *c, int64_t pairs, uint64_t seed,
                                  const heed_allocator *allocator, heed_error *err);
typedef struct heed_corpus_report {
    int64_t lines, pairs;               /* read, usable */
    int64_t broken, empty, untabbed;    /* skipped, counted under the first that applies */
    int64_t source_bytes, target_bytes; /* of the usable ones */
    uint32_t checksum;                  /* of the usable ones, CRC-32, those held out included */
    int64_t epoch_pairs;                /* of the usable ones, those of one epoch: by shares */
    int64_t epoch_source_bytes, epoch_target_bytes; /* theirs, on average */
} heed_corpus_report;
heed_corpus_report heed_corpus_describe(const heed_corpus *c);
typedef struct heed_pair {
    const char *source, *target; /* not NUL-terminated */
    size_t source_length, target_length;
} heed_pair;
/* Pair i, from 0; both sides empty if there is none.  Lives as long as the corpus. */
heed_pair heed_corpus_pair(const heed_corpus *c, int64_t i);
/* The lines of one or both sides, for training a vocabulary: of a file with a share, that share,
 * spread evenly. */
typedef struct heed_corpus_lines heed_corpus_lines;
heed_corpus_lines *heed_corpus_lines_new(const heed_corpus *c, heed_side side,
                                         const heed_allocator *allocator, heed_error *err);
void heed_corpus_lines_free(heed_corpus_lines *l);
heed_line_source heed_corpus_lines_source(heed_corpus_lines *l);

/* ---- packed batches ---- */

/* Packs sentences given by their tokens, with the special tokens of ids around them (NULL: heed's
 * own); lives in the arena.  NULL targets: source only, and the target's fields are NULL.  pair
 * counts from 0. */
heed_status heed_batch_pack(heed_arena *arena, const heed_pair_ids *ids, const heed_tokens *sources,
                            const heed_tokens *targets, int64_t count, heed_batch *batch,
                            heed_error *err);

/* Data augmentation; each with this probability. */
typedef struct heed_augment_options {
    double join;    /* 1 to 7 other pairs of the corpus are appended */
    double protect; /* words that occur once on both sides become placeholders; if above 0, spans
                     * that heed_translator protects always do */
    double invent;  /* names that occur once on both sides become unseen words */
    double vary;    /* no full stop, or a source that begins in lower case */
} heed_augment_options;
typedef struct heed_batches_options {
    int64_t batch_tokens; /* target tokens, EOS included, per batch: at most, unless one pair has
                             more */
    int64_t max_tokens;   /* pairs with more on either side are skipped and counted */
    int64_t window;       /* pairs of the shuffled order that are sorted by length together; 0:
                             32768 */
    bool in_order;        /* no shuffling: corpus order, sorted inside windows, all pairs */
    int64_t epochs;       /* then the stream ends; 0: never, but after one pass if in_order */
    uint64_t seed;
    double source_sampling, target_sampling; /* heed_vocab_sample's strength */
    heed_augment_options augment;
} heed_batches_options;
/* A stream of batches made by its own thread.  The batches depend on the options and the corpus
 * alone.  A window is divided into as few batches as possible, of nearly equal target tokens.
 * Everything is borrowed; a stream belongs to one thread. */
typedef struct heed_batches heed_batches;
heed_batches *heed_batches_new(const heed_corpus *c, const heed_vocab *source,
                               const heed_vocab *target, const heed_batches_options *options,
                               const heed_allocator *allocator, heed_error *err);
void heed_batches_free(heed_batches *b);
/* The next `count` batches (the micro-batches of one update); they live until the next call.
 * After a failure every call fails, until a seek. */
heed_status heed_batches_next(heed_batches *b, heed_batch *batch, int count, heed_error *err);
/* The position of the stream: seek to it in an equal stream, and the same batches follow.  Seek
 * waits for its window, and refuses a position that the stream does not have. */
typedef struct heed_batches_position {
    int64_t epoch, window, batch;
} heed_batches_position;
heed_batches_position heed_batches_tell(const heed_batches *b);
heed_status heed_batches_seek(heed_batches *b, heed_batches_position p, heed_error *err);
typedef struct heed_batches_report {
    int64_t drawn;                        /* pairs of the windows entered */
    int64_t left_out;                     /* of these, above max_tokens */
    int64_t source_tokens, target_tokens; /* returned, EOS included */
    int64_t cut;                          /* lines cut into tokens for it, source or target */
} heed_batches_report;
/* Since the start or the last seek. */
heed_batches_report heed_batches_describe(const heed_batches *b);

#ifdef __cplusplus
}
#endif
#endif
