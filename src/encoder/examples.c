/* examples.c: examples with answers from files: label TAB text, pairs of texts, and columns as
 * of CoNLL and CoNLL-U.  Everything is read once and kept: texts in an arena, examples in an
 * array that grows. */
#include "base/error.h"
#include "base/memory.h"
#include "vocab/vocab_pieces.h"

#include <heed/encoder.h>

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct heed_examples {
    heed_allocator allocator;
    heed_arena *arena;
    heed_examples_kind kind;
    heed_example *item;
    int64_t count, capacity;
    heed__pieces label; /* in the order of their numbers, once everything is read */
    const char **name;  /* (label.count) */
    bool pairs, scored;
};

/* What is known of a file while it is read. */
struct reading {
    heed_examples *x;
    const heed_examples_options *o;
    const heed_log_sink *log;
    heed_error *err;
    heed_lines *lines;
    const char *path; /* of the line in hand */
    int64_t number;
    int columns; /* of this file's lines; 0: none seen */
    bool conllu;
    /* The sentence in hand. */
    const char **word;
    int32_t *tag;
    int64_t words, capacity, begin;
    int64_t unknown; /* tags that the labels given have not */
};

static heed_status no_memory(heed_error *err)
{
    return heed__fail(err, HEED_MEMORY, "out of memory for examples");
}

static heed_status wrong(const struct reading *r, const char *format, ...) HEED_PRINTF(2, 3);
static heed_status wrong(const struct reading *r, const char *format, ...)
{
    char text[400];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return heed__fail(r->err, HEED_FORMAT, "'%.100s' line %lld: %s", r->path, (long long)r->number,
                      text);
}

static const char *copy(const struct reading *r, const char *text, size_t length)
{
    char *to = heed_arena_allocate(r->x->arena, length + 1);
    if (to) {
        memcpy(to, text, length);
        to[length] = '\0';
    } else
        no_memory(r->err);
    return to;
}

/* Room for one more item of an array that doubles. */
static void *grown(const heed_allocator *a, void *item, int64_t count, int64_t *capacity,
                   size_t size)
{
    if (count < *capacity)
        return item;
    const int64_t more = *capacity ? 2 * *capacity : 256;
    void *to = heed__allocate(a, (size_t)more, size);
    if (!to)
        return NULL;
    if (count)
        memcpy(to, item, (size_t)count * size);
    heed__release(a, item, (size_t)*capacity, size);
    *capacity = more;
    return to;
}

static heed_status add(struct reading *r, const heed_example *e)
{
    heed_examples *x = r->x;
    heed_example *item = grown(&x->allocator, x->item, x->count, &x->capacity, sizeof *item);
    if (!item)
        return no_memory(r->err);
    x->item = item;
    item[x->count++] = *e;
    return HEED_OK;
}

/* ---- labels ---- */

/* "a, b, c" of the labels that there are, cut where it is long. */
static const char *known_labels(const heed_examples *x, char text[160])
{
    size_t n = 0;
    for (int32_t i = 0; i < x->label.count && n < 120; i++)
        n += (size_t)snprintf(text + n, 160 - n, "%s%.30s", i ? ", " : "", x->label.item[i].text);
    if (n >= 120)
        snprintf(text + 120, 40, " ... (%d in all)", x->label.count);
    return text;
}

/* -1: not one of those that were given, or an error. */
static int32_t label_of(struct reading *r, const char *text, size_t length)
{
    heed_examples *x = r->x;
    if (r->o->labels)
        return heed__pieces_find(&x->label, text, length);
    const int32_t id = heed__pieces_add(&x->label, text, length);
    if (id < 0)
        no_memory(r->err);
    return id;
}

/* ---- label TAB text, pairs ---- */

struct field {
    const char *text;
    size_t length;
};

static int split(const char *line, size_t length, struct field *f, int most)
{
    int n = 0;
    for (const char *at = line, *end = line + length; n < most; n++) {
        const char *tab = memchr(at, '\t', (size_t)(end - at));
        f[n] = (struct field){at, (size_t)((tab ? tab : end) - at)};
        if (!tab)
            return n + 1;
        at = tab + 1;
    }
    return n;
}

static bool is_number(const struct field *f, double *value)
{
    char text[64], *end;
    if (f->length == 0 || f->length >= sizeof text)
        return false;
    memcpy(text, f->text, f->length);
    text[f->length] = '\0';
    errno = 0;
    *value = strtod(text, &end);
    return *end == '\0' && !errno && isfinite(*value) && text[0] != ' ';
}

static heed_status read_label(struct reading *r, const char *line, size_t length)
{
    struct field f[3];
    char known[160];
    const int n = split(line, length, f, 3);
    if (n < 2)
        return wrong(r, "there is no tab in it, expected label TAB text%s",
                     r->x->pairs ? " TAB text" : "");
    if (!r->x->count)
        r->x->pairs = n > 2;
    if (r->x->pairs && n < 3)
        return wrong(r,
                     "it has two columns, expected label TAB text TAB text as in the first line");
    if (!r->x->pairs && n > 2)
        return wrong(r, "it has three columns, expected label TAB text as in the first line");
    if (!f[0].length)
        return wrong(r, "the label is empty");
    heed_example e = {.score = NAN, .line = r->number};
    e.label = label_of(r, f[0].text, f[0].length);
    if (e.label < 0)
        return r->err->status
                   ? r->err->status
                   : wrong(r, "label '%.*s' was never seen in training, expected one of %s",
                           (int)(f[0].length < 60 ? f[0].length : 60), f[0].text,
                           known_labels(r->x, known));
    for (int i = 1; i < n; i++)
        if (!(e.text[i - 1] = copy(r, f[i].text, f[i].length)))
            return HEED_MEMORY;
    return add(r, &e);
}

/* The first line says whether there are scores. */
static heed_status read_pair(struct reading *r, const char *line, size_t length)
{
    struct field f[4];
    heed_example e = {.score = NAN, .line = r->number, .label = -1};
    const int n = split(line, length, f, 4);
    if (n < 2)
        return wrong(r,
                     "there is no tab in it, expected text TAB text, or score TAB text TAB text");
    if (!r->x->count)
        r->x->scored = n > 2;
    const int first = r->x->scored;
    if (n < first + 2)
        return wrong(r,
                     "it has two columns, expected score TAB text TAB text as in the first line");
    if (!first && n > 2)
        return wrong(r, "it has three columns, expected text TAB text as in the first line");
    if (first && !is_number(&f[0], &e.score))
        return wrong(r, "'%.*s' is not a number, expected score TAB text TAB text",
                     (int)(f[0].length < 60 ? f[0].length : 60), f[0].text);
    for (int i = 0; i < 2; i++)
        if (!(e.text[i] = copy(r, f[first + i].text, f[first + i].length)))
            return HEED_MEMORY;
    r->x->pairs = true;
    return add(r, &e);
}

/* ---- columns ---- */

#define MOST_COLUMNS 64
#define CONLLU_COLUMNS 10
enum { FORM = 2, UPOS = 4, XPOS = 5 };

/* At tabs if there is one, else at runs of blanks. */
static int split_columns(const char *line, size_t length, struct field f[MOST_COLUMNS])
{
    if (memchr(line, '\t', length))
        return split(line, length, f, MOST_COLUMNS);
    int n = 0;
    for (size_t at = 0; at < length && n < MOST_COLUMNS;) {
        while (at < length && line[at] == ' ')
            at++;
        const size_t from = at;
        while (at < length && line[at] != ' ')
            at++;
        if (at > from)
            f[n++] = (struct field){line + from, at - from};
    }
    return n;
}

/* From 1; 0: the last one; -1: none is read; -2 after an error. */
static int tag_column(const struct reading *r)
{
    const char *c = r->o->tag_column;
    char *end;
    if (!c)
        return r->conllu ? UPOS : 0;
    if (strcmp(c, "none") == 0)
        return -1;
    if (strcmp(c, "upos") == 0 || strcmp(c, "xpos") == 0)
        return *c == 'u' ? UPOS : XPOS;
    const long n = strtol(c, &end, 10);
    if (*c >= '1' && *c <= '9' && !*end && n <= MOST_COLUMNS)
        return (int)n;
    heed__fail(r->err, HEED_ARGUMENT,
               "the tag column is '%.40s', expected a number from 1 to %d, upos or xpos", c,
               MOST_COLUMNS);
    return -2;
}

static heed_status end_sentence(struct reading *r)
{
    const size_t n = (size_t)r->words;
    if (!n)
        return HEED_OK;
    const char **word = heed_arena_allocate(r->x->arena, n * sizeof *word);
    int32_t *tag = heed_arena_allocate(r->x->arena, n * sizeof *tag);
    if (!word || !tag)
        return no_memory(r->err);
    memcpy(word, r->word, n * sizeof *word);
    memcpy(tag, r->tag, n * sizeof *tag);
    const heed_example e = {.word = word, .tag = tag, .words = r->words, .line = r->begin};
    r->words = 0;
    return add(r, &e);
}

static heed_status add_word(struct reading *r, const struct field *word, const struct field *tag)
{
    const heed_allocator *a = &r->x->allocator;
    char known[160];
    int64_t capacity = r->capacity;
    const char **grown_words = grown(a, r->word, r->words, &capacity, sizeof *grown_words);
    if (!grown_words)
        return no_memory(r->err);
    r->word = grown_words;
    int32_t *grown_tags = grown(a, r->tag, r->words, &r->capacity, sizeof *grown_tags);
    if (!grown_tags) {
        heed__release(a, r->word, (size_t)capacity, sizeof *r->word);
        r->word = NULL;
        return no_memory(r->err);
    }
    r->tag = grown_tags;
    if (!r->words)
        r->begin = r->number;
    int32_t id = tag ? label_of(r, tag->text, tag->length) : -1;
    if (r->err->status)
        return r->err->status;
    if (tag && id < 0 && r->unknown++ == 0 && r->log && r->log->write) {
        char line[512];
        snprintf(line, sizeof line,
                 "'%.100s' line %lld: tag '%.*s' was never seen in training (known: %s); such "
                 "words count as wrong",
                 r->path, (long long)r->number, (int)(tag->length < 60 ? tag->length : 60),
                 tag->text, known_labels(r->x, known));
        r->log->write(r->log->context, HEED_LOG_WARNING, line);
    }
    r->tag[r->words] = id;
    r->word[r->words] = copy(r, word->text, word->length);
    return r->word[r->words++] ? HEED_OK : HEED_MEMORY;
}

/* Contractions (1-2) and empty nodes (8.1) are no words of the sentence. */
static bool is_word_number(const struct field *f)
{
    return !memchr(f->text, '-', f->length) && !memchr(f->text, '.', f->length);
}

static heed_status read_columns(struct reading *r, const char *line, size_t length)
{
    struct field f[MOST_COLUMNS];
    const int n = split_columns(line, length, f), column = tag_column(r);
    const int form = r->conllu ? FORM : 1, tag = column ? column : n;
    if (column == -2)
        return r->err->status;
    if (!n || (n == 1 && !f[0].length))
        return end_sentence(r);
    if (r->conllu && line[0] == '#') /* a comment, however many words it has */
        return HEED_OK;
    if (r->conllu && n != CONLLU_COLUMNS)
        return wrong(r, "it has %d column%s, expected the %d of CoNLL-U", n, n == 1 ? "" : "s",
                     CONLLU_COLUMNS);
    if (!r->columns)
        r->columns = n;
    if (n != r->columns)
        return wrong(r, "it has %d column%s, expected %d as in the lines before", n,
                     n == 1 ? "" : "s", r->columns);
    if (column == 0 && n < 2)
        return wrong(r, "it has one column, expected a word and its tag");
    if (column >= 0 && tag > n)
        return wrong(r, "it has %d column%s, but the tag is to be in column %d", n,
                     n == 1 ? "" : "s", tag);
    if (r->conllu && !is_word_number(&f[0]))
        return HEED_OK;
    if (!f[form - 1].length || (column >= 0 && !f[tag - 1].length))
        return wrong(r, "the %s is empty", f[form - 1].length ? "tag" : "word");
    return add_word(r, &f[form - 1], column >= 0 ? &f[tag - 1] : NULL);
}

/* ---- files ---- */

static bool is_conllu(const char *path)
{
    static const char *const ends[] = {".conllu", ".conllu.gz"};
    const size_t n = strlen(path);
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        if (n > strlen(ends[i]) && strcmp(path + n - strlen(ends[i]), ends[i]) == 0)
            return true;
    return false;
}

static heed_status read_line(struct reading *r, const char *line, size_t length)
{
    size_t bad;
    static const char mark[] = "\xef\xbb\xbf"; /* of byte order */
    if (r->number == 1 && length >= 3 && memcmp(line, mark, 3) == 0) {
        line += 3;
        length -= 3;
    }
    if (!heed_utf8_valid(line, length, &bad))
        return wrong(r, "byte %zu is not UTF-8", bad + 1);
    switch (r->o->kind) {
    case HEED_EXAMPLES_LABELS:
        return length ? read_label(r, line, length) : HEED_OK;
    case HEED_EXAMPLES_PAIRS:
        return length ? read_pair(r, line, length) : HEED_OK;
    default:
        return read_columns(r, line, length);
    }
}

static heed_status read_file(struct reading *r, const char *path)
{
    const char *line = "", *where;
    size_t length;
    r->lines = heed_lines_open(&path, 1, &r->x->allocator, r->err);
    heed_status status = r->lines ? HEED_OK : r->err->status;
    r->path = path;
    r->conllu = is_conllu(path);
    r->columns = 0;
    while (!status && !(status = heed_lines_next(r->lines, &line, &length, r->err)) && line) {
        r->number = heed_lines_where(r->lines, &where);
        status = read_line(r, line, length);
    }
    heed_lines_free(r->lines);
    return status ? status : end_sentence(r);
}

/* ---- numbers of labels ---- */

static int by_bytes(const void *a, const void *b)
{
    const heed__piece *const *x = a, *const *y = b;
    return strcmp((*x)->text, (*y)->text);
}

/* Labels that were found get their numbers in the order of their bytes. */
static heed_status sort_labels(heed_examples *x, heed_error *err)
{
    const size_t n = (size_t)x->label.count;
    const heed__piece **order = heed_arena_allocate(x->arena, (n + 1) * sizeof *order);
    int32_t *number = heed_arena_allocate(x->arena, (n + 1) * sizeof *number);
    if (!order || !number)
        return no_memory(err);
    for (size_t i = 0; i < n; i++)
        order[i] = &x->label.item[i];
    if (n)
        qsort(order, n, sizeof *order, by_bytes);
    for (size_t i = 0; i < n; i++) {
        number[order[i] - x->label.item] = (int32_t)i;
        x->name[i] = order[i]->text;
    }
    for (int64_t i = 0; i < x->count; i++) {
        heed_example *e = &x->item[i];
        if (x->kind == HEED_EXAMPLES_LABELS)
            e->label = number[e->label];
        for (int64_t k = 0; k < e->words; k++) /* nothing else points to these yet */
            if (e->tag[k] >= 0)
                ((int32_t *)e->tag)[k] = number[e->tag[k]];
    }
    return HEED_OK;
}

static heed_status name_labels(heed_examples *x, bool given, heed_error *err)
{
    x->name = heed_arena_allocate(x->arena, (size_t)(x->label.count + 1) * sizeof *x->name);
    if (!x->name)
        return no_memory(err);
    for (int32_t i = 0; i < x->label.count; i++)
        x->name[i] = x->label.item[i].text;
    return given ? HEED_OK : sort_labels(x, err);
}

static heed_status take_labels(heed_examples *x, const heed_examples_options *o, heed_error *err)
{
    for (int64_t i = 0; o->labels && i < o->label_count; i++)
        if (heed__pieces_add(&x->label, o->labels[i], strlen(o->labels[i])) != i)
            return heed__fail(err, HEED_ARGUMENT, "label '%.60s' is there twice", o->labels[i]);
    return HEED_OK;
}

static heed_status read_all(struct reading *r, const char *const *paths, int count)
{
    heed_examples *x = r->x;
    static const char *const what[] = {"label TAB text", "text TAB text", "a word and its tag"};
    heed_status status = take_labels(x, r->o, r->err);
    for (int i = 0; !status && i < count; i++)
        status = read_file(r, paths[i]);
    if (!status && !x->count)
        status = heed__fail(
            r->err, HEED_FORMAT, "'%.200s'%s: there are no examples in it, expected lines of %s",
            count ? paths[0] : "", count > 1 ? " and the others" : "", what[r->o->kind]);
    return status ? status : name_labels(x, r->o->labels, r->err);
}

heed_examples *heed_examples_open(const char *const *paths, int count,
                                  const heed_examples_options *options, const heed_log_sink *log,
                                  const heed_allocator *allocator, heed_error *err)
{
    if (!options || !paths)
        return heed__missing(err, options ? "paths" : "examples options"), NULL;
    heed_error own = {0};
    const heed_allocator a = heed__allocator_or_default(allocator);
    heed_examples *x = heed__allocate_zeroed(&a, 1, sizeof *x);
    if (!x) {
        no_memory(err);
        return NULL;
    }
    x->allocator = a;
    x->kind = options->kind;
    struct reading r = {.x = x, .o = options, .log = log, .err = &own};
    x->arena = heed_arena_new(&a, &own);
    if (x->arena && !heed__pieces_init(&x->label, &a, &own))
        read_all(&r, paths, count);
    heed__release(&a, r.word, (size_t)r.capacity, sizeof *r.word);
    heed__release(&a, r.tag, (size_t)r.capacity, sizeof *r.tag);
    if (!own.status)
        return x;
    heed_examples_free(x);
    heed__fail(err, own.status, "%s", own.text);
    return NULL;
}

void heed_examples_free(heed_examples *x)
{
    if (!x)
        return;
    const heed_allocator a = x->allocator;
    heed__release(&a, x->item, (size_t)x->capacity, sizeof *x->item);
    heed__pieces_deinit(&x->label);
    heed_arena_free(x->arena);
    heed__release(&a, x, 1, sizeof *x);
}

/* ---- what was read ---- */

int64_t heed_examples_count(const heed_examples *x)
{
    return x ? x->count : 0;
}

heed_example heed_examples_at(const heed_examples *x, int64_t i)
{
    return x && i >= 0 && i < x->count ? x->item[i] : (heed_example){.label = -1, .score = NAN};
}

const char *const *heed_examples_labels(const heed_examples *x, int64_t *count)
{
    if (count)
        *count = x ? x->label.count : 0;
    return x ? x->name : NULL;
}

bool heed_examples_are_pairs(const heed_examples *x)
{
    return x && x->pairs;
}

bool heed_examples_are_scored(const heed_examples *x)
{
    return x && x->scored;
}
