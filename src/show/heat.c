/* heat.c: matrices over a common time axis as one SVG, one below the other: the heads of a memory,
 * or any other rows, at each step. */
#include "base/error.h"
#include "show/axis.h"
#include "show/shade.h"
#include "show/svg.h"

#include <heed/show.h>
#include <math.h>

#define WIDTH 900.0
#define LEFT 56.0 /* space for the row numbers */
#define RIGHT 20.0
#define TOP 56.0      /* the title */
#define HEAD 30.0     /* title of a panel */
#define ROW 9.0       /* height of a row, */
#define TALLEST 256.0 /* unless there are many */
#define NUMBERED 24   /* a panel of more rows has the first and the last numbered */
#define BOTTOM 50.0   /* labels and name of the axis */
#define CELL 22.0     /* the widest step */

static const char style[] =
    "text{font-family:system-ui,-apple-system,'Segoe UI','Helvetica Neue',Arial,'Noto Sans',"
    "sans-serif;font-size:12px;fill:#4a5058}.page{fill:#fff}"
    ".title{font-size:18px;font-weight:600;fill:#16191d}"
    ".name{font-size:13px;font-weight:600;fill:#16191d}"
    ".frame{stroke:#aeb6bf;stroke-width:1;fill:none}.nan{fill:#b9a9b6}";
static const char dark_style[] = "text{fill:#a9b1bb}.page{fill:#111419}.title,.name{fill:#eef1f4}"
                                 ".frame{stroke:#59626c}.nan{fill:#6d5566}";

static double height_of(const heed_heat_panel *p)
{
    return fmin(ROW * (double)p->rows, TALLEST);
}

/* Probabilities by their square root, as everywhere; signed values linearly. */
static int cell_shade(const void *map, int64_t row, int64_t col)
{
    const heed_heat_panel *p = map;
    double v = ((double)p->value[row * p->cols + col] - p->low) / (p->high - p->low);
    if (!isfinite(v))
        return -1;
    v = fmin(fmax(v, 0), 1);
    return heed__shade(p->low < 0 ? v * v : v);
}

static void add_text(heed__string *s, const char *attributes, double x, double y, const char *text)
{
    heed__string_format(s, "<text %s ", attributes);
    HEED_DRAW(s, "x=\"~\" y=\"~\">", x, y);
    heed__draw_fitted(s, text, (WIDTH - LEFT - RIGHT) / 12);
    heed__string_add(s, "</text>\n");
}

static void add_row_number(heed__string *s, double y, int64_t row)
{
    HEED_DRAW(s, "<text x=\"~\" y=\"~\" text-anchor=\"end\">~</text>\n", LEFT - 8, y, (double)row);
}

static void add_panel(heed__string *s, const heed_heat_panel *p, double top, double width)
{
    double height = height_of(p);
    add_text(s, "class=\"name\"", LEFT, top - 9, p->title);
    if (p->rows > NUMBERED) {
        add_row_number(s, top + 10, 0);
        add_row_number(s, top + height, p->rows - 1);
    }
    heed__svg_cells(s, cell_shade, p, p->rows, p->cols, LEFT, top, width, height);
    HEED_DRAW(s, "<rect class=\"frame\" x=\"~\" y=\"~\" width=\"~\" height=\"~\"/>\n", LEFT, top,
              width, height);
}

static void add_axis(heed__string *s, int64_t steps, double top, double width)
{
    heed__axis x = heed__axis_new(false);
    heed__axis_include(&x, 0);
    heed__axis_include(&x, (double)(steps - 1));
    heed__axis_finish(&x, 10, false);
    for (int i = 0; i < x.ticks; i++)
        if (x.tick[i] == floor(x.tick[i])) {
            HEED_DRAW(s, "<text x=\"~\" y=\"~\" text-anchor=\"middle\">",
                      LEFT + (x.tick[i] + 0.5) * width / (double)steps, top + 16);
            heed__axis_label(s, &x, x.tick[i], 0);
            heed__string_add(s, "</text>\n");
        }
}

static heed_status check(const heed_heat_panel *panels, int count, heed_error *err)
{
    if (count < 1)
        return heed__fail(err, HEED_ARGUMENT, "heat: %d panels, expected at least 1", count);
    for (int i = 0; i < count; i++)
        if (panels[i].rows < 1 || panels[i].cols < 1 || panels[i].cols != panels[0].cols)
            return heed__fail(err, HEED_SHAPE_ERROR, "heat: '%s' is (%lld,%lld), expected (N,%lld)",
                              panels[i].title, (long long)panels[i].rows, (long long)panels[i].cols,
                              (long long)panels[0].cols);
    return HEED_OK;
}

heed_status heed_heat_svg(const char *title, const char *x_label, const heed_heat_panel *panels,
                          int count, heed_arena *arena, const char **svg, heed_error *err)
{
    if (!svg)
        return heed__missing(err, "place for a picture");
    *svg = NULL;
    heed_status status = check(panels, count, err);
    if (status)
        return status;
    heed__string s;
    double height = TOP + BOTTOM;
    double width = fmin(WIDTH - LEFT - RIGHT, CELL * (double)panels[0].cols);
    for (int i = 0; i < count; i++)
        height += HEAD + height_of(&panels[i]);
    heed__draw_begin(&s, arena);
    heed__svg_begin(&s, title, WIDTH, height, style, dark_style, true);
    add_text(&s, "class=\"title\"", LEFT, 34, title);
    double top = TOP;
    for (int i = 0; i < count; i++) {
        add_panel(&s, &panels[i], top + HEAD, width);
        top += HEAD + height_of(&panels[i]);
    }
    add_axis(&s, panels[0].cols, top, width);
    add_text(&s, "", LEFT, top + 38, x_label);
    heed__string_add(&s, "</svg>\n");
    return heed__draw_end(&s, svg, err);
}
