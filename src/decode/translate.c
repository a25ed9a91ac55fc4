/* translate.c: lines of text through the search.
 *
 * Lines are encoded, cut where they are too long, sorted by length so that a batch holds sentences
 * of about one length, decoded batch by batch, and handed back in their own order. */
#include "base/error.h"
#include "decode/search.h"
#include "decode/translator.h"

#include <string.h>

/* A line with more tokens than this is split, even where the model's positions would reach: hardly
 * a model has seen longer sentences, and those that it has not seen it translates badly. */
#define WHOLE 250
/* Hypotheses in a batch, and their tokens: enough rows for the products to be efficient, few enough
 * for (rows,V) and the caches of a large model to stay below some hundred megabytes. */
#define BATCH_ROWS 512
#define BATCH_TOKENS 4096

const int64_t *heed__longest_first(const int64_t *lengths, int64_t count, int64_t most,
                                   heed_arena *arena, heed_error *err)
{
    int64_t *order = heed__take(arena, count, sizeof *order, err);
    int64_t *place = heed__take(arena, most + 2, sizeof *place, err);
    if (!order || !place)
        return NULL;
    /* Counting sort: place[most - l] is where the next one of length l goes. */
    memset(place, 0, (size_t)(most + 2) * sizeof *place);
    for (int64_t i = 0; i < count; i++)
        place[most + 1 - lengths[i]]++;
    for (int64_t l = 1; l < most + 2; l++)
        place[l] += place[l - 1];
    for (int64_t i = 0; i < count; i++)
        order[place[most - lengths[i]]++] = i;
    return order;
}

struct job {
    heed_translator *tr;
    const heed_search_options *o;
    heed_arena *arena; /* the caller's */
    heed__line *line;
    heed__part **part; /* of all lines */
    int64_t lines, parts;
};

/* Encodes and cuts the lines, and says where the translation of each part goes: straight to the
 * caller where it is the whole line. */
static heed_status cut_lines(struct job *j, const char *const *lines, heed_translation *out,
                             heed_error *err)
{
    int64_t longest = heed_model_configuration(j->tr->model)->longest - 1; /* EOS has its place */
    int64_t limit = longest < WHOLE ? longest : WHOLE;
    j->line = heed__take(j->tr->lines, j->lines, sizeof *j->line, err);
    if (!j->line)
        return HEED_MEMORY;
    for (int64_t i = 0; i < j->lines; i++) {
        heed__line *l = &j->line[i];
        heed_status status = heed__cut_line(j->tr->source, lines[i], limit, j->tr->lines, l, err);
        if (status)
            return status;
        j->parts += l->parts;
        for (int64_t k = 0; k < j->o->n_best; k++)
            out[i * j->o->n_best + k] = (heed_translation){.repaired = l->repaired};
        heed_translation *to = &out[i * j->o->n_best];
        if (l->parts > 1)
            to = heed__take(j->tr->lines, l->parts, sizeof *to, err);
        else if (l->parts == 0)
            to->text = "";
        if (!to)
            return HEED_MEMORY;
        for (int64_t k = 0; k < l->parts; k++) {
            l->part[k].out = &to[k];
            l->part[k].outs = l->parts > 1 ? 1 : j->o->n_best;
            if (l->parts > 1)
                to[k] = (heed_translation){0};
        }
    }
    return HEED_OK;
}

/* The parts of all lines, the longest first. */
static heed_status sort_parts(struct job *j, heed_error *err)
{
    heed_arena *arena = j->tr->lines;
    heed__part **all = heed__take(arena, j->parts, sizeof *all, err);
    int64_t *length = heed__take(arena, j->parts, sizeof *length, err);
    j->part = heed__take(arena, j->parts, sizeof *j->part, err);
    if (!all || !length || !j->part)
        return HEED_MEMORY;
    int64_t n = 0;
    for (int64_t i = 0; i < j->lines; i++)
        for (int64_t k = 0; k < j->line[i].parts; k++, n++) {
            all[n] = &j->line[i].part[k];
            length[n] = all[n]->tokens.count;
        }
    const int64_t *order = heed__longest_first(length, n, WHOLE, arena, err);
    for (int64_t i = 0; order && i < n; i++)
        j->part[i] = all[order[i]];
    return order ? HEED_OK : HEED_MEMORY;
}

/* One line in, one line out: a piece may stand for a line end (SentencePiece's bytes can). */
static void remove_line_ends(char *text)
{
    for (; (text = strpbrk(text, "\r\n")); text++)
        *text = ' ';
}

static heed_status set_translation(const struct job *j, const heed_hypothesis *h,
                                   heed_translation *out, heed_error *err)
{
    out->text = "";
    if (h->count == 0)
        return HEED_OK;
    const char *decoded;
    heed_status status =
        heed_vocab_decode(j->tr->target, h->id, h->count, j->tr->batch, &decoded, err);
    if (status)
        return status;
    size_t bytes = strlen(decoded) + 1;
    char *text = heed__take(j->arena, (int64_t)bytes, 1, err);
    int32_t *id = heed__take(j->arena, h->count, sizeof *id, err);
    heed_real *log_p = heed__take(j->arena, h->count, sizeof *log_p, err);
    if (!text || !id || !log_p)
        return HEED_MEMORY;
    memcpy(text, decoded, bytes);
    remove_line_ends(text);
    memcpy(id, h->id, (size_t)h->count * sizeof *id);
    memcpy(log_p, h->token_log_p, (size_t)h->count * sizeof *log_p);
    out->text = text;
    out->score = h->score;
    out->log_p = h->log_p;
    out->tokens = h->count;
    out->id = id;
    out->token_log_p = log_p;
    return HEED_OK;
}

static heed_status translate_batch(const struct job *j, int64_t begin, int64_t end, heed_error *err)
{
    heed_arena *arena = j->tr->batch;
    heed_arena_reset(arena);
    int64_t count = end - begin;
    heed_tokens *source = heed__take(arena, count, sizeof *source, err);
    heed_hypothesis *found = heed__take(arena, count, (size_t)j->o->n_best * sizeof *found, err);
    if (!source || !found)
        return HEED_MEMORY;
    for (int64_t i = 0; i < count; i++)
        source[i] = j->part[begin + i]->tokens;
    heed_status status = heed_search(j->tr->decoder, j->o, source, count, arena, found, err);
    for (int64_t i = 0; i < count; i++) {
        const heed__part *part = j->part[begin + i];
        for (int64_t k = 0; !status && k < part->outs; k++)
            if (k == 0 || found[i * j->o->n_best + k].count)
                status = set_translation(j, &found[i * j->o->n_best + k], &part->out[k], err);
    }
    return status;
}

heed_status heed_translate(heed_translator *tr, const heed_search_options *o,
                           const char *const *lines, int64_t count, heed_arena *arena,
                           heed_translation *out, heed_error *err)
{
    struct job j = {.tr = tr, .o = o, .arena = arena, .lines = count};
    heed_arena_reset(tr->lines);
    heed_status status = heed__search_check(o, err);
    if (!status)
        status = cut_lines(&j, lines, out, err);
    if (!status)
        status = sort_parts(&j, err);
    for (int64_t begin = 0, end; !status && begin < j.parts; begin = end) {
        int64_t rows = BATCH_TOKENS / (j.part[begin]->tokens.count + 1);
        int64_t room = (rows < BATCH_ROWS ? rows : BATCH_ROWS) / o->beam;
        end = begin + (room > 1 ? room : 1);
        end = end < j.parts ? end : j.parts;
        status = translate_batch(&j, begin, end, err);
    }
    for (int64_t i = 0; !status && i < count; i++)
        if (j.line[i].parts > 1)
            status = heed__join_parts(j.line[i].part[0].out, j.line[i].parts, arena,
                                      &out[i * o->n_best], err);
    return status;
}
