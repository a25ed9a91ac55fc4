/* show.h: attention, training curves, rows over time and sets of points as pictures: SVG, HTML, and
 * text for a terminal.
 *
 * Pictures are self-contained (no scripts or fonts from elsewhere) and made from numbers and labels
 * alone.  Results are texts in the arena. */
#ifndef HEED_SHOW_H
#define HEED_SHOW_H

#include <heed/attention.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct heed_labels {
    const char *const *text; /* UTF-8, one a row or column */
    int64_t count;
} heed_labels;
/* Maps as heed_model_attention gives them for one sentence.  A decoder's row is labelled by what it
 * writes at that place, and the columns of its self-attention by what it has read by then, which is
 * one further back. */
typedef struct heed_attention_picture {
    const char *title;
    heed_labels source; /* x1 .. xm EOS */
    heed_labels target; /* y1 .. yn EOS, what the decoder writes */
    heed_labels read;   /* BOS y1 .. yn, what it reads */
    const heed_attention_map *maps;
    int64_t count;
} heed_attention_picture;
/* Adds up rows and columns of every map by word.  Rows of the result are means over the pieces of
 * the query word, columns sums over the key word's, so that rows still add up to 1. */
typedef struct heed_label_words {
    const int32_t *word; /* one for each label: which word it belongs to */
    heed_labels words;   /* every one of them with at least one label */
} heed_label_words;
heed_status heed_attention_by_words(const heed_attention_picture *in, heed_label_words source,
                                    heed_label_words target, heed_label_words read,
                                    heed_arena *arena, heed_attention_picture *out,
                                    heed_error *err);
/* In what follows `large` says which map is shown large: an index into maps, or -1 for the average
 * of those cross-attention heads that together align the two texts best.  The picture says which it
 * is.  Weights that are not finite are marked as such. */

/* One SVG, made for a width of 1280: the large map with its labels and, for each row, the column
 * that weighs most; below it all heads of each kind of attention, a row a layer. */
heed_status heed_attention_svg(const heed_attention_picture *p, int64_t large, heed_arena *arena,
                               const char **svg, heed_error *err);
/* The same as a page: a head clicked on, or reached with the arrow keys, is shown large; weights
 * under the pointer are told. */
heed_status heed_attention_html(const heed_attention_picture *p, int64_t large, heed_arena *arena,
                                const char **html, heed_error *err);
/* The large map for a terminal of `width` columns: a line a row, columns numbered, with a legend;
 * aligned also with double-width signs.  colour: shades and 256-colour codes; else weights in
 * tenths and nothing beyond ASCII but the labels. */
heed_status heed_attention_text(const heed_attention_picture *p, int64_t large, int width,
                                bool colour, heed_arena *arena, const char **text, heed_error *err);

/* Training curves: panels one below the other over one axis.  What is not finite leaves a gap; of
 * very many points those are drawn that can be seen. */
typedef struct heed_curve {
    const char *name;
    const double *x, *y;
    int64_t count;
} heed_curve;
typedef struct heed_curve_panel {
    const char *title;
    const heed_curve *curves;
    int count;
    bool logarithmic; /* the y axis */
} heed_curve_panel;
heed_status heed_curves_svg(const char *title, const char *x_label, const heed_curve_panel *panels,
                            int count, heed_arena *arena, const char **svg, heed_error *err);

/* Rows over time: matrices of the same number of columns, a column a step, one below the other. */
typedef struct heed_heat_panel {
    const char *title;
    const heed_real *value; /* (rows,cols) */
    int64_t rows, cols;
    double low,
        high; /* what has the first and the last shade; a low of 0: weights, by their root */
} heed_heat_panel;
heed_status heed_heat_svg(const char *title, const char *x_label, const heed_heat_panel *panels,
                          int count, heed_arena *arena, const char **svg, heed_error *err);

/* Sets of points of the unit square with lines through them: what is right, and what was found. */
typedef struct heed_points_line {
    const int32_t *index; /* of points, in the order of the line */
    int64_t count;
    bool closed;
    bool found; /* else it is right */
} heed_points_line;
typedef struct heed_points_square {
    const char *title;
    const heed_real *points; /* (count,2) */
    int64_t count;
    const heed_points_line *line;
    int lines;
} heed_points_square;
heed_status heed_points_svg(const char *title, const heed_points_square *squares, int count,
                            heed_arena *arena, const char **svg, heed_error *err);

#ifdef __cplusplus
}
#endif
#endif
