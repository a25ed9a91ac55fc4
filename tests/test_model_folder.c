/* test_model_folder.c: model directories, sound and broken: what is written is what is opened, and
 * what cannot be opened is named. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <sys/stat.h>

#include <cmocka.h>

#include "failing_allocator.h"
#include "temp_folder.h"
#include "toy_translator.h"
#include "translate/translator.h"

static heed_model *model; /* of random weights */
static heed_arena *arena;
static const heed_search_options beam_4 = {
    .beam = 4, .length_penalty = 0.6, .n_best = 1, .extra_length = 50};

static int set_up_all(void **state)
{
    heed_error err = {0};
    model = heed_model_new(&toy_config, 3, NULL, &err);
    arena = heed_arena_new(NULL, &err);
    return make_folder(state) || err.status;
}

static int tear_down_all(void **state)
{
    heed_arena_free(arena);
    heed_model_free(model);
    return remove_folder(state);
}

static int reset(void **state)
{
    (void)state;
    heed_arena_reset(arena);
    toy_write_folder(model);
    return 0;
}

/* Catches a directory that translates differently from the model that was saved in it. */
static void test_directory(void **state)
{
    (void)state;
    heed_error err = {0};
    heed_vocab *vocab = heed_vocab_open(in_folder("shared.vocab"), NULL, NULL, &err);
    heed_translator *translator = heed_translator_new(model, vocab, vocab, 1, NULL, &err);
    heed_translator *opened = heed_translator_open(folder, 1, NULL, &err);
    if (!translator || !opened)
        fail_msg("%s", err.text);
    const char *lines[] = {"a c b l k d e a b", "h h i"};
    heed_translation here[2], there[2];
    assert_int_equal(heed_translate(translator, &beam_4, lines, 2, arena, here, &err), HEED_OK);
    assert_int_equal(heed_translate(opened, &beam_4, lines, 2, arena, there, &err), HEED_OK);
    for (int i = 0; i < 2; i++) {
        assert_string_equal(here[i].text, there[i].text);
        assert_true(here[i].score == there[i].score);
    }
    assert_int_equal(heed_engine_configuration(heed_translator_engine(opened))->longest,
                     TOY_LONGEST);
    assert_ptr_equal(heed_translator_source(opened), heed_translator_target(opened));
    heed_translator_free(opened);
    heed_translator_free(translator);
    heed_vocab_free(vocab);
}

/* Catches a field of the configuration that is written and not read, or the reverse. */
static void test_config_round_trip(void **state)
{
    (void)state;
    heed_model_config config = toy_config, back;
    config.encoder_layers = 3;
    config.decoder_layers = 2;
    config.d = 48;
    config.dropout = 0.15;
    config.tying = HEED_TIE_TARGET;
    config.attention = (heed_attention_config){
        .score = HEED_SCORE_COSINE,
        .pattern = {2, {{HEED_PATTERN_BAND, {64}}, {HEED_PATTERN_GLOBAL, {2}}}},
        .normaliser = HEED_ONE(HEED_NORMALISE_HARD),
        .queries = HEED_ONE(HEED_QUERIES_IMPROVED_CLUSTERED, {5, 8}),
        .memory = HEED_ONE(HEED_MEMORY_PERSISTENT, {7}),
        .position_bias = HEED_ONE(HEED_BIAS_TABLE, {9}),
        .beta = 2.5,
        .dropout = 0.05};
    config.transformer = (heed_transformer_config){.ff = 96,
                                                   .heads = 6,
                                                   .kv_heads = 3,
                                                   .d_k = 5,
                                                   .d_v = 7,
                                                   .ff_dropout = 0.25,
                                                   .activation = HEED_GELU,
                                                   .ff_gated = true,
                                                   .norm_eps = 2e-5,
                                                   .embedding_norm = true,
                                                   .types = 3,
                                                   .head_transform = true,
                                                   .output_bias = true,
                                                   .pre_norm = true,
                                                   .norm = HEED_NORM_RMS,
                                                   .scale_scores = true,
                                                   .positions = HEED_POSITIONS_LEARNED,
                                                   .attention_bias = true};
    config.label_smoothing = 0.2;
    config.source_vocabulary = 123;
    heed_text_config text = {.tokens = HEED_BPE,
                             .bpe_joiner = "@@ \"\\",
                             .trained_length = 40,
                             .trained_longest = 97,
                             .protects = true},
                     text_back;
    heed_error err = {0};
    assert_int_equal(heed_model_describe(folder, &config, &text, &err), HEED_OK);
    assert_int_equal(heed_model_read_config(folder, arena, &back, &text_back, &err), HEED_OK);
    assert_int_equal(back.source_vocabulary, 123);
    assert_int_equal(text_back.trained_length, 40);
    assert_int_equal(text_back.trained_longest, 97);
    assert_true(text_back.protects);
    assert_int_equal(back.target_vocabulary, toy_config.target_vocabulary);
    assert_int_equal(back.longest, TOY_LONGEST);
    assert_true(back.label_smoothing == 0.2);
#define SAME(field) assert_true(back.field == config.field)
    SAME(encoder_layers), SAME(decoder_layers), SAME(d), SAME(dropout), SAME(tying);
    SAME(attention.score), SAME(attention.beta), SAME(attention.dropout);
    SAME(transformer.ff), SAME(transformer.heads), SAME(transformer.d_k), SAME(transformer.d_v);
    SAME(transformer.kv_heads);
    SAME(transformer.ff_dropout), SAME(transformer.activation), SAME(transformer.pre_norm);
    SAME(transformer.norm), SAME(transformer.residual), SAME(transformer.scale_scores);
    SAME(transformer.positions), SAME(transformer.attention_bias), SAME(transformer.ff_gated);
    SAME(transformer.ff_bias), SAME(transformer.norm_eps), SAME(transformer.embedding_scale);
    SAME(transformer.embedding_norm), SAME(transformer.types), SAME(transformer.head_transform);
    SAME(transformer.output_bias);
#undef SAME
#define SAME(spec)                                                                                 \
    assert_memory_equal(&back.attention.spec, &config.attention.spec, sizeof back.attention.spec)
    SAME(pattern), SAME(normaliser), SAME(queries), SAME(memory), SAME(position_bias);
#undef SAME
    assert_int_equal(text_back.tokens, HEED_BPE);
    assert_string_equal(text_back.bpe_joiner, text.bpe_joiner);
    assert_int_equal(files_in(folder), 3);
}

static heed_status read_as(const char *json, heed_model_config *config, heed_error *err)
{
    heed_text_config text;
    write_plain(in_folder("config.json"), json, strlen(json));
    return heed_model_read_config(folder, arena, config, &text, err);
}

/* Catches: a model of an earlier version that opens as another, a field lost on the way that takes
 * its default in silence, a file of a version to come that is believed. */
static void test_formats_of_the_configuration(void **state)
{
    (void)state;
#define OLD "\"source-vocabulary\": 9, \"target-vocabulary\": 9"
    heed_model_config c;
    heed_error err = {0};
    assert_int_equal(read_as("{" OLD "}", &c, &err), HEED_OK);
    assert_int_equal(c.attention.pattern.term[0].kind, HEED_PATTERN_GLOBAL);
    assert_int_equal(c.attention.pattern.term[0].number[0], 0);
    assert_int_equal(c.attention.normaliser.term[0].kind, HEED_NORMALISE_SOFT);
    assert_int_equal(read_as("{" OLD ", \"attention-window\": \"local-p\", \"window\": 4, "
                             "\"attention-choice\": \"hard\"}",
                             &c, &err),
                     HEED_OK);
    assert_int_equal(c.attention.pattern.term[0].kind, HEED_PATTERN_LOCAL_P);
    assert_int_equal(c.attention.pattern.term[0].number[0], 4);
    assert_int_equal(c.attention.normaliser.term[0].kind, HEED_NORMALISE_HARD);
    static const struct {
        const char *json, *why;
    } wrong[] = {
        {"{" OLD ", \"attention-pattern\": \"band:4\"}",
         "'attention-pattern' is no field of format 0"},
        {"{\"format\": 1, " OLD "}", "lacks 'arch', which format 1 has"},
        {"{\"format\": 1, \"window\": 3, " OLD "}", "format 1"},
        {"{\"format\": 1, \"zero-start\": true, " OLD "}", "format 1"},
        {"{\"format\": 2, \"adaptive-span\": 8, " OLD "}", "format 2"},
        {"{\"format\": 3, \"attention-queries\": \"all\", " OLD "}", "format 3"},
        {"{\"format\": 5, " OLD "}", "option 'format' is 5, expected a whole number from 0 to 4"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        err = (heed_error){0};
        assert_int_equal(read_as(wrong[i].json, &c, &err), HEED_FORMAT);
        if (!strstr(err.text, wrong[i].why))
            fail_msg("found '%s', wanted '%s'", err.text, wrong[i].why);
    }

    /* Any line but those of what may be null is missed. */
    heed_model_config config = toy_config;
    heed_text_config text = {.tokens = HEED_BPE};
    err = (heed_error){0};
    assert_int_equal(heed_model_describe(folder, &config, &text, &err), HEED_OK);
    assert_int_equal(heed_model_read_config(folder, arena, &c, &text, &err), HEED_OK);
    static char json[16384], less[16384];
    FILE *f = fopen(in_folder("config.json"), "r");
    assert_non_null(f);
    json[fread(json, 1, sizeof json - 1, f)] = '\0';
    fclose(f);
    int lines = 0;
    for (char *line = strchr(json, '\n') + 1; *line != '}'; line = strchr(line, '\n') + 1) {
        const char *end = strchr(line, '\n') + 1;
        const bool null = strstr(line, "null") && strstr(line, "null") < end;
        snprintf(less, sizeof less, "%.*s%s", (int)(line - json), json, end);
        const bool format = strstr(line, "\"format\"") && strstr(line, "\"format\"") < end;
        if (null || format)
            continue;
        assert_int_equal(read_as(less, &c, &err), HEED_FORMAT);
        lines++;
    }
    assert_true(lines > 40);
#undef OLD
}

/* What heed_translator_open says about the folder as it is, without the folder's own name. */
static const char *complaint(void)
{
    static char text[600];
    heed_error err = {0};
    assert_null(heed_translator_open(folder, 1, NULL, &err));
    assert_int_not_equal(err.status, HEED_OK);
    const char *at = strstr(err.text, folder);
    size_t before = at ? (size_t)(at - err.text) : 0;
    snprintf(text, sizeof text, "%.*s%s%s", (int)before, err.text, at ? "F" : "",
             at ? at + strlen(folder) : err.text);
    return text;
}

static void write_config(const char *json)
{
    write_plain(in_folder("config.json"), json, strlen(json));
}

/* Catches a wrong or missing file of a directory that crashes, passes, or is not named. */
static void test_broken_directories(void **state)
{
    (void)state;
    unlink(in_folder("config.json"));
    assert_string_equal(complaint(), "cannot read 'F/config.json': No such file or directory");
    write_config("{\"arch\": \"perceptron\"}");
    assert_string_equal(complaint(),
                        "'F/config.json': option 'arch' is perceptron, expected transformer, "
                        "rnn, decoder or encoder");
    write_config("{\"layers\": 3}");
    assert_non_null(strstr(complaint(), "'F/config.json': unknown option 'layers'"));
    write_config("{\"d\": 32}");
    assert_string_equal(complaint(), "'F/config.json' lacks 'source-vocabulary': is it a model's?");
    write_config("{\"d\": ");
    assert_non_null(strstr(complaint(), "'F/config.json' line 1: "));
    write_config("");
    assert_non_null(strstr(complaint(), "'F/config.json'"));

    toy_write_folder(model);
    unlink(in_folder("shared.vocab"));
    assert_string_equal(complaint(), "no vocabulary in 'F', expected shared.spm, or source.spm and "
                                     "target.spm, or the same names ending in .vocab or .yml");
    toy_write_vocabulary(in_folder("source.vocab"));
    assert_string_equal(complaint(), "cannot read 'F/target.vocab': No such file or directory");
    toy_write_vocabulary(in_folder("target.vocab"));
    FILE *f = fopen(in_folder("target.vocab"), "a");
    assert_non_null(f);
    fputs("Z\n", f);
    fclose(f);
    assert_string_equal(complaint(), "'F': the target vocabulary has 38 pieces, expected 37 as in "
                                     "the model's configuration: it belongs to another model");
    unlink(in_folder("source.vocab"));
    unlink(in_folder("target.vocab"));

    toy_write_folder(model);
    unlink(in_folder("model.safetensors"));
    assert_string_equal(complaint(),
                        "cannot read 'F/model.safetensors': No such file or directory");
    write_plain(in_folder("model.safetensors"), "", 0);
    assert_non_null(strstr(complaint(), "'F/model.safetensors'"));
    write_plain(in_folder("model.safetensors"), "GIF89a, or so", 13);
    assert_non_null(strstr(complaint(), "'F/model.safetensors'"));
    toy_write_folder(model);
    assert_int_equal(truncate(in_folder("model.safetensors"), 5000), 0);
    assert_non_null(strstr(complaint(), "'F/model.safetensors'"));
}

/* Catches weights of another model that are taken: other sizes, other names. */
static void test_foreign_weights(void **state)
{
    (void)state;
    heed_error err = {0};
    heed_model_config wide = toy_config;
    wide.transformer.ff = 65;
    assert_int_equal(heed_model_describe(folder, &wide, &toy_text, &err), HEED_OK);
    const char *text = complaint();
    assert_non_null(strstr(text, "cannot load 'F/model.safetensors': tensor '"));
    assert_non_null(strstr(text, "expected ("));
    wide = toy_config;
    wide.encoder_layers = 2;
    assert_int_equal(heed_model_describe(folder, &wide, &toy_text, &err), HEED_OK);
    assert_non_null(strstr(complaint(), "is missing"));
    wide = toy_config;
    wide.transformer.heads = 7;
    assert_int_equal(heed_model_describe(folder, &wide, &toy_text, &err), HEED_OK);
    assert_non_null(strstr(complaint(), "'F': "));
}

/* Catches names that are no directory, and messages that do not name them. */
static void test_no_directory(void **state)
{
    (void)state;
    heed_error err = {0};
    assert_null(heed_translator_open("no-such-model", 1, NULL, &err));
    assert_string_equal(err.text,
                        "cannot open the model 'no-such-model': No such file or directory");
    err = (heed_error){0};
    assert_null(heed_translator_open(in_folder("config.json"), 1, NULL, &err));
    assert_non_null(strstr(err.text, "expected a directory with config.json, model.safetensors"));
    err = (heed_error){0};
    assert_null(heed_translator_open("", 1, NULL, &err));
    assert_int_equal(err.status, HEED_ARGUMENT);
    err = (heed_error){0};
    assert_int_equal(heed_model_describe("no-such-model", &toy_config, &toy_text, &err), HEED_IO);
    assert_non_null(strstr(err.text, "cannot write 'no-such-model/config.json'"));
}

/* Which of the installed models come from the directory of the test, in their order. */
static void own_names(const char *models, char names[64])
{
    const heed_installed_model *all;
    int64_t count;
    heed_error err = {0};
    names[0] = '\0';
    assert_int_equal(heed_models_installed(arena, &all, &count, &err), HEED_OK);
    for (int64_t i = 0; i < count; i++)
        if (strncmp(all[i].folder, models, strlen(models)) == 0)
            strcat(strcat(names, all[i].name), " ");
}

/* Catches an installed model that is not found by its name, a path that is taken for a name, what
 * is no model in the list, and one that is found twice. */
static void test_installed(void **state)
{
    (void)state;
    char models[128], names[64];
    heed_error err = {0};
    snprintf(models, sizeof models, "%s/models", folder);
    assert_int_equal(mkdir(models, 0777), 0);
    setenv("HEED_MODELS", models, 1);
    own_names(models, names);
    assert_string_equal(names, "");
    static const char *const links[] = {"models/xx-yy", "models/aa-bb", "models/.hidden-cc"};
    for (int i = 0; i < 3; i++)
        assert_int_equal(symlink(folder, in_folder(links[i])), 0);
    write_plain(in_folder("models/readme"), "", 0);
    own_names(models, names);
    assert_string_equal(names, "aa-bb xx-yy ");

    assert_string_equal(heed_model_find("xx-yy", arena, &err), in_folder("models/xx-yy"));
    assert_string_equal(heed_model_find("xx", arena, &err), "xx");
    assert_string_equal(heed_model_find("./xx-yy", arena, &err), "./xx-yy");
    assert_string_equal(heed_model_find(folder, arena, &err), folder);
    assert_null(heed_model_find(NULL, arena, &err));
    assert_int_equal(err.status, HEED_ARGUMENT);
    err = (heed_error){0};
    heed_translator *tr = heed_translator_open("aa-bb", 1, NULL, &err);
    heed_engine *engine = heed_engine_open("xx-yy", NULL, &err);
    assert_string_equal(err.text, "");
    assert_true(tr && engine);
    heed_engine_free(engine);
    heed_translator_free(tr);

    bool found = false;
    for (int n = 1; !found; n++) { /* no memory anywhere */
        struct failing f = {.fail_at = n};
        heed_allocator a = failing_allocator(&f);
        heed_arena *own = heed_arena_new(&a, NULL);
        err = (heed_error){0};
        found = own && heed_model_find("xx-yy", own, &err);
        assert_true(found || !own || err.status == HEED_MEMORY);
        heed_arena_free(own);
        assert_int_equal(f.held, 0);
    }
    unsetenv("HEED_MODELS");
    for (int i = 0; i < 3; i++)
        unlink(in_folder(links[i]));
    unlink(in_folder("models/readme"));
    assert_int_equal(rmdir(models), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_directory, reset),
        cmocka_unit_test_setup(test_config_round_trip, reset),
        cmocka_unit_test_setup(test_formats_of_the_configuration, reset),
        cmocka_unit_test_setup(test_broken_directories, reset),
        cmocka_unit_test_setup(test_foreign_weights, reset),
        cmocka_unit_test_setup(test_no_directory, reset),
        cmocka_unit_test_setup(test_installed, reset),
    };
    return cmocka_run_group_tests(tests, set_up_all, tear_down_all);
}
