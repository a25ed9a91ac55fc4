/* translate_input.c: the lines that `heed translate` reads: plain ones, and with --json objects. */
#include "cmd_translate.h"
#include "command.h"

#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Lines taken from the reader at a time. */
#define PORTION 256
#define BLANKS " \t"

/* Opening a pipe waits for somebody to write to it. */
static bool opens_at_once(const char *path)
{
    struct stat st;
    return strcmp(path, "-") == 0 || (stat(path, &st) == 0 && S_ISREG(st.st_mode));
}

static const char *file_at(const struct translate_input *in, int i)
{
    return in->files->count ? in->files->items[i] : "-";
}

/* Bytes to read from a file; -1: not known. */
static int64_t size_of(const char *path)
{
    bool gzip;
    int fd = strcmp(path, "-") == 0 ? STDIN_FILENO
             : opens_at_once(path)  ? open(path, O_RDONLY | O_CLOEXEC)
                                    : -1;
    const int64_t size = fd < 0 ? -1 : lines_size(fd, &gzip);
    if (fd > STDIN_FILENO)
        close(fd);
    return size;
}

int64_t translate_size(const struct translate_input *in)
{
    int files = in->files->count ? in->files->count : 1;
    int64_t all = 0;
    for (int i = 0; i < files; i++) {
        int64_t size = size_of(file_at(in, i));
        if (size < 0)
            return 0;
        all += size;
    }
    return all;
}

/* Puts lines into the reader; *none: there are no more, or not yet.  False after an error. */
static bool read_on(struct translate_input *in, bool wait, bool *none)
{
    int files = in->files->count ? in->files->count : 1;
    in->at = in->count = 0;
    for (*none = false; in->count == 0;) {
        if (!in->reading) {
            *none = in->opened == files || (!wait && !opens_at_once(file_at(in, in->opened)));
            if (*none)
                return true;
            in->reading = true;
            if (!lines_open(&in->reader, file_at(in, in->opened++)))
                return false;
        }
        in->count = lines_take(&in->reader, PORTION, wait ? LINES_ONE : LINES_NOW);
        if (in->count < 0)
            return false;
        if (in->count == 0 && in->reader.ended) {
            lines_close(&in->reader);
            in->reading = false;
        } else if (in->count == 0) {
            *none = true;
            return true;
        }
    }
    return true;
}

/* ---- objects ---- */

static char *copy_member(const json_t *object, const char *name)
{
    const char *text = json_string_value(json_object_get(object, name));
    return text ? strdup(text) : NULL;
}

/* Text and prefix of an object, into `in`; l->wrong where it has none. */
static void read_object(struct translate_input *in, const char *text, struct translate_line *l)
{
    json_error_t e;
    /* Numbers are passed on as they are written; here any will do. */
    json_t *object = json_loads(text, JSON_DECODE_INT_AS_REAL, &e);
    const json_t *prefix = json_object_get(object, "prefix");
    if (!object)
        snprintf(l->wrong, sizeof l->wrong, "no JSON: %.120s", e.text);
    else if (!json_is_string(json_object_get(object, "text")))
        snprintf(l->wrong, sizeof l->wrong, "expected a field \"text\" that is a text");
    else if (prefix && !json_is_string(prefix))
        snprintf(l->wrong, sizeof l->wrong, "expected a field \"prefix\" that is a text");
    in->text = copy_member(object, "text");
    in->prefix = copy_member(object, "prefix");
    if (object)
        l->object = strdup(text);
    json_decref(object);
}

/* {"text": ...} is one, a sentence that begins with {name} is none. */
static bool is_object(const char *text)
{
    text += strspn(text, BLANKS);
    if (*text != '{')
        return false;
    text += 1 + strspn(text + 1, BLANKS);
    return *text == '"' || *text == '}';
}

/* ---- the stream ---- */

static void let_go(struct translate_input *in)
{
    free(in->text);
    free(in->prefix);
    in->text = in->prefix = NULL;
}

heed_status translate_next(void *context, bool wait, heed_source_line *line, heed_error *err)
{
    struct translate_input *in = context;
    bool none = false;
    let_go(in);
    if (in->at == in->count && !read_on(in, wait, &none))
        return err->status = HEED_IO;
    if (none)
        return HEED_OK;
    struct translate_line *l = calloc(1, sizeof *l);
    if (!l) {
        complain("out of memory for a line");
        return err->status = HEED_MEMORY;
    }
    const line_reader *reader = &in->reader;
    const char *text = reader->line[in->at++];
    const char *end = in->at < in->count ? reader->line[in->at] : reader->buffer + reader->begin;
    l->number = in->lines++;
    l->taken = in->taken += end - text;
    l->size = reader->size;
    if (in->last)
        in->last->next = l;
    else
        in->first = l;
    in->last = l;
    line->text = text;
    line->prefix = in->s->prefix;
    line->number = (uint64_t)l->number;
    line->tag = l;
    if (in->s->json && strncmp(text, "\xEF\xBB\xBF", 3) == 0) /* a byte order mark */
        text += 3;
    if (in->s->json && is_object(text)) {
        read_object(in, text, l);
        line->text = l->wrong[0] || !in->text ? "" : in->text;
        line->prefix = in->prefix ? in->prefix : line->prefix;
    }
    return HEED_OK;
}

void translate_forget(struct translate_input *in)
{
    struct translate_line *l = in->first;
    in->first = l->next;
    in->last = in->first ? in->last : NULL;
    free(l->object);
    free(l);
}

void translate_close(struct translate_input *in)
{
    let_go(in);
    while (in->first)
        translate_forget(in);
    if (in->reading)
        lines_close(&in->reader);
}
