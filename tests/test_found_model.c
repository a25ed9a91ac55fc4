/* test_found_model.c: models of other programs computed as they are found: a model of heed's
 * written as CTranslate2's, versions 2 and 6, gives the same answers; with DATA=dir also the
 * real ones of dir/weights/ct2-aren, held against CTranslate2's own numbers. */
#include <heed/engine.h>
#include <heed/translate.h>

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "temp_folder.h"

enum { D = 8, LONGEST = 1024, SOURCE = 6, TARGET = 7 };

/* ---- a model of heed's, and its file ---- */

static heed_model *small_model(bool zero_start)
{
    heed_model_config c;
    heed_error err = {0};
    assert_int_equal(heed_model_defaults(&c, &err), HEED_OK);
    c.encoder_layers = 2;
    c.decoder_layers = 1;
    c.d = D;
    c.longest = LONGEST;
    c.tying = HEED_TIE_NONE;
    c.source_vocabulary = SOURCE;
    c.target_vocabulary = TARGET;
    c.transformer.heads = 2;
    c.transformer.ff = 12;
    c.transformer.pre_norm = c.transformer.attention_bias = c.transformer.output_bias = true;
    c.transformer.norm_eps = 1e-5;
    c.transformer.zero_start = zero_start;
    c.transformer.activation = HEED_SILU;
    c.transformer.positions = HEED_POSITIONS_LEARNED;
    c.ids.source = (heed_special_ids){5, 0, -1, -1, -1, -1, -1, 0, -1, 0};
    c.ids.target = (heed_special_ids){6, 0, 1, -1, -1, -1, -1, 0, -1, 0};
    heed_model *m = heed_model_new(&c, 3, NULL, &err);
    if (!m)
        fail_msg("%s", err.text);
    heed_params *p = heed_model_params(m);
    heed_rng rng = heed_rng_stream(&(heed_rng_key){.seed = 5});
    for (int i = 0; i < heed_params_count(p); i++) {
        const heed_param_info e = heed_params_entry(p, i);
        heed_real *x = heed_tensor_data(e.tensor);
        for (int64_t k = 0; k < heed_tensor_count(e.tensor); k++) /* biases are not zero */
            x[k] = (heed_real)(float)((double)x[k] +
                                      0.2 * heed_rng_uniform(&rng, (uint64_t)(1000 * i + k)) - 0.1);
        if (!strstr(e.name, "positions"))
            continue;
        for (int64_t r = 0; r < LONGEST; r++) /* from 1; the slowest frequency is 1/10000 */
            for (int k = 0; k < D / 2; k++) {
                const double angle = (double)(r + 1) * pow(10000, -k / (D / 2 - 1.0));
                x[r * D + k] = (heed_real)sin(angle);
                x[r * D + D / 2 + k] = (heed_real)cos(angle);
            }
    }
    return m;
}

/* "encoder.0.self.qkv.weight" as CTranslate2 calls it. */
static void ct2_name(const char *name, char *out, size_t capacity)
{
    static const char *const top[][2] = {
        {"encoder.embedding.table", "encoder/embeddings/weight"},
        {"decoder.embedding.table", "decoder/embeddings/weight"},
        {"output.weight", "decoder/projection/weight"},
        {"output.bias", "decoder/projection/bias"},
        {"encoder.norm.gain", "encoder/layer_norm/gamma"},
        {"encoder.norm.bias", "encoder/layer_norm/beta"},
        {"decoder.norm.gain", "decoder/layer_norm/gamma"},
        {"decoder.norm.bias", "decoder/layer_norm/beta"},
    };
    static const char *const parts[][2] = {
        {"self.qkv.", "self_attention/linear_0/"},
        {"self.out.", "self_attention/linear_1/"},
        {"self.norm.", "self_attention/layer_norm/"},
        {"cross.q.", "attention/linear_0/"},
        {"cross.kv.", "attention/linear_1/"},
        {"cross.out.", "attention/linear_2/"},
        {"cross.norm.", "attention/layer_norm/"},
        {"ffn.in.", "ffn/linear_0/"},
        {"ffn.out.", "ffn/linear_1/"},
        {"ffn.norm.", "ffn/layer_norm/"},
    };
    char side[16], rest[64];
    int layer;
    for (size_t i = 0; i < sizeof top / sizeof *top; i++)
        if (strcmp(name, top[i][0]) == 0) {
            snprintf(out, capacity, "%s", top[i][1]);
            return;
        }
    assert_int_equal(sscanf(name, "%15[a-z].%d.%63s", side, &layer, rest), 3);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        const size_t n = strlen(parts[i][0]);
        if (strncmp(rest, parts[i][0], n) != 0)
            continue;
        const bool norm = strstr(parts[i][0], "norm");
        snprintf(out, capacity, "%s/layer_%d/%s%s", side, layer, parts[i][1],
                 !norm                           ? rest + n
                 : strcmp(rest + n, "gain") == 0 ? "gamma"
                                                 : "beta");
        return;
    }
    fail_msg("'%s' has no name there", name);
}

static void put(FILE *f, const void *bytes, size_t n)
{
    assert_int_equal(fwrite(bytes, 1, n, f), n);
}

static void put_number(FILE *f, uint32_t value, size_t bytes)
{
    put(f, &value, bytes);
}

static void put_text(FILE *f, const char *text)
{
    put_number(f, (uint32_t)strlen(text) + 1, 2);
    put(f, text, strlen(text) + 1);
}

static void put_header(FILE *f, int version, const char *name, int rank, const int64_t *dim,
                       unsigned type, size_t item, size_t count)
{
    put_text(f, name);
    put_number(f, (uint32_t)rank, 1);
    for (int i = 0; i < rank; i++)
        put_number(f, (uint32_t)dim[i], 4);
    put_number(f, version >= 4 ? type : (unsigned)item, 1);
    put_number(f, (uint32_t)(version >= 4 ? count * item : count), 4);
}

static void put_param(FILE *f, int version, const heed_param_info *e)
{
    char name[128];
    ct2_name(e->name, name, sizeof name);
    const heed_real *x = heed_tensor_data(e->tensor);
    const int64_t rows = heed_tensor_rows(e->tensor), cols = heed_tensor_cols(e->tensor);
    const bool turned = e->role == HEED_ROLE_MATRIX, vector = e->role == HEED_ROLE_PLAIN;
    const int64_t count = heed_tensor_count(e->tensor);
    const int64_t dim[2] = {vector ? count : turned ? cols : rows, turned ? rows : cols};
    put_header(f, version, name, vector ? 1 : 2, dim, 0, 4, (size_t)count);
    for (int64_t i = 0; i < count; i++) {
        const float value = (float)x[turned ? i % rows * cols + i / rows : i];
        put(f, &value, sizeof value);
    }
}

static void write_lines(const char *name, const char *text)
{
    write_plain(in_folder(name), text, strlen(text));
}

static void write_ct2(const heed_model *m, int version)
{
    heed_params *p = heed_model_params((heed_model *)m);
    FILE *f = fopen(in_folder("model.bin"), "wb");
    assert_non_null(f);
    const bool zeros = heed_model_configuration(m)->transformer.zero_start;
    int count = 2 + zeros;
    for (int i = 0; i < heed_params_count(p); i++)
        count += !strstr(heed_params_entry(p, i).name, "positions");
    put_number(f, (uint32_t)version, 4);
    put_text(f, "TransformerSpec");
    put_number(f, 3, 4);
    put_number(f, (uint32_t)count, 4);
    put_header(f, version, "decoder/num_heads", 0, NULL, 2, 2, 1);
    put_number(f, 2, 2);
    put_header(f, version, "decoder/activation", 0, NULL, 1, 1, 1);
    put_number(f, 2, 1);
    if (zeros) {
        put_header(f, version, "decoder/start_from_zero_embedding", 0, NULL, 1, 1, 1);
        put_number(f, 1, 1);
    }
    for (int i = 0; i < heed_params_count(p); i++) {
        const heed_param_info e = heed_params_entry(p, i);
        if (!strstr(e.name, "positions"))
            put_param(f, version, &e);
    }
    if (version >= 3)
        put_number(f, 0, 4);
    assert_int_equal(fclose(f), 0);
    write_lines("source_vocabulary.txt", "<s>\n</s>\nx\ny\nz\n");
    write_lines("target_vocabulary.txt", "<s>\n</s>\na\nb\nc\nd\n");
}

/* ---- asking ---- */

static const int32_t source_ids[] = {2, 3, 4, 2};

/* log P of a target, EOS included, given a source. */
static void log_p(const heed_engine *e, const heed_tokens *source, const int32_t *target, int n,
                  double *out)
{
    heed_error err = {0};
    heed_session *s = heed_session_new(e, &(heed_session_options){.threads = 1}, NULL, &err);
    assert_non_null(s);
    const heed_special_ids ids = heed_engine_configuration(e)->ids.target;
    int32_t fed[32], wanted[32];
    heed_real got[32];
    for (int i = 0; i < n; i++) {
        fed[i] = i ? target[i - 1] : ids.start;
        wanted[i] = i + 1 < n ? target[i] : ids.eos;
    }
    const heed_extension x = {
        .row = 0, .tokens = {fed, n}, .wanted = wanted, .log_p = got, .last = false};
    if (heed_session_add(s, source, 1, &err) || heed_session_extend(s, &x, 1, NULL, &err))
        fail_msg("%s", err.text);
    for (int i = 0; i < n; i++)
        out[i] = (double)got[i];
    heed_session_free(s);
}

/* A model against its files of two versions. */
static void check_ct2(bool zero_start)
{
    static const int32_t target[] = {3, 2, 5};
    heed_model *m = small_model(zero_start);
    heed_error err = {0};
    heed_engine *own = heed_engine_new(m, NULL, &err);
    assert_non_null(own);
    const heed_tokens source = {source_ids, 4};
    double expected[4], found[4];
    log_p(own, &source, target, 4, expected);
    for (int version = 2; version <= 6; version += 4) {
        write_ct2(m, version);
        assert_true(heed_found_is(folder));
        heed_engine *e = heed_engine_open(folder, NULL, &err);
        if (!e)
            fail_msg("%s", err.text);
        assert_int_equal(heed_engine_configuration(e)->ids.source.eos, -1);
        log_p(e, &source, target, 4, found);
        for (int i = 0; i < 4; i++) /* the same numbers, but for the file's 32 bits */
            assert_true(fabs(found[i] - expected[i]) < 1e-6);
        heed_engine_free(e);
    }
    heed_engine_free(own);
    heed_model_free(m);
}

/* Catches a tensor in another's place, a matrix not turned, other positions, another activation or
 * number of heads, special tokens of heed's own vocabularies, another start than Marian's in a
 * model that was made from one of its. */
static void ct2_as_found(void **state)
{
    (void)state;
    check_ct2(false);
    check_ct2(true);
}

/* Catches a found model that does not translate, or whose unknown words end the program. */
static void ct2_translates(void **state)
{
    (void)state;
    heed_model *m = small_model(false);
    heed_error err = {0};
    write_ct2(m, 6);
    heed_model_free(m);
    heed_translator *tr = heed_translator_open(folder, 1, NULL, &err);
    if (!tr)
        fail_msg("%s", err.text);
    assert_int_equal(heed_vocab_special(heed_translator_source(tr)).unk, 5);
    assert_int_equal(heed_vocab_special(heed_translator_target(tr)).eos, 1);
    assert_string_equal(heed_vocab_piece(heed_translator_target(tr), 6), "<unk>");
    heed_translator_free(tr);
}

/* Catches models that heed does not compute, but opens; and sentences that do not say what is
 * wrong. */
static void refused(void **state)
{
    (void)state;
    heed_error err = {0};
    heed_model *m = small_model(false);
    write_ct2(m, 6);
    heed_model_free(m);
    remove(in_folder("target_vocabulary.txt"));
    assert_null(heed_engine_open(folder, NULL, &err));
    assert_non_null(strstr(err.text, "there is no target_vocabulary.txt beside it"));
    write_lines("target_vocabulary.txt", "<s>\n</s>\na\n");
    err = (heed_error){0};
    assert_null(heed_engine_open(folder, NULL, &err));
    assert_non_null(strstr(err.text, "it has 3 tokens, expected 7 as in the model, or one less"));
    heed_arena *arena = heed_arena_new(NULL, NULL);
    const char *json = NULL;
    char path[256];
    snprintf(path, sizeof path, "tests/fuzz/llama2c/valid");
    assert_false(heed_found_is(path)); /* its name does not end in .bin */
    assert_true(heed_found_is("tests/fuzz/gguf/valid"));
    err = (heed_error){0};
    assert_int_equal(heed_found_describe("tests/fuzz/gguf/valid", arena, &json, &err), HEED_OK);
    assert_non_null(strstr(json, "\"publisher\": \"llama.cpp\""));
    assert_non_null(strstr(json, "it has no token_embd.weight: a vocabulary alone"));
    heed_arena_free(arena);
}

/* Catches numbers other than CTranslate2's own (its tests, tests/cc/translator_test.cc, and a
 * float64 reading of the files), of all five files. */
static void real_ones(void **state)
{
    (void)state;
    static const struct {
        const char *folder;
        double log_p[7];
    } cases[] = {
        {"v2", {-0.106023, -0.065410, -0.056002, -0.447953, -0.230714, -0.092184, -0.063463}},
        {"v1", {-0.106023, -0.065410, -0.056002, -0.447953, -0.230714, -0.092184, -0.063463}},
        {"v2-i16", {-0.107075, -0.065529, -0.056565, -0.443987, -0.229119, -0.093619, -0.064097}},
        {"v1-i16", {-0.107075, -0.065529, -0.056565, -0.443987, -0.229119, -0.093619, -0.064097}},
        {"v2-i8", {-0.108879, -0.06701, -0.056107, -0.465482, -0.228789, -0.097572, -0.063836}},
    };
    const char *data = getenv("DATA");
    if (!data) {
        print_message("DATA is not set: not compared with CTranslate2's own numbers\n");
        skip();
    }
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char path[600];
        heed_error err = {0};
        heed_vocab *source, *target;
        heed_tokens in, out;
        double found[7];
        snprintf(path, sizeof path, "%s/weights/ct2-aren/%s", data, cases[i].folder);
        heed_arena *arena = heed_arena_new(NULL, NULL);
        heed_engine *e = heed_engine_open(path, NULL, &err);
        if (!e || heed_vocabs_open(path, NULL, NULL, &source, &target, &err))
            fail_msg("%s", err.text);
        const char *arabic = "آ ت ز م و ن", *latin = "a t z m o n";
        heed_vocab_encode(source, arabic, strlen(arabic), arena, &in, NULL);
        heed_vocab_encode(target, latin, strlen(latin), arena, &out, NULL);
        assert_int_equal(out.count, 6);
        log_p(e, &in, out.id, 7, found);
        for (int k = 0; k < 7; k++)
            assert_true(fabs(found[k] - cases[i].log_p[k]) < 1e-5);
        heed_vocabs_free(source, target);
        heed_engine_free(e);
        heed_arena_free(arena);
    }
}

/* Catches a token other than a float64 reading of stories260K.bin gives (greedy, from BOS):
 * matrices in another order, positions on halves, heads shared otherwise. */
static void real_stories(void **state)
{
    (void)state;
    static const int32_t expected[] = {1,   403, 407, 261, 378, 432, 383, 286, 261, 376, 298, 315,
                                       421, 395, 317, 426, 338, 401, 396, 267, 337, 410, 408, 419,
                                       292, 411, 322, 265, 282, 295, 433, 426, 385, 328, 432, 358,
                                       394, 261, 370, 432, 352, 266, 268, 388, 426, 338, 391, 266};
    enum { TOKENS = sizeof expected / sizeof *expected };
    const char *data = getenv("DATA");
    if (!data) {
        print_message("DATA is not set: stories260K is not told\n");
        skip();
    }
    char path[600];
    heed_error err = {0};
    heed_scores scores;
    snprintf(path, sizeof path, "%s/stories260K", data);
    heed_engine *e = heed_engine_open(path, NULL, &err);
    if (!e)
        fail_msg("%s", err.text);
    heed_session *s = heed_session_new(e, &(heed_session_options){.threads = 1}, NULL, &err);
    assert_int_equal(heed_session_add(s, NULL, 1, &err), HEED_OK);
    for (int i = 0; i + 1 < TOKENS; i++) {
        int32_t best = 0;
        if (heed_session_step(s, &expected[i], &scores, &err))
            fail_msg("%s", err.text);
        for (int32_t k = 1; k < scores.columns; k++)
            best = scores.logit[k] > scores.logit[best] ? k : best;
        assert_int_equal(best, expected[i + 1]);
    }
    heed_session_free(s);
    heed_engine_free(e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(ct2_as_found, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(ct2_translates, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(refused, make_folder, remove_folder),
        cmocka_unit_test(real_ones),
        cmocka_unit_test(real_stories),
    };
    return cmocka_run_group_tests_name("found model", tests, NULL, NULL);
}
