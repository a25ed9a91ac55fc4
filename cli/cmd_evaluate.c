/* cmd_evaluate.c: `heed evaluate`: how good translations are, from a file or made on the spot. */
#include "cmd_evaluate.h"
#include "cmd_models.h"
#include "command.h"
#include "evaluate_examples.h"
#include "input_lines.h"
#include "option_groups.h"

#include <heed/translate.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Lines translated at a time: enough to sort by length, few enough to show progress. */
#define CHUNK 200
/* From this many lines on, a space before the final full stop is no accident. */
#define SUSPICIOUS 100
#define MOST_REFERENCES 16

struct settings {
    struct evaluation e;
    heed_option_list reference;
    const char *model, *source, *compare, *metrics, *by_length, *output;
    const char *tsv, *conll, *tag_column, *images;
    heed_option_list idx;
    bool tokenized;
    heed_search_options search;
    int64_t threads;
};
static const char *const tokenizers[] = {"13a", "intl", "none", "char", "zh", NULL};
static const heed_option fields[] = {
    HEED_OPTION_LIST(struct settings, reference, "reference", "FILE",
                     "the right translations, one a line; given several times: other right ones"),
    HEED_OPTION_TEXT(struct settings, metrics, "metric", "bleu,chrf,ter", "NAMES",
                     "what to compute: bleu, chrf, chrf++, ter; commas between"),
    HEED_OPTION_CHOICE(struct settings, e.tokenize, "tokenize", "13a", tokenizers,
                       "how BLEU finds words, as in sacreBLEU"),
    HEED_OPTION_BOOL(struct settings, e.lowercase, "lowercase", NULL,
                     "ignore letter case in BLEU and chrF"),
    HEED_OPTION_BOOL(struct settings, tokenized, "tokenized", NULL,
                     "the text is tokenised: BLEU as multi-bleu.perl computes it"),
    HEED_OPTION_BOOL(struct settings, e.compound_split, "compound-split", NULL,
                     "BLEU counts a-b as three words, as the Transformer's paper did"),
    HEED_OPTION_BOOL(struct settings, e.ter.normalized, "ter-normalized", NULL,
                     "TER tokenises first, as Tercom can"),
    HEED_OPTION_BOOL(struct settings, e.ter.no_punctuation, "ter-no-punct", NULL,
                     "TER ignores punctuation"),
    HEED_OPTION_BOOL(struct settings, e.ter.asian_support, "ter-asian-support", NULL,
                     "TER takes Chinese and Japanese characters for words"),
    HEED_OPTION_BOOL(struct settings, e.ter.case_sensitive, "ter-case-sensitive", NULL,
                     "TER minds letter case"),
    HEED_OPTION_BOOL(struct settings, e.sentence, "sentence", NULL,
                     "print the scores of every line instead of the whole"),
    HEED_OPTION_TEXT(struct settings, compare, "compare", NULL, "FILE",
                     "another system's translations: is the difference more than chance?"),
    HEED_OPTION_TEXT(struct settings, by_length, "by-length", NULL, "EDGES",
                     "scores by words of the source: 10,15,20 makes four groups; takes several "
                     "files"),
    HEED_OPTION_TEXT(struct settings, output, "output", NULL, "FILE",
                     "draw the scores of --by-length, or the confusion matrix of --tsv, --conll, "
                     "--images and --idx, into FILE, which ends in .svg"),
    HEED_OPTION_INT(struct settings, e.resamples, "resamples", "1000", 1, 1000000, "N",
                    "test sets drawn for --compare"),
    HEED_OPTION_INT(struct settings, e.seed, "seed", "1", 0, INT64_MAX, "N",
                    "draws other test sets for --compare"),
    HEED_OPTION_BOOL(struct settings, e.json, "json", NULL,
                     "print one JSON object, or one a line with --sentence"),
    HEED_OPTION_TEXT(struct settings, model, "model", NULL, "DIR",
                     "translate --source with this model, a directory or the name of an installed "
                     "one, instead of reading translations"),
    HEED_OPTION_TEXT(struct settings, source, "source", NULL, "FILE",
                     "what --model translates, or was translated"),
    HEED_OPTION_TEXT(struct settings, tsv, "tsv", NULL, "FILE",
                     "encoders: label TAB text [TAB text] for a classifier; score TAB text TAB "
                     "text, or text TAB text, for vectors"),
    HEED_OPTION_TEXT(struct settings, conll, "conll", NULL, "FILE",
                     "taggers: columns, a word a line, an empty line behind each sentence"),
    HEED_OPTION_TEXT(struct settings, tag_column, "tag-column", NULL, "N|upos|xpos",
                     "with --conll: the column of the tag, from 1; the last if not given, upos "
                     "in .conllu"),
    HEED_OPTION_TEXT(struct settings, images, "images", NULL, "DIR",
                     "picture classifiers: a folder for each class, its pictures inside"),
    HEED_OPTION_WORDS(struct settings, idx, "idx", 2, "IMAGES LABELS",
                      "picture classifiers: two IDX files, plain or gzip, as MNIST's"),
    HEED_SEARCH_OPTIONS(struct settings, search),
    HEED_OPTION_INT(struct settings, threads, "threads", NULL, 1, 64, "N",
                    "threads that translate; all processors if not given"),
};
static const char *const examples[] = {
    "heed evaluate --reference test.de hyp.de",
    "heed evaluate --reference test.de --metric bleu,chrf++ --json hyp.de",
    "heed evaluate --reference test.de --compare baseline.de hyp.de",
    "heed evaluate --reference one.en --reference other.en hyp.en",
    "heed evaluate --reference test.de --model m --source test.en --beam 4",
    "heed evaluate --reference test.de --source test.en --by-length 10,20 a.de b.de",
    "heed evaluate --model classifier --tsv test.tsv --output confusion.svg",
    "heed evaluate --model tagger --conll test.conll --json",
    "heed evaluate --model vit --images photos --output confusion.svg",
    NULL,
};
const heed_option_set evaluate_options = {
    .command = "heed evaluate",
    .summary = "Score translations with BLEU, chrF and TER; labels, tags and vectors",
    .arguments = "[FILE...]",
    .most = MOST_SYSTEMS,
    .fields = fields,
    .count = sizeof fields / sizeof *fields,
    .examples = examples,
    .groups = evaluate_groups,
};

/* ---- lines ---- */

/* All lines of a file, whose number must be that of another, unless that is NULL.  They live as
 * long as the reader. */
static bool read_all(line_reader *r, const char *path, const line_reader *other, int64_t *count)
{
    int64_t n = lines_open(r, path) ? lines_take(r, INT64_MAX, LINES_ALL) : -1;
    if (n < 0)
        return false;
    if (other && n != *count) {
        complain("%s has %lld lines, expected %lld as in %s%s", r->name, (long long)n,
                 (long long)*count, other->name,
                 n ? "" : ": name a file of translations, or let '--model' make them");
        return false;
    }
    if (n == 0) {
        complain("%s is empty, expected lines of text", r->name);
        return false;
    }
    if (r->nul_line) {
        complain("%s line %lld: there is a NUL, expected text", r->name, (long long)r->nul_line);
        return false;
    }
    lines_complain_of_bytes(r, n);
    *count = n;
    return true;
}

/* One line on a terminal; otherwise a plain one at the end, and one every ten seconds before. */
struct progress {
    double start;
    double shown; /* seconds after the start */
};
static void show_progress(struct progress *p, int64_t done, int64_t count)
{
    bool terminal = isatty(STDERR_FILENO);
    double seconds = heed_clock_seconds() - p->start;
    if (!terminal && done < count && seconds < p->shown + 10)
        return;
    p->shown = seconds;
    fprintf(stderr, "%stranslated %lld of %lld lines, %.1f s%s%s", terminal ? "\r" : "",
            (long long)done, (long long)count, seconds, terminal ? "\033[K" : "",
            terminal && done < count ? "" : "\n");
}

static const char *copy_text(heed_arena *arena, const char *text)
{
    size_t size = strlen(text) + 1;
    char *copy = heed_arena_allocate(arena, size);
    return copy ? memcpy(copy, text, size) : NULL;
}

/* The search's memory goes with every chunk; the translations stay in the invocation's arena. */
static heed_status translate_chunks(const struct settings *s, heed_translator *tr,
                                    const char *const *source, int64_t count, heed_arena *keep,
                                    heed_arena *arena, const char **out, heed_error *err)
{
    heed_translation translation[CHUNK];
    heed_search_options search = s->search;
    search.unscored = true;
    struct progress progress = {.start = heed_clock_seconds()};
    for (int64_t begin = 0; begin < count; begin += CHUNK) {
        int64_t n = begin + CHUNK < count ? CHUNK : count - begin;
        heed_arena_reset(arena);
        heed_status status =
            heed_translate(tr, &search, source + begin, n, arena, translation, err);
        if (status)
            return status;
        for (int64_t i = 0; i < n; i++)
            if (!(out[begin + i] = copy_text(keep, translation[i].text)))
                return HEED_MEMORY;
        show_progress(&progress, begin + n, count);
    }
    return HEED_OK;
}

/* The translations of the source's lines; NULL after saying what went wrong. */
static const char *const *translate_all(const struct settings *s, const char *const *source,
                                        int64_t count, heed_arena *keep)
{
    heed_error err = {0};
    const char **out = heed_arena_allocate(keep, (size_t)count * sizeof *out);
    heed_translator *tr = out ? heed_translator_open(s->model, (int)s->threads, NULL, &err) : NULL;
    heed_arena *arena = tr ? heed_arena_new(NULL, &err) : NULL;
    bool good = arena && !translate_chunks(s, tr, source, count, keep, arena, out, &err);
    if (!good)
        complain("%s", err.status ? err.text : "out of memory for the translations");
    heed_arena_free(arena);
    heed_translator_free(tr);
    return good ? out : NULL;
}

/* ---- the command ---- */

static void warn_if_tokenized(const struct settings *s, const char *const *lines, int64_t count)
{
    int64_t spaced = 0;
    for (int64_t i = 0; i < count; i++) {
        size_t n = strlen(lines[i]);
        spaced += n > 1 && strcmp(lines[i] + n - 2, " .") == 0;
    }
    if (spaced >= SUSPICIOUS && !s->tokenized && s->e.tokenize != HEED_TOKENIZE_NONE)
        complain("%lld lines end in ' .': if the text is tokenised, --tokenized is meant for it",
                 (long long)spaced);
}

/* Everything that is read, and what is made of it. */
struct input {
    line_reader reference[MOST_REFERENCES], source, other, file[MOST_SYSTEMS];
    struct systems systems;
};

/* The references of each line side by side; NULL after saying that memory is short. */
static const char *const *weave(const line_reader *reference, int count, int64_t lines,
                                heed_arena *arena)
{
    const char **all = heed_arena_allocate(arena, (size_t)(lines * count) * sizeof *all);
    if (!all)
        complain("out of memory for the references");
    for (int64_t i = 0; all && i < lines * count; i++)
        all[i] = reference[i % count].line[i / count];
    return all;
}

static bool read_input(const struct settings *s, const heed_option_list *files, struct input *in,
                       heed_arena *arena)
{
    struct systems *y = &in->systems;
    for (int k = 0; k < s->reference.count; k++)
        if (!read_all(&in->reference[k], s->reference.items[k], k ? &in->reference[0] : NULL,
                      &y->lines))
            return false;
    if ((s->source && !read_all(&in->source, s->source, &in->reference[0], &y->lines)) ||
        (s->compare && !read_all(&in->other, s->compare, &in->reference[0], &y->lines)))
        return false;
    if (!(y->reference = weave(in->reference, s->reference.count, y->lines, arena)))
        return false;
    y->references = s->reference.count;
    y->source = s->source ? in->source.line : NULL;
    y->count = s->model || !files->count ? 1 : files->count;
    y->name[0] = s->model ? s->model : "-";
    if (s->model)
        return (y->hypothesis[0] = translate_all(s, y->source, y->lines, arena));
    for (int i = 0; i < y->count; i++) {
        y->name[i] = files->count ? files->items[i] : "-";
        if (!read_all(&in->file[i], y->name[i], &in->reference[0], &y->lines))
            return false;
        y->hypothesis[i] = in->file[i].line;
    }
    return true;
}

static bool run_all(const struct settings *s, const heed_option_list *files, heed_arena *arena)
{
    struct input in = {.systems = {.count = 0}};
    const struct systems *y = &in.systems;
    bool good = read_input(s, files, &in, arena);
    if (good)
        warn_if_tokenized(s, y->hypothesis[0], y->lines);
    struct evaluation e = s->e;
    e.references = y->references;
    if (good && s->by_length)
        good = evaluate_by_length(&e, y, s->by_length, s->output, arena);
    else if (good)
        good = evaluate(&e, y->hypothesis[0], s->compare ? in.other.line : NULL, y->reference,
                        y->lines);
    for (int i = 0; i < MOST_SYSTEMS; i++)
        lines_close(&in.file[i]);
    lines_close(&in.other);
    lines_close(&in.source);
    for (int k = 0; k < MOST_REFERENCES; k++)
        lines_close(&in.reference[k]);
    return good;
}

/* How many of the files are standard input. */
static int standard_inputs(const struct settings *s, const heed_option_list *words)
{
    const char *const named[] = {s->source, s->compare, s->model || words->count ? NULL : "-"};
    int n = 0;
    for (int i = 0; i < 3; i++)
        n += named[i] && strcmp(named[i], "-") == 0;
    for (int i = 0; i < s->reference.count; i++)
        n += strcmp(s->reference.items[i], "-") == 0;
    for (int i = 0; i < words->count; i++)
        n += strcmp(words->items[i], "-") == 0;
    return n;
}

/* Of the translation that '--model' makes. */
static const heed_option searching[] = {HEED_SEARCH_OPTIONS(struct settings, search)};

/* False after saying that an option was typed without the other one that it is for. */
static bool has_other(const invocation *in, const char *name, const char *other, bool there)
{
    bool good = there || !option_typed(in, name);
    if (!good)
        complain("option '--%s' is for '--%s'", name, other);
    return good;
}

static bool none_in_vain(const struct settings *s, const invocation *in)
{
    bool good = has_other(in, "resamples", "compare", s->compare) &&
                has_other(in, "seed", "compare", s->compare) &&
                has_other(in, "threads", "model", s->model);
    for (size_t i = 0; good && i < sizeof searching / sizeof *searching; i++)
        good = has_other(in, searching[i].name, "model", s->model);
    return good;
}

/* Fills in what the options mean together; false after saying what is wrong with them. */
static bool usage_is_right(struct settings *s, const invocation *in)
{
    const heed_option_list *words = &in->words;
    if (!s->reference.count)
        complain("option '--reference' is missing, expected a file");
    else if (s->reference.count > MOST_REFERENCES)
        complain("option '--reference' is there %d times, expected at most %d", s->reference.count,
                 MOST_REFERENCES);
    else if (!s->source && (s->model || s->by_length))
        complain("option '--source' is missing, expected with '--%s'",
                 s->model ? "model" : "by-length");
    else if (s->source && !s->model && !s->by_length)
        complain("option '--source' is for '--model', which translates it, or for '--by-length'");
    else if (s->model && words->count)
        complain("unexpected argument '%s': the translations come from '--model'", words->items[0]);
    else if (words->count > 1 && !s->by_length)
        complain("unexpected argument '%s': several files are compared with '--by-length' or, two, "
                 "with '--compare'",
                 words->items[1]);
    else if (s->search.n_best != 1)
        complain("option '--n-best' is %lld, expected 1: only the best translation is scored",
                 (long long)s->search.n_best);
    else if (standard_inputs(s, words) > 1)
        complain("two files are standard input, expected one at most");
    else if (s->e.sentence && s->compare)
        complain("options '--sentence' and '--compare' exclude each other");
    else if (s->by_length && (s->e.sentence || s->compare))
        complain("options '--by-length' and '--%s' exclude each other",
                 s->compare ? "compare" : "sentence");
    else if (s->output && !s->by_length)
        complain("option '--output' draws what '--by-length' computes: expected both");
    else if (s->output && !ends_with(s->output, ".svg"))
        complain("option '--output' must end in .svg");
    else if ((s->by_length && !length_edges_right(s->by_length)) || !none_in_vain(s, in))
        ; /* it has said so */
    else if (s->tokenized && s->e.tokenize != HEED_TOKENIZE_13A)
        complain("options '--tokenized' and '--tokenize' exclude each other");
    else if (evaluation_choose(&s->e, s->metrics)) {
        if (s->tokenized)
            s->e.tokenize = HEED_TOKENIZE_MULTI_BLEU;
        return true;
    }
    fprintf(stderr, "try '%s --help'\n", evaluate_options.command);
    return false;
}

/* The option that names examples; NULL: there are translations. */
static const char *examples_of(const struct settings *s)
{
    return s->tsv ? "tsv" : s->conll ? "conll" : s->images ? "images" : s->idx.count ? "idx" : NULL;
}

/* Only these go with examples; false after saying which does not. */
static bool examples_are_right(const struct settings *s, const invocation *in)
{
    static const char *const alone[] = {"model",      "tsv",    "conll", "images", "idx",
                                        "tag-column", "output", "json",  "threads"};
    static const char *const files[] = {"tsv", "conll", "images", "idx"};
    const char *own = examples_of(s);
    bool good = true;
    for (int i = 0; good && i < 4; i++) {
        good = strcmp(files[i], own) == 0 || !option_typed(in, files[i]);
        if (!good)
            complain("options '--%s' and '--%s' exclude each other", own, files[i]);
    }
    for (int i = 0; good && i < evaluate_options.count; i++) {
        const char *name = evaluate_options.fields[i].name;
        size_t k = 0;
        while (k < sizeof alone / sizeof *alone && strcmp(alone[k], name) != 0)
            k++;
        good = k < sizeof alone / sizeof *alone || !option_typed(in, name);
        if (!good)
            complain("option '--%s' is for translations, not for '--%s'", name, own);
    }
    good = good && has_other(in, "tag-column", "conll", s->conll);
    if (good && s->idx.count > 2) {
        complain("option '--idx' has %d files, expected two: IMAGES LABELS", s->idx.count);
        good = false;
    }
    if (good && in->words.count) {
        complain("unexpected argument '%s'", in->words.items[0]);
        good = false;
    }
    if (good && s->output && !ends_with(s->output, ".svg")) {
        complain("option '--output' must end in .svg");
        good = false;
    }
    if (!good)
        fprintf(stderr, "try '%s --help'\n", evaluate_options.command);
    return good;
}

int evaluate_run(int argc, const char *const *argv)
{
    invocation in;
    struct settings s = {0}; /* not all of it is an option */
    int code = EXIT_USAGE;
    if (!invocation_begin(&in, &evaluate_options, argc, argv, &s))
        code = in.exit_code;
    else if (examples_of(&s)) {
        const struct example_files files = {s.model,      s.tsv,    s.conll,  s.images, s.idx,
                                            s.tag_column, s.output, s.e.json, s.threads};
        const bool pictures = s.images || s.idx.count;
        if (examples_are_right(&s, &in))
            code = (pictures ? evaluate_pictures : evaluate_examples)(&files);
    } else if (usage_is_right(&s, &in)) {
        if (s.model)
            s.model = find_model(s.model, NULL, in.arena);
        code = run_all(&s, &in.words, in.arena) ? EXIT_DONE : EXIT_FAILED;
    }
    invocation_end(&in);
    return code;
}
