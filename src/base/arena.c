/* arena.c: chained chunks, bump allocation, 64-byte aligned.  Chunks never move and reset keeps
 * them, so a loop of equal steps allocates nothing after its first step.  Under ASan free memory is
 * poisoned, so use after reset is caught. */
#include "base/error.h"
#include "base/memory.h"

#if defined(__SANITIZE_ADDRESS__)
#define HEED_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define HEED_ASAN 1
#endif
#endif
#ifdef HEED_ASAN
#include <sanitizer/asan_interface.h>
#define POISON(p, n) ASAN_POISON_MEMORY_REGION(p, n)
#define UNPOISON(p, n) ASAN_UNPOISON_MEMORY_REGION(p, n)
/* A red zone between neighbours, so that running off one allocation is caught too. */
#define RED_ZONE HEED_ALIGN
#else
#define POISON(p, n) ((void)(p), (void)(n))
#define UNPOISON(p, n) ((void)(p), (void)(n))
#define RED_ZONE 0
#endif

/* The header fills one alignment unit; the data follows it. */
struct chunk {
    struct chunk *next;
    size_t capacity; /* bytes after the header */
};
#define HEADER HEED_ALIGN
#define FIRST_CHUNK ((size_t)1 << 16)
#define LARGEST_STEP ((size_t)1 << 26)

struct heed_arena {
    heed_allocator allocator;
    struct chunk *first, *last;
    struct chunk *current;
    size_t at;   /* next free byte in current */
    size_t used; /* bytes allocated since reset */
    size_t held;
};

static char *data_of(struct chunk *c)
{
    return (char *)c + HEADER;
}

heed_arena *heed_arena_new(const heed_allocator *allocator, heed_error *err)
{
    heed_allocator a = heed__allocator_or_default(allocator);
    heed_arena *arena = heed__allocate_zeroed(&a, 1, sizeof *arena);
    if (!arena) {
        heed__fail(err, HEED_MEMORY, "out of memory for an arena");
        return NULL;
    }
    arena->allocator = a;
    return arena;
}

void heed_arena_free(heed_arena *arena)
{
    if (!arena)
        return;
    for (struct chunk *c = arena->first, *next; c; c = next) {
        next = c->next;
        UNPOISON(data_of(c), c->capacity);
        heed__release(&arena->allocator, c, 1, HEADER + c->capacity);
    }
    heed_allocator a = arena->allocator;
    heed__release(&a, arena, 1, sizeof *arena);
}

/* Each chunk is as large as all before it together, up to a limit: few chunks, little waste. */
static bool add_chunk(heed_arena *arena, size_t size)
{
    size_t capacity = arena->held < FIRST_CHUNK ? FIRST_CHUNK : arena->held;
    if (capacity > LARGEST_STEP)
        capacity = LARGEST_STEP;
    if (capacity < size)
        capacity = size;
    struct chunk *c = heed__allocate(&arena->allocator, 1, HEADER + capacity);
    if (!c)
        return false;
    c->next = NULL;
    c->capacity = capacity;
    POISON(data_of(c), capacity);
    if (arena->last)
        arena->last->next = c;
    else
        arena->first = c;
    arena->last = c;
    arena->held += HEADER + capacity;
    return true;
}

void *heed_arena_allocate(heed_arena *arena, size_t size)
{
    if (!arena)
        return NULL;
    if (size > (size_t)INT64_MAX - 4 * HEED_ALIGN)
        return NULL;
    size_t need = (size + HEED_ALIGN - 1) / HEED_ALIGN * HEED_ALIGN + RED_ZONE;
    if (need == RED_ZONE)
        need += HEED_ALIGN;
    while (!arena->current || arena->current->capacity - arena->at < need) {
        struct chunk *next = arena->current ? arena->current->next : arena->first;
        if (!next) {
            if (!add_chunk(arena, need))
                return NULL;
            next = arena->last;
        }
        arena->current = next;
        arena->at = 0;
    }
    char *memory = data_of(arena->current) + arena->at;
    arena->at += need;
    arena->used += need;
    UNPOISON(memory, size);
    return memory;
}

void heed_arena_reset(heed_arena *arena)
{
    if (!arena)
        return;
    for (struct chunk *c = arena->first; c; c = c->next) {
        POISON(data_of(c), c->capacity);
        if (c == arena->current)
            break;
    }
    arena->current = NULL;
    arena->at = 0;
    arena->used = 0;
}

size_t heed_arena_used(const heed_arena *arena)
{
    if (!arena)
        return 0;
    return arena->used;
}

size_t heed_arena_held(const heed_arena *arena)
{
    if (!arena)
        return 0;
    return arena->held;
}
