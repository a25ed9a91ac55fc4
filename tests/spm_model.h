/* spm_model.h: SentencePiece models written by hand, byte for byte, for the tests. */
#ifndef HEED_TESTS_SPM_MODEL_H
#define HEED_TESTS_SPM_MODEL_H

#include <heed/data.h>
#include <stdio.h>
#include <string.h>

struct bytes {
    unsigned char at[1 << 14];
    size_t size;
};

static inline void put_varint(struct bytes *b, uint64_t value)
{
    for (; value >= 0x80; value >>= 7)
        b->at[b->size++] = (unsigned char)(value | 0x80);
    b->at[b->size++] = (unsigned char)value;
}

static inline void put_bytes(struct bytes *b, int field, const void *bytes, size_t size)
{
    put_varint(b, (uint64_t)field << 3 | 2);
    put_varint(b, size);
    memcpy(b->at + b->size, bytes, size);
    b->size += size;
}

static inline void put_number(struct bytes *b, int field, uint64_t value)
{
    put_varint(b, (uint64_t)field << 3);
    put_varint(b, value);
}

/* Types as in sentencepiece_model.proto. */
enum { NORMAL = 1, UNKNOWN = 2, CONTROL = 3, USER = 4, UNUSED = 5, BYTE = 6 };

static inline void put_piece(struct bytes *b, const char *text, float score, int type)
{
    static struct bytes piece;
    piece.size = 0;
    put_bytes(&piece, 1, text, strlen(text));
    piece.at[piece.size++] = 2 << 3 | 5;
    memcpy(piece.at + piece.size, &score, sizeof score);
    piece.size += sizeof score;
    put_number(&piece, 3, (uint64_t)type);
    put_bytes(b, 1, piece.at, piece.size);
}

static inline void put_specials(struct bytes *b)
{
    b->size = 0;
    put_piece(b, "<unk>", 0, UNKNOWN);
    put_piece(b, "<s>", 0, CONTROL);
    put_piece(b, "</s>", 0, CONTROL);
    for (int i = 0; i < HEED_PLACEHOLDERS; i++) {
        char name[16];
        snprintf(name, sizeof name, "<ph%d>", i);
        put_piece(b, name, 0, USER);
    }
}

/* model_type 1 unigram, 2 BPE; a map of characters if there is one. */
static inline void put_specs(struct bytes *b, int model_type, const void *map, size_t map_size)
{
    static struct bytes spec;
    spec.size = 0;
    put_number(&spec, 3, (uint64_t)model_type);
    put_bytes(b, 2, spec.at, spec.size);
    spec.size = 0;
    put_bytes(&spec, 1, "identity", 8);
    if (map)
        put_bytes(&spec, 2, map, map_size);
    put_bytes(b, 3, spec.at, spec.size);
}

#endif
