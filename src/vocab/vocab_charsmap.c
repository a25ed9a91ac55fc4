/* vocab_charsmap.c: checking a precompiled character map, which SentencePiece traverses unchecked.
 *
 * It is the size of a trie in bytes (32 bits), the trie (a double array of 32-bit units, as made by
 * Darts), and the replacement texts, each ended by a NUL.  A byte c leads from a node whose unit
 * has the offset o to the unit at node ^ o ^ c, if that has c for a label; a unit with the leaf bit
 * has a value at node ^ o, the offset of a text.  Every reachable node is visited once: nodes may
 * share subtrees. */
#include "vocab/vocab_charsmap.h"
#include "base/memory.h"

#include <string.h>

/* SentencePiece has space for this many matches, each a prefix of the next. */
#define MOST_MATCHES 32
/* No existing rule replaces longer texts; also ends a cycle. */
#define DEEPEST 128

struct trie {
    const unsigned char *units;
    uint32_t count;
    size_t texts;
    uint8_t *matches; /* (count) most matches from this node on, plus one; 0: not visited */
};

static uint32_t unit_at(const struct trie *t, uint32_t i)
{
    uint32_t unit;
    memcpy(&unit, t->units + (size_t)i * sizeof unit, sizeof unit);
    return unit;
}

/* Most matches on a path down from the node, or -1 if a path leaves the trie. */
static int visit(struct trie *t, uint32_t node, int depth)
{
    if (t->matches[node])
        return t->matches[node] - 1;
    uint32_t unit = unit_at(t, node);
    uint32_t base = node ^ (unit >> 10 << ((unit & 0x200) >> 6));
    if (depth == DEEPEST || (base | 0xFF) >= t->count)
        return -1;
    bool leaf = unit >> 8 & 1;
    if (leaf && (unit_at(t, base) & 0x7FFFFFFF) >= t->texts)
        return -1;
    int most = 0;
    for (uint32_t c = 0; c < 256; c++) {
        uint32_t next = base ^ c;
        if ((unit_at(t, next) & 0x800000FF) != c)
            continue;
        int below = visit(t, next, depth + 1);
        if (below < 0)
            return -1;
        most = below > most ? below : most;
    }
    most += leaf;
    if (most > MOST_MATCHES)
        return -1;
    t->matches[node] = (uint8_t)(most + 1);
    return most;
}

heed_status heed__charsmap_check(const unsigned char *bytes, size_t size,
                                 const heed_allocator *allocator)
{
    uint32_t trie_size;
    if (size <= sizeof trie_size)
        return HEED_FORMAT;
    memcpy(&trie_size, bytes, sizeof trie_size);
    size -= sizeof trie_size;
    bytes += sizeof trie_size;
    if (trie_size == 0 || trie_size % 4 || trie_size >= size || bytes[size - 1] != '\0')
        return HEED_FORMAT;
    struct trie t = {.units = bytes, .count = trie_size / 4, .texts = size - trie_size};
    t.matches = heed__allocate_zeroed(allocator, t.count, 1);
    if (!t.matches)
        return HEED_MEMORY;
    int most = visit(&t, 0, 0);
    heed__release(allocator, t.matches, t.count, 1);
    return most < 0 ? HEED_FORMAT : HEED_OK;
}
