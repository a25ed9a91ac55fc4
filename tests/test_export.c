/* test_export.c: models that heed made, written for other programs and opened again as found: the
 * same scores; and converted back. */
#include "small_transformer.h"

#include "files/found.h"

#include <heed/engine.h>
#include <heed/io.h>
#include <stdlib.h>

#include "spm_model.h"
#include "temp_folder.h"

#include <sys/stat.h>

enum { PIECES = 27, FIRST = 13 /* behind the special ones */, N = 5 };

static char kept[64]; /* the folder of the whole test */

static void use(const char *name)
{
    snprintf(folder, sizeof folder, "%.40s/%.20s", kept, name);
    mkdir(folder, 0777);
}

static void write_text(const char *name, const char *text)
{
    write_plain(in_folder(name), text, strlen(text));
}

/* A directory of heed's: drawn weights, biases among them, and pieces of a letter each. */
static void write_model(const char *name, const heed_model_config *wanted)
{
    static struct bytes b;
    heed_error err = {0};
    use(name);
    put_specials(&b);
    for (int i = FIRST; i < PIECES; i++) {
        char text[8];
        snprintf(text, sizeof text, "%s%c", i % 2 ? "" : "\xe2\x96\x81", 'a' + i - FIRST);
        put_piece(&b, text, (float)-i, NORMAL);
    }
    put_specs(&b, 1, NULL, 0);
    write_plain(in_folder("shared.spm"), b.at, b.size);
    write_text("sample.tsv", "b d f\tb d\nb\td b f\n");
    heed_model_config c = *wanted;
    c.source_vocabulary = c.target_vocabulary = PIECES;
    heed_model *m = new_model(&c);
    heed_params *p = heed_model_params(m);
    for (int i = 0; i < heed_params_count(p); i++) {
        const heed_param_info one = heed_params_entry(p, i);
        if (one.role == HEED_ROLE_PLAIN)
            for (int64_t k = 0; k < heed_tensor_count(one.tensor); k++)
                heed_tensor_data(one.tensor)[k] +=
                    (heed_real)(float)(0.2 * sin(1.3 * (double)k + i));
    }
    heed_tensor *bias = heed_params_find(p, "output.bias");
    heed_tensor_data(bias)[HEED_BOS] = -1e4f; /* which Marian has not */
    const heed_text_config text = {.tokens = HEED_UNIGRAM};
    if (heed_params_save(p, in_folder("model.safetensors"), &err) ||
        heed_model_describe(folder, &c, &text, &err))
        fail_msg("%s", err.text);
    heed_model_free(m);
}

static heed_model_config student(void)
{
    heed_model_config c = small_config();
    heed_transformer_config *t = &c.transformer;
    c.d = 64;
    t->ff = 128;
    t->decoder_unit = HEED_DECODER_UNIT_SSRU;
    t->positions = HEED_POSITIONS_SINUSOID_MARIAN;
    t->zero_start = t->attention_bias = t->output_bias = true;
    return c;
}

/* Marian's ids: </s> 0, <unk> 1, no <s>. */
static int32_t marian_id(int32_t id)
{
    return id == HEED_EOS ? 0 : id == HEED_UNK ? 1 : id - 1;
}

/* log P of some tokens by the model in a folder of the test. */
static void score_of(const char *name, bool marian, heed_real *log_p)
{
    static const int32_t source[] = {15, 17, 19}, said[N] = {HEED_BOS, 17, 14, 20, 22};
    heed_error err = {0};
    int32_t id[3], fed[N], wanted[N];
    use(name);
    for (int i = 0; i < 3; i++)
        id[i] = marian ? marian_id(source[i]) : source[i];
    for (int i = 0; i < N; i++) {
        const int32_t next = i + 1 < N ? said[i + 1] : HEED_EOS;
        wanted[i] = marian ? marian_id(next) : next;
        fed[i] = i && marian ? marian_id(said[i]) : marian ? 0 : said[i];
    }
    heed_engine *e = heed_engine_open(folder, NULL, &err);
    heed_session *s =
        e ? heed_session_new(e, &(heed_session_options){.threads = 1}, NULL, &err) : NULL;
    const heed_tokens tokens = {id, 3};
    const heed_extension x = {.tokens = {fed, N}, .wanted = wanted, .log_p = log_p};
    if (!s || heed_session_add(s, &tokens, 1, &err) || heed_session_extend(s, &x, 1, NULL, &err))
        fail_msg("%s", err.text);
    heed_session_free(s);
    heed_engine_free(e);
}

static void check_near(const heed_real *a, const heed_real *b, double most)
{
    for (int i = 0; i < N; i++)
        if (!(fabs((double)a[i] - (double)b[i]) <= most))
            fail_msg("log P of token %d is %.7f, expected %.7f", i, (double)a[i], (double)b[i]);
}

static void export_to(const char *from, const char *to, heed_export_form form)
{
    char source[80], target[80];
    heed_error err = {0};
    snprintf(source, sizeof source, "%s/%s", kept, from);
    snprintf(target, sizeof target, "%s/%s", kept, to);
    if (heed_export(source, target, form, NULL, &err))
        fail_msg("%s", err.text);
}

static void convert_to(const char *from, const char *to, heed_number_kind kind)
{
    char source[80], target[80];
    heed_error err = {0};
    snprintf(source, sizeof source, "%s/%s", kept, from);
    snprintf(target, sizeof target, "%s/%s", kept, to);
    if (heed_convert(source, target, kind, &err))
        fail_msg("%s", err.text);
}

/* The same text has the same pieces, whatever their ids. */
static void check_vocabulary(const char *name)
{
    heed_error err = {0};
    heed_vocab *source, *target;
    heed_tokens t;
    heed_arena *arena = heed_arena_new(NULL, NULL);
    use(name);
    if (heed_vocabs_open(folder, NULL, NULL, &source, &target, &err) ||
        heed_vocab_encode(source, "bc f<ph3>", 9, arena, &t, &err))
        fail_msg("%s", err.text);
    assert_int_equal(t.count, 4);
    assert_string_equal(heed_vocab_piece(source, t.id[0]), "\xe2\x96\x81"
                                                           "b");
    assert_string_equal(heed_vocab_piece(source, t.id[3]), "<ph3>");
    heed_arena_free(arena);
    heed_vocabs_free(source, target);
}

/* The largest sum of two weights that are multiplied side by side, and the largest weight. */
static void largest(const heed__found_tensor *t, bool table, int *pair, int *one)
{
    const int8_t *w = (const int8_t *)t->data;
    const int64_t next = table ? 1 : t->dim[1];
    *pair = *one = 0;
    for (int64_t i = 0; i < t->count; i++) {
        const int64_t k = table ? i % t->dim[1] : i / t->dim[1];
        *one = abs(w[i]) > *one ? abs(w[i]) : *one;
        if (k % 2 == 0 && abs(w[i] + w[i + next]) > *pair)
            *pair = abs(w[i] + w[i + next]);
    }
}

/* Catches weights whose products leave 16 bits, so that engines without VNNI saturate, also in the
 * output's table, which Marian quantises anew: its largest weight must stay 127. */
static void check_pairs(const char *name)
{
    heed_error err = {0};
    const void *bytes;
    size_t size;
    int pair, one, matrices = 0;
    use(name);
    heed__found *f = heed__found_new(name, NULL, &err);
    if (heed__found_map(f, in_folder("model.intgemm.alphas.bin"), &bytes, &size, &err) ||
        heed__marian_read(f, bytes, size, &err))
        fail_msg("%s", err.text);
    for (int64_t i = 0; i < f->count; i++) {
        const heed__found_tensor *t = &f->tensor[i];
        const bool table = strcmp(t->name, "Wemb") == 0;
        if (t->type != HEED__FOUND_I8 || t->rank != 2)
            continue;
        largest(t, table, &pair, &one);
        assert_true(pair <= 129);
        assert_true(!table || one == 127);
        matrices++;
    }
    assert_true(matrices > 10);
    heed__found_free(f);
}

/* Catches a tensor of another name or place, a vocabulary whose ids are not the model's, int8 that
 * is far from what it stands for, a conversion that is not the found model to the last bit. */
static void marian_and_firefox(void **state)
{
    (void)state;
    heed_real own[N], npz[N], int8[N], again[N];
    heed_model_config c = student();
    write_model("student", &c);
    score_of("student", false, own);
    export_to("student", "marian", HEED_EXPORT_MARIAN);
    score_of("marian", true, npz);
    check_near(npz, own, 2e-5);
    check_vocabulary("marian");
    export_to("student", "firefox", HEED_EXPORT_FIREFOX);
    score_of("firefox", true, int8);
    check_near(int8, own, 0.2);
    check_vocabulary("firefox");
    check_pairs("firefox");
    convert_to("firefox", "again", HEED_NUMBERS_INT8);
    score_of("again", true, again);
    assert_memory_equal(again, int8, sizeof again);
    check_vocabulary("again");
    convert_to("marian", "plain", HEED_NUMBERS_FP32);
    score_of("plain", true, again);
    check_near(again, npz, 1e-6);
    c.transformer.pre_norm = true;
    c.transformer.decoder_unit = HEED_DECODER_UNIT_SELF;
    c.tying = HEED_TIE_NONE;
    write_model("pre", &c);
    score_of("pre", false, own);
    export_to("pre", "pre-marian", HEED_EXPORT_MARIAN);
    score_of("pre-marian", true, npz);
    check_near(npz, own, 2e-5);
}

/* Catches the same of Hugging Face's form, with either start, and a mapped vocabulary that loses
 * its ids on the way back. */
static void hugging_face(void **state)
{
    (void)state;
    heed_real own[N], written[N], again[N];
    heed_model_config c = student();
    c.transformer.decoder_unit = HEED_DECODER_UNIT_SELF;
    c.transformer.positions = HEED_POSITIONS_SINUSOID_HALVES;
    c.transformer.norm_eps = 1e-5; /* that of PyTorch */
    c.transformer.zero_start = c.transformer.attention_bias = false;
    write_model("halves", &c);
    score_of("halves", false, own);
    export_to("halves", "hf", HEED_EXPORT_HUGGING_FACE);
    score_of("hf", false, written);
    check_near(written, own, 2e-5);
    check_vocabulary("hf");
    convert_to("hf", "hf-heed", HEED_NUMBERS_FP32);
    score_of("hf-heed", false, again);
    check_near(again, written, 1e-6);
    check_vocabulary("hf-heed");
}

static void refuses(const heed_model_config *c, const char *name, heed_export_form form,
                    const char *says)
{
    char source[80], target[80];
    heed_error err = {0};
    write_model(name, c);
    snprintf(source, sizeof source, "%s/%s", kept, name);
    snprintf(target, sizeof target, "%s/%s-out", kept, name);
    assert_int_equal(heed_export(source, target, form, NULL, &err), HEED_ARGUMENT);
    if (!strstr(err.text, says))
        fail_msg("'%s' does not say '%s'", err.text, says);
}

/* Catches a model that another program would compute otherwise, written without a word. */
static void refused(void **state)
{
    (void)state;
    heed_model_config c = student();
    c.transformer.positions = HEED_POSITIONS_SINUSOID;
    refuses(&c, "r1", HEED_EXPORT_MARIAN, "--positions sinusoid-marian");
    refuses(&c, "r2", HEED_EXPORT_HUGGING_FACE, "--positions sinusoid-halves");
    c = student();
    c.transformer.zero_start = false;
    refuses(&c, "r3", HEED_EXPORT_FIREFOX, "--zero-start");
    c = student();
    c.transformer.ff = 100;
    refuses(&c, "r4", HEED_EXPORT_FIREFOX, "expected multiples of 64");
    c = student();
    write_model("r5", &c);
    remove(in_folder("sample.tsv"));
    heed_error err = {0};
    char target[80];
    snprintf(target, sizeof target, "%s/r5-out", kept);
    assert_int_equal(heed_export(folder, target, HEED_EXPORT_FIREFOX, NULL, &err), HEED_ARGUMENT);
    assert_non_null(strstr(err.text, "give --sample FILE"));
    err = (heed_error){0};
    assert_int_equal(heed_export(folder, folder, HEED_EXPORT_MARIAN, NULL, &err), HEED_ARGUMENT);
    assert_non_null(strstr(err.text, "is not empty"));
}

static int begin(void **state)
{
    const int rc = make_folder(state);
    strcpy(kept, folder);
    return rc;
}

static int end(void **state)
{
    (void)state;
    DIR *d = opendir(kept);
    for (struct dirent *e; d && (e = readdir(d));)
        if (*e->d_name != '.') {
            use(e->d_name);
            remove_folder(state);
        }
    closedir(d);
    return rmdir(kept);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(marian_and_firefox, begin, end),
        cmocka_unit_test_setup_teardown(hugging_face, begin, end),
        cmocka_unit_test_setup_teardown(refused, begin, end),
    };
    return cmocka_run_group_tests_name("models for other programs", tests, NULL, NULL);
}
