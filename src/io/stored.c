/* stored.c: a tensor in a file: its dtype, its size, and its elements as reals.  Nothing is assumed
 * about alignment: elements are read with memcpy.  Integers beyond the mantissa round, F64 beyond
 * the range of float becomes infinite, as conversion in C does. */
#include "io/safetensors.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/half.h"
#include "base/memory.h"

static const struct {
    const char *name;
    size_t size;
} dtypes[] = {
#define ROW(name, bytes) {#name, bytes},
    HEED_DTYPE_LIST(ROW)
#undef ROW
};
#define N_DTYPES (sizeof dtypes / sizeof *dtypes)

const char *heed__dtype_name(heed_dtype dtype)
{
    return (unsigned)dtype < N_DTYPES ? dtypes[dtype].name : NULL;
}

size_t heed__dtype_size(heed_dtype dtype)
{
    return (unsigned)dtype < N_DTYPES ? dtypes[dtype].size : 0;
}

bool heed__dtype_named(const char *name, heed_dtype *dtype)
{
    for (size_t i = 0; i < N_DTYPES; i++)
        if (strcmp(dtypes[i].name, name) == 0) {
            *dtype = (heed_dtype)i;
            return true;
        }
    return false;
}

bool heed__stored_bytes(const heed_stored *s, size_t *bytes)
{
    int64_t n = (int64_t)heed__dtype_size(s->dtype);
    if (n == 0 || s->rank < 0 || s->rank > HEED_STORED_MAX_RANK)
        return false;
    for (int i = 0; i < s->rank; i++)
        if (!heed__multiply(n, s->dim[i], &n))
            return false;
    *bytes = (size_t)n;
    return true;
}

const char *heed__shown(const char *name, char text[HEED_SHOWN])
{
    size_t n = strlen(name), most = HEED_SHOWN - sizeof "...";
    bool cut = n > most;
    if (cut) /* not in the middle of a UTF-8 sequence */
        for (n = most; n > 0 && ((unsigned char)name[n] & 0xC0) == 0x80;)
            n--;
    for (size_t i = 0; i < n; i++)
        text[i] = (unsigned char)name[i] < 0x20 || name[i] == 0x7F ? '?' : name[i];
    memcpy(text + n, cut ? "..." : "", cut ? sizeof "..." : 1);
    return text;
}

const char *heed__dims_shown(const int64_t *dim, int rank, char text[HEED_DIMS_SHOWN])
{
    size_t at = (size_t)snprintf(text, HEED_DIMS_SHOWN, "(");
    for (int i = 0; i < rank; i++)
        at += (size_t)snprintf(text + at, HEED_DIMS_SHOWN - at, i ? ",%lld" : "%lld",
                               (long long)dim[i]);
    snprintf(text + at, HEED_DIMS_SHOWN - at, ")");
    return text;
}

/* Rounded to the nearest, ties to even; too large values become infinite. */
uint16_t heed__to_f16(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    const uint16_t sign = (uint16_t)(bits >> 16 & 0x8000);
    bits &= 0x7FFFFFFF;
    if (bits > 0x7F800000) /* NaN */
        return sign | 0x7E00;
    if (bits >= 0x477FF000) /* 65520 and more */
        return sign | 0x7C00;
    if (bits < 0x38800000) { /* below 2^-14: adding 0.5 leaves the mantissa at steps of 2^-24 */
        float small = heed__float_of_bits(bits) + 0.5F;
        memcpy(&bits, &small, sizeof bits);
        return (uint16_t)(sign | (bits - 0x3F000000));
    }
    bits += 0xFFF + (bits >> 13 & 1) - (112u << 23); /* the bias changes from 127 to 15 */
    return (uint16_t)(sign | bits >> 13);
}

#define CONVERT(type, expression)                                                                  \
    for (int64_t i = 0; i < count; i++) {                                                          \
        type x;                                                                                    \
        memcpy(&x, from + i * (int64_t)sizeof x, sizeof x);                                        \
        out[i] = (heed_real)(expression);                                                          \
    }                                                                                              \
    break

heed_status heed_stored_read(const heed_stored *s, heed_real *out, int64_t begin, int64_t count,
                             heed_error *err)
{
    if (!s || heed__dtype_size(s->dtype) == 0 || (!out && count > 0))
        return heed__fail(err, HEED_ARGUMENT, "stored read: nothing to read from or into");
    int64_t size = (int64_t)heed__dtype_size(s->dtype), n = (int64_t)s->bytes / size;
    if (begin < 0 || count < 0 || begin > n || count > n - begin) {
        char shown[HEED_SHOWN];
        return heed__fail(err, HEED_ARGUMENT,
                          "stored read: %lld elements from %lld on, tensor '%s' has %lld",
                          (long long)count, (long long)begin,
                          heed__shown(s->name ? s->name : "", shown), (long long)n);
    }
    if (count == 0)
        return HEED_OK;
    const unsigned char *from = (const unsigned char *)s->data + begin * size;
    switch (s->dtype) {
    case HEED_F32:
        CONVERT(float, x);
    case HEED_F64:
        CONVERT(double, x);
    case HEED_F16:
        CONVERT(uint16_t, heed__from_f16(x));
    case HEED_BF16:
        CONVERT(uint16_t, heed__from_bf16(x));
    case HEED_I64:
        CONVERT(int64_t, x);
    case HEED_I32:
        CONVERT(int32_t, x);
    case HEED_I8:
        CONVERT(int8_t, x);
    case HEED_U8:
        CONVERT(uint8_t, x);
    }
    return HEED_OK;
}
