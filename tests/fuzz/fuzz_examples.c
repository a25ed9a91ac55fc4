/* fuzz_examples.c: libFuzzer target for examples with answers.  The first byte says what the
 * rest is read as; whatever it is, reading ends in an error with a text or in examples that have
 * what their kind has.  Corpus: tests/fuzz/examples. */
#include <heed/encoder.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

#define REQUIRE(condition)                                                                         \
    do {                                                                                           \
        if (!(condition))                                                                          \
            abort();                                                                               \
    } while (0)

static void check_example(const heed_examples *x, const heed_example *e, heed_examples_kind kind)
{
    int64_t labels;
    heed_examples_labels(x, &labels);
    REQUIRE(e->line > 0);
    if (kind == HEED_EXAMPLES_TAGS) {
        REQUIRE(e->words > 0);
        for (int64_t i = 0; i < e->words; i++) {
            REQUIRE(*e->word[i] && heed_utf8_valid(e->word[i], strlen(e->word[i]), NULL));
            REQUIRE(e->tag[i] >= 0 && e->tag[i] < labels);
        }
        return;
    }
    const bool two = kind == HEED_EXAMPLES_PAIRS || heed_examples_are_pairs(x);
    REQUIRE(e->text[0] && !e->text[1] == !two);
    REQUIRE(heed_utf8_valid(e->text[0], strlen(e->text[0]), NULL));
    if (kind == HEED_EXAMPLES_LABELS)
        REQUIRE(e->label >= 0 && e->label < labels);
    else
        REQUIRE(isfinite(e->score) == heed_examples_are_scored(x));
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    static const char *const columns[] = {NULL, "2", "upos"};
    if (!size)
        return 0;
    int fd = memfd_create("fuzz", MFD_CLOEXEC);
    REQUIRE(fd >= 0 && write(fd, bytes + 1, size - 1) == (ssize_t)(size - 1));
    char name[64];
    snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
    const char *path = name;
    const heed_examples_options o = {.kind = (heed_examples_kind)(bytes[0] % 3),
                                     .tag_column = columns[bytes[0] / 3 % 3]};
    heed_error err = {0};
    heed_examples *x = heed_examples_open(&path, 1, &o, NULL, NULL, &err);
    if (!x)
        REQUIRE(err.status == HEED_FORMAT && strstr(err.text, name));
    for (int64_t i = 0; i < heed_examples_count(x); i++) {
        const heed_example e = heed_examples_at(x, i);
        check_example(x, &e, o.kind);
    }
    REQUIRE(!x || heed_examples_count(x) > 0);
    heed_examples_free(x);
    close(fd);
    return 0;
}
