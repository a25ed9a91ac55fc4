/* Rows that keep a state, or the keys of a window: memory that does not grow with their length, and
 * the same answers as the tape gives that sees everything. */
#include "one_stack.h"

#include "engine_help.h"
#include "failing_allocator.h"

enum { LENGTH = 1400, EARLY = 700 };

/* Model i of a decoder alone whose rows are of constant size; false behind the last. */
static bool constant_form(int i, heed_model_config *c)
{
    static const heed_slot_spec pattern[] = {
        HEED_ONE(HEED_PATTERN_BAND, {6}),
        HEED_ONE(HEED_PATTERN_LOCAL_M, {3}),
        {.count = 2, .term = {{HEED_PATTERN_BAND, {6}}, {HEED_PATTERN_GLOBAL, {2}}}},
    };
    static const heed_slot_spec normaliser[] = {
        HEED_ONE(HEED_NORMALISE_ELU), HEED_ONE(HEED_NORMALISE_PERFORMER, {24}),
        HEED_ONE(HEED_NORMALISE_RFA, {12, 1}), HEED_ONE(HEED_NORMALISE_DELTA, {1})};
    *c = one_stack_config(HEED_ARCH_DECODER);
    c->longest = LENGTH + 8;
    c->dropout = c->attention.dropout = 0;
    c->transformer.positions = HEED_POSITIONS_NONE;
    if (i > 0 && i < 4)
        c->attention.pattern = pattern[i - 1];
    else if (i < (int)(sizeof normaliser / sizeof *normaliser) + 3)
        c->attention.normaliser = normaliser[i ? i - 3 : 0];
    else
        return false;
    return true;
}

static int32_t *new_tokens(void)
{
    int32_t *id = malloc(LENGTH * sizeof *id);
    for (int i = 0; i < LENGTH; i++)
        id[i] = i ? 3 + (i * 7 + i / 5 * 3) % (VOCABULARY - 3) : HEED_BOS;
    return id;
}

static void extend(heed_session *s, int64_t row, const int32_t *id, int64_t count,
                   heed_scores *last)
{
    heed_error err = {0};
    const heed_extension x = {.row = row, .tokens = {id, count}, .last = true};
    if (heed_session_extend(s, &x, 1, last, &err))
        fail_msg("%s", err.text);
}

/* Logits behind the last token, by the tape. */
static heed_real *tape_logits(const heed_model *m, const int32_t *id)
{
    heed_tape *t = new_tape(1);
    const int64_t length = LENGTH;
    const int32_t wanted = LENGTH - 1;
    heed_batch b = {.examples = 1, .wanted_row = &wanted, .wanted_count = 1};
    b.target =
        (heed_batch_side){.rows = heed_segments_new(heed_tape_arena(t), 1, &length), .ids = id};
    heed_tensor *y = heed_model_logits(m, t, &b);
    if (!y)
        fail_msg("%s", heed_tape_error(t)->text);
    heed_real *copy = malloc(VOCABULARY * sizeof *copy);
    memcpy(copy, heed_tensor_data(y), VOCABULARY * sizeof *copy);
    heed_tape_free(t);
    return copy;
}

static void check_constant(const heed_model_config *config)
{
    struct failing f = {0};
    heed_allocator a = failing_allocator(&f);
    heed_model *m = new_rough_model(config);
    heed_engine *e = new_engine(m);
    heed_session *s = heed_session_new(e, &(heed_session_options){.threads = 1}, &a, NULL);
    int32_t *id = new_tokens();
    heed_real *full = tape_logits(m, id);
    heed_scores last;
    assert_non_null(e->weights);
    assert_int_equal(heed_session_add(s, NULL, 2, NULL), HEED_OK);
    long held = 0;
    for (int i = 0, n; i < LENGTH; i += n) { /* one by one, and some at once */
        n = i % 50 == 0 ? 10 : 1;
        extend(s, 0, id + i, n, &last);
        if (i == EARLY)
            held = f.held;
        if (i % 100 == 90) { /* the rows part: the other one goes on elsewhere for a while */
            const int32_t fork[2] = {0, 0};
            assert_int_equal(heed_session_reorder(s, fork, 2, NULL), HEED_OK);
            extend(s, 1, id + 3, 4, &last);
        }
    }
    assert_int_equal(f.held, held);
    extend(s, 1, id, 1, &last);
    assert_int_equal(f.held, held);
    assert_int_equal(heed_session_rewind(s, 1, 0, NULL), HEED_OK);
    extend(s, 1, id, LENGTH, &last); /* in one call */
    for (int v = 0; v < VOCABULARY; v++)
        assert_near((double)last.logit[v], (double)full[v], 30 * SAME);
    free(full);
    free(id);
    heed_session_free(s);
    assert_int_equal(f.held, 0);
    heed_engine_free(e);
    heed_model_free(m);
}

/* Catches: cells that are out of every window and stay; a list that grows with the tokens; a state
 * that another row has changed; a cell released that a pattern still sees. */
static void long_rows_take_no_more_memory(void **state)
{
    heed_model_config config;
    (void)state;
    for (int i = 0; constant_form(i, &config); i++)
        check_constant(&config);
}

/* Catches: bits that depend on how many tokens came at once, where states are continued and cells
 * are given back between the passes. */
static void many_at_once_are_single_steps(void **state)
{
    heed_model_config config;
    (void)state;
    for (int i = 0; constant_form(i, &config); i++) {
        heed_model *m = new_rough_model(&config);
        for (int int8 = 0; int8 < 2; int8++) {
            heed_engine *e = int8 ? new_int8_engine(m) : new_engine(m);
            heed_session *one = new_session(e, 1), *all = new_session(e, 3);
            int32_t *id = new_tokens();
            heed_scores step, last;
            assert_int_equal(heed_session_add(one, NULL, 1, NULL), HEED_OK);
            assert_int_equal(heed_session_add(all, NULL, 1, NULL), HEED_OK);
            for (int k = 0; k < 600; k++)
                extend(one, 0, id + k, 1, &step);
            extend(all, 0, id, 60, &last);
            extend(all, 0, id + 60, 540, &last); /* two passes */
            assert_memory_equal(last.logit, step.logit, VOCABULARY * sizeof *step.logit);
            free(id);
            heed_session_free(one);
            heed_session_free(all);
            heed_engine_free(e);
        }
        heed_model_free(m);
    }
}

static void refused(heed_session *s, int64_t length, const char *text)
{
    heed_error err = {0};
    assert_int_equal(heed_session_rewind(s, 0, length, &err), HEED_ARGUMENT);
    assert_string_equal(err.text, text);
}

/* Catches: a row that goes on from a state it had later, or from keys that are gone. */
static void what_is_gone_is_not_rewound_to(void **state)
{
    heed_model_config config;
    (void)state;
    for (int i = 0; i < 2; i++) {
        constant_form(i, &config);
        heed_model *m = new_rough_model(&config);
        heed_engine *e = new_engine(m);
        heed_session *s = new_session(e, 1);
        int32_t *id = new_tokens();
        heed_scores last, again;
        heed_real first[VOCABULARY];
        assert_int_equal(heed_session_add(s, NULL, 1, NULL), HEED_OK);
        extend(s, 0, id, 60, &last);
        memcpy(first, last.logit, sizeof first);
        extend(s, 0, id + 60, 1, &last);
        if (i)
            refused(s, 59,
                    "cannot rewind to 59 tokens: what they look back at is gone, expected 0, or 60 "
                    "to 61");
        else
            refused(s, 60, "cannot rewind to 60 tokens what keeps a state of 61: expected 0 or 61");
        if (i) { /* as long as all keys of the window are there */
            assert_int_equal(heed_session_rewind(s, 0, 60, NULL), HEED_OK);
            extend(s, 0, id + 60, 1, &again);
        }
        assert_int_equal(heed_session_rewind(s, 0, 0, NULL), HEED_OK);
        extend(s, 0, id, 60, &again);
        assert_memory_equal(again.logit, first, sizeof first);
        free(id);
        heed_session_free(s);
        heed_engine_free(e);
        heed_model_free(m);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(long_rows_take_no_more_memory),
        cmocka_unit_test(many_at_once_are_single_steps),
        cmocka_unit_test(what_is_gone_is_not_rewound_to),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
