/* vocab_trie.h: a trie that finds the pieces a text begins with, byte by byte. */
#ifndef HEED_VOCAB_VOCAB_TRIE_H
#define HEED_VOCAB_VOCAB_TRIE_H

#include "vocab/vocab_pieces.h"

typedef struct heed__trie {
    heed_allocator allocator;
    int32_t *piece; /* (nodes) the piece that ends here, or -1 */
    int32_t nodes, capacity;
    uint32_t *key;  /* (slots) node * 256 + byte; open addressing */
    int32_t *child; /* (slots) 0 is free: no edge leads to the root */
    size_t slots;
} heed__trie;

/* From the ordinary pieces and the placeholders. */
heed_status heed__trie_init(heed__trie *t, const heed__pieces *pieces, heed_error *err);
void heed__trie_deinit(heed__trie *t);

static inline uint32_t heed__trie_key(int32_t node, char byte)
{
    return (uint32_t)node << 8 | (unsigned char)byte;
}

/* The slot of the edge of a byte from a node, or a free one. */
static inline size_t heed__trie_slot(const heed__trie *t, int32_t node, char byte)
{
    uint32_t key = heed__trie_key(node, byte);
    size_t i = (key * 0x9E3779B1u >> 7) & (t->slots - 1);
    while (t->child[i] && t->key[i] != key)
        i = (i + 1) & (t->slots - 1);
    return i;
}

/* The child of a node for a byte; the root is 0; 0 if there is none. */
static inline int32_t heed__trie_next(const heed__trie *t, int32_t node, char byte)
{
    return t->child[heed__trie_slot(t, node, byte)];
}

#endif
