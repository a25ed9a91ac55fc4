/* test_argos.c: packages of Argos Translate: a model of heed's written as CTranslate2's, with a
 * SentencePiece model and metadata.json, packed in a zip or not, gives the same answers; packages
 * that are broken or ask for too much say so. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "temp_folder.h"

#include "ct2_files.h"
#include "spm_model.h"
#include "zip_files.h"

#include <sys/stat.h>

#define SPACE "\xe2\x96\x81"
#define METADATA "{\"package_version\": \"1.9\", \"from_code\": \"xx\", \"to_code\": \"yy\"}"

static const struct zip_wrong honest;
static const char *const files[] = {"metadata.json", "sentencepiece.model", "model/model.bin",
                                    "model/source_vocabulary.txt", "model/target_vocabulary.txt"};
enum { FILES = sizeof files / sizeof *files };

/* What is wrong with a package. */
struct fault {
    const char *left_out, *file, *text; /* a file; one with another text */
    const char *entry;                  /* a file whose entry is wrong: */
    struct zip_wrong wrong;
    const char *says;
};

/* The parts of a package, in the test's folder. */
static void write_parts(const heed_model *m)
{
    static struct bytes b;
    static const char *const pieces[] = {SPACE "q", SPACE "a", "d", "c", "b", SPACE "x", "z", "y"};
    write_ct2(m, 6);
    write_lines("source_vocabulary.txt", "<s>\n</s>\n" SPACE "x\ny\nz\n");
    write_lines("target_vocabulary.txt", "<s>\n</s>\n" SPACE "a\nb\nc\nd\n");
    write_lines("metadata.json", METADATA);
    b.size = 0;
    put_piece(&b, "<unk>", 0, UNKNOWN);
    put_piece(&b, "<s>", 0, CONTROL);
    put_piece(&b, "</s>", 0, CONTROL);
    for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++)
        put_piece(&b, pieces[i], -(float)i, NORMAL);
    put_specs(&b, 1, NULL, 0);
    write_plain(in_folder("sentencepiece.model"), b.at, b.size);
}

static const char *plain_name(const char *name)
{
    const char *slash = strrchr(name, '/');
    return slash ? slash + 1 : name;
}

static bool is(const char *name, const char *other)
{
    return other && strcmp(name, other) == 0;
}

/* The parts as an archive whose folder is `inside`. */
static const char *write_package(const char *inside, const struct fault *fault)
{
    static char path[200];
    static unsigned char bytes[1 << 16];
    struct zip_out z = {0};
    for (int i = 0; i < FILES; i++) {
        char name[64];
        FILE *f = fopen(in_folder(plain_name(files[i])), "rb");
        assert_non_null(f);
        size_t n = fread(bytes, 1, sizeof bytes, f);
        assert_int_equal(fclose(f), 0);
        if (is(files[i], fault->left_out))
            continue;
        if (is(files[i], fault->file))
            n = (size_t)snprintf((char *)bytes, sizeof bytes, "%s", fault->text);
        snprintf(name, sizeof name, "%s%s", inside, files[i]);
        zip_add(&z, name, bytes, n, is(files[i], fault->entry) ? &fault->wrong : &honest);
    }
    snprintf(path, sizeof path, "%s", in_folder("xx_yy.argosmodel"));
    zip_write(&z, path);
    return path;
}

/* The model's own log-probabilities, and pieces with the ids of its lists. */
static void check(const char *path, const double expected[4])
{
    static const int32_t target[] = {3, 2, 5};
    heed_error err = {0};
    heed_vocab *v[2];
    heed_tokens t;
    double found[4];
    heed_engine *e = heed_engine_open(path, NULL, &err);
    if (!e || heed_vocabs_open(path, NULL, NULL, &v[0], &v[1], &err))
        fail_msg("%s", err.text);
    const heed_tokens source = {source_ids, 4};
    log_p(e, &source, target, 4, found);
    for (int i = 0; i < 4; i++)
        assert_true(fabs(found[i] - expected[i]) < 1e-6); /* the file's 32 bits */
    heed_arena *arena = heed_arena_new(NULL, NULL);
    assert_int_equal(heed_vocab_encode(v[0], "xyz q", 5, arena, &t, &err), HEED_OK);
    static const int32_t ids[] = {2, 3, 4, 5}, said[] = {2, 3, 2, 5};
    assert_int_equal(t.count, 4);
    assert_memory_equal(t.id, ids, sizeof ids); /* q is not in the list */
    const char *text;
    assert_int_equal(heed_vocab_decode(v[1], said, 4, arena, &text, &err), HEED_OK);
    assert_string_equal(text, "ab ad");
    assert_int_equal(heed_vocab_special(v[1]).eos, 1);
    heed_arena_free(arena);
    heed_vocabs_free(v[0], v[1]);
    heed_engine_free(e);
}

static void remove_files(const char *of, const char *const *names)
{
    char path[300];
    for (; *names; names++) {
        snprintf(path, sizeof path, "%s/%s", of, *names);
        remove(path);
    }
    remove(of);
}

/* Catches an archive's entries read as others, ids of SentencePiece's instead of the lists', a
 * folder of another depth, and a package unpacked by hand that does not open; a converted package
 * that answers otherwise. */
static void as_found(void **state)
{
    static const int32_t target[] = {3, 2, 5};
    static const char *const converted[] = {"config.json", "model.safetensors", "source.spm",
                                            "target.spm", NULL};
    static const char *const unpacked[] = {"model.bin", "source_vocabulary.txt",
                                           "target_vocabulary.txt", NULL};
    (void)state;
    heed_error err = {0};
    heed_model *m = small_model(false);
    heed_engine *own = heed_engine_new(m, NULL, &err);
    assert_non_null(own);
    double expected[4];
    const heed_tokens source = {source_ids, 4};
    log_p(own, &source, target, 4, expected);
    write_parts(m);
    const char *path = write_package("", &(struct fault){0});
    check(path, expected);
    path = write_package("translate-xx_yy-1_9/", &(struct fault){0});
    assert_true(heed_found_is(path));
    check(path, expected);

    heed_arena *arena = heed_arena_new(NULL, NULL);
    const char *json;
    assert_int_equal(heed_found_describe(path, arena, &json, &err), HEED_OK);
    assert_non_null(strstr(json, "\"publisher\": \"Argos Translate\""));
    assert_non_null(strstr(json, "\"to_code\": \"yy\""));
    heed_arena_free(arena);

    char folder_of[200];
    snprintf(folder_of, sizeof folder_of, "%s", in_folder("mine"));
    if (heed_convert(path, folder_of, HEED_NUMBERS_FP32, &err))
        fail_msg("%s", err.text);
    check(folder_of, expected);
    remove_files(folder_of, converted);

    snprintf(folder_of, sizeof folder_of, "%s", in_folder("model"));
    mkdir(folder_of, 0777);
    for (int i = 2; i < FILES; i++)
        assert_int_equal(rename(in_folder(plain_name(files[i])), in_folder(files[i])), 0);
    assert_int_equal(remove(path), 0);
    check(folder, expected);
    remove_files(folder_of, unpacked);
    heed_engine_free(own);
    heed_model_free(m);
}

/* Catches packages that are opened though something is missing, wrong, or made to fill a memory;
 * and sentences that do not say what. */
static void refused(void **state)
{
    static const struct fault cases[] = {
        {.left_out = "model/model.bin", .says = "it has no 'p/model/model.bin' inside"},
        {.left_out = "metadata.json", .says = "it has no 'model/model.bin' inside"},
        {.left_out = "sentencepiece.model",
         .says = "there is no sentencepiece.model in its package"},
        {.left_out = "model/source_vocabulary.txt", .says = "there is no source_vocabulary.txt"},
        {.file = "metadata.json", .text = "{\"target_prefix\": \"__de__\"}", .says = "'__de__'"},
        {.file = "metadata.json", .text = "{", .says = "p/metadata.json' line 1"},
        {.file = "model/target_vocabulary.txt", .text = "<s>\n</s>\n", .says = "it has 2 tokens"},
        {.file = "sentencepiece.model", .text = "x", .says = "sentencepiece.model'"},
        {.entry = "model/model.bin",
         .wrong = {.flags = 1},
         .says = "entry 'p/model/model.bin' is encrypted"},
        {.entry = "metadata.json",
         .wrong = {.method = 12},
         .says = "is compressed by method 12, expected stored or deflated"},
        {.entry = "metadata.json",
         .wrong = {.announced = 4000000000},
         .says = "announces 4000000000 bytes from"},
        {.entry = "metadata.json", .wrong = {.announced = 20}, .says = "gives more than its 20"},
        {.entry = "metadata.json", .wrong = {.announced = 1000}, .says = "bytes, expected 1000"},
    };
    (void)state;
    heed_model *m = small_model(false);
    write_parts(m);
    heed_model_free(m);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        heed_error err = {0};
        heed_vocab *v[2];
        const char *path = write_package("p/", &cases[i]);
        heed_engine *e = heed_engine_open(path, NULL, &err);
        if (e && !heed_vocabs_open(path, NULL, NULL, &v[0], &v[1], &err))
            fail_msg("opens, without saying '%s'", cases[i].says);
        if (!strstr(err.text, cases[i].says))
            fail_msg("'%s' does not say '%s'", err.text, cases[i].says);
        heed_engine_free(e);
    }
}

/* Catches an archive that unpacks to a hundred times its size, and one that is cut short or no
 * archive at all. */
static void bombs(void **state)
{
    (void)state;
    heed_error err = {0};
    struct zip_out z = {0};
    const char *path = in_folder("bomb.argosmodel");
    unsigned char *noise = malloc(1 << 20);
    heed_rng rng = heed_rng_stream(&(heed_rng_key){.seed = 1});
    for (int i = 0; i < 1 << 20; i++)
        noise[i] = (unsigned char)(256 * heed_rng_uniform(&rng, (uint64_t)i));
    zip_add(&z, "model/model.bin", noise, 1 << 20, &(struct zip_wrong){.announced = 1u << 29});
    zip_add(&z, "metadata.json", METADATA, sizeof METADATA - 1, &honest);
    zip_write(&z, path);
    free(noise);
    assert_null(heed_engine_open(path, NULL, &err));
    assert_non_null(strstr(err.text, "to 536870912 bytes, as no model does"));
    write_plain(path, "PK\3\4 and no more", 16);
    err = (heed_error){0};
    assert_null(heed_engine_open(path, NULL, &err));
    assert_non_null(strstr(err.text, "it is no zip archive, or cut short"));
    char behind[200];
    snprintf(behind, sizeof behind, "%s/nothing", in_folder("metadata.json"));
    write_plain(in_folder("metadata.json"), METADATA, sizeof METADATA - 1);
    err = (heed_error){0};
    assert_null(heed_vocab_open(behind, NULL, NULL, &err));
    assert_non_null(strstr(err.text, "metadata.json': it is no zip archive"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(as_found, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(refused, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(bombs, make_folder, remove_folder),
    };
    return cmocka_run_group_tests_name("argos", tests, NULL, NULL);
}
