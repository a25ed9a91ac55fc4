/* marian_files.h: models of Marian with made-up weights (marian_golden.py), as .bin, .npz and as
 * Firefox has them.  Include cmocka.h and temp_folder.h first. */
#ifndef HEED_TESTS_MARIAN_FILES_H
#define HEED_TESTS_MARIAN_FILES_H

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

enum { MARIAN_V = 11, MARIAN_D = 8, MARIAN_F = 12, MARIAN_LAYERS = 2, MOST_TENSORS = 256 };
#define MARIAN_MULTIPLIER 40

struct marian_tensor {
    char name[64];
    int32_t rows, cols;
};
struct marian_model {
    bool ssru, pre, int8, fork; /* fork: the type codes of Firefox */
    struct marian_tensor tensor[MOST_TENSORS];
    int count;
    char yml[512];
};

static float marian_value(const char *name, uint32_t i)
{
    uint32_t h = 0x811C9DC5;
    for (const char *c = name; *c; c++)
        h = (h ^ (unsigned char)*c) * 0x01000193;
    const float x = (float)((double)(uint32_t)(h + i * 2654435761u) / 4294967296.0 * 0.6 - 0.3);
    return strstr(name, "_ln_scale") ? x + 1 : x;
}

static void marian_add(struct marian_model *m, const char *prefix, const char *name, int rows,
                       int cols)
{
    struct marian_tensor *t = &m->tensor[m->count++];
    snprintf(t->name, sizeof t->name, "%s%s", prefix, name);
    t->rows = rows;
    t->cols = cols;
}

static void marian_add_norm(struct marian_model *m, const char *prefix, bool top)
{
    const char *ending = m->pre && !top ? "_pre" : "";
    char name[32];
    snprintf(name, sizeof name, "_ln_scale%s", ending);
    marian_add(m, prefix, name, 1, MARIAN_D);
    snprintf(name, sizeof name, "_ln_bias%s", ending);
    marian_add(m, prefix, name, 1, MARIAN_D);
}

static void marian_add_attention(struct marian_model *m, const char *prefix)
{
    static const char *const names[] = {"_Wq", "_Wk", "_Wv", "_Wo", "_bq", "_bk", "_bv", "_bo"};
    char norm[64];
    for (int i = 0; i < 8; i++)
        marian_add(m, prefix, names[i], i < 4 ? MARIAN_D : 1, MARIAN_D);
    snprintf(norm, sizeof norm, "%s_Wo", prefix);
    marian_add_norm(m, norm, false);
}

static void marian_add_layer(struct marian_model *m, const char *side, int n)
{
    char prefix[48], norm[64];
    const bool decoder = *side == 'd';
    if (decoder && m->ssru) {
        snprintf(prefix, sizeof prefix, "%s_l%d_rnn", side, n);
        marian_add(m, prefix, "_W", MARIAN_D, MARIAN_D);
        marian_add(m, prefix, "_Wf", MARIAN_D, MARIAN_D);
        marian_add(m, prefix, "_bf", 1, MARIAN_D);
        snprintf(norm, sizeof norm, "%s_ffn", prefix);
        marian_add_norm(m, norm, false);
    } else {
        snprintf(prefix, sizeof prefix, "%s_l%d_self", side, n);
        marian_add_attention(m, prefix);
    }
    snprintf(prefix, sizeof prefix, "%s_l%d_context", side, n);
    if (decoder)
        marian_add_attention(m, prefix);
    snprintf(prefix, sizeof prefix, "%s_l%d_ffn", side, n);
    marian_add(m, prefix, "_W1", MARIAN_D, MARIAN_F);
    marian_add(m, prefix, "_b1", 1, MARIAN_F);
    marian_add(m, prefix, "_W2", MARIAN_F, MARIAN_D);
    marian_add(m, prefix, "_b2", 1, MARIAN_D);
    snprintf(norm, sizeof norm, "%s_ffn", prefix);
    marian_add_norm(m, norm, false);
}

static void marian_fill(struct marian_model *m)
{
    m->count = 0;
    marian_add(m, "Wemb", "", MARIAN_V, MARIAN_D);
    marian_add(m, "decoder_ff_logit_out_b", "", 1, MARIAN_V);
    for (int n = 1; n <= MARIAN_LAYERS; n++) {
        marian_add_layer(m, "encoder", n);
        marian_add_layer(m, "decoder", n);
    }
    if (m->pre) {
        marian_add_norm(m, "encoder_top", true);
        marian_add_norm(m, "decoder_top", true);
    }
    snprintf(m->yml, sizeof m->yml,
             "bert-train-type-embeddings: true\ndim-emb: 8\ndim-vocabs:\n  - 11\n  - 11\n"
             "dec-cell: ssru\ntransformer-decoder-autoreg: %s\ntransformer-ffn-activation: relu\n"
             "transformer-ffn-depth: 2\ntransformer-heads: 2\ntransformer-postprocess: %s\n"
             "transformer-postprocess-emb: d\ntransformer-postprocess-top: \"%s\"\n"
             "transformer-preprocess: \"%s\"\ntransformer-tied-layers:\n  []\ntype: transformer\n",
             m->ssru ? "rnn" : "self-attention", m->pre ? "da" : "dan", m->pre ? "n" : "",
             m->pre ? "n" : "");
}

/* ---- files ---- */

struct marian_out {
    unsigned char at[1 << 18];
    size_t size;
};

static void out_bytes(struct marian_out *o, const void *bytes, size_t size)
{
    memcpy(o->at + o->size, bytes, size);
    o->size += size;
}

static void out_number(struct marian_out *o, uint64_t value, int bytes)
{
    for (int i = 0; i < bytes; i++)
        o->at[o->size++] = (unsigned char)(value >> 8 * i);
}

/* Matrices and embeddings are int8 in models of that kind. */
static bool marian_is_int8(const struct marian_model *m, const struct marian_tensor *t)
{
    return m->int8 && t->rows > 1;
}

static size_t marian_bytes(const struct marian_model *m, const struct marian_tensor *t)
{
    const size_t n = (size_t)t->rows * (size_t)t->cols;
    return marian_is_int8(m, t) ? n + sizeof(float) : n * sizeof(float);
}

static void marian_out_int8(struct marian_out *o, const struct marian_tensor *t)
{
    const int n = t->rows * t->cols;
    float largest = 0;
    for (int i = 0; i < n; i++)
        largest = fmaxf(largest, fabsf(marian_value(t->name, (uint32_t)i)));
    const float multiplier = 127 / largest;
    const bool turned = !strstr(t->name, "Wemb");
    for (int i = 0; i < n; i++) { /* element i of the bytes */
        const int r = turned ? i % t->rows : i / t->cols, c = turned ? i / t->rows : i % t->cols;
        out_number(o,
                   (uint8_t)(int8_t)lrintf(marian_value(t->name, (uint32_t)(r * t->cols + c)) *
                                           multiplier),
                   1);
    }
    out_bytes(o, &multiplier, sizeof multiplier);
}

static void marian_out_values(struct marian_out *o, const struct marian_tensor *t)
{
    for (int i = 0; i < t->rows * t->cols; i++) {
        const float x = marian_value(t->name, (uint32_t)i);
        out_bytes(o, &x, sizeof x);
    }
}

static void write_out(const struct marian_out *o, const char *name)
{
    FILE *f = fopen(in_folder(name), "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(o->at, 1, o->size, f), o->size);
    fclose(f);
}

/* Multipliers of activations stand beside each matrix of an int8 model. */
static void write_marian_bin(struct marian_model *m, const char *name)
{
    static struct marian_out o;
    const int alphas = m->int8 ? m->count : 0;
    const uint64_t int8 = m->fork ? 0x4101 : 0x10001;
    char alpha[80];
    o.size = 0;
    int items = m->count + 1;
    for (int i = 0; i < alphas; i++)
        items += marian_is_int8(m, &m->tensor[i]);
    out_number(&o, 1, 8);
    out_number(&o, (uint64_t)items, 8);
#define EACH_ALPHA(i)                                                                              \
    for (int i = 0; i < alphas; i++)                                                               \
        if (marian_is_int8(m, &m->tensor[i]))
    for (int i = 0; i < m->count; i++) {
        out_number(&o, strlen(m->tensor[i].name) + 1, 8);
        out_number(&o, marian_is_int8(m, &m->tensor[i]) ? int8 : 0x404, 8);
        out_number(&o, 2, 8);
        out_number(&o, marian_bytes(m, &m->tensor[i]), 8);
    }
    EACH_ALPHA(i)
    {
        out_number(&o, strlen(m->tensor[i].name) + 12, 8);
        out_number(&o, 0x404, 8);
        out_number(&o, 1, 8);
        out_number(&o, 4, 8);
    }
    out_number(&o, 18, 8);
    out_number(&o, 0x101, 8);
    out_number(&o, 1, 8);
    out_number(&o, strlen(m->yml) + 1, 8);
    for (int i = 0; i < m->count; i++)
        out_bytes(&o, m->tensor[i].name, strlen(m->tensor[i].name) + 1);
    EACH_ALPHA(i)
    {
        snprintf(alpha, sizeof alpha, "%s_QuantMultA", m->tensor[i].name);
        out_bytes(&o, alpha, strlen(alpha) + 1);
    }
    out_bytes(&o, "special:model.yml", 18);
    for (int i = 0; i < m->count; i++) {
        out_number(&o, (uint64_t)m->tensor[i].rows, 4);
        out_number(&o, (uint64_t)m->tensor[i].cols, 4);
    }
    EACH_ALPHA(i)
    out_number(&o, 1, 4);
    out_number(&o, strlen(m->yml) + 1, 4);
    out_number(&o, 3, 8);
    out_bytes(&o, "\0\0", 3);
    for (int i = 0; i < m->count; i++)
        if (marian_is_int8(m, &m->tensor[i]))
            marian_out_int8(&o, &m->tensor[i]);
        else
            marian_out_values(&o, &m->tensor[i]);
    const float multiplier = MARIAN_MULTIPLIER;
    EACH_ALPHA(i)
    out_bytes(&o, &multiplier, sizeof multiplier);
    out_bytes(&o, m->yml, strlen(m->yml) + 1);
    write_out(&o, name);
#undef EACH_ALPHA
}

/* One entry of a zip archive: a local header and the bytes; its line of the list goes to `list`. */
static void zip_entry(struct marian_out *o, struct marian_out *list, const char *name,
                      const struct marian_out *of)
{
    const size_t at = o->size;
    const uint32_t sum = (uint32_t)crc32(0, of->at, (uInt)of->size);
    for (int i = 0; i < 2; i++) {
        struct marian_out *to = i ? list : o;
        out_number(to, i ? 0x02014b50 : 0x04034b50, 4);
        out_number(to, 20, i ? 4 : 2);
        out_number(to, 0, 8);
        out_number(to, sum, 4);
        out_number(to, of->size, 4);
        out_number(to, of->size, 4);
        out_number(to, strlen(name), 2);
        out_number(to, 0, i ? 8 : 2);
        out_number(to, 0, i ? 4 : 0);
        if (i)
            out_number(to, at, 4);
        out_bytes(to, name, strlen(name));
    }
    out_bytes(o, of->at, of->size);
}

static void npy_header(struct marian_out *o, const char *type, int rows, int cols)
{
    char text[128];
    o->size = 0;
    if (rows)
        snprintf(text, sizeof text, "{'descr': '%s', 'fortran_order': False, 'shape': (%d, %d), }",
                 type, rows, cols);
    else
        snprintf(text, sizeof text, "{'descr': '%s', 'fortran_order': False, 'shape': (%d,), }",
                 type, cols);
    out_bytes(o, "\x93NUMPY\x01\x00", 8);
    out_number(o, strlen(text), 2);
    out_bytes(o, text, strlen(text));
}

static void write_marian_npz(struct marian_model *m, const char *name)
{
    static struct marian_out o, list, entry;
    char path[80];
    o.size = list.size = 0;
    for (int i = 0; i < m->count; i++) {
        npy_header(&entry, "<f4", m->tensor[i].rows, m->tensor[i].cols);
        marian_out_values(&entry, &m->tensor[i]);
        snprintf(path, sizeof path, "%s.npy", m->tensor[i].name);
        zip_entry(&o, &list, path, &entry);
    }
    npy_header(&entry, "|i1", 0, (int)strlen(m->yml) + 1);
    out_bytes(&entry, m->yml, strlen(m->yml) + 1);
    zip_entry(&o, &list, "special:model.yml.npy", &entry);
    const size_t at = o.size;
    out_bytes(&o, list.at, list.size);
    out_number(&o, 0x06054b50, 4);
    out_number(&o, 0, 4);
    out_number(&o, (uint64_t)m->count + 1, 2);
    out_number(&o, (uint64_t)m->count + 1, 2);
    out_number(&o, list.size, 4);
    out_number(&o, at, 4);
    out_number(&o, 0, 2);
    write_out(&o, name);
}

#endif
