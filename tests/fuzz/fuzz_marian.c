/* fuzz_marian.c: bytes as Marian's .bin. */
#include "fuzz_found.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return fuzz_found(heed__marian_read, data, size);
}
