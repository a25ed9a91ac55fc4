/* fuzz_gguf.c: bytes as GGUF. */
#include "fuzz_found.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return fuzz_found(heed__gguf_read, data, size);
}
