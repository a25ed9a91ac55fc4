/* line_queue.c: windows of lines. */
#include "translate/line_queue.h"
#include "base/error.h"
#include "base/min_max.h"

#include <stdio.h>
#include <string.h>

/* A sentence with more tokens than this is split, even where the model's positions would reach:
 * hardly a model has seen longer ones, and what it has not seen it translates badly. */
#define WHOLE 250
/* Lines of a window, and their tokens: enough to sort, few enough to see results soon. */
#define WINDOW_LINES 1000
#define WINDOW_TOKENS 100000
/* Of a line that is cut, what its parts count as when random numbers are drawn. */
#define LINE_PARTS ((uint64_t)1 << 20)

/* What the model takes, and what it has seen in training where that is known. */
static heed__limits limits_of(const heed_translator *tr)
{
    int64_t longest =
        heed__min(heed_engine_configuration(tr->engine)->longest - 1, WHOLE); /* and EOS */
    if (tr->trained_longest)
        longest = heed__min(longest, tr->trained_longest);
    return (heed__limits){.together =
                              tr->trained_length ? heed__min(longest, tr->trained_length) : longest,
                          .longest = longest,
                          .protects = tr->protects,
                          .lacks_placeholders = tr->lacks_placeholders,
                          .capitals = tr->capitals,
                          .names = tr->names,
                          .into = tr->into,
                          .characters = tr->knows_letters ? tr->characters : NULL};
}

static bool is_piece(const heed_vocab *v, int32_t id, const char *piece)
{
    return strcmp(heed_vocab_piece(v, id), piece) == 0;
}

/* SentencePiece begins a word with a mark that is not on every keyboard. */
static heed_status refuse_piece(const heed_vocab *v, const char *piece, heed_error *err)
{
    char word[128];
    snprintf(word, sizeof word, "\xE2\x96\x81%s", piece);
    const bool is_word = is_piece(v, heed_vocab_find(v, word), word);
    return heed__fail(
        err, HEED_ARGUMENT,
        "the piece '%s' cannot be banned: the target vocabulary does not have it%s%s%s", piece,
        is_word ? "; did you mean '" : "", is_word ? word : "", is_word ? "'?" : "");
}

/* o->banned becomes the ids of o->ban as well. */
static heed_status find_banned(const heed_translator *tr, heed_search_options *o, heed_error *err)
{
    const int32_t eos = heed_vocab_special(tr->target).eos;
    int64_t n = o->banned.count;
    int32_t *id = heed__take(tr->lines, n + o->ban.count, sizeof *id, err);
    if (!id)
        return HEED_MEMORY;
    if (n)
        memcpy(id, o->banned.id, (size_t)n * sizeof *id);
    for (int i = 0; i < o->ban.count; i++, n++) {
        const char *piece = o->ban.items[i];
        id[n] = heed_vocab_find(tr->target, piece);
        if (id[n] == eos)
            return heed__fail(err, HEED_ARGUMENT,
                              "the piece '%s' cannot be banned: no sentence would end", piece);
        if (!is_piece(tr->target, id[n], piece))
            return refuse_piece(tr->target, piece, err);
    }
    o->banned = (heed_tokens){id, n};
    return HEED_OK;
}

heed_status heed__line_queue_init(heed__line_queue *b, heed_translator *tr,
                                  const heed_search_options *o, const heed_line_stream *stream,
                                  heed_error *err)
{
    *b = (heed__line_queue){.tr = tr, .o = *o, .stream = stream, .limits = limits_of(tr)};
    for (int i = 0; i < HEED__WINDOWS; i++)
        b->window[i].arena = tr->window[i];
    heed_arena_reset(tr->lines);
    heed_status status = heed__search_check(o, err);
    if (b->o.min_length < 1) /* no line with words becomes an empty one */
        b->o.min_length = 1;
    return status ? status : find_banned(tr, &b->o, err);
}

/* ---- in ---- */

/* Where the translations of each part go: straight to the line's where it is the whole line. */
static heed_status place_parts(const heed__line_queue *b, heed__queued_line *e, heed_tokens prefix,
                               heed_error *err)
{
    heed_arena *arena = e->window->arena;
    int64_t n_best = b->o.n_best, parts = e->line.parts;
    heed_translation *to = e->out = heed__take(arena, n_best, sizeof *to, err);
    for (int64_t k = 0; to && k < n_best; k++)
        e->out[k] = (heed_translation){.text = k || parts       ? NULL
                                               : e->line.copied ? e->line.copied
                                                                : "",
                                       .repaired = e->line.repaired,
                                       .unprotected = e->line.unprotected,
                                       .too_long = e->line.too_long};
    if (to && parts > 1)
        to = heed__take(arena, parts, sizeof *to, err);
    for (int64_t k = 0; to && k < parts; k++) {
        heed__part *p = &e->line.part[k];
        p->out = &to[k];
        p->outs = parts > 1 ? 1 : n_best;
        p->number = e->given.number * LINE_PARTS + (uint64_t)k;
        p->entry = e;
        if (k == 0)
            p->prefix = prefix;
    }
    e->open = parts;
    if (to && b->tr->aligns && e->line.copied &&
        !(e->out->alignment = heed__pharaoh_same(e->line.copied, arena, err)))
        return HEED_MEMORY;
    return to ? HEED_OK : HEED_MEMORY;
}

static heed_status read_line(const heed__line_queue *b, const heed_source_line *given,
                             heed__queued_line *e, heed_error *err)
{
    heed_arena *arena = e->window->arena;
    heed_tokens prefix = {0};
    bool repaired;
    e->given = (heed_source_line){.number = given->number, .tag = given->tag};
    heed_status status =
        heed__split_line(b->tr->source, given->text, &b->limits, arena, &e->line, err);
    const char *begin = given->prefix;
    if (!status && begin && e->line.parts && e->line.part[0].spans)
        begin = heed__protect_again(begin, e->line.part[0].span, e->line.part[0].spans, arena);
    if (!status && given->prefix)
        status = begin ? heed__encode_line(b->tr->target, begin, arena, &prefix, &repaired, err)
                       : heed__fail(err, HEED_MEMORY, "out of memory for a prefix");
    const int64_t longest = heed_engine_configuration(b->tr->engine)->longest - 1;
    if (prefix.count > longest)
        prefix.count = longest;
    return status ? status : place_parts(b, e, prefix, err);
}

/* The parts of all lines, the longest first. */
static heed_status sort_parts(heed__line_window *w, int64_t most, heed_error *err)
{
    heed__part **all = heed__take(w->arena, w->parts, sizeof *all, err);
    int64_t *length = heed__take(w->arena, w->parts, sizeof *length, err);
    w->part = heed__take(w->arena, w->parts, sizeof *w->part, err);
    if (!all || !length || !w->part)
        return HEED_MEMORY;
    int64_t n = 0;
    for (int64_t i = 0; i < w->entries; i++)
        for (int64_t k = 0; k < w->entry[i].line.parts; k++, n++) {
            all[n] = &w->entry[i].line.part[k];
            length[n] = all[n]->tokens.count;
        }
    const int64_t *order = heed__longest_first(length, n, most, w->arena, err);
    for (int64_t i = 0; order && i < n; i++)
        w->part[i] = all[order[i]];
    return order ? HEED_OK : HEED_MEMORY;
}

heed_status heed__line_queue_read(heed__line_queue *b, bool wait, int64_t *lines, heed_error *err)
{
    heed__line_window *w = &b->window[b->opened % HEED__WINDOWS];
    *w = (heed__line_window){.arena = w->arena};
    *lines = 0;
    heed_arena_reset(w->arena);
    w->entry = heed__take(w->arena, WINDOW_LINES, sizeof *w->entry, err);
    heed_status status = w->entry ? HEED_OK : HEED_MEMORY;
    for (int64_t tokens = 0; !status && w->entries < WINDOW_LINES && tokens < WINDOW_TOKENS;) {
        heed__queued_line *e = &w->entry[w->entries];
        heed_source_line given = {0};
        *e = (heed__queued_line){.window = w};
        if (!b->ended.status)
            b->ended.status =
                b->stream->next(b->stream->context, wait && w->entries == 0, &given, &b->ended);
        if (b->ended.status || !given.text)
            break;
        status = read_line(b, &given, e, err);
        for (int64_t k = 0; !status && k < e->line.parts; k++)
            tokens += e->line.part[k].tokens.count;
        w->parts += e->line.parts;
        w->entries++;
    }
    *lines = w->entries;
    return status || !*lines ? status : sort_parts(w, b->limits.longest, err);
}

/* ---- through ---- */

int64_t heed__line_queue_take(heed__line_queue *b, bool wait, heed__capacity capacity,
                              heed__request *out)
{
    int64_t count = 0;
    for (; b->emptied < b->opened && !count; b->emptied++) {
        heed__line_window *w = &b->window[b->emptied % HEED__WINDOWS];
        int64_t share = (w->parts + b->portions - 1) / b->portions;
        for (; w->taken < w->parts; w->taken++) {
            heed__part *p = w->part[w->taken];
            if (count == share || !heed__capacity_take(&capacity, &p->tokens, wait && !count))
                return count;
            out[count++] = (heed__request){.source = p->tokens,
                                           .prefix = p->prefix,
                                           .protects = b->tr->protects,
                                           .number = p->number,
                                           .owner = p};
        }
    }
    return count;
}

heed_status heed__translation_keep(heed_translation *t, heed_arena *arena, heed_error *err)
{
    size_t bytes = strlen(t->text) + 1;
    heed_hypothesis h = {.id = t->id, .count = t->tokens, .token_log_p = t->token_log_p};
    char *text = heed__take(arena, (int64_t)bytes, 1, err);
    if (!text || heed__hypothesis_keep(&h, arena, err))
        return HEED_MEMORY;
    memcpy(text, t->text, bytes);
    heed__remove_line_ends(text);
    t->text = text;
    t->id = h.id;
    t->token_log_p = h.token_log_p;
    if (!t->alignment)
        return HEED_OK;
    bytes = strlen(t->alignment) + 1;
    char *alignment = heed__take(arena, (int64_t)bytes, 1, err);
    t->alignment = alignment ? memcpy(alignment, t->alignment, bytes) : NULL;
    return alignment ? HEED_OK : HEED_MEMORY;
}

/* ---- out ---- */

static heed_status keep_alignment(heed__alignment *kept, const heed__alignment *a,
                                  heed_arena *arena, heed_error *err)
{
    heed__word_pair *pair = heed__take(arena, a->pairs, sizeof *pair, err);
    *kept = *a;
    kept->pair = pair;
    if (pair && a->pairs)
        memcpy(pair, a->pair, (size_t)a->pairs * sizeof *pair);
    return pair ? HEED_OK : HEED_MEMORY;
}

/* All parts of a line are there. */
static heed_status put_together(const heed__line_queue *b, heed__queued_line *e, heed_error *err)
{
    heed_arena *arena = e->window->arena;
    const heed__line *l = &e->line;
    if (l->parts > 1 && heed__join_parts(l->part[0].out, l->parts, arena, e->out, err))
        return HEED_MEMORY;
    if (!b->tr->aligns)
        return HEED_OK;
    heed__alignment *all = heed__take(arena, l->parts, sizeof *all, err);
    for (int64_t k = 0; all && k < l->parts; k++)
        all[k] = l->part[k].alignment;
    e->out->alignment = all ? heed__pharaoh(all, l->parts, arena, err) : NULL;
    return e->out->alignment ? HEED_OK : HEED_MEMORY;
}

heed_status heed__line_queue_deliver(const heed__line_queue *b, heed__part *part,
                                     const heed_translation *t, const heed__alignment *alignment,
                                     heed_error *err)
{
    heed__queued_line *e = part->entry;
    heed_arena *arena = e->window->arena;
    for (int64_t k = 0; k < part->outs; k++) {
        part->out[k] = t[k];
        part->out[k].repaired = e->line.repaired;
        part->out[k].unprotected = e->line.unprotected;
        if (t[k].text && heed__translation_keep(&part->out[k], arena, err))
            return HEED_MEMORY;
    }
    if (b->tr->aligns && keep_alignment(&part->alignment, alignment, arena, err))
        return HEED_MEMORY;
    heed_status status = e->open == 1 ? put_together(b, e, err) : HEED_OK;
    e->open--;
    return status;
}

heed__queued_line *heed__line_queue_ready(heed__line_queue *b)
{
    const heed__line_window *w = &b->window[b->written % HEED__WINDOWS];
    if (b->written == b->opened || w->entry[w->written].open)
        return NULL;
    return &w->entry[w->written];
}

void heed__line_queue_left(heed__line_queue *b)
{
    heed__line_window *w = &b->window[b->written % HEED__WINDOWS];
    if (++w->written == w->entries)
        b->written++;
}
