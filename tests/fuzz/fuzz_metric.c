/* fuzz_metric.c: libFuzzer target for the metrics.  The input is settings (two bytes), a hypothesis
 * and, after a line feed, its reference.  Whatever the bytes, the scores must be numbers inside
 * their scale, and a text against itself must be perfect.  Corpus: tests/fuzz/metric. */
#include <heed/metric.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

#define REQUIRE(condition)                                                                         \
    do {                                                                                           \
        if (!(condition))                                                                          \
            abort();                                                                               \
    } while (0)

static void score(const uint8_t settings[2], const char *hypothesis, const char *reference)
{
    heed_bleu_options b = {.tokenize = (heed_tokenize)(settings[0] % 6),
                           .lowercase = settings[0] & 64,
                           .compound_split = settings[0] & 128,
                           .effective_order = true};
    heed_chrf_options c = {
        .word_order = settings[1] & 2, .lowercase = settings[1] & 4, .whitespace = settings[1] & 8};
    heed_ter_options t = {.normalized = settings[1] & 16,
                          .no_punctuation = settings[1] & 32,
                          .asian_support = settings[1] & 64,
                          .case_sensitive = settings[1] & 128};
    heed_bleu_result bleu;
    double chrf, ter;
    REQUIRE(!heed_bleu(&b, &hypothesis, &reference, 1, &bleu, NULL));
    REQUIRE(!heed_chrf(&c, &hypothesis, &reference, 1, &chrf, NULL));
    REQUIRE(!heed_ter(&t, &hypothesis, &reference, 1, &ter, NULL));
    REQUIRE(bleu.score >= 0 && bleu.score <= 100 + 1e-9);
    REQUIRE(chrf >= 0 && chrf <= 100 + 1e-9);
    REQUIRE(ter >= 0 && isfinite(ter));
    REQUIRE(!heed_bleu(&b, &reference, &reference, 1, &bleu, NULL));
    REQUIRE(!bleu.hypothesis_length || fabs(bleu.score - 100) < 1e-9);
    REQUIRE(!heed_chrf(&c, &reference, &reference, 1, &chrf, NULL));
    REQUIRE(chrf == 0 || fabs(chrf - 100) < 1e-9);
    REQUIRE(!heed_ter(&t, &reference, &reference, 1, &ter, NULL));
    REQUIRE(ter == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    if (size < 2)
        return 0;
    char *text = malloc(size - 1);
    if (!text)
        return 0;
    memcpy(text, bytes + 2, size - 2);
    text[size - 2] = '\0';
    char *reference = strchr(text, '\n');
    if (reference)
        *reference++ = '\0';
    score(bytes, text, reference ? reference : "");
    free(text);
    return 0;
}
