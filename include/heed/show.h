/* show.h: attention and training curves as pictures: SVG, HTML, and text for a terminal.
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
/* maps as heed_model_attention gives them for one sentence; a map's rows are labelled by the side
 * its queries come from, its columns by that of its keys. */
typedef struct heed_attention_picture {
    const char *title;
    heed_labels source, target;
    const heed_attention_map *maps;
    int64_t count;
} heed_attention_picture;
/* Adds up rows and columns of every map by word: word_of (piece -> word), `words` labels.  Rows of
 * the result are means over the pieces of the query word, columns sums over the key word's. */
heed_status heed_attention_by_words(const heed_attention_picture *in, const int32_t *source_word,
                                    heed_labels source_words, const int32_t *target_word,
                                    heed_labels target_words, heed_arena *arena,
                                    heed_attention_picture *out, heed_error *err);
/* One SVG: an overview grid of all heads (a row a layer) for each kind of attention, and one large
 * map with legible labels.  large: index into maps, or -1 for the average of the cross-attention
 * heads whose alignment is sharpest. */
heed_status heed_attention_svg(const heed_attention_picture *p, int64_t large, heed_arena *arena,
                               const char **svg, heed_error *err);
/* The same as a page: a head clicked on in the overview is shown large. */
heed_status heed_attention_html(const heed_attention_picture *p, int64_t large, heed_arena *arena,
                                const char **html, heed_error *err);
/* One map in the terminal: rows are target words, columns numbered source words with a legend;
 * aligned also with double-width signs.  width: of the terminal; colour: 256-colour codes. */
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

#ifdef __cplusplus
}
#endif
#endif
