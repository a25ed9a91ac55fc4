/* onnx.c: the initialisers of an ONNX graph.
 *
 * Exports of PyTorch keep the names of biases, norms and embeddings, but matrices are anonymous
 * (onnx::MatMul_787) and stored [in,out]: their place is the node that reads them, whose output's
 * name carries the module's path.  Such a matrix is named after it, and marked with an ending:
 *
 *     /encoder/layer.0/attention/self/query/MatMul_output_0
 *         -> encoder.layer.0.attention.self.query.weight.T
 *
 * int8 exports: X_quantized, X_scale, X_zero_point stand for X = (q - zero_point) scale. */
#include "files/found.h"
#include "files/protobuf.h"

#include <stdio.h>

enum { MODEL_GRAPH = 7, GRAPH_NODE = 1, GRAPH_INITIALIZER = 5 };

struct text {
    const char *at;
    size_t length;
};

static bool type_of(uint64_t code, heed__found_type *type)
{
    static const signed char types[] = {
        [1] = HEED__FOUND_F32,   [2] = HEED__FOUND_U8,   [3] = HEED__FOUND_I8,
        [5] = HEED__FOUND_I16,   [6] = HEED__FOUND_I32,  [7] = HEED__FOUND_I64,
        [9] = HEED__FOUND_U8,    [10] = HEED__FOUND_F16, [11] = HEED__FOUND_F64,
        [16] = HEED__FOUND_BF16,
    };
    if (code == 0 || code >= sizeof types || (types[code] == 0 && code != 1))
        return false;
    *type = (heed__found_type)types[code];
    return true;
}

/* One dimension, or all of them packed. */
static bool read_dims(const heed__field *field, heed__found_tensor *t)
{
    heed__message packed = heed__message_in(field);
    bool more = field->wire == HEED__WIRE_VARINT || packed.at < packed.end;
    while (more) {
        const bool one = field->wire == HEED__WIRE_VARINT;
        const uint64_t dim = one ? field->value : heed__varint_next(&packed);
        if (t->rank == HEED__FOUND_RANK || dim > INT64_MAX || packed.broken)
            return false;
        t->dim[t->rank++] = (int64_t)dim;
        more = !one && packed.at < packed.end;
    }
    return true;
}

/* int32_data holds small integers as varints, each a byte of the tensor. */
static heed_status unpack_bytes(heed__found *f, const heed__field *field, heed__found_tensor *t,
                                heed_error *err)
{
    heed__message m = heed__message_in(field);
    unsigned char *out = heed__found_take(f, field->size + 1, 1, err);
    size_t n = 0;
    if (!out)
        return HEED_MEMORY;
    if (field->wire == HEED__WIRE_VARINT)
        out[n++] = (unsigned char)field->value;
    while (field->wire == HEED__WIRE_BYTES && !m.broken && m.at < m.end)
        out[n++] = (unsigned char)heed__varint_next(&m);
    t->data = out;
    t->bytes = n;
    return HEED_OK;
}

static heed_status read_tensor(heed__found *f, const heed__field *message, heed_error *err)
{
    heed__message m = heed__message_in(message);
    heed__field field, small = {0};
    heed__found_tensor t = {.data = (const unsigned char *)""};
    struct text name = {"", 0};
    uint64_t code = 0;
    bool outside = false, fits = true;
    while (heed__field_next(&m, &field)) {
        if (field.number == 1)
            fits &= read_dims(&field, &t);
        else if (field.number == 2)
            code = field.value;
        else if (field.number == 5)
            small = field;
        else if (field.number == 8)
            name = (struct text){(const char *)field.bytes, field.size};
        else if (field.number == 9 || field.number == 4) /* raw data, or floats as they are */
            t.data = field.bytes, t.bytes = field.size;
        else if (field.number == 14)
            outside |= field.value == 1;
    }
    t.name = heed__found_text(f, name.at, name.length, err);
    if (!t.name)
        return HEED_MEMORY;
    if (m.broken || !fits)
        return heed__found_fail(f, err, "initialiser '%.100s' is damaged", t.name);
    if (outside)
        return heed__found_fail(f, err,
                                "initialiser '%.100s' is in another file, which heed does "
                                "not open: save the model as one file",
                                t.name);
    if (!type_of(code, &t.type))
        return heed__found_fail(f, err,
                                "initialiser '%.100s' is of type %llu, which heed does not "
                                "open",
                                t.name, (unsigned long long)code);
    if (!t.bytes && small.number && (t.type == HEED__FOUND_U8 || t.type == HEED__FOUND_I8) &&
        unpack_bytes(f, &small, &t, err))
        return HEED_MEMORY;
    return heed__found_add(f, &t, err);
}

/* ---- names ---- */

/* "/encoder/layer.0/.../query/MatMul_output_0" -> "encoder.layer.0....query.weight.T"; false if it
 * is not of that form. */
static bool path_name(struct text output, char *out, size_t capacity)
{
    size_t last = 0;
    for (size_t i = 0; i < output.length; i++)
        if (output.at[i] == '/')
            last = i;
    if (output.length < 2 || *output.at != '/' || last == 0 || last + 16 > capacity)
        return false;
    memcpy(out, output.at + 1, last - 1);
    for (size_t i = 0; i + 1 < last; i++)
        if (out[i] == '/')
            out[i] = '.';
    memcpy(out + last - 1, ".weight.T", sizeof ".weight.T");
    return true;
}

static bool is(struct text t, const char *word)
{
    return t.length == strlen(word) && memcmp(t.at, word, t.length) == 0;
}

/* A product names its anonymous matrix.  Fused graphs have no such names. */
static heed_status read_node(heed__found *f, const heed__field *message, heed_error *err)
{
    heed__message m = heed__message_in(message);
    heed__field field;
    struct text input[2] = {{"", 0}, {"", 0}}, output = {"", 0}, op = {"", 0}, domain = {"", 0};
    int inputs = 0;
    while (heed__field_next(&m, &field)) {
        const struct text t = {(const char *)field.bytes, field.size};
        if (field.number == 1 && inputs++ < 2)
            input[inputs - 1] = t;
        else if (field.number == 2 && output.length == 0)
            output = t;
        else if (field.number == 4)
            op = t;
        else if (field.number == 7)
            domain = t;
    }
    if (m.broken)
        return heed__found_fail(f, err, "a node of its graph is damaged");
    if (is(domain, "com.microsoft"))
        return heed__found_fail(f, err,
                                "its graph was fused by onnxruntime, so that its matrices "
                                "have no names: use the export before that step");
    char path[600];
    if ((!is(op, "MatMul") && !is(op, "MatMulInteger")) || !path_name(output, path, sizeof path))
        return HEED_OK;
    const char *name = heed__found_text(f, input[1].at, input[1].length, err);
    if (!name)
        return HEED_MEMORY;
    const heed__found_tensor *t = heed__found_find(f, name);
    if (!t || strncmp(name, "onnx::", 6) != 0 || heed__found_find(f, path))
        return HEED_OK;
    heed__found_tensor copy = *t;
    copy.name = path;
    return heed__found_add(f, &copy, err);
}

/* ---- integers ---- */

static float *values_of(heed__found *f, const heed__found_tensor *t, heed_error *err)
{
    float *out = heed__found_take(f, (size_t)t->count, sizeof *out, err);
    return out && !heed__found_values(t, 0, t->count, out, err) ? out : NULL;
}

static heed_status attach_scales(heed__found *f, heed_error *err)
{
    static const char ending[] = "_quantized";
    for (int64_t i = 0; i < f->count; i++) {
        heed__found_tensor *t = &f->tensor[i];
        char name[1200];
        const size_t length = strlen(t->name), stem = length - (sizeof ending - 1);
        if (length < sizeof ending || strcmp(t->name + stem, ending) != 0)
            continue;
        snprintf(name, sizeof name, "%.*s_scale", (int)stem, t->name);
        const heed__found_tensor *s = heed__found_find(f, name);
        snprintf(name, sizeof name, "%.*s_zero_point", (int)stem, t->name);
        const heed__found_tensor *z = heed__found_find(f, name);
        if (!s || !z)
            continue;
        const int64_t columns = t->rank ? t->dim[t->rank - 1] : 1;
        if (s->count < 1 || s->count != z->count || (s->count != 1 && s->count != columns))
            return heed__found_fail(f, err,
                                    "'%.100s' has %lld scales and %lld zero points, expected "
                                    "1 or %lld of each",
                                    t->name, (long long)s->count, (long long)z->count,
                                    (long long)columns);
        const int64_t scales = s->count;
        float *scale = values_of(f, s, err), *zero = scale ? values_of(f, z, err) : NULL;
        if (!zero)
            return HEED_MEMORY;
        t->scale = scale;
        t->zero = zero;
        t->scales = scales;
        t->by_column = scales > 1;
    }
    return HEED_OK;
}

static heed_status read_graph(heed__found *f, heed__message m, uint64_t number,
                              heed_status (*read)(heed__found *, const heed__field *, heed_error *),
                              heed_error *err)
{
    heed__field field;
    heed_status status = HEED_OK;
    while (!status && heed__field_next(&m, &field))
        if (field.number == number && field.wire == HEED__WIRE_BYTES)
            status = read(f, &field, err);
    return status || !m.broken ? status : heed__found_fail(f, err, "its graph is damaged");
}

heed_status heed__onnx_read(heed__found *f, const void *bytes, size_t size, heed_error *err)
{
    heed__message m = heed__message_over(bytes, size), graph = {0};
    heed__field field;
    f->format = "ONNX";
    while (heed__field_next(&m, &field))
        if (field.number == MODEL_GRAPH && field.wire == HEED__WIRE_BYTES)
            graph = heed__message_in(&field);
    if (m.broken || !graph.at)
        return heed__found_fail(f, err, "it is no ONNX model, or cut short");
    heed_status status = read_graph(f, graph, GRAPH_INITIALIZER, read_tensor, err);
    if (!status)
        status = attach_scales(f, err);
    return status ? status : read_graph(f, graph, GRAPH_NODE, read_node, err);
}
