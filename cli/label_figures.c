/* label_figures.c: see label_figures.h. */
#include "label_figures.h"
#include "command.h"

#include <heed/show.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

void print_number(const char *name, double value)
{
    if (isfinite(value))
        printf("\"%s\": %.6g", name, value);
    else
        printf("\"%s\": null", name);
}

/* "  87.20", or a dash. */
void print_percent(double value)
{
    if (isfinite(value))
        printf("  %6.2f", 100 * value);
    else
        printf("  %6s", "-");
}

static int widest(const char *const *name, int64_t count)
{
    int width = 5;
    for (int64_t i = 0; i < count; i++)
        width = (int)strlen(name[i]) > width ? (int)strlen(name[i]) : width;
    return width < 40 ? width : 40;
}

static void print_labels_json(const struct label_answers *e, const heed_label_figures *g)
{
    printf("\"n\": %lld, ", (long long)g->n);
    print_number("accuracy", g->accuracy);
    printf(", ");
    print_number("macro_f1", g->macro_f1);
    printf(", \"labels\": {");
    for (int64_t k = 0; k < g->labels; k++) {
        printf("%s", k ? ", " : "");
        print_json_text(e->label[k]);
        printf(": {");
        print_number("precision", g->precision[k]);
        printf(", ");
        print_number("recall", g->recall[k]);
        printf(", ");
        print_number("f1", g->f1[k]);
        printf("}");
    }
    printf("}, \"confusion\": [");
    for (int64_t i = 0; i < g->labels; i++) {
        printf("%s[", i ? ", " : "");
        for (int64_t k = 0; k < g->labels; k++)
            printf("%s%lld", k ? ", " : "", (long long)g->confusion[i * g->labels + k]);
        printf("]");
    }
    printf("]");
}

static void print_labels(const struct label_answers *e, const heed_label_figures *g)
{
    const int width = widest(e->label, e->labels);
    printf("accuracy %.2f %% (%lld of %lld), F1 %.2f (mean over labels)\n", 100 * g->accuracy,
           (long long)g->right, (long long)g->n, 100 * g->macro_f1);
    printf("%-*s  %6s  %6s  %6s  %6s\n", width, "label", "P", "R", "F1", "n");
    for (int64_t k = 0; k < g->labels; k++) {
        int64_t n = 0;
        for (int64_t j = 0; j < g->labels; j++)
            n += g->confusion[k * g->labels + j];
        printf("%-*s", width, e->label[k]);
        print_percent(g->precision[k]);
        print_percent(g->recall[k]);
        print_percent(g->f1[k]);
        printf("  %6lld\n", (long long)n);
    }
}

heed_status draw_confusion(const struct label_answers *e, const heed_label_figures *g,
                           heed_error *err)
{
    const char *svg;
    const heed_labels names = {e->label, e->labels};
    if (!e->output)
        return HEED_OK;
    if (heed_confusion_svg("Right labels (rows) and the model's (columns)", names, g->confusion,
                           e->arena, &svg, err))
        return err->status;
    return heed_text_save(e->output, svg, err);
}

heed_status conclude_labels(const struct label_answers *e, const int32_t *wanted,
                            const int32_t *said, int64_t n, heed_error *err)
{
    heed_label_figures g;
    if (heed_label_figures_of(wanted, said, n, e->labels, e->arena, &g, err) ||
        draw_confusion(e, &g, err))
        return err->status;
    if (e->json) {
        printf("{");
        print_labels_json(e, &g);
        puts("}");
    } else
        print_labels(e, &g);
    return HEED_OK;
}
