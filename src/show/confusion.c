/* confusion.c: a confusion matrix as one SVG: a row for each right label, a column for each that
 * was said; a cell's shade is its share of the row, its number how many there are. */
#include "show/draw.h"
#include "show/shade.h"

#include <heed/show.h>

#define MOST_LABELS 200
#define LEFT_MOST 180.0
#define TOP 70.0
#define FONT 12.0

struct drawing {
    heed__string s;
    double cell, left, top;
    bool numbers; /* there is space for them */
};

static void draw_row(struct drawing *d, heed_labels labels, const int64_t *count, int64_t i)
{
    static const char *const shades[] = HEED_SHADES_LIGHT;
    int64_t all = 0;
    const double y = d->top + (double)i * d->cell;
    for (int64_t k = 0; k < labels.count; k++)
        all += count[k];
    HEED_DRAW(&d->s, "<text x='~' y='~' text-anchor='end'>", d->left - 6, y + d->cell / 2 + 4);
    heed__draw_fitted(&d->s, labels.text[i], (d->left - 10) / FONT);
    heed__string_add(&d->s, "</text>\n");
    for (int64_t k = 0; k < labels.count; k++) {
        const double share = all ? (double)count[k] / (double)all : 0;
        const double x = d->left + (double)k * d->cell;
        const int shade = heed__shade(share);
        HEED_DRAW(&d->s, "<rect x='~' y='~' width='~' height='~'", x, y, d->cell, d->cell);
        heed__string_format(&d->s, " fill='%s' stroke='#fff'/>\n", shades[shade]);
        if (!d->numbers || !count[k])
            continue;
        HEED_DRAW(&d->s, "<text x='~' y='~' text-anchor='middle'", x + d->cell / 2,
                  y + d->cell / 2 + 4);
        heed__string_format(&d->s, " fill='%s'>%lld</text>\n",
                            shade > HEED_SHADES / 2 ? "#fff" : "#222", (long long)count[k]);
    }
}

static void draw_columns(struct drawing *d, heed_labels labels)
{
    for (int64_t k = 0; k < labels.count; k++) {
        const double x = d->left + ((double)k + 0.5) * d->cell;
        HEED_DRAW(&d->s, "<text x='~' y='~' transform='rotate(-60 ~ ~)'>", x, d->top - 6, x,
                  d->top - 6);
        heed__draw_fitted(&d->s, labels.text[k], (d->top - 34) / 0.87 / FONT);
        heed__string_add(&d->s, "</text>\n");
    }
}

heed_status heed_confusion_svg(const char *title, heed_labels labels, const int64_t *count,
                               heed_arena *arena, const char **svg, heed_error *err)
{
    if (!title || !count || !arena || !svg)
        return heed__missing(err, "confusion matrix");
    if (labels.count < 1 || labels.count > MOST_LABELS)
        return heed__fail(err, HEED_ARGUMENT, "a confusion matrix of %lld labels, expected 1 to %d",
                          (long long)labels.count, MOST_LABELS);
    struct drawing d = {.left = 40, .numbers = labels.count <= 30};
    d.cell = labels.count <= 12 ? 48 : labels.count <= 30 ? 34 : 14;
    double widest = 0;
    for (int64_t i = 0; i < labels.count; i++) {
        const double width = heed__draw_width(labels.text[i]) * FONT;
        widest = width > widest ? width : widest;
    }
    d.left = widest + 16 < LEFT_MOST ? widest + 16 : LEFT_MOST;
    d.top = TOP + (widest < 120 ? widest : 120) * 0.87;
    const double side = (double)labels.count * d.cell;
    const double width = d.left + side + 80 > 420 ? d.left + side + 80 : 420;
    heed__draw_begin(&d.s, arena);
    HEED_DRAW(&d.s, "<svg xmlns='http://www.w3.org/2000/svg' width='~' height='~' ", width,
              d.top + side + 16);
    heed__string_add(&d.s, "font-family='sans-serif' font-size='12'>\n"
                           "<rect width='100%' height='100%' fill='#fff'/>\n"
                           "<text x='12' y='24' font-size='15'>");
    heed__draw_escaped(&d.s, title);
    heed__string_add(&d.s, "</text>\n");
    draw_columns(&d, labels);
    for (int64_t i = 0; i < labels.count; i++)
        draw_row(&d, labels, count + i * labels.count, i);
    heed__string_add(&d.s, "</svg>\n");
    return heed__draw_end(&d.s, svg, err);
}
