/* Extend and rewind: several rows and several tokens a call, against single steps, bit by bit. */
#include "small_transformer.h"

#include "engine_help.h"
#include "failing_allocator.h"

enum { ROWS = 6, STEPS = 20 };

/* Tokens of some rows, the same for all sessions: BOS first. */
static int32_t token_of(int row, int step)
{
    return step == 0 ? HEED_BOS : 3 + (row * 5 + step * 7 + row * step) % (VOCABULARY - 3);
}

static void fill_tokens(int32_t token[ROWS][STEPS + 1])
{
    for (int r = 0; r < ROWS; r++)
        for (int i = 0; i <= STEPS; i++)
            token[r][i] = token_of(r, i);
}

/* What single steps give: logits and normaliser behind each token of each row. */
struct steps {
    int64_t columns;
    heed_real *logit; /* (STEPS,ROWS,columns) */
    heed_real log_z[STEPS][ROWS];
};

static const heed_real *logit_of(const struct steps *s, int step, int row)
{
    return s->logit + (step * ROWS + row) * s->columns;
}

static void take_steps(const heed_engine *e, const struct pairs *p, struct steps *out)
{
    heed_session *s = new_session(e, 1);
    heed_scores found;
    out->columns = heed_engine_configuration(e)->target_vocabulary;
    out->logit = malloc((size_t)(STEPS * ROWS * out->columns) * sizeof *out->logit);
    assert_int_equal(heed_session_add(s, p->source, ROWS, NULL), HEED_OK);
    for (int i = 0; i < STEPS; i++) {
        int32_t token[ROWS];
        for (int r = 0; r < ROWS; r++)
            token[r] = token_of(r, i);
        assert_int_equal(heed_session_step(s, token, &found, NULL), HEED_OK);
        memcpy(out->logit + i * ROWS * out->columns, found.logit,
               (size_t)(ROWS * out->columns) * sizeof *found.logit);
        memcpy(out->log_z[i], found.log_z, sizeof out->log_z[i]);
    }
    heed_session_free(s);
}

static void check_last(const heed_scores *found, int64_t at, const struct steps *wanted, int step,
                       int row)
{
    assert_memory_equal(found->logit + at * found->columns, logit_of(wanted, step, row),
                        (size_t)wanted->columns * sizeof *found->logit);
    assert_memory_equal(&found->log_z[at], &wanted->log_z[step][row], sizeof *found->log_z);
}

/* Rows grow by 0 to 6 tokens a call; some want their last scores, some log P, some both or nothing.
 */
static void check_pieces(const heed_engine *e, const struct pairs *p, const struct steps *wanted,
                         int threads)
{
    heed_session *s = new_session(e, threads);
    const heed_rng rng = heed_rng_stream(&(heed_rng_key){.seed = 3});
    int32_t token[ROWS][STEPS + 1];
    heed_real log_p[ROWS][STEPS];
    int length[ROWS] = {0};
    fill_tokens(token);
    assert_int_equal(heed_session_add(s, p->source, ROWS, NULL), HEED_OK);
    for (uint64_t call = 0, missing = 1; missing; call += 64) {
        heed_extension x[ROWS];
        heed_scores last;
        heed_error err = {0};
        int n = 0, asks = 0;
        for (int r = 0; r < ROWS; r++) {
            int64_t some = heed_rng_below(&rng, call + (uint64_t)r, 7);
            some = some < STEPS - length[r] ? some : STEPS - length[r];
            if (!some)
                continue;
            const int64_t want = heed_rng_below(&rng, call + 16 + (uint64_t)r, 4);
            x[n++] = (heed_extension){.row = r,
                                      .tokens = {token[r] + length[r], some},
                                      .wanted = want & 1 ? token[r] + length[r] + 1 : NULL,
                                      .log_p = log_p[r] + length[r],
                                      .last = want & 2};
        }
        if (n && heed_session_extend(s, x, n, &last, &err))
            fail_msg("%s", err.text);
        missing = 0;
        for (int i = 0; i < n; i++) {
            const int r = (int)x[i].row, before = length[r];
            length[r] += (int)x[i].tokens.count;
            for (int k = before; x[i].wanted && k < length[r]; k++) {
                const heed_real one = logit_of(wanted, k, r)[token[r][k + 1]] - wanted->log_z[k][r];
                assert_memory_equal(&log_p[r][k], &one, sizeof one);
            }
            if (x[i].last)
                check_last(&last, asks++, wanted, length[r] - 1, r);
        }
        for (int r = 0; r < ROWS; r++)
            missing |= length[r] < STEPS;
    }
    heed_session_free(s);
}

/* Catches: a query that sees tokens behind it or misses one before it, keys of another row, a
 * normaliser of another row, bits that depend on how tokens are split or on threads. */
static void check_extend(const heed_model_config *config)
{
    heed_model *m = new_model(config);
    struct pairs *p = draw_pairs(ROWS, 91);
    for (int int8 = 0; int8 < 2; int8++) {
        heed_engine *e = int8 ? new_int8_engine(m) : new_engine(m);
        struct steps wanted;
        take_steps(e, p, &wanted);
        for (int threads = 1; threads <= 4; threads++)
            check_pieces(e, p, &wanted, threads);
        free(wanted.logit);
        heed_engine_free(e);
    }
    pairs_free(p);
    heed_model_free(m);
}

static void extend_is_many_steps(void **state)
{
    (void)state;
    for_each_form(check_extend);
    heed_model_config config = small_config();
    config.d = 64;
    config.transformer.ff = 264;
    config.source_vocabulary = config.target_vocabulary = 597;
    check_extend(&config);
}

/* ---- long rows: more tokens than a pass takes ---- */

enum { LONG = 2 * HEED__PASS_ROWS + 77 };

static heed_model_config long_config(void)
{
    heed_model_config c = small_config();
    c.longest = 5000;
    c.source_vocabulary = c.target_vocabulary = 1000;
    return c;
}

static int32_t *long_tokens(int64_t count)
{
    int32_t *id = malloc((size_t)(count + 1) * sizeof *id);
    for (int64_t i = 0; i <= count; i++)
        id[i] = i ? (int32_t)(3 + i * 31 % 990) : HEED_BOS;
    return id;
}

/* Catches: a pass that forgets where the one before it ended; log P against the tape's. */
static void long_extensions_are_the_forward_pass(void **state)
{
    (void)state;
    heed_model_config config = long_config();
    heed_model *m = new_model(&config);
    heed_engine *e = new_engine(m);
    heed_session *one = new_session(e, 1), *all = new_session(e, 2);
    heed_tape *t = new_tape(2);
    struct pairs *p = draw_pairs(2, 92);
    int32_t *id = long_tokens(LONG);
    heed_real *log_p = malloc(2 * LONG * sizeof *log_p);
    heed_scores last, step;
    id[LONG] = HEED_EOS;
    heed_extension x[2];
    for (int r = 0; r < 2; r++)
        x[r] = (heed_extension){.row = r,
                                .tokens = {id, LONG},
                                .wanted = id + 1,
                                .log_p = log_p + r * LONG,
                                .last = true};
    assert_int_equal(heed_session_add(all, p->source, 2, NULL), HEED_OK);
    assert_int_equal(heed_session_extend(all, x, 2, &last, NULL), HEED_OK);
    assert_int_equal(heed_session_add(one, p->source, 2, NULL), HEED_OK);
    for (int i = 0; i < LONG; i++) {
        const int32_t token[2] = {id[i], id[i]};
        assert_int_equal(heed_session_step(one, token, &step, NULL), HEED_OK);
        for (int r = 0; r < 2; r++) {
            const heed_real wanted = step.logit[r * step.columns + id[i + 1]] - step.log_z[r];
            assert_memory_equal(&log_p[r * LONG + i], &wanted, sizeof wanted);
        }
    }
    assert_memory_equal(last.logit, step.logit, (size_t)(2 * step.columns) * sizeof *step.logit);
    const heed_tokens target[2] = {{id + 1, LONG - 1}, {id + 1, LONG - 1}};
    heed_batch b;
    assert_int_equal(heed_batch_pack(p->arena, NULL, p->source, target, 2, &b, NULL), HEED_OK);
    heed_real *wanted = score(m, t, &b);
    for (int64_t i = 0; i < 2 * LONG; i++)
        assert_near((double)log_p[i], (double)wanted[i], 10 * SAME);
    free(wanted);
    free(log_p);
    free(id);
    pairs_free(p);
    heed_tape_free(t);
    heed_session_free(one);
    heed_session_free(all);
    heed_engine_free(e);
    heed_model_free(m);
}

/* Bytes that a session takes for a row of so many tokens, all of them with their log P. */
static long bytes_for(const heed_engine *e, const heed_tokens *source, int64_t count)
{
    struct failing f = {0};
    heed_allocator a = failing_allocator(&f);
    heed_session *s = heed_session_new(e, &(heed_session_options){.threads = 1}, &a, NULL);
    int32_t *id = long_tokens(count);
    heed_real *log_p = malloc((size_t)count * sizeof *log_p);
    assert_int_equal(heed_session_add(s, source, 1, NULL), HEED_OK);
    assert_int_equal(heed_session_extend(
                         s,
                         &(heed_extension){.tokens = {id, count}, .wanted = id + 1, .log_p = log_p},
                         1, NULL, NULL),
                     HEED_OK);
    heed_session_free(s);
    assert_int_equal(f.held, 0);
    free(log_p);
    free(id);
    return f.peak;
}

/* Catches: memory that grows with the square of the length, or with length times vocabulary. */
static void memory_is_linear(void **state)
{
    (void)state;
    heed_model_config config = long_config();
    heed_model *m = new_model(&config);
    heed_engine *e = new_engine(m);
    struct pairs *p = draw_pairs(1, 93);
    /* from HEED__PASS_ROWS tokens on, nothing but cells, lists and pointers grows */
    const long a = bytes_for(e, p->source, 1000), b = bytes_for(e, p->source, 2000),
               c = bytes_for(e, p->source, 4000);
    print_message("1000 tokens take %ld bytes, 2000 %ld, 4000 %ld\n", a, b, c);
    const long cell = (long)e->weights->decoder->own_cell * (long)sizeof(heed_real);
    const long logits = 1000 * (long)sizeof(heed_real); /* of one row */
    assert_true(10 * (c - b) <= 21 * (b - a)); /* twice as much: the square would be four times */
    assert_true(c - b < 2000 * (cell + 400));  /* sinusoids 64, lists 16, key pointers, scores */
    assert_true(c < 2000 * logits);
    pairs_free(p);
    heed_engine_free(e);
    heed_model_free(m);
}

/* ---- rewind ---- */

/* Catches: tokens left behind, cells released that another row uses, a position that goes on where
 * the old tokens ended. */
static void rewound_rows_are_fresh(void **state)
{
    (void)state;
    heed_model_config config = small_config();
    heed_model *m = new_model(&config);
    struct pairs *p = draw_pairs(ROWS, 94);
    for (int int8 = 0; int8 < 2; int8++) {
        heed_engine *e = int8 ? new_int8_engine(m) : new_engine(m);
        struct steps wanted;
        take_steps(e, p, &wanted);
        heed_session *s = new_session(e, 2);
        int32_t token[ROWS][STEPS + 1];
        heed_extension x[ROWS];
        heed_scores last;
        fill_tokens(token);
        assert_int_equal(heed_session_add(s, p->source, ROWS, NULL), HEED_OK);
        for (int r = 0; r < ROWS; r++) /* the tokens of another row */
            x[r] = (heed_extension){.row = r, .tokens = {token[(r + 1) % ROWS], STEPS}};
        assert_int_equal(heed_session_extend(s, x, ROWS, NULL, NULL), HEED_OK);
        for (int r = 0; r < ROWS; r++) { /* BOS is common to all, the others are not */
            assert_int_equal(heed_session_rewind(s, r, r % 2, NULL), HEED_OK);
            x[r] = (heed_extension){
                .row = r, .tokens = {token[r] + r % 2, 10 + r - r % 2}, .last = true};
        }
        assert_int_equal(heed_session_extend(s, x, ROWS, &last, NULL), HEED_OK);
        for (int r = 0; r < ROWS; r++)
            check_last(&last, r, &wanted, 9 + r, r);
        /* two rows with a common beginning; one takes it back and says it again */
        const int32_t twice[] = {3, 3};
        assert_int_equal(heed_session_reorder(s, twice, 2, NULL), HEED_OK);
        assert_int_equal(heed_session_rewind(s, 0, 4, NULL), HEED_OK);
        x[0] = (heed_extension){.row = 0, .tokens = {token[3] + 4, STEPS - 4}, .last = true};
        x[1] = (heed_extension){.row = 1, .tokens = {token[3] + 13, STEPS - 13}, .last = true};
        assert_int_equal(heed_session_extend(s, x, 2, &last, NULL), HEED_OK);
        check_last(&last, 0, &wanted, STEPS - 1, 3);
        check_last(&last, 1, &wanted, STEPS - 1, 3);
        heed_session_free(s);
        free(wanted.logit);
        heed_engine_free(e);
    }
    pairs_free(p);
    heed_model_free(m);
}

/* ---- other models, refusals, memory ---- */

/* Catches: log P of another row, and rows that are not asked left among those that are. */
static void unpacked_models_extend_by_one(void **state)
{
    (void)state;
    heed_model_config config = small_config_of(2);
    heed_model *m = new_model(&config);
    heed_engine *e = new_engine(m);
    heed_session *s = new_session(e, 1);
    heed_tape *t = new_tape(1);
    struct pairs *p = draw_pairs(2, 95);
    heed_batch b = pack(p, 0, 2);
    heed_real *wanted = score(m, t, &b), log_p[2];
    const int64_t *begin = b.target.rows->offset;
    heed_scores last;
    assert_int_equal(heed_session_add(s, p->source, 2, NULL), HEED_OK);
    for (int i = 0; i < begin[1] && i < begin[2] - begin[1]; i++) {
        heed_extension x[2];
        for (int r = 0; r < 2; r++)
            x[r] = (heed_extension){.row = r,
                                    .tokens = {b.target.ids + begin[r] + i, 1},
                                    .wanted = b.wanted + begin[r] + i,
                                    .log_p = &log_p[r],
                                    .last = r == 1};
        assert_int_equal(heed_session_extend(s, x, 2, &last, NULL), HEED_OK);
        for (int r = 0; r < 2; r++)
            assert_near((double)log_p[r], (double)wanted[begin[r] + i], SAME);
        assert_near((double)last.logit[b.wanted[begin[1] + i]], (double)wanted[begin[1] + i], SAME);
    }
    heed_error err = {0};
    const int32_t two[] = {3, 4};
    heed_extension x[] = {{.row = 0, .tokens = {two, 2}}, {.row = 1, .tokens = {two, 2}}};
    assert_int_equal(heed_session_extend(s, x, 2, NULL, &err), HEED_ARGUMENT);
    assert_string_equal(err.text, "this model takes one token for row 0, found 2 for row 0");
    err = (heed_error){0};
    assert_int_equal(heed_session_extend(s, x, 1, NULL, &err), HEED_ARGUMENT);
    assert_string_equal(err.text, "this model extends all 2 rows together, found 1");
    err = (heed_error){0};
    assert_int_equal(heed_session_rewind(s, 0, 0, &err), HEED_ARGUMENT);
    assert_string_equal(err.text, "this model cannot take tokens back");
    free(wanted);
    pairs_free(p);
    heed_tape_free(t);
    heed_session_free(s);
    heed_engine_free(e);
    heed_model_free(m);
}

static void check_refusal(heed_session *s, const heed_extension *x, int64_t count, const char *text)
{
    heed_error err = {0};
    heed_scores last;
    assert_int_equal(heed_session_extend(s, x, count, &last, &err), HEED_ARGUMENT);
    assert_string_equal(err.text, text);
}

/* Catches: rows and tokens that do not exist, and a refusal that has changed something. */
static void wrong_extensions_are_refused(void **state)
{
    (void)state;
    heed_model_config config = small_config();
    heed_model *m = new_model(&config);
    heed_engine *e = new_engine(m);
    struct pairs *p = draw_pairs(ROWS, 91);
    struct steps wanted;
    take_steps(e, p, &wanted);
    heed_session *s = new_session(e, 1);
    int32_t token[ROWS][STEPS + 1], bad[] = {3, VOCABULARY}, many[LONGEST + 1] = {0};
    heed_real log_p[2];
    heed_error err = {0};
    fill_tokens(token);
    assert_int_equal(heed_session_add(s, p->source, 2, NULL), HEED_OK);
    const heed_extension good = {.row = 0, .tokens = {token[0], 3}, .last = true};
    const heed_extension low[] = {{.row = 1, .tokens = {bad, 1}}, good};
    check_refusal(s, low, 2, "row 0 is extended, expected 2 to 1");
    const heed_extension high[] = {good, {.row = 2, .tokens = {bad, 1}}};
    check_refusal(s, high, 2, "row 2 is extended, expected 1 to 1");
    const heed_extension none[] = {good, {.row = 1}};
    check_refusal(s, none, 2, "row 1 takes 0 tokens, expected at least 1");
    const heed_extension wrong[] = {good, {.row = 1, .tokens = {bad, 2}}};
    check_refusal(s, wrong, 2, "row 1 takes token 17, expected 0 to 16");
    const heed_extension asked[] = {
        good, {.row = 1, .tokens = {token[1], 2}, .wanted = bad, .log_p = log_p}};
    check_refusal(s, asked, 2, "row 1 takes token 17, expected 0 to 16");
    const heed_extension longer[] = {good, {.row = 1, .tokens = {many, LONGEST + 1}}};
    check_refusal(s, longer, 2, "cannot decode token 25: expected at most 24, as '--longest' says");
    heed_scores last;
    assert_int_equal(heed_session_extend(s, &good, 1, &last, NULL), HEED_OK);
    check_last(&last, 0, &wanted, 2, 0);
    assert_int_equal(heed_session_rewind(s, 0, 4, &err), HEED_ARGUMENT);
    assert_string_equal(err.text, "cannot rewind row 0 to 4 tokens, expected 0 to 3");
    err = (heed_error){0};
    assert_int_equal(heed_session_rewind(s, 2, 0, &err), HEED_ARGUMENT);
    assert_string_equal(err.text, "cannot rewind row 2, expected 0 to 1");
    free(wanted.logit);
    heed_session_free(s);
    pairs_free(p);
    heed_engine_free(e);
    heed_model_free(m);
}

static heed_status use(heed_session *s, const struct pairs *p, const int32_t *id, heed_real *log_p,
                       heed_error *err)
{
    heed_scores last;
    heed_session_clear(s);
    heed_status status = heed_session_add(s, p->source, 2, err);
    const heed_extension x[] = {
        {.row = 0, .tokens = {id, LONG}, .wanted = id + 1, .log_p = log_p, .last = true},
        {.row = 1, .tokens = {id, 40}}};
    if (!status)
        status = heed_session_extend(s, x, 2, &last, err);
    if (!status)
        status = heed_session_rewind(s, 0, 7, err);
    return status ? status : heed_session_extend(s, &x[1], 1, NULL, err);
}

/* Catches: an unchecked allocation, a leak, a session that a failure leaves unusable. */
static void memory_fails_at_every_allocation(void **state)
{
    (void)state;
    heed_model_config config = long_config();
    heed_model *m = new_model(&config);
    heed_engine *e = new_engine(m);
    struct pairs *p = draw_pairs(2, 96);
    int32_t *id = long_tokens(LONG);
    heed_real *log_p = malloc(LONG * sizeof *log_p);
    struct failing f = {0};
    heed_allocator a = failing_allocator(&f);
    bool done = false;
    for (int at = 1; !done; at++) {
        heed_error err = {0};
        f.calls = 0;
        f.fail_at = at;
        heed_session *s = heed_session_new(e, &(heed_session_options){.threads = 1}, &a, &err);
        done = s && use(s, p, id, log_p, &err) == HEED_OK;
        if (!done)
            assert_int_equal(err.status, HEED_MEMORY);
        f.fail_at = 0;
        if (s)
            assert_int_equal(use(s, p, id, log_p, NULL), HEED_OK);
        heed_session_free(s);
        assert_int_equal(f.held, 0);
    }
    free(log_p);
    free(id);
    pairs_free(p);
    heed_engine_free(e);
    heed_model_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(extend_is_many_steps),
        cmocka_unit_test(long_extensions_are_the_forward_pass),
        cmocka_unit_test(memory_is_linear),
        cmocka_unit_test(rewound_rows_are_fresh),
        cmocka_unit_test(unpacked_models_extend_by_one),
        cmocka_unit_test(wrong_extensions_are_refused),
        cmocka_unit_test(memory_fails_at_every_allocation),
    };
    return cmocka_run_group_tests_name("extend", tests, NULL, NULL);
}
