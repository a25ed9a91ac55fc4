/* Shortlists: learned from pairs of sentences, chosen for each, and what decoding makes of them. */
#include "small_transformer.h"

#include "engine/engine.h"
#include "engine/model_directory.h"
#include "temp_folder.h"
#include <heed/task.h>

enum { WORDS = 30 };

static heed_model_config config;
static heed_model *model;

/* A vocabulary of words s0, s1, ... and t0, t1, ... */
static void write_vocabulary(const char *path)
{
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs("<unk>\n<s>\n</s>\n", f);
    for (int i = 0; i < HEED_PLACEHOLDERS; i++)
        fprintf(f, "<ph%d>\n", i);
    for (int i = 0; i < WORDS; i++)
        fprintf(f, "s%d\nt%d\n", i, i);
    assert_int_equal(fclose(f), 0);
}

static int32_t word(int i, bool target)
{
    return HEED_PLACEHOLDER + HEED_PLACEHOLDERS + 2 * i + target;
}

/* Each word has one translation, in any order; t0 stands in every sentence. */
static void write_pairs(const char *path)
{
    const heed_rng rng = heed_rng_stream(&(heed_rng_key){.seed = 4});
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    for (uint64_t i = 0; i < 600; i++) {
        int w[3];
        for (uint64_t k = 0; k < 3; k++)
            w[k] = 1 + (int)heed_rng_below(&rng, 3 * i + k, WORDS - 1);
        fprintf(f, "s%d s%d s%d\tt%d t0 t%d t%d\n", w[0], w[1], w[2], w[2], w[0], w[1]);
    }
    assert_int_equal(fclose(f), 0);
}

static int set_up(void **state)
{
    heed_error err = {0};
    if (make_folder(state))
        return -1;
    config = small_config();
    config.source_vocabulary = config.target_vocabulary = word(WORDS, false);
    config.transformer.output_bias = true;
    model = new_model(&config);
    heed_tensor *bias = heed_params_find(heed_model_params(model), "output.bias");
    for (int64_t i = 0; i < config.target_vocabulary; i++)
        heed_tensor_data(bias)[i] = (heed_real)(i % 7) / 8;
    write_vocabulary(in_folder("shared.vocab"));
    write_pairs(in_folder("pairs.tsv"));
    heed_model_describe(folder, &config, &(heed_text_config){.tokens = HEED_WHITESPACE}, &err);
    const char *tsv = in_folder("pairs.tsv");
    heed_corpus *c =
        heed_corpus_open(&(heed_corpus_files){.tsv = &tsv, .tsvs = 1}, NULL, NULL, &err);
    if (c)
        heed_shortlist_train(folder, c, &(heed_shortlist_options){2, 1}, NULL, &err);
    heed_corpus_free(c);
    if (err.status)
        print_error("%s\n", err.text);
    return err.status;
}

static int tear_down(void **state)
{
    heed_model_free(model);
    return remove_folder(state);
}

static heed_engine *open_engine(void)
{
    heed_error err = {0};
    heed_engine *e = heed_engine_new(model, NULL, &err);
    if (!e || heed_engine_open_shortlist(e, folder, &err))
        fail_msg("%s", err.text);
    return e;
}

static bool holds(const heed_tokens *list, int32_t id)
{
    for (int64_t i = 0; i < list->count; i++)
        if (list->id[i] == id)
            return true;
    return false;
}

/* Catches: an expectation that learns nothing, a list that lacks EOS or what is frequent. */
static void translations_are_found(void **state)
{
    (void)state;
    heed_engine *e = open_engine();
    const heed__shortlist *s = &e->shortlist;
    for (int i = 1; i < WORDS; i++) {
        const int32_t begin = s->offset[word(i, false)], end = s->offset[word(i, false) + 1];
        const heed_tokens list = {s->token + begin, end - begin};
        assert_true(holds(&list, word(i, true)));
        assert_true(list.count <= 3); /* two, and the word itself */
    }
    const heed_tokens always = {s->always, s->always_count};
    assert_true(holds(&always, HEED_EOS) && holds(&always, word(0, true)));
    heed_engine_free(e);
}

/* What the list of a sentence is known to be. */
struct known {
    int64_t least, most;
    int32_t on, off; /* a piece that is on it, and one that is not */
};

/* Two sentences by their lists against all of m's vocabulary. */
static void check_lists(heed_engine *e, const heed_model *m, int threads, const heed_tokens *source,
                        const struct known *known)
{
    const int32_t tokens[2] = {HEED_BOS, HEED_BOS};
    static const int bits[] = {0, 8};
    for (size_t i = 0; i < sizeof bits / sizeof *bits; i++) {
        heed_session *s[2];
        heed_scores all, some;
        heed__weights_free(e->weights);
        e->weights = heed__weights_of(m, bits[i], NULL, NULL);
        for (int k = 0; k < 2; k++) {
            s[k] = heed_session_new(e, &(heed_session_options){threads, k}, NULL, NULL);
            assert_int_equal(heed_session_add(s[k], source, 2, NULL), HEED_OK);
            assert_int_equal(heed_session_step(s[k], tokens, k ? &some : &all, NULL), HEED_OK);
        }
        assert_null(all.choice);
        assert_non_null(some.choice);
        for (int r = 0; r < 2; r++) {
            const heed_tokens *list = &some.choice[r];
            double sum = 0;
            assert_true(list->count >= known[r].least && list->count <= known[r].most);
            assert_true(list->count <= some.columns);
            assert_true(holds(list, known[r].on) && !holds(list, known[r].off));
            for (int64_t j = 0; j < list->count; j++) {
                heed_real x = some.logit[r * some.columns + j];
                assert_memory_equal(&x, &all.logit[r * all.columns + list->id[j]], sizeof x);
                assert_true(j == 0 || list->id[j] > list->id[j - 1]);
                sum += exp((double)x - (double)some.log_z[r]);
            }
            assert_near(sum, 1, 1e-5);
        }
        heed_session_free(s[0]);
        heed_session_free(s[1]);
    }
}

/* Catches: columns of another piece or without their bias, a normaliser over what is not on the
 * list, lists of a neighbour. */
static void logits_are_those_of_the_list(void **state)
{
    (void)state;
    heed_engine *e = open_engine();
    const int32_t a[] = {word(3, false), word(7, false)}, b[] = {word(9, false)};
    const heed_tokens source[] = {{a, 2}, {b, 1}};
    const struct known known[] = {{1, 11, word(3, true), word(9, true)},
                                  {1, 11, word(9, true), word(3, true)}};
    check_lists(e, model, 1, source, known);
    heed_engine_free(e);
}

static void add_list(heed_safetensors_writer *w, const char *name, const int32_t *data,
                     int64_t count, heed_error *err)
{
    heed_stored s = {.name = name,
                     .dtype = HEED_I32,
                     .rank = 1,
                     .dim = {count},
                     .data = data,
                     .bytes = (size_t)count * sizeof *data};
    heed_safetensors_writer_add(w, &s, err);
}

/* A shortlist's file for so many pieces of the source; EOS is always on the list. */
static void write_lists(const char *path, const int32_t *offset, int64_t sources,
                        const int32_t *token)
{
    static const int32_t always = HEED_EOS;
    heed_error err = {0};
    heed_safetensors_writer *w = heed_safetensors_writer_new(NULL, &err);
    add_list(w, "offset", offset, sources + 1, &err);
    add_list(w, "token", token, offset[sources], &err);
    add_list(w, "always", &always, 1, &err);
    if (err.status || heed_safetensors_writer_write(w, path, &err))
        fail_msg("%s", err.text);
    heed_safetensors_writer_free(w);
}

/* Catches: the same where a list has more columns than a chunk of the normaliser, each list another
 * number of chunks, and threads share them. */
static void so_are_those_of_long_lists(void **state)
{
    (void)state;
    enum { PIECES = 700, A = 100, B = 101, EVEN = PIECES / 2, UPPER = 600 };
    static int32_t offset[PIECES + 1], token[EVEN + UPPER];
    static const int32_t a = A, b = B;
    const heed_tokens source[] = {{&a, 1}, {&b, 1}};
    const struct known known[] = {{EVEN, EVEN, 698, 699}, {UPPER + 1, UPPER + 1, 699, 98}};
    heed_model_config wide = small_config();
    wide.d = 128; /* enough work for threads */
    wide.source_vocabulary = wide.target_vocabulary = PIECES;
    heed_model *m = new_model(&wide);
    heed_engine *e = heed_engine_new(m, NULL, NULL);
    for (int i = 0; i < EVEN; i++)
        token[i] = 2 * i;
    for (int i = 0; i < UPPER; i++)
        token[EVEN + i] = PIECES - UPPER + i;
    for (int i = 0; i <= PIECES; i++)
        offset[i] = i <= A ? 0 : i <= B ? EVEN : EVEN + UPPER;
    const char *path = in_folder("long.safetensors");
    write_lists(path, offset, PIECES, token);
    assert_int_equal(heed__shortlist_open(&e->shortlist, path, PIECES, PIECES, NULL, NULL),
                     HEED_OK);
    check_lists(e, m, 1, source, known);
    check_lists(e, m, 2, source, known);
    heed_engine_free(e);
    heed_model_free(m);
}

/* Catches: a prefix whose pieces are impossible because no word of the source asks for them; log P
 * of given tokens by another list than the scores have. */
static void what_is_wanted_is_on_the_list(void **state)
{
    (void)state;
    heed_engine *e = open_engine();
    heed_session *s = heed_session_new(e, &(heed_session_options){1, true}, NULL, NULL);
    const int32_t source = word(3, false), wanted = word(9, true), bos = HEED_BOS;
    heed_scores out;
    assert_int_equal(s->stepper.add(s->stepper.self, &(heed_tokens){&source, 1},
                                    &(heed_tokens){&wanted, 1}, 1, NULL),
                     HEED_OK);
    assert_int_equal(heed_session_step(s, &bos, &out, NULL), HEED_OK);
    assert_true(holds(&out.choice[0], word(3, true)) && holds(&out.choice[0], wanted));
    assert_false(holds(&out.choice[0], word(8, true)));
    const heed_tokens list = out.choice[0];
    int64_t column = 0;
    while (list.id[column] != wanted)
        column++;
    const heed_real found = out.logit[column] - out.log_z[0];
    const int32_t ids[] = {bos, wanted}, asked[] = {wanted, word(8, true)};
    heed_real log_p[2];
    const heed_extension x = {.tokens = {ids, 2}, .wanted = asked, .log_p = log_p};
    assert_int_equal(heed_session_rewind(s, 0, 0, NULL), HEED_OK);
    assert_int_equal(heed_session_extend(s, &x, 1, NULL, NULL), HEED_OK);
    assert_memory_equal(&log_p[0], &found, sizeof found);
    assert_true(log_p[1] == -(heed_real)INFINITY);
    heed_session_free(s);
    heed_engine_free(e);
}

/* Catches: a crash where no pair can be learned from. */
static void nothing_to_learn_from_is_an_error(void **state)
{
    (void)state;
    heed_error err = {0};
    FILE *f = fopen(in_folder("long.tsv"), "w");
    assert_non_null(f);
    for (int side = 0; side < 2; side++)
        for (int i = 0; i < 101; i++)
            fprintf(f, "%s1%s", side ? "t" : "s", i < 100 ? " " : side ? "\n" : "\t");
    assert_int_equal(fclose(f), 0);
    const char *tsv = in_folder("long.tsv");
    heed_corpus *c =
        heed_corpus_open(&(heed_corpus_files){.tsv = &tsv, .tsvs = 1}, NULL, NULL, &err);
    assert_non_null(c);
    assert_int_equal(heed_shortlist_train(folder, c, &(heed_shortlist_options){2, 1}, NULL, &err),
                     HEED_ARGUMENT);
    assert_non_null(strstr(err.text, "none of 1 pairs has 1 to 100 tokens on each side"));
    heed_corpus_free(c);
}

/* Catches: lists of another model that are believed. */
static void foreign_lists_are_refused(void **state)
{
    (void)state;
    heed_error err = {0};
    heed_model_config other = config;
    other.source_vocabulary = other.target_vocabulary = config.source_vocabulary - 1;
    heed_model *m = new_model(&other);
    heed_engine *e = heed_engine_new(m, NULL, &err);
    assert_int_equal(heed_engine_open_shortlist(e, folder, &err), HEED_FORMAT);
    assert_non_null(strstr(err.text, "belongs to another model"));
    err = (heed_error){0};
    assert_int_equal(heed_engine_open_shortlist(e, "/nowhere", &err), HEED_IO);
    heed_engine_free(e);
    heed_model_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(translations_are_found),
        cmocka_unit_test(logits_are_those_of_the_list),
        cmocka_unit_test(so_are_those_of_long_lists),
        cmocka_unit_test(foreign_lists_are_refused),
        cmocka_unit_test(what_is_wanted_is_on_the_list),
        cmocka_unit_test(nothing_to_learn_from_is_an_error),
    };
    return cmocka_run_group_tests_name("shortlist", tests, set_up, tear_down);
}
