/* test_options.c: one table of fields -> command line, config file, help, error texts. */
#include <heed/options.h>

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

struct settings {
    bool json, colour;
    int64_t threads, seed;
    double rate, any, decay;
    const char *name, *model;
    heed_option_list files;
    int blas;
};

static const char *const blas_names[] = {"blis", "openblas", "reference", NULL};

static const heed_option fields[] = {
    HEED_OPTION_BOOL(struct settings, json, "json", NULL, "one JSON object a line"),
    HEED_OPTION_BOOL(struct settings, colour, "colour", "true", "paint the table"),
    HEED_OPTION_INT(struct settings, threads, "threads", "2", 1, 64, NULL, "threads to use"),
    HEED_OPTION_INT(struct settings, seed, "seed", NULL, 0, 0, NULL, "of the random numbers"),
    HEED_OPTION_REAL(struct settings, rate, "rate", "0.5", 0, 1, NULL, "how much is dropped"),
    HEED_OPTION_REAL(struct settings, any, "any", NULL, 0, INFINITY, NULL, "not negative"),
    HEED_OPTION_REAL(struct settings, decay, "decay", NULL, 0, 0.9999999, NULL, "below 1"),
    HEED_OPTION_TEXT(struct settings, name, "name", NULL, NULL, "a name"),
    HEED_OPTION_TEXT(struct settings, model, "model", "m", "DIR", "the model"),
    HEED_OPTION_LIST(struct settings, files, "file", "FILE", "what to read"),
    HEED_OPTION_CHOICE(struct settings, blas, "blas", "openblas", blas_names,
                       "which library multiplies the matrices, said at such length that the line "
                       "must be broken"),
};

static const char *const examples[] = {"heed try --threads 4", NULL};
static const heed_option_set set = {
    .command = "heed try",
    .summary = "Try things",
    .arguments = "[FILE...]",
    .most = -1,
    .fields = fields,
    .count = sizeof fields / sizeof *fields,
    .examples = examples,
};

struct fixture {
    heed_arena *arena;
    struct settings s;
    heed_option_result r;
    heed_error err;
    char config[64];
};

static int begin(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    f->arena = heed_arena_new(NULL, NULL);
    strcpy(f->config, "/tmp/heed-options-XXXXXX");
    int fd = mkstemp(f->config);
    *state = f;
    return fd < 0 ? -1 : close(fd);
}

static int end(void **state)
{
    struct fixture *f = *state;
    unlink(f->config);
    heed_arena_free(f->arena);
    free(f);
    return 0;
}

/* Parses a NULL-ended line; what was in the struct before must not matter. */
static heed_status parse(struct fixture *f, const char *const *argv)
{
    int argc = 0;
    while (argv[argc])
        argc++;
    memset(&f->s, 0x55, sizeof f->s);
    f->err = (heed_error){0};
    return heed_option_parse(&set, argc, argv, &f->s, f->arena, &f->r, &f->err);
}
#define PARSE(f, ...) parse(f, (const char *const[]){__VA_ARGS__, NULL})

static void config(struct fixture *f, const char *text)
{
    FILE *file = fopen(f->config, "w");
    assert_non_null(file);
    fputs(text, file);
    assert_int_equal(fclose(file), 0);
}

/* Catches presets that are not applied, or fields left as they were. */
static void test_presets(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(parse(f, (const char *const[]){NULL}), HEED_OK);
    assert_int_equal(f->r.action, HEED_OPTION_RUN);
    assert_int_equal(f->r.words.count, 0);
    assert_false(f->s.json);
    assert_true(f->s.colour);
    assert_int_equal(f->s.threads, 2);
    assert_int_equal(f->s.seed, 0);
    assert_true(f->s.rate == 0.5);
    assert_true(f->s.any == 0);
    assert_null(f->s.name);
    assert_string_equal(f->s.model, "m");
    assert_int_equal(f->s.files.count, 0);
    assert_int_equal(f->s.blas, 1);
}

struct pairs {
    heed_option_list pair;
    bool last;
};

/* Catches words of a list that takes several at a time which are lost, taken from the next option,
 * or too few without a word. */
static void test_words_together(void **state)
{
    struct fixture *f = *state;
    static const heed_option two[] = {
        HEED_OPTION_WORDS(struct pairs, pair, "pair", 2, "A B", "two"),
        HEED_OPTION_BOOL(struct pairs, last, "last", NULL, "a flag"),
    };
    static const heed_option_set pairs = {
        .command = "heed pair", .summary = "Pair", .fields = two, .count = 2, .most = 1};
    struct pairs p;
    const char *const argv[] = {"--pair", "a", "b", "--last", "--pair=c", "d", "word"};
    assert_int_equal(heed_option_parse(&pairs, 7, argv, &p, f->arena, &f->r, &f->err), HEED_OK);
    static const char *const wanted[] = {"a", "b", "c", "d"};
    assert_int_equal(p.pair.count, 4);
    for (int i = 0; i < 4; i++)
        assert_string_equal(p.pair.items[i], wanted[i]);
    assert_true(p.last);
    assert_int_equal(f->r.words.count, 1);
    assert_int_equal(heed_option_origin_of(&f->r.origins, "pair"), HEED_OPTION_BY_COMMAND_LINE);
    for (int n = 2; n < 4; n++) {
        const char *const few[] = {"--pair", "a", "--last"};
        f->err = (heed_error){0};
        assert_int_equal(heed_option_parse(&pairs, n, few, &p, f->arena, &f->r, &f->err),
                         HEED_ARGUMENT);
        assert_string_equal(f->err.text, "option '--pair' needs 2 values: A B");
    }
    const char *help = heed_option_help(&pairs, true, f->arena);
    assert_non_null(strstr(help, "--pair A B"));
    assert_null(strstr(help, "several times"));
}

/* Catches a type or a spelling of `--name value` that is not understood, and lost words. */
static void test_every_type(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(PARSE(f, "one", "--json", "--no-colour", "--threads=64", "--seed", "-3",
                           "--rate", "1e-3", "--any=1e300", "--name=", "--model=--x", "--file", "a",
                           "-", "--file=b", "--blas", "blis", "two", "--", "--json", "-x"),
                     HEED_OK);
    assert_true(f->s.json);
    assert_false(f->s.colour);
    assert_int_equal(f->s.threads, 64);
    assert_int_equal(f->s.seed, -3);
    assert_true(f->s.rate == 1e-3);
    assert_true(f->s.any == 1e300);
    assert_string_equal(f->s.name, "");
    assert_string_equal(f->s.model, "--x");
    assert_int_equal(f->s.files.count, 2);
    assert_string_equal(f->s.files.items[0], "a");
    assert_string_equal(f->s.files.items[1], "b");
    assert_int_equal(f->s.blas, 0);
    assert_int_equal(f->r.words.count, 5);
    static const char *const words[] = {"one", "-", "two", "--json", "-x"};
    for (int i = 0; i < 5; i++)
        assert_string_equal(f->r.words.items[i], words[i]);
    /* the last one counts */
    assert_int_equal(PARSE(f, "--threads", "3", "--threads", "5", "--json", "--no-json"), HEED_OK);
    assert_int_equal(f->s.threads, 5);
    assert_false(f->s.json);
}

/* Catches values that slip through their range or type, and texts that do not say what is wanted.
 */
static void test_error_texts(void **state)
{
    struct fixture *f = *state;
    static const struct {
        const char *argv[3];
        const char *text;
    } cases[] = {
        {{"--threads", "0"}, "option '--threads' is '0', expected a whole number from 1 to 64"},
        {{"--threads=65"}, "option '--threads' is '65', expected a whole number from 1 to 64"},
        {{"--threads", "two"}, "option '--threads' is 'two', expected a whole number from 1 to 64"},
        {{"--threads="}, "option '--threads' is '', expected a whole number from 1 to 64"},
        {{"--threads", " 4"}, "option '--threads' is ' 4', expected a whole number from 1 to 64"},
        {{"--threads", "4.5"}, "option '--threads' is '4.5', expected a whole number from 1 to 64"},
        {{"--seed", "9223372036854775808"},
         "option '--seed' is '9223372036854775808', expected a whole number"},
        {{"--rate", "1.01"}, "option '--rate' is '1.01', expected a number from 0 to 1"},
        {{"--rate", "nan"}, "option '--rate' is 'nan', expected a number from 0 to 1"},
        {{"--decay", "1"}, "option '--decay' is '1', expected a number from 0 to 0.9999999"},
        {{"--decay", "0.99999999"},
         "option '--decay' is '0.99999999', expected a number from 0 to 0.9999999"},
        {{"--any", "-1"}, "option '--any' is '-1', expected a number, at least 0"},
        {{"--any", "inf"}, "option '--any' is 'inf', expected a number, at least 0"},
        {{"--any", "1x"}, "option '--any' is '1x', expected a number, at least 0"},
        {{"--blas", "openblass"},
         "option '--blas' is 'openblass', expected blis, openblas or "
         "reference; did you mean 'openblas'?"},
        {{"--blas", "mkl"}, "option '--blas' is 'mkl', expected blis, openblas or reference"},
        {{"--thread"}, "unknown option '--thread'; did you mean '--threads'?"},
        {{"--thraeds=3"}, "unknown option '--thraeds'; did you mean '--threads'?"},
        {{"--print"}, "unknown option '--print'; did you mean '--print-config'?"},
        {{"--no-thread"}, "unknown option '--no-thread'"},
        {{"--no-threads"}, "unknown option '--no-threads'; did you mean '--threads'?"},
        {{"--zzz"}, "unknown option '--zzz'"},
        {{"-t"}, "option '--threads' needs a value"},
        {{"-z"},
         "unknown option '-z'; options start with two dashes, but for -h, -m, -o, -b and -t"},
        {{"--threads"}, "option '--threads' needs a value"},
        {{"--name", "--json"}, "option '--name' needs a value"},
        {{"--config"}, "option '--config' needs a value"},
        {{"--json=yes"}, "option '--json' takes no value"},
        {{"--no-json=yes"}, "option '--no-json' takes no value"},
        {{"--help=yes"}, "option '--help' takes no value"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(parse(f, cases[i].argv), HEED_ARGUMENT);
        assert_string_equal(f->err.text, cases[i].text);
    }
    assert_int_equal(
        heed_option_parse(&set, 1, (const char *const[]){"--zzz"}, &f->s, f->arena, &f->r, NULL),
        HEED_ARGUMENT);
}

/* Catches too few or too many words getting through. */
static void test_number_of_words(void **state)
{
    struct fixture *f = *state;
    heed_option_set two = set;
    two.least = 1;
    two.most = 2;
    static const char *const words[] = {"a", "b", "c"};
    static const heed_status expected[] = {HEED_ARGUMENT, HEED_OK, HEED_OK, HEED_ARGUMENT};
    static const char *const text[] = {"missing argument, expected [FILE...]", "", "",
                                       "unexpected argument 'c'"};
    for (int n = 0; n < 4; n++) {
        heed_error err = {0};
        assert_int_equal(heed_option_parse(&two, n, words, &f->s, f->arena, &f->r, &err),
                         expected[n]);
        assert_string_equal(err.text, text[n]);
    }
    heed_error err = {0}; /* asking for help needs no words */
    assert_int_equal(
        heed_option_parse(&two, 1, (const char *const[]){"--help"}, &f->s, f->arena, &f->r, &err),
        HEED_OK);
    assert_int_equal(f->r.action, HEED_OPTION_HELP);
}

/* Catches a config file that is not read, or that wins over the command line, in any order. */
static void test_config_precedence(void **state)
{
    struct fixture *f = *state;
    config(f, "{\"threads\": 7, \"json\": true, \"colour\": false, \"rate\": 1, \"any\": 2.5,"
              " \"name\": \"from file\", \"file\": [\"x\", \"y\"], \"blas\": \"reference\","
              " \"model\": null}");
    assert_int_equal(PARSE(f, "--config", f->config), HEED_OK);
    assert_int_equal(f->s.threads, 7);
    assert_true(f->s.json);
    assert_false(f->s.colour);
    assert_true(f->s.rate == 1);
    assert_true(f->s.any == 2.5);
    assert_string_equal(f->s.name, "from file");
    assert_string_equal(f->s.model, "m");
    assert_int_equal(f->s.files.count, 2);
    assert_string_equal(f->s.files.items[1], "y");
    assert_int_equal(f->s.blas, 2);

    assert_int_equal(
        PARSE(f, "--threads", "3", "--file", "z", "--no-json", "--config", f->config, "--colour"),
        HEED_OK);
    assert_int_equal(f->s.threads, 3);
    assert_false(f->s.json);
    assert_true(f->s.colour);
    assert_string_equal(f->s.name, "from file");
    assert_int_equal(f->s.files.count, 1);
    assert_string_equal(f->s.files.items[0], "z");
}

/* Catches a config file whose mistakes pass, or are reported without file and option. */
static void test_config_errors(void **state)
{
    struct fixture *f = *state;
    static const struct {
        const char *json, *text;
    } cases[] = {
        {"{\"threads\": 0}", "option 'threads' is 0, expected a whole number from 1 to 64"},
        {"{\"threads\": \"4\"}", "option 'threads' is \"4\", expected a whole number from 1 to 64"},
        {"{\"threads\": 4.0}", "option 'threads' is 4.0, expected a whole number from 1 to 64"},
        {"{\"json\": 1}", "option 'json' is 1, expected true or false"},
        {"{\"rate\": 2}", "option 'rate' is 2, expected a number from 0 to 1"},
        {"{\"name\": []}", "option 'name' is [], expected a text"},
        {"{\"file\": \"a\"}", "option 'file' is \"a\", expected a list of texts"},
        {"{\"file\": [\"a\",1]}", "option 'file' is [\"a\",1], expected a list of texts"},
        {"{\"blas\": \"bliss\"}", "option 'blas' is bliss, expected blis, openblas or reference; "
                                  "did you mean 'blis'?"},
        {"{\"thread\": 1}", "unknown option 'thread'; did you mean 'threads'?"},
        {"{\"config\": \"x\"}", "'config' is for the command line, not for a config file"},
        {"[1]", "expected a JSON object of options"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char expected[512];
        config(f, cases[i].json);
        assert_int_equal(PARSE(f, "--config", f->config), HEED_FORMAT);
        snprintf(expected, sizeof expected, "'%s': %s", f->config, cases[i].text);
        assert_string_equal(f->err.text, expected);
    }
    config(f, "{\n\"threads\": ,\n}");
    assert_int_equal(PARSE(f, "--config", f->config), HEED_FORMAT);
    assert_non_null(strstr(f->err.text, "' line 2: "));
    config(f, "{\"threads\": 1, \"threads\": 2}");
    assert_int_equal(PARSE(f, "--config", f->config), HEED_FORMAT);
    assert_int_equal(PARSE(f, "--config", "/no/such.json"), HEED_IO);
    assert_string_equal(f->err.text, "cannot read '/no/such.json': No such file or directory");
}

/* Catches a printed config that does not bring back what was in force. */
static void test_config_round_trip(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(PARSE(f, "--print-config", "--threads", "9", "--rate", "0.1", "--any",
                           "0.30000000000000004", "--name", "a \"b\"\\\n\xc3\xa4", "--file", "1",
                           "--file", "2", "--json", "--no-colour", "--blas", "blis"),
                     HEED_OK);
    assert_int_equal(f->r.action, HEED_OPTION_PRINT_CONFIG);
    const char *text = heed_option_config(&set, &f->s, f->arena);
    assert_non_null(text);
    assert_non_null(strstr(text, "\"rate\": 0.1,\n"));
    config(f, text);
    assert_int_equal(PARSE(f, "--config", f->config), HEED_OK);
    assert_string_equal(heed_option_config(&set, &f->s, f->arena), text);
    assert_int_equal(f->s.threads, 9);
    assert_true(f->s.any == 0.30000000000000004);
    assert_string_equal(f->s.name, "a \"b\"\\\n\xc3\xa4");
}

/* Catches help that forgets an option, its range or preset, or runs over the edge. */
static void test_help(void **state)
{
    struct fixture *f = *state;
    assert_string_equal(
        heed_option_help(&set, false, f->arena),
        "usage: heed try [options] [FILE...]\n"
        "Try things\n"
        "\n"
        "options:\n"
        "  --json           one JSON object a line\n"
        "  --[no-]colour    paint the table (default: on)\n"
        "  -t, --threads N  threads to use (a whole number from 1 to 64; default: 2)\n"
        "  --seed N         of the random numbers\n"
        "  --rate X         how much is dropped (a number from 0 to 1; default: 0.5)\n"
        "  --any X          not negative (a number, at least 0)\n"
        "  --decay X        below 1 (a number from 0 to 0.9999999)\n"
        "  --name TEXT      a name\n"
        "  -m, --model DIR  the model (default: m)\n"
        "  --file FILE      what to read (may be given several times)\n"
        "  --blas NAME      which library multiplies the matrices, said at such length\n"
        "                   that the line must be broken (blis, openblas or reference;\n"
        "                   default: openblas)\n"
        "  -h, --help       show this help\n"
        "  --config FILE    read options from a JSON file; the command line wins\n"
        "  --print-config   print the options in effect as such a file, and do nothing\n"
        "\n"
        "examples:\n"
        "  heed try --threads 4\n");
}

/* Catches groups that lose an option or show it twice, and letters that stand for nothing. */
static void test_groups_and_letters(void **state)
{
    struct fixture *f = *state;
    static const heed_option_group groups[] = {
        {"data", "file name", true}, {"speed", "threads blas", false}, {NULL, NULL, false}};
    heed_option_set grouped = set;
    grouped.groups = groups;
    grouped.examples = NULL;
    const char *few = heed_option_help(&grouped, false, f->arena);
    const char *all = heed_option_help(&grouped, true, f->arena);
    assert_non_null(strstr(few, "\ndata:\n"));
    assert_null(strstr(few, "--threads N"));
    assert_non_null(strstr(few, "'heed try --help-all' shows every option.\n"));
    for (int i = 0; i < set.count; i++) {
        char name[32];
        snprintf(name, sizeof name, "--%s%s",
                 set.fields[i].preset && set.fields[i].type == HEED_OPTION_TYPE_BOOL ? "[no-]" : "",
                 set.fields[i].name);
        const char *first = strstr(all, name);
        assert_non_null(first);
        assert_null(strstr(first + 1, name));
        if (strcmp(name, "--name") == 0)
            assert_true(first < strstr(all, "\nspeed:\n"));
    }
    const char *const words[] = {"--help-all"};
    assert_int_equal(heed_option_parse(&grouped, 1, words, &f->s, f->arena, &f->r, &f->err),
                     HEED_OK);
    assert_int_equal(f->r.action, HEED_OPTION_HELP_ALL);
    assert_int_equal(PARSE(f, "-t", "7", "-m", "x"), HEED_OK);
    assert_int_equal(f->s.threads, 7);
    assert_string_equal(f->s.model, "x");
    assert_int_equal(PARSE(f, "-h"), HEED_OK);
    assert_int_equal(f->r.action, HEED_OPTION_HELP);
    assert_int_equal(PARSE(f, "-b", "7"), HEED_ARGUMENT); /* there is no --beam here */
    assert_string_equal(f->err.text, "unknown option '-b'; options start with two dashes, but for "
                                     "-h, -m, -o, -b and -t");
}

/* Catches a manual page that roff would misread or that lacks an option. */
static void test_man(void **state)
{
    struct fixture *f = *state;
    const char *page = heed_option_man(&set, f->arena);
    assert_non_null(strstr(page, ".TH HEED\\-TRY 1 "));
    assert_non_null(strstr(page, "heed\\-try \\- Try things\n"));
    assert_non_null(strstr(page, ".TP\n.B \\-m, \\-\\-model DIR\nthe model (default: m)\n"));
    for (int i = 0; i < set.count; i++)
        assert_non_null(strstr(page, set.fields[i].help + 4));
}

/* ---- bundles ---- */

static const heed_option_bundle *bundles(void)
{
    static const char *const calm[] = {"threads", "5",    "colour", "false", "json", "true",
                                       "name",    "calm", "blas",   "blis",  NULL};
    static const char *const wild[] = {"rate", "0.9", NULL};
    static const char *const foreign[] = {"rate", "0.25", "heads", "3", NULL};
    static const heed_option_bundle all[] = {{"calm", "few threads, no colour", calm},
                                             {"wild", "a high rate", wild},
                                             {"foreign", "of another command", foreign},
                                             {NULL, NULL, NULL}};
    return all;
}

static heed_status parse_bundled(struct fixture *f, const char *const *argv)
{
    heed_option_set with = set;
    with.bundles = bundles;
    int argc = 0;
    while (argv[argc])
        argc++;
    memset(&f->s, 0x55, sizeof f->s);
    f->err = (heed_error){0};
    return heed_option_parse(&with, argc, argv, &f->s, f->arena, &f->r, &f->err);
}
#define PARSE_BUNDLED(f, ...) parse_bundled(f, (const char *const[]){__VA_ARGS__, NULL})

/* Catches a bundle that is not applied, that wins over the config file or the command line, or that
 * leaves something of another bundle behind. */
static void test_bundle_precedence(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(PARSE_BUNDLED(f, "--preset", "calm"), HEED_OK);
    assert_int_equal(f->s.threads, 5);
    assert_false(f->s.colour);
    assert_true(f->s.json);
    assert_string_equal(f->s.name, "calm");
    assert_int_equal(f->s.blas, 0);
    assert_true(f->s.rate == 0.5); /* the default */

    config(f, "{\"threads\": 7, \"colour\": true}");
    assert_int_equal(
        PARSE_BUNDLED(f, "--no-json", "--name", "mine", "--config", f->config, "--preset=calm"),
        HEED_OK);
    assert_int_equal(f->s.threads, 7);
    assert_true(f->s.colour);
    assert_false(f->s.json);
    assert_string_equal(f->s.name, "mine");
    assert_int_equal(f->s.blas, 0);

    assert_int_equal(PARSE_BUNDLED(f, "--preset", "calm", "--preset", "wild"), HEED_OK);
    assert_int_equal(f->s.threads, 2);
    assert_true(f->s.rate == 0.9);

    /* the config in force has the bundle's values, not its name */
    const char *text = heed_option_config(&set, &f->s, f->arena);
    assert_non_null(strstr(text, "\"rate\": 0.9,\n"));
    assert_null(strstr(text, "preset"));
}

/* Catches an option that is asked for and taken for a default, or the other way round. */
static void test_origins(void **state)
{
    struct fixture *f = *state;
    static heed_option_set with; /* outlives the parse */
    with = set;
    with.bundles = bundles;
    config(f, "{\"threads\": 2, \"seed\": 0, \"model\": null, \"file\": [\"x\"]}");
    const char *const argv[] = {"--preset", "calm",   "--config",   f->config, "--rate",
                                "0.5",      "--seed", "0",          "--file",  "y",
                                "--file",   "z",      "--no-colour"};
    assert_int_equal(
        heed_option_parse(&with, sizeof argv / sizeof *argv, argv, &f->s, f->arena, &f->r, &f->err),
        HEED_OK);
    static const struct {
        const char *name;
        heed_option_origin origin;
    } cases[] = {
        {"rate", HEED_OPTION_BY_COMMAND_LINE}, /* the default's value */
        {"seed", HEED_OPTION_BY_COMMAND_LINE},
        {"file", HEED_OPTION_BY_COMMAND_LINE},
        {"colour", HEED_OPTION_BY_COMMAND_LINE}, /* of the bundle, too */
        {"threads", HEED_OPTION_BY_CONFIG},
        {"blas", HEED_OPTION_BY_BUNDLE},
        {"any", HEED_OPTION_BY_DEFAULT},
        {"model", HEED_OPTION_BY_DEFAULT}, /* null says nothing */
        {"nonsense", HEED_OPTION_BY_DEFAULT},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_int_equal(heed_option_origin_of(&f->r.origins, cases[i].name), cases[i].origin);
    assert_int_equal(f->s.files.count, 2);
    assert_int_equal(heed_option_origin_of(&(heed_option_origins){NULL, NULL}, "rate"),
                     HEED_OPTION_BY_DEFAULT);
}

/* Catches a wrong bundle that passes, is not told apart from an option, or gets no suggestion. */
static void test_bundle_errors(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(PARSE_BUNDLED(f, "--preset", "clam"), HEED_ARGUMENT);
    assert_string_equal(f->err.text, "option '--preset' is 'clam', expected calm, wild or foreign; "
                                     "did you mean 'calm'?");
    assert_int_equal(PARSE_BUNDLED(f, "--preset"), HEED_ARGUMENT);
    assert_string_equal(f->err.text, "option '--preset' needs a value");
    assert_int_equal(PARSE_BUNDLED(f, "--presets", "calm"), HEED_ARGUMENT);
    assert_string_equal(f->err.text, "unknown option '--presets'; did you mean '--preset'?");
    assert_int_equal(PARSE_BUNDLED(f, "--preset", "foreign"), HEED_ARGUMENT);
    assert_string_equal(f->err.text,
                        "preset 'foreign' sets 'heads', which is no option of 'heed try'");
    assert_int_equal(PARSE(f, "--preset", "calm"), HEED_ARGUMENT); /* a set without bundles */
    assert_string_equal(f->err.text, "unknown option '--preset'");
    config(f, "{\"preset\": \"calm\"}");
    assert_int_equal(PARSE_BUNDLED(f, "--config", f->config), HEED_FORMAT);
    assert_non_null(
        strstr(f->err.text, ": 'preset' is for the command line, not for a config file"));
}

/* Catches a set that does not leave out what it says, takes the fields' own defaults instead of its
 * own, or hides what belongs to it. */
static void test_shared_fields(void **state)
{
    struct fixture *f = *state;
    static const char *const defaults[] = {"threads", "7", "json", "true", "rate", "0.25", NULL};
    static const heed_option_set other = {.command = "heed try --kind other",
                                          .summary = "Try the other kind",
                                          .fields = fields,
                                          .count = sizeof fields / sizeof *fields,
                                          .defaults = defaults,
                                          .without = "rate colour"};
    static const heed_option_set *const parts[] = {&other, NULL};
    const char *const none[] = {NULL}, *const rate[] = {"--rate", "1"},
                      *const off[] = {"--no-colour"}, *const json[] = {"--no-json"};
    assert_int_equal(heed_option_parse(&other, 0, none, &f->s, f->arena, &f->r, &f->err), HEED_OK);
    assert_int_equal(f->s.threads, 7);
    assert_true(f->s.json && f->s.colour);
    assert_true(f->s.rate == 0.25);
    assert_int_equal(heed_option_parse(&other, 2, rate, &f->s, f->arena, &f->r, &f->err),
                     HEED_ARGUMENT);
    assert_non_null(strstr(f->err.text, "unknown option '--rate'"));
    assert_int_equal(heed_option_parse(&other, 1, off, &f->s, f->arena, &f->r, &f->err),
                     HEED_ARGUMENT);
    assert_int_equal(heed_option_parse(&other, 1, json, &f->s, f->arena, &f->r, &f->err), HEED_OK);
    assert_false(f->s.json);
    const char *help = heed_option_help(&other, false, f->arena);
    assert_non_null(strstr(help, "threads to use (a whole number from 1 to 64; default: 7)"));
    assert_non_null(strstr(help, "--[no-]json"));
    assert_null(strstr(help, "rate"));
    assert_null(strstr(help, "colour"));
    const char *text = heed_option_config(&other, &f->s, f->arena);
    assert_null(strstr(text, "rate"));
    config(f, text);
    assert_int_equal(heed_option_parse(&other, 2, (const char *const[]){"--config", f->config},
                                       &f->s, f->arena, &f->r, &f->err),
                     HEED_OK);
    config(f, "{\"rate\": 1}");
    f->err = (heed_error){0};
    assert_int_equal(heed_option_parse(&other, 2, (const char *const[]){"--config", f->config},
                                       &f->s, f->arena, &f->r, &f->err),
                     HEED_FORMAT);
    heed_option_set whole = set;
    whole.parts = parts;
    assert_non_null(
        strstr(heed_option_help(&whole, false, f->arena),
               "see also:\n  heed try --kind other --help\n      Try the other kind\n"));
    assert_non_null(strstr(heed_option_man(&whole, f->arena), ".BR heed\\-try\\-other (1)\n"));
    assert_non_null(strstr(heed_option_man(&other, f->arena), ".TH HEED\\-TRY\\-OTHER 1 "));
}

/* Catches help that does not say which bundles there are. */
static void test_bundle_help(void **state)
{
    struct fixture *f = *state;
    heed_option_set with = set;
    with.bundles = bundles;
    const char *help = heed_option_help(&with, false, f->arena);
    assert_non_null(strstr(help, "  --preset NAME    several options under one name; the config "
                                 "file and the\n                   command line win\n"));
    assert_non_null(strstr(help, "\npresets:\n"
                                 "  calm             few threads, no colour\n"
                                 "  wild             a high rate\n"
                                 "  foreign          of another command\n"));
}

/* Catches suggestions that are far off, or none where the slip is plain. */
static void test_nearest(void **state)
{
    (void)state;
    static const char *const names[] = {"help",  "version", "list",     "selftest",
                                        "bench", "train",   "translate"};
    static const struct {
        const char *wrong, *near;
    } cases[] = {
        {"hlep", "help"},   {"benhc", "bench"}, {"versoin", "version"}, {"lists", "list"},
        {"se", "selftest"}, {"trai", "train"},  {"tran", "translate"},  {"", NULL},
        {"xyzzy", NULL},    {"b", NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *near = heed_option_nearest(cases[i].wrong, names, 7);
        if (cases[i].near)
            assert_string_equal(near ? near : "(nothing)", cases[i].near);
        else
            assert_null(near);
    }
    char lengthy[200];
    memset(lengthy, 'a', sizeof lengthy);
    lengthy[199] = '\0';
    assert_null(heed_option_nearest(lengthy, names, 7));
    assert_null(heed_option_nearest("help", names, 0));
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_presets),
        TEST(test_words_together),
        TEST(test_every_type),
        TEST(test_error_texts),
        TEST(test_number_of_words),
        TEST(test_config_precedence),
        TEST(test_config_errors),
        TEST(test_config_round_trip),
        TEST(test_help),
        TEST(test_config_round_trip),
        TEST(test_groups_and_letters),
        TEST(test_config_round_trip),
        TEST(test_man),
        TEST(test_bundle_precedence),
        TEST(test_bundle_errors),
        TEST(test_bundle_help),
        TEST(test_shared_fields),
        TEST(test_nearest),
        TEST(test_origins),
    };
    return cmocka_run_group_tests_name("options", tests, NULL, NULL);
}
