/* test_hugging_face.c: MarianMT, BERT, GPT-2 and Llama as Hugging Face ships them: files with
 * made-up weights, written here under the publishers' names, against PyTorch in float64
 * (computed from the publishers' definitions with the same weights: element i of tensor NAME is
 * ((FNV-1a(NAME) + 2654435761 i) mod 2^32) / 2^32 * 0.6 - 0.3, and 1 more in the weights of
 * norms). */
#include <heed/engine.h>
#include <heed/io.h>

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "spm_model.h"
#include "temp_folder.h"

static const double marian_log_p[] = {-1.915360142, -2.493416983, -2.165916450, -2.822818989};
static const double bert_logits[] = {0.731992732,  0.097157861,  0.485048667,
                                     0.272939505,  -0.339193599, -0.551302796,
                                     -0.759919334, -0.372028562, -0.622556923};
static const double gpt2_log_p[] = {-2.907984114, -2.947379728, -2.564081361, -3.152815200};

static const double llama_log_p[] = {-1.838297466, -2.520278322, -2.126059872, -2.061947289};

enum { V = 9, D = 8, F = 12, POSITIONS = 16 };

/* ---- files ---- */

static float made_up(const char *name, uint32_t i)
{
    uint32_t h = 0x811C9DC5;
    for (const char *c = name; *c; c++)
        h = (h ^ (unsigned char)*c) * 0x01000193;
    const float x = (float)((double)(uint32_t)(h + i * 2654435761u) / 4294967296.0 * 0.6 - 0.3);
    const size_t n = strlen(name);
    const bool norm = strstr(name, "norm") || strstr(name, "LayerNorm") || strstr(name, "ln_");
    const bool gain = strcmp(name + n - 6, "weight") == 0 || strcmp(name + n - 5, "gamma") == 0;
    return norm && gain ? x + 1 : x;
}

struct file {
    heed_safetensors_writer *writer;
    heed_arena *arena;
};

static void add(struct file *f, int64_t rows, int64_t cols, const char *format, ...)
    HEED_PRINTF(4, 5);
static void add(struct file *f, int64_t rows, int64_t cols, const char *format, ...)
{
    char *name = heed_arena_allocate(f->arena, 200);
    va_list args;
    va_start(args, format);
    vsnprintf(name, 200, format, args);
    va_end(args);
    const int64_t count = rows * (cols ? cols : 1);
    float *x = heed_arena_allocate(f->arena, (size_t)count * sizeof *x);
    for (int64_t i = 0; i < count; i++)
        x[i] = made_up(name, (uint32_t)i);
    const heed_stored t = {.name = name,
                           .dtype = HEED_F32,
                           .rank = cols ? 2 : 1,
                           .dim = {rows, cols},
                           .data = x,
                           .bytes = (size_t)count * sizeof *x};
    assert_int_equal(heed_safetensors_writer_add(f->writer, &t, NULL), HEED_OK);
}

/* PREFIX.weight (rows,cols) and PREFIX.bias (biases). */
static void add_pair(struct file *f, int64_t rows, int64_t cols, int64_t biases, const char *prefix)
{
    add(f, rows, cols, "%s.weight", prefix);
    add(f, biases, 0, "%s.bias", prefix);
}

static struct file begin(void)
{
    return (struct file){heed_safetensors_writer_new(NULL, NULL), heed_arena_new(NULL, NULL)};
}

static void write_tensors(struct file *f, const char *name)
{
    heed_error err = {0};
    if (heed_safetensors_writer_write(f->writer, in_folder(name), &err))
        fail_msg("%s", err.text);
    heed_safetensors_writer_free(f->writer);
    heed_arena_free(f->arena);
}

static void finish(struct file *f, const char *config)
{
    write_tensors(f, "model.safetensors");
    write_plain(in_folder("config.json"), config, strlen(config));
}

static void write_text(const char *name, const char *text)
{
    write_plain(in_folder(name), text, strlen(text));
}

static heed_engine *open_engine(void)
{
    heed_error err = {0};
    assert_true(heed_found_is(folder));
    heed_engine *e = heed_engine_open(folder, NULL, &err);
    if (!e)
        fail_msg("%s", err.text);
    return e;
}

/* log P(wanted[i]) of rows that are fed. */
static void check_log_p(const heed_engine *e, const heed_tokens *source, const int32_t *fed,
                        const int32_t *wanted, int n, const double *expected)
{
    heed_error err = {0};
    heed_real got[8];
    heed_session *s = heed_session_new(e, &(heed_session_options){.threads = 1}, NULL, &err);
    const heed_extension x = {.tokens = {fed, n}, .wanted = wanted, .log_p = got};
    if (heed_session_add(s, source, 1, &err) || heed_session_extend(s, &x, 1, NULL, &err))
        fail_msg("%s", err.text);
    for (int i = 0; i < n; i++)
        if (!(fabs((double)got[i] - expected[i]) < 1e-5))
            fail_msg("log P of token %d is %.7f, expected %.7f", i, (double)got[i], expected[i]);
    heed_session_free(s);
}

/* ---- MarianMT ---- */

static void add_marian_layer(struct file *f, const char *side, bool cross)
{
    static const char *const products[] = {"q_proj", "k_proj", "v_proj", "out_proj"};
    char name[128];
    for (int c = 0; c <= cross; c++) {
        const char *attention = c ? "encoder_attn" : "self_attn";
        for (int i = 0; i < 4; i++) {
            snprintf(name, sizeof name, "model.%s.layers.0.%s.%s", side, attention, products[i]);
            add_pair(f, D, D, D, name);
        }
        snprintf(name, sizeof name, "model.%s.layers.0.%s_layer_norm", side, attention);
        add_pair(f, D, 0, D, name);
    }
    snprintf(name, sizeof name, "model.%s.layers.0.fc1", side);
    add_pair(f, F, D, F, name);
    snprintf(name, sizeof name, "model.%s.layers.0.fc2", side);
    add_pair(f, D, F, D, name);
    snprintf(name, sizeof name, "model.%s.layers.0.final_layer_norm", side);
    add_pair(f, D, 0, D, name);
}

static void write_spm(const char *name)
{
    static struct bytes b;
    b.size = 0;
    put_piece(&b, "</s>", 0, CONTROL);
    put_piece(&b, "<unk>", 0, UNKNOWN);
    put_piece(&b,
              "\xe2\x96\x81"
              "a",
              -1, NORMAL);
    put_piece(&b,
              "\xe2\x96\x81"
              "b",
              -2, NORMAL);
    put_piece(&b, "c", -3, NORMAL);
    put_piece(&b, "z", -4, NORMAL);
    put_specs(&b, 1, NULL, 0);
    write_plain(in_folder(name), b.at, b.size);
}

#define MARIAN_CONFIG                                                                              \
    "{\"model_type\":\"marian\",\"d_model\":8,\"encoder_layers\":1,\"decoder_layers\":1,"          \
    "\"encoder_attention_heads\":2,\"decoder_attention_heads\":2,\"encoder_ffn_dim\":12,"          \
    "\"decoder_ffn_dim\":12,\"activation_function\":\"%s\",\"vocab_size\":9,"                      \
    "\"decoder_start_token_id\":8,\"pad_token_id\":8,\"eos_token_id\":0,"                          \
    "\"scale_embedding\":true,\"static_position_embeddings\":true,"                                \
    "\"share_encoder_decoder_embeddings\":true,\"max_position_embeddings\":512}"

static void write_marian(const char *activation)
{
    struct file f = begin();
    char config[1024];
    add(&f, V, D, "model.shared.weight");
    add(&f, 1, V, "final_logits_bias");
    add_marian_layer(&f, "encoder", false);
    add_marian_layer(&f, "decoder", true);
    snprintf(config, sizeof config, MARIAN_CONFIG, activation);
    finish(&f, config);
    write_spm("source.spm");
    write_spm("target.spm");
    write_text("vocab.json", "{\"</s>\":0,\"<unk>\":1,\"c\":2,\"\xe2\x96\x81"
                             "b\":3,\"\xe2\x96\x81"
                             "a\":4,\">>x<<\":5,\"q\":6,\"r\":7,\"<pad>\":8}");
}

/* Catches positions interleaved or of other frequencies, embeddings not scaled, the bias left
 * out, a start other than the padding, ids of SentencePiece instead of vocab.json's, the
 * language's token cut in pieces. */
static void marian(void **state)
{
    (void)state;
    static const int32_t fed[] = {8, 4, 2, 6}, wanted[] = {4, 2, 6, 0};
    static const char text[] = ">>x<< a bc";
    heed_error err = {0};
    heed_vocab *source, *target;
    heed_tokens t;
    write_marian("swish");
    heed_engine *e = open_engine();
    assert_int_equal(heed_engine_configuration(e)->ids.target.start, 8);
    assert_int_equal(heed_vocabs_open(folder, NULL, NULL, &source, &target, &err), HEED_OK);
    heed_arena *arena = heed_arena_new(NULL, NULL);
    assert_int_equal(heed_vocab_encode(source, text, strlen(text), arena, &t, &err), HEED_OK);
    assert_int_equal(t.count, 4);
    static const int32_t ids[] = {5, 4, 3, 2};
    assert_memory_equal(t.id, ids, sizeof ids);
    check_log_p(e, &t, fed, wanted, 4, marian_log_p);
    const char *back;
    assert_int_equal(heed_vocab_decode(target, ids + 1, 3, arena, &back, &err), HEED_OK);
    assert_string_equal(back, "a bc");
    assert_int_equal(heed_vocab_encode(source, "z", 1, arena, &t, &err), HEED_OK);
    assert_int_equal(t.id[t.count - 1], 1); /* a piece that vocab.json does not have */
    heed_arena_free(arena);
    heed_vocabs_free(source, target);
    heed_engine_free(e);
}

/* Catches configurations that are passed over in silence. */
static void refused(void **state)
{
    (void)state;
    heed_error err = {0};
    write_marian("mish");
    assert_null(heed_engine_open(folder, NULL, &err));
    assert_non_null(strstr(err.text, "its activation_function is 'mish'"));
    write_marian("relu");
    remove(in_folder("vocab.json"));
    err = (heed_error){0};
    assert_null(heed_engine_open(folder, NULL, &err));
    assert_non_null(strstr(err.text, "there is no vocab.json beside it"));
    write_text("config.json", "{\"model_type\":\"t5\"}");
    err = (heed_error){0};
    assert_null(heed_engine_open(folder, NULL, &err));
    assert_non_null(strstr(err.text, "its model_type is 't5', heed computes marian, bert, gpt2 "
                                     "and llama"));
}

/* ---- BERT ---- */

static void add_old_norm(struct file *f, const char *prefix)
{
    add(f, D, 0, "%s.gamma", prefix);
    add(f, D, 0, "%s.beta", prefix);
}

/* Catches segments, positions or the norm on their sum left out, another GELU, norms of old files,
 * prefixes, the transform before the output. */
static void bert(void **state)
{
    (void)state;
    static const char *const parts[] = {"attention.self.query", "attention.self.key",
                                        "attention.self.value", "attention.output.dense"};
    struct file f = begin();
    char name[128];
    add(&f, V, D, "bert.embeddings.word_embeddings.weight");
    add(&f, POSITIONS, D, "bert.embeddings.position_embeddings.weight");
    add(&f, 2, D, "bert.embeddings.token_type_embeddings.weight");
    add_old_norm(&f, "bert.embeddings.LayerNorm");
    for (int i = 0; i < 2; i++) {
        for (int k = 0; k < 4; k++) {
            snprintf(name, sizeof name, "bert.encoder.layer.%d.%s", i, parts[k]);
            add_pair(&f, D, D, D, name);
        }
        snprintf(name, sizeof name, "bert.encoder.layer.%d.attention.output.LayerNorm", i);
        add_old_norm(&f, name);
        snprintf(name, sizeof name, "bert.encoder.layer.%d.intermediate.dense", i);
        add_pair(&f, F, D, F, name);
        snprintf(name, sizeof name, "bert.encoder.layer.%d.output.dense", i);
        add_pair(&f, D, F, D, name);
        snprintf(name, sizeof name, "bert.encoder.layer.%d.output.LayerNorm", i);
        add_old_norm(&f, name);
    }
    add_pair(&f, D, D, D, "cls.predictions.transform.dense");
    add_old_norm(&f, "cls.predictions.transform.LayerNorm");
    add(&f, V, 0, "cls.predictions.bias");
    finish(&f, "{\"model_type\":\"bert\",\"hidden_size\":8,\"num_hidden_layers\":2,"
               "\"num_attention_heads\":2,\"intermediate_size\":12,\"hidden_act\":\"gelu\","
               "\"vocab_size\":9,\"max_position_embeddings\":16,\"type_vocab_size\":2,"
               "\"layer_norm_eps\":1e-12}");
    write_text("vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\nb\nc\n##d\n");
    heed_engine *e = open_engine();
    heed_arena *arena = heed_arena_new(NULL, NULL);
    heed_error err = {0};
    const int64_t length = 5;
    const int32_t ids[] = {2, 5, 6, 4, 3}, row = 3;
    const heed_batch_side side = {.rows = heed_segments_new(arena, 1, &length), .ids = ids};
    const heed_encode_options o = {.kind = HEED_ENCODE_LOGITS, .row = &row, .count = 1};
    heed_encoding out;
    if (heed_engine_encode(e, &side, &o, arena, &out, &err))
        fail_msg("%s", err.text);
    for (int i = 0; i < V; i++)
        assert_true(fabs((double)out.value[i] - bert_logits[i]) < 1e-5);
    heed_arena_free(arena);
    heed_engine_free(e);
}

/* ---- GPT-2 ---- */

/* Catches Conv1D's (in, out) taken for (out, in), the other GELU, norms in other places. */
static void gpt2(void **state)
{
    (void)state;
    static const int32_t fed[] = {1, 4, 2, 5}, wanted[] = {4, 2, 5, 0};
    struct file f = begin();
    char name[128];
    add(&f, V, D, "transformer.wte.weight");
    add(&f, POSITIONS, D, "transformer.wpe.weight");
    for (int i = 0; i < 2; i++) {
        static const struct {
            const char *name;
            int rows, cols;
        } parts[] = {{"ln_1", D, 0}, {"attn.c_attn", D, 3 * D}, {"attn.c_proj", D, D},
                     {"ln_2", D, 0}, {"mlp.c_fc", D, 4 * D},    {"mlp.c_proj", 4 * D, D}};
        for (int k = 0; k < 6; k++) {
            snprintf(name, sizeof name, "transformer.h.%d.%s", i, parts[k].name);
            add_pair(&f, parts[k].rows, parts[k].cols, parts[k].cols ? parts[k].cols : D, name);
        }
        add(&f, 16, 16, "transformer.h.%d.attn.bias", i); /* a mask, not a bias */
    }
    add_pair(&f, D, 0, D, "transformer.ln_f");
    finish(&f,
           "{\"model_type\":\"gpt2\",\"n_embd\":8,\"n_layer\":2,\"n_head\":2,\"n_positions\":16,"
           "\"vocab_size\":9,\"activation_function\":\"gelu_new\",\"layer_norm_epsilon\":1e-5}");
    write_text("vocab.json", "{\"a\":0,\"b\":1,\"c\":2,\"d\":3,\"e\":4,\"f\":5,\"g\":6,\"ab\":7,"
                             "\"<unk>\":8}");
    write_text("merges.txt", "#version: 0.2\na b\n");
    heed_engine *e = open_engine();
    check_log_p(e, NULL, fed, wanted, 4, gpt2_log_p);
    heed_engine_free(e);
}

/* ---- Llama ---- */

/* Catches rotary positions on neighbours instead of halves, another base, heads of keys and values
 * that are not shared, gate and up exchanged, norms with a mean. */
static void llama(void **state)
{
    (void)state;
    static const int32_t fed[] = {1, 4, 2, 5}, wanted[] = {4, 2, 5, 0};
    struct file f = begin();
    add(&f, V, D, "model.embed_tokens.weight");
    add(&f, V, D, "lm_head.weight");
    add(&f, D, 0, "model.norm.weight");
    for (int i = 0; i < 2; i++) {
        static const struct {
            const char *name;
            int rows, cols;
        } parts[] = {{"input_layernorm", D, 0},  {"post_attention_layernorm", D, 0},
                     {"self_attn.q_proj", D, D}, {"self_attn.k_proj", D / 2, D},
                     {"self_attn.o_proj", D, D}, {"self_attn.v_proj", D / 2, D},
                     {"mlp.gate_proj", F, D},    {"mlp.up_proj", F, D},
                     {"mlp.down_proj", D, F}};
        for (size_t k = 0; k < sizeof parts / sizeof *parts; k++)
            add(&f, parts[k].rows, parts[k].cols, "model.layers.%d.%s.weight", i, parts[k].name);
    }
    finish(&f, "{\"model_type\":\"llama\",\"hidden_size\":8,\"num_hidden_layers\":2,"
               "\"num_attention_heads\":2,\"num_key_value_heads\":1,\"intermediate_size\":12,"
               "\"vocab_size\":9,\"max_position_embeddings\":16,\"rms_norm_eps\":1e-5,"
               "\"rope_theta\":500.0,\"hidden_act\":\"silu\",\"tie_word_embeddings\":false}");
    write_text("vocab.json", "{\"a\":0,\"b\":1,\"c\":2,\"d\":3,\"e\":4,\"f\":5,\"g\":6,\"ab\":7,"
                             "\"<unk>\":8}");
    write_text("merges.txt", "#version: 0.2\na b\n");
    heed_engine *e = open_engine();
    check_log_p(e, NULL, fed, wanted, 4, llama_log_p);
    heed_engine_free(e);
}

/* Catches a part of a model in several files that is not read, and an index that says what is
 * not so.
 *  */
static void shards(void **state)
{
    (void)state;
    heed_error err = {0};
    struct file one = begin(), two = begin();
    add(&one, V, D, "wte.weight");
    add(&two, POSITIONS, D, "wpe.weight");
    write_tensors(&one, "model-1.safetensors");
    write_tensors(&two, "model-2.safetensors");
    write_text("config.json", "{\"model_type\":\"gpt2\",\"n_layer\":0}");
    write_text("model.safetensors.index.json",
               "{\"weight_map\":{\"wte.weight\":\"model-1.safetensors\","
               "\"wpe.weight\":\"model-2.safetensors\"}}");
    heed_arena *arena = heed_arena_new(NULL, NULL);
    const char *json;
    if (heed_found_describe(folder, arena, &json, &err))
        fail_msg("%s", err.text);
    assert_non_null(strstr(json, "\"tensors\": 2"));
    write_text("model.safetensors.index.json",
               "{\"weight_map\":{\"lost.weight\":\"model-1.safetensors\"}}");
    assert_int_not_equal(heed_found_describe(folder, arena, &json, &err), HEED_OK);
    assert_non_null(strstr(err.text, "tensor 'lost.weight' of its index is in none of its files"));
    write_text("model.safetensors.index.json", "{\"weight_map\":{\"a\":\"../secret\"}}");
    err = (heed_error){0};
    assert_int_not_equal(heed_found_describe(folder, arena, &json, &err), HEED_OK);
    assert_non_null(strstr(err.text, "is in no file of the directory"));
    heed_arena_free(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(marian, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(refused, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(bert, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(gpt2, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(llama, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(shards, make_folder, remove_folder),
    };
    return cmocka_run_group_tests_name("hugging face", tests, NULL, NULL);
}
