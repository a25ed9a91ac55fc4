/* vocab_pieces.c: a hash table of texts.  The texts are stored one after the other in blocks of an
 * arena; the table is at most half full. */
#include "vocab/vocab_pieces.h"
#include "base/error.h"
#include "base/memory.h"

#include <string.h>

#define BLOCK ((size_t)1 << 16)
#define FIRST_CAPACITY 1024

static uint64_t hash(const char *text, size_t length)
{
    uint64_t h = 0xCBF29CE484222325u; /* FNV-1a */
    for (size_t i = 0; i < length; i++)
        h = (h ^ (unsigned char)text[i]) * 0x100000001B3u;
    return h ^ h >> 32;
}

heed_status heed__pieces_init(heed__pieces *p, const heed_allocator *allocator, heed_error *err)
{
    *p = (heed__pieces){.allocator = heed__allocator_or_default(allocator)};
    p->arena = heed_arena_new(&p->allocator, err);
    return p->arena ? HEED_OK : HEED_MEMORY;
}

void heed__pieces_deinit(heed__pieces *p)
{
    heed__release(&p->allocator, p->item, (size_t)p->capacity, sizeof *p->item);
    heed__release(&p->allocator, p->slot, p->slots, sizeof *p->slot);
    heed_arena_free(p->arena);
    *p = (heed__pieces){.allocator = p->allocator};
}

/* The slot of the text in the table, or a free one. */
static size_t slot_of(const heed__pieces *p, const char *text, size_t length)
{
    size_t i = (size_t)hash(text, length) & (p->slots - 1);
    for (; p->slot[i] >= 0; i = (i + 1) & (p->slots - 1)) {
        const heed__piece *piece = &p->item[p->slot[i]];
        if (piece->length == length && memcmp(piece->text, text, length) == 0)
            break;
    }
    return i;
}

int32_t heed__pieces_find(const heed__pieces *p, const char *text, size_t length)
{
    return p->slots ? p->slot[slot_of(p, text, length)] : -1;
}

static bool grow(heed__pieces *p)
{
    if (p->capacity > INT32_MAX / 2)
        return false;
    int32_t capacity = p->capacity ? 2 * p->capacity : FIRST_CAPACITY;
    size_t slots = 2 * (size_t)capacity;
    heed__piece *item = heed__allocate(&p->allocator, (size_t)capacity, sizeof *item);
    int32_t *slot = heed__allocate(&p->allocator, slots, sizeof *slot);
    if (!item || !slot) {
        heed__release(&p->allocator, item, (size_t)capacity, sizeof *item);
        heed__release(&p->allocator, slot, slots, sizeof *slot);
        return false;
    }
    if (p->count)
        memcpy(item, p->item, (size_t)p->count * sizeof *item);
    heed__release(&p->allocator, p->item, (size_t)p->capacity, sizeof *p->item);
    heed__release(&p->allocator, p->slot, p->slots, sizeof *p->slot);
    p->item = item;
    p->capacity = capacity;
    p->slot = slot;
    p->slots = slots;
    memset(slot, 0xFF, slots * sizeof *slot);
    for (int32_t i = 0; i < p->count; i++)
        slot[slot_of(p, item[i].text, item[i].length)] = i;
    return true;
}

static char *store(heed__pieces *p, const char *text, size_t length)
{
    if (p->left < length + 1) {
        size_t block = length + 1 > BLOCK ? length + 1 : BLOCK;
        p->free = heed_arena_allocate(p->arena, block);
        p->left = p->free ? block : 0;
        if (!p->free)
            return NULL;
    }
    char *copy = p->free;
    memcpy(copy, text, length);
    copy[length] = '\0';
    p->free += length + 1;
    p->left -= length + 1;
    return copy;
}

int32_t heed__pieces_add(heed__pieces *p, const char *text, size_t length)
{
    if (length >= UINT32_MAX || (p->count == p->capacity && !grow(p)))
        return -1;
    size_t at = slot_of(p, text, length);
    if (p->slot[at] >= 0)
        return p->slot[at];
    const char *copy = store(p, text, length);
    if (!copy)
        return -1;
    p->item[p->count] =
        (heed__piece){.text = copy, .length = (uint32_t)length, .type = HEED__PIECE_NORMAL};
    p->slot[at] = p->count;
    return p->count++;
}
