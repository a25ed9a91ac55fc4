/* written_text.c: the text of tokens that come one after the other.
 *
 * What a token adds is the difference between two texts that begin some tokens before it: pieces
 * know from their neighbours whether a space stands between them.  Bytes wait until they are whole
 * characters, and text waits while it may be the beginning of one that ends it. */
#include "data/token_stream.h"
#include "generate/generator.h"
#include "text/utf8.h"

#include <string.h>

#define UNKNOWN "\xef\xbf\xbd" /* U+FFFD */
#define PATIENCE 4             /* tokens that one character may be made of */

heed_status heed__written_text_init(heed__written_text *w, const heed_generator *g,
                                    const heed_option_list *stop, heed_error *err)
{
    *w = (heed__written_text){.g = g, .stop = stop, .from = -1};
    heed__string_init(&w->text, &g->allocator);
    heed__string_init(&w->raw, &g->allocator);
    w->arena = heed_arena_new(&g->allocator, err);
    return w->arena ? HEED_OK : HEED_MEMORY;
}

void heed__written_text_deinit(heed__written_text *w)
{
    heed__string_deinit(&w->text);
    heed__string_deinit(&w->raw);
    heed_arena_free(w->arena);
    w->arena = NULL;
}

/* ---- bytes to characters ---- */

/* Whether these bytes, which are no character, may be the beginning of one. */
static bool may_begin(const char *text, size_t length)
{
    const unsigned char first = (unsigned char)text[0];
    const size_t size = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
    if (first < 0xc2 || first > 0xf4 || length >= size)
        return false;
    for (size_t i = 1; i < length; i++)
        if (((unsigned char)text[i] & 0xc0) != 0x80)
            return false;
    return true;
}

static void take_characters(heed__written_text *w, bool all)
{
    const char *raw = heed__string_text(&w->raw);
    const size_t length = w->raw.length;
    size_t at = 0;
    while (at < length) {
        int32_t c;
        const size_t n = heed__utf8_next(raw + at, length - at, &c);
        if (!n && !all && may_begin(raw + at, length - at))
            break;
        if (n)
            heed__string_add_bytes(&w->text, raw + at, n);
        else
            heed__string_add(&w->text, UNKNOWN);
        at += n ? n : 1;
    }
    memmove(w->raw.text ? w->raw.text : (char *)"", raw + at, length - at);
    w->raw.length = length - at;
}

/* ---- texts that end it ---- */

static void find_stop(heed__written_text *w)
{
    const char *text = heed__string_text(&w->text);
    size_t end = w->text.length;
    for (int k = 0; k < w->stop->count; k++) {
        const char *stop = w->stop->items[k];
        const size_t n = strlen(stop);
        for (size_t at = w->shown; n && at + n <= end; at++)
            if (memcmp(text + at, stop, n) == 0) {
                end = at;
                w->stopped = true;
            }
    }
    if (w->stopped) {
        w->text.length = end;
        w->text.text[end] = '\0';
    }
}

/* The longest end of the text that may become one of the texts to stop at. */
static size_t held_back(const heed__written_text *w)
{
    const char *text = heed__string_text(&w->text);
    size_t most = 0;
    for (int k = 0; k < w->stop->count; k++) {
        const char *stop = w->stop->items[k];
        size_t n = strlen(stop);
        n = n ? n - 1 : 0;
        if (n > w->text.length - w->shown)
            n = w->text.length - w->shown;
        while (n > most && memcmp(text + w->text.length - n, stop, n) != 0)
            n--;
        most = n > most ? n : most;
    }
    return most;
}

/* ---- tokens to bytes ---- */

static bool ends_unknown(const char *text, size_t size)
{
    const size_t n = sizeof UNKNOWN - 1;
    return size >= n && memcmp(text + size - n, UNKNOWN, n) == 0;
}

/* The bytes that the tokens from w->read on add to those before. */
static heed_status add_bytes(heed__written_text *w, const int32_t *id, int64_t count,
                             heed_error *err)
{
    const char *before, *now;
    size_t size, all;
    heed_arena_reset(w->arena);
    heed_status status = heed_vocab_decode_bytes(w->g->vocab, id + w->from, w->read - w->from,
                                                 w->arena, &before, &size, err);
    if (!status)
        status = heed_vocab_decode_bytes(w->g->vocab, id + w->from, count - w->from, w->arena, &now,
                                         &all, err);
    if (status)
        return status;
    const bool grown = all >= size && memcmp(before, now, size) == 0;
    const bool patient = count - w->read < PATIENCE;
    if (patient && (!grown || (ends_unknown(now, all) && !ends_unknown(before, size))))
        return HEED_OK;
    if (all > size)
        heed__string_add_bytes(&w->raw, now + size, all - size);
    w->from = w->read;
    w->read = count;
    return HEED_OK;
}

heed_status heed__written_text_add(heed__written_text *w, const int32_t *id, int64_t count,
                                   int64_t first, heed_error *err)
{
    if (w->from < 0) {
        w->read = first;
        w->from = first > 0 ? first - 1 : 0;
    }
    if (!w->g->keeps_lines && id[count - 1] == w->g->end_mark) {
        heed__string_add(&w->raw, "\n");
        w->from = w->read = count;
    } else if (add_bytes(w, id, count, err)) {
        return err->status;
    }
    take_characters(w, false);
    find_stop(w);
    return w->raw.failed ? heed__string_status(&w->raw, err) : heed__string_status(&w->text, err);
}

void heed__written_text_end(heed__written_text *w)
{
    static const heed_option_list none;
    if (!w->stopped)
        take_characters(w, true);
    find_stop(w);
    w->stop = &none;
}

size_t heed__written_text_take(heed__written_text *w, const char **text)
{
    const size_t end = w->text.length - held_back(w);
    const size_t n = end > w->shown ? end - w->shown : 0;
    *text = heed__string_text(&w->text) + w->shown;
    w->shown += n;
    return n;
}
