/* long_files.c: tasks on real data: characters of a text, with questions about far ones or without,
 * and pixels of digits, one after the other; film reviews as bytes, and whether they praise it. */
#include "long.h"
#include "picture_data.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

void long_path_in(char path[4096], const char *folder, const char *name)
{
    snprintf(path, 4096, "%.4000s/%s", folder, name);
    if (access(path, F_OK) != 0)
        snprintf(path, 4096, "%.4000s/%s.gz", folder, name);
    if (access(path, F_OK) != 0)
        snprintf(path, 4096, "%.4000s/%s", folder, name);
}

/* Bytes that grow; what they outgrow stays in the arena. */
struct bytes {
    uint8_t *at;
    int64_t n, room;
};

static bool add_bytes(struct bytes *b, const char *text, size_t length, heed_arena *arena)
{
    if (b->n + (int64_t)length > b->room) {
        const int64_t room = 2 * (b->n + (int64_t)length) + 4096;
        uint8_t *more = heed_arena_allocate(arena, (size_t)room);
        if (!more)
            return false;
        if (b->n)
            memcpy(more, b->at, (size_t)b->n);
        b->at = more;
        b->room = room;
    }
    memcpy(b->at + b->n, text, length);
    b->n += (int64_t)length;
    return true;
}

/* n sequences of `rows` tokens, all of which are wanted by the one before. */
static bool new_windows(long_batch *out, heed_arena *arena, int64_t n, int64_t rows, int32_t **ids,
                        int32_t **wanted)
{
    int64_t *lengths = heed_arena_allocate(arena, (size_t)n * sizeof *lengths);
    int32_t *none;
    for (int64_t i = 0; lengths && i < n; i++)
        lengths[i] = rows;
    return lengths && long_batch_new(out, arena, lengths, n, 0, ids, wanted, &none);
}

/* ---- characters ---- */

/* 90 % of the text is for training, then 5 % for validation, 5 % for the test. */
struct text {
    struct bytes bytes; /* numbers of the characters that occur */
    int64_t begin[4];
};

static heed_status open_characters(long_source *s, heed_error *err)
{
    struct text *x = heed_arena_allocate(s->arena, sizeof *x);
    char path[4096];
    const char *paths[] = {path}, *line;
    size_t length;
    int number[256], kinds = 0;
    long_path_in(path, s->settings->data, "input.txt");
    heed_lines *lines = x ? heed_lines_open(paths, 1, NULL, err) : NULL;
    if (x)
        *x = (struct text){0};
    while (lines && !heed_lines_next(lines, &line, &length, err) && line)
        if (!add_bytes(&x->bytes, line, length, s->arena) ||
            !add_bytes(&x->bytes, "\n", 1, s->arena))
            lab_fail(err, HEED_MEMORY, "out of memory for '%.300s'", path);
    heed_lines_free(lines);
    if (!x || err->status)
        return x ? err->status : lab_fail(err, HEED_MEMORY, "out of memory");
    if (x->bytes.n / 20 < s->length + 1)
        return lab_fail(err, HEED_FORMAT,
                        "'%.300s' has %lld characters, too few for windows of %lld", path,
                        (long long)x->bytes.n, (long long)s->length);
    for (int i = 0; i < 256; i++)
        number[i] = -1;
    for (int64_t i = 0; i < x->bytes.n; i++)
        number[x->bytes.at[i]] = 0;
    for (int i = 0; i < 256; i++)
        number[i] = number[i] < 0 ? -1 : kinds++;
    for (int64_t i = 0; i < x->bytes.n; i++)
        x->bytes.at[i] = (uint8_t)number[x->bytes.at[i]];
    x->begin[1] = x->bytes.n * 90 / 100;
    x->begin[2] = x->bytes.n * 95 / 100;
    x->begin[3] = x->bytes.n;
    s->data = x;
    s->vocabulary = s->classes = kinds;
    s->longest = s->length;
    for (int part = LONG_VALID; part <= LONG_TEST; part++)
        s->count[part] = (x->begin[part + 1] - x->begin[part] - 1) / s->length;
    return HEED_OK;
}

static bool draw_characters(const long_source *s, long_part part, int64_t at, int64_t n,
                            const heed_rng *rng, heed_arena *arena, long_batch *out)
{
    const struct text *x = s->data;
    int32_t *ids, *wanted;
    if (!new_windows(out, arena, n, s->length, &ids, &wanted))
        return false;
    for (int64_t i = 0; i < n; i++) {
        const uint8_t *from =
            x->bytes.at + x->begin[part] +
            (part == LONG_TRAIN ? heed_rng_below(rng, (uint64_t)i, x->begin[1] - s->length - 1)
                                : (at + i) * s->length);
        for (int64_t k = 0; k < s->length; k++) {
            ids[i * s->length + k] = from[k];
            wanted[i * s->length + k] = from[k + 1];
        }
    }
    return true;
}

static void report_characters(const long_source *s, const long_score *score, lab_session *r)
{
    lab_report(r, score->nats / log(2), LAB_NO_TARGET, 0, "%lld characters at a time, bits each",
               (long long)s->length);
}

const long_task long_characters = {.name = "characters",
                                   .unit = "nats a character",
                                   .causal = true,
                                   .needs_data = true,
                                   .length = 512,
                                   .open = open_characters,
                                   .draw = draw_characters,
                                   .report = report_characters};

/* ---- span ---- */

/* A text, and behind it ASKED questions: which character stands a k-th of the text's length before
 * question k.  An adaptive span finds the farther ones by way of the nearer: its gradient is of
 * keys where it ends. */
enum { ASKED = 8 };

static heed_status open_span(long_source *s, heed_error *err)
{
    if (s->length < ASKED)
        return lab_fail(err, HEED_ARGUMENT, "option '--length' is %lld, expected at least %d",
                        (long long)s->length, ASKED);
    heed_status status = open_characters(s, err);
    s->vocabulary = s->classes + 1;
    s->longest = s->length + ASKED;
    return status;
}

/* How far before question k (from 0) its answer stands. */
static int64_t far_of(const long_source *s, int64_t k)
{
    return s->length * (k + 1) / ASKED;
}

static bool draw_span(const long_source *s, long_part part, int64_t at, int64_t n,
                      const heed_rng *rng, heed_arena *arena, long_batch *out)
{
    const struct text *x = s->data;
    const int64_t rows = s->length + ASKED;
    int32_t *ids, *wanted;
    if (!new_windows(out, arena, n, rows, &ids, &wanted))
        return false;
    for (int64_t i = 0; i < n; i++, ids += rows, wanted += rows) {
        const uint8_t *from =
            x->bytes.at + x->begin[part] +
            (part == LONG_TRAIN ? heed_rng_below(rng, (uint64_t)i, x->begin[1] - s->length - 1)
                                : (at + i) * s->length);
        for (int64_t k = 0; k < s->length; k++) {
            ids[k] = from[k];
            wanted[k] = from[k + 1];
        }
        for (int64_t k = 0; k < ASKED; k++) {
            ids[s->length + k] = (int32_t)s->classes;
            wanted[s->length + k] = from[s->length + k - far_of(s, k)];
        }
    }
    return true;
}

static void report_span(const long_source *s, const long_score *score, lab_session *r)
{
    lab_report(r, score->nats, LAB_NO_TARGET, 0, "characters and answers, nats each");
    lab_report(r, 100 * score->asked, LAB_AT_LEAST, 90, "characters up to %lld before, right, %%",
               (long long)s->length);
}

/* z of each head. */
static void report_spans(const long_source *s, const heed_stack *layers, lab_session *r)
{
    const double most = (double)s->settings->adaptive_span;
    double longest = 0, mean = 0;
    int heads = 0;
    for (int i = 0; i < layers->count; i++) {
        const heed_sublayer *one = &layers->sublayer[i];
        const heed_tensor *span =
            one->kind->form == HEED_SUBLAYER_MHA ? one->as.mha.attend.span : NULL;
        for (int64_t h = 0; span && h < heed_tensor_count(span); h++, heads++) {
            const double z = most * fmin(1, fmax(0, (double)heed_tensor_data(span)[h]));
            longest = fmax(longest, z);
            mean += z;
        }
    }
    if (!heads)
        return;
    lab_report(r, longest, LAB_NO_TARGET, 0, "the longest span of %d heads", heads);
    lab_report(r, 100 * mean / heads / most, LAB_AT_MOST, 30, "the mean span, %% of %lld",
               (long long)s->settings->adaptive_span);
}

const long_task long_span = {.name = "span",
                             .unit = "nats a character",
                             .causal = true,
                             .needs_data = true,
                             .length = 200,
                             .asked = ASKED,
                             .open = open_span,
                             .draw = draw_span,
                             .report = report_span,
                             .report_layers = report_spans};

/* ---- persistent ---- */

static void report_persistent(const long_source *s, const long_score *score, lab_session *r)
{
    lab_report(r, score->nats, LAB_NO_TARGET, 0, "%lld characters at a time, nats each",
               (long long)s->length);
}

/* What stands for the feed-forward network should have as many weights. */
static void report_weights(const long_source *s, const heed_stack *layers, lab_session *r)
{
    double count = 0;
    for (int i = 0; i < layers->count; i++) {
        const heed_sublayer *one = &layers->sublayer[i];
        if (one->kind->form == HEED_SUBLAYER_FFN)
            count += (double)(heed_tensor_count(one->as.ffn.in.weight) +
                              heed_tensor_count(one->as.ffn.out.weight));
        else if (one->kind->form == HEED_SUBLAYER_MHA && one->as.mha.attend.shared_k)
            count += (double)(heed_tensor_count(one->as.mha.attend.shared_k) +
                              heed_tensor_count(one->as.mha.attend.shared_v));
    }
    (void)s;
    lab_report(r, count, LAB_NO_TARGET, 0, "weights beside the projections");
}

const long_task long_persistent = {.name = "persistent",
                                   .unit = "nats a character",
                                   .causal = true,
                                   .needs_data = true,
                                   .length = 256,
                                   .open = open_characters,
                                   .draw = draw_characters,
                                   .report = report_persistent,
                                   .report_layers = report_weights};

/* ---- pixels ---- */

/* Black and white, row by row; before the first a token of its own. */
enum { BLACK, WHITE, BEGIN, PIXEL_WORDS };

static heed_status open_pixels(long_source *s, heed_error *err)
{
    picture_data *d = heed_arena_allocate(s->arena, sizeof *d);
    s->data = d;
    if (!d)
        return lab_fail(err, HEED_MEMORY, "out of memory");
    if (picture_data_open(d, s->settings->data, 0, s->arena, err))
        return err->status;
    if (d->side % s->length)
        return lab_fail(err, HEED_ARGUMENT,
                        "option '--length' is %lld, expected a divisor of %lld pixels",
                        (long long)s->length, (long long)d->side);
    s->vocabulary = PIXEL_WORDS;
    s->classes = BEGIN;
    s->longest = s->length * s->length;
    s->count[LONG_VALID] = d->count[PICTURES_VALID];
    s->count[LONG_TEST] = d->count[PICTURES_TEST];
    return HEED_OK;
}

static void close_pixels(long_source *s)
{
    if (s->data)
        picture_data_close(s->data);
}

/* A pixel is white if the pixels that it stands for are half white or more on the average. */
static bool draw_pixels(const long_source *s, long_part part, int64_t at, int64_t n,
                        const heed_rng *rng, heed_arena *arena, long_batch *out)
{
    static const picture_part parts[] = {PICTURES_TRAIN, PICTURES_VALID, PICTURES_TEST};
    const picture_data *d = s->data;
    const int64_t side = s->length, wide = d->side / side, rows = side * side;
    heed_real *pixel = heed_arena_allocate(arena, (size_t)(d->side * d->side) * sizeof *pixel);
    int32_t *ids, *wanted;
    drawing_dice dice = {rng, (uint64_t)n};
    if (!pixel || !new_windows(out, arena, n, rows, &ids, &wanted))
        return false;
    for (int64_t i = 0; i < n; i++) {
        const int64_t which = part == LONG_TRAIN
                                  ? heed_rng_below(rng, (uint64_t)i, d->count[PICTURES_TRAIN])
                                  : at + i;
        int32_t before = BEGIN;
        picture_data_take(d, parts[part], which, 0, &dice, pixel);
        for (int64_t k = 0; k < rows; k++) {
            double sum = 0;
            for (int64_t v = 0; v < wide * wide; v++)
                sum += (double)
                    pixel[(k / side * wide + v / wide) * d->side + k % side * wide + v % wide];
            ids[i * rows + k] = before;
            wanted[i * rows + k] = before = sum >= 0.5 * (double)(wide * wide) ? WHITE : BLACK;
        }
    }
    return true;
}

static void report_pixels(const long_source *s, const long_score *score, lab_session *r)
{
    lab_report(r, score->nats / log(2), LAB_NO_TARGET, 0, "%lld x %lld pixels, bits each",
               (long long)s->length, (long long)s->length);
}

const long_task long_pixels = {.name = "pixels",
                               .unit = "nats a pixel",
                               .causal = true,
                               .needs_data = true,
                               .length = 14,
                               .open = open_pixels,
                               .close = close_pixels,
                               .draw = draw_pixels,
                               .report = report_pixels};

/* ---- reviews ---- */

/* Bytes, and a first token of its own, behind which the answer is wanted. */
enum { FIRST = 256, BYTE_WORDS };
struct reviews {
    struct bytes bytes, label;
    struct review_offsets {
        int64_t *at;
        int64_t n, room;
    } end;
    int64_t first[4]; /* review of each part */
};

static bool add_review(struct reviews *x, const char *text, size_t length, char label,
                       heed_arena *arena)
{
    struct review_offsets *e = &x->end;
    if (e->n == e->room) {
        const int64_t room = 2 * e->room + 1024;
        int64_t *more = heed_arena_allocate(arena, (size_t)room * sizeof *more);
        if (!more)
            return false;
        if (e->n)
            memcpy(more, e->at, (size_t)e->n * sizeof *more);
        e->at = more;
        e->room = room;
    }
    if (!add_bytes(&x->bytes, text, length, arena) || !add_bytes(&x->label, &label, 1, arena))
        return false;
    e->at[e->n++] = x->bytes.n;
    return true;
}

static heed_status read_reviews(long_source *s, int part, heed_error *err)
{
    static const char *const names[] = {"train.tsv", "valid.tsv", "test.tsv"};
    struct reviews *x = s->data;
    char path[4096];
    const char *paths[] = {path}, *line, *where;
    size_t length;
    long_path_in(path, s->settings->data, names[part]);
    heed_lines *lines = heed_lines_open(paths, 1, NULL, err);
    while (lines && !heed_lines_next(lines, &line, &length, err) && line) {
        const char *tab = memchr(line, '\t', length);
        const size_t word = tab ? (size_t)(tab - line) : 0;
        const bool good = word == 8 && memcmp(line, "positive", 8) == 0;
        if (!good && !(word == 8 && memcmp(line, "negative", 8) == 0))
            lab_fail(err, HEED_FORMAT,
                     "'%.300s', line %lld: expected 'positive' or 'negative' and a tab", path,
                     (long long)heed_lines_where(lines, &where));
        else if (!add_review(x, tab + 1, length - word - 1, good, s->arena))
            lab_fail(err, HEED_MEMORY, "out of memory for '%.300s'", path);
        if (err->status)
            break;
    }
    heed_lines_free(lines);
    x->first[part + 1] = x->end.n;
    s->count[part] = x->first[part + 1] - x->first[part];
    if (!err->status && !s->count[part])
        lab_fail(err, HEED_FORMAT, "'%.300s' has no reviews", path);
    return err->status;
}

static heed_status open_reviews(long_source *s, heed_error *err)
{
    struct reviews *x = heed_arena_allocate(s->arena, sizeof *x);
    if (!x)
        return lab_fail(err, HEED_MEMORY, "out of memory");
    *x = (struct reviews){0};
    s->data = x;
    s->vocabulary = BYTE_WORDS;
    s->classes = 2;
    s->longest = s->length + 1;
    heed_status status = HEED_OK;
    for (int part = LONG_TRAIN; !status && part <= LONG_TEST; part++)
        status = read_reviews(s, part, err);
    return status;
}

static bool draw_reviews(const long_source *s, long_part part, int64_t at, int64_t n,
                         const heed_rng *rng, heed_arena *arena, long_batch *out)
{
    const struct reviews *x = s->data;
    int64_t *which = heed_arena_allocate(arena, 2 * (size_t)n * sizeof *which),
            *lengths = which + n;
    int32_t *ids, *wanted, *row;
    if (!which)
        return false;
    for (int64_t i = 0; i < n; i++) {
        which[i] = x->first[part] +
                   (part == LONG_TRAIN ? heed_rng_below(rng, (uint64_t)i, s->count[part]) : at + i);
        const int64_t bytes = x->end.at[which[i]] - (which[i] ? x->end.at[which[i] - 1] : 0);
        lengths[i] = 1 + (bytes < s->length ? bytes : s->length);
    }
    if (!long_batch_new(out, arena, lengths, n, n, &ids, &wanted, &row))
        return false;
    for (int64_t i = 0; i < n; i++) {
        const int64_t first = out->side.rows->offset[i];
        const uint8_t *from = x->bytes.at + (which[i] ? x->end.at[which[i] - 1] : 0);
        ids[first] = FIRST;
        for (int64_t k = 1; k < lengths[i]; k++)
            ids[first + k] = from[k - 1];
        wanted[i] = x->label.at[which[i]];
        row[i] = (int32_t)first;
    }
    return true;
}

static void report_reviews(const long_source *s, const long_score *score, lab_session *r)
{
    lab_report(r, 100 * score->right, LAB_NO_TARGET, 0, "reviews of up to %lld bytes, right, %%",
               (long long)s->length);
    lab_report(r, 100 * score->most, LAB_NO_TARGET, 0, "the commonest answer, %%");
}

const long_task long_reviews = {.name = "reviews",
                                .unit = "nats a review",
                                .needs_data = true,
                                .length = 1024,
                                .open = open_reviews,
                                .draw = draw_reviews,
                                .report = report_reviews};
