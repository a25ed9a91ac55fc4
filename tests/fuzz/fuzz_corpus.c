/* fuzz_corpus.c: libFuzzer target for corpora.  Whatever the bytes, plain or gzip, opening them as
 * a TSV must end in an error with a text, or in pairs of one line of UTF-8 each, with every line
 * accounted for.  Corpus: tests/fuzz/corpus. */
#include <heed/data.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "text/utf8.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

#define REQUIRE(condition)                                                                         \
    do {                                                                                           \
        if (!(condition))                                                                          \
            abort();                                                                               \
    } while (0)

static void check_side(const char *text, size_t length)
{
    REQUIRE(length > 0 && heed_utf8_valid(text, length, NULL));
    REQUIRE(!memchr(text, '\n', length) && !memchr(text, '\t', length));
    REQUIRE(!memchr(text, '\0', length));
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    int fd = memfd_create("fuzz", MFD_CLOEXEC);
    REQUIRE(fd >= 0 && write(fd, bytes, size) == (ssize_t)size);
    char name[64];
    snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
    const char *path = name;
    heed_corpus_files files = {.tsv = &path, .tsvs = 1};
    heed_error err = {0};
    heed_corpus *c = heed_corpus_open(&files, NULL, NULL, &err);
    if (!c) {
        REQUIRE(err.status == HEED_FORMAT && strstr(err.text, name));
        close(fd);
        return 0;
    }
    heed_corpus_report r = heed_corpus_describe(c);
    REQUIRE(r.pairs > 0 && r.lines == r.pairs + r.broken + r.empty + r.untabbed);
    for (int64_t i = 0; i < r.pairs; i++) {
        heed_pair p = heed_corpus_pair(c, i);
        check_side(p.source, p.source_length);
        check_side(p.target, p.target_length);
        r.source_bytes -= (int64_t)p.source_length;
        r.target_bytes -= (int64_t)p.target_length;
    }
    REQUIRE(r.source_bytes == 0 && r.target_bytes == 0);
    heed_corpus_free(c);
    close(fd);
    return 0;
}
