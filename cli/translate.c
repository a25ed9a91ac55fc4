/* translate.c: `heed translate`: one line out for each line in, in order, always. */
#include "command.h"
#include "lines.h"

#include <errno.h>
#include <heed/decode.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Lines translated at a time: enough to sort by length, few enough to show results soon. */
#define CHUNK 1000

struct settings {
    const char *model;
    heed_search_options search;
    bool scores, json;
    int64_t threads;
};
static const heed_option fields[] = {
    HEED_OPTION_TEXT(struct settings, model, "model", NULL, "DIR", "the model's directory"),
    HEED_SEARCH_OPTIONS(struct settings, search),
    HEED_OPTION_BOOL(struct settings, scores, "scores", NULL,
                     "put the score and a tab before each translation"),
    HEED_OPTION_BOOL(struct settings, json, "json", NULL,
                     "print JSON objects: line (from 1), text, score, tokens"),
    HEED_OPTION_INT(struct settings, threads, "threads", NULL, 1, 64, "N",
                    "threads to use; all processors if not given"),
};
static const char *const examples[] = {
    "echo 'A dog runs.' | heed translate --model m",
    "heed translate --model m --beam 8 --n-best 3 news.en >news.de",
    "heed translate --model m --beam 1 --scores news.en", NULL};
const heed_option_set translate_options = {
    .command = "heed translate",
    .summary = "Translate lines from files or standard input",
    .arguments = "[FILE...]",
    .most = -1,
    .fields = fields,
    .count = sizeof fields / sizeof *fields,
    .examples = examples,
};

struct run {
    const struct settings *s;
    heed_translator *tr;
    heed_arena *arena; /* one chunk */
    heed_translation *out;
    int64_t lines;               /* translated so far */
    int64_t repaired, first_bad; /* lines that were not UTF-8, and the first of them */
    bool progress;
    struct timespec start;
};

static void print_json(const struct run *r, int64_t line, const heed_translation *t)
{
    printf("{\"line\":%lld,\"text\":", (long long)line + 1);
    print_json_text(t->text);
    printf(",\"score\":%.6g,\"tokens\":[", t->score);
    for (int64_t i = 0; i < t->tokens; i++) {
        if (i)
            putchar(',');
        print_json_text(heed_vocab_piece(heed_translator_target(r->tr), t->id[i]));
    }
    puts("]}");
}

static void print_translation(const struct run *r, int64_t line, const heed_translation *t)
{
    if (r->s->json)
        print_json(r, line, t);
    else if (r->s->search.n_best > 1)
        printf("%lld ||| %s ||| %.4f\n", (long long)line, t->text, t->score);
    else if (r->s->scores)
        printf("%.4f\t%s\n", t->score, t->text);
    else
        puts(t->text);
}

static bool translate_lines(struct run *r, const char *const *lines, int64_t count)
{
    heed_error err = {0};
    heed_arena_reset(r->arena);
    if (heed_translate(r->tr, &r->s->search, lines, count, r->arena, r->out, &err)) {
        complain("cannot translate lines %lld to %lld: %s", (long long)r->lines + 1,
                 (long long)(r->lines + count), err.text);
        return false;
    }
    for (int64_t i = 0; i < count; i++) {
        const heed_translation *t = &r->out[i * r->s->search.n_best];
        for (int64_t k = 0; k < r->s->search.n_best && t[k].text; k++)
            print_translation(r, r->lines + i, &t[k]);
        if (t->repaired && r->repaired++ == 0)
            r->first_bad = r->lines + i + 1;
    }
    r->lines += count;
    return results_written();
}

static void show_progress(const struct run *r, const line_reader *in)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    double seconds =
        (double)(now.tv_sec - r->start.tv_sec) + 1e-9 * (double)(now.tv_nsec - r->start.tv_nsec);
    fprintf(stderr, "\r%s: %.0f %%, %lld lines, %.0f lines/s \033[K", in->name,
            100.0 * (double)in->taken / (double)in->size, (long long)r->lines,
            (double)r->lines / (seconds > 0 ? seconds : 1));
}

static bool translate_file(struct run *r, const char *path)
{
    line_reader in;
    bool good = lines_open(&in, path);
    while (good) {
        int64_t n = lines_take(&in, CHUNK, false);
        good = n > 0 ? translate_lines(r, in.line, n) : n == 0;
        if (n <= 0)
            break;
        if (r->progress && in.size > 0)
            show_progress(r, &in);
    }
    if (r->progress && in.size > 0 && r->lines > 0)
        fputs("\r\033[K", stderr);
    lines_close(&in);
    return good;
}

/* A file that cannot be read is better known before an hour of work on the others.  It is not
 * opened: a pipe can be opened only once. */
static bool readable(const heed_option_list *files)
{
    for (int i = 0; i < files->count; i++)
        if (strcmp(files->items[i], "-") != 0 && access(files->items[i], R_OK) != 0) {
            complain("cannot read '%s': %s", files->items[i], strerror(errno));
            return false;
        }
    return true;
}

static bool run_all(struct run *r, const heed_option_list *files)
{
    heed_error err = {0};
    bool good = readable(files);
    if (!good)
        return false;
    r->tr = heed_translator_open(r->s->model, (int)r->s->threads, NULL, &err);
    r->arena = r->tr ? heed_arena_new(NULL, &err) : NULL;
    if (!r->arena) {
        complain("%s", err.text);
        return false;
    }
    r->out = calloc(CHUNK * (size_t)r->s->search.n_best, sizeof *r->out);
    if (!r->out) {
        complain("out of memory for %lld translations of each line",
                 (long long)r->s->search.n_best);
        return false;
    }
    clock_gettime(CLOCK_MONOTONIC, &r->start);
    if (files->count == 0 && isatty(STDIN_FILENO) && isatty(STDERR_FILENO))
        fputs("type lines to translate; Ctrl-D ends\n", stderr);
    if (files->count == 0)
        return translate_file(r, "-");
    for (int i = 0; good && i < files->count; i++)
        good = translate_file(r, files->items[i]);
    return good;
}

static bool usage_is_right(const struct settings *s)
{
    if (!s->model)
        complain("option '--model' is missing, expected the directory of a model");
    else if (s->search.n_best > s->search.beam)
        complain("option '--n-best' is %lld, expected at most %lld as '--beam' says",
                 (long long)s->search.n_best, (long long)s->search.beam);
    else
        return true;
    fprintf(stderr, "try '%s --help'\n", translate_options.command);
    return false;
}

int translate_run(int argc, const char *const *argv)
{
    invocation in;
    struct settings s;
    if (!invocation_begin(&in, &translate_options, argc, argv, &s)) {
        invocation_end(&in);
        return in.exit_code;
    }
    int code = EXIT_USAGE;
    if (usage_is_right(&s)) {
        struct run r = {.s = &s, .progress = isatty(STDERR_FILENO) && !isatty(STDOUT_FILENO)};
        code = run_all(&r, &in.words) ? EXIT_DONE : EXIT_FAILED;
        if (r.repaired)
            complain(
                "lines that are not UTF-8: %lld, the first is line %lld; U+FFFD takes the place "
                "of each wrong byte",
                (long long)r.repaired, (long long)r.first_bad);
        free(r.out);
        heed_arena_free(r.arena);
        heed_translator_free(r.tr);
    }
    invocation_end(&in);
    return code;
}
