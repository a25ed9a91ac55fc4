/* attention_svg.c: an attention picture as one SVG: the large map above, all heads below.
 *
 * Cells are paths, one for each shade of a map: a picture of 144 heads over 40 words stays below a
 * few megabytes and prints sharp at any size. */
#include "base/error.h"
#include "show/picture.h"
#include "show/shade.h"
#include "show/svg.h"

#include <math.h>

#define WIDTH 1280.0      /* larger only for very long sentences */
#define MARGIN 32.0       /* around everything */
#define TALLEST 1000.0    /* of a map, unless its cells would become small */
#define HEAD 104.0        /* titles above the large map */
#define TILT 50.0         /* of the labels above columns, in degrees */
#define LONGEST_ROW 190.0 /* labels are cut to fit */
#define LONGEST_COLUMN 150.0
#define FROM_MAP 10.0 /* labels to map */
#define NUMBERED 28.0 /* cells of this size show their value */
#define BETWEEN 30.0  /* kinds of attention in the overview */
#define SIDE 36.0     /* numbers of layers */
#define CROWN 50.0    /* name and numbers of heads */
#define NAMED 176.0   /* width of a name */

static const char style[] =
    "text{font-family:system-ui,-apple-system,'Segoe UI','Helvetica Neue',Arial,'Noto Sans',"
    "'Noto Sans CJK SC','PingFang SC','Microsoft YaHei',sans-serif;fill:#16191d}"
    ".page{fill:#fff}.title{font-weight:600}.name{font-size:14px;font-weight:600}"
    ".note{font-size:12px;fill:#5a626c}.small{font-size:11px;fill:#5a626c}"
    ".grid{stroke:#e4e8ec;stroke-width:1;fill:none}.frame{stroke:#aeb6bf;stroke-width:1;fill:none}"
    ".most{stroke:#d55e00;stroke-width:1.6;fill:none}.in{font-size:10.5px;text-anchor:middle}"
    ".nan{fill:#b9a9b6}.deep{fill:#fff}";
static const char dark_style[] =
    "text{fill:#e8ebee}.page{fill:#111419}.note,.small{fill:#9aa4af}.grid{stroke:#242a31}"
    ".frame{stroke:#59626c}.most{stroke:#ff9a55}.nan{fill:#6d5566}.deep{fill:#111419}";

/* Sizes of the large map, from its labels. */
struct layout {
    double pitch;     /* side of a cell */
    double font;      /* of labels */
    double left, top; /* of the first cell */
    double right;     /* space for the strongest column of each row */
    double width;     /* of the picture */
    double map_w, map_h;
};

static double widest(const heed_labels *l, double font, double most)
{
    double width = 0;
    for (int64_t i = 0; i < l->count; i++)
        width = fmax(width, heed__draw_width(l->text[i]) * font);
    return fmin(width, most);
}

static struct layout lay_out(const heed_labels *rows, const heed_labels *columns)
{
    struct layout l = {.font = 13};
    double name = widest(columns, l.font, LONGEST_COLUMN);
    double angle = TILT * acos(-1) / 180;
    l.left = MARGIN + widest(rows, l.font, LONGEST_ROW) + FROM_MAP;
    l.right = fmax(name + 52, name * cos(angle)) + FROM_MAP;
    double space = WIDTH - MARGIN - l.left - l.right;
    double tall = fmax(floor(TALLEST / (double)rows->count), 20);
    l.pitch = fmin(fmax(floor(space / (double)columns->count), 16), fmin(tall, 44));
    l.font = l.pitch < 18 ? 11 : l.pitch < 22 ? 12 : 13;
    l.top = HEAD + name * sin(angle) + FROM_MAP + 16;
    l.map_w = l.pitch * (double)columns->count;
    l.map_h = l.pitch * (double)rows->count;
    l.width = fmax(l.left + l.map_w + l.right + MARGIN, 920);
    return l;
}

/* The label, truncated to fit; the whole text as a tooltip. */
static void add_label(heed__string *s, const char *text, double font, double most)
{
    heed__draw_fitted(s, text, most / font);
    if (heed__draw_width(text) * font > most) {
        heed__string_add(s, "<title>");
        heed__draw_escaped(s, text);
        heed__string_add(s, "</title>");
    }
    heed__string_add(s, "</text>\n");
}

static int cell_shade(const void *map, int64_t row, int64_t col)
{
    int w = heed__picture_thousandths(map, row, col);
    return w < 0 ? -1 : heed__shade(w / 1000.0);
}

/* Percents from thousandths, rounded as the page rounds them. */
static int percent(int thousandths)
{
    return (thousandths + 5) / 10;
}

static void add_map(heed__string *s, const heed_attention_map *m, double x, double y, double w,
                    double h)
{
    heed__svg_cells(s, cell_shade, m, m->queries, m->keys, x, y, w, h);
}

static void add_grid(heed__string *s, const struct layout *l, const heed_attention_map *m)
{
    heed__string_add(s, "<path class=\"grid\" shape-rendering=\"crispEdges\" d=\"");
    for (int64_t i = 1; i < m->queries; i++)
        HEED_DRAW(s, "M~ ~h~", l->left, l->top + (double)i * l->pitch, l->map_w);
    for (int64_t j = 1; j < m->keys; j++)
        HEED_DRAW(s, "M~ ~v~", l->left + (double)j * l->pitch, l->top, l->map_h);
    HEED_DRAW(s, "\"/><rect class=\"frame\" x=\"~\" y=\"~\" width=\"~\" height=\"~\"/>\n", l->left,
              l->top, l->map_w, l->map_h);
}

static void add_row(heed__string *s, const struct layout *l, const heed_attention_map *m, int64_t i,
                    const char *label, const heed_labels *columns)
{
    double y = l->top + ((double)i + 0.5) * l->pitch + l->font * 0.35;
    heed__string_format(s, "<text font-size=\"%d\" ", (int)l->font);
    HEED_DRAW(s, "x=\"~\" y=\"~\" text-anchor=\"end\">", l->left - FROM_MAP, y);
    add_label(s, label, l->font, LONGEST_ROW);
    for (int64_t j = 0; j < m->keys && l->pitch >= NUMBERED; j++) {
        int w = heed__picture_thousandths(m, i, j);
        if (w < 95)
            continue;
        heed__string_format(s, "<text class=\"in%s\" ",
                            heed__shade(w / 1000.0) > HEED_SHADES / 2 ? " deep" : "");
        HEED_DRAW(s, "x=\"~\" y=\"~\">", l->left + ((double)j + 0.5) * l->pitch, y - 0.5);
        heed__string_format(s, "%d</text>", percent(w));
    }
    int64_t most = heed__strongest(m, i);
    if (most < 0)
        return;
    HEED_DRAW(s, "<rect class=\"most\" x=\"~\" y=\"~\" width=\"~\" height=\"~\"/>",
              l->left + (double)most * l->pitch + 0.5, l->top + (double)i * l->pitch + 0.5,
              l->pitch - 1, l->pitch - 1);
    double x = l->left + l->map_w + FROM_MAP;
    HEED_DRAW(s, "<text class=\"small\" x=\"~\" y=\"~\" text-anchor=\"end\">~ %</text>", x + 36, y,
              percent(heed__picture_thousandths(m, i, most)));
    heed__string_format(s, "<text font-size=\"%d\" ", (int)l->font);
    HEED_DRAW(s, "x=\"~\" y=\"~\">", x + 44, y);
    add_label(s, columns->text[most], l->font, LONGEST_COLUMN);
}

static void add_column(heed__string *s, const struct layout *l, int64_t j, const char *label)
{
    double x = l->left + ((double)j + 0.5) * l->pitch + 3, y = l->top - FROM_MAP + 2;
    heed__string_format(s, "<text font-size=\"%d\" ", (int)l->font);
    HEED_DRAW(s, "transform=\"translate(~ ~) rotate(-~)\">", x, y, TILT);
    add_label(s, label, l->font, LONGEST_COLUMN);
}

/* A strip of all shades with a few percents below it. */
static void add_scale(heed__string *s, double right)
{
    static const double tick[] = {0, 0.1, 0.25, 0.5, 1};
    double width = 13 * HEED_SHADES, left = right - width;
    for (int i = 0; i < HEED_SHADES; i++) {
        heed__string_format(s, "<rect class=\"w%d\" ", i);
        HEED_DRAW(s, "x=\"~\" y=\"57\" width=\"13\" height=\"12\"/>", left + 13 * i);
    }
    HEED_DRAW(s, "<rect class=\"frame\" x=\"~\" y=\"57\" width=\"~\" height=\"12\"/>\n", left,
              width);
    for (int i = 0; i < 5; i++) {
        HEED_DRAW(s, "<text class=\"small\" x=\"~\" y=\"83\" text-anchor=\"middle\">",
                  left + 6.5 + sqrt(tick[i]) * (width - 13));
        heed__string_format(s, i < 4 ? "%d</text>" : "%d %%</text>", (int)lround(100 * tick[i]));
    }
    HEED_DRAW(s, "<text class=\"small\" x=\"~\" y=\"67\" text-anchor=\"end\">probability</text>\n",
              left - 10);
}

static void add_titles(heed__string *s, const struct layout *l, const char *title,
                       const heed__large *large)
{
    static const char *const reading[] = {
        [HEED_ENCODER_SELF] = "row: a source word; columns: what it attends to",
        [HEED_DECODER_SELF] = "row: the output word; columns: the input so far",
        [HEED_CROSS] = "row: the output word; columns: the source words attended to",
    };
    const double space = l->width - 2 * MARGIN;
    const double font = fmax(13, fmin(19, floor(space / heed__draw_width(title))));
    HEED_DRAW(s, "<text class=\"title\" font-size=\"~\" x=\"~\" y=\"40\">", font, MARGIN);
    add_label(s, title, font, space);
    HEED_DRAW(s, "<text class=\"name\" x=\"~\" y=\"70\">", MARGIN);
    heed__string_add(s, large->title);
    heed__string_add(s, "</text>");
    HEED_DRAW(s, "<text class=\"note\" x=\"~\" y=\"99\">", MARGIN);
    heed__string_format(s, "%s%s", large->note, *large->note ? "; " : "");
    heed__string_format(s, "%s; outlined and on the right: the strongest</text>\n",
                        reading[large->map.kind]);
    add_scale(s, l->width - MARGIN);
}

/* ---- the overview ---- */

struct block {
    int layers, heads; /* 0: no such attention */
};

static double block_width(struct block b, double side)
{
    return b.heads ? SIDE + fmax(b.heads * side, NAMED - SIDE) : 0;
}

static void measure(const heed_attention_picture *p, struct block block[HEED_KINDS])
{
    for (int k = 0; k < HEED_KINDS; k++)
        block[k] = (struct block){0, 0};
    for (int64_t i = 0; i < p->count; i++) {
        struct block *b = &block[p->maps[i].kind];
        b->layers = p->maps[i].layer + 1 > b->layers ? p->maps[i].layer + 1 : b->layers;
        b->heads = p->maps[i].head + 1 > b->heads ? p->maps[i].head + 1 : b->heads;
    }
}

static void add_block(heed__string *s, const heed_attention_picture *p, int kind, struct block b,
                      double x, double y, double side, int64_t large)
{
    HEED_DRAW(s, "<text class=\"name\" x=\"~\" y=\"~\">", x, y + 14);
    heed__string_format(s, "%s</text>\n", heed__kind_name((heed_attention_kind)kind));
    x += SIDE;
    y += CROWN;
    HEED_DRAW(s, "<text class=\"small\" x=\"~\" y=\"~\" text-anchor=\"middle\">head</text>",
              x + b.heads * side / 2, y - 19);
    HEED_DRAW(s,
              "<text class=\"small\" text-anchor=\"middle\" "
              "transform=\"translate(~ ~) rotate(-90)\">layer</text>\n",
              x - 24, y + b.layers * side / 2);
    for (int h = 0; h < b.heads; h++) {
        HEED_DRAW(s, "<text class=\"small\" x=\"~\" y=\"~\" text-anchor=\"middle\">",
                  x + (h + 0.5) * side - 2, y - 6);
        heed__string_format(s, "%d</text>", h + 1);
    }
    for (int layer = 0; layer < b.layers; layer++) {
        HEED_DRAW(s, "<text class=\"small\" x=\"~\" y=\"~\" text-anchor=\"end\">", x - 6,
                  y + (layer + 0.5) * side + 2);
        heed__string_format(s, "%d</text>", layer + 1);
    }
    heed__string_add(s, "\n");
    for (int64_t i = 0; i < p->count; i++) {
        const heed_attention_map *m = &p->maps[i];
        if ((int)m->kind != kind)
            continue;
        double left = x + m->head * side, top = y + m->layer * side;
        heed__string_format(s, "<g><title>%s, layer %d, head %d</title>", heed__kind_name(m->kind),
                            m->layer + 1, m->head + 1);
        add_map(s, m, left, top, side - 4, side - 4);
        heed__string_format(s, "<rect class=\"%s\" ", i == large ? "most" : "frame");
        HEED_DRAW(s, "x=\"~\" y=\"~\" width=\"~\" height=\"~\"/></g>\n", left, top, side - 4,
                  side - 4);
    }
}

static heed_status write_svg(const heed_attention_picture *p, const heed__large *large,
                             heed_arena *arena, const char **svg, heed_error *err)
{
    const heed_labels *rows = heed__row_labels(p, large->map.kind);
    const heed_labels *columns = heed__column_labels(p, large->map.kind);
    struct layout l = lay_out(rows, columns);
    struct block block[HEED_KINDS];
    measure(p, block);
    int heads = 0, layers = 0, kinds = 0;
    for (int k = 0; k < HEED_KINDS; k++) {
        kinds += block[k].heads > 0;
        heads += block[k].heads;
        layers = block[k].layers > layers ? block[k].layers : layers;
    }
    double around = 2 * MARGIN + kinds * SIDE + (kinds - 1) * BETWEEN;
    double side = fmin(fmax(floor((l.width - around) / heads), 40), 96);
    double x = MARGIN, blocks = 2 * MARGIN + (kinds - 1) * BETWEEN;
    for (int k = 0; k < HEED_KINDS; k++)
        blocks += block_width(block[k], side);
    l.width = fmax(l.width, blocks);
    double overview = l.top + l.map_h + 40;
    double height = overview + CROWN + layers * side + MARGIN;
    heed__string s;
    heed__draw_begin(&s, arena);
    heed__svg_begin(&s, p->title, l.width, height, style, dark_style, true);
    add_titles(&s, &l, p->title, large);
    add_map(&s, &large->map, l.left, l.top, l.map_w, l.map_h);
    add_grid(&s, &l, &large->map);
    for (int64_t j = 0; j < columns->count; j++)
        add_column(&s, &l, j, columns->text[j]);
    for (int64_t i = 0; i < rows->count; i++)
        add_row(&s, &l, &large->map, i, rows->text[i], columns);
    for (int k = 0; k < HEED_KINDS; k++)
        if (block[k].heads) {
            add_block(&s, p, k, block[k], x, overview, side, large->index);
            x += block_width(block[k], side) + BETWEEN;
        }
    heed__string_add(&s, "</svg>\n");
    return heed__draw_end(&s, svg, err);
}

heed_status heed_attention_svg(const heed_attention_picture *p, int64_t large, heed_arena *arena,
                               const char **svg, heed_error *err)
{
    if (!p)
        return heed__missing(err, "attention picture");
    *svg = NULL;
    heed__large map;
    heed_status status = heed__large_map(p, large, arena, &map, err);
    return status ? status : write_svg(p, &map, arena, svg, err);
}
