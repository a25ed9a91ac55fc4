/* found.c: the tensors of a found model, and their values as fp32. */
#include "files/found.h"
#include "base/error.h"
#include "base/file.h"
#include "base/half.h"
#include "base/memory.h"

#include <heed/text.h>
#include <stdarg.h>
#include <stdio.h>

#define BLOCK 32 /* values of Q8_0 and Q4_0 */
#define MOST_NAME 1024

/* Bytes of a block, and its values. */
static const struct {
    const char *name;
    int bytes, values;
} types[HEED__FOUND_TYPES] = {
    [HEED__FOUND_F32] = {"F32", 4, 1},
    [HEED__FOUND_F16] = {"F16", 2, 1},
    [HEED__FOUND_BF16] = {"BF16", 2, 1},
    [HEED__FOUND_F64] = {"F64", 8, 1},
    [HEED__FOUND_I64] = {"I64", 8, 1},
    [HEED__FOUND_I32] = {"I32", 4, 1},
    [HEED__FOUND_I16] = {"I16", 2, 1},
    [HEED__FOUND_I8] = {"I8", 1, 1},
    [HEED__FOUND_U8] = {"U8", 1, 1},
    [HEED__FOUND_Q8_0] = {"Q8_0", 2 + BLOCK, BLOCK},
    [HEED__FOUND_Q4_0] = {"Q4_0", 2 + BLOCK / 2, BLOCK},
};

/* ---- errors and memory ---- */

heed_status heed__found_fail(const heed__found *f, heed_error *err, const char *format, ...)
{
    char text[400];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return heed__fail(err, HEED_FORMAT, "cannot open '%.200s': %s", f->path, text);
}

heed_status heed__found_no_memory(const heed__found *f, heed_error *err)
{
    return heed__fail(err, HEED_MEMORY, "out of memory for '%.200s'", f->path);
}

void *heed__found_take(heed__found *f, size_t count, size_t size, heed_error *err)
{
    void *memory =
        size && count > SIZE_MAX / 2 / size ? NULL : heed_arena_allocate(f->arena, count * size);
    if (!memory)
        heed__found_no_memory(f, err);
    return memory;
}

const char *heed__found_text(heed__found *f, const char *text, size_t length, heed_error *err)
{
    char *copy = heed__found_take(f, length + 1, 1, err);
    if (copy) {
        if (length)
            memcpy(copy, text, length);
        copy[length] = '\0';
    }
    return copy;
}

heed__found *heed__found_new(const char *path, const heed_allocator *allocator, heed_error *err)
{
    heed_allocator a = heed__allocator_or_default(allocator);
    heed__found *f = heed__allocate_zeroed(&a, 1, sizeof *f);
    if (f) {
        f->allocator = a;
        f->arena = heed_arena_new(&a, NULL);
        f->about = json_object();
        f->format = "";
        f->path = f->arena ? heed__found_text(f, path, strlen(path), NULL) : NULL;
        if (f->path && f->about)
            return f;
        heed__found_free(f);
    }
    heed__fail(err, HEED_MEMORY, "out of memory for '%.200s'", path);
    return NULL;
}

void heed__found_free(heed__found *f)
{
    if (!f)
        return;
    heed_allocator a = f->allocator;
    for (struct heed__found_mapping *m = f->mapping; m; m = m->next)
        heed__file_unmap(m->bytes, m->size);
    json_decref(f->about);
    heed__release(&a, f->tensor, (size_t)f->capacity, sizeof *f->tensor);
    heed__release(&a, f->slot, f->slots, sizeof *f->slot);
    heed_arena_free(f->arena);
    heed__release(&a, f, 1, sizeof *f);
}

heed_status heed__found_map(heed__found *f, const char *path, const void **bytes, size_t *size,
                            heed_error *err)
{
    struct heed__found_mapping *m = heed__found_take(f, 1, sizeof *m, err);
    if (!m)
        return HEED_MEMORY;
    heed_status status = heed__file_map_unpacked(path, bytes, size, err);
    if (!status) {
        *m = (struct heed__found_mapping){*bytes, *size, f->mapping};
        f->mapping = m;
    }
    return status;
}

heed_status heed__found_say(heed__found *f, const char *key, json_t *value, heed_error *err)
{
    return json_object_set_new(f->about, key, value) == 0 ? HEED_OK : heed__found_no_memory(f, err);
}

/* ---- adding and finding ---- */

const char *heed__found_type_name(heed__found_type type)
{
    return types[type].name;
}

bool heed__found_bytes(heed__found_type type, int64_t n, size_t *bytes)
{
    int64_t all;
    if (n < 0 || n % types[type].values ||
        !heed__multiply(n / types[type].values, types[type].bytes, &all))
        return false;
    *bytes = (size_t)all;
    return true;
}

static size_t slot_of(const heed__found *f, const char *name)
{
    uint64_t h = 0xCBF29CE484222325u; /* FNV-1a */
    for (const char *c = name; *c; c++)
        h = (h ^ (unsigned char)*c) * 0x100000001B3u;
    size_t i = (size_t)(h ^ h >> 32) & (f->slots - 1);
    while (f->slot[i] >= 0 && strcmp(f->tensor[f->slot[i]].name, name) != 0)
        i = (i + 1) & (f->slots - 1);
    return i;
}

const heed__found_tensor *heed__found_find(const heed__found *f, const char *name)
{
    const int32_t at = f->slots ? f->slot[slot_of(f, name)] : -1;
    return at < 0 ? NULL : &f->tensor[at];
}

static heed_status grow(heed__found *f, heed_error *err)
{
    const int64_t capacity = f->capacity ? 2 * f->capacity : 256;
    const size_t slots = 2 * (size_t)capacity;
    heed__found_tensor *tensor = heed__allocate(&f->allocator, (size_t)capacity, sizeof *tensor);
    int32_t *slot = heed__allocate(&f->allocator, slots, sizeof *slot);
    if (!tensor || !slot || capacity > INT32_MAX) {
        heed__release(&f->allocator, tensor, (size_t)capacity, sizeof *tensor);
        heed__release(&f->allocator, slot, slots, sizeof *slot);
        return heed__found_no_memory(f, err);
    }
    if (f->count)
        memcpy(tensor, f->tensor, (size_t)f->count * sizeof *tensor);
    heed__release(&f->allocator, f->tensor, (size_t)f->capacity, sizeof *f->tensor);
    heed__release(&f->allocator, f->slot, f->slots, sizeof *f->slot);
    f->tensor = tensor;
    f->capacity = capacity;
    f->slot = slot;
    f->slots = slots;
    memset(slot, 0xFF, slots * sizeof *slot);
    for (int64_t i = 0; i < f->count; i++)
        slot[slot_of(f, tensor[i].name)] = (int32_t)i;
    return HEED_OK;
}

heed_status heed__found_add(heed__found *f, const heed__found_tensor *t, heed_error *err)
{
    int64_t n = 1;
    size_t bytes;
    const size_t length = strlen(t->name);
    if (length == 0 || length > MOST_NAME || !heed_utf8_valid(t->name, length, NULL))
        return heed__found_fail(f, err, "tensor %lld has no name that is a text of 1 to %d bytes",
                                (long long)f->count + 1, MOST_NAME);
    bool fits = t->rank >= 0 && t->rank <= HEED__FOUND_RANK;
    for (int i = 0; fits && i < t->rank; i++)
        fits = t->dim[i] >= 0 && heed__multiply(n, t->dim[i], &n);
    if (!fits || !heed__found_bytes(t->type, n, &bytes))
        return heed__found_fail(f, err, "tensor '%.100s' has %d dimensions that cannot be", t->name,
                                t->rank);
    if (bytes != t->bytes)
        return heed__found_fail(f, err,
                                "tensor '%.100s' has %zu bytes, expected %zu for %lld values of %s",
                                t->name, t->bytes, bytes, (long long)n, types[t->type].name);
    if (f->count == f->capacity && grow(f, err))
        return HEED_MEMORY;
    int32_t *slot = &f->slot[slot_of(f, t->name)];
    if (*slot >= 0)
        return heed__found_fail(f, err, "there are two tensors '%.100s'", t->name);
    heed__found_tensor copy = *t;
    copy.count = n;
    copy.name = heed__found_text(f, t->name, length, err);
    if (!copy.name)
        return HEED_MEMORY;
    *slot = (int32_t)f->count;
    f->tensor[f->count++] = copy;
    return HEED_OK;
}

/* ---- values ---- */

static float plain_value(heed__found_type type, const unsigned char *p)
{
    float f32;
    double f64;
    uint16_t u16;
    int64_t i64;
    int32_t i32;
    int16_t i16;
    switch (type) {
    case HEED__FOUND_F32:
        return memcpy(&f32, p, sizeof f32), f32;
    case HEED__FOUND_F16:
        return memcpy(&u16, p, sizeof u16), heed__from_f16(u16);
    case HEED__FOUND_BF16:
        return memcpy(&u16, p, sizeof u16), heed__from_bf16(u16);
    case HEED__FOUND_F64:
        return memcpy(&f64, p, sizeof f64), (float)f64;
    case HEED__FOUND_I64:
        return memcpy(&i64, p, sizeof i64), (float)i64;
    case HEED__FOUND_I32:
        return memcpy(&i32, p, sizeof i32), (float)i32;
    case HEED__FOUND_I16:
        return memcpy(&i16, p, sizeof i16), (float)i16;
    case HEED__FOUND_I8:
        return (float)(int8_t)*p;
    default:
        return (float)*p;
    }
}

static float block_value(const heed__found_tensor *t, int64_t i)
{
    const unsigned char *block = t->data + i / BLOCK * types[t->type].bytes;
    const int64_t k = i % BLOCK;
    const float d = plain_value(HEED__FOUND_F16, block);
    if (t->type == HEED__FOUND_Q8_0)
        return d * (float)(int8_t)block[2 + k];
    const int byte = block[2 + k % (BLOCK / 2)];
    return d * (float)((k < BLOCK / 2 ? byte & 15 : byte >> 4) - 8);
}

heed_status heed__found_values(const heed__found_tensor *t, int64_t begin, int64_t count,
                               float *out, heed_error *err)
{
    if (begin < 0 || count < 0 || begin > t->count || count > t->count - begin)
        return heed__fail(err, HEED_ARGUMENT,
                          "cannot read %lld values from %lld on of tensor '%.100s', which has %lld",
                          (long long)count, (long long)begin, t->name, (long long)t->count);
    if (t->type == HEED__FOUND_F32 && !t->scale) {
        if (count)
            memcpy(out, t->data + 4 * begin, (size_t)count * sizeof *out);
        return HEED_OK;
    }
    const bool blocks = types[t->type].values > 1;
    const int64_t part = t->scale && !t->by_column ? t->count / t->scales : 1;
    for (int64_t i = begin; i < begin + count; i++) {
        float x =
            blocks ? block_value(t, i) : plain_value(t->type, t->data + i * types[t->type].bytes);
        if (t->scale) {
            const int64_t s = t->by_column ? i % t->scales : i / part;
            x -= t->zero ? t->zero[s] : 0;
            x = t->divides ? x / t->scale[s] : x * t->scale[s];
        }
        out[i - begin] = x;
    }
    return HEED_OK;
}
