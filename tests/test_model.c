/* Models behind their interface: facts, presets, attention maps, what is refused, memory. */
#include "small_transformer.h"

#include "failing_allocator.h"

/* ---- facts ---- */

/* Catches: a forecast of the work that counts a product on the wrong side, or not at all. */
static void costs_count_the_products(void **state)
{
    (void)state;
    heed_model_config config = small_config();
    heed_model *m = new_model(&config);
    heed_model_cost c = heed_model_costs(m);
    const int64_t d = 16, ff = 24;
    assert_int_equal(c.source_weights, 2 * (4 * d * d + 2 * d * ff) + 2 * 2 * d * d);
    assert_int_equal(c.target_weights, 2 * (6 * d * d + 2 * d * ff) + VOCABULARY * d);
    heed_model_free(m);
}

/* Catches: a matrix that would not be packed or quantised, or numbers that would be. */
static void parameters_know_their_role(void **state)
{
    (void)state;
    heed_model_config config = small_config();
    config.tying = HEED_TIE_NONE;
    config.transformer.positions = HEED_POSITIONS_LEARNED;
    heed_model *m = new_model(&config);
    const heed_params *p = heed_model_params(m);
    int count[3] = {0};
    for (int i = 0; i < heed_params_count(p); i++) {
        const heed_param_info e = heed_params_entry(p, i);
        const bool table = strstr(e.name, "table") || !strcmp(e.name, "output.weight");
        const bool matrix = !table && strstr(e.name, ".weight");
        assert_int_equal(e.role, table    ? HEED_ROLE_TABLE
                                 : matrix ? HEED_ROLE_MATRIX
                                          : HEED_ROLE_PLAIN);
        count[e.role]++;
    }
    /* qkv, out, in, out twice; qkv, out, q, kv, out, in, out twice; the rest is biases, gains and
     * two times positions. */
    assert_int_equal(count[HEED_ROLE_TABLE], 3);
    assert_int_equal(count[HEED_ROLE_MATRIX], 2 * 4 + 2 * 7);
    assert_int_equal(count[HEED_ROLE_PLAIN], 2 * 6 + 2 * 8 + 2);
    heed_model_free(m);
}

struct settings {
    heed_model_config model;
};
static const heed_option fields[] = {HEED_MODEL_OPTIONS(struct settings, model)};
static const heed_option_set options = {.command = "heed train",
                                        .fields = fields,
                                        .count = sizeof fields / sizeof *fields,
                                        .bundles = heed_model_presets};

static heed_model_config preset(const char *name)
{
    heed_arena *arena = heed_arena_new(NULL, NULL);
    struct settings s = {0};
    heed_option_result r;
    heed_error err = {0};
    if (heed_option_parse(&options, 2, (const char *const[]){"--preset", name}, &s, arena, &r,
                          &err))
        fail_msg("%s", err.text);
    heed_arena_free(arena);
    s.model.source_vocabulary = s.model.target_vocabulary = 37000;
    return s.model;
}

/* Catches: options that are not the paper's by default, presets that are not what they are called.
 * 63.0 million: the paper's base with 37000 pieces, counted by hand. */
static void presets_are_the_published_sizes(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        int64_t layers[2], d, ff, heads;
        double dropout;
    } sizes[] = {{"tiny", {4, 4}, 128, 256, 4, 0.1},  {"small", {3, 3}, 256, 1024, 4, 0.1},
                 {"deep", {6, 2}, 256, 1024, 4, 0.1}, {"student", {6, 2}, 256, 1536, 8, 0.1},
                 {"base", {6, 6}, 512, 2048, 8, 0.1}, {"big", {6, 6}, 1024, 4096, 16, 0.3}};
    for (int i = 0; i < 6; i++) {
        heed_model_config c = preset(sizes[i].name);
        assert_int_equal(c.encoder_layers, sizes[i].layers[0]);
        assert_int_equal(c.decoder_layers, sizes[i].layers[1]);
        assert_int_equal(c.d, sizes[i].d);
        assert_int_equal(c.transformer.ff, sizes[i].ff);
        assert_int_equal(c.transformer.heads, sizes[i].heads);
        assert_true(c.dropout == sizes[i].dropout);
        assert_string_equal(heed_model_presets()[i].name, sizes[i].name);
    }
    static const char *const recurrent[] = {"sutskever", "bahdanau", "luong"};
    for (int i = 0; i < 3; i++) {
        heed_model_config c = preset(recurrent[i]);
        assert_string_equal(heed_model_presets()[6 + i].name, recurrent[i]);
        assert_int_equal(c.arch, HEED_ARCH_RNN);
        assert_int_equal(c.rnn.attend, i);
        assert_int_equal(c.d, 512);
        heed_model_free(new_model(&c));
    }
    assert_null(heed_model_presets()[9].name);
    heed_model_config tiny = preset("tiny");
    heed_model *m = new_model(&tiny);
    const int64_t d = 128, ff = 256, layer = 4 * d * d + 2 * d * ff + ff + d + 4 * d;
    assert_int_equal(heed_params_trainable(heed_model_params(m)),
                     37000 * d + 4 * layer + 4 * (layer + 4 * d * d + 2 * d));
    assert_non_null(heed_params_find(heed_model_params(m), "encoder.0.ffn.in.weight"));
    heed_model_free(m);
}

/* ---- attention maps ---- */

static double entropy(const heed_real *p, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum -= p[i] > 0 ? (double)p[i] * log((double)p[i]) : 0;
    return sum;
}

/* The mean of entropy / log n over the rows of all maps with at least 4 keys. */
static double mean_entropy(const heed_model_config *config)
{
    heed_model *m = new_model(config);
    heed_tape *t = new_tape(1);
    struct pairs *p = draw_pairs(20, 8);
    heed_batch b = pack(p, 0, p->count);
    const heed_attention_map *maps;
    int64_t n = heed_model_attention(m, t, &b, &maps), rows = 0;
    assert_string_equal(heed_tape_error(t)->text, "");
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        for (int64_t q = 0; q < maps[i].queries; q++) {
            int64_t keys = maps[i].kind == HEED_DECODER_SELF ? q + 1 : maps[i].keys;
            if (keys < 4)
                continue;
            sum += entropy(maps[i].weight + q * maps[i].keys, keys) / log((double)keys);
            rows++;
        }
    pairs_free(p);
    heed_tape_free(t);
    heed_model_free(m);
    return sum / (double)rows;
}

/* Catches: scores that are large from the start, so that heads look at one token and learn
 * slowly: weights too large, or 1/sqrt(d_k) forgotten. */
static void attention_starts_out_even(void **state)
{
    (void)state;
    heed_model_config config = small_config();
    config.d = 64;
    config.transformer.heads = 2; /* d_k is 32: the scale counts */
    double scaled = mean_entropy(&config);
    config.transformer.scale_scores = false;
    double unscaled = mean_entropy(&config);
    assert_true(scaled > 0.85 && scaled <= 1);
    assert_true(unscaled < 0.6);
}

/* Catches: maps in another order, of the wrong sentence or head, rows that do not add up to 1,
 * causal maps that see ahead. */
static void attention_maps_are_in_order(void **state)
{
    (void)state;
    heed_model_config config = small_config();
    config.decoder_layers = 3;
    config.dropout = config.attention.dropout = 0.3; /* must not act */
    heed_model *m = new_model(&config);
    heed_tape *t = new_tape(2);
    struct pairs *p = draw_pairs(3, 9);
    heed_batch b = pack(p, 0, p->count);
    const heed_attention_map *maps, *map;
    int64_t n = heed_model_attention(m, t, &b, &maps);
    assert_int_equal(n, 3 * 4 * (2 + 3 + 3));
    map = maps;
    for (int s = 0; s < 3; s++)
        for (int i = 0; i < 8; i++)
            for (int h = 0; h < 4; h++, map++) {
                int64_t source = p->source[s].count + 1, target = p->target[s].count + 1;
                assert_int_equal(map->sentence, s);
                assert_int_equal(map->head, h);
                assert_int_equal(map->layer, i < 2 ? i : (i - 2) % 3);
                assert_int_equal(map->kind, i < 2   ? HEED_ENCODER_SELF
                                            : i < 5 ? HEED_DECODER_SELF
                                                    : HEED_CROSS);
                assert_int_equal(map->queries, map->kind == HEED_ENCODER_SELF ? source : target);
                assert_int_equal(map->keys, map->kind == HEED_DECODER_SELF ? target : source);
                for (int64_t q = 0; q < map->queries; q++) {
                    double sum = 0;
                    for (int64_t k = 0; k < map->keys; k++) {
                        double w = (double)map->weight[q * map->keys + k];
                        assert_true((w > 0) == (map->kind != HEED_DECODER_SELF || k <= q));
                        sum += w;
                    }
                    assert_near(sum, 1, SAME);
                }
            }
    /* alone, a sentence has the same maps */
    heed_batch one = pack(p, 2, 1);
    heed_tape *other = new_tape(1);
    const heed_attention_map *alone;
    assert_int_equal(heed_model_attention(m, other, &one, &alone), n / 3);
    for (int64_t i = 0; i < n / 3; i++)
        for (int64_t j = 0; j < alone[i].queries * alone[i].keys; j++)
            assert_near((double)alone[i].weight[j], (double)maps[2 * n / 3 + i].weight[j], SAME);
    heed_tape_free(other);
    pairs_free(p);
    heed_tape_free(t);
    heed_model_free(m);
}

/* ---- refusals ---- */

static void refused(const heed_model_config *config, const char *text)
{
    heed_error err = {0};
    assert_null(heed_model_new(config, 1, NULL, &err));
    if (!strstr(err.text, text))
        fail_msg("found '%s', wanted '%s'", err.text, text);
    assert_null(heed_model_new(config, 1, NULL, NULL));
}
#define REFUSED(field, value, text)                                                                \
    do {                                                                                           \
        heed_model_config c_ = small_config();                                                     \
        c_.field = value;                                                                          \
        refused(&c_, text);                                                                        \
    } while (0)

/* Catches: a configuration that cannot work and is built, or is refused without saying what would.
 */
static void wrong_configurations_are_refused(void **state)
{
    (void)state;
    heed_model_config config = small_config();
    config.d = 128;
    config.transformer.heads = 7;
    refused(&config, "--heads 7 does not divide --d 128: use --heads 4 or 8, or give both --d-k "
                     "and --d-v");
    config.transformer.heads = 200;
    refused(&config, "--heads 200 does not divide --d 128: use --heads 128, or give both");
    config.transformer.heads = 7;
    config.transformer.d_k = config.transformer.d_v = 5;
    heed_model_free(new_model(&config));
    REFUSED(target_vocabulary, 20,
            "--tying all needs one vocabulary for both sides, found 17 source and 20 target "
            "pieces: use a joint vocabulary, or --tying target");
    REFUSED(source_vocabulary, 2, "the source vocabulary has 2 pieces, expected at least 3");
    REFUSED(arch, 9, "option '--arch' is 9, expected a whole number from 0 to 3");
    REFUSED(longest, 1, "option '--longest' is 1, expected a whole number from 2 to 1000000");
    /* What a configuration file could not say. */
    REFUSED(label_smoothing, 0.995,
            "option '--label-smoothing' is 0.995, expected a number from 0");
    REFUSED(encoder_layers, 0,
            "option '--encoder-layers' is 0, expected a whole number from 1 to 256");
    REFUSED(transformer.heads, 0, "option '--heads' is 0, expected a whole number from 1 to 1024");
    REFUSED(transformer.d_k, -1, "option '--d-k' is -1, expected a whole number from 0 to 65536");
    REFUSED(transformer.norm, 3, "option '--norm' is 3, expected a whole number from 0 to 2");
    REFUSED(dropout, 0.97, "option '--dropout' is 0.97, expected a number from 0 to 0.95");
    REFUSED(transformer.ff_dropout, NAN, "option '--ff-dropout' is nan, expected a number");
    REFUSED(attention.score, 6,
            "option '--attention-score' is 6, expected a whole number from 0 to 5");
    REFUSED(attention.pattern, (heed_slot_spec)HEED_ONE(HEED_PATTERN_LOCAL_P),
            "--attention-pattern local-p follows a decoder from step to step: use --arch rnn, or "
            "another one of 'heed list attention'");
    REFUSED(attention.normaliser, (heed_slot_spec)HEED_ONE(HEED_NORMALISE_HARD),
            "--attention-normaliser hard follows a decoder from step to step: use --arch rnn, or "
            "another one");
    REFUSED(attention.pattern, (heed_slot_spec)HEED_ONE(HEED_PATTERN_BAND, {0}),
            "attention: band lacks a number, expected band:W");
    REFUSED(attention.memory, (heed_slot_spec)HEED_ONE(7), "attention: there is no memory 7");
    REFUSED(transformer.kv_heads, 3, "--kv-heads 3 does not divide --heads 4");
    config = small_config();
    config.d = 65536;
    config.transformer.ff = 1048576;
    config.encoder_layers = 256;
    refused(&config, "3.993e+07 million parameters take ");
    refused(&config, " GB with their gradients, this machine has ");
}

/* Catches: a batch that does not fit being read past its end, or refused without its number. */
static void wrong_batches_are_refused(void **state)
{
    (void)state;
    heed_model_config config = small_config();
    config.longest = 5;
    heed_model *m = new_model(&config);
    heed_tape *t = new_tape(1);
    struct pairs *p = draw_pairs(0, 1);
    int32_t ids[] = {3, 4, 5, 6, 7};
    p->source[0] = (heed_tokens){ids, 5};
    p->target[0] = (heed_tokens){ids, 4};
    heed_batch b = pack(p, 0, 1);
    const heed_attention_map *maps;
    assert_null(heed_model_loss(m, t, &b, 1, NULL));
    assert_string_equal(heed_tape_error(t)->text, "a source sentence has 6 tokens, expected at "
                                                  "most 5, as '--longest' says");
    heed_tape_reset(t);
    assert_null(heed_model_score(m, t, &b));
    assert_int_equal(heed_model_attention(m, t, &b, &maps), 0);
    heed_tape_reset(t);
    b = pack(p, 0, 1);
    b.source.rows = NULL;
    assert_null(heed_model_loss(m, t, &b, 1, NULL));
    assert_string_equal(heed_tape_error(t)->text, "the batch has no source sentences");
    heed_tape_reset(t);
    b = pack(p, 0, 1);
    b.source.ids = NULL;
    assert_null(heed_model_loss(m, t, &b, 1, NULL));
    assert_string_equal(heed_tape_error(t)->text, "the batch has no source tokens");
    heed_tape_reset(t);
    p->source[0].count = 4;
    b = pack(p, 0, 1);
    b.target.rows = NULL;
    assert_null(heed_model_loss(m, t, &b, 1, NULL));
    assert_string_equal(heed_tape_error(t)->text, "the batch has no target sentences");
    heed_tape_reset(t);
    b = pack(p, 0, 1);
    b.wanted_count--;
    assert_null(heed_model_loss(m, t, &b, 1, NULL));
    assert_string_equal(heed_tape_error(t)->text,
                        "the batch has 4 answers to 5 rows, expected one for each, or wanted_row "
                        "to say where they stand");
    heed_tape_reset(t);
    ids[2] = VOCABULARY;
    b = pack(p, 0, 1);
    assert_null(heed_model_loss(m, t, &b, 1, NULL));
    assert_non_null(strstr(heed_tape_error(t)->text, "embedding: "));
    pairs_free(p);
    heed_tape_free(t);
    heed_model_free(m);
}

/* Catches: a model that no machine can hold, and that is found out only when the system kills the
 * process. */
static void more_than_there_is(void **state)
{
    (void)state;
    for (int i = 0; i < ARCHITECTURES; i++) {
        heed_model_config config = small_config_of(i);
        config.d = 1 << 16;
        config.attention.score = HEED_SCORE_LOCATION; /* a column for each place */
        config.longest = 1000000;
        heed_error err = {0};
        if (i == 1) /* attends to nothing */
            continue;
        assert_null(heed_model_outline(&config, NULL, &err));
        assert_int_equal(err.status, HEED_MEMORY);
        assert_non_null(strstr(err.text, "this machine has"));
    }
}

/* Catches: an unchecked allocation, a leak where building stops half-way, an error without a text.
 */
static void check_memory(int architecture)
{
    heed_model_config config = small_config_of(architecture);
    struct failing f = {0};
    heed_allocator a = failing_allocator(&f);
    heed_model *m = NULL;
    for (f.fail_at = 1; !m; f.fail_at++) {
        heed_error err = {0};
        f.calls = 0;
        m = heed_model_new(&config, 1, &a, &err);
        if (!m) {
            assert_int_equal(err.status, HEED_MEMORY);
            assert_true(err.text[0]);
            assert_int_equal(f.held, 0);
        }
    }
    assert_true(f.fail_at > 6);
    heed_model_free(m);
    assert_int_equal(f.held, 0);
}

static void memory_fails_at_every_allocation(void **state)
{
    (void)state;
    for (int i = 0; i < ARCHITECTURES; i++)
        check_memory(i);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(costs_count_the_products),
        cmocka_unit_test(parameters_know_their_role),
        cmocka_unit_test(presets_are_the_published_sizes),
        cmocka_unit_test(attention_starts_out_even),
        cmocka_unit_test(attention_maps_are_in_order),
        cmocka_unit_test(wrong_configurations_are_refused),
        cmocka_unit_test(wrong_batches_are_refused),
        cmocka_unit_test(more_than_there_is),
        cmocka_unit_test(memory_fails_at_every_allocation),
    };
    return cmocka_run_group_tests_name("model", tests, NULL, NULL);
}
