/* cmd_fill.c: `heed fill`: what may stand where [MASK] is. */
#include "encoder_lines.h"

#include <stdio.h>

struct settings {
    const char *model;
    int64_t top;
    bool json;
    int64_t threads;
};
static const heed_option fields[] = {
    ENCODER_MODEL_OPTION(struct settings, model),
    HEED_OPTION_INT(struct settings, top, "top", "5", 1, 1000, "N", "answers for each mask"),
    HEED_OPTION_BOOL(struct settings, json, "json", NULL, "one JSON object a line"),
    ENCODER_THREADS_OPTION(struct settings, threads),
};
static const char *const examples[] = {
    "heed fill --model bert 'Paris is the [MASK] of France.'",
    "heed fill --model bert --top 1 --json <lines.txt",
    NULL,
};
const heed_option_set fill_options = {
    .command = "heed fill",
    .summary = "Say what may stand where [MASK] is, likeliest first",
    .arguments = "[TEXT...]",
    .most = -1,
    .fields = fields,
    .count = sizeof fields / sizeof *fields,
    .examples = examples,
};

static void print_json(const char *line, const heed_filled *filled, int64_t masks, int64_t top)
{
    printf("{\"text\": ");
    print_json_text(line);
    printf(", \"masks\": [");
    for (int64_t i = 0; i < masks; i++) {
        printf("%s[", i ? ", " : "");
        for (int64_t k = 0; k < top; k++, filled++) {
            printf("%s{\"token\": %d, \"piece\": ", k ? ", " : "", filled->id);
            print_json_text(filled->piece);
            printf(", \"probability\": %.6g, \"text\": ", filled->probability);
            print_json_text(filled->text);
            putchar('}');
        }
        putchar(']');
    }
    puts("]}");
}

static bool fill_some(void *context, struct encoder_run *r, const char *const *line, int64_t count)
{
    const struct settings *s = context;
    const int64_t pieces = heed_vocab_size(heed_encoder_vocab(r->encoder));
    const int64_t top = s->top < pieces ? s->top : pieces;
    for (int64_t i = 0; i < count; i++) {
        heed_error err = {0};
        const heed_filled *filled;
        int64_t masks;
        if (heed_encoder_fill(r->encoder, line[i], top, r->arena, &filled, &masks, &err)) {
            complain("line %lld: %s", (long long)(r->before + i + 1), err.text);
            return false;
        }
        if (s->json) {
            print_json(line[i], filled, masks, top);
            continue;
        }
        for (int64_t k = 0; k < masks * top; k++) {
            if (k ? k % top == 0 : r->before + i > 0)
                putchar('\n'); /* between masks, and between lines */
            printf("%.4f\t%s\t%s\n", filled[k].probability, filled[k].piece, filled[k].text);
        }
    }
    return true;
}

static int fill_words(struct encoder_run *r, const heed_option_list *words, struct settings *s)
{
    for (int i = 0; i < words->count; i++, r->before++) {
        heed_arena_reset(r->arena);
        if (!fill_some(s, r, &words->items[i], 1))
            return EXIT_FAILED;
    }
    return EXIT_DONE;
}

int fill_run(int argc, const char *const *argv)
{
    invocation in;
    struct settings s;
    int code = EXIT_FAILED;
    if (!invocation_begin(&in, &fill_options, argc, argv, &s)) {
        code = in.exit_code;
    } else {
        struct encoder_run r;
        if (encoder_open(&r, s.model, HEED_ENCODER_MLM, s.threads))
            code = in.words.count ? fill_words(&r, &in.words, &s)
                                  : encoder_lines(&r, NULL, ENCODER_LINES, fill_some, &s);
        encoder_close(&r);
    }
    invocation_end(&in);
    return code;
}
