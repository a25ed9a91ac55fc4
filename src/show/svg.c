/* svg.c: the head of a picture, and maps of shaded cells. */
#include "show/svg.h"
#include "show/shade.h"

void heed__svg_begin(heed__string *s, const char *title, double width, double height,
                     const char *light, const char *dark, bool shades)
{
    static const char *const light_shades[] = HEED_SHADES_LIGHT, *const dark_shades[] =
                                                                     HEED_SHADES_DARK;
    HEED_DRAW(s,
              "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"~\" height=\"~\" "
              "viewBox=\"0 0 ~ ~\" role=\"img\">\n<title>",
              width, height, width, height);
    heed__draw_escaped(s, title);
    heed__string_format(s, "</title>\n<style>%s", light);
    for (int i = 0; shades && i < HEED_SHADES; i++)
        heed__string_format(s, ".w%d{fill:%s}", i, light_shades[i]);
    heed__string_format(s, "@media(prefers-color-scheme:dark){%s", dark);
    for (int i = 0; shades && i < HEED_SHADES; i++)
        heed__string_format(s, ".w%d{fill:%s}", i, dark_shades[i]);
    heed__string_add(s, "}</style>\n<rect class=\"page\" width=\"100%\" height=\"100%\"/>\n");
}

/* The runs of one shade, in units of one cell. */
static void add_shade(heed__string *s, heed__cell_shade *shade, const void *map, int64_t rows,
                      int64_t cols, int wanted)
{
    bool any = false;
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0, from; j < cols; j++) {
            for (from = j; j < cols && shade(map, i, j) == wanted; j++) {
            }
            if (j == from)
                continue;
            if (!any && wanted < 0)
                heed__string_add(s, "<path class=\"nan\" d=\"");
            else if (!any)
                heed__string_format(s, "<path class=\"w%d\" d=\"", wanted);
            any = true;
            heed__string_format(s, "M%lld %lldh%lldv1h-%lldz", (long long)from, (long long)i,
                                (long long)(j - from), (long long)(j - from));
        }
    if (any)
        heed__string_add(s, "\"/>");
}

void heed__svg_cells(heed__string *s, heed__cell_shade *shade, const void *map, int64_t rows,
                     int64_t cols, double x, double y, double w, double h)
{
    HEED_DRAW(s, "<g shape-rendering=\"crispEdges\" transform=\"translate(~ ~) scale(", x, y);
    heed__draw_number(s, w / (double)cols, 6);
    heed__string_add(s, " ");
    heed__draw_number(s, h / (double)rows, 6);
    heed__string_add(s, ")\">");
    for (int wanted = -1; wanted < HEED_SHADES; wanted++)
        if (wanted)
            add_shade(s, shade, map, rows, cols, wanted);
    heed__string_add(s, "</g>\n");
}
