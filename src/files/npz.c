/* npz.c: NumPy's arrays: .npz is a zip of .npy, and .npy "\x93NUMPY", version, a Python
 * dictionary of three keys, and the values.  Fortran order and pickled objects are refused. */
#include "base/zip.h"
#include "files/found.h"

#include <stdio.h>
#include <stdlib.h>

static const char magic[] = "\x93NUMPY";

/* The value behind 'key': in the header, or NULL. */
static const char *value_of(const char *header, const char *key)
{
    char quoted[32];
    snprintf(quoted, sizeof quoted, "'%s'", key);
    const char *at = strstr(header, quoted);
    at = at ? strchr(at, ':') : NULL;
    if (!at)
        return NULL;
    at++;
    while (*at == ' ')
        at++;
    return at;
}

static bool read_type(const char *descr, heed__found_type *type)
{
    static const struct {
        const char *descr;
        heed__found_type type;
    } known[] = {
        {"'<f4'", HEED__FOUND_F32}, {"'<f2'", HEED__FOUND_F16}, {"'<f8'", HEED__FOUND_F64},
        {"'<i8'", HEED__FOUND_I64}, {"'<i4'", HEED__FOUND_I32}, {"'<i2'", HEED__FOUND_I16},
        {"'|i1'", HEED__FOUND_I8},  {"'|u1'", HEED__FOUND_U8},  {"'|b1'", HEED__FOUND_U8},
    };
    for (size_t i = 0; descr && i < sizeof known / sizeof *known; i++)
        if (strncmp(descr, known[i].descr, strlen(known[i].descr)) == 0) {
            *type = known[i].type;
            return true;
        }
    return false;
}

/* "(3, 4)", "(3,)", "()". */
static bool read_shape(const char *text, heed__found_tensor *t)
{
    if (!text || *text++ != '(')
        return false;
    for (t->rank = 0;; t->rank++) {
        while (*text == ' ' || *text == ',')
            text++;
        if (*text == ')')
            return true;
        char *end;
        if (t->rank == HEED__FOUND_RANK || *text < '0' || *text > '9')
            return false;
        t->dim[t->rank] = strtoll(text, &end, 10);
        text = end;
    }
}

static heed_status read_array(heed__found *f, const char *name, const unsigned char *bytes,
                              size_t size, heed_error *err)
{
    heed__found_tensor t = {.name = name};
    heed__byte_cursor c = heed__bytes_over(bytes, size);
    const unsigned char *begin = heed__read_bytes(&c, sizeof magic - 1);
    const unsigned version = (unsigned)heed__read_number(&c, 1);
    heed__read_number(&c, 1);
    const uint64_t length = heed__read_number(&c, version < 2 ? 2 : 4);
    const unsigned char *text = heed__read_bytes(&c, length);
    if (!text || memcmp(begin, magic, sizeof magic - 1) != 0 || version < 1 || version > 3)
        return heed__found_fail(f, err, "'%.100s' is no .npy array, or cut short", name);
    const char *header = heed__found_text(f, (const char *)text, (size_t)length, err);
    if (!header)
        return HEED_MEMORY;
    const char *order = value_of(header, "fortran_order"), *descr = value_of(header, "descr");
    if (!read_type(descr, &t.type))
        return heed__found_fail(f, err,
                                "'%.100s' is of type %.16s, heed opens little-endian numbers", name,
                                descr ? descr : "nothing");
    if (!order || strncmp(order, "False", 5) != 0)
        return heed__found_fail(f, err, "'%.100s' is not stored row by row", name);
    if (!read_shape(value_of(header, "shape"), &t))
        return heed__found_fail(f, err, "'%.100s' has no shape that heed can read", name);
    t.bytes = heed__bytes_left(&c);
    t.data = c.at;
    return heed__found_add(f, &t, err);
}

heed_status heed__npz_read(heed__found *f, const void *bytes, size_t size, heed_error *err)
{
    heed__zip z;
    f->format = "NumPy";
    if (size >= sizeof magic - 1 && memcmp(bytes, magic, sizeof magic - 1) == 0)
        return read_array(f, "array", bytes, size, err);
    heed_status status = heed__zip_open(&z, f->path, bytes, size, f->arena, err);
    for (size_t i = 0; !status && i < z.count; i++) {
        const unsigned char *entry;
        const size_t length = strlen(z.entry[i].name);
        if (length < 5 || strcmp(z.entry[i].name + length - 4, ".npy") != 0)
            continue;
        const char *name = heed__found_text(f, z.entry[i].name, length - 4, err);
        status = name ? heed__zip_bytes(&z, &z.entry[i], &entry, err) : HEED_MEMORY;
        if (!status)
            status = read_array(f, name, entry, z.entry[i].size, err);
    }
    return status;
}
