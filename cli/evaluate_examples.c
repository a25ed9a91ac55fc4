/* evaluate_examples.c: how good an encoder's labels, tags and vectors are. */
#include "evaluate_examples.h"
#include "encoder_lines.h"
#include "label_figures.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Examples that go through the model at a time. */
#define CHUNK 256

struct evaluating {
    const struct example_files *f;
    struct encoder_run r;
    heed_examples *x;
    heed_arena *arena; /* what all examples have */
    const char *const *label;
    int64_t labels;
    heed_error err;
};

static void *take(struct evaluating *e, int64_t count, size_t size)
{
    void *memory = heed_arena_allocate(e->arena, (size_t)(count + 1) * size);
    if (!memory && !e->err.status) {
        e->err.status = HEED_MEMORY;
        snprintf(e->err.text, sizeof e->err.text, "out of memory for %lld examples",
                 (long long)count);
    }
    return memory;
}

/* ---- printing ---- */

static void print_span(const heed_span_kind *s, bool json)
{
    if (!json) {
        print_percent(s->precision);
        print_percent(s->recall);
        print_percent(s->f1);
        printf("  %6lld\n", (long long)s->wanted);
        return;
    }
    print_number("precision", s->precision);
    printf(", ");
    print_number("recall", s->recall);
    printf(", ");
    print_number("f1", s->f1);
    printf(", \"wanted\": %lld, \"said\": %lld, \"right\": %lld", (long long)s->wanted,
           (long long)s->said, (long long)s->right);
}

static void print_spans(const heed_span_figures *g, double accuracy, int64_t words, bool json)
{
    int width = 6;
    if (json) {
        printf("{\"words\": %lld, ", (long long)words);
        print_number("accuracy", accuracy);
        printf(", ");
        print_span(&g->all, true);
        printf(", \"kinds\": {");
        for (int64_t k = 0; k < g->kinds; k++) {
            printf("%s", k ? ", " : "");
            print_json_text(g->kind[k].name);
            printf(": {");
            print_span(&g->kind[k], true);
            printf("}");
        }
        puts("}}");
        return;
    }
    for (int64_t k = 0; k < g->kinds; k++)
        width = (int)strlen(g->kind[k].name) > width ? (int)strlen(g->kind[k].name) : width;
    printf("F1 of spans %.2f, accuracy of tags %.2f %% of %lld words\n", 100 * g->all.f1,
           100 * accuracy, (long long)words);
    printf("%-*s  %6s  %6s  %6s  %6s\n%-*s", width, "kind", "P", "R", "F1", "n", width, "all");
    print_span(&g->all, false);
    for (int64_t k = 0; k < g->kinds; k++) {
        printf("%-*s", width, g->kind[k].name);
        print_span(&g->kind[k], false);
    }
}

/* ---- labels ---- */

static struct label_answers answers_of(const struct evaluating *e)
{
    return (struct label_answers){e->label, e->labels, e->f->output, e->f->json, e->arena};
}

static void classify(struct evaluating *e)
{
    const struct label_answers answers = answers_of(e);
    const int64_t n = heed_examples_count(e->x);
    int32_t *wanted = take(e, n, sizeof *wanted), *said = take(e, n, sizeof *said);
    const bool pairs = heed_examples_are_pairs(e->x);
    for (int64_t at = 0, count; !e->err.status && at < n; at += count) {
        const char *text[CHUNK], *second[CHUNK];
        const heed_real *p;
        count = n - at < CHUNK ? n - at : CHUNK;
        for (int64_t i = 0; i < count; i++) {
            const heed_example x = heed_examples_at(e->x, at + i);
            text[i] = x.text[0];
            second[i] = x.text[1];
            wanted[at + i] = x.label;
        }
        heed_arena_reset(e->r.arena);
        if (heed_encoder_classify(e->r.encoder, text, pairs ? second : NULL, count, e->r.arena, &p,
                                  &e->err))
            return;
        for (int64_t i = 0; i < count; i++, p += e->labels) {
            said[at + i] = 0;
            for (int32_t k = 1; k < e->labels; k++)
                said[at + i] = p[k] > p[said[at + i]] ? k : said[at + i];
        }
    }
    if (!e->err.status)
        conclude_labels(&answers, wanted, said, n, &e->err);
}

/* ---- tags ---- */

static void tag(struct evaluating *e)
{
    const struct label_answers answers = answers_of(e);
    const int64_t n = heed_examples_count(e->x);
    int64_t words = 0, done = 0;
    for (int64_t i = 0; i < n; i++)
        words += heed_examples_at(e->x, i).words;
    int32_t *wanted = take(e, words, sizeof *wanted), *said = take(e, words, sizeof *said);
    int64_t *length = take(e, n, sizeof *length);
    const char **word = take(e, words, sizeof *word);
    for (int64_t i = 0, k = 0; !e->err.status && i < n; i++) {
        const heed_example x = heed_examples_at(e->x, i);
        length[i] = x.words;
        for (int64_t j = 0; j < x.words; j++, k++) {
            word[k] = x.word[j];
            wanted[k] = x.tag[j];
        }
    }
    for (int64_t at = 0, count; !e->err.status && at < n; at += count) {
        const int32_t *tags;
        const heed_real *p;
        int64_t here = 0;
        count = n - at < CHUNK ? n - at : CHUNK;
        for (int64_t i = 0; i < count; i++)
            here += length[at + i];
        heed_arena_reset(e->r.arena);
        if (!heed_encoder_tag(e->r.encoder, word + done, length + at, count, e->r.arena, &tags, &p,
                              &e->err))
            memcpy(said + done, tags, (size_t)here * sizeof *said);
        done += here;
    }
    if (e->err.status)
        return;
    if (!heed_tags_are_spans(e->label, e->labels)) {
        conclude_labels(&answers, wanted, said, words, &e->err);
        return;
    }
    heed_span_figures g;
    heed_label_figures all;
    if (heed_span_figures_of(e->label, e->labels, wanted, said, length, n, e->arena, &g, &e->err) ||
        heed_label_figures_of(wanted, said, words, e->labels, e->arena, &all, &e->err))
        return;
    if (!draw_confusion(&answers, &all, &e->err))
        print_spans(&g, all.accuracy, words, e->f->json);
}

/* ---- vectors ---- */

/* v (2 n,D): the first texts, then the second ones. */
static heed_real *embed_all(struct evaluating *e, int64_t n, int64_t d)
{
    heed_real *all = take(e, 2 * n * d, sizeof *all);
    for (int side = 0; side < 2; side++)
        for (int64_t at = 0, count; !e->err.status && at < n; at += count) {
            const char *text[CHUNK];
            const heed_real *v;
            count = n - at < CHUNK ? n - at : CHUNK;
            for (int64_t i = 0; i < count; i++)
                text[i] = heed_examples_at(e->x, at + i).text[side];
            heed_arena_reset(e->r.arena);
            if (!heed_encoder_embed(e->r.encoder, text, count, e->r.arena, &v, &e->err))
                memcpy(all + (side * n + at) * d, v, (size_t)(count * d) * sizeof *all);
        }
    return all;
}

static double product(const heed_real *a, const heed_real *b, int64_t d)
{
    double sum = 0;
    for (int64_t i = 0; i < d; i++)
        sum += (double)a[i] * (double)b[i];
    return sum;
}

/* How often the partner is the nearest of all second texts. */
static double found_partners(const heed_real *v, int64_t n, int64_t d)
{
    int64_t found = 0;
    for (int64_t i = 0; i < n; i++) {
        const double own = product(v + i * d, v + (n + i) * d, d);
        int64_t k = 0;
        while (k < n && (k == i || product(v + i * d, v + (n + k) * d, d) < own))
            k++;
        found += k == n;
    }
    return (double)found / (double)n;
}

static void embed(struct evaluating *e)
{
    const int64_t n = heed_examples_count(e->x), d = heed_encoder_configuration(e->r.encoder)->d;
    const heed_real *v = embed_all(e, n, d);
    double *cosine = take(e, n, sizeof *cosine), *score = take(e, n, sizeof *score), rho = NAN;
    const bool scored = heed_examples_are_scored(e->x);
    for (int64_t i = 0; !e->err.status && i < n; i++) {
        cosine[i] = product(v + i * d, v + (n + i) * d, d);
        score[i] = heed_examples_at(e->x, i).score;
    }
    if (!e->err.status && scored)
        heed_spearman(cosine, score, n, &rho, &e->err);
    if (e->err.status)
        return;
    const double value = scored ? rho : found_partners(v, n, d);
    const char *name = scored ? "spearman" : "recall_at_1";
    if (e->f->json) {
        printf("{\"n\": %lld, ", (long long)n);
        print_number(name, value);
        puts("}");
    } else if (scored)
        printf("Spearman %.2f (rank correlation of cosine and score, n = %lld)\n", 100 * value,
               (long long)n);
    else
        printf("recall at 1: %.2f %% (of %lld texts, those whose partner is nearest)\n",
               100 * value, (long long)n);
}

/* ---- the command ---- */

static void warn(void *context, heed_log_level level, const char *line)
{
    (void)context;
    if (level == HEED_LOG_WARNING)
        fprintf(stderr, "warning: %s\n", line);
}

/* A file of label TAB text is for a model with labels, any other for vectors. */
static heed_encoder_task task_of(const struct evaluating *e)
{
    const char *trained = heed_encoder_trained_for(e->r.encoder);
    return e->f->conll                                   ? HEED_ENCODER_TAG
           : trained && strcmp(trained, "classify") == 0 ? HEED_ENCODER_CLASSIFY
                                                         : HEED_ENCODER_EMBED;
}

static bool run(struct evaluating *e)
{
    const heed_encoder_task task = task_of(e);
    const char *const paths[] = {e->f->conll ? e->f->conll : e->f->tsv};
    const heed_log_sink log = {warn, NULL};
    heed_examples_options o = {.tag_column = e->f->tag_column};
    if (heed_encoder_can(e->r.encoder, task, &e->err))
        return false;
    e->label = heed_encoder_labels(e->r.encoder, &e->labels);
    o.kind = task == HEED_ENCODER_TAG        ? HEED_EXAMPLES_TAGS
             : task == HEED_ENCODER_CLASSIFY ? HEED_EXAMPLES_LABELS
                                             : HEED_EXAMPLES_PAIRS;
    if (task != HEED_ENCODER_EMBED) {
        o.labels = e->label;
        o.label_count = e->labels;
    } else if (e->f->output) {
        e->err.status = HEED_ARGUMENT;
        snprintf(e->err.text, sizeof e->err.text,
                 "option '--output' draws labels; this model makes vectors");
        return false;
    }
    e->x = heed_examples_open(paths, 1, &o, &log, NULL, &e->err);
    if (!e->x)
        return false;
    (task == HEED_ENCODER_TAG ? tag : task == HEED_ENCODER_CLASSIFY ? classify : embed)(e);
    return !e->err.status;
}

int evaluate_examples(const struct example_files *f)
{
    struct evaluating e = {.f = f};
    int code = EXIT_FAILED;
    e.arena = heed_arena_new(NULL, &e.err);
    if (e.arena && encoder_open(&e.r, f->model, HEED_ENCODER_EMBED, f->threads)) {
        if (run(&e))
            code = EXIT_DONE;
        else
            complain("%s", e.err.text);
    }
    heed_examples_free(e.x);
    encoder_close(&e.r);
    heed_arena_free(e.arena);
    return code;
}
