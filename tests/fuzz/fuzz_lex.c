/* fuzz_lex.c: bytes as a shortlist of Bergamot's. */
#include "files/lex.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    heed__lex l;
    heed_error err = {0};
    if (heed__lex_open(&l, "fuzz", data, size, 0, 100, &err))
        return err.status == HEED_FORMAT ? 0 : (abort(), 0);
    for (int64_t s = 0; s < l.sources; s++)
        for (int64_t k = heed__lex_offset(&l, s); k < heed__lex_offset(&l, s + 1); k++)
            if (heed__lex_id(&l, k) >= 100)
                abort();
    return 0;
}
