/* batches_help.h: what the tests of the batches share: a corpus whose every pair is known by its
 * words, and two vocabularies for it.  set_up and tear_down are for the whole group.  Include
 * cmocka.h first. */
#ifndef HEED_TESTS_BATCHES_HELP_H
#define HEED_TESTS_BATCHES_HELP_H

#include <heed/data.h>

#include "temp_folder.h"

/* ---- a corpus whose every pair is known by its words ---- */

#define PAIRS 300

static heed_corpus *corpus;
static heed_vocab *words, *subwords;
static heed_arena *arena;

static heed_corpus *open_tsv(const char *path)
{
    heed_corpus_files files = {.tsv = &path, .tsvs = 1};
    heed_error err = {0};
    heed_corpus *c = heed_corpus_open(&files, NULL, NULL, &err);
    assert_string_equal(err.text, "");
    return c;
}

static heed_vocab *learn(const heed_corpus *c, heed_vocab_kind kind, int64_t size)
{
    heed_error err = {0};
    heed_corpus_lines *lines = heed_corpus_lines_new(c, HEED_BOTH, NULL, &err);
    heed_line_source source = heed_corpus_lines_source(lines);
    heed_vocab_options o = {.kind = kind, .size = size, .min_count = 1};
    heed_vocab_train(&o, &source, in_folder("vocab"), NULL, &err);
    assert_string_equal(err.text, "");
    heed_corpus_lines_free(lines);
    heed_vocab *v = heed_vocab_open(in_folder("vocab"), NULL, NULL, &err);
    assert_string_equal(err.text, "");
    return v;
}

/* From 1 to 17 words on a side, most of them shared, the first one the pair's own. */
static void write_pairs(const char *path, int pairs)
{
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    for (int i = 0; i < pairs; i++) {
        fprintf(f, "s%d", i);
        for (int j = 0; j < i * 7919 % 17; j++)
            fprintf(f, " word%d", (i + 3 * j) % 40);
        fprintf(f, "\tt%d", i);
        for (int j = 0; j < (i * 7919 % 17 + i % 3) * 16 / 19; j++)
            fprintf(f, " wort%d", (i + 5 * j) % 40);
        fprintf(f, "\n");
    }
    fclose(f);
}

static int set_up(void **state)
{
    if (make_folder(state))
        return -1;
    write_pairs(in_folder("pairs.tsv"), PAIRS);
    corpus = open_tsv(in_folder("pairs.tsv"));
    words = learn(corpus, HEED_WHITESPACE, 0);
    subwords = learn(corpus, HEED_UNIGRAM, 120);
    arena = heed_arena_new(NULL, NULL);
    return 0;
}

static int tear_down(void **state)
{
    heed_arena_free(arena);
    heed_vocab_free(words);
    heed_vocab_free(subwords);
    heed_corpus_free(corpus);
    return remove_folder(state);
}

static heed_batches *open_stream(const heed_batches_options *o)
{
    heed_error err = {0};
    heed_batches *b = heed_batches_new(corpus, words, words, o, NULL, &err);
    assert_string_equal(err.text, "");
    return b;
}

static heed_batch next(heed_batches *b)
{
    heed_batch batch;
    heed_error err = {0};
    heed_batches_next(b, &batch, 1, &err);
    assert_string_equal(err.text, "");
    return batch;
}

static const heed_batches_options usual = {
    .batch_tokens = 100, .max_tokens = 50, .window = 128, .seed = 7};

#endif
