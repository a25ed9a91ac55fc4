/* cmd_generate.c: `heed generate`: a language model goes on with a text. */
#include "cmd_models.h"
#include "command.h"

#include <heed/generate.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_PROMPT ((size_t)1 << 26)

struct settings {
    const char *model, *prompt;
    heed_generate_options generate;
    int64_t samples, threads;
    bool json, timing;
};
static const heed_option fields[] = {
    MODEL_OPTION(struct settings),
    HEED_OPTION_TEXT(struct settings, prompt, "prompt", NULL, "TEXT",
                     "go on with this text; without it and without FILE, begin a new one"),
    HEED_GENERATE_OPTIONS(struct settings, generate),
    HEED_OPTION_INT(struct settings, samples, "samples", "1", 1, 65536, "N",
                    "write N texts, side by side, with an empty line between them"),
    HEED_OPTION_BOOL(struct settings, json, "json", NULL,
                     "a JSON object a text: text (prompt and all), prompt, tokens and log_probs "
                     "behind the prompt, and why it ends: stop is eos, length or string"),
    HEED_OPTION_BOOL(struct settings, timing, "timing", NULL, "say on stderr how fast it was"),
    HEED_OPTION_INT(struct settings, threads, "threads", NULL, 1, 64, "N",
                    "threads to use; all processors if not given"),
};
static const char *const examples[] = {
    "heed generate --model m --prompt 'Once upon a time' --temperature 0",
    "heed generate --model m --samples 3 --max-tokens 100 --top-k 40 --seed 7",
    "heed generate --model m --stop '.' --json prompt.txt", "echo ROMEO: | heed generate -m m -",
    NULL};
static const heed_option_group groups[] = {
    {"what people need", "model prompt max-tokens temperature samples seed stop json threads",
     true},
    {"sampling: in this order", "repetition-penalty top-k top-p min-p", true},
    {NULL, NULL, false},
};
const heed_option_set generate_options = {
    .command = "heed generate",
    .summary = "Go on with a text; beyond the model's context, its last half is read again",
    .arguments = "[FILE]",
    .most = 1,
    .fields = fields,
    .count = sizeof fields / sizeof *fields,
    .examples = examples,
    .groups = groups,
};

/* ---- the prompt ---- */

static char *read_all(FILE *f, size_t *size)
{
    size_t capacity = 1 << 16, n;
    char *text = malloc(capacity);
    *size = 0;
    while (text && (n = fread(text + *size, 1, capacity - *size, f)) > 0) {
        *size += n;
        if (*size == capacity) {
            char *more = capacity < MOST_PROMPT ? realloc(text, capacity *= 2) : NULL;
            if (!more)
                free(text);
            text = more;
        }
    }
    return text;
}

/* The bytes of a file, "-" for standard input, without the line end behind them; NULL after saying
 * what is wrong. */
static char *read_prompt(const char *path, size_t *size)
{
    const bool standard = strcmp(path, "-") == 0;
    FILE *f = standard ? stdin : fopen(path, "rb");
    char *text = f ? read_all(f, size) : NULL;
    const bool failed = f && ferror(f);
    if (!f || failed)
        complain("cannot read the prompt '%s'", path);
    else if (!text)
        complain("the prompt '%s' is too large, expected %zu MB at most", path, MOST_PROMPT >> 20);
    if (f && !standard)
        fclose(f);
    if (failed) {
        free(text);
        return NULL;
    }
    if (text && *size && text[*size - 1] == '\n')
        (*size)--;
    return text;
}

/* ---- what is written ---- */

struct output {
    const struct settings *s;
    const char *prompt;
    size_t size;
    char last; /* byte that was printed */
};

static void print_bytes(struct output *o, const char *text, size_t n)
{
    fwrite(text, 1, n, stdout);
    o->last = n ? text[n - 1] : o->last;
}

/* One text streams; several would mix. */
static bool stream(void *context, int64_t sample, const char *text, size_t n)
{
    (void)sample;
    print_bytes(context, text, n);
    return results_written();
}

static json_t *object_of(const struct output *o, const heed_generation *g)
{
    static const char *const words[] = {HEED_GENERATE_STOP_WORDS};
    json_t *tokens = json_array(), *log_probs = json_array();
    char *whole = malloc(o->size + g->size + 1);
    for (int64_t i = 0; i < g->count; i++) {
        json_array_append_new(tokens, json_integer(g->id[i]));
        json_array_append_new(log_probs, json_real(g->log_p[i]));
    }
    if (whole) {
        memcpy(whole, o->prompt, o->size);
        memcpy(whole + o->size, g->text, g->size);
    }
    json_t *text = whole ? json_stringn(whole, o->size + g->size) : NULL;
    free(whole);
    json_t *all = json_object();
    json_object_set_new(all, "text", text);
    json_object_set_new(all, "prompt", json_stringn(o->prompt, o->size));
    json_object_set_new(all, "tokens", tokens);
    json_object_set_new(all, "log_probs", log_probs);
    json_object_set_new(all, "stop", json_string(words[g->stop]));
    return all;
}

static void print_json(const struct output *o, const heed_generation *g)
{
    json_t *all = object_of(o, g);
    char *text = json_dumps(all, JSON_COMPACT | JSON_REAL_PRECISION(6));
    if (text)
        puts(text);
    free(text);
    json_decref(all);
}

static void print_texts(struct output *o, const heed_generation *g)
{
    for (int64_t i = 0; i < o->s->samples; i++) {
        if (o->s->json) {
            print_json(o, &g[i]);
        } else if (o->s->samples > 1) {
            print_bytes(o, "\n", i ? 1 : 0);
            print_bytes(o, o->prompt, o->size);
            print_bytes(o, g[i].text, g[i].size);
        }
        if (!o->s->json && o->last != '\n')
            print_bytes(o, "\n", 1);
    }
}

static void tell_time(const struct settings *s, const heed_generation *g, double seconds)
{
    int64_t n = 0;
    for (int64_t i = 0; i < s->samples; i++)
        n += g[i].count;
    fprintf(stderr, "%lld tokens in %.3f s: %.1f tokens/s\n", (long long)n, seconds,
            (double)n / seconds);
}

static int write_texts(heed_generator *g, const struct settings *s, const char *prompt,
                       size_t length, heed_arena *arena)
{
    heed_error err = {0};
    struct output o = {s, prompt, length, '\n'};
    const heed_generate_sink sink = {stream, &o};
    const bool streams = s->samples == 1 && !s->json;
    heed_generation *out = heed_arena_allocate(arena, (size_t)s->samples * sizeof *out);
    if (!out) {
        complain("out of memory");
        return EXIT_FAILED;
    }
    if (streams)
        print_bytes(&o, prompt, length);
    const double begun = heed_clock_seconds();
    if (!results_written() && !reader_left())
        return EXIT_FAILED;
    if (heed_generate(g, prompt, length, &s->generate, s->samples, streams ? &sink : NULL, arena,
                      out, &err)) {
        complain("%s", err.text);
        return EXIT_FAILED;
    }
    const double seconds = heed_clock_seconds() - begun;
    print_texts(&o, out);
    if (s->timing)
        tell_time(s, out, seconds);
    return EXIT_DONE;
}

static int generate(struct settings *s, const invocation *in)
{
    heed_error err = {0};
    size_t length = s->prompt ? strlen(s->prompt) : 0;
    char *read = in->words.count ? read_prompt(in->words.items[0], &length) : NULL;
    const char *prompt = read ? read : s->prompt ? s->prompt : "";
    size_t bad;
    int code = EXIT_FAILED;
    if (in->words.count && !read)
        return EXIT_FAILED;
    if (!heed_utf8_valid(prompt, length, &bad)) {
        complain("the prompt is not UTF-8 (byte %zu)", bad + 1);
    } else {
        heed_generator *g = heed_generator_open(s->model, (int)s->threads, NULL, &err);
        if (g)
            code = write_texts(g, s, prompt, length, in->arena);
        else
            complain("%s", err.text);
        heed_generator_free(g);
    }
    free(read);
    return code;
}

static bool check(const struct settings *s, const invocation *in)
{
    const char *wrong = NULL;
    if (s->prompt && in->words.count)
        wrong = "option '--prompt' and a file cannot stand together";
    for (int i = 0; i < s->generate.stop.count; i++)
        if (!*s->generate.stop.items[i])
            wrong = "option '--stop' is empty, expected a text";
    const char *const draws[] = {"top-k", "top-p", "min-p"};
    for (int i = 0; !wrong && s->generate.temperature == 0 && i < 3; i++)
        if (option_typed(in, draws[i]))
            wrong = "'--top-k', '--top-p' and '--min-p' have no effect with --temperature 0";
    if (wrong) {
        complain("%s", wrong);
        fputs("try 'heed generate --help'\n", stderr);
    }
    return !wrong;
}

int generate_run(int argc, const char *const *argv)
{
    invocation in;
    struct settings s;
    int code = EXIT_USAGE;
    if (!invocation_begin(&in, &generate_options, argc, argv, &s)) {
        code = in.exit_code;
    } else if (check(&s, &in) && (s.model = find_model(s.model, NULL, in.arena))) {
        heed_machine m;
        heed_machine_describe(&m);
        s.threads = s.threads ? s.threads : m.threads;
        code = generate(&s, &in);
    }
    invocation_end(&in);
    return code;
}
