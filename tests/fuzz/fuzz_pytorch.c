/* fuzz_pytorch.c: bytes as pytorch_model.bin. */
#include "fuzz_found.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return fuzz_found(heed__pytorch_read, data, size);
}
