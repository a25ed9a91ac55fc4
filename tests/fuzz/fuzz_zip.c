/* fuzz_zip.c: bytes as a zip archive: each entry becomes what the directory says, twice the same,
 * or is refused. */
#include "base/zip.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void unpack(const heed__zip *z, const heed__zip_entry *e)
{
    const unsigned char *bytes;
    unsigned char *copy = malloc(e->size + 1);
    const heed_status status = heed__zip_bytes(z, e, &bytes, NULL);
    if (!copy || heed__zip_copy(z, e, copy, NULL) != status ||
        (!status && e->size && memcmp(copy, bytes, e->size) != 0))
        abort();
    free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    heed__zip z;
    heed_error err = {0};
    heed_arena *arena = heed_arena_new(NULL, NULL);
    if (heed__zip_open(&z, "fuzz", data, size, arena, &err) && strncmp(err.text, "cannot ", 7) != 0)
        abort();
    for (size_t i = 0; !err.status && i < z.count; i++) {
        const heed__zip_entry *e = &z.entry[i], *found = heed__zip_find(&z, e->name);
        if (!found || found > e || e->data < data || e->data + e->stored > data + size)
            abort();
        if (e->size < 1 << 20)
            unpack(&z, e);
    }
    heed_arena_free(arena);
    return 0;
}
