/* svg.h: what the SVG pictures share: the head of the file, and maps of shaded cells. */
#ifndef HEED_SHOW_SVG_H
#define HEED_SHOW_SVG_H

#include "show/draw.h"

/* The root element and the background, with style rules for light and dark pages; with `shades`
 * also those of the cells.  The caller closes it. */
void heed__svg_begin(heed__string *s, const char *title, double width, double height,
                     const char *light, const char *dark, bool shades);

/* The shade (shade.h) of a cell; 0 is the background, -1 a value that is not finite. */
typedef int heed__cell_shade(const void *map, int64_t row, int64_t col);
/* rows x cols cells that fill a rectangle: a path for each shade, its runs merged. */
void heed__svg_cells(heed__string *s, heed__cell_shade *shade, const void *map, int64_t rows,
                     int64_t cols, double x, double y, double w, double h);

#endif
