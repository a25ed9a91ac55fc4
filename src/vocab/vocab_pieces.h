/* vocab_pieces.h: a growing list of distinct pieces, found by text or by id. */
#ifndef HEED_VOCAB_VOCAB_PIECES_H
#define HEED_VOCAB_VOCAB_PIECES_H

#include <heed/base.h>

typedef enum heed__piece_type { /* numbered as in SentencePiece */
                                HEED__PIECE_NORMAL = 1,
                                HEED__PIECE_UNKNOWN = 2,
                                HEED__PIECE_CONTROL = 3,
                                HEED__PIECE_USER = 4,
                                HEED__PIECE_UNUSED = 5,
                                HEED__PIECE_BYTE = 6,
} heed__piece_type;

typedef struct heed__piece {
    const char *text; /* NUL-terminated */
    uint32_t length;
    float score;
    heed__piece_type type;
    int64_t count; /* occurrences, while counting words */
} heed__piece;

typedef struct heed__pieces {
    heed_allocator allocator;
    heed_arena *arena; /* the texts */
    char *free;        /* the unused rest of its newest block */
    size_t left;
    heed__piece *item;
    int32_t count, capacity;
    int32_t *slot; /* hash table with open addressing; -1 is free */
    size_t slots;  /* a power of two */
} heed__pieces;

heed_status heed__pieces_init(heed__pieces *p, const heed_allocator *allocator, heed_error *err);
/* p may be zeroed memory. */
void heed__pieces_deinit(heed__pieces *p);
/* The id, or -1. */
int32_t heed__pieces_find(const heed__pieces *p, const char *text, size_t length);
/* The id of the text, added if it is new; -1 when memory is short. */
int32_t heed__pieces_add(heed__pieces *p, const char *text, size_t length);

#endif
