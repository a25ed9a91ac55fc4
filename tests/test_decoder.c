/* start / step / reorder: cached steps against the whole forward pass, row by row. */
#include "small_transformer.h"

#include "failing_allocator.h"
#include <heed/train.h>

enum { MOST_ROWS = 40 };

/* A hypothesis as the test remembers it. */
struct history {
    int sentence;
    int length; /* BOS counted */
    int32_t token[LONGEST];
};

struct rows {
    int count;
    struct history at[MOST_ROWS];
};

static heed_decoder *new_decoder(const heed_model *m, int threads)
{
    heed_error err = {0};
    heed_decoder *d = heed_decoder_new(m, threads, NULL, &err);
    if (!d)
        fail_msg("%s", err.text);
    return d;
}

static void start(heed_decoder *d, const struct pairs *p, int first, int count, struct rows *rows)
{
    heed_error err = {0};
    heed_batch b;
    assert_int_equal(heed_batch_pack(p->arena, p->source + first, NULL, count, &b, &err), HEED_OK);
    if (heed_decoder_start(d, &b, &err))
        fail_msg("%s", err.text);
    *rows = (struct rows){.count = count};
    for (int r = 0; r < count; r++)
        rows->at[r].sentence = first + r;
}

/* Appends a token to each row: BOS first, then what the rng says. */
static const heed_real *step(heed_decoder *d, struct rows *rows, const heed_rng *rng)
{
    int32_t token[MOST_ROWS];
    heed_error err = {0};
    const heed_real *log_p;
    for (int r = 0; r < rows->count; r++) {
        struct history *h = &rows->at[r];
        uint64_t at = (uint64_t)(1000 * h->length + r);
        token[r] = h->length ? 3 + (int32_t)heed_rng_below(rng, at, VOCABULARY - 3) : HEED_BOS;
        h->token[h->length++] = token[r];
    }
    if (heed_decoder_step(d, token, &log_p, &err))
        fail_msg("%s", err.text);
    return log_p;
}

static void reorder(heed_decoder *d, struct rows *rows, const int32_t *parent, int count)
{
    heed_error err = {0};
    struct rows old = *rows;
    if (heed_decoder_reorder(d, parent, count, &err))
        fail_msg("%s", err.text);
    rows->count = count;
    for (int r = 0; r < count; r++)
        rows->at[r] = old.at[parent[r]];
}

/* What the whole forward pass says about piece v after this history. */
static heed_real oracle(const heed_model *m, heed_tape *t, const struct pairs *p,
                        const struct history *h, int32_t v)
{
    heed_tokens target = {h->token + 1, h->length - 1};
    heed_batch b;
    assert_int_equal(heed_batch_pack(p->arena, p->source + h->sentence, &target, 1, &b, NULL),
                     HEED_OK);
    ((int32_t *)b.target_out)[b.target->rows - 1] = v;
    heed_real *scores = score(m, t, &b), last = scores[b.target->rows - 1];
    free(scores);
    return last;
}

/* Three pieces of each row, others in the next: what is wrong is hardly wrong in one alone. */
static void check_rows(const heed_model *m, heed_tape *t, const struct pairs *p,
                       const struct rows *rows, const heed_real *log_p)
{
    for (int r = 0; r < rows->count; r++)
        for (int k = 0; k < 3; k++) {
            int32_t v = (r + 6 * k) % VOCABULARY;
            assert_near((double)log_p[r * VOCABULARY + v], (double)oracle(m, t, p, &rows->at[r], v),
                        SAME);
        }
}

/* Random parents that stay in the order of their sentences: some rows dropped, some doubled. */
static int draw_parents(const struct rows *rows, const heed_rng *rng, uint64_t at, int32_t *parent)
{
    int n = 0;
    for (int r = 0; r < rows->count; r++)
        for (int64_t k = heed_rng_below(rng, at + (uint64_t)r, 4); k > 1 && n < MOST_ROWS; k--)
            parent[n++] = r;
    /* within a sentence any order will do: swap where neighbours allow it */
    for (int r = 0; r + 1 < n; r++)
        if (rows->at[parent[r]].sentence == rows->at[parent[r + 1]].sentence) {
            int32_t kept = parent[r];
            parent[r] = parent[r + 1];
            parent[r + 1] = kept;
        }
    return n;
}

static void check_model(const heed_model_config *config)
{
    enum { SENTENCES = 8, STEPS = 9 };
    heed_model *m = new_model(config);
    heed_decoder *d = new_decoder(m, 2);
    heed_tape *t = new_tape(1);
    struct pairs *p = draw_pairs(2 * SENTENCES, 11);
    heed_rng rng = heed_rng_stream(&(heed_rng_key){.seed = 12});
    for (int round = 0; round < 2; round++) { /* a decoder is used again */
        struct rows rows;
        start(d, p, SENTENCES * round, SENTENCES, &rows);
        for (int i = 0; i < STEPS && rows.count; i++) {
            check_rows(m, t, p, &rows, step(d, &rows, &rng));
            int32_t parent[MOST_ROWS];
            for (int times = i % 3; times > 0; times--) { /* none, one, two at once */
                int n = draw_parents(&rows, &rng, (uint64_t)(10000 * (i + 1) + times), parent);
                reorder(d, &rows, parent, n);
            }
        }
    }
    pairs_free(p);
    heed_tape_free(t);
    heed_decoder_free(d);
    heed_model_free(m);
}

/* Catches: a cached step that is not the whole forward pass: a wrong position, keys of another row
 * or layer, a source that is not its sentence's, a copy that comes too late or too early. */
static void cached_steps_are_the_forward_pass(void **state)
{
    (void)state;
    heed_model_config config = small_config();
    heed_transformer_config *c = &config.transformer;
    config.dropout = config.attention.dropout = c->ff_dropout = 0.3; /* must not act */
    check_model(&config);
    c->pre_norm = true;
    c->norm = HEED_NORM_RMS;
    c->positions = HEED_POSITIONS_LEARNED;
    c->attention_bias = true;
    config.tying = HEED_TIE_NONE;
    config.source_vocabulary = VOCABULARY + 2;
    check_model(&config);
    c->norm = HEED_NORM_BATCH;
    c->pre_norm = false;
    c->d_k = 3;
    c->d_v = 5;
    c->positions = HEED_POSITIONS_NONE;
    config.tying = HEED_TIE_TARGET;
    c->scale_scores = false;
    check_model(&config);
    for (int score = HEED_SCORE_DOT; score <= HEED_SCORE_LOCATION; score++) {
        config = small_config();
        config.attention.score = score;
        check_model(&config);
    }
}

/* Catches: probabilities that are none. */
static void log_p_is_normalised(void **state)
{
    (void)state;
    heed_model_config config = small_config();
    heed_model *m = new_model(&config);
    heed_decoder *d = new_decoder(m, 1);
    struct pairs *p = draw_pairs(6, 13);
    heed_rng rng = heed_rng_stream(&(heed_rng_key){.seed = 14});
    struct rows rows;
    start(d, p, 0, 6, &rows);
    for (int i = 0; i < 4; i++) {
        const heed_real *log_p = step(d, &rows, &rng);
        for (int r = 0; r < rows.count; r++) {
            double sum = 0;
            for (int v = 0; v < VOCABULARY; v++)
                sum += exp((double)log_p[r * VOCABULARY + v]);
            assert_near(sum, 1, SAME);
        }
    }
    pairs_free(p);
    heed_decoder_free(d);
    heed_model_free(m);
}

/* Catches: steps that depend on the threads, or on what the decoder did before. */
static void the_same_start_gives_the_same_bits(void **state)
{
    (void)state;
    heed_model_config config = small_config();
    heed_model *m = new_model(&config);
    struct pairs *p = draw_pairs(16, 15);
    heed_rng rng = heed_rng_stream(&(heed_rng_key){.seed = 16});
    heed_decoder *d[2] = {new_decoder(m, 1), new_decoder(m, 2)};
    struct rows rows;
    start(d[1], p, 0, 16, &rows); /* another batch before */
    step(d[1], &rows, &rng);
    heed_real first[6][8 * VOCABULARY];
    for (int k = 0; k < 2; k++) {
        start(d[k], p, 8, 8, &rows);
        for (int i = 0; i < 6; i++) {
            const heed_real *log_p = step(d[k], &rows, &rng);
            if (k == 0)
                memcpy(first[i], log_p, sizeof first[i]);
            else
                assert_memory_equal(first[i], log_p, sizeof first[i]);
        }
    }
    pairs_free(p);
    heed_decoder_free(d[0]);
    heed_decoder_free(d[1]);
    heed_model_free(m);
}

/* ---- learning ---- */

/* Updates until every next token of the pairs is the likeliest, or `most`; how many there were. */
static int learn(heed_model *m, const heed_batch *b, int most)
{
    heed_optimizer *o = heed_optimizer_new(
        heed_model_params(m), &(heed_optimizer_options){.kind = HEED_ADAM}, NULL, NULL);
    heed_tape *t = new_tape(1);
    const double tokens = (double)b->target->rows;
    double nll = 1e9;
    int step = 0;
    for (; step < most && nll / tokens > 0.05; step++) {
        heed_tape_reset(t);
        assert_int_equal(heed_backward(t, heed_model_loss(m, t, b, 1 / tokens, &nll)), HEED_OK);
        heed_optimizer_step(o, 3e-3 * fmin(1, (step + 1) / 20.0), 1);
    }
    heed_tape_free(t);
    heed_optimizer_free(o);
    return step;
}

/* How many of the pairs come out of the decoder as they are, taking the likeliest token each time.
 * Rows that have said EOS leave. */
static int right_translations(const heed_model *m, const struct pairs *p)
{
    heed_decoder *d = new_decoder(m, 1);
    struct rows rows;
    int right = 0;
    start(d, p, 0, p->count, &rows);
    int32_t token[MOST_PAIRS], parent[MOST_PAIRS];
    for (int r = 0; r < rows.count; r++)
        token[r] = HEED_BOS;
    for (int i = 0; i < LONGEST && rows.count; i++) {
        const heed_real *log_p;
        assert_int_equal(heed_decoder_step(d, token, &log_p, NULL), HEED_OK);
        int n = 0;
        for (int r = 0; r < rows.count; r++, log_p += VOCABULARY) {
            const heed_tokens *wanted = &p->target[rows.at[r].sentence];
            int32_t best = 0;
            for (int v = 1; v < VOCABULARY; v++)
                best = log_p[v] > log_p[best] ? v : best;
            if (i < wanted->count && best == wanted->id[i]) {
                token[n] = best;
                parent[n++] = r;
            } else {
                right += best == HEED_EOS && i == wanted->count;
            }
        }
        reorder(d, &rows, parent, n);
    }
    heed_decoder_free(d);
    return right;
}

/* Catches: a model whose parts are right and that does not learn, or that learns and decodes
 * something else. */
static void thirty_two_pairs_are_learnt_by_heart(void **state)
{
    (void)state;
    heed_model_config config = small_config();
    config.d = 32;
    config.transformer.ff = 64;
    config.label_smoothing = 0;
    heed_model *m = new_model(&config);
    struct pairs *p = draw_pairs(32, 19);
    heed_batch b = pack(p, 0, p->count);
    assert_true(right_translations(m, p) < 4);
    int steps = learn(m, &b, 400);
    print_message("%d updates\n", steps);
    assert_true(steps < 400);
    assert_int_equal(right_translations(m, p), p->count);
    pairs_free(p);
    heed_model_free(m);
}

/* ---- refusals ---- */

/* Catches: rows that do not exist being read, and texts that do not say what is wrong. */
static void wrong_calls_are_refused(void **state)
{
    (void)state;
    heed_model_config config = small_config();
    config.longest = 5;
    heed_model *m = new_model(&config);
    heed_decoder *d = new_decoder(m, 1);
    struct pairs *p = draw_pairs(0, 1);
    static const int32_t ids[] = {3, 4, 5, 6, 7}, bos[] = {HEED_BOS, HEED_BOS};
    const heed_real *log_p;
    heed_error err = {0};
    assert_int_equal(heed_decoder_step(d, bos, &log_p, &err), HEED_STATE);
    assert_string_equal(err.text, "cannot decode a token: there was no start");
    err = (heed_error){0};
    assert_int_equal(heed_decoder_reorder(d, ids, 1, &err), HEED_STATE);
    assert_string_equal(err.text, "cannot reorder rows: there was no start");

    heed_batch b;
    p->source[0] = (heed_tokens){ids, 5};
    p->source[1] = (heed_tokens){ids, 3};
    assert_int_equal(heed_batch_pack(p->arena, p->source, NULL, 2, &b, NULL), HEED_OK);
    err = (heed_error){0};
    assert_int_equal(heed_decoder_start(d, &b, &err), HEED_ARGUMENT);
    assert_string_equal(err.text,
                        "a source sentence has 6 tokens, expected at most 5, as '--longest' says");
    assert_int_equal(heed_decoder_start(d, &b, NULL), HEED_ARGUMENT);
    assert_int_equal(heed_decoder_step(d, bos, &log_p, NULL), HEED_STATE);

    struct rows rows;
    p->source[0].count = 2;
    start(d, p, 0, 2, &rows);
    err = (heed_error){0};
    assert_int_equal(heed_decoder_reorder(d, (const int32_t[]){0, 2}, 2, &err), HEED_ARGUMENT);
    assert_string_equal(err.text, "row 1 goes on from row 2, expected 0 to 1");
    err = (heed_error){0};
    assert_int_equal(heed_decoder_reorder(d, (const int32_t[]){1, 0}, 2, &err), HEED_ARGUMENT);
    assert_string_equal(err.text, "row 1 goes on from sentence 0, expected 1 or later: rows stay "
                                  "in the order of their sentences");
    err = (heed_error){0};
    assert_int_equal(heed_decoder_reorder(d, ids, -1, &err), HEED_ARGUMENT);
    assert_string_equal(err.text, "cannot reorder to -1 rows");
    heed_rng rng = heed_rng_stream(&(heed_rng_key){.seed = 1});
    for (int i = 0; i < 5; i++)
        step(d, &rows, &rng);
    err = (heed_error){0};
    assert_int_equal(heed_decoder_step(d, bos, &log_p, &err), HEED_ARGUMENT);
    assert_string_equal(err.text, "cannot decode token 6: expected at most 5, as '--longest' says");
    assert_null(log_p);
    start(d, p, 0, 2, &rows);
    err = (heed_error){0};
    assert_int_equal(heed_decoder_step(d, (const int32_t[]){1, VOCABULARY}, &log_p, &err),
                     HEED_ARGUMENT);
    assert_non_null(strstr(err.text, "embedding: "));
    start(d, p, 0, 0, &rows);
    assert_int_equal(heed_decoder_step(d, bos, &log_p, NULL), HEED_STATE);
    start(d, p, 0, 2, &rows);
    assert_int_equal(heed_decoder_reorder(d, NULL, 0, NULL), HEED_OK); /* all finished */
    err = (heed_error){0};
    assert_int_equal(heed_decoder_step(d, bos, &log_p, &err), HEED_STATE);
    assert_string_equal(err.text, "cannot decode a token: there are no rows left");
    pairs_free(p);
    heed_decoder_free(d);
    heed_model_free(m);
}

/* ---- memory ---- */

/* One translation of a batch, with a beam that widens and narrows. */
static heed_status translate(heed_decoder *d, const heed_batch *b, heed_error *err)
{
    static const int32_t wide[] = {0, 0, 1, 1, 2, 2, 3, 3}, narrow[] = {1, 2, 5, 7};
    const int32_t token[8] = {1, 3, 4, 5, 6, 7, 8, 9};
    const heed_real *log_p;
    heed_status status = heed_decoder_start(d, b, err);
    for (int i = 0; i < 10 && !status; i++) {
        status = heed_decoder_step(d, token, &log_p, err);
        if (!status)
            status = heed_decoder_reorder(d, i % 2 ? narrow : wide, i % 2 ? 4 : 8, err);
    }
    return status;
}

/* Catches: an unchecked allocation in any call, a leak, a decoder that a failure leaves unusable.
 */
static void memory_fails_at_every_allocation(void **state)
{
    (void)state;
    heed_model_config config = small_config();
    heed_model *m = new_model(&config);
    struct pairs *p = draw_pairs(4, 17);
    heed_batch b = pack(p, 0, 4);
    struct failing f = {0};
    heed_allocator a = failing_allocator(&f);
    bool done = false;
    for (int at = 1; !done; at++) {
        heed_error err = {0};
        f.calls = 0;
        f.fail_at = at;
        heed_decoder *d = heed_decoder_new(m, 1, &a, &err);
        done = d && translate(d, &b, &err) == HEED_OK;
        if (!done) {
            assert_int_equal(err.status, HEED_MEMORY);
            assert_true(err.text[0]);
        }
        f.fail_at = 0;
        if (d)
            assert_int_equal(translate(d, &b, NULL), HEED_OK);
        heed_decoder_free(d);
        assert_int_equal(f.held, 0);
    }
    pairs_free(p);
    heed_model_free(m);
}

/* Catches: memory asked for in every step, or in every batch. */
static void a_warm_decoder_asks_for_no_memory(void **state)
{
    (void)state;
    heed_model_config config = small_config();
    heed_model *m = new_model(&config);
    struct pairs *p = draw_pairs(8, 18);
    heed_batch b[2] = {pack(p, 0, 4), pack(p, 4, 4)};
    struct failing f = {0};
    heed_allocator a = failing_allocator(&f);
    heed_decoder *d = heed_decoder_new(m, 2, &a, NULL);
    for (int i = 0; i < 2; i++)
        assert_int_equal(translate(d, &b[i % 2], NULL), HEED_OK);
    int warm = f.calls;
    for (int i = 0; i < 6; i++)
        assert_int_equal(translate(d, &b[i % 2], NULL), HEED_OK);
    assert_int_equal(f.calls, warm);
    pairs_free(p);
    heed_decoder_free(d);
    heed_model_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cached_steps_are_the_forward_pass),
        cmocka_unit_test(log_p_is_normalised),
        cmocka_unit_test(the_same_start_gives_the_same_bits),
        cmocka_unit_test(thirty_two_pairs_are_learnt_by_heart),
        cmocka_unit_test(wrong_calls_are_refused),
        cmocka_unit_test(memory_fails_at_every_allocation),
        cmocka_unit_test(a_warm_decoder_asks_for_no_memory),
    };
    return cmocka_run_group_tests_name("decoder", tests, NULL, NULL);
}
