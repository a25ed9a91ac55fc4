/* cmd_tag.c: `heed tag`: a tag for each word of lines, or a column more in columns. */
#include "encoder_lines.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct settings {
    const char *model;
    bool conll, json;
    int64_t threads;
};
static const heed_option fields[] = {
    ENCODER_MODEL_OPTION(struct settings, model),
    HEED_OPTION_BOOL(struct settings, conll, "conll", NULL,
                     "the input has columns, a word a line, an empty line behind each sentence: "
                     "print them with the tag as one more"),
    HEED_OPTION_BOOL(struct settings, json, "json", NULL,
                     "one JSON object a line, with the probability of each tag"),
    ENCODER_THREADS_OPTION(struct settings, threads),
};
static const char *const examples[] = {
    "echo 'play a song by madonna' | heed tag --model m",
    "heed tag --model m --conll test.conllu >tagged.conllu",
    NULL,
};
const heed_option_set tag_options = {
    .command = "heed tag",
    .summary = "Print a line of tags for each line of words",
    .arguments = "[FILE]",
    .most = 1,
    .fields = fields,
    .count = sizeof fields / sizeof *fields,
    .examples = examples,
};

/* Words of some sentences, one after the other; all arrays in the arena. */
struct words {
    const char **word;
    int64_t *length, words, sentences;
};

static bool begin_words(struct words *w, int64_t most_words, int64_t most_sentences,
                        heed_arena *arena)
{
    *w = (struct words){
        .word = heed_arena_allocate(arena, (size_t)(most_words + 1) * sizeof *w->word),
        .length = heed_arena_allocate(arena, (size_t)(most_sentences + 1) * sizeof *w->length)};
    if (!w->word || !w->length)
        complain("out of memory for words");
    return w->word && w->length;
}

static bool add_word(struct words *w, const char *text, size_t n, heed_arena *arena)
{
    char *copy = heed_arena_allocate(arena, n + 1);
    if (!copy) {
        complain("out of memory for words");
        return false;
    }
    memcpy(copy, text, n);
    copy[n] = '\0';
    w->word[w->words++] = copy;
    return true;
}

static bool tag_words(struct encoder_run *r, const struct words *w, const int32_t **tag,
                      const heed_real **p)
{
    heed_error err = {0};
    if (heed_encoder_tag(r->encoder, w->word, w->length, w->sentences, r->arena, tag, p, &err))
        complain("%s", err.text);
    return !err.status;
}

/* ---- lines of words ---- */

static int64_t bytes_of(const char *const *line, int64_t count)
{
    int64_t n = 0;
    for (int64_t i = 0; i < count; i++)
        n += (int64_t)strlen(line[i]) + 1;
    return n;
}

static void print_json(const struct words *w, int64_t at, int64_t n, const char *const *label,
                       const int32_t *tag, const heed_real *p)
{
    printf("{\"words\": [");
    for (int64_t k = at; k < at + n; k++) {
        printf("%s", k > at ? ", " : "");
        print_json_text(w->word[k]);
    }
    printf("], \"tags\": [");
    for (int64_t k = at; k < at + n; k++) {
        printf("%s", k > at ? ", " : "");
        print_json_text(label[tag[k]]);
    }
    printf("], \"probabilities\": [");
    for (int64_t k = at; k < at + n; k++)
        printf("%s%.6g", k > at ? ", " : "", (double)p[k]);
    puts("]}");
}

static bool tag_lines(void *context, struct encoder_run *r, const char *const *line, int64_t count)
{
    const struct settings *s = context;
    const char *const *label = heed_encoder_labels(r->encoder, NULL);
    struct words w;
    const int32_t *tag;
    const heed_real *p;
    if (!begin_words(&w, bytes_of(line, count), count, r->arena))
        return false;
    for (int64_t i = 0; i < count; i++) {
        const int64_t before = w.words;
        for (const char *at = line[i]; *(at += strspn(at, " \t"));) {
            const size_t n = strcspn(at, " \t");
            if (!add_word(&w, at, n, r->arena))
                return false;
            at += n;
        }
        w.length[w.sentences++] = w.words - before;
    }
    if (!tag_words(r, &w, &tag, &p))
        return false;
    for (int64_t i = 0, at = 0; i < count; at += w.length[i++]) {
        if (s->json) {
            print_json(&w, at, w.length[i], label, tag, p);
            continue;
        }
        for (int64_t k = at; k < at + w.length[i]; k++)
            printf("%s%s", k > at ? " " : "", label[tag[k]]);
        putchar('\n');
    }
    return true;
}

/* ---- columns ---- */

#define CONLLU_TABS 9

static bool is_conllu(const char *line)
{
    int tabs = 0;
    for (const char *at = line; (at = strchr(at, '\t')); at++)
        tabs++;
    return tabs == CONLLU_TABS && *line >= '0' && *line <= '9';
}

/* In CoNLL-U comments stand before the words of a sentence; elsewhere "#" is a word like others,
 * unless what follows it reads like a comment. */
static bool is_comment(const char *const *lines, int64_t left)
{
    if (lines[0][0] != '#' || strchr(lines[0], '\t'))
        return false;
    int64_t i = 1;
    while (i < left && lines[i][0] == '#')
        i++;
    return (i < left && is_conllu(lines[i])) || (lines[0][1] == ' ' && strchr(lines[0], '='));
}

/* What a line of columns is: a word, which begins there and has n bytes; or none. */
enum kind { WORD, BETWEEN, OTHER };
static enum kind kind_of(const char *const *lines, int64_t left, const char **word, size_t *n)
{
    const char *line = lines[0];
    const char *at = line + strspn(line, " ");
    if (!*at)
        return BETWEEN;
    if (is_conllu(line)) {
        const size_t id = strcspn(line, "\t");
        *word = line + id + 1;
        *n = strcspn(*word, "\t");
        return memchr(line, '-', id) || memchr(line, '.', id) ? OTHER : WORD;
    }
    if (is_comment(lines, left))
        return OTHER;
    *word = at;
    *n = strcspn(at, strchr(line, '\t') ? "\t" : " ");
    return *n ? WORD : OTHER;
}

static bool tag_columns(struct encoder_run *r, const char *const *line, int64_t count)
{
    const char *const *label = heed_encoder_labels(r->encoder, NULL);
    struct words w;
    const char *word;
    size_t n;
    const int32_t *tag;
    const heed_real *p;
    if (!begin_words(&w, count, count + 1, r->arena))
        return false;
    int64_t before = 0;
    for (int64_t i = 0; i <= count; i++) {
        const enum kind kind = i < count ? kind_of(line + i, count - i, &word, &n) : BETWEEN;
        if (kind == WORD && !add_word(&w, word, n, r->arena))
            return false;
        if (kind == BETWEEN && w.words > before) {
            w.length[w.sentences++] = w.words - before;
            before = w.words;
        }
    }
    if (!tag_words(r, &w, &tag, &p))
        return false;
    for (int64_t i = 0; i < count; i++) {
        const enum kind kind = kind_of(line + i, count - i, &word, &n);
        const char between = strchr(line[i], '\t') ? '\t' : ' ';
        if (kind == WORD)
            printf("%s%c%s\n", line[i], between, label[*tag++]);
        else if (kind == OTHER && line[i][0] != '#')
            printf("%s%c_\n", line[i], between);
        else
            puts(line[i]);
    }
    return true;
}

int tag_run(int argc, const char *const *argv)
{
    invocation in;
    struct settings s;
    int code = EXIT_FAILED;
    if (!invocation_begin(&in, &tag_options, argc, argv, &s)) {
        code = in.exit_code;
    } else {
        struct encoder_run r;
        const char *file = encoder_file(&in), *const * line;
        if (!encoder_open(&r, s.model, HEED_ENCODER_TAG, s.threads))
            code = EXIT_FAILED;
        else if (!s.conll)
            code = encoder_lines(&r, file, ENCODER_LINES, tag_lines, &s);
        else { /* sentences must not be cut: all lines at once */
            const int64_t n = encoder_read_all(file ? file : "-", r.arena, &line);
            code = n >= 0 && tag_columns(&r, line, n) ? EXIT_DONE : EXIT_FAILED;
        }
        encoder_close(&r);
    }
    invocation_end(&in);
    return code;
}
