/* vocab_merges.c: a hash table of pairs. */
#include "vocab/vocab_merges.h"
#include "base/memory.h"

#include <string.h>

#define FIRST_SLOTS ((size_t)1 << 12)

static size_t slot_of(const heed__merges *m, int32_t left, int32_t right)
{
    const uint64_t key = (uint64_t)(uint32_t)left << 32 | (uint32_t)right;
    size_t i = (size_t)(key * 0x9E3779B97F4A7C15u >> 32) & (m->slots - 1);
    while (m->slot[i].left >= 0 && (m->slot[i].left != left || m->slot[i].right != right))
        i = (i + 1) & (m->slots - 1);
    return i;
}

static bool grow(heed__merges *m)
{
    heed__merges larger = *m;
    larger.slots = m->slots ? 2 * m->slots : FIRST_SLOTS;
    larger.slot = heed__allocate(&m->allocator, larger.slots, sizeof *larger.slot);
    if (!larger.slot)
        return false;
    memset(larger.slot, 0xFF, larger.slots * sizeof *larger.slot);
    for (size_t i = 0; i < m->slots; i++)
        if (m->slot[i].left >= 0)
            larger.slot[slot_of(&larger, m->slot[i].left, m->slot[i].right)] = m->slot[i];
    heed__release(&m->allocator, m->slot, m->slots, sizeof *m->slot);
    *m = larger;
    return true;
}

bool heed__merges_add(heed__merges *m, int32_t left, int32_t right, int32_t id)
{
    if (2 * ((size_t)m->count + 1) > m->slots && !grow(m))
        return false;
    struct heed__merge *s = &m->slot[slot_of(m, left, right)];
    if (s->left < 0)
        *s = (struct heed__merge){left, right, m->count, id};
    m->count++;
    return true;
}

void heed__merges_deinit(heed__merges *m)
{
    heed__release(&m->allocator, m->slot, m->slots, sizeof *m->slot);
    *m = (heed__merges){.allocator = m->allocator};
}

const struct heed__merge *heed__merges_find(const heed__merges *m, int32_t left, int32_t right)
{
    if (!m->slots)
        return NULL;
    const struct heed__merge *s = &m->slot[slot_of(m, left, right)];
    return s->left < 0 ? NULL : s;
}
