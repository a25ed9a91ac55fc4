/* lstmn_tasks.c: what the LSTMN reads: pairs that are to be recalled, drawn from random numbers;
 * and of files, plain or .gz, the lines of a text, sentences with their mood, pairs of them. */
#include "lstmn.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* "k1 v1 ... kn vn ? k": what is said behind k is its v. */
enum { KEYS = LSTMN_KEYS, VALUES = 16, QUESTION = KEYS + VALUES, RECALL_WORDS };

static const char *const names[3] = {"train", "valid", "test"};

static heed_status fail(heed_error *err, heed_status status, const char *path, int64_t line,
                        const char *what)
{
    err->status = status;
    if (line)
        snprintf(err->text, sizeof err->text, "'%.300s', line %lld: %s", path, (long long)line,
                 what);
    else
        snprintf(err->text, sizeof err->text, "'%.300s': %s", path, what);
    return status;
}

/* ---- reading ---- */

/* Growing arrays of a part; what they outgrow stays in the arena. */
struct builder {
    heed_arena *arena;
    lstmn_data *data;
    lstmn_text *text;
    int32_t *ids, *label;
    int64_t *offset, used, ids_room, count_room;
    int64_t longest;
};

static bool more_room(heed_arena *arena, void **array, int64_t used, int64_t *room, size_t size)
{
    const int64_t larger = *room ? 2 * *room : 4096;
    void *new = heed_arena_allocate(arena, (size_t)larger * size);
    if (new &&used)
        memcpy(new, *array, (size_t)used * size);
    *array = new;
    *room = larger;
    return new;
}

static bool add_id(struct builder *b, int32_t id)
{
    if (b->used == b->ids_room &&
        !more_room(b->arena, (void **)&b->ids, b->used, &b->ids_room, sizeof *b->ids))
        return false;
    b->ids[b->used++] = id;
    return true;
}

/* The sequence at hand is whole.  Of text, its last token is only wanted, and the next one's
 * first. */
static bool end_sequence(struct builder *b, int32_t label)
{
    int64_t room = b->count_room;
    if (b->text->count + 1 == room) {
        if (!more_room(b->arena, (void **)&b->label, room, &room, sizeof *b->label) ||
            !more_room(b->arena, (void **)&b->offset, b->count_room, &b->count_room,
                       sizeof *b->offset))
            return false;
    }
    b->label[b->text->count++] = label;
    b->offset[b->text->count] = b->used - (b->data->task == LSTMN_TEXT);
    return true;
}

static bool add_words(struct builder *b, const char *text, size_t length)
{
    size_t n;
    for (const char *word; (word = word_list_next(&text, &length, &n)) != NULL;)
        if (!add_id(b, word_list_find(b->data->words, word, n)))
            return false;
    return true;
}

/* Of text: a line's words and its end, in sequences of at most `longest`.  One end mark stands
 * before all: what is wanted behind a token is the next one. */
static bool add_text(struct builder *b, const char *line, size_t length)
{
    size_t n;
    for (const char *word; (word = word_list_next(&line, &length, &n)) != NULL;)
        if (!add_id(b, word_list_find(b->data->words, word, n)) ||
            (b->used - 1 - b->offset[b->text->count] == b->longest && !end_sequence(b, 0)))
            return false;
    return add_id(b, WORD_END) && end_sequence(b, 0);
}

/* The first column's word as a number: classes are numbered as they come. */
static const char *const moods[] = {"negative", "positive", NULL};
static const char *const relations[] = {"entailment", "neutral", "contradiction", NULL};

static int32_t class_of(lstmn_task task, const char *word, size_t length)
{
    const char *const *all = task == LSTMN_SENTIMENT ? moods : relations;
    for (int32_t i = 0; all[i]; i++)
        if (strlen(all[i]) == length && memcmp(all[i], word, length) == 0)
            return i;
    return -1;
}

static bool is_blank(const char *text, size_t length)
{
    size_t n;
    return !word_list_next(&text, &length, &n);
}

/* LABEL TAB SENTENCE [TAB SENTENCE] */
static const char *add_labelled(struct builder *b, const char *line, size_t length)
{
    const lstmn_task task = b->data->task;
    const char *end = line + length, *tab = memchr(line, '\t', length);
    const int32_t label = tab ? class_of(task, line, (size_t)(tab - line)) : -1;
    if (label < 0)
        return task == LSTMN_SENTIMENT ? "expected 'positive' or 'negative' and a tab"
                                       : "expected 'entailment', 'neutral' or 'contradiction' and "
                                         "a tab";
    for (int side = 0; side <= (task == LSTMN_ENTAIL); side++) {
        const char *text = tab ? tab + 1 : end;
        tab = text < end ? memchr(text, '\t', (size_t)(end - text)) : NULL;
        const size_t n = (size_t)((tab ? tab : end) - text);
        if (is_blank(text, n))
            return "a sentence is empty or missing";
        if (!add_words(b, text, n) || !end_sequence(b, label))
            return "out of memory";
    }
    return NULL;
}

/* Counts the words of a file, or numbers them (b). */
static heed_status read_file(lstmn_data *d, const char *path, struct builder *b, heed_error *err)
{
    heed_lines *lines = heed_lines_open(&path, 1, NULL, err);
    const char *text, *where;
    size_t length;
    while (lines && !heed_lines_next(lines, &text, &length, err) && text) {
        const int64_t at = heed_lines_where(lines, &where);
        const char *tab = d->task == LSTMN_TEXT ? NULL : memchr(text, '\t', length), *wrong = NULL;
        const size_t skip = tab ? (size_t)(tab - text) : 0;
        if (is_blank(text, length))
            continue;
        if (!b)
            wrong = word_list_count(d->words, text + skip, length - skip) ? NULL : "out of memory";
        else if (d->task == LSTMN_TEXT)
            wrong = add_text(b, text, length) ? NULL : "out of memory";
        else
            wrong = add_labelled(b, text, length);
        if (wrong && fail(err, HEED_FORMAT, path, at, wrong))
            break;
    }
    heed_lines_free(lines);
    return err->status;
}

static void path_of(const lstmn_data *d, char path[4096], const char *folder, int part)
{
    const char *end = d->task == LSTMN_TEXT ? "txt" : "tsv";
    snprintf(path, 4096, "%.4000s/%s.%s", folder, names[part], end);
    if (access(path, F_OK) != 0)
        snprintf(path, 4096, "%.4000s/%s.%s.gz", folder, names[part], end);
}

static heed_status read_part(lstmn_data *d, const char *folder, int part, int64_t longest,
                             heed_arena *arena, heed_error *err)
{
    char path[4096];
    struct builder b = {.arena = arena, .data = d, .text = &d->part[part], .longest = longest};
    path_of(d, path, folder, part);
    if (!more_room(arena, (void **)&b.label, 0, &b.count_room, sizeof *b.label) ||
        !(b.offset = heed_arena_allocate(arena, (size_t)b.count_room * sizeof *b.offset)))
        return fail(err, HEED_MEMORY, path, 0, "out of memory");
    b.offset[0] = 0;
    if (d->task == LSTMN_TEXT && !add_id(&b, WORD_END))
        return fail(err, HEED_MEMORY, path, 0, "out of memory");
    if (read_file(d, path, &b, err))
        return err->status;
    if (!b.text->count)
        return fail(err, HEED_FORMAT, path, 0, "there is nothing in it");
    b.text->ids = b.ids;
    b.text->offset = b.offset;
    b.text->label = b.label;
    return HEED_OK;
}

heed_status lstmn_data_open(lstmn_data *d, lstmn_task task, const char *folder, int64_t keys,
                            int64_t pairs, int64_t words, int64_t longest, heed_arena *arena,
                            heed_error *err)
{
    char path[4096];
    *d = (lstmn_data){
        .task = task, .keys = keys, .pairs = pairs, .vocabulary = RECALL_WORDS, .classes = VALUES};
    if (task == LSTMN_RECALL)
        return HEED_OK;
    path_of(d, path, folder, LSTMN_TRAIN);
    if (!(d->words = word_list_new(arena)))
        return fail(err, HEED_MEMORY, path, 0, "out of memory");
    if (read_file(d, path, NULL, err))
        return err->status;
    if (!word_list_close(d->words, words))
        return fail(err, HEED_MEMORY, path, 0, "out of memory");
    d->vocabulary = word_list_size(d->words);
    d->classes = task == LSTMN_TEXT ? d->vocabulary : task == LSTMN_SENTIMENT ? 2 : 3;
    for (int part = 0; part < 3; part++)
        if (read_part(d, folder, part, longest, arena, err))
            return err->status;
    return HEED_OK;
}

/* ---- batches ---- */

int64_t lstmn_count(const lstmn_data *d, lstmn_part part)
{
    enum { DRAWN = 500 };
    if (d->task == LSTMN_RECALL)
        return part == LSTMN_TEST ? 2 * DRAWN : DRAWN;
    return d->part[part].count / (d->task == LSTMN_ENTAIL ? 2 : 1);
}

const char *lstmn_recall_word(int32_t id, heed_arena *arena)
{
    char *text = heed_arena_allocate(arena, 16);
    if (text && id == QUESTION)
        memcpy(text, "?", 2);
    else if (text)
        snprintf(text, 16, "%c%d", id < KEYS ? 'k' : 'v', (int)(id < KEYS ? id : id - KEYS));
    return text;
}

static void swap(int32_t *a, int32_t *b)
{
    const int32_t kept = *a;
    *a = *b;
    *b = kept;
}

/* In training every key is asked for, one after the other: one answer a sequence would hardly say
 * that a value belongs to the key before it. */
static bool draw_recall(const lstmn_data *d, lstmn_part part, int64_t first, int64_t count,
                        const heed_rng *rng, heed_arena *arena, lstmn_batch *b)
{
    const size_t most = (size_t)(count * (4 * d->pairs + 2));
    int64_t *lengths = heed_arena_allocate(arena, (size_t)count * sizeof *lengths), rows = 0;
    int32_t *ids = heed_arena_allocate(arena, 3 * most * sizeof *ids), *wanted = ids + most,
            *row = wanted + most;
    if (!lengths || !ids)
        return false;
    b->ids[0] = ids;
    b->wanted = wanted;
    b->row = row;
    for (int64_t e = 0; e < count; e++) {
        const heed_rng own = heed_rng_stream(&(heed_rng_key){
            .seed = 2000003, .step = (uint64_t)part, .node = (uint64_t)(first + e)});
        const heed_rng *from = rng ? rng : &own;
        uint64_t next = rng ? (uint64_t)e * 1024 : 0;
        int32_t key[KEYS], value[KEYS];
        /* Often few: with many pairs alone, what belongs to what is never found out. */
        const int64_t limit = 1 + heed_rng_below(from, next++, d->pairs),
                      n = rng ? 1 + heed_rng_below(from, next++, limit) : d->pairs,
                      asked = rng ? n : 1;
        for (int32_t i = 0; i < KEYS; i++)
            key[i] = i;
        for (int64_t i = 0; i < n; i++) {
            swap(&key[i], &key[i + heed_rng_below(from, next++, d->keys - i)]);
            value[i] = (int32_t)heed_rng_below(from, next++, VALUES);
            ids[rows + 2 * i] = key[i];
            ids[rows + 2 * i + 1] = KEYS + value[i];
        }
        lengths[e] = 2 * (n + asked);
        for (int64_t i = 0; i < asked; i++) {
            const int64_t at = i + heed_rng_below(from, next++, n - i);
            swap(&key[i], &key[at]);
            swap(&value[i], &value[at]);
            ids[rows + 2 * (n + i)] = QUESTION;
            ids[rows + 2 * (n + i) + 1] = key[i];
            row[b->terms] = (int32_t)(rows + 2 * (n + i) + 1);
            wanted[b->terms++] = value[i];
        }
        rows += lengths[e];
    }
    b->rows[0] = heed_segments_new(arena, count, lengths);
    return b->rows[0];
}

bool lstmn_draw(const lstmn_data *d, lstmn_part part, int64_t first, int64_t count,
                const heed_rng *rng, heed_arena *arena, lstmn_batch *b)
{
    const lstmn_text *text = &d->part[part];
    const int64_t all = lstmn_count(d, part);
    *b = (lstmn_batch){.count = count, .sides = d->task == LSTMN_ENTAIL ? 2 : 1};
    if (d->task == LSTMN_RECALL)
        return draw_recall(d, part, first, count, rng, arena, b);
    int64_t *lengths = heed_arena_allocate(arena, (size_t)count * sizeof *lengths),
            *at = heed_arena_allocate(arena, (size_t)count * sizeof *at), rows = 0;
    if (!lengths || !at)
        return false;
    for (int64_t e = 0; e < count; e++)
        at[e] = rng ? heed_rng_below(rng, (uint64_t)e, all) : first + e;
    for (int side = 0; side < b->sides; side++) {
        rows = 0;
        for (int64_t e = 0; e < count; e++) {
            const int64_t i = at[e] * b->sides + side;
            lengths[e] = text->offset[i + 1] - text->offset[i];
            rows += lengths[e];
        }
        int32_t *ids = heed_arena_allocate(arena, (size_t)rows * sizeof *ids);
        b->rows[side] = heed_segments_new(arena, count, lengths);
        if (!ids || !b->rows[side])
            return false;
        b->ids[side] = ids;
        for (int64_t e = 0; e < count; e++, ids += lengths[e - 1])
            memcpy(ids, text->ids + text->offset[at[e] * b->sides + side],
                   (size_t)lengths[e] * sizeof *ids);
    }
    b->terms = d->task == LSTMN_TEXT ? rows : count;
    int32_t *wanted = heed_arena_allocate(arena, (size_t)b->terms * sizeof *wanted);
    b->wanted = wanted;
    for (int64_t e = 0; wanted && e < count; e++)
        if (d->task == LSTMN_TEXT) {
            memcpy(wanted, text->ids + text->offset[at[e]] + 1,
                   (size_t)lengths[e] * sizeof *wanted);
            wanted += lengths[e];
        } else {
            wanted[e] = text->label[at[e] * b->sides];
        }
    return b->wanted;
}
