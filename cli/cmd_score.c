/* cmd_score.c: `heed score`: how probable the model finds given translations, or a text. */
#include "cmd_score.h"
#include "cmd_models.h"
#include "command.h"
#include "input_lines.h"

#include <heed/translate.h>
#include <stdio.h>
#include <string.h>

/* Lines scored at a time. */
#define CHUNK 1000

struct settings {
    const char *model, *source, *target;
    heed_option_list text;
    bool per_token, normalize, protect, json;
    int64_t threads;
};
static const heed_option fields[] = {
    MODEL_OPTION(struct settings),
    HEED_OPTION_TEXT(struct settings, source, "source", NULL, "FILE", "lines to translate"),
    HEED_OPTION_TEXT(struct settings, target, "target", NULL, "FILE", "their translations"),
    HEED_OPTION_LIST(struct settings, text, "text", "FILE",
                     "instead of both: text for a language model, plain or .gz; each token is "
                     "judged by what stands before it, half a context at least"),
    HEED_OPTION_BOOL(struct settings, json, "json", NULL,
                     "with --text: nll (nats, summed), tokens, bytes, unknown, perplexity and "
                     "bits_per_byte as a JSON object"),
    HEED_OPTION_BOOL(struct settings, per_token, "per-token", NULL,
                     "after the sum a tab and each token with its own: piece:log-probability"),
    HEED_OPTION_BOOL(struct settings, normalize, "normalize", NULL,
                     "divide the sum by the number of tokens, end of sentence included"),
    PROTECT_OPTION(struct settings),
    HEED_OPTION_INT(struct settings, threads, "threads", NULL, 1, 64, "N",
                    "threads to use; all processors if not given"),
};
static const char *const examples[] = {
    "heed score --model m --source test.en --target test.de",
    "heed score --model m --source test.en --target test.de --per-token",
    "heed score --model lm --text test.txt", NULL};
const heed_option_set score_options = {
    .command = "heed score",
    .summary = "Print the log-probability of given translations, or of a text",
    .fields = fields,
    .count = sizeof fields / sizeof *fields,
    .examples = examples,
};

struct run {
    const struct settings *s;
    heed_translator *tr;
    heed_arena *arena; /* one chunk */
};

static void print_score(const struct run *r, const heed_hypothesis *h)
{
    const heed_vocab *v = heed_translator_target(r->tr);
    printf("%.4f", r->s->normalize ? h->log_p / (double)h->count : h->log_p);
    for (int64_t i = 0; r->s->per_token && i < h->count; i++)
        printf("%c%s:%.4f", i ? ' ' : '\t', heed_vocab_piece(v, h->id[i]),
               (double)h->token_log_p[i]);
    putchar('\n');
}

/* Of n lines that cannot be scored, the first that is to blame; err, what was said of all of them,
 * becomes what is said of this one. */
static int64_t find_wrong(const struct run *r, const char *const *source, const char *const *target,
                          int64_t n, heed_hypothesis *out, heed_error *err)
{
    int64_t at = 0;
    while (n > 1) {
        int64_t half = n / 2;
        heed_arena_reset(r->arena);
        bool good = !heed_score(r->tr, source + at, target + at, half, r->arena, out, NULL);
        at += good ? half : 0;
        n = good ? n - half : half;
    }
    heed_error own = {0};
    if (heed_score(r->tr, source + at, target + at, 1, r->arena, out, &own))
        *err = own;
    return at;
}

/* Prints the scores of all n pairs, or of none. */
static heed_status score_some(const struct run *r, const char *const *source,
                              const char *const *target, int64_t n, heed_hypothesis *out,
                              heed_error *err)
{
    heed_arena_reset(r->arena);
    heed_status status = heed_score(r->tr, source, target, n, r->arena, out, err);
    for (int64_t i = 0; !status && i < n; i++)
        print_score(r, &out[i]);
    return status;
}

static bool score_lines(const struct run *r, const line_reader *source, const line_reader *target,
                        int64_t count)
{
    heed_hypothesis out[CHUNK];
    for (int64_t begin = 0; begin < count; begin += CHUNK) {
        int64_t n = begin + CHUNK < count ? CHUNK : count - begin;
        const char *const *from = source->line + begin, *const *to = target->line + begin;
        heed_error err = {0};
        if (score_some(r, from, to, n, out, &err)) {
            const int64_t wrong = find_wrong(r, from, to, n, out, &err);
            if (wrong > 0)
                score_some(r, from, to, wrong, out, NULL);
            complain("cannot score line %lld: %s", (long long)(begin + wrong) + 1, err.text);
            return false;
        }
        if (!results_written())
            return reader_left();
    }
    return true;
}

/* Both files are read whole before anything is printed: only then is it known that they fit. */
static bool score_files(const struct run *r, line_reader *source, line_reader *target)
{
    int64_t count = lines_take(source, INT64_MAX, LINES_ALL);
    int64_t other = count < 0 ? -1 : lines_take(target, INT64_MAX, LINES_ALL);
    if (other < 0)
        return false;
    if (count != other) {
        complain("%s has %lld lines, expected %lld as in %s", target->name, (long long)other,
                 (long long)count, source->name);
        return false;
    }
    lines_complain_of_bytes(source, count);
    lines_complain_of_bytes(target, count);
    return score_lines(r, source, target, count);
}

static bool run_all(struct run *r)
{
    heed_error err = {0};
    line_reader source, target;
    bool good = lines_open(&source, r->s->source);
    good = lines_open(&target, r->s->target) && good;
    if (good) {
        r->tr = heed_translator_open(r->s->model, (int)r->s->threads, NULL, &err);
        r->arena = r->tr ? heed_arena_new(NULL, &err) : NULL;
        good = r->arena != NULL;
        if (good) {
            heed_translator_protect(r->tr, r->s->protect);
            heed_translator_capitals(r->tr, false); /* both sides as they are */
            good = score_files(r, &source, &target);
        } else {
            complain("%s", err.text);
        }
    }
    lines_close(&source);
    lines_close(&target);
    return good;
}

static bool usage_is_right(const struct settings *s, const invocation *in)
{
    if (s->text.count && (s->source || s->target))
        complain("option '--text' cannot stand with '--source' and '--target'");
    else if (s->text.count && (s->per_token || s->normalize || option_typed(in, "protect")))
        complain("'--per-token', '--normalize' and '--protect' are for translations, not for "
                 "'--text'");
    else if (s->json && !s->text.count)
        complain("option '--json' needs '--text'");
    else if (s->text.count)
        return true;
    else if (!s->source || !s->target)
        complain("option '--%s' is missing, expected a file", s->source ? "target" : "source");
    else if (strcmp(s->source, "-") == 0 && strcmp(s->target, "-") == 0)
        complain("options '--source' and '--target' are both '-', expected one file at least");
    else
        return true;
    fprintf(stderr, "try '%s --help'\n", score_options.command);
    return false;
}

int score_run(int argc, const char *const *argv)
{
    invocation in;
    struct settings s;
    if (!invocation_begin(&in, &score_options, argc, argv, &s)) {
        invocation_end(&in);
        return in.exit_code;
    }
    int code = EXIT_USAGE;
    const bool right = usage_is_right(&s, &in);
    if (right && (s.model = find_model(s.model, NULL, in.arena)) && s.text.count) {
        heed_machine m;
        heed_machine_describe(&m);
        const int threads = (int)(s.threads ? s.threads : m.threads);
        code = score_texts(s.model, &s.text, threads, s.json) ? EXIT_DONE : EXIT_FAILED;
    } else if (right && s.model) {
        struct run r = {.s = &s};
        code = run_all(&r) ? EXIT_DONE : EXIT_FAILED;
        heed_arena_free(r.arena);
        heed_translator_free(r.tr);
    }
    invocation_end(&in);
    return code;
}
