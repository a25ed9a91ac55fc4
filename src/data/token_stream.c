/* token_stream.c: text to tokens, once, into a temporary file.
 *
 * A text that keeps its line ends is cut in portions, because a vocabulary wants all of a text in
 * memory.  A portion ends behind a line end that no blank stands beside: byte-level BPE never joins
 * anything across that, so the tokens are those of the whole text. */
#include "data/token_stream.h"
#include "base/error.h"
#include "base/file.h"
#include "data/spool.h"
#include "vocab/vocabulary.h"

#include <stdio.h>
#include <string.h>
#include <zlib.h>

#define PORTION ((size_t)1 << 20) /* bytes at least */
#define LONGEST ((size_t)1 << 25) /* and at most, wherever it ends then */
#define TOLD 10                   /* broken lines that are named */

struct reading {
    heed__token_stream *s;
    const heed_vocab *v;
    heed_arena *arena;
    const heed_log_sink *log;
    heed__spool spool;
    int32_t end, unknown;
    char *text; /* (LONGEST) the portion that is collected; NULL: lines are cut one by one */
    size_t held;
};

bool heed__vocab_keeps_lines(const heed_vocab *v, heed_arena *arena)
{
    static const char text[] = "a\nb";
    heed_tokens tokens;
    const char *back = NULL;
    return !heed_vocab_encode(v, text, sizeof text - 1, arena, &tokens, NULL) &&
           !heed_vocab_decode(v, tokens.id, tokens.count, arena, &back, NULL) &&
           strchr(back, '\n') != NULL;
}

int32_t heed__vocab_end_mark(const heed_vocab *v)
{
    const heed_special_ids ids = heed_vocab_special(v);
    return ids.eos >= 0 ? ids.eos : ids.sep;
}

static void add_ids(struct reading *r, const int32_t *id, int64_t n)
{
    heed__spool_add(&r->spool, id, (size_t)n * sizeof *id);
    r->s->count += n;
    for (int64_t i = 0; i < n; i++)
        r->s->unknown += id[i] == r->unknown;
}

static heed_status add_text(struct reading *r, const char *text, size_t length, heed_error *err)
{
    heed_tokens tokens;
    heed_arena_reset(r->arena);
    heed_status status = heed_vocab_encode(r->v, text, length, r->arena, &tokens, err);
    if (!status)
        add_ids(r, tokens.id, tokens.count);
    return status;
}

static void count_text(struct reading *r, const char *line, size_t length)
{
    r->s->bytes += (int64_t)length + 1;
    const uLong crc = crc32_z(r->s->checksum, (const Bytef *)line, length);
    r->s->checksum = (uint32_t)crc32_z(crc, (const Bytef *)"\n", 1);
}

static heed_status flush(struct reading *r, heed_error *err)
{
    const size_t n = r->held;
    r->held = 0;
    return n ? add_text(r, r->text, n, err) : HEED_OK;
}

/* Whether the portion may end here: behind "x\n", before "y". */
static bool is_seam(const struct reading *r, const char *line, size_t length)
{
    const char *end = r->text + r->held;
    return r->held > 1 && (unsigned char)end[-2] > ' ' && length && (unsigned char)*line > ' ';
}

static heed_status collect(struct reading *r, const char *line, size_t length, heed_error *err)
{
    heed_status status = HEED_OK;
    if ((r->held >= PORTION && is_seam(r, line, length)) || r->held + length + 1 > LONGEST)
        status = flush(r, err);
    memcpy(r->text + r->held, line, length);
    r->text[r->held + length] = '\n';
    r->held += length + 1;
    return status;
}

static void tell_broken(const struct reading *r, const heed__text_walk *w)
{
    char line[512];
    if (!r->log || !r->log->write || r->s->broken > TOLD)
        return;
    snprintf(line, sizeof line, "'%.300s' line %lld is not UTF-8: left out",
             w->files->path[w->file], (long long)w->line);
    r->log->write(r->log->context, HEED_LOG_WARNING, line);
}

static heed_status read_lines(struct reading *r, const heed__text_files *files, int which,
                              heed_error *err)
{
    heed__text_walk w = heed__text_walk_new(files, which);
    const char *line;
    size_t length;
    bool joined;
    heed_status status = HEED_OK;
    int file = -1;
    while (!status && !r->spool.failed && heed__text_walk_next(&w, &line, &length, &joined)) {
        if (r->v->class->any_bytes ? false : !heed_utf8_valid(line, length, NULL)) {
            r->s->broken++;
            tell_broken(r, &w);
            continue;
        }
        count_text(r, line, length);
        if (!r->text) {
            if (!(status = add_text(r, line, length, err)))
                add_ids(r, &r->end, 1);
            continue;
        }
        if (!joined)
            status = flush(r, err);
        if (file >= 0 && file != w.file && r->end >= 0)
            add_ids(r, &r->end, 1);
        file = w.file;
        if (!status)
            status = collect(r, line, length, err);
    }
    return status ? status : flush(r, err);
}

static heed_status map_ids(struct reading *r, heed_error *err)
{
    heed__token_stream *s = r->s;
    s->map = heed__spool_map(&r->spool, &s->map_size);
    s->id = s->map;
    if (r->spool.failed)
        return heed__fail(err, HEED_IO,
                          "cannot write tokens of the text in '%s': %s; TMPDIR may name another "
                          "folder",
                          heed__spool_folder(), strerror(r->spool.failed));
    return HEED_OK;
}

heed_status heed__token_stream_read(heed__token_stream *s, const heed_vocab *v,
                                    const heed__text_files *files, int which,
                                    const heed_log_sink *log, heed_error *err)
{
    heed_error own = {0};
    *s = (heed__token_stream){0};
    struct reading r = {.s = s,
                        .v = v,
                        .log = log,
                        .end = heed__vocab_end_mark(v),
                        .unknown = heed_vocab_special(v).unk,
                        .spool = {.fd = -1}};
    heed_arena *room = heed_arena_new(&files->allocator, &own);
    r.arena = heed_arena_new(&files->allocator, &own);
    heed_status status = room && r.arena ? HEED_OK : own.status;
    if (!status && heed__vocab_keeps_lines(v, r.arena) &&
        !(r.text = heed_arena_allocate(room, LONGEST)))
        status = heed__fail(&own, HEED_MEMORY, "out of memory for text");
    if (!status && !r.text && r.end < 0)
        status = heed__fail(&own, HEED_ARGUMENT,
                            "the vocabulary has no end of a line: </s>, <|endoftext|> or [SEP]");
    if (!status) {
        heed__spool_open(&r.spool);
        status = read_lines(&r, files, which, &own);
    }
    if (!status)
        status = map_ids(&r, &own);
    heed__spool_close(&r.spool);
    heed_arena_free(r.arena);
    heed_arena_free(room);
    return status ? heed__fail(err, status, "%s", own.text) : HEED_OK;
}

void heed__token_stream_close(heed__token_stream *s)
{
    heed__file_unmap(s->map, s->map_size);
    *s = (heed__token_stream){0};
}
