/* test_replay.c: what the fuzzers of file readers were given and once found, again: each file of
 * tests/fuzz/<reader> goes through the fuzzer's own function, which aborts on what must not be. */
#define LLVMFuzzerTestOneInput fuzz_vocab
#include "fuzz/fuzz_vocab.c"
#undef LLVMFuzzerTestOneInput
#define LLVMFuzzerTestOneInput fuzz_lex
#include "fuzz/fuzz_lex.c"
#undef LLVMFuzzerTestOneInput
#define LLVMFuzzerTestOneInput fuzz_yml
#include "fuzz/fuzz_yml.c"
#undef LLVMFuzzerTestOneInput
#define LLVMFuzzerTestOneInput fuzz_zip
#include "fuzz/fuzz_zip.c"
#undef LLVMFuzzerTestOneInput
#define LLVMFuzzerTestOneInput fuzz_image
#undef REQUIRE
#include "fuzz/fuzz_image.c"
#undef LLVMFuzzerTestOneInput
#define LLVMFuzzerTestOneInput fuzz_picture_set
#undef REQUIRE
#include "fuzz/fuzz_picture_set.c"
#undef LLVMFuzzerTestOneInput
#include "fuzz/fuzz_found.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include <dirent.h>

#define REPLAYS(X) X(ct2) X(gguf) X(llama2c) X(marian) X(npz) X(onnx) X(pytorch)
#define FUZZER(name)                                                                               \
    static int fuzz_##name(const uint8_t *data, size_t size)                                       \
    {                                                                                              \
        return fuzz_found(heed__##name##_read, data, size);                                        \
    }
REPLAYS(FUZZER)

static int replay(const char *folder, int (*fuzz)(const uint8_t *, size_t))
{
    static uint8_t bytes[1 << 20];
    char path[512];
    int files = 0;
    DIR *d = opendir(folder);
    assert_non_null(d);
    for (struct dirent *e; (e = readdir(d));) {
        if (*e->d_name == '.')
            continue;
        snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
        FILE *f = fopen(path, "rb");
        assert_non_null(f);
        const size_t n = fread(bytes, 1, sizeof bytes, f);
        fclose(f);
        assert_int_equal(fuzz(bytes, n), 0);
        files++;
    }
    closedir(d);
    return files;
}

/* Catches vocabularies of any kind, whole and broken, that crash their readers or do not give a
 * text back. */
static void vocabularies(void **state)
{
    (void)state;
    assert_true(replay("tests/fuzz/vocab", fuzz_vocab) > 10);
}

/* Catches the same of pictures and of sets of them. */
static void pictures(void **state)
{
    (void)state;
    assert_true(replay("tests/fuzz/image", fuzz_image) > 5);
    assert_true(replay("tests/fuzz/picture_set", fuzz_picture_set) > 5);
}

/* Catches the same of weights, what lies beside them, and archives. */
static void weights(void **state)
{
    (void)state;
#define REPLAY(name) assert_true(replay("tests/fuzz/" #name, fuzz_##name) > 5);
    REPLAYS(REPLAY)
    assert_true(replay("tests/fuzz/lex", fuzz_lex) > 5);
    assert_true(replay("tests/fuzz/yml", fuzz_yml) > 5);
    assert_true(replay("tests/fuzz/zip", fuzz_zip) > 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(vocabularies),
        cmocka_unit_test(pictures),
        cmocka_unit_test(weights),
    };
    return cmocka_run_group_tests_name("replay", tests, NULL, NULL);
}
