/* fuzz_onnx.c: bytes as ONNX. */
#include "fuzz_found.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return fuzz_found(heed__onnx_read, data, size);
}
