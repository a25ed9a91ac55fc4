/* Engines and sessions: packed weights against the training's forward pass; rows that come, go and
 * change places against rows alone, bit by bit. */
#include "hypotheses.h"

#include "engine_help.h"
#include "failing_allocator.h"
#include "temp_folder.h"
#include <heed/io.h>
#include <heed/translate.h>

static void add(heed_session *s, const struct pairs *p, int first, int count, struct rows *rows)
{
    heed_error err = {0};
    if (heed_session_add(s, p->source + first, count, &err))
        fail_msg("%s", err.text);
    for (int r = 0; r < count; r++)
        rows->at[rows->count++] = (struct history){.sentence = first + r};
}

static heed_scores step(heed_session *s, struct rows *rows, const heed_rng *rng)
{
    int32_t token[MOST_ROWS];
    heed_error err = {0};
    heed_scores out;
    next_tokens(rows, rng, token);
    if (heed_session_step(s, token, &out, &err))
        fail_msg("%s", err.text);
    return out;
}

static void reorder(heed_session *s, struct rows *rows, const int32_t *parent, int count)
{
    heed_error err = {0};
    if (heed_session_reorder(s, parent, count, &err))
        fail_msg("%s", err.text);
    take_parents(rows, parent, count);
}

/* Sentences join while others are under way; some rows are dropped, some doubled. */
static void check_model(const heed_model_config *config)
{
    enum { STEPS = 12 };
    heed_model *m = new_model(config);
    heed_engine *e = new_engine(m);
    heed_session *s = new_session(e, 2);
    heed_tape *t = new_tape(1);
    struct pairs *p = draw_pairs(30, 11);
    heed_rng rng = heed_rng_stream(&(heed_rng_key){.seed = 12});
    for (int round = 0; round < 2; round++) {
        struct rows rows = {0};
        int next = 0;
        for (int i = 0; i < STEPS; i++) {
            if (rows.count < 12 && next < 27) {
                add(s, p, next, 1 + i % 3, &rows);
                next += 1 + i % 3;
            }
            heed_scores out = step(s, &rows, &rng);
            assert_int_equal(out.columns, config->target_vocabulary);
            assert_null(out.choice);
            check_rows(m, t, p, &rows, out.logit, out.log_z);
            int32_t parent[MOST_ROWS];
            for (int times = i % 3; times > 0; times--) { /* none, one, two at once */
                int n = draw_parents(&rows, &rng, (uint64_t)(10000 * (i + 1) + times), parent);
                reorder(s, &rows, parent, n);
            }
        }
        heed_session_clear(s); /* a session is used again */
    }
    pairs_free(p);
    heed_tape_free(t);
    heed_session_free(s);
    heed_engine_free(e);
    heed_model_free(m);
}

/* Catches: a packed layer that is not the trained one: wrong columns, norms, positions, keys of
 * another row, layer or source; a cell that is given away while somebody looks at it; columns of a
 * large vocabulary whose share of the normaliser is left out. */
static void rows_are_the_forward_pass(void **state)
{
    (void)state;
    for_each_form(check_model);
    heed_model_config config = small_config();
    config.source_vocabulary = config.target_vocabulary = 597; /* chunks of 256, 256 and 85 */
    check_model(&config);
}

/* ---- the same bits ---- */

/* Every logit and normaliser of sentence i, decoded alone for some steps. */
static void decode_alone(const heed_engine *e, const struct pairs *p, int i, heed_real *out)
{
    heed_session *s = new_session(e, 1);
    heed_rng rng = heed_rng_stream(&(heed_rng_key){.seed = 5});
    struct rows rows = {0};
    add(s, p, i, 1, &rows);
    for (int k = 0; k < 6; k++) {
        heed_scores found = step(s, &rows, &rng);
        memcpy(out + k * (VOCABULARY + 1), found.logit, VOCABULARY * sizeof *out);
        out[k * (VOCABULARY + 1) + VOCABULARY] = found.log_z[0];
    }
    heed_session_free(s);
}

static void check_bits(const heed_engine *e, int threads)
{
    enum { SENTENCES = 20, STEPS = 6 };
    struct pairs *p = draw_pairs(SENTENCES, 21);
    heed_real *alone = malloc(sizeof *alone * SENTENCES * STEPS * (VOCABULARY + 1));
    for (int i = 0; i < SENTENCES; i++)
        decode_alone(e, p, i, alone + i * STEPS * (VOCABULARY + 1));
    heed_session *s = new_session(e, threads);
    struct rows rows = {0};
    int next = 0;
    /* Token choices depend on the row's number in next_tokens: all rows draw as row 0 does. */
    heed_rng rng = heed_rng_stream(&(heed_rng_key){.seed = 5});
    while (next < SENTENCES || rows.count) {
        for (int k = 0; k < 3 && next < SENTENCES; k++, next++)
            add(s, p, next, 1, &rows);
        int32_t token[MOST_ROWS], parent[MOST_ROWS];
        for (int r = 0; r < rows.count; r++) {
            struct rows one = {.count = 1, .at = {rows.at[r]}};
            next_tokens(&one, &rng, &token[r]);
            rows.at[r] = one.at[0];
        }
        heed_scores found;
        assert_int_equal(heed_session_step(s, token, &found, NULL), HEED_OK);
        int n = 0;
        for (int r = 0; r < rows.count; r++) {
            const struct history *h = &rows.at[r];
            const heed_real *wanted =
                alone + (h->sentence * STEPS + h->length - 1) * (VOCABULARY + 1);
            assert_memory_equal(found.logit + r * VOCABULARY, wanted, VOCABULARY * sizeof *wanted);
            assert_memory_equal(&found.log_z[r], &wanted[VOCABULARY], sizeof *wanted);
            if (h->length < STEPS)
                parent[n++] = r;
        }
        reorder(s, &rows, parent, n);
    }
    heed_session_free(s);
    free(alone);
    pairs_free(p);
}

static void check_rows_alone(int score)
{
    heed_model_config config = small_config();
    config.attention.score = score;
    config.d = 64;
    config.transformer.ff = 264;
    heed_model *m = new_model(&config);
    for (int bytes = 0; bytes < 2; bytes++) {
        heed_engine *e = bytes ? new_int8_engine(m) : new_engine(m);
        check_bits(e, 1);
        check_bits(e, 2);
        check_bits(e, 4);
        heed_engine_free(e);
    }
    heed_model_free(m);
}

/* Catches: a row that depends on what else is in the batch, on when it came, or on the threads. */
static void a_row_does_not_depend_on_others(void **state)
{
    (void)state;
    check_rows_alone(HEED_SCORE_SCALED_DOT);
    check_rows_alone(HEED_SCORE_COSINE);
    check_rows_alone(HEED_SCORE_GENERAL);
}

/* ---- bytes and files ---- */

/* The mean |difference| of log-probabilities between two engines, over some steps. */
static double difference(const heed_engine *a, const heed_engine *b, const struct pairs *p)
{
    const heed_engine *engine[2] = {a, b};
    const int64_t columns = heed_engine_configuration(a)->target_vocabulary;
    heed_real *log_p[2];
    int64_t count = 0;
    for (int k = 0; k < 2; k++) {
        heed_session *s = new_session(engine[k], 1);
        heed_rng rng = heed_rng_stream(&(heed_rng_key){.seed = 9});
        struct rows rows = {0};
        log_p[k] = malloc(sizeof *log_p[k] * 8 * 5 * (size_t)columns);
        count = 0;
        add(s, p, 0, 8, &rows);
        for (int i = 0; i < 5; i++) {
            heed_scores out = step(s, &rows, &rng);
            for (int r = 0; r < rows.count; r++)
                for (int64_t v = 0; v < columns; v++)
                    log_p[k][count++] = out.logit[r * columns + v] - out.log_z[r];
        }
        heed_session_free(s);
    }
    double sum = 0;
    for (int64_t i = 0; i < count; i++)
        sum += fabs((double)log_p[0][i] - (double)log_p[1][i]);
    free(log_p[0]);
    free(log_p[1]);
    return sum / (double)count;
}

/* Catches: bytes that are not near the numbers they stand for, or are those numbers. */
static void bytes_are_near_the_numbers(void **state)
{
    (void)state;
    heed_model_config config = small_config();
    config.d = 64;
    config.transformer.ff = 128;
    heed_model *m = new_model(&config);
    struct pairs *p = draw_pairs(8, 31);
    heed_engine *plain = new_engine(m);
    heed_engine *e = new_int8_engine(m);
    const double off = difference(plain, e, p);
    print_message("bytes are off by %.4f\n", off);
    assert_true(off > 0 && off < 0.05);
    heed_engine_free(e);
    heed_engine_free(plain);
    pairs_free(p);
    heed_model_free(m);
}

/* A model directory without a vocabulary: an engine does not ask for one. */
static void save(const heed_model *m)
{
    heed_error err = {0};
    if (heed_model_describe(folder, heed_model_configuration(m), &(heed_text_config){0}, &err) ||
        heed_params_save(heed_model_params(m), in_folder("model.safetensors"), &err))
        fail_msg("%s", err.text);
}

static void remove_model(const char *path)
{
    char file[256];
    snprintf(file, sizeof file, "%s/config.json", path);
    unlink(file);
    snprintf(file, sizeof file, "%s/model.safetensors", path);
    unlink(file);
    assert_int_equal(rmdir(path), 0);
}

static heed_engine *expected_engine(const heed_model *m, heed_number_kind kind)
{
    return kind == HEED_NUMBERS_INT8 ? new_int8_engine(m) : new_engine(m);
}

static void check_conversion(heed_model_config config)
{
#ifdef HEED_DOUBLE
    static const double allowed[] = {1e-6, 0.002, 1e-6}; /* what is stored is float */
#else
    static const double allowed[] = {0, 0.002, 0};
#endif
    config.tying = HEED_TIE_NONE;
    config.transformer.positions = HEED_POSITIONS_LEARNED;
    config.source_vocabulary = config.target_vocabulary + 30;
    heed_model *m = new_model(&config);
    struct pairs *p = draw_pairs(8, 41);
    save(m);
    for (int kind = HEED_NUMBERS_FP32; kind <= HEED_NUMBERS_INT8; kind++) {
        const char *to = in_folder("converted");
        heed_error err = {0};
        if (heed_convert(folder, to, (heed_number_kind)kind, &err))
            fail_msg("%s", err.text);
        heed_engine *found = heed_engine_open(to, NULL, &err);
        if (!found)
            fail_msg("%s", err.text);
        heed_engine *wanted = expected_engine(m, (heed_number_kind)kind);
        double off = difference(wanted, found, p);
        if (!(off <= allowed[kind]))
            fail_msg("kind %d is off by %g", kind, off);
        assert_int_equal(heed_convert(folder, to, (heed_number_kind)kind, &err), HEED_ARGUMENT);
        assert_non_null(strstr(err.text, "holds a model already"));
        heed_engine_free(wanted);
        heed_engine_free(found);
        remove_model(to);
    }
    pairs_free(p);
    heed_model_free(m);
}

/* Catches: a file that is not the model that was converted, for every kind of numbers; the second
 * portion of a table that is too large to be read at once. */
static void a_converted_model_is_the_model(void **state)
{
    (void)state;
    heed_model_config config = small_config();
    check_conversion(config);
    config.attention.score = HEED_SCORE_GENERAL;
    check_conversion(config);
    config.attention.score = HEED_SCORE_COSINE;
    check_conversion(config);
    config.d = 256;
    config.target_vocabulary = 4133; /* 2^20 numbers, and 37 rows more */
    check_conversion(config);
}

/* Catches: NaN that becomes a byte like any other. */
static void what_is_not_finite_is_not_converted(void **state)
{
    (void)state;
    heed_model_config config = small_config();
    heed_model *m = new_model(&config);
    heed_tensor_data(heed_params_find(heed_model_params(m), "embedding.table"))[5] = (heed_real)NAN;
    save(m);
    for (int kind = HEED_NUMBERS_FP32; kind <= HEED_NUMBERS_INT8; kind++) {
        const char *to = in_folder("converted");
        heed_error err = {0};
        assert_int_equal(heed_convert(folder, to, (heed_number_kind)kind, &err), HEED_NUMERIC);
        assert_non_null(strstr(err.text, "'embedding.table' holds nan at place 5"));
        assert_int_equal(rmdir(to), 0); /* nothing is in it */
    }
    heed_model_free(m);
}

/* ---- attention ---- */

/* Each head alone, bit by bit, and all of a layer together. */
static void check_cross_weights(const heed_engine *e, const struct pairs *p, int i,
                                const heed_attention_map *maps, int64_t count)
{
    for (const heed_attention_map *m = maps, *end = maps + count; m < end; m++) {
        const heed_real *one, *all;
        const int64_t size = m->queries * m->keys;
        int64_t ld;
        if (m->kind != HEED_CROSS)
            continue;
        assert_int_equal(heed__cross_weights(e, &p->source[i], &p->target[i], m->layer, m->head,
                                             p->arena, &one, &ld, NULL),
                         HEED_OK);
        assert_int_equal(ld, m->keys);
        assert_memory_equal(one, m->weight, (size_t)size * sizeof *one);
        if (m->head)
            continue;
        assert_int_equal(heed__cross_weights(e, &p->source[i], &p->target[i], m->layer, -1,
                                             p->arena, &all, &ld, NULL),
                         HEED_OK);
        for (int64_t k = 0; k < size; k++) {
            double sum = 0;
            for (const heed_attention_map *h = m; h < end && h->layer == m->layer; h++)
                sum += (double)h->weight[k];
            assert_near((double)all[k], sum, SAME);
        }
    }
}

static void check_attention(const heed_model_config *config)
{
    heed_model *m = new_model(config);
    heed_engine *e = new_engine(m);
    heed_tape *t = new_tape(1);
    struct pairs *p = draw_pairs(6, 51);
    for (int i = 0; i < p->count; i++) {
        const heed_attention_map *found, *wanted;
        heed_error err = {0};
        heed_batch b = pack(p, i, 1);
        int64_t n;
        if (heed_engine_attention(e, &p->source[i], &p->target[i], p->arena, &found, &n, &err))
            fail_msg("%s", err.text);
        heed_tape_reset(t);
        assert_int_equal(n, heed_model_attention(m, t, &b, &wanted));
        for (int64_t k = 0; k < n; k++) {
            const heed_attention_map *f = &found[k], *w = &wanted[k];
            assert_true(f->kind == w->kind && f->layer == w->layer && f->head == w->head);
            assert_true(f->queries == w->queries && f->keys == w->keys && !f->sentence);
            for (int64_t j = 0; j < w->queries * w->keys; j++)
                assert_near((double)f->weight[j], (double)w->weight[j], SAME);
        }
        check_cross_weights(e, p, i, found, n);
    }
    pairs_free(p);
    heed_tape_free(t);
    heed_engine_free(e);
    heed_model_free(m);
}

/* Catches: weights of another layer, head, kind or token than the map says, and tokens that are
 * seen before they come. */
static void engines_show_the_attention_of_the_model(void **state)
{
    (void)state;
    for_each_form(check_attention);
    heed_model_config config = small_config();
    config.encoder_layers = 1;
    config.decoder_layers = 3;
    check_attention(&config);
    for (int i = 2; i < ARCHITECTURES; i++) { /* they are not packed */
        config = small_config_of(i);
        check_attention(&config);
    }
}

/* ---- refusals and memory ---- */

/* Catches: ids that are not the vocabulary's being looked up, and rows that do not exist. */
static void wrong_calls_are_refused(void **state)
{
    (void)state;
    heed_model_config config = small_config();
    config.longest = 5;
    heed_model *m = new_model(&config);
    heed_engine *e = new_engine(m);
    heed_session *s = new_session(e, 1);
    static const int32_t ids[] = {3, 4, 5, 6, 7}, bad[] = {3, VOCABULARY}, bos[] = {HEED_BOS, 1};
    heed_scores out;
    heed_error err = {0};
    assert_int_equal(heed_session_step(s, bos, &out, &err), HEED_STATE);
    err = (heed_error){0};
    assert_int_equal(heed_session_add(s, &(heed_tokens){ids, 5}, 1, &err), HEED_ARGUMENT);
    assert_string_equal(err.text,
                        "a source sentence has 6 tokens, expected at most 5, as '--longest' says");
    err = (heed_error){0};
    assert_int_equal(heed_session_add(s, &(heed_tokens){bad, 2}, 1, &err), HEED_ARGUMENT);
    assert_string_equal(err.text, "source token 1 is 17, expected 0 to 16");
    assert_int_equal(heed_session_add(s, &(heed_tokens){ids, 2}, 1, NULL), HEED_OK);
    err = (heed_error){0};
    assert_int_equal(heed_session_step(s, bad + 1, &out, &err), HEED_ARGUMENT);
    assert_string_equal(err.text, "row 0 takes token 17, expected 0 to 16");
    err = (heed_error){0};
    assert_int_equal(heed_session_reorder(s, (const int32_t[]){1}, 1, &err), HEED_ARGUMENT);
    assert_string_equal(err.text, "row 0 continues row 1, expected 0 to 0");
    for (int i = 0; i < 5; i++)
        assert_int_equal(heed_session_step(s, bos, &out, NULL), HEED_OK);
    err = (heed_error){0};
    assert_int_equal(heed_session_step(s, bos, &out, &err), HEED_ARGUMENT);
    assert_string_equal(err.text, "cannot decode token 6: expected at most 5, as '--longest' says");
    heed_session_free(s);
    heed_engine_free(e);
    heed_model_free(m);

    config = small_config_of(2); /* it is not packed */
    m = new_model(&config);
    e = new_engine(m);
    s = new_session(e, 1);
    assert_int_equal(heed_session_add(s, &(heed_tokens){ids, 2}, 1, NULL), HEED_OK);
    err = (heed_error){0};
    assert_int_equal(heed_session_add(s, &(heed_tokens){ids, 2}, 1, &err), HEED_ARGUMENT);
    assert_string_equal(err.text,
                        "this model takes new sentences only when it has no rows, found 1");
    heed_session_clear(s);
    assert_int_equal(heed_session_add(s, &(heed_tokens){ids, 2}, 1, NULL), HEED_OK);
    heed_session_free(s);
    heed_engine_free(e);
    heed_model_free(m);
}

/* Catches: alignments by the zeros of a head that does not exist, and models that do not look. */
static void there_is_no_such_head(void **state)
{
    (void)state;
    static const struct {
        int arch, layer, head;
        const char *text;
    } wrong[] = {
        {0, 0, 4, "there is no cross-attention of layer 1, head 5 to align by"},
        {0, 2, 0, "there is no cross-attention of layer 3, head 1 to align by"},
        {1, 0, 0, "this model has no attention to look at"},
        {2, 0, 1, "there is no cross-attention of layer 1, head 2 to align by"},
    };
    struct pairs *p = draw_pairs(1, 61);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        heed_model_config config = small_config_of(wrong[i].arch);
        heed_model *m = new_model(&config);
        heed_engine *e = new_engine(m);
        heed_error err = {0};
        const heed_real *weight;
        int64_t ld;
        assert_int_equal(heed__cross_weights(e, p->source, p->target, wrong[i].layer, wrong[i].head,
                                             p->arena, &weight, &ld, &err),
                         HEED_ARGUMENT);
        assert_string_equal(err.text, wrong[i].text);
        heed_engine_free(e);
        heed_model_free(m);
    }
    pairs_free(p);
}

/* One translation, with a beam that widens and narrows and a sentence that joins. */
static heed_status translate(heed_session *s, const struct pairs *p, heed_error *err)
{
    static const int32_t wide[] = {0, 0, 1, 1, 2, 2, 3, 3}, narrow[] = {1, 2, 5, 7};
    const int32_t token[9] = {1, 3, 4, 5, 6, 7, 8, 9, 10};
    heed_scores out;
    heed_session_clear(s);
    heed_status status = heed_session_add(s, p->source, 4, err);
    for (int i = 0; i < 10 && !status; i++) {
        status = heed_session_step(s, token, &out, err);
        if (!status)
            status = heed_session_reorder(s, i % 2 ? narrow : wide, i % 2 ? 4 : 8, err);
        if (!status && i == 4)
            status = heed_session_add(s, p->source + 4, 1, err);
    }
    return status;
}

/* Catches: an unchecked allocation, a leak, a session that a failure leaves unusable. */
static void memory_fails_at_every_allocation(void **state)
{
    (void)state;
    heed_model_config config = small_config();
    heed_model *m = new_model(&config);
    struct pairs *p = draw_pairs(5, 17);
    struct failing f = {0};
    heed_allocator a = failing_allocator(&f);
    bool done = false;
    for (int at = 1; !done; at++) {
        heed_error err = {0};
        f.calls = 0;
        f.fail_at = at;
        heed_engine *e = heed_engine_new(m, &a, &err);
        heed_session *s =
            e ? heed_session_new(e, &(heed_session_options){.threads = 1}, &a, &err) : NULL;
        done = s && translate(s, p, &err) == HEED_OK;
        if (!done || f.calls >= at) {
            assert_int_equal(err.status, HEED_MEMORY);
            assert_true(err.text[0]);
        }
        f.fail_at = 0;
        if (s)
            assert_int_equal(translate(s, p, NULL), HEED_OK);
        heed_session_free(s);
        heed_engine_free(e);
        assert_int_equal(f.held, 0);
    }
    pairs_free(p);
    heed_model_free(m);
}

/* Catches: memory asked for in every step or for every sentence. */
static void a_warm_session_asks_for_no_memory(void **state)
{
    (void)state;
    heed_model_config config = small_config();
    heed_model *m = new_model(&config);
    struct pairs *p = draw_pairs(5, 18);
    struct failing f = {0};
    heed_allocator a = failing_allocator(&f);
    heed_engine *e = heed_engine_new(m, &a, NULL);
    heed_session *s = heed_session_new(e, &(heed_session_options){.threads = 2}, &a, NULL);
    for (int i = 0; i < 2; i++)
        assert_int_equal(translate(s, p, NULL), HEED_OK);
    int warm = f.calls;
    for (int i = 0; i < 6; i++)
        assert_int_equal(translate(s, p, NULL), HEED_OK);
    assert_int_equal(f.calls, warm);
    pairs_free(p);
    heed_session_free(s);
    heed_engine_free(e);
    heed_model_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_the_forward_pass),
        cmocka_unit_test(a_row_does_not_depend_on_others),
        cmocka_unit_test(bytes_are_near_the_numbers),
        cmocka_unit_test_setup_teardown(a_converted_model_is_the_model, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(what_is_not_finite_is_not_converted, make_folder,
                                        remove_folder),
        cmocka_unit_test(engines_show_the_attention_of_the_model),
        cmocka_unit_test(wrong_calls_are_refused),
        cmocka_unit_test(there_is_no_such_head),
        cmocka_unit_test(memory_fails_at_every_allocation),
        cmocka_unit_test(a_warm_session_asks_for_no_memory),
    };
    return cmocka_run_group_tests_name("session", tests, NULL, NULL);
}
