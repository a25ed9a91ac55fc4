/* fuzz_safetensors.c: libFuzzer target for the safetensors reader.  Whatever the bytes, opening
 * them must end in an error with a text or in tensors that lie inside the bytes, can be read to the
 * last element and are found by their names.  Corpus: tests/fuzz/safetensors. */
#include <heed/io.h>

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

#define REQUIRE(condition)                                                                         \
    do {                                                                                           \
        if (!(condition))                                                                          \
            abort();                                                                               \
    } while (0)

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    heed_error err = {0};
    heed_safetensors *f = heed_safetensors_open_memory(bytes, size, "fuzz", NULL, &err);
    if (!f) {
        REQUIRE(err.status == HEED_FORMAT && strncmp(err.text, "cannot load 'fuzz': ", 20) == 0);
        return 0;
    }
    REQUIRE(err.status == HEED_OK);
    size_t total = 0;
    for (int i = 0; i < heed_safetensors_count(f); i++) {
        const heed_stored *s = heed_safetensors_at(f, i);
        const uint8_t *data = s->data;
        REQUIRE(data >= bytes && s->bytes <= size && data + s->bytes <= bytes + size);
        REQUIRE(heed_safetensors_find(f, s->name) == s);
        int64_t count = 1;
        for (int k = 0; k < s->rank; k++)
            count *= s->dim[k];
        for (int64_t k = 0; k < count; k++) {
            heed_real x;
            REQUIRE(heed_stored_read(s, &x, k, 1, NULL) == HEED_OK);
        }
        REQUIRE(heed_stored_read(s, NULL, count, 1, NULL) != HEED_OK);
        total += s->bytes;
    }
    REQUIRE(total <= size);
    heed_safetensors_metadata(f, "format");
    heed_safetensors_close(f);
    return 0;
}
