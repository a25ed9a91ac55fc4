/* match_all.c: scores of many pictures with many texts: what each has said of itself stays, pairs
 * go over the tape block by block. */
#include "base/error.h"
#include "see/match_task.h"

#include <string.h>

enum { PICTURES = 16, TEXTS = 32 }; /* of a block */

static heed_status tape_failed(const heed_tape *t, heed_error *err)
{
    return heed__fail(err, heed_tape_error(t)->status, "%s", heed_tape_error(t)->text);
}

static heed_status keep(const heed_tape *t, const heed_tensor *x, heed_real *to, heed_error *err)
{
    if (!x)
        return tape_failed(t, err);
    memcpy(to, heed_tensor_data(x), (size_t)heed_tensor_count(x) * sizeof *to);
    return HEED_OK;
}

heed_status heed__match_see(heed_tape *t, const heed_match_net *m, const heed_real *pixels,
                            int64_t pictures, heed_real *places, heed_error *err)
{
    heed_tape_reset(t);
    return keep(t, heed_match_places(t, m, pixels, pictures), places, err);
}

heed_status heed__match_read(heed_tape *t, const heed_match_net *m, const int32_t *ids,
                             const heed_segments *rows, heed_real *words, heed_error *err)
{
    heed_tape_reset(t);
    return keep(t, heed_match_words(t, m, ids, rows), words, err);
}

/* Texts [begin,end) of all as segments of their own. */
static const heed_segments *some(heed_tape *t, const heed_segments *all, int64_t begin, int64_t end)
{
    int64_t *lengths =
        heed_arena_allocate(heed_tape_arena(t), (size_t)(end - begin) * sizeof *lengths);
    for (int64_t i = begin; lengths && i < end; i++)
        lengths[i - begin] = all->offset[i + 1] - all->offset[i];
    return lengths ? heed_segments_new(heed_tape_arena(t), end - begin, lengths) : NULL;
}

heed_status heed__match_all(heed_tape *t, const heed_match_net *m, const heed_real *places,
                            int64_t pictures, const heed_real *words, const heed_segments *rows,
                            heed_real *scores, heed_error *err)
{
    const int64_t d = m->config.d, each = m->grid.size.y * m->grid.size.x, texts = rows->count;
    for (int64_t i = 0; i < pictures; i += PICTURES)
        for (int64_t k = 0; k < texts; k += TEXTS) {
            const int64_t n = pictures - i < PICTURES ? pictures - i : PICTURES,
                          end = texts - k < TEXTS ? texts : k + TEXTS;
            heed_tape_reset(t);
            const heed_segments *block = some(t, rows, k, end);
            if (!block)
                return heed__fail(err, HEED_MEMORY, "out of memory for pairs");
            heed_tensor *v = heed_input(t, HEED_SHAPE(n * each, d), places + i * each * d),
                        *w = heed_input(t, HEED_SHAPE(block->rows, d), words + rows->offset[k] * d);
            const heed_tensor *s = heed_match_scores(t, m, v, n, w, block);
            if (!s)
                return tape_failed(t, err);
            for (int64_t p = 0; p < n; p++)
                memcpy(scores + (i + p) * texts + k, heed_tensor_data(s) + p * (end - k),
                       (size_t)(end - k) * sizeof *scores);
        }
    return HEED_OK;
}

double heed_match_recall(const heed_real *scores, int64_t n, bool pictures, int64_t within)
{
    int64_t found = 0;
    for (int64_t i = 0; scores && i < n; i++) {
        int64_t higher = 0;
        for (int64_t k = 0; k < n; k++)
            higher += scores[pictures ? k * n + i : i * n + k] > scores[i * n + i];
        found += higher < within;
    }
    return n > 0 ? 100 * (double)found / (double)n : 0;
}
