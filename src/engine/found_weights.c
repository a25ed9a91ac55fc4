/* found_weights.c: the tensors of a directory of Hugging Face's: model.safetensors, several of them
 * behind an index, pytorch_model.bin, or an ONNX file. */
#include "base/error.h"
#include "base/json.h"
#include "engine/found_model.h"
#include "io/safetensors.h"

#include <string.h>
#include <unistd.h>

/* ---- safetensors ---- */

static const heed__found_type types[] = {
    [HEED_F32] = HEED__FOUND_F32, [HEED_F16] = HEED__FOUND_F16, [HEED_BF16] = HEED__FOUND_BF16,
    [HEED_F64] = HEED__FOUND_F64, [HEED_I64] = HEED__FOUND_I64, [HEED_I32] = HEED__FOUND_I32,
    [HEED_I8] = HEED__FOUND_I8,   [HEED_U8] = HEED__FOUND_U8};

static heed_status add_safetensors(heed__found *f, const char *path, heed_error *err)
{
    const void *bytes;
    size_t size;
    heed_status status = heed__found_map(f, path, &bytes, &size, err);
    if (status)
        return status;
    heed_error why = {0};
    heed_safetensors *s = heed_safetensors_open_memory(bytes, size, path, &f->allocator, &why);
    for (int i = 0; s && !status && i < heed_safetensors_count(s); i++) {
        const heed_stored *stored = heed_safetensors_at(s, i);
        heed__found_tensor t = {.name = stored->name,
                                .type = types[stored->dtype],
                                .rank = stored->rank,
                                .data = stored->data,
                                .bytes = stored->bytes};
        memcpy(t.dim, stored->dim, sizeof t.dim);
        status = heed__found_add(f, &t, err);
    }
    heed_safetensors_close(s);
    return why.status ? heed__fail(err, why.status, "%s", why.text) : status;
}

/* model.safetensors.index.json: {"weight_map": {tensor: file}}.  Every file is read once, and every
 * tensor of the map must be in one of them. */
static heed_status add_shards(heed__found_model *m, const char *index, heed_error *err)
{
    heed__found *f = m->found;
    const char *name;
    json_t *file, *root = heed__json_open(index, err), *read = json_object();
    heed_status status = root ? HEED_OK : err ? err->status : HEED_FORMAT;
    const json_t *map = json_object_get(root, "weight_map");
    if (!status && !json_is_object(map))
        status = heed__found_fail(f, err, "its index has no weight_map");
    json_object_foreach((json_t *)map, name, file)
    {
        heed__pathname path;
        const char *text = json_string_value(file);
        if (status)
            break;
        if (!text || strchr(text, '/') || !*text)
            status = heed__found_fail(f, err,
                                      "its index says that '%.100s' is in no file of the "
                                      "directory",
                                      name);
        else if (!json_object_get(read, text)) {
            json_object_set_new(read, text, json_true());
            status = heed__pathname_in(path, m->where.folder, text, err);
            if (!status)
                status = add_safetensors(f, path, err);
        }
    }
    json_object_foreach((json_t *)map, name, file) if (!status && !heed__found_find(f, name))
        status =
            heed__found_fail(f, err, "tensor '%.100s' of its index is in none of its files", name);
    json_decref(read);
    json_decref(root);
    return status;
}

/* ---- what there is in the directory ---- */

static heed_status add_mapped(heed__found *f, heed__found_reader *read, const char *path,
                              heed_error *err)
{
    const void *bytes;
    size_t size;
    heed_status status = heed__found_map(f, path, &bytes, &size, err);
    return status ? status : read(f, bytes, size, err);
}

heed_status heed__hugging_face_weights(heed__found_model *m, heed_error *err)
{
    static const struct {
        const char *name;
        heed__found_reader *read; /* NULL: safetensors */
    } files[] = {
        {"model.safetensors", NULL},
        {"model.fp16.safetensors", NULL},
        {"model.safetensors.index.json", NULL},
        {"pytorch_model.bin", heed__pytorch_read},
        {"onnx/model.onnx", heed__onnx_read},
        {"model.onnx", heed__onnx_read},
        {"onnx/model_quantized.onnx", heed__onnx_read},
        {"model_quantized.onnx", heed__onnx_read},
    };
    heed__found *f = m->found;
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        heed__pathname path;
        heed_status status = heed__pathname_in(path, m->where.folder, files[i].name, err);
        if (status || access(path, F_OK) != 0)
            continue;
        if (files[i].read)
            return add_mapped(f, files[i].read, path, err);
        f->format = "safetensors";
        return strstr(files[i].name, "index") ? add_shards(m, path, err)
                                              : add_safetensors(f, path, err);
    }
    return heed__found_fail(
        f, err,
        "there are no weights beside it, expected model.safetensors, its index, "
        "pytorch_model.bin or model.onnx");
}
