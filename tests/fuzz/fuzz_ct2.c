/* fuzz_ct2.c: bytes as CTranslate2's model.bin. */
#include "fuzz_found.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return fuzz_found(heed__ct2_read, data, size);
}
