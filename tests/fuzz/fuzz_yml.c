/* fuzz_yml.c: bytes as Marian's vocab.yml. */
#include "files/vocab_yml.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    heed__yml_piece *piece;
    size_t count;
    heed_error err = {0};
    heed_arena *arena = heed_arena_new(NULL, NULL);
    if (!heed__yml_read("fuzz", (const char *)data, size, arena, &piece, &count, &err))
        for (size_t i = 0; i < count; i++)
            if (strlen(piece[i].text) != piece[i].length || (i && piece[i].id <= piece[i - 1].id))
                abort();
    heed_arena_free(arena);
    return 0;
}
