/* test_show.c: attention as SVG, as a page and in the terminal. */
#include "failing_allocator.h"
#include "picture_check.h"

#include <jansson.h>
#include <math.h>
#include <utf8proc.h>

enum { MOST = 64 };
static const char *const english[] = {"She", "is", "eating", "a", "green", "apple", ".", "</s>"};
static const char *const chinese[] = {"她", "正在", "吃", "一个", "绿色的", "苹果", "。", "</s>"};
static const char *const read_so_far[] = {"<s>",  "她",     "正在", "吃",
                                          "一个", "绿色的", "苹果", "。"};

/* layers x heads of each kind over 8 tokens; every row of map i has its weight at (row+i) mod 8. */
struct sample {
    heed_attention_map maps[MOST];
    heed_real weight[MOST][64];
    heed_attention_picture picture;
};

static void make_sample(struct sample *s, int layers, int heads)
{
    memset(s, 0, sizeof *s);
    int n = 0;
    for (int kind = 0; kind < 3; kind++)
        for (int layer = 0; layer < layers; layer++)
            for (int head = 0; head < heads; head++, n++) {
                for (int i = 0; i < 8; i++)
                    s->weight[n][i * 8 + (i + n) % 8] = 1;
                s->maps[n] = (heed_attention_map){
                    (heed_attention_kind)kind, layer, head, 0, 8, 8, s->weight[n]};
            }
    s->picture = (heed_attention_picture){.title = "She is eating a green apple.",
                                          .source = {english, 8},
                                          .target = {chinese, 8},
                                          .read = {read_so_far, 8},
                                          .maps = s->maps,
                                          .count = n};
}

static const char *svg_of(const heed_attention_picture *p, int64_t large)
{
    const char *svg;
    heed_error err = {0};
    if (heed_attention_svg(p, large, arena, &svg, &err))
        fail_msg("%s", err.text);
    check_xml(svg);
    return svg;
}

static json_t *html_data(const heed_attention_picture *p, int64_t large)
{
    const char *html;
    heed_error err = {0};
    if (heed_attention_html(p, large, arena, &html, &err))
        fail_msg("%s", err.text);
    assert_int_equal(occurrences(html, "</script>"), 2);
    assert_null(strstr(html, "src="));
    assert_null(strstr(html, "@import"));
    assert_int_equal(occurrences(html, "http"), 1); /* the name space of SVG */
    const char *data = strstr(html, "id=\"data\">");
    assert_non_null(data);
    data += strlen("id=\"data\">");
    json_t *json = json_loadb(data, (size_t)(strstr(data, "</script>") - data), 0, NULL);
    assert_non_null(json);
    return json;
}

static const char *text_of(const heed_attention_picture *p, int64_t large, int width, bool colour)
{
    const char *text;
    heed_error err = {0};
    if (heed_attention_text(p, large, width, colour, arena, &text, &err))
        fail_msg("%s", err.text);
    return text;
}

/* Catches a head that is missing from the overview, or labels that are. */
static void every_head(void **state)
{
    (void)state;
    struct sample s;
    make_sample(&s, 4, 5);
    static const char *const names[] = {"Encoder self-attention", "Decoder self-attention",
                                        "Cross-attention"};
    const char *svg = svg_of(&s.picture, 41);
    for (int kind = 0; kind < 3; kind++)
        for (int layer = 1; layer <= 4; layer++)
            for (int head = 1; head <= 5; head++) {
                char title[80];
                snprintf(title, sizeof title, "<title>%s, layer %d, head %d</title>", names[kind],
                         layer, head);
                assert_int_equal(occurrences(svg, title), 1);
            }
    assert_non_null(strstr(svg, ">Cross-attention, layer 1, head 2<"));
    for (int i = 0; i < 8; i++) {
        assert_non_null(strstr(svg, i == 7 ? "&lt;/s&gt;" : chinese[i]));
        assert_non_null(strstr(svg, i == 7 ? "&lt;/s&gt;" : english[i]));
    }
    json_t *data = html_data(&s.picture, 41);
    const json_t *maps = json_object_get(data, "maps");
    assert_int_equal(json_array_size(maps), 60);
    assert_int_equal(json_integer_value(json_object_get(data, "first")), 41);
    const json_t *weights = json_object_get(json_array_get(maps, 41), "weights");
    assert_int_equal(json_array_size(weights), 64);
    for (int i = 0; i < 64; i++)
        assert_int_equal(json_integer_value(json_array_get(weights, (size_t)i)),
                         s.weight[41][i] > 0 ? 1000 : 0);
    json_decref(data);
}

/* Catches a page and an SVG that round differently: percents, where they are written, and which
 * column is the strongest of a row. */
static void same_numbers(void **state)
{
    (void)state;
    struct sample s;
    make_sample(&s, 1, 1);
    heed_rng rng = heed_rng_stream(&(heed_rng_key){.seed = 3});
    static const heed_real edge[] = {0.0945f, 0.09449f, 0.0949f, 0.095f,
                                     0.1449f, 0.145f,   0.1455f, 0.0004f};
    for (int i = 0; i < 64; i++)
        s.weight[2][i] = i < 8 ? edge[i] : (heed_real)heed_rng_uniform(&rng, (uint64_t)i);
    const char *at = svg_of(&s.picture, 2);
    json_t *data = html_data(&s.picture, 2);
    const json_t *weights =
        json_object_get(json_array_get(json_object_get(data, "maps"), 2), "weights");
    for (int i = 0; i < 8; i++) {
        int most = 0;
        for (int j = 0; j < 8; j++) {
            int w = (int)json_integer_value(json_array_get(weights, (size_t)(8 * i + j)));
            char text[32];
            snprintf(text, sizeof text, "\">%d</text>", (w + 5) / 10);
            most = w > most ? w : most;
            if (w < 95)
                continue;
            at = strstr(strstr(at, "class=\"in"), "\">");
            assert_memory_equal(at, text, strlen(text));
        }
        char text[32];
        snprintf(text, sizeof text, ">%d %%</text>", (most + 5) / 10);
        at = strstr(strstr(at, "class=\"small\""), ">");
        assert_memory_equal(at, text, strlen(text));
    }
    json_decref(data);
}

/* Catches rows and columns labelled from the wrong side. */
static void sides(void **state)
{
    (void)state;
    struct sample s;
    make_sample(&s, 1, 1);
    const char *text = text_of(&s.picture, 0, 80, false);
    assert_non_null(strstr(text, "   She   9  .")); /* encoder: She looks at She */
    assert_non_null(strstr(text, "1 She  2 is"));
    text = text_of(&s.picture, 1, 80, false);
    assert_non_null(strstr(text, "1 <s>  2 她"));
    assert_non_null(strstr(text, "    她   .  9")); /* map 1 looks one further */
    text = text_of(&s.picture, 2, 80, false);
    assert_non_null(strstr(text, "    她   .  .  9"));
    assert_non_null(strstr(text, "  eating\n"));
}

/* Catches labels that end a tag, a script or a line, or that XML cannot hold. */
static void escaped(void **state)
{
    (void)state;
    struct sample s;
    make_sample(&s, 1, 1);
    static const char *const nasty[] = {"</script><b>", "a&b",      "\"q\"",        "'",
                                        "\x01\x1b[31m", "\xff\xfe", "\xef\xbf\xbf", "&lt;"};
    s.picture.source.text = nasty;
    s.picture.title = "<i>\"&'\n\xc3</i>";
    const char *svg = svg_of(&s.picture, -1);
    assert_null(strstr(svg, "<b>"));
    assert_null(strstr(svg, "<i>"));
    assert_non_null(strstr(svg, "&lt;/script&gt;&lt;b&gt;"));
    assert_non_null(strstr(svg, "&amp;lt;"));
    json_t *data = html_data(&s.picture, -1);
    const json_t *labels = json_array_get(json_object_get(data, "labels"), 0);
    assert_string_equal(json_string_value(json_array_get(labels, 0)), "</script><b>");
    assert_string_equal(json_string_value(json_array_get(labels, 5)), "\xef\xbf\xbd\xef\xbf\xbd");
    json_decref(data);
    assert_null(strchr(text_of(&s.picture, 2, 80, false), '\x1b'));
}

/* ---- the terminal ---- */

static int columns_of(const char *from, const char *to)
{
    int columns = 0;
    for (const char *p = from; p < to;) {
        if (*p == '\x1b') { /* a colour takes no columns */
            p = strchr(p, 'm') + 1;
            continue;
        }
        utf8proc_int32_t c;
        utf8proc_ssize_t n = utf8proc_iterate((const utf8proc_uint8_t *)p, -1, &c);
        assert_true(n > 0);
        columns += utf8proc_charwidth(c);
        p += n;
    }
    return columns;
}

/* Catches double-width signs that push a row out of line, with and without colours: the weights of
 * a diagonal must stand one cell apart. */
static void aligned(void **state)
{
    (void)state;
    struct sample s;
    make_sample(&s, 1, 1);
    memset(s.weight[2], 0, sizeof s.weight[2]);
    for (int i = 0; i < 8; i++)
        s.weight[2][i * 9] = 1;
    for (int colour = 0; colour < 2; colour++)
        for (int width = 24; width < 100; width++) {
            const char *line = text_of(&s.picture, 2, width, colour);
            const char *sign = colour ? "█" : "9";
            int rows = 0, first = 0, step = 0, longest = 0;
            while (*line) {
                const char *end = strchr(line, '\n'), *at = strstr(line, sign);
                int columns = columns_of(line, end);
                longest = columns > longest ? columns : longest;
                if (at && at < end) {
                    int column = columns_of(line, at);
                    if (rows == 0)
                        first = column;
                    if (rows == 1)
                        step = column - first;
                    assert_int_equal(column, first + rows * step);
                    rows++;
                }
                line = end + 1;
            }
            assert_int_equal(rows, 8);
            assert_in_range(step, 1, 3);
            assert_true(longest <= width);
        }
}

/* Catches pictures wider than the terminal, columns lost where they are cut into blocks, and a
 * single token. */
static void any_length(void **state)
{
    (void)state;
    enum { LONG = 150 };
    static char name[LONG][64];
    static const char *label[LONG];
    static heed_real weight[2 * LONG];
    for (int i = 0; i < LONG; i++) {
        snprintf(name[i], sizeof name[i], "%.*s%d", i % 40, "漢字außergewöhnlichlangewörterohneend",
                 i);
        const char *end;
        for (end = name[i]; *end; end++) /* the cut may have left half a character */
            if ((unsigned char)*end >= 0x80)
                *(char *)end = 'x';
        label[i] = i % 3 ? name[i] : "汉字";
    }
    for (int i = 0; i < 2 * LONG; i++)
        weight[i] = 1;
    for (int n = 1; n <= LONG; n += n < 50 ? 7 : 33)
        for (int width = 24; width <= 200; width += 11) {
            heed_attention_map map = {HEED_CROSS, 0, 0, 0, 2, n, weight};
            heed_attention_picture p = {"t", {label, n}, {label, 2}, {label, 2}, &map, 1};
            const char *line = text_of(&p, 0, width, n % 2);
            int seen = 0;
            while (*line) {
                const char *end = strchr(line, '\n');
                assert_true(columns_of(line, end) <= width);
                line = end + 1;
            }
            const char *legend = text_of(&p, 0, width, false);
            for (int j = 1; j <= n; j++) {
                char number[8];
                snprintf(number, sizeof number, "%d ", j);
                seen += strstr(legend, number) != NULL;
            }
            assert_int_equal(seen, n);
            assert_true(occurrences(legend, "9") >= 2 * n); /* all weights are 1 */
            svg_of(&p, -1);
        }
}

/* ---- numbers ---- */

/* Catches weights lost or counted twice when pieces become words. */
static void by_words(void **state)
{
    (void)state;
    enum { S = 4, T = 3 };
    static const heed_real cross[] = {.1, .2, .3, .4, .5, .25, .125, .125, 0, 0, .5, .5};
    static const heed_real self[] = {1, 0, 0, .5, .5, 0, .25, .25, .5};
    static const heed_real encoder[] = {1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1};
    const heed_attention_map maps[] = {{HEED_ENCODER_SELF, 0, 0, 0, S, S, encoder},
                                       {HEED_DECODER_SELF, 0, 0, 0, T, T, self},
                                       {HEED_CROSS, 0, 0, 0, T, S, cross}};
    const char *const pieces[] = {"a", "b", "c", "d"}, *const words[] = {"a", "bc", "d"};
    const heed_attention_picture p = {"t", {pieces, S}, {pieces, T}, {pieces, T}, maps, 3};
    static const int32_t source[] = {0, 1, 1, 2}, target[] = {0, 0, 1}, back[] = {0, 1, 1};
    heed_attention_picture out;
    heed_error err = {0};
    assert_int_equal(heed_attention_by_words(&p, (heed_label_words){source, {words, 3}},
                                             (heed_label_words){target, {words, 2}},
                                             (heed_label_words){back, {words, 2}}, arena, &out,
                                             &err),
                     HEED_OK);
    assert_int_equal(out.count, 3);
    assert_int_equal(out.source.count, 3);
    static const heed_real expected[] = {.3, .4375, .2625, 0, .5, .5};
    for (int i = 0; i < 6; i++)
        assert_float_equal(out.maps[2].weight[i], expected[i], 1e-6);
    static const heed_real self_expected[] = {.75, .25, .25, .75};
    for (int i = 0; i < 4; i++)
        assert_float_equal(out.maps[1].weight[i], self_expected[i], 1e-6);
    for (int64_t k = 0; k < out.count; k++)
        for (int64_t i = 0; i < out.maps[k].queries; i++) {
            double sum = 0;
            for (int64_t j = 0; j < out.maps[k].keys; j++)
                sum += (double)out.maps[k].weight[i * out.maps[k].keys + j];
            assert_float_equal(sum, 1, 1e-6);
        }
    static const int32_t wrong[] = {0, 1, 3, 2};
    assert_int_equal(heed_attention_by_words(&p, (heed_label_words){wrong, {words, 3}},
                                             (heed_label_words){target, {words, 2}},
                                             (heed_label_words){back, {words, 2}}, arena, &out,
                                             &err),
                     HEED_ARGUMENT);
    assert_string_equal(err.text, "attention by words: source label 2 is of word 3, of 3");
}

/* One map of 5 x 5: each row looks at one column. */
static void set_rows(heed_real *w, const int *column)
{
    memset(w, 0, sizeof *w * 25);
    for (int i = 0; i < 5; i++)
        w[i * 5 + column[i]] = 1;
}

/* Catches a large map that says nothing about the words: a head that rests on the end, one that is
 * a row late, and two that each see half. */
static void best_heads(void **state)
{
    (void)state;
    static const char *const source[] = {"a", "b", "c", ".", "</s>"};
    static const char *const target[] = {"C", "B", "A", ".", "</s>"};
    static const int end[] = {4, 4, 4, 4, 4}, late[] = {4, 2, 1, 0, 3}, right[] = {2, 1, 0, 3, 4};
    heed_real w[3][25];
    heed_attention_map maps[3];
    for (int i = 0; i < 3; i++)
        maps[i] = (heed_attention_map){HEED_CROSS, 0, i, 0, 5, 5, w[i]};
    const heed_attention_picture p = {"t", {source, 5}, {target, 5}, {target, 5}, maps, 3};
    set_rows(w[0], end);
    set_rows(w[1], late);
    set_rows(w[2], right);
    assert_non_null(strstr(text_of(&p, -1, 80, false), "Cross-attention, layer 1, head 3\n"));
    /* Halves: the first three rows look, then the last two. */
    static const int first[] = {2, 1, 0, 4, 4}, second[] = {3, 3, 3, 3, 4};
    set_rows(w[1], first);
    set_rows(w[2], second);
    for (int i = 0; i < 25; i++)
        w[1][i] = i / 5 >= 3 ? (heed_real)0.2 : w[1][i];
    for (int i = 0; i < 15; i++)
        w[2][i] = (heed_real)0.2;
    const char *text = text_of(&p, -1, 80, false);
    assert_non_null(strstr(text, "Cross-attention, average of 2 heads\n"));
    assert_non_null(strstr(text, "layer.head 1.2 1.3\n"));
    json_t *data = html_data(&p, -1);
    assert_int_equal(json_array_size(json_object_get(data, "maps")), 4);
    assert_int_equal(json_integer_value(json_object_get(data, "first")), 3);
    json_decref(data);
}

/* Catches weights that are not numbers, or beyond what weights are, on their way to a coordinate or
 * a table of shades. */
static void broken_weights(void **state)
{
    (void)state;
    struct sample s;
    make_sample(&s, 2, 2);
    s.weight[8][3] = (heed_real)NAN;
    s.weight[8][4] = (heed_real)INFINITY;
    s.weight[9][5] = -7;
    s.weight[9][6] = 1e30f;
    for (int i = 0; i < 64; i++)
        s.weight[10][i] = (heed_real)NAN;
    for (int64_t large = -1; large < 12; large++) {
        svg_of(&s.picture, large);
        json_decref(html_data(&s.picture, large));
        text_of(&s.picture, large, 80, true);
    }
    assert_non_null(strstr(svg_of(&s.picture, 8), "class=\"nan\""));
    assert_int_equal(occurrences(text_of(&s.picture, 8, 80, false), "?"), 2);
    json_t *data = html_data(&s.picture, 8);
    const json_t *map = json_array_get(json_object_get(data, "maps"), 8);
    assert_int_equal(json_integer_value(json_array_get(json_object_get(map, "weights"), 3)), -1);
    json_decref(data);
    for (int i = 0; i < 12; i++)
        for (int j = 0; j < 64; j++)
            s.weight[i][j] = (heed_real)NAN;
    svg_of(&s.picture, -1);
}

/* Catches maps that do not fit their labels being read beyond their end. */
static void refused(void **state)
{
    (void)state;
    struct sample s;
    const char *svg;
    make_sample(&s, 1, 1);
    heed_error err = {0};
    assert_int_equal(heed_attention_svg(&s.picture, 3, arena, &svg, &err), HEED_ARGUMENT);
    assert_string_equal(err.text, "attention picture: map 3 of 3 is to be large");
    s.picture.source.count = 7;
    err = (heed_error){0};
    assert_int_equal(heed_attention_svg(&s.picture, -1, arena, &svg, &err), HEED_SHAPE_ERROR);
    assert_string_equal(err.text, "attention picture: map 0 is (8,8), its labels (7,7)");
    assert_int_equal(heed_attention_svg(&s.picture, -1, arena, &svg, NULL), HEED_SHAPE_ERROR);
    make_sample(&s, 1, 1);
    s.picture.count = 0;
    err = (heed_error){0};
    assert_int_equal(heed_attention_html(&s.picture, -1, arena, &svg, &err), HEED_ARGUMENT);
    assert_string_equal(err.text, "attention picture: 0 maps, expected at least 1");
    make_sample(&s, 1, 1);
    s.maps[0].queries = s.maps[0].keys = s.picture.source.count = 3000000000;
    err = (heed_error){0};
    assert_int_equal(heed_attention_text(&s.picture, -1, 80, false, arena, &svg, &err),
                     HEED_ARGUMENT);
    assert_non_null(strstr(err.text, "more than 8000000 cells"));
    assert_null(svg);
}

/* Catches a crash or a cut picture when memory runs out at any point. */
static void memory_runs_out(void **state)
{
    (void)state;
    struct sample s;
    make_sample(&s, 4, 4);
    static const int32_t word[] = {0, 0, 1, 1, 2, 2, 3, 3};
    const heed_label_words words = {word, {english, 4}};
    for (int what = 0; what < 4; what++)
        for (int n = 1;; n++) {
            struct failing f = {.fail_at = n};
            heed_allocator a = failing_allocator(&f);
            heed_error err = {0};
            heed_arena *own = heed_arena_new(&a, &err);
            const char *text = NULL;
            heed_attention_picture joined;
            heed_status status =
                !own        ? err.status
                : what == 0 ? heed_attention_svg(&s.picture, -1, own, &text, &err)
                : what == 1 ? heed_attention_html(&s.picture, -1, own, &text, &err)
                : what == 2
                    ? heed_attention_text(&s.picture, -1, 80, true, own, &text, &err)
                    : heed_attention_by_words(&s.picture, words, words, words, own, &joined, &err);
            bool failed = f.calls >= n;
            assert_int_equal(status, failed ? HEED_MEMORY : HEED_OK);
            assert_int_equal(err.status, status);
            if (failed)
                assert_null(text);
            heed_arena_free(own);
            assert_int_equal(f.held, 0);
            if (!failed)
                break;
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_ARENA(every_head), WITH_ARENA(same_numbers),    WITH_ARENA(sides),
        WITH_ARENA(escaped),    WITH_ARENA(aligned),         WITH_ARENA(any_length),
        WITH_ARENA(by_words),   WITH_ARENA(best_heads),      WITH_ARENA(broken_weights),
        WITH_ARENA(refused),    WITH_ARENA(memory_runs_out),
    };
    return cmocka_run_group_tests_name("show", tests, NULL, NULL);
}
