/* cmd_classify.c: `heed classify`: a label for each line, or for each picture. */
#include "cmd_classify.h"
#include "encoder_lines.h"

#include <heed/see.h>
#include <stdio.h>
#include <string.h>

static const heed_option fields[] = {
    ENCODER_MODEL_OPTION(struct classify_settings, model),
    HEED_OPTION_BOOL(struct classify_settings, json, "json", NULL,
                     "one JSON object a line, with the probabilities of all labels"),
    ENCODER_THREADS_OPTION(struct classify_settings, threads),
};
static const char *const examples[] = {
    "echo 'Who wrote Hamlet?' | heed classify --model m",
    "heed classify --model m lines.txt --json",
    "heed classify --model vit photos other.png",
    NULL,
};
const heed_option_set classify_options = {
    .command = "heed classify",
    .summary = "Print a label and its probability for each line (text, or text TAB text), or for "
               "each picture of files and folders",
    .arguments = "[FILE|FOLDER...]",
    .most = -1,
    .fields = fields,
    .count = sizeof fields / sizeof *fields,
    .examples = examples,
};

void classify_print(const struct classify_settings *s, const struct classified *c,
                    const heed_real *p)
{
    int64_t best = 0;
    for (int64_t k = 1; k < c->labels; k++)
        best = p[k] > p[best] ? k : best;
    if (!s->json) {
        printf("%s\t%.4f%s%s\n", c->label[best], (double)p[best], c->file ? "\t" : "",
               c->file ? c->file : "");
        return;
    }
    printf("{\"%s\": ", c->file ? "file" : "text");
    print_json_text(c->file ? c->file : c->text);
    printf(", \"label\": ");
    print_json_text(c->label[best]);
    printf(", \"probability\": %.6g, \"probabilities\": {", (double)p[best]);
    for (int64_t k = 0; k < c->labels; k++) {
        printf("%s", k ? ", " : "");
        print_json_text(c->label[k]);
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
    const struct classify_settings *s = context;
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
        const struct classified c = {line[i], NULL, label, labels};
        classify_print(s, &c, p);
    }
    return true;
}

static int classify_lines(struct classify_settings *s, const invocation *in)
{
    struct encoder_run r;
    int code = EXIT_FAILED;
    if (encoder_open(&r, s->model, HEED_ENCODER_CLASSIFY, s->threads))
        code = encoder_lines(&r, encoder_file(in), ENCODER_LINES, classify_some, s);
    encoder_close(&r);
    return code;
}

/* Whether the model is for pictures. */
static bool sees(const struct classify_settings *s)
{
    const char *arch = s->model ? heed_see_arch(s->model) : NULL;
    return arch && strcmp(arch, "vit") == 0;
}

int classify_run(int argc, const char *const *argv)
{
    invocation in;
    struct classify_settings s;
    int code = EXIT_USAGE;
    if (!invocation_begin(&in, &classify_options, argc, argv, &s))
        code = in.exit_code;
    else if (sees(&s) && !in.words.count)
        complain("there is no picture to classify");
    else if (sees(&s))
        code = classify_pictures(&s, &in.words);
    else if (in.words.count > 1)
        complain("unexpected argument '%s'", in.words.items[1]);
    else
        code = classify_lines(&s, &in);
    invocation_end(&in);
    return code;
}
