/* picture.c: checks of an attention picture for every output; joining pieces to words. */
#include "show/picture.h"
#include "base/error.h"
#include "base/memory.h"

#include <math.h>
#include <string.h>

#define MOST_CELLS 8000000 /* of all maps, so that a viewer can open the picture */

const char *heed__kind_name(heed_attention_kind kind)
{
    static const char *const name[] = {
        [HEED_ENCODER_SELF] = "Encoder self-attention",
        [HEED_DECODER_SELF] = "Decoder self-attention",
        [HEED_CROSS] = "Cross-attention",
    };
    return name[kind];
}

const heed_labels *heed__row_labels(const heed_attention_picture *p, heed_attention_kind kind)
{
    return kind == HEED_ENCODER_SELF ? &p->source : &p->target;
}

const heed_labels *heed__column_labels(const heed_attention_picture *p, heed_attention_kind kind)
{
    return kind == HEED_DECODER_SELF ? &p->read : &p->source;
}

heed_status heed__picture_check(const heed_attention_picture *p, heed_error *err)
{
    if (p->count < 1)
        return heed__fail(err, HEED_ARGUMENT, "attention picture: %lld maps, expected at least 1",
                          (long long)p->count);
    int64_t cells = 0;
    for (int64_t i = 0; i < p->count; i++) {
        const heed_attention_map *m = &p->maps[i];
        if ((int)m->kind < 0 || (int)m->kind >= HEED_KINDS)
            return heed__fail(err, HEED_ARGUMENT, "attention picture: map %lld is of kind %d",
                              (long long)i, (int)m->kind);
        int64_t rows = heed__row_labels(p, m->kind)->count;
        int64_t columns = heed__column_labels(p, m->kind)->count, product;
        if (m->queries != rows || m->keys != columns || rows < 1 || columns < 1)
            return heed__fail(err, HEED_SHAPE_ERROR,
                              "attention picture: map %lld is (%lld,%lld), its labels (%lld,%lld)",
                              (long long)i, (long long)m->queries, (long long)m->keys,
                              (long long)rows, (long long)columns);
        if (m->layer < 0 || m->head < 0 || m->layer >= 256 || m->head >= 1024)
            return heed__fail(err, HEED_ARGUMENT,
                              "attention picture: map %lld is of layer %d, head %d, expected at "
                              "most 255 and 1023",
                              (long long)i, m->layer, m->head);
        if (!heed__multiply(rows, columns, &product) || product > MOST_CELLS - cells)
            return heed__fail(err, HEED_ARGUMENT,
                              "attention picture: more than %d cells in %lld maps of up to "
                              "(%lld,%lld); show a shorter sentence",
                              MOST_CELLS, (long long)p->count, (long long)rows, (long long)columns);
        cells += product;
    }
    return HEED_OK;
}

double heed__picture_cell(const heed_attention_map *m, int64_t row, int64_t column)
{
    double w = (double)m->weight[row * m->keys + column];
    return isfinite(w) ? fmin(fmax(w, 0), 1) : -1;
}

int heed__picture_thousandths(const heed_attention_map *m, int64_t row, int64_t column)
{
    double w = heed__picture_cell(m, row, column);
    return w < 0 ? -1 : (int)lround(w * 1000);
}

int64_t heed__strongest(const heed_attention_map *m, int64_t row)
{
    int64_t best = -1;
    int most = 0;
    for (int64_t j = 0; j < m->keys; j++) {
        int w = heed__picture_thousandths(m, row, j);
        if (w > most) {
            most = w;
            best = j;
        }
    }
    return best;
}

/* ---- words ---- */

static heed_status check_words(const char *what, const heed_labels *pieces,
                               const heed_label_words *w, heed_error *err)
{
    for (int64_t i = 0; i < pieces->count; i++)
        if (w->word[i] < 0 || w->word[i] >= w->words.count)
            return heed__fail(err, HEED_ARGUMENT,
                              "attention by words: %s label %lld is of word %d, of %lld", what,
                              (long long)i, (int)w->word[i], (long long)w->words.count);
    return HEED_OK;
}

/* weight (queries, keys) -> sum (rows, columns), the mean over a word's queries of the sum over a
 * word's keys.  pieces (rows) is scratch. */
static void join(const heed_attention_map *m, const heed_label_words *row,
                 const heed_label_words *column, int64_t *pieces, heed_real *sum)
{
    int64_t rows = row->words.count, columns = column->words.count;
    memset(sum, 0, sizeof *sum * (size_t)(rows * columns));
    memset(pieces, 0, sizeof *pieces * (size_t)rows);
    for (int64_t i = 0; i < m->queries; i++) {
        heed_real *to = sum + row->word[i] * columns;
        for (int64_t j = 0; j < m->keys; j++)
            to[column->word[j]] += m->weight[i * m->keys + j];
        pieces[row->word[i]]++;
    }
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns && pieces[i] > 1; j++)
            sum[i * columns + j] /= (heed_real)pieces[i];
}

heed_status heed_attention_by_words(const heed_attention_picture *in, heed_label_words source,
                                    heed_label_words target, heed_label_words read,
                                    heed_arena *arena, heed_attention_picture *out, heed_error *err)
{
    if (!in)
        return heed__missing(err, "attention picture");
    heed_status status = heed__picture_check(in, err);
    if (!status)
        status = check_words("source", &in->source, &source, err);
    if (!status)
        status = check_words("target", &in->target, &target, err);
    if (!status)
        status = check_words("read", &in->read, &read, err);
    if (status)
        return status;
    int64_t most =
        source.words.count > target.words.count ? source.words.count : target.words.count;
    heed_attention_map *maps = heed_arena_allocate(arena, sizeof *maps * (size_t)in->count);
    int64_t *pieces = heed_arena_allocate(arena, sizeof *pieces * (size_t)most);
    if (!maps || !pieces)
        return heed__fail(err, HEED_MEMORY, "attention by words: out of memory");
    for (int64_t i = 0; i < in->count; i++) {
        const heed_attention_map *m = &in->maps[i];
        const heed_label_words *row = m->kind == HEED_ENCODER_SELF ? &source : &target;
        const heed_label_words *column = m->kind == HEED_DECODER_SELF ? &read : &source;
        int64_t cells;
        heed_real *weight = NULL;
        if (heed__multiply(row->words.count, column->words.count, &cells) && cells <= MOST_CELLS)
            weight = heed_arena_allocate(arena, sizeof *weight * (size_t)cells);
        if (!weight)
            return heed__fail(err, HEED_MEMORY, "attention by words: out of memory");
        join(m, row, column, pieces, weight);
        maps[i] = *m;
        maps[i].queries = row->words.count;
        maps[i].keys = column->words.count;
        maps[i].weight = weight;
    }
    *out = *in;
    out->source = source.words;
    out->target = target.words;
    out->read = read.words;
    out->maps = maps;
    return HEED_OK;
}
