/* cmd_translate.c: `heed translate`: one line out for each line in, in order, always. */
#include "cmd_translate.h"
#include "cmd_models.h"
#include "command.h"
#include "option_groups.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Lines of a file that are sent off together; other input gets each answer at once. */
#define LINES_SENT 64
#define SECONDS_SHOWN 0.2 /* between two looks at the progress */

static const heed_option fields[] = {
    MODEL_OPTION(struct translate_settings),
    HEED_OPTION_TEXT(struct translate_settings, to, "to", NULL, "LANGUAGE",
                     "without --model: the installed one that translates into it"),
    HEED_SEARCH_OPTIONS(struct translate_settings, search),
    HEED_SAMPLE_OPTIONS(struct translate_settings, search),
    HEED_OPTION_TEXT(struct translate_settings, prefix, "prefix", NULL, "TEXT",
                     "every translation begins so, that of a line in CAPITALS in capitals"),
    HEED_OPTION_BOOL(struct translate_settings, scores, "scores", NULL,
                     "put the score and a tab before each translation; --json and --n-best above "
                     "1 have it anyway"),
    HEED_OPTION_BOOL(
        struct translate_settings, json, "json", NULL,
        "print JSON objects: line (from 1), text, score, tokens, log_p of each; loop if a "
        "hypothesis was cut because it went round in circles; n_best.  A line of input that begins "
        "with {\" or {}, with or without blanks "
        "before and between, is an object too: text, prefix; its other fields come out again"),
    HEED_OPTION_BOOL(
        struct translate_settings, alignments, "alignments", NULL,
        "put ` ||| 0-0 1-2` behind the translation, of --n-best the best: the word of the line "
        "that each of its words comes from"),
    HEED_OPTION_TEXT(struct translate_settings, alignment_head, "alignment-head", NULL,
                     "LAYER[.HEAD]",
                     "attention that --alignments reads, from 1; without a head the sum of the "
                     "layer's; if not given, the head that agrees best with the text that the "
                     "model keeps, without any the last decoder layer but one of three or more"),
    HEED_OPTION_BOOL(struct translate_settings, shortlist, "shortlist", NULL,
                     "look only at pieces that 'heed shortlist' found likely for each line: faster "
                     "where the vocabulary is large"),
    PROTECT_OPTION(struct translate_settings),
    CAPITALS_OPTION(struct translate_settings),
    HEED_OPTION_INT(
        struct translate_settings, threads, "threads", NULL, 1, 64, "N",
        "threads to use; if not given all processors, and one where few lines meet a small "
        "model"),
    HEED_OPTION_INT(struct translate_settings, workers, "workers", "0", 0, 64, "N",
                    "lines translated side by side, each with its share of the threads, one at "
                    "least; 0: one a thread where many lines are there, else one"),
    HEED_OPTION_INT(struct translate_settings, batch, "batch", "0", 0, 100000, "N",
                    "sentences that a worker decodes together; 0: as make 512 hypotheses"),
};
static const char *const examples[] = {
    "echo 'A dog runs.' | heed translate",
    "echo 'A dog runs.' | heed translate --model m",
    "heed translate --model m --beam 8 --n-best 3 news.en >news.de",
    "heed translate --model m --sample --top-p 0.9 --n-best 5 news.en",
    "echo '{\"text\": \"A dog.\", \"id\": 7}' | heed translate --model m --json",
    NULL};
const heed_option_set translate_options = {
    .command = "heed translate",
    .summary = "Translate lines from files or standard input",
    .arguments = "[FILE...]",
    .most = -1,
    .fields = fields,
    .count = sizeof fields / sizeof *fields,
    .examples = examples,
    .groups = translate_groups,
};

struct run {
    const struct translate_settings *s;
    struct translate_input in;
    heed_translator *tr;
    int layer, head; /* to align by */
    int64_t lines, tokens, unsent;
    int64_t repaired, first_repaired; /* lines that were not UTF-8, and the first of them */
    int64_t too_long, first_too_long; /* lines that were, and the first of them */
    int64_t unprotected, first_unprotected;
    int64_t wrong; /* lines that could not be read as JSON */
    int64_t size;  /* of all that is to be read, in bytes; 0: progress is not shown */
    bool shown, told;
    double start, last_shown;
    int percent; /* shown last */
};

/* Lines come in bursts, and the first of one says little: a percent more is shown at once. */
static void show_progress(struct run *r, const struct translate_line *l)
{
    if (r->size == 0)
        return;
    double seconds = heed_clock_seconds() - r->start, share = (double)l->taken / (double)r->size;
    int percent = (int)(100 * share);
    if (seconds < r->last_shown + SECONDS_SHOWN && !(r->shown && percent > r->percent))
        return;
    r->last_shown = seconds;
    r->percent = percent;
    r->shown = true;
    fprintf(stderr, "\r%d %%, %lld lines, %.0f tokens/s, %.0f s left \033[K", percent,
            (long long)r->lines, (double)r->tokens / seconds, seconds * (1 / share - 1));
}

static void clear_progress(struct run *r)
{
    if (r->shown)
        fputs("\r\033[K", stderr);
    r->shown = false;
}

/* ---- the stream ---- */

static heed_status next_line(void *context, bool wait, heed_source_line *line, heed_error *err)
{
    struct run *r = context;
    heed_status status = translate_next(&r->in, wait, line, err);
    r->told |= status != HEED_OK;
    return status;
}

static heed_status done_line(void *context, const heed_source_line *line, const heed_translation *t,
                             heed_error *err)
{
    struct run *r = context;
    const struct translate_line *l = line->tag;
    translate_print(r->s, heed_translator_target(r->tr), l, t);
    if (t->repaired && r->repaired++ == 0)
        r->first_repaired = l->number + 1;
    if (t->too_long && r->too_long++ == 0)
        r->first_too_long = l->number + 1;
    if (t->unprotected && r->unprotected++ == 0)
        r->first_unprotected = l->number + 1;
    r->wrong += l->wrong[0] != '\0';
    r->lines++;
    r->tokens += t->tokens;
    show_progress(r, l);
    bool send = l->size == 0 || ++r->unsent == LINES_SENT;
    translate_forget(&r->in);
    if (!send)
        return HEED_OK;
    r->unsent = 0;
    r->told |= !results_written();
    return r->told ? (err->status = HEED_IO) : HEED_OK;
}

/* ---- the command ---- */

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

static bool run_all(struct run *r)
{
    heed_error err = {0};
    if (!readable(r->in.files))
        return false;
    r->tr = heed_translator_open(r->s->model, (int)r->s->threads, NULL, &err);
    if (r->tr) {
        heed_translator_protect(r->tr, r->s->protect);
        heed_translator_capitals(r->tr, r->s->capitals);
    }
    if (r->tr && r->s->shortlist)
        heed_translator_use_shortlist(r->tr, r->s->model, &err);
    if (r->tr && r->s->alignments)
        heed_translator_align(r->tr, r->layer, r->head, &err);
    if (err.status) {
        complain("%s", err.text);
        return false;
    }
    r->start = heed_clock_seconds();
    if (isatty(STDERR_FILENO) && !isatty(STDOUT_FILENO))
        r->size = translate_size(&r->in);
    if (r->in.files->count == 0 && isatty(STDIN_FILENO) && isatty(STDERR_FILENO))
        fputs("type lines to translate; Ctrl-D ends\n", stderr);
    heed_line_stream stream = {r, next_line, done_line};
    heed_stream_options so = {.workers = (int)r->s->workers, .batch = r->s->batch};
    heed_status status = heed_translate_stream(r->tr, &r->s->search, &so, &stream, &err);
    clear_progress(r);
    if (status && !r->told)
        complain("cannot translate: %s", err.text);
    if (r->repaired)
        complain("lines that are not UTF-8: %lld, the first is line %lld; U+FFFD takes the place "
                 "of each wrong byte",
                 (long long)r->repaired, (long long)r->first_repaired);
    if (r->too_long)
        complain("lines longer than %zu MB: %lld, the first is line %lld; they are not translated",
                 HEED_LONGEST_LINE >> 20, (long long)r->too_long, (long long)r->first_too_long);
    if (r->unprotected)
        complain("lines with addresses, times or the like: %lld, the first is line %lld; this "
                 "model may change them: it was not trained with --protect",
                 (long long)r->unprotected, (long long)r->first_unprotected);
    if (r->wrong)
        complain("lines that are no JSON objects to translate: %lld; their \"error\" says why",
                 (long long)r->wrong);
    return (!status || reader_left()) && !r->wrong;
}

/* The whole number that *text begins with, and *text behind it; 0: there is none from 1. */
static int read_number(const char **text)
{
    char *end;
    if (**text < '1' || **text > '9') /* strtol takes blanks and a sign, too */
        return 0;
    long n = strtol(*text, &end, 10);
    *text = end;
    return n > INT_MAX ? 0 : (int)n;
}

/* "3" or "3.1": a layer, a head of it. */
static bool read_head(const char *text, int *layer, int *head)
{
    *layer = read_number(&text);
    bool has_head = *text == '.';
    text += has_head;
    *head = has_head ? read_number(&text) : 0;
    return *layer > 0 && (*head > 0 || !has_head) && *text == '\0';
}

/* An option that is given its default asks for nothing: --print-config writes all of them. */
static bool usage_is_right(const invocation *in, const struct translate_settings *s, int *layer,
                           int *head)
{
    if (s->alignment_head && !read_head(s->alignment_head, layer, head))
        complain("option '--alignment-head' is '%s', expected a layer or LAYER.HEAD, from 1",
                 s->alignment_head);
    else if (s->model && s->to)
        complain("options '--model' and '--to' exclude each other");
    else if (!s->search.sample && s->search.n_best > s->search.beam)
        complain("option '--n-best' is %lld, expected at most %lld as '--beam' says",
                 (long long)s->search.n_best, (long long)s->search.beam);
    else if (!s->search.sample && (s->search.temperature != 0.7 || s->search.top_k != 0 ||
                                   s->search.top_p != 0.9 || s->search.seed != 1))
        complain("options '--temperature', '--top-k', '--top-p' and '--seed' are of '--sample': "
                 "expected it too");
    else if (s->search.sample && (s->search.beam != 4 || option_typed(in, "beam")))
        complain("options '--sample' and '--beam' exclude each other: '--n-best' says how many "
                 "translations are drawn");
    else if (s->search.sample && s->search.patience > 0)
        complain("options '--sample' and '--patience' exclude each other");
    else if (s->search.max_length && s->search.min_length > s->search.max_length)
        complain("option '--min-length' is %lld, expected at most %lld as '--max-length' says",
                 (long long)s->search.min_length, (long long)s->search.max_length);
    else if (s->search.max_ratio > 0 && s->search.min_ratio > s->search.max_ratio)
        complain("option '--min-ratio' is %g, expected at most %g as '--max-ratio' says",
                 s->search.min_ratio, s->search.max_ratio);
    else if (s->alignment_head && !s->alignments)
        complain("option '--alignment-head' is of '--alignments': expected it too");
    else
        return true;
    fprintf(stderr, "try '%s --help'\n", translate_options.command);
    return false;
}

int translate_run(int argc, const char *const *argv)
{
    invocation in;
    struct translate_settings s = {0}; /* not all of it is an option */
    if (!invocation_begin(&in, &translate_options, argc, argv, &s)) {
        invocation_end(&in);
        return in.exit_code;
    }
    int code = EXIT_USAGE;
    s.search.unscored = !s.scores && !s.json && s.search.n_best == 1;
    struct run r = {.s = &s, .in = {.s = &s, .files = &in.words}};
    if (usage_is_right(&in, &s, &r.layer, &r.head) &&
        (s.model = find_model(s.model, s.to, in.arena))) {
        code = run_all(&r) ? EXIT_DONE : EXIT_FAILED;
        translate_close(&r.in);
        heed_translator_free(r.tr);
    }
    invocation_end(&in);
    return code;
}
