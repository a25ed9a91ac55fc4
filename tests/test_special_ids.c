/* test_special_ids.c: vocabularies whose special tokens stand elsewhere than in heed's own. */
#include "small_transformer.h"
#include "temp_folder.h"

#include <heed/search.h>
#include <stdio.h>

/* Token i of heed's own order is token VOCABULARY - 1 - i here. */
static int32_t turned(int32_t id)
{
    return VOCABULARY - 1 - id;
}

static heed_tokens turned_tokens(heed_arena *arena, heed_tokens t)
{
    int32_t *id = heed_arena_allocate(arena, (size_t)t.count * sizeof *id);
    for (int64_t i = 0; i < t.count; i++)
        id[i] = turned(t.id[i]);
    return (heed_tokens){id, t.count};
}

/* As Marian has it: nothing is BOS, and what begins is the padding. */
static heed_special_ids turned_ids(void)
{
    return (heed_special_ids){.unk = turned(HEED_UNK),
                              .bos = -1,
                              .eos = turned(HEED_EOS),
                              .pad = turned(HEED_BOS),
                              .mask = -1,
                              .cls = -1,
                              .sep = -1,
                              .start = turned(HEED_BOS),
                              .placeholder = -1};
}

/* The same model, its tables upside down. */
static heed_model *turned_model(const heed_model *m)
{
    heed_model_config c = *heed_model_configuration(m);
    c.ids = (heed_pair_ids){turned_ids(), turned_ids()};
    heed_model *other = new_model(&c);
    const heed_params *from = heed_model_params(m), *to = heed_model_params(other);
    for (int i = 0; i < heed_params_count(from); i++) {
        heed_param_info info = heed_params_entry(from, i);
        heed_tensor *t = heed_params_find(to, info.name);
        const int64_t n = heed_tensor_count(t), rows = heed_tensor_shape(t).dim[0];
        const bool table = strstr(info.name, "table") != NULL;
        for (int64_t k = 0; k < n; k++) {
            const int64_t row = k / (n / rows), rest = k % (n / rows);
            const int64_t place = table ? (rows - 1 - row) * (n / rows) + rest : k;
            heed_tensor_data(t)[place] = heed_tensor_data(info.tensor)[k];
        }
    }
    return other;
}

static void search_all(const heed_model *m, const heed_search_options *o, const heed_tokens *source,
                       int64_t count, heed_arena *arena, heed_hypothesis *out)
{
    heed_error err = {0};
    heed_engine *e = heed_engine_new(m, NULL, &err);
    heed_session *s =
        e ? heed_session_new(e, &(heed_session_options){.threads = 1}, NULL, &err) : NULL;
    if (!s || heed_search(s, o, source, count, arena, out, &err))
        fail_msg("%s", err.text);
    heed_session_free(s);
    heed_engine_free(e);
}

/* Catches a place in engine, search or batches that still believes in ids 0, 1 and 2. */
static void same_answers(void **state)
{
    (void)state;
    enum { COUNT = 12, N_BEST = 3 };
    static const heed_search_options options[] = {
        {.beam = 4, .n_best = N_BEST, .length_penalty = 0.6, .extra_length = 6, .min_length = 2},
        {.beam = 1, .n_best = 1, .extra_length = 6, .no_repeat = 2, .suppress_unk = true},
    };
    struct pairs *p = draw_pairs(COUNT, 5);
    heed_tokens source[COUNT];
    for (int i = 0; i < COUNT; i++)
        source[i] = turned_tokens(p->arena, p->source[i]);
    for (int arch = 0; arch < ARCHITECTURES; arch++)
        for (int k = 0; k < 2; k++) {
            heed_model_config c = small_config_of(arch);
            heed_model *m = new_model(&c), *other = turned_model(m);
            heed_hypothesis a[COUNT * N_BEST], b[COUNT * N_BEST];
            search_all(m, &options[k], p->source, COUNT, p->arena, a);
            search_all(other, &options[k], source, COUNT, p->arena, b);
            for (int i = 0; i < COUNT * options[k].n_best; i++) {
                assert_int_equal(a[i].count, b[i].count);
                for (int64_t t = 0; t < a[i].count; t++)
                    assert_int_equal(turned(a[i].id[t]), b[i].id[t]);
                assert_near(b[i].score, a[i].score, SAME);
            }
            heed_model_free(m);
            heed_model_free(other);
        }
    pairs_free(p);
}

/* Catches a batch that begins its targets with BOS instead of `start`, or ends sources that have
 * no end. */
static void packing(void **state)
{
    (void)state;
    heed_arena *arena = heed_arena_new(NULL, NULL);
    const heed_tokens x = {(const int32_t[]){5, 6}, 2};
    static const int32_t in[] = {9, 5, 6}, out[] = {5, 6, 7};
    heed_pair_ids ids = {turned_ids(), turned_ids()};
    ids.source.eos = -1;
    ids.target.start = 9;
    ids.target.eos = 7;
    heed_batch b;
    assert_int_equal(heed_batch_pack(arena, &ids, &x, &x, 1, &b, NULL), HEED_OK);
    assert_int_equal(b.source.rows->rows, 2);
    assert_memory_equal(b.source.ids, x.id, 2 * sizeof *x.id);
    assert_memory_equal(b.target.ids, in, sizeof in);
    assert_memory_equal(b.wanted, out, sizeof out);
    heed_arena_free(arena);
}

/* Catches ids lost on their way through config.json, and ids believed before they are checked. */
static void in_config(void **state)
{
    (void)state;
    heed_arena *arena = heed_arena_new(NULL, NULL);
    heed_model_config c = small_config(), back;
    heed_text_config text = {0}, text_back;
    heed_error err = {0};
    c.ids.target = turned_ids();
    assert_int_equal(heed_model_describe(folder, &c, &text, &err), HEED_OK);
    assert_int_equal(heed_model_read_config(folder, arena, &back, &text_back, &err), HEED_OK);
    const heed_special_ids own = HEED_OWN_IDS;
    assert_memory_equal(&back.ids.source, &own, sizeof own);
    assert_memory_equal(&back.ids.target, &c.ids.target, sizeof own);
    static const struct {
        const char *ids, *expected;
    } wrong[] = {
        {"unk=17", "special token 'unk' is 17, expected 0 to 16"},
        {"eos=-1", "special token 'eos' is -1, expected 0 to 16"},
        {"unk=1 end=3", "special token 'end' is not known"},
        {"unk", "special tokens 'unk', expected as in 'unk=0 eos=2'"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        err = (heed_error){0};
        FILE *f = fopen(in_folder("config.json"), "w");
        fprintf(f,
                "{\"source-vocabulary\": 17, \"target-vocabulary\": 17, \"source-ids\": \"%s\"}\n",
                wrong[i].ids);
        fclose(f);
        assert_int_equal(heed_model_read_config(folder, arena, &back, &text_back, &err),
                         HEED_FORMAT);
        assert_non_null(strstr(err.text, wrong[i].expected));
    }
    heed_arena_free(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_answers),
        cmocka_unit_test(packing),
        cmocka_unit_test_setup_teardown(in_config, make_folder, remove_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
