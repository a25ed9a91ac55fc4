/* Recurrent translators: against PyTorch, in the order of their papers, one step at a time, their
 * gradients, and what is refused. */
#include "decoder_check.h"

/* A whole model bends more than a layer. */
#define LAYER_STEP 1e-4
#include "layer_check.h"
#include "rnn_golden.h"

#ifdef HEED_DOUBLE
#define GOLDEN_NEAR 1e-10
#else
#define GOLDEN_NEAR 2e-6 /* some tens of roundings of numbers of size one */
#endif
#define COUNT(array) ((int64_t)(sizeof(array) / sizeof *(array)))

/* Every arrangement worth a look: cells, depths, directions, moments, scores, windows. */
static heed_model_config variant(int i)
{
    static const struct {
        heed_rnn_config rnn;
        heed_attention_config attention;
        int encoder_layers, decoder_layers;
    } rows[] = {
        {{.cell = HEED_RNN_LSTM, .reverse = true}, {0}, 2, 2},
        {{.cell = HEED_RNN_GRU, .bidirectional = true}, {0}, 1, 2},
        {{.cell = HEED_RNN_GRU, .attend = HEED_ATTEND_BEFORE, .bidirectional = true},
         {.score = HEED_SCORE_ADDITIVE},
         1,
         1},
        {{.cell = HEED_RNN_LSTM, .attend = HEED_ATTEND_BEFORE, .reverse = true},
         {.score = HEED_SCORE_COSINE},
         1,
         2},
        {{.cell = HEED_RNN_GRU_AFTER, .attend = HEED_ATTEND_BEFORE, .bidirectional = true},
         {.score = HEED_SCORE_LOCATION, .pattern = HEED_ONE(HEED_PATTERN_LOCAL_M, {2})},
         2,
         1},
        {{.cell = HEED_RNN_LSTM,
          .attend = HEED_ATTEND_AFTER,
          .reverse = true,
          .input_feeding = true},
         {.score = HEED_SCORE_GENERAL, .pattern = HEED_ONE(HEED_PATTERN_LOCAL_P, {3})},
         2,
         2},
        {{.cell = HEED_RNN_GRU_AFTER, .attend = HEED_ATTEND_AFTER},
         {.score = HEED_SCORE_DOT},
         1,
         1},
        {{.cell = HEED_RNN_LSTM, .attend = HEED_ATTEND_AFTER, .input_feeding = true},
         {.score = HEED_SCORE_SCALED_DOT},
         1,
         1},
        {{.cell = HEED_RNN_LSTM, .attend = HEED_ATTEND_AFTER, .bidirectional = true},
         {.score = HEED_SCORE_ADDITIVE, .pattern = HEED_ONE(HEED_PATTERN_LOCAL_P, {2})},
         1,
         1},
    };
    heed_model_config c = small_config();
    if (i >= (int)COUNT(rows))
        return (heed_model_config){.d = 0};
    c.arch = HEED_ARCH_RNN;
    c.rnn = rows[i].rnn;
    c.attention = rows[i].attention;
    c.encoder_layers = rows[i].encoder_layers;
    c.decoder_layers = rows[i].decoder_layers;
    return c;
}
#define EACH_VARIANT(i, c)                                                                         \
    heed_model_config c = variant(0);                                                              \
    for (int i = 0; c.d; c = variant(++i))

/* ---- golden values ---- */

static heed_batch golden_pairs(heed_arena *arena)
{
    heed_tokens source[8], target[8];
    int pairs = 0;
    for (const int32_t *x = golden_batch; x < golden_batch + COUNT(golden_batch); pairs++) {
        source[pairs] = (heed_tokens){x + 2, x[0]};
        target[pairs] = (heed_tokens){x + 2 + x[0], x[1]};
        x += 2 + x[0] + x[1];
    }
    heed_batch b;
    assert_int_equal(heed_batch_pack(arena, NULL, source, target, pairs, &b, NULL), HEED_OK);
    return b;
}

static void compare(heed_model_config config, const double *loss, const double *gradient,
                    int64_t count)
{
    config.longest = 12;
    config.label_smoothing = 0.1;
    config.source_vocabulary = config.target_vocabulary = GOLDEN_V;
    heed_model *m = new_model(&config);
    heed_params *p = heed_model_params(m);
    heed_tape *t = new_tape(2);
    heed_arena *arena = heed_arena_new(NULL, NULL);
    /* The formula of rnn_golden.py. */
    for (int i = 0; i < heed_params_count(p); i++) {
        heed_real *x = heed_tensor_data(heed_params_entry(p, i).tensor);
        for (int64_t j = 0; j < heed_tensor_count(heed_params_entry(p, i).tensor); j++)
            x[j] = (heed_real)(0.4 * sin(1 + 1.7 * i + 0.9 * (double)j + 0.01 * i * (double)j));
    }
    heed_batch b = golden_pairs(arena);
    heed_tensor *found = heed_model_loss(m, t, &b, 1 / (double)b.target.rows->rows, NULL);
    if (heed_backward(t, found))
        fail_msg("%s", heed_tape_error(t)->text);
    assert_near((double)heed_tensor_data(found)[0], *loss, GOLDEN_NEAR);
    int64_t n = 0;
    for (int i = 0; i < heed_params_count(p); i++) {
        heed_param_info e = heed_params_entry(p, i);
        for (int64_t j = 0; j < heed_tensor_count(e.tensor); j++, n++)
            if (n < count &&
                !(fabs((double)heed_tensor_grad(e.tensor)[j] - gradient[n]) <= GOLDEN_NEAR))
                fail_msg("the gradient of '%s' at %lld is %.12g, expected %.12g", e.name,
                         (long long)j, (double)heed_tensor_grad(e.tensor)[j], gradient[n]);
    }
    assert_int_equal(n, count);
    heed_arena_free(arena);
    heed_tape_free(t);
    heed_model_free(m);
}

/* Catches: attention at the wrong moment, a state of the wrong direction or length, another GRU, a
 * source that is not reversed, a Gaussian in the wrong place: what the other tests might share with
 * the code they test. */
static void the_three_papers_are_pytorchs(void **state)
{
    (void)state;
    const heed_model_config lstm = {.arch = HEED_ARCH_RNN,
                                    .encoder_layers = 2,
                                    .decoder_layers = 2,
                                    .d = GOLDEN_D,
                                    .tying = HEED_TIE_ALL,
                                    .rnn = {.cell = HEED_RNN_LSTM, .reverse = true}};
    heed_model_config c = lstm;
    compare(c, sutskever_loss, sutskever_gradient, COUNT(sutskever_gradient));
    c.rnn.attend = HEED_ATTEND_AFTER;
    c.rnn.input_feeding = true;
    c.attention = (heed_attention_config){
        .score = HEED_SCORE_GENERAL, .pattern = HEED_ONE(HEED_PATTERN_LOCAL_P, {GOLDEN_WINDOW})};
    compare(c, luong_loss, luong_gradient, COUNT(luong_gradient));
    c = (heed_model_config){.arch = HEED_ARCH_RNN,
                            .encoder_layers = 1,
                            .decoder_layers = 1,
                            .d = GOLDEN_D,
                            .attention = {.score = HEED_SCORE_ADDITIVE},
                            .rnn = {.cell = HEED_RNN_GRU,
                                    .attend = HEED_ATTEND_BEFORE,
                                    .embedding = GOLDEN_E,
                                    .bidirectional = true}};
    compare(c, bahdanau_loss, bahdanau_gradient, COUNT(bahdanau_gradient));
}

/* ---- whole sentences and single steps ---- */

/* Catches: a cached step that is not the whole forward pass. */
static void cached_steps_are_the_forward_pass(void **state)
{
    (void)state;
    EACH_VARIANT(i, c)
    {
        c.dropout = c.attention.dropout = 0.3; /* must not act */
        check_model(&c);
    }
    c = variant(2);
    c.tying = HEED_TIE_NONE;
    c.rnn.embedding = 10;
    c.source_vocabulary = VOCABULARY + 2;
    check_model(&c);
    c.attention.normaliser = (heed_slot_spec)HEED_ONE(HEED_NORMALISE_HARD);
    check_model(&c);
}

/* Catches: a state read behind a sentence's own end, a batch's longest sentence in anybody else's
 * numbers, sources that change places. */
static void sentences_do_not_meet(void **state)
{
    (void)state;
    EACH_VARIANT(i, c)
    {
        heed_model *m = new_model(&c);
        heed_tape *t = new_tape(2);
        struct pairs *p = draw_pairs(12, 31);
        heed_batch all = pack(p, 0, p->count);
        heed_real *together = score(m, t, &all);
        for (int n = 0; n < p->count; n++) {
            heed_batch one = pack(p, n, 1);
            heed_real *alone = score(m, t, &one);
            for (int64_t k = 0; k < one.target.rows->rows; k++)
                assert_near((double)alone[k], (double)together[all.target.rows->offset[n] + k],
                            SAME);
            free(alone);
        }
        free(together);
        pairs_free(p);
        heed_tape_free(t);
        heed_model_free(m);
    }
}

/* The weights of sentence 0 of the batch, a copy. */
static heed_real *weights_of(const heed_model *m, heed_tape *t, const heed_batch *b, int64_t *count)
{
    const heed_attention_map *maps;
    heed_tape_reset(t);
    if (heed_model_attention(m, t, b, &maps) != b->source.rows->count)
        fail_msg("%s", heed_tape_error(t)->text);
    *count = maps[0].queries * maps[0].keys;
    assert_int_equal(maps[0].kind, HEED_CROSS);
    assert_int_equal(maps[0].queries, b->target.rows->offset[1]);
    assert_int_equal(maps[0].keys, b->source.rows->offset[1]);
    const size_t bytes = (size_t)*count * sizeof(heed_real);
    return memcpy(malloc(bytes), maps[0].weight, bytes);
}

/* Catches: the order of looking and stepping, the classic mistake: before the step attention cannot
 * have seen the word that is fed in, after it it has. */
static void attention_comes_before_or_after_the_step(void **state)
{
    (void)state;
    static const int32_t source[] = {3, 9, 4, 12, 5, 6}, target[] = {7, 3, 11, 8, 5};
    const heed_tokens from = {source, 6}, to = {target, 5};
    for (int after = 0; after < 2; after++) {
        heed_model_config c = small_config_of(2 + after);
        heed_model *m = new_model(&c);
        heed_tape *t = new_tape(1);
        heed_arena *arena = heed_arena_new(NULL, NULL);
        heed_batch b;
        assert_int_equal(heed_batch_pack(arena, NULL, &from, &to, 1, &b, NULL), HEED_OK);
        int64_t count, keys = b.source.rows->rows;
        heed_real *first = weights_of(m, t, &b, &count);
        for (int64_t changed = 1; changed < b.target.rows->rows; changed++) {
            const int32_t kept = b.target.ids[changed];
            ((int32_t *)b.target.ids)[changed] = 14;
            heed_real *w = weights_of(m, t, &b, &count);
            const int64_t same =
                (changed + !after) * keys; /* rows up to there know nothing of it */
            assert_memory_equal(w, first, (size_t)same * sizeof *w);
            assert_true(same == count ||
                        memcmp(w + same, first + same, (size_t)keys * sizeof *w) != 0);
            ((int32_t *)b.target.ids)[changed] = kept;
            free(w);
        }
        free(first);
        heed_arena_free(arena);
        heed_tape_free(t);
        heed_model_free(m);
    }
}

/* Catches: a source that is not reversed, reversed beyond its own words, or whose picture is. */
static void a_reversed_source_is_read_from_its_end(void **state)
{
    (void)state;
    for (int attend = HEED_ATTEND_NEVER; attend <= HEED_ATTEND_AFTER; attend++) {
        heed_model_config c = variant(attend == HEED_ATTEND_NEVER ? 0 : 3);
        c.rnn.attend = attend;
        heed_model *back = new_model(&c);
        c.rnn.reverse = false;
        heed_model *ahead = new_model(&c); /* the same weights */
        heed_tape *t = new_tape(1);
        struct pairs *p = draw_pairs(5, 33);
        heed_batch b = pack(p, 0, p->count), turned = b;
        int32_t *ids = heed_arena_allocate(p->arena, (size_t)b.source.rows->rows * sizeof *ids);
        for (int n = 0; n < p->count; n++) {
            const int64_t begin = b.source.rows->offset[n], end = b.source.rows->offset[n + 1];
            for (int64_t i = begin; i < end; i++)
                ids[i] = b.source.ids[begin + end - 1 - i];
        }
        turned.source.ids = ids;
        heed_real *one = score(back, t, &b), *other = score(ahead, t, &turned);
        for (int64_t i = 0; i < b.target.rows->rows; i++)
            assert_near((double)one[i], (double)other[i], SAME);
        free(one);
        free(other);
        if (attend != HEED_ATTEND_NEVER) {
            int64_t count, keys = b.source.rows->offset[1];
            one = weights_of(back, t, &b, &count);
            other = weights_of(ahead, t, &turned, &count);
            for (int64_t i = 0; i < count; i++)
                assert_near((double)one[i], (double)other[i / keys * keys + keys - 1 - i % keys],
                            SAME);
            free(one);
            free(other);
        }
        pairs_free(p);
        heed_tape_free(t);
        heed_model_free(back);
        heed_model_free(ahead);
    }
}

/* Catches: steps and whole sentences that are two models, and feeding that starts with anything but
 * zeros: with nothing to feed, the step-by-step way is the other. */
static void feeding_nothing_changes_nothing(void **state)
{
    (void)state;
    heed_model_config c = small_config_of(3);
    heed_model *feeding = new_model(&c);
    c.rnn.input_feeding = false;
    heed_model *plain = new_model(&c);
    heed_params *from = heed_model_params(feeding), *to = heed_model_params(plain);
    heed_tensor *feed = heed_params_find(from, "decoder.feed.weight");
    memset(heed_tensor_data(feed), 0, (size_t)heed_tensor_count(feed) * sizeof(heed_real));
    for (int i = 0; i < heed_params_count(to); i++) {
        heed_param_info e = heed_params_entry(to, i);
        memcpy(heed_tensor_data(e.tensor), heed_tensor_data(heed_params_find(from, e.name)),
               (size_t)heed_tensor_count(e.tensor) * sizeof(heed_real));
    }
    heed_tape *t = new_tape(1);
    struct pairs *p = draw_pairs(7, 35);
    heed_batch b = pack(p, 0, p->count);
    heed_real *one = score(feeding, t, &b), *other = score(plain, t, &b);
    for (int64_t i = 0; i < b.target.rows->rows; i++)
        assert_near((double)one[i], (double)other[i], SAME);
    free(one);
    free(other);
    pairs_free(p);
    heed_tape_free(t);
    heed_model_free(feeding);
    heed_model_free(plain);
}

/* ---- gradients ---- */

struct gradient_case {
    const heed_model *m;
    heed_batch batch;
};

static int run_loss(heed_tape *t, void *context, heed_tensor **out)
{
    struct gradient_case *c = context;
    out[0] = heed_model_loss(c->m, t, &c->batch, 0.25, NULL);
    return 1;
}

/* Catches: a gradient that is lost or doubled between steps, layers and sentences.  In double only:
 * differences of a float loss are as large as small gradients. */
static void gradients_of_the_whole_model(void **state)
{
    (void)state;
    static const int32_t ids[] = {3, 5, 4, 6, 3, 4, 5};
    if (sizeof(heed_real) < sizeof(double))
        skip();
    EACH_VARIANT(i, c)
    {
        c.d = 4;
        c.longest = 6;
        c.dropout = i % 2 ? 0.1 : 0;
        c.source_vocabulary = c.target_vocabulary = 7;
        heed_model *m = new_model(&c);
        struct pairs *p = draw_pairs(0, 1);
        p->source[0] = (heed_tokens){ids, 3};
        p->source[1] = (heed_tokens){ids + 2, 4};
        p->source[2] = (heed_tokens){ids + 1, 1};
        p->target[0] = (heed_tokens){ids + 3, 2};
        p->target[1] = (heed_tokens){ids + 1, 4};
        p->target[2] = (heed_tokens){ids + 4, 3};
        struct gradient_case g = {m, pack(p, 0, 3)};
        /* States of narrow stacks hardly move; far from 0 they do, and attention has a choice. */
        for (int64_t k = 0; k < heed_params_size(heed_model_params(m)); k++)
            heed_params_values(heed_model_params(m))[k] *= 2;
        layer_check(heed_model_params(m), run_loss, &g);
        pairs_free(p);
        heed_model_free(m);
    }
}

/* ---- learning by chance ---- */

enum { STEPS = 600 };

/* Sequences of up to four words that are their own translation. */
static struct pairs *draw_copies(int count, uint64_t seed)
{
    struct pairs *p = draw_pairs(count, seed);
    for (int i = 0; i < p->count; i++) {
        p->source[i].count = p->source[i].count > 4 ? 4 : p->source[i].count;
        p->target[i] = p->source[i];
    }
    return p;
}

/* Catches: hard attention without its reward, or rewarded for the wrong words: sequences that it
 * has never seen can only be copied by looking at one place after the other. */
static void hard_attention_learns_to_copy(void **state)
{
    (void)state;
    heed_model_config c = small_config_of(2);
    c.d = 32;
    c.rnn.embedding = 0;
    c.label_smoothing = 0;
    c.attention.normaliser = (heed_slot_spec)HEED_ONE(HEED_NORMALISE_HARD);
    heed_model *m = new_model(&c);
    heed_optimizer *o = heed_optimizer_new(
        heed_model_params(m), &(heed_optimizer_options){.kind = HEED_ADAM}, NULL, NULL);
    heed_tape *t = new_tape(1);
    for (uint64_t step = 0; step < STEPS; step++) {
        struct pairs *p = draw_copies(MOST_PAIRS, 1000 + step);
        heed_batch b = pack(p, 0, p->count);
        heed_tape_reset(t);
        heed_tape_step(t, step, 0, 0);
        heed_tensor *loss = heed_model_loss(m, t, &b, 1 / (double)b.target.rows->rows, NULL);
        assert_int_equal(heed_backward(t, loss), HEED_OK);
        heed_optimizer_step(
            o, 3e-3 * fmin(1, fmin(((double)step + 1) / 20, 2 - 2 * (double)step / STEPS)), 1);
        pairs_free(p);
    }
    struct pairs *p = draw_copies(40, 41);
    int right = right_translations(m, p);
    print_message("%d of %d right\n", right, p->count);
    assert_true(right >= p->count * 9 / 10);
    pairs_free(p);
    heed_tape_free(t);
    heed_optimizer_free(o);
    heed_model_free(m);
}

/* ---- facts and refusals ---- */

/* Catches: a forecast of the work that leaves a product out. */
static void costs_count_the_products(void **state)
{
    (void)state;
    heed_model_config c = small_config_of(2); /* d 16, embedding 12 */
    heed_model *m = new_model(&c);
    heed_model_cost cost = heed_model_costs(m);
    const int64_t d = 16, e = 12;
    assert_int_equal(cost.source_weights, 2 * 3 * d * (e + d) + 2 * d * d);
    assert_int_equal(cost.target_weights, 3 * d * (e + d) + d * d + 2 * d * 3 * d +
                                              (d + e + 2 * d) * 2 * e + VOCABULARY * e);
    heed_model_free(m);
    char text[HEED_MODEL_SUMMARY];
    for (int i = 1; i < ARCHITECTURES; i++) {
        static const char *const lines[] = {
            "rnn, 2+2 layers of lstm, d 16, embedding 16, reversed, no attention",
            "rnn, 1+1 layers of gru, d 16, embedding 12, both directions, attends before the step: "
            "additive, global, soft",
            "rnn, 2+2 layers of lstm, d 16, embedding 16, reversed, attends after the step: "
            "general, global, soft, input feeding"};
        c = small_config_of(i);
        m = new_model(&c);
        assert_string_equal(heed_model_summary(m, text), lines[i - 1]);
        heed_model_free(m);
    }
}

static void refused(const heed_model_config *config, const char *text)
{
    heed_error err = {0};
    assert_null(heed_model_new(config, 1, NULL, &err));
    if (!strstr(err.text, text))
        fail_msg("found '%s', wanted '%s'", err.text, text);
}
#define REFUSED(which, field, value, text)                                                         \
    do {                                                                                           \
        heed_model_config c_ = small_config_of(which);                                             \
        c_.field = value;                                                                          \
        refused(&c_, text);                                                                        \
    } while (0)

/* Catches: a configuration that cannot work and is built, or is refused without saying what would.
 */
static void wrong_configurations_are_refused(void **state)
{
    (void)state;
    REFUSED(1, rnn.bidirectional, true, "--reverse does nothing where both directions are read");
    REFUSED(1, rnn.input_feeding, true, "--input-feeding feeds what --attend after makes");
    REFUSED(2, attention.score, HEED_SCORE_DOT,
            "attention: the dot score needs queries and keys of one width, found 16 and 32: use "
            "general, additive or location");
    REFUSED(3, rnn.embedding, 10,
            "--tying all makes the embedding of the target the output projection, which sees 16 "
            "columns: use --embedding 16, or --tying none");
    REFUSED(3, encoder_layers, 17, "--arch rnn takes up to 16 layers on either side, found 17");
    REFUSED(3, rnn.cell, 3, "option '--cell' is 3, expected a whole number from 0 to 2");
    REFUSED(3, rnn.attend, -1, "option '--attend' is -1, expected a whole number from 0 to 2");
    heed_model_config c = small_config_of(3);
    c.attention.pattern = (heed_slot_spec)HEED_ONE(HEED_PATTERN_LOCAL_P);
    c.attention.normaliser = (heed_slot_spec)HEED_ONE(HEED_NORMALISE_HARD);
    refused(&c, "hard attention draws from weights that sum to 1, those of local-p do not");
    c.d = 65536;
    refused(&c, "attention: hard");
    c.attention.normaliser = (heed_slot_spec){0};
    refused(&c, " GB with their gradients, this machine has ");

    /* Nothing to look at. */
    c = small_config_of(1);
    heed_model *m = new_model(&c);
    heed_tape *t = new_tape(1);
    struct pairs *p = draw_pairs(2, 1);
    heed_batch b = pack(p, 0, 2);
    const heed_attention_map *maps;
    assert_int_equal(heed_model_attention(m, t, &b, &maps), 0);
    assert_string_equal(heed_tape_error(t)->text, "this model has no attention to look at");
    heed_model_free(m);
    heed_tape_free(t);
    pairs_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_three_papers_are_pytorchs),
        cmocka_unit_test(cached_steps_are_the_forward_pass),
        cmocka_unit_test(sentences_do_not_meet),
        cmocka_unit_test(attention_comes_before_or_after_the_step),
        cmocka_unit_test(a_reversed_source_is_read_from_its_end),
        cmocka_unit_test(feeding_nothing_changes_nothing),
        cmocka_unit_test(gradients_of_the_whole_model),
        cmocka_unit_test(hard_attention_learns_to_copy),
        cmocka_unit_test(costs_count_the_products),
        cmocka_unit_test(wrong_configurations_are_refused),
    };
    return cmocka_run_group_tests_name("rnn", tests, NULL, NULL);
}
