/* test_metric_values.c: BLEU, chrF and TER against sacreBLEU's numbers.
 *
 * tests/metric holds hand-made lines, and in expected.json what sacreBLEU's published algorithms
 * give for them: written down again in Python, with its str, re and regex, and checked against
 * sacreBLEU 2.6 itself on three other sets, which the environment variable DATA may point to. */
#include <heed/metric.h>
#include <jansson.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* The same sums in the same order: nothing but the last digits of log and exp may differ. */
#define CLOSE 1e-8

struct lines {
    char *text;
    const char **line;
    int64_t count;
};

static struct lines read_lines(const char *folder, const char *name)
{
    char path[512];
    struct lines l = {0};
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *f = fopen(path, "rb");
    if (!f)
        fail_msg("cannot open '%s': tests run in the root of the tree", path);
    fseek(f, 0, SEEK_END);
    long size = ftell(f);
    rewind(f);
    l.text = malloc((size_t)size + 1);
    assert_int_equal(fread(l.text, 1, (size_t)size, f), size);
    fclose(f);
    l.text[size] = '\0';
    l.line = malloc(((size_t)size + 1) * sizeof *l.line);
    for (char *at = l.text, *end; (end = strchr(at, '\n')); at = end + 1) {
        *end = '\0';
        l.line[l.count++] = at;
    }
    return l;
}

static void free_lines(struct lines *l)
{
    free(l->text);
    free(l->line);
}

/* Takes `part` off the front of *key, at a dot or the end. */
static bool take(const char **key, const char *part)
{
    size_t n = strlen(part);
    if (strncmp(*key, part, n) != 0 || ((*key)[n] != '.' && (*key)[n] != '\0'))
        return false;
    *key += n + ((*key)[n] == '.');
    return true;
}

static void expect(const char *set, const char *key, double found, double expected)
{
    if (!(fabs(found - expected) < CLOSE))
        fail_msg("%s %s: %.12g, expected %.12g", set, key, found, expected);
}

/* What follows "bleu." in a key: "13a.lc". */
static bool check_bleu(const char *set, const char *key, const json_t *value, const struct lines *h,
                       const struct lines *r)
{
    static const char *const names[] = {"13a", "intl", "none", "char", "zh", "tokenized", NULL};
    heed_bleu_result b;
    int t = 0;
    while (names[t] && !take(&key, names[t]))
        t++;
    heed_bleu_options o = {.tokenize = (heed_tokenize)t};
    o.lowercase = take(&key, "lc");
    o.compound_split = take(&key, "split");
    if (*key || !names[t])
        return false;
    char what[256];
    heed_bleu_signature(&o, what, sizeof what);
    assert_int_equal(heed_bleu(&o, h->line, r->line, h->count, &b, NULL), HEED_OK);
    expect(set, what, b.score, json_number_value(json_object_get(value, "score")));
    const json_t *p = json_object_get(value, "precisions");
    for (size_t n = 0; n < 4; n++)
        expect(set, what, b.precision[n], json_number_value(json_array_get(p, n)));
    expect(set, what, b.brevity_penalty, json_number_value(json_object_get(value, "bp")));
    expect(set, what, (double)b.hypothesis_length,
           json_number_value(json_object_get(value, "sys_len")));
    expect(set, what, (double)b.reference_length,
           json_number_value(json_object_get(value, "ref_len")));
    return true;
}

/* "bleu.13a.lc", "chrf++", "ter.normalized": false if it is none of them. */
static bool check_setting(const char *set, const char *key, const json_t *value,
                          const struct lines *h, const struct lines *r)
{
    const char *at = key;
    double score;
    if (take(&at, "bleu"))
        return check_bleu(set, at, value, h, r);
    if (take(&at, "chrf") || take(&at, "chrf++")) {
        heed_chrf_options o = {.word_order = strncmp(key, "chrf++", 6) == 0 ? 2 : 0};
        o.lowercase = take(&at, "lc");
        o.whitespace = take(&at, "ws");
        assert_int_equal(heed_chrf(&o, h->line, r->line, h->count, &score, NULL), HEED_OK);
    } else if (take(&at, "ter")) {
        heed_ter_options o = {0};
        o.normalized = take(&at, "normalized");
        o.no_punctuation = take(&at, "no_punct");
        o.asian_support = take(&at, "asian");
        o.case_sensitive = take(&at, "case_sensitive");
        assert_int_equal(heed_ter(&o, h->line, r->line, h->count, &score, NULL), HEED_OK);
    } else {
        return false;
    }
    expect(set, key, score, json_number_value(value));
    return *at == '\0';
}

static void check_sentence(const char *set, size_t i, const json_t *value,
                           const char *const *hypothesis, const char *const *reference)
{
    char key[32];
    heed_bleu_result b;
    double c, t;
    snprintf(key, sizeof key, "line %zu", i + 1);
    assert_int_equal(heed_bleu(&(heed_bleu_options){.effective_order = true}, hypothesis, reference,
                               1, &b, NULL),
                     HEED_OK);
    assert_int_equal(heed_chrf(&(heed_chrf_options){0}, hypothesis, reference, 1, &c, NULL),
                     HEED_OK);
    assert_int_equal(heed_ter(&(heed_ter_options){0}, hypothesis, reference, 1, &t, NULL), HEED_OK);
    expect(set, key, b.score, json_number_value(json_object_get(value, "bleu")));
    expect(set, key, c, json_number_value(json_object_get(value, "chrf")));
    expect(set, key, t, json_number_value(json_object_get(value, "ter")));
}

/* Everything in a folder's expected.json; returns how many settings it had. */
static int check_folder(const char *folder)
{
    char path[512];
    snprintf(path, sizeof path, "%s/expected.json", folder);
    json_error_t wrong;
    json_t *sets = json_load_file(path, 0, &wrong), *settings, *value, *sentence;
    if (!sets)
        fail_msg("%s: %s", path, wrong.text);
    const char *set, *key;
    size_t i;
    int checked = 0;
    json_object_foreach(sets, set, settings)
    {
        /* `tricky.hyp` where there is such a file, else `hyp.de`. */
        char hypothesis[64], reference[64];
        snprintf(path, sizeof path, "%s/%s.hyp", folder, set);
        FILE *f = fopen(path, "rb");
        snprintf(hypothesis, sizeof hypothesis, f ? "%2$s.%1$s" : "%s.%s", "hyp", set);
        snprintf(reference, sizeof reference, f ? "%2$s.%1$s" : "%s.%s", "ref", set);
        if (f)
            fclose(f);
        struct lines h = read_lines(folder, hypothesis), r = read_lines(folder, reference);
        assert_int_equal(h.count, r.count);
        json_object_foreach(settings, key, value)
        {
            if (strcmp(key, "sentence") != 0 && !check_setting(set, key, value, &h, &r))
                fail_msg("%s: unknown setting '%s'", set, key);
            checked++;
        }
        json_array_foreach(json_object_get(settings, "sentence"), i, sentence)
            check_sentence(set, i, sentence, h.line + i, r.line + i);
        free_lines(&h);
        free_lines(&r);
    }
    json_decref(sets);
    return checked;
}

/* Catches any rule of a tokeniser, a score or the shift search that differs from sacreBLEU's. */
static void hand_made(void **state)
{
    (void)state;
    assert_true(check_folder("tests/metric") > 50);
}

/* Catches the same on real translations, against what sacreBLEU itself gave. */
static void measured(void **state)
{
    (void)state;
    char folder[480];
    const char *data = getenv("DATA");
    snprintf(folder, sizeof folder, "%s/metrics", data ? data : "");
    if (!data) {
        print_message("DATA is not set: not compared with sacreBLEU's own numbers\n");
        skip();
    }
    assert_true(check_folder(folder) >= 51);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hand_made),
        cmocka_unit_test(measured),
    };
    return cmocka_run_group_tests_name("metric values", tests, NULL, NULL);
}
