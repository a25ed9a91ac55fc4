/* edit.c: Levenshtein distance in a band around the diagonal, in time and memory O(H * beam).  Ties
 * are broken as in Tercom, because the alignment decides which shifts are tried: first keep or
 * substitute, then delete, then insert. */
#include "metric/edit.h"

#include <math.h>

#define BEAM 25
#define FAR (INT32_MAX / 2)

void heed__edit_init(heed__edit *e, const heed_allocator *allocator)
{
    *e = (heed__edit){0};
    heed__codes_init(&e->cost, allocator);
    heed__codes_init(&e->row[0], allocator);
    heed__codes_init(&e->row[1], allocator);
    heed__codes_init(&e->align, allocator);
    heed__codes_init(&e->hypothesis_wrong, allocator);
    heed__codes_init(&e->reference_wrong, allocator);
}

void heed__edit_deinit(heed__edit *e)
{
    heed__codes_deinit(&e->cost);
    heed__codes_deinit(&e->row[0]);
    heed__codes_deinit(&e->row[1]);
    heed__codes_deinit(&e->align);
    heed__codes_deinit(&e->hypothesis_wrong);
    heed__codes_deinit(&e->reference_wrong);
}

/* Row 0 needs only what row 1 reads. */
static heed__band band_of(const heed__edit *e, int64_t i)
{
    int64_t last = e->reference_length + 1;
    int64_t middle = (int64_t)floor((double)(i ? i : 1) * e->ratio);
    heed__band b = {middle - e->beam - (i == 0), middle + e->beam};
    b.begin = b.begin < 0 ? 0 : b.begin;
    b.end = b.end > last || i >= e->hypothesis_length || e->hypothesis_length == 1 ? last : b.end;
    return b;
}

bool heed__edit_begin(heed__edit *e, int64_t hypothesis_length, const int32_t *reference,
                      int64_t reference_length)
{
    e->reference = reference;
    e->hypothesis_length = hypothesis_length;
    e->reference_length = reference_length;
    e->ratio = (double)reference_length / (double)hypothesis_length;
    /* If the reference is much longer, bands of the usual width would not overlap. */
    e->beam = BEAM < e->ratio / 2 ? (int64_t)ceil(e->ratio / 2 + BEAM) : BEAM;
    e->width = 2 * e->beam + 2;
    if (e->width > reference_length + 1)
        e->width = reference_length + 1;
    return heed__codes_reserve(&e->cost, (hypothesis_length + 1) * e->width) &&
           heed__codes_reserve(&e->row[0], e->width) && heed__codes_reserve(&e->row[1], e->width) &&
           heed__codes_reserve(&e->align, reference_length) &&
           heed__codes_reserve(&e->hypothesis_wrong, hypothesis_length) &&
           heed__codes_reserve(&e->reference_wrong, reference_length);
}

static int32_t cell(const int32_t *row, heed__band band, int64_t j)
{
    return j >= band.begin && j < band.end ? row[j - band.begin] : FAR;
}

/* Row i from row i-1, which ends with `word`. */
static void next_row(const heed__edit *e, int64_t i, int32_t word, const int32_t *above,
                     int32_t *row)
{
    heed__band up = band_of(e, i - 1), here = band_of(e, i);
    int32_t left = FAR;
    for (int64_t j = here.begin; j < here.end; j++) {
        int32_t best = FAR;
        if (j > 0)
            best = cell(above, up, j - 1) + (word != e->reference[j - 1]);
        int32_t deleted = cell(above, up, j) + 1, inserted = left + 1;
        best = best > deleted ? deleted : best;
        best = best > inserted ? inserted : best;
        left = best < FAR ? best : FAR;
        row[j - here.begin] = left;
    }
}

/* Follows the cheapest path backwards from the end. */
static void trace(heed__edit *e, const int32_t *hypothesis)
{
    int64_t i = e->hypothesis_length, j = e->reference_length;
    while (i > 0 || j > 0) {
        const int32_t *row = e->cost.at + i * e->width, *above = row - e->width;
        int32_t cost = i ? cell(row, band_of(e, i), j) : 0;
        heed__band up = i ? band_of(e, i - 1) : (heed__band){0};
        bool equal = i && j && hypothesis[i - 1] == e->reference[j - 1];
        if (i && j && cell(above, up, j - 1) + !equal == cost) {
            i--, j--;
            e->align.at[j] = (int32_t)i;
            e->hypothesis_wrong.at[i] = e->reference_wrong.at[j] = !equal;
        } else if (i && (j == 0 || cell(above, up, j) + 1 == cost)) {
            e->hypothesis_wrong.at[--i] = 1;
        } else {
            e->reference_wrong.at[--j] = 1;
            e->align.at[j] = (int32_t)i - 1;
        }
    }
}

int32_t heed__edit_align(heed__edit *e, const int32_t *hypothesis)
{
    int64_t n = e->hypothesis_length;
    heed__band first = band_of(e, 0);
    for (int64_t j = first.begin; j < first.end; j++)
        e->cost.at[j - first.begin] = (int32_t)j;
    for (int64_t i = 1; i <= n; i++) {
        int32_t *row = e->cost.at + i * e->width;
        next_row(e, i, hypothesis[i - 1], row - e->width, row);
    }
    trace(e, hypothesis);
    return cell(e->cost.at + n * e->width, band_of(e, n), e->reference_length);
}

int32_t heed__edit_distance(heed__edit *e, const int32_t *hypothesis, int64_t same)
{
    int64_t n = e->hypothesis_length;
    const int32_t *above = e->cost.at + same * e->width;
    for (int64_t i = same + 1; i <= n; i++) {
        int32_t *row = e->row[i % 2].at;
        next_row(e, i, hypothesis[i - 1], above, row);
        above = row;
    }
    return cell(above, band_of(e, n), e->reference_length);
}
