/* fuzz_npz.c: bytes as NumPy's arrays. */
#include "fuzz_found.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return fuzz_found(heed__npz_read, data, size);
}
