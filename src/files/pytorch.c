/* pytorch.c: pytorch_model.bin as torch.save writes it since 2020: a zip with NAME/data.pkl, a
 * pickle of a dictionary of tensors, and their storages NAME/data/KEY. */
#include "base/zip.h"
#include "files/pickle.h"

#include <stdio.h>

#define MOST_NESTED 4
#define MOST_SEEN (1 << 20)

struct archive {
    heed__found *f;
    heed__zip zip;
    const char *folder; /* "archive/" */
    int64_t seen;       /* values of dictionaries */
    heed_error *err;
};

static bool is_kind(const heed__pickled *v, heed__pickled_kind kind)
{
    return v && v->kind == kind;
}

static bool type_of(const heed__pickled *global, heed__found_type *type)
{
    static const struct {
        const char *name;
        heed__found_type type;
    } known[] = {
        {"torch FloatStorage", HEED__FOUND_F32},     {"torch HalfStorage", HEED__FOUND_F16},
        {"torch BFloat16Storage", HEED__FOUND_BF16}, {"torch DoubleStorage", HEED__FOUND_F64},
        {"torch LongStorage", HEED__FOUND_I64},      {"torch IntStorage", HEED__FOUND_I32},
        {"torch ShortStorage", HEED__FOUND_I16},     {"torch CharStorage", HEED__FOUND_I8},
        {"torch ByteStorage", HEED__FOUND_U8},       {"torch BoolStorage", HEED__FOUND_U8},
    };
    for (size_t i = 0; is_kind(global, HEED__PICKLED_GLOBAL) && i < sizeof known / sizeof *known;
         i++)
        if (strcmp(global->text, known[i].name) == 0) {
            *type = known[i].type;
            return true;
        }
    return false;
}

/* Sizes and strides must be those of a tensor that lies row behind row. */
static bool read_shape(const heed__pickled *sizes, const heed__pickled *strides,
                       heed__found_tensor *t)
{
    int64_t n = 1;
    if (!is_kind(sizes, HEED__PICKLED_LIST) || !is_kind(strides, HEED__PICKLED_LIST) ||
        sizes->count > HEED__FOUND_RANK || strides->count != sizes->count)
        return false;
    t->rank = (int)sizes->count;
    for (int i = t->rank - 1; i >= 0; i--) {
        const heed__pickled *size = sizes->item[i], *stride = strides->item[i];
        if (!is_kind(size, HEED__PICKLED_NUMBER) || !is_kind(stride, HEED__PICKLED_NUMBER) ||
            size->number < 0 || (size->number > 1 && stride->number != n) ||
            (size->number && n > INT32_MAX * (int64_t)256 / size->number))
            return false;
        t->dim[i] = size->number;
        n *= size->number;
    }
    return true;
}

/* v: (storage, offset, sizes, strides, ...); storage: ("storage", type, key, device, elements). */
static heed_status add_tensor(const struct archive *a, const char *name, const heed__pickled *v)
{
    heed__found_tensor t = {.name = name};
    const heed__pickled *storage = v->item[0], *offset = v->item[1];
    char path[600];
    size_t skip = 0;
    if (!is_kind(storage, HEED__PICKLED_STORAGE) ||
        !is_kind(storage->item[2], HEED__PICKLED_TEXT) || !is_kind(offset, HEED__PICKLED_NUMBER) ||
        !type_of(storage->item[1], &t.type))
        return heed__found_fail(a->f, a->err, "tensor '%.100s' has no storage that heed knows",
                                name);
    if (!read_shape(v->item[2], v->item[3], &t))
        return heed__found_fail(a->f, a->err,
                                "tensor '%.100s' is not stored row by row, or has a shape that "
                                "cannot be: save it with .contiguous()",
                                name);
    snprintf(path, sizeof path, "%sdata/%.200s", a->folder, storage->item[2]->text);
    const heed__zip_entry *e = heed__zip_find(&a->zip, path);
    if (!e)
        return heed__found_fail(a->f, a->err, "tensor '%.100s' is in '%.200s', which is not there",
                                name, path);
    const unsigned char *bytes;
    heed_status status = heed__zip_bytes(&a->zip, e, &bytes, a->err);
    if (status)
        return status;
    int64_t n = 1;
    for (int i = 0; i < t.rank; i++)
        n *= t.dim[i];
    if (!heed__found_bytes(t.type, offset->number, &skip) ||
        !heed__found_bytes(t.type, n, &t.bytes) || skip > e->size || t.bytes > e->size - skip)
        return heed__found_fail(a->f, a->err,
                                "tensor '%.100s' has %lld values from %lld on, its storage %zu "
                                "bytes",
                                name, (long long)n, (long long)offset->number, e->size);
    t.data = bytes + skip;
    return heed__found_add(a->f, &t, a->err);
}

/* Tensors of a dictionary; of dictionaries in it with their key and a point before. */
static heed_status add_all(struct archive *a, const heed__pickled *dict, const char *prefix,
                           int depth)
{
    heed_status status = HEED_OK;
    for (size_t i = 0; !status && i + 1 < dict->count; i += 2) {
        const heed__pickled *key = dict->item[i], *v = dict->item[i + 1];
        char name[512];
        if (a->seen++ == MOST_SEEN)
            return heed__found_fail(a->f, a->err, "its dictionaries hold each other");
        if (!is_kind(key, HEED__PICKLED_TEXT))
            continue;
        snprintf(name, sizeof name, "%.200s%.300s", prefix, key->text);
        if (v->kind == HEED__PICKLED_TENSOR)
            status = add_tensor(a, name, v);
        if (v->kind == HEED__PICKLED_DICT && depth < MOST_NESTED) {
            snprintf(name, sizeof name, "%.200s%.300s.", prefix, key->text);
            status = add_all(a, v, name, depth + 1);
        }
    }
    return status;
}

static heed_status read_archive(struct archive *a)
{
    static const char pickle[] = "data.pkl";
    const heed__zip_entry *e = NULL;
    for (size_t i = 0; !e && i < a->zip.count; i++) {
        const size_t length = strlen(a->zip.entry[i].name), n = sizeof pickle - 1;
        if (length >= n && strcmp(a->zip.entry[i].name + length - n, pickle) == 0)
            e = &a->zip.entry[i];
    }
    if (!e)
        return heed__found_fail(a->f, a->err,
                                "it is a zip archive without data.pkl: not PyTorch's");
    a->folder = heed__found_text(a->f, e->name, strlen(e->name) - (sizeof pickle - 1), a->err);
    const unsigned char *bytes;
    heed_status status = a->folder ? heed__zip_bytes(&a->zip, e, &bytes, a->err) : HEED_MEMORY;
    const heed__pickled *all = status ? NULL : heed__pickle_read(a->f, bytes, e->size, a->err);
    if (!all)
        return a->err && a->err->status ? a->err->status : HEED_FORMAT;
    if (all->kind != HEED__PICKLED_DICT)
        return heed__found_fail(a->f, a->err, "it is no dictionary of tensors");
    return add_all(a, all, "", 0);
}

heed_status heed__pytorch_read(heed__found *f, const void *bytes, size_t size, heed_error *err)
{
    struct archive a = {.f = f, .err = err};
    f->format = "PyTorch";
    if (!heed__is_zip(bytes, size))
        return heed__found_fail(f, err,
                                "it is no zip archive: files of PyTorch before 1.6 must be "
                                "saved again by torch.save, or as safetensors");
    heed_status status = heed__zip_open(&a.zip, f->path, bytes, size, f->arena, err);
    return status ? status : read_archive(&a);
}
