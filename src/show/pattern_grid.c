/* pattern_grid.c: patterns of attention as one SVG: a square of pairs for each, computed by the
 * function that training and decoding ask. */
#include "attention/attend.h"
#include "base/error.h"
#include "show/svg.h"

#include <heed/show.h>
#include <string.h>

#define SIDE 132.0 /* of a square */
#define GAP 18.0
#define MARGIN 28.0
#define TOP 76.0  /* titles of the page */
#define HEAD 20.0 /* title of a square */

static const char style[] =
    "text{font-family:system-ui,-apple-system,'Segoe UI','Helvetica Neue',Arial,'Noto Sans',"
    "sans-serif;font-size:12px;fill:#4a5058}.page{fill:#fff}"
    ".title{font-size:18px;font-weight:600;fill:#16191d}"
    ".frame{stroke:#aeb6bf;stroke-width:1;fill:none}";
static const char dark_style[] =
    "text{fill:#a9b1bb}.page{fill:#111419}.title{fill:#eef1f4}.frame{stroke:#59626c}";

/* Heads and layers that are looked at: enough for what differs by turns. */
enum { HEADS = 2, LAYERS = 2, DARK = 11, LIGHT = 4 };

/* The shade of each pair, (positions,positions). */
struct map {
    int64_t n;
    uint8_t *shade;
};

static int cell_shade(const void *context, int64_t row, int64_t col)
{
    const struct map *m = context;
    return m->shade[row * m->n + col];
}

static void shade_query(struct map *m, const heed_slot_spec *pattern, const heed__pattern_query *q,
                        heed_key_range *r)
{
    const int ranges = heed__pattern_ranges(pattern, q, r);
    uint8_t *row = m->shade + q->i * m->n;
    for (int k = 0; k < ranges; k++)
        for (int64_t run = r[k].begin; run < r[k].end; run += r[k].step)
            for (int64_t key = run; key < run + r[k].width && key < r[k].end; key++)
                if (!row[key])
                    row[key] = q->head || q->layer ? LIGHT : DARK;
}

static heed_status fill(struct map *m, const heed_pattern_square *s, heed_arena *arena,
                        heed_error *err)
{
    heed_status status = heed__slot_check(HEED_SLOT_PATTERN, &s->pattern, err);
    if (status)
        return status;
    const heed_slot_spec pattern = heed__slot_complete(HEED_SLOT_PATTERN, &s->pattern);
    if (!heed__pattern_is_fixed(&pattern))
        return heed__fail(
            err, HEED_ARGUMENT,
            "what '%s' sees depends on more than positions: there is no picture of it",
            s->title ? s->title : "");
    heed_key_range *r =
        heed_arena_allocate(arena, (size_t)heed__pattern_most(&pattern, m->n) * sizeof *r);
    if (!r)
        return heed__fail(err, HEED_MEMORY, "out of memory for a picture");
    memset(m->shade, 0, (size_t)(m->n * m->n));
    for (int layer = 0; layer < LAYERS; layer++)
        for (int head = 0; head < HEADS; head++)
            for (int64_t i = 0; i < m->n; i++)
                shade_query(m, &pattern,
                            &(heed__pattern_query){layer, head, i, m->n, m->n, s->causal}, r);
    return HEED_OK;
}

heed_status heed_patterns_svg(const char *title, const heed_pattern_square *squares, int64_t count,
                              int64_t positions, int64_t across, heed_arena *arena,
                              const char **svg, heed_error *err)
{
    enum { MOST = 512 };
    heed__string s;
    if (!title || !squares || !arena || !svg)
        return heed__missing(err, !title     ? "title"
                                  : !squares ? "squares"
                                  : !arena   ? "arena"
                                             : "svg");
    if (count < 1 || across < 1 || positions < 1 || positions > MOST)
        return heed__fail(err, HEED_ARGUMENT,
                          "%lld squares of %lld positions, %lld side by side, expected 1 at least, "
                          "and at most %d positions",
                          (long long)count, (long long)positions, (long long)across, MOST);
    struct map m = {positions, heed_arena_allocate(arena, (size_t)(positions * positions))};
    if (!m.shade)
        return heed__fail(err, HEED_MEMORY, "out of memory for a picture");
    const int64_t columns = across < count ? across : count, lines = (count + across - 1) / across;
    heed__draw_begin(&s, arena);
    heed__svg_begin(&s, title, 2 * MARGIN + (double)columns * (SIDE + GAP) - GAP,
                    TOP + (double)lines * (HEAD + SIDE + GAP) + MARGIN - GAP, style, dark_style,
                    true);
    HEED_DRAW(&s, "<text class=\"title\" x=\"~\" y=\"~\">", MARGIN, MARGIN + 8);
    heed__draw_escaped(&s, title);
    HEED_DRAW(&s, "</text>\n<text x=\"~\" y=\"~\">", MARGIN, MARGIN + 28);
    heed__string_add(&s, "Queries go down, keys to the right.  Dark: the first head of the first "
                         "layer; light: other heads or layers alone.</text>\n");
    heed_status status = HEED_OK;
    for (int64_t i = 0; !status && i < count; i++) {
        const double x = MARGIN + (double)(i % across) * (SIDE + GAP),
                     y = TOP + (double)(i / across) * (HEAD + SIDE + GAP) + HEAD;
        if ((status = fill(&m, &squares[i], arena, err)))
            break;
        HEED_DRAW(&s, "<text x=\"~\" y=\"~\">", x, y - 6);
        heed__draw_fitted(&s, squares[i].title ? squares[i].title : "", SIDE / 12);
        heed__string_add(&s, "</text>\n");
        heed__svg_cells(&s, cell_shade, &m, positions, positions, x, y, SIDE, SIDE);
        HEED_DRAW(&s, "<rect class=\"frame\" x=\"~\" y=\"~\" width=\"~\" height=\"~\"/>\n", x, y,
                  SIDE, SIDE);
    }
    heed__string_add(&s, "</svg>\n");
    const heed_status drawn = heed__draw_end(&s, svg, status ? NULL : err);
    return status ? status : drawn;
}
