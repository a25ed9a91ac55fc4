/* fuzz_llama2c.c: bytes as llama2.c's .bin. */
#include "fuzz_found.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return fuzz_found(heed__llama2c_read, data, size);
}
