/* Segments: their views, and that no operator lets one sentence change another's output. */
#include <heed/heed.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

enum { D = 8, B = 4, N = 17 };
static const int64_t lengths[B] = {5, 0, 9, 3};

/* Catches: a time-major view that loses, doubles or misorders a row. */
static void time_major_view(void **state)
{
    (void)state;
    heed_arena *arena = heed_arena_new(NULL, NULL);
    const heed_segments *s = heed_segments_new(arena, B, lengths);
    assert_non_null(s);
    assert_int_equal(s->rows, N);
    assert_int_equal(s->longest, 9);
    static const int32_t order[B] = {2, 0, 3, 1};
    assert_memory_equal(s->order, order, sizeof order);
    static const int64_t active[9] = {3, 3, 3, 2, 2, 1, 1, 1, 1};
    for (int t = 0; t < 9; t++)
        assert_int_equal(s->step_offset[t + 1] - s->step_offset[t], active[t]);
    for (int i = 0; i < N; i++)
        assert_int_equal(s->to_time[s->to_packed[i]], i);
    /* Step 3 holds token 3 of sentence 2, then of sentence 0. */
    assert_int_equal(s->to_time[s->step_offset[3]], s->offset[2] + 3);
    assert_int_equal(s->to_time[s->step_offset[3] + 1], 3);
    heed_arena_free(arena);
}

/* Catches: nonsense taken for a batch. */
static void wrong_lengths(void **state)
{
    (void)state;
    heed_arena *arena = heed_arena_new(NULL, NULL);
    assert_null(heed_segments_new(arena, 2, (int64_t[]){3, -1}));
    assert_null(heed_segments_new(arena, 2, (int64_t[]){INT64_MAX, 1}));
    assert_null(heed_segments_new(arena, -1, lengths));
    assert_null(heed_segments_new(NULL, 1, lengths));
    const heed_segments *s = heed_segments_new(arena, 0, NULL);
    assert_non_null(s);
    assert_int_equal(s->rows, 0);
    heed_arena_free(arena);
}

struct layers {
    heed_rnn_layer rnn;
    heed_mha_layer mha;
    heed_attend_layer local;
};

typedef heed_tensor *segmented(heed_tape *t, const struct layers *l, heed_tensor *x,
                               const heed_segments *s);

static heed_tensor *attention(heed_tape *t, const struct layers *l, heed_tensor *x,
                              const heed_segments *s)
{
    (void)l;
    return heed_attention(t, x, x, x, s, s, &(heed_attention_options){.heads = 2});
}

static heed_tensor *causal(heed_tape *t, const struct layers *l, heed_tensor *x,
                           const heed_segments *s)
{
    (void)l;
    return heed_attention(t, x, x, x, s, s, &(heed_attention_options){.heads = 4, .causal = true});
}

static heed_tensor *mha(heed_tape *t, const struct layers *l, heed_tensor *x,
                        const heed_segments *s)
{
    return heed_mha_apply(t, &l->mha, x, x, s, s, NULL);
}

static heed_tensor *local(heed_tape *t, const struct layers *l, heed_tensor *x,
                          const heed_segments *s)
{
    heed_memory m = heed_attend_memory(t, &l->local, x, x, s);
    return heed_attend(t, &l->local, x, &m, s, NULL);
}

static heed_tensor *softmax(heed_tape *t, const struct layers *l, heed_tensor *x,
                            const heed_segments *s)
{
    (void)l;
    return heed_segment_softmax(t, x, s);
}

static heed_tensor *shift(heed_tape *t, const struct layers *l, heed_tensor *x,
                          const heed_segments *s)
{
    (void)l;
    return heed_segment_shift(t, x, s, 1, NULL);
}

static heed_tensor *shift_back(heed_tape *t, const struct layers *l, heed_tensor *x,
                               const heed_segments *s)
{
    (void)l;
    return heed_segment_shift(t, x, s, -2, NULL);
}

static heed_tensor *reverse(heed_tape *t, const struct layers *l, heed_tensor *x,
                            const heed_segments *s)
{
    (void)l;
    return heed_segment_reverse(t, x, s);
}

static heed_tensor *rnn(heed_tape *t, const struct layers *l, heed_tensor *x,
                        const heed_segments *s)
{
    return heed_rnn_apply(t, &l->rnn, x, s, NULL, NULL);
}

/* One row a sentence: spread over its rows again so that all can be compared alike. */
static heed_tensor *spread(heed_tape *t, heed_tensor *y, const heed_segments *s)
{
    int32_t *row = heed_arena_allocate(heed_tape_arena(t), (size_t)s->rows * sizeof *row);
    for (int b = 0; b < B; b++)
        for (int64_t i = s->offset[b]; i < s->offset[b + 1]; i++)
            row[i] = b;
    return heed_gather_rows(t, y, row, s->rows);
}

static heed_tensor *sum(heed_tape *t, const struct layers *l, heed_tensor *x,
                        const heed_segments *s)
{
    (void)l;
    return spread(t, heed_segment_sum(t, x, s), s);
}

static heed_tensor *mean(heed_tape *t, const struct layers *l, heed_tensor *x,
                         const heed_segments *s)
{
    (void)l;
    return spread(t, heed_segment_mean(t, x, s), s);
}

static heed_tensor *max(heed_tape *t, const struct layers *l, heed_tensor *x,
                        const heed_segments *s)
{
    (void)l;
    return spread(t, heed_segment_max(t, x, s), s);
}

static const struct {
    const char *name;
    segmented *run;
} operators[] = {{"attention", attention},
                 {"causal attention", causal},
                 {"multi-head layer", mha},
                 {"local-p", local},
                 {"segment_softmax", softmax},
                 {"segment_shift", shift},
                 {"segment_shift back", shift_back},
                 {"segment_reverse", reverse},
                 {"bidirectional LSTM", rnn},
                 {"segment_sum", sum},
                 {"segment_mean", mean},
                 {"segment_max", max}};

/* Catches: a window, a carry or a sum that runs over the end of a sentence. */
static void no_sentence_changes_another(void **state)
{
    (void)state;
    heed_params *p = heed_params_new(NULL, NULL);
    struct layers l;
    heed_rnn_build(&l.rnn, heed_scope_enter(heed_params_scope(p), "rnn"),
                   &(heed_rnn_options){.layers = 2, .bidirectional = true, .in = D, .d = D});
    heed_mha_build(&l.mha, heed_scope_enter(heed_params_scope(p), "mha"),
                   &(heed_mha_options){.d = D, .heads = 2});
    heed_attend_build(&l.local, heed_scope_enter(heed_params_scope(p), "local"),
                      &(heed_attend_options){.score = HEED_SCORE_ADDITIVE,
                                             .pattern = HEED_ONE(HEED_PATTERN_LOCAL_P, {2}),
                                             .heads = 2,
                                             .query_d = D,
                                             .key_d = D});
    assert_int_equal(heed_params_finish(p, 1, NULL), HEED_OK);
    heed_tape *t = heed_tape_new(NULL, NULL);
    heed_real x[N * D], before[N * 2 * D];
    for (int i = 0; i < N * D; i++)
        x[i] = (heed_real)((i * 37 % 101) / 50.0 - 1);
    for (size_t k = 0; k < sizeof operators / sizeof *operators; k++)
        for (int victim = 0; victim < B; victim++) {
            heed_tape_reset(t);
            const heed_segments *s = heed_segments_new(heed_tape_arena(t), B, lengths);
            heed_tensor *y = operators[k].run(t, &l, heed_input(t, HEED_SHAPE(N, D), x), s);
            if (!y)
                fail_msg("%s: %s", operators[k].name, heed_tape_error(t)->text);
            int64_t cols = heed_tensor_cols(y);
            assert_true(cols <= 2 * D);
            memcpy(before, heed_tensor_data(y), (size_t)(N * cols) * sizeof *before);
            heed_tape_reset(t);
            s = heed_segments_new(heed_tape_arena(t), B, lengths);
            heed_tensor *changed = heed_input(t, HEED_SHAPE(N, D), x);
            for (int64_t i = s->offset[victim] * D; i < s->offset[victim + 1] * D; i++)
                heed_tensor_data(changed)[i] = (heed_real)(3 - i % 5);
            y = operators[k].run(t, &l, changed, s);
            for (int b = 0; b < B; b++)
                for (int64_t i = s->offset[b]; b != victim && i < s->offset[b + 1]; i++)
                    if (memcmp(before + i * cols, heed_tensor_data(y) + i * cols,
                               (size_t)cols * sizeof *before) != 0)
                        fail_msg("%s: sentence %d changed row %d of sentence %d", operators[k].name,
                                 victim, (int)(i - s->offset[b]), b);
        }
    heed_tape_free(t);
    heed_params_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(time_major_view),
        cmocka_unit_test(wrong_lengths),
        cmocka_unit_test(no_sentence_changes_another),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
