/* pattern_block_image.c: local attention over pictures, rows of X pixels one after the other (Image
 * Transformer, Parmar et al. 2018, section 3.3).
 *   2-D  the patch of B by B pixels that the query lies in, and B pixels around it
 *   1-D  pixels in a row are cut into blocks of B rows: the query's own and the one before (not
 *        causal: and the one behind)
 * Causal is the order of the rows, also inside a block. */
#include "attention/attend.h"

#include "base/min_max.h"

enum { TWO_D = 1, ONE_D };
static const char *const words[] = {"2d", "1d", NULL};

static int ranges(const heed_term *term, const heed__pattern_query *q, heed_key_range *out)
{
    const int64_t x = term->number[0], b = term->number[1], i = heed__pattern_place(q);
    if (term->number[2] == ONE_D) {
        const int64_t size = b * x, block = i / size;
        out[0] = heed__pattern_range(q, (block - 1) * size, (block + 2) * size, 1, 1);
        return 1;
    }
    const int64_t top = heed__max(0, (i / x / b - 1) * b), bottom = (i / x / b + 2) * b;
    const int64_t left = heed__max(0, (i % x / b - 1) * b),
                  right = heed__min(x, (i % x / b + 2) * b);
    out[0] = heed__pattern_range(q, top * x + left, bottom * x, x, right - left);
    return 1;
}

static int64_t reach(const heed_term *term, int64_t *pinned)
{
    *pinned = 0;
    return heed__min(INT32_MAX, 2 * term->number[0] * term->number[1]);
}

const heed__slot_row heed__pattern_block_image = {
    .info = {.slot = HEED_SLOT_PATTERN,
             .name = "block-image",
             .form = "block-image:X:B[:2d|1d]",
             .example = "block-image:6:2",
             .formula =
                 "rows of X pixels: query i sees its own patch of B by B and B pixels around it; "
                 "1d: its own B rows, those before and behind",
             .paper = "Parmar et al. 2018",
             .cost = "9 B B pairs a query; 1d 3 B X",
             .can = HEED__CAN_USUAL | HEED_CAN_WIDTHS | HEED_CAN_FUSED | HEED_CAN_UNION,
             .needs = 2,
             .takes = 3,
             .number = {{1, 1 << 20, 0, NULL}, {1, 1 << 10, 0, NULL}, {1, 2, TWO_D, words}}},
    .pattern = &(const heed__pattern){.ranges = ranges, .most = 1, .steps = true, .reach = reach},
};
