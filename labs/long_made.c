/* long_made.c: tasks that are made from random numbers.
 *
 *   duplication  0w0w, w of symbols 1 to 127; wanted is the second half (Kitaev et al. 2020,
 *                section 4: "Reformer")
 *   listops      [MAX 4 [MIN 2 3 ] 1 ...], as the Long Range Arena makes them (Tay et al. 2021,
 * after Nangia and Bowman 2018): a value or a list with odds of 3 to 1, lists of 2 to
 *                10, up to 6 deep; wanted is the value, behind a first token of its own */
#include "long.h"

#include <math.h>

/* ---- duplication ---- */

enum { SYMBOLS = 127 };

static heed_status open_duplication(long_source *s, heed_error *err)
{
    (void)err;
    s->vocabulary = s->classes = SYMBOLS + 1;
    s->longest = 2 * s->length + 1;
    return HEED_OK;
}

static bool draw_duplication(const long_source *s, long_part part, int64_t at, int64_t n,
                             const heed_rng *rng, heed_arena *arena, long_batch *out)
{
    const int64_t w = s->length, rows = 2 * w + 1;
    int64_t *lengths = heed_arena_allocate(arena, (size_t)n * sizeof *lengths);
    int32_t *ids, *wanted, *row;
    for (int64_t i = 0; lengths && i < n; i++)
        lengths[i] = rows;
    if (!lengths || !long_batch_new(out, arena, lengths, n, n * w, &ids, &wanted, &row))
        return false;
    for (int64_t i = 0; i < n; i++) {
        heed_rng own;
        const heed_rng *from = long_rng_of(part, at + i, rng, &own);
        int32_t *x = ids + i * rows;
        x[0] = x[w + 1] = 0;
        for (int64_t k = 0; k < w; k++) {
            const uint64_t element = (uint64_t)((part == LONG_TRAIN ? i * w : 0) + k);
            const int32_t symbol = 1 + (int32_t)heed_rng_below(from, element, SYMBOLS);
            x[1 + k] = symbol;
            if (k + 1 < w)
                x[w + 2 + k] = symbol;
            wanted[i * w + k] = symbol;
            row[i * w + k] = (int32_t)(i * rows + w + 1 + k);
        }
    }
    return true;
}

static void report_duplication(const long_source *s, const long_score *score, lab_session *r)
{
    lab_report(r, 100 * score->right, long_is_dense(s->settings) ? LAB_AT_LEAST : LAB_NO_TARGET, 99,
               "second half of %lld symbols, right, %%", (long long)s->length);
    lab_report(r, 100.0 / SYMBOLS, LAB_NO_TARGET, 0, "by chance, %%");
}

const long_task long_duplication = {.name = "duplication",
                                    .unit = "nats a symbol",
                                    .causal = true,
                                    .length = 31,
                                    .open = open_duplication,
                                    .draw = draw_duplication,
                                    .report = report_duplication};

/* ---- listops ---- */

/* Digits 0 to 9 are themselves. */
enum { MIN = 10, MAX, MEDIAN, SUM, CLOSE, FIRST, LIST_WORDS };
enum { DEPTH = 6, ARGUMENTS = 10, SHORTEST = 20 };
#define LISTS 0.25 /* of all nodes */

struct list_maker {
    const heed_rng *rng;
    uint64_t next;
    int32_t *out; /* (room) */
    int64_t n, room;
};

static void say(struct list_maker *m, int32_t word)
{
    if (m->n < m->room)
        m->out[m->n] = word;
    m->n++;
}

static int value_of(int32_t operator, int * value, int n)
{
    int sum = 0;
    for (int i = 0; i < n; i++) { /* in order */
        const int x = value[i];
        int k = i;
        sum += x;
        for (; k > 0 && value[k - 1] > x; k--)
            value[k] = value[k - 1];
        value[k] = x;
    }
    switch (operator) {
    case MIN:
        return value[0];
    case MAX:
        return value[n - 1];
    case MEDIAN: /* of two in the middle their mean, without its half */
        return (value[(n - 1) / 2] + value[n / 2]) / 2;
    default:
        return sum % 10;
    }
}

/* Writes a tree and returns its value; what is longer than the room is counted all the same. */
static int make_tree(struct list_maker *m, int depth)
{
    const double dice = depth < DEPTH ? heed_rng_uniform(m->rng, m->next++) : 1;
    int value[ARGUMENTS];
    if (dice > LISTS || m->n > m->room) {
        const int digit = (int)heed_rng_below(m->rng, m->next++, 10);
        say(m, digit);
        return digit;
    }
    const int n = 2 + (int)heed_rng_below(m->rng, m->next++, ARGUMENTS - 1);
    const int32_t operator= MIN +(int32_t) heed_rng_below(m->rng, m->next++, 4);
    say(m, operator);
    for (int i = 0; i < n; i++)
        value[i] = make_tree(m, depth + 1);
    say(m, CLOSE);
    return value_of(operator, value, n);
}

static heed_status open_listops(long_source *s, heed_error *err)
{
    if (s->length <= SHORTEST)
        return lab_fail(err, HEED_ARGUMENT, "option '--length' is %lld, expected %d at least",
                        (long long)s->length, SHORTEST + 1);
    s->vocabulary = LIST_WORDS;
    s->classes = 10;
    s->longest = s->length + 1;
    return HEED_OK;
}

static bool draw_listops(const long_source *s, long_part part, int64_t at, int64_t n,
                         const heed_rng *rng, heed_arena *arena, long_batch *out)
{
    int32_t *all = heed_arena_allocate(arena, (size_t)(n * s->longest) * sizeof *all);
    int64_t *lengths = heed_arena_allocate(arena, (size_t)n * sizeof *lengths);
    int *value = heed_arena_allocate(arena, (size_t)n * sizeof *value);
    int32_t *ids, *wanted, *row;
    uint64_t next = 0;
    if (!all || !lengths || !value)
        return false;
    for (int64_t i = 0; i < n; i++) {
        heed_rng own;
        struct list_maker m = {long_rng_of(part, at + i, rng, &own), part == LONG_TRAIN ? next : 0,
                               all + i * s->longest, 0, s->length + 1};
        do {
            m.n = 0;
            say(&m, FIRST);
            value[i] = make_tree(&m, 1);
        } while (m.n - 1 <= SHORTEST || m.n - 1 >= s->length);
        next = m.next;
        lengths[i] = m.n;
    }
    if (!long_batch_new(out, arena, lengths, n, n, &ids, &wanted, &row))
        return false;
    for (int64_t i = 0; i < n; i++) {
        const int64_t first = out->side.rows->offset[i];
        for (int64_t k = 0; k < lengths[i]; k++)
            ids[first + k] = all[i * s->longest + k];
        wanted[i] = value[i];
        row[i] = (int32_t)first;
    }
    return true;
}

static void report_listops(const long_source *s, const long_score *score, lab_session *r)
{
    lab_report(r, 100 * score->right, long_is_dense(s->settings) ? LAB_AT_LEAST : LAB_NO_TARGET, 50,
               "lists of %d to %lld tokens, right, %%", SHORTEST + 1, (long long)s->length - 1);
    lab_report(r, 100 * score->most, LAB_NO_TARGET, 0, "the commonest value, %%");
}

const long_task long_listops = {.name = "listops",
                                .unit = "nats a list",
                                .length = 200,
                                .open = open_listops,
                                .draw = draw_listops,
                                .report = report_listops};
