/* long_numbers.c: tasks whose answers are numbers.
 *
 *   retrieval  pairs of a key and a value, then keys: which value came with each last; wanted is a
 *              row of 0 with a 1 (Schlag et al. 2021, section 6.1)
 *   sets       the largest of 1 to 10 whole numbers from 1 to 99 (Lee et al. 2019, section 5.1)
 *   series     the oil's temperature in the next 24 hours, after a week of them: ETTh1 (Zhou et al.
 *              2021), all relative to the last one known (Zeng et al. 2023: it drifts, and a level
 *              that was learned in spring is wrong in summer) */
#include "long.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const heed_rng *long_rng_of(long_part part, int64_t example, const heed_rng *rng, heed_rng *own)
{
    if (part == LONG_TRAIN)
        return rng;
    *own = heed_rng_stream(&(heed_rng_key){
        .seed = 1000003, .step = (uint64_t)example, .set = (uint32_t)part, .node = 17});
    return own;
}

/* Memory for n sequences and what is wanted of them, `outputs` numbers each; false when short. */
static bool new_numbers(long_batch *b, const long_source *s, heed_arena *arena,
                        const int64_t *lengths, int64_t n, int64_t wanted, int32_t **ids,
                        int32_t **rows, heed_real **target)
{
    int32_t *none;
    if (!long_batch_new(b, arena, lengths, n, wanted, ids, &none, rows))
        return false;
    *target = heed_arena_allocate(arena, (size_t)(b->count * s->outputs) * sizeof **target);
    b->wanted = NULL;
    b->target = *target;
    return *target;
}

/* ---- retrieval ---- */

static heed_status open_retrieval(long_source *s, heed_error *err)
{
    const int64_t writes = s->settings->writes;
    (void)err;
    s->vocabulary = s->outputs = s->length;
    s->types = s->length + 1; /* type 0 asks */
    s->longest = (writes ? writes : s->length) + s->length;
    s->unit = 1;
    return HEED_OK;
}

/* Numbers 0 .. n-1 in an order of their own. */
static void shuffle(int32_t *x, int64_t n, const heed_rng *rng, uint64_t *next)
{
    for (int64_t i = 0; i < n; i++) {
        const int64_t k = heed_rng_below(rng, (*next)++, i + 1);
        x[i] = x[k];
        x[k] = (int32_t)i;
    }
}

/* Keys and values are each drawn once, in some order; with --writes anew for every pair.  Then each
 * key that has been written is asked for. */
static bool draw_retrieval(const long_source *s, long_part part, int64_t at, int64_t n,
                           const heed_rng *rng, heed_arena *arena, long_batch *out)
{
    const int64_t keys = s->length, anew = s->settings->writes, writes = anew ? anew : keys;
    int64_t *lengths = heed_arena_allocate(arena, (size_t)n * sizeof *lengths), all = 0, wanted = 0;
    int32_t *pair = heed_arena_allocate(arena, (size_t)(2 * n * writes) * sizeof *pair);
    int32_t *last = heed_arena_allocate(arena, (size_t)(n * keys) * sizeof *last);
    int32_t *ids, *row;
    heed_real *target;
    uint64_t next = 0;
    if (!lengths || !pair || !last)
        return false;
    for (int64_t i = 0; i < n; i++) {
        heed_rng own;
        const heed_rng *from = long_rng_of(part, at + i, rng, &own);
        int32_t *key = pair + 2 * i * writes, *value = key + writes;
        next = part == LONG_TRAIN ? next : 0;
        if (!anew) {
            shuffle(key, keys, from, &next);
            shuffle(value, keys, from, &next);
        }
        for (int64_t k = 0; k < keys; k++)
            last[i * keys + k] = -1;
        for (int64_t w = 0; w < writes; w++) {
            if (anew) {
                key[w] = (int32_t)heed_rng_below(from, next++, keys);
                value[w] = (int32_t)heed_rng_below(from, next++, keys);
            }
            last[i * keys + key[w]] = value[w];
        }
        lengths[i] = writes;
        for (int64_t k = 0; k < keys; k++)
            lengths[i] += last[i * keys + k] >= 0;
        wanted += lengths[i] - writes;
        all += lengths[i];
    }
    int32_t *types = heed_arena_allocate(arena, (size_t)all * sizeof *types);
    if (!types || !new_numbers(out, s, arena, lengths, n, wanted, &ids, &row, &target))
        return false;
    memset(target, 0, (size_t)(wanted * keys) * sizeof *target);
    int64_t to = 0, asked = 0;
    for (int64_t i = 0; i < n; i++) {
        for (int64_t w = 0; w < writes; w++, to++) {
            ids[to] = pair[2 * i * writes + w];
            types[to] = 1 + pair[2 * i * writes + writes + w];
        }
        for (int64_t k = 0; k < keys; k++)
            if (last[i * keys + k] >= 0) {
                ids[to] = (int32_t)k;
                types[to] = 0;
                row[asked] = (int32_t)to++;
                target[asked++ * keys + last[i * keys + k]] = 1;
            }
    }
    out->side.types = types;
    return true;
}

static void report_retrieval(const long_source *s, const long_score *score, lab_session *r)
{
    lab_report(r, score->squared / 2, LAB_NO_TARGET, 0,
               "%lld keys, half the squared error of a value", (long long)s->length);
    lab_report(r, 0.5 * (1 - 1 / (double)s->length), LAB_NO_TARGET, 0, "of the mean of all values");
}

const long_task long_retrieval = {.name = "retrieval",
                                  .unit = "squared error",
                                  .causal = true,
                                  .length = 60,
                                  .open = open_retrieval,
                                  .draw = draw_retrieval,
                                  .report = report_retrieval};

/* ---- sets ---- */

enum { LARGEST = 99 };

static heed_status open_sets(long_source *s, heed_error *err)
{
    (void)err;
    s->width = s->outputs = 1;
    s->longest = s->length;
    s->unit = (LARGEST + 1) / 2.0;
    return HEED_OK;
}

static bool draw_sets(const long_source *s, long_part part, int64_t at, int64_t n,
                      const heed_rng *rng, heed_arena *arena, long_batch *out)
{
    int64_t *lengths = heed_arena_allocate(arena, (size_t)n * sizeof *lengths), to = 0;
    heed_real *x = heed_arena_allocate(arena, (size_t)(n * s->length) * sizeof *x), *target;
    int32_t *ids, *row;
    if (!lengths || !x)
        return false;
    for (int64_t i = 0; i < n; i++) {
        heed_rng own;
        const heed_rng *from = long_rng_of(part, at + i, rng, &own);
        lengths[i] =
            1 + heed_rng_below(from, part == LONG_TRAIN ? (uint64_t)i << 16 : 0, s->length);
    }
    if (!new_numbers(out, s, arena, lengths, n, n, &ids, &row, &target))
        return false;
    for (int64_t i = 0; i < n; i++) {
        heed_rng own;
        const heed_rng *from = long_rng_of(part, at + i, rng, &own);
        int64_t most = 0;
        row[i] = (int32_t)i;
        for (int64_t k = 0; k < lengths[i]; k++) {
            const uint64_t element = (part == LONG_TRAIN ? (uint64_t)i << 16 : 0) + 1 + (uint64_t)k;
            const int64_t one = 1 + heed_rng_below(from, element, LARGEST);
            most = one > most ? one : most;
            x[to++] = (heed_real)((double)one / s->unit - 1);
        }
        target[i] = (heed_real)((double)most / s->unit - 1);
    }
    out->side.ids = NULL;
    out->side.features = x;
    out->side.width = 1;
    return true;
}

static void report_sets(const long_source *s, const long_score *score, lab_session *r)
{
    const bool pma = s->settings->pooling == LONG_PMA;
    lab_report(r, s->unit * score->absolute, pma ? LAB_AT_MOST : LAB_NO_TARGET, 0.5,
               "the largest of up to %lld numbers, mean absolute error", (long long)s->length);
}

const long_task long_sets = {.name = "sets",
                             .unit = "absolute error",
                             .absolute = true,
                             .pools = true,
                             .length = 10,
                             .open = open_sets,
                             .draw = draw_sets,
                             .report = report_sets};

/* ---- series ---- */

/* Informer's borders, in hours; what is forecast; and the columns of a row: the value, whether it
 * is asked for, the hour and the weekday on their circles. */
enum { TRAINED = 8640, VALID_END = 11520, TEST_END = 14400, AHEAD = 24, COLUMNS = 6 };
struct series {
    double value[TEST_END]; /* mean 0 and variance 1 where it is trained */
};

static heed_status read_series(struct series *x, const char *folder, heed_error *err)
{
    char path[4096];
    const char *paths[] = {path}, *line;
    size_t length;
    int64_t n = -1; /* the first line has names */
    long_path_in(path, folder, "ETTh1.csv");
    heed_lines *lines = heed_lines_open(paths, 1, NULL, err);
    while (lines && n < TEST_END && !heed_lines_next(lines, &line, &length, err) && line) {
        char text[64], *end = text;
        size_t last = length;
        while (last > 0 && line[last - 1] != ',')
            last--;
        snprintf(text, sizeof text, "%.*s", (int)(length - last), line + last);
        const double value = strtod(text, &end);
        if (n >= 0 && (end == text || (*end && *end != '\r') || !isfinite(value)))
            lab_fail(err, HEED_FORMAT, "'%.300s', line %lld: '%.40s' is no number", path,
                     (long long)n + 2, text);
        if (err->status)
            break;
        if (n >= 0)
            x->value[n] = value;
        n++;
    }
    heed_lines_free(lines);
    if (!err->status && n < TEST_END)
        lab_fail(err, HEED_FORMAT, "'%.300s' has %lld hours, expected %d", path,
                 (long long)(n > 0 ? n : 0), TEST_END);
    return err->status;
}

static heed_status open_series(long_source *s, heed_error *err)
{
    struct series *x = heed_arena_allocate(s->arena, sizeof *x);
    double mean = 0, square = 0;
    s->data = x;
    if (!x)
        return lab_fail(err, HEED_MEMORY, "out of memory");
    if (s->length > TRAINED - AHEAD)
        return lab_fail(err, HEED_ARGUMENT, "option '--length' is %lld, expected at most %d hours",
                        (long long)s->length, TRAINED - AHEAD);
    if (read_series(x, s->settings->data, err))
        return err->status;
    for (int i = 0; i < TRAINED; i++) {
        mean += x->value[i] / TRAINED;
        square += x->value[i] * x->value[i] / TRAINED;
    }
    const double deviation = sqrt(square - mean * mean);
    for (int i = 0; i < TEST_END; i++)
        x->value[i] = (x->value[i] - mean) / (deviation > 0 ? deviation : 1);
    s->width = COLUMNS;
    s->outputs = 1;
    s->longest = s->length + AHEAD;
    s->unit = 1;
    s->count[LONG_VALID] = VALID_END - TRAINED - AHEAD + 1;
    s->count[LONG_TEST] = TEST_END - VALID_END - AHEAD + 1;
    return HEED_OK;
}

/* The first hour that is forecast of example i of a part. */
static int64_t first_ahead(long_part part, int64_t i)
{
    return (part == LONG_VALID ? TRAINED : VALID_END) + i;
}

static bool draw_series(const long_source *s, long_part part, int64_t at, int64_t n,
                        const heed_rng *rng, heed_arena *arena, long_batch *out)
{
    const struct series *x = s->data;
    const int64_t rows = s->length + AHEAD;
    int64_t *lengths = heed_arena_allocate(arena, (size_t)n * sizeof *lengths);
    heed_real *to = heed_arena_allocate(arena, (size_t)(n * rows * COLUMNS) * sizeof *to), *target;
    int32_t *ids, *row;
    const double turn = 2 * acos(-1);
    for (int64_t i = 0; lengths && i < n; i++)
        lengths[i] = rows;
    if (!lengths || !to || !new_numbers(out, s, arena, lengths, n, n * AHEAD, &ids, &row, &target))
        return false;
    out->side.ids = NULL;
    out->side.features = to;
    out->side.width = COLUMNS;
    for (int64_t i = 0; i < n; i++) {
        const int64_t ahead =
            part == LONG_TRAIN
                ? s->length + heed_rng_below(rng, (uint64_t)i, TRAINED - AHEAD - s->length + 1)
                : first_ahead(part, at + i);
        for (int64_t k = 0; k < rows; k++, to += COLUMNS) {
            const int64_t hour = ahead - s->length + k;
            const bool asked = k >= s->length;
            to[0] = asked ? 0 : (heed_real)(x->value[hour] - x->value[ahead - 1]);
            to[1] = asked;
            to[2] = (heed_real)sin(turn * (double)(hour % 24) / 24);
            to[3] = (heed_real)cos(turn * (double)(hour % 24) / 24);
            to[4] = (heed_real)sin(turn * (double)(hour / 24 % 7) / 7);
            to[5] = (heed_real)cos(turn * (double)(hour / 24 % 7) / 7);
            if (asked) {
                row[i * AHEAD + k - s->length] = (int32_t)(i * rows + k);
                target[i * AHEAD + k - s->length] =
                    (heed_real)(x->value[hour] - x->value[ahead - 1]);
            }
        }
    }
    return true;
}

static void report_series(const long_source *s, const long_score *score, lab_session *r)
{
    const struct series *x = s->data;
    double same = 0;
    for (int64_t i = 0; i < s->count[LONG_TEST]; i++)
        for (int64_t k = 0, first = first_ahead(LONG_TEST, i); k < AHEAD; k++)
            same += pow(x->value[first + k] - x->value[first - 1], 2) /
                    (double)(AHEAD * s->count[LONG_TEST]);
    lab_report(r, score->squared, LAB_AT_MOST, fmin(0.13, same), "%d hours ahead, squared error",
               AHEAD);
    lab_report(r, score->absolute, LAB_NO_TARGET, 0, "absolute error");
    lab_report(r, same, LAB_NO_TARGET, 0, "the last value once more, squared error");
}

const long_task long_series = {.name = "series",
                               .unit = "squared error",
                               .needs_data = true,
                               .length = 168,
                               .open = open_series,
                               .draw = draw_series,
                               .report = report_series};
