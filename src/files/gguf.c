/* gguf.c: the key/value pairs of a GGUF file. */
#include "files/gguf.h"
#include "base/error.h"

#define VERSION 3
/* A pair has a key's length, a type and a value: at least this number of bytes. */
#define LEAST_PAIR 13

/* Bytes of a value of fixed size, 0 for the others, -1 for a type that there is not. */
static int type_size(uint32_t type)
{
    static const signed char sizes[] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
    return type < sizeof sizes ? sizes[type] : -1;
}

const char *heed__gguf_string(heed__byte_cursor *values, size_t *length)
{
    const uint64_t n = heed__read_u64(values);
    const unsigned char *text = heed__read_bytes(values, n);
    *length = text ? (size_t)n : 0;
    return (const char *)text;
}

/* Moves over n values of a type; false where they leave the file. */
static bool skip(heed__byte_cursor *c, uint32_t type, uint64_t n)
{
    const int size = type_size(type);
    if (size > 0 && n > heed__bytes_left(c) / (uint64_t)size)
        return false;
    if (size > 0)
        return heed__read_bytes(c, n * (uint64_t)size) != NULL;
    size_t length;
    for (uint64_t i = 0; i < n; i++)
        if (!heed__gguf_string(c, &length))
            return false;
    return true;
}

/* An array's elements; nested ones are passed over, to a depth that no file has. */
static bool skip_array(heed__byte_cursor *c, int depth)
{
    const uint32_t type = heed__read_u32(c);
    const uint64_t n = heed__read_u64(c);
    if (c->broken || type_size(type) < 0 || depth > 4)
        return false;
    if (type != HEED__GGUF_ARRAY)
        return skip(c, type, n);
    for (uint64_t i = 0; i < n; i++)
        if (!skip_array(c, depth + 1))
            return false;
    return true;
}

static bool read_pair(heed__byte_cursor *c, heed__gguf_pair *p)
{
    p->key = heed__gguf_string(c, &p->key_length);
    uint32_t type = heed__read_u32(c);
    if (!p->key || c->broken || type_size(type) < 0)
        return false;
    p->n = 1;
    p->array = type == HEED__GGUF_ARRAY;
    if (p->array) {
        heed__byte_cursor elements = *c;
        type = heed__read_u32(&elements);
        p->n = heed__read_u64(&elements);
        if (elements.broken)
            return false;
        if (type == HEED__GGUF_ARRAY) {
            p->type = HEED__GGUF_ARRAY;
            p->n = 0;
            p->values = heed__bytes_over(elements.at, 0);
            return skip_array(c, 0);
        }
        *c = elements;
    }
    if (type_size(type) < 0)
        return false;
    p->type = (heed__gguf_type)type;
    const unsigned char *begin = c->at;
    if (!skip(c, type, p->n))
        return false;
    p->values = heed__bytes_over(begin, (size_t)(c->at - begin));
    return true;
}

heed_status heed__gguf_open(heed__gguf *g, const char *name, const void *bytes, size_t size,
                            const heed_allocator *allocator, heed_error *err)
{
    *g = (heed__gguf){0};
    heed__byte_cursor c = heed__bytes_over(bytes, size);
    heed__read_bytes(&c, 4);
    const uint32_t version = heed__read_u32(&c);
    g->tensors = heed__read_u64(&c);
    g->pairs = heed__read_u64(&c);
    if (c.broken || !heed__is_gguf(bytes, size))
        return heed__fail(err, HEED_FORMAT, "cannot read '%s': it is no GGUF file, or cut short",
                          name);
    if (version != VERSION)
        return heed__fail(err, HEED_FORMAT,
                          "cannot read '%s': it is GGUF version %u, heed opens version %d", name,
                          version, VERSION);
    if (g->pairs > heed__bytes_left(&c) / LEAST_PAIR)
        return heed__fail(err, HEED_FORMAT,
                          "cannot read '%s': it announces %llu key/value pairs, more than its %zu "
                          "bytes can hold",
                          name, (unsigned long long)g->pairs, size);
    g->arena = heed_arena_new(allocator, err);
    if (!g->arena)
        return HEED_MEMORY;
    g->pair = heed_arena_allocate(g->arena, (size_t)g->pairs * sizeof *g->pair);
    if (!g->pair) {
        heed__gguf_close(g);
        return heed__fail(err, HEED_MEMORY, "out of memory for '%s'", name);
    }
    for (uint64_t i = 0; i < g->pairs; i++)
        if (!read_pair(&c, &g->pair[i])) {
            heed__gguf_close(g);
            return heed__fail(err, HEED_FORMAT,
                              "cannot read '%s': key/value pair %llu of %llu is damaged or leaves "
                              "the file",
                              name, (unsigned long long)i + 1, (unsigned long long)g->pairs);
        }
    g->infos = c;
    return HEED_OK;
}

void heed__gguf_close(heed__gguf *g)
{
    heed_arena_free(g->arena);
    *g = (heed__gguf){0};
}

const heed__gguf_pair *heed__gguf_find(const heed__gguf *g, const char *key)
{
    const size_t length = strlen(key);
    for (uint64_t i = 0; i < g->pairs; i++)
        if (g->pair[i].key_length == length && memcmp(g->pair[i].key, key, length) == 0)
            return &g->pair[i];
    return NULL;
}

static double number_of(heed__gguf_type type, heed__byte_cursor c)
{
    const uint64_t bits = heed__read_number(&c, type_size(type));
    double wide;
    float narrow;
    const uint32_t low = (uint32_t)bits;
    switch (type) {
    case HEED__GGUF_I8:
        return (int8_t)bits;
    case HEED__GGUF_I16:
        return (int16_t)bits;
    case HEED__GGUF_I32:
        return (int32_t)bits;
    case HEED__GGUF_I64:
        return (double)(int64_t)bits;
    case HEED__GGUF_F32:
        memcpy(&narrow, &low, sizeof narrow);
        return (double)narrow;
    case HEED__GGUF_F64:
        memcpy(&wide, &bits, sizeof wide);
        return wide;
    default:
        return (double)bits;
    }
}

double heed__gguf_number(const heed__gguf *g, const char *key, double otherwise)
{
    const heed__gguf_pair *p = heed__gguf_find(g, key);
    return !p || p->array || p->type == HEED__GGUF_STRING ? otherwise
                                                          : number_of(p->type, p->values);
}

const char *heed__gguf_text(const heed__gguf *g, const char *key, size_t *length)
{
    const heed__gguf_pair *p = heed__gguf_find(g, key);
    if (!p || p->array || p->type != HEED__GGUF_STRING)
        return NULL;
    heed__byte_cursor c = p->values;
    return heed__gguf_string(&c, length);
}
