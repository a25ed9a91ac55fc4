/* test_names.c: what is copied because a small model would spell it wrong. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "data/names.h"
#include "spm_model.h"
#include "temp_folder.h"

static heed_arena *arena;
static heed_vocab *vocab;

/* Whole words for some, letters for the rest. */
static int set_up(void **state)
{
    static struct bytes b;
    static const char *const words[] = {"▁Tom", "▁Thurs", "day", "▁", NULL};
    char letter[2] = "a";
    put_specials(&b);
    for (int i = 0; words[i]; i++)
        put_piece(&b, words[i], -1, NORMAL);
    for (; letter[0] <= 'z'; letter[0]++)
        put_piece(&b, letter, -5, NORMAL);
    for (letter[0] = 'A'; letter[0] <= 'Z'; letter[0]++)
        put_piece(&b, letter, -5, NORMAL);
    put_specs(&b, 1, NULL, 0);
    arena = heed_arena_new(NULL, NULL);
    if (make_folder(state) || !arena)
        return -1;
    write_plain(in_folder("v.spm"), b.at, b.size);
    heed_error err = {0};
    vocab = heed_vocab_open(in_folder("v.spm"), NULL, NULL, &err);
    return vocab ? 0 : -1;
}

static int tear_down(void **state)
{
    heed_vocab_free(vocab);
    heed_arena_free(arena);
    return remove_folder(state);
}

static heed__names *learn(const char *pairs, const heed__names *before)
{
    heed_error err = {0};
    write_plain(in_folder("pairs.tsv"), pairs, strlen(pairs));
    const char *path = in_folder("pairs.tsv");
    heed_corpus *c =
        heed_corpus_open(&(heed_corpus_files){.tsv = &path, .tsvs = 1}, NULL, NULL, &err);
    assert_non_null(c);
    heed__names *n = heed__names_learn(c, before, NULL, &err);
    assert_int_equal(err.status, HEED_OK);
    heed_corpus_free(c);
    return n;
}

/* The file that a set of names is written to. */
static const char *file_of(const heed__names *n)
{
    static char text[1024];
    const char *path = in_folder("names.txt");
    assert_int_equal(heed__names_write(n, path, NULL), HEED_OK);
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    text[fread(text, 1, sizeof text - 1, f)] = '\0';
    fclose(f);
    return text;
}

/* The text with what is copied in brackets. */
static const char *marked(const heed__names *n, const char *text)
{
    static char out[1024];
    heed__span *copy;
    size_t at = 0, to = 0;
    int64_t count = heed__copies_of(n, vocab, text, strlen(text), arena, &copy);
    for (int64_t i = 0; i < count; at = copy[i++].end)
        to += (size_t)snprintf(out + to, sizeof out - to, "%.*s[%.*s]", (int)(copy[i].begin - at),
                               text + at, (int)(copy[i].end - copy[i].begin), text + copy[i].begin);
    snprintf(out + to, sizeof out - to, "%s", text + at);
    return out;
}

static const char english[] =
    "we saw old Tom here and there\twir sahen den alten Tom hier und da\n"
    "then on Thursday we saw a man called Tom again\tdann am Donnerstag sahen wir Tom wieder\n"
    "she lives in sunny California by the sea\tsie lebt im sonnigen Kalifornien am Meer\n"
    "he came from far away Boston to see us\ter kam aus dem fernen Boston zu uns\n"
    "Monday is a good day for all of us\tMontag ist ein guter Tag\n";

/* Catches names that are learned as translated, words that begin a sentence, and words with a
 * capital learned where all nouns have one. */
static void learns(void **state)
{
    (void)state;
    heed__names *n = learn(english, NULL);
    assert_non_null(n);
    assert_string_equal(file_of(n), "California\nThursday\n");
    heed__names *more =
        learn("they went to Munich and to Boston\tsie gingen nach München und Boston\n", n);
    assert_string_equal(file_of(more), "California\nMunich\nThursday\n");
    heed__names_free(more);
    heed__names_free(n);
    assert_null(
        learn("Der Hund sieht die Katze im Garten\tthe dog sees the cat in the garden\n", NULL));
}

/* Catches what is copied although it has a translation, is known, or only looks like a name; and
 * names or numbers that are not copied. */
static void finds(void **state)
{
    (void)state;
    heed__names *learned = learn(english, NULL);
    file_of(learned);
    heed__names *n = heed__names_open(in_folder("names.txt"), NULL, NULL);
    assert_non_null(n);
    assert_string_equal(file_of(n), "California\nThursday\n");
    static const char *const cases[] = {
        "We met Tom and [Zofia] in California.",
        "Zofia saw us on Thursday. Boston is far.",
        "He knows Mr. [Kowalczyk] and [Nnedi Adichukwu], not Tom.",
        "a letter to [Anna] [1250] times", /* a name and a number are two */
        "It is Hartmann's house and NASA's, says Al.",
        "Where Every Word Has Some Capital",
        "In [1989] it cost $[300], [30] % more; 7 of us paid 1,000 or 3.55 at 10:30 on 12/24.",
        "He is 33-year-old and likes the 80's and [20].",
        "row [11] [12] [13] [14] [15]",
        "row 11 12 13 14 15 16",                                     /* a table */
        "[Maria Zofia] saw [Paul Tom] California and Tom Thursday.", /* whole names, anywhere */
        "Will Tom see [Mark Tom] or Maria's Ute? [Anna] is Paul's.",
        "",
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[256];
        size_t length = 0;
        for (const char *c = cases[i]; *c; c++)
            if (*c != '[' && *c != ']')
                text[length++] = *c;
        text[length] = '\0';
        assert_string_equal(marked(n, text), cases[i]);
    }
    assert_string_equal(marked(NULL, "We met Zofia in 1989."), "We met Zofia in [1989].");
    /* in capitals, the other way: which of the words were names */
    char small[] = "will tom see katzz on thursday, {tom} or www.tom.de or paul's mark";
    assert_true(heed__names_capitalise(n, vocab, small, strlen(small), arena));
    assert_string_equal(small,
                        "will Tom see katzz on Thursday, {tom} or www.tom.de or Paul's mark");
    heed__names_free(n);
    heed__names_free(learned);
    assert_null(heed__names_open(in_folder("nowhere"), NULL, NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(learns), cmocka_unit_test(finds)};
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
