/* ntm_tasks.c: the five tasks of section 4, drawn at random.
 *
 * Every channel of the input that is not a bit of data says one thing: here the answer begins, here
 * an item begins, so often, so urgent. */
#include "ntm.h"

#include <math.h>
#include <string.h>

/* Random numbers in order. */
struct draw {
    const heed_rng *rng;
    uint64_t next;
};

static heed_real draw_bit(struct draw *d)
{
    return (heed_real)(heed_rng_bits(d->rng, d->next++) & 1);
}

static double draw_uniform(struct draw *d)
{
    return heed_rng_uniform(d->rng, d->next++);
}

static heed_real *x_at(const ntm_batch *b, int64_t step, int64_t sequence)
{
    return b->x + (step * b->batch + sequence) * b->in;
}

/* step counts from the first that is scored. */
static heed_real *target_at(const ntm_batch *b, int64_t step, int64_t sequence)
{
    return b->target + (step * b->batch + sequence) * b->out;
}

static void draw_bits(struct draw *d, heed_real *to, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        to[i] = draw_bit(d);
}

/* ---- 4.1 copy: vectors of eight bits, a mark, the same again ---- */

enum { BITS = 8 };

static void draw_copy(const ntm_batch *b, ntm_size size, struct draw *d, int64_t s)
{
    x_at(b, size.length, s)[BITS] = 1;
    for (int64_t i = 0; i < size.length; i++) {
        draw_bits(d, x_at(b, i, s), BITS);
        memcpy(target_at(b, i, s), x_at(b, i, s), BITS * sizeof(heed_real));
    }
}

/* ---- 4.2 repeat copy: as often as a number says, then a mark at the end ---- */

/* The numbers 1 to 10 of the training, brought to mean 0 and variance 1. */
static heed_real repeats_as_input(int64_t repeats)
{
    return (heed_real)(((double)repeats - 5.5) / sqrt(99 / 12.0));
}

static void draw_repeat_copy(const ntm_batch *b, ntm_size size, struct draw *d, int64_t s)
{
    x_at(b, size.length, s)[BITS] = 1;
    x_at(b, size.length, s)[BITS + 1] = repeats_as_input(size.repeats);
    for (int64_t i = 0; i < size.length; i++) {
        draw_bits(d, x_at(b, i, s), BITS);
        for (int64_t k = 0; k < size.repeats; k++)
            memcpy(target_at(b, k * size.length + i, s), x_at(b, i, s), BITS * sizeof(heed_real));
    }
    target_at(b, size.length * size.repeats, s)[BITS] = 1;
}

/* ---- 4.3 associative recall: items, then one of them again: which came after it? ---- */

enum { ITEM = 3, ITEM_BITS = 6 }; /* vectors an item, bits a vector */

static void draw_recall(const ntm_batch *b, ntm_size size, struct draw *d, int64_t s)
{
    int64_t step = 0, asked = (int64_t)(draw_uniform(d) * (double)(size.length - 1));
    for (int64_t item = 0; item < size.length; item++) {
        x_at(b, step++, s)[ITEM_BITS] = 1;
        for (int64_t i = 0; i < ITEM; i++, step++) {
            draw_bits(d, x_at(b, step, s), ITEM_BITS);
            if (item == asked + 1)
                memcpy(target_at(b, i, s), x_at(b, step, s), ITEM_BITS * sizeof(heed_real));
        }
    }
    x_at(b, step++, s)[ITEM_BITS + 1] = 1;
    for (int64_t i = 0; i < ITEM; i++, step++)
        memcpy(x_at(b, step, s), x_at(b, asked * (ITEM + 1) + 1 + i, s),
               ITEM_BITS * sizeof(heed_real));
    x_at(b, step, s)[ITEM_BITS + 1] = 1;
}

/* ---- 4.4 dynamic N-grams: bits from probabilities that are new for each sequence ---- */

enum { CONTEXT = 5, CONTEXTS = 1 << CONTEXT };

/* Beta(1/2,1/2), the arcsine distribution, by its inverse. */
static double draw_beta_half(struct draw *d)
{
    double x = sin(acos(-1) / 2 * draw_uniform(d));
    return x * x;
}

static void draw_ngrams(const ntm_batch *b, ntm_size size, struct draw *d, int64_t s)
{
    double table[CONTEXTS];
    unsigned context = 0;
    for (int i = 0; i < CONTEXTS; i++)
        table[i] = draw_beta_half(d);
    for (int64_t i = 0; i < size.length; i++) {
        double p = i < CONTEXT ? 0.5 : table[context];
        unsigned bit = draw_uniform(d) < p;
        if (i + 1 < size.length)
            *x_at(b, i, s) = (heed_real)bit;
        if (i >= CONTEXT)
            *target_at(b, i - CONTEXT, s) = (heed_real)bit;
        context = (context << 1 | bit) % CONTEXTS;
    }
}

double ntm_ngrams_optimum(const ntm_batch *b)
{
    double bits = 0;
    for (int64_t s = 0; s < b->batch; s++) {
        double seen[CONTEXTS][2] = {{0}};
        unsigned context = 0;
        for (int64_t i = 0; i < b->first; i++)
            context = context << 1 | (*x_at(b, i, s) > 0);
        for (int64_t i = b->first; i < b->steps; i++) {
            context = (context << 1 | (*x_at(b, i, s) > 0)) % CONTEXTS;
            double *n = seen[context];
            int bit = *target_at(b, i - b->first, s) > 0;
            bits -= log2((n[bit] + 0.5) / (n[0] + n[1] + 1));
            n[bit]++;
        }
    }
    return bits / (double)b->batch;
}

/* ---- 4.5 priority sort: twenty vectors with a priority each, the sixteen highest in order ---- */

enum { SORTED = 16 };

/* Whether vector i comes before j: by its priority; equals in their order. */
static bool precedes(const ntm_batch *b, int64_t s, int64_t i, int64_t j)
{
    heed_real x = x_at(b, i, s)[BITS], y = x_at(b, j, s)[BITS];
    return x > y || (x == y && i < j);
}

static void draw_sort(const ntm_batch *b, ntm_size size, struct draw *d, int64_t s)
{
    x_at(b, size.length, s)[BITS + 1] = 1;
    for (int64_t i = 0; i < size.length; i++) {
        heed_real priority = (heed_real)(2 * draw_uniform(d) - 1);
        draw_bits(d, x_at(b, i, s), BITS);
        x_at(b, i, s)[BITS] = priority;
    }
    for (int64_t i = 0, last = -1; i < b->steps - b->first; i++) {
        int64_t best = -1; /* of those behind the last one */
        for (int64_t j = 0; j < size.length; j++)
            if ((last < 0 || precedes(b, s, last, j)) && (best < 0 || precedes(b, s, j, best)))
                best = j;
        memcpy(target_at(b, i, s), x_at(b, best, s), BITS * sizeof(heed_real));
        last = best;
    }
}

/* ---- all of them ---- */

static const struct {
    int64_t in, out;
    ntm_size least, most; /* in training */
    void (*draw)(const ntm_batch *b, ntm_size size, struct draw *d, int64_t sequence);
} tasks[] = {
    [NTM_COPY] = {BITS + 1, BITS, {1, 1}, {20, 1}, draw_copy},
    [NTM_REPEAT_COPY] = {BITS + 2, BITS + 1, {1, 1}, {10, 10}, draw_repeat_copy},
    [NTM_RECALL] = {ITEM_BITS + 2, ITEM_BITS, {2, 1}, {6, 1}, draw_recall},
    [NTM_NGRAMS] = {1, 1, {200, 1}, {200, 1}, draw_ngrams},
    [NTM_SORT] = {BITS + 2, BITS, {20, 1}, {20, 1}, draw_sort},
};

void ntm_task_channels(ntm_task task, int64_t *in, int64_t *out)
{
    *in = tasks[task].in;
    *out = tasks[task].out;
}

ntm_size ntm_task_largest(ntm_task task)
{
    return tasks[task].most;
}

ntm_size ntm_task_draw_size(ntm_task task, const heed_rng *rng)
{
    ntm_size least = tasks[task].least, most = tasks[task].most;
    return (ntm_size){least.length + heed_rng_below(rng, 0, most.length - least.length + 1),
                      least.repeats + heed_rng_below(rng, 1, most.repeats - least.repeats + 1)};
}

/* Steps before the first that is scored, and those from there on. */
static void steps_of(ntm_task task, ntm_size size, int64_t *shown, int64_t *scored)
{
    int64_t n = size.length;
    *shown = n + 1; /* and the mark */
    *scored = n;
    switch (task) {
    case NTM_COPY:
        break;
    case NTM_REPEAT_COPY:
        *scored = n * size.repeats + 1;
        break;
    case NTM_RECALL:
        *shown = (n + 1) * (ITEM + 1) + 1;
        *scored = ITEM;
        break;
    case NTM_NGRAMS:
        *shown = CONTEXT - 1;
        *scored = n - CONTEXT;
        break;
    case NTM_SORT:
        *scored = n < SORTED ? n : SORTED;
        break;
    }
}

static heed_real *zeros(heed_arena *arena, int64_t count)
{
    heed_real *x = heed_arena_allocate(arena, (size_t)count * sizeof *x);
    if (x)
        memset(x, 0, (size_t)count * sizeof *x);
    return x;
}

bool ntm_task_draw(ntm_task task, ntm_size size, int64_t batch, const heed_rng *rng,
                   heed_arena *arena, ntm_batch *out)
{
    int64_t scored;
    *out = (ntm_batch){.batch = batch};
    ntm_task_channels(task, &out->in, &out->out);
    steps_of(task, size, &out->first, &scored);
    out->steps = out->first + scored;
    out->x = zeros(arena, out->steps * batch * out->in);
    out->target = zeros(arena, scored * batch * out->out);
    if (!out->x || !out->target)
        return false;
    struct draw d = {rng, 2}; /* behind those of ntm_task_draw_size */
    for (int64_t s = 0; s < batch; s++)
        tasks[task].draw(out, size, &d, s);
    return true;
}
