/* Encoders through the packed engine: hidden states, means, pooled vectors and logits against the
 * tape, alone and many at once, fp32 and int8. */
#include "one_stack.h"

#include "engine_help.h"
#include "failing_allocator.h"
#include <pthread.h>

enum { SEQUENCES = 40, WIDTH = 5, LABELS = 6 };

struct input {
    heed_arena *arena;
    heed_batch_side side;
    int32_t row[SEQUENCES * LONGEST]; /* every third */
    int64_t wanted;
};

/* Sequences of 1 to LONGEST rows: tokens and types, or features. */
static struct input *new_input(const heed_model_config *c)
{
    struct input *in = calloc(1, sizeof *in);
    in->arena = heed_arena_new(NULL, NULL);
    int64_t lengths[SEQUENCES], rows = 0;
    for (int b = 0; b < SEQUENCES; b++)
        rows += lengths[b] = b == 7 ? LONGEST : 1 + b * 13 % LONGEST;
    int32_t *id = heed_arena_allocate(in->arena, (size_t)rows * sizeof *id);
    int32_t *type = heed_arena_allocate(in->arena, (size_t)rows * sizeof *type);
    heed_real *feature = heed_arena_allocate(in->arena, (size_t)(rows * WIDTH) * sizeof *feature);
    for (int64_t i = 0; i < rows; i++) {
        id[i] = (int32_t)(i * 31 % VOCABULARY);
        type[i] = (int32_t)(i / 3 % 2);
        if (i % 3 == 0)
            in->row[in->wanted++] = (int32_t)i;
    }
    for (int64_t i = 0; i < rows * WIDTH; i++)
        feature[i] = (heed_real)(i * 37 % 101) / 50 - 1;
    in->side = (heed_batch_side){.rows = heed_segments_new(in->arena, SEQUENCES, lengths)};
    if (c->features) {
        in->side.features = feature;
        in->side.width = WIDTH;
    } else {
        in->side.ids = id;
        in->side.types = c->transformer.types ? type : NULL;
    }
    return in;
}

static void input_free(struct input *in)
{
    heed_arena_free(in->arena);
    free(in);
}

static heed_encoding encode(heed_session *s, const struct input *in, heed_encode_kind kind,
                            bool some)
{
    heed_encoding found;
    heed_error err = {0};
    const heed_encode_options o = {
        .kind = kind, .row = some ? in->row : NULL, .count = some ? in->wanted : 0};
    if (heed_session_encode(s, &in->side, &o, &found, &err))
        fail_msg("%s", err.text);
    return found;
}

/* What the tape says of wanted rows. */
static heed_tensor *oracle(heed_tape *t, const heed_model *m, const struct input *in,
                           heed_encode_kind kind, bool some)
{
    heed_tape_reset(t);
    heed_batch b = {.examples = SEQUENCES, .source = in->side};
    heed_tensor *h = heed_model_hidden(m, t, &b);
    if (some)
        h = heed_gather_rows(t, h, in->row, in->wanted);
    if (kind == HEED_ENCODE_POOLED)
        h = heed_head_transform(t, &m->head, h);
    if (kind == HEED_ENCODE_LOGITS)
        h = heed_head_logits(t, &m->head, h);
    if (!h)
        fail_msg("%s", heed_tape_error(t)->text);
    return h;
}

/* A loop over rows and sequences. */
static void check_means(heed_session *s, heed_tape *t, const heed_model *m, const struct input *in,
                        bool some)
{
    const heed_real *h = heed_tensor_data(oracle(t, m, in, HEED_ENCODE_HIDDEN, false));
    const heed_encoding found = encode(s, in, HEED_ENCODE_MEAN, some);
    const int64_t *offset = in->side.rows->offset, d = found.columns;
    assert_int_equal(found.rows, SEQUENCES);
    for (int b = 0; b < SEQUENCES; b++)
        for (int64_t j = 0; j < d; j++) {
            double sum = 0;
            int64_t n = 0;
            for (int64_t i = offset[b]; i < offset[b + 1]; i++)
                if (!some || i % 3 == 0) {
                    sum += (double)h[i * d + j];
                    n++;
                }
            assert_near((double)found.value[b * d + j], n ? sum / (double)n : 0, 10 * SAME);
        }
}

static void check_tape(const heed_engine *e, const heed_model *m, const struct input *in,
                       int threads)
{
    heed_tape *t = new_tape(1);
    heed_tape_set_training(t, false);
    heed_session *s = new_session(e, threads);
    static const heed_encode_kind kind[] = {HEED_ENCODE_HIDDEN, HEED_ENCODE_POOLED,
                                            HEED_ENCODE_LOGITS};
    for (int k = 0; k < 3; k++)
        for (int some = 0; some < 2; some++) {
            heed_tensor *wanted = oracle(t, m, in, kind[k], some);
            const heed_encoding found = encode(s, in, kind[k], some);
            assert_int_equal(found.rows, heed_tensor_rows(wanted));
            assert_int_equal(found.columns, heed_tensor_cols(wanted));
            for (int64_t i = 0; i < found.rows * found.columns; i++)
                assert_near((double)found.value[i], (double)heed_tensor_data(wanted)[i], 10 * SAME);
        }
    check_means(s, t, m, in, false);
    check_means(s, t, m, in, true);
    heed_session_free(s);
    heed_tape_free(t);
}

/* ---- the same bits ---- */

struct job {
    const heed_engine *e;
    const struct input *in;
    const heed_encoding *wanted;
    bool same;
};

/* Each sequence alone, through the engine. */
static void *encode_alone(void *context)
{
    struct job *j = context;
    const heed_batch_side *all = &j->in->side;
    heed_arena *arena = heed_arena_new(NULL, NULL);
    j->same = true;
    for (int64_t b = 0; b < SEQUENCES; b++) {
        const int64_t begin = all->rows->offset[b], length = all->rows->offset[b + 1] - begin;
        heed_batch_side one = {.rows = heed_segments_new(arena, 1, &length), .width = all->width};
        heed_encoding found;
        one.ids = all->ids ? all->ids + begin : NULL;
        one.types = all->types ? all->types + begin : NULL;
        one.features = all->features ? all->features + begin * all->width : NULL;
        if (heed_engine_encode(j->e, &one, &(heed_encode_options){.kind = HEED_ENCODE_LOGITS},
                               arena, &found, NULL) ||
            memcmp(found.value, j->wanted->value + begin * found.columns,
                   (size_t)(length * found.columns) * sizeof *found.value) != 0)
            j->same = false;
    }
    heed_arena_free(arena);
    return NULL;
}

static void check_bits(const heed_engine *e, const struct input *in)
{
    enum { THREADS = 4 };
    heed_session *s = new_session(e, 3);
    const heed_encoding wanted = encode(s, in, HEED_ENCODE_LOGITS, false);
    struct job job[THREADS];
    pthread_t thread[THREADS];
    for (int i = 0; i < THREADS; i++) {
        job[i] = (struct job){e, in, &wanted, false};
        assert_int_equal(pthread_create(&thread[i], NULL, encode_alone, &job[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(thread[i], NULL);
        assert_true(job[i].same);
    }
    heed_session_free(s);
}

/* The mean distance of int8 from fp32, beside the mean size. */
static void check_int8(const heed_engine *e, const heed_engine *int8, const struct input *in)
{
    heed_session *a = new_session(e, 1), *b = new_session(int8, 1);
    const heed_encoding x = encode(a, in, HEED_ENCODE_HIDDEN, false),
                        y = encode(b, in, HEED_ENCODE_HIDDEN, false);
    double off = 0, size = 0;
    for (int64_t i = 0; i < x.rows * x.columns; i++) {
        off += fabs((double)x.value[i] - (double)y.value[i]);
        size += fabs((double)x.value[i]);
    }
    assert_true(off < 0.1 * size && off > 0);
    heed_session_free(a);
    heed_session_free(b);
}

static void check_model(const heed_model_config *config, bool bits)
{
    heed_model *m = new_rough_model(config);
    struct input *in = new_input(config);
    heed_engine *e = new_engine(m), *int8 = NULL;
    check_tape(e, m, in, bits ? 2 : 1);
    /* Compressed memories, queries that others ask for and patterns by content are not packed:
     * their models answer by their own layers. */
    assert_int_equal(!e->weights, heed__slot_kind(&config->attention.memory) >= HEED_MEMORY_MCA ||
                                      heed__slot_kind(&config->attention.queries) ||
                                      heed__content_term(&config->attention.pattern));
    if (e->weights) {
        int8 = new_int8_engine(m);
        if (bits) {
            check_bits(e, in);
            check_bits(int8, in);
        }
        check_int8(e, int8, in);
    }
    input_free(in);
    heed_engine_free(e);
    heed_engine_free(int8);
    heed_model_free(m);
}

static void check_form(const heed_model_config *config)
{
    check_model(config, true);
}

static void check_attention(const heed_model_config *config)
{
    check_model(config, false);
}

/* Catches: hidden states of another row, a row that sees another sequence, a head that is not the
 * trained one, results that depend on the batch or on threads. */
static void encoders_are_the_forward_pass(void **state)
{
    (void)state;
    for_each_one_stack(HEED_ARCH_ENCODER, check_form);
    for_each_attention(HEED_ARCH_ENCODER, check_attention);
}

/* Catches: types left out, labels taken for tokens, positions of features left out. */
static void types_features_and_labels(void **state)
{
    (void)state;
    heed_model_config c = one_stack_config(HEED_ARCH_ENCODER);
    c.transformer.types = 2;
    c.transformer.embedding_norm = true;
    c.labels = LABELS;
    check_form(&c);
    c.transformer.types = 0;
    c.features = WIDTH;
    c.source_vocabulary = 0;
    c.transformer.positions = HEED_POSITIONS_LEARNED;
    check_form(&c);
}

/* Catches: an encoder that cannot be packed giving something else than the tape. */
static void unpacked_encoders_take_the_tape(void **state)
{
    (void)state;
    heed_model_config c = one_stack_config(HEED_ARCH_ENCODER);
    c.attention.score = HEED_SCORE_ADDITIVE;
    heed_model *m = new_rough_model(&c);
    struct input *in = new_input(&c);
    heed_engine *e = new_engine(m);
    assert_null(e->weights);
    check_tape(e, m, in, 2);
    input_free(in);
    heed_engine_free(e);
    heed_model_free(m);
}

/* Catches: the encoder of a translator giving other hidden states than those its decoder reads. */
static void translators_encode(void **state)
{
    (void)state;
    heed_model_config c = small_config();
    heed_model *m = new_rough_model(&c);
    struct input *in = new_input(&c);
    heed_engine *e = new_engine(m);
    heed_session *s = new_session(e, 1);
    heed_tape *t = new_tape(1);
    const heed_stack *stack = heed__model_stack(m, HEED_SOURCE);
    heed_tape_set_training(t, false);
    heed_flow flow = {.x = heed_input_apply(t, &stack->input, &in->side), .rows = in->side.rows};
    heed_tensor *wanted = heed_stack_apply(t, stack, &flow);
    const heed_encoding found = encode(s, in, HEED_ENCODE_HIDDEN, false);
    for (int64_t i = 0; i < found.rows * found.columns; i++)
        assert_near((double)found.value[i], (double)heed_tensor_data(wanted)[i], 10 * SAME);
    heed_encoding none;
    heed_error err = {0};
    assert_int_equal(heed_session_encode(s, &in->side,
                                         &(heed_encode_options){.kind = HEED_ENCODE_LOGITS}, &none,
                                         &err),
                     HEED_ARGUMENT);
    assert_string_equal(err.text, "the head of this model reads its decoder");
    heed_tape_free(t);
    heed_session_free(s);
    heed_engine_free(e);
    input_free(in);
    heed_model_free(m);
}

/* ---- refusals and memory ---- */

static void check_refusal(heed_session *s, const heed_batch_side *side, heed_encode_options o,
                          const char *text)
{
    heed_error err = {0};
    heed_encoding out;
    assert_int_equal(heed_session_encode(s, side, &o, &out, &err), HEED_ARGUMENT);
    assert_string_equal(err.text, text);
}

/* Catches: ids, types, widths, lengths and rows that are looked up without being there. */
static void wrong_input_is_refused(void **state)
{
    (void)state;
    heed_model_config c = one_stack_config(HEED_ARCH_ENCODER);
    heed_model *m = new_model(&c);
    struct input *in = new_input(&c);
    heed_engine *e = new_engine(m);
    heed_session *s = new_session(e, 1);
    const heed_encode_options hidden = {.kind = HEED_ENCODE_HIDDEN};
    heed_batch_side side = in->side;
    const int32_t two[] = {4, 4}, far[] = {100000}, bad[] = {3, VOCABULARY};
    const int64_t length = 2, much = LONGEST + 1;
    check_refusal(s, &(heed_batch_side){0}, hidden, "there are no sequences to encode");
    check_refusal(s, &side, (heed_encode_options){.row = two, .count = 2},
                  "wanted row 1 is 4, expected 5 to 487: rows ascend");
    check_refusal(s, &side, (heed_encode_options){.row = far, .count = 1},
                  "wanted row 0 is 100000, expected 0 to 487: rows ascend");
    side.types = side.ids;
    check_refusal(s, &side, hidden, "this model has no types of tokens");
    side = (heed_batch_side){.rows = heed_segments_new(in->arena, 1, &length), .ids = bad};
    check_refusal(s, &side, hidden, "the token of row 1 is 17, expected 0 to 16");
    side.ids = NULL;
    check_refusal(s, &side, hidden, "this model reads tokens, found features");
    side = (heed_batch_side){.rows = heed_segments_new(in->arena, 1, &much), .ids = in->side.ids};
    check_refusal(s, &side, hidden,
                  "sequence 0 has 25 rows, expected at most 24, as '--longest' says");
    heed_error err = {0};
    assert_int_equal(heed_session_add(s, NULL, 1, &err), HEED_ARGUMENT);
    assert_string_equal(err.text,
                        "an encoder alone writes nothing: expected a model with a decoder");
    heed_session_free(s);
    heed_engine_free(e);
    input_free(in);
    heed_model_free(m);
}

/* Catches: memory that leaks or is used when any allocation fails, and a session that goes on
 * allocating. */
static void memory_fails_at_every_allocation(void **state)
{
    (void)state;
    heed_model_config c = one_stack_config(HEED_ARCH_ENCODER);
    heed_model *m = new_model(&c);
    struct input *in = new_input(&c);
    heed_engine *e = new_engine(m);
    const heed_encode_options o = {.kind = HEED_ENCODE_LOGITS};
    bool failed = true;
    for (int n = 1; failed; n++) {
        struct failing f = {.fail_at = n};
        heed_allocator a = failing_allocator(&f);
        heed_encoding out;
        heed_session *s = heed_session_new(e, &(heed_session_options){.threads = 1}, &a, NULL);
        failed = !s || heed_session_encode(s, &in->side, &o, &out, NULL);
        f.fail_at = 0;
        if (s) {
            assert_int_equal(heed_session_encode(s, &in->side, &o, &out, NULL), HEED_OK);
            const int before = f.calls;
            assert_int_equal(heed_session_encode(s, &in->side, &o, &out, NULL), HEED_OK);
            assert_int_equal(f.calls, before);
        }
        heed_session_free(s);
        assert_int_equal(f.held, 0);
        assert_true(failed || n > 5);
    }
    input_free(in);
    heed_engine_free(e);
    heed_model_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(encoders_are_the_forward_pass),
        cmocka_unit_test(types_features_and_labels),
        cmocka_unit_test(unpacked_encoders_take_the_tape),
        cmocka_unit_test(translators_encode),
        cmocka_unit_test(wrong_input_is_refused),
        cmocka_unit_test(memory_fails_at_every_allocation),
    };
    return cmocka_run_group_tests_name("encode", tests, NULL, NULL);
}
