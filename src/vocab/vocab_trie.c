/* vocab_trie.c: a trie whose edges are in one hash table, at most half full. */
#include "vocab/vocab_trie.h"
#include "base/error.h"
#include "base/memory.h"

#include <string.h>

/* The most nodes that the pieces can need: one for each byte, and the root. */
static int64_t most_nodes(const heed__pieces *pieces)
{
    int64_t n = 1;
    for (int32_t i = 0; i < pieces->count; i++)
        n += pieces->item[i].length;
    return n;
}

static void add(heed__trie *t, const heed__piece *p, int32_t id)
{
    int32_t node = 0;
    for (uint32_t i = 0; i < p->length; i++) {
        size_t slot = heed__trie_slot(t, node, p->text[i]);
        if (!t->child[slot]) {
            t->key[slot] = heed__trie_key(node, p->text[i]);
            t->child[slot] = t->nodes;
            t->piece[t->nodes++] = -1;
        }
        node = t->child[slot];
    }
    t->piece[node] = id;
}

heed_status heed__trie_init(heed__trie *t, const heed__pieces *pieces, heed_error *err)
{
    *t = (heed__trie){.allocator = pieces->allocator, .nodes = 1, .slots = 2};
    int64_t most = most_nodes(pieces);
    if (most > 1 << 24) /* a key has 24 bits for the node */
        return heed__fail(err, HEED_FORMAT, "the pieces have %lld bytes, expected at most %d",
                          (long long)most, 1 << 24);
    t->capacity = (int32_t)most;
    while (t->slots < 2 * (size_t)most)
        t->slots *= 2;
    t->piece = heed__allocate(&t->allocator, (size_t)t->capacity, sizeof *t->piece);
    t->key = heed__allocate(&t->allocator, t->slots, sizeof *t->key);
    t->child = heed__allocate_zeroed(&t->allocator, t->slots, sizeof *t->child);
    if (!t->piece || !t->key || !t->child)
        return heed__fail(err, HEED_MEMORY, "out of memory for %lld nodes", (long long)most);
    t->piece[0] = -1;
    for (int32_t i = 0; i < pieces->count; i++)
        if (pieces->item[i].type == HEED__PIECE_NORMAL || pieces->item[i].type == HEED__PIECE_USER)
            add(t, &pieces->item[i], i);
    return HEED_OK;
}

void heed__trie_deinit(heed__trie *t)
{
    heed__release(&t->allocator, t->piece, (size_t)t->capacity, sizeof *t->piece);
    heed__release(&t->allocator, t->key, t->slots, sizeof *t->key);
    heed__release(&t->allocator, t->child, t->slots, sizeof *t->child);
    *t = (heed__trie){.allocator = t->allocator};
}
