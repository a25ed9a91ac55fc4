/* ct2_files.h: a small model of heed's, written as CTranslate2's, and its log-probabilities.
 * Include cmocka.h and temp_folder.h first. */
#ifndef HEED_TESTS_CT2_FILES_H
#define HEED_TESTS_CT2_FILES_H

#include <heed/engine.h>
#include <heed/translate.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

static void ct2_bytes(FILE *f, const void *bytes, size_t n)
{
    assert_int_equal(fwrite(bytes, 1, n, f), n);
}

static void ct2_number(FILE *f, uint32_t value, size_t bytes)
{
    ct2_bytes(f, &value, bytes);
}

static void ct2_text(FILE *f, const char *text)
{
    ct2_number(f, (uint32_t)strlen(text) + 1, 2);
    ct2_bytes(f, text, strlen(text) + 1);
}

static void ct2_header(FILE *f, int version, const char *name, int rank, const int64_t *dim,
                       unsigned type, size_t item, size_t count)
{
    ct2_text(f, name);
    ct2_number(f, (uint32_t)rank, 1);
    for (int i = 0; i < rank; i++)
        ct2_number(f, (uint32_t)dim[i], 4);
    ct2_number(f, version >= 4 ? type : (unsigned)item, 1);
    ct2_number(f, (uint32_t)(version >= 4 ? count * item : count), 4);
}

static void ct2_param(FILE *f, int version, const heed_param_info *e)
{
    char name[128];
    ct2_name(e->name, name, sizeof name);
    const heed_real *x = heed_tensor_data(e->tensor);
    const int64_t rows = heed_tensor_rows(e->tensor), cols = heed_tensor_cols(e->tensor);
    const bool turned = e->role == HEED_ROLE_MATRIX, vector = e->role == HEED_ROLE_PLAIN;
    const int64_t count = heed_tensor_count(e->tensor);
    const int64_t dim[2] = {vector ? count : turned ? cols : rows, turned ? rows : cols};
    ct2_header(f, version, name, vector ? 1 : 2, dim, 0, 4, (size_t)count);
    for (int64_t i = 0; i < count; i++) {
        const float value = (float)x[turned ? i % rows * cols + i / rows : i];
        ct2_bytes(f, &value, sizeof value);
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
    ct2_number(f, (uint32_t)version, 4);
    ct2_text(f, "TransformerSpec");
    ct2_number(f, 3, 4);
    ct2_number(f, (uint32_t)count, 4);
    ct2_header(f, version, "decoder/num_heads", 0, NULL, 2, 2, 1);
    ct2_number(f, 2, 2);
    ct2_header(f, version, "decoder/activation", 0, NULL, 1, 1, 1);
    ct2_number(f, 2, 1);
    if (zeros) {
        ct2_header(f, version, "decoder/start_from_zero_embedding", 0, NULL, 1, 1, 1);
        ct2_number(f, 1, 1);
    }
    for (int i = 0; i < heed_params_count(p); i++) {
        const heed_param_info e = heed_params_entry(p, i);
        if (!strstr(e.name, "positions"))
            ct2_param(f, version, &e);
    }
    if (version >= 3)
        ct2_number(f, 0, 4);
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

#endif
