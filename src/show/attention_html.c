/* attention_html.c: an attention picture as an HTML page: the data as JSON, and page.html, which
 * draws it.  Probabilities are in thousandths, -1 if not finite. */
#include "base/error.h"
#include "show/draw.h"
#include "show/picture.h"
#include "show/shade.h"

/* The text of page.html, made into a C string by the Makefile. */
static const char page[] =
#include "show/page.html.inc"
    ;

static void add_texts(heed__string *s, const char *const *text, int64_t count)
{
    heed__string_add(s, "[");
    for (int64_t i = 0; i < count; i++) {
        heed__string_add(s, i ? "," : "");
        heed__draw_json(s, text[i]);
    }
    heed__string_add(s, "]");
}

static void add_map(heed__string *s, const heed_attention_map *m)
{
    heed__string_format(s, "\"kind\":%d,\"layer\":%d,\"head\":%d,\"weights\":[", (int)m->kind,
                        m->layer, m->head);
    for (int64_t i = 0; i < m->queries; i++)
        for (int64_t j = 0; j < m->keys; j++)
            heed__string_format(s, i || j ? ",%d" : "%d", heed__picture_thousandths(m, i, j));
    heed__string_add(s, "]}");
}

static void add_data(heed__string *s, const heed_attention_picture *p, const heed__large *large)
{
    static const char *const light[] = HEED_SHADES_LIGHT, *const dark[] = HEED_SHADES_DARK;
    heed__string_add(s, "{\"title\":");
    heed__draw_json(s, p->title);
    heed__string_add(s, ",\n\"light\":");
    add_texts(s, light, HEED_SHADES);
    heed__string_add(s, ",\n\"dark\":");
    add_texts(s, dark, HEED_SHADES);
    heed__string_add(s, ",\n\"labels\":[");
    add_texts(s, p->source.text, p->source.count);
    heed__string_add(s, ",\n");
    add_texts(s, p->target.text, p->target.count);
    heed__string_add(s, ",\n");
    add_texts(s, p->read.text, p->read.count);
    heed__string_format(s, "],\n\"first\":%lld,\n\"maps\":[",
                        (long long)(large->index < 0 ? p->count : large->index));
    for (int64_t i = 0; i < p->count; i++) {
        heed__string_add(s, i ? ",\n{" : "{");
        if (i == large->index && *large->note) {
            heed__string_add(s, "\"note\":");
            heed__draw_json(s, large->note);
            heed__string_add(s, ",");
        }
        add_map(s, &p->maps[i]);
    }
    if (large->index < 0) { /* an average comes after the heads, with its own name */
        heed__string_add(s, ",\n{\"name\":");
        heed__draw_json(s, large->title);
        heed__string_add(s, ",\"note\":");
        heed__draw_json(s, large->note);
        heed__string_add(s, ",");
        add_map(s, &large->map);
    }
    heed__string_add(s, "]}\n");
}

heed_status heed_attention_html(const heed_attention_picture *p, int64_t large, heed_arena *arena,
                                const char **html, heed_error *err)
{
    if (!p)
        return heed__missing(err, "attention picture");
    *html = NULL;
    heed__large map;
    heed_status status = heed__large_map(p, large, arena, &map, err);
    if (status)
        return status;
    heed__string s;
    heed__draw_begin(&s, arena);
    heed__string_add(&s, "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n"
                         "<meta name=\"viewport\" content=\"width=device-width\">\n<title>");
    heed__draw_escaped(&s, p->title);
    heed__string_add(&s, "</title>\n<script type=\"application/json\" id=\"data\">");
    add_data(&s, p, &map);
    heed__string_add(&s, "</script>\n");
    heed__string_add(&s, page);
    heed__string_add(&s, "</html>\n");
    return heed__draw_end(&s, html, err);
}
