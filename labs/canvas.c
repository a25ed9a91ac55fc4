/* canvas.c: see canvas.h. */
#include "canvas.h"

#include <math.h>

static const char *const words[CANVAS_WORDS] = {
    "<unk>", "<s>",   "</s>", "zero", "one",    "two",    "three", "four",   "five",  "six",
    "seven", "eight", "nine", "top",  "middle", "bottom", "left",  "centre", "right", "."};
enum { ZERO = 3, TOP = 13, LEFT = 16, POINT = 19 };

const char *canvas_word(int32_t id)
{
    return id >= 0 && id < CANVAS_WORDS ? words[id] : "";
}

/* Of two cells in a line the first and the last are named. */
static int32_t named(int32_t first, int64_t cells, int64_t at)
{
    return first + (int32_t)(cells == 2 ? 2 * at : at);
}

/* The digit, of any size, scaled to the cell by the nearest pixel. */
static void put(const canvas_sizes *z, const heed_real *digit, int64_t side, int cell,
                heed_real *out)
{
    const int64_t size = z->side / z->cells, top = cell / z->cells * size,
                  left = cell % z->cells * size;
    for (int64_t y = 0; y < size; y++)
        for (int64_t x = 0; x < size; x++)
            out[(top + y) * z->side + left + x] =
                2 * digit[y * side / size * side + x * side / size] - 1;
}

void canvas_draw(const canvas_sizes *sizes, const picture_data *digits, picture_part part,
                 int64_t i, drawing_dice *dice, heed_real *digit, heed_real *out, canvas *c)
{
    const int64_t cells = sizes->cells * sizes->cells;
    const heed_rng own = heed_rng_stream(
        &(heed_rng_key){.seed = 5000011, .step = (uint64_t)part, .node = (uint64_t)i});
    drawing_dice fixed = {&own, 0};
    drawing_dice *use = part == PICTURES_TRAIN ? dice : &fixed;
    *c = (canvas){.digits = 1 + (int)heed_rng_below(use->rng, use->next++, CANVAS_DIGITS)};
    for (int64_t p = 0; p < sizes->side * sizes->side; p++)
        out[p] = -1;
    int left = c->digits, at = 0;
    for (int cell = 0; cell < cells; cell++) {
        /* Each choice of cells is as likely as any other. */
        if (heed_rng_below(use->rng, use->next++, cells - cell) >= left)
            continue;
        const int64_t which = digits->train
                                  ? heed_rng_below(use->rng, use->next++, digits->count[part])
                                  : i * CANVAS_DIGITS + at;
        const int label = picture_data_take(digits, part, which, 0, use, digit);
        put(sizes, digit, digits->side, cell, out);
        int32_t *word = c->word + 4 * at;
        word[0] = ZERO + label;
        word[1] = named(TOP, sizes->cells, cell / sizes->cells);
        word[2] = named(LEFT, sizes->cells, cell % sizes->cells);
        word[3] = POINT;
        c->cell[at++] = cell;
        left--;
    }
}
