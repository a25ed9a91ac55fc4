/* vocab_yml.h: Marian's vocab.yml: a piece and its id a line. */
#ifndef HEED_FILES_VOCAB_YML_H
#define HEED_FILES_VOCAB_YML_H

#include <heed/base.h>

typedef struct heed__yml_piece {
    const char *text; /* NUL-terminated, in the arena; may hold any bytes but NUL */
    size_t length;
    int64_t id;
} heed__yml_piece;

/* The pieces by ascending id, which need not follow each other; *piece lives in the arena. */
heed_status heed__yml_read(const char *name, const char *bytes, size_t size, heed_arena *arena,
                           heed__yml_piece **piece, size_t *count, heed_error *err);

#endif
