/* points.c: sets of points with lines through them, as one SVG: a grid of squares, in each the
 * points, the right line broad and pale and the found line thin and dark. */
#include "base/error.h"
#include "show/svg.h"

#include <heed/show.h>
#include <math.h>

#define ACROSS 4   /* squares in a row */
#define SIDE 210.0 /* of a square */
#define GAP 18.0   /* between them */
#define MARGIN 28.0
#define TOP 88.0    /* title and legend */
#define HEAD 22.0   /* title of a square */
#define INSIDE 12.0 /* from its edge to a point */

static const char style[] =
    "text{font-family:system-ui,-apple-system,'Segoe UI','Helvetica Neue',Arial,'Noto Sans',"
    "sans-serif;font-size:12px;fill:#4a5058}.page{fill:#fff}"
    ".title{font-size:18px;font-weight:600;fill:#16191d}"
    ".frame{stroke:#d5dadf;stroke-width:1;fill:none}.dot{fill:#16191d}"
    ".right{stroke:#9ccbe8;stroke-width:7;fill:none;stroke-linejoin:round;stroke-linecap:round}"
    ".found{stroke:#d55e00;stroke-width:1.6;fill:none;stroke-linejoin:round}";
static const char dark_style[] =
    "text{fill:#a9b1bb}.page{fill:#14171b}.title{fill:#eef1f4}.frame{stroke:#2a2f36}"
    ".dot{fill:#eef1f4}.right{stroke:#2b5878}.found{stroke:#ff9a55}";

/* From the unit square, y upwards, to the picture. */
static double position(double from, heed_real v)
{
    return from + INSIDE + (double)v * (SIDE - 2 * INSIDE);
}

static void add_line(heed__string *s, const heed_points_square *q, const heed_points_line *l,
                     double left, double top)
{
    heed__string_format(s, "<path class=\"%s\" d=\"", l->found ? "found" : "right");
    for (int64_t i = 0; i < l->count; i++) {
        const heed_real *p = q->points + 2 * l->index[i];
        heed__string_add(s, i ? "L" : "M");
        HEED_DRAW(s, "~ ~", position(left, p[0]), position(top, 1 - p[1]));
    }
    heed__string_add(s, l->closed ? "z\"/>" : "\"/>");
}

static void add_square(heed__string *s, const heed_points_square *q, double left, double top)
{
    HEED_DRAW(s, "<text x=\"~\" y=\"~\">", left, top - 7);
    heed__draw_fitted(s, q->title, SIDE / 12);
    HEED_DRAW(s, "</text>\n<rect class=\"frame\" x=\"~\" y=\"~\" width=\"~\" height=\"~\"/>\n",
              left, top, SIDE, SIDE);
    for (int found = 0; found < 2; found++)
        for (int i = 0; i < q->lines; i++)
            if (q->line[i].found == found)
                add_line(s, q, &q->line[i], left, top);
    for (int64_t i = 0; i < q->count; i++)
        HEED_DRAW(s, "<circle class=\"dot\" cx=\"~\" cy=\"~\" r=\"2.4\"/>",
                  position(left, q->points[2 * i]), position(top, 1 - q->points[2 * i + 1]));
    heed__string_add(s, "\n");
}

static void add_legend(heed__string *s)
{
    HEED_DRAW(s,
              "<path class=\"right\" d=\"M~ 58h24\"/><text x=\"~\" y=\"62\">right</text>"
              "<path class=\"found\" d=\"M~ 58h24\"/><text x=\"~\" y=\"62\">found</text>\n",
              MARGIN + 4, MARGIN + 38, MARGIN + 90, MARGIN + 122);
}

static heed_status check(const heed_points_square *squares, int count, heed_error *err)
{
    if (count < 1)
        return heed__fail(err, HEED_ARGUMENT, "points: %d squares, expected at least 1", count);
    for (int k = 0; k < count; k++)
        for (int i = 0; i < squares[k].lines; i++)
            for (int64_t j = 0; j < squares[k].line[i].count; j++) {
                int32_t index = squares[k].line[i].index[j];
                if (index < 0 || index >= squares[k].count)
                    return heed__fail(err, HEED_ARGUMENT,
                                      "points: a line of '%s' goes through point %d of %lld",
                                      squares[k].title, (int)index, (long long)squares[k].count);
            }
    return HEED_OK;
}

heed_status heed_points_svg(const char *title, const heed_points_square *squares, int count,
                            heed_arena *arena, const char **svg, heed_error *err)
{
    if (!svg)
        return heed__missing(err, "place for a picture");
    *svg = NULL;
    heed_status status = check(squares, count, err);
    if (status)
        return status;
    int across = count < ACROSS ? count : ACROSS, down = (count + ACROSS - 1) / ACROSS;
    double width = fmax(2 * MARGIN + across * (SIDE + GAP) - GAP, 480);
    double height = TOP + down * (HEAD + SIDE + GAP) + MARGIN - GAP;
    heed__string s;
    heed__draw_begin(&s, arena);
    heed__svg_begin(&s, title, width, height, style, dark_style, false);
    HEED_DRAW(&s, "<text class=\"title\" x=\"~\" y=\"34\">", MARGIN);
    heed__draw_fitted(&s, title, (width - 2 * MARGIN) / 18);
    heed__string_add(&s, "</text>\n");
    add_legend(&s);
    for (int k = 0; k < count; k++)
        add_square(&s, &squares[k], MARGIN + k % ACROSS * (SIDE + GAP),
                   TOP + k / ACROSS * (HEAD + SIDE + GAP) + HEAD);
    heed__string_add(&s, "</svg>\n");
    return heed__draw_end(&s, svg, err);
}
