/* ct2.c: CTranslate2's model.bin.
 *
 *     version 6..2: u32 version | str name | u32 revision | u32 variables | variables | aliases
 *     version 1:    u32 1 | u32 variables | variables, with the names of OpenNMT-tf
 *     variable: str name | u8 rank | u32 dims[rank] | u8 type | u32 bytes | data
 *     below version 4: the item's size for the type, the number of elements for the bytes
 *     alias (from version 3): u32 count | {str alias, str variable}
 *     str: u16 length, its NUL included | bytes
 *
 * Integers stand for integer / scale: one scale a row for int8, one for all for int16. */
#include "files/found.h"

#include <math.h>
#include <stdio.h>

#define LAST_VERSION 6

static const char *read_string(heed__byte_cursor *c)
{
    const uint64_t n = heed__read_number(c, 2);
    const unsigned char *text = heed__read_bytes(c, n);
    const bool whole = text && n > 0 && memchr(text, '\0', n) == text + n - 1;
    if (!whole)
        c->broken = true;
    return whole ? (const char *)text : NULL;
}

static bool type_of(uint32_t version, unsigned code, heed__found_type *type)
{
    static const heed__found_type by_code[] = {HEED__FOUND_F32, HEED__FOUND_I8,  HEED__FOUND_I16,
                                               HEED__FOUND_I32, HEED__FOUND_F16, HEED__FOUND_BF16};
    if (version >= 4) {
        if (code >= sizeof by_code / sizeof *by_code)
            return false;
        *type = by_code[code];
        return true;
    }
    *type = code == 1 ? HEED__FOUND_I8 : code == 2 ? HEED__FOUND_I16 : HEED__FOUND_F32;
    return code == 1 || code == 2 || code == 4;
}

static heed_status read_variable(heed__found *f, heed__byte_cursor *c, uint32_t version,
                                 heed_error *err)
{
    heed__found_tensor t = {.name = read_string(c)};
    t.rank = (int)heed__read_number(c, 1);
    for (int i = 0; i < t.rank && i < HEED__FOUND_RANK; i++)
        t.dim[i] = heed__read_u32(c);
    const unsigned code = (unsigned)heed__read_number(c, 1);
    const uint64_t length = heed__read_u32(c);
    if (c->broken || t.rank > HEED__FOUND_RANK)
        return heed__found_fail(f, err, "variable %lld is damaged or leaves the file",
                                (long long)f->count + 1);
    if (!type_of(version, code, &t.type))
        return heed__found_fail(f, err, "variable '%.100s' has type %u, which heed does not open",
                                t.name, code);
    t.bytes = (size_t)(version >= 4 ? length : length * code);
    t.data = heed__read_bytes(c, t.bytes);
    if (!t.data)
        return heed__found_fail(f, err, "variable '%.100s' has %zu bytes, the file has %zu left",
                                t.name, t.bytes, (size_t)(c->end - c->at));
    return heed__found_add(f, &t, err);
}

static heed_status read_aliases(heed__found *f, heed__byte_cursor *c, heed_error *err)
{
    const uint32_t n = heed__read_u32(c);
    heed_status status = HEED_OK;
    for (uint32_t i = 0; !status && i < n; i++) {
        const char *alias = read_string(c), *name = read_string(c);
        const heed__found_tensor *t = name ? heed__found_find(f, name) : NULL;
        if (!alias || !t)
            return heed__found_fail(f, err, "alias %u is damaged or names no variable", i + 1);
        heed__found_tensor copy = *t;
        copy.name = alias;
        status = heed__found_add(f, &copy, err);
    }
    return status || !c->broken ? status : heed__found_fail(f, err, "its aliases leave the file");
}

/* "X/weight_scale" belongs to "X/weight", in older files "X_scale" to "X". */
static heed_status attach_scales(heed__found *f, uint32_t version, heed_error *err)
{
    static const float version_1 = 1000; /* of all int16 there: no scales are stored */
    for (int64_t i = 0; i < f->count; i++) {
        heed__found_tensor *t = &f->tensor[i];
        char name[1200];
        if (t->type != HEED__FOUND_I8 && t->type != HEED__FOUND_I16)
            continue;
        snprintf(name, sizeof name, "%s_scale", t->name);
        const heed__found_tensor *s = heed__found_find(f, name);
        if (!s && version == 1 && t->type == HEED__FOUND_I16) {
            t->scale = &version_1;
            t->scales = 1;
            t->divides = true;
        }
        if (!s)
            continue;
        if (s->count < 1 || t->count % s->count || s->count > t->count)
            return heed__found_fail(f, err, "'%.100s' has %lld values for the %lld of its matrix",
                                    name, (long long)s->count, (long long)t->count);
        float *scale = heed__found_take(f, (size_t)s->count, sizeof *scale, err);
        if (!scale || heed__found_values(s, 0, s->count, scale, err))
            return HEED_MEMORY;
        for (int64_t k = 0; k < s->count; k++)
            if (!(fabsf(scale[k]) > 0 && isfinite(scale[k])))
                return heed__found_fail(f, err, "'%.100s' has a scale of %g", name,
                                        (double)scale[k]);
        t->scale = scale;
        t->scales = s->count;
        t->divides = true;
    }
    return HEED_OK;
}

heed_status heed__ct2_read(heed__found *f, const void *bytes, size_t size, heed_error *err)
{
    heed__byte_cursor c = heed__bytes_over(bytes, size);
    const uint32_t version = heed__read_u32(&c);
    f->format = "CTranslate2";
    if (c.broken || version < 1 || version > LAST_VERSION)
        return heed__found_fail(
            f, err,
            "it is no model.bin of CTranslate2, or of version %u, expected 1 to "
            "%d",
            version, LAST_VERSION);
    const char *name = version > 1 ? read_string(&c) : "";
    const uint32_t revision = version > 1 ? heed__read_u32(&c) : 0;
    const uint32_t variables = heed__read_u32(&c);
    if (c.broken)
        return heed__found_fail(f, err, "its header is cut short");
    heed_status status = heed__found_say(f, "version", json_integer(version), err);
    if (!status)
        status = heed__found_say(f, "name", json_string(name), err);
    if (!status)
        status = heed__found_say(f, "revision", json_integer(revision), err);
    for (uint32_t i = 0; !status && i < variables; i++)
        status = read_variable(f, &c, version, err);
    if (!status)
        status = attach_scales(f, version, err);
    if (!status && version >= 3)
        status = read_aliases(f, &c, err);
    if (!status && heed__bytes_left(&c) > 0)
        status =
            heed__found_fail(f, err, "%zu bytes follow its last variable", heed__bytes_left(&c));
    return status;
}
