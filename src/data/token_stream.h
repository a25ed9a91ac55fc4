/* token_stream.h: a text as one long row of tokens, in a mapped temporary file: it may be larger
 * than memory.
 *
 * Where a vocabulary keeps line ends (characters, bytes) the text is cut as it stands, and an end
 * mark stands between two files only.  Elsewhere each line is cut for itself, and has an end mark
 * behind it: EOS, or [SEP]. */
#ifndef HEED_DATA_TOKEN_STREAM_H
#define HEED_DATA_TOKEN_STREAM_H

#include "data/text_files.h"
#include <heed/vocab.h>

typedef struct heed__token_stream {
    const int32_t *id; /* (count) */
    int64_t count;
    int64_t bytes;  /* of the text, a line end counted as one */
    int64_t broken; /* lines that are left out: not UTF-8 */
    int64_t unknown;
    uint32_t checksum; /* of the text */
    const void *map;
    size_t map_size;
} heed__token_stream;

/* Whether a text comes back from its tokens with its line ends. */
bool heed__vocab_keeps_lines(const heed_vocab *v, heed_arena *arena);
/* What stands behind a line, or between files; -1: there is no such token. */
int32_t heed__vocab_end_mark(const heed_vocab *v);
/* Tokens of the lines of a walk (HEED__KEPT_LINES ...). */
heed_status heed__token_stream_read(heed__token_stream *s, const heed_vocab *v,
                                    const heed__text_files *files, int which,
                                    const heed_log_sink *log, heed_error *err);
/* s may be zeroed memory. */
void heed__token_stream_close(heed__token_stream *s);

#endif
