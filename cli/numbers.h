/* numbers.h: what a model's numbers are to be, as `heed convert` and `heed bench decode` ask. */
#ifndef HEED_CLI_NUMBERS_H
#define HEED_CLI_NUMBERS_H

#include <heed/translate.h>

/* An int that is a heed_number_kind. */
#define NUMBERS_OPTION(owner, at)                                                                  \
    HEED_OPTION_CHOICE(owner, at, "quantize", "int8", HEED_WORDS("fp32", "fp16", "int8"),          \
                       "int8: quantised matrices, used straight from the file, in exact integer "  \
                       "arithmetic; fp16: half the size, computed in fp32")

#endif
