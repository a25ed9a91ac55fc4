/* reading.c: a sentence as it is read, as one SVG: a line for each word, that word marked, and
 * those before it shaded by the weight that it gives them. */
#include "base/error.h"
#include "show/svg.h"

#include <heed/show.h>
#include <math.h>

#define SIZE 15.0 /* of the letters */
#define GAP 7.0   /* between words */
#define LINE 27.0
#define MARGIN 28.0
#define TOP 62.0 /* the title */
#define PAD 3.0  /* of the shade, around its word */

static const char style[] =
    "text{font-family:system-ui,-apple-system,'Segoe UI','Helvetica Neue',Arial,'Noto Sans',"
    "sans-serif;font-size:15px;fill:#16191d}.page{fill:#fff}"
    ".title{font-size:18px;font-weight:600}.now{fill:#c2410c;font-weight:600}"
    ".seen{fill:#3b8fd1}";
static const char dark_style[] =
    "text{fill:#eef1f4}.page{fill:#14171b}.now{fill:#ff9a55}.seen{fill:#2f7fc0}";

static double width_of(const char *word)
{
    return SIZE * heed__draw_width(word);
}

static void add_line(heed__string *s, heed_labels words, const heed_real *weights, int64_t i)
{
    const double top = TOP + (double)i * LINE;
    double left = MARGIN;
    for (int64_t j = 0; j <= i; j++) {
        const double w = j < i ? (double)weights[i * words.count + j] : 0,
                     width = width_of(words.text[j]);
        if (isfinite(w) && w > 0)
            HEED_DRAW(s,
                      "<rect class=\"seen\" x=\"~\" y=\"~\" width=\"~\" height=\"~\" rx=\"3\" "
                      "fill-opacity=\"~\"/>",
                      left - PAD, top, width + 2 * PAD, LINE - 4, fmin(w, 1));
        HEED_DRAW(s, j < i ? "<text x=\"~\" y=\"~\">" : "<text class=\"now\" x=\"~\" y=\"~\">",
                  left, top + 17);
        heed__draw_escaped(s, words.text[j]);
        heed__string_add(s, "</text>");
        left += width + GAP;
    }
    heed__string_add(s, "\n");
}

heed_status heed_reading_svg(const char *title, heed_labels words, const heed_real *weights,
                             heed_arena *arena, const char **svg, heed_error *err)
{
    double width = 2 * MARGIN;
    if (!svg)
        return heed__missing(err, "place for a picture");
    *svg = NULL;
    if (words.count < 1 || !weights)
        return heed__fail(err, HEED_ARGUMENT, "reading: there are no words, or no weights");
    for (int64_t i = 0; i < words.count; i++)
        width += width_of(words.text[i]) + GAP;
    heed__string s;
    heed__draw_begin(&s, arena);
    width = fmax(width, 480);
    heed__svg_begin(&s, title, width, TOP + (double)words.count * LINE + MARGIN / 2, style,
                    dark_style, false);
    HEED_DRAW(&s, "<text class=\"title\" x=\"~\" y=\"34\">", MARGIN);
    heed__draw_fitted(&s, title, (width - 2 * MARGIN) / 18);
    heed__string_add(&s, "</text>\n");
    for (int64_t i = 0; i < words.count; i++)
        add_line(&s, words, weights, i);
    heed__string_add(&s, "</svg>\n");
    return heed__draw_end(&s, svg, err);
}
