/* test_generate.c: language models write and judge text: against the tape, which sees the whole
 * window again for every token; against exact probabilities; character by character. */
#include "base/folder.h"
#include "engine/packed_weights.h"
#include "generate/generator.h"

#include <heed/language.h>

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "failing_allocator.h"

#define CONTEXT 12
#define NEAR (sizeof(heed_real) == 8 ? 1e-9 : 2e-4)

struct place {
    char folder[64], text[96], model[96];
};

static const char text[] = "the cat sat on the m\xc3\xa4t\n\n  the dog \xf0\x9f\x98\x80 ran\n"
                           "a cat and a dog, and the end.\nthe \xe2\x9c\x93 mark\n";

static void write_file(const char *path, const char *bytes, size_t n)
{
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, n, f), n);
    assert_int_equal(fclose(f), 0);
}

static int begin(void **state)
{
    struct place *p = calloc(1, sizeof *p);
    strcpy(p->folder, "/tmp/heed-test-XXXXXX");
    if (!mkdtemp(p->folder))
        return -1;
    snprintf(p->text, sizeof p->text, "%s/text", p->folder);
    snprintf(p->model, sizeof p->model, "%s/m", p->folder);
    write_file(p->text, text, sizeof text - 1);
    *state = p;
    return 0;
}

static int end(void **state)
{
    struct place *p = *state;
    const heed_status status = heed__folder_remove(p->folder, NULL);
    free(p);
    return status ? -1 : 0;
}

/* A model that has learned next to nothing, in p->model. */
static void make_model(const struct place *p, const char *const *more)
{
    heed_error err = {0};
    heed_language_recipe r;
    heed_train_result result;
    heed_arena *arena = heed_arena_new(NULL, NULL);
    const char *words[64] = {"--text",           p->text, "--valid-text",  p->text,
                             "--context",        "12",    "--d",           "24",
                             "--decoder-layers", "2",     "--ff",          "32",
                             "--heads",          "4",     "--max-updates", "2",
                             "--warmup",         "1",     "--threads",     "1",
                             "--average",        "0",     "--init",        "xavier",
                             "--batch-tokens",   "48"};
    int n = 26;
    for (; *more; more++)
        words[n++] = *more;
    heed__folder_remove(p->model, NULL);
    if (heed_language_recipe_parse(&r, n, words, arena, &err))
        fail_msg("%s", err.text);
    heed_trainer *t = heed_language_trainer_new(p->model, &r, NULL, NULL, &err);
    if (!t || heed_trainer_run(t, &result, &err))
        fail_msg("%s", err.text);
    heed_trainer_free(t);
    heed_arena_free(arena);
}

static heed_generator *open_model(const struct place *p, int threads)
{
    heed_error err = {0};
    heed_generator *g = heed_generator_open(p->model, threads, NULL, &err);
    if (!g)
        fail_msg("%s", err.text);
    return g;
}

/* ---- the oracle ---- */

struct oracle {
    heed_model *model;
    heed_tape *tape;
    int32_t view[CONTEXT]; /* what the model sees, by the rule of a context that slides */
    int64_t length;
    double log_p[512];
};

static void oracle_open(struct oracle *o, const struct place *p)
{
    heed_error err = {0};
    heed_model_config config;
    heed_text_config about;
    char path[128];
    heed_arena *arena = heed_arena_new(NULL, NULL);
    snprintf(path, sizeof path, "%s/model.safetensors", p->model);
    *o = (struct oracle){.length = 0};
    if (heed_model_read_config(p->model, arena, &config, &about, &err) ||
        !(o->model = heed_model_new(&config, 1, NULL, &err)) ||
        heed__weights_read(o->model, path, &err) ||
        !(o->tape = heed_tape_new(&(heed_tape_options){.threads = 1}, &err)))
        fail_msg("%s", err.text);
    heed_tape_set_training(o->tape, false);
    heed_tape_set_recording(o->tape, false);
    heed_arena_free(arena);
}

static void oracle_close(struct oracle *o)
{
    heed_tape_free(o->tape);
    heed_model_free(o->model);
}

/* A token more, and all that may follow it. */
static void oracle_add(struct oracle *o, int32_t token)
{
    if (o->length == CONTEXT) {
        memmove(o->view, o->view + CONTEXT / 2, CONTEXT / 2 * sizeof *o->view);
        o->length = CONTEXT / 2;
    }
    o->view[o->length++] = token;
    heed_tape_reset(o->tape);
    const heed_batch b = {
        .examples = 1,
        .target = {.rows = heed_segments_new(heed_tape_arena(o->tape), 1, &o->length),
                   .ids = o->view}};
    heed_tensor *y = heed_model_logits(o->model, o->tape, &b);
    if (!y)
        fail_msg("%s", heed_tape_error(o->tape)->text);
    const int64_t v = heed_model_configuration(o->model)->target_vocabulary;
    const heed_real *x = heed_tensor_data(y) + (o->length - 1) * v;
    double largest = -INFINITY, sum = 0;
    assert_true(v <= 512);
    for (int64_t i = 0; i < v; i++)
        largest = fmax(largest, (double)x[i]);
    for (int64_t i = 0; i < v; i++)
        sum += exp((double)x[i] - largest);
    for (int64_t i = 0; i < v; i++)
        o->log_p[i] = (double)x[i] - largest - log(sum);
}

static double oracle_best(const struct oracle *o)
{
    const int64_t v = heed_model_configuration(o->model)->target_vocabulary;
    double best = -INFINITY;
    for (int64_t i = 0; i < v; i++)
        best = fmax(best, o->log_p[i]);
    return best;
}

static const heed_generate_options greedy = {
    .max_tokens = 40, .top_p = 1, .repetition_penalty = 1, .past_end = true, .seed = 1};

static void check_greedy(const struct place *p, const char *prompt)
{
    struct oracle o;
    heed_generation out;
    heed_error err = {0};
    heed_tokens tokens;
    heed_generator *g = open_model(p, 1);
    heed_arena *arena = heed_arena_new(NULL, NULL);
    if (heed_generate(g, prompt, strlen(prompt), &greedy, 1, NULL, arena, &out, &err))
        fail_msg("%s", err.text);
    assert_int_equal(out.count, 40);
    assert_int_equal(out.stop, HEED_STOP_LENGTH);
    assert_int_equal(heed__generator_encode(g, prompt, strlen(prompt), arena, &tokens, &err), 0);
    oracle_open(&o, p);
    const int64_t from = tokens.count > CONTEXT ? tokens.count - CONTEXT : 0;
    for (int64_t i = from; i < tokens.count; i++)
        oracle_add(&o, tokens.id[i]);
    for (int64_t i = 0; i < out.count; i++) {
        const double found = o.log_p[out.id[i]];
        assert_true(fabs(found - out.log_p[i]) < NEAR);
        assert_true(found > oracle_best(&o) - NEAR);
        oracle_add(&o, out.id[i]);
    }
    oracle_close(&o);
    heed_arena_free(arena);
    heed_generator_free(g);
}

static void check_score(const struct place *p)
{
    struct oracle o;
    heed_text_score score;
    heed_error err = {0};
    heed_tokens tokens;
    heed_generator *g = open_model(p, 1);
    heed_arena *arena = heed_arena_new(NULL, NULL);
    const char *const paths[] = {p->text};
    if (heed_generator_score(g, paths, 1, NULL, NULL, NULL, &score, &err))
        fail_msg("%s", err.text);
    assert_int_equal(heed__generator_encode(g, text, sizeof text - 1, arena, &tokens, &err), 0);
    assert_int_equal(score.tokens, tokens.count - 1); /* a text that ends in a line end */
    assert_int_equal(score.bytes, sizeof text - 1);
    double nll = 0;
    oracle_open(&o, p);
    for (int64_t i = 0; i + 1 < tokens.count; i++) {
        oracle_add(&o, tokens.id[i]);
        nll -= o.log_p[tokens.id[i + 1]];
    }
    assert_true(fabs(score.nll / nll - 1) < NEAR);
    oracle_close(&o);
    heed_arena_free(arena);
    heed_generator_free(g);
}

/* Catches a cached context that is not what the model sees, a window that slides otherwise than
 * said, log-probabilities of other tokens; for packed models and those on the tape. */
static void test_oracle(void **state)
{
    const struct place *p = *state;
    static const char *const forms[][12] = {
        {"--tokens", "bytes", "--vocab-size", "280"},
        {"--tokens", "characters", "--positions", "rotary", "--norm", "rms", "--ff-gated",
         "--kv-heads", "2", "--no-attention-bias"},
        {"--tokens", "whitespace", "--positions", "none", "--position-bias", "alibi"},
        {"--tokens", "characters", "--attention-pattern", "band:3", "--no-pre-norm"},
        {"--tokens", "characters", "--attention-normaliser", "elu", "--tying", "none"},
        {"--tokens", "characters", "--attention-score", "additive"},
        {"--tokens", "wordpiece", "--vocab-size", "60", "--positions", "sinusoid"},
    };
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        make_model(p, forms[i]);
        check_greedy(p, "");
        check_greedy(p, "the cat");
        check_greedy(p, "the cat sat on the dog and the dog sat on the cat, and ran");
        check_score(p);
    }
}

/* ---- several samples ---- */

/* Catches samples that depend on each other, on the threads or not on the seed. */
static void test_samples(void **state)
{
    const struct place *p = *state;
    static const char *const form[] = {"--tokens", "characters", NULL};
    make_model(p, form);
    heed_arena *arena = heed_arena_new(NULL, NULL);
    heed_generate_options o = greedy;
    heed_generation many[5], one[2], other[1];
    o.temperature = 1;
    o.past_end = false;
    o.stop = (heed_option_list){(const char *const[]){"a", "th"}, 2}; /* rows end one by one */
    heed_generator *g = open_model(p, 1), *two = open_model(p, 2);
    assert_int_equal(heed_generate(g, "the", 3, &o, 5, NULL, arena, many, NULL), HEED_OK);
    assert_int_equal(heed_generate(two, "the", 3, &o, 2, NULL, arena, one, NULL), HEED_OK);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(many[i].count, one[i].count);
        assert_memory_equal(many[i].id, one[i].id, (size_t)one[i].count * sizeof *one[i].id);
        assert_memory_equal(many[i].log_p, one[i].log_p, (size_t)one[i].count * sizeof(double));
        assert_string_equal(many[i].text, one[i].text);
    }
    o.seed = 2;
    assert_int_equal(heed_generate(g, "the", 3, &o, 1, NULL, arena, other, NULL), HEED_OK);
    assert_true(other[0].count != one[0].count ||
                memcmp(other[0].id, one[0].id, (size_t)one[0].count * sizeof *one[0].id) != 0);
    for (int i = 0; i < 5; i++) {
        assert_null(strchr(many[i].text, 'a'));
        assert_null(strstr(many[i].text, "th"));
        assert_int_equal(strlen(many[i].text), many[i].size);
        assert_true(many[i].stop == HEED_STOP_LENGTH ? many[i].count == 40 : many[i].count <= 40);
    }
    heed_generator_free(two);
    heed_generator_free(g);
    heed_arena_free(arena);
}

/* ---- the distribution ---- */

enum { WORDS = 7, DRAWS = 20000 };
static const heed_real logits[WORDS] = {1, 3, 2, 2, -1, 0, (heed_real)-3.5};

/* How often each token is drawn, u going evenly from 0 to 1. */
static void draw_all(const heed_generate_options *o, const int32_t *context, int64_t length,
                     double share[WORDS])
{
    heed__token_chooser c;
    const heed_allocator a = heed__allocator_or_default(NULL);
    assert_int_equal(heed__token_chooser_init(&c, o, WORDS, &a, NULL), HEED_OK);
    memset(share, 0, WORDS * sizeof *share);
    for (int i = 0; i < DRAWS; i++) {
        const int32_t id = heed__token_choose(&c, logits, context, length, (i + 0.5) / DRAWS);
        assert_in_range(id, 0, WORDS - 1);
        share[id] += 1.0 / DRAWS;
    }
    heed__token_chooser_deinit(&c);
}

/* wanted: weights of the tokens, which need not add up to 1. */
static void check_shares(const heed_generate_options *o, const int32_t *context, int64_t length,
                         const double wanted[WORDS])
{
    double share[WORDS], all = 0;
    draw_all(o, context, length, share);
    for (int i = 0; i < WORDS; i++)
        all += wanted[i];
    for (int i = 0; i < WORDS; i++)
        assert_true(fabs(share[i] - wanted[i] / all) < 2.5 / DRAWS);
}

/* Catches temperature, top-k, top-p, min-p or the penalty that make another distribution than they
 * say, in another order, or on ties. */
static void test_distribution(void **state)
{
    (void)state;
    heed_generate_options o = {.temperature = 1, .top_p = 1, .repetition_penalty = 1};
    double all[WORDS], cold[WORDS];
    for (int i = 0; i < WORDS; i++) {
        all[i] = exp((double)logits[i]);
        cold[i] = exp((double)logits[i] / 0.5);
    }
    check_shares(&o, NULL, 0, all);
    o.temperature = 0.5;
    check_shares(&o, NULL, 0, cold);
    o.top_k = 2; /* of 2 and 3, which are equal, the first */
    check_shares(&o, NULL, 0, (double[WORDS]){0, cold[1], cold[2]});
    o.top_k = 4;
    check_shares(&o, NULL, 0, (double[WORDS]){cold[0], cold[1], cold[2], cold[3]});
    o = (heed_generate_options){.temperature = 1, .top_p = 0.6, .repetition_penalty = 1};
    check_shares(&o, NULL, 0, (double[WORDS]){0, all[1], all[2]});
    o.top_p = 0;
    check_shares(&o, NULL, 0, (double[WORDS]){0, 1});
    o.top_p = 0.9; /* of the three likeliest, which are all that is left */
    o.top_k = 3;
    check_shares(&o, NULL, 0, (double[WORDS]){0, all[1], all[2], all[3]});
    o = (heed_generate_options){
        .temperature = 1, .top_p = 1, .min_p = 0.3, .repetition_penalty = 1};
    check_shares(&o, NULL, 0, (double[WORDS]){0, all[1], all[2], all[3]});
    o.top_k = 2;
    o.min_p = 0.5;
    check_shares(&o, NULL, 0, (double[WORDS]){0, 1});
    o = (heed_generate_options){.temperature = 1, .top_p = 1, .repetition_penalty = 2};
    const int32_t context[] = {1, 4, 1};
    double less[WORDS];
    memcpy(less, all, sizeof less);
    less[1] = exp(1.5);
    less[4] = exp(-2.0);
    check_shares(&o, context, 3, less);
    o.temperature = 0; /* 2 has become the likeliest, before its equal 3 */
    check_shares(&o, context, 3, (double[WORDS]){0, 0, 1});
}

/* ---- text ---- */

/* The pieces of bytes. */
static int64_t spell(const heed_vocab *v, const char *bytes, size_t n, int32_t *id)
{
    heed_arena *arena = heed_arena_new(NULL, NULL);
    for (size_t i = 0; i < n; i++) {
        heed_tokens one;
        assert_int_equal(heed_vocab_encode(v, bytes + i, 1, arena, &one, NULL), HEED_OK);
        assert_int_equal(one.count, 1);
        id[i] = one.id[0];
    }
    heed_arena_free(arena);
    return (int64_t)n;
}

/* What is shown of bytes that come one by one, with `stop` or NULL; shown has room. */
static bool show_bytes(const heed_generator *g, const char *bytes, size_t n, const char *stop,
                       char *shown)
{
    int32_t id[256];
    const char *const items[] = {stop};
    const heed_option_list list = {items, stop ? 1 : 0};
    heed__written_text w;
    size_t all = 0;
    spell(g->vocab, bytes, n, id);
    assert_int_equal(heed__written_text_init(&w, g, &list, NULL), HEED_OK);
    for (size_t i = 0; i <= n && !w.stopped; i++) {
        const char *part;
        if (i < n)
            assert_int_equal(heed__written_text_add(&w, id, (int64_t)i + 1, 0, NULL), HEED_OK);
        else
            heed__written_text_end(&w);
        const size_t size = heed__written_text_take(&w, &part);
        assert_true(heed_utf8_valid(part, size, NULL));
        memcpy(shown + all, part, size);
        all += size;
    }
    const bool stopped = w.stopped;
    heed__written_text_end(&w);
    const char *part;
    const size_t size = heed__written_text_take(&w, &part);
    memcpy(shown + all, part, size);
    shown[all + size] = '\0';
    heed__written_text_deinit(&w);
    return stopped;
}

/* Catches half a character that is shown, bytes that are lost, a text to stop at that is shown in
 * part or missed where it lies across tokens, and text that is held back for ever. */
static void test_streaming(void **state)
{
    const struct place *p = *state;
    static const char *const form[] = {"--tokens", "bytes", "--vocab-size", "270", NULL};
    make_model(p, form);
    heed_generator *g = open_model(p, 1);
#define BAD "\xef\xbf\xbd"
    static const struct {
        const char *bytes, *stop, *shown;
        bool stopped;
    } cases[] = {
        {"plain", NULL, "plain", false},
        {"m\xc3\xa4t \xf0\x9f\x98\x80!", NULL, "m\xc3\xa4t \xf0\x9f\x98\x80!", false},
        {"a\xff"
         "b",
         NULL, "a" BAD "b", false},
        {"a\xc3"
         "b",
         NULL, "a" BAD "b", false},
        {"a\xe2\x9c", NULL, "a" BAD BAD, false}, /* the end of the text */
        {"a\xc0\x80", NULL, "a" BAD BAD, false},
        {"one. two", ". ", "one", true},
        {"abababac", "abac", "abab", true},
        {"ababab", "abac", "ababab", false},
        {"x\xe2\x9c\x93y", "\xe2\x9c\x93", "x", true},
        {"x\xe2\x9c\x94y", "\xe2\x9c\x93", "x\xe2\x9c\x94y", false},
        {"END", "END", "", true},
        {"E\nN", "\n", "E", true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char shown[256];
        const bool stopped =
            show_bytes(g, cases[i].bytes, strlen(cases[i].bytes), cases[i].stop, shown);
        assert_string_equal(shown, cases[i].shown);
        assert_int_equal(stopped, cases[i].stopped);
    }
    heed_generator_free(g);
}

struct heard {
    char text[4096];
    size_t size;
    int calls, most;
};

static bool hear(void *context, int64_t sample, const char *part, size_t size)
{
    struct heard *h = context;
    assert_int_equal(sample, 0);
    assert_true(size > 0 && heed_utf8_valid(part, size, NULL));
    memcpy(h->text + h->size, part, size);
    h->size += size;
    return ++h->calls != h->most;
}

/* Catches a stream that is not the text, with random bytes; one that cannot be stopped; and words
 * that lose the space between them. */
static void test_sink(void **state)
{
    const struct place *p = *state;
    static const char *const kinds[] = {"bytes", "characters", "whitespace", "wordpiece",
                                        "sentencepiece"};
    for (size_t k = 0; k < 5; k++) {
        const char *const form[] = {"--tokens", kinds[k], "--vocab-size", k ? "60" : "280", NULL};
        make_model(p, form);
        heed_generator *g = open_model(p, 1);
        heed_arena *arena = heed_arena_new(NULL, NULL);
        heed_generate_options o = greedy;
        heed_generation out;
        struct heard all = {.size = 0}, some = {.most = 3};
        const heed_generate_sink to_all = {hear, &all}, to_some = {hear, &some};
        o.temperature = 2;
        o.max_tokens = 200;
        assert_int_equal(heed_generate(g, "the cat", 7, &o, 1, &to_all, arena, &out, NULL), 0);
        assert_int_equal(all.size, out.size);
        assert_memory_equal(all.text, out.text, out.size);
        if (k == 2) /* one after the other, with what stands between words */
            assert_true(out.text[0] == ' ' || out.text[0] == '\n');
        assert_int_equal(heed_generate(g, "the cat", 7, &o, 1, &to_some, arena, &out, NULL), 0);
        assert_int_equal(out.stop, HEED_STOP_ASKED);
        assert_int_equal(some.calls, 3);
        heed_arena_free(arena);
        heed_generator_free(g);
    }
}

/* Catches memory that is lost, or a crash, where the n-th call for memory fails. */
static void test_memory(void **state)
{
    const struct place *p = *state;
    static const char *const form[] = {"--tokens", "characters", "--attention-pattern", "band:3",
                                       NULL};
    const char *const paths[] = {p->text};
    heed_generate_options o = greedy;
    o.temperature = 1;
    o.max_tokens = 20;
    make_model(p, form);
    bool done = false;
    for (int n = 1; !done && n < 2000; n += n < 200 ? 1 : 7) {
        struct failing failing = {.fail_at = n};
        const heed_allocator a = failing_allocator(&failing);
        heed_error err = {0};
        heed_generation out[3];
        heed_text_score score;
        heed_arena *arena = heed_arena_new(NULL, NULL);
        heed_generator *g = heed_generator_open(p->model, 1, &a, &err);
        if (g && !heed_generate(g, "the", 3, &o, 3, NULL, arena, out, &err))
            done = !heed_generator_score(g, paths, 1, NULL, NULL, NULL, &score, &err);
        assert_int_equal(err.status, done ? HEED_OK : HEED_MEMORY);
        heed_generator_free(g);
        heed_arena_free(arena);
        assert_int_equal(failing.held, 0);
    }
    assert_true(done);
}

/* Catches options that are taken as they are, whatever they say. */
static void test_refuses(void **state)
{
    const struct place *p = *state;
    static const char *const form[] = {"--tokens", "characters", NULL};
    static const heed_generate_options wrong[] = {
        {.max_tokens = 0, .top_p = 1, .repetition_penalty = 1},
        {.max_tokens = 1, .top_p = 2, .repetition_penalty = 1},
        {.max_tokens = 1, .top_p = 1, .repetition_penalty = 0},
        {.max_tokens = 1, .top_p = 1, .repetition_penalty = 1, .temperature = -1},
        {.max_tokens = 1, .top_p = 1, .repetition_penalty = 1, .min_p = -1},
        {.max_tokens = 1, .top_p = 1, .repetition_penalty = 1, .top_k = -1},
    };
    make_model(p, form);
    heed_generator *g = open_model(p, 1);
    heed_arena *arena = heed_arena_new(NULL, NULL);
    heed_generation out[2];
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_int_equal(heed_generate(g, "a", 1, &wrong[i], 1, NULL, arena, out, NULL),
                         HEED_ARGUMENT);
    assert_int_equal(heed_generate(g, "a", 1, &greedy, 0, NULL, arena, out, NULL), HEED_ARGUMENT);
    assert_int_equal(heed_generate(g, "a\xff", 2, &greedy, 1, NULL, arena, out, NULL),
                     HEED_ARGUMENT);
    assert_int_equal(heed_generate(g, "a", 1, &greedy, 2, NULL, arena, out, NULL), HEED_OK);
    assert_null(heed_generator_open(p->folder, 1, NULL, NULL));
    heed_arena_free(arena);
    heed_generator_free(g);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_oracle), TEST(test_samples), TEST(test_distribution), TEST(test_streaming),
        TEST(test_sink),   TEST(test_refuses), TEST(test_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
