/* attention_text.c: one attention map for a terminal.
 *
 *                 1  2  3  4
 *           Sie  ██  ·  ·  ·   She
 *          isst   ·  ▒ ▓█  ·   eating
 *
 * A cell has three columns, two or one, whatever fits beside the labels; columns that do not fit go
 * into further blocks below.  Widths are those of the terminal, where a Chinese character has two
 * columns. */
#include "base/error.h"
#include "show/draw.h"
#include "show/picture.h"

#include <math.h>
#include <string.h>

#define USUAL_WIDTH 80
#define LEAST_WIDTH 24
#define WIDEST_TOLD 16 /* columns for the word on the right */

struct grid {
    heed__string *s;
    const heed_attention_map *map;
    const heed_labels *rows, *columns;
    int width, label, cell; /* of the terminal, the row labels, a cell */
    int told;               /* of the words on the right; 0 if they do not fit */
    bool colour;
};

static int widest(const heed_labels *l, int most)
{
    int width = 1;
    for (int64_t i = 0; i < l->count && width < most; i++) {
        int columns = heed__draw_columns(l->text[i]);
        width = columns > width ? columns : width;
    }
    return width < most ? width : most;
}

/* Whole characters of text up to `most` columns, an ellipsis if truncated.  Control characters are
 * dropped, for the terminal's sake.  Returns the columns. */
static int add_cut(heed__string *s, const char *text, int most, bool ascii)
{
    bool cut = heed__draw_columns(text) > most;
    int used = 0, space = cut ? most - 1 : most;
    int32_t c;
    for (int n; (n = heed__draw_next(text, &c)) > 0; text += n) {
        char letter[8] = "";
        memcpy(letter, text, (size_t)n);
        int columns = heed__draw_columns(letter);
        if (used + columns > space)
            break;
        bool control = c < 0x20 || (c >= 0x7F && c < 0xA0);
        heed__string_add(s, control ? "" : c == 0xFFFD ? "\uFFFD" : letter);
        used += columns;
    }
    if (cut)
        heed__string_add(s, ascii ? "~" : "\u2026");
    return used + cut;
}

static void add_spaces(heed__string *s, int n)
{
    heed__string_fill(s, ' ', n > 0 ? (size_t)n : 0);
}

/* Words of an ASCII text, in lines that fit. */
static void add_paragraph(heed__string *s, const char *text, int width)
{
    int at = 0;
    while (*text) {
        int n = (int)strcspn(text, " ");
        if (at > 0 && at + 1 + n > width) {
            heed__string_add(s, "\n");
            at = 0;
        }
        heed__string_add(s, at ? " " : "");
        heed__string_add_bytes(s, text, (size_t)n);
        at += n + (at > 0);
        text += n + (text[n] == ' ');
    }
    heed__string_add(s, "\n");
}

static void add_cell(const struct grid *g, double w, bool most)
{
    static const struct {
        double below;
        const char *glyph;
        int colour;
    } shade[] = {{0.05, "·", 244}, {0.15, "░", 110}, {0.35, "▒", 74}, {0.6, "▓", 32}, {2, "█", 26}};
    int k = 0;
    while (w >= shade[k].below)
        k++;
    if (!g->colour || w < 0) {
        add_spaces(g->s, g->cell - 1);
        heed__string_format(g->s, "%c", w < 0 ? '?' : w < 0.1 ? '.' : '0' + (int)fmin(w * 10, 9));
        return;
    }
    int glyphs = g->cell > 1 && k > 0 ? 2 : 1;
    add_spaces(g->s, g->cell - glyphs);
    heed__string_format(g->s, "\033[38;5;%dm%s%s\033[0m", most ? 208 : shade[k].colour,
                        shade[k].glyph, glyphs > 1 ? shade[k].glyph : "");
}

/* Numbers are right-aligned to their cells; every second or fifth if they would touch. */
static void add_numbers(const struct grid *g, int64_t from, int64_t to)
{
    int64_t n = g->columns->count;
    int step = g->cell == 1 ? 5 : g->cell == 2 ? (n > 9 ? 2 : 1) : n > 99 ? 2 : 1;
    add_spaces(g->s, g->label + 1);
    int at = 0; /* columns written */
    for (int64_t j = from; j < to; j++) {
        int end = (int)(j - from + 1) * g->cell, digits = 0;
        for (int64_t rest = j + 1; rest; rest /= 10)
            digits++;
        if ((j + 1) % step || end - digits < at)
            continue;
        add_spaces(g->s, end - digits - at);
        heed__string_format(g->s, "%lld", (long long)(j + 1));
        at = end;
    }
    heed__string_add(g->s, "\n");
}

static void add_row(const struct grid *g, int64_t i, int64_t from, int64_t to)
{
    const char *label = g->rows->text[i];
    int columns = heed__draw_columns(label);
    add_spaces(g->s, g->label - columns);
    int used = add_cut(g->s, label, g->label, !g->colour);
    add_spaces(g->s, (columns < g->label ? columns : g->label) - used + 1);
    int64_t most = heed__strongest(g->map, i);
    for (int64_t j = from; j < to; j++)
        add_cell(g, heed__picture_cell(g->map, i, j), j == most);
    if (g->told && most >= 0) {
        add_spaces(g->s, 2);
        add_cut(g->s, g->columns->text[most], g->told, !g->colour);
    }
    heed__string_add(g->s, "\n");
}

static void add_legend(const struct grid *g)
{
    int at = 0;
    for (int64_t j = 0; j < g->columns->count; j++) {
        int digits = 0;
        for (int64_t rest = j + 1; rest; rest /= 10)
            digits++;
        int space = g->width - digits - 1;
        int columns = heed__draw_columns(g->columns->text[j]);
        columns = digits + 1 + (columns < space ? columns : space);
        if (at > 0 && at + 2 + columns > g->width) {
            heed__string_add(g->s, "\n");
            at = 0;
        }
        heed__string_add(g->s, at ? "  " : "");
        heed__string_format(g->s, "%lld ", (long long)(j + 1));
        add_cut(g->s, g->columns->text[j], space, !g->colour);
        at += columns + (at > 0 ? 2 : 0);
    }
    heed__string_add(g->s, "\n");
}

/* The widest cells that fit, first with the words on the right. */
static void fit(struct grid *g)
{
    g->label = widest(g->rows, g->width / 3);
    int told = widest(g->columns, WIDEST_TOLD);
    int64_t space = g->width - g->label - 1;
    for (int with = 1; with >= 0; with--)
        for (int cell = 3; cell >= 1; cell--)
            if (g->columns->count <= (space - with * (2 + told)) / cell) {
                g->cell = cell;
                g->told = with * told;
                return;
            }
    g->cell = 2;
    g->told = 0;
}

heed_status heed_attention_text(const heed_attention_picture *p, int64_t large, int width,
                                bool colour, heed_arena *arena, const char **text, heed_error *err)
{
    if (!p)
        return heed__missing(err, "attention picture");
    *text = NULL;
    heed__large map;
    heed_status status = heed__large_map(p, large, arena, &map, err);
    if (status)
        return status;
    heed__string s;
    heed__draw_begin(&s, arena);
    width = width <= 0 ? USUAL_WIDTH : width < LEAST_WIDTH ? LEAST_WIDTH : width;
    struct grid g = {.s = &s,
                     .map = &map.map,
                     .rows = heed__row_labels(p, map.map.kind),
                     .columns = heed__column_labels(p, map.map.kind),
                     .width = width,
                     .colour = colour};
    fit(&g);
    add_paragraph(&s, map.title, width);
    if (*map.note)
        add_paragraph(&s, map.note, width);
    int64_t each = (g.width - g.label - 1 - (g.told ? 2 + g.told : 0)) / g.cell;
    for (int64_t from = 0; from < g.columns->count; from += each) {
        int64_t to = from + each < g.columns->count ? from + each : g.columns->count;
        heed__string_add(&s, "\n");
        add_numbers(&g, from, to);
        for (int64_t i = 0; i < g.rows->count; i++)
            add_row(&g, i, from, to);
    }
    heed__string_add(&s, "\n");
    add_legend(&g);
    if (!colour)
        add_paragraph(&s, "probabilities in tenths; . is below one", width);
    return heed__draw_end(&s, text, err);
}
