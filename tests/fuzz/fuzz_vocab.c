/* fuzz_vocab.c: a vocabulary from bytes, of any kind; what opens is used.  Words that are cut at
 * random (strengths above 0) must decode to the text of those that are not.  The first byte says
 * how many of the last bytes are the text. */
#include "vocab/vocabulary.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    size_t text = data[0] < size ? data[0] : 0, file = size - 1 - text;
    char path[64];
    snprintf(path, sizeof path, "/tmp/heed-fuzz-vocab-%ld", (long)getpid());
    FILE *f = fopen(path, "wb");
    if (!f || fwrite(data + 1, 1, file, f) != file || fclose(f) != 0)
        abort();
    heed_error err = {0};
    heed_vocab *v = heed_vocab_open(path, "@@ ", NULL, &err);
    unlink(path);
    if (!v)
        return err.status ? 0 : (abort(), 0);
    heed_arena *arena = heed_arena_new(NULL, NULL);
    heed_rng rng = heed_rng_stream(&(heed_rng_key){.seed = 1});
    const char *whole = NULL;
    for (int i = 0; i < 3; i++) {
        heed_tokens t;
        const char *back;
        if (heed_vocab_sample(v, (const char *)data + 1 + file, text, i * 0.25, &rng, arena, &t,
                              NULL))
            continue;
        if (heed_vocab_decode(v, t.id, t.count, arena, &back, NULL))
            abort();
        if (i == 0)
            whole = back;
        else if (v->kind == HEED_WHITESPACE && strcmp(back, whole) != 0)
            abort();
        int32_t *word = heed_arena_allocate(arena, (size_t)t.count * sizeof *word);
        heed_vocab_words(v, t.id, t.count, word);
    }
    heed_arena_free(arena);
    heed_vocab_free(v);
    return 0;
}
