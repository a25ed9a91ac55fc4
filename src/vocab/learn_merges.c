/* learn_merges.c: the learner of BPE.  A table of pairs holds how often each is seen and in
 * which words; a heap gives the most frequent.  What a merge changes is counted in its words
 * alone, so that learning takes about as long as one pass over the different words.  Ties go to
 * the smaller ids: the same words give the same merges. */
#include "vocab/learn_merges.h"
#include "base/error.h"
#include "base/memory.h"

#include <string.h>

/* A word that has a pair. */
struct place {
    int64_t word;
    struct place *next;
};

struct pair {
    int32_t left, right; /* left is -1 in a free slot */
    int64_t count;
    struct place *places;
};

struct best {
    int64_t count;
    int32_t left, right;
};

struct work {
    heed__learner *l;
    struct pair *slot;
    size_t slots, pairs;
    struct best *heap; /* what was a pair's count once; the true one is in the table */
    int64_t waiting, capacity;
    bool failed;
};

/* ---- growing arrays ---- */

static bool grow(const heed_allocator *a, void *array, int64_t *capacity, int64_t needed,
                 size_t each)
{
    void **at = array, *larger;
    int64_t more = *capacity ? *capacity : 1024;
    while (more < needed)
        more *= 2;
    if (needed <= *capacity)
        return true;
    larger = heed__allocate(a, (size_t)more, each);
    if (!larger)
        return false;
    if (*capacity)
        memcpy(larger, *at, (size_t)*capacity * each);
    heed__release(a, *at, (size_t)*capacity, each);
    *at = larger;
    *capacity = more;
    return true;
}

heed_status heed__learner_init(heed__learner *l, const heed_allocator *allocator, heed_error *err)
{
    *l = (heed__learner){.allocator = heed__allocator_or_default(allocator)};
    l->arena = heed_arena_new(&l->allocator, err);
    return l->arena ? heed__pieces_init(&l->pieces, &l->allocator, err) : HEED_MEMORY;
}

void heed__learner_deinit(heed__learner *l)
{
    heed__release(&l->allocator, l->symbol, (size_t)l->symbol_capacity, sizeof *l->symbol);
    heed__release(&l->allocator, l->word, (size_t)l->word_capacity, sizeof *l->word);
    heed__release(&l->allocator, l->merge, (size_t)l->merge_capacity, sizeof *l->merge);
    heed__pieces_deinit(&l->pieces);
    heed_arena_free(l->arena);
    *l = (heed__learner){.allocator = l->allocator, .pieces.allocator = l->allocator};
}

static heed_status no_memory(heed_error *err)
{
    return heed__fail(err, HEED_MEMORY, "out of memory for learning a vocabulary");
}

heed_status heed__learner_add(heed__learner *l, const int32_t *symbols, int32_t n, int64_t count,
                              heed_error *err)
{
    if (!grow(&l->allocator, &l->symbol, &l->symbol_capacity, l->symbols + n, sizeof *l->symbol) ||
        !grow(&l->allocator, &l->word, &l->word_capacity, l->words + 1, sizeof *l->word))
        return no_memory(err);
    l->word[l->words++] = (struct heed__learner_word){l->symbols, count, n};
    memcpy(l->symbol + l->symbols, symbols, (size_t)n * sizeof *symbols);
    l->symbols += n;
    return HEED_OK;
}

/* ---- the table of pairs ---- */

static size_t slot_of(const struct work *w, int32_t left, int32_t right)
{
    const uint64_t key = (uint64_t)(uint32_t)left << 32 | (uint32_t)right;
    size_t i = (size_t)(key * 0x9E3779B97F4A7C15u >> 32) & (w->slots - 1);
    while (w->slot[i].left >= 0 && (w->slot[i].left != left || w->slot[i].right != right))
        i = (i + 1) & (w->slots - 1);
    return i;
}

static bool grow_table(struct work *w)
{
    struct work larger = *w;
    larger.slots = w->slots ? 2 * w->slots : 1 << 14;
    larger.slot = heed__allocate(&w->l->allocator, larger.slots, sizeof *larger.slot);
    if (!larger.slot)
        return false;
    for (size_t i = 0; i < larger.slots; i++)
        larger.slot[i].left = -1;
    for (size_t i = 0; i < w->slots; i++)
        if (w->slot[i].left >= 0)
            larger.slot[slot_of(&larger, w->slot[i].left, w->slot[i].right)] = w->slot[i];
    heed__release(&w->l->allocator, w->slot, w->slots, sizeof *w->slot);
    *w = larger;
    return true;
}

static bool is_before(const struct best *a, const struct best *b)
{
    if (a->count != b->count)
        return a->count > b->count;
    return a->left != b->left ? a->left < b->left : a->right < b->right;
}

static void push(struct work *w, struct best b)
{
    if (!grow(&w->l->allocator, &w->heap, &w->capacity, w->waiting + 1, sizeof *w->heap)) {
        w->failed = true;
        return;
    }
    int64_t i = w->waiting++;
    for (int64_t up; i > 0 && is_before(&b, &w->heap[up = (i - 1) / 2]); i = up)
        w->heap[i] = w->heap[up];
    w->heap[i] = b;
}

static struct best pop(struct work *w)
{
    struct best top = w->heap[0], last = w->heap[--w->waiting];
    int64_t i = 0;
    for (int64_t down; (down = 2 * i + 1) < w->waiting; i = down) {
        if (down + 1 < w->waiting && is_before(&w->heap[down + 1], &w->heap[down]))
            down++;
        if (!is_before(&w->heap[down], &last))
            break;
        w->heap[i] = w->heap[down];
    }
    w->heap[i] = last;
    return top;
}

/* Counts a pair once more, or less, in a word. */
static void count(struct work *w, int32_t left, int32_t right, int64_t word, int64_t more)
{
    if (2 * (w->pairs + 1) > w->slots && !grow_table(w)) {
        w->failed = true;
        return;
    }
    struct pair *p = &w->slot[slot_of(w, left, right)];
    if (p->left < 0) {
        *p = (struct pair){.left = left, .right = right};
        w->pairs++;
    }
    p->count += more;
    if (more < 0)
        return;
    if (!p->places || p->places->word != word) {
        struct place *place = heed_arena_allocate(w->l->arena, sizeof *place);
        if (!place) {
            w->failed = true;
            return;
        }
        *place = (struct place){word, p->places};
        p->places = place;
    }
}

/* ---- merging ---- */

static void count_all(struct work *w)
{
    heed__learner *l = w->l;
    for (int64_t i = 0; i < l->words && !w->failed; i++)
        for (int32_t k = 0; k + 1 < l->word[i].length && !w->failed; k++) {
            const int32_t *s = l->symbol + l->word[i].begin + k;
            count(w, s[0], s[1], i, l->word[i].count);
        }
    for (size_t i = 0; i < w->slots && !w->failed; i++)
        if (w->slot[i].left >= 0)
            push(w, (struct best){w->slot[i].count, w->slot[i].left, w->slot[i].right});
}

/* Replaces the pair in one word, from the left; pairs that come to be are counted and wait. */
static void replace(struct work *w, int64_t at, int32_t left, int32_t right, int32_t both)
{
    struct heed__learner_word *word = &w->l->word[at];
    int32_t *s = w->l->symbol + word->begin, n = 0;
    for (int32_t i = 0; i < word->length && !w->failed; i++, n++) {
        const bool here = i + 1 < word->length && s[i] == left && s[i + 1] == right;
        if (!here) {
            s[n] = s[i];
            continue;
        }
        if (n > 0) {
            count(w, s[n - 1], left, at, -word->count);
            count(w, s[n - 1], both, at, word->count);
        }
        if (i + 2 < word->length) {
            count(w, right, s[i + 2], at, -word->count);
            count(w, both, s[i + 2], at, word->count);
        }
        s[n] = both;
        i++;
    }
    word->length = n;
}

/* New counts of the pairs that the piece is part of now. */
static void push_new(struct work *w, const struct place *places, int32_t both)
{
    for (const struct place *p = places; p && !w->failed; p = p->next) {
        const struct heed__learner_word *word = &w->l->word[p->word];
        const int32_t *s = w->l->symbol + word->begin;
        for (int32_t k = 0; k + 1 < word->length && !w->failed; k++)
            if (s[k] == both || s[k + 1] == both) {
                const struct pair *pair = &w->slot[slot_of(w, s[k], s[k + 1])];
                push(w, (struct best){pair->count, s[k], s[k + 1]});
            }
    }
}

static int32_t join(heed__learner *l, int32_t left, int32_t right, size_t inside)
{
    const heed__piece *a = &l->pieces.item[left], *b = &l->pieces.item[right];
    char *text = heed_arena_allocate(l->arena, a->length + b->length);
    if (!text)
        return -1;
    memcpy(text, a->text, a->length);
    memcpy(text + a->length, b->text + inside, b->length - inside);
    return heed__pieces_add(&l->pieces, text, a->length + b->length - inside);
}

static bool remember(heed__learner *l, int32_t left, int32_t right)
{
    int64_t capacity = l->merge_capacity;
    if (!grow(&l->allocator, &l->merge, &capacity, l->merges + 1, sizeof *l->merge))
        return false;
    l->merge_capacity = (int32_t)capacity;
    l->merge[l->merges][0] = left;
    l->merge[l->merges++][1] = right;
    return true;
}

heed_status heed__learner_run(heed__learner *l, int32_t size, const char *inside, heed_error *err)
{
    struct work w = {.l = l};
    count_all(&w);
    while (!w.failed && w.waiting > 0 && l->pieces.count < size) {
        const struct best b = pop(&w);
        struct pair *p = &w.slot[slot_of(&w, b.left, b.right)];
        if (p->count < 2)
            continue;
        if (p->count != b.count) { /* it has changed since */
            if (p->count < b.count)
                push(&w, (struct best){p->count, b.left, b.right});
            continue;
        }
        const int32_t both = join(l, b.left, b.right, strlen(inside));
        const struct place *places = p->places;
        p->count = 0;
        p->places = NULL;
        if (both >= 0 && l->pieces.item[both].type != HEED__PIECE_NORMAL)
            continue; /* the text spells a special piece */
        w.failed |= both < 0 || !remember(l, b.left, b.right);
        for (const struct place *at = places; at && !w.failed; at = at->next)
            replace(&w, at->word, b.left, b.right, both);
        push_new(&w, places, both);
        w.slot[slot_of(&w, b.left, b.right)].count = 0;
    }
    heed__release(&l->allocator, w.slot, w.slots, sizeof *w.slot);
    heed__release(&l->allocator, w.heap, (size_t)w.capacity, sizeof *w.heap);
    return w.failed ? no_memory(err) : HEED_OK;
}
