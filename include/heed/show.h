/* show.h: attention, training curves, rows over time and sets of points as pictures: SVG, HTML, and
 * text for a terminal.
 *
 * Pictures are self-contained (no external scripts or fonts) and made from values and labels alone.
 * Results are texts in the arena. */
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
/* Maps as heed_model_attention gives them for one sentence.  A decoder's row is labelled by its
 * output at that position, and the columns of its self-attention by its input, which is one
 * position earlier. */
typedef struct heed_attention_picture {
    const char *title;
    heed_labels source; /* x1 .. xm EOS */
    heed_labels target; /* y1 .. yn EOS, the decoder's output */
    heed_labels read;   /* BOS y1 .. yn, its input */
    const heed_attention_map *maps;
    int64_t count;
} heed_attention_picture;
/* Joins rows and columns of every map by word.  Rows of the result are means over the pieces of the
 * query word, columns sums over the key word's, so that rows still add up to 1. */
typedef struct heed_label_words {
    const int32_t *word; /* one for each label: which word it belongs to */
    heed_labels words;   /* every one of them with at least one label */
} heed_label_words;
heed_status heed_attention_by_words(const heed_attention_picture *in, heed_label_words source,
                                    heed_label_words target, heed_label_words read,
                                    heed_arena *arena, heed_attention_picture *out,
                                    heed_error *err);
/* Below, `large` is the map that is shown large: an index into maps, or -1 for the average of those
 * cross-attention heads that together align the two texts best.  The picture says which it is.
 * Values that are not finite are marked. */

/* One SVG, made for a width of 1280: the large map with its labels and, for each row, the strongest
 * column; below it all heads of each kind of attention, one row per layer. */
heed_status heed_attention_svg(const heed_attention_picture *p, int64_t large, heed_arena *arena,
                               const char **svg, heed_error *err);
/* The same as a page: a head that is clicked on, or reached with the arrow keys, is shown large;
 * the value under the pointer is shown. */
heed_status heed_attention_html(const heed_attention_picture *p, int64_t large, heed_arena *arena,
                                const char **html, heed_error *err);
/* The large map for a terminal of `width` columns: one line per row, columns numbered, with a
 * legend; aligned also with double-width characters.  colour: shades and 256-colour codes; else
 * values in tenths and, except for labels, only ASCII. */
heed_status heed_attention_text(const heed_attention_picture *p, int64_t large, int width,
                                bool colour, heed_arena *arena, const char **text, heed_error *err);

/* Training curves: panels one below the other over one axis.  Values that are not finite leave a
 * gap; of very many points only the visible ones are drawn. */
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

/* Rows over time: matrices of the same number of columns, one column per step, one below the
 * other. */
typedef struct heed_heat_panel {
    const char *title;
    const heed_real *value; /* (rows,cols) */
    int64_t rows, cols;
    double low,
        high; /* values of the first and the last shade; low = 0: probabilities, by their square
               * root */
} heed_heat_panel;
heed_status heed_heat_svg(const char *title, const char *x_label, const heed_heat_panel *panels,
                          int count, heed_arena *arena, const char **svg, heed_error *err);

/* A sentence as it is read, a line for each word: that word marked, and those before it shaded by
 * the weight that it gives them.  weights (count,count): row i is what word i gives to each; what
 * stands at i and behind it is not read. */
heed_status heed_reading_svg(const char *title, heed_labels words, const heed_real *weights,
                             heed_arena *arena, const char **svg, heed_error *err);

/* How often the label of a row was answered by that of a column: count (labels,labels). */
heed_status heed_confusion_svg(const char *title, heed_labels labels, const int64_t *count,
                               heed_arena *arena, const char **svg, heed_error *err);

/* Which pairs of a query and a key may meet: a square for each pattern by position, `across` in a
 * line, `positions` wide; queries go down, keys to the right.  Dark: in the first head of the first
 * layer; light: in others alone. */
typedef struct heed_pattern_square {
    const char *title;
    heed_slot_spec pattern;
    bool causal;
} heed_pattern_square;
heed_status heed_patterns_svg(const char *title, const heed_pattern_square *squares, int64_t count,
                              int64_t positions, int64_t across, heed_arena *arena,
                              const char **svg, heed_error *err);

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

/* Pictures side by side, `across` in a line, each `side` wide and embedded as a PNG.  A value v is
 * shown between black (low) and white (high).  weights, where they are not NULL, lie over the
 * picture as a coarser grid (rows,cols), the largest of them leaving the pixels as they are: what
 * an attention looks at is bright. */
typedef struct heed_image_cell {
    const char *title;       /* or NULL */
    const heed_real *pixels; /* (height,width,channels), channels 1 or 3 */
    int64_t height, width, channels;
    double low, high;
    const heed_real *weights;
    int64_t rows, cols;
} heed_image_cell;
heed_status heed_images_svg(const char *title, const heed_image_cell *cells, int64_t count,
                            int64_t across, double side, heed_arena *arena, const char **svg,
                            heed_error *err);

#ifdef __cplusplus
}
#endif
#endif
