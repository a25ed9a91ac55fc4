/* curves.c: training curves as one SVG, panels one below the other over a common x axis.
 *
 * A curve has at most four points per pixel column: of consecutive points in one column the first,
 * lowest, highest and last are drawn, so no spike is lost.  Values that are not finite, or not
 * above zero on a logarithmic axis, leave a gap. */
#include "base/error.h"
#include "show/axis.h"
#include "show/svg.h"

#include <heed/show.h>
#include <math.h>
#include <string.h>

#define WIDTH 900.0
#define LEFT 72.0   /* space for the labels of y */
#define RIGHT 28.0  /* for half a label of x */
#define TOP 64.0    /* the title */
#define HEAD 30.0   /* title and legend of a panel */
#define PLOT 168.0  /* its curves */
#define GAP 22.0    /* below it */
#define BOTTOM 40.0 /* labels and name of the x axis */
#define COLOURS 6
#define DOTTED 60 /* curves of at most this many points show each */
#define DENSE 400 /* a longer line is thin, because its noise makes it a band */

/* The colour-blind safe palette of Okabe and Ito, lighter on a dark page. */
static const char style[] =
    "text{font-family:system-ui,-apple-system,'Segoe UI','Helvetica Neue',Arial,"
    "'Noto Sans',sans-serif;font-size:12px;fill:#4a5058}"
    ".page{fill:#fff}.title{font-size:18px;font-weight:600;fill:#16191d}"
    ".name{font-size:13px;font-weight:600;fill:#16191d}.value{fill:#16191d}"
    ".grid{stroke:#e6e8eb;stroke-width:1;fill:none}.axis{stroke:#9aa1aa;stroke-width:1;fill:none}"
    ".line{fill:none;stroke-width:1.75;stroke-linejoin:round;stroke-linecap:round}"
    ".dense{stroke-width:1}"
    ".s0{stroke:#0072b2}.s1{stroke:#d55e00}.s2{stroke:#009e73}.s3{stroke:#cc79a7}"
    ".s4{stroke:#b88700}.s5{stroke:#56b4e9}"
    ".f0{fill:#0072b2}.f1{fill:#d55e00}.f2{fill:#009e73}.f3{fill:#cc79a7}"
    ".f4{fill:#b88700}.f5{fill:#56b4e9}";
static const char dark_style[] =
    "text{fill:#a9b1bb}.page{fill:#14171b}"
    ".title,.name,.value{fill:#eef1f4}.grid{stroke:#2a2f36}.axis{stroke:#69717b}"
    ".s0{stroke:#5ab4f0}.s1{stroke:#ff8f4a}.s2{stroke:#3fd0a4}.s3{stroke:#e9a3c9}"
    ".s4{stroke:#f0c04a}.s5{stroke:#9fd6ff}"
    ".f0{fill:#5ab4f0}.f1{fill:#ff8f4a}.f2{fill:#3fd0a4}.f3{fill:#e9a3c9}"
    ".f4{fill:#f0c04a}.f5{fill:#9fd6ff}";

/* One panel while it is drawn. */
struct plot {
    heed__string *s;
    const heed__axis *x, *y;
    double top; /* of the curves */
};

static bool shown(const struct plot *p, const heed_curve *c, int64_t i)
{
    return heed__axis_takes(p->x, c->x[i]) && heed__axis_takes(p->y, c->y[i]);
}

static double x_of(const struct plot *p, double x)
{
    return LEFT + heed__axis_position(p->x, x) * (WIDTH - LEFT - RIGHT);
}

static double y_of(const struct plot *p, double y)
{
    return p->top + (1 - heed__axis_position(p->y, y)) * PLOT;
}

static void add_dot(const struct plot *p, const heed_curve *c, int64_t i, int colour)
{
    heed__string_format(p->s, "<circle class=\"f%d\" ", colour);
    HEED_DRAW(p->s, "cx=\"~\" cy=\"~\" r=\"2.5\"/>", x_of(p, c->x[i]), y_of(p, c->y[i]));
}

/* Adds the points [from,to), all of one pixel column, to the path. */
static void add_column(const struct plot *p, const heed_curve *c, int64_t from, int64_t to)
{
    int64_t low = from, high = from;
    for (int64_t i = from; i < to; i++) {
        low = c->y[i] < c->y[low] ? i : low;
        high = c->y[i] > c->y[high] ? i : high;
    }
    const int64_t in_order[] = {from, low < high ? low : high, low < high ? high : low, to - 1};
    for (int k = 0; k < 4; k++)
        if (k == 0 || in_order[k] != in_order[k - 1])
            HEED_DRAW(p->s, "~,~ ", x_of(p, c->x[in_order[k]]), y_of(p, c->y[in_order[k]]));
}

/* The points [from,to), all shown, as one line. */
static void add_stretch(const struct plot *p, const heed_curve *c, int64_t from, int64_t to,
                        int colour)
{
    if (to - from == 1) {
        add_dot(p, c, from, colour);
        return;
    }
    heed__string_format(p->s, "<polyline class=\"line%s s%d\" points=\"",
                        to - from > DENSE ? " dense" : "", colour);
    int64_t start = from;
    for (int64_t i = from + 1; i <= to; i++)
        if (i == to || floor(x_of(p, c->x[i])) != floor(x_of(p, c->x[start]))) {
            add_column(p, c, start, i);
            start = i;
        }
    heed__string_add(p->s, "\"/>\n");
}

static void add_curve(const struct plot *p, const heed_curve *c, int colour)
{
    int64_t i = 0;
    while (i < c->count) {
        int64_t from = i;
        while (i < c->count && shown(p, c, i))
            i++;
        if (i > from)
            add_stretch(p, c, from, i, colour);
        else
            i++;
    }
    if (c->count <= DOTTED)
        for (i = 0; i < c->count; i++)
            if (shown(p, c, i))
                add_dot(p, c, i, colour);
}

/* Right-aligned above the curves: a stroke, the name, the last value of each. */
static void add_legend(const struct plot *p, const heed_curve_panel *panel, heed__string *part)
{
    double right = WIDTH - RIGHT;
    for (int k = panel->count - 1; k >= 0 && right > WIDTH / 2; k--) {
        const heed_curve *c = &panel->curves[k];
        int64_t last = c->count - 1;
        while (last >= 0 && !shown(p, c, last))
            last--;
        heed__string_clear(part);
        if (last >= 0)
            heed__axis_label(part, p->y, c->y[last], 2);
        double value = heed__draw_width(heed__string_text(part)) * 12;
        double name = fmin(heed__draw_width(c->name) * 12, 200);
        double left = right - value - name - 30;
        double base = p->top - 11;
        heed__string_format(p->s, "<path class=\"line s%d\" ", k % COLOURS);
        HEED_DRAW(p->s, "d=\"M~ ~h16\"/><text x=\"~\" y=\"~\">", left, base - 4, left + 22, base);
        heed__draw_fitted(p->s, c->name, 200 / 12.0);
        HEED_DRAW(p->s, "</text><text class=\"value\" x=\"~\" y=\"~\" text-anchor=\"end\">", right,
                  base);
        heed__string_add(p->s, heed__string_text(part));
        heed__string_add(p->s, "</text>\n");
        right = left - 22;
    }
}

static void add_frame(const struct plot *p, bool empty, bool last)
{
    for (int i = 0; i < p->y->ticks && !empty; i++) {
        double y = y_of(p, p->y->tick[i]);
        HEED_DRAW(p->s, "<path class=\"grid\" d=\"M~ ~H~\"/>", LEFT, y, WIDTH - RIGHT);
        HEED_DRAW(p->s, "<text x=\"~\" y=\"~\" text-anchor=\"end\">", LEFT - 8, y + 4);
        heed__axis_label(p->s, p->y, p->y->tick[i], 0);
        heed__string_add(p->s, "</text>\n");
    }
    for (int i = 0; i < p->x->ticks; i++) {
        double x = x_of(p, p->x->tick[i]);
        HEED_DRAW(p->s, "<path class=\"grid\" d=\"M~ ~v~\"/>", x, p->top, PLOT);
        if (!last)
            continue;
        HEED_DRAW(p->s, "<text x=\"~\" y=\"~\" text-anchor=\"middle\">", x, p->top + PLOT + 18);
        heed__axis_label(p->s, p->x, p->x->tick[i], 0);
        heed__string_add(p->s, "</text>\n");
    }
    HEED_DRAW(p->s, "<path class=\"axis\" d=\"M~ ~H~\"/>\n", LEFT, p->top + PLOT, WIDTH - RIGHT);
}

static void add_panel(heed__string *s, const heed_curve_panel *panel, const heed__axis *x,
                      double top, bool last, heed__string *part)
{
    heed__axis y = heed__axis_new(panel->logarithmic);
    struct plot p = {s, x, &y, top + HEAD};
    int64_t points = 0;
    for (int k = 0; k < panel->count; k++)
        for (int64_t i = 0; i < panel->curves[k].count; i++)
            if (shown(&p, &panel->curves[k], i)) {
                heed__axis_include(&y, panel->curves[k].y[i]);
                points++;
            }
    heed__axis_finish(&y, 5, true);
    HEED_DRAW(s, "<g><text class=\"name\" x=\"~\" y=\"~\">", LEFT, p.top - 11);
    heed__draw_fitted(s, panel->title, 26);
    heed__string_add(s, "</text>\n");
    add_frame(&p, points == 0, last);
    add_legend(&p, panel, part);
    if (!points)
        HEED_DRAW(s, "<text x=\"~\" y=\"~\" text-anchor=\"middle\">nothing to show yet</text>\n",
                  (LEFT + WIDTH - RIGHT) / 2, p.top + PLOT / 2);
    for (int k = 0; k < panel->count; k++)
        add_curve(&p, &panel->curves[k], k % COLOURS);
    heed__string_add(s, "</g>\n");
}

/* The x axis is that of every point that some panel shows. */
static heed__axis common_axis(const heed_curve_panel *panels, int count)
{
    heed__axis x = heed__axis_new(false);
    for (int j = 0; j < count; j++) {
        heed__axis y = heed__axis_new(panels[j].logarithmic);
        for (int k = 0; k < panels[j].count; k++) {
            const heed_curve *c = &panels[j].curves[k];
            for (int64_t i = 0; i < c->count; i++)
                if (heed__axis_takes(&y, c->y[i]))
                    heed__axis_include(&x, c->x[i]);
        }
    }
    heed__axis_finish(&x, 10, false);
    return x;
}

heed_status heed_curves_svg(const char *title, const char *x_label, const heed_curve_panel *panels,
                            int count, heed_arena *arena, const char **svg, heed_error *err)
{
    if (!svg)
        return heed__missing(err, "place for a picture");
    *svg = NULL;
    if (count < 1)
        return heed__fail(err, HEED_ARGUMENT, "curves: %d panels, expected at least 1", count);
    heed__string s, part;
    heed__draw_begin(&s, arena);
    heed__draw_begin(&part, arena);
    heed__axis x = common_axis(panels, count);
    double height = TOP + count * (HEAD + PLOT + GAP) - GAP + BOTTOM + 8;
    heed__svg_begin(&s, title, WIDTH, height, style, dark_style, false);
    HEED_DRAW(&s, "<text class=\"title\" x=\"~\" y=\"34\">", LEFT);
    heed__draw_fitted(&s, title, (WIDTH - LEFT - RIGHT) / 18);
    heed__string_add(&s, "</text>\n");
    for (int j = 0; j < count; j++)
        add_panel(&s, &panels[j], &x, TOP - 10 + j * (HEAD + PLOT + GAP), j == count - 1, &part);
    HEED_DRAW(&s, "<text x=\"~\" y=\"~\" text-anchor=\"end\">", WIDTH - RIGHT, height - 10);
    heed__draw_fitted(&s, x_label, (WIDTH - LEFT - RIGHT) / 12);
    heed__string_add(&s, "</text>\n</svg>\n");
    if (part.failed)
        return heed__string_status(&part, err);
    return heed__draw_end(&s, svg, err);
}
