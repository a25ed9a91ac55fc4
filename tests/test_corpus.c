/* test_corpus.c: sentence pairs from files, what is skipped, and what is refused. */
#include <heed/data.h>

#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <zlib.h>

#include <cmocka.h>

#include "failing_allocator.h"
#include "temp_folder.h"

#define FUZZ "tests/fuzz/corpus"
#define SOURCE (in_folder("train.en"))
#define TARGET (in_folder("train.de"))
#define TSV (in_folder("train.tsv"))

static void put(const char *path, const char *text)
{
    write_plain(path, text, strlen(text));
}

static void put_gz(const char *path, const char *text)
{
    gzFile f = gzopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(gzwrite(f, text, (unsigned)strlen(text)), (int)strlen(text));
    assert_int_equal(gzclose(f), Z_OK);
}

/* What the log heard, line by line. */
static char heard[8192];

static void listen(void *context, heed_log_level level, const char *line)
{
    (void)context;
    assert_int_equal(level, HEED_LOG_WARNING);
    assert_true(strlen(heard) + strlen(line) + 2 < sizeof heard);
    strcat(strcat(heard, line), "\n");
}

static heed_corpus *open_corpus(const char *source, const char *target, const char *tsv,
                                heed_error *err)
{
    heed_corpus_files files = {
        .source = &source, .target = &target, .pairs = source != NULL, .tsv = &tsv};
    files.tsvs = tsv != NULL;
    heed_log_sink log = {listen, NULL};
    heard[0] = '\0';
    return heed_corpus_open(&files, &log, NULL, err);
}

/* Compares with pairs in the form "a=b|c=d|". */
static void assert_pairs(const heed_corpus *c, const char *expected)
{
    char found[1024] = "";
    size_t n = 0;
    assert_non_null(c);
    heed_corpus_report r = heed_corpus_describe(c);
    int64_t source = 0, target = 0;
    for (int64_t i = 0; i < r.pairs; i++) {
        heed_pair p = heed_corpus_pair(c, i);
        n += (size_t)snprintf(found + n, sizeof found - n, "%.*s=%.*s|", (int)p.source_length,
                              p.source, (int)p.target_length, p.target);
        source += (int64_t)p.source_length;
        target += (int64_t)p.target_length;
    }
    assert_string_equal(found, expected);
    assert_int_equal(r.source_bytes, source);
    assert_int_equal(r.target_bytes, target);
    assert_int_equal(r.lines, r.pairs + r.broken + r.empty + r.untabbed);
}

static void assert_corpus(const char *source, const char *target, const char *tsv,
                          const char *expected)
{
    heed_error err = {0};
    heed_corpus *c = open_corpus(source, target, tsv, &err);
    assert_string_equal(err.text, "");
    assert_pairs(c, expected);
    heed_corpus_free(c);
}

/* Catches line ends or byte order marks taken for text, a lost last line, and gzip that reads
 * differently from plain. */
static void plain_and_gzip(void **state)
{
    (void)state;
    static const struct {
        const char *source, *target, *pairs;
    } cases[] = {
        {"a\nb\n", "c\nd\n", "a=c|b=d|"},
        {"a\nb", "c\nd\n", "a=c|b=d|"},
        {"a\r\nb\r\n", "c\nd", "a=c|b=d|"},
        {"\xef\xbb\xbf"
         "a\nb\n",
         "\xef\xbb\xbf"
         "c\r\nd",
         "a=c|b=d|"},
        {" a \nb\r\r\n", "c\td\ne\r", " a =c\td|b=e|"},
        {"\xc3\xa4\n", "\xe2\x82\xac\n", "\xc3\xa4=\xe2\x82\xac|"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        put(SOURCE, cases[i].source);
        put(TARGET, cases[i].target);
        assert_corpus(SOURCE, TARGET, NULL, cases[i].pairs);
        put_gz(SOURCE, cases[i].source);
        assert_corpus(SOURCE, TARGET, NULL, cases[i].pairs);
        put_gz(TARGET, cases[i].target);
        assert_corpus(SOURCE, TARGET, NULL, cases[i].pairs);
    }
}

/* Catches columns taken for parts of the target, and a tab inside a side. */
static void tab_separated(void **state)
{
    (void)state;
    const char *text = "a\tb\r\nc d\te f\tCC-BY\tx\r\nuntabbed\n\tg\nh\t\ni\t \t\nj\tk";
    for (int gz = 0; gz < 2; gz++) {
        (gz ? put_gz : put)(TSV, text);
        heed_error err = {0};
        heed_corpus *c = open_corpus(NULL, NULL, TSV, &err);
        assert_pairs(c, "a=b|c d=e f|j=k|");
        assert_int_equal(heed_corpus_describe(c).untabbed, 1);
        assert_int_equal(heed_corpus_describe(c).empty, 3);
        assert_non_null(strstr(heard, "train.tsv' line 3 has no tab: pair skipped\n"));
        assert_non_null(strstr(heard, "train.tsv' line 4 has an empty source: pair skipped\n"));
        assert_non_null(strstr(heard, "train.tsv' line 5 has an empty target: pair skipped\n"));
        assert_non_null(strstr(heard, "7 lines read, 4 skipped (0 not UTF-8, 3 with an empty side, "
                                      "1 without a tab)\n"));
        heed_corpus_free(c);
    }
}

/* Catches a skipped line that shifts one side against the other. */
static void skipping_keeps_the_pairing(void **state)
{
    (void)state;
    put(SOURCE, "a1\na2\xff\na3\n\na5\n \t \na7\na8\n");
    put(TARGET, "b1\nb2\nb3\nb4\nb5\nb6\nb7\xc3\n\xc2\xa0\xe3\x80\x80\xe2\x80\x8b\n");
    heed_error err = {0};
    heed_corpus *c = open_corpus(SOURCE, TARGET, NULL, &err);
    assert_pairs(c, "a1=b1|a3=b3|a5=b5|");
    heed_corpus_report r = heed_corpus_describe(c);
    assert_int_equal(r.lines, 8);
    assert_int_equal(r.broken, 2);
    assert_int_equal(r.empty, 3);
    assert_non_null(strstr(heard, "train.en' line 2 is not UTF-8 (byte 3): pair skipped\n"));
    assert_non_null(strstr(heard, "train.de' line 7 is not UTF-8 (byte 3): pair skipped\n"));
    assert_non_null(strstr(heard, "train.en' line 4 is empty: pair skipped\n"));
    assert_non_null(strstr(heard, "train.de' line 8 is empty: pair skipped\n"));
    heed_pair none = heed_corpus_pair(c, 3), before = heed_corpus_pair(c, -1);
    assert_int_equal(none.source_length + none.target_length, 0);
    assert_int_equal(before.source_length + before.target_length, 0);
    heed_corpus_free(c);
}

/* Catches a log that drowns: ten of a kind are named, all are counted. */
static void the_log_names_ten(void **state)
{
    (void)state;
    char text[200] = "a\tb\n";
    for (int i = 0; i < 25; i++)
        strcat(text, "x\n");
    put(TSV, text);
    heed_error err = {0};
    heed_corpus *c = open_corpus(NULL, NULL, TSV, &err);
    assert_int_equal(heed_corpus_describe(c).untabbed, 25);
    int lines = 0;
    for (const char *p = heard; *p; p++)
        lines += *p == '\n';
    assert_int_equal(lines, 11);
    assert_non_null(strstr(heard, "line 11 has no tab"));
    assert_null(strstr(heard, "line 12 "));
    heed_corpus_free(c);
    put(TSV, "a\tb\n");
    heed_corpus_free(open_corpus(NULL, NULL, TSV, &err));
    assert_string_equal(heard, ""); /* and nothing is said where nothing is wrong */
}

/* Catches files taken out of order, or index and bytes mixed up between them. */
static void many_files(void **state)
{
    (void)state;
    put(in_folder("1"), "a\nb\n");
    put(in_folder("2"), "A\nB\n");
    put_gz(in_folder("3"), "c\n");
    put(in_folder("4"), "C\n");
    char name[6][128];
    const char *path[6];
    for (int i = 0; i < 6; i++) {
        snprintf(name[i], sizeof name[i], "%s/%d", folder, i + 1);
        path[i] = name[i];
    }
    put(path[4], "d\tD\n");
    put_gz(path[5], "e\tE\nf\tF\n");
    const char *source[] = {path[0], path[2]}, *target[] = {path[1], path[3]};
    heed_corpus_files files = {
        .source = source, .target = target, .pairs = 2, .tsv = path + 4, .tsvs = 2};
    heed_error err = {0};
    heed_corpus *c = heed_corpus_open(&files, NULL, NULL, &err);
    assert_pairs(c, "a=A|b=B|c=C|d=D|e=E|f=F|");
    static const struct {
        heed_side side;
        const char *lines;
    } cases[] = {{HEED_SOURCE, "abcdef"}, {HEED_TARGET, "ABCDEF"}, {HEED_BOTH, "aAbBcCdDeEfF"}};
    for (int i = 0; i < 3; i++) {
        heed_corpus_lines *l = heed_corpus_lines_new(c, cases[i].side, NULL, &err);
        heed_line_source s = heed_corpus_lines_source(l);
        char found[32] = "";
        const char *text;
        size_t length;
        while (s.next(s.context, &text, &length, &err) == HEED_OK && text)
            strncat(found, text, length);
        assert_string_equal(found, cases[i].lines);
        assert_int_equal(s.next(s.context, &text, &length, &err), HEED_OK);
        assert_null(text); /* the end stays the end */
        heed_corpus_lines_free(l);
    }
    assert_null(heed_corpus_lines_new(c, 4, NULL, &err));
    assert_string_equal(err.text, "side is 4, expected source, target or both");
    heed_corpus_free(c);
}

static void assert_refused(const char *source, const char *target, const char *tsv,
                           heed_status status, const char *text)
{
    heed_error err = {0};
    assert_null(open_corpus(source, target, tsv, &err));
    assert_int_equal(err.status, status);
    if (!strstr(err.text, text))
        assert_string_equal(err.text, text);
}

/* Catches bad input let through, and errors that do not say which file, what was found and what was
 * expected. */
static void refused(void **state)
{
    (void)state;
    char expected[512];
    put(SOURCE, "a\nb\nc\n");
    put(TARGET, "a\nb\n");
    snprintf(expected, sizeof expected, "cannot read '%s': 2 lines, expected 3 as in '%s'", TARGET,
             SOURCE);
    assert_refused(SOURCE, TARGET, NULL, HEED_FORMAT, expected);
    put_gz(TARGET, "a\nb\nc\nd");
    assert_refused(SOURCE, TARGET, NULL, HEED_FORMAT, "train.de': 4 lines, expected 3 as in '");
    assert_refused(SOURCE, in_folder("no"), NULL, HEED_IO, "no': No such file or directory");
    assert_refused(NULL, NULL, folder, HEED_IO, "': Is a directory");
    assert_refused(NULL, NULL, "/dev/null", HEED_IO, "'/dev/null': not a regular file");

    write_plain(TARGET, "a\nb\0\nc\n", 7);
    assert_refused(SOURCE, TARGET, NULL, HEED_FORMAT,
                   "train.de' line 2: byte 2 is NUL, expected text");
    gzFile f = gzopen(TARGET, "wb");
    gzwrite(f, "a\nb\0\nc\n", 7);
    gzclose(f);
    assert_refused(SOURCE, TARGET, NULL, HEED_FORMAT,
                   "train.de' line 2: byte 2 is NUL, expected text");
    write_plain(TSV,
                "\xff\xfe"
                "a\0\t\0b\0",
                8);
    assert_refused(NULL, NULL, TSV, HEED_FORMAT, "train.tsv': it is UTF-16, expected UTF-8");

    put(TSV, "a\nb\n\xff\tb\n \tb\n");
    assert_refused(NULL, NULL, TSV, HEED_FORMAT,
                   "train.tsv': 4 lines read, 4 skipped (1 not UTF-8, 1 with an empty side, 2 "
                   "without a tab)");
    assert_string_equal(heard, ""); /* the counts say it all */
    put(TSV, "");
    assert_refused(NULL, NULL, TSV, HEED_FORMAT, "no usable sentence pair in '");
    assert_refused(NULL, NULL, NULL, HEED_ARGUMENT, "no corpus: expected names of source");
    const char *one[] = {NULL};
    heed_corpus_files nameless = {.tsv = one, .tsvs = 1};
    heed_error err = {0};
    assert_null(heed_corpus_open(&nameless, NULL, NULL, &err));
    assert_int_equal(err.status, HEED_ARGUMENT);

    put_gz(TSV, "some text\tthat is long enough to be cut\n");
    assert_int_equal(truncate(TSV, 40), 0);
    assert_refused(NULL, NULL, TSV, HEED_FORMAT, "train.tsv': the gzip is truncated");
}

/* Catches what the fuzzer has been given to start from and reads differently now. */
static void fuzz_corpus(void **state)
{
    (void)state;
    static const struct {
        const char *name, *pairs; /* pairs NULL: refused */
    } cases[] = {
        {"valid_two", "a=b|c d=e f|"},    {"valid_mark_crlf", "a=b|\xc3\xa4=\xe2\x82\xac|"},
        {"valid_with_bad_lines", "a=b|"}, {"valid_gzip", "a=b|c=d|"},
        {"broken_utf16", NULL},           {"broken_nul", NULL},
        {"broken_empty", NULL},           {"broken_untabbed", NULL},
        {"broken_gzip_cut", NULL},        {"broken_blank", NULL},
    };
    int count = sizeof cases / sizeof *cases;
    for (int i = 0; i < count; i++) {
        char path[128];
        snprintf(path, sizeof path, FUZZ "/%s", cases[i].name);
        if (cases[i].pairs)
            assert_corpus(NULL, NULL, path, cases[i].pairs);
        else
            assert_refused(NULL, NULL, path, HEED_FORMAT, path);
    }
    assert_int_equal(files_in(FUZZ), count);
}

/* Catches limits off by one in the length of a line, and a plain file that may do more than a gzip.
 */
static void lines_have_a_limit(void **state)
{
    (void)state;
    size_t limit = (size_t)1 << 24;
    char *text = malloc(limit + 4);
    memset(text, 'x', limit + 4);
    memcpy(text, "a\t", 2);
    text[limit] = '\n';
    write_plain(TSV, text, limit + 1);
    heed_error err = {0};
    heed_corpus *c = open_corpus(NULL, NULL, TSV, &err);
    assert_int_equal(heed_corpus_pair(c, 0).target_length, limit - 2);
    heed_corpus_free(c);
    text[limit] = 'x';
    text[limit + 1] = '\n';
    for (int gz = 0; gz < 2; gz++) {
        gzFile f = gzopen(TSV, gz ? "wb1" : "wbT");
        gzwrite(f, text, (unsigned)limit + 2);
        gzclose(f);
        assert_refused(NULL, NULL, TSV, HEED_FORMAT,
                       "train.tsv' line 1 is longer than 16777216 bytes");
    }
    free(text);
}

static void *feed(void *path)
{
    FILE *f = fopen(path, "w");
    for (int i = 0; i < 20000; i++)
        fprintf(f, "source %d\ttarget %d\n", i, i);
    fclose(f);
    return NULL;
}

/* Catches a pipe read twice or by halves, and a temporary file left behind or full. */
static void through_a_pipe(void **state)
{
    (void)state;
    char path[128];
    snprintf(path, sizeof path, "%s", in_folder("pipe"));
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_int_equal(setenv("TMPDIR", folder, 1), 0);
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, feed, path), 0);
    heed_error err = {0};
    heed_corpus *c = open_corpus(NULL, NULL, path, &err);
    pthread_join(thread, NULL);
    assert_string_equal(err.text, "");
    assert_int_equal(heed_corpus_describe(c).pairs, 20000);
    for (int64_t i = 0; i < 20000; i += 777) {
        char expected[64];
        heed_pair p = heed_corpus_pair(c, i);
        int n = snprintf(expected, sizeof expected, "source %lld\ttarget %lld", (long long)i,
                         (long long)i);
        assert_int_equal(p.source_length + p.target_length + 1, n);
        assert_memory_equal(p.source, expected, (size_t)n);
    }
    assert_int_equal(files_in(folder), 1); /* the pipe */
    heed_corpus_free(c);

    put_gz(TSV, "a\tb\n");
    setenv("TMPDIR", in_folder("absent"), 1);
    assert_refused(NULL, NULL, TSV, HEED_IO, "absent': No such file or directory; TMPDIR may");
    unsetenv("TMPDIR");
}

/* Catches pairs lost or doubled when some are held out, a choice that is not spread over the whole
 * corpus, and one that the seed does not decide. */
static void held_out(void **state)
{
    (void)state;
    enum { PAIRS = 100, HELD = 7 };
    FILE *f = fopen(TSV, "w");
    for (int i = 0; i < PAIRS; i++)
        fprintf(f, "%d\t%d\n", i, i);
    fclose(f);
    char found[3][512] = {""};
    for (int seed = 0; seed < 3; seed++) {
        heed_error err = {0};
        heed_corpus *c = open_corpus(NULL, NULL, TSV, &err);
        int64_t bytes = heed_corpus_describe(c).source_bytes;
        heed_corpus *held = heed_corpus_hold_out(c, HELD, (uint64_t)(seed / 2), NULL, &err);
        heed_corpus_report rest = heed_corpus_describe(c), taken = heed_corpus_describe(held);
        assert_int_equal(taken.pairs, HELD);
        assert_int_equal(rest.pairs, PAIRS - HELD);
        assert_int_equal(rest.source_bytes + taken.source_bytes, bytes);
        int64_t at = 0;
        for (int i = 0, k = 0; i < PAIRS; i++) { /* both keep the order of the files */
            heed_pair p = heed_corpus_pair(held, k);
            if (k < HELD && atoi(p.source) == i) {
                assert_true(i >= k * PAIRS / HELD && i < (k + 1) * PAIRS / HELD);
                strncat(strcat(found[seed], " "), p.target, p.target_length);
                k++;
            } else {
                assert_int_equal(atoi(heed_corpus_pair(c, at++).source), i);
            }
        }
        assert_null(heed_corpus_hold_out(c, PAIRS - HELD, 0, NULL, &err));
        assert_string_equal(err.text, "cannot hold out 93 of 93 pairs");
        heed_corpus_free(held);
        heed_corpus_free(c);
    }
    assert_string_equal(found[0], found[1]);
    assert_string_not_equal(found[1], found[2]);
}

/* ---- shares ---- */

/* n pairs "<mark>0", "<mark>1" ... */
static void put_marked(const char *name, char mark, int n)
{
    FILE *f = fopen(in_folder(name), "w");
    assert_non_null(f);
    for (int i = 0; i < n; i++)
        fprintf(f, "%c%d\tx\n", mark, i);
    assert_int_equal(fclose(f), 0);
}

/* "a.tsv" with 10 pairs, "b.tsv" with 100, and the name given in place of the latter. */
static heed_corpus *open_shares(const char *second, heed_error *err)
{
    char name[2][128];
    snprintf(name[0], sizeof *name, "%s/a.tsv", folder);
    snprintf(name[1], sizeof *name, "%s/%s", folder, second);
    const char *const tsv[] = {name[0], name[1]};
    const heed_corpus_files files = {.tsv = tsv, .tsvs = 2, .shares = true};
    return heed_corpus_open(&files, NULL, NULL, err);
}

/* How many lines a vocabulary is learned from; those of b are spread evenly. */
static int lines_of_b(const heed_corpus *c)
{
    heed_error err = {0};
    heed_corpus_lines *l = heed_corpus_lines_new(c, HEED_SOURCE, NULL, &err);
    const heed_line_source s = heed_corpus_lines_source(l);
    const char *text;
    size_t length;
    int n = 0, last = -1, widest = 0;
    while (s.next(s.context, &text, &length, &err) == HEED_OK && text) {
        if (text[0] != 'b')
            continue;
        const int at = atoi(text + 1);
        assert_true(at > last);
        widest = at - last > widest ? at - last : widest;
        last = at;
        n++;
    }
    heed_corpus_lines_free(l);
    assert_true(widest <= 100 / n + 2); /* one may be held out */
    return n;
}

/* Catches a share that is not the epoch's, is lost in counts and bytes, or is taken for a part of a
 * name that has a file. */
static void shares(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        int pairs; /* of b, in an epoch */
    } cases[] = {
        {"b.tsv", 100}, {"b.tsv:1", 100}, {"b.tsv:0.3", 30}, {"b.tsv:.255", 26}, {"b.tsv:1e-9", 1}};
    heed_error err = {0};
    put_marked("a.tsv", 'a', 10);
    put_marked("b.tsv", 'b', 100);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        heed_corpus *c = open_shares(cases[i].name, &err);
        assert_string_equal(err.text, "");
        const heed_corpus_report r = heed_corpus_describe(c);
        assert_int_equal(r.pairs, 110);
        assert_int_equal(r.epoch_pairs, 10 + cases[i].pairs);
        assert_int_equal(r.target_bytes, 110);
        assert_int_equal(r.epoch_target_bytes, 10 + cases[i].pairs);
        assert_int_equal(lines_of_b(c), cases[i].pairs);
        heed_corpus_free(c);
    }
    static const char *const bad[] = {"b.tsv:1.5", "b.tsv:0"};
    for (int i = 0; i < 2; i++) {
        assert_null(open_shares(bad[i], &err));
        assert_non_null(strstr(err.text, "the share of a file's pairs that an epoch has is above 0 "
                                         "and at most 1"));
    }
    static const char *const names[] = {"b.tsv:", "b.tsv:0.3x", "b.tsv:nan", "c.tsv:0.3"};
    for (int i = 0; i < 4; i++) {
        err = (heed_error){0};
        assert_null(open_shares(names[i], &err));
        assert_int_equal(err.status, HEED_IO);
    }
    assert_non_null(strstr(err.text, "c.tsv': No such file"));
    assert_refused(NULL, NULL, in_folder("b.tsv:0.3"), HEED_IO,
                   "b.tsv:0.3': No such file"
                   " or directory");

    put_marked("b.tsv:0.3", 'b', 7); /* the whole name wins */
    err = (heed_error){0};
    heed_corpus *c = open_shares("b.tsv:0.3", &err);
    assert_int_equal(heed_corpus_describe(c).epoch_pairs, 17);
    heed_corpus_free(c);
}

/* Catches a share of --source that the target does not follow. */
static void share_of_a_source(void **state)
{
    (void)state;
    put(SOURCE, "a\nb\nc\nd\n");
    put(TARGET, "A\nB\nC\nD\n");
    char name[128];
    snprintf(name, sizeof name, "%s:0.5", SOURCE);
    const char *const source = name, *const target = TARGET;
    const heed_corpus_files files = {
        .source = &source, .target = &target, .pairs = 1, .shares = true};
    heed_error err = {0};
    heed_corpus *c = heed_corpus_open(&files, NULL, NULL, &err);
    assert_pairs(c, "a=A|b=B|c=C|d=D|");
    assert_int_equal(heed_corpus_describe(c).epoch_pairs, 2);
    heed_corpus_free(c);
}

/* Catches a validation set that is of another mixture than the training, and shares and bytes that
 * are wrong for what is left. */
static void held_out_by_shares(void **state)
{
    (void)state;
    heed_error err = {0};
    put_marked("a.tsv", 'a', 10);
    put_marked("b.tsv", 'b', 100);
    heed_corpus *c = open_shares("b.tsv:0.3", &err);
    heed_corpus *held = heed_corpus_hold_out(c, 8, 3, NULL, &err);
    const heed_corpus_report h = heed_corpus_describe(held), r = heed_corpus_describe(c);
    int of_b = 0;
    for (int i = 0; i < 8; i++)
        of_b += heed_corpus_pair(held, i).source[0] == 'b';
    assert_int_equal(of_b, 6);
    assert_int_equal(h.epoch_pairs, 8);
    assert_int_equal(r.pairs, 102);
    assert_int_equal(r.epoch_pairs, 8 + 28); /* 0.3 * 94 is 28.2 */
    assert_int_equal(r.source_bytes + h.source_bytes, 20 + 10 * 2 + 90 * 3);
    assert_int_equal(r.epoch_target_bytes, 8 + 28);
    assert_int_equal(lines_of_b(c), 28);
    assert_null(heed_corpus_hold_out(c, 36, 0, NULL, &err));
    assert_string_equal(err.text, "cannot hold out 36 of 36 pairs");
    heed_corpus_free(held);
    heed_corpus_free(c);
}

/* Catches a leak or a crash when memory runs out anywhere while opening. */
static void memory_runs_out(void **state)
{
    (void)state;
    put_gz(SOURCE, "a\nb\n");
    put(TARGET, "c\nd\n");
    const char *source = SOURCE, *target = TARGET;
    heed_corpus_files files = {.source = &source, .target = &target, .pairs = 1};
    bool opened = false;
    for (int n = 1; !opened; n++) {
        assert_true(n < 20);
        struct failing f = {.fail_at = n};
        heed_allocator a = failing_allocator(&f);
        heed_error err = {0};
        heed_corpus *c = heed_corpus_open(&files, NULL, &a, &err);
        heed_corpus *held = c ? heed_corpus_hold_out(c, 1, 0, &a, &err) : NULL;
        opened = held != NULL;
        assert_int_equal(err.status, opened ? HEED_OK : HEED_MEMORY);
        heed_corpus_free(held);
        heed_corpus_free(c);
        assert_int_equal(f.held, 0);
    }
}

#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, make_folder, remove_folder)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_FOLDER(plain_and_gzip),
        IN_FOLDER(tab_separated),
        IN_FOLDER(the_log_names_ten),
        IN_FOLDER(skipping_keeps_the_pairing),
        IN_FOLDER(many_files),
        IN_FOLDER(refused),
        cmocka_unit_test(fuzz_corpus),
        IN_FOLDER(lines_have_a_limit),
        IN_FOLDER(through_a_pipe),
        IN_FOLDER(held_out),
        IN_FOLDER(shares),
        IN_FOLDER(share_of_a_source),
        IN_FOLDER(held_out_by_shares),
        IN_FOLDER(memory_runs_out),
    };
    return cmocka_run_group_tests_name("corpus", tests, NULL, NULL);
}
