/* cmd_vocab.c: `heed vocab train|encode|decode`: learn a vocabulary, and use it on its own.
 *
 * encode and decode write one line for each line they read, also for one they cannot use: that one
 * is empty, stderr says why, and the exit code is 1. */
#include "command.h"

#include <heed/data.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEFAULT_SIZE 8000
/* More complaints than this about single lines are only counted. */
#define COMPLAINTS 5

struct settings {
    const char *output, *vocab, *joiner;
    int type;
    int64_t size, min_count, max_lines, seed;
    double coverage, sample;
    bool ids, cased;
};
/* heed_vocab_kind */
static const char *const types[] = {"unigram", "bpe",       "whitespace", "characters",
                                    "bytes",   "wordpiece", NULL};
static const heed_option fields[] = {
    HEED_OPTION_TEXT(struct settings, output, "output", NULL, "FILE",
                     "train: where the vocabulary goes"),
    HEED_OPTION_CHOICE(struct settings, type, "type", NULL, types,
                       "train: subwords by unigram or bpe; words as they stand; characters; bytes: "
                       "byte-level BPE as of GPT-2; wordpiece as of BERT"),
    HEED_OPTION_INT(struct settings, size, "size", NULL, 0, 10000000, "N",
                    "train: pieces, 13 of them special; 0 for 8000 (whitespace, characters: all)"),
    HEED_OPTION_REAL(struct settings, coverage, "coverage", "1", 0.98, 1, "X",
                     "train: share of the characters that get a piece; 0.9995 for Chinese"),
    HEED_OPTION_BOOL(struct settings, cased, "cased", NULL,
                     "train, wordpiece: keep capitals and accents"),
    HEED_OPTION_INT(struct settings, min_count, "min-count", "1", 1, 1000000000, "N",
                    "train, whitespace: words seen less often are unknown"),
    HEED_OPTION_INT(struct settings, max_lines, "max-lines", "2000000", 0, 1000000000, "N",
                    "train: use at most N lines, drawn evenly; 0: all"),
    HEED_OPTION_INT(struct settings, seed, "seed", "1", 0, INT64_MAX, "N",
                    "for --max-lines and --sample"),
    HEED_OPTION_TEXT(struct settings, vocab, "vocab", NULL, "FILE",
                     "encode, decode: the vocabulary"),
    HEED_OPTION_TEXT(struct settings, joiner, "bpe-joiner", NULL, "TEXT",
                     "encode --sample, decode; whitespace: what joins a piece to the next, as in "
                     "'@@ '"),
    HEED_OPTION_BOOL(struct settings, ids, "ids", NULL, "encode, decode: numbers, not pieces"),
    HEED_OPTION_REAL(struct settings, sample, "sample", NULL, 0, 1000000, "X",
                     "encode: cut at random; unigram: P^X, smaller is wilder; bpe: leave out "
                     "merges, --bpe-joiner: take pieces apart, with probability X"),
};
static const char *const examples[] = {
    "heed vocab train --output shared.spm --size 8000 train.en train.de",
    "heed vocab train --output en.vocab --type whitespace --min-count 2 train.tok.en",
    "heed vocab train --output tokenizer.json --type bytes --size 16000 books.txt",
    "heed vocab encode --vocab shared.spm <test.en",
    "heed vocab encode --vocab shared.spm --sample 0.2 --seed 3 <test.en",
    "heed vocab encode --vocab shared.spm --ids test.en | heed vocab decode --vocab shared.spm "
    "--ids",
    NULL,
};
const heed_option_set vocab_options = {
    .command = "heed vocab",
    .summary = "Learn a vocabulary; turn lines into pieces and back",
    .arguments = "train|encode|decode [FILE...]",
    .least = 1,
    .most = -1,
    .fields = fields,
    .count = sizeof fields / sizeof *fields,
    .examples = examples,
};

static void tell(void *context, heed_log_level level, const char *line)
{
    (void)context, (void)level;
    complain("%s", line);
}

/* The lines, counted; says so at their end, because training prints nothing for a while after that.
 * */
struct counted {
    heed_lines *lines;
    int64_t count;
};

static heed_status next_counted(void *context, const char **text, size_t *length, heed_error *err)
{
    struct counted *c = context;
    heed_status status = heed_lines_next(c->lines, text, length, err);
    if (!status && *text)
        c->count++;
    else if (!status)
        fprintf(stderr, "read %" PRId64 " lines, learning\n", c->count);
    return status;
}

/* Types that have as many pieces as the text gives. */
static bool takes_all(int type)
{
    return type == HEED_WHITESPACE || type == HEED_CHARACTERS;
}

static int train(const struct settings *s, heed_lines *lines, const heed_vocab *v, heed_arena *a)
{
    (void)v, (void)a;
    heed_error err = {0};
    struct counted counted = {lines, 0};
    heed_line_source source = {next_counted, &counted};
    heed_log_sink log = {tell, NULL};
    heed_vocab_options o = {
        .kind = (heed_vocab_kind)s->type,
        .size = s->size || takes_all(s->type) ? s->size : DEFAULT_SIZE,
        .cased = s->cased,
        .min_count = s->min_count,
        .coverage = s->coverage,
        .max_lines = s->max_lines,
        .seed = (uint64_t)s->seed,
    };
    if (heed_vocab_train(&o, &source, s->output, &log, &err)) {
        complain("%s", err.text);
        return EXIT_FAILED;
    }
    return EXIT_DONE;
}

/* ---- line by line ---- */

/* What is wrong with the last line read. */
static void complain_line(const heed_lines *lines, int64_t wrong, const char *text)
{
    const char *path;
    int64_t number = heed_lines_where(lines, &path);
    if (wrong <= COMPLAINTS)
        complain("'%s' line %" PRId64 ": %s", path, number, text);
}

static bool encode_line(const struct settings *s, const heed_vocab *v, const char *text,
                        size_t length, int64_t number, heed_arena *arena, heed_error *err)
{
    heed_tokens t;
    heed_rng rng =
        heed_rng_stream(&(heed_rng_key){.seed = (uint64_t)s->seed, .step = (uint64_t)number});
    if (heed_vocab_sample(v, text, length, s->sample, &rng, arena, &t, err))
        return false;
    for (int64_t i = 0; i < t.count; i++) {
        if (i)
            putchar(' ');
        if (s->ids)
            printf("%" PRId32, t.id[i]);
        else
            fputs(heed_vocab_piece(v, t.id[i]), stdout);
    }
    return true;
}

/* The id that a word stands for, or -1. */
static int32_t read_id(const heed_vocab *v, const char *word, bool numbers)
{
    if (numbers) {
        char *end;
        long id = strtol(word, &end, 10);
        return *end || end == word || id < 0 || id >= heed_vocab_size(v) ? -1 : (int32_t)id;
    }
    int32_t id = heed_vocab_find(v, word);
    return strcmp(word, heed_vocab_piece(v, id)) == 0 ? id : -1;
}

static bool decode_line(const struct settings *s, const heed_vocab *v, const char *text,
                        size_t length, int64_t number, heed_arena *arena, heed_error *err)
{
    (void)number;
    const char *out;
    char *copy = heed_arena_allocate(arena, length + 1);
    int32_t *id = heed_arena_allocate(arena, (length / 2 + 1) * sizeof *id);
    if (!copy || !id) {
        snprintf(err->text, sizeof err->text, "out of memory");
        return false;
    }
    memcpy(copy, text, length + 1);
    int64_t n = 0;
    char *rest = copy;
    for (char *word; (word = strtok_r(rest, " ", &rest)); n++)
        if ((id[n] = read_id(v, word, s->ids)) < 0) {
            snprintf(err->text, sizeof err->text, "'%.100s' is no %s of the vocabulary", word,
                     s->ids ? "id" : "piece");
            return false;
        }
    if (heed_vocab_decode(v, id, n, arena, &out, err))
        return false;
    fputs(out, stdout);
    return true;
}

typedef bool line_work(const struct settings *s, const heed_vocab *v, const char *text,
                       size_t length, int64_t number, heed_arena *arena, heed_error *err);

static int each_line(line_work *work, const struct settings *s, heed_lines *lines,
                     const heed_vocab *v, heed_arena *arena)
{
    int64_t wrong = 0;
    for (int64_t number = 0;; number++) {
        const char *text;
        size_t length;
        heed_error err = {0};
        if (heed_lines_next(lines, &text, &length, &err)) {
            complain("%s", err.text);
            return EXIT_FAILED;
        }
        if (!text)
            break;
        heed_arena_reset(arena);
        if (!work(s, v, text, length, number, arena, &err))
            complain_line(lines, ++wrong, err.text);
        putchar('\n');
        if (ferror(stdout)) /* the program's end says why */
            return EXIT_FAILED;
    }
    if (wrong > COMPLAINTS)
        complain("%" PRId64 " lines in all could not be used", wrong);
    return wrong ? EXIT_FAILED : EXIT_DONE;
}

static int encode(const struct settings *s, heed_lines *lines, const heed_vocab *v, heed_arena *a)
{
    return each_line(encode_line, s, lines, v, a);
}

static int decode(const struct settings *s, heed_lines *lines, const heed_vocab *v, heed_arena *a)
{
    return each_line(decode_line, s, lines, v, a);
}

/* ---- the command ---- */

static const char *const names[] = {"train", "encode", "decode", NULL};
static const struct action {
    int (*run)(const struct settings *s, heed_lines *lines, const heed_vocab *v, heed_arena *a);
    bool learns;
    const char *options[9]; /* that it listens to */
} actions[] = {
    {train,
     true,
     {"output", "type", "size", "coverage", "min-count", "max-lines", "seed", "cased"}},
    {encode, false, {"vocab", "ids", "bpe-joiner", "sample", "seed"}},
    {decode, false, {"vocab", "ids", "bpe-joiner"}},
};

static bool listens(const struct action *action, const char *option)
{
    for (int i = 0; action->options[i]; i++)
        if (strcmp(action->options[i], option) == 0)
            return true;
    return false;
}

/* False after saying which option would be ignored. */
static bool none_in_vain(const struct settings *s, int which, const invocation *in)
{
    const bool learns = actions[which].learns, words = s->type == HEED_WHITESPACE;
    for (int i = 0; i < vocab_options.count; i++)
        if (option_typed(in, fields[i].name) && !listens(&actions[which], fields[i].name)) {
            complain("option '--%s' is not for 'heed vocab %s'", fields[i].name, names[which]);
            return false;
        }
    if (learns && s->type != HEED_WORDPIECE && option_typed(in, "cased"))
        complain("option '--cased' is for '--type wordpiece'");
    else if (learns && s->type == HEED_BYTES && option_typed(in, "coverage"))
        complain("option '--coverage' is not for '--type bytes': every byte is a piece");
    else if (learns && words && option_typed(in, "coverage"))
        complain("option '--coverage' is for subwords: for words there is '--min-count'");
    else if (learns && !words && option_typed(in, "min-count"))
        complain("option '--min-count' is for '--type whitespace': for subwords there is '--size'");
    else
        return true;
    return false;
}

static int run(const struct action *action, const struct settings *s, heed_option_list files)
{
    static const char *const standard_input[] = {"-"};
    heed_error err = {0};
    heed_lines *lines = heed_lines_open(files.count ? files.items : standard_input,
                                        files.count ? files.count : 1, NULL, &err);
    heed_arena *arena = heed_arena_new(NULL, &err);
    heed_vocab *v = action->learns ? NULL : heed_vocab_open(s->vocab, s->joiner, NULL, &err);
    int code = EXIT_FAILED;
    if (err.status)
        complain("%s", err.text);
    else
        code = action->run(s, lines, v, arena);
    heed_vocab_free(v);
    heed_arena_free(arena);
    heed_lines_free(lines);
    return code;
}

int vocab_run(int argc, const char *const *argv)
{
    invocation in;
    struct settings s;
    int code = EXIT_USAGE, which;
    if (!invocation_begin(&in, &vocab_options, argc, argv, &s))
        code = in.exit_code;
    else if ((which = choose_word("action", in.words.items[0], names)) < 0)
        ; /* it has been said */
    else if (actions[which].learns && !s.output)
        complain("heed vocab train needs --output FILE");
    else if (!actions[which].learns && !s.vocab)
        complain("heed vocab %s needs --vocab FILE", names[which]);
    else if (none_in_vain(&s, which, &in))
        code = run(&actions[which], &s, (heed_option_list){in.words.items + 1, in.words.count - 1});
    invocation_end(&in);
    return code;
}
