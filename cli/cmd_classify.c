/* cmd_classify.c: `heed classify`: a label for each line. */
#include "encoder_lines.h"

#include <stdio.h>
#include <string.h>

struct settings {
    const char *model;
    bool json;
    int64_t threads;
};
static const heed_option fields[] = {
    ENCODER_MODEL_OPTION(struct settings, model),
    HEED_OPTION_BOOL(struct settings, json, "json", NULL,
                     "one JSON object a line, with the probabilities of all labels"),
    ENCODER_THREADS_OPTION(struct settings, threads),
};
static const char *const examples[] = {
    "echo 'Who wrote Hamlet?' | heed classify --model m",
    "heed classify --model m lines.txt --json",
    NULL,
};
const heed_option_set classify_options = {
    .command = "heed classify",
    .summary = "Print a label and its probability for each line (text, or text TAB text)",
    .arguments = "[FILE]",
    .most = 1,
    .fields = fields,
    .count = sizeof fields / sizeof *fields,
    .examples = examples,
};

static void print_json(const char *line, const char *const *label, const heed_real *p,
                       int64_t labels, int64_t best)
{
    printf("{\"text\": ");
    print_json_text(line);
    printf(", \"label\": ");
    print_json_text(label[best]);
    printf(", \"probability\": %.6g, \"probabilities\": {", (double)p[best]);
    for (int64_t k = 0; k < labels; k++) {
        printf("%s", k ? ", " : "");
        print_json_text(label[k]);
        printf(": %.6g", (double)p[k]);
    }
    puts("}}");
}

/* text[i], and second[i] behind its tab; true if any line has one. */
static bool split(const char *const *line, int64_t count, heed_arena *arena, const char **text,
                  const char **second)
{
    bool any = false;
    for (int64_t i = 0; i < count; i++) {
        const char *tab = strchr(line[i], '\t');
        const size_t n = tab ? (size_t)(tab - line[i]) : strlen(line[i]);
        char *first = heed_arena_allocate(arena, n + 1);
        if (first) {
            memcpy(first, line[i], n);
            first[n] = '\0';
        }
        text[i] = first ? first : "";
        second[i] = tab ? tab + 1 : NULL;
        any |= tab != NULL;
    }
    return any;
}

static bool classify_some(void *context, struct encoder_run *r, const char *const *line,
                          int64_t count)
{
    const struct settings *s = context;
    heed_error err = {0};
    int64_t labels;
    const heed_real *p;
    const char *const *label = heed_encoder_labels(r->encoder, &labels);
    const char *text[ENCODER_LINES], *second[ENCODER_LINES];
    const bool pairs = split(line, count, r->arena, text, second);
    if (heed_encoder_classify(r->encoder, text, pairs ? second : NULL, count, r->arena, &p, &err)) {
        complain("%s", err.text);
        return false;
    }
    for (int64_t i = 0; i < count; i++, p += labels) {
        int64_t best = 0;
        for (int64_t k = 1; k < labels; k++)
            best = p[k] > p[best] ? k : best;
        if (s->json)
            print_json(line[i], label, p, labels, best);
        else
            printf("%s\t%.4f\n", label[best], (double)p[best]);
    }
    return true;
}

int classify_run(int argc, const char *const *argv)
{
    invocation in;
    struct settings s;
    int code = EXIT_FAILED;
    if (!invocation_begin(&in, &classify_options, argc, argv, &s)) {
        code = in.exit_code;
    } else {
        struct encoder_run r;
        if (encoder_open(&r, s.model, HEED_ENCODER_CLASSIFY, s.threads))
            code = encoder_lines(&r, encoder_file(&in), ENCODER_LINES, classify_some, &s);
        encoder_close(&r);
    }
    invocation_end(&in);
    return code;
}
