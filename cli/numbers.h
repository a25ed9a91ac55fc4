/* numbers.h: what a model's numbers are to be, as `heed convert` and `heed bench decode` ask. */
#ifndef HEED_CLI_NUMBERS_H
#define HEED_CLI_NUMBERS_H

#include <heed/decode.h>

typedef struct numbers_settings {
    int quantize;
    int64_t bits;
} numbers_settings;
#define NUMBERS_OPTIONS(owner, at)                                                                 \
    HEED_OPTION_CHOICE(owner, at.quantize, "quantize", "int8", HEED_WORDS("fp32", "fp16", "int8"), \
                       "int8: matrices of bytes, used straight from the file, in exact integer "   \
                       "arithmetic; fp16: half the size, computed in fp32"),                       \
        HEED_OPTION_INT(owner, at.bits, "weight-bits", "7", 7, 8, "N",                             \
                        "of a byte that weights use: 7 are faster where a processor has no "       \
                        "instruction for sums of bytes, 8 are a little nearer to fp32")

static inline heed_number_kind numbers_kind(const numbers_settings *s)
{
    static const heed_number_kind plain[] = {HEED_NUMBERS_FP32, HEED_NUMBERS_FP16};
    if (s->quantize < 2)
        return plain[s->quantize];
    return s->bits == 7 ? HEED_NUMBERS_INT7 : HEED_NUMBERS_INT8;
}

#endif
