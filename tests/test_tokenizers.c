/* test_tokenizers.c: the tokenisers of published vocabularies: ids of other programs, small ones
 * written here; with DATA=dir also llama.cpp's golden texts (dir/weights/gguf-vocab). */
#include "vocab/vocabulary.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "failing_allocator.h"
#include "vocab_help.h"

static heed_arena *arena;

static int set_up(void **state)
{
    arena = heed_arena_new(NULL, NULL);
    return arena ? make_folder(state) : -1;
}

static int tear_down(void **state)
{
    heed_arena_free(arena);
    return remove_folder(state);
}

static heed_vocab *from_text(const char *name, const char *text)
{
    write_plain(in_folder(name), text, strlen(text));
    return open_vocab(in_folder(name), NULL);
}

/* Ids of a text as numbers between blanks. */
static void check_ids(const heed_vocab *v, const char *text, const char *expected)
{
    char found[4096] = "";
    size_t n = 0;
    heed_tokens t = encode(v, text, arena);
    for (int64_t i = 0; i < t.count; i++)
        n += (size_t)snprintf(found + n, sizeof found - n, "%s%d", i ? " " : "", t.id[i]);
    if (strcmp(found, expected) != 0)
        fail_msg("'%s' is %s, expected %s", text, found, expected);
}

/* Catches ids that differ from llama.cpp's on its 46 golden texts, for each kind of tokeniser. */
static void golden_texts(void **state)
{
    static const char *const names[] = {"gpt-2", "llama-spm", "phi-3", "bert-bge"};
    static const char between[] = "\n__ggml_vocab_test__\n";
    const char *data = getenv("DATA");
    (void)state;
    if (!data) {
        print_message("DATA is not set: not compared with llama.cpp's golden ids\n");
        skip();
    }
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char path[600];
        snprintf(path, sizeof path, "%s/weights/gguf-vocab/ggml-vocab-%s.gguf", data, names[i]);
        heed_vocab *v = open_vocab(path, NULL);
        static char texts[1 << 16], line[1 << 16];
        snprintf(path, sizeof path, "%s/weights/gguf-vocab/ggml-vocab-%s.gguf.inp", data, names[i]);
        FILE *f = fopen(path, "rb");
        assert_non_null(f);
        texts[fread(texts, 1, sizeof texts - 1, f)] = '\0';
        fclose(f);
        snprintf(path, sizeof path, "%s/weights/gguf-vocab/ggml-vocab-%s.gguf.out", data, names[i]);
        f = fopen(path, "rb");
        assert_non_null(f);
        int count = 0;
        for (char *text = texts, *end; text && *text; text = end, count++) {
            end = strstr(text, between);
            if (end) {
                *end = '\0';
                end += sizeof between - 1;
            }
            assert_non_null(fgets(line, sizeof line, f));
            line[strcspn(line, "\n")] = '\0';
            size_t n = strlen(line);
            while (n && line[n - 1] == ' ')
                line[--n] = '\0';
            check_ids(v, text, line + (*line == ' '));
        }
        assert_true(count >= 46);
        fclose(f);
        heed_vocab_free(v);
    }
}

/* Catches words cut elsewhere than the regular expressions cut them (the expected words were
 * made by JavaScript's engine, with the flags gu). */
static void splitting(void **state)
{
    (void)state;
    static const struct {
        heed__split split;
        const char *text, *words; /* | between words */
    } cases[] = {
        {HEED__SPLIT_GPT2, "Hello, I'm you're 'Twas", "Hello|,| I|'m| you|'re| '|Twas"},
        {HEED__SPLIT_GPT2, "a  b   c ", "a| | b|  | c| "},
        {HEED__SPLIT_GPT2, "a\n\nb\t c", "a|\n|\n|b|\t| c"},
        {HEED__SPLIT_GPT2, "x12345 67%^& ", "x|12345| 67|%^&| "},
        {HEED__SPLIT_GPT2, "I'M \xc3\xa4\xc2\xbd\xe4\xbd\xa0",
         "I|'|M| \xc3\xa4|\xc2\xbd|\xe4\xbd\xa0"},
        {HEED__SPLIT_GPT2, "\xc2\xa0\xc2\xa0x", "\xc2\xa0|\xc2\xa0|x"},
        {HEED__SPLIT_GPT2,
         "\xff\xfe"
         "a",
         "\xff\xfe|a"},
        {HEED__SPLIT_DIGITS, "a 123", "a| |1|2|3"},
        {HEED__SPLIT_LLAMA3, "I'M x12345 ?\n\n  y", "I|'M| x|123|45| ?\n\n| | y"},
        {HEED__SPLIT_LLAMA3, "(a  \n \n  b)\r\n", "(a|  \n \n| | b|)\r\n"},
        {HEED__SPLIT_QWEN2, "$12 a\tb", "$|1|2| a|\tb"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char found[200];
        size_t n = 0;
        for (const char *at = cases[i].text; *at;) {
            size_t size = heed__split_next(cases[i].split, at, strlen(at));
            n += (size_t)snprintf(found + n, sizeof found - n, "%s%.*s", n ? "|" : "", (int)size,
                                  at);
            at += size;
        }
        assert_string_equal(found, cases[i].words);
    }
}

#define TOKENIZER(pre, vocab, merges)                                                              \
    "{\"added_tokens\":[{\"id\":0,\"content\":\"<unk>\",\"special\":true},{\"id\":1,\"content\":"  \
    "\"<s>\",\"special\":true},{\"id\":2,\"content\":\"<go>\",\"special\":false}]," pre            \
    ",\"model\":{\"type\":\"BPE\",\"vocab\":{\"<unk>\":0,\"<s>\":1,\"<go>\":2" vocab               \
    "},\"merges\":[" merges "]}}"
#define BYTE_LEVEL "\"pre_tokenizer\":{\"type\":\"ByteLevel\"}"

/* Catches merges in another order than their ranks, or across words; a literal that is cut; a
 * special piece found in a text; bytes without a piece. */
static void byte_level(void **state)
{
    (void)state;
    heed_vocab *v = from_text(
        "v", TOKENIZER(BYTE_LEVEL,
                       ",\"a\":3,\"b\":4,\"\\u0120\":5,\"ab\":6,\"\\u0120a\":7,\"bb\":8,\"abb\":9",
                       "\"b b\",[\"a\",\"b\"],\"\\u0120 a\",\"a bb\""));
    check_ids(v, "ab", "6");
    check_ids(v, "abb", "9");
    check_ids(v, "abbb", "9 4");
    check_ids(v, "aab ab aa", "3 6 5 6 7 3");
    check_ids(v, "a<go>b", "3 2 4");
    check_ids(v, "xa", "0 3");
    check_ids(v, "<s>", "0 0 0");
    heed_tokens t = {(const int32_t[]){7, 9, 2, 1, 4}, 5};
    assert_string_equal(decode(v, t, arena), " aabb<go>b");
    assert_int_equal(heed_vocab_special(v).bos, 1);
    assert_int_equal(heed_vocab_special(v).eos, -1);
    heed_vocab_free(v);
    /* vocab.json with its merges beside it, as GPT-2 has them; no unknown piece: every byte */
    heed_error err;
    write_plain(in_folder("merges.txt"), "#version: 0.2\nb b\n", 18);
    assert_non_null(strstr(open_error(in_folder("v"), "{\"a\":0,\"b\":1,\"bb\":2}", 20, &err),
                           "it has no piece for byte 0x00 and no unknown piece"));
    v = from_text("v", "{\"a\":0,\"b\":1,\"bb\":2,\"<unk>\":3}");
    check_ids(v, "bba", "2 0");
    heed_vocab_free(v);
}

/* Catches a byte string that does not come back, of learned byte-level BPE; and learning that
 * depends on anything but the lines. */
static void every_byte_comes_back(void **state)
{
    (void)state;
    static const char *const lines[] = {"the man and the dog", "the dog sees the other man",
                                        "Stra\xc3\x9f"
                                        "e <ph1> \xe4\xbd\xa0\xe5\xa5\xbd",
                                        NULL};
    const heed_vocab_options o = {.kind = HEED_BYTES, .size = 275};
    heed_error err = {0};
    assert_int_equal(learn(&o, lines, in_folder("v"), NULL, &err), HEED_OK);
    heed_vocab *v = open_vocab(in_folder("v"), NULL);
    assert_int_equal(heed_vocab_size(v), 275);
    check_ids(v, "the", "270"); /* 13 special pieces, 256 bytes, then the first merges */
    check_ids(v, "<ph1>", "4");
    heed_rng rng = heed_rng_stream(&(heed_rng_key){.seed = 7});
    for (int i = 0; i < 1000; i++) {
        char text[64];
        const char *back;
        size_t size, n = (size_t)heed_rng_below(&rng, (uint64_t)(100 * i), 64);
        for (size_t k = 0; k < n; k++)
            text[k] = (char)heed_rng_below(&rng, (uint64_t)(100 * i) + k + 1, 256);
        heed_tokens t;
        assert_int_equal(heed_vocab_sample(v, text, n, i % 2 ? 0.3 : 0, &rng, arena, &t, NULL), 0);
        assert_int_equal(heed_vocab_decode_bytes(v, t.id, t.count, arena, &back, &size, NULL),
                         HEED_OK);
        assert_int_equal(size, n);
        assert_memory_equal(back, text, n);
    }
    heed_vocab_free(v);
}

/* Catches WordPiece that is not greedy, keeps accents or capitals, does not set Chinese or
 * punctuation apart, cuts long words, or does not find [MASK]. */
static void wordpiece(void **state)
{
    (void)state;
    heed_vocab *v = from_text("v", "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nun\n##aff\n##able\nuna\n!\n"
                                   "\xe4\xbd\xa0\ncafe\n##s\nx\n##x\n\xe2\x84\x9d\n");
    check_ids(v, "unaffable", "1"); /* una, then nothing fits */
    check_ids(v, "Caf\xc3\xa9s!", "11 12 9");
    check_ids(v,
              "cafe\xcc\x81 \xe4\xbd\xa0"
              "cafe",
              "11 10 11");
    check_ids(v, " a\tx[MASK]x ", "1 13 4 13");
    check_ids(v, "", "");
    char word[202];
    memset(word, 'x', sizeof word);
    word[101] = '\0';
    check_ids(v, word, "1");
    heed_tokens t = {(const int32_t[]){2, 11, 12, 9, 1, 3}, 6};
    assert_string_equal(decode(v, t, arena), "cafes ! \xe2\x81\x87");
    int32_t words[6];
    assert_int_equal(heed_vocab_words(v, t.id, 6, words), 5);
    assert_int_equal(heed_vocab_special(v).mask, 4);
    heed_vocab_free(v);
    v = from_text("v", "[UNK]\nCafe\n##s\ncafe\n"); /* a capital: cased */
    check_ids(v, "Cafes cafe caf\xc3\xa9", "1 2 3 0");
    heed_vocab_free(v);
}

/* Catches learned WordPiece and characters that do not give their text back. */
static void learned(void **state)
{
    (void)state;
    static const char *const lines[] = {"low lower lowest", "new newer newest low", "a <ph1> b",
                                        NULL};
    heed_vocab_options o = {.kind = HEED_WORDPIECE, .size = 34};
    assert_int_equal(learn(&o, lines, in_folder("v"), NULL, NULL), HEED_OK);
    heed_vocab *v = open_vocab(in_folder("v"), NULL);
    assert_string_equal(decode(v, encode(v, "Lowest NEWER", arena), arena), "lowest newer");
    assert_true(encode(v, "low", arena).count == 1);
    heed_vocab_free(v);
    o = (heed_vocab_options){.kind = HEED_CHARACTERS};
    assert_int_equal(learn(&o, lines, in_folder("v"), NULL, NULL), HEED_OK);
    v = open_vocab(in_folder("v"), NULL);
    check_ids(v, "<ph1>", "4");
    assert_int_equal(encode(v, "low lower\n", arena).count, 10);
    assert_string_equal(decode(v, encode(v, " low \n", arena), arena), " low \n");
    heed_tokens t = encode(v, "zz", arena);
    assert_int_equal(t.count, 2);
    assert_int_equal(t.id[0], HEED_UNK);
    heed_vocab_free(v);
    heed_error err = {0};
    o = (heed_vocab_options){.kind = HEED_WORDPIECE, .size = 10};
    assert_int_not_equal(learn(&o, lines, in_folder("w"), NULL, &err), HEED_OK);
    assert_non_null(strstr(err.text, "so many different characters that it takes 20"));
}

/* tokenizer.bin of llama2.c: special pieces, bytes, then pieces with scores. */
static size_t tokenizer_bin(char *out, bool old)
{
    static const char *const pieces[] = {" ", "a", "b", "ab", " a", "bb"};
    static const float scores[] = {-10, -11, -12, -2, -1, -3};
    const int32_t longest = 7;
    size_t n = 4;
    memcpy(out, &longest, 4);
    for (int i = 0; i < 259 + 6; i++) {
        char text[16];
        const float score = i < 259 ? 0 : scores[i - 259];
        snprintf(text, sizeof text, "%s",
                 i == 0    ? "<unk>"
                 : i < 3   ? "\n<s>\n"
                 : i < 259 ? ""
                           : pieces[i - 259]);
        if (i > 2 && i < 259)
            snprintf(text, sizeof text, "<0x%02X>", (unsigned)(i - 3));
        int32_t length = (int32_t)strlen(text);
        if (old && i > 2 && i < 259) { /* the character of that number, NUL too */
            length = i - 3 < 0x80 ? 1 : 2;
            text[0] = (char)(length == 1 ? i - 3 : 0xC0 | (i - 3) >> 6);
            text[1] = (char)(0x80 | ((i - 3) & 0x3F));
        }
        memcpy(out + n, &score, 4);
        memcpy(out + n + 4, &length, 4);
        memcpy(out + n + 8, text, (size_t)length);
        n += 8 + (size_t)length;
    }
    return n;
}

/* Catches merges that are not by score, text without the space before it, and bytes that are not
 * written as such. */
static void by_scores(void **state)
{
    (void)state;
    static char file[1 << 14];
    size_t size = tokenizer_bin(file, true);
    write_plain(in_folder("v"), file, size);
    heed_vocab *v = open_vocab(in_folder("v"), NULL);
    check_ids(v, "bb\xc3\xa4", "259 264 198 167");
    heed_vocab_free(v);
    size = tokenizer_bin(file, false);
    write_plain(in_folder("v"), file, size);
    v = open_vocab(in_folder("v"), NULL);
    check_ids(v, "ab", "263 261"); /* " a" before "ab" */
    check_ids(v, "bab", "259 261 262");
    check_ids(v, "bb\xc3\xa4", "259 264 198 167");
    check_ids(v, "", "");
    assert_string_equal(decode(v, encode(v, " a \xff", arena), arena), " a \xff");
    assert_int_equal(heed_vocab_special(v).eos, 2);
    heed_vocab_free(v);
    heed_error err;
    assert_non_null(strstr(open_error(in_folder("v"), file, size - 1, &err), "piece 264 has"));
    assert_non_null(strstr(open_error(in_folder("v"), file, 300, &err), "llama2.c"));
}

/* Catches broken or foreign files that open, or a sentence that does not say what is wrong. */
static void refused(void **state)
{
    (void)state;
    static const struct {
        const char *file, *says;
    } cases[] = {
        {"{", "line 1"},
        {"{\"a\":0}", "it is a vocab.json, expected merges.txt or vocab.bpe beside it"},
        {"{\"a\":0,\"b\":0}", "'a' and 'b' both have id 0"},
        {"{\"a\":1}", "the id of 'a' is 1, expected 0 to 0"},
        {"{\"a\":\"x\"}", "the id of 'a' is -1, expected 0 to 0"},
        {"{\"model\":{\"type\":\"Unigram\"}}",
         "its model is 'Unigram', expected 'BPE' or 'WordPiece'"},
        {TOKENIZER(BYTE_LEVEL, "", "\"a b\""), "merge 1 is 'a b', but the first is no piece"},
        {TOKENIZER(BYTE_LEVEL, ",\"a\":3", "\"a a\""), "merge 1 is 'a a', but what they make"},
        {TOKENIZER(BYTE_LEVEL, ",\"a\":3", "\"aa\""), "expected two pieces with a space between"},
        {TOKENIZER(BYTE_LEVEL, ",\"a\":4", ""), "the id of 'a' is 4, expected 0 to 3"},
        {TOKENIZER("\"pre_tokenizer\":{\"type\":\"Whitespace\"}", "", ""),
         "is 'Whitespace', expected U+2581 for spaces"},
        {TOKENIZER("\"normalizer\":{\"type\":\"NFKC\"}," BYTE_LEVEL, "", ""),
         "its normalizer is 'NFKC', expected none"},
        {TOKENIZER(
             "\"pre_tokenizer\":{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":\"Split\","
             "\"pattern\":{\"Regex\":\"a+\"}},{\"type\":\"ByteLevel\",\"use_regex\":false}]}",
             "", ""),
         "its splitting pattern is 'a+', expected that of gpt-2"},
        {"{\"model\":{\"type\":\"WordPiece\",\"vocab\":{\"a\":0}},"
         "\"pre_tokenizer\":{\"type\":\"BertPreTokenizer\"}}",
         "it has no unknown piece, expected '[UNK]'"},
        {"a\n[UNK]\na\n", "pieces 0 and 2 are both 'a'"},
        {"a\n[UNK]\n\n", "piece 2 is empty"},
        {"GGUF", "it is no GGUF file, or cut short"},
    };
    heed_error err;
    remove(in_folder("merges.txt"));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *text = open_error(in_folder("v"), cases[i].file, strlen(cases[i].file), &err);
        if (!strstr(text, cases[i].says))
            fail_msg("'%s' does not say '%s'", text, cases[i].says);
    }
}

/* Catches memory that is lost or used unasked when any allocation fails. */
static void out_of_memory(void **state)
{
    (void)state;
    write_plain(in_folder("v"), TOKENIZER(BYTE_LEVEL, ",\"a\":3,\"b\":4,\"ab\":5", "\"a b\""),
                strlen(TOKENIZER(BYTE_LEVEL, ",\"a\":3,\"b\":4,\"ab\":5", "\"a b\"")));
    for (int n = 1;; n++) {
        struct failing f = {.fail_at = n};
        const heed_allocator a = failing_allocator(&f);
        heed_error err = {0};
        heed_vocab *v = heed_vocab_open(in_folder("v"), NULL, &a, &err);
        assert_true(v || err.status == HEED_MEMORY);
        heed_vocab_free(v);
        assert_int_equal(f.held, 0);
        if (v)
            break;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(splitting),    cmocka_unit_test(byte_level),
        cmocka_unit_test(wordpiece),    cmocka_unit_test(every_byte_comes_back),
        cmocka_unit_test(learned),      cmocka_unit_test(by_scores),
        cmocka_unit_test(refused),      cmocka_unit_test(out_of_memory),
        cmocka_unit_test(golden_texts),
    };
    return cmocka_run_group_tests_name("tokenizers", tests, set_up, tear_down);
}
