/* evaluate_length.c: `heed evaluate --by-length`: scores of each group of source lengths, for one
 * system or several, as a table and as curves. */
#include "cmd_evaluate.h"
#include "command.h"

#include <heed/io.h>
#include <heed/show.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_GROUPS 32

/* Lines whose source has from .. to words; to is INT64_MAX in the last group. */
struct group {
    int64_t from, to, lines;
    double words; /* in a source, on average */
    double score[METRICS][MOST_SYSTEMS];
};

/* "10,15,20": 1 to 10, 11 to 15, 16 to 20, 21 and more.  How many groups; 0 after saying what is
 * wrong. */
static int read_edges(const char *text, struct group *groups)
{
    int n = 0;
    int64_t before = 0;
    for (const char *at = text; n < MOST_GROUPS - 1; at++) {
        char *end;
        long long edge = strtoll(at, &end, 10);
        if (end == at || edge <= before || (*end && *end != ','))
            break;
        groups[n++] = (struct group){.from = before + 1, .to = edge};
        before = edge;
        at = end;
        if (!*end) {
            groups[n++] = (struct group){.from = before + 1, .to = INT64_MAX};
            return n;
        }
    }
    complain("option '--by-length' is '%s', expected up to %d rising numbers of words with commas "
             "between, as in 10,15,20",
             text, MOST_GROUPS - 2);
    return 0;
}

static int64_t count_words(const char *line)
{
    int64_t n = 0;
    for (line += strspn(line, " \t"); *line; line += strspn(line, " \t")) {
        line += strcspn(line, " \t");
        n++;
    }
    return n;
}

/* ---- scores ---- */

struct lines {
    const char **hypothesis, **reference; /* of one group */
};

static bool score_group(const struct evaluation *e, const struct systems *s, struct group *g,
                        struct lines *l, heed_error *err)
{
    g->lines = 0;
    g->words = 0;
    for (int k = 0; k < s->count; k++) {
        int64_t n = 0;
        for (int64_t i = 0; i < s->lines; i++) {
            const int64_t words = count_words(s->source[i]);
            if (words < g->from || words > g->to)
                continue;
            l->hypothesis[n] = s->hypothesis[k][i];
            for (int ref = 0; ref < s->references; ref++)
                l->reference[n * s->references + ref] = s->reference[i * s->references + ref];
            n++;
            g->words += k == 0 ? (double)words : 0;
        }
        g->lines = n;
        for (int m = 0; n && m < e->count; m++)
            if (evaluation_score(e, e->metric[m], l->hypothesis, l->reference, n, &g->score[m][k],
                                 err))
                return false;
    }
    g->words /= g->lines ? (double)g->lines : 1;
    return true;
}

/* ---- for people, machines and eyes ---- */

/* "11-15", "21-". */
static const char *range(const struct group *g, char text[64])
{
    if (g->to == INT64_MAX)
        snprintf(text, 64, "%lld-", (long long)g->from);
    else
        snprintf(text, 64, "%lld-%lld", (long long)g->from, (long long)g->to);
    return text;
}

static void print_table(const struct evaluation *e, const struct systems *s,
                        const struct group *groups, int count)
{
    char text[64];
    for (int m = 0; m < e->count; m++) {
        printf("%-8s %8s", evaluation_title(e->metric[m]), "lines");
        for (int k = 0; k < s->count; k++)
            printf("  %*s", (int)(strlen(s->name[k]) > 6 ? strlen(s->name[k]) : 6), s->name[k]);
        putchar('\n');
        for (const struct group *g = groups; g < groups + count; g++) {
            printf("%-8s %8lld", range(g, text), (long long)g->lines);
            for (int k = 0; k < s->count; k++) {
                int width = (int)(strlen(s->name[k]) > 6 ? strlen(s->name[k]) : 6);
                if (g->lines)
                    printf("  %*.2f", width, g->score[m][k]);
                else
                    printf("  %*s", width, "-");
            }
            putchar('\n');
        }
    }
}

static void print_json(const struct evaluation *e, const struct systems *s,
                       const struct group *groups, int count)
{
    for (const struct group *g = groups; g < groups + count; g++) {
        printf("{\"from\":%lld,", (long long)g->from);
        if (g->to < INT64_MAX)
            printf("\"to\":%lld,", (long long)g->to);
        printf("\"lines\":%lld,\"mean_words\":%.10g,\"systems\":[", (long long)g->lines, g->words);
        for (int k = 0; k < s->count; k++) {
            printf("%s{\"name\":", k ? "," : "");
            print_json_text(s->name[k]);
            for (int m = 0; g->lines && m < e->count; m++)
                printf(",\"%s\":%.10g", evaluation_name(e->metric[m]), g->score[m][k]);
            putchar('}');
        }
        puts("]}");
    }
}

static heed_status draw(const struct evaluation *e, const struct systems *s,
                        const struct group *groups, int count, heed_arena *arena, const char *path,
                        heed_error *err)
{
    heed_curve curves[METRICS][MOST_SYSTEMS];
    heed_curve_panel panels[METRICS];
    double x[MOST_GROUPS], y[METRICS][MOST_SYSTEMS][MOST_GROUPS];
    int n = 0;
    for (int i = 0; i < count; i++) {
        if (!groups[i].lines)
            continue;
        x[n] = groups[i].words;
        for (int m = 0; m < e->count; m++)
            for (int k = 0; k < s->count; k++)
                y[m][k][n] = groups[i].score[m][k];
        n++;
    }
    for (int m = 0; m < e->count; m++) {
        for (int k = 0; k < s->count; k++)
            curves[m][k] = (heed_curve){s->name[k], x, y[m][k], n};
        panels[m] = (heed_curve_panel){
            .title = evaluation_title(e->metric[m]), .curves = curves[m], .count = s->count};
    }
    const char *svg;
    heed_status status = heed_curves_svg("Scores by source length", "words in the source", panels,
                                         e->count, arena, &svg, err);
    return status ? status : heed_text_save(path, svg, err);
}

bool length_edges_right(const char *edges)
{
    struct group groups[MOST_GROUPS];
    return read_edges(edges, groups) > 0;
}

bool evaluate_by_length(const struct evaluation *e, const struct systems *s, const char *edges,
                        const char *output, heed_arena *arena)
{
    struct group groups[MOST_GROUPS];
    heed_error err = {0};
    const int n = read_edges(edges, groups);
    const size_t bytes = (size_t)s->lines * sizeof(const char *);
    struct lines l = {heed_arena_allocate(arena, bytes),
                      heed_arena_allocate(arena, bytes * (size_t)s->references)};
    bool good = l.hypothesis && l.reference;
    for (int i = 0; good && i < n; i++)
        good = score_group(e, s, &groups[i], &l, &err);
    if (good)
        (e->json ? print_json : print_table)(e, s, groups, n);
    good = good && (!output || draw(e, s, groups, n, arena, output, &err) == HEED_OK);
    if (!good)
        complain("%s", err.status ? err.text : "out of memory for the lines");
    return good;
}
