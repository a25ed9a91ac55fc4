/* fuzz_found.h: what the fuzzers of the readers of found models share: bytes that open give finite
 * sizes, and every value can be read; what does not open says so in one sentence. */
#ifndef HEED_TESTS_FUZZ_FOUND_H
#define HEED_TESTS_FUZZ_FOUND_H

#include "files/found.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static inline int fuzz_found(heed__found_reader *read, const uint8_t *data, size_t size)
{
    heed_error err = {0};
    heed__found *f = heed__found_new("fuzz", NULL, &err);
    if (!f)
        abort();
    const heed_status status = read(f, data, size, &err);
    if (status != err.status || (status && strncmp(err.text, "cannot ", 7) != 0 &&
                                 strncmp(err.text, "out of memory", 13) != 0))
        abort();
    for (int64_t i = 0; !status && i < f->count; i++) {
        const heed__found_tensor *t = &f->tensor[i];
        float out[64];
        if (heed__found_find(f, t->name) != t)
            abort();
        for (int64_t at = 0; at < t->count && at < 1 << 16; at += 64)
            if (heed__found_values(t, at, t->count - at < 64 ? t->count - at : 64, out, NULL))
                abort();
        if (heed__found_values(t, t->count, 1, out, NULL) == HEED_OK)
            abort();
    }
    heed__found_free(f);
    return 0;
}

#endif
