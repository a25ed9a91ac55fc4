/* image_grid.c: pictures side by side as one SVG, each embedded as a PNG of its own pixels; with
 * weights over a coarser grid, what has little weight is dark. */
#include "base/min_max.h"
#include "show/png_write.h"
#include "show/svg.h"

#include <heed/show.h>
#include <math.h>

#define GAP 14.0 /* between pictures */
#define MARGIN 28.0
#define TOP 62.0  /* the title */
#define HEAD 20.0 /* title of a picture */
#define WIDEST 8192

static const char style[] =
    "text{font-family:system-ui,-apple-system,'Segoe UI','Helvetica Neue',Arial,'Noto Sans',"
    "sans-serif;font-size:12px;fill:#4a5058}.page{fill:#fff}"
    ".title{font-size:18px;font-weight:600;fill:#16191d}"
    ".frame{stroke:#d5dadf;stroke-width:1;fill:none}image{image-rendering:pixelated}";
static const char dark_style[] =
    "text{fill:#a9b1bb}.page{fill:#14171b}.title{fill:#eef1f4}.frame{stroke:#3a4149}";

/* The weight at a pixel, between the middles of the four cells around it. */
static double weight_at(const heed_image_cell *c, int64_t y, int64_t x)
{
    const double v = fmin(fmax(((double)y + 0.5) * (double)c->rows / (double)c->height - 0.5, 0),
                          (double)(c->rows - 1)),
                 u = fmin(fmax(((double)x + 0.5) * (double)c->cols / (double)c->width - 0.5, 0),
                          (double)(c->cols - 1));
    const int64_t top = (int64_t)v, left = (int64_t)u, bottom = top + (top + 1 < c->rows),
                  right = left + (left + 1 < c->cols);
    const double fy = v - (double)top, fx = u - (double)left;
    return (1 - fy) * ((1 - fx) * (double)c->weights[top * c->cols + left] +
                       fx * (double)c->weights[top * c->cols + right]) +
           fy * ((1 - fx) * (double)c->weights[bottom * c->cols + left] +
                 fx * (double)c->weights[bottom * c->cols + right]);
}

#define DARKEST 0.15 /* of a pixel without weight */

/* A grey picture's background would stay black: there, weight glows. */
static const double glow[3] = {1.0, 0.55, 0.1};
#define GLOW 0.6

static int64_t channels_of(const heed_image_cell *c)
{
    return c->weights ? 3 : c->channels;
}

/* Pixels are repeated, so that programs that smooth small pictures have nothing to smooth. */
static int64_t repeats(const heed_image_cell *c, double side)
{
    const int64_t n = (int64_t)(side / (double)c->width);
    return n < 1 ? 1 : n;
}

static uint8_t to_byte(double v)
{
    return isfinite(v) ? (uint8_t)(fmin(fmax(v, 0), 1) * 255 + 0.5) : 0;
}

static void fill_pixels(const heed_image_cell *c, int64_t n, uint8_t *to)
{
    double most = 0;
    for (int64_t i = 0; c->weights && i < c->rows * c->cols; i++)
        most = fmax(most, (double)c->weights[i]);
    for (int64_t y = 0; y < c->height * n; y++)
        for (int64_t x = 0; x < c->width * n; x++) {
            const int64_t at = (y / n * c->width + x / n) * c->channels;
            const double weight = most > 0 ? fmax(weight_at(c, y / n, x / n), 0) / most : 1;
            for (int64_t k = 0; k < channels_of(c); k++) {
                double v = ((double)c->pixels[at + (c->channels == 3 ? k : 0)] - c->low) /
                           (c->high - c->low);
                if (c->weights) {
                    v *= DARKEST + (1 - DARKEST) * weight;
                    v += c->channels == 1 ? GLOW * glow[k] * weight * (1 - v) : 0;
                }
                *to++ = to_byte(v);
            }
        }
}

static heed_status check(const heed_image_cell *c, int64_t count, int64_t across, heed_error *err)
{
    if (count < 1 || across < 1)
        return heed__fail(err, HEED_ARGUMENT,
                          "%lld pictures, %lld side by side, expected 1 at least", (long long)count,
                          (long long)across);
    for (int64_t i = 0; i < count; i++)
        if (c[i].height < 1 || c[i].width < 1 || c[i].height > WIDEST || c[i].width > WIDEST ||
            (c[i].channels != 1 && c[i].channels != 3) || !(c[i].low < c[i].high) ||
            (c[i].weights && (c[i].rows < 1 || c[i].cols < 1)))
            return heed__fail(err, HEED_ARGUMENT,
                              "picture %lld is %lld x %lld with %lld channels, from %g to %g, "
                              "expected 1 to %d pixels, 1 or 3 channels, and values that differ",
                              (long long)i, (long long)c[i].width, (long long)c[i].height,
                              (long long)c[i].channels, c[i].low, c[i].high, WIDEST);
    return HEED_OK;
}

static heed_status add_cell(heed__string *s, const heed_image_cell *c, double left, double top,
                            double width, double height, heed_arena *arena, heed_error *err)
{
    const int64_t n = repeats(c, width);
    uint8_t *pixels =
        heed_arena_allocate(arena, (size_t)(c->height * c->width * n * n * channels_of(c)));
    if (!pixels)
        return heed__fail(err, HEED_MEMORY, "out of memory for a picture");
    fill_pixels(c, n, pixels);
    if (c->title) {
        HEED_DRAW(s, "<text x=\"~\" y=\"~\">", left, top - 6);
        heed__draw_fitted(s, c->title, width / 12);
        heed__string_add(s, "</text>\n");
    }
    HEED_DRAW(s, "<image x=\"~\" y=\"~\" width=\"~\" height=\"~\" href=\"", left, top, width,
              height);
    const heed_status status =
        heed__png_embed(s, pixels, c->height * n, c->width * n, channels_of(c), arena, err);
    HEED_DRAW(s, "\"/>\n<rect class=\"frame\" x=\"~\" y=\"~\" width=\"~\" height=\"~\"/>\n", left,
              top, width, height);
    return status;
}

/* Where a line of cells ends that begins at `top`; *first: its pictures, below their titles. */
static double line_end(const heed_image_cell *c, int64_t count, double side, double top,
                       double *first)
{
    double tallest = 0;
    bool titled = false;
    for (int64_t i = 0; i < count; i++) {
        tallest = fmax(tallest, side * (double)c[i].height / (double)c[i].width);
        titled = titled || c[i].title;
    }
    *first = top + (titled ? HEAD : 0);
    return *first + tallest + GAP;
}

heed_status heed_images_svg(const char *title, const heed_image_cell *cells, int64_t count,
                            int64_t across, double side, heed_arena *arena, const char **svg,
                            heed_error *err)
{
    if (!svg)
        return heed__missing(err, "place for a picture");
    heed__string s;
    *svg = NULL;
    heed_status status = check(cells, count, across, err);
    if (status)
        return status;
    double height = TOP, first;
    for (int64_t i = 0; i < count; i += across)
        height = line_end(cells + i, heed__min(across, count - i), side, height, &first);
    const double width =
        fmax(2 * MARGIN + (double)across * (side + GAP) - GAP,
             2 * MARGIN + 20 * heed__draw_width(title)); /* the title whole, and some air */
    heed__draw_begin(&s, arena);
    heed__svg_begin(&s, title, width, height + MARGIN - GAP, style, dark_style, false);
    HEED_DRAW(&s, "<text class=\"title\" x=\"~\" y=\"~\">", MARGIN, 36);
    heed__draw_escaped(&s, title);
    heed__string_add(&s, "</text>\n");
    double top = TOP;
    for (int64_t i = 0; i < count; i += across) {
        const int64_t n = heed__min(across, count - i);
        const double end = line_end(cells + i, n, side, top, &first);
        for (int64_t k = i; k < i + n && !status; k++)
            status = add_cell(&s, &cells[k], MARGIN + (double)(k - i) * (side + GAP), first, side,
                              side * (double)cells[k].height / (double)cells[k].width, arena, err);
        top = end;
    }
    heed__string_add(&s, "</svg>\n");
    return status ? status : heed__draw_end(&s, svg, err);
}
